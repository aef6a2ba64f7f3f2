//! Commands: what counts, what nearly does, and what it is told.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use common::command_rules;
use countersign_signoff::{CommandKind, Commands, Miss, commands};

fn read(body: &str) -> Commands {
    commands(body, &command_rules())
}

fn reuse(name: &str, run: Option<u64>) -> CommandKind {
    CommandKind::Reuse { name: name.into(), run }
}

#[test]
fn what_counts() {
    let bare = reuse("/reuse-sweep-run", None);
    let pinned = reuse("/reuse-sweep-run", Some(77));
    let used = reuse("/use", Some(77));
    let s = |t: &str| t.to_owned();
    let cases: Vec<(&str, CommandKind)> = vec![
        ("/reuse-sweep-run", bare.clone()),
        ("  /reuse-sweep-run  ", bare.clone()),
        ("\t/reuse-sweep-run", bare.clone()),
        ("      /reuse-sweep-run", bare.clone()),
        ("/reuse-sweep-run\r\n", bare.clone()),
        ("Ready.\n/reuse-sweep-run\nThanks", bare.clone()),
        ("/reuse-sweep-run 77", pinned.clone()),
        ("/reuse-sweep-run\t77 \u{a0}", pinned.clone()),
        ("/reuse-sweep-run\n77", pinned.clone()),
        ("/reuse-sweep-run\r\n\r\n  77\r\nthanks", pinned.clone()),
        ("/reuse-sweep-run\n77 is the run", bare.clone()),
        ("/reuse-sweep-run\n> 77", bare.clone()),
        ("/reuse-sweep-run\n```\n77\n```", bare),
        ("/use 77", used.clone()),
        ("/use\n77", used.clone()),
        ("> quoted\n\n/use 0077", used.clone()),
        ("> quoted\n/use 77", used),
        ("/countersign verify", CommandKind::Verify),
        (" /countersign   help ", CommandKind::Help),
        (
            "/countersign explain engine-first",
            CommandKind::Explain {
                check: s("engine-first"),
            },
        ),
        ("/countersign explain 12", CommandKind::Explain { check: s("12") }),
        (
            "/countersign confirm append-only two rows, both  new",
            CommandKind::Confirm {
                check: s("append-only"),
                reason: s("two rows, both  new"),
            },
        ),
        (
            "/countersign override 3 agreed with @owner",
            CommandKind::Override {
                check: s("3"),
                reason: s("agreed with @owner"),
            },
        ),
        (
            "/countersign confirm image 已确认",
            CommandKind::Confirm {
                check: s("image"),
                reason: s("已确认"),
            },
        ),
    ];
    for (body, expected) in cases {
        let found = read(body);
        let kinds: Vec<CommandKind> = found.commands.into_iter().map(|c| c.kind).collect();
        assert_eq!(kinds, [expected], "{body:?}");
        assert_eq!(found.near_misses, [], "{body:?}");
    }
}

#[test]
fn the_last_one_wins() {
    let found = read("/use 1\n/reuse-sweep-run 2\n\n/use 3\n/use x\n/countersign verify");
    assert_eq!(
        found.reuse().map(|c| (c.line, c.kind.clone())),
        Some((4, reuse("/use", Some(3))))
    );
    assert_eq!(found.commands.len(), 4);
    let found = read("/use 1\n/reuse-sweep-run");
    assert_eq!(
        found.reuse().map(|c| c.kind.clone()),
        Some(reuse("/reuse-sweep-run", None))
    );
}

#[test]
fn what_nearly_counts() {
    let cases = [
        ("/use", Miss::RunMissing),
        ("/use\n\nthanks", Miss::RunMissing),
        ("/use abc", Miss::RunInvalid),
        ("/use 0", Miss::RunInvalid),
        ("/use -5", Miss::RunInvalid),
        ("/use ７７", Miss::RunInvalid),
        ("/use 99999999999999999999999", Miss::RunInvalid),
        ("/use #77", Miss::RunInvalid),
        ("/reuse-sweep-run abc", Miss::RunInvalid),
        (
            "/reuse-sweep-run https://github.com/a/b/actions/runs/77",
            Miss::RunInvalid,
        ),
        ("/reuse-sweep-run 77 please", Miss::TrailingWords),
        ("/use 77 78", Miss::TrailingWords),
        ("/use 77 <!-- x -->", Miss::TrailingWords),
        ("/Use 77", Miss::Case),
        ("/REUSE-SWEEP-RUN", Miss::Case),
        ("/Countersign verify", Miss::Case),
        ("> /use 77", Miss::Quote),
        ("> > /reuse-sweep-run", Miss::Quote),
        ("```\n/use 77\n```", Miss::Code),
        ("`/use 77`", Miss::Code),
        ("`/use` 77", Miss::Code),
        ("- `/reuse-sweep-run`", Miss::Code),
        ("`a\n/use 77` b", Miss::Code),
        ("- /use 77", Miss::NotAtLineStart),
        ("**/use 77**", Miss::NotAtLineStart),
        ("1. /use 77", Miss::NotAtLineStart),
        ("@helper /use 77", Miss::NotAtLineStart),
        ("/countersign", Miss::UnknownWord),
        ("/countersign merge", Miss::UnknownWord),
        ("/countersign Verify", Miss::UnknownWord),
        ("/countersign verify now", Miss::TrailingWords),
        ("/countersign explain", Miss::CheckMissing),
        ("/countersign explain Image", Miss::CheckMissing),
        ("/countersign explain a b", Miss::TrailingWords),
        ("/countersign confirm", Miss::CheckMissing),
        ("/countersign confirm image", Miss::ReasonMissing),
        ("/countersign override image ...", Miss::ReasonMissing),
    ];
    for (body, why) in cases {
        let found = read(body);
        assert_eq!(found.commands, [], "{body:?}");
        assert_eq!(
            found.near_misses.iter().map(|n| n.why).collect::<Vec<_>>(),
            [why],
            "{body:?}"
        );
        let remedy = &found.near_misses[0].remedy;
        assert!(
            remedy.ends_with('.') && remedy.starts_with(char::is_uppercase),
            "{remedy}"
        );
    }
}

#[test]
fn what_is_no_command_at_all() {
    let cases = [
        "",
        "LGTM",
        "Revoking the standing `/reuse-sweep-run` here.",
        "please /use 77",
        "/reuse-sweep-runs 77",
        "/reuse-sweep-run: 77",
        "/used 77",
        "/countersigned",
        "<!-- /use 77 -->",
        "<!--\n/use 77\n-->",
        "https://example.org/use 77",
        "/other",
        "- [x] done",
    ];
    for body in cases {
        assert!(read(body).is_empty(), "{body:?}: {:?}", read(body));
    }
    assert!(read(&format!("/use 77\n{}", "x".repeat(70_000))).is_empty());
    assert_eq!(read(&"/use 77\n".repeat(5_000)).commands.len(), 100);
}

#[test]
fn data_is_stable() {
    let json = serde_json::to_string(&read("/use 77\n/use").commands).unwrap();
    assert_eq!(json, r#"[{"line":1,"ask":"reuse","name":"/use","run":77}]"#);
}
