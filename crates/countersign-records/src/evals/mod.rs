//! Results of a run: evaluation rows and raw evaluation results, the judgement of their metrics, and throughput rows
//! (domain guide 5.2 to 5.4).
//!
//! Results are evidence from a run that used the pull request's own tree, so nothing in them is trusted to be in
//! range: a score that is no finite number from 0 to 1 is invalid evidence, never a pass.

mod json;
mod judge;
mod raw;
mod rows;
mod throughput;

pub use json::{JsonError, Number, parse};
pub use judge::{EvalRules, Judged, Samples, TaskRule, judge};
pub use raw::{MetaEnv, RawResult, RawTask, concurrency_of, manifest_problems};
pub use rows::{EvalRow, EvalRows, RowProblem};
pub use throughput::{AxisPaths, FrontierPaths, ThroughputRow, ThroughputRows};

/// Largest result file that is read, in bytes.
pub const MAX_BYTES: usize = 32 << 20;
/// Most rows of one file.
pub const MAX_ROWS: usize = 50_000;
