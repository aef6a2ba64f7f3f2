//! The recipe is published upstream, and says what runs
//!
//! ## What it checks
//! Every touched entry of the frameworks that the policy names. First the links that the reviewer added to the sign-off: is
//! there one to an upstream recipe, and is it a merged pull request or a published page? Then the servers that the entry's
//! points start at head are compared, argument by argument, with the commands that the linked documents show. Which
//! arguments matter, and which values mean the same, is the policy's. Of the topologies that the pull request adds or
//! changes at least one must be documented; the others are told as notes.
//!
//! ## Why
//! A number that nobody else can reproduce from public documentation says nothing about what users get.
//!
//! ## Passes when
//! Each such entry has a changed topology of which every argument that matters is documented, with the same value, for its
//! own hardware or for hardware of the same family. An entry that starts as before needs any documented topology.
//!
//! ## Fails when
//! There is no link; no linked pull request is merged and no linked page exists; or an argument is not documented, only
//! documented for other hardware, or documented with another value.
//!
//! ## Asks a person when
//! Arguments depend on something that text cannot tell; the recipe leaves an argument to the engine that is set here, where
//! the policy says that the engine may well choose the same; running text names an argument that no command shows; the linked documents show no command that can be read; or the only
//! gaps are in arguments for which the policy lets the detail section explain an exclusion, and it names them.
//!
//! ## Does not apply when
//! No entry of the named frameworks is touched by its own values, script or recipe.
//!
//! ## How to fix
//! Get the recipe merged upstream with the arguments that are named, and link it in the detail section; or run what is
//! documented.
//!
//! Source: domain guide, section 16 (recipe links); product page, section 5; newest policy, check 3.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_core::evidence::PullState;
use countersign_core::outcome::{CheckReport, Finding, Findings, Location, Outcome, OutcomeKind};
use countersign_core::text::{code, link};
use countersign_core::{Cause, Text, text};
use countersign_launch::compare::{Class, Difference as Argument, Shelf, Subject};
use countersign_launch::upstream::{self, Mention};
use countersign_launch::{Launch, Source};
use countersign_matrix::{Entry, Scenarios, sku};
use countersign_signoff::signoff::Section;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::launches::{Difference, Group};
use crate::facts::tally::Tally;
use crate::facts::upstream::{LeadsTo, Linked, linked, prose, read, suggestions};

pub(crate) struct Recipe;

/// Parameters of `recipe`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Frameworks whose entries need a published recipe.
    frameworks: Vec<String>,
    /// Only entries that run on one node need one.
    #[serde(default)]
    single_node_only: bool,
    /// Kinds of links that lead to recipes, as the policy's upstream sources name them.
    links: Vec<String>,
    /// Arguments that the detail section may exclude with a reason, each with words by which it may be named there
    /// besides its own name. A person confirms the reason.
    #[serde(default)]
    explain: BTreeMap<String, Vec<String>>,
}

/// Most arguments that one finding lists.
const LISTED: usize = 8;

impl TypedCheck for Recipe {
    type Params = Params;
    const SLUG: &'static str = "recipe";
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
    let touched: Vec<_> = launches.touched().collect();
    let needs: Vec<_> = touched.iter().filter(|(entry, _)| needs_recipe(entry, params)).collect();
    if needs.is_empty() {
        let others: BTreeSet<_> = touched.iter().map(|(entry, _)| kind(entry)).collect();
        return Ok(CheckReport::not_applicable(if others.is_empty() {
            text!["no benchmark entry is touched"]
        } else {
            text!["no touched entry needs a published recipe; they run "].and(Text::list(&others, 4))
        }));
    }
    let Some(signoff) = cx.recognition().signoff() else {
        return Ok(CheckReport::fail(no_link(cx, params, "the text is no sign-off any more")));
    };
    let template = cx.template().map_err(Cause::clone)?;
    let links = linked(cx.evidence, signoff, template, &params.links);
    let (inside, behind): (Vec<_>, Vec<_>) = links.into_iter().partition(|found| found.section != Section::AfterSignature);
    if inside.is_empty() {
        let why = if behind.is_empty() {
            "no upstream recipe is linked in the sign-off"
        } else {
            "the only recipe link stands behind the signature, where it is no part of the sign-off"
        };
        return Ok(CheckReport::fail(no_link(cx, params, why)));
    }
    let unread = inside.iter().find_map(|found| match &found.leads_to {
        LeadsTo::Unread(cause) => Some(cause.clone()),
        _ => None,
    });
    let accepted: Vec<&Linked<'_>> = inside.iter().filter(|found| is_accepted(found)).collect();
    if accepted.is_empty() {
        return match unread {
            Some(cause) => Err(cause),
            None => Ok(not_published(&inside)),
        };
    }
    let documents = accepted.iter().flat_map(|found| documents(found));
    let page = read(documents.clone(), &cx.policy().upstream.reading);
    let prose = prose(documents, &cx.policy().upstream.reading);
    let book = Book {
        accepted: &accepted,
        page: &page,
        shelf: Shelf::new(&page.documented, &cx.policy().upstream.major),
        prose: &prose,
    };
    let mut tally = Tally::default();
    let mut fine = Vec::new();
    for (entry, scenarios) in needs {
        fine.extend(one_entry(cx, params, &book, entry, *scenarios, &mut tally)?);
    }
    // What a page that could not be read documents is not known: it may close every gap.
    if !tally.wrong.is_empty()
        && let Some(cause) = unread
    {
        return Err(cause);
    }
    let mut report = tally.report(|| {
        let mut reason = book.names().with(" documents ");
        for (index, entry) in fine.into_iter().enumerate() {
            reason = if index > 0 { reason.with("; ").and(entry) } else { reason.and(entry) };
        }
        CheckReport::pass(reason)
    });
    for found in inside.iter().filter(|found| !is_accepted(found)) {
        report = report.note(text![link(short(&found.link.url), &found.link.url), " does not count: ", state(found)]);
    }
    Ok(report)
}

fn needs_recipe(entry: &Entry, params: &Params) -> bool {
    params.frameworks.iter().any(|name| **name == *entry.head.framework)
        && !(params.single_node_only && entry.head.multi_node)
}

/// What kind of entry it is, for a reader.
fn kind(entry: &Entry) -> String {
    let nodes = if entry.head.multi_node { "multi-node" } else { "single-node" };
    format!("{nodes} {}", entry.head.framework)
}

fn no_link(cx: &Context<'_>, params: &Params, why: &str) -> Finding {
    let finding = Finding::new(
        "no-link",
        why,
        "Edit the sign-off: link the merged upstream pull request, or the published recipe page, in the detail section.",
    );
    let found = suggestions(cx.evidence, cx.policy(), &params.links);
    if found.is_empty() {
        return finding;
    }
    let lines: Vec<String> = found.iter().map(|url| format!("- Upstream recipe: {url}")).collect();
    Finding {
        message: finding.message.clone().with("; the thread names ").and(Text::list(&found, 3)),
        ..finding
    }
    .paste(lines.join("\n"))
}

fn is_accepted(found: &Linked<'_>) -> bool {
    match &found.leads_to {
        LeadsTo::Pull(pull) => pull.state == PullState::Merged,
        LeadsTo::Page(_) => true,
        LeadsTo::Nothing | LeadsTo::Unread(_) => false,
    }
}

fn documents<'e>(found: &Linked<'e>) -> impl Iterator<Item = (&'e String, &'e String)> + Clone + use<'e> {
    let documents = match &found.leads_to {
        LeadsTo::Pull(pull) => Some(&pull.documents),
        LeadsTo::Page(page) => Some(&page.documents),
        LeadsTo::Nothing | LeadsTo::Unread(_) => None,
    };
    documents.into_iter().flatten()
}

fn state(found: &Linked<'_>) -> &'static str {
    match &found.leads_to {
        LeadsTo::Pull(pull) => match pull.state {
            PullState::Open => "it is open, not merged",
            PullState::Draft => "it is a draft, not merged",
            PullState::Closed => "it was closed without a merge",
            PullState::Merged => "it is merged",
        },
        LeadsTo::Page(_) => "it is published",
        LeadsTo::Nothing => "it leads to nothing that is there",
        LeadsTo::Unread(_) => "it could not be read",
    }
}

/// An address without its scheme, as readers name it.
fn short(url: &str) -> &str {
    let url = url.strip_prefix("https://").unwrap_or(url);
    url.strip_prefix("github.com/").unwrap_or(url)
}

fn not_published(inside: &[Linked<'_>]) -> CheckReport {
    let findings = inside.iter().map(|found| {
        Finding::new(
            "not-merged",
            text!["the linked recipe ", link(short(&found.link.url), &found.link.url), " does not count: ", state(found)],
            "Get it merged upstream and run the check again, or link a recipe that is merged or published.",
        )
    });
    let findings: Vec<Finding> = findings.collect();
    let reason = findings.first().map(|finding| finding.message.clone()).unwrap_or_default();
    match Findings::from_vec(findings) {
        Some(findings) => CheckReport::new(Outcome::Fail(findings), reason),
        None => CheckReport::not_applicable("no link"),
    }
}

/// The accepted links and what they document.
struct Book<'b> {
    accepted: &'b [&'b Linked<'b>],
    page: &'b upstream::Page,
    /// What the page documents, ready to be compared.
    shelf: Shelf<'b>,
    /// Flags that running text names.
    prose: &'b BTreeMap<String, Vec<Mention>>,
}

impl Book<'_> {
    /// The links, for a reader.
    fn names(&self) -> Text {
        let mut out = Text::default();
        for (index, found) in self.accepted.iter().enumerate() {
            if index > 0 {
                out = out.with(", ");
            }
            out = out.with(link(short(&found.link.url), &found.link.url));
            if let LeadsTo::Pull(pull) = &found.leads_to
                && let Some(at) = pull.merged_at
            {
                out = out.with(format!(" (merged {})", at.format("%Y-%m-%d")));
            }
        }
        out
    }
}

/// How one topology of an entry compares.
struct Compared<'g> {
    group: &'g Group,
    gaps: Vec<Gap>,
    notes: Vec<Text>,
}

/// Something that keeps a topology from being documented.
struct Gap {
    is: Kind,
    says: Text,
    at: Option<Source>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Wrong,
    Explained,
    Unknown,
}

impl Compared<'_> {
    /// 0: documented; 1: a person may find it documented; 2: it is not.
    fn rank(&self) -> (u8, usize) {
        let wrong = self.gaps.iter().filter(|gap| gap.is == Kind::Wrong).count();
        let rank = match (self.gaps.is_empty(), wrong) {
            (true, _) => 0,
            (false, 0) => 1,
            _ => 2,
        };
        (rank, self.gaps.len())
    }
}

fn one_entry(
    cx: &Context<'_>,
    params: &Params,
    book: &Book<'_>,
    entry: &Arc<Entry>,
    scenarios: Scenarios,
    tally: &mut Tally,
) -> Result<Option<Text>, Cause> {
    let launches = cx.launches().map_err(Cause::clone)?;
    let key = &entry.head.key;
    let head = launches.head(key);
    let differences = launches.differences(key)?;
    let groups: Vec<(&Group, bool)> = head
        .groups
        .iter()
        .zip(&differences)
        .filter(|(group, _)| group.touched_by(scenarios))
        .map(|(group, difference)| (group, !matches!(difference, Difference::Changed(changes) if changes.is_empty())))
        .collect();
    let any_changed = groups.iter().any(|(_, changed)| *changed);
    let mut compared: Vec<Compared<'_>> = groups
        .iter()
        .filter(|(_, changed)| *changed || !any_changed)
        .map(|(group, _)| compare_group(cx, params, book, entry, group))
        .collect();
    // Of equally good ones the first stays first.
    compared.sort_by_key(Compared::rank);
    let Some(best) = compared.first() else {
        let why = head.problems.first().map_or_else(|| "it has no points".to_owned(), ToString::to_string);
        tally.asked.push(question(text![code(key), " cannot be compared: ", why], entry_place(entry)));
        return Ok(None);
    };
    let what = text![code(key), " at ", best.group.name()];
    let mut fine = None;
    match best.rank().0 {
        0 => {
            fine = Some(what);
            tally.notes.extend(best.notes.iter().cloned());
            for other in compared.iter().skip(1).filter(|other| !other.gaps.is_empty()).take(4) {
                tally.notes.push(text![code(key), " at ", other.group.name(), " is swept too and not documented: "].and(list(&other.gaps, 3)));
            }
        }
        1 => tally.asked.push(question(
            text!["whether the linked recipe documents "].and(what).with(" is not clear: ").and(list(&best.gaps, LISTED)),
            place(cx, &best.gaps, entry),
        )),
        _ => tally.wrong.push(
            Finding::new(
                "not-documented",
                book.names().with(" does not document ").and(what).with(": ").and(list(&best.gaps, LISTED)),
                "Get these arguments documented upstream for this hardware and link the merged pull request in the detail section, or run what is documented.",
            )
            .at(place(cx, &best.gaps, entry)),
        ),
    }
    if head.left > 0 {
        tally.notes.push(text![head.left, " more points of ", code(key), " were not looked at"]);
    }
    Ok(fine)
}

fn question(message: Text, at: Location) -> Finding {
    let answer = format!("/countersign confirm {} <reason>", Recipe::SLUG);
    Finding::new("unclear", message, text!["Compare the recipe with what runs and confirm if it is documented: ", code(answer), "."]).at(at)
}

fn entry_place(entry: &Entry) -> Location {
    Location::line(entry.head.file.to_string(), u64::from(entry.head.span.line))
}

fn place(cx: &Context<'_>, gaps: &[Gap], entry: &Entry) -> Location {
    let wrong = gaps.iter().filter(|gap| gap.is == Kind::Wrong).chain(gaps);
    let Some(at) = wrong.filter_map(|gap| gap.at.as_ref()).find(|at| at.line > 0) else {
        return entry_place(entry);
    };
    let line = u64::from(at.line);
    let url = cx.evidence.file_url(&cx.evidence.pull_request.head_sha, &at.file, Some(line));
    Location {
        url: Some(url),
        ..Location::line(at.file.to_string(), line)
    }
}

fn list(gaps: &[Gap], most: usize) -> Text {
    let mut out = Text::default();
    // What is wrong first, since the rest may be cut.
    let (wrong, rest): (Vec<&Gap>, Vec<&Gap>) = gaps.iter().partition(|gap| gap.is == Kind::Wrong);
    for (index, gap) in wrong.into_iter().chain(rest).take(most).enumerate() {
        if index > 0 {
            out = out.with(", ");
        }
        out = out.and(gap.says.clone());
    }
    if gaps.len() > most {
        out = out.with(format!(" and {} more", gaps.len() - most));
    }
    out
}

fn compare_group<'g>(cx: &Context<'_>, params: &Params, book: &Book<'_>, entry: &Entry, group: &'g Group) -> Compared<'g> {
    let mut out = Compared {
        group,
        gaps: Vec::new(),
        notes: Vec::new(),
    };
    let unknown = |says: Text| Gap {
        is: Kind::Unknown,
        says,
        at: None,
    };
    if book.page.documented.is_empty() {
        let why = book.page.notes.first().map_or("they show no command that starts a server", String::as_str);
        out.gaps.push(unknown(text!["the linked documents cannot be compared: ", why]));
        return out;
    }
    out.gaps.extend(group.starts.missing.iter().map(|missing| unknown(text![missing.to_string()])));
    let mut servers: Vec<&Launch> = Vec::new();
    for server in group.starts.servers() {
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    if servers.is_empty() && out.gaps.is_empty() {
        out.gaps.push(unknown(text!["no server is started that is known here"]));
    }
    let roles = servers.iter().any(|server| servers.first().is_some_and(|first| first.role != server.role));
    for server in servers {
        compare_server(cx, params, book, entry, server, roles, &mut out);
    }
    out
}

fn compare_server(
    cx: &Context<'_>,
    params: &Params,
    book: &Book<'_>,
    entry: &Entry,
    server: &Launch,
    roles: bool,
    out: &mut Compared<'_>,
) {
    let hardware = sku(&entry.head.runner, &cx.policy().layout, &cx.policy().matrix);
    let models = [entry.head.model.to_string()];
    let subject = Subject {
        launch: server,
        models: &models,
        hardware,
    };
    let result = book.shelf.compare(&subject);
    let role = if roles { text![server.role.to_string(), ": "] } else { Text::default() };
    if result.same_engine == 0 {
        out.gaps.push(Gap {
            is: Kind::Wrong,
            says: role.with("no command for ").with(code(server.engine)).with(" is shown"),
            at: Some(server.source.clone()),
        });
        return;
    }
    let hardware = hardware.unwrap_or_default();
    for argument in &result.differences {
        let Some((is, says)) = gap(cx, params, book, argument, hardware, &mut out.notes) else {
            continue;
        };
        let says = role.clone().and(says);
        // Two ways through a script say the same.
        if out.gaps.iter().any(|known| known.says == says) {
            continue;
        }
        out.gaps.push(Gap {
            is,
            says,
            at: argument.ours_at.clone().or_else(|| Some(server.source.clone())),
        });
    }
}

/// What keeps one argument from being documented; `None` where it is.
fn gap(cx: &Context<'_>, params: &Params, book: &Book<'_>, argument: &Argument, hardware: &str, notes: &mut Vec<Text>) -> Option<(Kind, Text)> {
    let name = || text![code(&argument.argument), " ", code(&argument.ours)];
    let says = match argument.class {
        Class::Matching => return None,
        Class::Informational => {
            let theirs = argument.documented.first().cloned().unwrap_or_default();
            notes.push(text!["the recipe sets ", code(&argument.argument), " to ", code(theirs), ", which is left to the engine here"]);
            return None;
        }
        Class::Undecided => return Some((Kind::Unknown, name().with(" cannot be known from text"))),
        // A page that names no hardware at all speaks about any.
        Class::Missing if argument.argument == "hardware" => {
            notes.push(text!["the recipe's command names no hardware"]);
            return None;
        }
        Class::Missing if cx.policy().upstream.reading.chosen_by_engine.contains(&argument.argument) => {
            return Some((Kind::Unknown, name().with(" is left to the engine by the recipe")));
        }
        Class::Missing if argument.documented.is_empty() => name().with(" is not documented"),
        Class::Missing => name().with(" is not documented; shown is ").and(Text::list(&argument.documented, 3)),
        Class::Elsewhere => {
            if is_near(cx, argument, hardware) {
                notes.push(name().with(" is documented for ").and(Text::list(named(argument), 4)).with(", of the same family"));
                return None;
            }
            name().with(" is documented only for ").and(Text::list(named(argument), 4))
        }
        Class::Contradicting => name().with(", documented is ").and(Text::list(&argument.documented, 4)),
    };
    let explained = params.explain.get(&argument.argument).is_some_and(|words| is_named(cx, &argument.argument, words));
    if explained {
        return Some((Kind::Explained, says.with(" (the detail section speaks about it)")));
    }
    // Of other hardware a command speaks plainly; running text may mean ours.
    if argument.class != Class::Elsewhere
        && let Some(at) = in_prose(cx, book, argument)
    {
        return Some((Kind::Unknown, says.with(" in a command, but named in the text at ").with(code(at))));
    }
    Some((Kind::Wrong, says))
}

fn named(argument: &Argument) -> impl Iterator<Item = &str> {
    argument.elsewhere.iter().map(|name| if name.is_empty() { "no named hardware" } else { name.as_str() })
}

/// Whether a value that other documented commands have was documented for hardware of our family, or for none in particular.
fn is_near(cx: &Context<'_>, argument: &Argument, hardware: &str) -> bool {
    let family = cx.policy().upstream.reading.families.iter().find(|family| family.iter().any(|member| member == hardware));
    argument
        .elsewhere
        .iter()
        .any(|name| name.is_empty() || name == hardware || family.is_some_and(|family| family.contains(name)))
}

/// Where running text names an argument with our value.
fn in_prose<'b>(cx: &Context<'_>, book: &'b Book<'_>, argument: &Argument) -> Option<&'b Source> {
    let upstream = &cx.policy().upstream;
    let own = [argument.argument.clone()];
    let names = upstream.reading.spellings.get(&argument.argument).map_or(&own[..], Vec::as_slice);
    let ours = argument.ours.to_lowercase();
    let same = |value: &str| {
        let value = value.to_lowercase();
        value == ours || upstream.major.equal.iter().any(|(name, group)| *name == argument.argument && group.contains(&value) && group.contains(&ours))
    };
    names
        .iter()
        .filter_map(|name| book.prose.get(name))
        .flatten()
        .find(|mention| mention.value.as_deref().is_some_and(same))
        .map(|mention| &mention.source)
}

/// Whether the detail section names an argument.
fn is_named(cx: &Context<'_>, argument: &str, words: &[String]) -> bool {
    let Some(detail) = cx.recognition().signoff().and_then(|signoff| signoff.detail.as_ref()) else {
        return false;
    };
    let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).chain([argument.to_lowercase()]).collect();
    detail.entries.iter().any(|entry| {
        let text = entry.text.to_lowercase();
        words.iter().any(|word| !word.is_empty() && text.contains(word.as_str()))
    })
}
