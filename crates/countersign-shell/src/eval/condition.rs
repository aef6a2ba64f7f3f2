//! Conditions: `[[ ]]`, `[ ]`, `test` and `(( ))`. The answer is yes, no, or a question about unknowns, with what
//! follows from either answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Evaluator;
use super::flow::short;
use crate::arith::Num;
use crate::output::{Literal, Word};
use crate::pattern::Pattern;
use crate::syntax::ast::{Cond, PartKind, Word as WordNode};
use crate::value::{PieceKind, Shape, Span, Unknown, Value, Why};
use crate::world::{Condition, Fact, Refine, Status, Var, VarValue, World, id_of};

/// An answer, or the question that has to be asked.
pub(super) enum Answer {
    Known(bool),
    Ask(Question),
}

pub(super) struct Question {
    /// The question is asked the other way round: yes means that the text does not hold.
    negated: bool,
    text: String,
    depends_on: BTreeSet<Arc<str>>,
    stable: bool,
    when_true: Vec<Refine>,
    when_false: Vec<Refine>,
}

impl Answer {
    pub(super) fn not(self) -> Answer {
        match self {
            Answer::Known(yes) => Answer::Known(!yes),
            Answer::Ask(q) => Answer::Ask(Question {
                negated: !q.negated,
                ..q
            }),
        }
    }
}

impl Question {
    /// The same with the negation in its text, to be put together with others.
    fn positive(self) -> Question {
        if !self.negated {
            return self;
        }
        Question {
            negated: false,
            text: format!("! {}", self.text),
            when_true: self.when_false,
            when_false: self.when_true,
            ..self
        }
    }
}

/// `&&` (true) or `||` over answers.
pub(super) fn combine(answers: Vec<Answer>, all: bool) -> Answer {
    let mut asks: Vec<Question> = Vec::new();
    for answer in answers {
        match answer {
            Answer::Known(yes) if yes != all => return Answer::Known(!all),
            Answer::Known(_) => {}
            Answer::Ask(question) => asks.push(question),
        }
    }
    let Some(first) = asks.pop() else {
        return Answer::Known(all);
    };
    if asks.is_empty() {
        return Answer::Ask(first);
    }
    let mut first = first.positive();
    asks.reverse();
    for question in asks.into_iter().map(Question::positive) {
        first.text = format!("{} {} {}", question.text, if all { "&&" } else { "||" }, first.text);
        first.depends_on.extend(question.depends_on);
        first.stable &= question.stable;
        if all {
            first.when_true.extend(question.when_true);
            first.when_false.clear();
        } else {
            first.when_false.extend(question.when_false);
            first.when_true.clear();
        }
    }
    if all {
        first.when_false.clear();
    } else {
        first.when_true.clear();
    }
    Answer::Ask(first)
}

impl Evaluator<'_> {
    pub(super) fn status_of(&self, answer: Answer, at: Span) -> Status {
        match answer {
            Answer::Known(yes) => Status::Known(i32::from(!yes)),
            Answer::Ask(q) => {
                self.lanes.check(&q.depends_on);
                let text: Arc<str> = short(&q.text).into();
                let key = id_of(Why::Status, &q.text, if q.stable { Span::NOWHERE } else { at });
                let literal = Literal {
                    text,
                    at,
                    holds: true,
                    other_side_ends: false,
                    depends_on: q.depends_on,
                };
                let condition = Condition {
                    literal,
                    key,
                    stable: q.stable,
                    when_true: q.when_true,
                    when_false: q.when_false,
                };
                Status::Unknown(Arc::new(condition), !q.negated)
            }
        }
    }

    pub(super) fn test_cond(&mut self, world: &mut World, cond: &Cond, at: Span) -> Status {
        let answer = self.cond(world, cond, at);
        self.status_of(answer, at)
    }

    fn cond(&mut self, world: &mut World, cond: &Cond, at: Span) -> Answer {
        self.steps += 1;
        match cond {
            Cond::Not(inner) => self.cond(world, inner, at).not(),
            Cond::And(list) | Cond::Or(list) => {
                let all = matches!(cond, Cond::And(_));
                let mut answers = Vec::new();
                for inner in list {
                    let answer = self.cond(world, inner, at);
                    let decided = matches!(&answer, Answer::Known(yes) if *yes != all);
                    answers.push(answer);
                    if decided {
                        break;
                    }
                }
                combine(answers, all)
            }
            Cond::NonEmpty(word) => {
                let value = self.value(world, word);
                self.unary(world, "-n", &value)
            }
            Cond::Unary(op, word) => {
                let value = self.value(world, word);
                self.unary(world, op, &value)
            }
            Cond::Binary(op, left, right) => {
                let left = self.value(world, left);
                match &**op {
                    "=" | "==" | "!=" if right.plain().is_some() && left.is_known() => {
                        let same = left.known().as_deref() == right.plain();
                        Answer::Known(same != (&**op == "!="))
                    }
                    "=" | "==" | "!=" => {
                        let pattern = self.pattern(world, right);
                        let shown = self.shown(world, right);
                        let answer = self.matches(world, &left, &pattern, &shown);
                        if &**op == "!=" { answer.not() } else { answer }
                    }
                    "=~" => self.regex_match(world, &left, right, at),
                    "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                        let right = self.value(world, right);
                        let (a, b) = (self.arith(world, &left, at), self.arith(world, &right, at));
                        self.compare(world, op, (&left, a), (&right, b))
                    }
                    _ => {
                        let right = self.value(world, right);
                        self.binary(world, op, &left, &right)
                    }
                }
            }
        }
    }

    fn shown(&mut self, world: &mut World, word: &WordNode) -> String {
        match word.literal() {
            Some(text) => text,
            None => self.value(world, word).display(),
        }
    }

    fn ask(&self, text: String, values: &[&Value], stable: bool) -> Question {
        let depends_on: BTreeSet<Arc<str>> = values.iter().flat_map(|v| v.depends_on()).collect();
        let stable = stable && values.iter().flat_map(|v| v.unknowns()).all(|u| u.stable);
        Question {
            negated: false,
            text,
            depends_on,
            stable,
            when_true: Vec::new(),
            when_false: Vec::new(),
        }
    }

    pub(super) fn unary(&mut self, world: &mut World, op: &str, value: &Value) -> Answer {
        // Put into words only where it is asked.
        let shown = || short(&value.display());
        match op {
            "-n" | "-z" => {
                let empty = self.emptiness(world, value);
                let answer = match empty {
                    Some(empty) => Answer::Known(empty),
                    None => {
                        let mut question = self.ask(format!("-z \"{}\"", shown()), &[value], true);
                        if let Some(unknown) = value.single_unknown().filter(|u| u.stable) {
                            question.when_true.push(Refine::Empty(unknown.clone()));
                            question.when_false.push(Refine::Filled(unknown.clone()));
                        }
                        Answer::Ask(question)
                    }
                };
                if op == "-n" { answer.not() } else { answer }
            }
            "-v" => {
                let name = value.known().unwrap_or_default();
                let set = match world.vars.get(name.split('[').next().unwrap_or("")) {
                    Some(var) => match &var.value {
                        VarValue::Unset => Some(false),
                        VarValue::Scalar(v) => {
                            let maybe = v
                                .single_unknown()
                                .is_some_and(|u| u.why == Why::Environment && u.shape == Shape::Any);
                            (!maybe).then_some(true)
                        }
                        _ => Some(true),
                    },
                    None => self
                        .lookup(world, &name, Span::NOWHERE)
                        .map_or(Some(false), |v| v.is_known().then_some(true)),
                };
                match set {
                    Some(set) => Answer::Known(set),
                    None => Answer::Ask(self.ask(format!("{name} is set"), &[value], false)),
                }
            }
            "-e" | "-f" | "-r" | "-a" if self.file_exists(world, value) => Answer::Known(true),
            "-s" if self.file_exists(world, value) => match self.file_content(world, value).map(|c| c.emptiness()) {
                Some(Some(empty)) => Answer::Known(!empty),
                _ => Answer::Ask(self.ask(format!("-s \"{}\"", shown()), &[value], false)),
            },
            "-e" | "-f" | "-d" | "-s" | "-r" | "-w" | "-x" | "-L" | "-h" if value.is_empty() => Answer::Known(false),
            "-d" if value.known().as_deref() == Some("/") => Answer::Known(true),
            _ => {
                let mut question = self.ask(format!("{op} \"{}\"", shown()), &[value], false);
                if question.depends_on.is_empty() {
                    question.depends_on.insert(format!("file {}", shown()).into());
                }
                Answer::Ask(question)
            }
        }
    }

    /// Whether a value matches a pattern, with what the world knows of it.
    fn matches(&mut self, world: &World, value: &Value, pattern: &Pattern, shown: &str) -> Answer {
        if let Some(answer) = pattern.matches_value(value) {
            return Answer::Known(answer);
        }
        if !pattern.has_unknown()
            && let Some(answer) = self.lanes.ask(value, |text| pattern.matches(text))
        {
            return Answer::Known(answer);
        }
        let literal = pattern.literal();
        if let (Some(unknown), Some(text)) = (value.single_unknown(), &literal)
            && let Some(fact) = world.facts.get(&unknown.id)
        {
            if let Some(equal) = fact.equal.as_ref().and_then(Value::known) {
                return Answer::Known(equal == text.as_str());
            }
            if fact.not.iter().any(|n| &**n == text) {
                return Answer::Known(false);
            }
        }
        let mut question = self.ask(
            format!("\"{}\" == {}", short(&value.display()), short(shown)),
            &[value],
            true,
        );
        for token in &pattern.tokens {
            if let crate::pattern::Token::Unknown(unknown) = token {
                question.depends_on.extend(unknown.depends_on.iter().cloned());
                question.stable &= unknown.stable;
            }
        }
        if let (Some(unknown), Some(text)) = (value.single_unknown().filter(|u| u.stable), literal) {
            if text.is_empty() {
                question.when_true.push(Refine::Empty(unknown.clone()));
                question.when_false.push(Refine::Filled(unknown.clone()));
            } else {
                question.when_true.push(Refine::Equal(
                    unknown.clone(),
                    Value::text(text.as_str(), Span::NOWHERE),
                ));
                question.when_false.push(Refine::NotEqual(unknown.clone(), text.into()));
            }
        }
        Answer::Ask(question)
    }

    pub(super) fn binary(&mut self, world: &World, op: &str, left: &Value, right: &Value) -> Answer {
        match op {
            "=" | "==" | "!=" => {
                let answer = if left.same(right) {
                    Answer::Known(true)
                } else {
                    let mut pattern = Pattern::default();
                    for piece in right.pieces() {
                        match &piece.kind {
                            PieceKind::Text(text) => pattern.push_literal(text),
                            PieceKind::Unknown(unknown) => pattern.push_unknown(unknown.clone()),
                        }
                    }
                    // Asked the other way round when only the right side is unknown.
                    if left.is_known() && right.single_unknown().is_some() {
                        let mut mirrored = Pattern::default();
                        mirrored.push_literal(&left.known().unwrap_or_default());
                        self.matches(world, right, &mirrored, &left.display())
                    } else {
                        self.matches(world, left, &pattern, &right.display())
                    }
                };
                if op == "!=" { answer.not() } else { answer }
            }
            "<" | ">" => match (left.known(), right.known()) {
                (Some(a), Some(b)) => Answer::Known(if op == "<" { a < b } else { a > b }),
                _ => Answer::Ask(self.ask(
                    format!("\"{}\" {op} \"{}\"", short(&left.display()), short(&right.display())),
                    &[left, right],
                    true,
                )),
            },
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let mut number = |v: &Value| match v.known() {
                    Some(text) => text.trim().parse::<i64>().ok().map(Num::Known),
                    None => match self.lane_numbers(v) {
                        Some(numbers) => numbers,
                        None => Some(Num::Unknown(v.depends_on())),
                    },
                };
                match (number(left), number(right)) {
                    (Some(a), Some(b)) => self.compare(world, op, (left, a), (right, b)),
                    // Not a number: the shell says so, and the test fails.
                    _ => Answer::Known(false),
                }
            }
            _ => Answer::Ask(self.ask(
                format!("\"{}\" {op} \"{}\"", short(&left.display()), short(&right.display())),
                &[left, right],
                false,
            )),
        }
    }

    fn compare(&mut self, world: &World, op: &str, left: (&Value, Num), right: (&Value, Num)) -> Answer {
        let holds = |a: i64, b: i64| match op {
            "-eq" => a == b,
            "-ne" => a != b,
            "-lt" => a < b,
            "-le" => a <= b,
            "-gt" => a > b,
            _ => a >= b,
        };
        match (&left.1, &right.1) {
            (Num::Known(a), Num::Known(b)) => return Answer::Known(holds(*a, *b)),
            (Num::Each(numbers), Num::Known(_) | Num::Each(_)) | (Num::Known(_), Num::Each(numbers)) => {
                let own = |lane| Some(holds(left.1.in_lane(lane)?, right.1.in_lane(lane)?));
                let answers: Vec<bool> = (0..numbers.len()).filter_map(own).collect();
                return Answer::Known(self.lanes.agree(&answers).unwrap_or_default());
            }
            _ => {}
        }
        // A short list of possible numbers that all give one answer.
        let numbers = |side: &(&Value, Num)| -> Option<Vec<i64>> {
            match &side.1 {
                Num::Known(n) => Some(vec![*n]),
                Num::Each(_) => None,
                Num::Unknown(_) => side.0.possible_texts()?.iter().map(|t| t.trim().parse().ok()).collect(),
            }
        };
        if let (Some(a), Some(b)) = (numbers(&left), numbers(&right)) {
            let mut answers = a.iter().flat_map(|x| b.iter().map(|y| holds(*x, *y)));
            if let Some(first) = answers.next()
                && answers.all(|h| h == first)
            {
                return Answer::Known(first);
            }
        }
        let text = format!("{} {op} {}", operand(left.0), operand(right.0));
        let mut question = self.ask(text, &[left.0, right.0], true);
        for side in [&left, &right] {
            if let Num::Unknown(names) = &side.1 {
                question.depends_on.extend(names.iter().cloned());
            }
        }
        let (unknown, bound, op): (&Arc<Unknown>, i64, &str) =
            match (left.0.single_unknown(), &right.1, right.0.single_unknown(), &left.1) {
                (Some(unknown), Num::Known(bound), _, _) => (unknown, *bound, op),
                (_, _, Some(unknown), Num::Known(bound)) => (unknown, *bound, mirrored(op)),
                _ => return Answer::Ask(question),
            };
        if !unknown.stable {
            return Answer::Ask(question);
        }
        let fact = world.facts.get(&unknown.id).cloned().unwrap_or_default();
        if let Some(answer) = within(&fact, op, bound) {
            return Answer::Known(answer);
        }
        let range = |low, high| Refine::Range(unknown.clone(), low, high);
        let (below, above) = (bound.saturating_sub(1), bound.saturating_add(1));
        let (yes, no) = match op {
            "-eq" => (Some(range(bound, bound)), None),
            "-ne" => (None, Some(range(bound, bound))),
            "-lt" => (Some(range(i64::MIN, below)), Some(range(bound, i64::MAX))),
            "-le" => (Some(range(i64::MIN, bound)), Some(range(above, i64::MAX))),
            "-gt" => (Some(range(above, i64::MAX)), Some(range(i64::MIN, bound))),
            _ => (Some(range(bound, i64::MAX)), Some(range(i64::MIN, below))),
        };
        question.when_true.extend(yes);
        question.when_false.extend(no);
        Answer::Ask(question)
    }

    fn regex_match(&mut self, world: &mut World, left: &Value, right: &WordNode, at: Span) -> Answer {
        let mut regex = String::new();
        let mut unknown = false;
        let mut from = left.depends_on();
        for part in &right.parts {
            let single = WordNode {
                at: part.at,
                parts: vec![part.clone()],
            };
            let value = self.value(world, &single);
            from.extend(value.depends_on());
            match value.known() {
                Some(text) if part.quoted => regex.push_str(&regex::escape(&text)),
                Some(text) => regex.push_str(&text),
                None => unknown = true,
            }
            if !part.quoted && matches!(part.kind, PartKind::Lit(_)) && regex.len() > 4096 {
                unknown = true;
            }
        }
        let compiled = if unknown { None } else { self.cache.regex(&regex) };
        let texts = left.possible_texts();
        if let (Some(compiled), Some(texts)) = (&compiled, &texts) {
            let mut answers = texts.iter().map(|t| compiled.is_match(t));
            if let Some(first) = answers.next()
                && answers.all(|a| a == first)
            {
                self.set_rematch(world, compiled, texts, first, at);
                return Answer::Known(first);
            }
        }
        if let Some(compiled) = compiled
            .as_ref()
            .filter(|regex| regex.captures_len() == 1 && left.is_laned())
        {
            let whole = |text: &str| compiled.find(text).map(|found| found.len() == text.len());
            match self.lanes.ask(left, |text| Some(compiled.is_match(text))) {
                Some(true) if self.lanes.ask(left, whole) == Some(true) => {
                    let word = Word {
                        value: super::laned::placed(left, at),
                        span: at,
                        ..Word::default()
                    };
                    self.set_matched(world, vec![(0, word)]);
                    return Answer::Known(true);
                }
                Some(false) => {
                    self.set_matched(world, Vec::new());
                    return Answer::Known(false);
                }
                _ => self.lanes.void(),
            }
        }
        // A number-shaped unknown matches the usual check for a number.
        if let Some(shape) = left.single_unknown().map(|u| u.shape)
            && shape == Shape::Number
            && matches!(regex.as_str(), "^[0-9]+$" | "^[1-9][0-9]*$" | "^-?[0-9]+$")
        {
            return Answer::Known(true);
        }
        let items = vec![(
            0,
            Word {
                value: self.unknown_value(Why::Transform, "${BASH_REMATCH[@]}", at, from.clone()),
                span: at,
                splits: true,
                globs: false,
            },
        )];
        let var = Var {
            value: VarValue::Indexed(items),
            exported: false,
            readonly: false,
            integer: false,
        };
        world.vars.insert("BASH_REMATCH".into(), Arc::new(var));
        let shown = if unknown {
            right.literal().unwrap_or_else(|| "a pattern".into())
        } else {
            regex
        };
        let mut question = self.ask(
            format!("\"{}\" =~ {}", short(&left.display()), short(&shown)),
            &[left],
            !unknown,
        );
        question.depends_on.extend(from);
        Answer::Ask(question)
    }

    fn set_rematch(&mut self, world: &mut World, regex: &regex::Regex, texts: &[String], matched: bool, at: Span) {
        let mut items = Vec::new();
        if matched
            && let [text] = texts
            && let Some(captures) = regex.captures(text)
        {
            for (index, group) in captures.iter().enumerate() {
                let value = Value::text(group.map_or("", |g| g.as_str()), at);
                items.push((
                    index as i64,
                    Word {
                        value,
                        span: at,
                        ..Word::default()
                    },
                ));
            }
        }
        self.set_matched(world, items);
    }

    fn set_matched(&self, world: &mut World, items: Vec<(i64, Word)>) {
        let var = Var {
            value: VarValue::Indexed(items),
            exported: false,
            readonly: false,
            integer: false,
        };
        world.vars.insert("BASH_REMATCH".into(), Arc::new(var));
    }

    /// `(( … ))`: true when not zero.
    pub(super) fn arith_status(&mut self, world: &mut World, word: &WordNode, at: Span) -> Status {
        match self.arith_word(world, word, at) {
            Num::Known(n) => Status::Known(i32::from(n == 0)),
            Num::Each(numbers) => self.zero_in_lanes(&numbers),
            Num::Unknown(from) => {
                let text = self.value(world, word).display();
                self.unknown_status(&format!("(({}))", short(text.trim())), at, from)
            }
        }
    }
}

/// An operand for people: quoted unless it is plain text.
fn operand(value: &Value) -> String {
    match value.known() {
        Some(text) if !text.is_empty() => short(&text),
        _ => format!("\"{}\"", short(&value.display())),
    }
}

/// The operator with its sides exchanged.
fn mirrored(op: &str) -> &str {
    match op {
        "-lt" => "-gt",
        "-le" => "-ge",
        "-gt" => "-lt",
        "-ge" => "-le",
        op => op,
    }
}

/// What a known range says about a comparison.
fn within(fact: &Fact, op: &str, bound: i64) -> Option<bool> {
    let (low, high) = (fact.low, fact.high);
    match op {
        "-eq" if low == bound && high == bound => Some(true),
        "-eq" if bound < low || bound > high => Some(false),
        "-ne" => within(fact, "-eq", bound).map(|a| !a),
        "-lt" if high < bound => Some(true),
        "-lt" if low >= bound => Some(false),
        "-le" if high <= bound => Some(true),
        "-le" if low > bound => Some(false),
        "-gt" => within(fact, "-le", bound).map(|a| !a),
        "-ge" => within(fact, "-lt", bound).map(|a| !a),
        _ => None,
    }
}
