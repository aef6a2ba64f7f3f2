//! Images come from the engine's own project
//!
//! ## What it checks
//! The image of every config entry that is new or changed, and the further images that its workers' settings name. The
//! policy says which namespaces belong to a framework, and for which hardware the rule binds. A namespace is compared
//! exactly, with its registry; one that merely looks alike is named as such. `#` after a registry means `/`.
//!
//! ## Why
//! A number that was measured with a vendor's private build does not tell what the engine's users get.
//!
//! ## Passes when
//! Every such image is in a namespace of its framework; a further image may be of any framework that the policy names.
//!
//! ## Fails when
//! One is not, or only looks as if it were, or is no image reference at all.
//!
//! ## Asks a person when
//! The hardware of an entry cannot be told from its runner label.
//!
//! ## Does not apply when
//! No entry is new or changed, or none of them has a framework with such namespaces. Hardware that the policy does not list
//! is noted.
//!
//! ## How to fix
//! Use the engine's released or nightly image, with the tag or digest under which the project publishes it.
//!
//! Source: domain guide, section 14; product page, section 5.

use std::collections::BTreeSet;

use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Text, text};
use countersign_matrix::{Entry, Shape, Worker, sku};
use countersign_policy::ImageRules;
use countersign_records::images::{Image as Reference, NamespaceRule, Provenance};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;

pub(crate) struct Image;

/// Parameters of `image`. Namespaces, hardware and settings are in the policy's section `images`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {}

/// What was found in all entries.
#[derive(Default)]
struct Found {
    wrong: Vec<Finding>,
    questions: Vec<Finding>,
    notes: Vec<Text>,
    fine: BTreeSet<String>,
    judged: usize,
}

impl TypedCheck for Image {
    type Params = Params;
    const SLUG: &'static str = "image";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, _: &Params) -> CheckReport {
        let rules = match cx.section("images", &cx.policy().images) {
            Ok(rules) => rules,
            Err(cause) => return CheckReport::unavailable(&cause),
        };
        let affected = match cx.affected() {
            Ok(affected) => affected,
            Err(cause) => return CheckReport::unavailable(cause),
        };
        if let Some(report) = affected.unusable() {
            return report;
        }
        let mut found = Found::default();
        let mut changed = 0usize;
        for (_, entry) in affected.changed() {
            changed += 1;
            entry_images(cx, rules, entry, &mut found);
        }
        if changed == 0 {
            return CheckReport::not_applicable("no config entry is new or changed");
        }
        found.report(changed)
    }
}

impl Found {
    fn report(self, changed: usize) -> CheckReport {
        let first = |findings: &[Finding]| {
            let mut reason = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
            if findings.len() > 1 {
                reason = reason.with(format!(" (and {} more)", findings.len() - 1));
            }
            reason
        };
        let mut report = if let Some(findings) = Findings::from_vec(self.wrong) {
            let reason = first(findings.as_slice());
            CheckReport::new(Outcome::Fail(findings), reason)
        } else if let Some(findings) = Findings::from_vec(self.questions) {
            let reason = first(findings.as_slice());
            CheckReport::new(Outcome::NeedsConfirmation(findings), reason)
        } else if self.judged == 0 {
            CheckReport::not_applicable(text![
                "the rule does not bind for any of the ",
                changed,
                " new or changed entries"
            ])
        } else {
            let what = if self.judged == 1 { " entry uses " } else { " entries use " };
            CheckReport::pass(text![self.judged, what, "upstream images: "].and(Text::list(&self.fine, 4)))
        };
        report.notes = self.notes;
        report
    }
}

fn entry_images(cx: &Context<'_>, rules: &ImageRules, entry: &Entry, found: &mut Found) {
    let head = &entry.head;
    let own = rules.namespaces.get(&*head.framework);
    let further = settings(entry, &rules.settings);
    if own.is_none() && further.is_empty() {
        return;
    }
    match sku(&head.runner, &cx.policy().layout, &cx.policy().matrix) {
        Some(word) if rules.skus.iter().any(|known| known == word) => {}
        Some(word) => {
            found.notes.push(text![
                code(&head.key),
                " runs on ",
                code(word),
                ", for which the rule does not bind; its image is ",
                code(&head.image),
            ]);
            return;
        }
        None => {
            found.questions.push(
                Finding::new(
                    "unknown-hardware",
                    text![code(&head.key), ": the hardware of the runner ", code(&head.runner), " is not known, its image is ", code(&head.image)],
                    text!["Confirm that the image may be used on this hardware: ", code(format!("/countersign confirm {} <reason>", Image::SLUG)), "."],
                )
                .at(place(entry)),
            );
            return;
        }
    }
    if let Some(own) = own {
        found.judged += 1;
        match Reference::parse(&head.image) {
            Err(error) => found.wrong.push(unreadable(entry, &head.image, &error.to_string())),
            Ok(image) => match image.provenance(own) {
                Provenance::Allowed => {
                    found.fine.insert(image.to_string());
                }
                Provenance::LookAlike(like) => found.wrong.push(look_alike(entry, &image, &like, own)),
                Provenance::Other => found.wrong.push(
                    Finding::new(
                        "not-upstream",
                        text![code(&head.key), " runs ", code(&head.framework), " in ", code(&image), ", which is not of ", namespaces(own)],
                        text!["Use an image of ", namespaces(own), "."],
                    )
                    .at(place(entry)),
                ),
            },
        }
    }
    let all: Vec<NamespaceRule> = rules.namespaces.values().flatten().cloned().collect();
    for (name, value) in further {
        match Reference::parse(value) {
            Err(error) => found.wrong.push(unreadable(entry, value, &error.to_string())),
            Ok(image) => match image.provenance(&all) {
                Provenance::Allowed => {
                    found.fine.insert(image.to_string());
                }
                Provenance::LookAlike(like) => found.wrong.push(look_alike(entry, &image, &like, &all)),
                Provenance::Other if own.is_some() => found.wrong.push(
                    Finding::new(
                        "setting-not-upstream",
                        text![code(&head.key), " sets ", code(name), " to ", code(&image), ", which is not of ", namespaces(&all)],
                        text!["Use an image of ", namespaces(&all), " in ", code(name), "."],
                    )
                    .at(place(entry)),
                ),
                Provenance::Other => found.notes.push(text![
                    code(&head.key),
                    " sets ",
                    code(name),
                    " to ",
                    code(&image),
                    ", which is not of ",
                    namespaces(&all),
                ]),
            },
        }
    }
}

fn look_alike(entry: &Entry, image: &Reference, like: &str, own: &[NamespaceRule]) -> Finding {
    Finding::new(
        "look-alike",
        text![code(&entry.head.key), " uses ", code(image), ": that looks like ", code(like), " and is not"],
        text!["Use an image of ", namespaces(own), "."],
    )
    .at(place(entry))
}

fn unreadable(entry: &Entry, image: &str, why: &str) -> Finding {
    Finding::new(
        "unreadable",
        text![code(&entry.head.key), ": ", code(image), " is no image reference: ", why],
        "Correct the image.",
    )
    .at(place(entry))
}

/// Namespaces as one word each, for a sentence.
fn namespaces(rules: &[NamespaceRule]) -> String {
    let mut names: Vec<String> = rules
        .iter()
        .map(|rule| match &rule.registry {
            Some(registry) => format!("{registry}/{}/", rule.namespace),
            None => format!("{}/", rule.namespace),
        })
        .collect();
    names.sort();
    names.dedup();
    names.join(" or ")
}

fn place(entry: &Entry) -> Location {
    let span = entry.raw.get("image").map_or(entry.head.span, |node| entry.place(node.span));
    Location::line(entry.head.file.to_string(), u64::from(span.line))
}

/// Values of the settings that name images, of all workers, each once.
fn settings<'e>(entry: &'e Entry, names: &'e [String]) -> BTreeSet<(&'e str, &'e str)> {
    let workers = entry.search_rows().flat_map(|(_, row)| match &row.shape {
        Shape::Single(_) => Vec::new(),
        Shape::Multi { prefill, decode } => vec![prefill, decode],
    });
    workers
        .flat_map(|worker| names.iter().filter_map(|name| Some((name.as_str(), Worker::setting(worker, name)?))))
        .collect()
}
