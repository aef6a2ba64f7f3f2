//! The flags of a launch by normalised name, each with its value, its spelling and its line.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::value::{Source, Text};

/// Where a flag was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Via {
    /// A word of the command.
    CommandLine,
    /// A file of options that the command names.
    OptionsFile,
    /// An environment variable that acts as a flag.
    Environment,
    /// A recipe.
    Recipe,
    /// An injector that rewrites the recipe before it runs (domain guide 10.3).
    Injected,
}

/// One statement of a flag.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlagValue {
    /// The value; `true` or `false` for a switch.
    pub value: Text,
    /// The flag as spelled in the source.
    pub spelled: String,
    /// Where it stands.
    pub source: Source,
    /// How it reached the engine.
    pub via: Via,
}

/// Flags by normalised name. A flag that is said twice keeps both, in order; the last one decides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Flags {
    map: BTreeMap<String, Vec<FlagValue>>,
}

impl Flags {
    /// Adds a statement.
    pub fn push(&mut self, name: &str, value: FlagValue) {
        self.map.entry(name.to_owned()).or_default().push(value);
    }

    /// Removes a flag with all its statements.
    pub fn remove(&mut self, name: &str) -> Option<Vec<FlagValue>> {
        self.map.remove(name)
    }

    /// All statements of a flag.
    pub fn all(&self, name: &str) -> &[FlagValue] {
        self.map.get(name).map_or(&[], Vec::as_slice)
    }

    /// The deciding statement of a flag.
    pub fn get(&self, name: &str) -> Option<&FlagValue> {
        self.all(name).last()
    }

    /// The deciding value of a flag, if known.
    pub fn known(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|v| v.value.as_known())
    }

    /// Whether a switch is on, as far as known.
    pub fn is_on(&self, name: &str) -> bool {
        self.known(name).is_some_and(|v| v == "true" || v == "1")
    }

    /// Every flag under a dotted prefix (`speculative-config.`), with the rest of its name.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a FlagValue)> {
        self.map
            .range(format!("{prefix}.")..)
            .take_while(move |(name, _)| name.starts_with(prefix) && name.as_bytes().get(prefix.len()) == Some(&b'.'))
            .filter_map(move |(name, values)| values.last().map(|v| (&name[prefix.len() + 1..], v)))
    }

    /// Whether a flag or anything under it was said.
    pub fn mentions(&self, name: &str) -> bool {
        self.map.contains_key(name) || self.under(name).next().is_some()
    }

    /// Every flag in name order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[FlagValue])> {
        self.map.iter().map(|(n, v)| (n.as_str(), v.as_slice()))
    }

    /// How many flags there are.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }
}
