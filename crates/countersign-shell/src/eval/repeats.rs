//! Loops over words that wait: round for round the same, but for a number that is only told to the log.

use std::sync::Arc;

use super::Evaluator;
use crate::output::Word;
use crate::syntax::ast::Word as WordNode;
use crate::syntax::ast::{
    Arg, AssignValue, Block, Cond, Index, Param, ParamName, ParamOp, PartKind, RedirectOp, Simple, Stmt, StmtKind,
};
use crate::value::{Span, Value, Why};
use crate::world::World;

/// The words of a loop of which all rounds may be the same.
pub(super) struct Repeats<'r> {
    pub(super) name: &'r Arc<str>,
    pub(super) list: &'r [Word],
}

impl<'r> Repeats<'r> {
    /// Nothing where the word of a round is used for anything but telling it.
    pub(super) fn of(name: &'r Arc<str>, list: &'r [Word], body: &Block) -> Option<Self> {
        // Of a few rounds each is worth seeing.
        let long = list.len() > 8 && list.iter().all(|word| word.value.is_known());
        (long && !Uses { name }.block(body)).then_some(Repeats { name, list })
    }

    /// Any of the words.
    pub(super) fn any(&self, at: Span) -> Value {
        let choices = self.list.iter().map(|word| word.value.clone()).collect();
        crate::join::choice(self.name, choices, Why::Loop, at)
    }
}

impl Evaluator<'_> {
    /// Whether a round has left everything as it was, but for the loop's own word.
    pub(super) fn repeats(&self, repeats: &Repeats<'_>, before: &[World], after: &[World]) -> bool {
        let same = |(before, after): (&World, &World)| {
            let mut after = after.clone();
            match before.vars.get(repeats.name) {
                Some(var) => after.vars.insert(repeats.name.clone(), var.clone()),
                None => drop(after.vars.remove(repeats.name)),
            }
            let decided = before.path.iter().zip(after.path.iter());
            before.path.len() == after.path.len()
                && decided
                    .into_iter()
                    .all(|(a, b)| a.same_question(b) && a.holds == b.holds)
                && before.facts == after.facts
                && before.decided == after.decided
                && after.same_state(before, false, None)
        };
        before.len() == after.len() && before.iter().zip(after).all(same)
    }
}

/// Looks for uses of a variable.
#[derive(Clone, Copy)]
struct Uses<'n> {
    name: &'n str,
}

impl Uses<'_> {
    fn block(self, block: &Block) -> bool {
        block.stmts.iter().any(|stmt| self.stmt(stmt))
    }

    fn stmt(self, stmt: &Stmt) -> bool {
        match &stmt.kind {
            StmtKind::Simple(simple) => self.simple(simple),
            StmtKind::Pipeline(stages) => stages.iter().any(|stage| self.stmt(stage)),
            StmtKind::Not(inner) => self.stmt(inner),
            StmtKind::AndOr(first, rest) => self.stmt(first) || rest.iter().any(|(_, stmt)| self.stmt(stmt)),
            StmtKind::Group(body) | StmtKind::Subshell(body) => self.block(body),
            StmtKind::If { arms, otherwise } => {
                arms.iter().any(|(cond, body)| self.block(cond) || self.block(body))
                    || otherwise.as_ref().is_some_and(|body| self.block(body))
            }
            StmtKind::Test(cond) => self.cond(cond),
            StmtKind::Arith(word) => self.word(word) || self.expression(word),
            // Whatever else may stand in a loop: it is gone through round by round.
            StmtKind::Case { .. }
            | StmtKind::For { .. }
            | StmtKind::CFor { .. }
            | StmtKind::While { .. }
            | StmtKind::Function { .. }
            | StmtKind::Redirected(..) => true,
        }
    }

    fn simple(self, simple: &Simple) -> bool {
        let name = match simple.words.first() {
            Some(Arg::Word(word)) => match word.literal_text() {
                Some(name) => name,
                None => return true,
            },
            Some(Arg::Assign(_)) => return true,
            None => "".into(),
        };
        let told = simple.redirs.iter().all(|redir| redir.op == RedirectOp::DupOut);
        match &*name {
            "echo" if told && simple.assigns.is_empty() => {
                return simple.words.iter().any(|arg| match arg {
                    Arg::Word(word) => word.parts.iter().any(|part| match &part.kind {
                        PartKind::Command(body, _) | PartKind::Process(body, ..) => self.block(body),
                        _ => false,
                    }),
                    Arg::Assign(_) => true,
                });
            }
            "eval" | "source" | "." | "trap" | "read" | "set" | "export" | "declare" | "local" | "unset" => {
                return true;
            }
            _ => {}
        }
        simple
            .redirs
            .iter()
            .any(|redir| redir.heredoc.is_some() || self.word(&redir.target))
            || simple.assigns.iter().any(|assign| {
                let value = match &assign.value {
                    AssignValue::Scalar(word) => self.word(word),
                    AssignValue::Array(_) => true,
                };
                value || *assign.name == *self.name || assign.index.is_some()
            })
            || simple.words.iter().any(|arg| match arg {
                Arg::Word(word) => self.word(word),
                Arg::Assign(_) => true,
            })
    }

    fn cond(self, cond: &Cond) -> bool {
        let uses = |word: &WordNode| self.word(word) || self.expression(word);
        match cond {
            Cond::Unary(_, word) | Cond::NonEmpty(word) => uses(word),
            Cond::Binary(_, left, right) => uses(left) || uses(right),
            Cond::Not(inner) => self.cond(inner),
            Cond::And(all) | Cond::Or(all) => all.iter().any(|cond| self.cond(cond)),
        }
    }

    fn word(self, word: &WordNode) -> bool {
        word.parts.iter().any(|part| match &part.kind {
            PartKind::Lit(_) | PartKind::Tilde(_) => false,
            PartKind::Param(param) => self.param(param),
            PartKind::Command(body, _) | PartKind::Process(body, ..) => self.block(body),
            PartKind::Arith(word, _) => self.word(word) || self.expression(word),
            PartKind::Hole(_) => true,
        })
    }

    /// Names stand in an expression as they are.
    fn expression(self, word: &WordNode) -> bool {
        word.parts.iter().any(|part| match &part.kind {
            PartKind::Lit(text) => text
                .split(|c: char| !c.is_alphanumeric() && c != '_')
                .any(|name| name == self.name),
            _ => false,
        })
    }

    fn param(self, param: &Param) -> bool {
        let own = match &param.name {
            ParamName::Var(name) => **name == *self.name,
            ParamName::Positional(_) | ParamName::Special(_) => false,
        };
        let at = match &param.index {
            Some(Index::At(word)) => self.word(word) || self.expression(word),
            Some(Index::All | Index::Star) | None => false,
        };
        let inside = match &param.op {
            ParamOp::None | ParamOp::Length => false,
            ParamOp::Default(_, word) | ParamOp::Alternative(_, word) => self.word(word),
            _ => true,
        };
        own || at || inside || param.indirect
    }
}
