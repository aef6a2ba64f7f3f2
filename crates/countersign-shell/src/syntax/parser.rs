//! The parser's cursor and the parsed script: positions, issues, bounds, statement lists.

use std::cell::Cell;
use std::sync::Arc;

use serde::Serialize;

use super::ast::{AndOr, Block, HereDoc, Pos, Stmt, StmtKind, Word};
use super::word::Parts;
use crate::limits::Limits;
use crate::value::Value;

/// What could not be read in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IssueKind {
    /// The file is over the size bound; nothing of it was read.
    TooLarge,
    /// Commands or expansions nested deeper than the bound; reading stops there.
    TooDeep,
    /// A word that bash would not accept here; it was skipped.
    Unexpected,
    /// A compound command, quote, expansion or here-document without its end.
    Unterminated,
    /// A form of expansion this reader does not know; its value stays unknown.
    UnknownExpansion,
    /// Not shell text (a zero byte).
    Binary,
}

/// One thing that could not be read, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Kind.
    pub kind: IssueKind,
    /// Where.
    pub at: Pos,
    /// In words, with the text in question.
    pub message: String,
}

/// A parsed script: read once, evaluated any number of times.
#[derive(Debug)]
pub struct Script {
    pub(crate) path: Arc<str>,
    pub(crate) body: Block,
    pub(crate) heredocs: Vec<HereDoc>,
    pub(crate) issues: Vec<Issue>,
    pub(crate) incomplete: bool,
    pub(crate) holes: Vec<Value>,
    pub(crate) uses: std::sync::OnceLock<crate::uses::Uses>,
}

impl Script {
    /// Parse a script. `path` is used for reports only.
    pub fn parse(path: &str, text: &str, limits: &Limits) -> Script {
        Self::parse_with(path, text, limits, Pos { line: 1, col: 1 }, Vec::new())
    }

    pub(crate) fn parse_with(path: &str, text: &str, limits: &Limits, at: Pos, holes: Vec<Value>) -> Script {
        let mut parser = Parser::new(text, limits, at, holes.len());
        let body = if text.len() > limits.file_bytes {
            let message = format!(
                "{} bytes; scripts up to {} bytes are read",
                text.len(),
                limits.file_bytes
            );
            parser.issue(IssueKind::TooLarge, at, message);
            parser.fatal = true;
            Block::default()
        } else {
            if let Some(zero) = text.find('\0') {
                let at = parser.pos_at(zero);
                parser.issue(IssueKind::Binary, at, "a zero byte: not a shell script".into());
            }
            parser.program()
        };
        Script {
            path: path.into(),
            body,
            incomplete: parser.fatal,
            heredocs: parser
                .heredocs
                .into_iter()
                .map(|h| h.unwrap_or_else(HereDoc::missing))
                .collect(),
            issues: parser.issues,
            holes,
            uses: std::sync::OnceLock::new(),
        }
    }

    /// The path the script was parsed under.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What could not be read, in file order of discovery.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    /// True when reading stopped before the end (size or nesting): what follows is not known.
    pub fn incomplete(&self) -> bool {
        self.incomplete
    }
}

impl HereDoc {
    fn missing() -> HereDoc {
        HereDoc {
            body: Word::default(),
            raw: "".into(),
            quoted: true,
            first_line: 0,
            last_line: 0,
        }
    }
}

/// A here-document whose body starts after the next newline.
pub(super) struct PendingHereDoc {
    pub(super) index: usize,
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
}

pub(super) struct Parser<'t> {
    pub(super) text: &'t str,
    pub(super) bytes: &'t [u8],
    pub(super) pos: usize,
    /// Place of the first byte of `text` in the script.
    base: Pos,
    line_starts: Vec<usize>,
    pub(super) depth: usize,
    pub(super) limits: Limits,
    pub(super) issues: Vec<Issue>,
    pub(super) pending: Vec<PendingHereDoc>,
    pub(super) heredocs: Vec<Option<HereDoc>>,
    /// Reading stopped: every loop ends.
    pub(super) fatal: bool,
    pub(super) holes: usize,
    /// Room for the parts of the next word.
    pub(super) spare: Parts,
    /// The line that was asked for last: the next is mostly the same, or near.
    last_line: Cell<usize>,
}

/// Bound on the issues kept: a hostile file must not fill the report.
const MAX_ISSUES: usize = 64;

impl<'t> Parser<'t> {
    pub(super) fn new(text: &'t str, limits: &Limits, base: Pos, holes: usize) -> Self {
        let line_starts = std::iter::once(0).chain(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(i, _)| i + 1),
        );
        Parser {
            text,
            bytes: text.as_bytes(),
            pos: 0,
            base,
            line_starts: line_starts.collect(),
            depth: 0,
            limits: *limits,
            issues: Vec::new(),
            pending: Vec::new(),
            heredocs: Vec::new(),
            fatal: false,
            holes,
            spare: Parts::default(),
            last_line: Cell::new(0),
        }
    }

    pub(super) fn pos_at(&self, byte: usize) -> Pos {
        let begins = |line: usize| self.line_starts.get(line).is_none_or(|start| *start > byte);
        let holds = |line: usize| !begins(line) && begins(line + 1);
        let last = self.last_line.get();
        let line = match [last, last + 1].into_iter().find(|line| holds(*line)) {
            Some(line) => line,
            None => self.line_starts.partition_point(|&s| s <= byte).saturating_sub(1),
        };
        self.last_line.set(line);
        let start = self.line_starts.get(line).copied().unwrap_or(0);
        let col = (byte - start) as u32;
        if line == 0 {
            Pos {
                line: self.base.line,
                col: self.base.col + col,
            }
        } else {
            Pos {
                line: self.base.line + line as u32,
                col: col + 1,
            }
        }
    }

    pub(super) fn here(&self) -> Pos {
        self.pos_at(self.pos)
    }

    pub(super) fn issue(&mut self, kind: IssueKind, at: Pos, message: String) {
        if self.issues.len() < MAX_ISSUES {
            self.issues.push(Issue { kind, at, message });
        }
    }

    /// Enter one level of nesting; false (and reading stops) when too deep.
    pub(super) fn enter(&mut self) -> bool {
        if self.fatal {
            return false;
        }
        if self.depth >= self.limits.nesting {
            let message = format!(
                "nested more than {} deep; the rest of the file is not read",
                self.limits.nesting
            );
            self.issue(IssueKind::TooDeep, self.here(), message);
            self.fatal = true;
            self.pos = self.bytes.len();
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    pub(super) fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.pos + ahead).copied()
    }

    pub(super) fn starts_with(&self, what: &str) -> bool {
        self.bytes[self.pos..].starts_with(what.as_bytes())
    }

    pub(super) fn eat(&mut self, what: &str) -> bool {
        let found = self.starts_with(what);
        if found {
            self.pos += what.len();
        }
        found
    }

    /// Skip one whole character, whatever its length.
    pub(super) fn bump_char(&mut self) {
        self.pos += 1;
        while self.pos < self.bytes.len() && !self.text.is_char_boundary(self.pos) {
            self.pos += 1;
        }
    }

    /// Blanks, continued lines and a comment, if one starts here.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.pos += 1,
                Some(b'\\') if self.peek_at(1) == Some(b'\n') => self.pos += 2,
                Some(b'\\') if self.peek_at(1) == Some(b'\r') && self.peek_at(2) == Some(b'\n') => self.pos += 3,
                Some(b'#') => {
                    while self.peek().is_some_and(|b| b != b'\n') {
                        self.pos += 1;
                    }
                }
                _ => return,
            }
        }
    }

    /// Take a newline and the here-documents that wait for it.
    pub(super) fn newline(&mut self) {
        self.pos += 1;
        if !self.pending.is_empty() {
            self.read_heredocs();
        }
    }

    pub(super) fn skip_newlines(&mut self) {
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'\n') {
                return;
            }
            self.newline();
        }
    }

    /// The unquoted word of plain characters at the cursor, for reserved words.
    pub(super) fn plain_word(&self) -> &'t str {
        let mut end = self.pos;
        while let Some(&b) = self.bytes.get(end) {
            if b.is_ascii_alphabetic() || matches!(b, b'!' | b'{' | b'}' | b'[' | b']') {
                end += 1;
            } else {
                break;
            }
        }
        match self.bytes.get(end) {
            None | Some(b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>') => {
                &self.text[self.pos..end]
            }
            Some(b'\\') if self.bytes.get(end + 1) == Some(&b'\n') => &self.text[self.pos..end],
            _ => "",
        }
    }

    pub(super) fn eat_reserved(&mut self, word: &str) -> bool {
        let found = self.plain_word() == word;
        if found {
            self.pos += word.len();
        }
        found
    }

    fn program(&mut self) -> Block {
        let mut all = Block::default();
        while !self.fatal {
            all.stmts.append(&mut self.list().stmts);
            if self.pos >= self.bytes.len() {
                break;
            }
            // A closing word or bracket without its opening: report it, pass over it, go on.
            let at = self.here();
            let word = self.plain_word();
            let found: String = if word.is_empty() {
                self.text[self.pos..].chars().take(1).collect()
            } else {
                word.chars().take(40).collect()
            };
            if word.is_empty() {
                self.bump_char();
            } else {
                self.pos += word.len();
            }
            self.issue(IssueKind::Unexpected, at, format!("unexpected `{found}`"));
        }
        if !self.pending.is_empty() {
            self.read_heredocs();
        }
        all
    }

    /// Statements up to one of the closing words, a closing bracket, a case end or the end of the text.
    pub(super) fn list(&mut self) -> Block {
        let mut block = Block::default();
        if !self.enter() {
            return block;
        }
        loop {
            self.skip_newlines();
            match self.peek() {
                None | Some(b')') => break,
                Some(b';') if matches!(self.peek_at(1), Some(b';' | b'&')) => break,
                Some(b';') => {
                    self.pos += 1;
                    continue;
                }
                _ => {}
            }
            let word = self.plain_word();
            if matches!(word, "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "}") {
                break;
            }
            let before = self.pos;
            let Some(mut stmt) = self.and_or() else {
                if self.pos == before {
                    break;
                }
                continue;
            };
            self.skip_blanks();
            stmt.end_line = stmt.end_line.max(stmt.at.line);
            match self.peek() {
                Some(b'&') if self.peek_at(1) != Some(b'&') => {
                    self.pos += 1;
                    stmt.background = true;
                }
                Some(b';') if !matches!(self.peek_at(1), Some(b';' | b'&')) => self.pos += 1,
                _ => {}
            }
            block.stmts.push(stmt);
            if self.fatal || self.pos == before {
                break;
            }
        }
        self.leave();
        block.stmts.shrink_to_fit();
        block
    }

    fn and_or(&mut self) -> Option<Stmt> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let op = if self.eat("&&") {
                AndOr::And
            } else if self.eat("||") {
                AndOr::Or
            } else {
                break;
            };
            self.skip_newlines();
            let at = self.here();
            match self.pipeline() {
                Some(stmt) => rest.push((op, stmt)),
                None => {
                    self.issue(IssueKind::Unexpected, at, "nothing follows `&&` or `||`".into());
                    break;
                }
            }
        }
        if rest.is_empty() {
            return Some(first);
        }
        let (at, end_line) = (first.at, rest.last().map_or(first.end_line, |(_, s)| s.end_line));
        Some(Stmt {
            at,
            end_line,
            kind: StmtKind::AndOr(Box::new(first), rest),
            background: false,
        })
    }

    fn pipeline(&mut self) -> Option<Stmt> {
        self.skip_blanks();
        let at = self.here();
        let mut negated = false;
        let mut prefixed = false;
        loop {
            if self.eat_reserved("!") {
                negated = !negated;
            } else if self.plain_word() == "time" && self.timed_command_follows() {
                self.pos += 4;
                self.skip_blanks();
                if self.starts_with("-p ") {
                    self.pos += 2;
                }
            } else {
                break;
            }
            prefixed = true;
            self.skip_blanks();
        }
        let Some(first) = self.command() else {
            if prefixed {
                self.issue(IssueKind::Unexpected, at, "`!` or `time` without a command".into());
            }
            return None;
        };
        let mut stages = Vec::new();
        let mut first = Some(first);
        loop {
            self.skip_blanks();
            if self.peek() != Some(b'|') || self.peek_at(1) == Some(b'|') {
                break;
            }
            stages.extend(first.take());
            self.pos += 1;
            self.eat("&");
            self.skip_newlines();
            let stage_at = self.here();
            match self.command() {
                Some(stage) => stages.push(stage),
                None => {
                    self.issue(IssueKind::Unexpected, stage_at, "nothing follows `|`".into());
                    break;
                }
            }
        }
        let end_line = stages.last().or(first.as_ref()).map_or(at.line, |s| s.end_line);
        let mut stmt = match first.or_else(|| (stages.len() == 1).then(|| stages.remove(0))) {
            Some(only) => only,
            None => Stmt {
                at,
                end_line,
                kind: StmtKind::Pipeline(stages),
                background: false,
            },
        };
        if negated {
            stmt = Stmt {
                at,
                end_line,
                kind: StmtKind::Not(Box::new(stmt)),
                background: false,
            };
        }
        Some(stmt)
    }

    /// `time` is a keyword only before a command; `time` alone or with options is left as a command.
    fn timed_command_follows(&self) -> bool {
        let rest = self.text[self.pos + 4..].trim_start_matches([' ', '\t']);
        let rest = rest.strip_prefix("-p ").unwrap_or(rest);
        !rest.is_empty() && !rest.starts_with(['-', '\n', ';', '&', '|', ')'])
    }
}
