//! Putting worlds together: values that differ become choices that say what decides between them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::output::{Literal, Word};
use crate::value::{PieceKind, Shape, Span, Unknown, Value, Why};
use crate::world::{Source, Var, VarValue, World, WrittenFile, id_of, joined_status, same_var};

/// Nesting of choices inside choices that is kept.
const MAX_CHOICE_DEPTH: usize = 4;

/// Choices kept in one unknown.
const MAX_CHOICES: usize = 24;

impl World {
    /// Take in a world of the same state: what both share stays. Variables that only decide become choices.
    pub(crate) fn absorb(&mut self, other: &World, at: Span, stable: bool) {
        let because = self.parting(other);
        for name in self.vars.differing(&other.vars, same_var) {
            let mut joined = join_vars(&name, self.vars.get(&name), other.vars.get(&name), Why::Joined, at);
            tell(&mut joined, &because, stable);
            self.vars.insert(name, Arc::new(joined));
        }
        let same = |a: &Arc<WrittenFile>, b: &Arc<WrittenFile>| Arc::ptr_eq(a, b) || a.content.same(&b.content);
        for key in self.files.differing(&other.files, same) {
            // Of unknown contents: whether and what it holds is not known now.
            self.files.remove(&key);
        }
        if !self.buffer.same(&other.buffer) {
            // Output that is being collected ends as one value with choices anyway.
            let buffers = vec![self.buffer.clone(), other.buffer.clone()];
            self.buffer = choice("output", buffers, Why::Output, at);
        }
        if self.last_background != other.last_background {
            let name: Arc<str> = format!("$! at line {}", at.line).into();
            let process = Unknown {
                id: id_of(Why::Process, &name, at),
                depends_on: [name.clone()].into(),
                name,
                why: Why::Process,
                shape: Shape::Any,
                choices: Vec::new(),
                stable: false,
                each: None,
                written: None,
            };
            self.last_background = Some(Arc::new(process));
        }
        self.merge_path(other);
    }

    /// Names of the unknowns whose decisions part the two worlds.
    fn parting(&self, other: &World) -> BTreeSet<Arc<str>> {
        let only = |a: &World, b: &World| -> Vec<Arc<Literal>> {
            a.path.iter().filter(|l| !b.path.contains(l)).cloned().collect()
        };
        let all = only(self, other).into_iter().chain(only(other, self));
        all.flat_map(|l| l.depends_on.iter().cloned().collect::<Vec<_>>())
            .collect()
    }

    /// How many things differ: worlds that differ least are joined first.
    pub(crate) fn distance(&self, other: &World) -> usize {
        self.vars.differing(&other.vars, same_var).len()
            + 4 * self
                .files
                .differing(&other.files, |a, b| Arc::ptr_eq(a, b) || a.content.same(&b.content))
                .len()
            + usize::from(!self.cwd.same(&other.cwd))
            + if self.flow == other.flow { 0 } else { 1000 }
    }

    /// Put two worlds into one: what differs becomes a choice with the given reason.
    pub(crate) fn join(&mut self, other: &World, why: Why, at: Span) {
        let names = self.vars.differing(&other.vars, same_var);
        let because = self.parting(other);
        for name in names {
            let mut joined = join_vars(&name, self.vars.get(&name), other.vars.get(&name), why, at);
            tell(&mut joined, &because, false);
            self.vars.insert(name, Arc::new(joined));
        }
        let files = self
            .files
            .differing(&other.files, |a, b| Arc::ptr_eq(a, b) || a.content.same(&b.content));
        for key in files {
            let content = |w: &World| w.files.get(&key).map(|f| f.content.clone());
            let first = self.files.get(&key).or(other.files.get(&key)).map_or(at, |f| f.at);
            let choices = [content(self), content(other)].into_iter().flatten().collect();
            let content = choice(&key, choices, why, at);
            self.files.insert(key, Arc::new(WrittenFile { content, at: first }));
        }
        for (name, function) in other.functions.iter() {
            if self.functions.get(name).is_none() {
                self.functions.insert(name.clone(), function.clone());
            }
        }
        let join = |name: &str, a: &Value, b: &Value| {
            if a.same(b) {
                a.clone()
            } else {
                choice(name, vec![a.clone(), b.clone()], why, at)
            }
        };
        self.cwd = join("$PWD", &self.cwd, &other.cwd);
        self.buffer = join("output", &self.buffer, &other.buffer);
        if !self.input.same(&other.input) {
            self.input = Source::Unknown;
        }
        if self.last_background != other.last_background {
            self.last_background = self.last_background.clone().or(other.last_background.clone());
        }
        self.foreign = self.foreign.clone().or(other.foreign.clone());
        for index in 0..self.frames.len().min(other.frames.len()) {
            let (mine, theirs) = (&self.frames[index], &other.frames[index]);
            if mine.positional == theirs.positional {
                continue;
            }
            let count = mine.positional.len().max(theirs.positional.len());
            let empty = Value::empty();
            let words = (0..count)
                .map(|i| {
                    let (a, b) = (mine.positional.get(i), theirs.positional.get(i));
                    let (x, y) = (a.map_or(&empty, |w| &w.value), b.map_or(&empty, |w| &w.value));
                    let base = a.or(b).cloned().unwrap_or_default();
                    Word {
                        value: join(&format!("${}", i + 1), x, y),
                        ..base
                    }
                })
                .collect();
            Arc::make_mut(&mut self.frames[index]).positional = Arc::new(words);
        }
        if !self.status.same(&other.status) {
            self.status = joined_status(at);
        }
        self.merge_path(other);
    }
}

/// Let the choices of a joined variable say which unknowns decide; `stable` when it is the same until it is set again.
fn tell(var: &mut Var, because: &BTreeSet<Arc<str>>, stable: bool) {
    let told = |value: &Value| -> Option<Value> {
        let unknown = value
            .single_unknown()
            .filter(|u| u.why == Why::Joined || u.why == Why::Loop)?;
        let mut unknown = (**unknown).clone();
        if !because.is_empty() {
            // The choice itself is not a root when what decides is known.
            unknown.depends_on.retain(|n| **n != *unknown.name);
            unknown.depends_on.extend(because.iter().cloned());
        }
        unknown.stable = stable;
        let at = value.pieces().first().map_or(Span::NOWHERE, |p| p.at);
        Some(Value::unknown(Arc::new(unknown), at))
    };
    match &mut var.value {
        VarValue::Scalar(value) => {
            if let Some(new) = told(value) {
                *value = new;
            }
        }
        VarValue::Indexed(items) => {
            for (_, word) in items {
                if let Some(new) = told(&word.value) {
                    word.value = new;
                }
            }
        }
        VarValue::Assoc(_) | VarValue::Unset => {}
    }
}

fn join_vars(name: &str, a: Option<&Arc<Var>>, b: Option<&Arc<Var>>, why: Why, at: Span) -> Var {
    let exported = a.is_some_and(|v| v.exported) || b.is_some_and(|v| v.exported);
    let integer = a.is_some_and(|v| v.integer) || b.is_some_and(|v| v.integer);
    let arrays = (a.map(|v| &v.value), b.map(|v| &v.value));
    let value = match arrays {
        (Some(VarValue::Indexed(x)), Some(VarValue::Indexed(y)))
            if x.len() == y.len() && x.iter().zip(y).all(|((i, _), (j, _))| i == j) =>
        {
            let both = x.iter().zip(y).map(|((i, v), (_, w))| {
                if v.value.same(&w.value) {
                    (*i, v.clone())
                } else {
                    let value = choice(&format!("{name}[{i}]"), vec![v.value.clone(), w.value.clone()], why, at);
                    (
                        *i,
                        Word {
                            value,
                            splits: v.splits || w.splits,
                            ..v.clone()
                        },
                    )
                }
            });
            VarValue::Indexed(both.collect())
        }
        (Some(VarValue::Indexed(x)), other) | (other, Some(VarValue::Indexed(x))) => {
            // Arrays of different length: one word that may be several; its choices are the two rows.
            let row = |items: &[(i64, Word)]| {
                let mut row = Value::empty();
                for (index, (_, word)) in items.iter().enumerate() {
                    if index > 0 {
                        row.push_text(" ".into(), word.span);
                    }
                    row.append(&word.value);
                }
                row
            };
            let other = match other {
                Some(VarValue::Indexed(y)) => row(y),
                Some(VarValue::Scalar(value)) => value.clone(),
                _ => Value::empty(),
            };
            let value = choice(&format!("{name}[@]"), vec![row(x), other], why, at);
            VarValue::Indexed(vec![(
                0,
                Word {
                    value,
                    span: at,
                    splits: true,
                    globs: false,
                },
            )])
        }
        (a, b) => {
            let scalar = |v: Option<&VarValue>| match v {
                Some(VarValue::Scalar(value)) => value.clone(),
                _ => Value::empty(),
            };
            VarValue::Scalar(choice(name, vec![scalar(a), scalar(b)], why, at))
        }
    };
    Var {
        value,
        exported,
        readonly: false,
        integer,
    }
}

/// An unknown that is one of the given values.
pub(crate) fn choice(name: &str, values: Vec<Value>, why: Why, at: Span) -> Value {
    let mut flat: Vec<Value> = Vec::new();
    let mut closed = true;
    for value in values {
        let inner: Vec<Value> = match value.single_unknown() {
            Some(unknown) if !unknown.choices.is_empty() => unknown.choices.clone(),
            _ => vec![value],
        };
        for value in inner {
            if flat.iter().all(|v| !v.same(&value)) {
                flat.push(value);
            }
        }
    }
    if flat.len() == 1
        && let Some(only) = flat.pop()
    {
        return only;
    }
    if flat.len() > MAX_CHOICES || flat.iter().any(|v| choice_depth(v) >= MAX_CHOICE_DEPTH) {
        closed = false;
    }
    let mut depends_on: BTreeSet<Arc<str>> = flat.iter().flat_map(Value::depends_on).collect();
    let label: Arc<str> = if name.starts_with('$') {
        name.into()
    } else {
        format!("${{{name}}}").into()
    };
    if depends_on.is_empty() {
        depends_on.insert(label.clone());
    }
    let number = |v: &Value| v.known().is_some_and(|t| t.parse::<i64>().is_ok());
    let shape = if flat.iter().all(number) {
        Shape::Number
    } else if flat.iter().all(|v| v.emptiness() == Some(false)) {
        Shape::NonEmpty
    } else {
        Shape::Any
    };
    let mut text = String::from(&*label);
    if closed {
        // Two joins at one place with different choices are different unknowns.
        flat.iter().for_each(|v| text.push_str(&format!("|{}", v.display())));
    }
    let unknown = Unknown {
        id: id_of(why, &text, at),
        name: label,
        why,
        depends_on,
        shape,
        choices: if closed { flat } else { Vec::new() },
        stable: false,
        each: None,
        written: None,
    };
    Value::unknown(Arc::new(unknown), at)
}

fn choice_depth(value: &Value) -> usize {
    fn depth(value: &Value, left: usize) -> usize {
        if left == 0 {
            return 0;
        }
        let inner = |u: &Arc<Unknown>| u.choices.iter().map(|c| depth(c, left - 1)).max().map_or(0, |d| d + 1);
        value
            .pieces()
            .iter()
            .map(|p| match &p.kind {
                PieceKind::Unknown(u) => inner(u),
                PieceKind::Text(_) => 0,
            })
            .max()
            .unwrap_or(0)
    }
    depth(value, MAX_CHOICE_DEPTH + 1)
}
