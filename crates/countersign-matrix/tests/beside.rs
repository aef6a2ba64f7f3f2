//! A revision read beside another one is the revision read by itself.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::sync::Arc;

use common::{FIRST, SECOND, files, policy};
use countersign_matrix::*;
use countersign_yaml::{Node, Value};
use proptest::prelude::*;

/// Everything that is read, with its places; but for byte offsets, which only the YAML reader itself uses.
fn shown(configs: &Configs) -> String {
    let mut out = format!("{:?} {:?}\n", configs.masters.problems, configs.masters.duplicates);
    for entry in &configs.masters.entries {
        let Entry {
            head,
            router,
            kv_p2p_transfer,
            fixed,
            agentic,
            raw,
            ..
        } = &**entry;
        let text = format!("{head:?} {router:?} {kv_p2p_transfer:?} {fixed:?} {agentic:?}");
        out.push_str(&without_bytes(&text));
        values(entry, raw, &mut out);
        let known = configs.masters.get(&head.key).unwrap();
        assert_eq!(known.head.span.line, head.span.line);
    }
    out
}

fn without_bytes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(", start: ") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.find(" }").unwrap();
        rest = &rest[end..];
    }
    out + rest
}

fn values(entry: &Entry, node: &Node, out: &mut String) {
    let place = entry.place(node.span);
    out.push_str(&format!("{}:{} ", place.line, place.column));
    match &node.value {
        Value::Seq(items) => items.iter().for_each(|item| values(entry, item, out)),
        Value::Map(map) => map.iter().for_each(|(key, value)| {
            values(entry, key, out);
            values(entry, value, out);
        }),
        other => out.push_str(&format!("{other:?}\n")),
    }
}

/// What the first of two texts is, read by some rules, and the second one read beside it, by its own.
fn read_beside(texts: [&str; 2], rules: [&MatrixRules; 2]) -> [Configs; 2] {
    let layout = policy().layout;
    let [before, after] = texts.map(|text| files(text, SECOND));
    let near = Configs::read(&before, &layout, rules[0]);
    let paths = layout.masters.iter().chain([&layout.runners]);
    let texts: Vec<Option<Arc<str>>> = paths.map(|path| before.read(path)).collect();
    let beside = Near {
        configs: &near,
        texts: &texts,
        same_rules: rules[0] == rules[1],
    };
    let beside = Configs::read_beside(&after, &layout, rules[1], beside);
    [near, beside]
}

fn same(old: &str, new: &str) -> bool {
    let policy = policy();
    let [_, beside] = read_beside([old, new], [&policy.matrix; 2]);
    let alone = Configs::read(&files(new, SECOND), &policy.layout, &policy.matrix);
    shown(&beside) == shown(&alone)
}

/// Two entries, and both again under other keys, so that there is something before and after a change.
fn long() -> String {
    format!(
        "{FIRST}{}{}",
        FIRST
            .replace("alpha-", "gamma-")
            .replace("prefix: alpha", "prefix: gamma"),
        FIRST
            .replace("alpha-", "delta-")
            .replace("prefix: alpha", "prefix: delta")
    )
}

#[test]
fn changes_at_every_place_are_read_as_a_whole_reading_would() {
    let text = long();
    assert!(same(&text, &text));
    for change in [
        text.replacen("acme/engine:v1", "acme/engine:v10", 1),
        text.replace("acme/engine:v1", "acme/engine:v2"),
        text.replacen("conc-list: [2, 8]", "conc-list: [2, 8, 16]", 2),
        format!(
            "{text}{}",
            FIRST
                .replace("alpha-", "last-")
                .replace("prefix: alpha", "prefix: last")
        ),
        format!(
            "{}{text}",
            FIRST.replace("alpha-", "new-").replace("prefix: alpha", "prefix: new")
        ),
        format!("# a note\n{text}"),
        text.replacen("  multinode: false\n", "", 1),
        text.replacen("gamma-fp8-b200-vllm:", "alpha-fp8-b200-vllm:", 1),
        FIRST.to_owned(),
        String::new(),
    ] {
        assert!(same(&text, &change), "{change}");
        assert!(same(&change, &text), "back from {change}");
    }
}

#[test]
fn what_is_the_same_is_taken_over_wherever_it_stands() {
    let policy = policy();
    let text = long();
    let moved = format!(
        "{}{}",
        FIRST.replace("alpha-", "new-").replace("prefix: alpha", "prefix: new"),
        text.replacen("acme/engine:v1", "acme/engine:v2", 1)
    );
    let [near, beside] = read_beside([&text, &moved], [&policy.matrix; 2]);
    let taken = |key: &str| {
        let (old, new) = (near.masters.get(key).unwrap(), beside.masters.get(key).unwrap());
        Arc::ptr_eq(&old.raw, &new.raw)
    };
    let keys: Vec<&str> = near.masters.entries.iter().map(|entry| &*entry.head.key).collect();
    let differ: Vec<&&str> = keys.iter().filter(|key| !taken(key)).collect();
    assert_eq!(differ, [&keys[0]]);
}

#[test]
fn what_is_wrong_with_one_entry_keeps_no_other_from_being_taken_over() {
    let policy = policy();
    let text = long();
    let broken = text.replacen("  multinode: false\n", "  multinode: maybe\n", 1);
    let [near, beside] = read_beside([&broken, &text], [&policy.matrix; 2]);
    assert_eq!(near.masters.problems.len(), 1);
    let last = near.masters.entries.last().unwrap();
    assert!(Arc::ptr_eq(last, beside.masters.get(&last.head.key).unwrap()));
    assert!(beside.masters.problems.is_empty());
}

#[test]
fn an_entry_that_stays_wrong_is_told_and_keeps_no_other_from_being_taken_over() {
    let policy = policy();
    let broken = long().replacen("  multinode: false\n", "  multinode: maybe\n", 1);
    let changed = format!("# a note\n{broken}").replacen("gamma-fp8-b200-vllm:", "epsilon-fp8-b200-vllm:", 1);
    assert!(same(&broken, &broken) && same(&broken, &changed) && same(&changed, &broken));
    let twice = changed.replacen("epsilon-fp8-b200-vllm:", "alpha-fp8-b200-vllm:", 1);
    assert!(same(&broken, &twice) && same(&twice, &broken));
    let [near, beside] = read_beside([&broken, &changed], [&policy.matrix; 2]);
    assert_eq!((near.masters.problems.len(), beside.masters.problems.len()), (1, 1));
    assert_eq!(near.masters.problems[0].line + 1, beside.masters.problems[0].line);
    let last = near.masters.entries.last().unwrap();
    assert!(Arc::ptr_eq(&last.raw, &beside.masters.get(&last.head.key).unwrap().raw));
}

#[test]
fn what_reaches_beyond_its_entry_is_read_with_all_the_rest() {
    let text = long();
    let image = "  image: acme/engine:v1\n";
    let anchored = text.replacen(image, "  image: &image acme/engine:v1\n", 1);
    let aliased = anchored.replace(image, "  image: *image\n");
    let open = text.replacen("acme/engine:v1\n", "\"acme/engine:v1\n", 1);
    let block = text.replacen(image, "  image: |\n   acme/engine:v1\n", 1);
    let marked = text.replacen("gamma-fp8-b200-vllm:", "---\ngamma-fp8-b200-vllm:", 1);
    let flow = text.replacen(
        "  router: { name: gate, version: \"2.0\" }\n",
        "  router: { name: gate,\n",
        1,
    );
    for change in [
        anchored,
        aliased,
        open,
        block,
        marked,
        flow,
        text.replace('\n', "\r\n"),
        text.replacen("alpha", "? alpha", 1),
    ] {
        assert!(same(&text, &change), "{change}");
        assert!(same(&change, &text), "back from {change}");
    }
}

#[test]
fn what_was_read_by_other_rules_is_judged_by_these() {
    let policy = policy();
    let text = long().replacen("  multinode: false\n", "  multinode: maybe\n", 1);
    let named = "  router: { name: gate, version: \"2.0\" }\n";
    assert!(text.contains(named));
    let text = text.replacen(named, "  router: gate\n", 1);
    let moved = format!("# a note\n{text}");
    let mut other = policy.matrix.clone();
    other.components = !other.components;
    for rules in [[&policy.matrix, &other], [&other, &policy.matrix]] {
        let [near, beside] = read_beside([&text, &moved], rules);
        let alone = Configs::read(&files(&moved, SECOND), &policy.layout, rules[1]);
        assert_eq!(shown(&beside), shown(&alone));
        assert_ne!(near.masters.problems.len(), beside.masters.problems.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn any_lines_taken_out_doubled_or_put_in(
        edits in prop::collection::vec((0usize..200, 0usize..14), 1..4),
        back in any::<bool>(),
    ) {
        const PUT: &[&str] = &[
            "epsilon: 1", "  image: other/engine:v3", "'", "\"", "---", "...", "%YAML 1.2", "  - [", "x: &a 1", "y: *a", "  |", "# & *a",
        ];
        let text = long();
        let mut lines: Vec<&str> = text.lines().collect();
        for (at, what) in edits {
            let at = at % lines.len();
            match what {
                0 => drop(lines.remove(at)),
                1 => lines.insert(at, lines[at]),
                other => lines.insert(at, PUT[other - 2]),
            }
        }
        let changed = format!("{}\n", lines.join("\n"));
        let fine = if back { same(&changed, &text) } else { same(&text, &changed) };
        prop_assert!(fine, "{changed}");
    }
}
