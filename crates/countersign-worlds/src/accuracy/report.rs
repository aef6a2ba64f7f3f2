//! The report as Markdown.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use countersign_core::outcome::OutcomeKind;
use countersign_core::verdict::Decision;

use super::{CaseResult, Compared, Match, Right};

#[derive(Default)]
struct Counts {
    agree: usize,
    we: usize,
    they: usize,
    none: usize,
}

/// The report. `command` is how it is made anew.
#[must_use]
pub fn report(results: &[CaseResult], command: &str) -> String {
    let mut out = String::from(HEAD);
    let _ = writeln!(out, "```sh\n{command}\n```\n");
    decisions(results, &mut out);
    checks(results, &mut out);
    differences(results, &mut out);
    cases(results, &mut out);
    out
}

const HEAD: &str = "\
# Accuracy

Generated; do not edit. Verdicts of this program beside verdicts that the present verifier is known to have given, check by
check. Evidence comes from a clone and from what is known of each verdict, as partial worlds (`docs/worlds.md`); where that does
not tell a fact, the check is unavailable and the row is not comparable. `tests/worlds/from_cases.py` says how the worlds are
made; `tests/worlds/accuracy.yaml` holds the reasons.

";

fn decisions(results: &[CaseResult], out: &mut String) {
    let judged: Vec<&CaseResult> = results.iter().filter(|result| result.decision.is_some()).collect();
    let wrong_pass = judged.iter().filter(|result| result.is_wrong_pass()).count();
    let of = |decision: &'static str| judged.iter().filter(move |result| result.expected.decision == decision);
    let failing = |result: &&&CaseResult| result.rows.iter().any(|row| row.ours == Some(OutcomeKind::Fail));
    let unexplained = |result: &&&CaseResult| {
        result.rows.iter().any(|row| {
            row.ours == Some(OutcomeKind::Fail)
                && matches!(row.result, Match::Unexplained | Match::Differ(Right::They, _))
        })
    };
    let _ = writeln!(out, "## Decisions\n");
    let _ = writeln!(out, "| | |\n|---|---|");
    let _ = writeln!(
        out,
        "| known verdicts | {} on {} pull requests |",
        results.len(),
        pulls(results)
    );
    let _ = writeln!(
        out,
        "| judged (head in the clone) | {} on {} pull requests |",
        judged.len(),
        pulls_of(&judged)
    );
    let _ = writeln!(
        out,
        "| **wrong PASS**: known REJECTED, judged PASS or WARN | **{wrong_pass}** |"
    );
    let _ = writeln!(
        out,
        "| known PASS, judged with a FAIL | {} of {}, of them {} that are ours to answer for |",
        of("PASS").filter(failing).count(),
        of("PASS").count(),
        of("PASS").filter(failing).filter(unexplained).count()
    );
    let _ = writeln!(
        out,
        "| known REJECTED, judged with a FAIL | {} of {} |\n",
        of("REJECTED").filter(failing).count(),
        of("REJECTED").count()
    );
}

fn pulls(results: &[CaseResult]) -> usize {
    results
        .iter()
        .map(|result| result.expected.pull)
        .collect::<std::collections::BTreeSet<_>>()
        .len()
}

fn pulls_of(results: &[&CaseResult]) -> usize {
    results
        .iter()
        .map(|result| result.expected.pull)
        .collect::<std::collections::BTreeSet<_>>()
        .len()
}

fn checks(results: &[CaseResult], out: &mut String) {
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for row in results.iter().flat_map(|result| &result.rows) {
        let count = counts.entry(&row.slug).or_default();
        match &row.result {
            Match::Agree => count.agree += 1,
            Match::Differ(Right::We, _) => count.we += 1,
            Match::Differ(..) | Match::Unexplained => count.they += 1,
            Match::NotComparable(_) => count.none += 1,
        }
    }
    let _ = writeln!(
        out,
        "## Checks\n\nA row agrees where both fail it, or neither does. A question to a person is a difference.\n"
    );
    let _ = writeln!(
        out,
        "| check | agree | differ, we are right | differ, we are wrong | not comparable |\n|---|---|---|---|---|"
    );
    let mut all = Counts::default();
    for (slug, count) in &counts {
        let _ = writeln!(
            out,
            "| {slug} | {} | {} | {} | {} |",
            count.agree, count.we, count.they, count.none
        );
        all.agree += count.agree;
        all.we += count.we;
        all.they += count.they;
        all.none += count.none;
    }
    let _ = writeln!(
        out,
        "| **all** | **{}** | **{}** | **{}** | **{}** |\n",
        all.agree, all.we, all.they, all.none
    );
}

fn differences(results: &[CaseResult], out: &mut String) {
    let _ = writeln!(out, "## Rows that differ\n");
    let mut any = false;
    for result in results {
        for row in &result.rows {
            let (who, why) = match &row.result {
                Match::Differ(Right::We, why) => ("we are right", why.as_str()),
                Match::Differ(_, why) => ("we are wrong", why.as_str()),
                Match::Unexplained => ("we are wrong", "not looked into yet"),
                Match::Agree | Match::NotComparable(_) => continue,
            };
            any = true;
            let _ = writeln!(
                out,
                "- **{}, {}**: known {}, here {}: {}. **{who}**: {}.",
                result.expected.name,
                row.slug,
                row.theirs,
                kind(row),
                cell(&row.our_reason),
                cell(why)
            );
        }
    }
    if !any {
        let _ = writeln!(out, "None.");
    }
    out.push('\n');
}

fn cases(results: &[CaseResult], out: &mut String) {
    let _ = writeln!(out, "## Every verdict\n");
    let _ = writeln!(
        out,
        "| verdict | day | kind | known | failing | here | failing here | not comparable, and why |\n|---|---|---|---|---|---|---|---|"
    );
    for result in results {
        let expected = &result.expected;
        let here = match (&result.decision, &result.failed) {
            (Some(decision), _) => shown(*decision).to_owned(),
            (None, why) => format!(
                "not judged: {}",
                why.as_deref().or(expected.none.as_deref()).unwrap_or("no world")
            ),
        };
        let failing: Vec<&str> = result
            .rows
            .iter()
            .filter(|row| row.ours == Some(OutcomeKind::Fail))
            .map(|row| row.slug.as_str())
            .collect();
        let mut unsaid: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for row in &result.rows {
            if let Match::NotComparable(why) = &row.result {
                unsaid.entry(why).or_default().push(&row.slug);
            }
        }
        let unsaid: Vec<String> = unsaid
            .iter()
            .map(|(why, slugs)| format!("{}: {}", slugs.join(", "), cell(why)))
            .collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} | {} |",
            expected.name,
            expected.date.as_deref().unwrap_or("?"),
            cell(&expected.kind),
            expected.decision,
            expected.failing.join(", "),
            cell(&here),
            failing.join(", "),
            unsaid.join("; ")
        );
    }
}

fn shown(decision: Decision) -> &'static str {
    decision.word()
}

fn kind(row: &Compared) -> &'static str {
    row.ours.map_or("not run", OutcomeKind::word)
}

/// One line for a table's cell; nothing of it can end the cell or act as markup.
fn cell(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches('.');
    line.replace('|', "\\|").replace('<', "&lt;").replace('@', "@\u{200b}")
}
