//! Webhook server, workers and configuration.
//!
//! One way through (ARCHITECTURE.md): webhook → delivery stored → work asked for → gathered → judged → stored → published.

mod answers;
pub mod clock;
mod conclude;
pub mod config;
mod conversation;
pub mod engine;
pub mod http;
mod judge;
pub mod meters;
mod page;
pub mod points;
pub mod policies;
mod publish;
pub mod recover;
pub mod route;
mod scope;
pub mod service;
mod table;
pub mod verify;
pub mod wishes;
pub mod worker;

pub use clock::Clock;
pub use engine::{Engine, JudgeError};
pub use service::Service;
