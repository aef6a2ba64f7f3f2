//! What an evaluation gives: the commands in order, with every word's value and place, the files written,
//! how the script can end, and what was not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use crate::pmap::PMap;
use crate::syntax::{IssueKind, RedirectOp};
use crate::value::{Span, Unknown, Value};
use crate::world::{Var, WrittenFile};

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Word {
    /// Its value.
    pub value: Value,
    /// Where it is written: in the command, or in the array or text it was expanded from.
    pub span: Span,
    /// True when an unknown in it may make it no word or several (unquoted, or an unknown array).
    pub splits: bool,
    /// True when it holds an unquoted file pattern (`*`): the shell may replace it by file names.
    pub globs: bool,
}

/// A decision about something unknown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Literal {
    /// The condition as the script asks it.
    pub text: Arc<str>,
    /// Where it is asked.
    pub at: Span,
    /// Whether it was taken as true.
    pub holds: bool,
    /// True when the script ends on the other side: every way that goes on has this decision.
    pub other_side_ends: bool,
    /// Names of the unknowns it depends on.
    pub depends_on: BTreeSet<Arc<str>>,
}

impl Literal {
    pub(crate) fn same_question(&self, other: &Literal) -> bool {
        self.at == other.at && self.text == other.text
    }
}

/// What kind of command it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandKind {
    /// A program.
    External,
    /// A function of the scripts; its body was evaluated and its commands follow.
    Function,
    /// A shell builtin that writes a file or replaces the shell.
    Builtin,
    /// A script of the tree, started or sourced; it was evaluated and its commands follow.
    Script,
}

/// A redirection of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct Redirect {
    /// Descriptor, when written.
    pub fd: Option<u32>,
    /// Operator.
    pub op: RedirectOp,
    /// Target; the delimiter of a here-document.
    pub target: Word,
    /// Text of a here-document or here-string.
    pub text: Option<Value>,
}

/// A function or script that was being executed, and where it was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Name of the function or path of the script.
    pub name: Arc<str>,
    /// Where it was called.
    pub at: Span,
}

/// A command that would be started.
#[derive(Debug, Clone)]
pub struct Command {
    /// Name and arguments, fully expanded as far as known.
    pub argv: Arc<Vec<Word>>,
    /// Assignments written in front of it, in order.
    pub assignments: Vec<(Arc<str>, Word)>,
    /// Redirections in the order written, those of enclosing commands excluded.
    pub redirects: Vec<Redirect>,
    /// What it reads when that is known text (here-document, here-string or pipe).
    pub stdin: Option<Value>,
    /// Followed by `&`, or inside something that is.
    pub background: bool,
    /// Position in its pipeline, from zero; None outside pipelines.
    pub pipe_stage: Option<u32>,
    /// Kind.
    pub kind: CommandKind,
    /// The function it stands in, innermost.
    pub in_function: Option<Arc<str>>,
    /// Calls that lead to it, outermost first.
    pub calls: Arc<Vec<Call>>,
    /// Decisions about unknowns under which it is started; each is necessary.
    pub path: Arc<Vec<Arc<Literal>>>,
    /// Where it is written.
    pub span: Span,
    /// Last line of the command, without here-documents.
    pub end_line: u32,
    /// Working directory.
    pub cwd: Value,
    pub(crate) vars: PMap<Arc<Var>>,
    pub(crate) files: PMap<Arc<WrittenFile>>,
}

impl Command {
    /// Name of the program when known.
    pub fn name(&self) -> Option<String> {
        self.argv.first().and_then(|w| w.value.known().map(|t| t.into_owned()))
    }

    /// A variable of the shell at this moment (None: not set, as far as known).
    pub fn var(&self, name: &str) -> Option<&Var> {
        self.vars.get(name).map(|v| &**v)
    }

    /// The environment the command gets: exported variables, then the assignments in front of it.
    pub fn environment(&self) -> BTreeMap<&str, &Value> {
        let exported = self.vars.iter().filter(|(_, var)| var.exported);
        let exported = exported.filter_map(|(name, var)| Some((&**name, var.as_scalar()?)));
        let own = self.assignments.iter().map(|(name, word)| (&**name, &word.value));
        exported.chain(own).collect()
    }

    /// The value of one environment variable the command gets.
    pub fn env(&self, name: &str) -> Option<&Value> {
        if let Some((_, word)) = self.assignments.iter().rev().find(|(n, _)| n.as_ref() == name) {
            return Some(&word.value);
        }
        self.vars.get(name).filter(|v| v.exported).and_then(|v| v.as_scalar())
    }

    /// A file that the script wrote before this command: the path as the command would open it.
    pub fn file(&self, path: &Value) -> Option<&WrittenFile> {
        // Most words name no file: nothing was written whose path ends as they do.
        let name = path.known();
        let name = name
            .as_deref()
            .and_then(|path| path.rsplit('/').next())
            .unwrap_or_default();
        let may_be = |key: &str| matches!(name, "" | "." | "..") || key.ends_with(name);
        if !self.files.iter().any(|(key, _)| may_be(key)) {
            return None;
        }
        let key = crate::eval::paths::key(&self.cwd, path);
        self.files.get(&key).map(|f| &**f)
    }

    /// The command line for people, unknowns by name.
    pub fn display(&self) -> String {
        let mut out = String::new();
        for (name, word) in &self.assignments {
            out.push_str(&format!("{name}={} ", word.value.display()));
        }
        for (index, word) in self.argv.iter().enumerate() {
            if index > 0 {
                out.push(' ');
            }
            out.push_str(&word.value.display());
        }
        out
    }
}

/// How the script can end before its last statement.
#[derive(Debug, Clone)]
pub struct End {
    /// Exit status.
    pub status: Option<i32>,
    /// Where.
    pub at: Span,
    /// Decisions that lead there.
    pub path: Arc<Vec<Arc<Literal>>>,
    /// Calls that lead there.
    pub calls: Arc<Vec<Call>>,
}

/// What an evaluation notes about its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Note {
    /// Part of a script could not be read.
    Syntax(IssueKind),
    /// A script outside the tree, or of unknown name, is sourced or started.
    NotInTree,
    /// Text that is not known is evaluated: it may set any variable and start anything.
    ForeignCode,
    /// A bound was reached; what lies behind it is not known.
    Bound,
    /// A construct that is not evaluated.
    Unsupported,
    /// Worlds were put together because there were too many.
    Joined,
    /// Something the shell would report as an error.
    ShellError,
}

/// A note and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Diagnostic {
    /// Kind.
    pub note: Note,
    /// Where.
    pub at: Span,
    /// In words.
    pub message: String,
}

/// Result of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Evaluation {
    /// Scripts read, in the order met; [`Span::file`] counts them from zero.
    pub files: Vec<Arc<str>>,
    /// Commands in the order they would be started; one entry for equal commands of several worlds.
    pub commands: Vec<Command>,
    /// Files the scripts wrote, by path, with every content they can have at the end.
    pub written: BTreeMap<Arc<str>, Vec<WrittenFile>>,
    /// Ways the script ends early.
    pub ends: Vec<End>,
    /// Notes, each once.
    pub diagnostics: Vec<Diagnostic>,
    /// The first bound that stopped the evaluation, if one did: commands after it are missing.
    pub truncated: Option<String>,
    /// Worlds that reached the end.
    pub worlds: usize,
    /// Environment variables that were read and taken as unset because the caller did not name them.
    pub assumed_unset: BTreeSet<Arc<str>>,
    /// Unknowns that appear in the commands, by name.
    pub unknowns: BTreeMap<Arc<str>, Arc<Unknown>>,
    /// Of several points that were evaluated together ([`crate::Setup::environment`]) those that it holds for, by number:
    /// the first and all that went the same way, or none. Read what they do with [`Value::in_lane`] and
    /// [`crate::in_lane`]; nothing that is read may be a value that [`Value::differs`].
    pub holds: Vec<usize>,
}

impl Evaluation {
    /// Path of a span's file.
    pub fn path(&self, span: Span) -> &str {
        self.files.get(span.file as usize).map_or("", |p| p)
    }

    /// `path:line` of a span, for people.
    pub fn place(&self, span: Span) -> String {
        if span.line == 0 {
            "environment".into()
        } else {
            format!("{}:{}", self.path(span), span.line)
        }
    }

    /// The commands that are programs.
    pub fn programs(&self) -> impl Iterator<Item = &Command> {
        self.commands.iter().filter(|c| c.kind == CommandKind::External)
    }
}
