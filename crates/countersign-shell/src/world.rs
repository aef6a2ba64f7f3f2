//! One world: a consistent state of the script under the decisions taken about the unknowns so far.
//! Worlds that no longer differ are merged; when there are too many, differing values become choices.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::output::{Literal, Word};
use crate::pmap::PMap;
use crate::syntax::Script;
use crate::syntax::ast::Stmt;
use crate::uses::Telling;
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
    /// One for each of the points that are evaluated together.
    Each(Arc<[i32]>),
    /// Zero exactly when the condition has the given truth.
    Unknown(Arc<Condition>, bool),
    /// The status of a program that was not run: most are never asked for, so the question is put into words only
    /// when it is.
    Ran(Arc<Vec<Word>>, Span),
}

impl Status {
    pub(crate) fn same(&self, other: &Status) -> bool {
        match (self, other) {
            (Status::Known(a), Status::Known(b)) => a == b,
            (Status::Each(a), Status::Each(b)) => a == b,
            (Status::Unknown(a, x), Status::Unknown(b, y)) => a.key == b.key && x == y,
            (Status::Ran(a, x), Status::Ran(b, y)) => x == y && (Arc::ptr_eq(a, b) || a == b),
            _ => false,
        }
    }

    /// The same with the question in words.
    pub(crate) fn asked(&self) -> Status {
        let Status::Ran(argv, at) = self else {
            return self.clone();
        };
        let mut shown = String::new();
        for word in argv.iter() {
            if !shown.is_empty() {
                shown.push(' ');
            }
            shown.push_str(&word.value.display());
            // Names that differ between points are longer than what they stand for.
            if shown.len()
                > if shown.contains(crate::lanes::MARK) {
                    1 << 16
                } else {
                    400
                }
            {
                break;
            }
        }
        let mut depends_on: std::collections::BTreeSet<Arc<str>> =
            argv.iter().flat_map(|w| w.value.depends_on()).collect();
        // It is not known for any single point either.
        depends_on.remove(crate::lanes::MARK);
        let short = crate::lanes::cut(&shown, 100, "");
        depends_on.insert(format!("$({short})").into());
        let text = crate::lanes::cut(&shown, 140, "");
        Status::unknown(format!("{text} succeeds"), *at, depends_on)
    }

    /// The status that is zero when a question has the answer yes.
    pub(crate) fn unknown(text: String, at: Span, depends_on: std::collections::BTreeSet<Arc<str>>) -> Status {
        let key = id_of(Why::Status, &text, at);
        let literal = Literal {
            text: text.into(),
            at,
            holds: true,
            other_side_ends: false,
            depends_on,
        };
        let condition = Condition {
            literal,
            key,
            stable: false,
            when_true: Vec::new(),
            when_false: Vec::new(),
        };
        Status::Unknown(Arc::new(condition), true)
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
    pub(crate) fn same(&self, other: &Source) -> bool {
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

/// What keeps worlds apart, when only that is asked for.
pub(crate) struct Asked<'a> {
    pub(crate) telling: &'a Telling,
    /// The variable that kept worlds apart last: asked first, it saves looking at all others.
    pub(crate) last: &'a mut Option<Arc<str>>,
}

/// Decisions kept on one path; older ones beyond it are forgotten (the path then says less, never more).
const MAX_PATH: usize = 64;

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
    pub(crate) fn same_state(&self, other: &World, with_status: bool, telling: Option<&mut Asked<'_>>) -> bool {
        let all = telling.is_none();
        self.flow == other.flow
            && (!with_status || self.status.same(&other.status))
            && self.out == other.out
            && self.errexit == other.errexit
            && self.pipefail == other.pipefail
            && self.frames.len() == other.frames.len()
            && self.cwd.same(&other.cwd)
            && self.same_vars(other, telling)
            && self.same_known_files(other)
            && self.functions.same_by(&other.functions, Arc::ptr_eq)
            && self.input.same(&other.input)
            && (!all || self.last_background == other.last_background)
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

    fn same_vars(&self, other: &World, asked: Option<&mut Asked<'_>>) -> bool {
        let Some(Asked { telling, last }) = asked else {
            return self.vars.same_by(&other.vars, same_var);
        };
        let plain = |var: Option<&Arc<Var>>| {
            var.is_none_or(|v| !v.exported && matches!(v.value, VarValue::Scalar(_) | VarValue::Unset))
        };
        let parts =
            |name: &Arc<str>, a: Option<&Arc<Var>>, b: Option<&Arc<Var>>| telling.tells(name) || !plain(a) || !plain(b);
        if let Some(name) = last.as_ref()
            && self.differs_in(other, name)
            && parts(name, self.vars.get(name), other.vars.get(name))
        {
            return false;
        }
        let first = self.vars.find_differing(&other.vars, same_var, parts);
        let same = first.is_none();
        **last = first.or(last.take());
        same
    }

    /// Whether a variable is not the same in both.
    pub(crate) fn differs_in(&self, other: &World, name: &str) -> bool {
        match (self.vars.get(name), other.vars.get(name)) {
            (Some(a), Some(b)) => !same_var(a, b),
            (None, None) => false,
            _ => true,
        }
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
    pub(crate) fn merge_path(&mut self, other: &World) {
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
}

/// Whether two variables are the same: most often they are one.
pub(crate) fn same_var(a: &Arc<Var>, b: &Arc<Var>) -> bool {
    Arc::ptr_eq(a, b) || a == b
}

/// See [`World::same_known_files`].
pub(crate) fn same_known_files(a: &PMap<Arc<WrittenFile>>, b: &PMap<Arc<WrittenFile>>) -> bool {
    let same = |a: &Arc<WrittenFile>, b: &Arc<WrittenFile>| Arc::ptr_eq(a, b) || a.content.same(&b.content);
    let something_known = |f: Option<&Arc<WrittenFile>>| {
        let known = |kind: &PieceKind| match kind {
            PieceKind::Text(_) => true,
            PieceKind::Unknown(unknown) => unknown.why == Why::Lane,
        };
        f.is_some_and(|f| f.content.pieces().iter().any(|p| known(&p.kind)))
    };
    a.find_differing(b, same, |_, a, b| something_known(a) || something_known(b))
        .is_none()
}

/// The status of two paths put together: unknown.
pub(crate) fn joined_status(at: Span) -> Status {
    Status::unknown(
        format!("the status at line {} is zero", at.line),
        at,
        Default::default(),
    )
}

fn substitute_word(word: &Word, id: u64, with: &Value) -> Word {
    match word.value.substitute(id, with) {
        Some(value) => Word { value, ..word.clone() },
        None => word.clone(),
    }
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
