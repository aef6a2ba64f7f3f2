//! Our matcher against a translation of the same rules to `globset`, on generated patterns and
//! paths. The two share no code: a bug would have to be made twice.

use countersign_codeowners::Pattern;
use globset::{GlobBuilder, GlobMatcher};
use proptest::prelude::*;

fn glob(text: &str) -> GlobMatcher {
    GlobBuilder::new(text)
        .literal_separator(true)
        .backslash_escape(true)
        .build()
        .expect(text)
        .compile_matcher()
}

/// The rules of [`Pattern::parse`] as globs; the path matches if one of them does.
fn translate(pattern: &str) -> Vec<GlobMatcher> {
    let anchored = pattern.trim_end_matches('/').contains('/');
    let directory = pattern.ends_with('/');
    let body = pattern.trim_matches('/').replace('{', "\\{").replace('}', "\\}");
    let base = if anchored { body.clone() } else { format!("**/{body}") };
    let last = body.rsplit('/').next().unwrap_or_default();
    let below = format!("{base}/**");
    match last {
        // Zero directories before the trailing slash: `a/**/` also has the direct content of `a`.
        "**" if directory && base.len() > 3 => vec![glob(&below), glob(&base)],
        "**" => vec![glob(&base)],
        _ if directory => vec![glob(&below)],
        "*" => vec![glob(&base)],
        _ => vec![glob(&base), glob(&below)],
    }
}

fn pattern() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[ab]{1,2}",
        2 => "[ab*?]{1,3}",
        1 => Just("*".to_owned()),
        2 => Just("**".to_owned()),
        1 => "[ab]?\\\\[*?]b?",
        1 => "\\{a,b\\}",
    ];
    ("/?", proptest::collection::vec(name, 1..5), "/?")
        .prop_map(|(lead, names, trail)| format!("{lead}{}{trail}", names.join("/")))
        .prop_filter("two asterisks inside a name mean something else to globset", |p| {
            p.split('/').all(|s| s == "**" || !s.contains("**"))
        })
}

fn path() -> impl Strategy<Value = String> {
    proptest::collection::vec(prop_oneof![6 => "[ab]{1,2}", 1 => "[ab]?[*?{}]b?"], 1..6)
        .prop_map(|names| names.join("/"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn same_answer(pattern in pattern(), paths in proptest::collection::vec(path(), 8)) {
        let ours = Pattern::parse(&pattern).expect("generated patterns are valid");
        let globs = translate(&pattern);
        for path in paths {
            let theirs = globs.iter().any(|g| g.is_match(&path));
            prop_assert_eq!(ours.matches(&path), theirs, "{} on {}", pattern, path);
        }
    }

    #[test]
    fn a_catch_all_matches_every_path_and_nothing_else_does(pattern in pattern()) {
        let pattern = Pattern::parse(&pattern).expect("generated patterns are valid");
        // Names that no generated literal equals, at depths that no bounded pattern reaches.
        let all = (1..=8).all(|depth| pattern.matches(&vec!["\u{1}"; depth].join("/"))) && pattern.matches("zz");
        prop_assert_eq!(pattern.is_catch_all(), all);
    }
}
