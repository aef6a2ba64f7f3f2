//! `printf` and `echo`.

use super::Evaluator;
use crate::output::{Note, Word};
use crate::text;
use crate::value::{Shape, Span, Value, Why};
use crate::world::World;

/// One element of a format.
enum Item {
    Text(String),
    /// Flags, width and precision as written, and the letter.
    Conversion(String, char),
}

impl Evaluator<'_> {
    pub(super) fn echo(&mut self, world: &mut World, words: &[Word], at: Span) {
        let (mut newline, mut escapes, mut start) = (true, false, 0);
        while let Some(text) = words.get(start).and_then(|w| w.value.known()) {
            let flags = text
                .strip_prefix('-')
                .filter(|f| !f.is_empty() && f.chars().all(|c| "neE".contains(c)));
            let Some(flags) = flags else { break };
            for flag in flags.chars() {
                match flag {
                    'n' => newline = false,
                    'e' => escapes = true,
                    _ => escapes = false,
                }
            }
            start += 1;
        }
        // Nobody looks at what goes to the terminal.
        if world.out == crate::world::Sink::Drop {
            return;
        }
        let mut out = Value::empty();
        for (index, word) in words[start.min(words.len())..].iter().enumerate() {
            if index > 0 {
                out.push_text(" ".into(), word.span);
            }
            match word.value.known().filter(|_| escapes) {
                Some(known) => out.push_text(text::unescape(&known, false).0.into(), word.span),
                None => out.append(&word.value),
            }
        }
        if newline {
            let end = out.pieces().last().map_or(at, |p| p.at);
            out.push_text("\n".into(), end);
        }
        self.emit(world, &out, at);
    }

    /// The text that `printf format arguments…` gives.
    pub(super) fn printf(&mut self, format: &Value, arguments: &[Word], at: Span) -> Value {
        let Some(known) = format.known() else {
            let from = arguments
                .iter()
                .flat_map(|w| w.value.depends_on())
                .chain(format.depends_on())
                .collect();
            return self.unknown_value(Why::Transform, "printf of an unknown format", at, from);
        };
        let items = items(&known);
        let place = format.pieces().first().map_or(at, |p| p.at);
        let mut out = Value::empty();
        let mut rest = arguments.iter();
        let mut rounds = 0;
        loop {
            let before = rest.len();
            for item in &items {
                match item {
                    Item::Text(text) => out.push_text(text.as_str().into(), place),
                    Item::Conversion(spec, letter) => {
                        let mut spec = spec.clone();
                        while spec.contains('*') {
                            let width = rest
                                .next()
                                .and_then(|w| w.value.known())
                                .map(|t| t.into_owned())
                                .unwrap_or_default();
                            spec = spec.replacen('*', &width, 1);
                        }
                        let argument = rest.next();
                        self.convert(&mut out, &spec, *letter, argument, place, at);
                    }
                }
            }
            rounds += 1;
            if rest.len() == 0 || rest.len() == before {
                return out;
            }
            if rounds > self.limits.words || out.size() > self.limits.value_bytes {
                self.note(Note::Bound, at, "more output of printf than is kept".into());
                return out;
            }
        }
    }

    fn convert(&mut self, out: &mut Value, spec: &str, letter: char, argument: Option<&Word>, place: Span, at: Span) {
        let empty = Value::empty();
        let value = argument.map_or(&empty, |w| &w.value);
        let known = value.known();
        match (letter, known) {
            // A plain string takes its pieces along.
            ('q', None) if spec.is_empty() && value.is_laned() => match self.quoted_in_lanes(value) {
                Some(quoted) => out.append(&quoted),
                None => out.append(value),
            },
            ('s' | 'b' | 'q', None) if spec.is_empty() => out.append(value),
            ('s', Some(_)) if spec.is_empty() => out.append(value),
            ('q', Some(text)) => {
                let quoted = text::quote(&text);
                let source = value.pieces().first().map_or(place, |p| p.at);
                out.push_text(quoted.into(), source);
            }
            (_, None) => {
                // A formatted number is a number; a padded text is just text.
                let shape = if matches!(letter, 'd' | 'i' | 'u' | 'f' | 'F') {
                    Shape::Number
                } else {
                    Shape::Any
                };
                let name = format!("printf %{spec}{letter} of {}", super::flow::short(&value.display()));
                let unknown = self.fresh(Why::Transform, name, at, value.depends_on(), shape);
                out.push_unknown(unknown, place);
            }
            (_, Some(text)) => {
                let source = value.pieces().first().map_or(place, |p| p.at);
                match formatted(spec, letter, &text) {
                    Some(text) => out.push_text(text.into(), source),
                    None => {
                        self.note(
                            Note::ShellError,
                            at,
                            format!("printf: `{}` for %{letter}", super::flow::short(&text)),
                        );
                        out.push_text("0".into(), source);
                    }
                }
            }
        }
    }
}

fn items(format: &str) -> Vec<Item> {
    let mut out = Vec::new();
    let mut text = String::new();
    let mut chars = format.char_indices().peekable();
    while let Some((index, c)) = chars.next() {
        match c {
            '\\' => {
                let (decoded, used) = text::escape(&format[index + 1..], true);
                text.push_str(&decoded);
                let end = index + 1 + used;
                while chars.peek().is_some_and(|(i, _)| *i < end) {
                    chars.next();
                }
            }
            '%' => {
                if chars.peek().is_some_and(|(_, c)| *c == '%') {
                    chars.next();
                    text.push('%');
                    continue;
                }
                let mut spec = String::new();
                let mut letter = None;
                while let Some((_, c)) = chars.peek().copied() {
                    chars.next();
                    if "-+ #0123456789.*'".contains(c) && spec.len() < 16 {
                        spec.push(c);
                    } else if !matches!(c, 'l' | 'h' | 'z') {
                        letter = Some(c);
                        break;
                    }
                }
                match letter {
                    Some(letter) => {
                        if !text.is_empty() {
                            out.push(Item::Text(std::mem::take(&mut text)));
                        }
                        out.push(Item::Conversion(spec, letter));
                    }
                    None => text.push('%'),
                }
            }
            c => text.push(c),
        }
    }
    if !text.is_empty() {
        out.push(Item::Text(text));
    }
    out
}

/// A known text under one conversion. None: not a number.
pub(super) fn formatted(spec: &str, letter: char, text: &str) -> Option<String> {
    let left = spec.contains('-');
    let plus = spec.contains('+');
    let digits = spec.trim_start_matches(['-', '+', ' ', '#', '0', '\'']);
    let zero = spec[..spec.len() - digits.len()].contains('0');
    let (width, precision) = match digits.split_once('.') {
        Some((width, precision)) => (width, Some(precision.parse::<usize>().unwrap_or(0).min(64))),
        None => (digits, None),
    };
    let width = width.parse::<usize>().unwrap_or(0).min(4096);
    let (body, numeric) = match letter {
        's' => {
            let cut: String = match precision {
                Some(n) => text.chars().take(n).collect(),
                None => text.to_string(),
            };
            (cut, false)
        }
        'b' => (text::unescape(text, true).0, false),
        'c' => (text.chars().take(1).collect(), false),
        'd' | 'i' | 'u' => {
            let number = integer(text)?;
            let sign = if plus && number >= 0 { "+" } else { "" };
            (format!("{sign}{number}"), true)
        }
        'x' => (format!("{:x}", integer(text)?), true),
        'X' => (format!("{:X}", integer(text)?), true),
        'o' => (format!("{:o}", integer(text)?), true),
        'f' | 'F' => {
            let number = real(text)?;
            (format!("{number:.*}", precision.unwrap_or(6)), true)
        }
        'g' | 'G' => (general(real(text)?, precision.unwrap_or(6)), true),
        'e' | 'E' => {
            let text = format!("{:.*e}", precision.unwrap_or(6), real(text)?);
            let (mantissa, exponent) = text.split_once('e')?;
            let exponent: i32 = exponent.parse().ok()?;
            let sign = if exponent < 0 { '-' } else { '+' };
            (format!("{mantissa}e{sign}{:02}", exponent.abs()), true)
        }
        _ => return None,
    };
    let missing = width.saturating_sub(body.chars().count());
    if missing == 0 {
        return Some(body);
    }
    Some(if left {
        format!("{body}{}", " ".repeat(missing))
    } else if zero && numeric {
        match body.strip_prefix('-') {
            Some(rest) => format!("-{}{rest}", "0".repeat(missing)),
            None => format!("{}{body}", "0".repeat(missing)),
        }
    } else {
        format!("{}{body}", " ".repeat(missing))
    })
}

/// `%g`: the shortest of plain and exponent form, without trailing zeros.
pub(super) fn general(number: f64, precision: usize) -> String {
    if number == 0.0 {
        return "0".into();
    }
    let precision = precision.max(1);
    let exponent = format!("{:.*e}", precision - 1, number);
    let power: i32 = exponent.split_once('e').and_then(|(_, e)| e.parse().ok()).unwrap_or(0);
    if power < -4 || power >= precision as i32 {
        let mantissa = exponent.split_once('e').map_or("", |(m, _)| m);
        let mantissa = if mantissa.contains('.') {
            mantissa.trim_end_matches('0').trim_end_matches('.')
        } else {
            mantissa
        };
        let sign = if power < 0 { '-' } else { '+' };
        return format!("{mantissa}e{sign}{:02}", power.abs());
    }
    let decimals = (precision as i32 - 1 - power).max(0) as usize;
    let plain = format!("{number:.decimals$}");
    if plain.contains('.') {
        plain.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        plain
    }
}

fn integer(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0);
    }
    if let Some(quoted) = text.strip_prefix(['\'', '"']) {
        return quoted.chars().next().map(|c| i64::from(c as u32));
    }
    if let Some(hex) = text.strip_prefix("0x") {
        return i64::from_str_radix(hex, 16).ok();
    }
    if text.len() > 1 && text.starts_with('0') {
        return i64::from_str_radix(text, 8).ok();
    }
    text.parse().ok()
}

fn real(text: &str) -> Option<f64> {
    let text = text.trim();
    if text.is_empty() {
        return Some(0.0);
    }
    text.parse::<f64>().ok().filter(|n| n.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected texts are those of bash's own printf.
    #[test]
    fn conversions() {
        for (spec, letter, text, expected) in [
            (".2", 'f', "2.49", "2.49"),
            (".2", 'f', "3", "3.00"),
            ("", 'd', "3", "3"),
            ("03", 'd', "7", "007"),
            ("-5", 's', "ab", "ab   "),
            ("5", 's', "ab", "   ab"),
            (".1", 's', "ab", "a"),
            ("", 'x', "255", "ff"),
            ("", 'g', "0.0001", "0.0001"),
            ("", 'g', "1000000", "1e+06"),
            ("", 'g', "2.5", "2.5"),
            ("", 'e', "12345", "1.234500e+04"),
            ("+", 'd', "5", "+5"),
            ("05", 'd', "-3", "-0003"),
        ] {
            assert_eq!(
                formatted(spec, letter, text).as_deref(),
                Some(expected),
                "%{spec}{letter} {text}"
            );
        }
        assert_eq!(formatted("", 'd', "abc"), None);
    }
}
