//! Master configs and the expansion into benchmark points, lanes and curves. Pure.
//!
//! Everything specific to one repository is in [`MatrixRules`] and [`Layout`]; files come through [`Files`].

mod affected;
mod append_only;
mod beside;
mod command;
mod diff;
mod entry;
mod evals;
mod expand;
mod files;
mod items;
mod jobs;
mod linediff;
mod memory;
mod point;
mod read;
mod read_entry;
mod read_row;
mod report;
mod resolve;
mod row;
mod rules;
mod select;

pub use affected::{AffectedEntry, Reason, Revision, affected, changed_fields};
pub use beside::Near;
pub use command::{MatrixRequest, matrix_report};
pub use diff::{ChangedRow, FieldChange, MatrixDiff, diff};
pub use entry::{
    AgenticBlock, Component, ConcList, Entry, FixedBlock, Head, Own, Problem, SearchRow, Shape, SingleShape, Worker,
};
pub use expand::{EvalMode, Mode, Scenarios, entry_rows, full_sweep, generate};
pub use files::{Files, MapFiles};
pub use items::{Item, added_items};
pub use jobs::{CheckRunName, canary, check_run_name, job_name, lane, shape_name};
pub use linediff::{LineDiff, line_diff};
pub use point::{Curve, Point, PointShape, curves};
pub use read::{Configs, Hardware, Masters, Runners, read_masters, read_runners};
pub use report::{Format, buckets_json, diff_report, problems_report, rows_report, selection_report};
pub use resolve::{FileRole, Resolution, UsedFile, UsedRecipe, resolve, sku};
pub use row::{Conc, Row, RowShape, Work};
pub use rules::{
    AgenticRules, CanaryRules, EvalRules, ExpNameRules, Generator, JobNameRules, Lane, LauncherLayout, Layout,
    MatrixRules, MultiNodeRule, NodeKind, OffloadRules, PrefixRule, Purpose, RecipeRule, ScenarioType, ScriptRule,
    Sequence, SharedFiles, SingleNodeLayout, SpecDecodingRules, Words,
};
pub use select::{SelectOptions, SelectedEntry, Selection, resolve_keys, select};
