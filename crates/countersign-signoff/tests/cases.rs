//! The recorded facts about real sign-offs: the commands and links in them are read, and a form of the right day with
//! the recorded boxes open is read back with exactly these open.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use std::collections::BTreeSet;

use countersign_signoff::{CommandKind, LinkSource, Template, commands, links};
use serde_json::Value;

fn cases() -> Option<Vec<(String, Value)>> {
    let folder = common::shared("cases/inferencex")?;
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    let read = |p: &std::path::PathBuf| {
        let name = p.file_name().unwrap().to_string_lossy().into_owned();
        (
            name,
            serde_json::from_str(&std::fs::read_to_string(p).unwrap()).unwrap(),
        )
    };
    Some(files.iter().map(read).collect())
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

#[test]
fn recorded_commands_are_read() {
    let Some(cases) = cases() else { return };
    let mut seen = 0;
    for (name, case) in &cases {
        for command in list(case, "reuse_commands") {
            let text = command.get("text").and_then(Value::as_str).unwrap();
            // One record describes a command in words.
            let Some(argument) = text.strip_prefix("/reuse-sweep-run") else {
                continue;
            };
            let run = argument.trim().parse().ok();
            let found = commands(text, &common::command_rules());
            let expected = CommandKind::Reuse {
                name: "/reuse-sweep-run".into(),
                run,
            };
            assert_eq!(
                found.commands.iter().map(|c| &c.kind).collect::<Vec<_>>(),
                [&expected],
                "{name}"
            );
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

/// Every sign-off record of a case, with the day of its verdict.
fn signoffs(case: &Value) -> Vec<(&str, &Value)> {
    let day = |v: &'_ Value| v.get("date").and_then(Value::as_str).is_some();
    let verdicts = list(case, "verdicts").iter().filter(|v| day(v));
    verdicts
        .filter_map(|v| Some((v.get("date")?.as_str()?, v.get("signoff")?)))
        .collect()
}

#[test]
fn recorded_links_are_runs_of_the_repository() {
    let Some(cases) = cases() else { return };
    let mut seen = BTreeSet::new();
    for (name, case) in &cases {
        for (_, signoff) in signoffs(case) {
            for link in list(signoff, "links").iter().filter_map(Value::as_str) {
                let read = links::read(link, 1, None, LinkSource::Bare, &common::rules().links).unwrap();
                if let Some(run) = read.run() {
                    // Some write the owner in another case.
                    assert!(run.is_in("SemiAnalysisAI/InferenceX"), "{name} {link}");
                    assert_eq!(run.job.is_some(), link.contains("/job/"), "{name} {link}");
                    seen.insert(run.run_id);
                }
            }
        }
    }
    assert!(seen.len() >= 10, "{seen:?}");
}

/// How the records name items, and what the rules call them.
const NAMES: [(&str, &str); 8] = [
    ("speculative decoding chat templates", "chat"),
    ("agentic synthetic acceptance", "golden"),
    ("evals", "evals"),
    ("validation", "validation"),
    ("general code quality", "quality"),
    ("MODELS.md deprecated", "models"),
    ("does not patch the inference engine", "patch"),
    ("latest version", "latest"),
];

#[test]
fn recorded_open_boxes_are_read_back() {
    let Some(folder) = common::shared("inferencex/history/PR_REVIEW_CHECKLIST") else {
        return;
    };
    let Some(cases) = cases() else { return };
    let rules = common::rules();
    let mut versions: Vec<(String, Template)> = Vec::new();
    let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    for path in names {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        versions.push((
            name,
            Template::parse(&std::fs::read_to_string(path).unwrap(), &rules).unwrap(),
        ));
    }
    let mut seen = 0;
    for (name, case) in &cases {
        for (day, signoff) in signoffs(case) {
            let open: Vec<&str> = list(signoff, "unchecked_items")
                .iter()
                .filter_map(Value::as_str)
                .collect();
            let ids: BTreeSet<&str> = open
                .iter()
                .map(|o| {
                    NAMES
                        .iter()
                        .find(|(n, _)| n == o)
                        .unwrap_or_else(|| panic!("{name}: {o}"))
                        .1
                })
                .collect();
            if ids.is_empty() {
                continue;
            }
            // A version of the same day may be a later one; all of them have these items.
            let (_, template) = versions
                .iter()
                .rfind(|(v, _)| v.get(..10).is_some_and(|d| d < day))
                .unwrap();
            let lines: Vec<&str> = template
                .items
                .iter()
                .filter(|i| i.id.as_deref().is_some_and(|i| ids.contains(i)))
                .map(|i| i.markdown.as_str())
                .collect();
            assert_eq!(lines.len(), ids.len(), "{name}");
            let body: String = template
                .text
                .lines()
                .map(|l| {
                    if lines.contains(&l) {
                        format!("{l}\n")
                    } else {
                        format!("{}\n", l.replace("- [ ]", "- [x]"))
                    }
                })
                .collect();
            let found = template.compare(&common::signoff(&body), &rules);
            let unticked: BTreeSet<&str> = found
                .unticked
                .iter()
                .filter_map(|u| template.items[u.template].id.as_deref())
                .collect();
            assert_eq!((unticked, found.missing.len()), (ids, 0), "{name}");
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen}");
}
