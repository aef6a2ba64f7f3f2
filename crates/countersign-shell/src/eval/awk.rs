//! A tiny awk on known texts: `print`, `printf`, `exit`, assignments and arithmetic.

use std::collections::BTreeMap;

use super::Evaluator;
use super::printf::{formatted, general};
use super::programs::Computed;
use crate::output::Word;
use crate::value::{Span, Value};
use crate::world::{Status, World};

impl Evaluator<'_> {
    pub(super) fn awk(&mut self, world: &mut World, words: &[Word], at: Span) -> Option<Computed> {
        let mut variables: BTreeMap<String, Cell> = BTreeMap::new();
        let mut separator = None;
        let mut program = None;
        let mut files = Vec::new();
        let mut index = 0;
        let mut known = true;
        while let Some(word) = words.get(index) {
            index += 1;
            let Some(text) = word.value.known() else {
                known = false;
                break;
            };
            match &*text {
                "-v" => {
                    let Some(pair) = words.get(index).and_then(|w| w.value.known()) else {
                        known = false;
                        break;
                    };
                    if let Some((name, value)) = pair.split_once('=') {
                        variables.insert(name.into(), Cell::Text(value.into()));
                    }
                    index += 1;
                }
                "-F" => {
                    separator = words.get(index).and_then(|w| w.value.known()).map(|t| t.into_owned());
                    index += 1;
                }
                flag if flag.starts_with("-F") => separator = Some(flag[2..].to_string()),
                _ if program.is_none() => program = Some(text.into_owned()),
                _ => files.push(text.into_owned()),
            }
        }
        let Some(program) = program.filter(|_| known) else {
            let input = self.input_text(world, at);
            return self.filtered_unknown("awk", words, &input, at);
        };
        let body = program.trim();
        if let Some(begin) = body.strip_prefix("BEGIN") {
            let code = begin
                .trim()
                .strip_prefix('{')
                .and_then(|c| c.trim_end().strip_suffix('}'));
            if let Some((text, status)) = code.and_then(|c| Awk::new(c, variables, &[]).run()) {
                return Some(Computed {
                    output: Value::text(text, at),
                    status: Status::Known(status),
                });
            }
            return self.filtered_unknown("awk", words, &Value::empty(), at);
        }
        let input = self.filter_input(world, &files, at);
        let code = body.strip_prefix('{').and_then(|c| c.strip_suffix('}'));
        if let (Some(text), Some(code)) = (input.known(), code) {
            let mut out = String::new();
            for line in text.lines() {
                let fields: Vec<&str> = match separator.as_deref() {
                    None | Some(" ") => line.split_whitespace().collect(),
                    Some(one) if one.chars().count() == 1 => line.split(one).collect(),
                    Some(_) => return self.filtered_unknown("awk", words, &input, at),
                };
                let mut row = vec![line];
                row.extend(fields);
                match Awk::new(code, variables.clone(), &row).run() {
                    Some((text, _)) => out.push_str(&text),
                    None => return self.filtered_unknown("awk", words, &input, at),
                }
            }
            let place = input.pieces().first().map_or(at, |p| p.at);
            return Computed::ok(Value::text(out, place));
        }
        self.filtered_unknown("awk", words, &input, at)
    }
}

/// A value of awk.
#[derive(Debug, Clone)]
enum Cell {
    Number(f64),
    Text(String),
}

impl Cell {
    fn number(&self) -> f64 {
        match self {
            Cell::Number(n) => *n,
            Cell::Text(text) => {
                let text = text.trim_start();
                let end = text
                    .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '-' | '+' | 'e' | 'E')))
                    .unwrap_or(text.len());
                text[..end].parse().unwrap_or(0.0)
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Cell::Number(n) if n.fract() == 0.0 && n.abs() < 1e15 => format!("{n:.0}"),
            Cell::Number(n) => general(*n, 6),
            Cell::Text(text) => text.clone(),
        }
    }

    fn truth(&self) -> bool {
        match self {
            Cell::Number(n) => *n != 0.0,
            Cell::Text(text) => text.parse::<f64>().map_or(!text.is_empty(), |n| n != 0.0),
        }
    }
}

/// A tiny awk: `print`, `printf`, `exit`, assignments and arithmetic, separated by `;`.
struct Awk<'c> {
    rest: &'c str,
    variables: BTreeMap<String, Cell>,
    fields: Vec<String>,
    depth: usize,
}

impl<'c> Awk<'c> {
    fn new(code: &'c str, variables: BTreeMap<String, Cell>, fields: &[&str]) -> Awk<'c> {
        Awk {
            rest: code,
            variables,
            fields: fields.iter().map(|f| f.to_string()).collect(),
            depth: 0,
        }
    }

    fn run(mut self) -> Option<(String, i32)> {
        let mut out = String::new();
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', '\n', ';']);
            if self.rest.is_empty() {
                return Some((out, 0));
            }
            if self.word("exit") {
                let status = if self.ends() { 0.0 } else { self.expression()?.number() };
                return Some((out, (status as i64 & 255) as i32));
            }
            let formats = self.word("printf");
            if formats || self.word("print") {
                let cells = self.list()?;
                if formats {
                    let (format, arguments) = cells.split_first()?;
                    out.push_str(&awk_format(&format.text(), arguments)?);
                } else if cells.is_empty() {
                    out.push_str(self.fields.first()?);
                    out.push('\n');
                } else {
                    out.push_str(&cells.iter().map(Cell::text).collect::<Vec<_>>().join(" "));
                    out.push('\n');
                }
                continue;
            }
            let name = self.name()?;
            if !self.eat("=") || self.rest.starts_with('=') {
                return None;
            }
            let value = self.expression()?;
            self.variables.insert(name, value);
            if !self.ends() {
                return None;
            }
        }
    }

    /// The operands of `print` and `printf`, with or without brackets around all of them.
    fn list(&mut self) -> Option<Vec<Cell>> {
        let start = self.rest;
        for bracket in [true, false] {
            self.rest = start;
            if bracket && !self.eat("(") {
                continue;
            }
            let mut cells = Vec::new();
            let mut read = true;
            if !self.ends() {
                loop {
                    match self.expression() {
                        Some(cell) => cells.push(cell),
                        None => read = false,
                    }
                    if !read || !self.eat(",") {
                        break;
                    }
                }
            }
            if read && (!bracket || self.eat(")")) && self.ends() {
                return Some(cells);
            }
            self.depth = 0;
        }
        None
    }

    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    fn ends(&mut self) -> bool {
        self.blanks();
        self.rest.is_empty() || self.rest.starts_with([';', '\n', '}'])
    }

    fn eat(&mut self, text: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn word(&mut self, word: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(word) {
            Some(rest) if !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_') => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn name(&mut self) -> Option<String> {
        self.blanks();
        let end = self
            .rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.rest = rest;
        Some(name.to_string())
    }

    fn expression(&mut self) -> Option<Cell> {
        self.depth += 1;
        if self.depth > 16 {
            return None;
        }
        let cond = self.or();
        let cell = match cond {
            Some(cond) if self.eat("?") => {
                let yes = self.expression()?;
                if !self.eat(":") {
                    return None;
                }
                let no = self.expression()?;
                Some(if cond.truth() { yes } else { no })
            }
            other => other,
        };
        self.depth -= 1;
        cell
    }

    fn or(&mut self) -> Option<Cell> {
        let mut left = self.and()?;
        while self.eat("||") {
            let right = self.and()?;
            left = Cell::Number(f64::from(u8::from(left.truth() || right.truth())));
        }
        Some(left)
    }

    fn and(&mut self) -> Option<Cell> {
        let mut left = self.comparison()?;
        while self.eat("&&") {
            let right = self.comparison()?;
            left = Cell::Number(f64::from(u8::from(left.truth() && right.truth())));
        }
        Some(left)
    }

    fn comparison(&mut self) -> Option<Cell> {
        let left = self.sum()?;
        for op in ["<=", ">=", "==", "!=", "<", ">"] {
            if self.eat(op) {
                let right = self.sum()?;
                let numeric = |c: &Cell| matches!(c, Cell::Number(_)) || c.text().trim().parse::<f64>().is_ok();
                let order = if numeric(&left) && numeric(&right) {
                    left.number().partial_cmp(&right.number())?
                } else {
                    left.text().cmp(&right.text())
                };
                let holds = match op {
                    "<=" => order.is_le(),
                    ">=" => order.is_ge(),
                    "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    _ => order.is_gt(),
                };
                return Some(Cell::Number(f64::from(u8::from(holds))));
            }
        }
        Some(left)
    }

    fn sum(&mut self) -> Option<Cell> {
        let mut left = self.product()?;
        loop {
            if self.eat("+") {
                left = Cell::Number(left.number() + self.product()?.number());
            } else if self.eat("-") {
                left = Cell::Number(left.number() - self.product()?.number());
            } else {
                return Some(left);
            }
        }
    }

    fn product(&mut self) -> Option<Cell> {
        let mut left = self.unary()?;
        loop {
            if self.eat("*") {
                left = Cell::Number(left.number() * self.unary()?.number());
            } else if self.eat("/") {
                let right = self.unary()?.number();
                if right == 0.0 {
                    return None;
                }
                left = Cell::Number(left.number() / right);
            } else if self.eat("%") {
                let right = self.unary()?.number();
                if right == 0.0 {
                    return None;
                }
                left = Cell::Number(left.number() % right);
            } else {
                return Some(left);
            }
        }
    }

    fn unary(&mut self) -> Option<Cell> {
        self.depth += 1;
        if self.depth > 16 {
            return None;
        }
        let cell = if self.eat("!") {
            Cell::Number(f64::from(u8::from(!self.unary()?.truth())))
        } else if self.eat("-") {
            Cell::Number(-self.unary()?.number())
        } else {
            self.primary()?
        };
        self.depth -= 1;
        Some(cell)
    }

    fn primary(&mut self) -> Option<Cell> {
        self.blanks();
        if self.eat("(") {
            let cell = self.expression()?;
            return self.eat(")").then_some(cell);
        }
        if let Some(after) = self.rest.strip_prefix('$') {
            let digits = after.bytes().take_while(u8::is_ascii_digit).count();
            let index: usize = if let Some(rest) = after.strip_prefix("NF") {
                self.rest = rest;
                self.fields.len().saturating_sub(1)
            } else {
                self.rest = &after[digits..];
                after[..digits].parse().ok()?
            };
            return Some(Cell::Text(self.fields.get(index).cloned().unwrap_or_default()));
        }
        if let Some(after) = self.rest.strip_prefix('"') {
            let mut end = None;
            let mut escaped = false;
            for (index, c) in after.char_indices() {
                match c {
                    '\\' if !escaped => escaped = true,
                    '"' if !escaped => {
                        end = Some(index);
                        break;
                    }
                    _ => escaped = false,
                }
            }
            let end = end?;
            self.rest = &after[end + 1..];
            return Some(Cell::Text(crate::text::unescape(&after[..end], true).0));
        }
        let digits = self
            .rest
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'.')
            .count();
        if digits > 0 {
            let number = self.rest[..digits].parse().ok()?;
            self.rest = &self.rest[digits..];
            return Some(Cell::Number(number));
        }
        let name = self.name()?;
        if self.rest.starts_with('(') {
            let argument = self.primary()?;
            return (name == "int").then(|| Cell::Number(argument.number().trunc()));
        }
        if name == "NF" {
            return Some(Cell::Number(self.fields.len().saturating_sub(1) as f64));
        }
        Some(self.variables.get(&name).cloned().unwrap_or(Cell::Text(String::new())))
    }
}

fn awk_format(format: &str, arguments: &[Cell]) -> Option<String> {
    let mut out = String::new();
    let mut arguments = arguments.iter();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            out.push('%');
            rest = after;
            continue;
        }
        let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
        let letter = rest[end..].chars().next()?;
        let cell = arguments.next()?;
        let text = match letter {
            's' | 'c' => cell.text(),
            'd' | 'i' => format!("{:.0}", cell.number().trunc()),
            _ => format!("{}", cell.number()),
        };
        out.push_str(&formatted(&rest[..end], letter, &text)?);
        rest = &rest[end + 1..];
    }
    out.push_str(rest);
    Some(out)
}
