//! Facts that several checks need, derived from the evidence.

pub mod lanes;
pub mod reuse;
pub mod runs;
