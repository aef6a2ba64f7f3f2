//! From a benchmark point to what it would start: its script is evaluated, or its recipe is read (product page,
//! section 6). Everything that belongs to one repository comes as [`DeriveRules`].

mod answering;
mod recipe_point;
mod rules;
mod script;
mod trace;

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_matrix as matrix;
use countersign_shell as shell;
use serde::Serialize;

use crate::client::{ChatTemplate, ClientCall};
use crate::launch::Launch;
use crate::value::Source;

pub use rules::{AnswerRule, DeriveRules, InjectionRules, TableKind, TableRule};
pub use trace::{Statement, Trace, trace};

/// What one point starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PointLaunches {
    /// Servers in the order in which they are started; routers and frontends included.
    pub launches: Vec<Launch>,
    /// How the benchmark drives them, if a client call was found.
    pub client: Option<ClientCall>,
    /// Files that were read.
    pub files: Vec<String>,
    /// Why something of this point is not known here.
    pub missing: Vec<Missing>,
    /// What the readers noted.
    pub notes: Vec<String>,
}

impl PointLaunches {
    /// The servers that run a model.
    pub fn servers(&self) -> impl Iterator<Item = &Launch> {
        self.launches.iter().filter(|l| l.engine != crate::Engine::Router)
    }
}

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// No rule leads from the entry to a script or recipe.
    NoRule,
    /// The script is not in the tree: the point cannot run.
    Script(String),
    /// The recipe is not in the tree. It may live elsewhere: unknown, not absent (domain guide 3.9).
    Recipe(String),
    /// The recipe cannot be read, with the reason and what to do.
    Unreadable(String),
    /// The script was evaluated and starts no known server.
    NoServer(String),
    /// The evaluation was stopped at a bound.
    Truncated(String),
}

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Missing::NoRule => f.write_str("no rule leads from this entry to a script or recipe"),
            Missing::Script(path) => write!(f, "script {path} is not in the repository"),
            Missing::Recipe(path) => write!(f, "recipe {path} is not in the repository"),
            Missing::Unreadable(why) => f.write_str(why),
            Missing::NoServer(path) => write!(f, "{path} starts no known server"),
            Missing::Truncated(why) => write!(f, "evaluation stopped: {why}"),
        }
    }
}

/// One state of the repository with what is needed to derive its points.
pub struct Tree<'a> {
    /// The files.
    pub files: &'a dyn matrix::Files,
    /// Runner labels.
    pub runners: &'a matrix::Runners,
    /// Where things lie.
    pub layout: &'a matrix::Layout,
    /// Rules of the matrix.
    pub matrix: &'a matrix::MatrixRules,
    /// Rules of derivation.
    pub rules: &'a DeriveRules,
    /// Parsed scripts, shared between points.
    pub scripts: &'a shell::ScriptCache,
}

struct ShellFiles<'a>(&'a dyn matrix::Files);

impl shell::Files for ShellFiles<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.0.read(path)
    }
}

/// Derives what the points of an entry start, in the order of its rows: what [`derive()`] gives for each of them, for less
/// work where they differ in nothing but numbers.
pub fn derive_all(tree: &Tree<'_>, entry: &matrix::Entry, rows: &[matrix::Row]) -> Vec<PointLaunches> {
    let mut out: Vec<PointLaunches> = vec![PointLaunches::default(); rows.len()];
    let mut by_script: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let table = table_of(tree, entry);
    let mut of_table = Vec::new();
    for (at, row) in rows.iter().enumerate() {
        let resolution = resolved(tree, entry, row);
        if table.is_some() {
            of_table.push((row, resolution));
            continue;
        }
        match resolution.scripts.first() {
            Some(script) if script.exists && resolution.scripts.len() == 1 && resolution.recipes.is_empty() => {
                by_script.entry(script.path.clone()).or_default().push(at);
            }
            _ => out[at] = derive_resolved(tree, row, &resolution),
        }
    }
    if let Some(table) = table {
        return recipe_point::from_table(tree, &of_table, table);
    }
    for (path, places) in by_script {
        let own: Vec<&matrix::Row> = places.iter().map(|at| &rows[*at]).collect();
        for (at, found) in places.into_iter().zip(script::from_script_for_all(tree, &own, &path)) {
            out[at] = found;
        }
    }
    out
}

/// Derives what a point starts.
pub fn derive(tree: &Tree<'_>, entry: &matrix::Entry, row: &matrix::Row) -> PointLaunches {
    let resolution = resolved(tree, entry, row);
    match table_of(tree, entry) {
        Some(table) => recipe_point::from_table(tree, &[(row, resolution)], table)
            .pop()
            .unwrap_or_default(),
        None => derive_resolved(tree, row, &resolution),
    }
}

/// The table that describes the servers of an entry, if one does.
fn table_of<'t>(tree: &Tree<'t>, entry: &matrix::Entry) -> Option<&'t TableRule> {
    let rules = tree.rules;
    let framework = &*entry.head.framework;
    rules
        .tables
        .iter()
        .find(|t| t.frameworks.iter().any(|f| f == framework))
}

fn resolved(tree: &Tree<'_>, entry: &matrix::Entry, row: &matrix::Row) -> matrix::Resolution {
    matrix::resolve(&narrow(entry, row), tree.runners, tree.files, tree.layout, tree.matrix)
}

fn derive_resolved(tree: &Tree<'_>, row: &matrix::Row, resolution: &matrix::Resolution) -> PointLaunches {
    let mut out = PointLaunches::default();
    let eval = row.purpose() == matrix::Purpose::Eval;
    let mut recipes: Vec<&matrix::UsedRecipe> = resolution.recipes.iter().filter(|r| r.eval_only == eval).collect();
    if recipes.is_empty() {
        recipes = resolution.recipes.iter().filter(|r| !r.eval_only).collect();
    }
    if !recipes.is_empty() {
        for recipe in recipes {
            recipe_point::from_recipe(tree, row, recipe, resolution, &mut out);
        }
        return out;
    }
    if resolution.scripts.is_empty() {
        out.missing.push(Missing::NoRule);
    }
    for file in &resolution.scripts {
        if file.exists {
            script::from_script(tree, row, &file.path, &mut out);
        } else {
            out.missing.push(Missing::Script(file.path.clone()));
        }
    }
    out
}

/// The script that a point runs and what the evaluator is given for it, for setting derivations against real runs; nothing
/// where the point runs no script of the tree.
pub fn scripts(tree: &Tree<'_>, entry: &matrix::Entry, row: &matrix::Row) -> Vec<shell::Setup> {
    let resolution = resolved(tree, entry, row);
    let there = resolution.scripts.iter().filter(|s| s.exists);
    there
        .map(|s| script::setup(tree, row, &s.path, &script::Surroundings::default()))
        .collect()
}

/// The entry with nothing but the search-space row that a point comes from.
fn narrow(entry: &matrix::Entry, row: &matrix::Row) -> matrix::Entry {
    let mut out = entry.clone();
    for block in &mut out.fixed {
        block.rows.retain(|r| r.span == row.place);
    }
    for block in &mut out.agentic {
        block.rows.retain(|r| r.span == row.place);
    }
    out.fixed.retain(|b| !b.rows.is_empty());
    out.agentic.retain(|b| !b.rows.is_empty());
    out
}

/// Joins the client calls found on the ways through a script: only what holds on all of them is said.
fn join_clients(calls: Vec<ClientCall>) -> Option<ClientCall> {
    let mut calls = calls.into_iter();
    let mut first = calls.next()?;
    for other in calls {
        first.chat_template = match (first.chat_template, other.chat_template) {
            (ChatTemplate::Used(a), ChatTemplate::Used(_)) => ChatTemplate::Used(a),
            (ChatTemplate::Unused, ChatTemplate::Unused) => ChatTemplate::Unused,
            (ChatTemplate::Symbolic(mut a), ChatTemplate::Symbolic(b)) => {
                a.extend(b);
                a.sort();
                a.dedup();
                ChatTemplate::Symbolic(a)
            }
            (ChatTemplate::Symbolic(a), _) | (_, ChatTemplate::Symbolic(a)) => ChatTemplate::Symbolic(a),
            _ => ChatTemplate::Symbolic(vec![format!(
                "which client call is reached ({}, {})",
                first.source, other.source
            )]),
        };
    }
    Some(first)
}

fn place(row: &matrix::Row) -> Source {
    Source::new(row.head.file.clone(), row.place.line)
}
