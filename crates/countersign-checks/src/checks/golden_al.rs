//! Simulated acceptance has the golden length
//!
//! ## What it checks
//! Every point of a touched entry that starts a server with speculative decoding. For trace replay, acceptance must be
//! simulated, with the mean length that the golden curve of the model, draft and mode has for the number of draft tokens.
//! Everywhere else acceptance must be real. Curves are read from the target branch; what counts is what reaches the server:
//! flags, variables, and what is injected into a recipe before it runs.
//!
//! ## Why
//! Replayed traces are no text that a draft model could guess as in real use, so the length is fixed, to the same value for all.
//!
//! ## Passes when
//! All lengths agree, rounded to hundredths, and nothing else simulates.
//!
//! ## Fails when
//! A replay runs with real acceptance, or with another length, or with a knob that lacks its other half; or a point that is no
//! replay simulates acceptance. Without a golden curve for the model: when the detail section does not say where the
//! length comes from.
//!
//! ## Asks a person when
//! The number of draft tokens, the draft, or the length depends on something unknown; the detail section names a source or
//! an exception, which has to be judged; what would start is not known and the pull request brought that about.
//!
//! ## Does not apply when
//! No touched entry has a point with speculative decoding, or none is a replay and nothing simulates.
//!
//! ## How to fix
//! Set the knob to the golden length that the finding names, or change the number of draft tokens.
//!
//! Source: domain guide, section 10; product page, section 5.

use std::collections::BTreeMap;

use countersign_core::outcome::{CheckReport, Finding, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, CauseKind, Observed, Text, text};
use countersign_launch::{Acceptance, Fact, Launch, Role, Source, Spec};
use countersign_matrix::{Entry, ScenarioType, Scenarios};
use countersign_records::golden::{GoldenFile, GoldenRules, hundredths};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::gaps::{self, confirm};
use crate::facts::launches::{Group, Launches};
use crate::facts::sorted::{Sorted, place};

pub(crate) struct GoldenAl;

/// Parameters of `golden-al`. The folder of the curves is in the policy's section `paths`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Modes of the curves; the first one counts where nothing shows another.
    modes: Vec<String>,
    /// Which curve belongs to a launch: the first that fits.
    curves: Vec<Curve>,
    /// What shows a mode other than the first: mode → flags or variables that are set, each with a part of its value.
    #[serde(default)]
    evidence: BTreeMap<String, BTreeMap<String, String>>,
    /// Knobs that count draft tokens only: their value is the length minus one.
    #[serde(default)]
    drafts_only: Vec<String>,
    /// Words in the detail section that tell where a length without a golden curve comes from.
    source_words: Vec<String>,
    /// Words in the detail section that claim a sanctioned exception for simulated acceptance outside of replays.
    exception_words: Vec<String>,
}

/// A golden curve and the launches that it belongs to. What is not given fits every launch.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Curve {
    /// File in the folder of curves.
    file: String,
    /// Model prefixes.
    prefixes: Vec<String>,
    /// Frameworks, for those whose launches do not say what the curve depends on.
    #[serde(default)]
    frameworks: Vec<String>,
    /// Methods of speculative decoding, in lower case.
    #[serde(default)]
    methods: Vec<String>,
    /// Parts of the draft model's name, in lower case.
    #[serde(default)]
    drafts: Vec<String>,
    /// How draft tokens are sampled.
    #[serde(default)]
    sampling: Vec<String>,
}

/// Whether a curve belongs to a launch.
#[derive(PartialEq, Eq)]
enum Fit {
    Yes,
    No,
    Unknown(String),
}

impl Curve {
    fn fits(&self, entry: &Entry, launch: &Launch, spec: &Spec) -> Fit {
        if !self.prefixes.iter().any(|prefix| **prefix == *entry.head.model_prefix) {
            return Fit::No;
        }
        let framework = &*entry.head.framework;
        if !self.frameworks.is_empty() && !self.frameworks.iter().any(|name| name == framework) {
            return Fit::No;
        }
        let mut unknown = None;
        let mut asks = |wanted: &[String], fact: &Fact<String>, whole: bool, what: &str| -> bool {
            if wanted.is_empty() {
                return true;
            }
            match fact {
                Fact::Known(value) | Fact::Default(value) => {
                    let value = value.to_lowercase();
                    wanted.iter().any(|word| if whole { value == *word } else { value.contains(word.as_str()) })
                }
                Fact::Symbolic(on) => {
                    unknown = Some(format!("{what}, which depends on {}", on.join(", ")));
                    true
                }
                Fact::Absent => false,
            }
        };
        let fits = asks(&self.methods, &spec.method, true, "the method of speculative decoding")
            && (asks(&self.drafts, &spec.draft_model, false, "the draft model") || asks(&self.drafts, &launch.model, false, "the model"))
            && asks(&self.sampling, &spec.draft_sampling, true, "how draft tokens are sampled");
        match (fits, unknown) {
            (false, _) => Fit::No,
            (true, None) => Fit::Yes,
            (true, Some(why)) => Fit::Unknown(why),
        }
    }
}

impl TypedCheck for GoldenAl {
    type Params = Params;
    const SLUG: &'static str = "golden-al";
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

struct Judge<'c, 'a> {
    cx: &'c Context<'a>,
    params: &'c Params,
    curves: BTreeMap<String, Option<GoldenFile>>,
    sorted: Sorted,
    /// Replays whose length is right, by what it is.
    right: BTreeMap<String, usize>,
    /// Points with speculative decoding that are no replays.
    others: usize,
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    if let Some(report) = affected.unusable() {
        return Ok(report);
    }
    let launches = cx.launches().map_err(Cause::clone)?;
    let mut judge = Judge {
        cx,
        params,
        curves: BTreeMap::new(),
        sorted: Sorted::default(),
        right: BTreeMap::new(),
        others: 0,
    };
    for (entry, scenarios) in launches.touched() {
        judge.entry(launches, entry, scenarios)?;
    }
    let (right, others) = (judge.right, judge.others);
    Ok(judge.sorted.report(|| {
        if right.is_empty() {
            return CheckReport::not_applicable(if others > 0 {
                text!["no touched replay has speculative decoding, and none of ", others, " other points with it simulates"]
            } else {
                text!["no touched entry has speculative decoding"]
            });
        }
        let points: usize = right.values().sum();
        CheckReport::pass(text![points, " replays have the golden acceptance length: "].and(Text::list(right.keys(), 4)))
    }))
}

impl Judge<'_, '_> {
    fn entry(&mut self, launches: &Launches<'_>, entry: &Entry, scenarios: Scenarios) -> Result<(), Cause> {
        let none = &self.cx.policy().matrix.spec_decoding.none;
        let head = launches.head(&entry.head.key);
        head.read()?;
        let mut speculative = false;
        for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
            let replay = group.rows.first().is_some_and(|row| row.scenario() == ScenarioType::Agentic);
            let said = group.rows.iter().any(|row| *row.spec_decoding != *none);
            let mut started = false;
            for launch in group.starts.servers().filter(|launch| launch.role != Role::Prefill) {
                let Some(spec) = &launch.spec else { continue };
                started = true;
                if replay {
                    self.replay(entry, group, launch, spec)?;
                } else {
                    self.other(entry, group, launch, spec);
                }
            }
            speculative |= said || started;
            if said && !started && group.starts.servers().next().is_some() {
                self.sorted.note(text![
                    code(&entry.head.key),
                    " (",
                    group.name(),
                    ") is labelled as speculative and starts its server without"
                ]);
            }
        }
        if speculative {
            gaps::ask(launches, &entry.head.key, scenarios, GoldenAl::SLUG, &mut self.sorted)?;
        }
        Ok(())
    }

    fn replay(&mut self, entry: &Entry, group: &Group, launch: &Launch, spec: &Spec) -> Result<(), Cause> {
        let key = &entry.head.key;
        let (length, knob, source) = match &spec.acceptance {
            Acceptance::Synthetic { length, knob, source } => (length, knob, source),
            Acceptance::Real => {
                let expected = self.expected_words(entry, launch, spec)?;
                let source = spec_place(launch);
                self.sorted.wrong(
                    Finding::new(
                        "real-acceptance",
                        text![code(key), " replays with real acceptance"],
                        text!["Simulate acceptance with the golden length"].with(expected).with("."),
                    )
                    .at(place(&source)),
                );
                return Ok(());
            }
            Acceptance::Incomplete { knob, missing, source } => {
                self.sorted.wrong(
                    Finding::new(
                        "knob-without-its-other-half",
                        text![code(key), " sets ", code(knob), " without ", code(missing), ", so nothing is simulated"],
                        text!["Set ", code(missing), " too."],
                    )
                    .at(place(source)),
                );
                return Ok(());
            }
            Acceptance::Unknown(on) => {
                self.unknown(entry, launch, format!("whether acceptance is simulated depends on {}", on.join(", ")));
                return Ok(());
            }
        };
        let (Some(drafts), Some(length)) = (spec.draft_tokens.value().copied(), length.value().copied()) else {
            let on = format!("the acceptance length is {length} for {} draft tokens", spec.draft_tokens);
            self.unknown(entry, launch, on);
            return Ok(());
        };
        let file = match self.curve(entry, launch, spec) {
            Ok(Some(file)) => file,
            Ok(None) => {
                self.no_curve(entry, source, drafts, length);
                return Ok(());
            }
            Err(why) => {
                self.unknown(entry, launch, format!("which golden curve counts depends on {why}"));
                return Ok(());
            }
        };
        let Some(golden) = self.read(&file)? else {
            self.no_curve(entry, source, drafts, length);
            return Ok(());
        };
        let mode = self.mode(launch).to_owned();
        let Some(expected) = golden.length(&mode, drafts) else {
            self.sorted.wrong(
                Finding::new(
                    "no-golden-value",
                    text![code(key), " drafts ", drafts, " tokens, for which ", code(&file), " has no ", code(&mode), " value"],
                    "Draft a number of tokens for which the curve has a value.",
                )
                .at(place(source)),
            );
            return Ok(());
        };
        if hundredths(length) == Some(expected.hundredths) {
            let what = format!("{} at {drafts} ({})", shown(expected.value()), entry.head.model_prefix);
            *self.right.entry(what).or_default() += group.rows.len();
            return Ok(());
        }
        let also = golden.drafts_with(&mode, length);
        let mut message = text![code(key), " drafts ", drafts, " tokens and simulates ", shown(length), ", golden is ", shown(expected.value())];
        if let [other] = also.as_slice() {
            message = message.with(format!(" ({} belongs to {other})", shown(length)));
        }
        self.sorted.wrong(
            Finding::new(
                "other-length",
                message,
                text!["Set ", code(knob), " to ", code(self.knob_value(knob, expected.value())), ", or draft another number of tokens."],
            )
            .at(place(source)),
        );
        Ok(())
    }

    /// Simulation outside of replays.
    fn other(&mut self, entry: &Entry, group: &Group, launch: &Launch, spec: &Spec) {
        self.others += group.rows.len();
        let (knob, source) = match &spec.acceptance {
            Acceptance::Synthetic { knob, source, .. } | Acceptance::Incomplete { knob, source, .. } => (knob, source),
            Acceptance::Real => return,
            Acceptance::Unknown(on) => {
                self.unknown(entry, launch, format!("whether acceptance is simulated depends on {}", on.join(", ")));
                return;
            }
        };
        let message = text![code(&entry.head.key), " is no replay and simulates acceptance by ", code(knob)];
        match self.detail(&self.params.exception_words) {
            None => self.sorted.wrong(
                Finding::new(
                    "simulated-outside-of-replays",
                    message,
                    text!["Remove ", code(knob), ", or document the sanctioned exception in the detail section."],
                )
                .at(place(source)),
            ),
            Some(claim) => self.sorted.question(
                Finding::new(
                    "exception-claimed",
                    message.with("; the sign-off says: ").with(code(claim)),
                    text!["Confirm the exception, if it holds: ", code(confirm(GoldenAl::SLUG)), "."],
                )
                .at(place(source)),
            ),
        }
    }

    fn no_curve(&mut self, entry: &Entry, source: &Source, drafts: u32, length: f64) {
        let message = text![
            code(&entry.head.key),
            " simulates ",
            shown(length),
            " at ",
            drafts,
            " draft tokens, and there is no golden curve for ",
            code(&entry.head.model_prefix)
        ];
        match self.detail(&self.params.source_words) {
            None => self.sorted.wrong(
                Finding::new(
                    "no-golden-curve",
                    message.with("; the sign-off does not say where the length comes from"),
                    text!["Name the source of the length in the detail section, such as the run that collects the curve."],
                )
                .at(place(source)),
            ),
            Some(claim) => self.sorted.question(
                Finding::new(
                    "source-claimed",
                    message.with("; the sign-off says: ").with(code(claim)),
                    text!["Confirm the source of the length: ", code(confirm(GoldenAl::SLUG)), "."],
                )
                .at(place(source)),
            ),
        }
    }

    fn unknown(&mut self, entry: &Entry, launch: &Launch, why: String) {
        self.sorted.question(
            Finding::new(
                "depends",
                text![code(&entry.head.key), ": ", code(why)],
                text!["Confirm that acceptance follows the rule: ", code(confirm(GoldenAl::SLUG)), "."],
            )
            .at(place(&launch.source)),
        );
    }

    /// The file of the curve that belongs to a launch; an error where that depends on something unknown.
    fn curve(&self, entry: &Entry, launch: &Launch, spec: &Spec) -> Result<Option<String>, String> {
        for curve in &self.params.curves {
            match curve.fits(entry, launch, spec) {
                Fit::Yes => return Ok(Some(curve.file.clone())),
                Fit::No => {}
                Fit::Unknown(why) => return Err(why),
            }
        }
        Ok(None)
    }

    fn read(&mut self, file: &str) -> Result<Option<GoldenFile>, Cause> {
        if let Some(known) = self.curves.get(file) {
            return Ok(known.clone());
        }
        let path = format!("{}{file}", self.cx.policy().paths.golden);
        let golden = match self.cx.evidence.trusted_file(&path) {
            Observed::Absent => None,
            Observed::Unavailable(cause) => return Err(cause),
            Observed::Present(text) => {
                let rules = GoldenRules {
                    modes: self.params.modes.clone(),
                };
                let read = GoldenFile::read(&text, &rules).map_err(|error| {
                    Cause::new(CauseKind::Malformed, format!("{path} on the target branch"), error.to_string())
                })?;
                Some(read)
            }
        };
        self.curves.insert(file.to_owned(), golden.clone());
        Ok(golden)
    }

    /// The mode that a launch shows; the first one where it shows none.
    fn mode(&self, launch: &Launch) -> &str {
        let shows = |settings: &BTreeMap<String, String>| {
            settings.iter().any(|(name, part)| {
                let value = launch.flags.get(name).or_else(|| launch.environment.get(name));
                value.is_some_and(|value| value.value.to_string().contains(part.as_str()))
            })
        };
        let shown = self.params.evidence.iter().find(|(_, settings)| shows(settings)).map(|(mode, _)| mode.as_str());
        shown.or_else(|| self.params.modes.first().map(String::as_str)).unwrap_or_default()
    }

    /// The golden length of a launch in words, where it can be told.
    fn expected_words(&mut self, entry: &Entry, launch: &Launch, spec: &Spec) -> Result<String, Cause> {
        let Ok(Some(file)) = self.curve(entry, launch, spec) else {
            return Ok(String::new());
        };
        let mode = self.mode(launch).to_owned();
        let Some(drafts) = spec.draft_tokens.value().copied() else {
            return Ok(String::new());
        };
        let length = self.read(&file)?.and_then(|golden| golden.length(&mode, drafts));
        Ok(length.map_or_else(String::new, |length| format!(" {} for {drafts} draft tokens", shown(length.value()))))
    }

    fn knob_value(&self, knob: &str, length: f64) -> String {
        if self.params.drafts_only.iter().any(|name| name == knob) {
            shown(length - 1.0)
        } else {
            shown(length)
        }
    }

    /// The line of the detail section that has one of some words.
    fn detail(&self, words: &[String]) -> Option<String> {
        let detail = self.cx.recognition().signoff()?.detail.as_ref()?;
        let entry = detail.entries.iter().find(|entry| {
            let text = entry.text.to_lowercase();
            words.iter().any(|word| text.contains(&word.to_lowercase()))
        })?;
        let mut shown: String = entry.text.chars().take(160).collect();
        if shown.len() < entry.text.len() {
            shown.push('…');
        }
        Some(shown)
    }
}

fn shown(length: f64) -> String {
    format!("{length:.2}")
}

/// Where speculative decoding is turned on, as near as can be told.
fn spec_place(launch: &Launch) -> Source {
    let speculative = launch.flags.iter().find(|(name, _)| name.contains("spec"));
    speculative
        .and_then(|(_, values)| values.last())
        .map_or_else(|| launch.source.clone(), |value| value.source.clone())
}
