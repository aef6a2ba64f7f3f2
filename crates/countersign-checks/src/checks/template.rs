//! The sign-off answers the current checklist
//!
//! ## What it checks
//! Every item of the template at the target branch's tip against the items of the sign-off: is it there, is it ticked,
//! or else explained. Shortened and reworded items count; so does text behind an item.
//!
//! ## Why
//! A copy of an old template leaves new rules unanswered.
//!
//! ## Passes when
//! Every item is there, and ticked or explained. The conditional item may stay open.
//!
//! ## Fails when
//! An item is missing, or open without a word about it. A template that is younger than the sign-off is not demanded
//! before its grace time is over.
//!
//! ## How to fix
//! Edit the sign-off: paste the missing lines and tick them, or explain the open ones in the detail section.
//!
//! Source: domain guide, section 16; product page, sections 4 and 5.

use chrono::TimeDelta;
use countersign_core::outcome::{CheckReport, Finding, Findings, Outcome, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Observed, Text, text};
use countersign_signoff::{Explanation, Recognition, SignOff, TemplateMatch};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;

pub(crate) struct Template;

/// Parameters of `template`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Hours for which a sign-off on the template that was current when it was written stays good after the template
    /// changed. 0 = none.
    #[serde(default)]
    grace_hours: u32,
}

impl TypedCheck for Template {
    type Params = Params;
    const SLUG: &'static str = "template";
    const NEEDS_CONVERSATION: bool = true;
    const OUTCOMES: &'static [OutcomeKind] = &[OutcomeKind::Pass, OutcomeKind::Fail, OutcomeKind::Unavailable];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        let signoff = match cx.recognition() {
            Recognition::SignOff(signoff) => signoff,
            Recognition::Refused(refusal) => {
                return CheckReport::fail(Finding::new(
                    "no-signoff",
                    text!["the text is no longer a sign-off: ", refusal.sentence()],
                    "Edit it so that it starts with the template's first line, with the items under it.",
                ));
            }
        };
        let template = match cx.template() {
            Ok(template) => template,
            Err(cause) => return CheckReport::unavailable(cause),
        };
        let found = template.compare(signoff, &cx.policy().signoff);
        let path = &cx.policy().paths.template;
        let url = cx.evidence.file_url(&cx.evidence.trusted_sha, path, None);
        match problems(&found, signoff, template, path, &url) {
            None => praise(&found, signoff, template),
            Some(findings) => match grace(cx, params, signoff) {
                Some(report) => report,
                None => {
                    let reason = summary(&found, template);
                    CheckReport::new(Outcome::Fail(findings), reason)
                }
            },
        }
    }
}

fn open_items(found: &TemplateMatch) -> impl Iterator<Item = &countersign_signoff::UntickedItem> {
    found.unticked.iter().filter(|item| !item.conditional && !item.explanation.is_named())
}

fn problems(found: &TemplateMatch, signoff: &SignOff, template: &countersign_signoff::Template, path: &str, url: &str) -> Option<Findings> {
    let mut findings = Vec::new();
    let missing: Vec<_> = found.missing.iter().filter(|item| !item.conditional).collect();
    if !missing.is_empty() {
        let paste = missing.iter().map(|item| item.markdown.as_str()).collect::<Vec<_>>().join("\n");
        findings.push(
            Finding::new(
                "missing-item",
                text!["the sign-off lacks "].and(Text::list(missing.iter().map(|item| &item.title), 6)).with(" of the current ").with(link(path, url)),
                "Edit the sign-off: add these lines and tick them.",
            )
            .paste(paste),
        );
    }
    let open: Vec<_> = open_items(found).collect();
    if !open.is_empty() {
        let names = open.iter().filter_map(|item| template.items.get(item.template)).map(|item| item.title.as_str());
        let nothing_said = open.iter().all(|item| item.explanation == Explanation::None);
        let why = if nothing_said && signoff.detail.as_ref().is_none_or(countersign_signoff::Detail::is_empty) {
            ", and the detail section is empty"
        } else {
            ", and the detail section does not say why"
        };
        findings.push(Finding::new(
            "open-item",
            text!["not ticked: "].and(Text::list(names, 6)).with(why),
            "Edit the sign-off: tick what was verified, or say in the detail section why it does not apply.",
        ));
    }
    Findings::from_vec(findings)
}

fn summary(found: &TemplateMatch, template: &countersign_signoff::Template) -> Text {
    let missing = found.missing.iter().filter(|item| !item.conditional).count();
    let open = open_items(found).count();
    let mut parts = Vec::new();
    if missing > 0 {
        parts.push(format!("{missing} of {} items missing", template.items.len()));
    }
    if open > 0 {
        parts.push(format!("{open} open without a word about it"));
    }
    parts.join(", ").into()
}

fn praise(found: &TemplateMatch, signoff: &SignOff, template: &countersign_signoff::Template) -> CheckReport {
    let mut reason = text!["all ", template.items.len(), " items of the current template are there"];
    let explained = found.unticked.iter().filter(|item| !item.conditional).count();
    if explained > 0 {
        let names = found.unticked.iter().filter(|item| !item.conditional).filter_map(|item| template.items.get(item.template)).map(|item| item.title.as_str());
        reason = reason.with("; open but explained: ").and(Text::list(names, 6));
    }
    let mut report = CheckReport::pass(reason);
    for item in found.missing.iter().filter(|item| item.conditional) {
        report = report.note(text!["the conditional item ", code(&item.title), " is not there"]);
    }
    if let Some(signature) = &signoff.signature
        && signature.is_placeholder
    {
        report = report.note("the signature line still holds the placeholder");
    }
    report
}

/// PASS because the template changed after the sign-off, the sign-off answers the one before, and the grace is not over.
fn grace(cx: &Context<'_>, params: &Params, signoff: &SignOff) -> Option<CheckReport> {
    if params.grace_hours == 0 {
        return None;
    }
    let old = match &cx.evidence.previous_template {
        Observed::Present(old) => old,
        Observed::Absent => return None,
        Observed::Unavailable(cause) => return Some(CheckReport::unavailable(cause)),
    };
    let until = old.replaced_at + TimeDelta::hours(i64::from(params.grace_hours));
    if old.replaced_at <= cx.evidence.signoff.updated_at || cx.evidence.now >= until {
        return None;
    }
    let template = countersign_signoff::Template::parse(&old.text, &cx.policy().signoff).ok()?;
    let found = template.compare(signoff, &cx.policy().signoff);
    problems(&found, signoff, &template, "", "").is_none().then(|| {
        CheckReport::pass(text!["all items of the template that was current when it was signed are there"])
            .note(text!["the template has changed since; this sign-off stays good until ", until.format("%Y-%m-%d %H:%M UTC").to_string()])
    })
}
