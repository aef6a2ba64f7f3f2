//! Readers of the repository's record files: changelog, models table, thresholds, golden curves, image references,
//! evaluation results, waivers. Pure.
//!
//! Nothing here knows a repository: its words, links, namespaces and numbers come in as parameters.

pub mod changelog;
pub mod evals;
pub mod golden;
pub mod images;
pub mod models;
pub mod thresholds;
pub mod waiver;
