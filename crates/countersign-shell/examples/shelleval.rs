//! Evaluate one script of a directory: `shelleval <dir> <script> [-a] NAME=value… NAME? …` (`NAME?`: unknown).
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use std::sync::Arc;

use countersign_shell::{
    CommandKind, Environment, Evaluation, Files, Limits, PieceKind, ScriptCache, Setup, Value, evaluate,
};

struct Dir(String);

impl Files for Dir {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        std::fs::read_to_string(format!("{}/{path}", self.0))
            .ok()
            .map(Into::into)
    }
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut environment = Environment {
        unknown_prefixes: vec!["SLURM_".into(), "SLURMD_".into()],
        ..Environment::default()
    };
    let (mut all, mut json) = (false, false);
    for arg in &args[3..] {
        if arg == "-a" {
            all = true;
        } else if arg == "-j" {
            json = true;
        } else if let Some((name, value)) = arg.split_once('=') {
            environment.variables.insert(name.into(), value.into());
        } else {
            environment.unknown.insert(arg.trim_end_matches('?').into());
        }
    }
    let setup = Setup {
        script: args[2].clone(),
        roots: vec!["/workspace".into()],
        environment,
        limits: Limits::default(),
        ..Setup::default()
    };
    let cache = ScriptCache::new(Limits::default());
    let evaluation = evaluate(&Dir(args[1].clone()), &cache, &setup);
    if json {
        return print_json(&evaluation);
    }
    for command in &evaluation.commands {
        if !all && command.kind != CommandKind::External {
            continue;
        }
        let place = evaluation.place(command.span);
        let path: Vec<String> = command
            .path
            .iter()
            .map(|l| {
                format!(
                    "{}{}{}",
                    if l.holds { "" } else { "NOT " },
                    l.text,
                    if l.other_side_ends { " !" } else { "" }
                )
            })
            .collect();
        println!(
            "{place} {:?}{} {}",
            command.kind,
            if command.background { " &" } else { "" },
            command.display()
        );
        for redirect in &command.redirects {
            if let Some(text) = &redirect.text {
                println!("    <<< {}", text.display().replace('\n', "\n        "));
            }
        }
        if !path.is_empty() {
            println!("    when {}", path.join(" ; "));
        }
    }
    for (path, versions) in &evaluation.written {
        for version in versions {
            let text = version.content.display();
            println!(
                "wrote {path} at {}: {} bytes: {}",
                evaluation.place(version.at),
                text.len(),
                text.chars().take(300).collect::<String>().replace('\n', "\\n")
            );
        }
    }
    for end in &evaluation.ends {
        println!(
            "end {:?} at {} when {:?}",
            end.status,
            evaluation.place(end.at),
            end.path
                .iter()
                .map(|l| format!("{}{}", if l.holds { "" } else { "NOT " }, l.text))
                .collect::<Vec<_>>()
        );
    }
    for d in &evaluation.diagnostics {
        println!("note {:?} {} {}", d.note, evaluation.place(d.at), d.message);
    }
    println!(
        "worlds {} truncated {:?} assumed unset {:?}",
        evaluation.worlds, evaluation.truncated, evaluation.assumed_unset
    );
}

fn value(value: &Value) -> serde_json::Value {
    let piece = |p: &countersign_shell::Piece| match &p.kind {
        PieceKind::Text(text) => serde_json::json!(["t", &**text]),
        PieceKind::Unknown(unknown) => serde_json::json!(["u", &*unknown.name]),
    };
    serde_json::json!({"p": value.pieces().iter().map(piece).collect::<Vec<_>>(), "known": value.is_known()})
}

fn print_json(evaluation: &Evaluation) {
    let command = |c: &countersign_shell::Command| {
        let mut config = None;
        for (index, word) in c.argv.iter().enumerate() {
            if matches!(
                word.value.known().as_deref(),
                Some("--config" | "--extra_llm_api_options")
            ) {
                config = c
                    .argv
                    .get(index + 1)
                    .and_then(|w| c.file(&w.value))
                    .map(|f| value(&f.content));
            }
        }
        serde_json::json!({
            "kind": format!("{:?}", c.kind),
            "place": evaluation.place(c.span),
            "argv": c.argv.iter().map(|w| value(&w.value)).collect::<Vec<_>>(),
            "env": c.environment().iter().map(|(k, v)| (k.to_string(), value(v))).collect::<std::collections::BTreeMap<_, _>>(),
            "config": config,
            "path": c.path.iter().map(|l| format!("{}{}", if l.holds { "" } else { "NOT " }, l.text)).collect::<Vec<_>>(),
        })
    };
    let json = serde_json::json!({
        "commands": evaluation.commands.iter().map(command).collect::<Vec<_>>(),
        "ends": evaluation.ends.iter().map(|e| format!("{} {:?}", evaluation.place(e.at), e.status)).collect::<Vec<_>>(),
        "worlds": evaluation.worlds,
        "truncated": evaluation.truncated,
        "notes": evaluation.diagnostics.iter().map(|d| format!("{:?} {} {}", d.note, evaluation.place(d.at), d.message)).collect::<Vec<_>>(),
    });
    println!("{json}");
}
