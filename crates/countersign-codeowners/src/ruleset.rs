//! A parsed file: its rules, who owns a path, and which skipped lines cast doubt on an answer.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::diagnostic::{Diagnostic, Effect};
use crate::owner::Owner;
use crate::pattern::Pattern;

/// The first size, in bytes, at which GitHub no longer loads the file ("must be under 3 MB").
pub const MAX_FILE_BYTES: usize = 3 * 1024 * 1024;

/// How many problems are listed one by one. What is beyond is summed up in a last entry.
pub const MAX_DIAGNOSTICS: usize = 1000;

/// One valid line.
#[derive(Debug, Clone, Serialize)]
pub struct Rule {
    pub(crate) line: usize,
    #[serde(rename = "pattern")]
    pub(crate) text: Box<str>,
    pub(crate) owners: Box<[Owner]>,
    #[serde(skip)]
    pub(crate) pattern: Pattern,
}

impl Rule {
    /// Line in the file, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.line
    }

    /// The pattern as written, escapes included.
    #[must_use]
    pub fn pattern(&self) -> &str {
        &self.text
    }

    /// The owners in the order of the line; empty for a rule that makes its paths unowned.
    #[must_use]
    pub fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// Whether the rule's pattern matches the path, whatever other rules say.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.pattern.matches(path)
    }

    /// Whether the rule matches every path; see [`Pattern::is_catch_all`].
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.pattern.is_catch_all()
    }
}

/// Who owns a path.
#[derive(Debug, Clone, Copy)]
pub enum Match<'a> {
    /// No rule matches.
    Unmatched,
    /// The last matching rule lists nobody, which clears what earlier rules said.
    Unowned {
        /// That rule.
        rule: &'a Rule,
    },
    /// The last matching rule lists owners; only they count.
    Owned {
        /// That rule.
        rule: &'a Rule,
        /// Its owners, never empty.
        owners: &'a [Owner],
    },
}

impl<'a> Match<'a> {
    /// The winning rule.
    #[must_use]
    pub fn rule(&self) -> Option<&'a Rule> {
        match self {
            Self::Unmatched => None,
            Self::Unowned { rule } | Self::Owned { rule, .. } => Some(rule),
        }
    }

    /// The owners; empty when unowned or unmatched.
    #[must_use]
    pub fn owners(&self) -> &'a [Owner] {
        match self {
            Self::Owned { owners, .. } => owners,
            Self::Unmatched | Self::Unowned { .. } => &[],
        }
    }

    /// Whether the winning rule is a catch-all. Domain guide 2 lets any listed owner answer for
    /// such a path.
    #[must_use]
    pub fn is_catch_all(&self) -> bool {
        self.rule().is_some_and(Rule::is_catch_all)
    }
}

/// A parsed CODEOWNERS file.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CodeOwners {
    pub(crate) rules: Vec<Rule>,
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl CodeOwners {
    /// The valid lines in the order of the file.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// The problems in the order of the file, at most [`MAX_DIAGNOSTICS`] and one entry that
    /// counts the rest.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether the file as a whole has no effect (it is too large).
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        self.diagnostics.iter().any(|d| d.effect == Effect::FileIgnored)
    }

    /// Who owns the path: the last rule that matches decides alone.
    ///
    /// The path is a file's path as git spells it, without a leading slash.
    #[must_use]
    pub fn owners_of(&self, path: &str) -> Match<'_> {
        match self.rules.iter().rev().find(|rule| rule.matches(path)) {
            None => Match::Unmatched,
            Some(rule) if rule.owners.is_empty() => Match::Unowned { rule },
            Some(rule) => Match::Owned {
                rule,
                owners: &rule.owners,
            },
        }
    }

    /// Who owns a changed file: for a rename both the new and the previous path count
    /// (domain guide 2), so there is one answer or two, the new path first.
    #[must_use]
    pub fn owners_of_change<'p>(&self, path: &'p str, previous_path: Option<&'p str>) -> Vec<(&'p str, Match<'_>)> {
        std::iter::once(path)
            .chain(previous_path.filter(|previous| *previous != path))
            .map(|p| (p, self.owners_of(p)))
            .collect()
    }

    /// Every owner that some valid line lists, each once (ignoring case), in the order and
    /// spelling of the first mention.
    #[must_use]
    pub fn listed_owners(&self) -> Vec<&Owner> {
        let mut seen = BTreeSet::new();
        self.rules
            .iter()
            .flat_map(|rule| rule.owners.iter())
            .filter(|owner| seen.insert(owner.folded()))
            .collect()
    }

    /// The skipped lines that would, if they were valid, decide about this path instead of the
    /// rule that does: the answer of [`CodeOwners::owners_of`] is what GitHub does, but perhaps
    /// not what the file's author meant. For a pattern that cannot be read this errs on the side
    /// of listing the line. A file that is ignored as a whole is listed for every path.
    #[must_use]
    pub fn doubts_about(&self, path: &str) -> Vec<&Diagnostic> {
        let winner = self.owners_of(path).rule().map_or(0, Rule::line);
        self.diagnostics
            .iter()
            .filter(|d| match d.effect {
                Effect::FileIgnored => true,
                Effect::LineSkipped => d.line > winner && d.reach.includes(path),
                Effect::RuleKept => false,
            })
            .collect()
    }
}
