//! `sed` and `awk`, the small part of them that scripts use to compute a value: substitutions, deletions and
//! prints without addresses or with simple ones; arithmetic in `BEGIN`. Everything else gives an unknown.

use std::collections::BTreeMap;

use super::filters::{basic_regex, compile};
use super::printf::{formatted, general};
use super::programs::Computed;
use super::{Evaluator, paths};
use crate::output::Word;
use crate::value::{Span, Value, Why};
use crate::world::{Status, World};

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
