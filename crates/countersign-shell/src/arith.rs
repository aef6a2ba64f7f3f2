//! Arithmetic as bash does it, over values that may be unknown: 64-bit, wrapping, with assignments.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::lanes::{Lanes, MARK};
use crate::value::{PieceKind, Shape, Unknown, Value, Why};

/// A number or what it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Num {
    Known(i64),
    /// One for each of the points that are evaluated together.
    Each(Arc<[i64]>),
    Unknown(BTreeSet<Arc<str>>),
}

impl Num {
    /// The number for one of the points.
    pub(crate) fn in_lane(&self, lane: usize) -> Option<i64> {
        match self {
            Num::Known(n) => Some(*n),
            Num::Each(numbers) => numbers.get(lane).copied(),
            Num::Unknown(_) => None,
        }
    }
}

/// Variables as the expression sees them.
pub(crate) trait Vars {
    fn get(&mut self, name: &str, index: Option<&Num>) -> Value;
    fn set(&mut self, name: &str, index: Option<&Num>, value: &Num);
    fn lanes(&mut self) -> &mut Lanes;
}

/// Nesting of brackets and of names that hold expressions.
const MAX_DEPTH: usize = 24;

#[derive(Debug, Clone, PartialEq)]
enum Tok<'t> {
    Num(i64),
    Name(&'t str),
    Each(Arc<[i64]>),
    Unknown(BTreeSet<Arc<str>>),
    Op(&'static str),
}

/// Evaluate an expression; Err says what is wrong with it.
pub(crate) fn eval(text: &Value, vars: &mut dyn Vars) -> Result<Num, String> {
    eval_at(text, vars, 0)
}

fn eval_at(text: &Value, vars: &mut dyn Vars, depth: usize) -> Result<Num, String> {
    if depth > MAX_DEPTH {
        return Err("an expression nested too deeply".into());
    }
    let toks = tokens(text)?;
    if toks.is_empty() {
        return Ok(Num::Known(0));
    }
    let mut parser = Parser {
        toks: &toks,
        at: 0,
        vars,
        depth,
        quiet: 0,
        choosing: 0,
    };
    let value = parser.comma()?;
    if parser.at < toks.len() {
        return Err("an expression with something left over".into());
    }
    Ok(value)
}

const OPS: [&str; 38] = [
    "<<=", ">>=", "**", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=",
    "^=", "|=", "+", "-", "*", "/", "%", "<", ">", "!", "~", "&", "^", "|", "?", ":", "=", "(", ")",
];

fn tokens(value: &Value) -> Result<Vec<Tok<'_>>, String> {
    let mut out: Vec<Tok<'_>> = Vec::new();
    // True when the last token may be continued by what follows without a blank.
    let mut open = false;
    for piece in value.pieces() {
        match &piece.kind {
            PieceKind::Unknown(unknown) => {
                if !open && let Some(numbers) = numbers(unknown) {
                    out.push(Tok::Each(numbers));
                    open = true;
                    continue;
                }
                let mut names = unknown.depends_on.clone();
                if open && let Some(Tok::Unknown(more)) = out.last() {
                    names.extend(more.iter().cloned());
                }
                if open
                    && matches!(
                        out.last(),
                        Some(Tok::Num(_) | Tok::Name(_) | Tok::Unknown(_) | Tok::Each(_))
                    )
                    && let Some(Tok::Each(_)) = out.pop()
                {
                    names.insert(MARK.into());
                }
                out.push(Tok::Unknown(names));
                open = true;
            }
            PieceKind::Text(text) => {
                let mut rest: &str = text;
                while let Some(c) = rest.chars().next() {
                    if c.is_whitespace() {
                        open = false;
                        rest = &rest[c.len_utf8()..];
                        continue;
                    }
                    if c.is_ascii_alphanumeric() || c == '_' {
                        let end = rest
                            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '#' | '@')))
                            .unwrap_or(rest.len());
                        let word = &rest[..end];
                        rest = &rest[end..];
                        if open && matches!(out.last(), Some(Tok::Unknown(_))) {
                            continue;
                        }
                        if open && let Some(last @ Tok::Each(_)) = out.last_mut() {
                            *last = Tok::Unknown([MARK.into()].into());
                            continue;
                        }
                        out.push(if c.is_ascii_digit() {
                            Tok::Num(number(word)?)
                        } else {
                            Tok::Name(word)
                        });
                        open = true;
                        continue;
                    }
                    open = false;
                    if let Some(op) = ["[", "]", ","].into_iter().find(|op| rest.starts_with(op)) {
                        out.push(Tok::Op(op));
                        rest = &rest[1..];
                    } else if let Some(op) = OPS.into_iter().find(|op| rest.starts_with(op)) {
                        out.push(Tok::Op(op));
                        rest = &rest[op.len()..];
                    } else if matches!(c, '\'' | '"' | '\\') {
                        rest = &rest[1..];
                    } else {
                        return Err(format!("`{c}` in an arithmetic expression"));
                    }
                }
            }
        }
    }
    Ok(out)
}

fn number(word: &str) -> Result<i64, String> {
    let parsed = if let Some((base, digits)) = word.split_once('#') {
        let base: u32 = base.parse().unwrap_or(0);
        if (2..=36).contains(&base) {
            i64::from_str_radix(digits, base).ok()
        } else {
            None
        }
    } else if let Some(hex) = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        i64::from_str_radix(hex, 16).ok()
    } else if word.len() > 1 && word.starts_with('0') {
        i64::from_str_radix(word, 8).ok()
    } else {
        word.parse().ok()
    };
    parsed.ok_or_else(|| format!("`{word}` is not a number"))
}

/// The numbers that an unknown is for each point, where all of them stand in a text as one plain number.
fn numbers(unknown: &Unknown) -> Option<Arc<[i64]>> {
    let plain = |text: &Arc<str>| {
        let number = text.parse::<i64>().ok().filter(|n| *n >= 0)?;
        (text.len() == 1 || !text.starts_with(['0', '+'])).then_some(number)
    };
    unknown.each.as_ref()?.iter().map(plain).collect()
}

struct Parser<'a, 'v> {
    toks: &'a [Tok<'a>],
    at: usize,
    vars: &'v mut dyn Vars,
    depth: usize,
    /// Above zero in the side of `?:`, `&&`, `||` that is not evaluated: assignments have no effect.
    quiet: usize,
    /// Above zero in the sides of `?:` that some points take and others do not.
    choosing: usize,
}

fn both(a: &Num, b: &Num) -> BTreeSet<Arc<str>> {
    let mut names = BTreeSet::new();
    for num in [a, b] {
        match num {
            Num::Unknown(more) => names.extend(more.iter().cloned()),
            Num::Each(_) => {
                names.insert(MARK.into());
            }
            Num::Known(_) => {}
        }
    }
    names
}

impl Parser<'_, '_> {
    fn peek(&self) -> Option<&'static str> {
        match self.toks.get(self.at) {
            Some(Tok::Op(op)) => Some(op),
            _ => None,
        }
    }

    fn eat(&mut self, op: &str) -> bool {
        let found = self.peek() == Some(op);
        self.at += usize::from(found);
        found
    }

    fn comma(&mut self) -> Result<Num, String> {
        let mut value = self.assign()?;
        while self.eat(",") {
            value = self.assign()?;
        }
        Ok(value)
    }

    fn assign(&mut self) -> Result<Num, String> {
        let start = self.at;
        let sets = |tok: &Tok<'_>| matches!(tok, Tok::Op(op) if *op == "[" || assigns(op));
        if let Some(Tok::Name(name)) = self.toks.get(self.at)
            && self.toks.get(self.at + 1).is_some_and(sets)
        {
            self.at += 1;
            let index = self.index()?;
            if let Some(op) = self.peek().filter(|op| assigns(op)) {
                self.at += 1;
                self.deeper()?;
                let right = self.assign()?;
                self.depth -= 1;
                let value = if op == "=" {
                    right
                } else {
                    let left = self.load(name, index.as_ref())?;
                    self.apply(&op[..op.len() - 1], &left, &right)?
                };
                self.store(name, index.as_ref(), &value);
                return Ok(value);
            }
            self.at = start;
        }
        self.ternary()
    }

    fn store(&mut self, name: &str, index: Option<&Num>, value: &Num) {
        if self.quiet == 0 {
            self.vars.set(name, index, value);
        }
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            Err("an expression nested too deeply".into())
        } else {
            Ok(())
        }
    }

    fn ternary(&mut self) -> Result<Num, String> {
        let cond = self.binary(0)?;
        if !self.eat("?") {
            return Ok(cond);
        }
        self.deeper()?;
        let cond = if matches!(cond, Num::Each(_)) && self.assigns() {
            self.truth(cond)
        } else {
            cond
        };
        let choosing = usize::from(matches!(cond, Num::Each(_)));
        self.choosing += choosing;
        let yes = self.muted(!matches!(cond, Num::Known(c) if c != 0), Self::assign)?;
        if !self.eat(":") {
            return Err("`?` without its `:`".into());
        }
        let no = self.muted(!matches!(cond, Num::Known(0)), Self::assign)?;
        self.choosing -= choosing;
        self.depth -= 1;
        Ok(match cond {
            Num::Known(0) => no,
            Num::Known(_) => yes,
            Num::Each(conds) => {
                let own = |(lane, cond): (usize, &i64)| if *cond == 0 { &no } else { &yes }.in_lane(lane);
                match conds.iter().enumerate().map(own).collect::<Option<Vec<i64>>>() {
                    Some(numbers) => self.vars.lanes().number(numbers),
                    None => {
                        let mut names = both(&yes, &no);
                        names.insert(MARK.into());
                        Num::Unknown(names)
                    }
                }
            }
            Num::Unknown(_) if yes == no => yes,
            Num::Unknown(mut names) => {
                names.extend(both(&yes, &no));
                Num::Unknown(names)
            }
        })
    }

    /// Whether the expression sets a variable anywhere.
    fn assigns(&self) -> bool {
        let sets = |op: &str| {
            matches!(op, "=" | "++" | "--")
                || (op.len() > 1 && op.ends_with('=') && !matches!(op, "==" | "!=" | "<=" | ">="))
        };
        self.toks.iter().any(|tok| matches!(tok, Tok::Op(op) if sets(op)))
    }

    /// One or zero as the first point has it; points that have it otherwise are left out.
    fn truth(&mut self, number: Num) -> Num {
        match number {
            Num::Each(numbers) => {
                let truths: Vec<bool> = numbers.iter().map(|n| *n != 0).collect();
                Num::Known(i64::from(self.vars.lanes().agree(&truths).unwrap_or_default()))
            }
            number => number,
        }
    }

    fn apply(&mut self, op: &str, left: &Num, right: &Num) -> Result<Num, String> {
        match (left, right) {
            (Num::Known(a), Num::Known(b)) => {
                let result = apply(op, *a, *b);
                if self.choosing > 0 && result.is_err() {
                    // An error for the points that take this side only.
                    self.vars.lanes().void();
                }
                result.map(Num::Known)
            }
            (Num::Unknown(_), _) | (_, Num::Unknown(_)) => Ok(Num::Unknown(both(left, right))),
            (Num::Each(lanes), _) | (_, Num::Each(lanes)) => {
                let own = |lane| Some(apply(op, left.in_lane(lane)?, right.in_lane(lane)?));
                let results: Vec<Result<i64, String>> = (0..lanes.len()).filter_map(own).collect();
                let fine: Vec<bool> = results.iter().map(Result::is_ok).collect();
                if fine.contains(&false) {
                    if self.quiet > 0 {
                        self.vars.lanes().void();
                    }
                    self.vars.lanes().agree(&fine);
                }
                let first = results.first().cloned().unwrap_or(Ok(0))?;
                let numbers = results.into_iter().map(|result| result.unwrap_or(first)).collect();
                Ok(self.vars.lanes().number(numbers))
            }
        }
    }

    fn muted(&mut self, mute: bool, f: fn(&mut Self) -> Result<Num, String>) -> Result<Num, String> {
        self.quiet += usize::from(mute);
        let value = f(self);
        self.quiet -= usize::from(mute);
        value
    }

    /// Operators that bind at least as tightly as `level`, from the left.
    fn binary(&mut self, level: u8) -> Result<Num, String> {
        let mut left = self.power()?;
        while let Some((op, own)) = self.peek().and_then(|op| Some((op, binds(op)?)))
            && own >= level
        {
            self.at += 1;
            if matches!(op, "&&" | "||") {
                left = self.truth(left);
            }
            let decided = match (op, &left) {
                ("&&", Num::Known(0)) => Some(0),
                ("||", Num::Known(n)) if *n != 0 => Some(1),
                _ => None,
            };
            self.quiet += usize::from(decided.is_some());
            let right = self.binary(own + 1);
            self.quiet -= usize::from(decided.is_some());
            let right = right?;
            left = match decided {
                Some(value) => Num::Known(value),
                // A known zero divisor in a side that is not evaluated is no error.
                None if self.quiet > 0 => self.apply(op, &left, &right).unwrap_or(Num::Known(0)),
                None => self.apply(op, &left, &right)?,
            };
        }
        Ok(left)
    }

    fn power(&mut self) -> Result<Num, String> {
        let base = self.unary()?;
        if !self.eat("**") {
            return Ok(base);
        }
        self.deeper()?;
        let exponent = self.power()?;
        self.depth -= 1;
        self.apply("**", &base, &exponent)
    }

    fn unary(&mut self) -> Result<Num, String> {
        let Some(op) = self.peek() else { return self.postfix() };
        if !matches!(op, "+" | "-" | "!" | "~" | "++" | "--") {
            return self.postfix();
        }
        self.at += 1;
        self.deeper()?;
        let value = if matches!(op, "++" | "--")
            && let Some(Tok::Name(name)) = self.toks.get(self.at)
        {
            self.at += 1;
            let index = self.index()?;
            let old = self.load(name, index.as_ref())?;
            let new = self.apply(&op[..1], &old, &Num::Known(1))?;
            self.store(name, index.as_ref(), &new);
            new
        } else {
            match (op, self.unary()?) {
                ("-", Num::Known(n)) => Num::Known(n.wrapping_neg()),
                ("!", Num::Known(n)) => Num::Known(i64::from(n == 0)),
                ("~", Num::Known(n)) => Num::Known(!n),
                (sign @ ("-" | "!" | "~"), Num::Each(numbers)) => {
                    let own = |n: &i64| match sign {
                        "-" => n.wrapping_neg(),
                        "!" => i64::from(*n == 0),
                        _ => !n,
                    };
                    self.vars.lanes().number(numbers.iter().map(own).collect())
                }
                (_, value) => value,
            }
        };
        self.depth -= 1;
        Ok(value)
    }

    fn index(&mut self) -> Result<Option<Num>, String> {
        if !self.eat("[") {
            return Ok(None);
        }
        self.deeper()?;
        let index = self.comma()?;
        self.depth -= 1;
        if self.eat("]") {
            Ok(Some(index))
        } else {
            Err("`[` without its `]`".into())
        }
    }

    fn postfix(&mut self) -> Result<Num, String> {
        match self.toks.get(self.at) {
            Some(Tok::Num(n)) => {
                self.at += 1;
                Ok(Num::Known(*n))
            }
            Some(Tok::Unknown(names)) => {
                self.at += 1;
                Ok(Num::Unknown(names.clone()))
            }
            Some(Tok::Each(numbers)) => {
                self.at += 1;
                Ok(Num::Each(numbers.clone()))
            }
            Some(Tok::Name(name)) => {
                self.at += 1;
                let index = self.index()?;
                let old = self.load(name, index.as_ref())?;
                if let Some(op @ ("++" | "--")) = self.peek() {
                    self.at += 1;
                    let new = self.apply(&op[..1], &old, &Num::Known(1))?;
                    self.store(name, index.as_ref(), &new);
                }
                Ok(old)
            }
            Some(Tok::Op("(")) => {
                self.at += 1;
                self.deeper()?;
                let value = self.comma()?;
                self.depth -= 1;
                if self.eat(")") {
                    Ok(value)
                } else {
                    Err("`(` without its `)`".into())
                }
            }
            _ => Err("an operand is missing".into()),
        }
    }

    fn load(&mut self, name: &str, index: Option<&Num>) -> Result<Num, String> {
        let value = self.vars.get(name, index);
        if let Some(text) = value.known()
            && let Ok(number) = text.trim().parse::<i64>()
            && !(text.trim().starts_with('0') && text.trim().len() > 1)
        {
            return Ok(Num::Known(number));
        }
        if let Some(each) = value.single_unknown().and_then(|unknown| unknown.each.as_ref())
            && let Ok(numbers) = each
                .iter()
                .map(|text| text.parse::<i64>())
                .collect::<Result<Vec<_>, _>>()
            && each.iter().all(|text| text.len() == 1 || !text.starts_with(['0', '+']))
        {
            return Ok(Num::Each(numbers.into()));
        }
        eval_at(&value, self.vars, self.depth + 4)
    }
}

/// How tightly an operator between two operands binds; nothing for any other.
fn binds(op: &str) -> Option<u8> {
    Some(match op {
        "||" => 0,
        "&&" => 1,
        "|" => 2,
        "^" => 3,
        "&" => 4,
        "==" | "!=" => 5,
        "<" | ">" | "<=" | ">=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

fn assigns(op: &str) -> bool {
    matches!(
        op,
        "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "^=" | "|=" | "<<=" | ">>="
    )
}

fn apply(op: &str, a: i64, b: i64) -> Result<i64, String> {
    let flag = |c: bool| i64::from(c);
    Ok(match op {
        "+" => a.wrapping_add(b),
        "-" => a.wrapping_sub(b),
        "*" => a.wrapping_mul(b),
        "/" | "%" if b == 0 => return Err("division by zero".into()),
        "/" => a.wrapping_div(b),
        "%" => a.wrapping_rem(b),
        "**" if b < 0 => return Err("a negative exponent".into()),
        "**" => a.wrapping_pow(b.min(i64::from(u32::MAX)) as u32),
        "<<" => a.wrapping_shl((b & 63) as u32),
        ">>" => a.wrapping_shr((b & 63) as u32),
        "<" => flag(a < b),
        ">" => flag(a > b),
        "<=" => flag(a <= b),
        ">=" => flag(a >= b),
        "==" => flag(a == b),
        "!=" => flag(a != b),
        "&" => a & b,
        "|" => a | b,
        "^" => a ^ b,
        "&&" => flag(a != 0 && b != 0),
        "||" => flag(a != 0 || b != 0),
        _ => return Err(format!("`{op}` in an arithmetic expression")),
    })
}

/// An unknown number that depends on the given names.
pub(crate) fn unknown_number(id: u64, name: Arc<str>, depends_on: BTreeSet<Arc<str>>) -> Unknown {
    Unknown {
        id,
        name,
        why: Why::Arithmetic,
        depends_on,
        shape: Shape::Number,
        choices: Vec::new(),
        stable: false,
        each: None,
        written: None,
    }
}

#[cfg(test)]
mod tests;
