//! Shared by the tests: evaluate a small script and show what it would start.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_shell::{
    Answer, Answers, Command, CommandKind, Environment, Evaluation, Limits, ScriptCache, Setup, evaluate, evaluate_with,
};

pub type Tree = BTreeMap<String, Arc<str>>;

pub fn tree(files: &[(&str, &str)]) -> Tree {
    files
        .iter()
        .map(|(path, text)| (path.to_string(), Arc::from(*text)))
        .collect()
}

pub fn setup(script: &str) -> Setup {
    Setup {
        script: script.into(),
        roots: vec!["/workspace".into()],
        ..Setup::default()
    }
}

/// Evaluate one text; `env` gives variables, a name with `?` at its end is unknown.
pub fn eval(text: &str, env: &[&str]) -> Evaluation {
    eval_tree(&[("run.sh", text)], env)
}

/// Every program named `out` succeeds and prints nothing.
struct OutSucceeds;

impl Answers for OutSucceeds {
    fn answer(&self, command: &Command) -> Option<Answer> {
        (command.name().as_deref() == Some("out")).then(|| Answer {
            output: Some(String::new()),
            status: Some(0),
        })
    }
}

/// The same with `out` known to succeed.
pub fn eval_answered(text: &str, env: &[&str]) -> Evaluation {
    let files = tree(&[("run.sh", text)]);
    evaluate_with(
        &files,
        &ScriptCache::new(Limits::default()),
        &with_env("run.sh", env),
        Some(&OutSucceeds),
    )
}

pub fn eval_tree(files: &[(&str, &str)], env: &[&str]) -> Evaluation {
    evaluate(
        &tree(files),
        &ScriptCache::new(Limits::default()),
        &with_env(files[0].0, env),
    )
}

pub fn with_env(script: &str, env: &[&str]) -> Setup {
    let mut environment = Environment::default();
    for entry in env {
        match entry.split_once('=') {
            Some((name, value)) => {
                environment.variables.insert(name.into(), value.into());
            }
            None => {
                environment.unknown.insert(entry.trim_end_matches('?').into());
            }
        }
    }
    Setup {
        environment,
        ..setup(script)
    }
}

/// The words of every program named `out`, in order, each in brackets.
pub fn outs(evaluation: &Evaluation) -> Vec<String> {
    let outs = evaluation.commands.iter().filter(|c| c.kind == CommandKind::External);
    outs.filter(|c| c.name().as_deref() == Some("out"))
        .map(|c| c.argv[1..].iter().map(|w| format!("[{}]", w.value.display())).collect())
        .collect()
}

/// The same with the decisions in front.
pub fn branches(evaluation: &Evaluation) -> Vec<String> {
    let outs = evaluation
        .commands
        .iter()
        .filter(|c| c.name().as_deref() == Some("out"));
    outs.map(|c| {
        let path: Vec<String> = c
            .path
            .iter()
            .map(|l| format!("{}{}", if l.holds { "" } else { "not " }, l.text))
            .collect();
        let words: String = c.argv[1..].iter().map(|w| format!("[{}]", w.value.display())).collect();
        format!("{} => {words}", path.join(", "))
    })
    .collect()
}
