//! The words that everything else speaks: ids, evidence, outcomes, findings, verdicts, and how a verdict is written out.
//!
//! Invariant: nothing in this crate does I/O or reads a clock. Time is part of the evidence, so the same evidence
//! gives the same verdict, to the byte (product page, section 3).

pub mod digest;
pub mod evidence;
pub mod ids;
pub mod observed;
pub mod outcome;
pub mod render;
pub mod text;
pub mod verdict;

pub use evidence::Evidence;
pub use ids::{BlobId, CommitSha, InvalidId, Login, PrNumber, RepoName, SignoffKey, SignoffPlace, TeamName};
pub use observed::{Cause, CauseKind, Observed};
pub use outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
pub use text::{Part, Text};
pub use verdict::{Decision, Level, Row, Verdict};
