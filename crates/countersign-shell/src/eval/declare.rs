//! Setting variables: assignments, arrays, `declare` and its kin, `unset`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Evaluator;
use super::simple::Invocation;
use crate::arith::Num;
use crate::output::{Note, Word};
use crate::syntax::ast::{Arg, Assign, AssignValue};
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
            self.lanes.void_for(&word.value);
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
                    let number = self.arith(world, &value, at);
                    self.number_value(&number, &format!("${name}").into(), at)
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
                self.lanes.void_for(&word.value);
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
                    let number = self.arith(world, &index, at);
                    let Num::Known(n) = self.lanes.one(number) else {
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
