//! Assignments: texts, elements, arrays, and what is appended to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Evaluator;
use crate::arith::Num;
use crate::output::{Note, Word};
use crate::syntax::ast::{ArrayItem, Assign, AssignValue, Word as WordNode};
use crate::value::{Span, Value, Why};
use crate::world::{Var, VarValue, World};

impl Evaluator<'_> {
    /// Put a variable in place.
    pub(super) fn store(&mut self, world: &mut World, name: &Arc<str>, mut var: Var, at: Span) {
        if let Some(old) = world.vars.get(name) {
            if old.readonly {
                self.note(Note::ShellError, at, format!("{name} is read-only"));
                return;
            }
            var.exported |= old.exported;
            var.integer |= old.integer;
        }
        if world.vars.len() > 20_000 {
            self.bound(at, "more than 20000 variables".into());
            return;
        }
        world.vars.insert(name.clone(), Arc::new(var));
    }

    /// An assignment statement.
    pub(super) fn assign(&mut self, world: &mut World, assign: &Assign) {
        let at = self.span(assign.at);
        match &assign.value {
            AssignValue::Array(items) => {
                let associative = matches!(world.vars.get(&assign.name).map(|v| &v.value), Some(VarValue::Assoc(_)));
                self.assign_array(world, &assign.name, items, assign.append, associative, at);
            }
            AssignValue::Scalar(word) => {
                let value = self.value(world, word);
                match &assign.index {
                    Some(index) => self.assign_element(world, &assign.name, index, assign.append, value, at),
                    None => self.assign_plain(world, &assign.name, assign.append, value, at),
                }
            }
        }
    }

    /// Appends to a text that nobody else holds, in its place. Not where there is more to it than that.
    fn append_in_place(&mut self, world: &mut World, name: &Arc<str>, value: &Value, at: Span) -> bool {
        let Some(Var {
            value: VarValue::Scalar(text),
            readonly: false,
            integer: false,
            ..
        }) = world.vars.own(name).and_then(Arc::get_mut)
        else {
            return false;
        };
        if !text.is_known() || !value.is_known() || text.size() + value.size() > self.limits.value_bytes {
            return false;
        }
        text.append(value);
        let size = text.size();
        self.count_bytes(at, size);
        true
    }

    fn assign_plain(&mut self, world: &mut World, name: &Arc<str>, append: bool, value: Value, at: Span) {
        if append && self.append_in_place(world, name, &value, at) {
            return;
        }
        let old = world.vars.get(name).cloned();
        let integer = old.as_ref().is_some_and(|v| v.integer);
        if let Some(VarValue::Indexed(items)) = old.as_ref().map(|v| &v.value) {
            // `a=x` on an array sets element zero.
            let mut items = items.clone();
            match items.iter_mut().find(|(i, _)| *i == 0) {
                Some((_, word)) if append => word.value.append(&value),
                Some((_, word)) => {
                    *word = Word {
                        value,
                        span: at,
                        ..Word::default()
                    }
                }
                None => items.insert(
                    0,
                    (
                        0,
                        Word {
                            value,
                            span: at,
                            ..Word::default()
                        },
                    ),
                ),
            }
            let exported = old.is_some_and(|v| v.exported);
            self.store(
                world,
                name,
                Var {
                    value: VarValue::Indexed(items),
                    exported,
                    readonly: false,
                    integer,
                },
                at,
            );
            return;
        }
        let value = if integer {
            let mut text = Value::empty();
            if append {
                text = self.lookup(world, name, at).unwrap_or_default();
                text.push_text("+(".into(), at);
            }
            text.append(&value);
            if append {
                text.push_text(")".into(), at);
            }
            let number = self.arith(world, &text, at);
            self.number_value(&number, &format!("${name}").into(), at)
        } else if append {
            let mut text = self.lookup(world, name, at).unwrap_or_default();
            text.append(&value);
            text
        } else {
            value
        };
        self.assign_scalar(world, name, value, at);
    }

    pub(super) fn assign_element(
        &mut self,
        world: &mut World,
        name: &Arc<str>,
        index: &WordNode,
        append: bool,
        value: Value,
        at: Span,
    ) {
        let old = world.vars.get(name).cloned();
        if let Some(VarValue::Assoc(items)) = old.as_ref().map(|v| &v.value) {
            let key = self.value(world, index);
            self.lanes.void_for(&key);
            let mut items = items.clone();
            if items.len() >= self.limits.words {
                self.bound(at, format!("more than {} elements in {name}", self.limits.words));
                return;
            }
            let key: Arc<str> = key.display().into();
            let mut text = if append {
                items.get(&key).map(|w| w.value.clone()).unwrap_or_default()
            } else {
                Value::empty()
            };
            text.append(&value);
            items.insert(
                key,
                Word {
                    value: text,
                    span: at,
                    ..Word::default()
                },
            );
            let exported = old.is_some_and(|v| v.exported);
            self.store(
                world,
                name,
                Var {
                    value: VarValue::Assoc(items),
                    exported,
                    readonly: false,
                    integer: false,
                },
                at,
            );
            return;
        }
        let number = self.arith_word(world, index, at);
        match self.lanes.one(number) {
            Num::Each(_) => self.lanes.void(),
            Num::Known(n) => {
                let text = if append {
                    let mut old = match world.vars.get(name).map(|v| &v.value) {
                        Some(VarValue::Indexed(items)) => items
                            .iter()
                            .find(|(i, _)| *i == n)
                            .map(|(_, w)| w.value.clone())
                            .unwrap_or_default(),
                        _ => Value::empty(),
                    };
                    old.append(&value);
                    old
                } else {
                    value
                };
                self.assign_index(world, name, n, text, at);
            }
            Num::Unknown(mut from) => {
                from.extend(value.depends_on());
                let value = self.unknown_value(Why::Transform, format!("${{{name}[@]}}"), at, from);
                let word = Word {
                    value,
                    span: at,
                    splits: true,
                    globs: false,
                };
                let var = Var {
                    value: VarValue::Indexed(vec![(0, word)]),
                    exported: false,
                    readonly: false,
                    integer: false,
                };
                self.store(world, name, var, at);
            }
        }
    }

    pub(super) fn assign_index(&mut self, world: &mut World, name: &Arc<str>, index: i64, value: Value, at: Span) {
        let old = world.vars.get(name).cloned();
        let mut items = match old.as_ref().map(|v| &v.value) {
            Some(VarValue::Indexed(items)) => items.clone(),
            Some(VarValue::Scalar(value)) => vec![(
                0,
                Word {
                    value: value.clone(),
                    span: at,
                    ..Word::default()
                },
            )],
            _ => Vec::new(),
        };
        let index = if index < 0 {
            items.last().map_or(0, |(i, _)| i + 1) + index
        } else {
            index
        };
        if index < 0 || items.len() >= self.limits.words {
            self.note(Note::ShellError, at, format!("{name}[{index}] cannot be set"));
            return;
        }
        let word = Word {
            value,
            span: at,
            ..Word::default()
        };
        match items.binary_search_by_key(&index, |(i, _)| *i) {
            Ok(found) => items[found].1 = word,
            Err(place) => items.insert(place, (index, word)),
        }
        let exported = old.is_some_and(|v| v.exported);
        self.store(
            world,
            name,
            Var {
                value: VarValue::Indexed(items),
                exported,
                readonly: false,
                integer: false,
            },
            at,
        );
    }

    pub(super) fn assign_array(
        &mut self,
        world: &mut World,
        name: &Arc<str>,
        items: &[ArrayItem],
        append: bool,
        associative: bool,
        at: Span,
    ) {
        let old = world.vars.get(name).cloned();
        let exported = old.as_ref().is_some_and(|v| v.exported);
        let integer = old.as_ref().is_some_and(|v| v.integer);
        if associative {
            let mut map: BTreeMap<Arc<str>, Word> = match old.map(|v| v.value.clone()) {
                Some(VarValue::Assoc(map)) if append => map,
                _ => BTreeMap::new(),
            };
            for item in items {
                let value = self.value(world, &item.value);
                let key = match &item.key {
                    Some(key) => self.value(world, key).display(),
                    None => value.display(),
                };
                let span = self.span(item.value.at);
                map.insert(
                    key.into(),
                    Word {
                        value,
                        span,
                        ..Word::default()
                    },
                );
            }
            self.store(
                world,
                name,
                Var {
                    value: VarValue::Assoc(map),
                    exported,
                    readonly: false,
                    integer,
                },
                at,
            );
            return;
        }
        let mut list: Vec<(i64, Word)> = match old.map(|v| v.value.clone()) {
            Some(VarValue::Indexed(list)) if append => list,
            Some(VarValue::Scalar(value)) if append => vec![(
                0,
                Word {
                    value,
                    span: at,
                    ..Word::default()
                },
            )],
            _ => Vec::new(),
        };
        let mut next = list.last().map_or(0, |(i, _)| i + 1);
        for item in items {
            if let Some(key) = &item.key {
                let number = self.arith_word(world, key, at);
                if let Num::Known(n) = self.lanes.one(number) {
                    next = n.max(0);
                }
                let value = self.value(world, &item.value);
                let word = Word {
                    value,
                    span: self.span(item.value.at),
                    ..Word::default()
                };
                match list.binary_search_by_key(&next, |(i, _)| *i) {
                    Ok(found) => list[found].1 = word,
                    Err(place) => list.insert(place, (next, word)),
                }
                next += 1;
                continue;
            }
            for word in self.fields(world, &item.value) {
                self.count_bytes(at, word.value.size());
                list.push((next, word));
                next += 1;
            }
            if list.len() > self.limits.words {
                self.bound(at, format!("more than {} elements in {name}", self.limits.words));
                return;
            }
        }
        if list.windows(2).any(|w| w[0].0 > w[1].0) {
            list.sort_by_key(|(i, _)| *i);
        }
        self.store(
            world,
            name,
            Var {
                value: VarValue::Indexed(list),
                exported,
                readonly: false,
                integer,
            },
            at,
        );
    }

    /// The value of `name=value` in front of a command.
    pub(super) fn prefix_value(&mut self, world: &mut World, assign: &Assign) -> Word {
        let at = self.span(assign.at);
        let mut value = Value::empty();
        if assign.append {
            value = self.lookup(world, &assign.name, at).unwrap_or_default();
        }
        if let AssignValue::Scalar(word) = &assign.value {
            let own = self.value(world, word);
            value.append(&own);
        }
        Word {
            value,
            span: at,
            ..Word::default()
        }
    }

    /// `name=value` as an argument, for the record.
    pub(super) fn assign_word(&mut self, world: &mut World, assign: &Assign) -> Word {
        let at = self.span(assign.at);
        let mut value = Value::text(format!("{}{}", assign.name, if assign.append { "+=" } else { "=" }), at);
        match &assign.value {
            AssignValue::Scalar(word) => {
                let own = self.value(world, word);
                value.append(&own);
            }
            AssignValue::Array(_) => value.push_text("(…)".into(), at),
        }
        Word {
            value,
            span: at,
            ..Word::default()
        }
    }
}
