//! `[[ … ]]`: the expression between the brackets.

use super::ast::{Cond, Pos, Word};
use super::parser::{IssueKind, Parser};
use super::word::Context;

impl Parser<'_> {
    /// The expression and the closing brackets; the cursor is behind the opening ones.
    pub(super) fn cond(&mut self, at: Pos) -> Cond {
        let cond = self.cond_or();
        self.skip_newlines();
        if !self.eat("]]") && !self.fatal {
            self.issue(IssueKind::Unterminated, at, "`[[` without its `]]`".into());
            while self.peek().is_some_and(|b| b != b'\n') && !self.starts_with("]]") {
                self.bump_char();
            }
            self.eat("]]");
        }
        cond
    }

    fn cond_or(&mut self) -> Cond {
        let mut all = vec![self.cond_and()];
        loop {
            self.skip_newlines();
            if self.fatal || !self.eat("||") {
                break;
            }
            all.push(self.cond_and());
        }
        if all.len() == 1 { all.remove(0) } else { Cond::Or(all) }
    }

    fn cond_and(&mut self) -> Cond {
        let mut all = vec![self.cond_term()];
        loop {
            self.skip_newlines();
            if self.fatal || !self.eat("&&") {
                break;
            }
            all.push(self.cond_term());
        }
        if all.len() == 1 { all.remove(0) } else { Cond::And(all) }
    }

    fn cond_term(&mut self) -> Cond {
        let mut negations = 0usize;
        self.skip_newlines();
        while self.peek() == Some(b'!') && matches!(self.peek_at(1), Some(b' ' | b'\t' | b'\n' | b'(')) {
            self.pos += 1;
            negations += 1;
            self.skip_newlines();
        }
        let term = self.cond_primary();
        if negations % 2 == 1 {
            Cond::Not(Box::new(term))
        } else {
            term
        }
    }

    fn cond_primary(&mut self) -> Cond {
        let empty = Word {
            at: self.here(),
            parts: Vec::new(),
        };
        if !self.enter() {
            return Cond::NonEmpty(empty);
        }
        let cond = self.cond_primary_inner(empty);
        self.leave();
        cond
    }

    fn cond_primary_inner(&mut self, empty: Word) -> Cond {
        if self.eat("(") {
            let at = empty.at;
            let inner = self.cond_or();
            self.skip_newlines();
            if !self.eat(")") {
                self.issue(IssueKind::Unterminated, at, "`(` without its `)` inside `[[ ]]`".into());
            }
            return inner;
        }
        if let Some(op) = self.unary_operator() {
            self.skip_blanks();
            let word = self.word(Context::Test).unwrap_or(empty);
            return Cond::Unary(op.into(), word);
        }
        if self.starts_with("]]") {
            return Cond::NonEmpty(empty);
        }
        let Some(left) = self.word(Context::Test) else {
            let at = self.here();
            self.issue(IssueKind::Unexpected, at, "not an operand of `[[ ]]`".into());
            return Cond::NonEmpty(empty);
        };
        self.skip_newlines();
        let Some(op) = self.binary_operator() else {
            return Cond::NonEmpty(left);
        };
        self.skip_blanks();
        let context = if op == "=~" { Context::Regex } else { Context::Test };
        let right = self.word(context).unwrap_or(empty);
        Cond::Binary(op.into(), left, right)
    }

    /// `-n` and its kin: one letter, a blank, and an operand that is not a binary operator.
    fn unary_operator(&mut self) -> Option<String> {
        let letter = self.peek_at(1).filter(|b| b.is_ascii_alphabetic())?;
        if self.peek() != Some(b'-') || !matches!(self.peek_at(2), Some(b' ' | b'\t' | b'\n')) {
            return None;
        }
        self.pos += 2;
        Some(format!("-{}", letter as char))
    }

    fn binary_operator(&mut self) -> Option<&'static str> {
        const OPERATORS: [&str; 15] = [
            "=~", "==", "!=", "=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
        ];
        let found = OPERATORS.into_iter().find(|op| {
            self.starts_with(op) && (!op.starts_with('-') || matches!(self.peek_at(3), Some(b' ' | b'\t' | b'\n')))
        })?;
        self.pos += found.len();
        Some(found)
    }
}
