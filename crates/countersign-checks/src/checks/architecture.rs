//! The model computes what it was made to compute
//!
//! ## What it checks
//! Two things. What the servers of touched entries would be started with: every setting that overrides the model's own
//! configuration, key by key, wherever it is written (flag, options file, recipe, variable), and every setting that the
//! policy forbids by name. And the scripts that the pull request changes or that touched entries run: the same overrides
//! in their text, and edits of files that describe a model.
//!
//! ## Why
//! Making the same computation faster is what is measured. Leaving a part of it out is another model.
//!
//! ## Passes when
//! Nothing is overridden, or only keys that the policy allows.
//!
//! ## Fails when
//! A key that cuts computation is overridden (layers, heads, experts, how often an index is computed), or a forbidden setting
//! has a forbidden value.
//!
//! ## Asks a person when
//! A key is overridden that is on neither list, an override cannot be read, a script edits the description of a model in a
//! way that cannot be read key by key, the arguments of a server cannot be derived and the pull request brought that about,
//! or the override stands in a launch that the pull request leaves as it was.
//!
//! ## Does not apply when
//! No entry and no script is touched.
//!
//! ## How to fix
//! Remove the override.
//!
//! Source: domain guide, section 13; newest policy, check 8; product page, section 5.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::outcome::{CheckReport, Finding, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Observed, text};
use countersign_launch::{FlagValue, Launch, Source};
use countersign_matrix::{Entry, Scenarios};
use countersign_yaml::Node;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::gaps::{self, confirm, new_unknown_words};
use crate::facts::launches::{Group, Launches};
use crate::facts::acts::Kind;
use crate::facts::before::Before;
use crate::facts::scripts::{self, Script};
use crate::facts::sorted::{Sorted, place};

pub(crate) struct Architecture;

/// Parameters of `architecture`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Names of settings that override the model's configuration, with dashes.
    overrides: Vec<String>,
    /// Parts of keys that cut computation, in lower case. A key that contains one fails, unless its value is in `neutral`.
    cutting: Vec<String>,
    /// Whole keys that may be overridden. A key below one of them is allowed with it, unless it cuts.
    allowed: Vec<String>,
    /// Values that change nothing, by key.
    #[serde(default)]
    neutral: BTreeMap<String, Vec<String>>,
    /// Settings that are forbidden with certain values whatever the model: name with dashes → values.
    #[serde(default)]
    forbidden: BTreeMap<String, Vec<String>>,
}

/// What was found so far: file, dotted key, value.
type Known = BTreeSet<(String, String, String)>;

/// What an overridden key means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Fine,
    Cuts,
    Unclear,
}

impl Params {
    fn meaning(&self, path: &str, value: &str) -> Meaning {
        let parts: Vec<String> = path.split('.').map(str::to_lowercase).collect();
        let last = parts.last().map(String::as_str).unwrap_or_default();
        if self.neutral.get(last).is_some_and(|values| values.iter().any(|neutral| neutral == value)) {
            return Meaning::Fine;
        }
        if parts.iter().any(|part| self.cutting.iter().any(|word| part.contains(word.as_str()))) {
            return Meaning::Cuts;
        }
        if parts.iter().any(|part| self.allowed.iter().any(|key| key == part)) {
            return Meaning::Fine;
        }
        Meaning::Unclear
    }
}

impl TypedCheck for Architecture {
    type Params = Params;
    const SLUG: &'static str = "architecture";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NeedsConfirmation,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];
    const LONG: bool = true;

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        match judge(cx, params) {
            Ok(report) => report,
            Err(cause) => CheckReport::unavailable(&cause),
        }
    }
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    // Scripts can be judged where configs cannot; what they are guilty of does not wait for that.
    let blocked = affected.unusable();
    if let Some(report) = blocked.as_ref().filter(|report| report.outcome.kind() == OutcomeKind::Fail) {
        return Ok(report.clone());
    }
    let launches = cx.launches().map_err(Cause::clone)?;
    launches.prepare();
    let scripts = cx.scripts().map_err(Cause::clone)?;
    let mut sorted = Sorted::default();
    let mut entries = 0usize;
    let mut known = Known::new();
    for (entry, scenarios) in launches.touched() {
        entries += 1;
        entry_launches(cx, launches, entry, scenarios, params, &mut known, &mut sorted)?;
    }
    for script in scripts.all().filter(|script| !script.aside) {
        texts(script, params, &mut known, &mut sorted);
    }
    let files = scripts.all().count();
    let report = sorted.report(|| {
        if entries == 0 && files == 0 {
            return CheckReport::not_applicable("no entry and no script is touched");
        }
        CheckReport::pass(text!["no override that cuts computation in ", entries, " touched entries and ", files, " scripts"])
    });
    Ok(match blocked {
        Some(blocked) if report.outcome.kind() != OutcomeKind::Fail => blocked,
        _ => report,
    })
}

fn entry_launches(
    cx: &Context<'_>,
    launches: &Launches<'_>,
    entry: &Entry,
    scenarios: Scenarios,
    params: &Params,
    known: &mut Known,
    sorted: &mut Sorted,
) -> Result<(), Cause> {
    let key = &*entry.head.key;
    let (base, head) = (launches.before(key), launches.head(key));
    head.read()?;
    for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
        recipes(cx, key, group, params, sorted)?;
        for launch in group.starts.servers() {
            overridden(&base, key, group, launch, params, known, sorted)?;
            forbidden(key, launch, params, sorted);
            if let Some(words) = new_unknown_words(&base, group, launch)? {
                sorted.question(
                    Finding::new(
                        "unknown-arguments",
                        text![code(key), ": arguments of the server depend on ", code(words), ", and an override may hide in them"],
                        text!["Look at them, and confirm that nothing of the model is cut: ", code(confirm(Architecture::SLUG)), "."],
                    )
                    .at(place(&launch.source)),
                );
            }
        }
    }
    gaps::ask(launches, key, scenarios, Architecture::SLUG, sorted)
}

/// Overrides among the settings of a server.
fn overridden(
    base: &Before<'_, '_>,
    key: &str,
    group: &Group,
    launch: &Launch,
    params: &Params,
    known: &mut Known,
    sorted: &mut Sorted,
) -> Result<(), Cause> {
    for (name, values) in launch.flags.iter() {
        let Some(value) = values.last() else { continue };
        for prefix in &params.overrides {
            let Some(rest) = name.strip_prefix(prefix.as_str()) else {
                continue;
            };
            let shown = value.value.to_string();
            match rest.strip_prefix('.') {
                Some(path) => {
                    let old = is_as_before(base, group, name, value)?;
                    known.insert((value.source.file.to_string(), path.to_owned(), shown.clone()));
                    key_found(key, prefix, path, &shown, &value.source, old, params, sorted);
                }
                None if rest.is_empty() => {
                    known.insert((value.source.file.to_string(), prefix.clone(), String::new()));
                    unreadable(prefix, &shown, &value.source, sorted);
                }
                None => {}
            }
        }
    }
    Ok(())
}

/// Whether every point had the same statement at the merge base.
fn is_as_before(base: &Before<'_, '_>, group: &Group, name: &str, value: &FlagValue) -> Result<bool, Cause> {
    let says = |launch: &Launch| launch.flags.get(name).is_some_and(|old| old.value == value.value);
    base.all(&group.rows, |old| old.starts.servers().any(says))
}

#[allow(clippy::too_many_arguments, reason = "one call in two places, all of it is shown")]
fn key_found(entry: &str, setting: &str, path: &str, value: &str, source: &Source, old: bool, params: &Params, sorted: &mut Sorted) {
    let said = text![code(entry), " overrides the model by ", code(setting), ": ", code(path), " = ", code(value)];
    match params.meaning(path, value) {
        Meaning::Fine => sorted.note(said.with(", which is allowed")),
        Meaning::Cuts if !old => sorted.wrong(
            Finding::new("cuts-computation", said.with(", which cuts computation"), text!["Remove ", code(path), " from ", code(setting), "."])
                .at(place(source)),
        ),
        Meaning::Cuts => sorted.question(
            Finding::new(
                "cut-before",
                said.with(", which cuts computation; this pull request leaves it as it was"),
                text!["Remove it, or confirm why it may stay: ", code(confirm(Architecture::SLUG)), "."],
            )
            .at(place(source)),
        ),
        Meaning::Unclear => sorted.question(
            Finding::new(
                "unclear-override",
                said.with(", which is on no list"),
                text!["Confirm that it takes no computation away: ", code(confirm(Architecture::SLUG)), "."],
            )
            .at(place(source)),
        ),
    }
}

fn unreadable(setting: &str, value: &str, source: &Source, sorted: &mut Sorted) {
    sorted.question(
        Finding::new(
            "unreadable-override",
            text![code(setting), " overrides the model with something that cannot be read: ", code(value)],
            text!["Confirm that it takes no computation away: ", code(confirm(Architecture::SLUG)), "."],
        )
        .at(place(source)),
    );
}

/// Forbidden settings anywhere in a recipe: some stand outside of what an engine reads.
fn recipes(cx: &Context<'_>, key: &str, group: &Group, params: &Params, sorted: &mut Sorted) -> Result<(), Cause> {
    if params.forbidden.is_empty() {
        return Ok(());
    }
    for path in group.starts.files.iter().filter(|path| path.ends_with(".yaml") || path.ends_with(".yml")) {
        let text = match cx.evidence.head_file(path) {
            Observed::Present(text) => text,
            Observed::Absent => continue,
            Observed::Unavailable(cause) => return Err(cause),
        };
        if !may_name(&text, params) {
            continue;
        }
        if let Ok(document) = countersign_yaml::parse(&text, &countersign_yaml::Limits::default()) {
            walk(key, path, &document.root, params, sorted, 0);
        }
    }
    Ok(())
}

/// Whether a key of a YAML text can be the name of a forbidden setting. Reading all recipes anew for it takes long, and
/// hardly any has one. A key is one line of its text, but for escapes, which can spell anything.
fn may_name(text: &str, params: &Params) -> bool {
    let escapes = ["\\x", "\\u", "\\U", "\\\n", "\\\r"].iter().any(|escape| text.contains(escape));
    let spelled = text.replace('_', "-");
    (escapes && text.contains('"')) || params.forbidden.keys().any(|name| spelled.contains(name.as_str()))
}

fn walk(entry: &str, path: &str, node: &Node, params: &Params, sorted: &mut Sorted, depth: usize) {
    if depth > 32 {
        return;
    }
    for (name, value) in node.as_map().into_iter().flat_map(|map| map.iter()) {
        let spelled = name.scalar_text();
        let bad = params.forbidden.get(&spelled.replace('_', "-"));
        let shown = value.scalar_text();
        if bad.is_some_and(|values| values.iter().any(|bad| bad.eq_ignore_ascii_case(&shown))) {
            forbidden_found(entry, &spelled, &shown, &Source::new(path, value.span.line), sorted);
        }
        walk(entry, path, value, params, sorted, depth + 1);
    }
    for value in node.as_seq().into_iter().flatten() {
        walk(entry, path, value, params, sorted, depth + 1);
    }
}

fn forbidden_found(entry: &str, spelled: &str, value: &str, source: &Source, sorted: &mut Sorted) {
    sorted.wrong(
        Finding::new(
            "forbidden-setting",
            text![code(entry), " sets ", code(spelled), " to ", code(value)],
            text!["Remove ", code(spelled), ", or set it otherwise."],
        )
        .at(place(source)),
    );
}

/// Settings that are forbidden by name.
fn forbidden(key: &str, launch: &Launch, params: &Params, sorted: &mut Sorted) {
    let extra = launch.extra.iter().map(|(name, value)| (name.as_str(), value));
    let flags = launch.flags.iter().filter_map(|(name, values)| Some((name, values.last()?)));
    for (name, value) in flags.chain(extra) {
        let plain = name.rsplit('.').next().unwrap_or(name).replace('_', "-");
        let Some(values) = params.forbidden.get(&plain) else { continue };
        match value.value.as_known() {
            Some(known) if values.iter().any(|bad| bad.eq_ignore_ascii_case(known)) => {
                forbidden_found(key, &plain, known, &value.source, sorted);
            }
            Some(_) => {}
            None => sorted.wrong(
                Finding::new(
                    "unverifiable-setting",
                    text![code(key), ": the value of ", code(&value.spelled), " could not be verified: ", code(&value.value)],
                    text!["Write its value where it can be read."],
                )
                .at(place(&value.source)),
            ),
        }
    }
}

/// Overrides and edits in the text of a script.
fn texts(script: &Script, params: &Params, known: &mut Known, sorted: &mut Sorted) {
    let path = script.path.as_str();
    let spellings: Vec<String> = params
        .overrides
        .iter()
        .flat_map(|setting| [format!("--{setting}"), setting.replace('-', "_")])
        .collect();
    for (line, last, text) in script.texts_with(&spellings) {
        for (setting, spellings) in params.overrides.iter().zip(spellings.chunks(2)) {
            let Some(after) = spellings.iter().find_map(|spelling| text.split_once(spelling.as_str())).map(|(_, after)| after) else {
                continue;
            };
            let source = Source::new(path, line);
            let keys = scripts::json_leaves(after);
            let rest = after.trim_matches(|c: char| c.is_whitespace() || matches!(c, '"' | '\''));
            if keys.is_empty() && !rest.is_empty() && known.insert((path.to_owned(), setting.clone(), String::new())) {
                unreadable(setting, rest, &source, sorted);
            }
            for (key, value) in keys {
                let old = !script.adds(line, last);
                if !known.insert((path.to_owned(), key.clone(), value.clone())) {
                    continue;
                }
                key_found(path, setting, &key, &value, &source, old, params, sorted);
            }
        }
    }
    for act in script.acts().iter().filter(|act| act.kind == Kind::ModelDescription) {
        let source = Source::new(path, act.line);
        let fresh = script.adds(act.line, act.last_line);
        let within = script.texts().filter(|(first, last, _)| *first <= act.last_line && *last >= act.line);
        let read: Option<Vec<_>> = within.map(|(_, _, text)| scripts::keys_written(&text)).collect();
        let keys: BTreeSet<(String, String)> = read.unwrap_or_default().into_iter().flatten().collect();
        if !keys.is_empty() && keys.iter().all(|(key, value)| params.meaning(key, value) != Meaning::Unclear) {
            for (key, value) in keys {
                key_found(path, "a model's description", &key, &value, &source, !fresh, params, sorted);
            }
            continue;
        }
        let said = text![code(path), " edits the description of a model: ", code(&act.shown)];
        if fresh {
            sorted.question(
                Finding::new(
                    "model-edited",
                    said,
                    text!["Confirm that it takes no computation away: ", code(confirm(Architecture::SLUG)), "."],
                )
                .at(place(&source)),
            );
        } else {
            sorted.note(said.with(", as before this pull request"));
        }
    }
}
