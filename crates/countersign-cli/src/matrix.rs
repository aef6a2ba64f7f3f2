//! `matrix`: what a revision of a clone would benchmark, what differs from another one, or what its changelog selects.
//!
//! The clone is read through the `git` program, never checked out; nothing of it is run.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use countersign_matrix::{
    Configs, EvalMode, Files, Format, Problem, SelectOptions, added_items, diff, diff_report, full_sweep,
    problems_report, rows_report, select, selection_report,
};

use crate::clone::{Git, Revision};

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// The clone: a work tree or a bare repository.
    clone: PathBuf,
    /// The revision.
    #[arg(long)]
    rev: String,
    /// Compare with this revision.
    #[arg(long)]
    base: Option<String>,
    /// Print what the changelog items that are new since the base select.
    #[arg(long, requires = "base")]
    changelog: bool,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// The policy that has the rules of the matrix and the layout of the repository.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people, lane by lane.
    Text,
    /// In the field names of the repository's own generator.
    Json,
    /// One row a line, with a header.
    Csv,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Text => Self::Text,
            Form::Json => Self::Json,
            Form::Csv => Self::Csv,
        }
    }
}

/// Prints; exit code 1 where the generator would refuse the revision, with its problems.
pub(crate) fn run(args: &MatrixArgs) -> Result<ExitCode> {
    let policy = crate::policy::load(&args.policy)?.policy;
    let (layout, rules, format) = (&policy.layout, &policy.matrix, args.format.into());
    let git = Git::open(&args.clone)?;
    let head_tree = Revision::at(&git, &args.rev)?;
    let head = Configs::read(&head_tree, layout, rules);
    let base_tree = args.base.as_deref().map(|base| Revision::at(&git, base)).transpose()?;
    let base = base_tree.as_ref().map(|tree| Configs::read(tree, layout, rules));
    let report = match (&base_tree, &base) {
        (Some(base_tree), Some(base)) if args.changelog => {
            let text = |tree: &Revision<'_>| tree.read(&layout.changelog).unwrap_or_else(|| Arc::from(""));
            added_items(&layout.changelog, &text(base_tree), &text(&head_tree))
                .and_then(|items| {
                    select(
                        &layout.changelog,
                        &items,
                        &head,
                        Some(base),
                        rules,
                        SelectOptions::default(),
                    )
                })
                .map(|selection| selection_report(&selection, rules, format))
        }
        (_, Some(base)) => full_sweep(base, rules, EvalMode::Marked)
            .and_then(|before| Ok((before, full_sweep(&head, rules, EvalMode::Marked)?)))
            .map(|(before, after)| diff_report(&diff(&before, &after), rules, format)),
        _ => full_sweep(&head, rules, EvalMode::Marked).map(|rows| rows_report(&rows, rules, format)),
    };
    if let Some(why) = git.fault() {
        bail!("{}: {why}", args.clone.display());
    }
    print(report, format)
}

fn print(report: Result<String, Vec<Problem>>, format: Format) -> Result<ExitCode> {
    let (text, code) = match report {
        Ok(text) => (text, 0),
        Err(problems) => (problems_report(&problems, format), 1),
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(code)),
    }
}
