//! Tests of the store on a real Postgres. One binary, for link time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod append_only;
mod claims;
mod common;
mod faults;
mod intake;
mod migration_rules;
mod migrations;
mod outbox;
mod private_postgres;
mod queue;
mod state;
