//! World files and a simulated GitHub that serves them over HTTP.
//!
//! A [`World`] says what GitHub would answer (`docs/worlds.md`). [`Sim::start`] builds a GitHub from it that listens on
//! loopback: the API with GitHub's own shapes and credentials, a second host for archives, artifacts and web pages, and
//! webhooks that are derived from changes of its state. The [`SimHandle`] makes changes, plays the world's timeline, injects
//! faults, and shows what was published. The client under test is the real one; it only gets other addresses.

#![recursion_limit = "256"] // the largest shapes are single json! values

mod api;
mod git;
mod handle;
mod hooks;
mod http;
mod shapes;
mod shared;
mod state;
pub mod still;
pub mod world;

pub use crate::api::ENDPOINTS;
pub use crate::git::GitError;
pub use crate::handle::{
    Call, CheckRunView, CommentView, DeliveryView, Options, ReactionView, Sim, SimError, SimHandle, StatusView,
    StepDone, TokenKind, Write,
};
pub use crate::http::client;
pub use crate::world::World;
pub use crate::world::load::WorldError;

/// The App's private key in every world: for tests and rehearsals only, and known to everybody.
pub const TEST_KEY_PEM: &str = include_str!("test_key.pem");
/// The public half of [`TEST_KEY_PEM`].
pub const TEST_KEY_PUBLIC_PEM: &str = include_str!("test_key.pub.pem");
