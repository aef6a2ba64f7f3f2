//! How texts are read. Expectations are what PyYAML's `safe_load` gives for the same text, one by one.
#![allow(clippy::unwrap_used, missing_docs)]

use countersign_yaml::{Document, HARD_MAX_DEPTH, Limits, Segment, Strict, YamlErrorKind, from_str, parse, parse_all};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn read(text: &str) -> Document {
    parse(text, &Limits::default()).unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn json_of(text: &str) -> Json {
    read(text).root.to_json()
}

fn refusal(text: &str) -> (YamlErrorKind, u32, u32) {
    match parse(text, &Limits::default()) {
        Ok(document) => panic!("{text:?} was read as {}", document.root.to_json()),
        Err(error) => {
            assert!(!error.remedy.is_empty(), "{text:?} has no remedy");
            (error.kind, error.line, error.column)
        }
    }
}

#[test]
fn values_read_as_pyyaml_reads_them() {
    for (text, expected) in [
        ("", json!(null)),
        ("# only a comment\n", json!(null)),
        (
            "a: 1_998_848\nb: n\nc: y\nd: yes\ne: 1e5\nf: 010\ng: 22:22\nh: '1'\n",
            json!({"a": 1_998_848, "b": "n", "c": "y", "d": true, "e": "1e5", "f": 8, "g": 1342, "h": "1"}),
        ),
        ("on: push\n", json!({"true": "push"})),
        ("1: a\n2.5: b\nnull: c\n", json!({"1": "a", "2.5": "b", "null": "c"})),
        (
            "- {a, b: c}\n- [x: y]\n- [a, b,]\n",
            json!([{"a": null, "b": "c"}, [{"x": "y"}], ["a", "b"]]),
        ),
        ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", json!({"a": "x\ny\n", "b": "x y"})),
        // The block scalar ends with the text and gets no line feed of its own.
        ("a: |\n  x", json!({"a": "x"})),
        (
            "a: !!str 12\nb: !!float 3\nc: ! '12'\nd: !!int '012'\n",
            json!({"a": "12", "b": 3.0, "c": 12, "d": 10}),
        ),
        ("a: 2026-08-07\n", json!({"a": "2026-08-07"})),
        ("%YAML 1.2\n---\na: 1\n...\n", json!({"a": 1})),
        (
            "a: 'it''s'\nb: \"tab\\there \\u00e9\"\n",
            json!({"a": "it's", "b": "tab\there é"}),
        ),
        ("{=: 1}", json!({"=": 1})),
        ("? a\n? b\n", json!({"a": null, "b": null})),
        ("key: [a,\nb]\n", json!({"key": ["a", "b"]})),
    ] {
        assert_eq!(json_of(text), expected, "{text:?}");
    }
}

#[test]
fn merge_keys_are_flattened_and_own_keys_win() {
    let text = "base: &base {a: 1, b: 2}\nown: {b: 3, <<: *base, c: 4}\ntwice: {<<: *base, <<: {a: 9}}\n";
    let document = read(text);
    assert!(document.duplicate_keys.is_empty());
    assert_eq!(
        document.root.get("own").unwrap().to_json(),
        json!({"a": 1, "b": 3, "c": 4})
    );
    assert_eq!(document.root.get("twice").unwrap().to_json(), json!({"a": 9, "b": 2}));
    // Merged keys come first, as in the dict that PyYAML builds.
    let keys: Vec<_> = document
        .root
        .get("own")
        .unwrap()
        .as_map()
        .unwrap()
        .iter()
        .map(|(k, _)| k.scalar_text())
        .collect();
    assert_eq!(keys, ["a", "b", "c"]);
    assert_eq!(
        json_of("x: &x {a: 1}\ny: &y {b: 2}\nz: {<<: [*x, *y]}\n")["z"],
        json!({"a": 1, "b": 2})
    );
}

#[test]
fn what_pyyaml_refuses_is_refused_with_its_place() {
    use YamlErrorKind as Kind;
    for (text, expected) in [
        ("a: b: c\n", (Kind::Syntax, 1, 5)),
        ("a:\tb\n", (Kind::Syntax, 1, 3)),
        ("a: b\tc\n", (Kind::Syntax, 1, 5)),
        ("a: b\n\tc: d\n", (Kind::Syntax, 2, 1)),
        ("a: 1\nb: *missing\n", (Kind::Syntax, 2, 4)),
        ("a: &x 1\nb: &x 2\n", (Kind::Alias, 2, 4)),
        ("a: &x [*x]\n", (Kind::Alias, 1, 8)),
        ("- !custom 1\n", (Kind::Tag, 1, 11)),
        ("- !!set {a}\n", (Kind::Tag, 1, 9)),
        ("- <<\n", (Kind::Tag, 1, 3)),
        ("- 2026-02-30\n", (Kind::Scalar, 1, 3)),
        ("- 0x_\n", (Kind::Scalar, 1, 3)),
        ("? [a]\n: b\n", (Kind::Key, 1, 3)),
        (": a\n", (Kind::Key, 1, 1)),
        ("a: {<<: 1}\n", (Kind::Merge, 1, 9)),
        ("a\n---\nb\n", (Kind::Documents, 2, 1)),
        ("x: 1\ny: \u{7}\n", (Kind::Character, 2, 4)),
        ("# a\u{2028}b: c\n", (Kind::Character, 1, 4)),
        ("...\n", (Kind::Syntax, 1, 1)),
        ("[a?: b]\n", (Kind::Syntax, 1, 3)),
    ] {
        assert_eq!(refusal(text), expected, "{text:?}");
    }
}

#[test]
fn readers_that_differ_are_not_guessed_at() {
    // Which mapping wins here depends on the version of PyYAML.
    let text = "x: &x {a: 1}\ny: &y {a: 2}\nz: {<<: [*x, *y]}\n";
    assert_eq!(refusal(text), (YamlErrorKind::Merge, 3, 5));
    assert_eq!(
        json_of("x: &x {a: 1}\ny: &y {a: 1}\nz: {<<: [*x, *y]}\n")["z"],
        json!({"a": 1})
    );
    // YAML 1.2 takes the colon into the anchor's name.
    assert_eq!(refusal("&a: 1\n").0, YamlErrorKind::Alias);
}

#[test]
fn the_last_of_equal_keys_counts_and_each_repetition_is_reported() {
    let document = read("a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\na: 2\n1: x\ntrue: y\n");
    assert_eq!(
        document.root.to_json(),
        json!({"a": 2, "b": {"c": 3, "d": 2}, "1": "y"})
    );
    let found: Vec<_> = document
        .duplicate_keys
        .iter()
        .map(|d| (d.key.as_str(), d.line, d.column, d.first_line))
        .collect();
    assert_eq!(found, [("c", 5, 3, 3), ("a", 6, 1, 1), ("true", 8, 1, 7)]);
}

#[test]
fn every_node_and_every_key_knows_its_place() {
    let text = "a:\n  - {b: é, c: \"two\"}\n  - |\n    text\n";
    let document = read(text);
    let node = document.root.at(["a".into(), Segment::Index(0), "c".into()]).unwrap();
    assert_eq!((node.span.line, node.span.column), (2, 15));
    assert_eq!(&text[node.span.start..node.span.end], "\"two\"");
    let entry = document
        .root
        .at(["a".into(), 0.into()])
        .unwrap()
        .as_map()
        .unwrap()
        .entry("c")
        .unwrap();
    assert_eq!((entry.key.span.line, entry.key.span.column), (2, 12));
    let block = document.root.at(["a".into(), 1.into()]).unwrap();
    assert_eq!(&text[block.span.start..block.span.end], "text\n");
}

#[test]
fn several_documents_are_read_by_the_other_function_only() {
    let documents = parse_all("a: &x 1\n---\nb: &x 2\n", &Limits::default()).unwrap();
    assert_eq!(
        documents.iter().map(|d| d.root.to_json()).collect::<Vec<_>>(),
        [json!({"a": 1}), json!({"b": 2})]
    );
    assert!(parse_all("", &Limits::default()).unwrap().is_empty());
}

#[test]
fn hostile_texts_reach_a_limit_and_nothing_else() {
    let mut laughs = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for (name, last) in "bcdefghi".chars().zip("abcdefgh".chars()) {
        laughs.push_str(&format!(
            "{name}: &{name} [{}]\n",
            vec![format!("*{last}"); 10].join(", ")
        ));
    }
    let big = format!("a: &a {}\nb: [{}]\n", "x".repeat(100_000), vec!["*a"; 1_000].join(", "));
    let nested_anchors = (0..60).map(|i| format!("&a{i} [")).collect::<String>();
    for (name, text) in [
        ("billion laughs", laughs),
        ("a large scalar copied often", big),
        ("flow nesting", "[".repeat(50_000)),
        ("flow mapping nesting", "{a: ".repeat(50_000)),
        ("block nesting", "- ".repeat(50_000)),
        ("explicit keys", "? ".repeat(50_000)),
        ("mixed", "[{a: ".repeat(20_000)),
        ("a scalar of 20 MB", "x".repeat(20 << 20)),
        ("a long list", "- a\n".repeat(300_000)),
        ("many keys", (0..260_000).map(|i| format!("k{i}:\n")).collect()),
        (
            "nested anchors over a long list",
            format!("{nested_anchors}{}{}", "1,".repeat(10_000), "]".repeat(60)),
        ),
    ] {
        let error = parse(&text, &Limits::default()).map(|_| ()).unwrap_err();
        assert_eq!(error.kind, YamlErrorKind::Limit, "{name}: {error}");
    }
}

#[test]
fn depth_is_exact_and_aliases_count() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let limits = Limits {
        max_depth: 10,
        ..Limits::default()
    };
    assert!(parse(&nested(10), &limits).is_ok());
    assert_eq!(parse(&nested(11), &limits).unwrap_err().kind, YamlErrorKind::Limit);
    let deep = format!("- &a {}\n- [[[*a]]]\n", nested(8));
    assert_eq!(parse(&deep, &limits).unwrap_err().kind, YamlErrorKind::Limit);
    // No caller can ask for more than the stack is good for.
    let greedy = Limits {
        max_depth: usize::MAX,
        ..Limits::default()
    };
    assert!(parse(&nested(HARD_MAX_DEPTH), &greedy).is_ok());
    assert!(parse(&nested(HARD_MAX_DEPTH + 1), &greedy).is_err());
}

#[test]
fn equality_is_of_values() {
    let same = |a: &str, b: &str| read(a).root.same_value(&read(b).root);
    assert!(same("{a: 1, b: [x, y]}", "# c\nb:\n  - \"x\"\n  - y\na: 0x1\n"));
    assert!(!same("[a, b]", "[b, a]"));
    assert!(!same("a: 1", "a: 1.0"));
    assert!(!same("a: 1", "a: '1'"));
    assert!(!same("{a: 1}", "{a: 1, b: 2}"));
    assert!(same(".nan", ".NaN"));
}

#[derive(serde::Deserialize, Debug, PartialEq)]
#[serde(deny_unknown_fields)]
struct Typed {
    name: String,
    #[serde(default)]
    sizes: std::collections::BTreeMap<i64, f64>,
    mode: Option<Mode>,
}

#[derive(serde::Deserialize, Debug, PartialEq)]
#[serde(rename_all = "kebab-case")]
enum Mode {
    Plain,
    With { count: u8 },
}

#[test]
fn typed_reading_names_the_place_of_what_does_not_fit() {
    let limits = Limits::default();
    let good: Typed = from_str("name: a\nsizes: {1: 2.5, 2: 3}\nmode: {with: {count: 3}}\n", &limits).unwrap();
    assert_eq!(good.sizes[&1], 2.5);
    assert_eq!(good.mode, Some(Mode::With { count: 3 }));
    assert_eq!(
        from_str::<Typed>("name: a\nmode: plain\n", &limits).unwrap().mode,
        Some(Mode::Plain)
    );
    for (text, line, column) in [
        ("name: a\nother: 1\n", 2, 1),
        ("name: a\nsizes:\n  1: x\n", 3, 6),
        ("name: 5\n", 1, 7),
        ("sizes: {}\n", 1, 1),
        ("name: a\nmode: {with: {count: 300}}\n", 2, 22),
        ("name: a\nmode: loud\n", 2, 7),
        ("name: a\nname: b\n", 2, 1),
    ] {
        let error = from_str::<Typed>(text, &limits).unwrap_err();
        assert_eq!(
            (error.kind, error.line, error.column),
            (YamlErrorKind::Shape, line, column),
            "{text:?}: {error}"
        );
    }
}

#[test]
fn strict_readers_report_everything_that_is_wrong() {
    let document = read("conc_list: 1\nname: 5\nlist: [a, 2]\n");
    let mut strict = Strict::new();
    strict.enter("rows");
    strict.enter(3);
    let map = strict
        .expect_map(&document.root, "", &["conc-list", "name", "list", "extra"])
        .unwrap();
    strict.required(map, document.root.span, "", "extra");
    strict.expect_str(map.get("name").unwrap(), "name");
    strict.expect_str_list(map.get("list").unwrap(), "list");
    strict.leave();
    strict.leave();
    let found: Vec<_> = strict
        .problems
        .iter()
        .map(|p| (p.line, p.column, p.path.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (1, 1, "rows[3]"),
            (1, 1, "rows[3]"),
            (2, 7, "rows[3].name"),
            (3, 11, "rows[3].list[1]")
        ]
    );
    assert!(
        strict.problems[0].remedy.contains("`conc-list`"),
        "{}",
        strict.problems[0].remedy
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_panics(text in "[ -~\\n\\t\\r\u{e9}\u{feff}\u{2028}]{0,120}") {
        let _ = parse_all(&text, &Limits::default());
    }

    #[test]
    fn indicators_do_not_panic(text in "([-?:,\\[\\]{}#&*!|>'\"%@`~<=\\n ]|- |: |<<|&a |\\*a|!!int |---\\n|a|1){0,60}") {
        if let Ok(documents) = parse_all(&text, &Limits::default()) {
            for document in documents {
                prop_assert!(document.root.same_value(&document.root));
                let _ = document.root.to_json();
            }
        }
    }

    /// What JSON can say, YAML says in the same words.
    #[test]
    fn json_reads_as_itself(list in proptest::collection::vec((any::<i64>(), "[ -~\u{a1}-\u{2027}]{0,20}", any::<bool>()), 0..20)) {
        let json = json!(list);
        prop_assert_eq!(json_of(&json.to_string()), json);
    }

    /// Spans lie inside the text, on character borders, children inside parents.
    #[test]
    fn spans_lie_in_the_text(text in "([a-c\u{e9}]|: |\\n|- |\\[|\\]|, |\\{|\\}|  |'x'|\"y\"){0,40}") {
        fn check(node: &countersign_yaml::Node, text: &str) -> Result<(), TestCaseError> {
            prop_assert!(text.get(node.span.start..node.span.end).is_some(), "{:?}", node.span);
            prop_assert!(node.span.line >= 1 && node.span.column >= 1);
            for child in node.as_seq().into_iter().flatten() {
                prop_assert!(child.span.start >= node.span.start);
                check(child, text)?;
            }
            for (key, value) in node.as_map().into_iter().flat_map(countersign_yaml::Map::iter) {
                check(key, text)?;
                check(value, text)?;
            }
            Ok(())
        }
        if let Ok(document) = parse(&text, &Limits::default()) {
            check(&document.root, &text)?;
        }
    }
}
