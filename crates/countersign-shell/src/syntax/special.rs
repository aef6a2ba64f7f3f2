//! Words inside `$((…))`, `$'…'` and back-quotes.

use std::sync::Arc;

use super::ast::{Block, PartKind, Word};
use super::parser::{IssueKind, Parser};
use super::word::Parts;

impl Parser<'_> {
    /// Byte of the `))` that closes an arithmetic text, if that is what closes first. Linear, not recursive.
    pub(super) fn arith_end(&self, from: usize) -> Option<usize> {
        let mut depth = 0usize;
        let mut at = from;
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'\\' => at += 1,
                b'(' => depth += 1,
                b')' if depth > 0 => depth -= 1,
                b')' => return (self.bytes.get(at + 1) == Some(&b')')).then_some(at),
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Arithmetic text up to `;` or `))` at bracket depth zero; the closing text is taken.
    pub(super) fn arith_text(&mut self, close: &str) -> Option<Word> {
        let end = if close == ";" {
            let limit = self.arith_end(self.pos)?;
            let mut depth = 0usize;
            let found = self.bytes[self.pos..limit].iter().position(|&b| {
                match b {
                    b'(' => depth += 1,
                    b')' => depth = depth.saturating_sub(1),
                    _ => {}
                }
                b == b';' && depth == 0
            });
            self.pos + found?
        } else {
            self.arith_end(self.pos)?
        };
        let word = self.arith_until(end);
        self.pos = end + close.len();
        Some(word)
    }

    pub(super) fn arith_until(&mut self, end: usize) -> Word {
        let at = self.here();
        let mut parts = Parts::default();
        if self.enter() {
            while self.pos < end && !self.fatal {
                match self.peek() {
                    Some(b'"') => self.pos += 1,
                    Some(b'$' | b'`' | b'\\' | b'\n' | 0xEE) => self.quoted_piece(&mut parts, false),
                    _ => {
                        let start = self.pos;
                        let plain = |b: &u8| !matches!(b, b'"' | b'$' | b'`' | b'\\' | b'\n' | 0xEE);
                        let run = self.bytes[start..end].iter().take_while(|b| plain(b)).count();
                        self.pos = start + run.max(1);
                        while !self.text.is_char_boundary(self.pos) {
                            self.pos += 1;
                        }
                        let text = &self.text[start..self.pos];
                        parts.text(self, text, true, start);
                    }
                }
            }
            self.leave();
        }
        self.pos = end.min(self.bytes.len());
        parts.flush(self);
        Word { at, parts: parts.parts }
    }

    pub(super) fn ansi_quoted(&mut self, parts: &mut Parts) {
        let (start, at) = (self.pos, self.here());
        self.pos += 2;
        let mut out = String::new();
        loop {
            match self.peek() {
                None => {
                    self.issue(IssueKind::Unterminated, at, "`$'` without its end".into());
                    break;
                }
                Some(b'\'') => {
                    self.pos += 1;
                    break;
                }
                Some(b'\\') => {
                    self.pos += 1;
                    let rest = &self.text[self.pos..];
                    let (decoded, used) = crate::text::escape(rest, true);
                    out.push_str(&decoded);
                    self.pos += used;
                }
                Some(_) => {
                    let from = self.pos;
                    self.bump_char();
                    out.push_str(&self.text[from..self.pos]);
                }
            }
        }
        if out.is_empty() {
            parts.empty(self, at);
        }
        for line in out.split_inclusive('\n') {
            parts.text(self, line, true, start);
        }
    }

    pub(super) fn backquoted(&mut self, parts: &mut Parts, quoted: bool) {
        let (start, at) = (self.pos, self.here());
        self.pos += 1;
        let inner_at = self.here();
        let mut inner = String::new();
        let mut closed = false;
        while let Some(byte) = self.peek() {
            match byte {
                b'`' => {
                    self.pos += 1;
                    closed = true;
                    break;
                }
                b'\\' if matches!(self.peek_at(1), Some(b'`' | b'\\' | b'$')) => {
                    self.pos += 1;
                    inner.push(self.bytes[self.pos] as char);
                    self.pos += 1;
                }
                _ => {
                    let from = self.pos;
                    self.bump_char();
                    inner.push_str(&self.text[from..self.pos]);
                }
            }
        }
        if !closed {
            self.issue(IssueKind::Unterminated, at, "a backquote without its end".into());
        }
        let text = self.display(start);
        let mut body = Block::default();
        if self.enter() {
            let mut sub = Parser::new(&inner, &self.limits, inner_at, self.holes);
            sub.depth = self.depth;
            sub.heredocs = std::mem::take(&mut self.heredocs);
            body = sub.list();
            if !sub.pending.is_empty() {
                sub.read_heredocs();
            }
            let (issues, fatal) = (std::mem::take(&mut sub.issues), sub.fatal);
            self.heredocs = std::mem::take(&mut sub.heredocs);
            for issue in issues {
                self.issue(issue.kind, issue.at, issue.message);
            }
            self.fatal |= fatal;
            self.leave();
        }
        parts.push(self, at, quoted, PartKind::Command(Arc::new(body), text));
    }
}
