//! Results as text: how often each check said what, and the rows of a few pull requests.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use countersign_core::Level;
use countersign_core::text::printable;

use crate::compare::Change;
use crate::record::{Is, PullResult, Standing};

/// How often each check said what, for merged and other pull requests.
#[must_use]
pub fn counts_text(results: &[PullResult]) -> String {
    let mut counts: BTreeMap<(u32, &str, bool), BTreeMap<Is, usize>> = BTreeMap::new();
    for result in results {
        for row in &result.rows {
            let of = counts.entry((row.number, &row.slug, !result.merged)).or_default();
            *of.entry(row.is).or_default() += 1;
        }
    }
    let mut out = String::new();
    let _ = write!(out, "{:>3} {:<20} {:<7}", "", "check", "");
    for is in Is::ALL {
        let _ = write!(out, " {:>9}", short(is));
    }
    out.push('\n');
    let mut named = None;
    for ((number, slug, other), of) in &counts {
        let whose = if *other { "open" } else { "merged" };
        // The name stands once, before the first of its lines.
        if named == Some((number, slug)) {
            let _ = write!(out, "{:>3} {:<20} {whose:<7}", "", "");
        } else {
            let _ = write!(out, "{number:>3} {slug:<20} {whose:<7}");
        }
        named = Some((number, slug));
        for is in Is::ALL {
            match of.get(&is) {
                Some(count) => {
                    let _ = write!(out, " {count:>9}");
                }
                None => {
                    let _ = write!(out, " {:>9}", "·");
                }
            }
        }
        out.push('\n');
    }
    let merged = results.iter().filter(|result| result.merged).count();
    let _ = write!(out, "{} pull requests, {merged} of them merged:", results.len());
    for standing in Standing::ALL {
        let count = results.iter().filter(|result| result.standing == standing).count();
        if count > 0 {
            let _ = write!(out, " {count} {}", standing.word());
        }
    }
    out.push('\n');
    let worlds = results.iter().filter(|result| result.world).count();
    if worlds > 0 {
        let _ = writeln!(
            out,
            "{worlds} of them with a world that tells of sign-off, runs and artifacts."
        );
    }
    out
}

fn short(is: Is) -> &'static str {
    match is {
        Is::Question => "question",
        Is::Unavailable => "unavail.",
        Is::NotJudged => "not j.",
        other => other.word(),
    }
}

/// The rows of pull requests, one by one.
#[must_use]
pub fn pulls_text(results: &[PullResult]) -> String {
    let mut out = String::new();
    for result in results {
        let day = result.at.format("%Y-%m-%d");
        let merged = if result.merged { ", merged" } else { "" };
        let short: String = result.head.chars().take(7).collect();
        let _ = writeln!(
            out,
            "#{} {} ({day}, head {short}{merged}, {}): {}",
            result.number,
            printable(&result.title),
            result.policy,
            result.standing.word()
        );
        if let Some(problem) = &result.problem {
            let _ = writeln!(out, "    {}", printable(problem));
        }
        for row in &result.rows {
            let level = match row.level {
                Level::Enforce => "",
                Level::Warn => " [warns]",
                Level::Advisory => " [advisory]",
            };
            let _ = writeln!(
                out,
                "  {:>2} {} {}{level}: {}",
                row.number,
                row.slug,
                row.is.word(),
                printable(&row.why)
            );
            for finding in &row.findings {
                if let Some(place) = &finding.place {
                    let _ = writeln!(out, "       at {}", printable(&place.name));
                }
                let _ = writeln!(out, "       → {}", printable(&finding.remedy));
            }
        }
    }
    out
}

/// What differs between two policies.
#[must_use]
pub fn changes_text(changes: &[Change], before: &str, after: &str) -> String {
    let mut out = String::new();
    let pulls: std::collections::BTreeSet<u64> = changes.iter().map(|change| change.number).collect();
    let _ = writeln!(
        out,
        "{before} → {after}: {} changes in {} pull requests",
        changes.len(),
        pulls.len()
    );
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    for change in changes {
        *counts.entry((&change.slug, change.step())).or_default() += 1;
    }
    for ((slug, step), count) in &counts {
        let _ = writeln!(out, "  {count:>5}  {slug:<20} {step}");
    }
    out.push('\n');
    for change in changes {
        let merged = if change.merged { " (merged)" } else { "" };
        let _ = writeln!(out, "#{}{merged} {}: {}", change.number, change.slug, change.step());
        let _ = writeln!(out, "    {}", printable(&change.cause));
        if let Some(place) = &change.place {
            let _ = writeln!(out, "    at {}", printable(&place.name));
        }
        if let Some(remedy) = &change.remedy {
            let _ = writeln!(out, "    → {}", printable(remedy));
        }
    }
    out
}
