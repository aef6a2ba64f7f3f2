//! Statements in which the points that are evaluated together ([`crate::lanes`]) part: each goes through the statement
//! alone, and what comes out is put together again where it can be said as one.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use super::laned::{identical, together};
use super::some::var_of;
use crate::lanes::Lanes;
use crate::output::{Call, Word};
use crate::syntax::Script;
use crate::syntax::ast::{Stmt, StmtKind};
use crate::value::{Span, Value};
use crate::world::{Frame, Source, Status, Var, VarValue, World, WrittenFile, same_var};

/// How far an evaluation is.
struct Mark {
    lanes: Lanes,
    effects: usize,
    steps: usize,
    bytes: usize,
    substituted: Option<Status>,
    place: Place,
}

/// Where an evaluation is. A statement that is ended in its midst leaves it where it was ended.
#[derive(Clone)]
struct Place {
    script: Arc<Script>,
    file: u32,
    calls: Arc<Vec<Call>>,
    depth: usize,
    calls_open: usize,
    loops: usize,
    subshells: usize,
    background: usize,
    pipe_stage: Option<u32>,
    no_errexit: usize,
}

/// The worlds of one point.
struct Alone {
    lane: usize,
    before: Vec<World>,
    after: Vec<World>,
}

impl Evaluator<'_> {
    /// A statement in all worlds: for all points together, or for each of them alone where they part in it and nothing is
    /// recorded.
    pub(super) fn stmt_of_all(&mut self, stmt: &Stmt, worlds: Vec<World>, at: Span) -> Vec<World> {
        if self.alone || !can_part(&stmt.kind) || !self.lanes.several() {
            return self.stmt_inner(stmt, worlds, at);
        }
        let before = self.reached();
        let start = worlds.clone();
        let outer = self.baseline.replace((self.lanes.lost(), self.effects));
        let joint = self.stmt_inner(stmt, worlds, at);
        self.baseline = outer;
        let parted = std::mem::take(&mut self.parted);
        if parted {
            self.stop = false;
        }
        if self.stop || self.lanes == before.lanes || self.effects != before.effects {
            return joint;
        }
        let after = self.reached();
        self.go_back(&before);
        if let Some(apart) = self.each_alone(stmt, &start, at) {
            return apart;
        }
        if !parted {
            self.go_back(&after);
            return joint;
        }
        self.go_back(&before);
        let outer = self.baseline.take();
        let joint = self.stmt_inner(stmt, start, at);
        self.baseline = outer;
        if self.baseline.is_some() && self.lanes.is_void() {
            // A statement around this one may yet be gone through alone.
            self.stop = false;
        }
        joint
    }

    /// Ends what is for nothing: a statement in which points have parted that may yet go alone, or an evaluation that holds
    /// for no point.
    pub(super) fn check_parting(&mut self) {
        match self.baseline {
            Some((lost, effects)) if effects == self.effects => {
                if self.lanes.lost() != lost && !self.stop {
                    self.parted = true;
                    self.stop = true;
                }
            }
            Some(_) | None => self.stop |= self.lanes.is_void(),
        }
    }

    /// Whether points may still go through the statement alone: nothing was kept outside of worlds since it began.
    pub(super) fn may_part(&self) -> bool {
        self.baseline.is_some_and(|(_, effects)| effects == self.effects)
    }

    fn reached(&self) -> Mark {
        Mark {
            lanes: self.lanes.clone(),
            effects: self.effects,
            steps: self.steps,
            bytes: self.bytes,
            substituted: self.substituted.clone(),
            place: Place {
                script: self.script.clone(),
                file: self.file,
                calls: self.calls.clone(),
                depth: self.depth,
                calls_open: self.calls_open,
                loops: self.loops,
                subshells: self.subshells,
                background: self.background,
                pipe_stage: self.pipe_stage,
                no_errexit: self.no_errexit,
            },
        }
    }

    fn go_back(&mut self, mark: &Mark) {
        self.lanes = mark.lanes.clone();
        self.steps = mark.steps;
        self.bytes = mark.bytes;
        self.substituted.clone_from(&mark.substituted);
        let place = mark.place.clone();
        (self.script, self.file, self.calls) = (place.script, place.file, place.calls);
        (self.depth, self.calls_open) = (place.depth, place.calls_open);
        (self.loops, self.subshells, self.background) = (place.loops, place.subshells, place.background);
        (self.pipe_stage, self.no_errexit) = (place.pipe_stage, place.no_errexit);
    }

    /// Whether something may be kept that is not part of a world. Never while points go alone: it would be kept for all.
    pub(super) fn keeps(&mut self) -> bool {
        if self.alone {
            self.stop = true;
        }
        if self.alone || self.parted {
            return false;
        }
        self.effects += 1;
        true
    }

    /// Whether what is not the same in two of these worlds is so for every point.
    pub(super) fn differ_for_all(&self, worlds: &[World]) -> bool {
        let lanes: Vec<usize> = (0..self.lanes.many()).filter(|l| self.lanes.is_alive(*l)).collect();
        let meet = |a: &Value, b: &Value| {
            (a.varies() || b.varies())
                && !a.same(b)
                && lanes.iter().any(|lane| match (a.of_lane(*lane), b.of_lane(*lane)) {
                    (Some(a), Some(b)) => a.same(&b),
                    _ => true,
                })
        };
        let of_lane = |var: &Arc<Var>, lane: usize| var_of(var, &|value| value.of_lane(lane));
        let vars_meet = |_: &Arc<str>, a: Option<&Arc<Var>>, b: Option<&Arc<Var>>| match (a, b) {
            (Some(a), Some(b)) => lanes.iter().any(|lane| match (of_lane(a, *lane), of_lane(b, *lane)) {
                (Some(None), Some(None)) => false,
                (Some(own), Some(other)) => same_var(own.as_ref().unwrap_or(a), other.as_ref().unwrap_or(b)),
                _ => true,
            }),
            _ => false,
        };
        let files_meet = |_: &Arc<str>, a: Option<&Arc<WrittenFile>>, b: Option<&Arc<WrittenFile>>| match (a, b) {
            (Some(a), Some(b)) => meet(&a.content, &b.content),
            _ => false,
        };
        let same_file = |a: &Arc<WrittenFile>, b: &Arc<WrittenFile>| Arc::ptr_eq(a, b) || a.content.same(&b.content);
        let pairs = worlds.iter().enumerate();
        let mut pairs = pairs.flat_map(|(at, a)| worlds[at + 1..].iter().map(move |b| (a, b)));
        !pairs.any(|(a, b)| {
            meet(&a.cwd, &b.cwd)
                || meet(&a.buffer, &b.buffer)
                || a.vars.find_differing(&b.vars, same_var, vars_meet).is_some()
                || a.files.find_differing(&b.files, same_file, files_meet).is_some()
        })
    }

    fn each_alone(&mut self, stmt: &Stmt, start: &[World], at: Span) -> Option<Vec<World>> {
        let before = self.reached();
        let (mut steps, mut bytes) = (self.steps, self.bytes);
        let mut all: Vec<Alone> = Vec::new();
        self.alone = true;
        for lane in (0..self.lanes.many()).filter(|lane| before.lanes.is_alive(*lane)) {
            let worlds: Option<Vec<World>> = start.iter().map(|world| world.of_lane(lane)).collect();
            let Some(own) = worlds else { break };
            self.go_back(&before);
            let after = self.stmt_inner(stmt, own.clone(), at);
            steps = steps.max(self.steps);
            bytes = bytes.max(self.bytes);
            if self.stop {
                break;
            }
            all.push(Alone {
                lane,
                before: own,
                after,
            });
        }
        self.alone = false;
        let complete = !self.stop && all.len() == (0..self.lanes.many()).filter(|l| before.lanes.is_alive(*l)).count();
        self.stop = false;
        self.go_back(&before);
        (self.steps, self.bytes) = (steps, bytes);
        if !complete {
            return None;
        }
        let many = all.first()?.after.len();
        if all.iter().any(|alone| alone.after.len() != many) {
            return None;
        }
        let join = Join {
            start,
            all: &all,
            many: self.lanes.many(),
        };
        (0..many).map(|index| join.world(index)).collect()
    }
}

/// Whether points can part in a statement, and go through it alone without much work done twice.
fn can_part(kind: &StmtKind) -> bool {
    matches!(
        kind,
        StmtKind::If { .. }
            | StmtKind::Case { .. }
            | StmtKind::CFor { .. }
            | StmtKind::For { .. }
            | StmtKind::While { .. }
            | StmtKind::AndOr(..)
    )
}

/// Puts the worlds of all points together: what none of them changed stays what it was for all.
struct Join<'w> {
    start: &'w [World],
    all: &'w [Alone],
    many: usize,
}

impl Join<'_> {
    fn world(&self, index: usize) -> Option<World> {
        let worlds: Vec<&World> = self.all.iter().map(|alone| &alone.after[index]).collect();
        let first = *worlds.first()?;
        let mut out = first.clone();
        for other in &worlds {
            let alike = other.flow == first.flow
                && other.out == first.out
                && other.err_to_out == first.err_to_out
                && other.errexit == first.errexit
                && other.pipefail == first.pipefail
                && other.frames.len() == first.frames.len()
                && other.last_background == first.last_background
                && other.foreign == first.foreign
                && (Arc::ptr_eq(&other.path, &first.path) || other.path == first.path)
                && (Arc::ptr_eq(&other.facts, &first.facts) || other.facts == first.facts)
                && (Arc::ptr_eq(&other.decided, &first.decided) || other.decided == first.decided)
                && other.functions.same_by(&first.functions, Arc::ptr_eq);
            if !alike {
                return None;
            }
        }
        out.status = self
            .part(index, |w| &w.status, Status::same)
            .or_else(|| self.status(index))?;
        out.cwd = self.value(index, |w| &w.cwd)?;
        out.buffer = self.value(index, |w| &w.buffer)?;
        out.input = self.part(index, |w| &w.input, Source::same)?;
        out.dirs = self.part(index, |w| &w.dirs, |a, b| all_identical(a, b))?;
        out.exit_trap = self.part(
            index,
            |w| &w.exit_trap,
            |a, b| match (a, b) {
                (Some(a), Some(b)) => identical(a, b),
                (a, b) => a.is_none() && b.is_none(),
            },
        )?;
        for depth in 0..first.frames.len() {
            let frames: Vec<&Arc<Frame>> = worlds.iter().map(|w| &w.frames[depth]).collect();
            if frames.iter().all(|frame| same_frame(frame, frames[0])) {
                continue;
            }
            let unchanged = |world: &usize| {
                self.all.iter().all(|alone| {
                    let (old, new) = (
                        alone.before[*world].frames.get(depth),
                        &alone.after[index].frames[depth],
                    );
                    old.is_some_and(|old| Arc::ptr_eq(old, new))
                })
            };
            let world = (0..self.start.len()).find(unchanged)?;
            out.frames[depth] = self.start[world].frames[depth].clone();
        }
        let mut names: BTreeSet<Arc<str>> = BTreeSet::new();
        for other in &worlds[1..] {
            names.extend(first.vars.differing(&other.vars, Arc::ptr_eq));
        }
        for name in names {
            let var = self.var(index, &name)?;
            match var {
                Some(var) => out.vars.insert(name, var),
                None => {
                    out.vars.remove(&name);
                }
            }
        }
        let mut keys: BTreeSet<Arc<str>> = BTreeSet::new();
        for other in &worlds[1..] {
            keys.extend(first.files.differing(&other.files, Arc::ptr_eq));
        }
        for key in keys {
            let file = self.file(index, &key)?;
            out.files.insert(key, file);
        }
        Some(out)
    }

    /// The status that is another one for each point. Points that were left out before take part with the first one's.
    fn status(&self, index: usize) -> Option<Status> {
        let code = |alone: &Alone| match &alone.after[index].status {
            Status::Known(code) => Some(*code),
            _ => None,
        };
        let mut codes = vec![code(self.all.first()?)?; self.many];
        for alone in self.all {
            *codes.get_mut(alone.lane)? = code(alone)?;
        }
        Some(Status::each(codes))
    }

    /// What is the same for all points, or what all of them left as it was.
    fn part<T: Clone>(&self, index: usize, of: impl Fn(&World) -> &T, same: impl Fn(&T, &T) -> bool) -> Option<T> {
        let first = of(&self.all.first()?.after[index]);
        if self.all.iter().all(|alone| same(of(&alone.after[index]), first)) {
            return Some(first.clone());
        }
        let unchanged = |world: &usize| {
            let own = |alone: &Alone| same(of(&alone.after[index]), of(&alone.before[*world]));
            self.all.iter().all(own)
        };
        let world = (0..self.start.len()).find(unchanged)?;
        Some(of(&self.start[world]).clone())
    }

    fn value(&self, index: usize, of: impl Fn(&World) -> &Value) -> Option<Value> {
        let part = self.part(index, &of, identical);
        part.or_else(|| self.together(|alone| Some(of(&alone.after[index]))))
    }

    /// The value that is another one for each point. Points that were left out before take part with the first one's.
    fn together<'w>(&'w self, of: impl Fn(&'w Alone) -> Option<&'w Value>) -> Option<Value> {
        let first = of(self.all.first()?)?;
        let mut values: Vec<&Value> = vec![first; self.many];
        for alone in self.all {
            *values.get_mut(alone.lane)? = of(alone)?;
        }
        together(&values)
    }

    /// A variable; inside `None` where it is not set for any point.
    #[allow(clippy::option_option, reason = "not to be said at all, or not set")]
    fn var(&self, index: usize, name: &str) -> Option<Option<Arc<Var>>> {
        let vars: Vec<Option<&Arc<Var>>> = self.all.iter().map(|a| a.after[index].vars.get(name)).collect();
        let unchanged = |world: &usize| {
            self.all
                .iter()
                .zip(&vars)
                .all(|(alone, new)| match (alone.before[*world].vars.get(name), new) {
                    (Some(old), Some(new)) => Arc::ptr_eq(old, new),
                    (old, new) => old.is_none() && new.is_none(),
                })
        };
        if let Some(world) = (0..self.start.len()).find(unchanged) {
            return Some(self.start[world].vars.get(name).cloned());
        }
        let all: Vec<&Arc<Var>> = vars.into_iter().collect::<Option<_>>()?;
        let first = *all.first()?;
        let alike = |var: &&Arc<Var>| {
            var.exported == first.exported && var.readonly == first.readonly && var.integer == first.integer
        };
        if !all.iter().all(alike) {
            return None;
        }
        fn of<'a>(alone: &'a Alone, index: usize, name: &str) -> Option<&'a VarValue> {
            alone.after[index].vars.get(name).map(|var| &var.value)
        }
        let value = match &first.value {
            VarValue::Unset => {
                let unset = |var: &&Arc<Var>| matches!(var.value, VarValue::Unset);
                all.iter().all(unset).then_some(VarValue::Unset)?
            }
            VarValue::Scalar(_) => VarValue::Scalar(self.together(|alone| match of(alone, index, name) {
                Some(VarValue::Scalar(value)) => Some(value),
                _ => None,
            })?),
            VarValue::Indexed(items) => {
                let lists: Option<Vec<&Vec<(i64, Word)>>> = all.iter().map(|var| indexed(&var.value)).collect();
                if lists?.iter().any(|others| others.len() != items.len()) {
                    return None;
                }
                let element = |at: usize| {
                    let (key, word) = &items[at];
                    let own = |alone| {
                        let (other, own) = indexed(of(alone, index, name)?)?.get(at)?;
                        let like = other == key
                            && own.span == word.span
                            && own.splits == word.splits
                            && own.globs == word.globs;
                        like.then_some(&own.value)
                    };
                    let value = self.together(own)?;
                    Some((*key, Word { value, ..word.clone() }))
                };
                VarValue::Indexed((0..items.len()).map(element).collect::<Option<_>>()?)
            }
            VarValue::Assoc(_) => all
                .iter()
                .all(|var| identical_var(var, first))
                .then(|| first.value.clone())?,
        };
        Some(Some(Arc::new(Var {
            value,
            ..(**first).clone()
        })))
    }

    fn file(&self, index: usize, key: &str) -> Option<Arc<WrittenFile>> {
        let of = |world: &World| world.files.get(key).cloned();
        let first = of(&self.all.first()?.after[index])?;
        let unchanged = |world: &usize| {
            self.all.iter().all(|alone| {
                matches!((of(&alone.after[index]), of(&alone.before[*world])), (Some(a), Some(b)) if Arc::ptr_eq(&a, &b))
            })
        };
        if let Some(world) = (0..self.start.len()).find(unchanged) {
            return of(&self.start[world]);
        }
        let content = self.together(|alone| {
            let file = alone.after[index].files.get(key).filter(|file| file.at == first.at)?;
            Some(&file.content)
        })?;
        Some(Arc::new(WrittenFile { content, at: first.at }))
    }
}

fn indexed(value: &VarValue) -> Option<&Vec<(i64, Word)>> {
    match value {
        VarValue::Indexed(items) => Some(items),
        _ => None,
    }
}

fn all_identical(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| identical(a, b))
}

fn identical_words(a: &[Word], b: &[Word]) -> bool {
    let same = |(a, b): (&Word, &Word)| {
        a.span == b.span && a.splits == b.splits && a.globs == b.globs && identical(&a.value, &b.value)
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

/// The same variable, written at the same places.
fn identical_var(a: &Arc<Var>, b: &Arc<Var>) -> bool {
    let places = |var: &Var| -> Vec<Span> {
        let values: Vec<&Value> = match &var.value {
            VarValue::Unset => Vec::new(),
            VarValue::Scalar(value) => vec![value],
            VarValue::Indexed(items) => items.iter().map(|(_, word)| &word.value).collect(),
            VarValue::Assoc(items) => items.values().map(|word| &word.value).collect(),
        };
        let pieces = values.into_iter().flat_map(|value| value.pieces());
        pieces.map(|piece| piece.at).collect()
    };
    Arc::ptr_eq(a, b) || (same_var(a, b) && places(a) == places(b))
}

fn same_frame(a: &Arc<Frame>, b: &Arc<Frame>) -> bool {
    let same_local = |(a, b): (&(Arc<str>, Option<Arc<Var>>), &(Arc<str>, Option<Arc<Var>>))| {
        a.0 == b.0
            && match (&a.1, &b.1) {
                (Some(a), Some(b)) => identical_var(a, b),
                (a, b) => a.is_none() && b.is_none(),
            }
    };
    Arc::ptr_eq(a, b)
        || (a.kind == b.kind
            && a.name == b.name
            && a.source == b.source
            && a.file == b.file
            && a.called_at == b.called_at
            && (Arc::ptr_eq(&a.positional, &b.positional) || identical_words(&a.positional, &b.positional))
            && a.locals.len() == b.locals.len()
            && a.locals.iter().zip(&b.locals).all(same_local))
}
