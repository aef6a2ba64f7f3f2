//! The verdict comment. A tired reader gets it in 15 seconds: headline, what blocks, what to do.

use serde::{Deserialize, Serialize};

use crate::ids::{CommitSha, SignoffKey};
use crate::outcome::OutcomeKind;
use crate::text::{Part, Text, escape_markdown, fenced_block};
use crate::verdict::{Decision, Row, Verdict};

/// GitHub's limit for a comment, in characters.
const COMMENT_LIMIT: usize = 65_536;

/// The policy's choices for the comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CommentOptions {
    /// The word in the hidden first line by which a comment is known as a verdict. Letters, digits, hyphens.
    pub marker: String,
    /// Failing rows stand first; else the policy's order is kept.
    #[serde(default)]
    pub failing_first: bool,
    /// PASS and N/A rows are folded into one `<details>`.
    #[serde(default)]
    pub fold_fine_rows: bool,
}

/// The first line of a verdict comment.
#[must_use]
pub fn marker(word: &str, signoff: &SignoffKey, head: &CommitSha) -> String {
    format!("<!-- {word} signoff={signoff} sha={head} -->")
}

/// Reads a marker back: the sign-off and head that a comment speaks of. Only ever asked of comments by our own App.
#[must_use]
pub fn marker_of(word: &str, body: &str) -> Option<(SignoffKey, CommitSha)> {
    let inner = body
        .lines()
        .next()?
        .trim_end()
        .strip_prefix("<!-- ")?
        .strip_prefix(word)?
        .strip_prefix(' ')?
        .strip_suffix(" -->")?;
    let (signoff, sha) = inner.split_once(' ')?;
    Some((
        signoff.strip_prefix("signoff=")?.parse().ok()?,
        sha.strip_prefix("sha=")?.parse().ok()?,
    ))
}

fn headline(decision: Decision) -> &'static str {
    match decision {
        Decision::Pass => "## ✅✅✅ **Verdict: PASS** ✅✅✅",
        Decision::Rejected => "## ❌❌❌ **REJECTED** ❌❌❌",
        Decision::Warn => "## ⚠️ **Verdict: WARN** ⚠️",
        Decision::NeedsConfirmation | Decision::Undecided => "## ⏸️ **Verdict: NEEDS CONFIRMATION** ⏸️",
    }
}

/// The whole comment. `details_url` leads to the full evidence, where a server shows it.
#[must_use]
pub fn comment(verdict: &Verdict, options: &CommentOptions, details_url: Option<&str>) -> String {
    let mut out = marker(&options.marker, &verdict.signoff, &verdict.head_sha);
    out.push('\n');
    out.push_str(headline(verdict.decision));
    out.push_str("\n\n");
    if let Some(line) = lead_line(verdict) {
        out.push_str(&line);
        out.push_str("\n\n");
    }
    let fine = |row: &Row| {
        matches!(
            row.report.outcome.kind(),
            OutcomeKind::Pass | OutcomeKind::NotApplicable
        )
    };
    let mut rows: Vec<&Row> = verdict.rows.iter().collect();
    if options.failing_first {
        rows.sort_by_key(|row| if fine(row) { 1 } else { 0 });
    }
    let (folded, open): (Vec<&Row>, Vec<&Row>) = rows.into_iter().partition(|row| options.fold_fine_rows && fine(row));
    let footer = footer(verdict, details_url);
    let room = COMMENT_LIMIT.saturating_sub(out.chars().count() + footer.chars().count() + 400);
    let mut body = String::new();
    for row in open {
        body.push_str(&row_block(row));
    }
    if !folded.is_empty() {
        body.push_str(&format!(
            "\n<details><summary>{} checks passed or not applicable</summary>\n\n",
            folded.len()
        ));
        for row in folded {
            body.push_str(&row_block(row));
        }
        body.push_str("\n</details>\n");
    }
    if body.chars().count() > room {
        body = cut_rows(verdict, room);
    }
    out.push_str(&body);
    out.push_str(&footer);
    out
}

/// On REJECTED the signer is mentioned with what blocks; on PASS nobody is.
fn lead_line(verdict: &Verdict) -> Option<String> {
    let blocking = |kind| {
        let mut text = Text::default();
        for row in verdict.rows_of(kind) {
            if !text.is_empty() {
                text = text.with("; ");
            }
            text = text.with(format!("check {} ({})", row.number, row.name));
        }
        text
    };
    let mention = || Text(vec![Part::Mention(verdict.signer.as_str().to_owned())]);
    match verdict.decision {
        Decision::Rejected => Some(
            mention()
                .with(" — blocking: ")
                .and(blocking(OutcomeKind::Fail))
                .with(".")
                .markdown(),
        ),
        Decision::NeedsConfirmation => {
            let asked = blocking(OutcomeKind::NeedsConfirmation);
            (!asked.is_empty()).then(|| {
                mention()
                    .with(" — a person has to answer: ")
                    .and(asked)
                    .with(".")
                    .markdown()
            })
        }
        _ => None,
    }
}

fn row_block(row: &Row) -> String {
    let kind = row.report.outcome.kind();
    let mut out = format!(
        "{} Check {} ({}): {} — {}\n",
        kind.emoji(),
        row.number,
        escape_markdown(&row.name),
        kind.word(),
        row.full_reason().markdown()
    );
    let findings = row.report.outcome.findings();
    // A single finding's message is the reason already; with several, each is said with its own remedy.
    let several = findings.len() > 1;
    for finding in findings.iter().take(8) {
        out.push_str("&nbsp;&nbsp;&nbsp;↳ ");
        if several {
            out.push_str(&finding.message.markdown());
            out.push_str(" → ");
        }
        out.push_str(&finding.remedy.markdown());
        out.push('\n');
        if let Some(paste) = &finding.paste {
            out.push('\n');
            out.push_str(&fenced_block(paste));
            out.push_str("\n\n");
        }
    }
    if findings.len() > 8 {
        out.push_str(&format!(
            "&nbsp;&nbsp;&nbsp;↳ and {} more, in the full evidence\n",
            findings.len() - 8
        ));
    }
    for note in row.report.notes.iter().take(4) {
        out.push_str("&nbsp;&nbsp;&nbsp;ℹ️ ");
        out.push_str(&note.markdown());
        out.push('\n');
    }
    out
}

/// When everything together is too long: one bounded line a check.
fn cut_rows(verdict: &Verdict, room: usize) -> String {
    let each = (room / verdict.rows.len().max(1)).saturating_sub(80).min(2_000);
    let mut out = String::new();
    for row in &verdict.rows {
        let kind = row.report.outcome.kind();
        let reason = super::status::shorten(&row.full_reason().plain(), each / 3);
        out.push_str(&format!(
            "{} Check {} ({}): {} — {}\n",
            kind.emoji(),
            row.number,
            escape_markdown(&super::status::shorten(&row.name, 40)),
            kind.word(),
            escape_markdown(&reason)
        ));
    }
    out.push_str("\nThis verdict was cut to GitHub's size limit; the full text is in the evidence.\n");
    out
}

fn footer(verdict: &Verdict, details_url: Option<&str>) -> String {
    let mut text = crate::text![
        "Assessed commit: ",
        crate::text::code(&verdict.head_sha),
        " · policy ",
        crate::text::code(&verdict.policy),
        " ",
        verdict.policy_version.clone(),
    ];
    if let Some(url) = details_url {
        text = text.with(" · ").with(crate::text::link("full evidence", url));
    }
    let mut out = format!("\n<sub>{}</sub>\n", text.markdown());
    if !verdict.not_run.is_empty() {
        out.push_str(&format!(
            "\n<sub>Checks not run, since this version does not have them: {}. A person has to confirm them.</sub>\n",
            verdict
                .not_run
                .iter()
                .map(|name| escape_markdown(name))
                .collect::<Vec<_>>()
                .join(", ")
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{CheckReport, Finding};
    use crate::text::code;
    use crate::verdict::Level;

    fn verdict(rows: Vec<Row>, not_run: Vec<String>) -> Verdict {
        Verdict {
            repository: "octo/bench".parse().unwrap(),
            pull_request: crate::PrNumber(7),
            signoff: "issuecomment-99".parse().unwrap(),
            signer: "Octo-Cat".parse().unwrap(),
            head_sha: "0123456789012345678901234567890123456789".parse().unwrap(),
            trusted_sha: "1123456789012345678901234567890123456789".parse().unwrap(),
            decision: Verdict::decide(&rows, &not_run),
            rows,
            not_run,
            policy: "sample".into(),
            policy_version: "1".into(),
            policy_digest: "p".into(),
            evidence_digest: "e".into(),
            engine_version: "0".into(),
        }
    }

    fn options() -> CommentOptions {
        CommentOptions {
            marker: "sample-verdict".into(),
            failing_first: true,
            fold_fine_rows: false,
        }
    }

    fn row(number: u32, report: CheckReport) -> Row {
        Row {
            number,
            slug: format!("check-{number}"),
            name: format!("name {number}"),
            level: Level::Enforce,
            report,
            lifted: None,
        }
    }

    #[test]
    fn a_rejection_names_the_signer_the_cause_and_the_remedy() {
        let rows = vec![
            row(0, CheckReport::pass(crate::text!["owner of ", code("configs/a.yaml")])),
            row(
                1,
                CheckReport::fail(
                    Finding::new(
                        "red",
                        crate::text!["lane ", code("eval"), " is red"],
                        "Re-run the failed jobs.",
                    )
                    .paste("/use 123"),
                ),
            ),
        ];
        insta::assert_snapshot!(comment(
            &verdict(rows, vec![]),
            &options(),
            Some("https://x.example/e/1")
        ));
    }

    #[test]
    fn a_pass_mentions_nobody() {
        let text = comment(
            &verdict(vec![row(0, CheckReport::pass("fine"))], vec![]),
            &options(),
            None,
        );
        assert!(text.contains("**Verdict: PASS**") && !text.contains('@'), "{text}");
    }

    #[test]
    fn checks_that_were_not_run_are_named_on_the_last_line_and_it_is_no_pass() {
        let text = comment(
            &verdict(vec![row(0, CheckReport::pass("fine"))], vec!["3 (recipe)".into()]),
            &options(),
            None,
        );
        assert!(text.contains("NEEDS CONFIRMATION"), "{text}");
        assert!(text.trim_end().lines().last().unwrap().contains("3 (recipe)"), "{text}");
    }

    #[test]
    fn a_marker_is_read_back_and_no_other() {
        let body = comment(&verdict(vec![], vec![]), &options(), None);
        assert_eq!(
            marker_of("sample-verdict", &body).unwrap().0.to_string(),
            "issuecomment-99"
        );
        for other in [
            "",
            "<!-- sample-verdict -->",
            "x <!-- sample-verdict signoff=issuecomment-1 sha=00 -->",
        ] {
            assert!(marker_of("sample-verdict", other).is_none());
        }
    }

    #[test]
    fn it_fits_into_a_comment_whatever_the_rows_say() {
        let long = "@x `#1 <b> ".repeat(20_000);
        let rows = (0..16)
            .map(|n| {
                row(
                    n,
                    CheckReport::fail(Finding::new("x", long.clone(), long.clone()).paste(long.clone())),
                )
            })
            .collect();
        let text = comment(&verdict(rows, vec![]), &options(), None);
        assert!(text.chars().count() <= COMMENT_LIMIT, "{}", text.chars().count());
    }
}
