//! The points of a pull request: what its new changelog items select at head (domain guide, section 4.1).

use std::collections::BTreeMap;
use std::sync::Arc;

use countersign_core::evidence::ChangeStatus;
use countersign_core::{Cause, CauseKind, Evidence, Observed};
use countersign_matrix::{Configs, Problem, Row, SelectOptions, Selection, added_items, job_name, lane, select};
use countersign_policy::Policy;

use crate::memo::Memo;

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
    pub configs: Arc<Configs>,
}

/// Expected jobs of one lane: name → how many.
pub type Jobs = BTreeMap<String, usize>;

/// Computes the points.
///
/// # Errors
/// What could not be read.
pub fn compute(evidence: &Evidence, policy: &Policy, memo: &Memo) -> Result<Points, Cause> {
    let changelog = &policy.layout.changelog;
    let files = match &evidence.changed_files {
        Observed::Present(files) => files,
        Observed::Absent => {
            return Err(Cause::new(
                CauseKind::NotRecorded,
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
    let configs = memo.configs(evidence, policy, &evidence.pull_request.head_sha)?;
    let base = if items.iter().any(|item| item.append_only) {
        match &evidence.merge_base {
            Observed::Present(sha) => Some(memo.configs(evidence, policy, sha)?),
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
    match select(changelog, &items, &configs, base.as_deref(), &policy.matrix, options) {
        Ok(selection) => Ok(Points::Selected(Box::new(Selected { selection, configs }))),
        Err(problems) => {
            if let Observed::Present(base) = &evidence.merge_base {
                not_known(&problems, &*memo.configs(evidence, policy, base)?)?;
            }
            Ok(Points::Refused(problems))
        }
    }
}

/// Where the configs could not be read before either, it is the policy that does not know their form, or a mistake of the
/// target branch: what CI would say of this pull request cannot be told, and is no fault of it.
fn not_known(problems: &[Problem], base: &Configs) -> Result<(), Cause> {
    let before = base.problems();
    let same = |problem: &&Problem| before.iter().any(|old| old.same_as(problem));
    match problems.iter().find(same) {
        None => Ok(()),
        Some(problem) => Err(Cause::new(
            CauseKind::Malformed,
            problem.file.to_string(),
            format!("a part of it could not be read before this pull request either: {problem}"),
        )),
    }
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
