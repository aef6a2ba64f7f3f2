//! Properties that hold for every file.

use countersign_codeowners::{CodeOwners, Match, Pattern};
use proptest::prelude::*;

fn config() -> ProptestConfig {
    ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn pattern() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("*".to_owned()),
        Just("/**".to_owned()),
        "[ab*?]{1,2}(/[ab*?]{1,2}){0,2}/?",
        "/[ab]{1,2}/(\\*|\\*\\*|\\*\\.[ab])",
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => (pattern(), proptest::collection::vec("@[a-c]{1,3}(/[xy]{1,2})?", 0..3))
            .prop_map(|(p, owners)| format!("{p} {}", owners.join(" "))),
        1 => "[!]?[ab\\[\\]]{1,3} [a-c@/]{1,4}",
        1 => "(# [a-z@* ]{0,8})?",
    ]
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    proptest::collection::vec(line(), 0..10)
}

fn path() -> impl Strategy<Value = String> {
    "[ab]{1,2}(/[ab]{1,2}(\\.[ab])?){0,3}"
}

/// Everything an answer says.
fn answer(file: &CodeOwners, path: &str) -> (Option<String>, Vec<String>, bool) {
    let found = file.owners_of(path);
    let pattern = found.rule().map(|r| r.pattern().to_owned());
    (
        pattern,
        found.owners().iter().map(ToString::to_string).collect(),
        matches!(found, Match::Unowned { .. }),
    )
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn an_appended_rule_decides_exactly_the_paths_it_matches(
        lines in lines(), pattern in pattern(), owned in any::<bool>(), paths in proptest::collection::vec(path(), 6)
    ) {
        let before = CodeOwners::parse(&lines.join("\n"));
        let owner = if owned { " @appended" } else { "" };
        let after = CodeOwners::parse(&format!("{}\n{pattern}{owner}", lines.join("\n")));
        let compiled = Pattern::parse(&pattern);
        for path in &paths {
            match &compiled {
                Ok(compiled) if compiled.matches(path) => {
                    let owners = if owned { vec!["@appended".to_owned()] } else { vec![] };
                    prop_assert_eq!(answer(&after, path), (Some(pattern.clone()), owners, !owned));
                    prop_assert_eq!(after.owners_of(path).rule().map(|r| r.line()), Some(lines.len().max(1) + 1));
                }
                _ => prop_assert_eq!(answer(&after, path), answer(&before, path)),
            }
        }
    }

    #[test]
    fn the_answer_is_that_of_the_last_matching_rule_alone(lines in lines(), path in path()) {
        let file = CodeOwners::parse(&lines.join("\n"));
        let last = file.rules().iter().rfind(|r| r.matches(&path));
        let found = file.owners_of(&path);
        prop_assert_eq!(found.rule().map(|r| r.line()), last.map(|r| r.line()));
        match (found, last) {
            (Match::Unmatched, None) => {}
            (Match::Unowned { .. }, Some(rule)) => prop_assert!(rule.owners().is_empty()),
            (Match::Owned { owners, .. }, Some(rule)) => {
                prop_assert!(!owners.is_empty());
                prop_assert_eq!(owners, rule.owners());
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn comments_blanks_and_line_ends_change_nothing(
        lines in lines(), at in any::<prop::sample::Index>(), paths in proptest::collection::vec(path(), 4)
    ) {
        let plain = CodeOwners::parse(&lines.join("\n"));
        let mut padded = vec!["\u{feff}# head".to_owned()];
        for (i, line) in lines.iter().enumerate() {
            if i == at.index(lines.len()) {
                padded.extend(["".to_owned(), "   \t".to_owned(), "# * @intruder".to_owned()]);
            }
            padded.push(format!(" \t{} \t# * @intruder", line.replace(' ', " \t ")));
        }
        let padded = CodeOwners::parse(&(padded.join("\r\n") + "\r\n\r\n"));
        for path in &paths {
            prop_assert_eq!(answer(&padded, path), answer(&plain, path));
        }
        prop_assert_eq!(padded.listed_owners(), plain.listed_owners());
        let problems = |f: &CodeOwners| f.diagnostics().iter().map(|d| d.problem.clone()).collect::<Vec<_>>();
        prop_assert_eq!(problems(&padded), problems(&plain));
    }

    #[test]
    fn every_line_is_a_rule_a_diagnostic_or_nothing(text in "[\\PC\n\r\t#@/*!\\[\\]\\\\ ]{0,200}", path in "\\PC{0,40}") {
        let file = CodeOwners::parse(&text);
        let count = text.split('\n').count();
        let mut skipped = file.diagnostics().iter().filter(|d| d.effect == countersign_codeowners::Effect::LineSkipped);
        prop_assert!(skipped.all(|d| file.rules().iter().all(|r| r.line() != d.line)));
        prop_assert!(file.rules().windows(2).all(|w| w[0].line() < w[1].line()));
        prop_assert!(file.diagnostics().windows(2).all(|w| w[0].line <= w[1].line));
        prop_assert!(file.rules().iter().all(|r| (1..=count).contains(&r.line())));
        prop_assert!(file.diagnostics().iter().all(|d| d.column >= 1 && text.contains(d.text.trim_end_matches('…'))));
        // Never a panic, whatever the path.
        let _ = (file.owners_of(&path), file.doubts_about(&path), file.owners_of_change(&path, Some("")));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let text = String::from_utf8_lossy(&bytes);
        let file = CodeOwners::parse(&text);
        let _ = (file.owners_of(&text), Pattern::parse(&text).map(|p| p.matches(&text)));
    }

    #[test]
    fn a_catch_all_owns_every_path(lines in lines(), path in "[^/\0]{1,5}(/[^/\0]{1,5}){0,4}") {
        let file = CodeOwners::parse(&lines.join("\n"));
        for rule in file.rules().iter().filter(|r| r.is_catch_all()) {
            prop_assert!(rule.matches(&path), "{} on {}", rule.pattern(), path);
        }
    }
}
