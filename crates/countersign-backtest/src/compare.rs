//! What another policy changes: row by row, only where a reader would see a difference that matters.

use std::collections::BTreeMap;

use countersign_core::Level;
use serde::{Deserialize, Serialize};

use crate::record::{Is, Place, PullResult, RowResult, Standing};

/// One row that differs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The pull request.
    pub number: u64,
    /// Its title.
    pub title: String,
    /// Whether it was merged.
    pub merged: bool,
    /// Its address.
    pub url: String,
    /// The check, by slug.
    pub slug: String,
    /// What became of it before; nothing where the policy did not have it.
    pub from: Option<Is>,
    /// What becomes of it now; nothing where the policy no longer has it.
    pub to: Option<Is>,
    /// How it weighed before.
    pub from_level: Option<Level>,
    /// How it weighs now.
    pub to_level: Option<Level>,
    /// What the pull request came to before, and comes to now.
    pub standing: (Standing, Standing),
    /// Why: of the row as it is now, or as it was where it is gone.
    pub cause: String,
    /// Why it was otherwise before.
    pub before: Option<String>,
    /// What to do.
    pub remedy: Option<String>,
    /// Where.
    pub place: Option<Place>,
}

impl Change {
    /// From what to what, in words.
    #[must_use]
    pub fn step(&self) -> String {
        let word = |is: Option<Is>, level: Option<Level>| match (is, level) {
            (None, _) => "not checked".to_owned(),
            (Some(is), Some(Level::Advisory)) => format!("{} (advisory)", is.word()),
            (Some(is), _) => is.word().to_owned(),
        };
        format!(
            "{} → {}",
            word(self.from, self.from_level),
            word(self.to, self.to_level)
        )
    }
}

/// Whether an outcome asks something of somebody.
fn bites(is: Is) -> bool {
    matches!(is, Is::Fail | Is::Question | Is::Warn)
}

/// The rows that differ between two backtests of the same pull requests, by number and check.
///
/// A check that only one of the policies has differs where it asks something of somebody: that it passes is no news.
#[must_use]
pub fn compare(before: &[PullResult], after: &[PullResult]) -> Vec<Change> {
    let old: BTreeMap<u64, &PullResult> = before.iter().map(|result| (result.number, result)).collect();
    let mut out = Vec::new();
    for now in after {
        let Some(then) = old.get(&now.number) else { continue };
        let mut slugs: BTreeMap<&str, (Option<&RowResult>, Option<&RowResult>)> = BTreeMap::new();
        for row in &then.rows {
            slugs.entry(&row.slug).or_default().0 = Some(row);
        }
        for row in &now.rows {
            slugs.entry(&row.slug).or_default().1 = Some(row);
        }
        let mut changes: Vec<Change> = slugs
            .into_iter()
            .filter(|(_, (from, to))| match (from, to) {
                (Some(from), Some(to)) => from.is != to.is || (from.level != to.level && bites(to.is)),
                (Some(row), None) | (None, Some(row)) => bites(row.is),
                (None, None) => false,
            })
            .map(|(slug, (from, to))| change(then, now, slug, from, to))
            .collect();
        changes.sort_by(|left, right| (left.to.or(left.from), &left.slug).cmp(&(right.to.or(right.from), &right.slug)));
        out.extend(changes);
    }
    out
}

fn change(then: &PullResult, now: &PullResult, slug: &str, from: Option<&RowResult>, to: Option<&RowResult>) -> Change {
    let shown = to.or(from);
    let finding = to.and_then(|row| row.findings.first());
    Change {
        number: now.number,
        title: now.title.clone(),
        merged: now.merged,
        url: now.url.clone(),
        slug: slug.to_owned(),
        from: from.map(|row| row.is),
        to: to.map(|row| row.is),
        from_level: from.map(|row| row.level),
        to_level: to.map(|row| row.level),
        standing: (then.standing, now.standing),
        cause: shown.map(|row| row.why.clone()).unwrap_or_default(),
        before: to.and(from).map(|row| row.why.clone()),
        remedy: finding.map(|finding| finding.remedy.clone()),
        place: finding.and_then(|finding| finding.place.clone()),
    }
}
