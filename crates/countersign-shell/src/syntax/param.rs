//! Parameter expansions: `$x`, `${x:-word}`, `${x[i]}`, `${x//a/b}` and the rest.

use super::ast::{Index, Param, ParamName, ParamOp, ReplaceWhere, Word};
use super::parser::{IssueKind, Parser};
use super::word::Context;

impl Parser<'_> {
    /// `$x`, `$1`, `$@`; None when the dollar is an ordinary character. The cursor is on the dollar.
    pub(super) fn plain_param(&mut self, next: u8) -> Option<Param> {
        let start = self.pos;
        let name = match next {
            b'0'..=b'9' => {
                self.pos += 2;
                ParamName::Positional(usize::from(next - b'0'))
            }
            b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!' => {
                self.pos += 2;
                ParamName::Special(next as char)
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.pos += 1;
                ParamName::Var(self.name()?.into())
            }
            _ => return None,
        };
        let text = self.display(start);
        Some(Param {
            name,
            index: None,
            indirect: false,
            op: ParamOp::None,
            text,
        })
    }

    /// `${…}`; the cursor is on the dollar.
    pub(super) fn braced_param(&mut self, quoted: bool) -> Param {
        let (start, at) = (self.pos, self.here());
        self.pos += 2;
        let mut param = Param {
            name: ParamName::Special('?'),
            index: None,
            indirect: false,
            op: ParamOp::Unsupported,
            text: "".into(),
        };
        if self.enter() {
            let known = self.braced_inner(&mut param, quoted);
            if !known || self.peek().is_some_and(|b| b != b'}') {
                param.op = ParamOp::Unsupported;
                self.issue(
                    IssueKind::UnknownExpansion,
                    at,
                    "a parameter expansion that is not understood".into(),
                );
                // Pass over the rest of it.
                let _ = self.word(Context::Brace(quoted));
            }
            if !self.eat("}") && !self.fatal {
                self.issue(IssueKind::Unterminated, at, "`${` without its `}`".into());
            }
            self.leave();
        }
        param.text = self.display(start);
        param
    }

    fn param_name(&mut self) -> Option<ParamName> {
        match self.peek()? {
            b'0'..=b'9' => {
                let digits = self.bytes[self.pos..].iter().take_while(|b| b.is_ascii_digit()).count();
                let number = self.text[self.pos..self.pos + digits].parse().ok()?;
                self.pos += digits;
                Some(ParamName::Positional(number))
            }
            b @ (b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.pos += 1;
                Some(ParamName::Special(b as char))
            }
            _ => self.name().map(|n| ParamName::Var(n.into())),
        }
    }

    fn braced_inner(&mut self, param: &mut Param, quoted: bool) -> bool {
        let length =
            self.peek() == Some(b'#') && self.peek_at(1).is_some_and(|b| b != b'}' && !b":-=+?%#".contains(&b));
        if length {
            self.pos += 1;
        } else if self.peek() == Some(b'!') && self.peek_at(1) != Some(b'}') {
            self.pos += 1;
            param.indirect = true;
        }
        let Some(name) = self.param_name() else { return false };
        param.name = name;
        if self.peek() == Some(b'[') && !self.index(param) {
            return false;
        }
        if length {
            param.op = ParamOp::Length;
            return self.peek() == Some(b'}');
        }
        if param.indirect {
            match (&param.index, self.peek()) {
                (Some(Index::All | Index::Star), Some(b'}')) => {
                    param.indirect = false;
                    param.op = ParamOp::Keys;
                    return true;
                }
                (None, Some(b'*' | b'@')) if self.peek_at(1) == Some(b'}') => {
                    self.pos += 1;
                    param.indirect = false;
                    param.op = ParamOp::Names;
                    return true;
                }
                _ => {}
            }
        }
        match self.operator(quoted) {
            Some(op) => {
                param.op = op;
                true
            }
            None => false,
        }
    }

    fn index(&mut self, param: &mut Param) -> bool {
        if self.eat("[@]") {
            param.index = Some(Index::All);
            return true;
        }
        if self.eat("[*]") {
            param.index = Some(Index::Star);
            return true;
        }
        let mut depth = 0usize;
        let end = self.bytes[self.pos..].iter().take(1024).position(|&b| {
            match b {
                b'[' => depth += 1,
                b']' => depth -= 1,
                _ => {}
            }
            b == b']' && depth == 0
        });
        let Some(end) = end.map(|offset| self.pos + offset) else {
            return false;
        };
        self.pos += 1;
        let word = self.word_until(end);
        self.pos = end + 1;
        param.index = Some(Index::At(word));
        true
    }

    fn operator(&mut self, quoted: bool) -> Option<ParamOp> {
        if self.peek()? == b'}' {
            return Some(ParamOp::None);
        }
        let colon = self.peek() == Some(b':');
        let op = if colon { self.peek_at(1)? } else { self.peek()? };
        if matches!(op, b'-' | b'=' | b'+' | b'?') {
            self.pos += 1 + usize::from(colon);
            let word = self.brace_word(Context::Brace(quoted));
            return Some(match op {
                b'-' => ParamOp::Default(colon, word),
                b'=' => ParamOp::Assign(colon, word),
                b'+' => ParamOp::Alternative(colon, word),
                _ => ParamOp::Error(colon, word),
            });
        }
        if colon {
            self.pos += 1;
            let offset = self.brace_word(Context::BraceOffset(quoted));
            let length = self.eat(":").then(|| self.brace_word(Context::Brace(quoted)));
            return Some(ParamOp::Substring(offset, length));
        }
        Some(match op {
            b'#' | b'%' => {
                self.pos += 1;
                let long = self.peek() == Some(op);
                self.pos += usize::from(long);
                // A pattern is never affected by the quotes around the whole expansion.
                let word = self.brace_word(Context::Brace(false));
                if op == b'#' {
                    ParamOp::RemovePrefix(long, word)
                } else {
                    ParamOp::RemoveSuffix(long, word)
                }
            }
            b'/' => {
                self.pos += 1;
                let place = match self.peek() {
                    Some(b'/') => ReplaceWhere::All,
                    Some(b'#') => ReplaceWhere::Prefix,
                    Some(b'%') => ReplaceWhere::Suffix,
                    _ => ReplaceWhere::First,
                };
                self.pos += usize::from(place != ReplaceWhere::First);
                let pattern = self.brace_word(Context::BracePattern(false));
                let with = if self.eat("/") {
                    self.brace_word(Context::Brace(quoted))
                } else {
                    Word::default()
                };
                ParamOp::Replace(place, pattern, with)
            }
            b'^' | b',' => {
                self.pos += 1;
                let all = self.peek() == Some(op);
                self.pos += usize::from(all);
                ParamOp::Case(op == b'^', all, self.brace_word(Context::Brace(false)))
            }
            b'@' => {
                let letter = self.peek_at(1).filter(u8::is_ascii_alphabetic)?;
                self.pos += 2;
                ParamOp::Transform(letter as char)
            }
            _ => return None,
        })
    }

    fn brace_word(&mut self, context: Context) -> Word {
        self.word(context).unwrap_or(Word {
            at: self.here(),
            parts: Vec::new(),
        })
    }
}
