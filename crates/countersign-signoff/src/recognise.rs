//! Decides whether a body is a sign-off, and says why not in words that help its writer.
//!
//! Rules: product page, section 4 ("whose own text, not quotes, code blocks, HTML comments, has a line that starts
//! with the phrase, and under it at least one checklist item; never by a bot, never our own text, never the reminder
//! comment"). A sign-off that stands in a quote or in code as a whole is refused too, but told apart
//! ([`Refusal::is_attempt`]), so that its writer gets a hint.

use serde::Serialize;

use crate::MAX_BODY_CHARS;
use crate::lines::{self, Doc, Line, LineKind};
use crate::reader;
use crate::rules::Rules;
use crate::signoff::SignOff;
use crate::text::collapse;

/// Who wrote a body, as the caller knows it from the event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorInfo {
    /// The login.
    pub login: String,
    /// GitHub says that it is a bot.
    pub is_bot: bool,
    /// It is this program.
    pub is_self: bool,
}

/// What a body is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Recognition {
    /// A sign-off.
    SignOff(SignOff),
    /// No sign-off, and why.
    Refused(Refusal),
}

impl Recognition {
    /// The sign-off, if it is one.
    pub fn signoff(&self) -> Option<&SignOff> {
        match self {
            Self::SignOff(s) => Some(s),
            Self::Refused(_) => None,
        }
    }
}

/// Why a body is no sign-off. Lines count from 1.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Refusal {
    /// Longer than GitHub allows.
    TooLong {
        /// The limit in characters.
        limit: usize,
    },
    /// A bot wrote it.
    Bot {
        /// Its login.
        login: String,
    },
    /// This program wrote it.
    OwnText,
    /// The rules say that this login never signs.
    IgnoredLogin {
        /// The login.
        login: String,
    },
    /// It begins as a verdict does.
    Verdict,
    /// It is the reminder comment.
    Reminder,
    /// The phrase is nowhere in it.
    NoPhrase,
    /// The phrase is there in another case.
    PhraseCase {
        /// Where.
        line: u32,
    },
    /// The phrase is only in a quote.
    PhraseOnlyInQuote {
        /// Where.
        line: u32,
        /// A checklist follows it there.
        whole: bool,
    },
    /// The phrase is only in a code block or code span.
    PhraseOnlyInCode {
        /// Where.
        line: u32,
        /// A checklist follows it there.
        whole: bool,
    },
    /// The phrase is only in an HTML comment, which nobody sees.
    PhraseOnlyInComment {
        /// Where.
        line: u32,
    },
    /// The phrase is in the middle of a line.
    PhraseInsideLine {
        /// Where.
        line: u32,
        /// A checklist follows it.
        items_follow: bool,
    },
    /// No checklist item follows the phrase.
    NoItems {
        /// Where the phrase is.
        line: u32,
        /// Items follow, but in code.
        in_code: bool,
        /// Items follow, but in a quote.
        in_quote: bool,
    },
}

impl Refusal {
    /// Whether somebody plausibly meant to sign, so that silence would leave them waiting.
    pub fn is_attempt(&self) -> bool {
        match self {
            Self::TooLong { .. }
            | Self::Bot { .. }
            | Self::OwnText
            | Self::IgnoredLogin { .. }
            | Self::Verdict
            | Self::Reminder
            | Self::NoPhrase
            | Self::PhraseOnlyInComment { .. } => false,
            Self::PhraseCase { .. } | Self::NoItems { .. } => true,
            Self::PhraseOnlyInQuote { whole, .. } | Self::PhraseOnlyInCode { whole, .. } => *whole,
            Self::PhraseInsideLine { items_follow, .. } => *items_follow,
        }
    }

    /// One sentence that says why, and what to do where there is something to do.
    pub fn sentence(&self) -> String {
        match self {
            Self::TooLong { limit } => format!("The text is longer than {limit} characters and was not read."),
            Self::Bot { login } => format!("{login} is a bot, and a bot cannot sign off."),
            Self::OwnText => "This text is our own.".into(),
            Self::IgnoredLogin { login } => format!("{login} is an automation account, which cannot sign off."),
            Self::Verdict => "The text begins as a verdict does, so it is not read as a sign-off; \
                post the checklist in a comment of its own."
                .into(),
            Self::Reminder => "This is the reminder to sign off, not a sign-off.".into(),
            Self::NoPhrase => "The sign-off phrase is not in the text.".into(),
            Self::PhraseCase { line } => {
                format!("Line {line} has the sign-off phrase in other letters; write it exactly as the template does.")
            }
            Self::PhraseOnlyInQuote { line, .. } => format!(
                "The sign-off phrase stands only in a quote (line {line}), and quoted text does not count; \
                 remove the `>` in front of the lines."
            ),
            Self::PhraseOnlyInCode { line, .. } => format!(
                "The sign-off phrase stands only in code (line {line}), and code does not count; \
                 remove the backticks around the checklist."
            ),
            Self::PhraseOnlyInComment { line } => {
                format!("The sign-off phrase stands only in an HTML comment (line {line}), which nobody can see.")
            }
            Self::PhraseInsideLine { line, .. } => {
                format!("The sign-off phrase stands inside line {line}; a sign-off has it at the start of a line.")
            }
            Self::NoItems {
                line, in_code: true, ..
            } => format!(
                "Under the sign-off phrase (line {line}) the checklist stands in code, which does not count; \
                 remove the backticks around it."
            ),
            Self::NoItems {
                line, in_quote: true, ..
            } => format!(
                "Under the sign-off phrase (line {line}) the checklist is quoted, which does not count; \
                 remove the `>` in front of the lines."
            ),
            Self::NoItems { line, .. } => format!(
                "No checklist item follows the sign-off phrase (line {line}); \
                 add the template's items, each as `- [x]` with its text."
            ),
        }
    }
}

/// Decides whether `body` is a sign-off of `author`.
pub fn recognise(body: &str, author: &AuthorInfo, rules: &Rules) -> Recognition {
    match try_recognise(body, author, rules) {
        Ok(s) => Recognition::SignOff(s),
        Err(r) => Recognition::Refused(r),
    }
}

fn try_recognise(body: &str, author: &AuthorInfo, rules: &Rules) -> Result<SignOff, Refusal> {
    if author.is_self {
        return Err(Refusal::OwnText);
    }
    if author.is_bot || author.login.to_ascii_lowercase().ends_with("[bot]") {
        return Err(Refusal::Bot {
            login: author.login.clone(),
        });
    }
    if rules
        .ignored_logins
        .iter()
        .any(|l| l.eq_ignore_ascii_case(&author.login))
    {
        return Err(Refusal::IgnoredLogin {
            login: author.login.clone(),
        });
    }
    if body.chars().nth(MAX_BODY_CHARS).is_some() {
        return Err(Refusal::TooLong { limit: MAX_BODY_CHARS });
    }
    let body = lines::normalise(body, MAX_BODY_CHARS);
    let first = body.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or_default();
    let begins = |list: &[String], line: &str| {
        let line = collapse(line);
        list.iter()
            .map(|m| collapse(m))
            .any(|m| !m.is_empty() && line.starts_with(&m))
    };
    if begins(&rules.verdict_markers, first) || begins(&rules.verdict_headlines, first) {
        return Err(Refusal::Verdict);
    }
    // The headline may be the second line, under a marker that we do not know.
    if first.starts_with("<!--") {
        let second = body
            .lines()
            .map(str::trim)
            .filter(|l| !l.is_empty())
            .nth(1)
            .unwrap_or_default();
        if begins(&rules.verdict_headlines, second) {
            return Err(Refusal::Verdict);
        }
    }
    let phrase = collapse(&rules.phrase);
    if phrase.is_empty() {
        return Err(Refusal::NoPhrase);
    }
    let doc = Doc::read(&body);
    let marker = |l: &Line<'_>| l.kind == LineKind::Own && begins(&rules.reminder_markers, l.raw.trim());
    if doc.lines.iter().any(marker) {
        return Err(Refusal::Reminder);
    }
    let starts: Vec<usize> = (0..doc.lines.len())
        .filter(|i| opens(&doc.lines[*i], &phrase) && is_own(&doc.lines[*i]))
        .collect();
    // The last phrase that has items of its own opens the sign-off: where somebody pasted a new copy under an old
    // one, the new one counts.
    let ends = starts.iter().skip(1).copied().chain([doc.lines.len()]);
    let with_items: Vec<usize> = starts
        .iter()
        .copied()
        .zip(ends)
        .filter(|(from, to)| has_items(&doc.lines[from + 1..*to], LineKind::Own))
        .map(|(from, _)| from)
        .collect();
    match (with_items.last(), starts.first()) {
        (Some(at), _) => Ok(reader::read_checklist(
            &doc,
            at + 1,
            doc.lines[*at].number,
            with_items.len(),
            rules,
        )),
        (None, Some(at)) => Err(Refusal::NoItems {
            line: doc.lines[*at].number,
            in_code: has_items(&doc.lines[at + 1..], LineKind::Code),
            in_quote: has_items(&doc.lines[at + 1..], LineKind::Quote),
        }),
        (None, None) => Err(why_not(&doc, &phrase)),
    }
}

/// Own text that Markdown shows as text.
fn is_own(line: &Line<'_>) -> bool {
    line.kind == LineKind::Own && !line.indented_code && !line.in_code_span
}

/// Whether the line's text starts with the phrase, heading and emphasis marks apart.
pub(crate) fn opens(line: &Line<'_>, phrase: &str) -> bool {
    let text = line
        .text
        .trim_start()
        .trim_start_matches('#')
        .trim_start()
        .trim_start_matches(['*', '_']);
    collapse_start(text, phrase.len()).starts_with(phrase)
}

/// Enough of `text`, blanks collapsed, to compare `len` bytes.
fn collapse_start(text: &str, len: usize) -> String {
    let mut out = String::new();
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
        if out.len() > len {
            break;
        }
    }
    out
}

fn has_items(lines: &[Line<'_>], kind: LineKind) -> bool {
    lines.iter().filter(|l| l.kind == kind).any(|l| {
        let text = if kind == LineKind::Own {
            l.text.as_ref()
        } else {
            l.raw.trim_start_matches(['>', ' ', '\t'])
        };
        reader::item_start(text).is_some()
    })
}

/// Finds the best explanation for a phrase that opens no line of own text.
fn why_not(doc: &Doc<'_>, phrase: &str) -> Refusal {
    let holds = |l: &&Line<'_>| collapse(l.raw).contains(phrase);
    // A line's number is the index of the next one.
    let behind = |l: &Line<'_>, kind: LineKind| doc.lines.get(l.number as usize..).is_some_and(|r| has_items(r, kind));
    let visible = |l: &&Line<'_>| collapse(&l.text).contains(phrase);
    let own_inside = doc.lines.iter().filter(visible).find(|l| is_own(l));
    if let Some(l) = own_inside {
        return Refusal::PhraseInsideLine {
            line: l.number,
            items_follow: behind(l, LineKind::Own),
        };
    }
    if let Some(l) = doc.lines.iter().filter(visible).find(|l| l.kind == LineKind::Quote) {
        return Refusal::PhraseOnlyInQuote {
            line: l.number,
            whole: behind(l, LineKind::Quote),
        };
    }
    if let Some(l) = doc.lines.iter().find(visible) {
        let kind = if l.kind == LineKind::Code {
            LineKind::Code
        } else {
            LineKind::Own
        };
        return Refusal::PhraseOnlyInCode {
            line: l.number,
            whole: behind(l, kind),
        };
    }
    if let Some(l) = doc.lines.iter().find(holds) {
        return Refusal::PhraseOnlyInComment { line: l.number };
    }
    let lower = phrase.to_lowercase();
    let other_case = |l: &&Line<'_>| opens_folded(l, &lower) && is_own(l);
    match doc.lines.iter().find(other_case) {
        Some(l) if behind(l, LineKind::Own) => Refusal::PhraseCase { line: l.number },
        _ => Refusal::NoPhrase,
    }
}

fn opens_folded(line: &Line<'_>, lower: &str) -> bool {
    let text = line
        .text
        .trim_start()
        .trim_start_matches(['#', '*', '_', ' '])
        .to_lowercase();
    collapse_start(&text, lower.len()).starts_with(lower)
}
