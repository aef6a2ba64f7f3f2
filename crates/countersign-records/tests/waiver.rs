//! Waivers: the real one, and what is no waiver.
#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use countersign_records::waiver::{Naming, PartRule, Waiver, WaiverRules};
use proptest::prelude::*;

fn rules() -> WaiverRules {
    let words = |list: &[&str]| list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let part = |id: &str, heading: &[&[&str]], least_words| PartRule {
        id: id.into(),
        heading: heading.iter().map(|h| words(h)).collect(),
        least_words,
    };
    WaiverRules {
        parts: vec![
            part("config covered", &[&["config"]], 3),
            part("what is patched", &[&["what", "patched"], &["what", "changes"]], 8),
            part(
                "why the image cannot run",
                &[&["why", "unmodified"], &["why", "cannot"]],
                8,
            ),
            part("upstream links", &[&["upstream", "links"], &["upstream", "pr"]], 1),
            part("removal plan", &[&["removal"]], 5),
        ],
        upstream: words(&["https://github.com/vllm-project/", "https://github.com/ROCm/"]),
        placeholders: words(&["<fill in>", "TODO"]),
    }
}

const MADE_UP: &str = "# Engine patch waiver — PR #41\n\nFiled as the checklist asks.\n\n## Config covered\n\n- entry `made-fp8-x-vllm`, image `a/b:1`\n\n\
    ## What is patched\n\n`bash \"$(dirname \"$0\")/fix_it.sh\"` edits the attention file so that it loads at all, see `benchmarks/one/run.sh`.\n\n\
    ## Why the unmodified upstream image cannot run\n\n### Reasons\n\nThe stock image faults while it captures graphs, every time we start it.\n\n\
    ## Upstream PR / issue links\n\n- https://github.com/vllm-project/vllm/pull/12, and [other](https://github.com/ROCm/aiter/pull/3)\n- https://example.org/x\n\n\
    ## Removal plan\n\nDrop it when the next nightly has the fix.\n";

#[test]
fn a_filled_waiver() {
    let read = Waiver::read(MADE_UP, &rules());
    assert!(read.filled(), "{:?}", read.missing());
    assert_eq!(read.number, Some(41));
    assert_eq!(
        read.upstream,
        [
            "https://github.com/ROCm/aiter/pull/3",
            "https://github.com/vllm-project/vllm/pull/12"
        ]
    );
    assert_eq!(read.names("benchmarks/one/run.sh"), Some(Naming::Path));
    assert_eq!(read.names("benchmarks/one/fix_it.sh"), Some(Naming::Ending));
    assert_eq!(read.names("benchmarks/one/not_fix_it.sh"), None);
    assert_eq!(read.names("other.sh"), None);
    assert_eq!(read.parts[2].line, Some(13));
}

#[test]
fn what_is_missing_is_named() {
    let without = |from: &str, to: &str| {
        assert!(MADE_UP.contains(from));
        Waiver::read(&MADE_UP.replace(from, to), &rules())
    };
    let cases = [
        ("## Removal plan\n", "\n", "removal plan: the section is missing"),
        (
            "Drop it when the next nightly has the fix.",
            "Later.",
            "removal plan: 1 words, at least 5 are needed",
        ),
        (
            "Drop it when the next nightly has the fix.",
            "Drop it when the TODO is resolved.",
            "removal plan: the placeholder \"TODO\" is still there",
        ),
        (
            "The stock image faults while it captures graphs, every time we start it.",
            "It does not.",
            "why the image cannot run: 3 words, at least 8 are needed",
        ),
    ];
    for (from, to, expected) in cases {
        let read = without(from, to);
        assert!(!read.filled());
        assert_eq!(read.missing(), [expected]);
    }
    let read = without(
        "- https://github.com/vllm-project/vllm/pull/12, and [other](https://github.com/ROCm/aiter/pull/3)\n",
        "",
    );
    assert_eq!(read.missing(), ["a link to the upstream pull request or issue"]);
    assert_eq!(without("PR #41", "no number").number, None);
}

#[test]
fn empty_headings_only_and_prose_are_no_waivers() {
    for text in [
        "",
        "The owner accepts this, no waiver needed: https://github.com/vllm-project/vllm/pull/12\n",
        "# W — PR #1\n\n## Config covered\n\n## What is patched\n\n## Why the unmodified image cannot run\n\n## Upstream links\n\n## Removal plan\n",
        "<!--\n## What is patched\n-->\n",
    ] {
        assert!(!Waiver::read(text, &rules()).filled(), "{text}");
    }
    let long = format!("{MADE_UP}\n{}", "x ".repeat(countersign_records::waiver::MAX_BYTES));
    assert!(
        !Waiver::read(&long, &rules()).filled(),
        "what is not read is not accepted"
    );
}

#[test]
fn the_real_waiver() {
    let Some(path) = support::shared("inferencex/docs/waiver/2508.md") else {
        return;
    };
    let read = Waiver::read(&std::fs::read_to_string(path).unwrap(), &rules());
    assert!(read.filled(), "{:?}", read.missing());
    assert_eq!((read.number, read.upstream.len()), (Some(2508), 9));
    for file in [
        "benchmarks/single_node/agentic/kimik3_fp4_mi355x_mtp.sh",
        "benchmarks/single_node/agentic/apply_k3_container_patches.sh",
    ] {
        assert_eq!(read.names(file), Some(Naming::Path), "{file}");
    }
    assert_eq!(read.names("benchmarks/single_node/agentic/other.sh"), None);
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,200}", marks in "[#`*|<>\\[\\]()!a-z./\n -]{0,200}") {
        for text in [&text, &marks] {
            let read = Waiver::read(text, &rules());
            let _ = (read.filled(), read.missing(), read.names("a/b.sh"));
        }
    }
}
