//! Commands: whole lines of an issue comment (product page, section 4; domain guide, section 6.1).
//!
//! Leading blanks are allowed; quotes, fences and comments are not read. The number of a reuse command may stand on
//! the next line that is not blank, as the repository's own reader allows. What comes close and does not count is
//! reported with a remedy, because a command that is silently ignored costs a person a day.

use serde::Serialize;

use crate::MAX_BODY_CHARS;
use crate::lines::{self, Doc, Line, LineKind};
use crate::links::positive;
use crate::rules::{CommandRules, ReuseRule};
use crate::text::excerpt;

/// The longest reason that is kept, in characters.
const MAX_REASON: usize = 1_000;
/// The most commands and near misses of one comment.
const MAX_FOUND: usize = 100;

/// What a command asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum CommandKind {
    /// Reuse a workflow run.
    Reuse {
        /// The command's name.
        name: String,
        /// The run, where one is named.
        run: Option<u64>,
    },
    /// Judge again.
    Verify,
    /// Explain a check's row.
    Explain {
        /// Slug or number.
        check: String,
    },
    /// Answer a check's question with yes.
    Confirm {
        /// Slug or number.
        check: String,
        /// Why.
        reason: String,
    },
    /// Overrule a check.
    Override {
        /// Slug or number.
        check: String,
        /// Why.
        reason: String,
    },
    /// List the commands.
    Help,
}

/// A command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    /// Its line, from 1.
    pub line: u32,
    /// What it asks for.
    #[serde(flatten)]
    pub kind: CommandKind,
}

/// Why something that looks like a command is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// Other letters in another case.
    Case,
    /// In a quote.
    Quote,
    /// In a code block or in backticks.
    Code,
    /// Behind a bullet, a mention, or emphasis.
    NotAtLineStart,
    /// The run id is missing.
    RunMissing,
    /// What stands for the run id is no number, or zero, or too large.
    RunInvalid,
    /// More words follow.
    TrailingWords,
    /// The check is missing, or is no slug or number.
    CheckMissing,
    /// The reason is missing.
    ReasonMissing,
    /// The word behind our name is unknown or missing.
    UnknownWord,
}

/// Something that looks like a command and does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NearMiss {
    /// Its line, from 1.
    pub line: u32,
    /// The line, shortened. Somebody else's text: escape it before showing it.
    pub text: String,
    /// Why it does not count.
    pub why: Miss,
    /// What to do, one imperative sentence.
    pub remedy: String,
}

/// All commands of a comment, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Commands {
    /// What counts.
    pub commands: Vec<Command>,
    /// What comes close.
    pub near_misses: Vec<NearMiss>,
}

impl Commands {
    /// The reuse command that counts: the last one of the comment, whatever its name.
    pub fn reuse(&self) -> Option<&Command> {
        self.commands
            .iter()
            .rev()
            .find(|c| matches!(c.kind, CommandKind::Reuse { .. }))
    }

    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.near_misses.is_empty()
    }
}

/// Finds the commands of a comment. A body over GitHub's limit has none.
pub fn commands(body: &str, rules: &CommandRules) -> Commands {
    let mut out = Commands::default();
    if body.chars().nth(MAX_BODY_CHARS).is_some() || !body.contains('/') {
        return out;
    }
    let body = lines::normalise(body, MAX_BODY_CHARS);
    let doc = Doc::read(&body);
    for (i, line) in doc.lines.iter().enumerate() {
        if out.commands.len() + out.near_misses.len() >= MAX_FOUND {
            break;
        }
        match read_line(&doc, i, line, rules) {
            Some(Ok(kind)) => out.commands.push(Command {
                line: line.number,
                kind,
            }),
            Some(Err((why, remedy))) => {
                out.near_misses.push(NearMiss {
                    line: line.number,
                    text: excerpt(line.raw.trim(), 80),
                    why,
                    remedy,
                });
            }
            None => {}
        }
    }
    out
}

type Found = Option<Result<CommandKind, (Miss, String)>>;

fn miss(why: Miss, remedy: impl Into<String>) -> Found {
    Some(Err((why, remedy.into())))
}

fn read_line(doc: &Doc<'_>, index: usize, line: &Line<'_>, rules: &CommandRules) -> Found {
    let text = line.raw.trim();
    let own = line.kind == LineKind::Own && !line.in_code_span && !line.text.trim().is_empty();
    if let Some(found) = split_name(text, rules, |a, b| a == b) {
        let (name, rest) = found;
        return match (own, line.kind) {
            (true, _) => match name {
                Name::Reuse(rule) => reuse(doc, index, rule, rest),
                Name::App => app(&rules.app, rest),
            },
            (false, LineKind::Quote) => miss(Miss::Quote, "Write the command outside the quote."),
            // A line of which nothing is visible is a comment, which was hidden on purpose.
            (false, LineKind::Own) if !line.in_code_span => None,
            (false, _) => miss(Miss::Code, "Write the command on a line of its own, outside the code."),
        };
    }
    if text.starts_with('/') && own {
        let (name, _) = split_name(text, rules, str::eq_ignore_ascii_case)?;
        let shown = name.shown(rules);
        return miss(Miss::Case, format!("Write the command as `{shown}`, in small letters."));
    }
    behind_marks(line, text, rules)
}

/// A command behind something that a command may not stand behind.
fn behind_marks(line: &Line<'_>, text: &str, rules: &CommandRules) -> Found {
    if line.kind == LineKind::Own && line.text.trim().is_empty() {
        return None;
    }
    let rest = text.trim_start_matches(['>', '-', '*', '+', '_', ' ', '\t', '`', '#', '.', ')', ':']);
    let rest = match rest.strip_prefix('@').and_then(|r| r.split_once(char::is_whitespace)) {
        Some((_, behind)) => behind.trim_start_matches([' ', '`', ',', ':']),
        None => rest
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .trim_start_matches(['.', ')', ' ']),
    };
    if rest.len() == text.len() {
        return None;
    }
    let marks = &text[..text.len() - rest.len()];
    let unticked = rest.replace('`', " ");
    let (name, _) = split_name(unticked.trim(), rules, str::eq_ignore_ascii_case)?;
    let shown = name.shown(rules);
    match line.kind {
        LineKind::Quote => miss(Miss::Quote, "Write the command outside the quote."),
        LineKind::Code => miss(Miss::Code, "Write the command on a line of its own, outside the code."),
        LineKind::Own if marks.contains('`') => miss(
            Miss::Code,
            format!("Write `{shown}` on a line of its own, without backticks."),
        ),
        LineKind::Own => miss(Miss::NotAtLineStart, format!("Begin the line with `{shown}`.")),
    }
}

enum Name<'r> {
    Reuse(&'r ReuseRule),
    App,
}

impl Name<'_> {
    fn shown<'s>(&'s self, rules: &'s CommandRules) -> &'s str {
        match self {
            Self::Reuse(rule) => &rule.name,
            Self::App => &rules.app,
        }
    }
}

/// Splits a line that begins with a command's name.
fn split_name<'t, 'r>(
    text: &'t str,
    rules: &'r CommandRules,
    same: impl Fn(&str, &str) -> bool,
) -> Option<(Name<'r>, &'t str)> {
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    if same(word, &rules.app) {
        return Some((Name::App, rest));
    }
    rules
        .reuse
        .iter()
        .find(|r| same(word, &r.name))
        .map(|r| (Name::Reuse(r), rest))
}

fn reuse(doc: &Doc<'_>, index: usize, rule: &ReuseRule, rest: &str) -> Found {
    let name = rule.name.as_str();
    let with = |run| {
        Some(Ok(CommandKind::Reuse {
            name: name.to_owned(),
            run,
        }))
    };
    let rest = rest.trim();
    if rest.is_empty() {
        // The number may stand on the next line that is not blank.
        let next = doc.lines.iter().skip(index + 1).find(|l| !l.raw.trim().is_empty());
        let number = next
            .filter(|l| l.kind == LineKind::Own)
            .and_then(|l| positive(l.raw.trim()));
        return match number {
            Some(run) => with(Some(run)),
            None if rule.run_required => miss(
                Miss::RunMissing,
                format!("Name the run: `{name} <run id>`, with the number from the run's address."),
            ),
            None => with(None),
        };
    }
    if let Some(run) = positive(rest) {
        return with(Some(run));
    }
    let mut words = rest.split_whitespace();
    let first = words.next().unwrap_or_default();
    if words.next().is_some() && positive(first).is_some() {
        return miss(
            Miss::TrailingWords,
            format!("Leave nothing behind the number: `{name} {first}`."),
        );
    }
    let optional = if rule.run_required { "" } else { ", or leave it out" };
    miss(
        Miss::RunInvalid,
        format!("Write the run as its number alone: `{name} <run id>`{optional}."),
    )
}

fn app(app: &str, rest: &str) -> Found {
    let rest = rest.trim();
    let (word, args) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let args = args.trim();
    match word {
        "verify" | "help" if !args.is_empty() => {
            miss(Miss::TrailingWords, format!("Leave nothing behind `{app} {word}`."))
        }
        "verify" => Some(Ok(CommandKind::Verify)),
        "help" => Some(Ok(CommandKind::Help)),
        "explain" | "confirm" | "override" => {
            let (check, reason) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
            let reason = reason.trim();
            let slug = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
            if check.is_empty() || check.len() > 64 || !check.chars().all(slug) {
                return miss(
                    Miss::CheckMissing,
                    format!("Name the check by its slug or number: `{app} {word} <check>`."),
                );
            }
            let check = check.to_owned();
            match word {
                "explain" if reason.is_empty() => Some(Ok(CommandKind::Explain { check })),
                "explain" => miss(
                    Miss::TrailingWords,
                    format!("Leave nothing behind `{app} explain {check}`."),
                ),
                _ if !reason.chars().any(char::is_alphanumeric) => miss(
                    Miss::ReasonMissing,
                    format!("Say why, on the same line: `{app} {word} {check} <reason>`."),
                ),
                "confirm" => Some(Ok(CommandKind::Confirm {
                    check,
                    reason: excerpt(reason, MAX_REASON),
                })),
                _ => Some(Ok(CommandKind::Override {
                    check,
                    reason: excerpt(reason, MAX_REASON),
                })),
            }
        }
        _ => miss(
            Miss::UnknownWord,
            format!("Write one of verify, explain, confirm, override, help behind `{app}`."),
        ),
    }
}
