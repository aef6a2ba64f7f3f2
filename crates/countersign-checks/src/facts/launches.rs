//! What the points of touched entries would start, at merge base and at head (product page, section 6).
//!
//! Derived on demand and once, for all checks: by entry, and of an entry by groups of points that start the same. The
//! work is bounded for whatever a pull request holds; what is left out is counted and never taken for "nothing".

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use countersign_core::{Cause, CauseKind, CommitSha, Evidence};
use countersign_launch::point::{self, DeriveRules, PointLaunches};
use countersign_launch::render::Change;
use countersign_launch::{ChatTemplate, ClientCall, diff_launches};
use countersign_matrix::{Configs, Entry, FileRole, Point, Problem, Reason, Row, Scenarios, entry_rows, resolve};
use countersign_policy::Policy;
use countersign_shell::ScriptCache;

use super::affected::{Affected, Touch};
use super::before::{Before, is_likely_asked};
use super::gathered::Gathered;
use super::tree::TreeFiles;
use crate::memo::{Lent, Memo};
use crate::share::{locked, share, share_with};

/// Points of one entry that are derived; the largest real entry has 42.
const MOST_POINTS: usize = 128;

/// Points of all touched entries together that are derived, at base and at head each.
const MOST_POINTS_OF_ALL: usize = 2_000;

/// Which state of the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum At {
    /// Where the pull request parted from its target.
    Base,
    /// The pull request's head.
    Head,
}

/// What a point is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum For {
    /// To be measured.
    Throughput,
    /// To be evaluated: the same points, each as its evaluation job starts it.
    Evaluation,
}

/// Points that start the same.
#[derive(Debug, Clone)]
pub struct Group {
    /// The points, in the order of the config. They differ in nothing that reaches a server.
    pub rows: Vec<Row>,
    /// What each of them starts. The client stands here, not at each launch; its flags are those of the first point.
    pub starts: PointLaunches,
}

impl Group {
    /// The concurrencies of its points, sorted.
    #[must_use]
    pub fn concurrencies(&self) -> Vec<i64> {
        let all: BTreeSet<i64> = self
            .rows
            .iter()
            .flat_map(|row| row.conc.values().iter().copied())
            .collect();
        all.into_iter().collect()
    }

    /// The scenario of its points.
    #[must_use]
    pub fn touched_by(&self, scenarios: Scenarios) -> bool {
        self.rows.first().is_some_and(|row| scenarios.has(row.scenario()))
    }

    /// For readers: its topology and concurrencies, such as `tp8 ep8 at concurrency 4, 8`.
    #[must_use]
    pub fn name(&self) -> String {
        let mut out = String::new();
        if let Some(row) = self.rows.first() {
            let _ = write!(out, "{}", row.point().shape);
        }
        let concs: Vec<String> = self.concurrencies().iter().map(i64::to_string).collect();
        if !concs.is_empty() {
            let _ = write!(out, " at concurrency {}", concs.join(", "));
        }
        out
    }
}

/// What the points of one entry start.
#[derive(Debug, Clone, Default)]
pub struct EntryLaunches {
    /// The entry; `None` where this state of the repository does not have it.
    pub entry: Option<Arc<Entry>>,
    /// Its points by what they start.
    pub groups: Vec<Group>,
    /// Why its points cannot be expanded.
    pub problems: Vec<Problem>,
    /// Points that were not derived, since there are too many.
    pub left: usize,
    /// The first file that could not be read now. Whatever follows from its lack is not known.
    pub unread: Option<Cause>,
    /// Files that a script asks for and that lie outside of what the policy gathers: their contents are not known.
    pub outside: BTreeSet<String>,
    /// Whether the merge base has the same files, for all that were asked for.
    same_at_base: bool,
}

impl EntryLaunches {
    /// Fails with the cause, where a file could not be read.
    ///
    /// # Errors
    /// The cause.
    pub fn read(&self) -> Result<(), Cause> {
        self.unread.clone().map_or(Ok(()), Err)
    }

    /// The group of a point. The second of several points with one identity is found by its place.
    #[must_use]
    pub fn group_of(&self, point: &Point, nth: usize) -> Option<&Group> {
        self.groups
            .iter()
            .flat_map(|group| group.rows.iter().map(move |row| (group, row)))
            .filter(|(_, row)| row.point() == *point)
            .nth(nth)
            .map(|(group, _)| group)
    }
}

/// What a change does to the start of one point.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The base does not have the point.
    New,
    /// These statements differ; empty where the point starts the same.
    Changed(Vec<Change>),
}

/// See the module.
pub struct Launches<'a> {
    evidence: &'a Evidence,
    policy: &'a Policy,
    rules: &'a DeriveRules,
    base: CommitSha,
    affected: Arc<Affected>,
    memo: Memo,
    /// Somebody has begun with what all touched entries start.
    prepared: AtomicBool,
    allowances: [OnceLock<BTreeMap<Arc<str>, usize>>; 2],
    known: Mutex<BTreeMap<(At, For, Arc<str>), Arc<Derivation>>>,
}

/// What the points of an entry start, once it is known.
#[derive(Default)]
struct Derivation {
    /// Somebody is at it.
    begun: AtomicBool,
    found: OnceLock<Arc<EntryLaunches>>,
}

impl<'a> Launches<'a> {
    /// Over the touched entries.
    ///
    /// # Errors
    /// What is missing: the rules of derivation in the policy, or the merge base.
    pub fn new(
        evidence: &'a Evidence,
        policy: &'a Policy,
        rules: &'a DeriveRules,
        affected: Arc<Affected>,
        memo: Memo,
    ) -> Result<Self, Cause> {
        let base = evidence
            .merge_base
            .known()
            .map_err(Cause::clone)?
            .ok_or_else(|| Cause::new(CauseKind::NotRecorded, "merge base", "it was not gathered"))?;
        Ok(Self {
            evidence,
            policy,
            rules,
            base: base.clone(),
            affected,
            memo,
            prepared: AtomicBool::new(false),
            allowances: [OnceLock::new(), OnceLock::new()],
            known: Mutex::default(),
        })
    }

    /// The touched entries that head has, with what of them is touched by their own change. Entries that are touched
    /// only through shared files are in [`Launches::shared`].
    pub fn touched(&self) -> impl Iterator<Item = (&Arc<Entry>, Scenarios)> {
        self.affected.entries.iter().filter_map(|entry| {
            let Touch::Own(scenarios) = self.affected.touch(entry) else {
                return None;
            };
            Some((self.affected.head.masters.get(&entry.key)?, scenarios))
        })
    }

    /// The entries of head that are touched only through files or facts that they share with others.
    pub fn shared(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.affected
            .entries
            .iter()
            .filter(|entry| self.affected.touch(entry) == Touch::Shared)
            .filter_map(|entry| self.affected.head.masters.get(&entry.key))
    }

    /// What the points of a touched entry start.
    pub fn entry(&self, at: At, purpose: For, key: &str) -> Arc<EntryLaunches> {
        let known = self.derivation(at, purpose, key).found.get().cloned();
        known.unwrap_or_else(|| self.entry_by(at, purpose, key, &self.scripts(), true))
    }

    /// Parsed scripts for whoever asks, until they are given back.
    pub(crate) fn scripts(&self) -> Lent {
        self.memo.scripts()
    }

    /// What the points of a touched entry start, by a thread that has read scripts before.
    fn entry_by(&self, at: At, purpose: For, key: &str, scripts: &ScriptCache, shared: bool) -> Arc<EntryLaunches> {
        let derivation = self.derivation(at, purpose, key);
        let found = derivation.found.get_or_init(|| {
            derivation.begun.store(true, Ordering::Relaxed);
            match at {
                At::Head => Arc::new(self.derive(at, purpose, key, scripts, shared)),
                // Most entries of a change start as before: then head's answer stands for both.
                At::Base => match self.unchanged(purpose, key, scripts, shared) {
                    Some(head) => head,
                    None => Arc::new(self.derive(at, purpose, key, scripts, shared)),
                },
            }
        });
        found.clone()
    }

    fn derivation(&self, at: At, purpose: For, key: &str) -> Arc<Derivation> {
        let mut known = locked(&self.known);
        known.entry((at, purpose, Arc::from(key))).or_default().clone()
    }

    /// Derives what all touched entries start, side by side, for a check that is going to ask for all of it; then what
    /// those started before of which that is likely to be asked.
    pub fn prepare(&self) {
        let first = !self.prepared.swap(true, Ordering::Relaxed);
        let keys: Vec<&Arc<str>> = self.touched().map(|(entry, _)| &entry.head.key).collect();
        self.derive_side_by_side(At::Head, &keys, first);
        let asked = |key: &&Arc<str>| self.affected.base.masters.get(key).is_some() && is_likely_asked(&self.head(key));
        let keys: Vec<&Arc<str>> = keys.into_iter().filter(asked).collect();
        self.derive_side_by_side(At::Base, &keys, first);
    }

    fn derive_side_by_side(&self, at: At, keys: &[&Arc<str>], first: bool) {
        // A single derivation leaves a thread without work.
        let shared = first && keys.len() == 1;
        let derive = |scripts: &mut Lent, job: usize| {
            let key = keys[job];
            if !self.derivation(at, For::Throughput, key).begun.load(Ordering::Relaxed) {
                self.entry_by(at, For::Throughput, key, scripts, shared);
            }
        };
        if first {
            share_with(keys.len(), &|| self.scripts(), &derive);
        } else {
            let mut scripts = self.scripts();
            (0..keys.len()).for_each(|job| derive(&mut scripts, job));
        }
    }

    /// What the points of a touched entry start at head, to be measured.
    pub fn head(&self, key: &str) -> Arc<EntryLaunches> {
        self.entry(At::Head, For::Throughput, key)
    }

    /// The same at the merge base, for whoever may not need it.
    pub fn before<'l>(&'l self, key: &'l str) -> Before<'l, 'a> {
        Before::new(self, key)
    }

    /// What the points of a touched entry started at the merge base, to be measured.
    pub fn base(&self, key: &str) -> Arc<EntryLaunches> {
        self.entry(At::Base, For::Throughput, key)
    }

    /// What the pull request does to the start of each group of points at head, in order. Rows of one identity are paired
    /// in their order; a group of which some point is new is new.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn differences(&self, key: &str) -> Result<Vec<Difference>, Cause> {
        let (base, head) = (self.base(key), self.head(key));
        base.read()?;
        head.read()?;
        let mut seen: BTreeMap<Point, usize> = BTreeMap::new();
        Ok(head
            .groups
            .iter()
            .map(|group| {
                let mut all = Difference::Changed(Vec::new());
                for row in &group.rows {
                    let point = row.point();
                    let nth = seen.entry(point.clone()).or_default();
                    let old = base.group_of(&point, *nth);
                    *nth += 1;
                    match (old, &mut all) {
                        (None, _) => all = Difference::New,
                        (Some(old), Difference::Changed(changes)) if changes.is_empty() => {
                            *changes = difference(&old.starts, &group.starts);
                        }
                        _ => {}
                    }
                }
                all
            })
            .collect())
    }

    /// What head starts, where the entry and every file that its derivation asked for are the same at the merge base.
    fn unchanged(&self, purpose: For, key: &str, scripts: &ScriptCache, shared: bool) -> Option<Arc<EntryLaunches>> {
        let (old, new) = (
            self.affected.base.masters.get(key)?,
            self.affected.head.masters.get(key)?,
        );
        let (old_runners, new_runners) = (&self.affected.base.runners, &self.affected.head.runners);
        let runner = &*new.head.runner;
        // Where its own script is another one, there is no need to wait for what head asks for.
        let own = |reason: &Reason| {
            matches!(
                reason,
                Reason::File {
                    role: FileRole::Script,
                    ..
                }
            )
        };
        let mut touched = self.affected.entries.iter().filter(|entry| *entry.key == *key);
        let same = !touched.any(|entry| entry.reasons.iter().any(own))
            && old.raw.same_value(&new.raw)
            && old_runners.labels.get(runner) == new_runners.labels.get(runner)
            && old_runners.hardware.get(runner) == new_runners.hardware.get(runner)
            && self.allowance(At::Base, key) == self.allowance(At::Head, key);
        if !same {
            return None;
        }
        let head = self.entry_by(At::Head, purpose, key, scripts, shared);
        head.same_at_base.then_some(head)
    }

    fn configs(&self, at: At) -> &Configs {
        match at {
            At::Base => &self.affected.base,
            At::Head => &self.affected.head,
        }
    }

    /// How many points of each touched entry are derived. Independent of who asks first.
    fn allowance(&self, at: At, key: &str) -> usize {
        let cell = match at {
            At::Base => &self.allowances[0],
            At::Head => &self.allowances[1],
        };
        let allowances = cell.get_or_init(|| {
            let configs = self.configs(at);
            let mut rest = MOST_POINTS_OF_ALL;
            let mut out = BTreeMap::new();
            // What is touched by its own change comes first.
            let own = |entry: &&countersign_matrix::AffectedEntry| matches!(self.affected.touch(entry), Touch::Own(_));
            let entries = self.affected.entries.iter().filter(own);
            for touched in entries.chain(self.affected.entries.iter().filter(|entry| !own(entry))) {
                let Some(entry) = configs.masters.get(&touched.key) else {
                    continue;
                };
                let rows = entry_rows(configs, &self.policy.matrix, entry).map_or(0, |rows| rows.len());
                let allowed = rows.min(MOST_POINTS).min(rest);
                rest -= allowed;
                out.insert(touched.key.clone(), allowed);
            }
            out
        });
        allowances.get(key).copied().unwrap_or_default()
    }

    fn derive(&self, at: At, purpose: For, key: &str, scripts: &ScriptCache, shared: bool) -> EntryLaunches {
        let configs = self.configs(at);
        let mut out = EntryLaunches::default();
        let Some(entry) = configs.masters.get(key) else {
            return out;
        };
        out.entry = Some(entry.clone());
        let mut rows = match entry_rows(configs, &self.policy.matrix, entry) {
            Ok(rows) => rows,
            Err(problems) => {
                out.problems = problems;
                return out;
            }
        };
        let allowed = self.allowance(at, key);
        out.left = rows.len().saturating_sub(allowed);
        rows.truncate(allowed);
        if purpose == For::Evaluation {
            for row in &mut rows {
                row.eval_only = Some(true);
            }
        }
        let commit = match at {
            At::Base => &self.base,
            At::Head => &self.evidence.pull_request.head_sha,
        };
        let files = match TreeFiles::new(self.evidence, commit) {
            Ok(files) => files,
            Err(cause) => {
                out.unread = Some(cause);
                return out;
            }
        };
        let gathered = Gathered::new(&files);
        out.groups = self.grouped(&self.tree(&gathered, configs, scripts), entry, rows, shared);
        out.unread = files.unread();
        out.same_at_base =
            at == At::Head && TreeFiles::new(self.evidence, &self.base).is_ok_and(|base| gathered.answers_alike(&base));
        out.outside = gathered.outside();
        out
    }

    fn grouped(&self, tree: &point::Tree<'_>, entry: &Arc<Entry>, rows: Vec<Row>, shared: bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        // A recipe never sees the concurrency: one look suffices for all points of a row of the config.
        let by_recipe = self.is_by_recipe(tree, entry);
        let mut places: BTreeMap<(u32, u32), usize> = BTreeMap::new();
        let derived = if by_recipe {
            Vec::new()
        } else {
            self.derived(tree, entry, &rows, shared)
        };
        let mut derived = derived.into_iter();
        for row in rows {
            let place = (row.place.line, row.place.column);
            if by_recipe && let Some(group) = places.get(&place).and_then(|index| groups.get_mut(*index)) {
                group.rows.push(row);
                continue;
            }
            let mut starts = derived.next().unwrap_or_else(|| point::derive(tree, entry, &row));
            for launch in &mut starts.launches {
                launch.client = None;
            }
            let index = match groups.iter().position(|group| same(&group.starts, &starts)) {
                Some(index) => {
                    groups[index].rows.push(row);
                    index
                }
                None => {
                    groups.push(Group {
                        rows: vec![row],
                        starts,
                    });
                    groups.len() - 1
                }
            };
            places.insert(place, index);
        }
        groups
    }

    fn tree<'t>(
        &'t self,
        files: &'t Gathered<'_, '_>,
        configs: &'t Configs,
        scripts: &'t ScriptCache,
    ) -> point::Tree<'t> {
        point::Tree {
            files,
            runners: &configs.runners,
            layout: &self.policy.layout,
            matrix: &self.policy.matrix,
            rules: self.rules,
            scripts,
        }
    }

    /// What each of the points starts; where the work is shared, another thread takes a half of them. As many points of a
    /// row as can be stay together, since they have most in common.
    fn derived(&self, tree: &point::Tree<'_>, entry: &Arc<Entry>, rows: &[Row], shared: bool) -> Vec<PointLaunches> {
        if !shared || rows.len() < 2 {
            return point::derive_all(tree, entry, rows);
        }
        let mut order: Vec<usize> = (0..rows.len()).collect();
        order.sort_by_key(|at| (rows[*at].place.line, rows[*at].place.column));
        let (first, second) = order.split_at(rows.len() / 2);
        let parts = [(first, tree.scripts), (second, &self.scripts())];
        let found: [Mutex<Vec<PointLaunches>>; 2] = Default::default();
        share(parts.len(), &|part| {
            let (own, scripts) = parts[part];
            let own: Vec<Row> = own.iter().map(|at| rows[*at].clone()).collect();
            *locked(&found[part]) = point::derive_all(&point::Tree { scripts, ..*tree }, entry, &own);
        });
        let mut out: Vec<PointLaunches> = vec![PointLaunches::default(); rows.len()];
        let found = found
            .into_iter()
            .map(|found| found.into_inner().unwrap_or_else(PoisonError::into_inner));
        for (at, found) in order.into_iter().zip(found.flatten()) {
            out[at] = found;
        }
        out
    }

    fn is_by_recipe(&self, tree: &point::Tree<'_>, entry: &Entry) -> bool {
        let framework = &*entry.head.framework;
        let table = self
            .rules
            .tables
            .iter()
            .any(|table| table.frameworks.iter().any(|name| name == framework));
        if table || !entry.head.multi_node {
            return false;
        }
        let used = resolve(entry, tree.runners, tree.files, tree.layout, tree.matrix);
        used.scripts.is_empty() && !used.recipes.is_empty()
    }
}

/// Whether two points start the same. How the client is driven may differ in its numbers.
fn same(a: &PointLaunches, b: &PointLaunches) -> bool {
    a.launches == b.launches && same_client(a.client.as_ref(), b.client.as_ref()) && a.missing == b.missing
}

fn same_client(a: Option<&ClientCall>, b: Option<&ClientCall>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.tool == b.tool && a.chat_template == b.chat_template && a.source == b.source,
        (None, None) => true,
        _ => false,
    }
}

/// What differs between two starts of one point: statements of the launches, the client, and what is not known.
#[must_use]
pub fn difference(base: &PointLaunches, head: &PointLaunches) -> Vec<Change> {
    let mut out = diff_launches(&base.launches, &head.launches);
    let client = |starts: &PointLaunches| {
        starts.client.as_ref().map(|call| {
            let chat = match &call.chat_template {
                ChatTemplate::Used(by) => format!("chat template by {by}"),
                ChatTemplate::Unused => "no chat template".to_owned(),
                ChatTemplate::Symbolic(on) => format!("chat template depends on {}", on.join(", ")),
            };
            (format!("{} ({chat})", call.tool), call.source.clone())
        })
    };
    let (before, after) = (client(base), client(head));
    if before.as_ref().map(|call| &call.0) != after.as_ref().map(|call| &call.0) {
        out.push(Change {
            launch: "client".to_owned(),
            what: "client".to_owned(),
            source: after.as_ref().or(before.as_ref()).map(|call| call.1.clone()),
            before: before.map(|call| call.0),
            after: after.map(|call| call.0),
        });
    }
    let missing = |starts: &PointLaunches| {
        let all: Vec<String> = starts.missing.iter().map(ToString::to_string).collect();
        (!all.is_empty()).then(|| all.join("; "))
    };
    if base.missing != head.missing {
        out.push(Change {
            launch: "point".to_owned(),
            what: "not known".to_owned(),
            before: missing(base),
            after: missing(head),
            source: None,
        });
    }
    out
}
