//! Reading a policy file, following `extends`, and finding what cannot work.

use countersign_core::digest;
use countersign_yaml::{Entry, Limits, Map, Node, Span, Value, YamlError};

use crate::{LoadedPolicy, Policy};

/// How many files an `extends` chain may have.
pub const MAX_EXTENDS: usize = 4;

/// Where policy files come from: a name (as in `extends`) to its text.
pub trait Source {
    /// The text of a policy file, or why it cannot be read.
    ///
    /// # Errors
    /// A sentence for the reader.
    fn text(&self, name: &str) -> Result<String, String>;
}

impl<F: Fn(&str) -> Result<String, String>> Source for F {
    fn text(&self, name: &str) -> Result<String, String> {
        self(name)
    }
}

/// A policy that cannot be used, with its place and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}\n  → {remedy}")]
pub struct LoadError {
    /// File name.
    pub file: String,
    /// Line, from 1; 0 where the whole file is meant.
    pub line: u32,
    /// Column, from 1; 0 where the whole file is meant.
    pub column: u32,
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl LoadError {
    fn whole(file: &str, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: 0,
            column: 0,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    fn yaml(file: &str, error: YamlError) -> Self {
        Self {
            file: file.to_owned(),
            line: error.line,
            column: error.column,
            message: error.message,
            remedy: error.remedy,
        }
    }

    fn at(file: &str, span: Span, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            file: file.to_owned(),
            line: span.line,
            column: span.column,
            message: message.into(),
            remedy: remedy.into(),
        }
    }
}

/// Loads a policy by name.
///
/// # Errors
/// [`LoadError`] at the first thing that cannot work.
pub fn load(name: &str, source: &dyn Source) -> Result<LoadedPolicy, LoadError> {
    let mut chain: Vec<(String, Node)> = Vec::new();
    let mut next = Some(name.to_owned());
    while let Some(file) = next.take() {
        if chain.len() >= MAX_EXTENDS || chain.iter().any(|(seen, _)| *seen == file) {
            return Err(LoadError::whole(
                &file,
                "the chain of `extends` is too long or goes in a circle",
                "Extend at most one common file.",
            ));
        }
        let text = source
            .text(&file)
            .map_err(|why| LoadError::whole(&file, why, "Check the name in `extends` and that the file is there."))?;
        let mut node = read(&file, &text)?;
        next = take_extends(&file, &mut node)?;
        chain.push((file, node));
    }
    // Each file alone must be of the right shape, so that an error names the file it stands in. Values that are missing
    // may come from below, so only the merged tree is read whole; a wrong place is then looked up in the chain.
    let mut merged: Option<Node> = None;
    for (_, node) in chain.iter().rev() {
        merged = Some(match merged {
            None => node.clone(),
            Some(below) => overlay(below, node.clone()),
        });
    }
    let tree = merged.ok_or_else(|| LoadError::whole(name, "the policy is empty", "Write a policy."))?;
    let policy: Policy = countersign_yaml::from_node(&tree).map_err(|error| {
        let file = file_of(&chain, error.line, error.column).unwrap_or(name);
        LoadError::yaml(file, error)
    })?;
    semantic(name, &policy, &tree)?;
    let digest = digest::digest_of(&tree.to_json())
        .map_err(|error| LoadError::whole(name, error.to_string(), "Use text keys only."))?;
    Ok(LoadedPolicy {
        policy,
        digest,
        tree,
        file: name.to_owned(),
    })
}

fn read(file: &str, text: &str) -> Result<Node, LoadError> {
    let document = countersign_yaml::parse(text, &Limits::default()).map_err(|error| LoadError::yaml(file, error))?;
    if let Some(duplicate) = document.duplicate_keys.first() {
        return Err(LoadError {
            file: file.to_owned(),
            line: duplicate.line,
            column: duplicate.column,
            message: format!(
                "the key `{}` is already set on line {}",
                duplicate.key, duplicate.first_line
            ),
            remedy: "Keep one of the two.".into(),
        });
    }
    Ok(document.root)
}

fn take_extends(file: &str, node: &mut Node) -> Result<Option<String>, LoadError> {
    let Value::Map(map) = &mut node.value else {
        return Err(LoadError::at(
            file,
            node.span,
            "a policy is a mapping",
            "Start with `name: …`.",
        ));
    };
    let Some(index) = map
        .entries
        .iter()
        .position(|entry| entry.key.as_str() == Some("extends"))
    else {
        return Ok(None);
    };
    let entry = map.entries.remove(index);
    match entry.value.as_str() {
        Some(name) if !name.contains(['/', '\\']) && !name.starts_with('.') => Ok(Some(name.to_owned())),
        _ => Err(LoadError::at(
            file,
            entry.value.span,
            "`extends` takes the name of a file beside this one",
            "Write the name without path and ending.",
        )),
    }
}

/// Mappings merge, everything else is replaced.
fn overlay(below: Node, above: Node) -> Node {
    match (below.value, above.value) {
        (Value::Map(mut base), Value::Map(over)) => {
            for Entry { key, value } in over.entries {
                match base.entries.iter_mut().find(|entry| entry.key.same_value(&key)) {
                    Some(entry) => {
                        let old = std::mem::replace(
                            &mut entry.value,
                            Node {
                                span: value.span,
                                value: Value::Null,
                            },
                        );
                        *entry = Entry {
                            key,
                            value: overlay(old, value),
                        };
                    }
                    None => base.entries.push(Entry { key, value }),
                }
            }
            Node {
                span: above.span,
                value: Value::Map(Map { entries: base.entries }),
            }
        }
        (_, value) => Node {
            span: above.span,
            value,
        },
    }
}

/// The file of the chain that has a node or key at a place. Two files can have something at the same place; the upper
/// one is named then, which is where a rule author is working.
fn file_of(chain: &[(String, Node)], line: u32, column: u32) -> Option<&str> {
    fn has(node: &Node, line: u32, column: u32) -> bool {
        let here = |span: Span| span.line == line && span.column == column;
        here(node.span)
            || match &node.value {
                Value::Seq(items) => items.iter().any(|item| has(item, line, column)),
                Value::Map(map) => map
                    .entries
                    .iter()
                    .any(|entry| here(entry.key.span) || has(&entry.value, line, column)),
                _ => false,
            }
    }
    chain
        .iter()
        .find(|(_, node)| has(node, line, column))
        .map(|(file, _)| file.as_str())
}

fn semantic(file: &str, policy: &Policy, tree: &Node) -> Result<(), LoadError> {
    let span = |section: &str| tree.get(section).map_or(tree.span, |node| node.span);
    if let Some(problem) = policy.signoff.problems().into_iter().next() {
        return Err(LoadError::at(
            file,
            span("signoff"),
            format!("signoff.{}: {}", problem.at, problem.message),
            problem.remedy,
        ));
    }
    if let Some(problem) = policy.commands.words.problems().into_iter().next() {
        return Err(LoadError::at(
            file,
            span("commands"),
            format!("commands.words.{}: {}", problem.at, problem.message),
            problem.remedy,
        ));
    }
    let mut numbers = std::collections::BTreeSet::new();
    let mut slugs = std::collections::BTreeSet::new();
    for (index, entry) in policy.checks.iter().enumerate() {
        let place = tree
            .get("checks")
            .and_then(Node::as_seq)
            .and_then(|items| items.get(index))
            .map_or(tree.span, |node| node.span);
        if !numbers.insert(entry.number) {
            return Err(LoadError::at(
                file,
                place,
                format!("the number {} is used twice", entry.number),
                "Give each row a number of its own.",
            ));
        }
        for slug in entry.slugs() {
            if !slugs.insert(slug.to_owned()) {
                return Err(LoadError::at(
                    file,
                    place,
                    format!("the check `{slug}` is listed twice"),
                    "List each check once.",
                ));
            }
        }
    }
    let marker = &policy.publish.comment.marker;
    if marker.is_empty() || !marker.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Err(LoadError::at(
            file,
            span("publish"),
            "publish.comment.marker may hold letters, digits and hyphens only",
            "Choose a word such as `signoff-verdict`.",
        ));
    }
    if !policy
        .signoff
        .verdict_markers
        .iter()
        .any(|known| format!("<!-- {marker} ").starts_with(known.as_str()))
    {
        return Err(LoadError::at(
            file,
            span("signoff"),
            "signoff.verdict_markers does not know our own verdicts, so one could be taken for a sign-off",
            format!("Add `<!-- {marker}` to signoff.verdict_markers."),
        ));
    }
    Ok(())
}

impl LoadedPolicy {
    /// Reads the parameters of a check into its own type. Missing parameters are read as an empty mapping.
    ///
    /// # Errors
    /// [`LoadError`] with the place of the value that does not fit.
    pub fn params<P: serde::de::DeserializeOwned>(&self, slug: &str) -> Result<P, LoadError> {
        let empty = Node {
            span: self.tree.span,
            value: Value::Map(Map::default()),
        };
        let node = self.params_node(slug).unwrap_or(&empty);
        countersign_yaml::from_node(node).map_err(|error| LoadError::yaml(&self.file, error))
    }

    fn params_node(&self, slug: &str) -> Option<&Node> {
        let entries = self.tree.get("checks")?.as_seq()?;
        let index = self
            .policy
            .checks
            .iter()
            .position(|entry| entry.slugs().any(|known| known == slug))?;
        let params = entries.get(index)?.get("params")?;
        if self.policy.checks[index].slugs().count() > 1 {
            params.get(slug)
        } else {
            Some(params)
        }
    }
}
