//! Compound commands: `if`, loops, `case`, groups, functions, `(( ))` and `[[ ]]`.

use std::sync::Arc;

use super::ast::{Block, CaseEnd, CaseItem, Pos, Redir, Stmt, StmtKind, Word};
use super::parser::{IssueKind, Parser};
use super::word::Context;

impl Parser<'_> {
    /// One command: compound, function or simple, with its redirections. None when none starts here.
    pub(super) fn command(&mut self) -> Option<Stmt> {
        if !self.enter() {
            return None;
        }
        let stmt = self.command_inner();
        self.leave();
        stmt
    }

    fn command_inner(&mut self) -> Option<Stmt> {
        let at = self.here();
        let kind = match self.plain_word() {
            "if" => self.if_command(at),
            "while" => self.while_command(at, false),
            "until" => self.while_command(at, true),
            "for" | "select" => self.for_command(at),
            "case" => self.case_command(at),
            "{" => {
                self.pos += 1;
                let body = self.list();
                self.expect("}", at, "{");
                StmtKind::Group(body)
            }
            "[[" => {
                self.pos += 2;
                StmtKind::Test(Box::new(self.cond(at)))
            }
            "function" => return self.function_keyword(at),
            _ if self.starts_with("((") => match self.arith_command() {
                Some(kind) => kind,
                None => self.subshell(at),
            },
            _ if self.peek() == Some(b'(') => self.subshell(at),
            _ => return self.simple_or_function(at),
        };
        Some(self.with_redirections(at, kind))
    }

    fn with_redirections(&mut self, at: Pos, kind: StmtKind) -> Stmt {
        let mut redirs: Vec<Redir> = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirection() {
                Some(redir) => redirs.push(redir),
                None => break,
            }
        }
        let end_line = self.here().line;
        let stmt = Stmt {
            at,
            end_line,
            kind,
            background: false,
        };
        if redirs.is_empty() {
            stmt
        } else {
            Stmt {
                at,
                end_line,
                kind: StmtKind::Redirected(Box::new(stmt), redirs),
                background: false,
            }
        }
    }

    /// A closing word or bracket; its absence is reported and reading goes on.
    fn expect(&mut self, word: &str, opened: Pos, by: &str) -> bool {
        self.skip_blanks();
        let found = if word == ")" {
            self.eat(")")
        } else {
            self.eat_reserved(word)
        };
        if !found && !self.fatal {
            let message = format!("`{by}` without its `{word}`");
            self.issue(IssueKind::Unterminated, opened, message);
        }
        found
    }

    fn subshell(&mut self, at: Pos) -> StmtKind {
        self.pos += 1;
        let body = self.list();
        self.expect(")", at, "(");
        StmtKind::Subshell(body)
    }

    fn if_command(&mut self, at: Pos) -> StmtKind {
        self.pos += 2;
        let mut arms = Vec::new();
        let mut otherwise = None;
        let cond = self.list();
        self.expect("then", at, "if");
        arms.push((cond, self.list()));
        loop {
            if self.fatal {
                break;
            }
            self.skip_blanks();
            if self.eat_reserved("elif") {
                let cond = self.list();
                self.expect("then", at, "elif");
                arms.push((cond, self.list()));
            } else if self.eat_reserved("else") {
                otherwise = Some(self.list());
            } else {
                self.expect("fi", at, "if");
                break;
            }
        }
        arms.shrink_to_fit();
        StmtKind::If { arms, otherwise }
    }

    fn while_command(&mut self, at: Pos, until: bool) -> StmtKind {
        self.pos += 5;
        let cond = self.list();
        let body = self.do_group(at);
        StmtKind::While { until, cond, body }
    }

    fn do_group(&mut self, at: Pos) -> Block {
        self.skip_newlines();
        if self.eat_reserved("{") {
            let body = self.list();
            self.expect("}", at, "{");
            return body;
        }
        if !self.expect("do", at, "loop") {
            return Block::default();
        }
        let body = self.list();
        self.expect("done", at, "do");
        body
    }

    fn for_command(&mut self, at: Pos) -> StmtKind {
        self.pos += self.plain_word().len();
        self.skip_blanks();
        if self.starts_with("((") {
            return self.c_style_for(at);
        }
        let name: Arc<str> = self.name().unwrap_or_default().into();
        if name.is_empty() {
            self.issue(IssueKind::Unexpected, at, "`for` without a name".into());
        }
        self.skip_newlines();
        let mut words = None;
        if self.eat_reserved("in") {
            let mut list = Vec::new();
            loop {
                self.skip_blanks();
                match self.words(Context::Command) {
                    Some(more) if list.len() < self.limits.words => list.extend(more),
                    Some(_) => {}
                    None => break,
                }
            }
            words = Some(list);
        }
        self.skip_newlines();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        let body = self.do_group(at);
        StmtKind::For { name, words, body }
    }

    fn c_style_for(&mut self, at: Pos) -> StmtKind {
        self.pos += 2;
        let mut parts = Vec::new();
        for end in [";", ";", "))"] {
            parts.push(self.arith_text(end).unwrap_or_else(|| {
                self.issue(IssueKind::Unterminated, at, "`for ((` without its `))`".into());
                Word::default()
            }));
        }
        self.skip_newlines();
        if self.peek() == Some(b';') {
            self.pos += 1;
        }
        let body = self.do_group(at);
        let mut parts = parts.into_iter();
        let mut next = || parts.next().unwrap_or_default();
        StmtKind::CFor {
            head: Box::new([next(), next(), next()]),
            body,
        }
    }

    fn arith_command(&mut self) -> Option<StmtKind> {
        let start = self.pos;
        self.pos += 2;
        if let Some(word) = self.arith_text("))") {
            return Some(StmtKind::Arith(word));
        }
        // `((` may also open two subshells. Nothing was read yet.
        self.pos = start;
        None
    }

    fn case_command(&mut self, at: Pos) -> StmtKind {
        self.pos += 4;
        self.skip_blanks();
        let subject = self.word(Context::Command).unwrap_or_default();
        self.skip_newlines();
        self.expect("in", at, "case");
        let mut items = Vec::new();
        loop {
            if self.fatal {
                break;
            }
            self.skip_newlines();
            if self.eat_reserved("esac") {
                break;
            }
            if self.peek().is_none() {
                self.issue(IssueKind::Unterminated, at, "`case` without its `esac`".into());
                break;
            }
            let before = self.pos;
            let item_at = self.here();
            self.eat("(");
            let mut patterns = Vec::new();
            loop {
                self.skip_blanks();
                patterns.push(self.word(Context::Pattern).unwrap_or_default());
                self.skip_blanks();
                if self.peek() != Some(b'|') {
                    break;
                }
                self.pos += 1;
            }
            if !self.eat(")") {
                self.issue(
                    IssueKind::Unterminated,
                    item_at,
                    "a `case` pattern without its `)`".into(),
                );
            }
            let body = self.list();
            self.skip_blanks();
            let end = if self.eat(";;&") {
                CaseEnd::TestNext
            } else if self.eat(";;") {
                CaseEnd::Break
            } else if self.eat(";&") {
                CaseEnd::FallThrough
            } else {
                CaseEnd::Break
            };
            patterns.shrink_to_fit();
            items.push(CaseItem { patterns, body, end });
            if self.pos == before {
                let message = "not a `case` pattern".into();
                self.issue(IssueKind::Unexpected, item_at, message);
                self.bump_char();
            }
        }
        items.shrink_to_fit();
        StmtKind::Case { subject, items }
    }

    fn function_keyword(&mut self, at: Pos) -> Option<Stmt> {
        self.pos += "function".len();
        self.skip_blanks();
        let Some(word) = self.word(Context::Command) else {
            self.issue(IssueKind::Unexpected, at, "`function` without a name".into());
            return None;
        };
        let name = word.literal().unwrap_or_default();
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            self.pos += 1;
            self.skip_blanks();
            self.eat(")");
        }
        self.function_body(at, name.into())
    }

    pub(super) fn function_body(&mut self, at: Pos, name: Arc<str>) -> Option<Stmt> {
        self.skip_newlines();
        let Some(body) = self.command() else {
            self.issue(IssueKind::Unterminated, at, format!("function `{name}` without a body"));
            return None;
        };
        let end_line = body.end_line;
        Some(Stmt {
            at,
            end_line,
            kind: StmtKind::Function {
                name,
                body: Arc::new(body),
            },
            background: false,
        })
    }
}
