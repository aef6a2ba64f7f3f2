//! Properties: no input breaks it, and what does not matter does not matter.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use common::{command_rules, filled, person, rules, signoff, template};
use countersign_signoff::{Recognition, Template, commands, exercise, recognise};
use proptest::prelude::*;

/// Pieces that mean something to this crate, so that random bodies reach deep.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "As a PR reviewer and CODEOWNER",
        "- [ ] ",
        "- [x] ",
        "- []",
        "* [X]",
        "\n",
        "\r\n",
        "\r",
        "\t",
        "    ",
        "> ",
        "```",
        "~~~",
        "<!--",
        "-->",
        "<pre>",
        "</pre>",
        "<blockquote>",
        "`",
        "**",
        "~~",
        "Signed: ",
        "@me",
        "### Additional detail section:",
        "insert any additional info here",
        "https://github.com/a/b/actions/runs/7",
        "acme/recipes#12",
        "[a](https://recipes.vllm.ai/x)",
        "<https://a.example/>",
        "](",
        "[",
        "]",
        "evals",
        "N/A",
        "## Template",
        "/use ",
        "/countersign confirm ",
        "77",
        "\u{a0}",
        "界",
        "🦀",
        "\u{feff}",
        "\0",
        "[r]: https://a.example/\n",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(String::from), 1 => "\\PC{0,12}", 1 => any::<char>().prop_map(String::from)]
}

fn body() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..60).prop_map(|v| v.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn nothing_panics(text in body(), raw in prop::collection::vec(any::<u8>(), 0..400)) {
        let (r, c) = (rules(), command_rules());
        exercise(text.as_bytes(), &r, &c);
        exercise(&raw, &r, &c);
        exercise(format!("As a PR reviewer and CODEOWNER\n- [x] a\n{text}").as_bytes(), &r, &c);
        exercise(format!("## Template\n```\n{text}\n```\n").as_bytes(), &r, &c);
    }

    #[test]
    fn line_ends_ticks_and_trailing_blanks_do_not_matter(
        marks in prop::collection::vec(0usize..5, 15),
        stars in prop::collection::vec(0usize..3, 15),
        tail in "[ \t]{0,3}",
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        let mut ticks = marks.iter().map(|m| ["[ ]", "[x]", "[X]", "[x ]", "[]"][*m]);
        let mut bullets = stars.iter().map(|s| ["- ", "* ", "+ "][*s]);
        let form = filled(&[], "- fine");
        let plain: String = form.lines().zip(0..).map(|(l, _)| l).map(|l| format!("{l}\n")).collect();
        let dressed: String = form.lines().map(|l| match l.split_once("- [x]") {
            Some((before, after)) => format!("{before}{}{}{after}{tail}{end}", bullets.next().unwrap(), ticks.next().unwrap()),
            None => format!("{l}{tail}{end}"),
        }).collect();
        let (a, b) = (signoff(&plain), signoff(&dressed));
        prop_assert_eq!(a.items.len(), b.items.len());
        let expected: Vec<bool> = marks.iter().map(|m| (1..4).contains(m)).collect();
        let found: Vec<bool> = b.items.iter().map(|i| i.is_ticked()).collect();
        prop_assert_eq!(&found, &expected);
        for (x, y) in a.items.iter().zip(&b.items) {
            prop_assert_eq!((&x.text, &x.links, x.line), (&y.text, &y.links, y.line));
        }
        prop_assert_eq!(&a.detail, &b.detail);
        if expected.iter().all(|e| *e) {
            prop_assert_eq!(a.digest_input(), b.digest_input());
        }
        let compared = template().compare(&b, &rules());
        prop_assert!(compared.missing.is_empty());
        prop_assert_eq!(compared.unticked.len(), expected.iter().filter(|e| !**e).count());
    }

    #[test]
    fn quoting_or_fencing_a_body_leaves_nothing(text in body()) {
        let lines = text.replace("\r\n", "\n").replace('\r', "\n");
        let quoted: String = lines.lines().map(|l| format!("> {l}\n")).collect();
        prop_assert!(recognise(&quoted, &person(), &rules()).signoff().is_none());
        prop_assert_eq!(commands(&quoted, &command_rules()).commands, vec![]);
        if !lines.contains("```") {
            let fenced = format!("```\n{lines}\n```\n");
            prop_assert!(recognise(&fenced, &person(), &rules()).signoff().is_none());
            prop_assert_eq!(commands(&fenced, &command_rules()).commands, vec![]);
        }
    }

    #[test]
    fn every_template_item_is_answered_or_missing(text in body()) {
        if let Recognition::SignOff(s) = recognise(&text, &person(), &rules()) {
            let t = template();
            let found = t.compare(&s, &rules());
            prop_assert_eq!(found.matched.len() + found.missing.len(), t.items.len());
            prop_assert_eq!(found.matched.len() + found.extra.len(), s.items.len());
            prop_assert_eq!(found.matched.iter().filter(|m| !m.ticked).count(), found.unticked.len());
        }
    }
}

/// Bodies that break naive parsers: deep nesting, long runs, many openers. Each must be read, whatever comes out.
#[test]
fn hostile_bodies_are_bounded() {
    let (r, c) = (rules(), command_rules());
    let seeds = [
        ">",
        "> ",
        "- ",
        "* ",
        "[",
        "](",
        "*",
        "_",
        "**a",
        "`",
        "``a",
        "~~",
        "<",
        "<!--",
        "<pre>",
        "<blockquote>\n\n",
        "</q>",
        "- [ ] ",
        "- [x] a\n",
        "  - [x] a\n",
        "![",
        "[a](",
        "a/b#1 ",
        "https://a.example/) ",
        ")",
        "https://",
        "&#",
        "|a",
        "1. ",
        "```\n",
        "[a]: b\n",
        "\\",
        "As a PR reviewer and CODEOWNER\n",
        "/use 1\n",
        "\n",
        "\r",
        "\t",
        "界",
        "a.",
        "<a href=x>",
        "#",
        ": ",
        "https://a.example/x",
        "(",
        "Signed: x\n",
        "Additional details: x\n",
    ];
    for seed in seeds {
        for head in ["", "As a PR reviewer and CODEOWNER\n- [x] a\n- [ ] evals "] {
            let body = format!("{head}{}", seed.repeat(16_000 / seed.chars().count()));
            exercise(body.as_bytes(), &r, &c);
        }
        // Growing indentation.
        let deep: String = (0..300).map(|i| format!("{}{seed}- [x] a\n", " ".repeat(i))).collect();
        exercise(format!("As a PR reviewer and CODEOWNER\n{deep}").as_bytes(), &r, &c);
    }
    let many = format!("As a PR reviewer and CODEOWNER\n{}", "- [x] a\n".repeat(7_000));
    let s = signoff(&many);
    assert!(s.items_cut && s.items.len() == countersign_signoff::MAX_ITEMS);
    assert!(Template::parse(&"- [ ] a\n".repeat(7_000), &r).is_ok());
}
