//! End-to-end tests: one binary for the whole way, its crashes, the walls between crates, and the real corpus.

mod corpus;
mod crash;
mod harness;
mod recorded;
mod walls;
mod way;
mod webhook;
