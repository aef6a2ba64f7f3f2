//! Real files: the shipped policies, the historical templates, and the real pull requests where a clone is at hand.

use std::path::Path;

use countersign_signoff::{AuthorInfo, Recognition, Template};

use crate::harness::shared;

fn policies() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/policies")
}

#[test]
fn every_shipped_policy_loads() {
    for name in [
        "inferencex-2026-07-29",
        "inferencex-2026-07-30",
        "inferencex-2026-08-11",
        "inferencex-2026-08-22",
        "inferencex",
    ] {
        let policy =
            countersign_server::policies::load_from(&policies(), name).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(policy.policy.name, name);
        let numbers: Vec<u32> = policy.policy.checks.iter().map(|entry| entry.number).collect();
        let (last, extra): (u32, usize) = match name {
            "inferencex-2026-07-29" => (8, 9),
            "inferencex-2026-07-30" => (10, 11),
            "inferencex-2026-08-11" => (11, 12),
            "inferencex-2026-08-22" => (12, 13),
            _ => (15, 16),
        };
        assert!(
            numbers.starts_with(&(0..=last).collect::<Vec<_>>()),
            "{name}: {numbers:?}"
        );
        assert!(numbers.len() >= extra);
    }
}

#[test]
fn every_historical_template_answers_itself_under_the_shipped_words() {
    let Some(shared) = shared() else {
        eprintln!("skipped: the folder with the real files (COUNTERSIGN_SHARED) is not there");
        return;
    };
    let rules = countersign_server::policies::load_from(&policies(), "inferencex")
        .expect("it loads")
        .policy
        .signoff;
    let author = AuthorInfo {
        login: "someone".into(),
        is_bot: false,
        is_self: false,
    };
    let mut count = 0;
    for entry in std::fs::read_dir(shared.join("inferencex/history/PR_REVIEW_CHECKLIST")).expect("a folder") {
        let path = entry.expect("an entry").path();
        let template = Template::parse(&std::fs::read_to_string(&path).expect("text"), &rules)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let filled = template.text.replace("[ ]", "[x]");
        let Recognition::SignOff(signoff) = countersign_signoff::recognise(&filled, &author, &rules) else {
            panic!("{}: its own text is no sign-off", path.display());
        };
        let found = template.compare(&signoff, &rules);
        assert!(
            found.is_complete() && found.unticked.is_empty() && found.extra.is_empty(),
            "{}: {found:?}",
            path.display()
        );
        // Each item is known by an id of its own, so that explanations are looked for under the right words.
        let mut ids: Vec<_> = template
            .items
            .iter()
            .map(|item| {
                item.id
                    .clone()
                    .unwrap_or_else(|| panic!("{}: no rule knows {:?}", path.display(), item.text))
            })
            .collect();
        ids.sort();
        let all = ids.len();
        ids.dedup();
        assert_eq!(ids.len(), all, "{}: two items have one id", path.display());
        count += 1;
    }
    assert_eq!(count, 21);
}
