//! Every command of a script, reachable or not: for checks that look at what a file contains (engine patches that
//! survive in a touched file, issue 4), with here-documents and what variables of the file can stand for.

mod resolve;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use crate::syntax::ast::{
    Arg, Assign, AssignValue, Block, Cond, ParamName, ParamOp, PartKind, Redir, Simple, Stmt, StmtKind, Word,
};
use crate::syntax::{Pos, RedirectOp, Script};

/// A word as written, with what it can stand for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawWord {
    /// The texts it can be when the file's own assignments are put in, wherever they stand; parts that are not
    /// known are written `${name}` or `$(command)`. Never empty.
    pub texts: Vec<String>,
    /// True when no part of any text is unknown.
    pub known: bool,
    /// Where it is written.
    pub at: Pos,
}

/// A redirection as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawRedirect {
    /// Descriptor, when written.
    pub fd: Option<u32>,
    /// Operator.
    pub op: RedirectOp,
    /// Target or delimiter.
    pub target: RawWord,
}

/// A here-document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawHereDoc {
    /// Its text as written.
    pub text: Arc<str>,
    /// Its text with variables of the file put in, when it is expanded by the shell.
    pub resolved: String,
    /// True when the delimiter was quoted: the text is taken as it stands.
    pub quoted: bool,
    /// First line of the text.
    pub first_line: u32,
    /// Line of the closing delimiter.
    pub last_line: u32,
}

/// A command of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCommand {
    /// Name and arguments.
    pub argv: Vec<RawWord>,
    /// Assignments in front of it; for a pure assignment the only content.
    pub assignments: Vec<(Arc<str>, RawWord)>,
    /// Redirections, its own and those of the commands around it.
    pub redirects: Vec<RawRedirect>,
    /// Its here-documents and here-strings.
    pub heredocs: Vec<RawHereDoc>,
    /// The function it stands in.
    pub function: Option<Arc<str>>,
    /// Where it begins.
    pub at: Pos,
    /// Last line, here-documents included.
    pub end_line: u32,
    /// Commands of the same pipeline that stand in front of it.
    pub pipe_stage: Option<u32>,
    /// True inside `$(…)`, `<(…)` or text given to `bash -c` or `eval`.
    pub nested: bool,
}

impl RawCommand {
    /// The name when it is one known text.
    pub fn name(&self) -> Option<&str> {
        match self.argv.first()?.texts.as_slice() {
            [text] if self.argv[0].known => Some(text),
            _ => None,
        }
    }

    /// The command line for people.
    pub fn display(&self) -> String {
        let mut out = String::new();
        for (name, word) in &self.assignments {
            out.extend([name, "=", word.texts[0].as_str(), " "]);
        }
        for word in &self.argv {
            out.extend([word.texts[0].as_str(), " "]);
        }
        out.pop();
        out
    }
}

/// What a scan found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// All commands, in file order; those of texts given to `bash -c` or `eval` stand behind them.
    pub commands: Vec<RawCommand>,
    /// False where a bound was hit: there may be more commands, and words may stand for more than is said.
    pub whole: bool,
}

/// All commands of a text, in file order. `path` serves `$0` and `$(dirname "$0")`.
pub fn scan(path: &str, text: &str, limits: &crate::Limits) -> Vec<RawCommand> {
    scan_bounded(path, text, limits).commands
}

/// The same, with whether that is all.
pub fn scan_bounded(path: &str, text: &str, limits: &crate::Limits) -> Scanned {
    scan_script(&Script::parse(path, text, limits))
}

/// All commands of a parsed script.
pub fn scan_script(script: &Script) -> Scanned {
    let mut out = Vec::new();
    let mut texts = 0;
    let mut given = Vec::new();
    let mut whole = !script.incomplete();
    whole &= run(script, None, 0, &mut out, &mut texts, &mut given);
    // One after the other, not one inside the other: the nesting of each is bounded by itself.
    while let Some(text) = given.pop() {
        if out.len() >= MAX_COMMANDS || texts > MAX_WORK {
            break;
        }
        let limits = crate::Limits {
            file_bytes: MAX_TEXT,
            ..crate::Limits::default()
        };
        let inner = Script::parse_with(&script.path, &text.text, &limits, text.at, Vec::new());
        whole &= run(
            &inner,
            text.function.clone(),
            text.level,
            &mut out,
            &mut texts,
            &mut given,
        );
    }
    Scanned {
        whole: whole && out.len() < MAX_COMMANDS && texts <= MAX_WORK,
        commands: out,
    }
}

/// A text given to a shell.
struct Given {
    text: String,
    at: Pos,
    function: Option<Arc<str>>,
    level: usize,
}

fn run(
    script: &Script,
    function: Option<Arc<str>>,
    level: usize,
    out: &mut Vec<RawCommand>,
    texts: &mut usize,
    given: &mut Vec<Given>,
) -> bool {
    let mut scanner = Scanner {
        script,
        assigned: BTreeMap::new(),
        stands_for: BTreeMap::new(),
        out: std::mem::take(out),
        function,
        redirects: Vec::new(),
        pipe_stage: None,
        nested: level,
        level,
        given: std::mem::take(given),
        texts: *texts,
        whole: true,
    };
    scanner.collect_block(&script.body);
    scanner.block(&script.body);
    *out = scanner.out;
    *given = scanner.given;
    *texts = scanner.texts;
    scanner.whole
}

/// Texts inside texts that are looked into.
const MAX_LEVEL: usize = 3;

/// Substitutions inside substitutions that are looked into.
const MAX_NESTED: usize = 128;

/// Commands kept for one file.
const MAX_COMMANDS: usize = 20_000;

/// Texts one word may stand for.
const MAX_TEXTS: usize = 8;

/// Bytes of one text.
const MAX_TEXT: usize = 16 * 1024;

/// Assignments to one name that are looked at.
const MAX_ASSIGNMENTS: usize = 16;

/// Assignments followed from one word.
const MAX_DEPTH: usize = 6;

/// Texts built in one scan.
const MAX_WORK: usize = 200_000;

enum Assigned<'s> {
    Word(&'s Word),
    Array(Vec<&'s Word>),
}

struct Scanner<'s> {
    script: &'s Script,
    assigned: BTreeMap<&'s str, Vec<Assigned<'s>>>,
    /// What the assignments to a name can stand for, by name and depth: most names are asked for many times.
    stands_for: BTreeMap<(Arc<str>, usize), Rc<resolve::Standing>>,
    out: Vec<RawCommand>,
    function: Option<Arc<str>>,
    redirects: Vec<&'s Redir>,
    pipe_stage: Option<u32>,
    nested: usize,
    level: usize,
    given: Vec<Given>,
    texts: usize,
    whole: bool,
}

impl<'s> Scanner<'s> {
    // First pass: assignments, wherever they stand.

    fn collect_block(&mut self, block: &'s Block) {
        block.stmts.iter().for_each(|s| self.collect(s));
    }

    fn collect(&mut self, stmt: &'s Stmt) {
        match &stmt.kind {
            StmtKind::Simple(simple) => {
                simple.assigns.iter().for_each(|a| self.collect_assign(a));
                for arg in &simple.words {
                    match arg {
                        Arg::Assign(assign) => self.collect_assign(assign),
                        Arg::Word(word) => self.collect_word(word),
                    }
                }
            }
            StmtKind::For { name, words, body } => {
                for word in words.iter().flatten() {
                    self.put(name, Assigned::Word(word));
                    self.collect_word(word);
                }
                self.collect_block(body);
            }
            StmtKind::Pipeline(list) => list.iter().for_each(|s| self.collect(s)),
            StmtKind::Not(inner) | StmtKind::Redirected(inner, _) => self.collect(inner),
            StmtKind::AndOr(first, rest) => {
                self.collect(first);
                rest.iter().for_each(|(_, s)| self.collect(s));
            }
            StmtKind::Group(body) | StmtKind::Subshell(body) | StmtKind::CFor { body, .. } => self.collect_block(body),
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    self.collect_block(cond);
                    self.collect_block(body);
                }
                otherwise.iter().for_each(|b| self.collect_block(b));
            }
            StmtKind::Case { items, .. } => items.iter().for_each(|i| self.collect_block(&i.body)),
            StmtKind::While { cond, body, .. } => {
                self.collect_block(cond);
                self.collect_block(body);
            }
            StmtKind::Function { body, .. } => self.collect(body),
            StmtKind::Test(_) | StmtKind::Arith(_) => {}
        }
    }

    fn collect_word(&mut self, word: &'s Word) {
        for part in &word.parts {
            if let PartKind::Param(param) = &part.kind
                && let (ParamName::Var(name), ParamOp::Assign(_, value)) = (&param.name, &param.op)
            {
                self.put(name, Assigned::Word(value));
            }
        }
    }

    fn collect_assign(&mut self, assign: &'s Assign) {
        match &assign.value {
            AssignValue::Scalar(word) => {
                self.put(&assign.name, Assigned::Word(word));
                self.collect_word(word);
            }
            AssignValue::Array(items) => {
                self.put(&assign.name, Assigned::Array(items.iter().map(|i| &i.value).collect()));
            }
        }
    }

    fn put(&mut self, name: &'s str, value: Assigned<'s>) {
        let list = self.assigned.entry(name).or_default();
        if list.len() < MAX_ASSIGNMENTS {
            list.push(value);
        }
    }

    // Second pass: commands.

    fn block(&mut self, block: &'s Block) {
        for stmt in &block.stmts {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &'s Stmt) {
        match &stmt.kind {
            StmtKind::Simple(simple) => self.simple(simple, stmt),
            StmtKind::Pipeline(stages) => {
                let outer = self.pipe_stage;
                for (index, stage) in stages.iter().enumerate() {
                    self.pipe_stage = Some(index as u32);
                    self.stmt(stage);
                }
                self.pipe_stage = outer;
            }
            StmtKind::Not(inner) => self.stmt(inner),
            StmtKind::Redirected(inner, redirs) => {
                let before = self.redirects.len();
                self.redirects.extend(redirs);
                redirs.iter().for_each(|r| self.inside(&r.target));
                self.stmt(inner);
                self.redirects.truncate(before);
            }
            StmtKind::AndOr(first, rest) => {
                self.stmt(first);
                rest.iter().for_each(|(_, s)| self.stmt(s));
            }
            StmtKind::Group(body) | StmtKind::Subshell(body) => self.block(body),
            StmtKind::CFor { head, body } => {
                head.iter().for_each(|w| self.inside(w));
                self.block(body);
            }
            StmtKind::If { arms, otherwise } => {
                for (cond, body) in arms {
                    self.block(cond);
                    self.block(body);
                }
                otherwise.iter().for_each(|b| self.block(b));
            }
            StmtKind::Case { subject, items } => {
                self.inside(subject);
                for item in items {
                    item.patterns.iter().for_each(|p| self.inside(p));
                    self.block(&item.body);
                }
            }
            StmtKind::For { words, body, .. } => {
                words.iter().flatten().for_each(|w| self.inside(w));
                self.block(body);
            }
            StmtKind::While { cond, body, .. } => {
                self.block(cond);
                self.block(body);
            }
            StmtKind::Function { name, body } => {
                let outer = self.function.replace(name.clone());
                self.stmt(body);
                self.function = outer;
            }
            StmtKind::Test(cond) => self.cond(cond),
            StmtKind::Arith(word) => self.inside(word),
        }
    }

    fn cond(&mut self, cond: &'s Cond) {
        match cond {
            Cond::Unary(_, word) | Cond::NonEmpty(word) => self.inside(word),
            Cond::Binary(_, a, b) => {
                self.inside(a);
                self.inside(b);
            }
            Cond::Not(inner) => self.cond(inner),
            Cond::And(list) | Cond::Or(list) => list.iter().for_each(|c| self.cond(c)),
        }
    }

    /// Commands inside the expansions of a word.
    fn inside(&mut self, word: &'s Word) {
        if self.nested > MAX_NESTED {
            self.whole = false;
            return;
        }
        for part in &word.parts {
            match &part.kind {
                PartKind::Command(body, _) | PartKind::Process(body, _, _) => {
                    let stage = self.pipe_stage.take();
                    self.nested += 1;
                    self.block(body);
                    self.nested -= 1;
                    self.pipe_stage = stage;
                }
                PartKind::Arith(word, _) => self.inside(word),
                // Bounded by the nesting of the file, like the tree itself.
                PartKind::Param(param) => match &param.op {
                    ParamOp::Default(_, w)
                    | ParamOp::Assign(_, w)
                    | ParamOp::Alternative(_, w)
                    | ParamOp::Error(_, w)
                    | ParamOp::RemovePrefix(_, w)
                    | ParamOp::RemoveSuffix(_, w)
                    | ParamOp::Case(_, _, w) => self.inside(w),
                    ParamOp::Replace(_, a, b) => {
                        self.inside(a);
                        self.inside(b);
                    }
                    _ => {}
                },
                _ => {}
            }
        }
    }

    fn simple(&mut self, simple: &'s Simple, stmt: &'s Stmt) {
        if self.out.len() >= MAX_COMMANDS {
            return;
        }
        let mut argv = Vec::new();
        for arg in &simple.words {
            match arg {
                Arg::Word(word) => {
                    self.inside(word);
                    argv.extend(self.words(word));
                }
                Arg::Assign(assign) => {
                    self.inside_assign(assign);
                    let mut word = self.assign_word(assign);
                    word.texts.iter_mut().for_each(|t| *t = format!("{}={t}", assign.name));
                    argv.push(word);
                }
            }
        }
        let mut assignments = Vec::new();
        for assign in &simple.assigns {
            self.inside_assign(assign);
            assignments.push((assign.name.clone(), self.assign_word(assign)));
        }
        let own = &simple.redirs;
        own.iter().for_each(|r| self.inside(&r.target));
        let mut redirects = Vec::new();
        let mut heredocs = Vec::new();
        let mut end_line = stmt.end_line;
        let around = self.redirects.clone();
        for redir in own.iter().chain(around) {
            redirects.push(RawRedirect {
                fd: redir.fd,
                op: redir.op,
                target: self.word(&redir.target),
            });
            if redir.op == RedirectOp::HereString {
                let word = self.word(&redir.target);
                heredocs.push(RawHereDoc {
                    text: word.texts[0].as_str().into(),
                    resolved: word.texts[0].clone(),
                    quoted: false,
                    first_line: redir.at.line,
                    last_line: redir.at.line,
                });
            }
            if let Some(doc) = redir.heredoc.and_then(|i| self.script.heredocs.get(i)) {
                let resolved = if doc.quoted {
                    doc.raw.to_string()
                } else {
                    self.word(&doc.body).texts[0].clone()
                };
                heredocs.push(RawHereDoc {
                    text: doc.raw.clone(),
                    resolved,
                    quoted: doc.quoted,
                    first_line: doc.first_line,
                    last_line: doc.last_line,
                });
                end_line = end_line.max(doc.last_line);
                self.inside(&doc.body);
            }
        }
        let command = RawCommand {
            argv,
            assignments,
            redirects,
            heredocs,
            function: self.function.clone(),
            at: stmt.at,
            end_line,
            pipe_stage: self.pipe_stage,
            nested: self.nested > 0,
        };
        let inner = inner_text(&command);
        self.out.push(command);
        if let Some((text, at)) = inner {
            if self.level >= MAX_LEVEL {
                self.whole = false;
                return;
            }
            self.given.push(Given {
                text,
                at,
                function: self.function.clone(),
                level: self.level + 1,
            });
        }
    }

    fn inside_assign(&mut self, assign: &'s Assign) {
        match &assign.value {
            AssignValue::Scalar(word) => self.inside(word),
            AssignValue::Array(items) => items.iter().for_each(|i| self.inside(&i.value)),
        }
    }

    fn assign_word(&mut self, assign: &'s Assign) -> RawWord {
        match &assign.value {
            AssignValue::Scalar(word) => self.word(word),
            AssignValue::Array(items) => {
                let words: Vec<RawWord> = items.iter().map(|i| self.word(&i.value)).collect();
                let text: Vec<&str> = words.iter().map(|w| w.texts[0].as_str()).collect();
                RawWord {
                    texts: vec![cut(format!("({})", text.join(" ")))],
                    known: words.iter().all(|w| w.known),
                    at: assign.at,
                }
            }
        }
    }
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
    }
    text
}

/// The text that a shell command runs, when it is given as one word.
fn inner_text(command: &RawCommand) -> Option<(String, Pos)> {
    let name = command.name()?;
    let base = name.rsplit('/').next().unwrap_or(name);
    let wrapped = command.argv.iter().position(|w| {
        let text = w.texts[0].rsplit('/').next().unwrap_or("");
        matches!(text, "bash" | "sh" | "zsh")
    });
    if base == "eval" {
        let texts: Vec<&str> = command.argv[1..].iter().map(|w| w.texts[0].as_str()).collect();
        return Some((texts.join(" "), command.argv.get(1)?.at));
    }
    let shell = wrapped?;
    let flag = command.argv.iter().skip(shell + 1).position(|w| {
        let text = &w.texts[0];
        text.starts_with('-') && !text.starts_with("--") && text.ends_with('c')
    })?;
    let word = command.argv.get(shell + 1 + flag + 1)?;
    Some((word.texts[0].clone(), word.at))
}
