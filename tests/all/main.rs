//! End-to-end tests: one binary for the whole way, its crashes, the walls between crates, and the real corpus.

mod corpus;
mod crash;
mod faults;
mod folded;
mod harness;
mod hostile;
mod people;
mod recorded;
mod shown;
mod walls;
mod way;
mod webhook;
