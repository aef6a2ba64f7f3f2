//! The shapes that reviewers really write, and those that must not count. The bodies are made up.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use common::{filled, person, refusal, rules, signoff, template};
use countersign_signoff::{
    AuthorInfo, BoxState, DetailHeading, LinkSource, Recognition, Refusal, Section, WhyIgnored, recognise,
};

const PHRASE: &str = "As a PR reviewer and CODEOWNER, I looked at this change and:";

fn one_item(line: &str) -> Option<(BoxState, String)> {
    let body = format!("{PHRASE}\n{line}\n- [ ] last\n");
    let s = signoff(&body);
    (s.items.len() == 2).then(|| (s.items[0].state, s.items[0].text.clone()))
}

#[test]
fn boxes_of_every_spelling() {
    use BoxState::{Open, Ticked, Unclear};
    let cases = [
        ("- [ ] item", Open),
        ("- [x] item", Ticked),
        ("- [X] item", Ticked),
        ("- [ x] item", Ticked),
        ("- [x ] item", Ticked),
        ("- [ X ] item", Ticked),
        ("- [] item", Open),
        ("- []item", Open),
        ("- [x]item", Ticked),
        ("- [  ] item", Open),
        ("- [\u{a0}] item", Open),
        ("* [x] item", Ticked),
        ("+ [x] item", Ticked),
        ("-   [x]   item  ", Ticked),
        ("-[x] item", Ticked),
        ("  - [x] item", Ticked),
        ("    - [x] item", Ticked),
        ("\t- [x] item", Ticked),
        ("            * [ ] item", Open),
        ("1. [x] item", Ticked),
        ("2) [ ] item", Open),
        ("[x] item", Ticked),
        ("- \\[x\\] item", Ticked),
        ("- [✓] item", Ticked),
        ("- [✅] item", Ticked),
        ("- [-] item", Unclear),
        ("- [N/A] item", Unclear),
        ("- [y] item", Unclear),
    ];
    for (line, state) in cases {
        assert_eq!(one_item(line), Some((state, "item".to_owned())), "{line}");
    }
    let none = [
        "- [x](https://a.example/) item",
        "- item [x]",
        "- [PR] item",
        "- [ ]",
        "[x]: https://a.example/",
        "- x] item",
        "- [x item",
        "> - [x] item",
        "- [abc] item",
        "`- [x] item`",
        "<!-- - [x] item -->",
        "[N/A] item",
        "-- [x] item",
    ];
    for line in none {
        assert_eq!(one_item(line), None, "{line}");
    }
}

#[test]
fn a_plain_copy_is_complete_in_every_dress() {
    let plain = filled(&["above criteria"], "- Nothing to add.");
    let dresses: Vec<(&str, String)> = vec![
        ("plain", plain.clone()),
        ("carriage returns", plain.replace('\n', "\r\n")),
        ("old line ends", plain.replace('\n', "\r")),
        ("stars", plain.replace("- [", "* [")),
        ("capitals", plain.replace("[x]", "[X]")),
        (
            "two blanks before all",
            plain.lines().map(|l| format!("  {l}\n")).collect(),
        ),
        ("four blanks before items", plain.replace("- [", "    - [")),
        ("tabs before items", plain.replace("- [", "\t- [")),
        ("blank line under the phrase", plain.replace("and:\n", "and:\n\n")),
        ("blank lines between all", plain.replace('\n', "\n\n")),
        ("no blank line at all", plain.replace("\n\n", "\n")),
        ("bold phrase", plain.replace(PHRASE, &format!("**{PHRASE}**"))),
        ("heading phrase", plain.replace(PHRASE, &format!("### {PHRASE}"))),
        ("greeting first", format!("Hi all,\n{plain}")),
        ("byte-order mark", format!("\u{feff}{plain}")),
        (
            "folded",
            format!("<details>\n<summary>sign-off</summary>\n\n{plain}\n</details>\n"),
        ),
        (
            "folded, no blank line",
            format!("<details><summary>sign-off</summary>\n{plain}\n</details>\n"),
        ),
        (
            "other blanks in the phrase",
            plain.replace("PR reviewer and", "PR  reviewer\u{a0}and"),
        ),
        ("changed links", plain.replace("blob/main", "edit/main")),
        (
            "lost links",
            plain.replace("](https://github.com/acme/bench/blob/main/docs/FORM.md)", "]"),
        ),
        (
            "two typos",
            plain
                .replace("documented", "docmented")
                .replace("golden curve", "golden curv"),
        ),
        ("under a quote", format!("> could you sign?\n\n{plain}")),
        ("right under a quote", format!("> could you sign?\n{plain}")),
        ("after a comment", format!("<!-- note to self -->\n{plain}")),
    ];
    let template = template();
    for (name, body) in dresses {
        let s = signoff(&body);
        let found = template.compare(&s, &rules());
        assert!(found.is_complete() && found.extra.is_empty(), "{name}: {found:?}");
        assert_eq!(found.unticked.len(), 1, "{name}");
        assert!(s.detail.as_ref().is_some_and(|d| !d.is_empty()), "{name}");
        assert!(s.signature.is_some(), "{name}");
        let kinds = s
            .links_beyond_template(&template)
            .into_iter()
            .filter_map(|b| b.link.kind)
            .count();
        assert_eq!(kinds, 0, "{name}");
    }
}

#[test]
fn the_detail_section_has_many_headings() {
    let named = [
        "### Additional detail section:",
        "## Additional detail section",
        "Additional detail section:",
        "Additional detail section",
        "**Additional detail section:**",
        "**Additional detail section**:",
        "__Additional Detail Section__",
        "#### additional details section :",
        "Additional details:",
        "Additional detail section\n---",
    ];
    for heading in named {
        let s = signoff(&format!(
            "{PHRASE}\n- [x] a b c\n\n{heading}\n- because of this\n\nSigned: @me\n"
        ));
        let detail = s.detail.as_ref().unwrap_or_else(|| panic!("{heading}"));
        assert_eq!(detail.heading, DetailHeading::Named, "{heading}");
        assert_eq!(
            detail.entries.iter().map(|e| e.text.as_str()).collect::<Vec<_>>(),
            ["because of this"],
            "{heading}"
        );
    }
    // On the heading's own line, and without any heading.
    let s = signoff(&format!("{PHRASE}\n- [x] a\nAdditional details: because of this\n"));
    assert_eq!(
        s.detail.as_ref().map(|d| d.entries[0].text.clone()).as_deref(),
        Some("because of this")
    );
    let s = signoff(&format!("{PHRASE}\n- [x] a\n\nBecause of this\n"));
    let detail = s.detail.as_ref().map(|d| (d.heading, d.entries[0].text.as_str()));
    assert_eq!(detail, Some((DetailHeading::Implied, "Because of this")));
    assert_eq!(signoff(&format!("{PHRASE}\n- [x] a\n\nSigned: `me`\n")).detail, None);
    // What is nested belongs to its bullet, with its links; the next bullet is another entry.
    let s = signoff(&format!(
        "{PHRASE}\n- [x] a\nAdditional details:\n- one:\n  - two https://a.example/2\n\n  three\n- four\nfive\n\nsix\n"
    ));
    let entries: Vec<(u32, String)> = s
        .detail
        .iter()
        .flat_map(|d| &d.entries)
        .map(|e| (e.line, e.text.clone()))
        .collect();
    assert_eq!(
        entries,
        [
            (4, "one: two three".to_owned()),
            (8, "four five".to_owned()),
            (11, "six".to_owned())
        ]
    );
    assert_eq!(
        s.detail
            .iter()
            .flat_map(|d| d.links())
            .map(|l| l.line)
            .collect::<Vec<_>>(),
        [5]
    );
    // A sentence that mentions the section opens nothing.
    let s = signoff(&format!(
        "{PHRASE}\n- [x] a\n\nAdditional detail section below has more\n"
    ));
    assert_eq!(s.detail.map(|d| d.heading), Some(DetailHeading::Implied));
}

#[test]
fn placeholders_are_no_text() {
    let empty = signoff(&filled(&[], "- insert any additional info here"));
    let detail = empty.detail.as_ref().map(|d| (d.is_empty(), d.placeholder_left));
    assert_eq!(detail, Some((true, true)));
    let both = signoff(&filled(
        &[],
        "- insert any additional info here\n- https://recipes.vllm.ai/Org/Model",
    ));
    let detail = both.detail.as_ref().map(|d| (d.entries.len(), d.placeholder_left));
    assert_eq!(detail, Some((1, true)));
    let behind = signoff(&filled(
        &[],
        "- insert any additional info here: https://recipes.vllm.ai/Org/Model",
    ));
    assert_eq!(behind.detail.map(|d| d.links().count()), Some(1));
}

#[test]
fn signatures() {
    let cases = [
        ("Signed: `some-one`", Some(("some-one", false))),
        ("Signed: @some-one", Some(("some-one", false))),
        ("**Signed:** some-one", Some(("some-one", false))),
        (
            "signed : [some-one](https://github.com/some-one).",
            Some(("some-one", false)),
        ),
        (
            "Signed: `FILL_IN_GITHUB_USERNAME`",
            Some(("FILL_IN_GITHUB_USERNAME", true)),
        ),
        ("Signed:", Some(("", false))),
        ("Signed by me", None),
        ("The contract was signed: yes", None),
    ];
    for (line, expected) in cases {
        let s = signoff(&format!("{PHRASE}\n- [x] a\n\n{line}\n"));
        let found = s.signature.as_ref().map(|s| (s.name.as_str(), s.is_placeholder));
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn whose_text_it_is() {
    let body = filled(&[], "- fine");
    let as_author = |login: &str, is_bot, is_self| match recognise(
        &body,
        &AuthorInfo {
            login: login.into(),
            is_bot,
            is_self,
        },
        &rules(),
    ) {
        Recognition::SignOff(_) => None,
        Recognition::Refused(r) => Some(r),
    };
    assert_eq!(as_author("someone", false, false), None);
    assert_eq!(as_author("someone", false, true), Some(Refusal::OwnText));
    assert_eq!(as_author("x", true, false), Some(Refusal::Bot { login: "x".into() }));
    assert_eq!(
        as_author("actions[bot]", false, false),
        Some(Refusal::Bot {
            login: "actions[bot]".into()
        })
    );
    assert_eq!(
        as_author("robo-account", false, false),
        Some(Refusal::IgnoredLogin {
            login: "robo-account".into()
        })
    );
}

#[test]
fn verdicts_never_trigger() {
    let headlines = [
        "## ✅✅✅ **Verdict: PASS** ✅✅✅",
        "## ❌❌❌ **REJECTED** ❌❌❌",
        "## ⚠️ **Verdict: WARN** ⚠️",
        "## ⏸️ **Verdict: NEEDS CONFIRMATION** ⏸️",
        "❌❌❌ REJECTED ❌❌❌",
    ];
    let markers = [
        "<!-- codeowner-signoff-verify sha=0123456789abcdef0123456789abcdef01234567 -->",
        "<!-- codeowner-signoff-verify -->",
        "<!-- codeowner-signoff-verify signoff=issuecomment-12 sha=0123 -->",
        "<!-- codeowner-signoff-verify signoff=pullrequestreview-12 -->",
        "<!--  codeowner-signoff-verify signoff=discussion_r12 -->",
        "<!-- something older -->",
    ];
    // The worst case: a verdict that repeats the missing items, ready to paste, and the whole form.
    let tail = format!("@someone add these:\n\n{}\n- [x] and this\n", filled(&[], "- fine"));
    for headline in headlines {
        for marker in markers {
            let body = format!("{marker}\n{headline}\n\n{tail}");
            assert_eq!(refusal(&body), Refusal::Verdict, "{marker} {headline}");
            let body = format!("\n  {marker}\n\n{headline}\n\n{tail}").replace('\n', "\r\n");
            assert_eq!(refusal(&body), Refusal::Verdict, "{marker} {headline}");
        }
        assert_eq!(
            refusal(&format!("{headline}\n\n{tail}")),
            Refusal::Verdict,
            "{headline}"
        );
    }
    assert_eq!(refusal(&format!("{}\n{tail}", markers[0])), Refusal::Verdict);
}

#[test]
fn the_reminder_never_triggers() {
    let text = "Welcome! Ask the owners of your files for the form. For the checker to start, keep its first words, \
                `As a PR reviewer and CODEOWNER`, as they are.\n\n- [ ] Add the label\n- [x] Open the request\n\n\
                ---\n\n你好！请保留英文语句 As a PR reviewer and CODEOWNER。\n";
    assert_eq!(refusal(&format!("<!-- recipe-reminder -->\n{text}")), Refusal::Reminder);
    assert_eq!(
        refusal(&format!("<!-- recipe-reminder -->\n\n{}", filled(&[], "-"))),
        Refusal::Reminder
    );
    // Without its marker it is still only the phrase inside a line.
    let bare = refusal(text);
    assert!(matches!(bare, Refusal::PhraseInsideLine { line: 1, .. }), "{bare:?}");
    let unquoted = text.replace('`', "");
    assert!(matches!(refusal(&unquoted), Refusal::PhraseInsideLine { .. }));
}

#[test]
fn quotes_code_and_comments_do_not_count() {
    let form = filled(&[], "- fine");
    let prefixed = |p: &str| form.lines().map(|l| format!("{p}{l}\n")).collect::<String>();
    let cases: Vec<(String, Refusal)> = vec![
        (prefixed("> "), Refusal::PhraseOnlyInQuote { line: 1, whole: true }),
        (prefixed(">"), Refusal::PhraseOnlyInQuote { line: 1, whole: true }),
        (
            format!("> {PHRASE}\n\nThanks!"),
            Refusal::PhraseOnlyInQuote { line: 1, whole: false },
        ),
        (
            format!("> {PHRASE}\n\n- [x] my own list"),
            Refusal::PhraseOnlyInQuote { line: 1, whole: false },
        ),
        (
            format!("<blockquote>\n\n{form}\n</blockquote>"),
            Refusal::PhraseOnlyInQuote { line: 3, whole: true },
        ),
        (
            format!("```\n{form}```\n"),
            Refusal::PhraseOnlyInCode { line: 2, whole: true },
        ),
        (
            format!("~~~md\n{form}"),
            Refusal::PhraseOnlyInCode { line: 2, whole: true },
        ),
        (prefixed("    "), Refusal::PhraseOnlyInCode { line: 1, whole: true }),
        (
            format!("<pre>\n{form}</pre>\n"),
            Refusal::PhraseOnlyInCode { line: 2, whole: true },
        ),
        (
            format!("`a\n{PHRASE}` b\n\nnothing"),
            Refusal::PhraseOnlyInCode { line: 2, whole: false },
        ),
        (
            format!("<!--\n{form}-->\nLGTM"),
            Refusal::PhraseOnlyInComment { line: 2 },
        ),
        (
            format!("`{PHRASE}`\n- [x] a"),
            Refusal::PhraseInsideLine {
                line: 1,
                items_follow: true,
            },
        ),
        (
            format!("I say: {PHRASE}\n- [x] a"),
            Refusal::PhraseInsideLine {
                line: 1,
                items_follow: true,
            },
        ),
        (
            format!("- {PHRASE}\n  - [x] a"),
            Refusal::PhraseInsideLine {
                line: 1,
                items_follow: true,
            },
        ),
        (
            format!("~~{PHRASE}~~\n- [x] a"),
            Refusal::PhraseInsideLine {
                line: 1,
                items_follow: true,
            },
        ),
        (
            PHRASE.to_owned(),
            Refusal::NoItems {
                line: 1,
                in_code: false,
                in_quote: false,
            },
        ),
        (
            format!("- [x] above\n\n{PHRASE}\n\nLGTM"),
            Refusal::NoItems {
                line: 3,
                in_code: false,
                in_quote: false,
            },
        ),
        (
            format!("{PHRASE}\n```\n- [x] a\n```"),
            Refusal::NoItems {
                line: 1,
                in_code: true,
                in_quote: false,
            },
        ),
        (
            format!("{PHRASE}\n\n> - [x] a"),
            Refusal::NoItems {
                line: 1,
                in_code: false,
                in_quote: true,
            },
        ),
        (
            format!("{PHRASE}\n• a\n• b"),
            Refusal::NoItems {
                line: 1,
                in_code: false,
                in_quote: false,
            },
        ),
        (
            format!("{}\n- [x] a", PHRASE.to_uppercase()),
            Refusal::PhraseCase { line: 1 },
        ),
        (PHRASE.to_lowercase(), Refusal::NoPhrase),
        ("LGTM".to_owned(), Refusal::NoPhrase),
        (String::new(), Refusal::NoPhrase),
    ];
    for (body, expected) in cases {
        let found = refusal(&body);
        assert_eq!(found, expected, "{body}");
        let sentence = found.sentence();
        assert!(sentence.ends_with('.') && sentence.len() > 20, "{sentence}");
    }
    // Who plausibly meant to sign gets a hint.
    for attempt in [
        prefixed("> "),
        format!("```\n{form}```"),
        PHRASE.to_owned(),
        format!("I say: {form}"),
    ] {
        assert!(refusal(&attempt).is_attempt(), "{attempt}");
    }
    for other in [
        format!("> {PHRASE}\n\nThanks!"),
        "LGTM".to_owned(),
        format!("<!--\n{form}-->"),
    ] {
        assert!(!refusal(&other).is_attempt(), "{other}");
    }
}

#[test]
fn own_text_counts_beside_quotes() {
    let form = filled(&[], "- fine");
    for body in [
        format!("> {PHRASE}\n> - [ ] old\n\n{form}"),
        format!("```\n{PHRASE}\n- [ ] old\n```\n{form}"),
    ] {
        let s = signoff(&body);
        assert_eq!((s.items.len(), s.copies), (15, 1));
        assert!(s.items.iter().all(|i| i.is_ticked()));
    }
    // Quoted and coded items under the own phrase are not the reviewer's.
    let s = signoff(&format!(
        "{PHRASE}\n- [x] mine\n\n> - [x] theirs\n\n```\n- [x] example\n```\n<!-- - [x] hidden -->\n"
    ));
    assert_eq!(s.items.iter().map(|i| i.text.as_str()).collect::<Vec<_>>(), ["mine"]);
    // A new copy under an old one replaces it.
    let s = signoff(&format!("{}\n\nUpdated:\n\n{form}", filled(&["evals"], "- old")));
    assert_eq!((s.items.len(), s.copies), (15, 2));
    assert!(s.items.iter().all(|i| i.is_ticked()));
    assert_eq!(s.detail.map(|d| d.entries[0].text.clone()).as_deref(), Some("fine"));
}

#[test]
fn too_long_a_body_is_not_read() {
    let body = filled(&[], &"x".repeat(countersign_signoff::MAX_BODY_CHARS));
    assert!(matches!(refusal(&body), Refusal::TooLong { .. }));
    let wide = filled(&[], &"界".repeat(60_000));
    assert_eq!(signoff(&wide).items.len(), 15);
}

#[test]
fn links_are_those_the_reviewer_added() {
    let run = "https://github.com/Acme/Bench/actions/runs/77";
    let body = filled(&[], "- recipe: vllm-project/recipes#12, see [page](https://recipes.vllm.ai/Org/Model)\n- > https://recipes.vllm.ai/quoted\n\n`https://recipes.vllm.ai/code`\nrecipes.vllm.ai/Org/NoScheme")
        .replace("evals. Put the workflow run here.", &format!("evals. [Run 77]({run}/job/5)"))
        .replace("validation. Put the workflow run here.", "validation — https://board.example.org/x?unofficialRun=78")
        .replace("Signed:", "Thanks to https://recipes.vllm.ai/thanks\n\nSigned:")
        + "\nhttps://recipes.vllm.ai/after\n";
    let s = signoff(&body);
    let found: Vec<(Section, String)> = s
        .links_beyond_template(&template())
        .into_iter()
        .map(|b| (b.section, b.link.url))
        .collect();
    let expected = [
        (
            Section::Checklist,
            "https://board.example.org/x?unofficialRun=78".to_owned(),
        ),
        (Section::Checklist, format!("{run}/job/5")),
        (Section::Detail, "https://recipes.vllm.ai/Org/Model".to_owned()),
        (
            Section::Detail,
            "https://github.com/vllm-project/recipes/pull/12".to_owned(),
        ),
        (Section::Detail, "https://recipes.vllm.ai/thanks".to_owned()),
        (Section::AfterSignature, "https://recipes.vllm.ai/after".to_owned()),
    ];
    let mut sorted = found.clone();
    sorted.sort_by_key(|f| f.1.clone());
    let mut wanted = expected.to_vec();
    wanted.sort_by_key(|f| f.1.clone());
    assert_eq!(sorted, wanted);
    let detail = s.detail.as_ref().unwrap();
    let ignored: Vec<(WhyIgnored, &str)> = detail
        .ignored_links
        .iter()
        .map(|i| (i.why, i.link.url.as_str()))
        .collect();
    assert_eq!(
        ignored,
        [
            (WhyIgnored::Quote, "https://recipes.vllm.ai/quoted"),
            (WhyIgnored::Code, "https://recipes.vllm.ai/code"),
            (WhyIgnored::NoScheme, "https://recipes.vllm.ai/Org/NoScheme"),
        ]
    );
    let evals = &s.items[3].links[0];
    assert_eq!(evals.run().and_then(|r| r.job), Some(5));
    assert!(evals.run().is_some_and(|r| r.is_in("acme/bench")));
    assert_eq!(
        (evals.source, evals.label.as_deref(), evals.line),
        (LinkSource::Markdown, Some("Run 77"), 5)
    );
    assert_eq!(s.items[2].links[0].run().map(|r| r.run_id), Some(78));
    // Untouched template text contributes nothing, whatever the reviewer changed around it.
    let copied = signoff(&filled(&["cookbook"], "- insert any additional info here"));
    assert_eq!(copied.links_beyond_template(&template()), []);
}

#[test]
fn digests_see_what_matters_and_nothing_else() {
    let base = filled(
        &["golden"],
        "- golden: not agentic\n- run https://github.com/a/b/actions/runs/5",
    );
    let digest = signoff(&base).digest_input();
    let same = [
        base.replace('\n', "\r\n"),
        base.replace("[x]", "[X]"),
        base.replace("- [", "* ["),
        base.replace("[ ]", "[]"),
        base.lines().map(|l| format!("{l}   \n")).collect(),
        format!("> a quote\n\n{base}"),
    ];
    for body in same {
        assert_eq!(signoff(&body).digest_input(), digest, "{body}");
    }
    let other = [
        base.replacen("[x]", "[ ]", 1),
        base.replace("runs/5", "runs/6"),
        base.replace("not agentic", "agentic"),
        base.replace("FILL_IN_GITHUB_USERNAME", "me"),
        base.replace("evals.", "evals. ok"),
        format!("{base}\nP.S. one more\n"),
    ];
    for body in other {
        assert_ne!(signoff(&body).digest_input(), digest, "{body}");
    }
    assert!(matches!(recognise(&base, &person(), &rules()), Recognition::SignOff(_)));
}
