//! `test` and `[ ]`, on expanded words.

use super::Evaluator;
use super::condition::{Answer, combine};
use crate::output::Word;
use crate::value::Span;
use crate::world::{Status, World};

impl Evaluator<'_> {
    /// `test` and `[ ]`, on expanded words.
    pub(super) fn test_builtin(&mut self, world: &mut World, words: &[Word], at: Span) -> Status {
        let mut at_word = 0;
        let answer = match words.len() {
            0 => Answer::Known(false),
            1 => self.unary(world, "-n", &words[0].value),
            _ => self.test_or(world, words, &mut at_word, 0),
        };
        self.status_of(answer, at)
    }

    fn test_or(&mut self, world: &mut World, words: &[Word], at: &mut usize, depth: usize) -> Answer {
        let mut answers = vec![self.test_and(world, words, at, depth)];
        while is(words, *at, "-o") {
            *at += 1;
            answers.push(self.test_and(world, words, at, depth));
        }
        combine(answers, false)
    }

    fn test_and(&mut self, world: &mut World, words: &[Word], at: &mut usize, depth: usize) -> Answer {
        let mut answers = vec![self.test_primary(world, words, at, depth)];
        while is(words, *at, "-a") {
            *at += 1;
            answers.push(self.test_primary(world, words, at, depth));
        }
        combine(answers, true)
    }

    fn test_primary(&mut self, world: &mut World, words: &[Word], at: &mut usize, depth: usize) -> Answer {
        let mut negated = false;
        while is(words, *at, "!") && *at + 1 < words.len() && !binary_operator(words, *at + 1) {
            *at += 1;
            negated = !negated;
        }
        let answer = self.test_term(world, words, at, depth);
        if negated { answer.not() } else { answer }
    }

    fn test_term(&mut self, world: &mut World, words: &[Word], at: &mut usize, depth: usize) -> Answer {
        let Some(first) = words.get(*at) else {
            return Answer::Known(false);
        };
        if binary_operator(words, *at + 1)
            && let (Some(op), Some(right)) = (words[*at + 1].value.known(), words.get(*at + 2))
        {
            *at += 3;
            return self.binary(world, &op, &first.value, &right.value);
        }
        if is(words, *at, "(") && depth < 16 {
            *at += 1;
            let answer = self.test_or(world, words, at, depth + 1);
            *at += usize::from(is(words, *at, ")"));
            return answer;
        }
        if let Some(op) = first.value.known()
            && op.len() == 2
            && op.starts_with('-')
            && let Some(operand) = words.get(*at + 1)
        {
            *at += 2;
            return self.unary(world, &op, &operand.value);
        }
        *at += 1;
        self.unary(world, "-n", &first.value)
    }
}

fn is(words: &[Word], at: usize, text: &str) -> bool {
    words.get(at).and_then(|w| w.value.known()).is_some_and(|t| t == text)
}

fn binary_operator(words: &[Word], at: usize) -> bool {
    const OPERATORS: [&str; 14] = [
        "=", "==", "!=", "<", ">", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef",
    ];
    at + 1 < words.len()
        && words
            .get(at)
            .and_then(|w| w.value.known())
            .is_some_and(|t| OPERATORS.contains(&t.as_ref()))
}
