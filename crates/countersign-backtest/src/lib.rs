//! The history of a repository, judged: every pull request of a clone by one policy, or by two with what differs.
//!
//! A clone holds commits, no conversations. So a pull request is judged by what its commits show; checks that judge the
//! sign-off are left out, and what else a clone cannot hold is unavailable, never absent. Where a [`Worlds`] knows more about a
//! pull request, everything is judged. The same clone, policy and worlds give the same bytes, however many workers there are.

mod compare;
mod evidence;
pub mod git;
mod graph;
mod html;
mod judge;
mod record;
mod run;
mod source;
mod table;
mod time;

pub use compare::{Change, compare};
pub use html::{comparison_page, page};
pub use record::{Is, Place, PullResult, RowResult, Said, Standing};
pub use run::{Ask, Outcome, Progress, Worlds, run};
pub use table::{changes_text, counts_text, pulls_text};
pub use time::Times;

/// Why a backtest cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BacktestError {
    /// The program `git` cannot be used on the clone.
    #[error("git {command}: {why}")]
    Git {
        /// The subcommand.
        command: String,
        /// What it said.
        why: String,
    },
    /// The clone has nothing to judge.
    #[error("{0}")]
    Nothing(String),
    /// A file of results cannot be read or written.
    #[error("{file}: {why}")]
    File {
        /// Which.
        file: String,
        /// Why.
        why: String,
    },
}
