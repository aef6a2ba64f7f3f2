//! What fuzzers and properties try with any text.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{
    Answer, Answers, Command, Environment, Evaluation, Limits, Rest, ScriptCache, Setup, Value, Word, evaluate,
    evaluate_points, in_lane, scan, unwrap_wrappers,
};

/// The values of a variable for points that are evaluated together.
const EACH: [&str; 4] = ["1", "8", "64", "a-b"];

/// The values of another, which are several words for some of them.
const LISTS: [&str; 4] = ["2 4", "8", "16 32 64", "8"];

/// Looks at nothing but the program `run`.
struct Runs;

impl Answers for Runs {
    fn answer(&self, _: &Command) -> Option<Answer> {
        None
    }

    fn knows(&self, _: &str) -> bool {
        false
    }

    fn reads(&self, argv: &[Word], _: &[(Arc<str>, Word)]) -> bool {
        argv.iter().any(|word| word.value.varies()) || argv.first().is_some_and(|name| runs(&name.value, 0))
    }

    fn may_read(&self, name: &str, _: bool) -> bool {
        name == "run"
    }
}

fn runs(name: &Value, lane: usize) -> bool {
    name.in_lane(lane).is_some_and(|name| name == "run")
}

/// Any bytes as a script, parsed, scanned and evaluated: for one point, and for several together, which must give what it
/// gives for each of them, also for a reader who looks at one program only. Must return for every input.
pub fn fuzz_entry(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let limits = Limits {
        steps: 20_000,
        steps_together: 100,
        total_bytes: 4 << 20,
        ..Limits::default()
    };
    let _ = scan("fuzz.sh", &text, &limits);
    let files: BTreeMap<String, Arc<str>> = [("fuzz.sh".to_string(), Arc::from(&*text))].into();
    let cache = ScriptCache::new(limits);
    let setup = |environment| Setup {
        script: "fuzz.sh".into(),
        roots: vec!["/w".into()],
        environment,
        limits,
        ..Setup::default()
    };
    let run = |environment| evaluate(&files, &cache, &setup(environment));
    for rest in [Rest::Unset, Rest::Unknown] {
        let evaluation = run(Environment {
            rest,
            ..Environment::default()
        });
        for command in &evaluation.commands {
            let _ = (
                command.display(),
                command.environment(),
                unwrap_wrappers(command).argv.len(),
            );
        }
    }
    let each = setup(Environment {
        each: [("N", EACH), ("L", LISTS)]
            .map(|(name, texts)| (name.to_owned(), texts.map(str::to_owned).to_vec()))
            .into(),
        ..Environment::default()
    });
    let alone: [Evaluation; EACH.len()] = std::array::from_fn(|lane| {
        run(Environment {
            variables: [("N", EACH[lane]), ("L", LISTS[lane])]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .into(),
            ..Environment::default()
        })
    });
    for answers in [None, Some(&Runs as &dyn Answers)] {
        let mut held = [false; EACH.len()];
        evaluate_points(&files, &cache, &each, answers, &mut |together| {
            for lane in &together.holds {
                assert!(!std::mem::replace(&mut held[*lane], true), "{} twice", EACH[*lane]);
                let alone = &alone[*lane];
                // A bound that one of them met first says nothing about the other, and what differs between points says that
                // it cannot be read.
                let bound = alone.truncated.is_some() || alone.commands.len() >= limits.commands;
                if !bound && !differs(together) {
                    let told = |evaluation, lane| told(evaluation, lane, answers.is_some());
                    let (together, alone) = (told(together, *lane), told(alone, 0));
                    assert!(
                        alike(&together, &alone),
                        "for {}: together {together:#?}, alone {alone:#?}",
                        EACH[*lane]
                    );
                }
            }
        });
    }
}

fn differs(evaluation: &Evaluation) -> bool {
    let of = |command: &Command| {
        let words = command
            .argv
            .iter()
            .chain(command.assignments.iter().map(|(_, word)| word));
        words.map(|word| &word.value).any(Value::differs) || command.environment().values().any(|value| value.differs())
    };
    evaluation.commands.iter().any(of)
}

/// A line that is told, and whether it ends with a status that is not known.
type Line = (String, bool);

/// What an evaluation says of one of its points. Commands that several ways start alike are said once: ways that are the
/// same for one point may differ for another.
fn told(evaluation: &Evaluation, lane: usize, runs_only: bool) -> Vec<Vec<Line>> {
    // How a status that is not known is called depends on where ways were put together.
    let own = |text: &str| {
        let text = in_lane(text, lane);
        let known = text.split("$? of:").next().unwrap_or_default();
        (known.to_owned(), known.len() < text.len())
    };
    let mut out: Vec<Vec<Line>> = Vec::new();
    let mut add = |lines: Vec<Line>| {
        if !out.contains(&lines) {
            out.push(lines);
        }
    };
    let read = |command: &&Command| !runs_only || command.argv.first().is_some_and(|name| runs(&name.value, lane));
    for command in evaluation.commands.iter().filter(read) {
        let environment = command.environment().into_iter();
        // What the point was given stands in every command.
        let environment = environment.filter(|(name, _)| !matches!(*name, "N" | "L"));
        let environment = environment.map(|(name, value)| own(&format!("{name}={}", value.display())));
        add([own(&command.display())].into_iter().chain(environment).collect());
    }
    for end in &evaluation.ends {
        let place = format!("ends at {} with ", evaluation.place(end.at));
        add(vec![match end.status {
            Some(status) => (format!("{place}{status}"), false),
            None => (place, true),
        }]);
    }
    out
}

/// Whether the same is told. Ways of one point that differ in nothing but their status are put together where it goes alone,
/// and stay apart with others for which they differ in more: then a status that is not known stands for those that are.
fn alike(a: &[Vec<Line>], b: &[Vec<Line>]) -> bool {
    let line = |(x, x_open): &Line, (y, y_open): &Line| {
        x == y || (*x_open && y.starts_with(x.as_str())) || (*y_open && x.starts_with(y.as_str()))
    };
    let covers = |x: &Vec<Line>, y: &Vec<Line>| x.len() == y.len() && x.iter().zip(y).all(|(x, y)| line(x, y));
    let open = a.iter().chain(b).flatten().any(|(_, open)| *open);
    if !open {
        return a == b;
    }
    a.iter().all(|x| b.iter().any(|y| covers(x, y))) && b.iter().all(|y| a.iter().any(|x| covers(x, y)))
}
