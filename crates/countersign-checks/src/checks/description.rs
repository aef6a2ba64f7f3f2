//! The description says what is there
//!
//! ## What it checks
//! What the pull request's description names and a machine can compare with the pinned head: images with the repository of a
//! touched entry, entries by their keys, and workflow runs of this repository. Numbers and promises in prose are not looked
//! at; they stay with the reader.
//!
//! ## Why
//! The description is what people read later to learn what was measured.
//!
//! ## Passes when
//! Everything of these kinds that it names agrees with the head and the evidence.
//!
//! ## Warns when
//! It cites an image that no touched entry uses, an entry that neither head nor merge base has, or a run that is not on a
//! commit of this pull request.
//!
//! ## Fails when
//! Never.
//!
//! ## Does not apply when
//! It names nothing of these kinds.
//!
//! ## How to fix
//! Edit the description.
//!
//! Source: newest policy, check 15; product page, section 5.

use std::collections::BTreeSet;

use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Cause, text};
use countersign_records::images::Image;
use countersign_signoff::{LinkSource, links};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::runs;
use crate::facts::words::{foreign_image, words};

pub(crate) struct Description;

/// Parameters of `description`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

impl TypedCheck for Description {
    type Params = Params;
    const SLUG: &'static str = "description";
    const NEEDS_CONVERSATION: bool = true;
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Warn,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, _: &Params) -> CheckReport {
        judge(cx).unwrap_or_else(|cause| CheckReport::unavailable(&cause))
    }
}

fn judge(cx: &Context<'_>) -> Result<CheckReport, Cause> {
    let body = &cx.evidence.pull_request.body;
    let affected = cx.affected().map_err(Cause::clone)?;
    let mut found = Vec::new();
    let mut agreed = 0usize;
    let changed: Vec<_> = affected.changed().map(|(_, entry)| entry.clone()).collect();
    let images: Vec<Image> = changed.iter().filter_map(|entry| Image::parse(&entry.head.image).ok()).collect();
    match foreign_image(std::iter::once(body.as_str()), &images) {
        Some(cited) => found.push(Finding::new(
            "other-image",
            text!["the description cites ", code(cited), "; the touched entries use "]
                .and(countersign_core::Text::list(images.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), 3)),
            "Edit the description: cite the image that the head uses.",
        )),
        None => agreed += usize::from(images.iter().any(|image| body.contains(&image.repository()))),
    }
    let (mut known, mut unknown) = (BTreeSet::new(), BTreeSet::new());
    for word in words(body) {
        if affected.head.masters.has_key(word) || affected.base.masters.has_key(word) {
            known.insert(word);
        } else if is_key_like(cx, word) {
            unknown.insert(word);
        }
    }
    agreed += known.len();
    for word in unknown.iter().take(5) {
        found.push(Finding::new(
            "unknown-entry",
            text!["the description names ", code(word), ", an entry that neither head nor merge base has"],
            "Edit the description: name the entry as the config does.",
        ));
    }
    let cited: BTreeSet<u64> = words(body).filter_map(|word| run_of(cx, word)).collect();
    if !cited.is_empty() {
        let commits = runs::commits(cx.evidence)?;
        let all = runs::all(cx.evidence)?;
        for id in cited.iter().take(10) {
            let here = all.iter().find(|run| run.id == *id);
            if here.is_some_and(|run| commits.contains(&run.head_sha)) {
                agreed += 1;
                continue;
            }
            let host = cx.evidence.pull_request.url.split("/pull/").next().unwrap_or_default();
            found.push(Finding::new(
                "foreign-run",
                text!["the description cites ", link(format!("run {id}"), format!("{host}/actions/runs/{id}")), ", which is not among the runs on commits of this pull request"],
                "Edit the description: cite a run on a commit that is still in the pull request.",
            ));
        }
    }
    let first = found.first().map(|finding| finding.message.clone());
    let more = found.len().saturating_sub(1);
    Ok(match (Findings::from_vec(found), first) {
        (Some(findings), Some(first)) => {
            let reason = if more > 0 { first.with(format!(" (and {more} more)")) } else { first };
            CheckReport::new(Outcome::Warn(findings), reason)
        }
        _ if agreed == 0 => CheckReport::not_applicable("the description names no image, entry or run that can be compared"),
        _ => CheckReport::pass(text!["the ", agreed, " images, entries and runs that the description names are there"]),
    })
}

/// Whether a word has the form of an entry's key: the prefix and precision of some entry, then a word for hardware and one
/// more (domain guide 3.1).
fn is_key_like(cx: &Context<'_>, word: &str) -> bool {
    let Ok(affected) = cx.affected() else {
        return false;
    };
    affected.head.masters.entries.iter().any(|entry| {
        let start = format!("{}-{}-", entry.head.model_prefix, entry.head.precision);
        let rest = word.strip_prefix(start.as_str());
        let has_hardware = |rest: &str| cx.policy().layout.sku_words.iter().any(|sku| rest.strip_prefix(sku.as_str()).is_some_and(|tail| tail.starts_with('-') && tail.len() > 1));
        rest.is_some_and(has_hardware) && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.'))
    })
}

/// The run of this repository that an address leads to.
fn run_of(cx: &Context<'_>, word: &str) -> Option<u64> {
    if !word.starts_with("https://") {
        return None;
    }
    let link = links::read(word, 0, None, LinkSource::Bare, &cx.policy().signoff.links)?;
    let run = link.run()?;
    run.is_in(cx.evidence.repository.as_str()).then_some(run.run_id)
}
