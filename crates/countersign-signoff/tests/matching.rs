//! Sign-offs against a template: what is missing, what is open, what is explained. Shapes as in the real cases; the
//! numbers in the comments are those of the pull requests where each was seen.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use common::{IDS, TEMPLATE, filled, rules, signoff, template};
use countersign_signoff::{Explanation, How, Place, Template, TemplateError, TemplateMatch};

fn compare(body: &str) -> TemplateMatch {
    template().compare(&signoff(body), &rules())
}

fn missing(found: &TemplateMatch) -> Vec<&str> {
    found.missing.iter().map(|m| IDS[m.template]).collect()
}

fn unticked(found: &TemplateMatch) -> Vec<(&str, &Explanation)> {
    found
        .unticked
        .iter()
        .map(|u| (IDS[u.template], &u.explanation))
        .collect()
}

fn named(found: &TemplateMatch) -> Vec<(&str, bool, Option<Place>)> {
    let one = |u: &countersign_signoff::UntickedItem| match &u.explanation {
        Explanation::Named { has_reason, place, .. } => (IDS[u.template], *has_reason, Some(*place)),
        _ => (IDS[u.template], false, None),
    };
    found.unticked.iter().map(one).collect()
}

#[test]
fn the_template_is_read() {
    let t = template();
    assert_eq!(
        t.items
            .iter()
            .map(|i| i.id.as_deref().unwrap_or("?"))
            .collect::<Vec<_>>(),
        IDS
    );
    assert_eq!(
        (t.phrase_line, t.items[0].line, t.items[11].parent),
        (Some(7), 8, Some(10))
    );
    assert_eq!(
        t.items[11].markdown,
        TEMPLATE.lines().find(|l| l.contains("**MERGED**")).unwrap()
    );
    assert_eq!(t.items.iter().filter(|i| i.conditional).count(), 1);
    // The same without a fence, as it was once.
    let bare = Template::parse(&TEMPLATE.replace("```\n", "\n"), &rules()).unwrap();
    assert_eq!(
        bare.items.iter().map(|i| &i.text).collect::<Vec<_>>(),
        t.items.iter().map(|i| &i.text).collect::<Vec<_>>()
    );
    assert!(bare.text.contains("### Additional detail section:") && bare.text.ends_with("`FILL_IN_GITHUB_USERNAME`"));
    let tilde = Template::parse(&TEMPLATE.replace("```", "~~~~").replace('\n', "\r\n"), &rules()).unwrap();
    assert_eq!(tilde.items, t.items);
    // A heading of another name: the form is still found by its phrase.
    let renamed = Template::parse(&TEMPLATE.replace("## Template", "## The form"), &rules()).unwrap();
    assert_eq!(renamed.items.len(), 15);
}

#[test]
fn broken_templates_say_what_to_do() {
    let none = Template::parse(
        "# Form\n\n## Template\n\nTo be written.\n\n## Example\n\n- [x] a\n",
        &rules(),
    );
    assert_eq!(none, Err(TemplateError::NoItems { line: Some(3) }));
    assert!(none.unwrap_err().to_string().contains("line 3"));
    assert_eq!(
        Template::parse("", &rules()),
        Err(TemplateError::NoItems { line: None })
    );
    let long = Template::parse(&"x".repeat(70_000), &rules());
    assert!(matches!(long, Err(TemplateError::TooLong { .. })));
    let other = Template::parse(&TEMPLATE.replace("As a PR reviewer", "As the reviewer"), &rules()).unwrap();
    assert_eq!(other.phrase_line, None);
}

/// #2643, #2610: one item missing, everything else clean; owner in other case in the links.
#[test]
fn one_missing_item_is_named_and_can_be_pasted() {
    for (i, id) in IDS.iter().enumerate() {
        let line = template().items[i].markdown.clone();
        let body = filled(&[], "- fine").replace(&format!("{}\n", line.replace("[ ]", "[x]")), "");
        let found = compare(&body);
        assert_eq!(missing(&found), [*id]);
        assert_eq!(
            (found.paste(), found.missing[0].title.as_str(), found.extra.len()),
            (line.clone(), *id, 0)
        );
        // Pasted where people paste: at the end, behind the signature.
        let mended = format!("{body}\n{}\n", found.paste().replace("[ ]", "[x]"));
        assert!(compare(&mended).is_complete(), "{id}");
    }
}

/// Two items that begin alike are told apart in any order, and one does not stand in for the other.
#[test]
fn similar_items_are_not_confused() {
    let images = template().items[8].markdown.replace("[ ]", "[x]");
    let engine = template().items[9].markdown.replace("[ ]", "[x]");
    let body = filled(&[], "- fine");
    let swapped = body
        .replace(&images, "@")
        .replace(&engine, &images)
        .replace('@', &engine);
    let found = compare(&swapped);
    assert!(found.is_complete());
    let pairs: Vec<(usize, usize)> = found.matched.iter().map(|m| (m.template, m.signoff)).collect();
    assert_eq!(pairs[8..10], [(8, 9), (9, 8)]);
    // Also without rules, and with only one of them there, twice or reworded.
    for known in [true, false] {
        let mut rules = rules();
        if !known {
            rules.items.clear();
        }
        let t = Template::parse(TEMPLATE, &rules).unwrap();
        let run = |body: &str| {
            let found = t.compare(&signoff(body), &rules);
            found.missing.iter().map(|m| IDS[m.template]).collect::<Vec<_>>()
        };
        assert_eq!(run(&swapped), [""; 0], "{known}");
        assert_eq!(run(&body.replace(&format!("{images}\n"), "")), ["images"], "{known}");
        assert_eq!(run(&body.replace(&format!("{engine}\n"), "")), ["engine"], "{known}");
    }
}

/// #1946, #1917, #2000: a form retold in few words, indented, with the runs behind.
#[test]
fn shortened_items_are_recognised() {
    let body = "  As a PR reviewer and CODEOWNER, I looked at this and:
  - [x] This is the latest version of FORM.md
  - [x] General code quality is fine
  - [x] Validation: https://board.example.org/x?unofficialRun=5
  - [x] Evals pass: https://board.example.org/y?unofficialRun=5
  - [x] Engines submitted before Vendor: this is the open engine
  - [ ] Single-node recipes as in the official ones:
  - [x] If any criteria is not met, reasons below.

  Signed: `someone`
";
    let s = signoff(body);
    let found = template().compare(&s, &rules());
    assert_eq!(
        missing(&found),
        [
            "chat",
            "golden",
            "models",
            "architecture",
            "images",
            "recipe-merged",
            "patch",
            "append"
        ]
    );
    assert_eq!(found.extra, [0; 0]);
    assert_eq!(unticked(&found), [("recipe", &Explanation::None)]);
    assert!(found.matched.iter().any(|m| matches!(m.how, How::Similar { .. })));
}

#[test]
fn own_items_of_the_reviewer_answer_nothing() {
    let body = filled(&[], "- fine");
    let golden = template().items[5].markdown.replace("[ ]", "[x]");
    for own in [
        "Ran the agentic loads myself",
        "Looked at this change and saw that it is fine",
        "I like cake",
        "LGTM",
    ] {
        let swapped = body.replace(&golden, &format!("- [x] {own}"));
        let found = compare(&swapped);
        assert_eq!(missing(&found), ["golden"], "{own}");
        assert_eq!(found.extra, [5], "{own}");
    }
}

/// A tick on the old wording of an item whose meaning changed is no tick on the new one, where the rules say so.
#[test]
fn a_changed_meaning_needs_the_new_words() {
    let old = filled(&[], "- fine").replace(
        "linked and **MERGED**; an open one does not do",
        "linked and open; a draft does not do",
    );
    assert_eq!(missing(&compare(&old)), ["recipe-merged"]);
    let mut lenient = rules();
    lenient.items.iter_mut().for_each(|i| i.must.clear());
    let t = Template::parse(TEMPLATE, &lenient).unwrap();
    assert_eq!(t.compare(&signoff(&old), &lenient).missing, []);
}

/// #2118: the form as it is, nothing ticked.
#[test]
fn an_empty_form_is_blank() {
    let s = signoff(&template().text);
    assert!(s.is_blank());
    let found = template().compare(&s, &rules());
    assert_eq!(found.unticked.len(), 15);
    assert!(found.unticked.iter().all(|u| u.explanation == Explanation::None));
    assert!(!found.is_complete());
}

/// #2576, #2187: open boxes and not a word about them.
#[test]
fn open_without_a_word() {
    let body = filled(&[], "- insert any additional info here")
        .replace("- [x] Saw that nothing patches", "- [] Saw that nothing patches");
    assert_eq!(unticked(&compare(&body)), [("patch", &Explanation::None)]);
    let body = filled(
        &["golden", "chat templates"],
        "- Upstream: https://recipes.vllm.ai/Org/Model",
    );
    assert_eq!(
        unticked(&compare(&body)),
        [
            ("chat", &Explanation::GeneralOnly),
            ("golden", &Explanation::GeneralOnly)
        ]
    );
}

/// #2139 (second), #2238, #2316, #2340, #2159: open boxes, each explained below.
#[test]
fn open_and_explained_in_the_detail_section() {
    let detail = "- **Speculative decoding**: these configs have none, so both boxes are left open.
- Golden acceptance: not applicable, as nothing here is agentic.
- Validation — https://github.com/acme/bench/actions/runs/5";
    let found = compare(&filled(&["golden", "chat templates", "above criteria"], detail));
    assert_eq!(
        named(&found),
        [
            ("chat", true, Some(Place::Detail)),
            ("golden", true, Some(Place::Detail)),
            ("conditional", false, None),
        ]
    );
    assert!(found.is_complete() == found.unticked.iter().all(|u| u.conditional));
    assert!(!found.is_complete());
    let Explanation::Named { excerpt, line, .. } = &found.unticked[1].explanation else {
        panic!("named")
    };
    assert!(
        excerpt.starts_with("Golden acceptance: not applicable") && *line == 20,
        "{line} {excerpt}"
    );
}

#[test]
fn explanations_of_many_shapes() {
    let cases: &[(&str, &str, bool)] = &[
        // One line for the parent covers the nested box.
        ("recipe documented", "- Recipe: disagg, N/A", true),
        ("MERGED", "- Recipe: disagg, N/A", true),
        (
            "MERGED",
            "- This is a multi-node change, so no upstream page is needed.",
            true,
        ),
        (
            "through its evals",
            "- 评估：本提交不适用 / Evals: not applicable",
            true,
        ),
        ("golden", "#### Agentic\n\nNot applicable here.", true),
        ("golden", "**Agentic loads**\n\nThere are none.", true),
        ("golden", "Not applicable:\n- golden curve\n- append-only", true),
        ("golden", "- Left open:\n  - golden curve\n  - append-only", true),
        (
            "append-only",
            "Scope. Two rows. No point is append-only here; all are new.",
            true,
        ),
        // A mention in passing is no explanation.
        (
            "append-only",
            "- The runs of this week are all green, as anybody can see, append-only points too.",
            false,
        ),
        ("golden", "- N/A", false),
        ("golden", "- see above", false),
        ("golden", "- Evals: not applicable, as the lanes are skipped.", false),
        (
            "append-only",
            "- The validation run is green, and the recipe is upstream",
            false,
        ),
    ];
    for (open, detail, expected) in cases {
        let found = compare(&filled(&[open], detail));
        assert_eq!(found.unticked.len(), 1, "{open} {detail}");
        assert_eq!(
            found.unticked[0].explanation.is_named(),
            *expected,
            "{open} {detail}: {found:?}"
        );
        assert!(
            *expected || found.unticked[0].explanation == Explanation::GeneralOnly,
            "{detail}"
        );
    }
}

/// #2172: open, with a range and the run behind it on the same line.
#[test]
fn explained_on_the_item_itself() {
    let run = "https://github.com/acme/bench/actions/runs/5";
    let cases = [
        (format!("Put the workflow run here. 0.951 to 0.963, {run}"), true),
        (format!("Put the workflow run here. {run}"), true),
        ("Put the workflow run here. N/A".to_owned(), true),
        (
            "Put the workflow run here.\n  - not run: the lane is skipped".to_owned(),
            true,
        ),
        (
            "Put the workflow run here.\n  not run, as the lane is skipped".to_owned(),
            true,
        ),
        ("Put the workflow run here.".to_owned(), false),
        ("Put the workflow run here. ok".to_owned(), false),
    ];
    for (text, expected) in cases {
        let body = filled(&["evals. Put"], "- insert any additional info here")
            .replace("evals. Put the workflow run here.", &format!("evals. {text}"));
        let found = compare(&body);
        let place = named(&found)[0].2;
        assert_eq!(place == Some(Place::Item), expected, "{text}: {found:?}");
    }
    let marked = filled(&[], "-").replace("- [x] For agentic", "- [n/a] For agentic");
    assert_eq!(named(&compare(&marked)), [("golden", true, Some(Place::Item))]);
}

#[test]
fn a_struck_item_is_not_ticked() {
    let body = filled(&[], "- fine").replace(
        "- [x] With `append-only: true`: old points stay as they are",
        "- [x] ~~With `append-only: true`: old points stay as they are~~ not used",
    );
    let found = compare(&body);
    assert_eq!(named(&found), [("append", true, Some(Place::Item))]);
    assert_eq!(found.missing, []);
}

#[test]
fn the_same_item_twice_is_open_if_one_is() {
    let line = template().items[3].markdown.clone();
    for body in [
        format!("{}\n{line}\n", filled(&[], "-")),
        filled(&[], "-").replace("and:\n", &format!("and:\n{line}\n")),
    ] {
        let found = compare(&body);
        assert_eq!(unticked(&found).iter().map(|u| u.0).collect::<Vec<_>>(), ["evals"]);
        assert_eq!(found.extra.len(), 1);
    }
}
