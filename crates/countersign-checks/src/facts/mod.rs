//! Facts that several checks need, derived from the evidence.

pub mod affected;
pub mod points;
pub mod reuse;
pub mod runs;
pub mod sweep;
pub mod tree;
