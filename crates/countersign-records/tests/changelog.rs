//! The changelog rules on small made-up files: every case in which the CI gate passes and the merge-time rules do not,
//! every case in which both refuse, and the block that is offered instead.
#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use std::collections::BTreeSet;

use countersign_records::changelog::{
    Checked, Gate, GateModes, History, Kind, Links, added_lines, check, gate, resolve_keys,
};
use proptest::prelude::*;
use support::LINK;

const PULL: u64 = 7;

fn item(key: &str, text: &str, link: &str) -> String {
    format!("- config-keys:\n    - {key}\n  description:\n    - \"{text}\"\n  pr-link: {link}\n")
}

fn base() -> String {
    format!(
        "{}\n{}",
        item("a-x", "First", &format!("{LINK}1")),
        item("b-x", "Second", &format!("{LINK}2"))
    )
}

fn added() -> String {
    item("a-y", "Third", &format!("{LINK}7"))
}

fn known() -> BTreeSet<String> {
    ["a-x", "a-y", "b-x"].map(str::to_owned).into()
}

fn strict(head: &[u8]) -> Checked {
    check(
        base().as_bytes(),
        head,
        Links::PullRequest(PULL),
        &support::changelog_rules(),
    )
}

fn ci(head: &[u8]) -> Gate {
    gate(
        base().as_bytes(),
        head,
        &known(),
        GateModes::default(),
        &support::changelog_rules(),
    )
}

fn kinds(checked: &Checked) -> Vec<Kind> {
    let mut out: Vec<Kind> = checked.violations.iter().map(|v| v.kind).collect();
    out.dedup();
    out
}

/// The block that a person would append.
fn wanted() -> String {
    format!("\n{}", added())
}

/// A change that only the merge-time rules refuse: kind, line, and the suggestion that mends it.
fn only_strict(head: impl AsRef<[u8]>, kind: Kind, line: usize, suggestion: Option<&str>) {
    let head = head.as_ref();
    let gate = ci(head);
    assert_eq!(gate.violations, vec![], "the gate passes");
    let checked = strict(head);
    let first = checked.violations.first().unwrap();
    assert_eq!((first.kind, first.line), (kind, line), "{:#?}", checked.violations);
    assert!(!first.fix.is_empty());
    assert_eq!(
        checked.suggestion.as_ref().map(|s| s.append.as_str()),
        suggestion,
        "{:#?}",
        checked.suggestion
    );
}

#[test]
fn a_proper_append_passes_both() {
    for link in [format!("{LINK}7"), format!("{LINK}XXX"), "XXX".into()] {
        let head = format!("{}\n{}", base(), item("a-y", "Third", &link));
        let checked = strict(head.as_bytes());
        assert!(checked.passes(), "{:?}", checked.violations);
        assert_eq!(checked.additions.len(), 1);
        assert_eq!((checked.additions[0].line, checked.additions[0].link_line), (13, 17));
        let gate = ci(head.as_bytes());
        assert_eq!(gate.violations, vec![]);
        assert_eq!(gate.selected, vec![vec!["a-y".to_owned()]]);
        assert_eq!(gate.items[0].line, 13, "lines are those of the head");
    }
}

#[test]
fn tbd_as_link() {
    let head = format!("{}\n{}", base(), item("a-y", "Third", "TBD"));
    only_strict(head, Kind::Link, 17, Some(&wanted()));
}

#[test]
fn wrong_number() {
    let head = format!("{}\n{}", base(), item("a-y", "Third", &format!("{LINK}8")));
    only_strict(&head, Kind::Link, 17, Some(&wanted()));
    let main = check(
        base().as_bytes(),
        head.as_bytes(),
        Links::DefaultBranch,
        &support::changelog_rules(),
    );
    assert!(main.passes(), "on the default branch any canonical link will do");
}

#[test]
fn no_separating_blank_line() {
    only_strict(format!("{}{}", base(), added()), Kind::Separator, 12, Some(&wanted()));
}

#[test]
fn two_blank_lines() {
    only_strict(
        format!("{}\n\n{}", base(), added()),
        Kind::Separator,
        12,
        Some(&wanted()),
    );
}

#[test]
fn two_blank_lines_between_new_items() {
    let more = item("b-x", "Fourth", &format!("{LINK}7"));
    let good = format!("\n{}\n{more}", added());
    only_strict(
        format!("{}\n{}\n\n{more}", base(), added()),
        Kind::BetweenItems,
        20,
        Some(&good),
    );
    only_strict(
        format!("{}\n{}{more}", base(), added()),
        Kind::BetweenItems,
        18,
        Some(&good),
    );
    assert!(strict(format!("{}{good}", base()).as_bytes()).passes());
}

#[test]
fn extra_final_newline() {
    only_strict(
        format!("{}\n{}\n", base(), added()),
        Kind::TrailingBlank,
        18,
        Some(&wanted()),
    );
}

#[test]
fn carriage_returns_in_the_added_text() {
    let head = format!("{}\n{}", base(), added().replace('\n', "\r\n"));
    only_strict(head, Kind::CarriageReturn, 13, Some(&wanted()));
}

#[test]
fn tab_in_the_added_text() {
    let head = format!("{}\n{}", base(), added().replace("Third", "Thi\trd"));
    only_strict(head, Kind::Tab, 16, Some(&wanted().replace("Third", "Thi  rd")));
}

#[test]
fn duplicate_key_inside_an_added_item() {
    let twice = added().replace("  description", "  description:\n    - \"Other\"\n  description");
    // The gate takes the last one, and so does the suggestion, written anew.
    only_strict(format!("{}\n{twice}", base()), Kind::DuplicateKey, 17, Some(&wanted()));
}

#[test]
fn insertion_in_the_middle() {
    let first = item("a-x", "First", &format!("{LINK}1"));
    let rest = base()[first.len()..].to_owned();
    only_strict(
        format!("{first}\n{}{rest}", added()),
        Kind::ItemChanged,
        7,
        Some(&wanted()),
    );
}

#[test]
fn a_blank_separator_of_history_is_removed() {
    let history = base().replacen("\n\n", "\n", 1);
    only_strict(
        format!("{history}\n{}", added()),
        Kind::HistoryChanged,
        6,
        Some(&wanted()),
    );
}

#[test]
fn a_whitespace_only_line_is_stripped() {
    let old = base().replacen("\n\n", "\n  \n", 1);
    let head = format!("{}\n{}", base(), added());
    let rules = support::changelog_rules();
    let checked = check(old.as_bytes(), head.as_bytes(), Links::PullRequest(PULL), &rules);
    assert_eq!(kinds(&checked), [Kind::HistoryChanged]);
    assert_eq!(checked.violations[0].line, 6);
    assert!(checked.suggestion.unwrap().restore_history);
    let ci = gate(old.as_bytes(), head.as_bytes(), &known(), GateModes::default(), &rules);
    assert_eq!(ci.violations, vec![], "deleted blanks are allowed there");
}

#[test]
fn config_keys_not_first() {
    let odd = format!("- description:\n    - \"Third\"\n  config-keys:\n    - a-y\n  pr-link: {LINK}7\n");
    only_strict(format!("{}\n{odd}", base()), Kind::FirstKey, 13, Some(&wanted()));
}

#[test]
fn what_both_refuse() {
    let good = format!("{}\n{}", base(), added());
    let cases: [(String, Kind, Kind); 8] = [
        (good.trim_end().into(), Kind::NoFinalNewline, Kind::NoFinalNewline),
        (
            good.replace(
                "  pr-link: https://github.com/made/up/pull/7",
                "  bogus: 1\n  pr-link: XXX",
            ),
            Kind::Schema,
            Kind::Schema,
        ),
        (
            good[item("a-x", "First", &format!("{LINK}1")).len() + 1..].into(),
            Kind::ItemChanged,
            Kind::DeletedLine,
        ),
        (good.replace("\n    - \"Third\"", " []"), Kind::Schema, Kind::Schema),
        (
            format!("{}# only a remark\n", base()),
            Kind::HistoryChanged,
            Kind::NothingAdded,
        ),
        (
            good.replace("- config-keys:\n    - a-y", "  - config-keys:\n    - a-y"),
            Kind::Yaml,
            Kind::Yaml,
        ),
        (
            good.replace("    - a-y", "    - \"no\"\n   - odd"),
            Kind::Yaml,
            Kind::Yaml,
        ),
        (
            good.replace("  pr-link: https://github.com/made/up/pull/7\n", ""),
            Kind::Schema,
            Kind::Schema,
        ),
    ];
    for (head, merge, gate) in cases {
        let checked = strict(head.as_bytes());
        assert_eq!(
            checked.violations.first().map(|v| v.kind),
            Some(merge),
            "{head}\n{:#?}",
            checked.violations
        );
        let ci = ci(head.as_bytes());
        assert_eq!(
            ci.violations.first().map(|v| v.kind),
            Some(gate),
            "{head}\n{:#?}",
            ci.violations
        );
    }
}

#[test]
fn unknown_keys_are_the_gates_business() {
    let head = format!("{}\n{}", base(), added().replace("a-y", "nope-*"));
    assert!(strict(head.as_bytes()).passes());
    let ci = ci(head.as_bytes());
    assert_eq!((ci.violations[0].kind, ci.violations[0].line), (Kind::UnknownKey, 13));
}

#[test]
fn append_only_stands_alone() {
    let only = added().replace("  pr-link", "  append-only: true\n  pr-link");
    let alone = format!("{}\n{only}", base());
    assert_eq!(ci(alone.as_bytes()).violations, vec![]);
    let mixed = format!("{alone}\n{}", item("b-x", "Fourth", &format!("{LINK}7")));
    assert_eq!(ci(mixed.as_bytes()).violations[0].kind, Kind::AppendOnly);
    assert!(
        strict(mixed.as_bytes()).passes(),
        "the merge-time rules do not look at that"
    );
    let modes = GateModes {
        all_evals: true,
        evals_only: false,
    };
    let modified = gate(
        base().as_bytes(),
        alone.as_bytes(),
        &known(),
        modes,
        &support::changelog_rules(),
    );
    assert_eq!(modified.violations[0].kind, Kind::AppendOnly);
    let evals = alone.replace("append-only: true", "append-only: true\n  evals-only: yes");
    assert_eq!(ci(evals.as_bytes()).violations[0].kind, Kind::Schema);
}

#[test]
fn a_base_that_ends_with_a_blank_line_takes_no_further_one() {
    let rules = support::changelog_rules();
    let old = format!("{}\n", base());
    let judge = |head: String| check(old.as_bytes(), head.as_bytes(), Links::PullRequest(PULL), &rules);
    assert!(judge(format!("{old}{}", added())).passes());
    let more = judge(format!("{old}\n{}", added()));
    assert_eq!(kinds(&more), [Kind::Separator]);
    assert_eq!(more.suggestion.unwrap().append, added());
}

#[test]
fn links_of_old_items_may_be_corrected_alone() {
    let rules = support::changelog_rules();
    let old = base().replace("pull/1", "pull/1/changes");
    let judge = |head: &str| check(old.as_bytes(), head.as_bytes(), Links::PullRequest(PULL), &rules);
    let fine = judge(&base());
    assert!(fine.passes(), "{:?}", fine.violations);
    assert_eq!((fine.corrections, fine.additions.len()), (1, 0));
    assert_eq!(kinds(&judge(&base().replace("pull/1", "pull/1#x"))), [Kind::Correction]);
    assert_eq!(
        kinds(&judge(&format!("{}\n{}", base(), added()))),
        [Kind::MixedCorrection]
    );
    assert_eq!(
        kinds(&judge(&base().replacen("\n\n", "\n\n\n", 1))),
        [Kind::HistoryChanged]
    );
    assert_eq!(
        kinds(&judge(&base().replace(
            "  pr-link: https://github.com/made/up/pull/1",
            "  pr-link:  \"https://github.com/made/up/pull/1\""
        ))),
        []
    );
    assert!(
        ci(base().as_bytes())
            .violations
            .iter()
            .any(|v| v.kind == Kind::NothingAdded),
        "nothing to sweep"
    );
}

#[test]
fn history_that_moved_on_shows_as_deleted_and_the_suggestion_restores_it() {
    // The branch was made before the second item came to the target branch.
    let head = format!("{}\n{}", item("a-x", "First", &format!("{LINK}1")), added());
    let checked = strict(head.as_bytes());
    assert_eq!(kinds(&checked), [Kind::ItemChanged]);
    let suggestion = checked.suggestion.unwrap();
    assert_eq!(
        (suggestion.append, suggestion.items, suggestion.restore_history),
        (wanted(), 1, true)
    );
    let ci = ci(head.as_bytes());
    assert!(
        ci.violations.iter().all(|v| v.kind == Kind::DeletedLine),
        "{:?}",
        ci.violations
    );
}

#[test]
fn bytes_that_are_no_text() {
    for (bad, kind) in [(&b"\xff"[..], Kind::NotUtf8), (b"\0", Kind::Nul)] {
        let head = [base().as_bytes(), b"\n", added().replace("Third", "Th").as_bytes(), bad].concat();
        assert!(kinds(&strict(&head)).contains(&kind));
        assert!(!ci(&head).violations.is_empty());
    }
}

#[test]
fn the_gate_reads_the_diff_as_text() {
    // A lone carriage return cuts a line, and what follows is not added; a line that begins with ++ is a file header.
    let change = added_lines(b"a\n", b"a\nb\rc\n++d\ne\n");
    assert_eq!(
        (change.added.as_str(), change.added_at.as_slice()),
        ("b\ne", &[2, 4][..])
    );
    // A file with a NUL byte has no lines.
    assert_eq!(added_lines(b"a\n", b"a\n\0b\n").added, "");
    // A deleted line that begins with two dashes is not seen as deleted.
    assert!(added_lines(b"a\n--b\n", b"a\n").deleted.is_empty());
    assert_eq!(added_lines(b"a\n-b\n", b"a\n").deleted, vec![(2, "-b".to_owned())]);
}

#[test]
fn a_history_that_an_append_could_change_is_read_again() {
    let rules = support::changelog_rules();
    // The last value keeps its blank lines, so the separator changes it.
    let keeps = base().replace(
        "  pr-link: https://github.com/made/up/pull/2\n",
        "  pr-link: |+\n    x\n",
    );
    let checked = check(
        keeps.as_bytes(),
        format!("{keeps}\n{}", added()).as_bytes(),
        Links::PullRequest(PULL),
        &rules,
    );
    assert_eq!(
        kinds(&checked),
        [Kind::MixedCorrection, Kind::Correction],
        "{:?}",
        checked.violations
    );
    // After the end of a document another one begins.
    let ended = format!("{}...\n", base());
    let checked = check(
        ended.as_bytes(),
        format!("{ended}\n{}", added()).as_bytes(),
        Links::PullRequest(PULL),
        &rules,
    );
    assert_eq!(kinds(&checked), [Kind::Yaml], "{:?}", checked.violations);
}

#[test]
fn patterns_select_in_order_without_repetition() {
    let written = ["a-*", "a-x", "*-x", "no*pe", "?-x"].map(str::to_owned);
    let (keys, missing) = resolve_keys(&written, &known());
    assert_eq!(keys, ["a-x", "a-y", "b-x"]);
    assert_eq!(missing, ["no*pe", "?-x"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_it_panic(head in proptest::collection::vec(any::<u8>(), 0..200), old in proptest::collection::vec(any::<u8>(), 0..80)) {
        let rules = support::changelog_rules();
        for head in [head.clone(), [base().as_bytes(), &head].concat()] {
            let _ = check(base().as_bytes(), &head, Links::PullRequest(PULL), &rules);
            let _ = check(&old, &head, Links::DefaultBranch, &rules);
            let _ = gate(&old, &head, &known(), GateModes::default(), &rules);
        }
    }

    /// Whatever is offered, the rules accept, and nothing is offered where they hold.
    #[test]
    fn a_suggestion_is_accepted(tail in proptest::collection::vec(prop_oneof![
        Just("\n".to_owned()), Just(added()), Just(added().replace('7', "8")), Just("\t".to_owned()), Just("\r\n".to_owned()),
        Just("  evals-only: yes\n".to_owned()), Just("# remark\n".to_owned()), Just(item("*-x", "\u{fc} \\\" x: #", "TBD")),
    ], 0..7)) {
        let head = format!("{}{}", base(), tail.concat());
        let checked = strict(head.as_bytes());
        if let Some(suggestion) = checked.suggestion {
            prop_assert!(!checked.violations.is_empty());
            let result = format!("{}{}", base(), suggestion.append);
            let again = strict(result.as_bytes());
            prop_assert!(again.passes(), "{:?}", again.violations);
            prop_assert_eq!(again.additions.len(), suggestion.items);
            let own = support::changelog_rules().link(PULL);
            prop_assert!(again.additions.iter().all(|i| i.pr_link == own));
        }
    }

    /// What the merge-time rules accept as an addition, the gate accepts too, if the keys are known.
    #[test]
    fn strict_is_stricter(tail in proptest::collection::vec(prop_oneof![
        Just("\n".to_owned()), Just(added()), Just("# remark\n".to_owned()), Just("  evals-only: yes\n".to_owned()), Just(item("b-*", "x", "XXX")),
    ], 0..6)) {
        let head = format!("{}{}", base(), tail.concat());
        let checked = strict(head.as_bytes());
        if checked.passes() && !checked.additions.is_empty() {
            prop_assert_eq!(ci(head.as_bytes()).violations, vec![]);
        }
    }

    /// Adding back what the diff calls added gives the head, where nothing is deleted.
    #[test]
    fn added_lines_are_the_head_without_the_base(lines in proptest::collection::vec("[ab ]{0,2}", 1..12), at in any::<prop::sample::Index>(), more in proptest::collection::vec("[ab ]{0,2}", 1..6)) {
        let old: String = lines.iter().map(|l| format!("{l}\n")).collect();
        let mut new = lines.clone();
        let at = at.index(lines.len() + 1);
        new.splice(at..at, more.iter().cloned());
        let head: String = new.iter().map(|l| format!("{l}\n")).collect();
        let change = added_lines(old.as_bytes(), head.as_bytes());
        prop_assert!(change.deleted.is_empty());
        prop_assert_eq!(change.added_at.len(), more.len());
        let rest: Vec<&String> = new.iter().enumerate().filter(|(i, _)| !change.added_at.contains(&(i + 1))).map(|(_, l)| l).collect();
        prop_assert_eq!(rest, lines.iter().collect::<Vec<_>>());
    }
}

#[test]
fn a_younger_tip_is_read_from_an_older_one_as_by_itself() {
    let rules = support::changelog_rules();
    let item = |name: &str| {
        format!(
            "- config-keys:\n    - {name}\n  description:\n    - \"x\"\n  pr-link: {}\n",
            rules.link(1)
        )
    };
    let one = item("one");
    let two = format!("{one}\n{}", item("two"));
    let kept = format!(
        "{one}\n- config-keys:\n    - two\n  description:\n    - |+\n      text\n\n  pr-link: {}\n",
        rules.link(1)
    );
    let others = [
        two.clone(),
        format!("{two}\n{}", item("three")),
        format!("{two}{}", item("three")),
        format!("{}\n{}", item("other"), item("two")),
        two.replace("description", "descriptions"),
        two.replace('\n', "\r\n"),
        kept,
        format!("{two}\n---\n"),
        one.clone(),
        String::new(),
    ];
    let links = Links::PullRequest(1);
    for older in &others {
        let near = History::read(older.as_bytes(), &rules);
        for younger in &others {
            let (beside, alone) = (
                near.read_younger(younger.as_bytes(), &rules),
                History::read(younger.as_bytes(), &rules),
            );
            for head in others.iter().chain([
                &format!("{younger}\n{}", item("new")),
                &format!("{younger}{}", item("new")),
            ]) {
                assert_eq!(
                    beside.check(head.as_bytes(), links, &rules),
                    alone.check(head.as_bytes(), links, &rules),
                    "{older:?} then {younger:?} then {head:?}"
                );
            }
        }
    }
}
