//! Setting variables: assignments, arrays, `declare` and its kin, `unset`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Evaluator;
use super::simple::Invocation;
use crate::arith::Num;
use crate::output::{Note, Word};
use crate::syntax::ast::{Arg, ArrayItem, Assign, AssignValue, Word as WordNode};
use crate::value::{Span, Value, Why};
use crate::world::{FrameKind, Status, Var, VarValue, World};

/// What a declaration asks for.
#[derive(Debug, Clone, Copy, Default)]
struct Attributes {
    export: Option<bool>,
    local: bool,
    global: bool,
    indexed: bool,
    assoc: bool,
    integer: bool,
    readonly: bool,
    upper: bool,
    lower: bool,
    print: bool,
    functions: bool,
}

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

    fn assign_plain(&mut self, world: &mut World, name: &Arc<str>, append: bool, value: Value, at: Span) {
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
            match self.arith(world, &text, at) {
                Num::Known(n) => Value::text(n.to_string(), at),
                Num::Unknown(from) => self.unknown_number(format!("${name}").into(), from, at),
            }
        } else if append {
            let mut text = self.lookup(world, name, at).unwrap_or_default();
            text.append(&value);
            text
        } else {
            value
        };
        self.assign_scalar(world, name, value, at);
    }

    fn assign_element(
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
        match self.arith_word(world, index, at) {
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

    fn assign_array(
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
                if let Num::Known(n) = self.arith_word(world, key, at) {
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

    /// `export`, `local`, `declare`, `typeset`, `readonly`.
    pub(super) fn declare(&mut self, world: &mut World, name: &str, invocation: &Invocation<'_>) {
        let mut attributes = Attributes {
            export: (name == "export").then_some(true),
            local: name == "local",
            readonly: name == "readonly",
            ..Attributes::default()
        };
        let mut options = true;
        // The command word itself may be built (`builtin export x=1`): then only expanded words are there.
        let from_tree = invocation.simple.words.len() > 1
            && matches!(invocation.simple.words.first(), Some(Arg::Word(w)) if w.literal().as_deref() == Some(name));
        if !from_tree {
            for index in 1..invocation.argv.len() {
                let word = invocation.argv[index].clone();
                self.declare_word(world, &word, attributes, &mut options, &mut Vec::new());
            }
            world.succeed(true);
            return;
        }
        let mut names = Vec::new();
        let substituted = self.substituted.take();
        for arg in &invocation.simple.words[1..] {
            match arg {
                Arg::Word(node) => {
                    if options
                        && let Some(text) = node.literal()
                        && text.len() > 1
                        && (text.starts_with('-') || text.starts_with('+'))
                    {
                        attributes = attributes.with(&text);
                        continue;
                    }
                    for word in self.fields(world, node) {
                        self.declare_word(world, &word, attributes, &mut options, &mut names);
                    }
                }
                Arg::Assign(assign) => {
                    options = false;
                    self.declare_assign(world, assign, attributes);
                }
            }
        }
        let _ = substituted;
        if attributes.print || invocation.simple.words.len() == 1 {
            let at = invocation.at;
            let text = self.unknown_value(Why::Output, format!("output of {name}"), at, Default::default());
            self.emit(world, &text, at);
        }
        world.succeed(true);
    }

    fn declare_word(
        &mut self,
        world: &mut World,
        word: &Word,
        attributes: Attributes,
        options: &mut bool,
        names: &mut Vec<String>,
    ) {
        let at = word.span;
        let Some(text) = word.value.known() else {
            // `export "$pair"`: a known name in front of `=` is enough.
            let first = word.value.pieces().first().and_then(|p| match &p.kind {
                crate::value::PieceKind::Text(text) => Some(text.clone()),
                crate::value::PieceKind::Unknown(_) => None,
            });
            if let Some((name, head)) = first.as_deref().and_then(|t| t.split_once('='))
                && is_name(name)
            {
                let mut value = Value::text(head, at);
                for piece in &word.value.pieces()[1..] {
                    value.push_piece(piece);
                }
                self.declare_value(world, &name.into(), VarValue::Scalar(value), attributes, at);
                return;
            }
            let shown = super::flow::short(&word.value.display());
            self.note(
                Note::ForeignCode,
                at,
                format!("a variable whose name is not known is set: {shown}"),
            );
            let name = format!("setting {shown}");
            let unknown = self.fresh(
                Why::Foreign,
                name,
                at,
                word.value.depends_on(),
                crate::value::Shape::Any,
            );
            world.foreign = world.foreign.take().or(Some(unknown));
            return;
        };
        if *options && text.len() > 1 && text.starts_with('-') {
            return;
        }
        *options = false;
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&*text, None),
        };
        let (name, append) = match name.strip_suffix('+') {
            Some(name) if value.is_some() => (name, true),
            _ => (name, false),
        };
        if !is_name(name) || attributes.functions {
            return;
        }
        names.push(name.to_string());
        let name: Arc<str> = name.into();
        match value {
            Some(value) => {
                let mut text = if append {
                    self.lookup(world, &name, at).unwrap_or_default()
                } else {
                    Value::empty()
                };
                text.push_text(value.into(), at);
                self.declare_value(world, &name, VarValue::Scalar(text), attributes, at);
            }
            None => {
                if attributes.makes_local(world) {
                    self.hide(world, &name);
                    let value = attributes.empty();
                    let var = Var {
                        value,
                        exported: attributes.export == Some(true),
                        readonly: false,
                        integer: attributes.integer,
                    };
                    world.vars.insert(name, Arc::new(var));
                    return;
                }
                let mut var = match world.vars.get(&name) {
                    Some(var) => (**var).clone(),
                    None => match self.lookup(world, &name, at) {
                        Some(value) => Var::scalar(value, false),
                        None => Var {
                            value: attributes.empty(),
                            exported: false,
                            readonly: false,
                            integer: false,
                        },
                    },
                };
                if attributes.assoc && matches!(var.value, VarValue::Unset) {
                    var.value = VarValue::Assoc(BTreeMap::new());
                }
                var.exported = attributes.export.unwrap_or(var.exported);
                var.integer |= attributes.integer;
                var.readonly |= attributes.readonly;
                world.vars.insert(name, Arc::new(var));
            }
        }
    }

    fn declare_assign(&mut self, world: &mut World, assign: &Assign, attributes: Attributes) {
        let at = self.span(assign.at);
        match &assign.value {
            AssignValue::Array(items) => {
                if attributes.makes_local(world) && !assign.append {
                    self.hide(world, &assign.name);
                    world.vars.remove(&assign.name);
                }
                self.assign_array(
                    world,
                    &assign.name,
                    items,
                    assign.append,
                    attributes.assoc || self.is_assoc(world, &assign.name),
                    at,
                );
            }
            AssignValue::Scalar(word) => {
                let value = self.value(world, word);
                if let Some(index) = &assign.index {
                    self.assign_element(world, &assign.name, index, assign.append, value, at);
                    return;
                }
                let mut text = if assign.append {
                    self.lookup(world, &assign.name, at).unwrap_or_default()
                } else {
                    Value::empty()
                };
                text.append(&value);
                self.declare_value(world, &assign.name, VarValue::Scalar(text), attributes, at);
                return;
            }
        }
        self.mark(world, &assign.name, attributes);
    }

    fn is_assoc(&self, world: &World, name: &str) -> bool {
        matches!(world.vars.get(name).map(|v| &v.value), Some(VarValue::Assoc(_)))
    }

    fn mark(&mut self, world: &mut World, name: &Arc<str>, attributes: Attributes) {
        if let Some(var) = world.vars.get(name) {
            let mut var = (**var).clone();
            var.exported = attributes.export.unwrap_or(var.exported);
            var.readonly |= attributes.readonly;
            var.integer |= attributes.integer;
            world.vars.insert(name.clone(), Arc::new(var));
        }
    }

    fn declare_value(&mut self, world: &mut World, name: &Arc<str>, value: VarValue, attributes: Attributes, at: Span) {
        if attributes.makes_local(world) {
            self.hide(world, name);
            world.vars.remove(name);
        }
        let value = match value {
            VarValue::Scalar(value) => {
                let value = match (attributes.upper || attributes.lower, value.known()) {
                    (true, Some(text)) => {
                        let text = if attributes.upper {
                            text.to_uppercase()
                        } else {
                            text.to_lowercase()
                        };
                        Value::text(text, at)
                    }
                    _ => value,
                };
                if attributes.integer {
                    match self.arith(world, &value, at) {
                        Num::Known(n) => Value::text(n.to_string(), at),
                        Num::Unknown(from) => self.unknown_number(format!("${name}").into(), from, at),
                    }
                } else {
                    value
                }
            }
            _ => Value::empty(),
        };
        self.assign_scalar(world, name, value, at);
        self.mark(world, name, attributes);
    }

    /// Remember what a local variable hides.
    fn hide(&mut self, world: &mut World, name: &Arc<str>) {
        let old = world.vars.get(name).cloned();
        if let Some(frame) = world.frames.iter_mut().rev().find(|f| f.kind == FrameKind::Function) {
            let frame = Arc::make_mut(frame);
            if !frame.locals.iter().any(|(n, _)| n == name) {
                frame.locals.push((name.clone(), old));
            }
        }
    }

    pub(super) fn unset(&mut self, world: &mut World, invocation: &Invocation<'_>) {
        let mut functions = false;
        for word in &invocation.argv[1..] {
            let Some(text) = word.value.known() else {
                let shown = super::flow::short(&word.value.display());
                self.note(
                    Note::Unsupported,
                    invocation.at,
                    format!("a variable whose name is not known is unset: {shown}"),
                );
                continue;
            };
            match &*text {
                "-f" => functions = true,
                "-v" | "-n" => {}
                name if functions => {
                    world.functions.remove(name);
                }
                name => self.unset_name(world, name, invocation.at),
            }
        }
        world.status = Status::Known(0);
    }

    fn unset_name(&mut self, world: &mut World, name: &str, at: Span) {
        if let Some((array, index)) = name.split_once('[') {
            let index = index.trim_end_matches(']');
            let Some(var) = world.vars.get(array).cloned() else {
                return;
            };
            let value = match &var.value {
                VarValue::Indexed(items) => {
                    let index = Value::text(index, at);
                    let Num::Known(n) = self.arith(world, &index, at) else {
                        return;
                    };
                    VarValue::Indexed(items.iter().filter(|(i, _)| *i != n).cloned().collect())
                }
                VarValue::Assoc(items) => {
                    let mut items = items.clone();
                    items.remove(index);
                    VarValue::Assoc(items)
                }
                other => other.clone(),
            };
            world.vars.insert(
                array.into(),
                Arc::new(Var {
                    value,
                    ..(*var).clone()
                }),
            );
            return;
        }
        if world.vars.get(name).is_none() && world.functions.get(name).is_some() {
            world.functions.remove(name);
            return;
        }
        let var = Var {
            value: VarValue::Unset,
            exported: false,
            readonly: false,
            integer: false,
        };
        world.vars.insert(name.into(), Arc::new(var));
    }
}

impl Attributes {
    fn with(mut self, text: &str) -> Attributes {
        let on = text.starts_with('-');
        for letter in text.chars().skip(1) {
            match letter {
                'x' => self.export = Some(on),
                'n' if self.export == Some(true) => self.export = Some(false),
                'a' => self.indexed = on,
                'A' => self.assoc = on,
                'i' => self.integer = on,
                'r' => self.readonly = on,
                'u' => self.upper = on,
                'l' => self.lower = on,
                'g' => self.global = on,
                'p' => self.print = on,
                'f' | 'F' => self.functions = on,
                _ => {}
            }
        }
        self
    }

    /// `local`, and `declare` inside a function.
    fn makes_local(&self, world: &World) -> bool {
        let inside = world.frames.iter().any(|f| f.kind == FrameKind::Function);
        let declares = self.export.is_none() && !self.readonly || self.local;
        inside && declares && !self.global
    }

    fn empty(&self) -> VarValue {
        if self.assoc {
            VarValue::Assoc(BTreeMap::new())
        } else if self.indexed {
            VarValue::Indexed(Vec::new())
        } else {
            VarValue::Unset
        }
    }
}

/// Whether a text is a variable name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    bytes.next().is_some_and(|b| b == b'_' || b.is_ascii_alphabetic())
        && bytes.all(|b| b == b'_' || b.is_ascii_alphanumeric())
}
