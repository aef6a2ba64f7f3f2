//! Parameter expansion: what a variable, a positional or a special parameter gives, and the operators on it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use super::cut::{change_case, remove_prefix, remove_suffix, replace, substring};
use crate::arith::Num;
use crate::join::choice;
use crate::output::{Note, Word};
use crate::syntax::ast::{Index, Param, ParamName, ParamOp, Word as WordNode};
use crate::value::{Shape, Span, Value, Why};
use crate::world::{FrameKind, VarValue, World};

impl Evaluator<'_> {
    /// The list that `$@`, `$*`, `${a[@]}`, `${a[*]}` and slices of them give; None for a single value.
    pub(super) fn param_list(&mut self, world: &mut World, param: &Param, at: Span) -> Option<Vec<Word>> {
        let whole = matches!(param.index, Some(Index::All | Index::Star));
        let positional = matches!(param.name, ParamName::Special('@' | '*'));
        if !whole && !positional && !matches!(param.op, ParamOp::Names) {
            return None;
        }
        if matches!(param.op, ParamOp::Length) || param.indirect {
            return None;
        }
        let name = match &param.name {
            ParamName::Var(name) => name.clone(),
            _ => "".into(),
        };
        if matches!(param.op, ParamOp::Names) {
            let names = world
                .vars
                .iter()
                .filter(|(k, v)| k.starts_with(&*name) && v.value != VarValue::Unset);
            let word = |k: &Arc<str>| Word {
                value: Value::text(k.clone(), at),
                span: at,
                ..Word::default()
            };
            return Some(names.map(|(k, _)| word(k)).collect());
        }
        if matches!(param.op, ParamOp::Keys) {
            let keys: Vec<String> = match world.vars.get(&name).map(|v| &v.value) {
                Some(VarValue::Indexed(items)) => items.iter().map(|(i, _)| i.to_string()).collect(),
                Some(VarValue::Assoc(items)) => items.keys().map(|k| k.to_string()).collect(),
                Some(VarValue::Scalar(_)) => vec!["0".into()],
                _ => Vec::new(),
            };
            let word = |k: String| Word {
                value: Value::text(k, at),
                span: at,
                ..Word::default()
            };
            return Some(keys.into_iter().map(word).collect());
        }
        let items: Vec<Word> = if positional {
            world.positional().to_vec()
        } else {
            self.elements(world, &name, at)
        };
        match &param.op {
            ParamOp::None | ParamOp::Error(..) => Some(items),
            ParamOp::Default(_, word) if items.is_empty() => Some(self.fields(world, word)),
            ParamOp::Alternative(_, word) => {
                if items.is_empty() {
                    Some(items)
                } else {
                    Some(self.fields(world, word))
                }
            }
            ParamOp::Default(..) | ParamOp::Assign(..) => Some(items),
            ParamOp::Substring(offset, length) => {
                Some(self.slice(world, items, positional, offset, length.as_ref(), at))
            }
            _ => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    let value = self.operate(world, item.value.clone(), param, at);
                    out.push(Word { value, ..item });
                }
                Some(out)
            }
        }
    }

    /// The elements of an array; a plain variable is its own single element.
    pub(super) fn elements(&mut self, world: &mut World, name: &str, at: Span) -> Vec<Word> {
        match world.vars.get(name).map(|v| v.value.clone()) {
            Some(VarValue::Indexed(items)) => items.into_iter().map(|(_, w)| w).collect(),
            Some(VarValue::Assoc(items)) => items.into_values().collect(),
            Some(VarValue::Scalar(value)) => vec![Word {
                value,
                span: at,
                ..Word::default()
            }],
            Some(VarValue::Unset) => Vec::new(),
            None if name == "BASH_SOURCE" => (0..world.frames.len())
                .filter_map(|i| self.source_path(world, i, at))
                .map(|value| Word {
                    value,
                    span: at,
                    ..Word::default()
                })
                .collect(),
            None if name == "FUNCNAME" || name == "PIPESTATUS" => {
                let value = self.unknown_value(Why::Host, format!("${{{name}[@]}}"), at, BTreeSet::new());
                vec![Word {
                    value,
                    span: at,
                    splits: true,
                    globs: false,
                }]
            }
            None => match self.lookup(world, name, at) {
                Some(value) => {
                    let splits = value.unknowns().any(|u| u.each.is_none());
                    vec![Word {
                        value,
                        span: at,
                        splits,
                        globs: false,
                    }]
                }
                None => Vec::new(),
            },
        }
    }

    fn slice(
        &mut self,
        world: &mut World,
        mut items: Vec<Word>,
        positional: bool,
        offset: &WordNode,
        length: Option<&WordNode>,
        at: Span,
    ) -> Vec<Word> {
        let first = self.arith_word(world, offset, at);
        let first = self.lanes.one(first);
        let count = length.map(|l| self.arith_word(world, l, at));
        let count = count.map(|count| self.lanes.one(count));
        if items.iter().any(|w| w.splits) || !matches!((&first, &count), (Num::Known(_), None | Some(Num::Known(_)))) {
            let from = items.iter().flat_map(|w| w.value.depends_on()).collect();
            let value = self.unknown_value(Why::Transform, "a slice of a list", at, from);
            return vec![Word {
                value,
                span: at,
                splits: true,
                globs: false,
            }];
        }
        if positional {
            let zero = self.zero(world, at);
            items.insert(
                0,
                Word {
                    value: zero,
                    span: at,
                    ..Word::default()
                },
            );
        }
        let (Num::Known(first), len) = (first, items.len() as i64) else {
            return items;
        };
        let start = if first < 0 {
            (len + first).max(0)
        } else {
            first.min(len)
        };
        let end = match count {
            Some(Num::Known(n)) if n >= 0 => start.saturating_add(n).min(len),
            Some(_) => start,
            None => len,
        };
        items
            .drain(..)
            .skip(start as usize)
            .take((end - start) as usize)
            .collect()
    }

    fn zero(&self, world: &World, at: Span) -> Value {
        let frame = world.frames.iter().rev().find(|f| f.kind == FrameKind::Script);
        frame.map_or_else(Value::empty, |f| Value::text(f.name.clone(), at))
    }

    /// The plain value of the parameter, before its operator. None: not set.
    fn base(&mut self, world: &mut World, param: &Param, at: Span) -> Option<Value> {
        let value = match &param.name {
            ParamName::Positional(0) => Some(self.zero(world, at)),
            ParamName::Positional(n) => {
                let words = world.positional();
                let fixed = words.iter().take(*n).all(|w| !w.splits);
                match words.get(n - 1) {
                    Some(word) if fixed => Some(word.value.clone()),
                    None if fixed => None,
                    _ => Some(self.unknown_value(Why::Input, format!("${n}"), at, BTreeSet::new())),
                }
            }
            ParamName::Special('@' | '*') => {
                let words = world.positional();
                (!words.is_empty()).then(|| self.join_words(world, &words))
            }
            ParamName::Special(c) => Some(self.special(world, *c, at)),
            ParamName::Var(name) => match &param.index {
                None => self.lookup(world, name, at),
                Some(Index::All | Index::Star) => {
                    let items = self.elements(world, name, at);
                    (!items.is_empty()).then(|| self.join_words(world, &items))
                }
                Some(Index::At(index)) => self.element(world, name, index, at),
            },
        };
        if !param.indirect {
            return value;
        }
        let value = value?;
        match value.known() {
            Some(name) if !name.is_empty() => {
                if let Some((array, rest)) = name.split_once('[') {
                    let index = rest.trim_end_matches(']');
                    if matches!(index, "@" | "*") {
                        let items = self.elements(world, array, at);
                        return Some(self.join_words(world, &items));
                    }
                    let node = WordNode {
                        at: crate::syntax::Pos {
                            line: at.line,
                            col: at.col,
                        },
                        parts: vec![crate::syntax::ast::Part {
                            at: crate::syntax::Pos {
                                line: at.line,
                                col: at.col,
                            },
                            quoted: true,
                            kind: crate::syntax::ast::PartKind::Lit(index.into()),
                        }],
                    };
                    return self.element(world, &array.into(), &node, at);
                }
                if let Ok(number) = name.parse::<usize>() {
                    let words = world.positional();
                    return number
                        .checked_sub(1)
                        .and_then(|i| words.get(i))
                        .map(|w| w.value.clone());
                }
                self.lookup(world, &name, at)
            }
            Some(_) => None,
            None => Some(self.unknown_value(Why::Transform, param.text.clone(), at, value.depends_on())),
        }
    }

    fn element(&mut self, world: &mut World, name: &Arc<str>, index: &WordNode, at: Span) -> Option<Value> {
        if let Some(VarValue::Assoc(items)) = world.vars.get(name).map(|v| v.value.clone()) {
            let key = self.value(world, index);
            return match self.lanes.text(&key) {
                Some(key) => items.get(&*key).map(|w| w.value.clone()),
                None => {
                    let all = items
                        .values()
                        .map(|w| w.value.clone())
                        .chain([Value::empty()])
                        .collect();
                    Some(choice(&format!("{name}[{}]", key.display()), all, Why::Transform, at))
                }
            };
        }
        let number = self.arith_word(world, index, at);
        let number = self.lanes.one(number);
        if &**name == "BASH_SOURCE" && world.vars.get(name).is_none() {
            return match number {
                Num::Known(n) => usize::try_from(n).ok().and_then(|n| self.source_path(world, n, at)),
                Num::Unknown(from) => Some(self.unknown_value(Why::Transform, "${BASH_SOURCE[…]}", at, from)),
                Num::Each(_) => None,
            };
        }
        if matches!(&**name, "PIPESTATUS" | "BASH_VERSINFO") && world.vars.get(name).is_none() {
            let unknown = self.fresh(
                Why::Status,
                format!("${{{name}[…]}}"),
                at,
                BTreeSet::new(),
                Shape::Number,
            );
            return Some(Value::unknown(unknown, at));
        }
        match world.vars.get(name).map(|v| v.value.clone()) {
            Some(VarValue::Indexed(items)) => {
                let exact = items.iter().all(|(_, w)| !w.splits);
                match number {
                    Num::Known(n) if exact => {
                        let last = items.last().map_or(0, |(i, _)| i + 1);
                        let n = if n < 0 { n + last } else { n };
                        items.iter().find(|(i, _)| *i == n).map(|(_, w)| w.value.clone())
                    }
                    number => {
                        let mut from: BTreeSet<Arc<str>> =
                            items.iter().flat_map(|(_, w)| w.value.depends_on()).collect();
                        if let Num::Unknown(more) = number {
                            from.extend(more);
                        }
                        Some(self.unknown_value(Why::Transform, format!("${{{name}[…]}}"), at, from))
                    }
                }
            }
            Some(VarValue::Scalar(value)) => (number == Num::Known(0)).then_some(value),
            Some(_) => None,
            None => {
                let value = self.lookup(world, name, at)?;
                let from = value.depends_on();
                Some(self.unknown_value(Why::Transform, format!("${{{name}[…]}}"), at, from))
            }
        }
    }

    /// For an unquoted `${x:-words}` or `${x:+words}` whose word is what it gives: that word.
    pub(super) fn conditional_word<'p>(
        &mut self,
        world: &mut World,
        param: &'p Param,
        at: Span,
    ) -> Option<&'p WordNode> {
        let (colon, word, when_set) = match &param.op {
            ParamOp::Default(colon, word) => (*colon, word, false),
            ParamOp::Alternative(colon, word) => (*colon, word, true),
            _ => return None,
        };
        let base = self.base(world, param, at);
        let filled = match base {
            None => Some(false),
            Some(value) if colon => self.emptiness(world, &value).map(|e| !e),
            Some(value) => maybe_set(&value),
        };
        (filled == Some(when_set)).then_some(word)
    }

    /// The value of the whole expansion.
    pub(super) fn param_value(&mut self, world: &mut World, param: &Param, at: Span) -> Value {
        if matches!(param.op, ParamOp::Unsupported) {
            return self.unknown_value(Why::Unsupported, param.text.clone(), at, BTreeSet::new());
        }
        if matches!(param.op, ParamOp::Length) {
            return self.length(world, param, at);
        }
        let base = self.base(world, param, at);
        let (colon, word) = match &param.op {
            ParamOp::Default(colon, word)
            | ParamOp::Alternative(colon, word)
            | ParamOp::Assign(colon, word)
            | ParamOp::Error(colon, word) => (*colon, word),
            _ => {
                let value = base.unwrap_or_default();
                return self.operate(world, value, param, at);
            }
        };
        // Whether the parameter counts as given.
        let given = match &base {
            None => Some(false),
            Some(value) if colon => self.emptiness(world, value).map(|e| !e),
            Some(value) => maybe_set(value),
        };
        let base = base.unwrap_or_default();
        match (&param.op, given) {
            (ParamOp::Alternative(..), Some(true)) => self.value(world, word),
            (ParamOp::Alternative(..), Some(false)) => Value::empty(),
            (ParamOp::Error(..), _) => base,
            (_, Some(true)) => base,
            (ParamOp::Default(..), Some(false)) => self.value(world, word),
            (ParamOp::Assign(..), Some(false)) => {
                let value = self.value(world, word);
                if let ParamName::Var(name) = &param.name {
                    self.assign_scalar(world, name, value.clone(), at);
                }
                value
            }
            (ParamOp::Alternative(..), None) => {
                let other = self.value(world, word);
                self.either(param, vec![other, Value::empty()], base.depends_on(), at)
            }
            (op, None) => {
                let other = self.value(world, word);
                let value = self.either(param, vec![base.clone(), other], base.depends_on(), at);
                if let (ParamOp::Assign(..), ParamName::Var(name)) = (op, &param.name) {
                    self.assign_scalar(world, name, value.clone(), at);
                }
                value
            }
            (_, Some(false)) => base,
        }
    }

    /// One of several values, depending on an unknown.
    fn either(&mut self, param: &Param, values: Vec<Value>, from: BTreeSet<Arc<str>>, at: Span) -> Value {
        let filled = values.iter().skip(1).all(|v| v.emptiness() == Some(false))
            && matches!(param.op, ParamOp::Default(true, _) | ParamOp::Assign(true, _));
        let value = choice(&param.text, values, Why::Default, at);
        let Some(unknown) = value.single_unknown() else {
            return value;
        };
        let mut unknown = (**unknown).clone();
        unknown.name = param.text.clone();
        unknown.depends_on.extend(from);
        if filled && unknown.shape == Shape::Any {
            unknown.shape = Shape::NonEmpty;
        }
        Value::unknown(Arc::new(unknown), at)
    }

    /// Whether a value is empty, with what the world knows.
    pub(super) fn emptiness(&self, world: &World, value: &Value) -> Option<bool> {
        value.emptiness().or_else(|| {
            let fact = world.facts.get(&value.single_unknown()?.id)?;
            fact.not.iter().any(|n| n.is_empty()).then_some(false)
        })
    }

    fn length(&mut self, world: &mut World, param: &Param, at: Span) -> Value {
        let whole = matches!(param.index, Some(Index::All | Index::Star));
        let positional = matches!(param.name, ParamName::Special('@' | '*'));
        if whole || positional {
            let items = match &param.name {
                ParamName::Var(name) => self.elements(world, name, at),
                _ => world.positional().to_vec(),
            };
            if items.iter().any(|w| w.splits) {
                let from = items.iter().flat_map(|w| w.value.depends_on()).collect();
                return Value::unknown(
                    self.fresh(Why::Transform, param.text.clone(), at, from, Shape::Number),
                    at,
                );
            }
            return Value::text(items.len().to_string(), at);
        }
        let value = self.base(world, param, at).unwrap_or_default();
        match value.known() {
            Some(text) => Value::text(text.chars().count().to_string(), at),
            None => Value::unknown(
                self.fresh(
                    Why::Transform,
                    param.text.clone(),
                    at,
                    value.depends_on(),
                    Shape::Number,
                ),
                at,
            ),
        }
    }

    fn operate(&mut self, world: &mut World, value: Value, param: &Param, at: Span) -> Value {
        let result = match &param.op {
            ParamOp::None => return value,
            ParamOp::RemovePrefix(long, word) => {
                let pattern = self.pattern(world, word);
                remove_prefix(&value, &pattern, *long)
            }
            ParamOp::RemoveSuffix(long, word) => {
                let pattern = self.pattern(world, word);
                remove_suffix(&value, &pattern, *long)
            }
            ParamOp::Replace(place, from, to) => {
                let pattern = self.pattern(world, from);
                let with = self.value(world, to);
                replace(&value, &pattern, &with, *place)
            }
            ParamOp::Substring(offset, length) => {
                let first = self.arith_word(world, offset, at);
                let first = self.lanes.one(first);
                let count = length.as_ref().map(|l| self.arith_word(world, l, at));
                let count = count.map(|count| self.lanes.one(count));
                substring(&value, &first, count.as_ref())
            }
            ParamOp::Case(upper, all, word) => {
                let pattern = if word.parts.is_empty() {
                    None
                } else {
                    Some(self.pattern(world, word))
                };
                change_case(&value, *upper, *all, pattern.as_ref())
            }
            ParamOp::Transform(letter) => match (letter, value.known()) {
                ('Q', Some(text)) => Some(Value::text(format!("'{}'", text.replace('\'', "'\\''")), at)),
                ('U', Some(text)) => Some(Value::text(text.to_uppercase(), at)),
                ('L', Some(text)) => Some(Value::text(text.to_lowercase(), at)),
                ('E', Some(text)) => Some(Value::text(crate::text::unescape(&text, true).0, at)),
                _ => None,
            },
            _ => None,
        };
        match result {
            Some(value) => self.bounded(value, at),
            None => {
                if value.is_known() {
                    self.note(Note::Unsupported, at, format!("{} is not evaluated", param.text));
                }
                self.unknown_value(Why::Transform, param.text.clone(), at, value.depends_on())
            }
        }
    }
}

/// Whether a parameter is set (not: filled); an unknown of the environment may be unset.
fn maybe_set(value: &Value) -> Option<bool> {
    match value.single_unknown() {
        Some(unknown) if unknown.shape == Shape::Any && matches!(unknown.why, Why::Environment | Why::Foreign) => None,
        _ => Some(true),
    }
}
