//! Arithmetic as bash does it, over values that may be unknown: 64-bit, wrapping, with assignments.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::value::{PieceKind, Shape, Unknown, Value, Why};

/// A number or what it depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Num {
    Known(i64),
    Unknown(BTreeSet<Arc<str>>),
}

/// Variables as the expression sees them.
pub(crate) trait Vars {
    fn get(&mut self, name: &str, index: Option<&Num>) -> Value;
    fn set(&mut self, name: &str, index: Option<&Num>, value: &Num);
}

/// Nesting of brackets and of names that hold expressions.
const MAX_DEPTH: usize = 24;

#[derive(Debug, Clone, PartialEq)]
enum Tok {
    Num(i64),
    Name(String),
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

fn tokens(value: &Value) -> Result<Vec<Tok>, String> {
    let mut out: Vec<Tok> = Vec::new();
    // True when the last token may be continued by what follows without a blank.
    let mut open = false;
    for piece in value.pieces() {
        match &piece.kind {
            PieceKind::Unknown(unknown) => {
                let mut names = unknown.depends_on.clone();
                if open && let Some(Tok::Unknown(more)) = out.last() {
                    names.extend(more.iter().cloned());
                }
                if open && matches!(out.last(), Some(Tok::Num(_) | Tok::Name(_) | Tok::Unknown(_))) {
                    out.pop();
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
                        out.push(if c.is_ascii_digit() {
                            Tok::Num(number(word)?)
                        } else {
                            Tok::Name(word.into())
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

struct Parser<'a, 'v> {
    toks: &'a [Tok],
    at: usize,
    vars: &'v mut dyn Vars,
    depth: usize,
    /// Above zero in the side of `?:`, `&&`, `||` that is not evaluated: assignments have no effect.
    quiet: usize,
}

fn both(a: &Num, b: &Num) -> BTreeSet<Arc<str>> {
    let mut names = BTreeSet::new();
    for num in [a, b] {
        if let Num::Unknown(more) = num {
            names.extend(more.iter().cloned());
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
        if let Some(Tok::Name(name)) = self.toks.get(self.at).cloned() {
            self.at += 1;
            let index = self.index()?;
            if let Some(op) = self.peek()
                && matches!(
                    op,
                    "=" | "+=" | "-=" | "*=" | "/=" | "%=" | "&=" | "^=" | "|=" | "<<=" | ">>="
                )
            {
                self.at += 1;
                self.deeper()?;
                let right = self.assign()?;
                self.depth -= 1;
                let value = if op == "=" {
                    right
                } else {
                    let left = self.load(&name, index.as_ref())?;
                    apply(&op[..op.len() - 1], &left, &right)?
                };
                self.store(&name, index.as_ref(), &value);
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
        let yes = self.muted(!matches!(cond, Num::Known(c) if c != 0), Self::assign)?;
        if !self.eat(":") {
            return Err("`?` without its `:`".into());
        }
        let no = self.muted(!matches!(cond, Num::Known(0)), Self::assign)?;
        self.depth -= 1;
        Ok(match cond {
            Num::Known(0) => no,
            Num::Known(_) => yes,
            Num::Unknown(_) if yes == no => yes,
            Num::Unknown(mut names) => {
                names.extend(both(&yes, &no));
                Num::Unknown(names)
            }
        })
    }

    fn muted(&mut self, mute: bool, f: fn(&mut Self) -> Result<Num, String>) -> Result<Num, String> {
        self.quiet += usize::from(mute);
        let value = f(self);
        self.quiet -= usize::from(mute);
        value
    }

    fn binary(&mut self, level: usize) -> Result<Num, String> {
        const LEVELS: [&[&str]; 10] = [
            &["||"],
            &["&&"],
            &["|"],
            &["^"],
            &["&"],
            &["==", "!="],
            &["<", ">", "<=", ">="],
            &["<<", ">>"],
            &["+", "-"],
            &["*", "/", "%"],
        ];
        let Some(ops) = LEVELS.get(level) else {
            return self.power();
        };
        let mut left = self.binary(level + 1)?;
        while let Some(op) = self.peek().filter(|op| ops.contains(op)) {
            self.at += 1;
            let decided = match (op, &left) {
                ("&&", Num::Known(0)) => Some(0),
                ("||", Num::Known(n)) if *n != 0 => Some(1),
                _ => None,
            };
            self.quiet += usize::from(decided.is_some());
            let right = self.binary(level + 1);
            self.quiet -= usize::from(decided.is_some());
            let right = right?;
            left = match decided {
                Some(value) => Num::Known(value),
                // A known zero divisor in a side that is not evaluated is no error.
                None if self.quiet > 0 => apply(op, &left, &right).unwrap_or(Num::Known(0)),
                None => apply(op, &left, &right)?,
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
        apply("**", &base, &exponent)
    }

    fn unary(&mut self) -> Result<Num, String> {
        let Some(op) = self.peek() else { return self.postfix() };
        if !matches!(op, "+" | "-" | "!" | "~" | "++" | "--") {
            return self.postfix();
        }
        self.at += 1;
        self.deeper()?;
        let value = if matches!(op, "++" | "--")
            && let Some(Tok::Name(name)) = self.toks.get(self.at).cloned()
        {
            self.at += 1;
            let index = self.index()?;
            let old = self.load(&name, index.as_ref())?;
            let new = apply(&op[..1], &old, &Num::Known(1))?;
            self.store(&name, index.as_ref(), &new);
            new
        } else {
            match (op, self.unary()?) {
                ("-", Num::Known(n)) => Num::Known(n.wrapping_neg()),
                ("!", Num::Known(n)) => Num::Known(i64::from(n == 0)),
                ("~", Num::Known(n)) => Num::Known(!n),
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
        match self.toks.get(self.at).cloned() {
            Some(Tok::Num(n)) => {
                self.at += 1;
                Ok(Num::Known(n))
            }
            Some(Tok::Unknown(names)) => {
                self.at += 1;
                Ok(Num::Unknown(names))
            }
            Some(Tok::Name(name)) => {
                self.at += 1;
                let index = self.index()?;
                let old = self.load(&name, index.as_ref())?;
                if let Some(op @ ("++" | "--")) = self.peek() {
                    self.at += 1;
                    let new = apply(&op[..1], &old, &Num::Known(1))?;
                    self.store(&name, index.as_ref(), &new);
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
        eval_at(&value, self.vars, self.depth + 4)
    }
}

fn apply(op: &str, left: &Num, right: &Num) -> Result<Num, String> {
    let (Num::Known(a), Num::Known(b)) = (left, right) else {
        return Ok(Num::Unknown(both(left, right)));
    };
    let (a, b) = (*a, *b);
    let flag = |c: bool| i64::from(c);
    Ok(Num::Known(match op {
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
    }))
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
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Span;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Map(BTreeMap<String, Value>);

    impl Vars for Map {
        fn get(&mut self, name: &str, _: Option<&Num>) -> Value {
            self.0.get(name).cloned().unwrap_or_default()
        }
        fn set(&mut self, name: &str, _: Option<&Num>, value: &Num) {
            if let Num::Known(n) = value {
                self.0.insert(name.into(), Value::text(n.to_string(), Span::NOWHERE));
            }
        }
    }

    #[test]
    fn as_bash_computes() {
        let mut vars = Map::default();
        vars.0.insert("TP".into(), Value::text("8", Span::NOWHERE));
        vars.0.insert("EXPR".into(), Value::text("TP + 1", Span::NOWHERE));
        // Expected values are bash's own (`echo $((…))`).
        for (text, expected) in [
            ("", 0),
            ("2 * TP", 16),
            ("TP > 16 ? TP : 16", 16),
            ("TP - 4096 / 2", -2040),
            ("1 + 2 * 3 ** 2", 19),
            ("-7 / 2", -3),
            ("-7 % 3", -1),
            ("0x1f + 010 + 2#101", 44),
            ("(1, 2, 3)", 3),
            ("!0 + ~0", 0),
            ("1 << 4 | 3", 19),
            ("TP && 0 || 5", 1),
            ("0 && 1 / 0", 0),
            ("EXPR * 2", 18),
            ("unset_name + 1", 1),
            ("x = 5, x += 2, x++, x", 8),
            ("++y + y++", 2),
            ("2 ** 63", i64::MIN),
            ("9223372036854775807 + 1", i64::MIN),
        ] {
            assert_eq!(
                eval(&Value::text(text, Span::NOWHERE), &mut vars),
                Ok(Num::Known(expected)),
                "{text}"
            );
        }
        for text in ["1 /", "1 / 0", "(1", "1 2", "08", "a[1", "$"] {
            assert!(eval(&Value::text(text, Span::NOWHERE), &mut vars).is_err(), "{text}");
        }
        let deep = "(".repeat(20_000);
        assert!(eval(&Value::text(deep, Span::NOWHERE), &mut vars).is_err());
        let deep = "-".repeat(20_000);
        assert!(eval(&Value::text(deep, Span::NOWHERE), &mut vars).is_err());
    }
}
