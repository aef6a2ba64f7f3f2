//! `sed` and `awk`, the small part of them that scripts use to compute a value: substitutions, deletions and
//! prints without addresses or with simple ones; arithmetic in `BEGIN`. Everything else gives an unknown.

use super::filters::{basic_regex, compile};
use super::programs::Computed;
use super::{Evaluator, paths};
use crate::output::Word;
use crate::value::{Span, Value, Why};
use crate::world::World;

/// One command of a sed script.
enum Edit {
    Substitute {
        regex: regex::Regex,
        with: String,
        global: bool,
        print: bool,
    },
    Delete(Option<regex::Regex>),
    Print(Option<regex::Regex>),
    /// Line number: print or delete.
    Line(usize, bool),
}

impl Evaluator<'_> {
    pub(super) fn sed(&mut self, world: &mut World, words: &[Word], at: Span) -> Option<Computed> {
        let (mut extended, mut quiet, mut in_place) = (false, false, false);
        let mut scripts: Vec<&Word> = Vec::new();
        let mut operands: Vec<&Word> = Vec::new();
        let mut index = 0;
        let mut given = false;
        let mut odd = false;
        while let Some(word) = words.get(index) {
            index += 1;
            match word.value.known().as_deref() {
                Some("-E" | "-r" | "--regexp-extended") => extended = true,
                Some("-n" | "--quiet") => quiet = true,
                Some("-e" | "--expression") => {
                    given = true;
                    scripts.extend(words.get(index));
                    index += 1;
                }
                Some("-i" | "--in-place") => in_place = true,
                Some("-ne" | "-nE" | "-En" | "-nr" | "-ie" | "-i.bak" | "-Ei" | "-ri") => odd = true,
                Some(text) if text.starts_with("-i") => in_place = true,
                Some(text) if text.starts_with('-') && text.len() > 1 => odd = true,
                _ if !given && scripts.is_empty() => scripts.push(word),
                _ => operands.push(word),
            }
        }
        let script: Option<Vec<String>> = scripts
            .iter()
            .map(|w| w.value.known().map(|t| t.into_owned()))
            .collect();
        let edits = match script {
            Some(script) if !odd => parse(&script.join("\n"), extended),
            _ => None,
        };
        if in_place {
            for word in &operands {
                let key = paths::key(&world.cwd, &word.value);
                if let Some(file) = world.files.get(&key).cloned() {
                    let content = match (&edits, file.content.known()) {
                        (Some(edits), Some(text)) => Value::text(run(edits, &text, quiet), file.at),
                        _ => {
                            let name = format!("{key} after sed -i at line {}", at.line);
                            self.unknown_value(Why::Transform, name, at, file.content.depends_on())
                        }
                    };
                    self.write_file(world, key, content, at);
                }
            }
            return None;
        }
        let input = if operands.is_empty() {
            self.input_text(world, at)
        } else {
            let files: Option<Vec<String>> = operands
                .iter()
                .map(|w| w.value.known().map(|t| t.into_owned()))
                .collect();
            match files {
                Some(files) => self.filter_input(world, &files, at),
                None => {
                    let from = operands.iter().flat_map(|w| w.value.depends_on()).collect();
                    self.unknown_value(Why::File, "a file of unknown name", at, from)
                }
            }
        };
        let Some(edits) = edits else {
            return self.filtered_unknown("sed", words, &input, at);
        };
        if let Some(text) = input.known() {
            let place = input.pieces().first().map_or(at, |p| p.at);
            return Computed::ok(Value::text(run(&edits, &text, quiet), place));
        }
        self.filtered_unknown("sed", words, &input, at)
    }
}

fn parse(script: &str, extended: bool) -> Option<Vec<Edit>> {
    let mut edits = Vec::new();
    let mut rest = script.trim_start_matches([' ', ';', '\n']);
    while !rest.is_empty() {
        let regex_of = |text: &str, ignore_case| {
            let text = if extended { text.to_string() } else { basic_regex(text) };
            compile(&text, ignore_case)
        };
        if let Some(after) = rest.strip_prefix('s')
            && let Some(mark) = after.chars().next()
            && !mark.is_alphanumeric()
            && mark != '\\'
        {
            let (pattern, after) = delimited(&after[mark.len_utf8()..], mark)?;
            let (with, after) = delimited(after, mark)?;
            let flags_end = after.find([';', '\n', '}']).unwrap_or(after.len());
            let flags = after[..flags_end].trim();
            if flags.chars().any(|c| !matches!(c, 'g' | 'p' | 'i' | 'I')) {
                return None;
            }
            let regex = regex_of(&pattern, flags.contains(['i', 'I']))?;
            let (global, print) = (flags.contains('g'), flags.contains('p'));
            edits.push(Edit::Substitute {
                regex,
                with: replacement(&with)?,
                global,
                print,
            });
            rest = &after[flags_end..];
        } else if let Some(after) = rest.strip_prefix('/') {
            let (pattern, after) = delimited(after, '/')?;
            let regex = regex_of(&pattern, false)?;
            let after = after.trim_start();
            edits.push(match after.chars().next()? {
                'd' => Edit::Delete(Some(regex)),
                'p' => Edit::Print(Some(regex)),
                _ => return None,
            });
            rest = &after[1..];
        } else if let Some(after) = rest.strip_prefix('d') {
            edits.push(Edit::Delete(None));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('p') {
            edits.push(Edit::Print(None));
            rest = after;
        } else {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let number = rest[..digits].parse().ok()?;
            let prints = match rest[digits..].chars().next()? {
                'p' => true,
                'd' => false,
                _ => return None,
            };
            edits.push(Edit::Line(number, prints));
            rest = &rest[digits + 1..];
        }
        let next = rest.trim_start_matches([' ', ';', '\n']);
        if next.len() == rest.len() && !rest.is_empty() {
            return None;
        }
        rest = next;
    }
    Some(edits)
}

/// Text up to an unescaped mark, and what follows it.
fn delimited(text: &str, mark: char) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.char_indices();
    let mut in_class = false;
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => {
                let (_, next) = chars.next()?;
                if next != mark {
                    out.push('\\');
                }
                out.push(next);
            }
            '[' if !in_class => {
                in_class = true;
                out.push(c);
            }
            ']' => {
                in_class = false;
                out.push(c);
            }
            c if c == mark && !in_class => return Some((out, &text[index + c.len_utf8()..])),
            c => out.push(c),
        }
    }
    None
}

/// A sed replacement in the syntax of the regex crate.
fn replacement(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '$' => out.push_str("$$"),
            '&' => out.push_str("${0}"),
            '\\' => match chars.next()? {
                d @ '0'..='9' => out.push_str(&format!("${{{d}}}")),
                'n' => out.push('\n'),
                't' => out.push('\t'),
                'U' | 'L' | 'u' | 'l' | 'E' => return None,
                other => out.push(other),
            },
            c => out.push(c),
        }
    }
    Some(out)
}

fn run(edits: &[Edit], text: &str, quiet: bool) -> String {
    let mut out = String::new();
    'lines: for (number, line) in text.lines().enumerate() {
        let mut line = line.to_string();
        let mut prints = 0;
        for edit in edits {
            match edit {
                Edit::Substitute {
                    regex,
                    with,
                    global,
                    print,
                } => {
                    let changed = if *global {
                        regex.replace_all(&line, with.as_str())
                    } else {
                        regex.replace(&line, with.as_str())
                    };
                    let matched = regex.is_match(&line);
                    line = changed.into_owned();
                    prints += usize::from(*print && matched);
                }
                Edit::Delete(regex) => {
                    if regex.as_ref().is_none_or(|r| r.is_match(&line)) {
                        continue 'lines;
                    }
                }
                Edit::Print(regex) => prints += usize::from(regex.as_ref().is_none_or(|r| r.is_match(&line))),
                Edit::Line(wanted, print) if *wanted == number + 1 => {
                    if !print {
                        continue 'lines;
                    }
                    prints += 1;
                }
                Edit::Line(..) => {}
            }
        }
        for _ in 0..prints + usize::from(!quiet) {
            out.push_str(&line);
            out.push('\n');
        }
    }
    out
}
