//! Words to fields: expansions in order, splitting of unquoted text, arrays, command substitution.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use crate::output::{Note, Word};
use crate::pattern::Pattern;
use crate::syntax::ast::{Block, Index, Param, ParamName, Part, PartKind, StmtKind, Word as WordNode};
use crate::value::{PieceKind, Shape, Span, Value, Why};
use crate::world::{Sink, Status, Var, World};

/// Puts fields together while the parts of a word are expanded.
struct Fields {
    done: Vec<Word>,
    current: Option<Word>,
    at: Span,
}

impl Fields {
    fn new(at: Span) -> Self {
        Fields {
            done: Vec::new(),
            current: None,
            at,
        }
    }

    fn open(&mut self) -> &mut Word {
        let at = self.at;
        self.current.get_or_insert_with(|| Word {
            span: at,
            ..Word::default()
        })
    }

    fn close(&mut self) {
        if let Some(word) = self.current.take() {
            self.done.push(word);
        }
    }

    /// Text in quotes: belongs to the current field, makes one even when empty.
    fn quoted(&mut self, value: &Value) {
        self.open().value.append(value);
    }

    /// Unquoted text of the script: not split, but its patterns are patterns.
    fn literal(&mut self, text: &Arc<str>, at: Span) {
        let globs = text.contains(['*', '?', '[']);
        let word = self.open();
        word.value.push_text(text.clone(), at);
        word.globs |= globs;
    }

    /// An unquoted expansion: split at the separators.
    fn split(&mut self, value: &Value, separators: &str, alone: bool) {
        for piece in value.pieces() {
            match &piece.kind {
                PieceKind::Unknown(unknown) => {
                    let fresh = self.current.is_none();
                    let word = self.open();
                    if fresh && alone && piece.at.line > 0 && word.value.is_empty() {
                        word.span = piece.at;
                    }
                    word.value.push_piece(piece);
                    word.splits |= unknown.shape != Shape::Number && unknown.each.is_none();
                }
                PieceKind::Text(text) => self.split_text(text, piece.at, separators, alone),
            }
        }
    }

    fn split_text(&mut self, text: &Arc<str>, at: Span, separators: &str, alone: bool) {
        let separates = |c: char| separators.contains(c);
        if !text.contains(separates) {
            self.push_split(text.clone(), at, alone);
            return;
        }
        let mut line = at.line;
        let mut start = 0;
        for (index, c) in text.char_indices() {
            if !separates(c) {
                continue;
            }
            let here = Span { line, ..at };
            if index > start {
                self.push_split(text[start..index].into(), here, alone);
            } else if !c.is_whitespace() && self.current.is_none() {
                // A separator that is no blank keeps the empty field in front of it.
                self.open();
            }
            self.close();
            start = index + c.len_utf8();
            line += u32::from(c == '\n' && at.line > 0);
        }
        if start < text.len() {
            self.push_split(text[start..].into(), Span { line, ..at }, alone);
        }
    }

    fn push_split(&mut self, text: Arc<str>, at: Span, alone: bool) {
        let fresh = self.current.is_none();
        let word = self.open();
        // A word split out of a text is written where the text is.
        if fresh && alone && at.line > 0 {
            word.span = at;
        }
        word.globs |= text.contains(['*', '?', '[']);
        word.value.push_text(text, at);
    }
}

impl Evaluator<'_> {
    /// The fields of several words.
    pub(super) fn all_fields(&mut self, world: &mut World, words: &[WordNode]) -> Vec<Word> {
        let mut out = Vec::new();
        for word in words {
            self.fields_to(world, word, &mut out);
            if !self.within_words(&mut out, self.span(word.at)) {
                break;
            }
        }
        out
    }

    pub(super) fn within_words(&mut self, words: &mut Vec<Word>, at: Span) -> bool {
        if words.len() <= self.limits.words {
            return true;
        }
        words.truncate(self.limits.words);
        self.bound(
            at,
            format!("more than {} words in one command or array", self.limits.words),
        );
        false
    }

    /// The fields of one word: none, one or several.
    pub(super) fn fields(&mut self, world: &mut World, word: &WordNode) -> Vec<Word> {
        let mut out = Vec::new();
        self.fields_to(world, word, &mut out);
        out
    }

    /// The same, put to others.
    pub(super) fn fields_to(&mut self, world: &mut World, word: &WordNode, out: &mut Vec<Word>) {
        let at = self.span(word.at);
        self.steps += 1;
        // The usual case: one literal.
        if let [
            Part {
                kind: PartKind::Lit(text),
                quoted,
                at: part_at,
            },
        ] = word.parts.as_slice()
        {
            let globs = !quoted && text.contains(['*', '?', '[']);
            out.push(Word {
                value: Value::text(text.clone(), self.span(*part_at)),
                span: at,
                splits: false,
                globs,
            });
            return;
        }
        let mut fields = Fields::new(at);
        fields.done = std::mem::take(out);
        let alone = word.parts.len() == 1;
        self.parts(world, word, &mut fields, alone);
        fields.close();
        *out = fields.done;
    }

    fn parts(&mut self, world: &mut World, word: &WordNode, fields: &mut Fields, alone: bool) {
        if self.depth >= super::MAX_DEPTH {
            let at = self.span(word.at);
            self.note(Note::Bound, at, "expansions nested too deeply".into());
            let value = self.unknown_value(Why::Limit, "an expansion nested too deeply", at, BTreeSet::new());
            fields.quoted(&value);
            return;
        }
        self.depth += 1;
        for part in &word.parts {
            self.part(world, part, fields, alone);
        }
        self.depth -= 1;
    }

    fn part(&mut self, world: &mut World, part: &Part, fields: &mut Fields, alone: bool) {
        let at = self.span(part.at);
        match &part.kind {
            PartKind::Lit(text) if part.quoted => fields.open().value.push_text(text.clone(), at),
            PartKind::Lit(text) => fields.literal(text, at),
            PartKind::Param(param) => self.param_part(world, param, part.quoted, at, fields, alone),
            PartKind::Process(body, input, text) => {
                let value = self.process(world, body, *input, text, at);
                let from = value.depends_on();
                let shown = self.unknown_value(Why::Output, text.clone(), at, from);
                fields.quoted(&shown);
            }
            _ => {
                let value = self.part_value(world, part, at);
                if part.quoted || matches!(part.kind, PartKind::Tilde(_)) {
                    fields.quoted(&value);
                } else {
                    let separators = self.separators(world);
                    self.whole_lanes(&value, &separators);
                    fields.split(&value, &separators, alone);
                }
            }
        }
    }

    fn param_part(
        &mut self,
        world: &mut World,
        param: &Param,
        quoted: bool,
        at: Span,
        fields: &mut Fields,
        alone: bool,
    ) {
        // Lists: `$@`, `${a[@]}` and what is made of them.
        if let Some(list) = self.param_list(world, param, at) {
            let star = matches!(param.name, ParamName::Special('*')) || matches!(param.index, Some(Index::Star));
            if quoted && star {
                let value = self.join_words(world, &list);
                fields.quoted(&value);
                return;
            }
            for (index, item) in list.iter().enumerate() {
                if index > 0 {
                    fields.close();
                }
                if quoted {
                    let inherits = fields.current.is_none();
                    let word = fields.open();
                    if inherits && item.span.line > 0 {
                        word.span = item.span;
                    }
                    word.splits |= item.splits;
                    word.value.append(&item.value);
                } else {
                    let separators = self.separators(world);
                    self.whole_lanes(&item.value, &separators);
                    fields.split(&item.value, &separators, true);
                    if item.splits
                        && let Some(current) = fields.current.as_mut()
                    {
                        current.splits = true;
                    }
                }
            }
            return;
        }
        // `${x:+words}`, `${x:-words}` unquoted: the words keep their own quoting.
        if !quoted && let Some(word) = self.conditional_word(world, param, at) {
            self.parts(world, word, fields, false);
            return;
        }
        let value = self.param_value(world, param, at);
        if quoted {
            fields.quoted(&value);
        } else {
            let separators = self.separators(world);
            let missing_number = value.is_empty();
            if !missing_number {
                self.whole_lanes(&value, &separators);
                fields.split(&value, &separators, alone);
            }
        }
    }

    pub(super) fn separators(&self, world: &World) -> Cow<'static, str> {
        match world.vars.get("IFS").and_then(|v| v.as_scalar()).map(|v| v.known()) {
            Some(Some(text)) => text.into_owned().into(),
            Some(None) | None => " \t\n".into(),
        }
    }

    /// Words joined by the first separator, as `"$*"` gives them.
    pub(super) fn join_words(&self, world: &World, words: &[Word]) -> Value {
        let separators = self.separators(world);
        let joint: String = separators.chars().take(1).collect();
        let mut out = Value::empty();
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                out.push_text(joint.as_str().into(), word.span);
            }
            out.append(&word.value);
        }
        out
    }

    /// The value of a word without splitting (assignments, quotes, subjects).
    pub(super) fn value(&mut self, world: &mut World, word: &WordNode) -> Value {
        match word.parts.as_slice() {
            [] => return Value::empty(),
            [
                Part {
                    kind: PartKind::Lit(text),
                    at,
                    ..
                },
            ] => return Value::text(text.clone(), self.span(*at)),
            _ => {}
        }
        let at = self.span(word.at);
        if self.depth >= super::MAX_DEPTH {
            self.note(Note::Bound, at, "expansions nested too deeply".into());
            return self.unknown_value(Why::Limit, "an expansion nested too deeply", at, BTreeSet::new());
        }
        self.depth += 1;
        self.steps += 1;
        let mut out = Value::empty();
        for part in &word.parts {
            let at = self.span(part.at);
            match &part.kind {
                PartKind::Lit(text) => out.push_text(text.clone(), at),
                PartKind::Param(param) => {
                    if let Some(list) = self.param_list(world, param, at) {
                        let mut joined = Value::empty();
                        for (index, item) in list.iter().enumerate() {
                            if index > 0 {
                                joined.push_text(" ".into(), item.span);
                            }
                            joined.append(&item.value);
                        }
                        out.append(&joined);
                    } else {
                        let value = self.param_value(world, param, at);
                        out.append(&value);
                    }
                }
                _ => {
                    let value = self.part_value(world, part, at);
                    out.append(&value);
                }
            }
        }
        self.depth -= 1;
        out
    }

    fn part_value(&mut self, world: &mut World, part: &Part, at: Span) -> Value {
        match &part.kind {
            PartKind::Lit(text) => Value::text(text.clone(), at),
            PartKind::Param(param) => self.param_value(world, param, at),
            PartKind::Command(body, text) => self.capture(world, body, text, at),
            PartKind::Arith(word, text) => self.arith_value(world, word, text, at),
            PartKind::Process(body, input, text) => self.process(world, body, *input, text, at),
            PartKind::Tilde(user) => {
                if user.is_empty()
                    && let Some(home) = self.lookup(world, "HOME", at)
                {
                    return home;
                }
                self.unknown_value(Why::Host, format!("~{user}"), at, ["HOME".into()].into())
            }
            PartKind::Hole(index) => self.script.holes.get(*index).cloned().unwrap_or_default(),
        }
    }

    /// A word as a pattern: quoted text stands for itself.
    pub(super) fn pattern(&mut self, world: &mut World, word: &WordNode) -> Pattern {
        let mut pattern = Pattern::default();
        let mut text = String::new();
        for part in &word.parts {
            match &part.kind {
                // Unquoted neighbours stay one text: `@(a|$b)` spans parts only in odd scripts.
                PartKind::Lit(lit) if !part.quoted => text.push_str(lit),
                PartKind::Lit(lit) => {
                    pattern.push_pattern(&std::mem::take(&mut text));
                    pattern.push_literal(lit);
                }
                _ => {
                    pattern.push_pattern(&std::mem::take(&mut text));
                    let single = WordNode {
                        at: part.at,
                        parts: vec![part.clone()],
                    };
                    let value = self.value(world, &single);
                    self.lanes.void_for(&value);
                    for piece in value.pieces() {
                        match &piece.kind {
                            PieceKind::Text(known) if part.quoted => pattern.push_literal(known),
                            PieceKind::Text(known) => pattern.push_pattern(known),
                            PieceKind::Unknown(unknown) => pattern.push_unknown(unknown.clone()),
                        }
                    }
                }
            }
        }
        pattern.push_pattern(&text);
        pattern
    }

    /// `$(…)`: run in a copy of the world; where worlds part inside, the outputs become one value with choices.
    fn capture(&mut self, world: &mut World, body: &Block, text: &Arc<str>, at: Span) -> Value {
        if body.stmts.is_empty() {
            self.substituted = Some(Status::Known(0));
            return Value::empty();
        }
        // `$(<file)`
        if let [stmt] = body.stmts.as_slice()
            && let StmtKind::Simple(simple) = &stmt.kind
            && simple.words.is_empty()
            && simple.assigns.is_empty()
            && simple.redirs.len() == 1
        {
            let path = self.value(world, &simple.redirs[0].target);
            let content = self.file_content(world, &path);
            return match content {
                Some(content) => content.trim_newlines(),
                None => self.unknown_value(Why::File, text.clone(), at, path.depends_on()),
            };
        }
        if self.calls_open >= self.limits.call_depth || !self.step(at) {
            self.note(Note::Bound, at, "more nested substitutions than are followed".into());
            return self.unknown_value(Why::Limit, text.clone(), at, BTreeSet::new());
        }
        let mut child = world.clone();
        child.out = Sink::Collect;
        child.buffer = Value::empty();
        child.exit_trap = None;
        let (stage, errexit) = (self.pipe_stage.take(), self.no_errexit);
        self.subshells += 1;
        self.calls_open += 1;
        // Command substitution does not inherit `set -e` in effect of its own failing commands unless asked to.
        child.errexit = false;
        let mut children = self.block(body, vec![child]);
        self.subshells -= 1;
        self.calls_open -= 1;
        self.pipe_stage = stage;
        self.no_errexit = errexit;
        let Some(first) = children.first() else {
            self.substituted = None;
            return self.unknown_value(Why::Limit, text.clone(), at, BTreeSet::new());
        };
        let status = if children.iter().all(|c| c.status.same(&first.status)) {
            first.status.clone()
        } else {
            self.unknown_status(&format!("{text} succeeds"), at, BTreeSet::new())
        };
        self.substituted = Some(status);
        let mut outputs: Vec<Value> = Vec::new();
        for child in &mut children {
            let output = self.settled(std::mem::take(&mut child.buffer)).trim_newlines();
            if outputs.iter().all(|o| !o.same(&output)) {
                outputs.push(output);
            }
        }
        let mut merged = children.swap_remove(0);
        for child in &children {
            if !merged
                .files
                .same_by(&child.files, |a, b| Arc::ptr_eq(a, b) || a.content.same(&b.content))
            {
                let (buffer, other) = (merged.buffer.clone(), child);
                merged.join(other, Why::Joined, at);
                merged.buffer = buffer;
            }
        }
        world.files = merged.files;
        if outputs.len() == 1
            && let Some(only) = outputs.pop()
        {
            return only;
        }
        crate::join::choice(&format!("${}", text.trim_start_matches('$')), outputs, Why::Output, at)
    }

    /// `<(…)` and `>(…)`: the commands are recorded; for `<(…)` the output is the value.
    pub(super) fn process(
        &mut self,
        world: &mut World,
        body: &Arc<Block>,
        input: bool,
        text: &Arc<str>,
        at: Span,
    ) -> Value {
        let substituted = self.substituted.take();
        let value = if input {
            self.capture(world, body, text, at)
        } else {
            let mut child = world.clone();
            child.input = crate::world::Source::Unknown;
            let _ = self.capture(&mut child, body, text, at);
            self.unknown_value(Why::Output, text.clone(), at, BTreeSet::new())
        };
        self.substituted = substituted;
        value
    }

    /// Set a plain variable.
    pub(super) fn assign_scalar(&mut self, world: &mut World, name: &Arc<str>, value: Value, at: Span) {
        let value = self.settled(value);
        let value = self.bounded(value, at);
        let exported = world.vars.get(name).is_some_and(|v| v.exported);
        self.store(world, name, Var::scalar(value, exported), at);
    }
}

impl Evaluator<'_> {
    /// A text split at the separators, as `read` does.
    pub(super) fn split_value(&mut self, world: &World, value: &Value, at: Span) -> Vec<Word> {
        let separators = self.separators(world);
        let mut fields = Fields::new(at);
        self.whole_lanes(value, &separators);
        fields.split(value, &separators, true);
        fields.close();
        for word in &mut fields.done {
            word.globs = false;
        }
        fields.done
    }
}
