//! Programs that turn text into text, on known text: `tr`, `cut`, `head`, `sort`, `grep`, … On text that is not
//! known they give an unknown that depends on it.

use super::Evaluator;
use super::programs::Computed;
use crate::output::Word;
use crate::pattern::bounded;
use crate::value::{PieceKind, Shape, Span, Value, Why};
use crate::world::{Status, World};

/// Options and operands of a filter, as texts.
pub(super) struct Args {
    pub(super) flags: Vec<String>,
    pub(super) operands: Vec<String>,
}

/// Split the words: short flags of `with_value` take the next word or the rest of theirs.
pub(super) fn arguments(words: &[Word], with_value: &str) -> Option<Args> {
    let mut args = Args {
        flags: Vec::new(),
        operands: Vec::new(),
    };
    let mut index = 0;
    let mut open = true;
    while let Some(word) = words.get(index) {
        let text = word.value.known()?;
        index += 1;
        if !open || !text.starts_with('-') || text.len() < 2 {
            args.operands.push(text.into_owned());
        } else if text == "--" {
            open = false;
        } else if text.starts_with("--") {
            args.flags.push(text.into_owned());
        } else {
            let mut rest = &text[1..];
            while let Some(letter) = rest.chars().next() {
                rest = &rest[letter.len_utf8()..];
                if with_value.contains(letter) {
                    let value = if rest.is_empty() {
                        index += 1;
                        words.get(index - 1)?.value.known()?.into_owned()
                    } else {
                        rest.to_string()
                    };
                    args.flags.push(format!("{letter}{value}"));
                    break;
                }
                args.flags.push(letter.to_string());
            }
        }
    }
    Some(args)
}

impl Args {
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|f| f == flag)
    }

    pub(super) fn value(&self, letter: char) -> Option<&str> {
        self.flags
            .iter()
            .rev()
            .find_map(|f| f.strip_prefix(letter))
            .filter(|v| !v.is_empty())
    }
}

impl Evaluator<'_> {
    /// The text a filter reads: its files or its input.
    pub(super) fn filter_input(&mut self, world: &mut World, files: &[String], at: Span) -> Value {
        if files.is_empty() {
            return self.input_text(world, at);
        }
        let mut out = Value::empty();
        for file in files {
            let path = Value::text(file.as_str(), at);
            let text = if file == "-" {
                Some(self.input_text(world, at))
            } else {
                self.file_content(world, &path)
            };
            match text {
                Some(text) => out.append(&text),
                None => {
                    let name = format!("contents of {}", super::flow::short(file));
                    let value = self.unknown_value(Why::File, name, at, Default::default());
                    out.append(&value);
                }
            }
        }
        out
    }

    /// The unknown that a filter gives for unknown text.
    pub(super) fn filtered_unknown(&mut self, name: &str, args: &[Word], input: &Value, at: Span) -> Option<Computed> {
        let mut from = input.depends_on();
        from.extend(args.iter().flat_map(|w| w.value.depends_on()));
        let shown = super::flow::short(&format!("{name} {}", self.words_as_text(args).display()));
        let output = self.unknown_value(Why::Transform, format!("$({shown})"), at, from.clone());
        let status = self.unknown_status(&format!("{shown} succeeds"), at, from);
        Some(Computed { output, status })
    }

    pub(super) fn filter(&mut self, world: &mut World, name: &str, words: &[Word], at: Span) -> Option<Computed> {
        if name == "xargs" && !words.is_empty() {
            return None;
        }
        let with_value = match name {
            "cut" => "dfcb",
            "head" | "tail" => "nc",
            "sort" => "ktSTo",
            "paste" => "d",
            _ => "",
        };
        // `tail -n +2`, `head -5`, `head -n -1`.
        let args = arguments(words, with_value);
        let Some(args) = args else {
            let input = self.input_text(world, at);
            return self.filtered_unknown(name, words, &input, at);
        };
        let files: Vec<String> = match name {
            "tr" | "xargs" | "bc" => Vec::new(),
            _ => args.operands.clone(),
        };
        let input = self.filter_input(world, &files, at);
        let known = input.known().map(|t| t.into_owned());
        let output = match known {
            Some(text) => apply(name, &args, &text),
            None => None,
        };
        match output {
            Some(text) => {
                let place = input.pieces().first().map_or(at, |p| p.at);
                Computed::ok(Value::text(text, place))
            }
            None => {
                if name == "wc" {
                    let from = input.depends_on();
                    let number = self.fresh(Why::Transform, "$(wc …)", at, from, Shape::Number);
                    let mut output = Value::unknown(number, at);
                    output.push_text("\n".into(), at);
                    return Computed::ok(output);
                }
                self.filtered_unknown(name, words, &input, at)
            }
        }
    }

    pub(super) fn grep(&mut self, world: &mut World, name: &str, words: &[Word], at: Span) -> Option<Computed> {
        let args = arguments(words, "eABCmf");
        let Some(args) = args else {
            let input = self.input_text(world, at);
            return self.filtered_unknown(name, words, &input, at);
        };
        let known_flags = ["q", "v", "i", "E", "F", "c", "o", "x", "w", "n", "s", "h", "P", "G"];
        let plain = args
            .flags
            .iter()
            .all(|f| known_flags.contains(&f.as_str()) || f.starts_with('e') || f.starts_with('m'));
        let (pattern, files) = match (args.value('e'), args.operands.split_first()) {
            (Some(pattern), _) => (pattern.to_string(), args.operands.clone()),
            (None, Some((pattern, files))) => (pattern.clone(), files.to_vec()),
            (None, None) => return None,
        };
        let input = self.filter_input(world, &files, at);
        let fixed = args.has("F") || name == "fgrep";
        let extended = args.has("E") || args.has("P") || name == "egrep";
        let translated = if fixed {
            regex::escape(&pattern)
        } else if extended {
            pattern.clone()
        } else {
            basic_regex(&pattern)
        };
        let translated = if args.has("x") {
            format!("^(?:{translated})$")
        } else if args.has("w") {
            format!(r"\b(?:{translated})\b")
        } else {
            translated
        };
        let translated = if args.has("i") {
            format!("(?i){translated}")
        } else {
            translated
        };
        let regex = if plain && !args.has("n") {
            self.cache.regex(&translated)
        } else {
            None
        };
        let Some(regex) = regex else {
            return self.filtered_unknown(name, words, &input, at);
        };
        let Some(text) = input.known() else {
            // A match inside a known piece is a match whatever the rest is.
            let certain = !args.has("v")
                && input.pieces().iter().any(|p| match &p.kind {
                    PieceKind::Text(text) => !pattern.contains(['^', '$']) && text.lines().any(|l| regex.is_match(l)),
                    PieceKind::Unknown(_) => false,
                });
            if certain && args.has("q") {
                return Computed::ok(Value::empty());
            }
            return self.filtered_unknown(name, words, &input, at);
        };
        let mut out = String::new();
        let mut count = 0usize;
        let most = args
            .value('m')
            .and_then(|m| m.parse::<usize>().ok())
            .unwrap_or(usize::MAX);
        for line in text.lines() {
            if regex.is_match(line) == args.has("v") || count >= most {
                continue;
            }
            count += 1;
            if args.has("o") {
                for found in regex.find_iter(line).filter(|f| !f.is_empty()) {
                    out.push_str(found.as_str());
                    out.push('\n');
                }
            } else {
                out.push_str(line);
                out.push('\n');
            }
        }
        if args.has("c") {
            out = format!("{count}\n");
        }
        if args.has("q") {
            out.clear();
        }
        let place = input.pieces().first().map_or(at, |p| p.at);
        Some(Computed {
            output: Value::text(out, place),
            status: Status::Known(i32::from(count == 0)),
        })
    }
}

/// A basic regular expression in the syntax of the regex crate.
pub(super) fn basic_regex(pattern: &str) -> String {
    let mut out = String::new();
    let mut chars = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if in_class {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            if c == ']' && !out.ends_with("[]") && !out.ends_with("[^]") {
                in_class = false;
            } else if c == '[' && chars.peek() == Some(&':') {
                // A named class runs to its `:]`.
                while let Some(inner) = chars.next() {
                    out.push(inner);
                    if inner == ':' && chars.peek() == Some(&']') {
                        out.push(']');
                        chars.next();
                        break;
                    }
                }
            }
            continue;
        }
        match c {
            '\\' => match chars.next() {
                Some(next @ ('(' | ')' | '{' | '}' | '|' | '+' | '?')) => out.push(next),
                Some(next @ ('<' | '>')) => {
                    let _ = next;
                    out.push_str("\\b");
                }
                Some(next) => {
                    out.push('\\');
                    out.push(next);
                }
                None => out.push_str("\\\\"),
            },
            '(' | ')' | '{' | '}' | '|' | '+' | '?' => {
                out.push('\\');
                out.push(c);
            }
            // A star in front of nothing is a star.
            '*' if out.is_empty() || out.ends_with('(') => out.push_str("\\*"),
            '[' => {
                in_class = true;
                out.push('[');
            }
            c => out.push(c),
        }
    }
    out
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn unlines<S: AsRef<str>>(lines: impl IntoIterator<Item = S>) -> String {
    let mut out = String::new();
    for line in lines {
        out.push_str(line.as_ref());
        out.push('\n');
    }
    out
}

fn apply(name: &str, args: &Args, text: &str) -> Option<String> {
    match name {
        "tr" => tr(args, text),
        "cut" => cut(args, text),
        "head" | "tail" => {
            let all = lines(text);
            let spec = args.value('n').map(str::to_string).or_else(|| {
                args.flags
                    .iter()
                    .find(|f| f.bytes().all(|b| b.is_ascii_digit()))
                    .map(|_| {
                        args.flags
                            .iter()
                            .filter(|f| f.bytes().all(|b| b.is_ascii_digit()))
                            .cloned()
                            .collect::<String>()
                    })
            });
            if args.value('c').is_some() {
                return None;
            }
            let spec = spec.unwrap_or_else(|| "10".into());
            let number: usize = spec.trim_start_matches(['+', '-']).parse().ok()?;
            let picked = match (name, spec.chars().next()?) {
                ("head", '-') => &all[..all.len().saturating_sub(number)],
                ("head", _) => &all[..number.min(all.len())],
                (_, '+') => &all[number.saturating_sub(1).min(all.len())..],
                _ => &all[all.len().saturating_sub(number)..],
            };
            Some(unlines(picked))
        }
        "sort" => {
            if args.flags.iter().any(|f| !matches!(f.as_str(), "n" | "r" | "u" | "V")) {
                return None;
            }
            let mut all = lines(text);
            if args.has("V") {
                all.sort_by_key(|l| version_key(l));
            } else if args.has("n") {
                let number = |l: &str| -> f64 {
                    let end = l
                        .trim_start()
                        .find(|c: char| !(c.is_ascii_digit() || c == '-' || c == '.'));
                    let head = l.trim_start();
                    head[..end.unwrap_or(head.len())].parse().unwrap_or(0.0)
                };
                all.sort_by(|a, b| number(a).total_cmp(&number(b)).then(a.cmp(b)));
            } else {
                all.sort_unstable();
            }
            if args.has("r") {
                all.reverse();
            }
            if args.has("u") {
                all.dedup();
            }
            Some(unlines(all))
        }
        "uniq" if args.flags.is_empty() => {
            let mut all = lines(text);
            all.dedup();
            Some(unlines(all))
        }
        "wc" => {
            let counts = [text.matches('\n').count(), text.split_whitespace().count(), text.len()];
            match args.flags.as_slice() {
                [flag] => match flag.as_str() {
                    "l" => Some(format!("{}\n", counts[0])),
                    "w" => Some(format!("{}\n", counts[1])),
                    "c" => Some(format!("{}\n", counts[2])),
                    _ => None,
                },
                _ => None,
            }
        }
        "rev" => Some(unlines(lines(text).iter().map(|l| l.chars().rev().collect::<String>()))),
        "tac" => Some(unlines(lines(text).iter().rev())),
        "paste" if args.has("s") => {
            let joint = args.value('d').unwrap_or("\t");
            let joint: String = joint.chars().take(1).collect();
            Some(format!("{}\n", lines(text).join(&joint)))
        }
        "xargs" => Some(format!("{}\n", text.split_whitespace().collect::<Vec<_>>().join(" "))),
        _ => None,
    }
}

/// Numbers inside names compare as numbers.
fn version_key(line: &str) -> Vec<(u64, String)> {
    let mut out = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let text_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, tail) = rest.split_at(text_end);
        let number_end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(number_end);
        out.push((number.parse().unwrap_or(0), text.to_string()));
        rest = tail;
    }
    out
}

fn tr_set(spec: &str) -> Option<Vec<char>> {
    let mut out = Vec::new();
    let (decoded, _) = crate::text::unescape(spec, true);
    let mut rest: &str = &decoded;
    while let Some(c) = rest.chars().next() {
        if let Some(named) = rest.strip_prefix("[:") {
            let end = named.find(":]")?;
            match &named[..end] {
                "upper" => out.extend('A'..='Z'),
                "lower" => out.extend('a'..='z'),
                "digit" => out.extend('0'..='9'),
                "space" => out.extend([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']),
                "alnum" => out.extend(('0'..='9').chain('A'..='Z').chain('a'..='z')),
                "alpha" => out.extend(('A'..='Z').chain('a'..='z')),
                "blank" => out.extend([' ', '\t']),
                "punct" => out.extend((33u8..127).map(char::from).filter(char::is_ascii_punctuation)),
                _ => return None,
            }
            rest = &named[end + 2..];
            continue;
        }
        let after = &rest[c.len_utf8()..];
        if let Some(last) = after.strip_prefix('-').and_then(|t| t.chars().next())
            && (last as u32).saturating_sub(c as u32) < 4096
            && last >= c
        {
            out.extend(c..=last);
            rest = &after[1 + last.len_utf8()..];
        } else {
            out.push(c);
            rest = after;
        }
    }
    Some(out)
}

fn tr(args: &Args, text: &str) -> Option<String> {
    let first = tr_set(args.operands.first()?)?;
    let second = match args.operands.get(1) {
        Some(spec) => Some(tr_set(spec)?),
        None => None,
    };
    let complement = args.has("c") || args.has("C");
    let inside = |c: char| first.contains(&c) != complement;
    let mut out = String::with_capacity(text.len());
    let mut last: Option<char> = None;
    for c in text.chars() {
        let mut mapped = c;
        if args.has("d") {
            if inside(c) {
                continue;
            }
        } else if let Some(second) = &second
            && inside(c)
        {
            let index = if complement {
                second.len()
            } else {
                first.iter().position(|f| *f == c).unwrap_or(0)
            };
            mapped = *second.get(index).or(second.last())?;
        }
        if args.has("s") {
            let squeezed = second.as_ref().map_or(inside(mapped), |s| s.contains(&mapped));
            if squeezed && last == Some(mapped) {
                continue;
            }
        }
        last = Some(mapped);
        out.push(mapped);
    }
    Some(out)
}

fn cut(args: &Args, text: &str) -> Option<String> {
    let delimiter = args.value('d').and_then(|d| d.chars().next()).unwrap_or('\t');
    let (spec, by_field) = match (args.value('f'), args.value('c').or(args.value('b'))) {
        (Some(spec), _) => (spec, true),
        (None, Some(spec)) => (spec, false),
        (None, None) => return None,
    };
    let mut ranges = Vec::new();
    for part in spec.split(',') {
        let (low, high) = match part.split_once('-') {
            Some((low, high)) => {
                let low = if low.is_empty() { 1 } else { low.parse().ok()? };
                let high = if high.is_empty() {
                    usize::MAX
                } else {
                    high.parse().ok()?
                };
                (low, high)
            }
            None => {
                let n: usize = part.parse().ok()?;
                (n, n)
            }
        };
        ranges.push((low, high));
    }
    let wanted = |n: usize| ranges.iter().any(|(a, b)| (*a..=*b).contains(&n));
    let cut_line = |line: &str| -> String {
        if !by_field {
            return line
                .chars()
                .enumerate()
                .filter(|(i, _)| wanted(i + 1))
                .map(|(_, c)| c)
                .collect();
        }
        if !line.contains(delimiter) {
            return line.to_string();
        }
        let fields: Vec<&str> = line
            .split(delimiter)
            .enumerate()
            .filter(|(i, _)| wanted(i + 1))
            .map(|(_, f)| f)
            .collect();
        fields.join(&delimiter.to_string())
    };
    Some(unlines(lines(text).into_iter().map(cut_line)))
}

/// Used by `sed` too: a compiled expression within bounds.
pub(super) fn compile(text: &str, ignore_case: bool) -> Option<regex::Regex> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.case_insensitive(ignore_case);
    bounded(builder)
}
