//! The changelog: an append-only YAML list whose added items select what a pull request benchmarks.
//!
//! Two levels of strictness exist side by side (domain guide 7.2). [`gate`] answers as the repository's CI gate does,
//! from the lines that a textual diff adds. [`check`] answers as its merge-time validator does, from the bytes of the
//! whole file; it is the stricter one. Both report every violation with its line and the fix, and [`check`] offers the
//! block to append instead where one can be derived.

mod gate;
mod item;
mod linediff;
mod slide;
mod strict;
mod suggest;
mod textdiff;
mod version;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use gate::{Gate, GateModes, gate, resolve_keys};
pub use item::{Item, ItemProblem};
pub use strict::{Checked, History, check};
pub use suggest::Suggestion;
pub use textdiff::{MAX_LINES, TextChange, added_lines};

/// Largest changelog that is read, in bytes.
pub const MAX_BYTES: usize = 4 << 20;

/// What the repository calls its links and scenarios.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ChangelogRules {
    /// What stands before the number in a canonical link, for example `https://github.com/owner/name/pull/`.
    pub link_prefix: String,
    /// Words that may stand for the number, or for the whole link, while the pull request is open.
    pub placeholders: Vec<String>,
    /// Values of `scenario-type`.
    pub scenario_types: Vec<String>,
}

impl ChangelogRules {
    /// The canonical link of a pull request.
    #[must_use]
    pub fn link(&self, number: u64) -> String {
        format!("{}{number}", self.link_prefix)
    }

    /// Whether it is a canonical link, of whatever number.
    #[must_use]
    pub fn is_canonical(&self, link: &str) -> bool {
        let number = link.strip_prefix(&self.link_prefix).unwrap_or_default();
        !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    }

    /// Whether it is a placeholder: a word, or the canonical link with the word in place of the number.
    #[must_use]
    pub fn is_placeholder(&self, link: &str) -> bool {
        let word = link.strip_prefix(&self.link_prefix).unwrap_or(link);
        self.placeholders.iter().any(|p| p == word)
    }
}

/// Which links new items may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    /// In a pull request: its own canonical link, or a placeholder.
    PullRequest(u64),
    /// On the default branch: any canonical link.
    DefaultBranch,
}

/// Which of the two files a violation is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// The target branch.
    Base,
    /// The pull request.
    Head,
    /// The text that the diff adds; lines count within it.
    Added,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The file does not end with a newline.
    NoFinalNewline,
    /// A carriage return.
    CarriageReturn,
    /// A tab.
    Tab,
    /// A NUL byte.
    Nul,
    /// Bytes that are not UTF-8.
    NotUtf8,
    /// Larger than is read.
    TooLarge,
    /// Not YAML.
    Yaml,
    /// A key occurs twice in a mapping.
    DuplicateKey,
    /// A merge key.
    MergeKey,
    /// The root, or the added text, is not a list.
    NotAList,
    /// The number of lines that begin an item differs from the number of items.
    FirstKey,
    /// An item breaks the schema.
    Schema,
    /// Items of the base are gone.
    ItemsDeleted,
    /// An item of the base has changed.
    ItemChanged,
    /// A corrected link is not canonical.
    Correction,
    /// Corrections together with additions.
    MixedCorrection,
    /// The link of a new item.
    Link,
    /// Bytes of the base have changed.
    HistoryChanged,
    /// New items are not separated from history by exactly one blank line.
    Separator,
    /// New items are not separated from each other by exactly one blank line.
    BetweenItems,
    /// Blank lines after the last item.
    TrailingBlank,
    /// A line with content is deleted.
    DeletedLine,
    /// Nothing is added.
    NothingAdded,
    /// A config key, or a pattern, that no config has.
    UnknownKey,
    /// Append-only items together with others, or with a modifier that forbids them.
    AppendOnly,
}

/// One violation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// What is wrong.
    pub kind: Kind,
    /// In which file.
    pub side: Side,
    /// Line, from 1.
    pub line: usize,
    /// What is wrong, in words, without a full stop.
    pub what: String,
    /// What to do, an imperative sentence without a full stop.
    pub fix: String,
}

impl Violation {
    fn new(kind: Kind, side: Side, line: usize, what: impl Into<String>, fix: impl Into<String>) -> Self {
        Violation {
            kind,
            side,
            line,
            what: what.into(),
            fix: fix.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.what, self.fix)
    }
}

/// Line, from 1, of a byte offset.
fn line_at(bytes: &[u8], offset: usize) -> usize {
    bytes.iter().take(offset).filter(|b| **b == b'\n').count() + 1
}

fn shown(text: &str) -> String {
    let mut out: String = text.chars().take(80).collect();
    if out.len() < text.len() {
        out.push('…');
    }
    format!("{out:?}")
}
