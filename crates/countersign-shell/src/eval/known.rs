//! Loops in which everything is known, such as those that count or put a list together: gone through round by round on one
//! world. There is nothing to decide in them, so there is no need to look for worlds that part or come together.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use crate::output::Word;
use crate::syntax::ast::Word as WordNode;
use crate::syntax::ast::{
    Arg, Assign, AssignValue, Block, Param, ParamName, ParamOp, PartKind, Simple, Stmt, StmtKind,
};
use crate::value::Span;
use crate::world::{Status, VarValue, World};

/// What a loop does before each round.
pub(super) enum Head<'h> {
    /// Whether a condition holds; in front of it, but for the first round, a step is made.
    Counts(&'h WordNode, &'h WordNode),
    /// The next word is given to a variable.
    Words(&'h Arc<str>, &'h [Word]),
}

/// What of a loop is known when it begins.
enum Beginning {
    /// Everything.
    Known,
    /// How often it goes round depends on what differs between the points that are evaluated together.
    Differs,
    /// Not everything.
    Open,
}

/// Operators of `test` that look at nothing but their operands.
const OPERATORS: [&str; 12] = [
    "-n", "-z", "=", "==", "!=", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "!",
];

impl Evaluator<'_> {
    /// The world after the loop; nothing where anything is asked in it that is not known, or a bound is met. Then the loop
    /// has to be gone through from its beginning.
    pub(super) fn known_rounds(&mut self, entry: &World, head: &Head<'_>, body: &Block, at: Span) -> Option<World> {
        let mut names = Names::default();
        let mut counted = BTreeSet::new();
        match head {
            Head::Counts(cond, step) => {
                if cond.is_blank() {
                    return None;
                }
                names.expression(cond)?;
                names.expression(step)?;
                counted.clone_from(&names.read);
            }
            Head::Words(name, list) => {
                if !list.iter().all(|word| word.value.is_known() && !word.splits) {
                    return None;
                }
                names.set.insert(name);
            }
        }
        names.block(body)?;
        match self.beginning(entry, &names, &counted) {
            Beginning::Known => {}
            Beginning::Differs if self.may_part() && !self.alone => {
                // It is of no use to begin together.
                self.lanes.void();
                self.check_parting();
                return None;
            }
            Beginning::Differs | Beginning::Open => return None,
        }
        self.loops += 1;
        let after = self.rounds(entry.clone(), head, body, at);
        self.loops -= 1;
        after
    }

    fn rounds(&mut self, mut world: World, head: &Head<'_>, body: &Block, at: Span) -> Option<World> {
        for round in 0..self.limits.loop_iterations.saturating_sub(1) {
            match head {
                Head::Counts(cond, step) => {
                    if round > 0 {
                        let _ = self.arith_status(&mut world, step, at);
                    }
                    world.status = self.arith_status(&mut world, cond, at);
                    match world.status {
                        Status::Known(0) => {}
                        Status::Known(_) => return Some(world),
                        _ => return None,
                    }
                }
                Head::Words(name, list) => match list.get(round) {
                    Some(word) => self.assign_scalar(&mut world, name, word.value.clone(), at),
                    None => {
                        world.succeed(true);
                        return Some(world);
                    }
                },
            }
            world = self.known_block(body, world)?;
        }
        None
    }

    fn beginning(&mut self, entry: &World, names: &Names<'_>, counted: &BTreeSet<&str>) -> Beginning {
        let plain = |name: &&str| {
            entry.vars.get(name).is_none_or(|var| {
                !var.readonly && !var.integer && matches!(var.value, VarValue::Scalar(_) | VarValue::Unset)
            })
        };
        if !names.read.iter().chain(&names.set).all(plain) {
            return Beginning::Open;
        }
        let mut differs = false;
        let mut missing = Vec::new();
        for name in &names.read {
            match entry.vars.get(name).map(|var| var.as_scalar()) {
                Some(Some(value)) if value.is_known() => {}
                Some(Some(value)) if value.is_laned() && !value.differs() && counted.contains(name) => differs = true,
                Some(Some(_)) => return Beginning::Open,
                Some(None) => {}
                None => missing.push(*name),
            }
        }
        if missing.is_empty() {
            return if differs { Beginning::Differs } else { Beginning::Known };
        }
        let mut world = entry.clone();
        for name in missing {
            // Asked here for the loop, which may never ask for it.
            let assumed = self.out.assumed_unset.contains(name);
            let value = self.lookup(&mut world, name, Span::NOWHERE);
            if !assumed {
                self.out.assumed_unset.remove(name);
            }
            if value.is_some_and(|value| !value.is_known()) {
                return Beginning::Open;
            }
        }
        if differs { Beginning::Differs } else { Beginning::Known }
    }

    fn known_block(&mut self, block: &Block, mut world: World) -> Option<World> {
        for stmt in &block.stmts {
            world = self.known_stmt(stmt, world)?;
        }
        Some(world)
    }

    fn known_stmt(&mut self, stmt: &Stmt, mut world: World) -> Option<World> {
        let at = self.span(stmt.at);
        if !self.step(at) {
            return None;
        }
        match &stmt.kind {
            StmtKind::Simple(simple) => {
                self.substituted = None;
                for assign in &simple.assigns {
                    self.assign(&mut world, assign);
                }
                world.succeed(true);
                Some(world)
            }
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    world = self.asked(cond, world)?;
                    if matches!(world.status, Status::Known(0)) {
                        return self.known_block(body, world);
                    }
                }
                match otherwise {
                    Some(body) => self.known_block(body, world),
                    None => {
                        world.succeed(true);
                        Some(world)
                    }
                }
            }
            _ => None,
        }
    }

    /// The world with the answer to a condition as its status.
    fn asked(&mut self, cond: &Block, mut world: World) -> Option<World> {
        let [stmt] = cond.stmts.as_slice() else { return None };
        let at = self.span(stmt.at);
        if !self.step(at) {
            return None;
        }
        match &stmt.kind {
            StmtKind::Simple(simple) => {
                let mut after = self.simple(simple, stmt, world);
                world = after.pop().filter(|_| after.is_empty())?;
            }
            StmtKind::Arith(word) => world.status = self.arith_status(&mut world, word, at),
            _ => return None,
        }
        matches!(world.status, Status::Known(_)).then_some(world)
    }
}

/// The names that a loop reads and sets, where it does nothing else.
#[derive(Default)]
struct Names<'b> {
    read: BTreeSet<&'b str>,
    set: BTreeSet<&'b str>,
}

impl<'b> Names<'b> {
    fn block(&mut self, block: &'b Block) -> Option<()> {
        block.stmts.iter().try_for_each(|stmt| self.stmt(stmt))
    }

    fn stmt(&mut self, stmt: &'b Stmt) -> Option<()> {
        match &stmt.kind {
            _ if stmt.background => None,
            StmtKind::Simple(simple) if simple.words.is_empty() && simple.redirs.is_empty() => {
                simple.assigns.iter().try_for_each(|assign| self.assign(assign))
            }
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    let [asked] = cond.stmts.as_slice() else { return None };
                    match &asked.kind {
                        _ if asked.background => return None,
                        StmtKind::Simple(simple) => self.test(simple)?,
                        StmtKind::Arith(word) => self.expression(word)?,
                        _ => return None,
                    }
                    self.block(body)?;
                }
                otherwise.as_ref().map_or(Some(()), |body| self.block(body))
            }
            _ => None,
        }
    }

    fn assign(&mut self, assign: &'b Assign) -> Option<()> {
        let AssignValue::Scalar(word) = &assign.value else {
            return None;
        };
        if assign.index.is_some() {
            return None;
        }
        self.set.insert(&assign.name);
        if assign.append {
            self.read.insert(&assign.name);
        }
        self.word(word)
    }

    /// `[ … ]` of operators and of words in quotes.
    fn test(&mut self, simple: &'b Simple) -> Option<()> {
        let [Arg::Word(name), rest @ ..] = simple.words.as_slice() else {
            return None;
        };
        if name.literal_text()? != "[" || !simple.assigns.is_empty() || !simple.redirs.is_empty() {
            return None;
        }
        let [operands @ .., Arg::Word(end)] = rest else {
            return None;
        };
        if end.literal_text()? != "]" {
            return None;
        }
        for operand in operands {
            let Arg::Word(word) = operand else { return None };
            match word.literal_text() {
                Some(text) if OPERATORS.contains(&&*text) || text.bytes().all(|c| c.is_ascii_alphanumeric()) => {}
                Some(_) => return None,
                None if word.parts.iter().all(|part| part.quoted) => self.word(word)?,
                None => return None,
            }
        }
        Some(())
    }

    fn word(&mut self, word: &'b WordNode) -> Option<()> {
        word.parts.iter().try_for_each(|part| match &part.kind {
            PartKind::Lit(_) => Some(()),
            PartKind::Param(param) => self.param(param),
            PartKind::Arith(word, _) => self.expression(word),
            _ => None,
        })
    }

    fn param(&mut self, param: &'b Param) -> Option<()> {
        let ParamName::Var(name) = &param.name else { return None };
        if param.index.is_some() || param.indirect {
            return None;
        }
        self.read.insert(name);
        match &param.op {
            ParamOp::None => Some(()),
            ParamOp::Default(_, word) | ParamOp::Alternative(_, word) => self.word(word),
            _ => None,
        }
    }

    /// Names in an expression may be set by it; elements of arrays are not looked at.
    fn expression(&mut self, word: &'b WordNode) -> Option<()> {
        for part in &word.parts {
            match &part.kind {
                PartKind::Lit(text) if text.contains(['[', '"', '\'', '`', '\\']) => return None,
                PartKind::Lit(text) => {
                    let names = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    let names = names.filter(|name| super::is_name(name));
                    let names: Vec<&str> = names.collect();
                    self.read.extend(&names);
                    self.set.extend(names);
                }
                PartKind::Param(param) => self.param(param)?,
                _ => return None,
            }
        }
        Some(())
    }
}
