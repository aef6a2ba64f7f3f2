//! Words: quoting, expansions, here-document text, arithmetic text and brace expansion's input.

use std::sync::Arc;

use super::ast::{Part, PartKind, Pos, Word};
use super::parser::{IssueKind, Parser};

/// Where a word stands: it decides what ends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// An argument, a redirection target, an element of an array.
    Command,
    /// The right side of `name=`.
    Assignment,
    /// A `case` pattern.
    Pattern,
    /// An operand of `[[ ]]`.
    Test,
    /// The right side of `=~`.
    Regex,
    /// The word of `${x:-word}`; true inside double quotes.
    Brace(bool),
    /// The pattern of `${x/pattern/…}`: also ends at `/`.
    BracePattern(bool),
    /// The offset of `${x:offset:length}`: also ends at `:`.
    BraceOffset(bool),
    /// Everything up to a known byte (subscripts).
    Until(usize),
}

/// First character of the marker that stands for an unknown piece of text in `eval`.
pub(crate) const HOLE: char = '\u{E000}';
/// Last character of that marker.
pub(crate) const HOLE_END: char = '\u{E001}';

/// Collects parts, splitting literals by line so that each keeps its own place.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) parts: Vec<Part>,
    pub(super) buffer: String,
    pub(super) start: usize,
    pub(super) quoted: bool,
}

impl Parts {
    pub(super) fn text(&mut self, parser: &Parser<'_>, text: &str, quoted: bool, at: usize) {
        if self.quoted != quoted || self.buffer.ends_with('\n') {
            self.flush(parser);
        }
        if self.buffer.is_empty() {
            self.start = at;
            self.quoted = quoted;
        }
        self.buffer.push_str(text);
    }

    pub(super) fn flush(&mut self, parser: &Parser<'_>) {
        if !self.buffer.is_empty() {
            let at = parser.pos_at(self.start);
            let kind = PartKind::Lit(self.buffer.as_str().into());
            self.parts.push(Part {
                at,
                quoted: self.quoted,
                kind,
            });
            self.buffer.clear();
        }
    }

    pub(super) fn push(&mut self, parser: &Parser<'_>, at: Pos, quoted: bool, kind: PartKind) {
        self.flush(parser);
        self.parts.push(Part { at, quoted, kind });
    }

    /// An empty quoted string still makes a word.
    pub(super) fn empty(&mut self, parser: &Parser<'_>, at: Pos) {
        self.push(parser, at, true, PartKind::Lit("".into()));
    }
}

impl Parser<'_> {
    /// A word after brace expansion: usually one.
    pub(super) fn words(&mut self, context: Context) -> Option<impl Iterator<Item = Word> + use<>> {
        let word = self.word(context)?;
        let (one, more) = if super::brace::may_expand(&word) {
            (None, super::brace::expand(word))
        } else {
            (Some(word), Vec::new())
        };
        Some(one.into_iter().chain(more))
    }

    pub(super) fn word(&mut self, context: Context) -> Option<Word> {
        let start = self.pos;
        // Most calls find that no word begins here.
        if self
            .peek()
            .is_none_or(|byte| self.ends(context, byte, 0) && byte != b'(')
        {
            return None;
        }
        let at = self.here();
        // Most words have one part: they are collected elsewhere, so that a word takes no more room than it needs.
        let mut parts = std::mem::take(&mut self.spare);
        self.scan(context, &mut parts);
        parts.flush(self);
        let word = Word {
            at,
            parts: parts.parts.drain(..).collect(),
        };
        self.spare = parts;
        (self.pos > start).then_some(word)
    }

    pub(super) fn word_until(&mut self, end: usize) -> Word {
        self.word(Context::Until(end)).unwrap_or(Word {
            at: self.here(),
            parts: Vec::new(),
        })
    }

    fn ends(&self, context: Context, byte: u8, parens: usize) -> bool {
        match context {
            Context::Command | Context::Assignment => {
                matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')')
                    || (matches!(byte, b'<' | b'>') && self.peek_at(1) != Some(b'('))
            }
            Context::Pattern => parens == 0 && matches!(byte, b' ' | b'\t' | b'\n' | b'|' | b')' | b';' | b'&' | b'('),
            Context::Test => {
                parens == 0
                    && matches!(
                        byte,
                        b' ' | b'\t' | b'\n' | b'|' | b'&' | b'(' | b')' | b';' | b'<' | b'>'
                    )
            }
            Context::Regex => parens == 0 && matches!(byte, b' ' | b'\t' | b'\n' | b')'),
            Context::Brace(_) => byte == b'}',
            Context::BracePattern(_) => matches!(byte, b'}' | b'/'),
            Context::BraceOffset(_) => matches!(byte, b'}') || (byte == b':' && parens == 0),
            Context::Until(end) => self.pos >= end,
        }
    }

    fn scan(&mut self, context: Context, parts: &mut Parts) {
        if !self.enter() {
            return;
        }
        let start = self.pos;
        let inside_quotes = matches!(
            context,
            Context::Brace(true) | Context::BracePattern(true) | Context::BraceOffset(true)
        );
        let in_brace = matches!(
            context,
            Context::Brace(_) | Context::BracePattern(_) | Context::BraceOffset(_)
        );
        let mut parens = 0usize;
        while let Some(byte) = self.peek() {
            if self.fatal {
                break;
            }
            let extglob_opens = byte == b'('
                && parens == 0
                && matches!(context, Context::Pattern | Context::Test)
                && self.pos > start
                && matches!(self.bytes[self.pos - 1], b'@' | b'?' | b'*' | b'+' | b'!');
            if self.ends(context, byte, parens) && !extglob_opens && !(context == Context::Regex && byte == b'(') {
                break;
            }
            match byte {
                b'(' if matches!(context, Context::Pattern | Context::Test | Context::Regex)
                    || (in_brace && context == Context::BraceOffset(inside_quotes)) =>
                {
                    parens += 1;
                    self.plain(parts, inside_quotes);
                }
                b')' if parens > 0 => {
                    parens -= 1;
                    self.plain(parts, inside_quotes);
                }
                b'\\' => self.escape(parts, inside_quotes, in_brace),
                b'\'' if !inside_quotes => self.single_quoted(parts),
                b'"' => self.double_quoted(parts),
                b'$' => self.dollar(parts, inside_quotes),
                b'`' => self.backquoted(parts, inside_quotes),
                b'<' | b'>'
                    if self.peek_at(1) == Some(b'(') && matches!(context, Context::Command | Context::Assignment) =>
                {
                    self.process_substitution(parts, byte == b'<');
                }
                b'~' if self.pos == start && matches!(context, Context::Command | Context::Assignment) => {
                    self.tilde(parts);
                }
                0xEE if self.holes > 0 && self.hole(parts, inside_quotes) => {}
                _ => self.plain(parts, inside_quotes),
            }
        }
        self.leave();
    }

    /// A run of plain characters: one byte that means something here, or all up to the next that might.
    fn plain(&mut self, parts: &mut Parts, quoted: bool) {
        let start = self.pos;
        self.bump_char();
        if self.bytes[start] != b'\n' {
            while let Some(b) = self.peek() {
                if b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b'/' | b'=' | b',' | b'+') {
                    // `/`, `:` and `+` may end a word of a brace expansion or open a pattern list.
                    if matches!(b, b'/' | b'+') {
                        break;
                    }
                    self.pos += 1;
                } else {
                    break;
                }
            }
        }
        let text = &self.text[start..self.pos];
        parts.text(self, text, quoted, start);
    }

    fn escape(&mut self, parts: &mut Parts, inside_quotes: bool, in_brace: bool) {
        let start = self.pos;
        match self.peek_at(1) {
            None => {
                self.pos += 1;
                parts.text(self, "\\", true, start);
            }
            Some(b'\n') => self.pos += 2,
            Some(next)
                if inside_quotes && !matches!(next, b'$' | b'`' | b'"' | b'\\') && !(in_brace && next == b'}') =>
            {
                self.pos += 1;
                parts.text(self, "\\", true, start);
            }
            Some(_) => {
                self.pos += 1;
                let from = self.pos;
                self.bump_char();
                let text = &self.text[from..self.pos];
                parts.text(self, text, true, start);
            }
        }
    }

    fn single_quoted(&mut self, parts: &mut Parts) {
        let (start, at) = (self.pos, self.here());
        self.pos += 1;
        let from = self.pos;
        let end = self.bytes[from..].iter().position(|&b| b == b'\'');
        let close = end.map_or(self.bytes.len(), |offset| from + offset);
        if end.is_none() {
            self.issue(IssueKind::Unterminated, at, "a single quote without its end".into());
        }
        if close == from {
            parts.empty(self, at);
        }
        let body = &self.text[from..close];
        if self.holes > 0 && body.contains(HOLE) {
            self.literal_with_holes(parts, from, close);
        } else {
            let mut offset = from;
            for line in body.split_inclusive('\n') {
                parts.text(self, line, true, if offset == from { start } else { offset });
                offset += line.len();
            }
        }
        self.pos = (close + 1).min(self.bytes.len());
    }

    fn literal_with_holes(&mut self, parts: &mut Parts, from: usize, to: usize) {
        self.pos = from;
        while self.pos < to {
            if !self.hole(parts, true) {
                let start = self.pos;
                self.bump_char();
                let text = &self.text[start..self.pos];
                parts.text(self, text, true, start);
            }
        }
    }

    fn double_quoted(&mut self, parts: &mut Parts) {
        let at = self.here();
        let start = self.pos;
        self.pos += 1;
        if self.peek() == Some(b'"') {
            self.pos += 1;
            parts.empty(self, at);
            return;
        }
        if !self.enter() {
            return;
        }
        loop {
            match self.peek() {
                None => {
                    self.issue(IssueKind::Unterminated, at, "a double quote without its end".into());
                    break;
                }
                Some(b'"') => {
                    self.pos += 1;
                    break;
                }
                Some(_) if self.fatal => break,
                Some(_) => self.quoted_piece(parts, true),
            }
        }
        let _ = start;
        self.leave();
    }

    /// One piece of text inside double quotes or a here-document.
    pub(super) fn quoted_piece(&mut self, parts: &mut Parts, quotes_end: bool) {
        let start = self.pos;
        match self.peek() {
            Some(b'\\') => match self.peek_at(1) {
                Some(b'\n') => self.pos += 2,
                Some(next) if matches!(next, b'$' | b'`' | b'\\') || (next == b'"' && quotes_end) => {
                    self.pos += 2;
                    let text = &self.text[start + 1..self.pos];
                    parts.text(self, text, true, start);
                }
                _ => {
                    self.pos += 1;
                    parts.text(self, "\\", true, start);
                }
            },
            Some(b'$') => self.dollar(parts, true),
            Some(b'`') => self.backquoted(parts, true),
            Some(0xEE) if self.holes > 0 && self.hole(parts, true) => {}
            Some(b'\n') => {
                self.pos += 1;
                parts.text(self, "\n", true, start);
            }
            Some(_) => {
                self.bump_char();
                while self
                    .peek()
                    .is_some_and(|b| !matches!(b, b'\\' | b'$' | b'`' | b'"' | b'\n' | 0xEE))
                {
                    self.pos += 1;
                }
                while !self.text.is_char_boundary(self.pos) {
                    self.pos += 1;
                }
                let text = &self.text[start..self.pos];
                parts.text(self, text, true, start);
            }
            None => {}
        }
    }

    /// The text of a here-document between the cursor and `end`.
    pub(super) fn heredoc_text(&mut self, end: usize, quoted: bool, strip_tabs: bool) -> Word {
        let at = self.here();
        let mut parts = Parts::default();
        let mut line_start = true;
        while self.pos < end && !self.fatal {
            if line_start && strip_tabs {
                while self.pos < end && self.peek() == Some(b'\t') {
                    self.pos += 1;
                }
                if self.pos >= end {
                    break;
                }
            }
            line_start = self.peek() == Some(b'\n');
            if quoted {
                let start = self.pos;
                let stop = self.bytes[start..end]
                    .iter()
                    .position(|&b| b == b'\n')
                    .map_or(end, |o| start + o + 1);
                self.pos = stop;
                line_start = true;
                let text = &self.text[start..stop];
                parts.text(self, text, true, start);
            } else {
                self.quoted_piece(&mut parts, false);
            }
        }
        parts.flush(self);
        Word { at, parts: parts.parts }
    }

    fn dollar(&mut self, parts: &mut Parts, quoted: bool) {
        let (start, at) = (self.pos, self.here());
        match self.peek_at(1) {
            Some(b'(') => {
                if self.peek_at(2) == Some(b'(')
                    && let Some(end) = self.arith_end(self.pos + 3)
                {
                    self.pos += 3;
                    let word = self.arith_until(end);
                    self.pos = end + 2;
                    let text = self.display(start);
                    parts.push(self, at, quoted, PartKind::Arith(Arc::new(word), text));
                    return;
                }
                self.pos += 2;
                let body = self.list();
                if !self.eat(")") && !self.fatal {
                    self.issue(IssueKind::Unterminated, at, "`$(` without its `)`".into());
                }
                let text = self.display(start);
                parts.push(self, at, quoted, PartKind::Command(Arc::new(body), text));
            }
            Some(b'{') => {
                let param = self.braced_param(quoted);
                parts.push(self, at, quoted, PartKind::Param(Arc::new(param)));
            }
            Some(b'\'') if !quoted => self.ansi_quoted(parts),
            Some(b'"') if !quoted => {
                self.pos += 1;
                self.double_quoted(parts);
            }
            Some(next) => match self.plain_param(next) {
                Some(param) => parts.push(self, at, quoted, PartKind::Param(Arc::new(param))),
                None => {
                    self.pos += 1;
                    parts.text(self, "$", quoted, start);
                }
            },
            None => {
                self.pos += 1;
                parts.text(self, "$", quoted, start);
            }
        }
    }

    /// The source text from `start` to the cursor, shortened for display.
    pub(super) fn display(&self, start: usize) -> Arc<str> {
        let text = &self.text[start..self.pos.max(start)];
        let line = text.lines().next().unwrap_or("");
        let short = line.char_indices().nth(120).map_or(line, |(end, _)| &line[..end]);
        if short.len() < text.len() {
            format!("{short}…").into()
        } else {
            short.into()
        }
    }

    fn process_substitution(&mut self, parts: &mut Parts, input: bool) {
        let (start, at) = (self.pos, self.here());
        self.pos += 2;
        let body = self.list();
        if !self.eat(")") && !self.fatal {
            self.issue(
                IssueKind::Unterminated,
                at,
                "a process substitution without its `)`".into(),
            );
        }
        let text = self.display(start);
        parts.push(self, at, false, PartKind::Process(Arc::new(body), input, text));
    }

    fn tilde(&mut self, parts: &mut Parts) {
        let at = self.here();
        self.pos += 1;
        let start = self.pos;
        while self
            .peek()
            .is_some_and(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'+'))
        {
            self.pos += 1;
        }
        let user = &self.text[start..self.pos];
        parts.push(self, at, false, PartKind::Tilde(user.into()));
    }

    /// The marker of an unknown piece, if one stands here.
    fn hole(&mut self, parts: &mut Parts, quoted: bool) -> bool {
        let at = self.here();
        let rest = &self.text[self.pos..];
        let Some(after) = rest.strip_prefix(HOLE) else {
            return false;
        };
        let Some(end) = after.find(HOLE_END) else { return false };
        let Ok(index) = after[..end].parse::<usize>() else {
            return false;
        };
        if index >= self.holes {
            return false;
        }
        self.pos += HOLE.len_utf8() + end + HOLE_END.len_utf8();
        parts.push(self, at, quoted, PartKind::Hole(index));
        true
    }
}
