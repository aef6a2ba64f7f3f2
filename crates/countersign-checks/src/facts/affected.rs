//! The entries that a pull request touches, and how: by their own values, through the files they run, or because a new
//! changelog item selects them (domain guide, sections 3.8, 3.9, 7 and 15). Compared are merge base and head.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_core::evidence::ChangedFile;
use countersign_core::outcome::{CheckReport, Finding, Location};
use countersign_core::{Cause, CauseKind, Evidence, Observed, text};
use countersign_matrix::{
    AffectedEntry, Configs, Entry, FileRole, Item, Problem, Reason, Revision, ScenarioType, Scenarios, SelectedEntry,
    added_items, affected, resolve_keys,
};
use countersign_policy::Policy;

use super::marked;
use super::tree::TreeFiles;
use crate::memo::Memo;

/// What the changelog adds.
#[derive(Debug)]
pub enum Items {
    /// It is the same at merge base and head.
    Untouched,
    /// The added lines cannot be read as items.
    Unreadable(Vec<Problem>),
    /// These items.
    Added(Vec<Item>),
}

/// See the module.
#[derive(Debug)]
pub struct Affected {
    /// Configs at the merge base.
    pub base: Arc<Configs>,
    /// Configs at head.
    pub head: Arc<Configs>,
    /// Every touched entry, by key.
    pub entries: Vec<AffectedEntry>,
    /// New changelog items.
    pub items: Items,
    /// What is wrong with the configs at head and was not at the merge base.
    pub broken: Vec<Problem>,
    /// The configs changed, and something in them was and is unreadable: whether it changed cannot be told.
    pub blind: Option<Problem>,
}

/// What of an entry is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Nothing that runs at head: the entry, its script, or what differs in it, is gone.
    Nothing,
    /// Only files and facts that it shares with other entries: launchers, libraries, hardware facts.
    Shared,
    /// These scenarios.
    Own(Scenarios),
}

impl Affected {
    /// Entries whose own values are new or differ, with the entry at head.
    pub fn changed(&self) -> impl Iterator<Item = (&AffectedEntry, &Arc<Entry>)> {
        self.entries
            .iter()
            .filter(|entry| {
                entry
                    .reasons
                    .iter()
                    .any(|reason| matches!(reason, Reason::Added | Reason::Changed { .. }))
            })
            .filter_map(|entry| Some((entry, self.head.masters.get(&entry.key)?)))
    }

    /// Entries under new keys. A key that took over the very value of a removed one is a new name, not a new entry.
    #[must_use]
    pub fn added(&self) -> Vec<&Arc<Entry>> {
        let mut gone: Vec<&Arc<Entry>> = self
            .entries
            .iter()
            .filter(|entry| entry.reasons.contains(&Reason::Removed))
            .filter_map(|entry| self.base.masters.get(&entry.key))
            .collect();
        self.changed()
            .filter(|(entry, _)| entry.reasons.contains(&Reason::Added))
            .map(|(_, entry)| entry)
            .filter(
                |entry| match gone.iter().position(|old| old.raw.same_value(&entry.raw)) {
                    Some(index) => {
                        gone.remove(index);
                        false
                    }
                    None => true,
                },
            )
            .collect()
    }

    /// What of an entry is touched.
    #[must_use]
    pub fn touch(&self, affected: &AffectedEntry) -> Touch {
        if self.head.masters.get(&affected.key).is_none() {
            return Touch::Nothing;
        }
        let mut own = Scenarios {
            fixed: false,
            agentic: false,
        };
        let mut shared = false;
        for reason in &affected.reasons {
            let these = match reason {
                Reason::Removed | Reason::ScriptGone { .. } => continue,
                Reason::Hardware
                | Reason::File {
                    role: FileRole::Launcher | FileRole::Support,
                    ..
                } => {
                    shared = true;
                    continue;
                }
                Reason::Added
                | Reason::File {
                    role: FileRole::Script | FileRole::Recipe,
                    ..
                } => Scenarios::ALL,
                Reason::Changed { fields } => of_fields(fields),
                Reason::Changelog { line } => self.of_item(*line),
            };
            own = Scenarios {
                fixed: own.fixed || these.fixed,
                agentic: own.agentic || these.agentic,
            };
        }
        match (own.is_empty(), shared) {
            (false, _) => Touch::Own(own),
            (true, true) => Touch::Shared,
            (true, false) => Touch::Nothing,
        }
    }

    fn of_item(&self, line: u32) -> Scenarios {
        match &self.items {
            Items::Added(items) => items
                .iter()
                .find(|item| item.line == line)
                .map_or(Scenarios::ALL, Item::scenarios),
            _ => Scenarios::ALL,
        }
    }

    /// The report of a check that needs the configs, where they cannot be read; `None` where they can.
    #[must_use]
    pub fn unusable(&self) -> Option<CheckReport> {
        if let Some(problem) = &self.blind {
            return Some(CheckReport::unavailable(&Cause::new(
                CauseKind::Malformed,
                problem.file.to_string(),
                format!("it changed, and a part of it cannot be read before or after: {problem}"),
            )));
        }
        let first = self.broken.first()?;
        let more = self.broken.len() - 1;
        let mut message = text!["the configs cannot be read at head: "].and(marked(&first.to_string()));
        if more > 0 {
            message = message.with(format!(" (and {more} more problems)"));
        }
        let mut finding = Finding::new(
            "config-broken",
            message,
            text!["Mend the config: "].and(marked(&first.remedy)).with("."),
        );
        if first.line > 0 {
            finding = finding.at(Location::line(first.file.to_string(), u64::from(first.line)));
        }
        Some(CheckReport::fail(finding))
    }
}

/// The scenarios that a change of these fields touches: a field of one scenario touches that one, any other field all.
fn of_fields(fields: &[String]) -> Scenarios {
    let within = |which: ScenarioType| {
        let own = format!("scenarios.{}", which.name());
        move |field: &String| *field == own || field.starts_with(&format!("{own}."))
    };
    let (fixed, agentic) = (within(ScenarioType::Fixed), within(ScenarioType::Agentic));
    if fields.is_empty() || !fields.iter().all(|field| fixed(field) || agentic(field)) {
        return Scenarios::ALL;
    }
    Scenarios {
        fixed: fields.iter().any(fixed),
        agentic: fields.iter().any(agentic),
    }
}

/// Computes the facts.
///
/// # Errors
/// What could not be read.
pub fn compute(evidence: &Evidence, policy: &Policy, memo: &Memo) -> Result<Affected, Cause> {
    let unknown = |what: &str| Cause::new(CauseKind::NotRecorded, what, "it was not gathered");
    let files = evidence
        .changed_files
        .known()
        .map_err(Cause::clone)?
        .ok_or_else(|| unknown("changed files"))?;
    let base_sha = evidence
        .merge_base
        .known()
        .map_err(Cause::clone)?
        .ok_or_else(|| unknown("merge base"))?;
    let changed: BTreeSet<&str> = files.iter().flat_map(ChangedFile::paths).collect();
    let (layout, rules) = (&policy.layout, &policy.matrix);
    let base_files = TreeFiles::new(evidence, base_sha)?;
    let head_files = TreeFiles::new(evidence, &evidence.pull_request.head_sha)?;
    let same = layout
        .masters
        .iter()
        .chain([&layout.runners])
        .all(|path| base_files.id(path) == head_files.id(path));
    let base = memo.configs(evidence, policy, base_sha)?;
    let head = memo.configs(evidence, policy, &evidence.pull_request.head_sha)?;
    let items = items(evidence, policy, &changed)?;
    let selected = match &items {
        Items::Added(items) => selected(items, &head),
        _ => Vec::new(),
    };
    let changed: Vec<String> = changed.into_iter().map(str::to_owned).collect();
    let entries = affected(
        Revision {
            configs: &base,
            files: &base_files,
        },
        Revision {
            configs: &head,
            files: &head_files,
        },
        &changed,
        &selected,
        layout,
        rules,
    );
    if let Some(cause) = base_files.unread().or_else(|| head_files.unread()) {
        return Err(cause);
    }
    // A problem that stood there before is not this pull request's.
    let known = base.problems();
    let (old, broken): (Vec<Problem>, Vec<Problem>) = head
        .problems()
        .into_iter()
        .partition(|problem| known.iter().any(|old| old.same_as(problem)));
    Ok(Affected {
        base,
        head,
        entries,
        items,
        broken,
        blind: old.into_iter().next().filter(|_| !same),
    })
}

fn items(evidence: &Evidence, policy: &Policy, changed: &BTreeSet<&str>) -> Result<Items, Cause> {
    let path = &policy.layout.changelog;
    if !changed.contains(path.as_str()) {
        return Ok(Items::Untouched);
    }
    let text = |file: Observed<Arc<str>>| match file {
        Observed::Present(text) => Ok(text),
        Observed::Absent => Ok(Arc::from("")),
        Observed::Unavailable(cause) => Err(cause),
    };
    let (before, after) = (text(evidence.base_file(path))?, text(evidence.head_file(path))?);
    if before == after {
        return Ok(Items::Untouched);
    }
    Ok(match added_items(path, &before, &after) {
        Ok(items) => Items::Added(items),
        Err(problems) => Items::Unreadable(problems),
    })
}

/// A bound on the work for hostile items; CI refuses to select from more (see [`countersign_matrix::select`]).
const MOST_PATTERNS: usize = 2_000;

/// What items select, key by key: a key that selects nothing does not hide the others.
fn selected(items: &[Item], head: &Configs) -> Vec<SelectedEntry> {
    let patterns = items
        .iter()
        .enumerate()
        .flat_map(|(index, item)| item.config_keys.iter().map(move |pattern| (index, item.line, pattern)));
    let mut out = Vec::new();
    for (item, line, pattern) in patterns.take(MOST_PATTERNS) {
        let keys = resolve_keys(std::slice::from_ref(pattern), &head.masters).unwrap_or_default();
        out.extend(keys.into_iter().map(|key| SelectedEntry { key, item, line }));
    }
    out
}
