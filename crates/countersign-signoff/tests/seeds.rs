//! The real threads: who signs, what is ticked, what is explained, and that nothing else there is a sign-off. The
//! copies lost their check boxes and list marks, so they are put back here; which boxes were open is known from the
//! verdicts in the same threads.

#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test may stop, and says what it skips"
)]

mod common;

use countersign_signoff::{Explanation, Recognition, SignOff, Template, recognise};

struct Post {
    author: String,
    body: String,
}

fn posts(name: &str) -> Option<Vec<Post>> {
    let folder = common::shared("seeds")?;
    let file = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_string_lossy().starts_with(name))
        .unwrap();
    // The copy's links go through a proxy; the original ones did not.
    let text = std::fs::read_to_string(file).unwrap();
    let proxied = text
        .lines()
        .find_map(|l| l.split("https://github.").nth(1))
        .map(|r| r.split('/').next().unwrap());
    let text = match proxied.filter(|p| *p != "com") {
        Some(p) => text.replace(&format!("github.{p}"), "github.com"),
        None => text,
    };
    let mut posts: Vec<Post> = Vec::new();
    for line in text.lines() {
        let author = line
            .strip_prefix('[')
            .and_then(|l| l.strip_suffix(']'))
            .filter(|a| !a.contains([' ', '(']));
        match (author, posts.last_mut()) {
            (Some(a), _) => posts.push(Post {
                author: a.to_owned(),
                body: String::new(),
            }),
            (None, Some(p)) => {
                p.body.push_str(line);
                p.body.push('\n');
            }
            (None, None) => {}
        }
    }
    Some(posts)
}

/// Puts the marks back: boxes before the detail section, bullets in it. `open` are beginnings of what was not
/// ticked; `boxed` says whether the nested line had a box.
fn restore(body: &str, open: &[&str], boxed: bool) -> String {
    let mut out = String::new();
    let mut detail = false;
    for line in body.lines() {
        let trimmed = line.trim_start();
        if trimmed.starts_with("Additional detail section") {
            detail = true;
            out.push_str("### ");
        }
        let indent = &line[..line.len() - trimmed.len()];
        match trimmed.strip_prefix("• ") {
            Some(text) if !detail && (boxed || indent.is_empty()) => {
                let mark = if open.iter().any(|o| text.contains(o)) {
                    ' '
                } else {
                    'x'
                };
                out.push_str(&format!("{indent}- [{mark}] {text}\n"));
            }
            Some(text) => out.push_str(&format!("{indent}- {text}\n")),
            None => out.push_str(&format!("{line}\n")),
        }
    }
    out
}

fn template(version: &str) -> Template {
    let path = common::shared(&format!("inferencex/history/PR_REVIEW_CHECKLIST/{version}.md")).unwrap();
    Template::parse(&std::fs::read_to_string(path).unwrap(), &common::rules()).unwrap()
}

fn sign_offs(name: &str) -> Option<(Vec<Post>, Vec<Post>)> {
    let phrase = common::rules().phrase;
    Some(
        posts(name)?
            .into_iter()
            .partition(|p| p.body.trim_start().starts_with(&phrase)),
    )
}

fn unticked(template: &Template, signed: &SignOff) -> Vec<(String, Explanation)> {
    let found = template.compare(signed, &common::rules());
    assert_eq!(found.missing, []);
    found
        .unticked
        .into_iter()
        .map(|u| (template.items[u.template].id.clone().unwrap(), u.explanation))
        .collect()
}

fn assert_explained(found: &[(String, Explanation)], ids: &[&str]) {
    assert_eq!(found.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ids);
    for (id, explanation) in found {
        assert!(explanation.is_named(), "{id}: {explanation:?}");
    }
}

#[test]
fn first_thread_has_no_sign_off() {
    let Some(all) = posts("000") else { return };
    assert!(all.len() > 4);
    for post in all {
        // Read as a person's, so that it is the text that decides and not the bot's name.
        let body = restore(&post.body, &[], true);
        assert!(
            recognise(&body, &common::person(), &common::rules())
                .signoff()
                .is_none(),
            "{}",
            post.author
        );
    }
}

#[test]
fn second_thread() {
    let Some((signed, others)) = sign_offs("001") else {
        return;
    };
    assert_eq!(signed.len(), 1);
    let body = restore(
        &signed[0].body,
        &["passes evals", "single-node recipes are similar"],
        false,
    );
    let s = common::signoff(&body);
    assert_eq!(s.items.len(), 10);
    assert_explained(&unticked(&template("2026-07-04-6b40bda8"), &s), &["evals", "recipe"]);
    assert!(s.signature.as_ref().unwrap().names(&signed[0].author));
    // One run, named twice in two languages, with wide punctuation behind one of them.
    let runs: Vec<u64> = s
        .detail
        .as_ref()
        .unwrap()
        .links()
        .filter_map(|l| l.run())
        .map(|r| r.run_id)
        .collect();
    assert_eq!(runs, [29_056_354_557; 2]);
    assert_eq!(s.detail.as_ref().unwrap().entries.len(), 5);
    for post in others {
        let body = restore(&post.body, &[], true);
        let found = recognise(&body, &common::person(), &common::rules());
        assert!(
            matches!(found, Recognition::Refused(r) if !r.is_attempt()),
            "{}: {body}",
            post.author
        );
    }
}

#[test]
fn third_thread() {
    let Some((signed, _)) = sign_offs("002") else { return };
    assert_eq!(signed.len(), 1);
    let open = [
        "For agentic workloads",
        "recipe in this PR is documented",
        "I linked the corresponding",
    ];
    let s = common::signoff(&restore(&signed[0].body, &open, true));
    assert_eq!(s.items.len(), 14);
    let template = template("2026-08-10-f559835a");
    assert_explained(&unticked(&template, &s), &["golden", "recipe", "recipe-merged"]);
    // The verdict's point: no upstream recipe is linked.
    let beyond = s.links_beyond_template(&template);
    assert!(beyond.iter().all(|b| b.link.kind.is_none()), "{beyond:?}");
    let runs: Vec<u64> = beyond.iter().filter_map(|b| b.link.run()).map(|r| r.run_id).collect();
    assert_eq!(runs, [31_432_304_739; 2]);
}

#[test]
fn fourth_thread() {
    let Some((signed, others)) = sign_offs("003") else {
        return;
    };
    assert_eq!(signed.len(), 2);
    let first = restore(&signed[0].body, &["For agentic workloads"], true);
    let first = common::signoff(&first);
    assert_eq!(first.items.len(), 13);
    assert_explained(&unticked(&template("2026-07-14-9aeaa75d"), &first), &["golden"]);
    // Later the template gained an item, which the first one lacks and the second one has.
    let newer = template("2026-08-03-b4be78a2");
    let found = newer.compare(&first, &common::rules());
    let missing: Vec<_> = found.missing.iter().map(|m| m.id.clone().unwrap()).collect();
    assert_eq!(missing, ["models"]);
    let second = common::signoff(&restore(&signed[1].body, &["For agentic workloads"], true));
    assert_explained(&unticked(&newer, &second), &["golden"]);
    let beyond = second.links_beyond_template(&newer);
    let recipes: Vec<&str> = beyond
        .iter()
        .filter(|b| b.link.kind.is_some())
        .map(|b| b.link.url.as_str())
        .collect();
    assert_eq!(recipes, ["https://github.com/sgl-project/sglang/pull/32945"]);
    let runs: Vec<u64> = beyond.iter().filter_map(|b| b.link.run()).map(|r| r.run_id).collect();
    assert!(runs.len() >= 2 && runs.iter().all(|r| *r == 30_506_346_629), "{runs:?}");
    assert_ne!(first.digest_input(), second.digest_input());
    for post in others {
        let body = restore(&post.body, &[], true);
        assert!(
            recognise(&body, &common::person(), &common::rules())
                .signoff()
                .is_none(),
            "{}",
            post.author
        );
    }
}

#[test]
fn commands_of_the_threads() {
    let rules = common::command_rules();
    let runs = |name: &str| -> Option<Vec<Option<u64>>> {
        let mut out = Vec::new();
        for post in posts(name)? {
            let found = countersign_signoff::commands(&post.body, &rules);
            out.extend(found.commands.into_iter().map(|c| match c.kind {
                countersign_signoff::CommandKind::Reuse { run, .. } => run,
                other => panic!("{other:?}"),
            }));
        }
        Some(out)
    };
    let Some(second) = runs("001") else { return };
    assert_eq!(second, [None]);
    assert_eq!(runs("002").unwrap(), [Some(31_432_304_739), None, None, None, None]);
    // The comment that revokes a command mentions it, and is none.
    assert_eq!(runs("003").unwrap(), [Some(30_506_346_629)]);
    assert_eq!(runs("000").unwrap(), []);
}
