//! From text to rules: lines, comments, fields, and what is reported about each bad line.

use crate::diagnostic::{Diagnostic, Problem, Reach, clip};
use crate::owner::Owner;
use crate::pattern::{Pattern, PatternProblem};
use crate::ruleset::{CodeOwners, MAX_DIAGNOSTICS, MAX_FILE_BYTES, Rule};

/// A word of a line and its column, in characters from 1.
struct Word {
    text: String,
    column: usize,
}

/// A line that is neither blank nor a comment.
struct Fields {
    pattern: Word,
    owners: Vec<Word>,
    /// The pattern has `\#`.
    escaped_hash: bool,
    /// A comment began inside the pattern.
    hash_ends_pattern: bool,
}

impl CodeOwners {
    /// Parses a file. Never fails: a bad line is skipped, as GitHub does, and kept as a
    /// [`Diagnostic`]; a file that is too large has no rules and one diagnostic.
    ///
    /// Lines end in LF or CRLF, the last one needs no end, a byte order mark is ignored. Fields
    /// are separated by spaces and tabs; a backslash keeps a blank in the pattern. `#` begins a
    /// comment wherever it stands.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let mut file = Self::default();
        if text.len() >= MAX_FILE_BYTES {
            let problem = Problem::FileTooLarge {
                bytes: text.len(),
                limit: MAX_FILE_BYTES,
            };
            file.diagnostics
                .push(Diagnostic::new(1, 1, "", problem, Reach::Everything));
            return file;
        }
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.split('\n').enumerate() {
            file.line(index + 1, line.trim_end_matches('\r'));
        }
        file
    }

    fn line(&mut self, line: usize, text: &str) {
        let Some(fields) = fields(text) else { return };
        let Fields {
            pattern,
            owners,
            escaped_hash,
            hash_ends_pattern,
        } = fields;
        let compiled = Pattern::parse(&pattern.text);

        if escaped_hash {
            let reach = compiled.map_or(Reach::Everything, Reach::Pattern);
            return self.report(Diagnostic::new(line, pattern.column, text, Problem::EscapedHash, reach));
        }
        let compiled = match compiled {
            Ok(compiled) => compiled,
            Err(problem) => {
                let reach = reach_of_invalid(&pattern.text, problem);
                let problem = Problem::InvalidPattern { problem };
                return self.report(Diagnostic::new(line, pattern.column, text, problem, reach));
            }
        };

        let mut parsed = Vec::with_capacity(owners.len());
        let mut notes = Vec::new();
        for word in owners {
            let Ok(owner) = Owner::parse(&word.text) else {
                let problem = Problem::InvalidOwner {
                    owner: clip(&word.text),
                };
                return self.report(Diagnostic::new(
                    line,
                    word.column,
                    text,
                    problem,
                    Reach::Pattern(compiled),
                ));
            };
            if !owner.is_plausible() {
                notes.push((
                    word.column,
                    Problem::UnlikelyEmail {
                        owner: clip(&word.text),
                    },
                ));
            }
            parsed.push(owner);
        }
        if hash_ends_pattern {
            notes.push((pattern.column, Problem::HashEndsPattern));
        }
        if parsed.is_empty() && pattern.text.contains('@') {
            notes.push((
                pattern.column,
                Problem::OwnerReadAsPattern {
                    pattern: clip(&pattern.text),
                },
            ));
        }
        for (column, problem) in notes {
            self.report(Diagnostic::new(line, column, text, problem, Reach::Nothing));
        }
        self.rules.push(Rule {
            line,
            text: pattern.text.into(),
            owners: parsed.into(),
            pattern: compiled,
        });
    }

    fn report(&mut self, diagnostic: Diagnostic) {
        if self.diagnostics.len() < MAX_DIAGNOSTICS {
            self.diagnostics.push(diagnostic);
            return;
        }
        // The last entry stands for all that follow. It takes the place of the latest of them
        // and reaches every path, so that no doubt is lost.
        let omitted = match self.diagnostics.get(MAX_DIAGNOSTICS) {
            Some(Diagnostic {
                problem: Problem::TooManyProblems { omitted },
                ..
            }) => omitted + 1,
            _ => 1,
        };
        self.diagnostics.truncate(MAX_DIAGNOSTICS);
        let problem = Problem::TooManyProblems { omitted };
        self.diagnostics
            .push(Diagnostic::new(diagnostic.line, 1, "", problem, Reach::Everything));
    }
}

/// Splits a line into words; `None` for a blank line or a comment.
fn fields(line: &str) -> Option<Fields> {
    let mut chars = (1..).zip(line.chars()).peekable();
    while chars.next_if(|(_, c)| is_blank(*c)).is_some() {}
    let &(column, first) = chars.peek()?;
    if first == '#' {
        return None;
    }

    let mut fields = Fields {
        pattern: Word {
            text: String::new(),
            column,
        },
        owners: Vec::new(),
        escaped_hash: false,
        hash_ends_pattern: false,
    };
    while let Some((_, c)) = chars.next() {
        match c {
            '#' => {
                fields.hash_ends_pattern = true;
                return Some(fields);
            }
            c if is_blank(c) => break,
            '\\' => {
                fields.pattern.text.push(c);
                if let Some((_, escaped)) = chars.next() {
                    fields.escaped_hash |= escaped == '#';
                    fields.pattern.text.push(escaped);
                }
            }
            c => fields.pattern.text.push(c),
        }
    }

    let mut inside = false;
    for (column, c) in chars {
        if c == '#' {
            break;
        }
        if is_blank(c) {
            inside = false;
            continue;
        }
        if !inside {
            fields.owners.push(Word {
                text: String::new(),
                column,
            });
            inside = true;
        }
        if let Some(word) = fields.owners.last_mut() {
            word.text.push(c);
        }
    }
    Some(fields)
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

/// The paths that the author of an unusable pattern may have meant: never too few.
fn reach_of_invalid(pattern: &str, problem: PatternProblem) -> Reach {
    let guess = match problem {
        PatternProblem::NeverMatches => return Reach::Nothing,
        PatternProblem::Negation => pattern.trim_start_matches('!').to_owned(),
        PatternProblem::TripleAsterisk => {
            let mut shorter = pattern.to_owned();
            while shorter.contains("***") {
                shorter = shorter.replace("***", "**");
            }
            shorter
        }
        // Everything below the last directory whose name is still certain.
        PatternProblem::CharacterRange => {
            let certain = pattern.find(['[', ']']).map_or("", |bracket| &pattern[..bracket]);
            match certain.rfind('/') {
                Some(slash) if slash > 0 => format!("{}/**", &certain[..slash]),
                _ => return Reach::Everything,
            }
        }
        PatternProblem::DanglingEscape | PatternProblem::InvisibleCharacter | PatternProblem::TooLong => {
            return Reach::Everything;
        }
    };
    Pattern::parse(&guess).map_or(Reach::Everything, Reach::Pattern)
}
