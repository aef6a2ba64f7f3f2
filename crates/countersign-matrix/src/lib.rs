//! Master configs and the expansion into benchmark points, lanes and curves. Pure.
//!
//! Everything specific to one repository is in [`MatrixRules`] and [`Layout`]; files come through [`Files`].

mod entry;
mod evals;
mod expand;
mod files;
mod memory;
mod read;
mod read_row;
mod row;
mod rules;

pub use entry::{
    AgenticBlock, Component, ConcList, Entry, FixedBlock, Head, Own, Problem, SearchRow, Shape, SingleShape, Worker,
};
pub use expand::{EvalMode, Mode, Scenarios, entry_rows, full_sweep, generate};
pub use files::{Files, MapFiles};
pub use read::{Configs, Hardware, Masters, Runners, read_masters, read_runners};
pub use row::{Conc, Row, RowShape, Work};
pub use rules::{
    AgenticRules, CanaryRules, EvalRules, ExpNameRules, JobNameRules, Lane, LauncherLayout, Layout, MatrixRules,
    MultiNodeRule, NodeKind, OffloadRules, PrefixRule, Purpose, RecipeRule, ScenarioType, ScriptRule, Sequence,
    SharedFiles, SingleNodeLayout, SpecDecodingRules,
};
