//! The draft model runs as it was published
//!
//! ## What it checks
//! Every touched point that starts a server with speculative decoding: the settings and environment variables that the policy
//! names as ways to make a draft cheaper; whether the draft model is the checkpoint's own or one that the target branch's
//! models file agrees on; and whether the sign-off's detail section says how the draft is stored and loaded.
//!
//! ## Why
//! A draft that is quantised further, cut or exchanged is faster, and nobody who downloads the checkpoint has it.
//!
//! ## Passes when
//! No named setting is in use, the draft is the checkpoint's own or an agreed one, and the detail section speaks about each
//! part of the evidence that the policy asks for.
//!
//! ## Fails when
//! A forbidden setting is in use, or the detail section says nothing at all about the draft.
//!
//! ## Asks a person when
//! A suspicious setting is in use; a value depends on something that text cannot tell; a launcher names a forbidden
//! variable; the draft model is not among the agreed ones; or a part of the evidence is missing.
//!
//! ## Does not apply when
//! No touched point uses speculative decoding.
//!
//! ## How to fix
//! Serve the draft as it is stored, and say in the detail section which checkpoint it is, its stored precision, how the
//! image loads it by default, and the precision in effect.
//!
//! Source: newest policy, check 13; product page, section 5.

use std::collections::BTreeSet;
use std::sync::Arc;

use countersign_core::outcome::{CheckReport, Finding, Location, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Observed, Text, text};
use countersign_launch::{Fact, Launch, Source};
use countersign_matrix::{Entry, resolve};
use countersign_records::models::{self, ModelsTable};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::launches::Group;
use crate::facts::tally::Tally;
use crate::facts::tree::TreeFiles;

pub(crate) struct DraftAsShipped;

/// Parameters of `draft-as-shipped`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Settings that touch the draft.
    settings: Vec<Setting>,
    /// What the detail section has to speak about.
    #[serde(default)]
    evidence: Vec<Part>,
}

/// A setting that may make a draft cheaper.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Setting {
    /// A normalised flag, such as `speculative-config.quantization`, or an environment variable after `$`.
    name: String,
    /// What it means to set it.
    is: Weight,
    /// Values that change nothing: the default restated, or "off". Case does not matter.
    #[serde(default)]
    harmless: Vec<String>,
}

/// What a setting means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Weight {
    /// It is forbidden.
    Forbidden,
    /// A person has to look.
    Suspicious,
}

/// A part of the evidence that the detail section gives.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// What it is, for a reader.
    what: String,
    /// Words of which an entry of the section must have one. Case does not matter.
    words: Vec<String>,
}

impl TypedCheck for DraftAsShipped {
    type Params = Params;
    const SLUG: &'static str = "draft-as-shipped";
    const NEEDS_CONVERSATION: bool = true;
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        judge(cx, params).unwrap_or_else(|cause| CheckReport::unavailable(&cause))
    }
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    if let Some(report) = affected.unusable() {
        return Ok(report);
    }
    let launches = cx.launches().map_err(Cause::clone)?;
    let mut tally = Tally::default();
    let (mut drafted, mut unclear): (BTreeSet<Arc<str>>, BTreeSet<Arc<str>>) = Default::default();
    let mut agreed = None;
    for (entry, scenarios) in launches.touched() {
        let key = &entry.head.key;
        let head = launches.head(key);
        head.read()?;
        for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
            let with: Vec<&Launch> = group.starts.servers().filter(|server| server.spec.is_some()).collect();
            let said = *group_label(group) != *cx.policy().matrix.spec_decoding.none;
            if with.is_empty() {
                // The row says that there is a draft, and no server shows one.
                if said {
                    unclear.insert(key.clone());
                }
                continue;
            }
            drafted.insert(key.clone());
            for server in with {
                settings(params, entry, group, server, &mut tally);
                if let Some(name) = foreign_draft(server) {
                    let table = match &agreed {
                        Some(table) => table,
                        None => agreed.insert(match &cx.policy().models {
                            Some(rules) => cx.models(rules)?,
                            None => None,
                        }),
                    };
                    draft_model(table, entry, group, server, name, &mut tally);
                }
            }
        }
        if drafted.contains(key) {
            launcher_variables(cx, params, entry, &mut tally)?;
        }
    }
    for key in unclear.difference(&drafted) {
        tally.asked.push(question(text![code(key), " is labelled as speculative decoding, but which draft it serves is not known from text"]));
    }
    if drafted.is_empty() && unclear.is_empty() {
        return Ok(CheckReport::not_applicable("no touched point uses speculative decoding"));
    }
    evidence(cx, params, &mut tally);
    let mut seen = BTreeSet::new();
    let mut once = |finding: &Finding| seen.insert((finding.code.clone(), finding.message.plain()));
    tally.wrong.retain(&mut once);
    tally.asked.retain(&mut once);
    Ok(tally.report(|| CheckReport::pass(text!["the draft is served as stored in "].and(Text::list(&drafted, 4)))))
}

fn group_label(group: &Group) -> &str {
    group.rows.first().map_or("", |row| &row.spec_decoding)
}

fn question(message: Text) -> Finding {
    let answer = format!("/countersign confirm {} <reason>", DraftAsShipped::SLUG);
    Finding::new("suspicious", message, text!["Confirm that the draft is served as stored, if it is: ", code(answer), "."])
}

fn place(source: &Source, entry: &Entry) -> Location {
    if source.line == 0 {
        return Location::line(entry.head.file.to_string(), u64::from(entry.head.span.line));
    }
    Location::line(source.file.to_string(), u64::from(source.line))
}

fn settings(params: &Params, entry: &Entry, group: &Group, server: &Launch, tally: &mut Tally) {
    let whose = || text![code(&entry.head.key), " at ", group.name()];
    for setting in &params.settings {
        let value = match setting.name.strip_prefix('$') {
            Some(variable) => server.environment.get(variable),
            None => server.flags.get(&setting.name),
        };
        let Some(value) = value else { continue };
        let Some(known) = value.value.as_known() else {
            tally.asked.push(
                question(whose().with(" sets ").with(code(&setting.name)).with(" to something that text cannot tell: ").with(code(&value.value)))
                    .at(place(&value.source, entry)),
            );
            continue;
        };
        if setting.harmless.iter().any(|harmless| harmless.eq_ignore_ascii_case(known.trim())) {
            continue;
        }
        let says = whose().with(" sets ").with(code(format!("{}={known}", setting.name)));
        match setting.is {
            Weight::Forbidden => tally.wrong.push(
                Finding::new(
                    "forbidden-setting",
                    says.with(", which makes the draft cheaper than it is stored"),
                    text!["Remove ", code(&setting.name), "."],
                )
                .at(place(&value.source, entry)),
            ),
            Weight::Suspicious => {
                tally.asked.push(question(says.with(", which may reach the draft")).at(place(&value.source, entry)));
            }
        }
    }
    if !server.opaque.is_empty() {
        tally.asked.push(
            question(whose().with(" has arguments that text cannot tell, and a setting of the draft may be among them")).at(place(&server.source, entry)),
        );
    }
}

/// The draft model, where it is not the served checkpoint.
fn foreign_draft(server: &Launch) -> Option<&str> {
    match (&server.draft_model, &server.model) {
        (Fact::Known(draft), Fact::Known(model) | Fact::Default(model)) if draft == model => None,
        (Fact::Known(draft), _) => Some(draft),
        _ => None,
    }
}

fn draft_model(agreed: &Option<Arc<ModelsTable>>, entry: &Entry, group: &Group, server: &Launch, name: &str, tally: &mut Tally) {
    let row = agreed.as_ref().and_then(|table| table.engines.get(&*entry.head.model_prefix));
    let names = |row: &models::EngineRow| row.drafts.split(|c: char| c.is_whitespace() || "`,;()".contains(c)).any(|word| same_model(word, name));
    if row.is_some_and(names) {
        return;
    }
    let why = match row {
        Some(_) => "which is not among the drafts that the models file of the target branch agrees on",
        None => "and the models file of the target branch agrees on no draft for it",
    };
    let source = server.flags.under("speculative-config").find(|(key, _)| *key == "model").map(|(_, value)| &value.source);
    tally.asked.push(
        question(text![code(&entry.head.key), " at ", group.name(), " drafts with ", code(name), ", ", why]).at(place(source.unwrap_or(&server.source), entry)),
    );
}

/// A path of a host ends in the model's name; an identifier is compared whole.
fn same_model(agreed: &str, draft: &str) -> bool {
    if draft.starts_with('/') {
        let last = |text: &str| text.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_lowercase();
        return agreed.contains('/') && last(agreed) == last(draft);
    }
    agreed.eq_ignore_ascii_case(draft)
}

/// A launcher may pass a variable into the container; what it exports is not derived, so its name alone is a question.
fn launcher_variables(cx: &Context<'_>, params: &Params, entry: &Entry, tally: &mut Tally) -> Result<(), Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    let files = TreeFiles::new(cx.evidence, &cx.evidence.pull_request.head_sha)?;
    let used = resolve(entry, &affected.head.runners, &files, &cx.policy().layout, &cx.policy().matrix);
    for launcher in used.launchers.iter().filter(|launcher| launcher.exists) {
        let text = match cx.evidence.head_file(&launcher.path) {
            Observed::Present(text) => text,
            Observed::Absent => continue,
            Observed::Unavailable(cause) => return Err(cause),
        };
        for setting in params.settings.iter().filter(|setting| setting.is == Weight::Forbidden) {
            let Some(variable) = setting.name.strip_prefix('$') else {
                continue;
            };
            let line = text.lines().position(|line| !line.trim_start().starts_with('#') && line.contains(variable));
            if let Some(line) = line {
                tally.asked.push(
                    question(text![code(&launcher.path), ", which launches ", code(&entry.head.key), ", names ", code(variable)])
                        .at(Location::line(launcher.path.clone(), line as u64 + 1)),
                );
            }
        }
    }
    Ok(())
}

/// What the detail section says of the draft.
fn evidence(cx: &Context<'_>, params: &Params, tally: &mut Tally) {
    let detail = cx.recognition().signoff().and_then(|signoff| signoff.detail.as_ref());
    let texts: Vec<String> = detail.iter().flat_map(|detail| &detail.entries).map(|entry| entry.text.to_lowercase()).collect();
    let has = |part: &&Part| part.words.iter().any(|word| texts.iter().any(|text| text.contains(&word.to_lowercase())));
    let missing: Vec<&Part> = params.evidence.iter().filter(|part| !has(part)).collect();
    if missing.is_empty() {
        return;
    }
    let names = || Text::list(missing.iter().map(|part| &part.what), 6);
    let paste = missing.iter().map(|part| format!("- Draft, {}: ", part.what)).collect::<Vec<_>>().join("\n");
    if missing.len() == params.evidence.len() {
        tally.wrong.push(
            Finding::new(
                "no-evidence",
                text!["could not be verified: the detail section says nothing about the draft; it has to name "].and(names()),
                "Edit the sign-off: fill these lines in and add them to the detail section.",
            )
            .paste(paste),
        );
    } else {
        tally.asked.push(question(text!["the detail section does not name "].and(names()).with(" of the draft")).paste(paste));
    }
}
