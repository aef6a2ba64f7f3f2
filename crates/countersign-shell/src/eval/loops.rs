//! Loops: known ones run round by round; where something unknown is decided in a loop, a few rounds are followed,
//! then what the loop changes becomes unknown and one more round shows what can happen with that.

use std::sync::Arc;

use super::Evaluator;
use super::flow::Split;
use super::known::Head;
use super::repeats::Repeats;
use crate::output::Note;
use crate::syntax::ast::{Block, Word as WordNode};
use crate::value::{Shape, Span, Value, Why};
use crate::world::{Flow, Var, VarValue, World};

/// Which round a loop head is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    Number(usize),
    /// Some later round: the state is whatever the loop can make of it.
    Later,
}

enum Kind<'k> {
    /// Words, and those of them of which all rounds may be the same.
    Words(Option<Repeats<'k>>),
    Condition,
    /// The same, with a step in front of each round but the first.
    Steps,
}

impl Evaluator<'_> {
    pub(super) fn while_stmt(
        &mut self,
        until: bool,
        cond: &Block,
        body: &Block,
        worlds: Vec<World>,
        at: Span,
    ) -> Vec<World> {
        self.run_loop(Kind::Condition, worlds, body, at, |e, worlds, _| {
            let split = e.condition(cond, worlds);
            if until {
                Split {
                    yes: split.no,
                    no: split.yes,
                    ..split
                }
            } else {
                split
            }
        })
    }

    pub(super) fn c_for_stmt(
        &mut self,
        head: &[WordNode; 3],
        body: &Block,
        worlds: Vec<World>,
        at: Span,
    ) -> Vec<World> {
        let mut started = Vec::with_capacity(worlds.len());
        let mut done = Vec::new();
        for mut world in worlds {
            let _ = self.arith_status(&mut world, &head[0], at);
            match self.known_rounds(&world, &Head::Counts(&head[1], &head[2]), body, at) {
                Some(after) => done.push(after),
                None if self.stop => done.push(world),
                None => started.push(world),
            }
        }
        let after = self.run_loop(Kind::Steps, started, body, at, |e, worlds, round| {
            let mut asked = Vec::with_capacity(worlds.len());
            for mut world in worlds {
                if round != Round::Number(0) {
                    let _ = e.arith_status(&mut world, &head[2], at);
                }
                world.status = if head[1].is_blank() {
                    crate::world::Status::Known(0)
                } else {
                    e.arith_status(&mut world, &head[1], at)
                };
                asked.push(world);
            }
            e.split(asked)
        });
        if done.is_empty() {
            return after;
        }
        done.extend(after);
        self.settle(done, at, self.limits.worlds, Why::Joined, true)
    }

    pub(super) fn for_stmt(
        &mut self,
        name: &Arc<str>,
        words: Option<&[WordNode]>,
        body: &Block,
        worlds: Vec<World>,
        at: Span,
    ) -> Vec<World> {
        let mut done = Vec::new();
        for mut world in worlds {
            let list = match words {
                Some(words) => self.all_fields(&mut world, words),
                None => world.positional().to_vec(),
            };
            if let Some(after) = self.known_rounds(&world, &Head::Words(name, &list), body, at) {
                done.push(after);
                continue;
            }
            if self.stop {
                done.push(world);
                continue;
            }
            let kind = Kind::Words(Repeats::of(name, &list, body));
            let after = self.run_loop(kind, vec![world], body, at, |e, worlds, round| {
                let mut split = Split {
                    yes: Vec::new(),
                    no: Vec::new(),
                    passed: Vec::new(),
                    forks: Vec::new(),
                };
                let current = match round {
                    Round::Number(index) => list.get(index),
                    Round::Later => None,
                };
                match (current, round) {
                    (None, Round::Number(_)) => {
                        split.no = worlds;
                        split.no.iter_mut().for_each(|w| w.succeed(true));
                        return split;
                    }
                    (None, Round::Later) => {
                        let choices: Vec<Value> = list.iter().map(|w| w.value.clone()).collect();
                        let value = crate::join::choice(name, choices, Why::Loop, at);
                        split.no = worlds.clone();
                        split.yes = worlds;
                        split
                            .yes
                            .iter_mut()
                            .for_each(|w| e.assign_scalar(w, name, value.clone(), at));
                    }
                    (Some(word), _) => {
                        if word.splits {
                            // It may be no word at all, or several.
                            split.no = worlds.clone();
                            split.no.iter_mut().for_each(|w| w.succeed(true));
                        }
                        split.yes = worlds;
                        let value = if word.splits && word.value.single_unknown().is_none() {
                            let from = word.value.depends_on();
                            e.unknown_value(
                                Why::Loop,
                                format!("${name} of {}", super::flow::short(&word.value.display())),
                                at,
                                from,
                            )
                        } else {
                            word.value.clone()
                        };
                        split
                            .yes
                            .iter_mut()
                            .for_each(|w| e.assign_scalar(w, name, value.clone(), at));
                    }
                }
                split
            });
            done.extend(after);
        }
        self.settle(done, at, self.limits.worlds, Why::Joined, true)
    }

    fn run_loop(
        &mut self,
        kind: Kind<'_>,
        worlds: Vec<World>,
        body: &Block,
        at: Span,
        mut head: impl FnMut(&mut Self, Vec<World>, Round) -> Split,
    ) -> Vec<World> {
        let entry = worlds.first().cloned();
        let together = worlds.len();
        let mut active = worlds;
        // Ways out: by the head, by `break`, and further out.
        let (mut finished, mut broken, mut left) = (Vec::new(), Vec::new(), Vec::new());
        self.loops += 1;
        let mut round = 0;
        let mut open_rounds = 0;
        let mut widened = false;
        let most_open = match kind {
            // The words of a `for` are known: each is worth its round.
            Kind::Words(_) => self.limits.symbolic_iterations * 16,
            Kind::Condition | Kind::Steps => self.limits.symbolic_iterations,
        };
        while !active.is_empty() && !self.stop {
            let start = active.clone();
            let asked = if widened { Round::Later } else { Round::Number(round) };
            let mut split = head(self, active, asked);
            let forks = std::mem::take(&mut split.forks);
            split.no.iter_mut().for_each(|w| w.forget_last(&forks));
            let decided_here = !forks.is_empty();
            finished.extend(split.no);
            left.extend(split.passed);
            let after = if split.yes.is_empty() {
                Vec::new()
            } else {
                self.block(body, split.yes)
            };
            let mut next = Vec::new();
            let mut went_out = false;
            for mut world in after {
                match world.flow {
                    Flow::Normal | Flow::Continue(0 | 1) => {
                        world.flow = Flow::Normal;
                        next.push(world);
                    }
                    Flow::Break(0 | 1) => {
                        world.flow = Flow::Normal;
                        world.succeed(true);
                        broken.push(world);
                        went_out = true;
                    }
                    Flow::Break(n) => {
                        world.flow = Flow::Break(n - 1);
                        left.push(world);
                        went_out = true;
                    }
                    Flow::Continue(n) => {
                        world.flow = Flow::Continue(n - 1);
                        left.push(world);
                        went_out = true;
                    }
                    Flow::Return | Flow::Exit => {
                        left.push(world);
                        went_out = true;
                    }
                }
            }
            if self.stop {
                finished.extend(next);
                break;
            }
            finished = self.settle(finished, at, self.limits.loop_exits.max(together), Why::Loop, false);
            broken = self.settle(broken, at, self.limits.loop_exits.max(together), Why::Loop, false);
            if widened {
                // What comes after a round with unknown values is that round again.
                break;
            }
            active = self.settle(next, at, self.limits.loop_exits.max(together), Why::Loop, false);
            let undecided = match kind {
                Kind::Words(_) => (went_out && !active.is_empty()) || active.len() > together,
                Kind::Condition | Kind::Steps => {
                    decided_here || (went_out && !active.is_empty()) || active.len() > together
                }
            };
            open_rounds += usize::from(undecided);
            if matches!(kind, Kind::Condition) || (matches!(kind, Kind::Steps) && round > 0) {
                // A round that changed nothing will change nothing again: its ways out are known already.
                let last = self.parted_by.clone();
                let differs = |w: &World, s: &World| last.as_ref().is_some_and(|name| w.differs_in(s, name));
                active.retain(|w| !start.iter().any(|s| !differs(w, s) && w.same_state(s, false, None)));
            }
            if let Kind::Words(Some(repeats)) = &kind
                && round + 2 < repeats.list.len()
                && self.repeats(repeats, &start, &active)
            {
                // All rounds that follow are this one with another word.
                if !undecided {
                    round = repeats.list.len() - 1;
                    continue;
                }
                // One more, with any of them, stands for all.
                let any = repeats.any(at);
                for world in &mut active {
                    self.assign_scalar(world, repeats.name, any.clone(), at);
                }
                widened = true;
                continue;
            }
            round += 1;
            let too_long = round >= self.limits.loop_iterations;
            if too_long {
                self.note(Note::Bound, at, format!("a loop of more than {round} rounds"));
            }
            if !active.is_empty() && (too_long || open_rounds >= most_open) {
                for world in &mut active {
                    if let Some(entry) = &entry {
                        self.widen(world, entry, at);
                    }
                }
                widened = true;
            }
        }
        self.loops -= 1;
        finished = self.settle(finished, at, self.limits.loop_exits.max(together), Why::Loop, false);
        finished.extend(broken);
        finished.extend(left);
        self.settle(finished, at, self.limits.worlds, Why::Joined, true)
    }

    /// Every variable that differs from the state at the loop's start becomes unknown.
    fn widen(&mut self, world: &mut World, entry: &World, at: Span) {
        if self.lanes.are_shared() && !self.differ_for_all(&[world.clone(), entry.clone()]) {
            // What a point leaves as it is stays known for it.
            self.lanes.void();
        }
        for name in world.vars.differing(&entry.vars, crate::world::same_var) {
            let Some(var) = world.vars.get(&name).cloned() else {
                continue;
            };
            let depends: std::collections::BTreeSet<Arc<str>> = match &var.value {
                VarValue::Scalar(value) => value.depends_on(),
                _ => Default::default(),
            };
            let number = |v: &VarValue| {
                matches!(v, VarValue::Scalar(v) if v.known().is_some_and(|t| t.parse::<i64>().is_ok())
                    || v.single_unknown().is_some_and(|u| u.shape == Shape::Number))
            };
            let was_number = entry.vars.get(&name).is_none_or(|v| number(&v.value));
            let shape = if number(&var.value) && was_number {
                Shape::Number
            } else {
                Shape::Any
            };
            let label = format!("${name} after the loop of line {}", at.line);
            let unknown = self.fresh(Why::Loop, label, at, depends, shape);
            let value = Value::unknown(unknown, at);
            let value = match &var.value {
                VarValue::Indexed(_) => VarValue::Indexed(vec![(
                    0,
                    crate::output::Word {
                        value,
                        span: at,
                        splits: true,
                        globs: false,
                    },
                )]),
                VarValue::Unset => VarValue::Unset,
                _ => VarValue::Scalar(value),
            };
            world.vars.insert(
                name,
                Arc::new(Var {
                    value,
                    ..(*var).clone()
                }),
            );
        }
        for key in world
            .files
            .differing(&entry.files, |a, b| Arc::ptr_eq(a, b) || a.content.same(&b.content))
        {
            if let Some(file) = world.files.get(&key).cloned() {
                let content =
                    self.unknown_value(Why::Loop, format!("contents of {key}"), at, file.content.depends_on());
                world
                    .files
                    .insert(key, Arc::new(crate::world::WrittenFile { content, at: file.at }));
            }
        }
        if !world.buffer.same(&entry.buffer) {
            let mut buffer = entry.buffer.clone();
            buffer.append(&self.unknown_value(
                Why::Loop,
                format!("output of the loop of line {}", at.line),
                at,
                world.buffer.depends_on(),
            ));
            world.buffer = buffer;
        }
    }
}
