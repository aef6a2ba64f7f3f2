//! Every historical template, against itself and against every later one. The table of items was made by hand, from
//! the differences between the versions.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use countersign_signoff::{Rules, Template};

/// Each version and its items in order, by names of our own.
const VERSIONS: [(&str, &str); 21] = [
    (
        "2026-06-22-9e19367c",
        "quality validation evals engine recipe conditional",
    ),
    (
        "2026-06-22-2008fc1d",
        "quality validation evals engine recipe conditional",
    ),
    (
        "2026-06-22-fe97916f",
        "quality validation evals engine recipe conditional",
    ),
    (
        "2026-06-22-8901efda",
        "quality validation evals engine recipe conditional",
    ),
    (
        "2026-06-23-f0a3ea74",
        "quality validation evals chat engine recipe conditional",
    ),
    (
        "2026-06-23-ce4854ad",
        "quality validation evals chat engine recipe conditional",
    ),
    (
        "2026-06-24-e788604c",
        "latest quality validation evals chat engine recipe conditional",
    ),
    (
        "2026-07-04-49e2c335",
        "latest quality validation evals chat images engine recipe conditional",
    ),
    (
        "2026-07-04-cfb2bbb6",
        "latest quality validation evals chat architecture images engine recipe conditional",
    ),
    (
        "2026-07-04-13100ed7",
        "latest quality validation evals chat architecture images engine recipe conditional",
    ),
    (
        "2026-07-04-43e25a40",
        "latest quality validation evals chat architecture images engine recipe conditional",
    ),
    (
        "2026-07-04-e5c83168",
        "latest quality validation evals chat architecture images engine recipe conditional",
    ),
    (
        "2026-07-04-6b40bda8",
        "latest quality validation evals chat architecture images engine recipe conditional",
    ),
    (
        "2026-07-10-e7d314aa",
        "latest quality validation evals chat architecture images engine recipe patch conditional",
    ),
    (
        "2026-07-10-7abe6612",
        "latest quality validation evals chat golden architecture images engine recipe patch conditional",
    ),
    (
        "2026-07-10-842897c4",
        "latest quality validation evals chat golden architecture images engine recipe patch conditional",
    ),
    (
        "2026-07-10-5c0a3229",
        "latest quality validation evals chat golden architecture images engine recipe recipe-opened patch conditional",
    ),
    (
        "2026-07-14-9aeaa75d",
        "latest quality validation evals chat golden architecture images engine recipe recipe-merged patch conditional",
    ),
    (
        "2026-08-03-b4be78a2",
        "latest quality validation evals chat golden models architecture images engine recipe recipe-merged patch \
         conditional",
    ),
    (
        "2026-08-10-f559835a",
        "latest quality validation evals chat golden models architecture images engine recipe recipe-merged patch \
         conditional",
    ),
    (
        "2026-08-14-35d731a9",
        "latest quality validation evals chat golden models architecture images engine recipe recipe-merged patch \
         append conditional",
    ),
];

struct Version {
    name: &'static str,
    ids: Vec<&'static str>,
    template: Template,
}

fn versions(rules: &Rules) -> Option<Vec<Version>> {
    let folder = common::shared("inferencex/history/PR_REVIEW_CHECKLIST")?;
    // The table covers every version that the index lists, in its order.
    let index = std::fs::read_to_string(folder.join("../INDEX.md")).unwrap();
    let listed: Vec<&str> = index
        .lines()
        .filter(|l| l.starts_with("| PR_REVIEW_CHECKLIST |"))
        .filter_map(|l| l.split('|').nth(2))
        .map(|n| n.trim().trim_end_matches(".md"))
        .collect();
    assert_eq!(listed, VERSIONS.map(|(n, _)| n));
    let read = |(name, ids): (&'static str, &'static str)| {
        let file = std::fs::read_to_string(folder.join(format!("{name}.md"))).unwrap();
        let template = Template::parse(&file, rules).unwrap();
        Version {
            name,
            ids: ids.split_whitespace().collect(),
            template,
        }
    };
    Some(VERSIONS.into_iter().map(read).collect())
}

fn ticked(template: &Template) -> String {
    template.text.replace("- [ ]", "- [x]")
}

#[test]
fn all_parse_with_the_items_of_the_table() {
    let Some(versions) = versions(&common::rules()) else {
        return;
    };
    for v in &versions {
        let ids: Vec<&str> = v
            .template
            .items
            .iter()
            .map(|i| i.id.as_deref().unwrap_or("?"))
            .collect();
        assert_eq!(ids, v.ids, "{}", v.name);
        assert!(v.template.phrase_line.is_some(), "{}", v.name);
        let conditional: Vec<bool> = v.template.items.iter().map(|i| i.conditional).collect();
        let expected: Vec<bool> = v.ids.iter().map(|i| *i == "conditional").collect();
        assert_eq!(conditional, expected, "{}", v.name);
        let nested: Vec<&str> = v
            .template
            .items
            .iter()
            .zip(&v.ids)
            .filter(|(i, _)| i.parent.is_some())
            .map(|(_, id)| *id)
            .collect();
        let expected: Vec<&str> = v.ids.iter().copied().filter(|i| i.starts_with("recipe-")).collect();
        assert_eq!(nested, expected, "{}", v.name);
    }
}

#[test]
fn each_matches_itself_completely() {
    let rules = common::rules();
    let Some(versions) = versions(&rules) else { return };
    for v in &versions {
        let signed = common::signoff(&ticked(&v.template));
        let found = v.template.compare(&signed, &rules);
        assert!(
            found.is_complete() && found.unticked.is_empty() && found.extra.is_empty(),
            "{}",
            v.name
        );
        let pairs: Vec<(usize, usize)> = found.matched.iter().map(|m| (m.template, m.signoff)).collect();
        assert_eq!(
            pairs,
            (0..v.ids.len()).map(|i| (i, i)).collect::<Vec<_>>(),
            "{}",
            v.name
        );
        // As it is copied: nothing ticked, nothing filled in, and no link of the template's counts.
        let copied = common::signoff(&v.template.text);
        assert!(copied.is_blank(), "{}", v.name);
        assert_eq!(
            v.template.compare(&copied, &rules).unticked.len(),
            v.ids.len(),
            "{}",
            v.name
        );
        assert_eq!(copied.links_beyond_template(&v.template), [], "{}", v.name);
        // The first version had no detail section.
        assert_eq!(copied.detail.is_some(), v.name != VERSIONS[0].0, "{}", v.name);
        assert!(
            copied.detail.iter().all(|d| d.is_empty() && d.placeholder_left),
            "{}",
            v.name
        );
        assert!(
            copied.signature.iter().all(|s| s.is_placeholder) && copied.signature.is_some(),
            "{}",
            v.name
        );
    }
}

fn check_pairs(rules: &Rules) {
    let Some(versions) = versions(rules) else { return };
    let mut pairs = 0;
    for (i, older) in versions.iter().enumerate() {
        let signed = common::signoff(&ticked(&older.template));
        for newer in &versions[i + 1..] {
            let found = newer.template.compare(&signed, rules);
            let missing: Vec<&str> = found.missing.iter().map(|m| newer.ids[m.template]).collect();
            let expected: Vec<&str> = newer.ids.iter().copied().filter(|n| !older.ids.contains(n)).collect();
            assert_eq!(missing, expected, "{} against {}", older.name, newer.name);
            for m in &found.matched {
                assert!(
                    m.ticked && older.ids[m.signoff] == newer.ids[m.template],
                    "{} against {}: {} answers {}",
                    older.name,
                    newer.name,
                    older.ids[m.signoff],
                    newer.ids[m.template]
                );
            }
            // What is named can be pasted: with it, nothing is missing.
            let mended = format!(
                "{}\n\n{}\n",
                ticked(&older.template),
                found.paste().replace("[ ]", "[X]")
            );
            let again = newer.template.compare(&common::signoff(&mended), rules);
            assert!(
                again.missing.is_empty() && again.unticked.is_empty(),
                "{} against {}",
                older.name,
                newer.name
            );
            pairs += 1;
        }
    }
    assert_eq!(pairs, 210);
}

#[test]
fn an_older_copy_lacks_exactly_the_newer_items() {
    check_pairs(&common::rules());
}

/// Without any rule for single items, words alone must do.
#[test]
fn words_alone_find_the_same() {
    let mut rules = common::rules();
    rules.items.clear();
    check_pairs(&rules);
}

#[test]
fn a_newer_copy_answers_an_older_template() {
    let rules = common::rules();
    let Some(versions) = versions(&rules) else { return };
    for (i, older) in versions.iter().enumerate() {
        for newer in &versions[i + 1..] {
            let found = older
                .template
                .compare(&common::signoff(&ticked(&newer.template)), &rules);
            // An item that was dropped for a stricter one may or may not be answered by it.
            let missing: Vec<&str> = found
                .missing
                .iter()
                .map(|m| older.ids[m.template])
                .filter(|i| *i != "recipe-opened")
                .collect();
            assert_eq!(missing, [""; 0], "{} against {}", newer.name, older.name);
        }
    }
}
