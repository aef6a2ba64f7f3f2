//! What a plain or special parameter gives: variables of the script, of the shell and of the environment.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Evaluator, Rest, environment_unknown};
use crate::lanes::each_value;
use crate::value::{Shape, Span, Value, Why};
use crate::world::{FrameKind, Status, VarValue, World};

impl Evaluator<'_> {
    /// A variable's value as `$name`; None when it is not set.
    pub(super) fn lookup(&mut self, world: &mut World, name: &str, at: Span) -> Option<Value> {
        if let Some(var) = world.vars.get(name) {
            let value = match &var.value {
                VarValue::Indexed(_) | VarValue::Assoc(_) | VarValue::Scalar(_) => var.as_scalar().cloned(),
                VarValue::Unset => None,
            };
            return value.map(|value| self.settled(value));
        }
        if let Some(value) = self.shell_variable(world, name, at) {
            return Some(value);
        }
        let environment = &self.setup.environment;
        if environment
            .unknown_prefixes
            .iter()
            .any(|p| name.starts_with(p.as_str()))
            || environment.rest == Rest::Unknown
        {
            let unknown = environment_unknown(name, Shape::Any);
            if let Some(equal) = world.facts.get(&unknown.id).and_then(|f| f.equal.clone()) {
                return Some(equal);
            }
            return Some(Value::unknown(unknown, Span::NOWHERE));
        }
        if let Some(foreign) = world.foreign.clone() {
            let from = foreign.depends_on.clone();
            let label = format!("${name} (may be set by {})", foreign.name);
            return Some(self.unknown_value(Why::Foreign, label, at, from));
        }
        self.out.assumed_unset.insert(name.into());
        None
    }

    /// Variables that the shell itself provides.
    fn shell_variable(&mut self, world: &World, name: &str, at: Span) -> Option<Value> {
        let host = |e: &Self, shape| {
            let mut unknown = (*environment_unknown(name, shape)).clone();
            unknown.why = Why::Host;
            // Each reading may differ.
            unknown.stable = matches!(
                name,
                "HOSTNAME" | "UID" | "EUID" | "PPID" | "BASHPID" | "HOSTTYPE" | "OSTYPE"
            );
            let _ = e;
            Value::unknown(Arc::new(unknown), at)
        };
        Some(match name {
            "PWD" => world.cwd.clone(),
            "LINENO" => Value::text(at.line.to_string(), at),
            "BASH_SOURCE" => self.source_path(world, 0, at)?,
            "FUNCNAME" => {
                let frame = world.frames.iter().rev().find(|f| f.kind == FrameKind::Function)?;
                Value::text(frame.name.clone(), frame.called_at)
            }
            "BASH" => Value::text("/bin/bash", at),
            "IFS" => Value::text(" \t\n", at),
            "OPTIND" => Value::text("1", at),
            "RANDOM" | "SECONDS" | "EPOCHSECONDS" | "PPID" | "UID" | "EUID" | "BASHPID" | "SRANDOM" => {
                host(self, Shape::Number)
            }
            "HOSTNAME" | "EPOCHREALTIME" | "BASH_VERSION" | "HOSTTYPE" | "OSTYPE" | "MACHTYPE" | "SHLVL" => {
                host(self, Shape::NonEmpty)
            }
            _ => return None,
        })
    }

    pub(super) fn source_path(&self, world: &World, index: usize, at: Span) -> Option<Value> {
        // Innermost first: the file in which the code stands, for functions the file of their definition.
        let mut frames = world.frames.iter().rev();
        let path = frames.nth(index)?.source.clone();
        Some(Value::text(path, at))
    }

    pub(super) fn special(&mut self, world: &mut World, special: char, at: Span) -> Value {
        match special {
            '#' => Value::text(world.positional().len().to_string(), at),
            '?' => match &world.status.asked() {
                Status::Known(code) => Value::text(code.to_string(), at),
                Status::Each(codes) => each_value(codes.iter().map(|code| code.to_string().into()).collect(), at),
                Status::Unknown(condition, _) => {
                    let (name, from) = (
                        format!("$? of: {}", condition.literal.text),
                        condition.literal.depends_on.clone(),
                    );
                    Value::unknown(
                        self.fresh(Why::Status, name, condition.literal.at, from, Shape::Number),
                        at,
                    )
                }
                Status::Ran(..) => Value::empty(),
            },
            '$' => Value::unknown(
                self.fresh(Why::Process, "$$", Span::NOWHERE, BTreeSet::new(), Shape::Number),
                at,
            ),
            '!' => match world.last_background.clone() {
                Some(process) => Value::unknown(process, at),
                None => Value::empty(),
            },
            '-' => Value::text("hB", at),
            _ => Value::empty(),
        }
    }
}
