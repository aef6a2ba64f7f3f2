//! Labels say what runs
//!
//! ## What it checks
//! What the config, the changelog and file names say about touched entries, against the servers that their points start:
//! `spec-decoding` of each row against the speculative settings of the server; the image of the entry against the image that
//! its recipe names; words for runs with and without speculative decoding in new changelog items and in the names of
//! recipes; images that a new changelog item cites.
//!
//! ## Why
//! The benchmark runs whatever the labels say, but its results are filed, compared and drawn by them.
//!
//! ## Passes when
//! Everything that is said agrees with what would run, as far as text can tell.
//!
//! ## Fails when
//! Something that is said contradicts it. The check is meant to be advisory.
//!
//! ## Does not apply when
//! No entry is touched by its own values, script or recipe.
//!
//! ## How to fix
//! Correct the label, the word or the image that is named.
//!
//! Source: product page, section 5; domain guide, sections 9.4, 9.5 and 3.1.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_core::outcome::{CheckReport, Finding, Location, OutcomeKind};
use countersign_core::text::code;
use countersign_core::{Cause, Text, text};
use countersign_launch::{Launch, Role};
use countersign_matrix::{Entry, Item, Row, Scenarios, resolve_keys};
use countersign_records::images::Image;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::check::TypedCheck;
use crate::context::Context;
use crate::facts::affected::Items;
use crate::facts::launches::Group;
use crate::facts::tally::Tally;
use crate::facts::words::foreign_image;

pub(crate) struct Labels;

/// Parameters of `labels`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Params {
    /// Words for runs with speculative decoding. Case does not matter.
    with_spec: Vec<String>,
    /// Words for runs without it.
    without_spec: Vec<String>,
    /// Words that turn the word behind them around.
    #[serde(default)]
    negations: Vec<String>,
}

impl TypedCheck for Labels {
    type Params = Params;
    const SLUG: &'static str = "labels";
    const OUTCOMES: &'static [OutcomeKind] = &[
        OutcomeKind::Pass,
        OutcomeKind::Fail,
        OutcomeKind::NotApplicable,
        OutcomeKind::Unavailable,
    ];

    fn run(cx: &Context<'_>, params: &Params) -> CheckReport {
        judge(cx, params).unwrap_or_else(|cause| CheckReport::unavailable(&cause))
    }
}

/// Whether a server uses speculative decoding; `None` where text cannot tell.
fn has_spec(group: &Group) -> Option<bool> {
    // Where prefill and decode differ, decode is what the label is about (domain guide 9.4).
    let servers: Vec<&Launch> = group.starts.servers().filter(|server| server.role != Role::Prefill).collect();
    if servers.iter().any(|server| server.spec.is_some()) {
        return Some(true);
    }
    let known = !servers.is_empty() && group.starts.missing.is_empty() && servers.iter().all(|server| server.opaque.is_empty());
    known.then_some(false)
}

fn judge(cx: &Context<'_>, params: &Params) -> Result<CheckReport, Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    if let Some(report) = affected.unusable() {
        return Ok(report);
    }
    let launches = cx.launches().map_err(Cause::clone)?;
    let touched: Vec<(&Arc<Entry>, Scenarios)> = launches.touched().collect();
    if touched.is_empty() {
        return Ok(CheckReport::not_applicable("no benchmark entry is touched"));
    }
    let mut tally = Tally::default();
    let (mut told, mut untold) = (0usize, 0usize);
    for (entry, scenarios) in &touched {
        let head = launches.head(&entry.head.key);
        head.read()?;
        let mut files: BTreeMap<&str, BTreeSet<bool>> = BTreeMap::new();
        for group in head.groups.iter().filter(|group| group.touched_by(*scenarios)) {
            match has_spec(group) {
                Some(runs) => {
                    told += group.rows.len();
                    spec_label(cx, entry, group, runs, &mut tally);
                    for file in &group.starts.files {
                        files.entry(file).or_default().insert(runs);
                    }
                }
                None => untold += group.rows.len(),
            }
            recipe_image(entry, group, &mut tally);
        }
        for (file, runs) in files {
            // A file that serves both kinds of points may have the name of either.
            if let [runs] = runs.into_iter().collect::<Vec<_>>().as_slice() {
                file_name(params, entry, file, *runs, &mut tally);
            }
        }
    }
    if let Items::Added(items) = &affected.items {
        for item in items {
            item_words(cx, params, item, &mut tally)?;
        }
    }
    if untold > 0 {
        tally.notes.push(text!["for ", untold, " points text cannot tell whether they use speculative decoding"]);
    }
    // Several rows of one recipe say the same.
    let mut seen = BTreeSet::new();
    tally.wrong.retain(|finding| seen.insert((finding.code.clone(), finding.message.plain())));
    Ok(tally.report(|| CheckReport::pass(text!["labels of ", told, " points agree with what they start"])))
}

fn spec_label(cx: &Context<'_>, entry: &Entry, group: &Group, runs: bool, tally: &mut Tally) {
    let none = &cx.policy().matrix.spec_decoding.none;
    for row in &group.rows {
        let says = *row.spec_decoding != **none;
        if says == runs {
            continue;
        }
        let source = group.starts.servers().find(|server| server.spec.is_some() == runs).or_else(|| group.starts.servers().next());
        let at = source.map_or_else(String::new, |server| server.source.to_string());
        let does = if runs { "starts with speculative decoding" } else { "starts without speculative decoding" };
        tally.wrong.push(
            Finding::new(
                "spec-label",
                text![code(&entry.head.key), " says ", code(format!("spec-decoding: {}", row.spec_decoding)), " at ", group.name(), ", but ", code(at), " ", does],
                text!["Set ", code("spec-decoding"), " of these rows to what runs, or change what runs."],
            )
            .at(row_place(entry, row)),
        );
        break;
    }
}

fn file_name(params: &Params, entry: &Entry, file: &str, runs: bool, tally: &mut Tally) {
    let (mine, other) = if runs { (&params.with_spec, &params.without_spec) } else { (&params.without_spec, &params.with_spec) };
    let Some(word) = file_word(file, other).filter(|_| file_word(file, mine).is_none()) else {
        return;
    };
    let does = if runs { "speculative decoding is on" } else { "speculative decoding is off" };
    tally.wrong.push(
        Finding::new(
            "file-name",
            text![code(file), " has ", code(word), " in its name, but ", does, " in what ", code(&entry.head.key), " starts from it"],
            "Rename the file after what it does, or change what it does.",
        )
        .at(Location { path: file.to_owned(), line: None, url: None }),
    );
}

fn row_place(entry: &Entry, row: &Row) -> Location {
    Location::line(entry.head.file.to_string(), u64::from(row.place.line))
}

/// The word of a path that is one of the given words, digits at its end apart. Folders count from the innermost.
fn file_word<'w>(path: &str, words: &'w [String]) -> Option<&'w str> {
    let stem = path.rsplit_once('.').map_or(path, |(stem, _)| stem).to_lowercase();
    let parts: Vec<&str> = stem.split(|c: char| !c.is_alphanumeric()).map(|part| part.trim_end_matches(|c: char| c.is_ascii_digit())).collect();
    words.iter().find(|word| parts.contains(&word.to_lowercase().as_str())).map(String::as_str)
}

/// The image that a recipe names runs; the one of the config is a label (domain guide 9.4, 15).
fn recipe_image(entry: &Entry, group: &Group, tally: &mut Tally) {
    let Ok(label) = Image::parse(&entry.head.image) else {
        return;
    };
    let mut told = BTreeSet::new();
    for server in group.starts.servers() {
        // An alias of the cluster has neither a repository nor a tag.
        let Some(image) = server.image.as_ref().filter(|image| image.contains(['/', '#'])).and_then(|image| Image::parse(image).ok()) else {
            continue;
        };
        if !image.same_image(&label) && told.insert((server.source.file.clone(), image.to_string())) {
            tally.wrong.push(
                Finding::new(
                    "recipe-image",
                    text![code(&entry.head.key), " names the image ", code(&label), ", but ", code(&server.source), " runs ", code(&image)],
                    "Name one image in both.",
                )
                .at(Location::line(server.source.file.to_string(), u64::from(server.source.line))),
            );
        }
    }
}

/// Words and images in a new changelog item, against the entries that it selects.
fn item_words(cx: &Context<'_>, params: &Params, item: &Item, tally: &mut Tally) -> Result<(), Cause> {
    let affected = cx.affected().map_err(Cause::clone)?;
    let launches = cx.launches().map_err(Cause::clone)?;
    let keys = resolve_keys(&item.config_keys, &affected.head.masters).unwrap_or_default();
    let mut runs: BTreeSet<Option<bool>> = BTreeSet::new();
    let mut images: Vec<Image> = Vec::new();
    for key in &keys {
        let head = launches.head(key);
        head.read()?;
        let scenarios = item.scenarios();
        runs.extend(head.groups.iter().filter(|group| group.touched_by(scenarios)).map(has_spec));
        images.extend(head.entry.iter().filter_map(|entry| Image::parse(&entry.head.image).ok()));
    }
    let place = || Location::line(cx.policy().layout.changelog.clone(), u64::from(item.line));
    let wrong = match runs.iter().collect::<Vec<_>>().as_slice() {
        [Some(true)] => Some((&params.with_spec, &params.without_spec, "every point that it selects uses speculative decoding")),
        [Some(false)] => Some((&params.without_spec, &params.with_spec, "no point that it selects uses speculative decoding")),
        _ => None,
    };
    let wrong = wrong.and_then(|(own, other, does)| {
        let word = item.description.iter().find_map(|line| foreign_word(line, own, other, &params.negations))?;
        Some((word, does))
    });
    if let Some((word, does)) = wrong {
        tally.wrong.push(
            Finding::new("item-word", text!["the new changelog item says ", code(word), ", but ", does], "Correct the description of the item.").at(place()),
        );
    }
    if let Some(cited) = foreign_image(item.description.iter().map(String::as_str), &images) {
        tally.wrong.push(
            Finding::new(
                "cited-image",
                text!["the new changelog item cites ", code(cited), ", which is the image of none of its entries; they use "]
                    .and(Text::list(images.iter().map(ToString::to_string).collect::<BTreeSet<_>>(), 3)),
                "Correct the image in the description of the item.",
            )
            .at(place()),
        );
    }
    Ok(())
}

/// A word for the other kind of run in a line that has none for the own kind; a word behind a negation says the opposite.
fn foreign_word<'l>(line: &'l str, own: &[String], other: &[String], negations: &[String]) -> Option<&'l str> {
    let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let is = |word: &str, list: &[String]| list.iter().any(|known| known.eq_ignore_ascii_case(word));
    let said = |list: &[String]| {
        (0..words.len()).find(|&at| {
            let negated = at.checked_sub(1).and_then(|before| words.get(before)).is_some_and(|before| is(before, negations));
            words.get(at).is_some_and(|word| is(word, list)) && !negated
        })
    };
    match (said(own), said(other)) {
        (None, Some(at)) => words.get(at).copied(),
        _ => None,
    }
}
