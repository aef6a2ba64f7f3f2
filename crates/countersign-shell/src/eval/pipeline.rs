//! Subshells, background commands and pipelines: what runs in a copy of the world.

use super::Evaluator;
use crate::output::Note;
use crate::syntax::ast::Stmt;
use crate::value::{Shape, Span, Value, Why};
use crate::world::{Flow, Sink, Source, Status, World};
use std::sync::Arc;

impl Evaluator<'_> {
    /// Run something in a copy of each world: files, status and output come back, variables do not.
    pub(super) fn subshell(
        &mut self,
        worlds: Vec<World>,
        at: Span,
        mut run: impl FnMut(&mut Self, Vec<World>) -> Vec<World>,
    ) -> Vec<World> {
        let mut after = Vec::new();
        for world in worlds {
            if self.calls_open >= self.limits.call_depth {
                self.note(
                    Note::Bound,
                    at,
                    "more nested subshells and calls than are followed".into(),
                );
                after.extend(self.not_evaluated(vec![world], at));
                continue;
            }
            let mut child = world.clone();
            child.exit_trap = None;
            self.subshells += 1;
            self.calls_open += 1;
            let mut children = run(self, vec![child]);
            if children.iter().any(|c| c.exit_trap.is_some()) {
                let outer = std::mem::take(&mut self.exited);
                self.run_exit_traps(&mut children);
                self.exited = outer;
            }
            self.subshells -= 1;
            self.calls_open -= 1;
            if children.is_empty() {
                children.push(World {
                    status: self.unknown_status("it ends", at, Default::default()),
                    ..world.clone()
                });
            }
            for child in children {
                after.push(World {
                    files: child.files,
                    status: child.status,
                    path: child.path,
                    facts: child.facts,
                    decided: child.decided,
                    buffer: child.buffer,
                    input: child.input,
                    foreign: world.foreign.clone(),
                    flow: Flow::Normal,
                    ..world.clone()
                });
            }
        }
        self.settle(after, at, self.limits.worlds, Why::Joined, true)
    }

    pub(super) fn in_background(&mut self, stmt: &Stmt, worlds: Vec<World>, at: Span) -> Vec<World> {
        self.background += 1;
        self.no_errexit += 1;
        let mut after = self.subshell(worlds, at, |e, w| e.stmt_inner(stmt, w, at));
        self.no_errexit -= 1;
        self.background -= 1;
        let process = self.fresh(
            Why::Process,
            format!("$! of line {}", at.line),
            at,
            Default::default(),
            Shape::Number,
        );
        for world in &mut after {
            world.last_background = Some(process.clone());
            world.succeed(true);
        }
        self.settle(after, at, self.limits.worlds, Why::Joined, true)
    }

    pub(super) fn pipeline(&mut self, stages: &[Stmt], worlds: Vec<World>, at: Span) -> Vec<World> {
        let outer_stage = self.pipe_stage;
        let mut current: Vec<(World, Option<Status>)> = worlds.into_iter().map(|w| (w, None)).collect();
        let last = stages.len() - 1;
        // What each world had before the pipe: output target, collected text, input.
        for (index, stage) in stages.iter().enumerate() {
            if self.stop {
                break;
            }
            let mut next = Vec::new();
            for (world, failed) in current {
                let (out, buffer, input, err) = (
                    world.out.clone(),
                    world.buffer.clone(),
                    world.input.clone(),
                    world.err_to_out,
                );
                let mut entering = world;
                if index != last {
                    entering.out = Sink::Collect;
                    entering.buffer = Value::empty();
                }
                self.pipe_stage = Some(index as u32);
                self.no_errexit += 1;
                let after = self.subshell(vec![entering], at, |e, w| e.stmt(stage, w));
                self.no_errexit -= 1;
                self.pipe_stage = outer_stage;
                for mut world in after {
                    // The first failing status from the right is all that `pipefail` needs.
                    let mut failed = failed.clone();
                    if world.pipefail && !matches!(self.same_success(&world.status), Status::Known(0)) {
                        failed = Some(world.status.clone());
                    }
                    if index != last {
                        let piped = std::mem::replace(&mut world.buffer, buffer.clone());
                        world.out = out.clone();
                        world.err_to_out = err;
                        world.input = Source::Lines(Arc::new(piped.lines()), 0);
                    } else {
                        world.input = if stages.len() > 1 {
                            Source::Unknown
                        } else {
                            input.clone()
                        };
                    }
                    next.push((world, failed));
                }
            }
            current = next;
        }
        let mut after = Vec::with_capacity(current.len());
        for (mut world, failed) in current {
            if world.pipefail {
                world.status = failed.unwrap_or(Status::Known(0));
            }
            after.push(world);
        }
        self.settle(after, at, self.limits.worlds, Why::Joined, true)
    }
}
