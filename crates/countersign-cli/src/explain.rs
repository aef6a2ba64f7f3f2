//! Prints the way from evidence to the outcome of one check.

use std::process::ExitCode;

use anyhow::{Result, bail};
use countersign_core::evidence::{PullState, Upstream, UpstreamPull};
use countersign_core::text::{Part, Text};
use countersign_core::verdict::Row;
use countersign_core::{Evidence, Observed};
use countersign_policy::LoadedPolicy;
use countersign_worlds::Trace;

use crate::exit_of;

/// Files shown in full lists.
const FILES: usize = 40;
/// Runs shown.
const RUNS: usize = 10;

/// Prints; the exit code is the verdict's.
pub(crate) fn print(evidence: &Evidence, policy: &LoadedPolicy, check: &str) -> Result<ExitCode> {
    let verdict = countersign_checks::evaluate(evidence, policy);
    let number = check.parse::<u32>().ok();
    let named = |slug: &str| slug == check || slug.split('+').any(|part| part == check);
    let Some(entry) = policy
        .policy
        .checks
        .iter()
        .find(|entry| number == Some(entry.number) || named(&entry.slug))
    else {
        let all: Vec<String> = policy
            .policy
            .checks
            .iter()
            .map(|entry| format!("{} ({})", entry.slug, entry.number))
            .collect();
        bail!(
            "policy {} has no check {check:?}\n  → Name one of: {}.",
            policy.policy.name,
            all.join(", ")
        );
    };
    println!();
    println!("1. What was judged");
    let pull = &evidence.pull_request;
    println!("   {}#{} {}", evidence.repository, pull.number, pull.url);
    println!(
        "   head {} · target branch {} at {}",
        pull.head_sha, pull.base_ref, evidence.trusted_sha
    );
    match &evidence.merge_base {
        Observed::Present(base) => println!("   changes since {base}: {}", changed(evidence)),
        Observed::Absent => println!("   no common ancestor with the target branch"),
        Observed::Unavailable(cause) => println!("   {cause}"),
    }
    println!(
        "   sign-off {} by {} ({}), {}",
        evidence.signoff.key,
        evidence.signoff.author,
        evidence.signoff.association.word(),
        evidence.signoff.url
    );
    println!("   as of {}", evidence.now.format("%Y-%m-%d %H:%M:%S UTC"));
    facts(evidence);
    println!();
    println!("2. By which rule");
    println!(
        "   policy {} {} ({}), digest {}",
        policy.policy.name,
        policy.policy.version,
        policy.file,
        short(&policy.digest)
    );
    println!(
        "   check {} ({}), {}, level {}",
        entry.number,
        entry.name,
        entry.slug,
        level(entry)
    );
    if entry.params.is_null() || entry.params.as_object().is_some_and(serde_json::Map::is_empty) {
        println!("   no parameters");
    } else {
        println!("   parameters {}", serde_json::to_string(&entry.params)?);
    }
    let traces = countersign_worlds::trace(evidence, policy, &entry.slug);
    if traces.is_empty() {
        println!("   this version of the program does not have it");
        return Ok(exit_of(verdict.decision));
    }
    for trace in &traces {
        step(trace);
    }
    if let Some(row) = verdict.rows.iter().find(|row| row.number == entry.number) {
        println!();
        println!("4. What became of it");
        outcome(row, &traces);
        println!("   verdict: {}", verdict.decision.word());
    }
    Ok(exit_of(verdict.decision))
}

/// What was gathered beside files.
fn facts(evidence: &Evidence) {
    match &evidence.runs {
        Observed::Present(runs) => {
            for run in runs.iter().take(RUNS) {
                let jobs = match &run.jobs {
                    Observed::Present(jobs) => format!("{} jobs", jobs.len()),
                    Observed::Absent => "no jobs".to_owned(),
                    Observed::Unavailable(cause) => cause.why.clone(),
                };
                println!(
                    "   run {} on {}, attempt {}, {jobs}, {}",
                    run.id,
                    run.head_sha.short(),
                    run.attempt,
                    run.url
                );
            }
            if runs.is_empty() {
                println!("   no runs");
            }
        }
        Observed::Absent => println!("   no runs"),
        Observed::Unavailable(cause) => println!("   {cause}"),
    }
    for (url, leads) in &evidence.upstream {
        let what = match leads {
            Observed::Present(Upstream::Pull(pull)) => format!("{}#{}, {}", pull.repository, pull.number, state(pull)),
            Observed::Present(Upstream::Page(page)) => format!("{} of {} documents", page.source, page.documents.len()),
            Observed::Absent => "nothing is there".to_owned(),
            Observed::Unavailable(cause) => cause.to_string(),
        };
        println!("   link {url}: {what}");
    }
}

fn state(pull: &UpstreamPull) -> String {
    let word = match pull.state {
        PullState::Open => "open",
        PullState::Draft => "a draft",
        PullState::Closed => "closed",
        PullState::Merged => "merged",
    };
    match pull.merged_at {
        Some(at) => format!("{word} {}", at.format("%Y-%m-%d %H:%M:%S UTC")),
        None => word.to_owned(),
    }
}

fn changed(evidence: &Evidence) -> String {
    match &evidence.changed_files {
        Observed::Present(files) => format!("{} files", files.len()),
        Observed::Absent => "no files".to_owned(),
        Observed::Unavailable(cause) => cause.to_string(),
    }
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

fn level(entry: &countersign_policy::CheckEntry) -> String {
    serde_json::to_value(entry.level)
        .ok()
        .and_then(|level| level.as_str().map(str::to_owned))
        .unwrap_or_default()
}

fn step(trace: &Trace) {
    println!();
    println!("3. {}: what it read, and what it found", trace.slug);
    for line in section(&trace.doc, "What it checks") {
        println!("   {line}");
    }
    println!("   read {} files", trace.files.len());
    for file in trace.files.iter().take(FILES) {
        println!("     {} · {} · {}", file.role, file.path, file.url);
    }
    if trace.files.len() > FILES {
        println!("     and {} more", trace.files.len() - FILES);
    }
    println!(
        "   answered {}: {}",
        trace.report.outcome.kind().word(),
        with_links(&trace.report.reason)
    );
    for (index, finding) in trace.report.outcome.findings().iter().enumerate() {
        println!(
            "   finding {} [{}] {}",
            index + 1,
            finding.code,
            with_links(&finding.message)
        );
        if let Some(place) = &finding.location {
            println!("     at {place}");
        }
        println!("     → {}", with_links(&finding.remedy));
        if let Some(paste) = &finding.paste {
            println!("     paste:");
            for line in paste.lines() {
                println!("       {line}");
            }
        }
    }
    if let countersign_core::outcome::Outcome::Unavailable(causes) = &trace.report.outcome {
        for cause in causes {
            println!("   lacks {cause}");
        }
    }
    for note in &trace.report.notes {
        println!("   note: {}", with_links(note));
    }
}

/// A section of a check's documentation.
fn section(doc: &str, title: &str) -> Vec<String> {
    doc.lines()
        .skip_while(|line| line.trim_start_matches('#').trim() != title)
        .skip(1)
        .take_while(|line| !line.starts_with('#'))
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Text in which links show where they lead.
fn with_links(text: &Text) -> String {
    text.0
        .iter()
        .map(|part| match part {
            Part::Link { text, url } => format!("{text} <{url}>"),
            other => Text(vec![other.clone()]).plain(),
        })
        .collect()
}

fn outcome(row: &Row, traces: &[Trace]) {
    let said: Vec<&str> = traces.iter().map(|trace| trace.report.outcome.kind().word()).collect();
    let kind = row.report.outcome.kind().word();
    if traces.len() > 1 {
        println!(
            "   the row joins {}: the gravest of {} counts",
            traces.len(),
            said.join(", ")
        );
    } else if said.first() != Some(&kind) && row.lifted.is_none() {
        println!("   {} by the check, {kind} at this level", said.join(", "));
    }
    if let Some(lifted) = &row.lifted {
        println!(
            "   was {}; {} answered: {} <{}>",
            lifted.was.word(),
            lifted.by,
            lifted.why,
            lifted.url
        );
    }
    println!("   {}", row.plain());
}
