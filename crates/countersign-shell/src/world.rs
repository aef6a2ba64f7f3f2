//! One world: a consistent state of the script under the decisions taken about the unknowns so far.
//! Worlds that no longer differ are merged; when there are too many, differing values become choices.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::output::{Literal, Word};
use crate::pmap::PMap;
use crate::syntax::Script;
use crate::syntax::ast::Stmt;
use crate::value::{PieceKind, Shape, Span, Unknown, Value, Why};

/// A variable.
#[derive(Debug, Clone, PartialEq)]
pub struct Var {
    /// What it holds.
    pub value: VarValue,
    /// Whether started commands see it.
    pub exported: bool,
    pub(crate) readonly: bool,
    pub(crate) integer: bool,
}

/// What a variable holds.
#[derive(Debug, Clone, PartialEq)]
pub enum VarValue {
    /// Declared or unset: no value.
    Unset,
    /// A text.
    Scalar(Value),
    /// An array: index and element, in index order; each element keeps the place where it was written.
    Indexed(Vec<(i64, Word)>),
    /// An associative array, in key order.
    Assoc(BTreeMap<Arc<str>, Word>),
}

impl Var {
    pub(crate) fn scalar(value: Value, exported: bool) -> Var {
        Var {
            value: VarValue::Scalar(value),
            exported,
            readonly: false,
            integer: false,
        }
    }

    /// The value as `$name` gives it: the text, or element zero; None when unset.
    pub fn as_scalar(&self) -> Option<&Value> {
        match &self.value {
            VarValue::Unset => None,
            VarValue::Scalar(value) => Some(value),
            VarValue::Indexed(items) => items.iter().find(|(i, _)| *i == 0).map(|(_, w)| &w.value),
            VarValue::Assoc(items) => items.get("0").map(|w| &w.value),
        }
    }
}

/// A decision about an unknown that follows from a condition.
#[derive(Debug, Clone)]
pub(crate) enum Refine {
    Equal(Arc<Unknown>, Value),
    NotEqual(Arc<Unknown>, Arc<str>),
    Range(Arc<Unknown>, i64, i64),
    Filled(Arc<Unknown>),
    Empty(Arc<Unknown>),
}

/// Something that may be true or false, asked by the script.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) literal: Literal,
    pub(crate) key: u64,
    /// Gives the same answer whenever it is asked.
    pub(crate) stable: bool,
    pub(crate) when_true: Vec<Refine>,
    pub(crate) when_false: Vec<Refine>,
}

/// Exit status.
#[derive(Debug, Clone)]
pub(crate) enum Status {
    Known(i32),
    /// Zero exactly when the condition has the given truth.
    Unknown(Arc<Condition>, bool),
}

impl Status {
    pub(crate) fn same(&self, other: &Status) -> bool {
        match (self, other) {
            (Status::Known(a), Status::Known(b)) => a == b,
            (Status::Unknown(a, x), Status::Unknown(b, y)) => a.key == b.key && x == y,
            _ => false,
        }
    }
}

/// What is known about an unknown that stays the same all along.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Fact {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) not: Vec<Arc<str>>,
    pub(crate) equal: Option<Value>,
}

impl Default for Fact {
    fn default() -> Self {
        Fact {
            low: i64::MIN,
            high: i64::MAX,
            not: Vec::new(),
            equal: None,
        }
    }
}

/// Where output goes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Sink {
    /// Terminal or log: not looked at.
    Drop,
    /// Collected: command substitution or pipe.
    Collect,
    /// A file, by its key.
    File(Arc<str>),
}

/// Where input comes from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Not known.
    Unknown,
    /// Known lines; how many were taken.
    Lines(Arc<Vec<Value>>, usize),
}

impl Source {
    fn same(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Unknown, Source::Unknown) => true,
            (Source::Lines(a, i), Source::Lines(b, j)) => i == j && (Arc::ptr_eq(a, b) || a == b),
            _ => false,
        }
    }
}

/// A call in progress.
#[derive(Debug, Clone)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) name: Arc<str>,
    /// The file its code stands in, as called or sourced.
    pub(crate) source: Arc<str>,
    pub(crate) file: u32,
    pub(crate) positional: Arc<Vec<Word>>,
    pub(crate) locals: Vec<(Arc<str>, Option<Arc<Var>>)>,
    pub(crate) called_at: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Script,
    Function,
    Source,
}

/// How the world goes on after a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Normal,
    Break(u32),
    Continue(u32),
    Return,
    Exit,
}

/// A function as defined.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Arc<str>,
    /// The file of its definition as it was called or sourced (`BASH_SOURCE`).
    pub(crate) source: Arc<str>,
    pub(crate) body: Arc<Stmt>,
    pub(crate) script: Arc<Script>,
    pub(crate) file: u32,
}

/// A file that the script wrote.
#[derive(Debug, Clone, PartialEq)]
pub struct WrittenFile {
    /// Its text, as far as known.
    pub content: Value,
    /// Where it was written first.
    pub at: Span,
}

#[derive(Debug, Clone)]
pub(crate) struct World {
    pub(crate) vars: PMap<Arc<Var>>,
    pub(crate) functions: PMap<Arc<Function>>,
    pub(crate) files: PMap<Arc<WrittenFile>>,
    pub(crate) frames: Vec<Arc<Frame>>,
    pub(crate) cwd: Value,
    pub(crate) dirs: Arc<Vec<Value>>,
    pub(crate) status: Status,
    pub(crate) last_background: Option<Arc<Unknown>>,
    pub(crate) out: Sink,
    pub(crate) err_to_out: bool,
    pub(crate) input: Source,
    pub(crate) buffer: Value,
    pub(crate) errexit: bool,
    pub(crate) pipefail: bool,
    pub(crate) exit_trap: Option<Value>,
    pub(crate) flow: Flow,
    pub(crate) path: Arc<Vec<Arc<Literal>>>,
    pub(crate) facts: Arc<BTreeMap<u64, Fact>>,
    pub(crate) decided: Arc<BTreeMap<u64, bool>>,
    /// Variables that are not set may have been set by this.
    pub(crate) foreign: Option<Arc<Unknown>>,
}

/// Decisions kept on one path; older ones beyond it are forgotten (the path then says less, never more).
const MAX_PATH: usize = 64;

/// Nesting of choices inside choices that is kept.
const MAX_CHOICE_DEPTH: usize = 4;

/// Choices kept in one unknown.
const MAX_CHOICES: usize = 24;

impl World {
    pub(crate) fn positional(&self) -> Arc<Vec<Word>> {
        self.frames.last().map(|f| f.positional.clone()).unwrap_or_default()
    }

    pub(crate) fn set_positional(&mut self, words: Vec<Word>) {
        if let Some(frame) = self.frames.last_mut() {
            Arc::make_mut(frame).positional = Arc::new(words);
        }
    }

    pub(crate) fn succeed(&mut self, yes: bool) {
        self.status = Status::Known(i32::from(!yes));
    }

    /// Whether both worlds would go on alike.
    pub(crate) fn same_state(&self, other: &World, with_status: bool) -> bool {
        self.flow == other.flow
            && (!with_status || self.status.same(&other.status))
            && self.out == other.out
            && self.errexit == other.errexit
            && self.pipefail == other.pipefail
            && self.frames.len() == other.frames.len()
            && self.cwd.same(&other.cwd)
            && self.vars.same_by(&other.vars, |a, b| Arc::ptr_eq(a, b) || a == b)
            && self.same_known_files(other)
            && self.functions.same_by(&other.functions, Arc::ptr_eq)
            && self.input.same(&other.input)
            && self.last_background == other.last_background
            && self.foreign == other.foreign
            && self.exit_trap == other.exit_trap
            && self.dirs == other.dirs
            && self.frames.iter().zip(&other.frames).all(|(a, b)| {
                Arc::ptr_eq(a, b)
                    || ((Arc::ptr_eq(&a.positional, &b.positional) || a.positional == b.positional)
                        && a.locals.len() == b.locals.len()
                        && a.locals.iter().zip(&b.locals).all(|((k, v), (l, w))| k == l && v == w))
            })
    }

    /// Whether the files with any known text are the same. Logs and other outputs, of which nothing is known, do not
    /// keep worlds apart.
    pub(crate) fn same_known_files(&self, other: &World) -> bool {
        same_known_files(&self.files, &other.files)
    }

    /// Take the decision that a condition is true or false, with what follows from it.
    pub(crate) fn assume(&mut self, condition: &Condition, truth: bool) {
        let path = Arc::make_mut(&mut self.path);
        // Asked again (in a loop): the last answer counts.
        path.retain(|l| !l.same_question(&condition.literal));
        if path.len() >= MAX_PATH {
            path.remove(0);
        }
        let literal = Literal {
            holds: truth,
            ..condition.literal.clone()
        };
        path.push(Arc::new(literal));
        if condition.stable {
            Arc::make_mut(&mut self.decided).insert(condition.key, truth);
        }
        let refinements = if truth {
            &condition.when_true
        } else {
            &condition.when_false
        };
        for refinement in refinements {
            self.refine(refinement);
        }
    }

    fn refine(&mut self, refinement: &Refine) {
        match refinement {
            Refine::Equal(unknown, value) => {
                self.substitute(unknown.id, value);
                let fact = Arc::make_mut(&mut self.facts).entry(unknown.id).or_default();
                fact.equal = Some(value.clone());
            }
            Refine::Empty(unknown) => {
                self.substitute(unknown.id, &Value::empty());
                Arc::make_mut(&mut self.facts).entry(unknown.id).or_default().equal = Some(Value::empty());
            }
            Refine::NotEqual(unknown, text) => {
                let fact = Arc::make_mut(&mut self.facts).entry(unknown.id).or_default();
                if fact.not.len() < 32 && !fact.not.contains(text) {
                    fact.not.push(text.clone());
                }
            }
            Refine::Range(unknown, low, high) => {
                let fact = Arc::make_mut(&mut self.facts).entry(unknown.id).or_default();
                fact.low = fact.low.max(*low);
                fact.high = fact.high.min(*high);
            }
            Refine::Filled(unknown) => {
                let mut filled = (**unknown).clone();
                filled.shape = Shape::NonEmpty;
                // Same identity: it is the same unknown, of which more is known now.
                let value = Value::unknown(Arc::new(filled), Span::NOWHERE);
                self.substitute(unknown.id, &value);
                Arc::make_mut(&mut self.facts)
                    .entry(unknown.id)
                    .or_default()
                    .not
                    .push("".into());
            }
        }
    }

    fn substitute(&mut self, id: u64, with: &Value) {
        let mut changed: Vec<(Arc<str>, Var)> = Vec::new();
        for (name, var) in self.vars.iter() {
            let value = match &var.value {
                VarValue::Scalar(value) => value.substitute(id, with).map(VarValue::Scalar),
                VarValue::Indexed(items) if items.iter().any(|(_, w)| w.value.unknowns().any(|u| u.id == id)) => {
                    let map = |(i, w): &(i64, Word)| (*i, substitute_word(w, id, with));
                    Some(VarValue::Indexed(items.iter().map(map).collect()))
                }
                VarValue::Assoc(items) if items.values().any(|w| w.value.unknowns().any(|u| u.id == id)) => {
                    let map = |(k, w): (&Arc<str>, &Word)| (k.clone(), substitute_word(w, id, with));
                    Some(VarValue::Assoc(items.iter().map(map).collect()))
                }
                _ => None,
            };
            if let Some(value) = value {
                changed.push((
                    name.clone(),
                    Var {
                        value,
                        ..(**var).clone()
                    },
                ));
            }
        }
        for (name, var) in changed {
            self.vars.insert(name, Arc::new(var));
        }
        for frame in &mut self.frames {
            if frame.positional.iter().any(|w| w.value.unknowns().any(|u| u.id == id)) {
                let words = frame.positional.iter().map(|w| substitute_word(w, id, with)).collect();
                Arc::make_mut(frame).positional = Arc::new(words);
            }
        }
    }

    /// Mark the decision as one without alternative: on the other side the script ends.
    pub(crate) fn mark_required(&mut self, literal: &Literal) {
        let path = Arc::make_mut(&mut self.path);
        for known in path.iter_mut().rev() {
            if known.same_question(literal) {
                Arc::make_mut(known).other_side_ends = true;
                return;
            }
        }
    }

    /// Take in a world of the same state: what both share stays.
    pub(crate) fn absorb(&mut self, other: &World, at: Span) {
        let same = |a: &Arc<WrittenFile>, b: &Arc<WrittenFile>| Arc::ptr_eq(a, b) || a.content.same(&b.content);
        for key in self.files.differing(&other.files, same) {
            // Of unknown contents: whether and what it holds is not known now.
            self.files.remove(&key);
        }
        if !self.buffer.same(&other.buffer) {
            // Output that is being collected ends as one value with choices anyway.
            self.buffer = choice(
                "output",
                vec![self.buffer.clone(), other.buffer.clone()],
                Why::Output,
                at,
            );
        }
        self.merge_path(other);
    }

    /// Forget the last decision when it answers one of these questions (the end of a loop says nothing).
    pub(crate) fn forget_last(&mut self, questions: &[Literal]) {
        if self
            .path
            .last()
            .is_some_and(|l| questions.iter().any(|q| q.same_question(l)))
        {
            Arc::make_mut(&mut self.path).pop();
        }
    }

    /// Keep what both paths share.
    fn merge_path(&mut self, other: &World) {
        if !Arc::ptr_eq(&self.path, &other.path) {
            let common: Vec<Arc<Literal>> = self
                .path
                .iter()
                .filter(|l| other.path.iter().any(|o| Arc::ptr_eq(l, o) || l == &o))
                .cloned()
                .collect();
            self.path = Arc::new(common);
        }
        if !Arc::ptr_eq(&self.facts, &other.facts) {
            Arc::make_mut(&mut self.facts).retain(|id, fact| other.facts.get(id) == Some(fact));
        }
        if !Arc::ptr_eq(&self.decided, &other.decided) {
            Arc::make_mut(&mut self.decided).retain(|key, truth| other.decided.get(key) == Some(truth));
        }
    }

    /// How many things differ: worlds that differ least are joined first.
    pub(crate) fn distance(&self, other: &World) -> usize {
        self.vars
            .differing(&other.vars, |a, b| Arc::ptr_eq(a, b) || a == b)
            .len()
            + 4 * self
                .files
                .differing(&other.files, |a, b| Arc::ptr_eq(a, b) || a.content.same(&b.content))
                .len()
            + usize::from(!self.cwd.same(&other.cwd))
            + if self.flow == other.flow { 0 } else { 1000 }
    }

    /// Put two worlds into one: what differs becomes a choice with the given reason.
    pub(crate) fn join(&mut self, other: &World, why: Why, at: Span) {
        let names = self.vars.differing(&other.vars, |a, b| Arc::ptr_eq(a, b) || a == b);
        for name in names {
            let joined = join_vars(&name, self.vars.get(&name), other.vars.get(&name), why, at);
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

/// See [`World::same_known_files`].
pub(crate) fn same_known_files(a: &PMap<Arc<WrittenFile>>, b: &PMap<Arc<WrittenFile>>) -> bool {
    let same = |a: &Arc<WrittenFile>, b: &Arc<WrittenFile>| Arc::ptr_eq(a, b) || a.content.same(&b.content);
    if a.same_by(b, same) {
        return true;
    }
    let nothing_known = |f: Option<&Arc<WrittenFile>>| {
        f.is_none_or(|f| {
            f.content
                .pieces()
                .iter()
                .all(|p| matches!(p.kind, PieceKind::Unknown(_)))
        })
    };
    a.differing(b, same)
        .iter()
        .all(|key| nothing_known(a.get(key)) && nothing_known(b.get(key)))
}

/// The status of two paths put together: unknown.
pub(crate) fn joined_status(at: Span) -> Status {
    let literal = Literal {
        text: format!("the status at line {} is zero", at.line).into(),
        at,
        holds: true,
        other_side_ends: false,
        depends_on: Default::default(),
    };
    let key = id_of(Why::Status, &literal.text, at);
    Status::Unknown(
        Arc::new(Condition {
            literal,
            key,
            stable: false,
            when_true: Vec::new(),
            when_false: Vec::new(),
        }),
        true,
    )
}

fn substitute_word(word: &Word, id: u64, with: &Value) -> Word {
    match word.value.substitute(id, with) {
        Some(value) => Word { value, ..word.clone() },
        None => word.clone(),
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
    let mut depends_on: std::collections::BTreeSet<Arc<str>> = flat.iter().flat_map(Value::depends_on).collect();
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

/// Identity of an unknown: a stable hash of what it is and where it arises (FNV-1a).
pub(crate) fn id_of(why: Why, name: &str, at: Span) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut eat = |byte: u8| {
        hash ^= u64::from(byte);
        hash = hash.wrapping_mul(0x0000_0100_0000_01b3);
    };
    eat(why as u8);
    name.bytes().for_each(&mut eat);
    for number in [at.file, at.line, at.col] {
        number.to_le_bytes().into_iter().for_each(&mut eat);
    }
    hash
}
