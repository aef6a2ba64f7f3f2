//! The vocabulary with which a models table is read.
//!
//! Which words name a scenario, a precision or a draft method, which headers mark a table, and which phrases carry a
//! date, belong to the repository that is judged. They come from the policy; this module holds only their shape.

use serde::{Deserialize, Serialize};

/// Everything that the reader of the models file must be told.
///
/// All words are compared without regard to case, as whole words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelsRules {
    /// The scenarios, each with the words that name it.
    pub scenarios: Vec<ScenarioRule>,
    /// Precisions as they are written in config entries, for example `fp8`.
    pub precisions: Vec<String>,
    /// Words that stand for speculative decoding, for example `mtp`.
    pub spec_words: Vec<String>,
    /// What stands before a spec word to name the arm without it, for example `non-`.
    pub negation: String,
    /// Header texts by which the tables are recognised.
    pub tables: TableHeaders,
    /// Phrases that carry a meaning.
    pub phrases: Phrases,
}

/// One scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ScenarioRule {
    /// Name used in queries and results.
    pub id: String,
    /// Words that name it in the file.
    pub words: Vec<String>,
    /// Input and output length in tokens, where the scenario has fixed ones.
    #[serde(default)]
    pub lengths: Option<(u64, u64)>,
}

/// Header texts, each with every spelling that was in use. A table is recognised by its headers, never by its position
/// (domain guide 8.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TableHeaders {
    /// First column of the notices' tables and of the engine mapping.
    pub model: Vec<String>,
    /// Column of the retirement table that says what ends.
    pub deprecated: Vec<String>,
    /// Column of the retirement table that says what stays.
    pub remains: Vec<String>,
    /// Column of the arms table that says which arm ends.
    pub deprecated_arm: Vec<String>,
    /// Columns of the scenario table: name, lengths, status.
    pub scenario: Vec<String>,
    /// See [`TableHeaders::scenario`].
    pub lengths: Vec<String>,
    /// See [`TableHeaders::scenario`].
    pub status: Vec<String>,
    /// Columns of the support matrix: prefix, date added, active, deprecated.
    pub prefix: Vec<String>,
    /// See [`TableHeaders::prefix`].
    pub date_added: Vec<String>,
    /// See [`TableHeaders::prefix`].
    pub active: Vec<String>,
    /// See [`TableHeaders::prefix`].
    pub retired: Vec<String>,
    /// Column of the engine mapping with the engines that come first.
    pub engines: Vec<String>,
    /// Column of the engine mapping with the agreed draft models.
    pub drafts: Vec<String>,
}

/// Phrases. Where a date is expected, it follows the phrase at once (a weekday may stand between).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Phrases {
    /// Follows a date, which is then the last allowed day: `is the last day`.
    pub last_day: Vec<String>,
    /// Before a date that is the last allowed day: `until`, `retired after`.
    pub until: Vec<String>,
    /// Before a date from which on something holds, whatever it is: `since`, `from`.
    pub since: Vec<String>,
    /// Before a date from which on something is gone: `removed`, `retired`.
    pub ended: Vec<String>,
    /// The row was never allowed: `from day 0`.
    pub day_zero: Vec<String>,
    /// What is announced has not been carried out: `not yet enacted`, `still runs`, `pending`.
    pub not_enacted: Vec<String>,
    /// Narrows an active scenario to a draft method or to precisions: `only`, `limited to`.
    pub only: Vec<String>,
    /// Cell text that stands for an empty list: `none`, a dash.
    pub nothing: Vec<String>,
    /// Opening word of an active scenario's status.
    pub active: Vec<String>,
    /// Opening word of a retired scenario's status.
    pub deprecated: Vec<String>,
    /// A general statement that the arm without speculative decoding is not run.
    pub arm_unpublished: Vec<String>,
    /// Names of the tables of one notice, in order: `first table`, `second table`.
    pub ordinals: Vec<String>,
    /// Words without meaning of their own inside a cell: `scenario`, `arm`, `both`, `recipes`.
    pub filler: Vec<String>,
}

impl ModelsRules {
    /// The scenario of a pair of lengths.
    #[must_use]
    pub fn scenario_of_lengths(&self, isl: u64, osl: u64) -> Option<&str> {
        self.scenarios
            .iter()
            .find(|s| s.lengths == Some((isl, osl)))
            .map(|s| s.id.as_str())
    }
}
