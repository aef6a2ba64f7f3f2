//! Simple commands: assignments, words, redirections and here-documents.

use std::sync::Arc;

use super::ast::{Arg, ArrayItem, Assign, AssignValue, HereDoc, Pos, Redir, RedirectOp, Simple, Stmt, StmtKind, Word};
use super::parser::{IssueKind, Parser, PendingHereDoc};
use super::word::Context;

/// Commands whose arguments may be assignments with arrays.
const DECLARATIONS: [&str; 6] = ["export", "local", "declare", "typeset", "readonly", "alias"];

impl Parser<'_> {
    pub(super) fn simple_or_function(&mut self, at: Pos) -> Option<Stmt> {
        let mut simple = Simple::default();
        let mut declares = false;
        let start = self.pos;
        let mut end_line = at.line;
        loop {
            self.skip_blanks();
            if let Some(redir) = self.redirection() {
                simple.redirs.push(redir);
                end_line = self.here().line;
                continue;
            }
            if (simple.words.is_empty() || declares)
                && let Some(assign) = self.assignment()
            {
                if simple.words.is_empty() {
                    simple.assigns.push(assign);
                } else {
                    simple.words.push(Arg::Assign(Box::new(assign)));
                }
                end_line = self.here().line;
                continue;
            }
            let Some(words) = self.words(Context::Command) else {
                break;
            };
            for word in words {
                if simple.words.is_empty() {
                    let name = word.literal_text().filter(|_| !word.any_quoted());
                    declares = name.as_deref().is_some_and(|n| DECLARATIONS.contains(&n));
                    if let Some(name) = name
                        && simple.assigns.is_empty()
                        && simple.redirs.is_empty()
                        && self.eat_function_brackets()
                    {
                        let name = Arc::from(&*name);
                        return self.function_body(at, name);
                    }
                }
                if simple.words.len() < self.limits.words {
                    simple.words.push(Arg::Word(word));
                } else if simple.words.len() == self.limits.words {
                    let message = format!("a command of more than {} words", self.limits.words);
                    self.issue(IssueKind::TooLarge, at, message);
                    self.fatal = true;
                    return None;
                }
            }
            end_line = self.here().line;
        }
        if self.pos == start || (simple.assigns.is_empty() && simple.words.is_empty() && simple.redirs.is_empty()) {
            return None;
        }
        simple.words.shrink_to_fit();
        simple.assigns.shrink_to_fit();
        simple.redirs.shrink_to_fit();
        Some(Stmt {
            at,
            end_line,
            kind: StmtKind::Simple(simple),
            background: false,
        })
    }

    fn eat_function_brackets(&mut self) -> bool {
        let start = self.pos;
        self.skip_blanks();
        if self.eat("(") {
            self.skip_blanks();
            if self.eat(")") {
                return true;
            }
        }
        self.pos = start;
        false
    }

    /// A name at the cursor, taken.
    pub(super) fn name(&mut self) -> Option<&str> {
        let start = self.pos;
        while let Some(b) = self.peek() {
            if b == b'_' || b.is_ascii_alphabetic() || (b.is_ascii_digit() && self.pos > start) {
                self.pos += 1;
            } else {
                break;
            }
        }
        (self.pos > start).then(|| &self.text[start..self.pos])
    }

    /// `name=…`, `name+=…`, `name[i]=…`, `name=( … )`; the cursor stays where it was if none is here.
    fn assignment(&mut self) -> Option<Assign> {
        let (start, at) = (self.pos, self.here());
        let found = self.assignment_inner(at);
        if found.is_none() {
            self.pos = start;
        }
        found
    }

    fn assignment_inner(&mut self, at: Pos) -> Option<Assign> {
        let name: Arc<str> = self.name()?.into();
        let mut index = None;
        if self.peek() == Some(b'[') {
            let close = self.subscript_end()?;
            self.pos += 1;
            index = Some(self.word_until(close));
            self.pos = close + 1;
        }
        let append = self.eat("+=");
        if !append && !self.eat("=") {
            return None;
        }
        let value = if self.peek() == Some(b'(') && index.is_none() {
            self.pos += 1;
            AssignValue::Array(self.array_items(at))
        } else {
            AssignValue::Scalar(self.word(Context::Assignment).unwrap_or(Word {
                at: self.here(),
                parts: Vec::new(),
            }))
        };
        Some(Assign {
            at,
            name,
            index,
            append,
            value,
        })
    }

    /// Byte of the `]` that closes a subscript in front of `=` or `+=`, on the same line.
    fn subscript_end(&self) -> Option<usize> {
        let mut depth = 0usize;
        for (offset, &b) in self.bytes[self.pos..].iter().enumerate().take(512) {
            match b {
                b'[' => depth += 1,
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        let end = self.pos + offset;
                        let rest = &self.bytes[end + 1..];
                        return (rest.starts_with(b"=") || rest.starts_with(b"+=")).then_some(end);
                    }
                }
                b'\n' | b' ' if depth == 1 && b == b'\n' => return None,
                _ => {}
            }
        }
        None
    }

    fn array_items(&mut self, at: Pos) -> Vec<ArrayItem> {
        let mut items: Vec<ArrayItem> = Vec::new();
        if !self.enter() {
            return items;
        }
        loop {
            self.skip_newlines();
            if self.eat(")") {
                break;
            }
            if self.peek().is_none() || self.fatal {
                self.issue(IssueKind::Unterminated, at, "an array without its `)`".into());
                break;
            }
            let before = self.pos;
            if self.peek() == Some(b'[')
                && let Some(close) = self.subscript_end()
            {
                self.pos += 1;
                let key = self.word_until(close);
                self.pos = close + 1;
                self.eat("+");
                self.eat("=");
                let value = self.word(Context::Assignment).unwrap_or(Word {
                    at: self.here(),
                    parts: Vec::new(),
                });
                items.push(ArrayItem { key: Some(key), value });
            } else if let Some(words) = self.words(Context::Command) {
                items.extend(words.map(|value| ArrayItem { key: None, value }));
            }
            if items.len() > self.limits.words {
                self.issue(
                    IssueKind::TooLarge,
                    at,
                    format!("an array of more than {} words", self.limits.words),
                );
                self.fatal = true;
                break;
            }
            if self.pos == before {
                let unexpected = self.here();
                self.issue(IssueKind::Unexpected, unexpected, "not a word of an array".into());
                self.bump_char();
            }
        }
        self.leave();
        items.shrink_to_fit();
        items
    }

    /// A redirection, if one starts here.
    pub(super) fn redirection(&mut self) -> Option<Redir> {
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&' | b'{' | b'0'..=b'9')) {
            return None;
        }
        let (start, at) = (self.pos, self.here());
        let mut fd = None;
        let digits = self.bytes[self.pos..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 && digits < 4 && matches!(self.peek_at(digits), Some(b'<' | b'>')) {
            fd = self.text[self.pos..self.pos + digits].parse().ok();
            self.pos += digits;
        } else if self.peek() == Some(b'{') {
            // `{name}>file` gives a descriptor to a variable; the target is what matters here.
            let end = self.bytes[self.pos..].iter().take(64).position(|&b| b == b'}')?;
            let inside = &self.bytes[self.pos + 1..self.pos + end];
            let named = !inside.is_empty() && inside.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_');
            if !named || !matches!(self.peek_at(end + 1), Some(b'<' | b'>')) {
                return None;
            }
            self.pos += end + 1;
            fd = Some(10);
        }
        let op = [
            ("&>>", RedirectOp::AppendBoth),
            ("&>", RedirectOp::WriteBoth),
            ("<<<", RedirectOp::HereString),
            ("<<", RedirectOp::HereDoc),
            ("<>", RedirectOp::ReadWrite),
            ("<&", RedirectOp::DupIn),
            (">>", RedirectOp::Append),
            (">|", RedirectOp::Clobber),
            (">&", RedirectOp::DupOut),
        ]
        .into_iter()
        .find(|(text, _)| self.starts_with(text))
        .or_else(|| match self.peek() {
            // `<(` and `>(` are words.
            Some(b'<') if self.peek_at(1) != Some(b'(') => Some(("<", RedirectOp::Read)),
            Some(b'>') if self.peek_at(1) != Some(b'(') => Some((">", RedirectOp::Write)),
            _ => None,
        });
        let Some((text, op)) = op else {
            self.pos = start;
            return None;
        };
        self.pos += text.len();
        let strip_tabs = op == RedirectOp::HereDoc && self.eat("-");
        self.skip_blanks();
        let target = self.word(Context::Command).unwrap_or_else(|| {
            self.issue(IssueKind::Unexpected, at, format!("nothing follows `{text}`"));
            Word { at, parts: Vec::new() }
        });
        let mut heredoc = None;
        if op == RedirectOp::HereDoc {
            let index = self.heredocs.len();
            self.heredocs.push(None);
            let delimiter = self.delimiter(&target);
            self.pending.push(PendingHereDoc {
                index,
                delimiter,
                quoted: target.any_quoted(),
                strip_tabs,
            });
            heredoc = Some(index);
        }
        Some(Redir {
            at,
            fd,
            op,
            target,
            heredoc,
        })
    }

    fn delimiter(&self, target: &Word) -> String {
        target.literal().unwrap_or_default()
    }

    /// Bodies of the here-documents announced on the line just ended.
    pub(super) fn read_heredocs(&mut self) {
        for doc in std::mem::take(&mut self.pending) {
            let first = self.pos;
            let first_line = self.here().line;
            let mut end = None;
            let mut line_start = self.pos;
            while line_start < self.bytes.len() {
                let line_end = self.bytes[line_start..]
                    .iter()
                    .position(|&b| b == b'\n')
                    .map_or(self.bytes.len(), |offset| line_start + offset);
                let mut line = &self.text[line_start..line_end];
                if doc.strip_tabs {
                    line = line.trim_start_matches('\t');
                }
                if line.strip_suffix('\r').unwrap_or(line) == doc.delimiter {
                    end = Some((line_start, line_end));
                    break;
                }
                line_start = line_end + 1;
            }
            let (body_end, next) = match end {
                Some((body_end, line_end)) => (body_end, (line_end + 1).min(self.bytes.len())),
                None => {
                    let at = self.pos_at(first.min(self.bytes.len()));
                    let message = format!("here-document without its `{}`", doc.delimiter);
                    self.issue(IssueKind::Unterminated, at, message);
                    (self.bytes.len(), self.bytes.len())
                }
            };
            let body_end = body_end.max(first.min(self.bytes.len()));
            let first = first.min(self.bytes.len());
            let raw: String = if doc.strip_tabs {
                self.text[first..body_end]
                    .split_inclusive('\n')
                    .map(|l| l.trim_start_matches('\t'))
                    .collect()
            } else {
                self.text[first..body_end].to_string()
            };
            let last_line = self.pos_at(body_end).line;
            self.pos = first;
            let body = self.heredoc_text(body_end, doc.quoted, doc.strip_tabs);
            self.pos = next;
            if let Some(slot) = self.heredocs.get_mut(doc.index) {
                *slot = Some(HereDoc {
                    body,
                    raw: raw.into(),
                    quoted: doc.quoted,
                    first_line,
                    last_line,
                });
            }
        }
    }
}
