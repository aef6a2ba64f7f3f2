//! Speculative decoding is measured through the chat template
//!
//! ## What it checks
//! For every point of a touched entry that starts a server with speculative decoding: how the benchmark client drives that
//! server. The client's call is derived from the script or recipe, with its line.
//!
//! ## Why
//! Draft tokens are accepted more or less often depending on the text. Prompts without the chat template are not what a
//! served model sees, so the measured speed would not be real.
//!
//! ## Passes when
//! Each such client formats its prompts by the chat template, by a flag of its own or through a chat endpoint.
//!
//! ## Fails when
//! One of them sends raw prompts.
//!
//! ## Asks a person when
//! The server, or how it is driven, cannot be derived from the files, and the pull request brought that about.
//!
//! ## Does not apply when
//! No touched entry has a point with speculative decoding.
//!
//! ## How to fix
//! Give the client the flag that turns the chat template on, or let it use the chat endpoint.
//!
//! Source: domain guide, sections 9.2 to 9.5; product page, section 5.

use countersign_core::outcome::{CheckReport, Finding, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Text, text};
use countersign_launch::ChatTemplate as Template;
use countersign_matrix::{Entry, Row, Scenarios};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::before::Before;
use crate::facts::gaps::{self, confirm};
use crate::facts::launches::{Group, Launches};
use crate::facts::sorted::{Sorted, place};

pub(crate) struct ChatTemplate;

/// Parameters of `chat-template`. Which programs are clients, and by which flags they use the template, is in the policy's
/// section `derive`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Flags to propose, as written on the client's command line.
    suggest: Vec<String>,
}

impl TypedCheck for ChatTemplate {
    type Params = Params;
    const SLUG: &'static str = "chat-template";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        match judge(cx, params) {
            Ok(report) => report,
            Err(cause) => CheckReport::unavailable(&cause),
        }
    }
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    if let Some(report) = affected.unusable() {
        return Ok(report);
    }
    let launches = cx.launches().map_err(Cause::clone)?;
    launches.prepare();
    let none = &cx.policy().matrix.spec_decoding.none;
    let mut sorted = Sorted::default();
    let (mut points, mut entries) = (0usize, Vec::new());
    for (entry, scenarios) in launches.touched() {
        let found = entry_points(launches, entry, scenarios, none, params, &mut sorted)?;
        if found > 0 {
            points += found;
            entries.push(entry.head.key.clone());
        }
    }
    Ok(sorted.report(|| {
        if points == 0 {
            return CheckReport::not_applicable("no touched entry has speculative decoding");
        }
        CheckReport::pass(text![points, " points with speculative decoding are driven through the chat template: "].and(Text::list(&entries, 4)))
    }))
}

/// Judges the points of an entry; gives how many have speculative decoding.
fn entry_points(launches: &Launches<'_>, entry: &Entry, scenarios: Scenarios, none: &str, params: &Params, sorted: &mut Sorted) -> Result<usize, Cause> {
    let key = &*entry.head.key;
    let (base, head) = (launches.before(key), launches.head(key));
    head.read()?;
    let mut points = 0;
    for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
        let said = group.rows.iter().any(|row| *row.spec_decoding != *none);
        let started = group.starts.servers().any(|launch| launch.spec.is_some());
        if !said && !started {
            continue;
        }
        points += group.rows.len();
        group_client(&base, key, group, params, sorted)?;
    }
    if points > 0 {
        gaps::ask(launches, key, scenarios, ChatTemplate::SLUG, sorted)?;
    }
    Ok(points)
}

fn group_client(base: &Before<'_, '_>, key: &str, group: &Group, params: &Params, sorted: &mut Sorted) -> Result<(), Cause> {
    let remedy = || text!["Confirm that the prompts pass the chat template: ", code(confirm(ChatTemplate::SLUG)), "."];
    let Some(client) = &group.starts.client else {
        // Where nothing is started, or what is started is not known, that is said already.
        if group.starts.launches.is_empty() {
            return Ok(());
        }
        let message = text![code(key), " (", group.name(), ") has speculative decoding, and no benchmark client was found"];
        if unknown_before(base, &group.rows)? {
            sorted.note(message.with(", as before this pull request"));
        } else if let Some(launch) = group.starts.launches.first() {
            sorted.question(Finding::new("no-client", message, remedy()).at(place(&launch.source)));
        }
        return Ok(());
    };
    match &client.chat_template {
        Template::Used(_) => {}
        Template::Unused => sorted.wrong(
            Finding::new(
                "raw-prompts",
                text![code(key), " has speculative decoding, and ", code(&client.tool), " sends its prompts without the chat template"],
                text!["Let the client use the chat template: "].and(Text::list(params.suggest.iter().map(|flag| format!("`{flag}`")), 4)).with("."),
            )
            .at(place(&client.source)),
        ),
        Template::Symbolic(on) => sorted.question(
            Finding::new(
                "depends",
                text![code(key), ": whether ", code(&client.tool), " uses the chat template depends on ", code(on.join(", "))],
                remedy(),
            )
            .at(place(&client.source)),
        ),
    }
    Ok(())
}

/// Whether every point was there at the merge base, started something, and had no client that was found either.
fn unknown_before(base: &Before<'_, '_>, rows: &[Row]) -> Result<bool, Cause> {
    base.all(rows, |old| old.starts.client.is_none() && !old.starts.launches.is_empty())
}
