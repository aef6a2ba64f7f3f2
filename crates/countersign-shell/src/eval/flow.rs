//! Statements: lists, `&&`/`||`, `if`, `case`, pipelines, subshells, background.

use std::sync::Arc;

use super::Evaluator;
use crate::output::{Literal, Note};
use crate::syntax::ast::{AndOr, Block, CaseEnd, CaseItem, Stmt, StmtKind, Word};
use crate::value::{Shape, Span, Value, Why};
use crate::world::{Condition, Flow, Refine, Status, World, id_of};

/// Worlds kept for the handler of the script's end.
const MAX_EXITED: usize = 256;

/// Worlds split by a condition.
pub(super) struct Split {
    pub(super) yes: Vec<World>,
    pub(super) no: Vec<World>,
    /// Worlds that left in the middle (return, exit, break).
    pub(super) passed: Vec<World>,
    /// Questions that were answered both ways.
    pub(super) forks: Vec<Literal>,
}

impl Evaluator<'_> {
    /// Statements in order; worlds that leave (break, return, exit) skip the rest.
    pub(super) fn block(&mut self, block: &Block, worlds: Vec<World>) -> Vec<World> {
        let mut active = worlds;
        let mut left: Vec<World> = Vec::new();
        let last = block.stmts.len().saturating_sub(1);
        for (index, stmt) in block.stmts.iter().enumerate() {
            if active.is_empty() {
                break;
            }
            let after = self.stmt(stmt, std::mem::take(&mut active));
            if self.stop {
                active = after;
                break;
            }
            active = self.stay(after, &mut left, stmt, index == last);
        }
        self.leave(active, left, block)
    }

    /// The worlds that go on after a statement of a block; those that leave are put to the others that have.
    pub(super) fn stay(
        &mut self,
        mut after: Vec<World>,
        left: &mut Vec<World>,
        stmt: &Stmt,
        with_status: bool,
    ) -> Vec<World> {
        if after.iter().any(|w| w.flow != Flow::Normal) {
            let (on, off): (Vec<World>, Vec<World>) = after.into_iter().partition(|w| w.flow == Flow::Normal);
            left.extend(off);
            after = on;
        }
        let at = self.span(stmt.at);
        self.settle(after, at, self.limits.worlds, Why::Joined, with_status)
    }

    /// All worlds at the end of a block: those that went through it, and those that left it before.
    pub(super) fn leave(&mut self, mut active: Vec<World>, left: Vec<World>, block: &Block) -> Vec<World> {
        if left.is_empty() {
            return active;
        }
        active.extend(left);
        let at = block.stmts.last().map_or(Span::NOWHERE, |s| self.span(s.at));
        self.settle(active, at, self.limits.worlds, Why::Joined, true)
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt, worlds: Vec<World>) -> Vec<World> {
        let at = self.span(stmt.at);
        if worlds.is_empty() || !self.step(at) {
            return worlds;
        }
        if self.depth >= super::MAX_DEPTH {
            self.note(Note::Bound, at, "nested too deeply to be evaluated".into());
            return self.not_evaluated(worlds, at);
        }
        self.depth += 1;
        let after = if stmt.background {
            self.in_background(stmt, worlds, at)
        } else {
            self.stmt_of_all(stmt, worlds, at)
        };
        self.depth -= 1;
        after
    }

    /// What stands beyond the depth bound: anything may have been set.
    pub(super) fn not_evaluated(&mut self, worlds: Vec<World>, at: Span) -> Vec<World> {
        if self.keeps() && self.out.truncated.is_none() {
            self.out.truncated = Some(format!("nested too deeply at line {}", at.line));
        }
        let unknown = self.fresh(
            Why::Limit,
            "commands nested too deeply",
            at,
            Default::default(),
            Shape::Any,
        );
        let mark = |mut w: World| {
            w.status = self.unknown_status("nested too deeply", at, Default::default());
            w.foreign = w.foreign.or(Some(unknown.clone()));
            w
        };
        worlds.into_iter().map(mark).collect()
    }

    pub(super) fn stmt_inner(&mut self, stmt: &Stmt, worlds: Vec<World>, at: Span) -> Vec<World> {
        match &stmt.kind {
            StmtKind::Simple(simple) => {
                let mut after = Vec::with_capacity(worlds.len());
                for world in worlds {
                    after.extend(self.simple(simple, stmt, world));
                }
                self.errexit(after, at)
            }
            StmtKind::AndOr(first, rest) => self.and_or(first, rest, worlds),
            StmtKind::Not(inner) => {
                self.no_errexit += 1;
                let mut after = self.stmt(inner, worlds);
                self.no_errexit -= 1;
                for world in after.iter_mut().filter(|w| w.flow == Flow::Normal) {
                    world.status = match &world.status.asked() {
                        Status::Known(code) => Status::Known(i32::from(*code == 0)),
                        Status::Each(codes) => Status::Each(codes.iter().map(|code| i32::from(*code == 0)).collect()),
                        Status::Unknown(condition, sense) => Status::Unknown(condition.clone(), !sense),
                        Status::Ran(..) => continue,
                    };
                }
                after
            }
            StmtKind::Pipeline(stages) => {
                let after = self.pipeline(stages, worlds, at);
                self.errexit(after, at)
            }
            StmtKind::Group(body) => self.block(body, worlds),
            StmtKind::Subshell(body) => {
                let after = self.subshell(worlds, at, |e, w| e.block(body, w));
                self.errexit(after, at)
            }
            StmtKind::If { arms, otherwise } => self.if_stmt(arms, otherwise.as_ref(), worlds, at),
            StmtKind::Case { subject, items } => self.case_stmt(subject, items, worlds, at),
            StmtKind::For { name, words, body } => self.for_stmt(name, words.as_deref(), body, worlds, at),
            StmtKind::CFor { head, body } => self.c_for_stmt(head, body, worlds, at),
            StmtKind::While { until, cond, body } => self.while_stmt(*until, cond, body, worlds, at),
            StmtKind::Function { name, body } => {
                let own = worlds
                    .first()
                    .and_then(|w| w.frames.last())
                    .filter(|f| f.file == self.file);
                let function = Arc::new(crate::world::Function {
                    name: name.clone(),
                    source: own.map_or_else(|| self.script.path.clone(), |f| f.source.clone()),
                    body: body.clone(),
                    script: self.script.clone(),
                    file: self.file,
                });
                let define = |mut w: World| {
                    w.functions.insert(name.clone(), function.clone());
                    w.succeed(true);
                    w
                };
                worlds.into_iter().map(define).collect()
            }
            StmtKind::Test(cond) => {
                let mut after = Vec::with_capacity(worlds.len());
                for mut world in worlds {
                    world.status = self.test_cond(&mut world, cond, at);
                    after.push(world);
                }
                self.errexit(after, at)
            }
            StmtKind::Arith(word) => {
                let mut after = Vec::with_capacity(worlds.len());
                for mut world in worlds {
                    world.status = self.arith_status(&mut world, word, at);
                    after.push(world);
                }
                self.errexit(after, at)
            }
            StmtKind::Redirected(inner, redirs) => {
                let mut after = Vec::new();
                for mut world in worlds {
                    let saved = (world.out.clone(), world.input.clone(), world.err_to_out);
                    self.redirect(&mut world, redirs);
                    let input_changed = redirs.iter().any(super::redirect::is_input);
                    for mut w in self.stmt(inner, vec![world]) {
                        w.out = saved.0.clone();
                        w.err_to_out = saved.2;
                        if input_changed {
                            w.input = saved.1.clone();
                        }
                        after.push(w);
                    }
                }
                after
            }
        }
    }

    /// `set -e`: a command known to fail ends the script; an unknown one is taken to succeed.
    fn errexit(&mut self, worlds: Vec<World>, at: Span) -> Vec<World> {
        if self.no_errexit > 0 || !worlds.iter().any(|w| w.errexit && w.flow == Flow::Normal) {
            return worlds;
        }
        let mut after = Vec::with_capacity(worlds.len());
        for mut world in worlds {
            if world.errexit && world.flow == Flow::Normal {
                match &self.same_success(&world.status) {
                    Status::Known(0) => {}
                    Status::Known(_) | Status::Each(_) => {
                        after.extend(self.leave_script(world, at));
                        continue;
                    }
                    Status::Unknown(..) | Status::Ran(..) => world.status = Status::Known(0),
                }
            }
            after.push(world);
        }
        after
    }

    /// The script ends here: recorded, and gone unless only a subshell ends.
    pub(super) fn leave_script(&mut self, mut world: World, at: Span) -> Option<World> {
        if self.subshells > 0 {
            world.flow = Flow::Exit;
            return Some(world);
        }
        if !self.keeps() {
            return None;
        }
        self.end(&world, at);
        self.collect_files(&world);
        if world.exit_trap.is_some() && self.exited.len() < MAX_EXITED {
            self.exited.push(world);
        }
        None
    }

    pub(super) fn split(&mut self, worlds: Vec<World>) -> Split {
        let mut split = Split {
            yes: Vec::new(),
            no: Vec::new(),
            passed: Vec::new(),
            forks: Vec::new(),
        };
        for mut world in worlds {
            if world.flow != Flow::Normal {
                split.passed.push(world);
                continue;
            }
            match self.same_success(&world.status).asked() {
                Status::Known(0) => split.yes.push(world),
                Status::Known(_) | Status::Each(_) | Status::Ran(..) => split.no.push(world),
                Status::Unknown(condition, sense) => {
                    if condition.stable
                        && let Some(known) = world.decided.get(&condition.key)
                    {
                        let yes = *known == sense;
                        world.succeed(yes);
                        if yes { &mut split.yes } else { &mut split.no }.push(world);
                        continue;
                    }
                    let mut other = world.clone();
                    world.assume(&condition, sense);
                    world.succeed(true);
                    other.assume(&condition, !sense);
                    other.succeed(false);
                    if !split.forks.iter().any(|l| l.same_question(&condition.literal)) {
                        split.forks.push(condition.literal.clone());
                    }
                    split.yes.push(world);
                    split.no.push(other);
                }
            }
        }
        split
    }

    pub(super) fn condition(&mut self, block: &Block, worlds: Vec<World>) -> Split {
        self.no_errexit += 1;
        let after = self.block(block, worlds);
        self.no_errexit -= 1;
        self.split(after)
    }

    fn and_or(&mut self, first: &Stmt, rest: &[(AndOr, Stmt)], worlds: Vec<World>) -> Vec<World> {
        let end = rest.last().map_or(first, |(_, s)| s);
        let at = self.span(end.at);
        self.no_errexit += 1;
        let mut worlds = self.stmt(first, worlds);
        self.no_errexit -= 1;
        for (index, (op, stmt)) in rest.iter().enumerate() {
            if self.stop {
                return worlds;
            }
            let split = self.split(worlds);
            let (run, mut stay) = match op {
                AndOr::And => (split.yes, split.no),
                AndOr::Or => (split.no, split.yes),
            };
            let last = index + 1 == rest.len();
            self.no_errexit += usize::from(!last);
            let after = if run.is_empty() {
                Vec::new()
            } else {
                self.stmt(stmt, run)
            };
            self.no_errexit -= usize::from(!last);
            if after.is_empty() {
                required(&mut stay, &split.forks);
            }
            worlds = split.passed;
            worlds.extend(after);
            worlds.extend(stay);
            worlds = self.settle(worlds, at, self.limits.worlds, Why::Joined, true);
        }
        worlds
    }

    fn if_stmt(
        &mut self,
        arms: &[(Block, Block)],
        otherwise: Option<&Block>,
        worlds: Vec<World>,
        at: Span,
    ) -> Vec<World> {
        let mut pending = worlds;
        let mut done: Vec<World> = Vec::new();
        let mut last_forks = Vec::new();
        for (cond, body) in arms {
            if pending.is_empty() || self.stop {
                break;
            }
            let split = self.condition(cond, pending);
            done.extend(split.passed);
            let after = if split.yes.is_empty() {
                Vec::new()
            } else {
                self.block(body, split.yes)
            };
            pending = split.no;
            if after.is_empty() {
                required(&mut pending, &split.forks);
            }
            done.extend(after);
            last_forks = split.forks;
        }
        if !pending.is_empty() {
            let after = match otherwise {
                Some(body) => self.block(body, pending),
                None => {
                    pending.iter_mut().for_each(|w| w.succeed(true));
                    pending
                }
            };
            if after.is_empty() {
                required(&mut done, &last_forks);
            }
            done.extend(after);
        }
        self.settle(done, at, self.limits.worlds, Why::Joined, true)
    }

    fn case_stmt(&mut self, subject: &Word, items: &[CaseItem], worlds: Vec<World>, at: Span) -> Vec<World> {
        let mut done = Vec::new();
        for mut world in worlds {
            let value = self.value(&mut world, subject);
            let known = value.known().map(|t| t.into_owned());
            let mut pending = Some(world);
            // Worlds that fall through from the item before.
            let mut through: Vec<World> = Vec::new();
            for item in items {
                if self.stop {
                    break;
                }
                let mut entering = std::mem::take(&mut through);
                let mut forks = Vec::new();
                for pattern_word in &item.patterns {
                    let Some(mut asking) = pending.take() else { break };
                    // Most patterns are plain words against a known text.
                    let quick = match (&known, pattern_word.plain()) {
                        _ if pattern_word.is_star() => Some(true),
                        (Some(text), Some(plain)) => Some(text == plain),
                        _ => None,
                    };
                    let (pattern, answer) = match quick {
                        Some(answer) => (Default::default(), Some(answer)),
                        None => {
                            let pattern = self.pattern(&mut asking, pattern_word);
                            let answer = self.pattern_answer(&asking, &value, &pattern);
                            (pattern, answer)
                        }
                    };
                    match answer {
                        Some(true) => {
                            if item.end == CaseEnd::TestNext {
                                pending = Some(asking.clone());
                            }
                            entering.push(asking);
                            break;
                        }
                        Some(false) => pending = Some(asking),
                        None => {
                            let place = self.span(pattern_word.at);
                            let condition = self.pattern_condition(&value, &pattern, pattern_word, place);
                            let mut other = asking.clone();
                            asking.assume(&condition, true);
                            other.assume(&condition, false);
                            forks.push(condition.literal.clone());
                            entering.push(asking);
                            pending = Some(other);
                        }
                    }
                }
                if entering.is_empty() {
                    continue;
                }
                entering.iter_mut().for_each(|w| w.succeed(true));
                let entering = self.settle(entering, at, self.limits.worlds, Why::Joined, true);
                let after = self.block(&item.body, entering);
                if after.is_empty()
                    && let Some(other) = pending.as_mut()
                {
                    forks.iter().for_each(|l| other.mark_required(l));
                }
                match item.end {
                    CaseEnd::Break | CaseEnd::TestNext => done.extend(after),
                    CaseEnd::FallThrough => {
                        let (on, off): (Vec<World>, Vec<World>) =
                            after.into_iter().partition(|w| w.flow == Flow::Normal);
                        done.extend(off);
                        through = on;
                    }
                }
            }
            done.extend(through);
            if let Some(mut world) = pending {
                // No pattern matched (with `;;&` the items before may have run; the status is theirs then).
                world.succeed(true);
                done.push(world);
            }
        }
        self.settle(done, at, self.limits.worlds, Why::Joined, true)
    }

    fn pattern_answer(&mut self, world: &World, value: &Value, pattern: &crate::pattern::Pattern) -> Option<bool> {
        let mut answer = pattern.matches_value(value);
        if answer.is_none() && !pattern.has_unknown() {
            answer = self.lanes.ask(value, |text| pattern.matches(text));
        }
        if answer.is_none()
            && let (Some(unknown), Some(text)) = (value.single_unknown(), pattern.literal())
            && let Some(fact) = world.facts.get(&unknown.id)
        {
            if let Some(equal) = fact.equal.as_ref().and_then(|v| v.known()) {
                return Some(equal == text);
            }
            if fact.not.iter().any(|n| n.as_ref() == text) {
                return Some(false);
            }
        }
        answer
    }

    fn pattern_condition(&self, value: &Value, pattern: &crate::pattern::Pattern, word: &Word, at: Span) -> Condition {
        let shown = word.literal().unwrap_or_else(|| "a pattern".into());
        let text: Arc<str> = format!("{} matches {shown}", short(&value.display())).into();
        let mut when_true = Vec::new();
        let mut when_false = Vec::new();
        if let (Some(unknown), Some(literal)) = (value.single_unknown().filter(|u| u.stable), pattern.literal()) {
            when_true.push(Refine::Equal(unknown.clone(), Value::text(literal.as_str(), at)));
            when_false.push(Refine::NotEqual(unknown.clone(), literal.into()));
        }
        self.lanes.check(&value.depends_on());
        let stable = value.unknowns().all(|u| u.stable);
        let key = id_of(Why::Status, &text, if stable { Span::NOWHERE } else { at });
        let literal = Literal {
            text,
            at,
            holds: true,
            other_side_ends: false,
            depends_on: value.depends_on(),
        };
        Condition {
            literal,
            key,
            stable,
            when_true,
            when_false,
        }
    }
}

/// Where the other side of the questions has no way on, the decision is one without alternative.
fn required(worlds: &mut [World], forks: &[Literal]) {
    for world in worlds {
        forks.iter().for_each(|l| world.mark_required(l));
    }
}

/// A text cut for messages.
pub(super) fn short(text: &str) -> String {
    crate::lanes::cut(text, 100, "…")
}
