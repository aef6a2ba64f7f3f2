//! Reads the models file: which models, scenarios, precisions and arms are allowed on a day, and until when.
//!
//! The file is prose and tables whose format changed often, so tables are recognised by header text and nothing is
//! tied to a position. Every statement becomes a [`Claim`] with its line; [`ModelsTable::status`] weighs the claims
//! that apply to a question (domain guide 8.2, 8.3). What the reader does not understand is never taken as a
//! permission: it makes the answer [`Status::Contradictory`], which is a question for a person.

mod document;
mod phrase;
mod read;
mod rules;
mod status;

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

pub use read::read;
pub use rules::{ModelsRules, Phrases, ScenarioRule, TableHeaders};
pub use status::{Query, Status};

/// Largest models file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Why a models file could not be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelsError {
    /// The file is larger than [`MAX_BYTES`].
    #[error("the models file has {bytes} bytes, more than the {MAX_BYTES} that are read")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// No table has the headers of the support matrix.
    #[error("no table has the headers of the support matrix; compare the policy's header texts with the file")]
    NoSupportMatrix,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// Line, from 1.
    pub line: usize,
    /// The text there without Markdown emphasis, shortened.
    pub text: String,
}

/// With or without speculative decoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arm {
    /// With speculative decoding, by whatever method.
    Spec,
    /// Without.
    NonSpec,
}

/// A set of precisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Precisions {
    /// These.
    These(Vec<String>),
    /// All but these.
    AllBut(Vec<String>),
}

/// When a prohibition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bound {
    /// The last allowed day; prohibited from the next one (domain guide 8.3).
    LastDay(NaiveDate),
    /// The first prohibited day.
    FirstDay(NaiveDate),
    /// No day is given: in force.
    Undated,
}

impl Bound {
    /// The first day on which it is prohibited; `None` where no day is given.
    #[must_use]
    pub fn first_prohibited(self) -> Option<NaiveDate> {
        match self {
            Bound::LastDay(day) => Some(day.succ_opt().unwrap_or(NaiveDate::MAX)),
            Bound::FirstDay(day) => Some(day),
            Bound::Undated => None,
        }
    }
}

/// Where in the file a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A dated notice: its paragraphs and tables.
    Notice,
    /// The table of scenarios.
    Scenarios,
    /// The support matrix, active column.
    ActiveColumn,
    /// The support matrix, deprecated column.
    RetiredColumn,
}

/// One prohibition as the file states it. A field that is `None` stands for every value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Claim {
    /// Model prefix.
    pub prefix: Option<String>,
    /// Scenario id.
    pub scenario: Option<String>,
    /// Precisions.
    pub precisions: Option<Precisions>,
    /// Arm.
    pub arm: Option<Arm>,
    /// When it begins.
    pub bound: Bound,
    /// The row says that it holds from the day on which the model was added; no postponement of its table touches it.
    pub day_zero: bool,
    /// Where it stands.
    pub place: Place,
    /// Its line and text.
    pub source: Source,
    /// The file says elsewhere that this was announced but not carried out.
    pub not_enacted: Option<Source>,
}

/// A remark on a scenario of one model or of all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Model prefix, or every one.
    pub prefix: Option<String>,
    /// Scenario id, or every one.
    pub scenario: Option<String>,
    /// Its line and text.
    pub source: Source,
}

/// One row of the support matrix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelRow {
    /// The row's first cell, a name for people.
    pub class: String,
    /// Day on which the model was added, if the cell begins with a date.
    pub date_added: Option<NaiveDate>,
    /// Scenarios named in the active column, with their text.
    pub active: BTreeMap<String, Source>,
    /// Scenarios named in the deprecated column.
    pub retired: BTreeMap<String, Source>,
    /// The row's place.
    pub source: Source,
}

/// First engines of one model, as the file states them. Information only: checks do not decide by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EngineRow {
    /// Cell with the engines that come first.
    pub engines: String,
    /// Cell with the agreed draft models; empty where the table has no such column.
    pub drafts: String,
    /// Its line and text.
    pub source: Source,
}

/// All that the file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelsTable {
    /// The support matrix, by prefix.
    pub rows: BTreeMap<String, ModelRow>,
    /// Scenarios that the scenario table calls active.
    pub scenarios: BTreeMap<String, Source>,
    /// Prohibitions, in the order of the file.
    pub claims: Vec<Claim>,
    /// Statements that an arm still runs although its end was announced.
    pub still_runs: Vec<Remark>,
    /// General statements that the arm without speculative decoding is not run.
    pub arm_unpublished: Vec<Remark>,
    /// Cells that the reader could not interpret.
    pub unread: Vec<Remark>,
    /// The engine mapping, by prefix.
    pub engines: BTreeMap<String, EngineRow>,
}

/// The day that counts, in UTC (domain guide 8.3).
#[must_use]
pub fn utc_day(instant: DateTime<Utc>) -> NaiveDate {
    instant.date_naive()
}
