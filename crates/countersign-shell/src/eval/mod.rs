//! The evaluator: statements on sets of worlds, in order, within bounds. It starts nothing and reads nothing but
//! the scripts of the given tree.

mod apart;
mod arithmetic;
mod assign;
mod awk;
mod builtins;
mod condition;
mod container;
mod cut;
mod declare;
mod distances;
mod expand;
mod filters;
mod flow;
mod idle;
mod known;
mod laned;
mod loops;
mod params;
pub(crate) mod paths;
mod pipeline;
mod points;
mod printf;
mod programs;
mod record;
mod redirect;
mod repeats;
mod sed;
mod setup;
mod simple;
mod some;
mod test;
mod text;
mod variables;

pub(crate) use declare::is_name;
use distances::Distances;
pub(crate) use laned::identical;
use points::{Parts, Standing};
pub use setup::{Answer, Answers, Environment, Files, Rest, Setup};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::cache::ScriptCache;
use crate::lanes::{Lanes, MARK, can_differ, each_value, is_plain, passed_on};
use crate::limits::Limits;
use crate::output::{Call, Diagnostic, Evaluation, Note, Word};
use crate::pmap::PMap;
use crate::syntax::{Pos, Script};
use crate::uses::Telling;
use crate::value::{Shape, Span, Unknown, Value, Why};
use crate::world::{Asked, Flow, Frame, FrameKind, Sink, Source, Status, Var, World, WrittenFile, id_of};

/// Evaluate a script for one environment.
pub fn evaluate(files: &dyn Files, cache: &ScriptCache, setup: &Setup) -> Evaluation {
    evaluate_with(files, cache, setup, None)
}

/// Evaluate a script with what the caller knows about the programs it runs.
pub fn evaluate_with(
    files: &dyn Files,
    cache: &ScriptCache,
    setup: &Setup,
    answers: Option<&dyn Answers>,
) -> Evaluation {
    let mut evaluator = Evaluator::new(files, cache, setup);
    evaluator.answers = answers;
    if let Some(standing) = evaluator.start() {
        evaluator.run(standing);
    }
    evaluator.finish()
}

/// Evaluate a script for several points ([`Environment::each`]): `read` is given evaluations of which each holds for some
/// of them, none for one that another holds for. Points that none holds for have to be evaluated alone.
pub fn evaluate_points(
    files: &dyn Files,
    cache: &ScriptCache,
    setup: &Setup,
    answers: Option<&dyn Answers>,
    read: &mut dyn FnMut(&Evaluation),
) {
    let evaluator = || {
        let mut evaluator = Evaluator::new(files, cache, setup);
        evaluator.answers = answers;
        evaluator
    };
    let mut waiting: Vec<Standing> = Vec::new();
    let mut current = evaluator();
    let mut next = current.start();
    while let Some(standing) = next {
        current.run(standing);
        waiting.append(&mut current.branches);
        let evaluation = current.finish();
        if !evaluation.holds.is_empty() {
            read(&evaluation);
        }
        current = evaluator();
        next = waiting.pop();
    }
}

/// Rust recursion bound over statements and expansions together: far below what a 2 MB stack holds.
const MAX_DEPTH: usize = 150;

/// Notes kept.
const MAX_NOTES: usize = 500;

pub(crate) struct Evaluator<'a> {
    files: &'a dyn Files,
    cache: &'a ScriptCache,
    setup: &'a Setup,
    answers: Option<&'a dyn Answers>,
    limits: Limits,
    out: Evaluation,
    notes: BTreeSet<Diagnostic>,
    /// The points that are evaluated together.
    lanes: Lanes,
    /// What was kept outside of worlds: commands, notes, ends, scripts.
    effects: usize,
    /// Points go alone.
    alone: bool,
    /// What the statement in which the points may go alone began with: losses and effects.
    baseline: Option<(usize, usize)>,
    /// The points parted in that statement.
    parted: bool,
    /// Points that were left out and go on from where they were.
    branches: Vec<Standing>,
    /// The first of the commands, and of the ends, that an equal one was taken into in this statement of the script.
    first_changed: (usize, usize),
    steps: usize,
    /// Steps when the statement of the script began.
    began_at: usize,
    bytes: usize,
    depth: usize,
    calls_open: usize,
    /// A bound was hit: nothing more is evaluated.
    stop: bool,
    script: Arc<Script>,
    file: u32,
    calls: Arc<Vec<Call>>,
    seen: rustc_hash::FxHashMap<u64, Vec<usize>>,
    /// Scripts read, and which of their variables keep worlds apart.
    loaded: Vec<Arc<Script>>,
    telling: Arc<Telling>,
    /// The variable that kept worlds apart last.
    parted_by: Option<Arc<str>>,
    /// Loops around the place of evaluation.
    loops: usize,
    subshells: usize,
    background: usize,
    pipe_stage: Option<u32>,
    /// Above zero where a failing command does not end a script under `set -e`.
    no_errexit: usize,
    /// Worlds that left the script before its end and have a handler to run.
    exited: Vec<World>,
    /// Status of the last command substitution, for assignments.
    substituted: Option<Status>,
    /// The input that was last put together, how much of it was taken, and the rest as one text.
    stdin: Option<(Arc<Vec<Value>>, usize, Value)>,
}

impl<'a> Evaluator<'a> {
    fn new(files: &'a dyn Files, cache: &'a ScriptCache, setup: &'a Setup) -> Self {
        Evaluator {
            files,
            cache,
            setup,
            answers: None,
            limits: setup.limits,
            out: Evaluation::default(),
            notes: BTreeSet::new(),
            lanes: Lanes::new(setup.environment.each.values().next().map_or(0, Vec::len)),
            effects: 0,
            alone: false,
            baseline: None,
            parted: false,
            branches: Vec::new(),
            first_changed: (usize::MAX, usize::MAX),
            steps: 0,
            began_at: 0,
            bytes: 0,
            depth: 0,
            calls_open: 0,
            stop: false,
            script: Arc::new(Script::parse("", "", &setup.limits)),
            file: 0,
            calls: Arc::default(),
            seen: rustc_hash::FxHashMap::default(),
            loaded: Vec::new(),
            telling: Arc::default(),
            parted_by: None,
            loops: 0,
            subshells: 0,
            background: 0,
            pipe_stage: None,
            no_errexit: 0,
            exited: Vec::new(),
            substituted: None,
            stdin: None,
        }
    }

    /// Where the evaluation begins; nothing where there is no script.
    fn start(&mut self) -> Option<Standing> {
        let Some(text) = self.files.read(&self.setup.script) else {
            let message = format!("{} is not in the tree", self.setup.script);
            self.note(Note::NotInTree, Span::NOWHERE, message.clone());
            self.out.truncated = Some(message);
            return None;
        };
        self.no_marks(&text);
        let script = self.cache.script(&self.setup.script, &text);
        let file = self.load(&script);
        let called = if self.setup.called_as.is_empty() {
            &self.setup.script
        } else {
            &self.setup.called_as
        };
        let word = |text: &String| Word {
            value: Value::text(text.as_str(), Span::NOWHERE),
            ..Word::default()
        };
        let frame = Frame {
            kind: FrameKind::Script,
            name: called.as_str().into(),
            source: called.as_str().into(),
            file,
            positional: Arc::new(self.setup.arguments.iter().map(word).collect()),
            locals: Vec::new(),
            called_at: Span::NOWHERE,
        };
        let root = self.setup.roots.first().map_or("/", |r| r.as_str());
        let mut vars = PMap::default();
        let environment = &self.setup.environment;
        for (name, value) in &environment.variables {
            let var = Var::scalar(Value::text(value.as_str(), Span::NOWHERE), true);
            vars.insert(name.as_str().into(), Arc::new(var));
        }
        let lanes = environment.each.values().next().map_or(0, Vec::len);
        for (name, texts) in &environment.each {
            if texts.len() != lanes || !texts.iter().all(|text| can_differ(text)) {
                self.lanes.void();
            }
            let value = if texts.iter().all(|text| is_plain(text)) {
                each_value(texts.iter().map(|text| text.as_str().into()).collect(), Span::NOWHERE)
            } else {
                let own = |text: &String| Value::text(text.as_str(), Span::NOWHERE);
                passed_on(texts.iter().map(own).collect(), Span::NOWHERE)
            };
            vars.insert(name.as_str().into(), Arc::new(Var::scalar(value, true)));
        }
        for (names, shape) in [
            (&environment.unknown, Shape::Any),
            (&environment.filled, Shape::NonEmpty),
        ] {
            for name in names {
                if !environment.variables.contains_key(name) {
                    let value = Value::unknown(environment_unknown(name, shape), Span::NOWHERE);
                    vars.insert(name.as_str().into(), Arc::new(Var::scalar(value, true)));
                }
            }
        }
        let mut outside = PMap::default();
        for (path, text) in &self.setup.outside {
            let content = Value::text(text.clone(), Span::NOWHERE);
            let at = Span::NOWHERE;
            outside.insert(paths::normal(path).into(), Arc::new(WrittenFile { content, at }));
        }
        let world = World {
            vars,
            functions: PMap::default(),
            files: outside,
            frames: vec![Arc::new(frame)],
            cwd: Value::text(root, Span::NOWHERE),
            dirs: Arc::default(),
            status: Status::Known(0),
            last_background: None,
            out: Sink::Drop,
            err_to_out: false,
            input: Source::Unknown,
            buffer: Value::empty(),
            errexit: false,
            pipefail: false,
            exit_trap: None,
            flow: Flow::Normal,
            path: Arc::default(),
            facts: Arc::default(),
            decided: Arc::default(),
            foreign: None,
        };
        Some(Standing {
            script,
            file,
            next: 0,
            active: vec![world],
            left: Vec::new(),
            lanes: self.lanes.clone(),
            parts: Parts::Rows,
            kept: None,
        })
    }

    fn run(&mut self, standing: Standing) {
        let mut worlds = self.follow(standing);
        self.run_exit_traps(&mut worlds);
        self.out.worlds = worlds.len();
        for world in &worlds {
            self.collect_files(world);
        }
    }

    /// The handlers for the script's end: once for each handler, on the worlds put together that end with it.
    fn run_exit_traps(&mut self, worlds: &mut Vec<World>) {
        let exited = std::mem::take(&mut self.exited);
        if exited.is_empty() && worlds.iter().all(|w| w.exit_trap.is_none()) {
            return;
        }
        let at = Span {
            file: self.file,
            line: 0,
            col: 0,
        };
        let mut handlers: Vec<(Value, Vec<World>)> = Vec::new();
        let mut after = Vec::new();
        for (mut world, ends_here) in std::mem::take(worlds)
            .into_iter()
            .map(|w| (w, true))
            .chain(exited.into_iter().map(|w| (w, false)))
        {
            match world.exit_trap.take() {
                Some(text) if !text.is_empty() => {
                    let mut copy = world.clone();
                    copy.flow = Flow::Normal;
                    match handlers.iter_mut().find(|(t, _)| *t == text) {
                        Some((_, list)) => list.push(copy),
                        None => handlers.push((text, vec![copy])),
                    }
                }
                _ => {}
            }
            if ends_here {
                after.push(world);
            }
        }
        for (text, list) in handlers {
            if self.is_idle(&text, &list) {
                continue;
            }
            let mut list = self.settle(list, at, self.limits.worlds, Why::Joined, false);
            let Some(mut joined) = list.pop() else { continue };
            for world in &list {
                joined.join(world, Why::Joined, at);
            }
            self.subshells += 1;
            self.eval_text(joined, &text, at);
            self.subshells -= 1;
        }
        *worlds = after;
    }

    /// A script that holds the mark itself could be taken for what differs between points.
    fn no_marks(&self, text: &str) {
        if text.contains(MARK) {
            self.lanes.void();
        }
    }

    /// Register a script as read: its number for spans, its issues as notes.
    fn load(&mut self, script: &Arc<Script>) -> u32 {
        if let Some(index) = self.out.files.iter().position(|f| *f == script.path) {
            return index as u32;
        }
        if !self.keeps() {
            return 0;
        }
        let file = self.out.files.len() as u32;
        self.out.files.push(script.path.clone());
        self.loaded.push(script.clone());
        self.telling = self.cache.telling(&self.loaded);
        for issue in script.issues() {
            let at = Span {
                file,
                line: issue.at.line,
                col: issue.at.col,
            };
            self.note(Note::Syntax(issue.kind), at, issue.message.clone());
        }
        if script.incomplete() && self.out.truncated.is_none() {
            self.out.truncated = Some(format!("{} could not be read to its end", script.path));
        }
        file
    }

    pub(crate) fn note(&mut self, note: Note, at: Span, message: String) {
        if self.keeps() && self.notes.len() < MAX_NOTES {
            self.notes.insert(Diagnostic { note, at, message });
        }
    }

    /// Stop at a bound: what follows is not known.
    fn bound(&mut self, at: Span, message: String) {
        if !self.keeps() {
            return;
        }
        if self.out.truncated.is_none() {
            self.out.truncated = Some(message.clone());
        }
        self.note(Note::Bound, at, message);
        self.stop = true;
    }

    fn step(&mut self, at: Span) -> bool {
        self.bound_together();
        self.check_parting();
        self.steps += 1;
        if self.steps > self.limits.steps && !self.stop {
            self.bound(at, format!("more than {} steps", self.limits.steps));
        }
        !self.stop
    }

    fn count_bytes(&mut self, at: Span, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > self.limits.total_bytes && !self.stop {
            self.bound(at, format!("more than {} bytes of values", self.limits.total_bytes));
        }
    }

    fn span(&self, at: Pos) -> Span {
        Span {
            file: self.file,
            line: at.line,
            col: at.col,
        }
    }

    /// A fresh unknown with a name for people, arising at a place.
    fn fresh(
        &self,
        why: Why,
        name: impl Into<Arc<str>>,
        at: Span,
        from: BTreeSet<Arc<str>>,
        shape: Shape,
    ) -> Arc<Unknown> {
        self.lanes.check(&from);
        let name = name.into();
        let mut depends_on = from;
        if depends_on.is_empty() {
            depends_on.insert(name.clone());
        }
        let id = id_of(why, &name, at);
        Arc::new(Unknown {
            id,
            name,
            why,
            depends_on,
            shape,
            choices: Vec::new(),
            stable: false,
            each: None,
            written: None,
        })
    }

    fn unknown_value(&self, why: Why, name: impl Into<Arc<str>>, at: Span, from: BTreeSet<Arc<str>>) -> Value {
        Value::unknown(self.fresh(why, name, at, from, Shape::Any), at)
    }

    /// An unknown status: "this command succeeds".
    fn unknown_status(&self, text: &str, at: Span, from: BTreeSet<Arc<str>>) -> Status {
        let text: String = if text.is_empty() {
            "?".into()
        } else {
            crate::lanes::cut(text, 160, "")
        };
        self.lanes.check(&from);
        Status::unknown(text, at, from)
    }

    /// Keep a value within its bound.
    fn bounded(&mut self, value: Value, at: Span) -> Value {
        let size = value.size();
        self.count_bytes(at, size);
        if size <= self.limits.value_bytes {
            return value;
        }
        let message = format!("a value of more than {} bytes", self.limits.value_bytes);
        self.note(Note::Bound, at, message);
        self.unknown_value(Why::Limit, "a value over the size bound", at, value.depends_on())
    }

    /// Merge worlds that no longer differ; join the nearest when there are more than `most`.
    fn settle(&mut self, mut worlds: Vec<World>, at: Span, most: usize, why: Why, with_status: bool) -> Vec<World> {
        if worlds.len() < 2 {
            return worlds;
        }
        for world in worlds.iter_mut().filter(|w| matches!(w.status, Status::Each(_))) {
            world.status = self.same_status(&world.status);
        }
        let telling = self.telling.clone();
        // In a loop the same choice may be made differently in each round.
        let stable = self.loops == 0;
        let mut kept: Vec<World> = Vec::with_capacity(worlds.len());
        let mut asked = Asked {
            telling: &telling,
            last: &mut self.parted_by,
        };
        for world in worlds.drain(..) {
            self.steps += kept.len();
            match kept
                .iter_mut()
                .find(|k| k.same_state(&world, with_status, Some(&mut asked)))
            {
                Some(known) => {
                    if !known.status.same(&world.status) {
                        known.status = crate::world::joined_status(at);
                    }
                    known.absorb(&world, at, stable);
                }
                None => kept.push(world),
            }
        }
        if kept.len() > most {
            if self.lanes.are_shared() && !self.differ_for_all(&kept) {
                // A point alone has fewer, or others that are nearest.
                self.lanes.void();
            }
            if why == Why::Joined {
                let message =
                    format!("more than {most} combinations of unknowns: values that differ were put together");
                self.note(Note::Joined, at, message);
            }
            // Join down to half, so that the next fork does not join again at once.
            let target = (most / 2).max(1);
            let mut near = Distances::of(&kept);
            while kept.len() > target {
                self.steps += kept.len();
                let (distance, i, j) = near.nearest();
                if distance >= 1000 {
                    // Different flows must stay apart.
                    break;
                }
                let other = kept.remove(j);
                kept[i].join(&other, why, at);
                near.joined(i, j, &kept);
            }
        }
        kept
    }
}

/// The unknown that an environment variable is.
pub(crate) fn environment_unknown(name: &str, shape: Shape) -> Arc<Unknown> {
    let shown: Arc<str> = format!("${name}").into();
    Arc::new(Unknown {
        id: id_of(Why::Environment, name, Span::NOWHERE),
        name: shown,
        why: Why::Environment,
        depends_on: [Arc::<str>::from(name)].into(),
        shape,
        choices: Vec::new(),
        stable: true,
        each: None,
        written: None,
    })
}
