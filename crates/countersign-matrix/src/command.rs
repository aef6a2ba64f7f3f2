//! The whole of the matrix command in one call: what a revision generates, how it differs from a base, or what its
//! changelog selects.

use std::fmt::Write as _;

use serde_json::json;

use crate::affected::{AffectedEntry, Reason, Revision, affected};
use crate::diff::diff;
use crate::entry::Problem;
use crate::expand::{EvalMode, full_sweep};
use crate::files::Files;
use crate::items::added_items;
use crate::read::Configs;
use crate::report::{Format, diff_report, problems_report, rows_report, selection_report};
use crate::rules::{Layout, MatrixRules};
use crate::select::{SelectOptions, select};

/// What is asked for.
#[derive(Clone, Copy)]
pub enum MatrixRequest<'f> {
    /// Every row of a revision.
    Rows {
        /// The revision.
        head: &'f dyn Files,
        /// What to do about evaluation.
        evals: EvalMode,
    },
    /// The difference of two revisions, and the entries that the change affects.
    Difference {
        /// The base.
        base: &'f dyn Files,
        /// The head.
        head: &'f dyn Files,
        /// The paths that differ; a rename gives both.
        changed: &'f [String],
    },
    /// What the items that the head adds to the changelog select.
    Changelog {
        /// The base.
        base: &'f dyn Files,
        /// The head.
        head: &'f dyn Files,
        /// What labels ask for.
        options: SelectOptions,
    },
}

/// Answers a request in the given form.
///
/// # Errors
/// The problems for which nothing is generated, in the same form.
pub fn matrix_report(
    request: MatrixRequest<'_>,
    layout: &Layout,
    rules: &MatrixRules,
    format: Format,
) -> Result<String, String> {
    answer(request, layout, rules, format).map_err(|problems| problems_report(&problems, format))
}

fn answer(
    request: MatrixRequest<'_>,
    layout: &Layout,
    rules: &MatrixRules,
    format: Format,
) -> Result<String, Vec<Problem>> {
    match request {
        MatrixRequest::Rows { head, evals } => {
            let rows = full_sweep(&Configs::read(head, layout, rules), rules, evals)?;
            Ok(rows_report(&rows, rules, format))
        }
        MatrixRequest::Difference { base, head, changed } => {
            let (old, new) = (Configs::read(base, layout, rules), Configs::read(head, layout, rules));
            let (before, after) = (
                full_sweep(&old, rules, EvalMode::Marked)?,
                full_sweep(&new, rules, EvalMode::Marked)?,
            );
            let entries = affected(
                Revision {
                    configs: &old,
                    files: base,
                },
                Revision {
                    configs: &new,
                    files: head,
                },
                changed,
                &[],
                layout,
                rules,
            );
            let mut out = diff_report(&diff(&before, &after), rules, format);
            match format {
                Format::Text => out.push_str(&affected_text(&entries)),
                // One value, so that the output stays one JSON document.
                Format::Json => {
                    let difference: serde_json::Value = serde_json::from_str(&out).unwrap_or_default();
                    out = format!("{:#}\n", json!({"difference": difference, "affected": entries}));
                }
                Format::Csv => {}
            }
            Ok(out)
        }
        MatrixRequest::Changelog { base, head, options } => {
            let text = |files: &dyn Files| files.read(&layout.changelog);
            let missing = || {
                vec![Problem {
                    file: layout.changelog.as_str().into(),
                    line: 0,
                    column: 0,
                    entry: None,
                    path: String::new(),
                    message: "the file is missing".to_owned(),
                    remedy: "restore it".to_owned(),
                }]
            };
            let (Some(old), Some(new)) = (text(base), text(head)) else {
                return Err(missing());
            };
            let items = added_items(&layout.changelog, &old, &new)?;
            let (old, new) = (Configs::read(base, layout, rules), Configs::read(head, layout, rules));
            let selection = select(&layout.changelog, &items, &new, Some(&old), rules, options)?;
            Ok(selection_report(&selection, rules, format))
        }
    }
}

fn affected_text(entries: &[AffectedEntry]) -> String {
    let mut out = format!("\n{} entries are affected\n", entries.len());
    for entry in entries {
        let reasons: Vec<String> = entry
            .reasons
            .iter()
            .map(|reason| match reason {
                Reason::Added => "added".to_owned(),
                Reason::Removed => "removed".to_owned(),
                Reason::Changed { fields } if fields.is_empty() => "changed".to_owned(),
                Reason::Changed { fields } => format!("changed: {}", fields.join(", ")),
                Reason::Hardware => "facts about its machines changed".to_owned(),
                Reason::File { role, path } => format!("{} {path}", role.name()),
                Reason::ScriptGone { path } => format!("its script {path} is gone"),
                Reason::Changelog { line } => format!("selected on line {line} of the changelog"),
            })
            .collect();
        let _ = writeln!(out, "  {}: {}", entry.key, reasons.join("; "));
    }
    out
}
