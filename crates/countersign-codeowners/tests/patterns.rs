//! The language-neutral table of pattern and path assertions, `tests/patterns.json`: our own
//! cases after the documented rules, readable by any other implementation.

use countersign_codeowners::{CodeOwners, Match, Pattern, PatternProblem};

fn table() -> Vec<serde_json::Value> {
    serde_json::from_str(include_str!("patterns.json")).expect("the table is a JSON array")
}

fn strings<'a>(case: &'a serde_json::Value, key: &str) -> Vec<&'a str> {
    let list = case[key].as_array().unwrap_or_else(|| panic!("{key} in {case}"));
    list.iter().map(|v| v.as_str().expect("a string")).collect()
}

#[test]
fn every_assertion_of_the_table() {
    let cases = table();
    let mut assertions = 0;
    for case in &cases {
        let text = case["pattern"].as_str().expect("a pattern");
        let pattern = Pattern::parse(text).unwrap_or_else(|problem| panic!("{text}: {problem}"));
        // The same through a whole file.
        let file = CodeOwners::parse(&format!("{text} @octocat"));
        assert!(file.diagnostics().is_empty(), "{:?}", file.diagnostics());
        for (key, expected) in [("matches", true), ("misses", false)] {
            for path in strings(case, key) {
                assert_eq!(pattern.matches(path), expected, "{text} on {path} ({})", case["why"]);
                assert_eq!(
                    matches!(file.owners_of(path), Match::Owned { .. }),
                    expected,
                    "{text} on {path}"
                );
                assertions += 1;
            }
        }
        let catch_all = case
            .get("catch_all")
            .and_then(serde_json::Value::as_bool)
            .unwrap_or(false);
        assert_eq!(pattern.is_catch_all(), catch_all, "{text} as a catch-all");
    }
    assert!(
        cases.len() >= 50 && assertions >= 200,
        "{} cases, {assertions} assertions",
        cases.len()
    );
}

#[test]
fn refused_patterns() {
    use PatternProblem as P;
    let long = "a".repeat(4097);
    for (pattern, problem) in [
        ("!src/", P::Negation),
        ("!", P::Negation),
        ("src/[ab].rs", P::CharacterRange),
        ("a]", P::CharacterRange),
        ("app/[slug]/", P::CharacterRange),
        ("a\\", P::DanglingEscape),
        ("***/*.rb", P::TripleAsterisk),
        ("a****", P::TripleAsterisk),
        ("/", P::NeverMatches),
        ("", P::NeverMatches),
        ("//", P::NeverMatches),
        ("//a", P::NeverMatches),
        ("a//b", P::NeverMatches),
        ("a//", P::NeverMatches),
        ("./src/", P::NeverMatches),
        ("a/../b", P::NeverMatches),
        ("..", P::NeverMatches),
        ("*\u{a0}@octocat", P::InvisibleCharacter),
        ("a\u{200b}", P::InvisibleCharacter),
        ("a\r", P::InvisibleCharacter),
        ("a\0b", P::InvisibleCharacter),
        (long.as_str(), P::TooLong),
    ] {
        assert_eq!(
            Pattern::parse(pattern),
            Err(problem),
            "{}",
            pattern.chars().take(20).collect::<String>()
        );
    }
    // The longest pattern, and the ones next to a refused one, are good.
    for pattern in [&"a".repeat(4096), "...", ".a/..b", "a!", "**", "\\[", "a\\ b", "日本"] {
        assert!(Pattern::parse(pattern).is_ok(), "{pattern:.20}");
    }
}

#[test]
fn the_empty_path_is_never_matched() {
    for pattern in ["*", "**", "/**", "a", "/*", "?*"] {
        assert!(!Pattern::parse(pattern).expect(pattern).matches(""), "{pattern}");
    }
}

#[test]
fn hostile_lengths_are_answered() {
    // Quadratic at worst; an exponential matcher would not come back from these.
    let pattern = Pattern::parse(&format!("{}b", "*a".repeat(1000))).expect("valid");
    assert!(!pattern.matches(&"a".repeat(4000)));
    let pattern = Pattern::parse(&format!("{}/b", "**/a".repeat(800).replace("a*", "a/*"))).expect("valid");
    assert!(!pattern.matches(&"a/".repeat(2000)));
    let pattern = Pattern::parse(&"**/".repeat(1365)).expect("valid");
    assert!(pattern.is_catch_all() && pattern.matches("x"));
}
