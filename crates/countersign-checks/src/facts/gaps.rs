//! What is not known of the points of an entry at head, and whether the pull request is to answer for it.
//!
//! What cannot be read is never taken for absent. Where merge base and head lack the same knowledge, the pull request
//! did not bring the gap; that is worth a note. A gap that is new, or of a new point, is a question.

use std::collections::BTreeSet;

use countersign_core::outcome::{Finding, Location};
use countersign_core::text::code;
use countersign_core::{Cause, Text, text};
use countersign_launch::Launch;
use countersign_launch::point::Missing;
use countersign_matrix::Scenarios;

use super::before::Before;
use super::launches::{Group, Launches};
use super::sorted::Sorted;

/// Notes and questions about what is not known of an entry's points.
///
/// # Errors
/// A file could not be read.
pub fn ask(
    launches: &Launches<'_>,
    key: &str,
    scenarios: Scenarios,
    slug: &str,
    sorted: &mut Sorted,
) -> Result<(), Cause> {
    let (base, head) = (launches.before(key), launches.head(key));
    head.read()?;
    let Some(entry) = &head.entry else { return Ok(()) };
    let place = Location::line(entry.head.file.to_string(), u64::from(entry.head.span.line));
    for problem in &head.problems {
        question(
            sorted,
            slug,
            text![code(key), " cannot be expanded into points: ", code(problem)],
            place.clone(),
        );
    }
    if head.left > 0 {
        let what = text![
            head.left,
            " points of ",
            code(key),
            " were not looked at: there are too many"
        ];
        question(sorted, slug, what, place.clone());
    }
    // Data that a script reads is no matter; a script that it runs is.
    for path in head.outside.iter().filter(|path| path.ends_with(".sh")) {
        sorted.note(text![
            code(key),
            " reads ",
            code(path),
            ", which is not among the files that are looked at"
        ]);
    }
    for group in head.groups.iter().filter(|group| group.touched_by(scenarios)) {
        for missing in &group.starts.missing {
            let what = text![code(key), ": ", code(missing)];
            // A script that is not there starts nothing; the run shows it.
            if matches!(missing, Missing::Script(_)) || known_before(&base, group, missing)? {
                sorted.note(what.with(", as before this pull request"));
            } else {
                question(
                    sorted,
                    slug,
                    what.with(", so what it starts is not known"),
                    place.clone(),
                );
            }
        }
    }
    Ok(())
}

/// Whether each point of a group lacked the same at the merge base.
fn known_before(base: &Before<'_, '_>, group: &Group, missing: &Missing) -> Result<bool, Cause> {
    base.all(&group.rows, |old| old.starts.missing.contains(missing))
}

/// Whether a launch at head has words that are not known and that it did not have at the merge base.
///
/// # Errors
/// There are such words, and what the merge base had could not be read.
pub fn new_unknown_words(base: &Before<'_, '_>, group: &Group, launch: &Launch) -> Result<Option<String>, Cause> {
    let words: BTreeSet<String> = launch.opaque.iter().map(|word| word.text.to_string()).collect();
    if words.is_empty() {
        return Ok(None);
    }
    let base = base.get()?;
    let old: BTreeSet<String> = group
        .rows
        .iter()
        .filter_map(|row| base.group_of(&row.point(), 0))
        .flat_map(|group| group.starts.launches.iter())
        .flat_map(|launch| launch.opaque.iter())
        .map(|word| word.text.to_string())
        .collect();
    let new: Vec<String> = words.difference(&old).take(3).cloned().collect();
    Ok((!new.is_empty()).then(|| new.join(", ")))
}

fn question(sorted: &mut Sorted, slug: &str, what: Text, place: Location) {
    let remedy = text![
        "Look at it, and confirm that the rule holds: ",
        code(confirm(slug)),
        "."
    ];
    sorted.question(Finding::new("not-known", what, remedy).at(place));
}

/// The command that answers a question of a check.
#[must_use]
pub fn confirm(slug: &str) -> String {
    format!("/countersign confirm {slug} <reason>")
}
