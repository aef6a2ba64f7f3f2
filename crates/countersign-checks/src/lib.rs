//! The checks, their registry, and [`evaluate`]: the pure function from evidence and policy to a verdict.
//!
//! Invariant: nothing here does I/O or reads a clock. Adding a check is one file under `checks/`, one line in
//! [`checks`], and one folder under `fixtures/`; a test fails where one of the three is missing
//! (`docs/adding-a-check.md`).

pub mod check;
pub mod checks;
pub mod context;
pub mod docs;
mod engine;
pub mod facts;
mod lift;
pub mod memo;
mod record;
mod share;
#[cfg(feature = "sketch")]
pub mod sketch;
mod validate;

pub use check::{Check, TypedCheck};
pub use context::Context;
pub use engine::{ENGINE_VERSION, Step, evaluate, evaluate_watched, policy_then, reuse_usable};
pub use memo::Memo;
pub use record::{RecordError, Stored, record, restore};
pub use validate::{PolicyNote, schema, validate};
