//! Rules as data: strict, with defaults, and with their problems named.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use countersign_signoff::{CommandRules, LinkKindRule, Rules};

#[test]
fn rules_are_strict_data() {
    let rules: Rules = serde_json::from_str(r#"{"phrase": "I sign"}"#).unwrap();
    assert_eq!(rules, Rules::with_phrase("I sign"));
    let full = common::rules();
    let text = serde_json::to_string(&full).unwrap();
    assert_eq!(serde_json::from_str::<Rules>(&text).unwrap(), full);
    for wrong in [
        r#"{}"#,
        r#"{"phrase": "a", "frase": 1}"#,
        r#"{"phrase": "a", "items": [{"id": "a", "anchors": [], "x": 1}]}"#,
    ] {
        assert!(serde_json::from_str::<Rules>(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        serde_json::from_str::<CommandRules>("{}").unwrap(),
        CommandRules::default()
    );
}

#[test]
fn problems_are_named() {
    let problems = |change: &dyn Fn(&mut Rules)| {
        let mut rules = common::rules();
        change(&mut rules);
        rules.problems().into_iter().map(|p| p.at).collect::<Vec<_>>()
    };
    assert_eq!(problems(&|_| ()), [""; 0]);
    assert_eq!(problems(&|r| r.phrase = " ".into()), ["phrase"]);
    assert_eq!(
        problems(&|r| r.reminder_markers.push(String::new())),
        ["reminder_markers"]
    );
    assert_eq!(problems(&|r| r.items[1].id = "latest".into()), ["items[1].id"]);
    assert_eq!(problems(&|r| r.items[2].anchors.clear()), ["items[2].anchors"]);
    assert_eq!(problems(&|r| r.items[2].topics.push("--".into())), ["items[2].topics"]);
    let kind = |host: &str, path: &str| LinkKindRule {
        kind: "k".into(),
        host: host.into(),
        path: path.into(),
    };
    assert_eq!(
        problems(&|r| r.links.kinds = vec![kind("a.example", "/**/b")]),
        ["links.kinds[0].path"]
    );
    assert_eq!(
        problems(&|r| r.links.kinds = vec![kind("https://a.example", "/b")]),
        ["links.kinds[0].host"]
    );
    let mut commands = common::command_rules();
    commands.reuse[0].name = "use".into();
    commands.app = "/use".into();
    assert_eq!(commands.problems().len(), 2);
}

/// A policy that cannot work must still not break anything.
#[test]
fn bad_rules_do_not_panic() {
    let mut rules = Rules::with_phrase("");
    rules.detail_headings = vec![String::new()];
    rules.placeholders = vec![" - ".into()];
    let body = common::filled(&[], "- fine");
    countersign_signoff::exercise(
        body.as_bytes(),
        &rules,
        &CommandRules {
            reuse: vec![],
            app: String::new(),
        },
    );
}
