//! Arithmetic words, with the variables of a world.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use crate::arith::{self, Num};
use crate::lanes::{Lanes, each_value};
use crate::output::{Note, Word};
use crate::syntax::ast::Word as WordNode;
use crate::value::{Shape, Span, Value, Why};
use crate::world::{Var, VarValue, World};

impl Evaluator<'_> {
    /// The value of an arithmetic word.
    pub(super) fn arith_word(&mut self, world: &mut World, word: &WordNode, at: Span) -> Num {
        let text = self.value(world, word);
        self.arith(world, &text, at)
    }

    pub(super) fn arith(&mut self, world: &mut World, text: &Value, at: Span) -> Num {
        self.steps += 1;
        let mut names = Names {
            evaluator: self,
            world,
            at,
        };
        match arith::eval(text, &mut names) {
            Ok(number) => number,
            Err(message) => {
                let shown = super::flow::short(&text.display());
                self.note(Note::ShellError, at, format!("{message}: {shown}"));
                let mut from = text.depends_on();
                from.insert(format!("$(({shown}))").into());
                Num::Unknown(from)
            }
        }
    }

    pub(super) fn arith_value(&mut self, world: &mut World, word: &WordNode, text: &Arc<str>, at: Span) -> Value {
        let number = self.arith_word(world, word, at);
        self.number_value(&number, text, at)
    }

    /// A number as text; one that is not known under a name.
    pub(super) fn number_value(&self, number: &Num, name: &Arc<str>, at: Span) -> Value {
        match number {
            Num::Known(n) => Value::text(n.to_string(), at),
            Num::Each(numbers) => each_value(numbers.iter().map(|n| n.to_string().into()).collect(), at),
            Num::Unknown(from) => self.unknown_number(name.clone(), from.clone(), at),
        }
    }

    pub(super) fn unknown_number(&self, name: Arc<str>, from: BTreeSet<Arc<str>>, at: Span) -> Value {
        self.lanes.check(&from);
        let id = self
            .fresh(Why::Arithmetic, name.clone(), at, BTreeSet::new(), Shape::Number)
            .id;
        Value::unknown(Arc::new(arith::unknown_number(id, name, from)), at)
    }
}

/// Variables as arithmetic sees them.
struct Names<'e, 'a, 'w> {
    evaluator: &'e mut Evaluator<'a>,
    world: &'w mut World,
    at: Span,
}

impl arith::Vars for Names<'_, '_, '_> {
    fn get(&mut self, name: &str, index: Option<&Num>) -> Value {
        let Some(index) = index else {
            return self.evaluator.lookup(self.world, name, self.at).unwrap_or_default();
        };
        let index = &self.evaluator.lanes.one(index.clone());
        match (self.world.vars.get(name).map(|v| &v.value), index) {
            (Some(VarValue::Indexed(items)), Num::Known(n)) if items.iter().all(|(_, w)| !w.splits) => items
                .iter()
                .find(|(i, _)| i == n)
                .map(|(_, w)| w.value.clone())
                .unwrap_or_default(),
            (Some(VarValue::Assoc(items)), Num::Known(n)) => items
                .get(n.to_string().as_str())
                .map(|w| w.value.clone())
                .unwrap_or_default(),
            (None | Some(VarValue::Unset), _) => Value::empty(),
            _ => self
                .evaluator
                .unknown_number(format!("{name}[…]").into(), BTreeSet::new(), self.at),
        }
    }

    fn set(&mut self, name: &str, index: Option<&Num>, value: &Num) {
        let value = self.evaluator.number_value(value, &format!("${name}").into(), self.at);
        let name: Arc<str> = name.into();
        match index.cloned().map(|index| self.evaluator.lanes.one(index)) {
            None => self.evaluator.assign_scalar(self.world, &name, value, self.at),
            Some(Num::Known(n)) => self.evaluator.assign_index(self.world, &name, n, value, self.at),
            Some(Num::Unknown(from)) => {
                let unknown = self
                    .evaluator
                    .unknown_value(Why::Transform, format!("${{{name}[@]}}"), self.at, from);
                let word = Word {
                    value: unknown,
                    span: self.at,
                    splits: true,
                    globs: false,
                };
                let var = Var {
                    value: VarValue::Indexed(vec![(0, word)]),
                    exported: false,
                    readonly: false,
                    integer: false,
                };
                self.world.vars.insert(name, Arc::new(var));
            }
            Some(Num::Each(_)) => self.evaluator.lanes.void(),
        }
    }

    fn lanes(&mut self) -> &mut Lanes {
        &mut self.evaluator.lanes
    }
}
