//! The points of a pull request: what its new changelog items select at head (domain guide, section 4.1).

use std::collections::BTreeMap;

use countersign_core::evidence::ChangeStatus;
use countersign_core::{Cause, CommitSha, Evidence, Observed};
use countersign_matrix::{Configs, Problem, Row, SelectOptions, Selection, added_items, job_name, lane, select};
use countersign_policy::Policy;

use super::tree::TreeFiles;

/// What a pull request would benchmark.
#[derive(Debug)]
pub enum Points {
    /// It does not touch the changelog, so nothing is ever run for it.
    Nothing,
    /// CI would refuse it, with the problems.
    Refused(Vec<Problem>),
    /// These rows.
    Selected(Box<Selected>),
}

/// Rows, and the configs that they come from.
#[derive(Debug)]
pub struct Selected {
    /// Rows and entries.
    pub selection: Selection,
    /// Configs at head.
    pub configs: Configs,
}

/// Expected jobs of one lane: name → how many.
pub type Jobs = BTreeMap<String, usize>;

/// Computes the points.
///
/// # Errors
/// What could not be read.
pub fn compute(evidence: &Evidence, policy: &Policy) -> Result<Points, Cause> {
    let changelog = &policy.layout.changelog;
    let files = match &evidence.changed_files {
        Observed::Present(files) => files,
        Observed::Absent => {
            return Err(Cause::new(
                countersign_core::CauseKind::NotRecorded,
                "changed files",
                "they were not gathered",
            ));
        }
        Observed::Unavailable(cause) => return Err(cause.clone()),
    };
    if !files
        .iter()
        .any(|file| file.path == *changelog && file.status != ChangeStatus::Removed)
    {
        return Ok(Points::Nothing);
    }
    let head_text = match evidence.head_file(changelog) {
        Observed::Present(text) => text,
        Observed::Absent => return Ok(Points::Nothing),
        Observed::Unavailable(cause) => return Err(cause),
    };
    let base_text = match evidence.base_file(changelog) {
        Observed::Present(text) => text,
        Observed::Absent => "".into(),
        Observed::Unavailable(cause) => return Err(cause),
    };
    let items = match added_items(changelog, &base_text, &head_text) {
        Ok(items) => items,
        Err(problems) => return Ok(Points::Refused(problems)),
    };
    let configs = configs_at(evidence, policy, &evidence.pull_request.head_sha)?;
    let base = if items.iter().any(|item| item.append_only) {
        match &evidence.merge_base {
            Observed::Present(sha) => Some(configs_at(evidence, policy, sha)?),
            Observed::Absent => None,
            Observed::Unavailable(cause) => return Err(cause.clone()),
        }
    } else {
        None
    };
    let options = SelectOptions {
        trim: false,
        all_evals: false,
        evals_only: false,
    };
    match select(changelog, &items, &configs, base.as_ref(), &policy.matrix, options) {
        Ok(selection) => Ok(Points::Selected(Box::new(Selected { selection, configs }))),
        Err(problems) => Ok(Points::Refused(problems)),
    }
}

/// Master configs and runners of a commit.
///
/// # Errors
/// What could not be read.
pub fn configs_at(evidence: &Evidence, policy: &Policy, commit: &CommitSha) -> Result<Configs, Cause> {
    let files = TreeFiles::new(evidence, commit)?;
    let configs = Configs::read(&files, &policy.layout, &policy.matrix);
    files.unread().map_or(Ok(configs), Err)
}

/// Expected jobs by lane. A row that no lane takes never runs and is not expected.
#[must_use]
pub fn expected<'p>(rows: impl Iterator<Item = &'p Row>, policy: &'p Policy) -> BTreeMap<&'p str, Jobs> {
    let mut lanes: BTreeMap<&str, Jobs> = BTreeMap::new();
    for row in rows {
        if let Some(lane) = lane(row, &policy.matrix) {
            *lanes
                .entry(lane.name.as_str())
                .or_default()
                .entry(job_name(row, &policy.matrix))
                .or_default() += 1;
        }
    }
    lanes
}
