//! The image runs as it was shipped
//!
//! ## What it checks
//! The scripts that the pull request changes, those that touched entries run, what these call, and the setup scripts that
//! recipes name: for everything that writes into the serving stack of the image, replaces a part of it, loads code into it,
//! or installs it anew. Variables are followed; what clients, evaluations and the harness do to themselves is free.
//!
//! ## Why
//! Whoever pulls the image must be able to get the published number.
//!
//! ## Passes when
//! Nothing does, or every patch is covered by a filled waiver that the sign-off's detail section links. A patch that this
//! pull request brings is waived by the file of its own number, added by itself; an older one by a waiver on the target branch.
//!
//! ## Fails when
//! A patch has no waiver, or the waiver is not filled, does not name the patching script, or is not linked.
//!
//! ## Asks a person when
//! What a script does is not clear: a setup script from elsewhere, a patch applied to something unknown, a package beside the
//! engine. And where a changed script newly starts one that patches and stays as it is. Where a touched entry's script patches
//! and the pull request changes nothing of it, the policy says whether that is a question or a note: the rule is about what the
//! pull request brings or edits, and a comment is no edit.
//!
//! ## Does not apply when
//! The pull request touches no entry and no script.
//!
//! ## How to fix
//! Use an image that has the fix. Otherwise add the waiver: what is patched and by which script, why the unmodified image
//! cannot run, the upstream pull request, and when the patch goes.
//!
//! Source: domain guide, sections 11 and 12; product page, section 5.

use std::collections::BTreeMap;

use countersign_core::outcome::{CheckReport, Finding, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Observed, Text, text};
use countersign_launch::Source;
use countersign_matrix::{Entry, Scenarios};
use countersign_policy::ScriptRules;
use countersign_records::waiver::{Waiver, WaiverRules};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::acts::{Act, Kind};
use crate::facts::gaps::confirm;
use crate::facts::launches::{Group, Launches};
use crate::facts::scripts::{Script, setup_scripts};
use crate::facts::sorted::{Sorted, place};

pub(crate) struct EnginePatch;

/// Parameters of `engine-patch`. What counts as a patch is in the policy's sections `scripts` and `waivers`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// What a patch means that was there before, in a script that the pull request leaves as it is, without a waiver.
    #[serde(default)]
    untouched: Untouched,
}

/// What an untouched patch means.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Untouched {
    /// A person is asked.
    #[default]
    Ask,
    /// It is told in the row.
    Note,
}

impl TypedCheck for EnginePatch {
    type Params = Params;
    const SLUG: &'static str = "engine-patch";
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

/// A waiver and its path.
type Named = (String, Waiver);

/// What was looked at.
struct Judge<'c, 'a> {
    cx: &'c Context<'a>,
    untouched: Untouched,
    rules: &'a WaiverRules,
    /// The waiver of this pull request, if it adds one.
    own: Option<Named>,
    /// Waivers on the target branch.
    older: Vec<Named>,
    sorted: Sorted,
    waived: BTreeMap<String, String>,
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    // Scripts can be judged where configs cannot; what they are guilty of does not wait for that.
    let blocked = affected.unusable();
    if let Some(report) = blocked.as_ref().filter(|report| report.outcome.kind() == OutcomeKind::Fail) {
        return Ok(report.clone());
    }
    let policy = cx.policy();
    let rules = cx.section("scripts", &policy.scripts)?;
    let waivers = cx.section("waivers", &policy.waivers)?;
    let launches = cx.launches().map_err(Cause::clone)?;
    let scripts = cx.scripts().map_err(Cause::clone)?;
    let mut judge = Judge {
        cx,
        untouched: params.untouched,
        rules: waivers,
        own: None,
        older: Vec::new(),
        sorted: Sorted::default(),
        waived: BTreeMap::new(),
    };
    let mut files = 0usize;
    for script in scripts.all() {
        files += 1;
        judge.script(script)?;
    }
    if scripts.left > 0 {
        judge.sorted.question(Finding::new(
            "too-many-scripts",
            text![scripts.left, " scripts were not looked at: there are too many"],
            text!["Split the pull request, or confirm that they patch nothing: ", code(confirm(EnginePatch::SLUG)), "."],
        ));
    }
    let mut entries = 0usize;
    for (entry, scenarios) in launches.touched() {
        entries += 1;
        judge.setup(launches, entry, scenarios, rules)?;
    }
    let waived = judge.waived;
    let report = judge.sorted.report(|| {
        if entries == 0 && files == 0 {
            return CheckReport::not_applicable("no entry and no script is touched");
        }
        if waived.is_empty() {
            return CheckReport::pass(text!["nothing patches the serving stack in ", files, " scripts"]);
        }
        CheckReport::pass(text!["patches are waived: "].and(Text::list(waived.iter().map(|(script, waiver)| format!("{script} by {waiver}")), 4)))
    });
    Ok(match blocked {
        Some(blocked) if report.outcome.kind() != OutcomeKind::Fail => blocked,
        _ => report,
    })
}

impl Judge<'_, '_> {
    fn script(&mut self, script: &Script) -> Result<(), Cause> {
        let acts = |kind: Kind| script.acts().iter().filter(move |act| act.kind == kind);
        if script.aside {
            if let Some(act) = acts(Kind::Engine).next() {
                self.sorted.note(said(script, act).with(", in a file whose results are not published"));
            }
            return Ok(());
        }
        if !script.whole {
            let what = text![code(&script.path), " is too large, or too deeply nested, to be read as a whole"];
            if script.changed || script.called_anew {
                self.sorted.question(
                    Finding::new(
                        "not-read-whole",
                        what,
                        text!["Make it plainer, or confirm that it patches nothing: ", code(confirm(EnginePatch::SLUG)), "."],
                    )
                    .at(place(&Source::new(script.path.as_str(), 1))),
                );
            } else {
                self.sorted.note(what.with(", as before this pull request"));
            }
        }
        let added = |act: &&Act| script.adds(act.line, act.last_line);
        let fresh: Vec<&Act> = acts(Kind::Engine).filter(added).collect();
        let old: Vec<&Act> = acts(Kind::Engine).filter(|act| !added(act)).collect();
        if let Some(first) = fresh.first() {
            self.fresh(script, first, fresh.len())?;
        }
        if let Some(first) = old.first() {
            self.old(script, first, old.len())?;
        }
        for act in acts(Kind::Doubtful) {
            if added(&act) {
                self.sorted.question(
                    Finding::new(
                        "doubtful",
                        said(script, act),
                        text!["Confirm that the serving stack stays as shipped: ", code(confirm(EnginePatch::SLUG)), "."],
                    )
                    .at(at(script, act)),
                );
            } else {
                self.sorted.note(said(script, act).with(", as before this pull request"));
            }
        }
        Ok(())
    }

    /// A patch that this pull request brings: only its own waiver covers it.
    fn fresh(&mut self, script: &Script, act: &Act, count: usize) -> Result<(), Cause> {
        let number = self.cx.evidence.pull_request.number.0;
        let path = format!("{}{number}.md", self.cx.policy().paths.waivers);
        let what = said(script, act).with(more(count));
        if self.own.is_none() {
            self.own = own_waiver(self.cx, self.rules, &path)?.map(|waiver| (path.clone(), waiver));
        }
        let Some((_, waiver)) = &self.own else {
            self.sorted.wrong(
                Finding::new(
                    "no-waiver",
                    what.with(", and this pull request adds no waiver"),
                    text!["Take the patch out, or add ", code(&path), " with what is patched by which script, why the unmodified image cannot run, the upstream link, and the plan for its removal; link it in the detail section."],
                )
                .at(at(script, act)),
            );
            return Ok(());
        };
        let wrong_number = waiver.number.is_some_and(|found| found != number);
        let mut missing = waiver.missing();
        if wrong_number {
            missing.push(format!("the number {number} in its title"));
        }
        if !missing.is_empty() {
            self.sorted.wrong(
                Finding::new(
                    "waiver-not-filled",
                    what.with(", and ").with(code(&path)).with(" lacks: ").and(Text::list(&missing, 6)),
                    text!["Fill in ", code(&path), "."],
                )
                .at(at(script, act)),
            );
            return Ok(());
        }
        if waiver.names(&script.path).is_none() {
            self.sorted.wrong(
                Finding::new(
                    "waiver-does-not-cover",
                    what.with(", and ").with(code(&path)).with(" does not name that script"),
                    text!["Say in ", code(&path), " what ", code(&script.path), " patches, and why."],
                )
                .at(at(script, act)),
            );
            return Ok(());
        }
        self.linked(script, act, &path);
        Ok(())
    }

    /// A patch that was there before: a waiver on the target branch covers it.
    fn old(&mut self, script: &Script, act: &Act, count: usize) -> Result<(), Cause> {
        if self.older.is_empty() {
            self.older = older_waivers(self.cx, self.rules)?;
        }
        let what = said(script, act).with(more(count));
        let covering = self.older.iter().find(|(_, waiver)| waiver.filled() && waiver.names(&script.path).is_some());
        match covering.map(|(path, _)| path.clone()) {
            Some(path) if script.changed => self.linked(script, act, &path),
            Some(path) => {
                self.waived.insert(script.path.clone(), path);
            }
            None if script.changed => self.sorted.wrong(
                Finding::new(
                    "old-patch-without-waiver",
                    what.with(", as before this pull request; no waiver on the target branch names that script"),
                    text!["Take the patch out, or let the waiver of the pull request that brought it be merged into ", code(&self.cx.policy().paths.waivers), " first."],
                )
                .at(at(script, act)),
            ),
            None if !script.called_anew && self.untouched == Untouched::Note => {
                self.sorted.note(what.with(", as before this pull request, which does not change what that script does; no waiver names it"));
            }
            None => {
                let since = if script.called_anew {
                    "; this pull request does not change that script, but starts it where it did not run before, and no waiver names it"
                } else {
                    "; this pull request does not change that script, and no waiver names it"
                };
                self.sorted.question(
                    Finding::new(
                        "old-patch-elsewhere",
                        what.with(since),
                        text!["Take the patch out, or confirm that it may stay: ", code(confirm(EnginePatch::SLUG)), "."],
                    )
                    .at(at(script, act)),
                );
            }
        }
        Ok(())
    }

    fn linked(&mut self, script: &Script, act: &Act, path: &str) {
        // Nobody has signed yet: whether the link is there cannot be told, and is no fault.
        if self.cx.recognition().signoff().is_none() || is_linked(self.cx, path) {
            self.waived.insert(script.path.clone(), path.to_owned());
            return;
        }
        let url = self.cx.evidence.file_url(&self.cx.evidence.pull_request.head_sha, path, None);
        self.sorted.wrong(
            Finding::new(
                "waiver-not-linked",
                said(script, act).with("; ").with(code(path)).with(" covers it, and the detail section of the sign-off does not link it"),
                text!["Add the link to the detail section."],
            )
            .paste(url)
            .at(at(script, act)),
        );
    }

    /// Setup scripts that a recipe names and that do not lie in the repository.
    fn setup(&mut self, launches: &Launches<'_>, entry: &Entry, scenarios: Scenarios, rules: &ScriptRules) -> Result<(), Cause> {
        let key = &*entry.head.key;
        let (base, head) = (launches.before(key), launches.head(key));
        head.read()?;
        for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
            for (name, source) in setup_scripts(group, rules) {
                let here = |folder: &String| self.cx.evidence.head_file(&format!("{folder}{name}")).present().is_some();
                if rules.setup_fine.contains(&name) || rules.setup_folders.iter().any(here) {
                    continue;
                }
                let same = |old: &Group| setup_scripts(old, rules).any(|(old, _)| old == name);
                // A recipe that named it before is not changed by being used for more.
                let was = self.cx.evidence.base_file(&source.file).present().map(|text| names_setup(text, &name, rules));
                let old = was == Some(true) || base.all(&group.rows, same)?;
                self.foreign_setup(key, &name, source, old, rules)?;
            }
        }
        Ok(())
    }

    fn foreign_setup(&mut self, key: &str, name: &str, source: &Source, old: bool, rules: &ScriptRules) -> Result<(), Cause> {
        if let Some(path) = self.waiver_naming(name)? {
            self.waived.insert(name.to_owned(), path);
            return Ok(());
        }
        let patches = rules.setup_patches.iter().any(|part| name.contains(part.as_str()));
        let what = text![code(key), " runs ", code(name), " in the container before serving, a script from elsewhere"];
        if patches && !old {
            self.sorted.wrong(
                Finding::new(
                    "patching-setup-script",
                    what.with(" that changes the serving stack by its name"),
                    text!["Remove it from the recipe, or file a waiver for it."],
                )
                .at(place(source)),
            );
        } else if (patches && (self.untouched == Untouched::Ask || self.changes(&source.file))) || !old {
            self.sorted.question(
                Finding::new(
                    "setup-script",
                    what.with(if old { ", as before this pull request" } else { "" }),
                    text!["Confirm that it leaves the serving stack as shipped: ", code(confirm(EnginePatch::SLUG)), "."],
                )
                .at(place(source)),
            );
        } else {
            self.sorted.note(what.with(", as before this pull request"));
        }
        Ok(())
    }

    /// Whether the pull request changes a file.
    fn changes(&self, path: &str) -> bool {
        self.cx.evidence.base_file(path).present() != self.cx.evidence.head_file(path).present()
    }

    /// The filled waiver that names a script from elsewhere and that the sign-off links.
    fn waiver_naming(&mut self, name: &str) -> Result<Option<String>, Cause> {
        let own = format!("{}{}.md", self.cx.policy().paths.waivers, self.cx.evidence.pull_request.number.0);
        if self.own.is_none() {
            self.own = own_waiver(self.cx, self.rules, &own)?.map(|waiver| (own, waiver));
        }
        if self.older.is_empty() {
            self.older = older_waivers(self.cx, self.rules)?;
        }
        let all = self.own.iter().chain(&self.older);
        let named = all.filter(|(_, waiver)| waiver.filled() && waiver.names(name).is_some()).map(|(path, _)| path);
        Ok(named.into_iter().find(|path| is_linked(self.cx, path)).cloned())
    }
}

/// Whether the text of a recipe names a setup script.
fn names_setup(text: &str, name: &str, rules: &ScriptRules) -> bool {
    let setting = rules.setup_setting.as_deref().unwrap_or_default();
    text.lines().any(|line| line.contains(setting) && line.contains(name))
}

fn said(script: &Script, act: &Act) -> Text {
    text![code(&script.path), " ", act.how, ": ", code(&act.shown)]
}

fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more places)", count - 1),
    }
}

fn at(script: &Script, act: &Act) -> countersign_core::outcome::Location {
    place(&Source::new(script.path.as_str(), act.line))
}

/// Whether the detail section of the sign-off links a file.
fn is_linked(cx: &Context<'_>, path: &str) -> bool {
    let detail = cx.recognition().signoff().and_then(|signoff| signoff.detail.as_ref());
    detail.is_some_and(|detail| {
        detail.links().any(|link| {
            let plain = link.url.split(['#', '?']).next().unwrap_or_default();
            plain.ends_with(&format!("/{path}"))
        })
    })
}

/// The waiver that this pull request adds: a file that the merge base does not have.
fn own_waiver(cx: &Context<'_>, rules: &WaiverRules, path: &str) -> Result<Option<Waiver>, Cause> {
    let text = match cx.evidence.head_file(path) {
        Observed::Present(text) => text,
        Observed::Absent => return Ok(None),
        Observed::Unavailable(cause) => return Err(cause),
    };
    match cx.evidence.base_file(path) {
        Observed::Absent => Ok(Some(Waiver::read(&text, rules))),
        Observed::Present(_) => Ok(None),
        Observed::Unavailable(cause) => Err(cause),
    }
}

/// Most waivers that are read.
const MOST_WAIVERS: usize = 500;

fn older_waivers(cx: &Context<'_>, rules: &WaiverRules) -> Result<Vec<Named>, Cause> {
    let folder = &cx.policy().paths.waivers;
    let tree = match cx.evidence.trees.get(&cx.evidence.trusted_sha) {
        Some(Observed::Present(tree)) => tree,
        Some(Observed::Unavailable(cause)) => return Err(cause.clone()),
        _ => return Ok(Vec::new()),
    };
    let mut out = Vec::new();
    for path in tree.paths(folder).filter(|path| path.ends_with(".md")).take(MOST_WAIVERS) {
        match cx.evidence.trusted_file(path) {
            Observed::Present(text) => out.push((path.to_owned(), Waiver::read(&text, rules))),
            Observed::Absent => {}
            Observed::Unavailable(cause) => return Err(cause),
        }
    }
    Ok(out)
}
