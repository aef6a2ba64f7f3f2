//! Readers of the repository's record files: changelog, models table, thresholds, golden curves, image references,
//! evaluation results, waivers. Pure.

pub mod changelog;
pub mod models;
