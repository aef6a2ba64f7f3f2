//! Several points in one go: those that are left out of an evaluation in a statement of the script itself go on from
//! before that statement, on their own, so that what they have in common is evaluated once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Evaluator;
use crate::lanes::Lanes;
use crate::output::{Diagnostic, Evaluation};
use crate::syntax::Script;
use crate::uses::Telling;
use crate::value::Value;
use crate::world::{Status, World, WrittenFile};

/// An evaluation that stands before a statement of its script.
#[derive(Clone)]
pub(super) struct Standing {
    pub(super) script: Arc<Script>,
    pub(super) file: u32,
    /// The number of the statement.
    pub(super) next: usize,
    pub(super) active: Vec<World>,
    /// Worlds that have left the script.
    pub(super) left: Vec<World>,
    pub(super) lanes: Lanes,
    pub(super) parts: Parts,
    /// What is kept outside of worlds; an evaluation that has kept nothing yet has none.
    pub(super) kept: Option<Box<Kept>>,
}

/// How points are divided that cannot be evaluated together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parts {
    /// Into those that differ in one variable only.
    Rows,
    /// Each goes alone.
    Single,
}

/// What an evaluation keeps outside of worlds.
#[derive(Clone)]
pub(super) struct Kept {
    out: Evaluation,
    notes: BTreeSet<Diagnostic>,
    effects: usize,
    steps: usize,
    bytes: usize,
    seen: rustc_hash::FxHashMap<u64, Vec<usize>>,
    loaded: Vec<Arc<Script>>,
    telling: Arc<Telling>,
    parted_by: Option<Arc<str>>,
    exited: Vec<World>,
    substituted: Option<Status>,
    stdin: Option<(Arc<Vec<Value>>, usize, Value)>,
}

/// How far an evaluation was before a statement of the script, to go back to for the points that are left out in it.
struct Milestone {
    active: Vec<World>,
    left: Vec<World>,
    lanes: Lanes,
    effects: usize,
    steps: usize,
    bytes: usize,
    files: usize,
    commands: usize,
    ends: usize,
    exited: usize,
    notes: Arc<BTreeSet<Diagnostic>>,
    assumed_unset: Arc<BTreeSet<Arc<str>>>,
    written: Arc<BTreeMap<Arc<str>, Vec<WrittenFile>>>,
    parted_by: Option<Arc<str>>,
    substituted: Option<Status>,
    stdin: Option<(Arc<Vec<Value>>, usize, Value)>,
}

/// The same set as before, where nothing was added to it.
fn grown<T: Clone>(before: Option<&Arc<T>>, now: &T, size: impl Fn(&T) -> usize) -> Arc<T> {
    match before {
        Some(before) if size(before) == size(now) => before.clone(),
        _ => Arc::new(now.clone()),
    }
}

impl Evaluator<'_> {
    /// The statements of the script, from where an evaluation stands. Points that are left out on the way are put into
    /// `self.branches`.
    pub(super) fn follow(&mut self, standing: Standing) -> Vec<World> {
        let Standing {
            script,
            file,
            next,
            mut active,
            mut left,
            lanes,
            parts,
            kept,
        } = standing;
        self.lanes = lanes;
        if let Some(kept) = kept {
            self.take(*kept);
        }
        self.script = script.clone();
        self.file = file;
        let stmts = &script.body.stmts;
        let last = stmts.len().saturating_sub(1);
        let mut milestone: Option<Milestone> = None;
        for (index, stmt) in stmts.iter().enumerate().skip(next) {
            if active.is_empty() {
                break;
            }
            milestone = self
                .lanes
                .several()
                .then(|| self.milestone(milestone.as_ref(), &active, &left));
            self.first_changed = (usize::MAX, usize::MAX);
            self.began_at = self.steps;
            let after = self.stmt(stmt, std::mem::take(&mut active));
            self.branch(milestone.as_mut(), &script, index, parts);
            if self.stop {
                active = after;
                break;
            }
            active = self.stay(after, &mut left, stmt, index == last);
            // Putting worlds together belongs to the statement.
            self.branch(milestone.as_mut(), &script, index, parts);
        }
        self.leave(active, left, &script.body)
    }

    /// Gives up on going through a statement for several points together, where it takes too long.
    pub(super) fn bound_together(&mut self) {
        let (taken, each) = (self.steps.saturating_sub(self.began_at), self.limits.steps_together);
        if taken > each && !self.alone {
            let points = self.lanes.held().len();
            if points > 1 && taken > points.saturating_mul(each) {
                self.lanes.void();
            }
        }
    }

    fn take(&mut self, kept: Kept) {
        self.out = kept.out;
        self.notes = kept.notes;
        self.effects = kept.effects;
        (self.steps, self.bytes) = (kept.steps, kept.bytes);
        self.seen = kept.seen;
        (self.loaded, self.telling) = (kept.loaded, kept.telling);
        self.parted_by = kept.parted_by;
        self.exited = kept.exited;
        (self.substituted, self.stdin) = (kept.substituted, kept.stdin);
    }

    fn milestone(&self, before: Option<&Milestone>, active: &[World], left: &[World]) -> Milestone {
        let contents = |written: &BTreeMap<Arc<str>, Vec<WrittenFile>>| written.values().map(Vec::len).sum::<usize>();
        Milestone {
            active: active.to_vec(),
            left: left.to_vec(),
            lanes: self.lanes.clone(),
            effects: self.effects,
            steps: self.steps,
            bytes: self.bytes,
            files: self.out.files.len(),
            commands: self.out.commands.len(),
            ends: self.out.ends.len(),
            exited: self.exited.len(),
            notes: grown(before.map(|b| &b.notes), &self.notes, BTreeSet::len),
            assumed_unset: grown(before.map(|b| &b.assumed_unset), &self.out.assumed_unset, BTreeSet::len),
            written: grown(before.map(|b| &b.written), &self.out.written, contents),
            parted_by: self.parted_by.clone(),
            substituted: self.substituted.clone(),
            stdin: self.stdin.clone(),
        }
    }

    /// What was kept before a statement; nothing where the statement changed what was kept before it.
    fn kept_at(&self, milestone: &Milestone) -> Option<Kept> {
        if self.first_changed.0 < milestone.commands || self.first_changed.1 < milestone.ends {
            return None;
        }
        let out = Evaluation {
            files: self.out.files.get(..milestone.files)?.to_vec(),
            commands: self.out.commands.get(..milestone.commands)?.to_vec(),
            written: (*milestone.written).clone(),
            ends: self.out.ends.get(..milestone.ends)?.to_vec(),
            assumed_unset: (*milestone.assumed_unset).clone(),
            ..Evaluation::default()
        };
        let mut seen = self.seen.clone();
        seen.retain(|_, places| {
            places.retain(|place| *place < milestone.commands);
            !places.is_empty()
        });
        let loaded = self.loaded.get(..milestone.files)?.to_vec();
        Some(Kept {
            out,
            notes: (*milestone.notes).clone(),
            effects: milestone.effects,
            steps: milestone.steps,
            bytes: milestone.bytes,
            seen,
            telling: self.cache.telling(&loaded),
            loaded,
            parted_by: milestone.parted_by.clone(),
            exited: self.exited.get(..milestone.exited)?.to_vec(),
            substituted: milestone.substituted.clone(),
            stdin: milestone.stdin.clone(),
        })
    }

    /// Lets the points that were left out since a milestone go on from there.
    fn branch(&mut self, milestone: Option<&mut Milestone>, script: &Arc<Script>, next: usize, parts: Parts) {
        let Some(milestone) = milestone else { return };
        // A bound that all of them met together, each may never meet.
        if self.out.truncated.is_some() || self.lanes.held() == milestone.lanes.held() {
            return;
        }
        let held = std::mem::replace(&mut milestone.lanes, self.lanes.clone()).held();
        let groups: Vec<Vec<usize>> = if self.lanes.is_void() {
            match parts {
                Parts::Rows => self.rows(&held),
                Parts::Single => held.into_iter().map(|lane| vec![lane]).collect(),
            }
        } else {
            let lost = held.into_iter().filter(|lane| !self.lanes.is_alive(*lane)).collect();
            vec![lost]
        };
        let parts = if self.lanes.is_void() { Parts::Single } else { parts };
        let Some(kept) = self.kept_at(milestone) else { return };
        for group in groups {
            let Some(&lead) = group.first() else { continue };
            let mut own = vec![false; self.lanes.many()];
            group.iter().for_each(|lane| own[*lane] = true);
            let as_they_are = |world: &World| match group.as_slice() {
                [lane] => world.of_lane(*lane),
                _ => world.among(&own, lead),
            };
            let mut kept = kept.clone();
            if let Some(status) = &mut kept.substituted {
                *status = match group.as_slice() {
                    [lane] => status.of_lane(*lane),
                    _ => status.among(&own, lead),
                }
                .unwrap_or_else(|| status.clone());
            }
            let all = |worlds: &[World]| worlds.iter().map(as_they_are).collect::<Option<Vec<World>>>();
            let (Some(active), Some(left)) = (all(&milestone.active), all(&milestone.left)) else {
                continue;
            };
            self.branches.push(Standing {
                script: script.clone(),
                file: self.file,
                next,
                active,
                left,
                lanes: Lanes::of(own),
                parts,
                kept: Some(Box::new(kept)),
            });
        }
    }

    /// Points by all of their variables but the one that takes most values; one by one where that makes no groups.
    fn rows(&self, held: &[usize]) -> Vec<Vec<usize>> {
        let each = &self.setup.environment.each;
        let values = |texts: &[String]| {
            held.iter()
                .filter_map(|lane| texts.get(*lane))
                .collect::<BTreeSet<_>>()
                .len()
        };
        let most = each.iter().max_by_key(|(_, texts)| values(texts)).map(|(name, _)| name);
        let mut groups: BTreeMap<Vec<&str>, Vec<usize>> = BTreeMap::new();
        for lane in held {
            let others = each.iter().filter(|(name, _)| Some(*name) != most);
            let key = others
                .map(|(_, texts)| texts.get(*lane).map_or("", String::as_str))
                .collect();
            groups.entry(key).or_default().push(*lane);
        }
        if groups.len() < 2 {
            return held.iter().map(|lane| vec![*lane]).collect();
        }
        groups.into_values().collect()
    }
}
