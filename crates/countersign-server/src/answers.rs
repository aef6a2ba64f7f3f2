//! Answers to questions: `explain` and `help`. Each question gets one comment of ours, known by its own marker.

use countersign_core::text::{code, fenced_block};
use countersign_core::{Row, Text, Verdict, text};
use countersign_policy::Policy;
use countersign_signoff::CommandKind;

/// A question that was asked in a comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    /// Id of the comment.
    pub(crate) comment: u64,
    /// What is asked, in order and without repeats.
    pub(crate) asked: Vec<CommandKind>,
}

/// The most questions of one comment that are answered.
const MOST: usize = 10;

/// The questions among the commands of one comment.
pub(crate) fn question(comment: u64, commands: &[countersign_signoff::Command]) -> Option<Question> {
    let mut asked: Vec<CommandKind> = Vec::new();
    for command in commands {
        let is_question = matches!(command.kind, CommandKind::Explain { .. } | CommandKind::Help);
        if is_question && asked.len() < MOST && !asked.contains(&command.kind) {
            asked.push(command.kind.clone());
        }
    }
    (!asked.is_empty()).then_some(Question { comment, asked })
}

/// The marker of an answer: its first line.
pub(crate) fn marker(word: &str, comment: u64) -> String {
    format!("<!-- {word}-answer to=issuecomment-{comment} -->")
}

/// The answer, from the newest verdict of the pull request, if there is one.
pub(crate) fn answer(question: &Question, policy: &Policy, verdict: Option<&Verdict>) -> String {
    let mut out = marker(&policy.publish.comment.marker, question.comment);
    out.push('\n');
    for asked in &question.asked {
        match asked {
            CommandKind::Explain { check } => explain(&mut out, check, policy, verdict),
            _ => help(&mut out, policy),
        }
    }
    out
}

fn line(out: &mut String, text: Text) {
    out.push_str(&text.markdown());
    out.push_str("\n\n");
}

fn help(out: &mut String, policy: &Policy) {
    let words = &policy.commands.words;
    let authority = &policy.commands.authority;
    let associations: Vec<&str> = authority.reuse_associations.iter().map(|one| one.word()).collect();
    line(
        out,
        text!["Commands are whole lines of a comment on this pull request:"],
    );
    let mut item = |shown: String, what: Text| {
        out.push_str("- ");
        out.push_str(&text![code(shown), " — "].and(what).markdown());
        out.push('\n');
    };
    for reuse in &words.reuse {
        let run = if reuse.run_required { " RUN" } else { " [RUN]" };
        let what = text!["reuse the results of a run; for ", associations.join(", ")];
        item(format!("{}{run}", reuse.name), what);
    }
    let app = &words.app;
    item(format!("{app} verify"), text!["judge the newest sign-off again"]);
    item(
        format!("{app} explain CHECK"),
        text!["what a check looks at, and what it found; by number or name"],
    );
    let role = |role: countersign_core::evidence::Role| format!("{role:?}").to_ascii_lowercase();
    item(
        format!("{app} confirm CHECK REASON"),
        text![
            "answer a check's question with yes; from role ",
            role(authority.confirm_role)
        ],
    );
    item(
        format!("{app} override CHECK REASON"),
        text!["lift a FAIL; from role ", role(authority.override_role)],
    );
    item(format!("{app} help"), text!["this list"]);
    out.push('\n');
}

fn explain(out: &mut String, asked: &str, policy: &Policy, verdict: Option<&Verdict>) {
    let entry = policy.checks.iter().find(|entry| {
        entry.number.to_string() == asked
            || entry.slug.eq_ignore_ascii_case(asked)
            || entry.slug.split('+').any(|slug| slug.eq_ignore_ascii_case(asked))
    });
    let Some(entry) = entry else {
        let known: Vec<String> = policy
            .checks
            .iter()
            .map(|entry| format!("{} {}", entry.number, entry.slug))
            .collect();
        line(out, text!["There is no check ", code(asked), "."]);
        line(out, text!["→ Ask for one of these: ", known.join(", "), "."]);
        return;
    };
    line(out, text!["Check ", entry.number, " (", entry.name.clone(), ")"]);
    for slug in entry.slug.split('+') {
        match countersign_checks::checks::find(slug) {
            Some(check) => {
                let doc = check.doc();
                line(
                    out,
                    text![section(&doc, None), ". ", section(&doc, Some("What it checks"))],
                );
                line(out, text!["→ ", section(&doc, Some("How to fix"))]);
            }
            None => line(out, text!["This version does not have the check ", code(slug), "."]),
        }
    }
    match verdict.and_then(|verdict| verdict.rows.iter().find(|row| row.number == entry.number)) {
        Some(row) => found(out, row),
        None => line(out, text!["There is no verdict yet on this pull request."]),
    }
}

/// A section of a check's documentation on one line; without a name, its title.
fn section(doc: &str, name: Option<&str>) -> String {
    let lines: Vec<&str> = match name {
        None => doc.lines().take(1).collect(),
        Some(name) => doc
            .lines()
            .skip_while(|line| line.strip_prefix("## ") != Some(name))
            .skip(1)
            .take_while(|line| !line.starts_with('#') && !line.starts_with("Source:"))
            .collect(),
    };
    lines.join(" ").trim().to_owned()
}

fn found(out: &mut String, row: &Row) {
    let outcome = &row.report.outcome;
    line(
        out,
        text!["In the newest verdict: ", outcome.kind().word(), " — "].and(row.report.reason.clone()),
    );
    for finding in outcome.findings().iter().take(20) {
        line(out, finding.message.clone());
        line(out, text!["→ "].and(finding.remedy.clone()));
        if let Some(paste) = &finding.paste {
            out.push_str(&fenced_block(paste));
            out.push_str("\n\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> Policy {
        let text = include_str!("../../countersign-cli/demo/policy.yaml");
        countersign_policy::load("demo", &|_: &str| Ok::<_, String>(text.to_owned()))
            .unwrap()
            .policy
    }

    fn asked(body: &str) -> String {
        let policy = policy();
        let commands = countersign_signoff::commands(body, &policy.commands.words).commands;
        answer(&question(5, &commands).unwrap(), &policy, None)
    }

    #[test]
    fn help_names_every_command_and_who_may() {
        let text = asked("/countersign help");
        assert!(
            text.starts_with("<!-- demo-verdict-answer to=issuecomment-5 -->\n"),
            "{text}"
        );
        for word in [
            "/use RUN",
            "/reuse-run [RUN]",
            "verify",
            "explain",
            "confirm",
            "override",
            "COLLABORATOR",
            "maintain",
            "admin",
        ] {
            assert!(text.contains(word), "{word} in {text}");
        }
    }

    #[test]
    fn explain_takes_numbers_and_names_and_lists_them_where_there_is_none() {
        for name in ["2", "evals"] {
            let text = asked(&format!("/countersign explain {name}"));
            assert!(
                text.contains("reach the bar") && text.contains("→ Re\\-run") || text.contains("→ Re-run"),
                "{text}"
            );
            assert!(text.contains("no verdict yet"), "{text}");
        }
        let text = asked("/countersign explain nonsense");
        assert!(
            text.contains("There is no check `nonsense`") && text.contains("5 template"),
            "{text}"
        );
    }

    #[test]
    fn commands_that_are_no_questions_have_no_answer() {
        let policy = policy();
        let commands = countersign_signoff::commands("/countersign verify\n/use 5", &policy.commands.words).commands;
        assert_eq!(question(5, &commands), None);
        let twice =
            countersign_signoff::commands("/countersign help\n/countersign help", &policy.commands.words).commands;
        assert_eq!(question(5, &twice).unwrap().asked.len(), 1);
    }
}
