//! Worlds as they are for some of the points that are evaluated together ([`crate::lanes`]).

use std::sync::Arc;

use crate::output::Word;
use crate::value::Value;
use crate::world::{Source, Status, Var, VarValue, World, WrittenFile};

impl World {
    /// The world as it is for one of the points that are evaluated together. Nothing where something in it is not known
    /// only since it differs between them.
    pub(super) fn of_lane(&self, lane: usize) -> Option<World> {
        let mut out = self.of(&|value| value.of_lane(lane))?;
        out.status = out.status.of_lane(lane)?;
        Some(out)
    }

    /// The world as it is for those that are marked; all others are taken for the same as one of these.
    pub(super) fn among(&self, marked: &[bool], lead: usize) -> Option<World> {
        let mut out = self.of(&|value| value.among(marked, lead))?;
        out.status = out.status.among(marked, lead)?;
        Some(out)
    }

    fn of(&self, own: &dyn Fn(&Value) -> Option<Value>) -> Option<World> {
        let mut out = self.clone();
        for (name, var) in self.vars.iter() {
            if let Some(own) = var_of(var, own)? {
                out.vars.insert(name.clone(), own);
            }
        }
        for (key, file) in self.files.iter().filter(|(_, file)| file.content.varies()) {
            let content = own(&file.content)?;
            out.files
                .insert(key.clone(), Arc::new(WrittenFile { content, at: file.at }));
        }
        for frame in &mut out.frames {
            let laned_local = |(_, var): &(Arc<str>, Option<Arc<Var>>)| {
                var.as_ref().is_some_and(|var| !matches!(var_of(var, own), Some(None)))
            };
            if let Some(words) = words_of(&frame.positional, own)? {
                Arc::make_mut(frame).positional = Arc::new(words);
            }
            if frame.locals.iter().any(laned_local) {
                for (_, local) in &mut Arc::make_mut(frame).locals {
                    if let Some(var) = local
                        && let Some(own) = var_of(var, own)?
                    {
                        *var = own;
                    }
                }
            }
        }
        out.cwd = own(&self.cwd)?;
        out.buffer = own(&self.buffer)?;
        if self.dirs.iter().any(Value::varies) {
            let dirs: Option<Vec<Value>> = self.dirs.iter().map(own).collect();
            out.dirs = Arc::new(dirs?);
        }
        if let Some(trap) = &self.exit_trap {
            out.exit_trap = Some(own(trap)?);
        }
        if let Source::Lines(lines, taken) = &self.input
            && lines.iter().any(Value::varies)
        {
            let lines: Option<Vec<Value>> = lines.iter().map(own).collect();
            out.input = Source::Lines(Arc::new(lines?), *taken);
        }
        if let Status::Ran(argv, at) = &self.status
            && let Some(words) = words_of(argv, own)?
        {
            out.status = Status::Ran(Arc::new(words), *at);
        }
        Some(out)
    }
}

impl Status {
    /// The status that it is for one of the points.
    pub(super) fn of_lane(&self, lane: usize) -> Option<Status> {
        match self {
            Status::Each(codes) => Some(Status::Known(*codes.get(lane)?)),
            status => Some(status.clone()),
        }
    }

    /// The status that it is for those that are marked, taking all others for the same as one of these.
    pub(super) fn among(&self, marked: &[bool], lead: usize) -> Option<Status> {
        let Status::Each(codes) = self else {
            return Some(self.clone());
        };
        let own = |(lane, marked): (usize, &bool)| codes.get(if *marked { lane } else { lead }).copied();
        Some(Status::each(marked.iter().enumerate().map(own).collect::<Option<_>>()?))
    }

    /// A status for each point, known where it is the same for all.
    pub(super) fn each(codes: Vec<i32>) -> Status {
        match codes.first() {
            Some(first) if codes.iter().all(|code| code == first) => Status::Known(*first),
            _ => Status::Each(codes.into()),
        }
    }
}

fn word_of(word: &Word, own: &dyn Fn(&Value) -> Option<Value>) -> Option<Word> {
    Some(Word {
        value: own(&word.value)?,
        ..word.clone()
    })
}

/// Words as they are for some points; inside `None` where they are the same for all.
#[allow(clippy::option_option, reason = "not known, or the same for all")]
fn words_of(words: &[Word], own: &dyn Fn(&Value) -> Option<Value>) -> Option<Option<Vec<Word>>> {
    if !words.iter().any(|word| word.value.varies()) {
        return Some(None);
    }
    let words: Option<Vec<Word>> = words.iter().map(|word| word_of(word, own)).collect();
    Some(Some(words?))
}

/// A variable as it is for some points; inside `None` where it is the same for all.
#[allow(clippy::option_option, reason = "not known, or the same for all")]
pub(super) fn var_of(var: &Arc<Var>, own: &dyn Fn(&Value) -> Option<Value>) -> Option<Option<Arc<Var>>> {
    let value = match &var.value {
        VarValue::Scalar(value) if value.varies() => VarValue::Scalar(own(value)?),
        VarValue::Indexed(items) if items.iter().any(|(_, word)| word.value.varies()) => {
            let item = |(at, word): &(i64, Word)| Some((*at, word_of(word, own)?));
            VarValue::Indexed(items.iter().map(item).collect::<Option<_>>()?)
        }
        VarValue::Assoc(items) if items.values().any(|word| word.value.varies()) => {
            let item = |(key, word): (&Arc<str>, &Word)| Some((key.clone(), word_of(word, own)?));
            VarValue::Assoc(items.iter().map(item).collect::<Option<_>>()?)
        }
        _ => return Some(None),
    };
    Some(Some(Arc::new(Var {
        value,
        ..(**var).clone()
    })))
}
