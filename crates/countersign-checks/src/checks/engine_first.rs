//! Open engines come before vendor engines
//!
//! ## What it checks
//! Every config entry under a new key whose framework is not among the open engines of the policy: is there an entry of an
//! open engine for the same model prefix on the same hardware? It has that prefix, or a key that begins with it, as entries
//! of a point release do. It may stand on the target branch or in the same pull request. Hardware is the product, not the runner label. A key that takes over the very value of a removed one is a new
//! name and not a new entry.
//!
//! ## Why
//! A vendor's engine alone would say nothing about the engines that most people use.
//!
//! ## Passes when
//! Each such entry has such a sibling.
//!
//! ## Fails when
//! One has none, and the sign-off's detail section claims no exception.
//!
//! ## Asks a person when
//! One has none and the detail section claims an exception, such as preview hardware or an architecture that the open
//! engines do not support yet; or the hardware is not known or not listed.
//!
//! ## Does not apply when
//! No entry of another engine is added. An image or a value of an entry that was there before adds nothing.
//!
//! ## How to fix
//! Add the open engine's entry, before or in the same pull request; or name the exception in the detail section and let a
//! maintainer confirm it.
//!
//! Source: domain guide, section 14; product page, section 5; newest policy, check 6b.

use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, CauseKind, Text, text};
use countersign_matrix::{Configs, Entry, sku};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::affected::Affected;
use crate::facts::points::configs_at;

pub(crate) struct EngineFirst;

/// Parameters of `engine-first`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Frameworks that are open engines: they come first, and nothing has to come before them.
    open: Vec<String>,
    /// Words in the detail section that claim an exception.
    #[serde(default)]
    exception_words: Vec<String>,
}

impl TypedCheck for EngineFirst {
    type Params = Params;
    const SLUG: &'static str = "engine-first";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let skus = match cx.section("images", &cx.policy().images) {
            Ok(rules) => &rules.skus,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let affected = match cx.affected() {
            Ok(affected) => affected,
            Err(cause) => return CheckReport::unavailable(cause),
        };
        if let Some(report) = affected.unusable() {
            return report;
        }
        let added = affected.added();
        let open = |entry: &Entry| params.open.iter().any(|name| **name == *entry.head.framework);
        let vendor: Vec<&Entry> = added.iter().map(|entry| &***entry).filter(|entry| !open(entry)).collect();
        if vendor.is_empty() {
            return CheckReport::not_applicable(if added.is_empty() {
                text!["no config entry is added"]
            } else {
                text!["every added entry runs an open engine: "].and(Text::list(added.iter().map(|entry| &entry.head.key), 4))
            });
        }
        let trusted = match configs_at(cx.evidence, cx.policy(), &cx.evidence.trusted_sha) {
            Ok(trusted) => trusted,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        judge(cx, params, skus, affected, &trusted, &vendor)
    }
}

fn judge(cx: &Context<'_>, params: &Params, skus: &[String], affected: &Affected, trusted: &Configs, vendor: &[&Entry]) -> CheckReport {
    let word = |entry: &Entry| sku(&entry.head.runner, &cx.policy().layout, &cx.policy().matrix);
    let claim = claim(cx, params);
    let (mut wrong, mut questions, mut siblings) = (Vec::new(), Vec::new(), Vec::new());
    for entry in vendor {
        let head = &entry.head;
        let Some(hardware) = word(entry).filter(|word| skus.iter().any(|known| known == word)) else {
            questions.push(
                Finding::new(
                    "other-hardware",
                    text![code(&head.key), " adds ", code(&head.framework), " on ", code(&head.runner), ", hardware for which the order of engines is not settled"],
                    text!["Confirm that it may come first: ", code(format!("/countersign confirm {} <reason>", EngineFirst::SLUG)), "."],
                )
                .at(place(entry)),
            );
            continue;
        };
        let fits = |other: &&std::sync::Arc<Entry>| {
            (other.head.model_prefix == head.model_prefix || named_for(other, &head.model_prefix))
                && word(other) == Some(hardware)
                && params.open.iter().any(|name| **name == *other.head.framework)
        };
        let removed = |key: &str| affected.base.masters.has_key(key) && !affected.head.masters.has_key(key);
        let here = affected.head.masters.entries.iter().find(fits);
        let there = || trusted.masters.entries.iter().filter(|other| !removed(&other.head.key)).find(fits);
        if let Some(sibling) = here.or_else(there) {
            siblings.push(sibling.head.key.clone());
            continue;
        }
        if let Some(problem) = trusted.problems().first() {
            return CheckReport::unavailable(&Cause::new(
                CauseKind::Malformed,
                problem.file.to_string(),
                format!("it cannot be read on the target branch, and the open engine's entry may be in it: {problem}"),
            ));
        }
        let message = text![
            code(&head.key),
            " adds ",
            code(&head.framework),
            " for ",
            code(&head.model_prefix),
            " on ",
            code(hardware),
            ", where no open engine has an entry"
        ];
        match &claim {
            None => wrong.push(
                Finding::new(
                    "no-open-engine",
                    message,
                    text!["Add an entry for ", code(&head.model_prefix), " on ", code(hardware), " with one of "]
                        .and(Text::list(&params.open, 8))
                        .with(" first, or name the exception in the detail section of the sign-off."),
                )
                .at(place(entry)),
            ),
            Some(claim) => questions.push(
                Finding::new(
                    "exception-claimed",
                    message.with("; the sign-off says: ").with(code(claim)),
                    text!["Confirm the exception, if it holds: ", code(format!("/countersign confirm {} <reason>", EngineFirst::SLUG)), "."],
                )
                .at(place(entry)),
            ),
        }
    }
    let first = |findings: &Findings| findings.as_slice().first().map(|finding| finding.message.clone()).unwrap_or_default();
    if let Some(findings) = Findings::from_vec(wrong) {
        let reason = first(&findings);
        return CheckReport::new(Outcome::Fail(findings), reason);
    }
    if let Some(findings) = Findings::from_vec(questions) {
        let reason = first(&findings);
        return CheckReport::new(Outcome::NeedsConfirmation(findings), reason);
    }
    siblings.sort();
    siblings.dedup();
    CheckReport::pass(text!["for "].and(Text::list(vendor.iter().map(|entry| &entry.head.key), 3)).with(" there is ").and(Text::list(&siblings, 3)))
}

/// The text of the detail section that claims an exception.
fn claim(cx: &Context<'_>, params: &Params) -> Option<String> {
    let detail = cx.recognition().signoff()?.detail.as_ref()?;
    let words: Vec<String> = params.exception_words.iter().map(|word| word.to_lowercase()).collect();
    let entry = detail.entries.iter().find(|entry| {
        let text = entry.text.to_lowercase();
        words.iter().any(|word| holds(&text, word))
    })?;
    let mut shown: String = entry.text.chars().take(160).collect();
    if shown.len() < entry.text.len() {
        shown.push('…');
    }
    Some(shown)
}

/// Whether an entry's key begins with a model prefix: a point release of a model has a prefix of its own and often keeps the
/// model's name in its key.
fn named_for(entry: &Entry, prefix: &str) -> bool {
    entry.head.key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('-'))
}

/// Whether a text has a word: no letter or digit stands at either end of it.
fn holds(text: &str, word: &str) -> bool {
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
        })
}

fn place(entry: &Entry) -> Location {
    Location::line(entry.head.file.to_string(), u64::from(entry.head.span.line))
}
