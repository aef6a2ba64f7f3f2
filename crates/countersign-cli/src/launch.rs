//! `launch`: which servers the points of an entry would start, with the source line of every flag, or what a change does
//! to them. With `--summary`, how much is known over all points of a revision.
//!
//! The clone is read through the `git` program, never checked out; nothing of it is run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use countersign_launch::point::{self, PointLaunches};
use countersign_launch::render::{self, Change};
use countersign_launch::summary::Summary;
use countersign_launch::{ClientCall, diff_launches};
use countersign_matrix::{Configs, Entry, EvalMode, Files as _, Problem, Row, entry_rows, full_sweep};
use countersign_policy::Policy;
use countersign_shell::{Limits, ScriptCache};
use serde_json::{Value as Json, json};

use crate::clone::{Git, Revision};

#[derive(Debug, Args)]
pub(crate) struct LaunchArgs {
    /// The clone: a work tree or a bare repository.
    clone: PathBuf,
    /// The revision.
    #[arg(long)]
    rev: String,
    /// The entry's key.
    #[arg(long, required_unless_present = "summary")]
    entry: Option<String>,
    /// Only points of this concurrency.
    #[arg(long)]
    conc: Option<i64>,
    /// As evaluation jobs start them.
    #[arg(long)]
    eval: bool,
    /// Print what differs from this revision.
    #[arg(long, conflicts_with = "summary")]
    diff: Option<String>,
    /// Print how much is known over all points of the revision, and which scripts cannot be read to their end.
    #[arg(long)]
    summary: bool,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// The policy that has the rules.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Prints; exit code 1 where the generator would refuse the entry, with its problems.
pub(crate) fn run(args: &LaunchArgs) -> Result<ExitCode> {
    let policy = crate::policy::load(&args.policy)?.policy;
    let git = Git::open(&args.clone)?;
    let scripts = ScriptCache::default();
    let head = State::read(Revision::at(&git, &args.rev)?, &policy, &scripts)?;
    let report = match (&args.entry, &args.diff) {
        (_, _) if args.summary => summary(&head, args),
        (Some(key), Some(base)) => {
            let base = State::read(Revision::at(&git, base)?, &policy, &scripts)?;
            differences(&base, &head, key, args)
        }
        (Some(key), None) => shown(&head, key, args),
        (None, _) => bail!("name an entry with --entry, or ask for --summary"),
    }?;
    if let Some(why) = git.fault() {
        bail!("{}: {why}", args.clone.display());
    }
    let (text, code) = match report {
        Ok(text) => (text, 0),
        Err(problems) => (
            countersign_matrix::problems_report(&problems, countersign_matrix::Format::Text),
            1,
        ),
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(code)),
    }
}

type Report = Result<String, Vec<Problem>>;

/// One revision with what is needed to derive its points.
struct State<'a> {
    files: Revision<'a>,
    configs: Configs,
    policy: &'a Policy,
    rules: &'a point::DeriveRules,
    scripts: &'a ScriptCache,
}

/// Points of one entry that start the same.
struct Group {
    rows: Vec<Row>,
    point: PointLaunches,
}

impl<'a> State<'a> {
    fn read(files: Revision<'a>, policy: &'a Policy, scripts: &'a ScriptCache) -> Result<Self> {
        let configs = Configs::read(&files, &policy.layout, &policy.matrix);
        let rules = policy
            .derive
            .as_ref()
            .context("the policy has no section `derive`, which says how launches are derived")?;
        Ok(Self {
            files,
            configs,
            policy,
            rules,
            scripts,
        })
    }

    fn tree(&self) -> point::Tree<'_> {
        point::Tree {
            files: &self.files,
            runners: &self.configs.runners,
            layout: &self.policy.layout,
            matrix: &self.policy.matrix,
            rules: self.rules,
            scripts: self.scripts,
        }
    }

    fn entry(&self, key: &str, at: &str) -> Result<&Arc<Entry>> {
        self.configs
            .masters
            .get(key)
            .with_context(|| format!("no entry {key} at {at}; `countersign matrix` lists those that there are"))
    }

    fn groups(&self, entry: &Arc<Entry>, args: &LaunchArgs) -> Result<Vec<Group>, Vec<Problem>> {
        let mut groups: Vec<Group> = Vec::new();
        let tree = self.tree();
        for mut row in entry_rows(&self.configs, &self.policy.matrix, entry)? {
            if args.conc.is_some_and(|conc| !row.conc.values().contains(&conc)) {
                continue;
            }
            if args.eval {
                row.eval_only = Some(true);
            }
            let mut point = point::derive(&tree, entry, &row);
            // The client stands at the point; its numbers differ from point to point.
            point.launches.iter_mut().for_each(|launch| launch.client = None);
            match groups.iter_mut().find(|group| same(&group.point, &point)) {
                Some(group) => group.rows.push(row),
                None => groups.push(Group { rows: vec![row], point }),
            }
        }
        Ok(groups)
    }
}

impl Group {
    fn concurrencies(&self) -> Vec<i64> {
        let all: BTreeSet<i64> = self.rows.iter().flat_map(|row| row.conc.values().to_vec()).collect();
        all.into_iter().collect()
    }

    fn title(&self) -> String {
        let concs: Vec<String> = self.concurrencies().iter().map(i64::to_string).collect();
        let names: BTreeSet<String> = self.rows.iter().map(|row| row.point().shape.to_string()).collect();
        let names: Vec<String> = names.into_iter().collect();
        format!("{} at concurrency {}", names.join(" | "), concs.join(", "))
    }
}

fn same(a: &PointLaunches, b: &PointLaunches) -> bool {
    let client = |call: &Option<ClientCall>| {
        call.as_ref()
            .map(|c| (c.tool.clone(), c.chat_template.clone(), c.source.clone()))
    };
    a.launches == b.launches && client(&a.client) == client(&b.client) && a.missing == b.missing
}

fn shown(state: &State<'_>, key: &str, args: &LaunchArgs) -> Result<Report> {
    let entry = state.entry(key, &args.rev)?;
    let groups = match state.groups(entry, args) {
        Ok(groups) => groups,
        Err(problems) => return Ok(Err(problems)),
    };
    if args.format == Form::Json {
        let points: Vec<Json> = groups
            .iter()
            .map(|group| {
                json!({
                    "shapes": group.rows.iter().map(|row| row.point().shape.to_string()).collect::<BTreeSet<_>>(),
                    "concurrencies": group.concurrencies(),
                    "jobs": group.rows.iter().map(|row| &row.exp_name).collect::<Vec<_>>(),
                    "starts": group.point,
                })
            })
            .collect();
        let all = json!({ "entry": key, "rev": args.rev, "points": points });
        return Ok(Ok(format!("{all:#}\n")));
    }
    let mut out = String::new();
    for group in &groups {
        writeln!(out, "== {key} {}", group.title())?;
        for launch in &group.point.launches {
            out.push_str(&render::text(launch));
        }
        if let Some(client) = &group.point.client {
            writeln!(
                out,
                "client {} at {}, chat template {:?}",
                client.tool, client.source, client.chat_template
            )?;
        }
        for missing in &group.point.missing {
            writeln!(out, "not known: {missing}")?;
        }
        for note in &group.point.notes {
            writeln!(out, "note: {note}")?;
        }
        writeln!(out, "read: {}\n", group.point.files.join(", "))?;
    }
    Ok(Ok(out))
}

fn differences(base: &State<'_>, head: &State<'_>, key: &str, args: &LaunchArgs) -> Result<Report> {
    let new = head.entry(key, &args.rev)?;
    let new = match head.groups(new, args) {
        Ok(groups) => groups,
        Err(problems) => return Ok(Err(problems)),
    };
    let old = base.configs.masters.get(key).map(|entry| base.groups(entry, args));
    let old = match old {
        None => Vec::new(),
        Some(Ok(groups)) => groups,
        Some(Err(problems)) => return Ok(Err(problems)),
    };
    let before = |row: &Row| {
        let point = row.point();
        old.iter()
            .find(|group| group.rows.iter().any(|other| other.point() == point))
    };
    // Points of one group whose base is one group too are told once.
    let mut told: Vec<(Vec<&Row>, Option<&Group>, &Group)> = Vec::new();
    for group in &new {
        for row in &group.rows {
            let was = before(row);
            let known = told.iter_mut().find(|(_, a, b)| {
                std::ptr::eq(*b, group)
                    && match (a, was) {
                        (Some(a), Some(was)) => std::ptr::eq(*a, was),
                        (None, None) => true,
                        _ => false,
                    }
            });
            match known {
                Some((rows, _, _)) => rows.push(row),
                None => told.push((vec![row], was, group)),
            }
        }
    }
    let gone = |row: &&Row| {
        let point = row.point();
        !new.iter().any(|group| group.rows.iter().any(|r| r.point() == point))
    };
    let gone: Vec<&Row> = old.iter().flat_map(|group| &group.rows).filter(gone).collect();
    let changes = |was: &Group, group: &Group| -> Vec<Change> {
        let mut out = diff_launches(&was.point.launches, &group.point.launches);
        let client = |group: &Group| {
            group
                .point
                .client
                .as_ref()
                .map(|c| format!("{} {:?}", c.tool, c.chat_template))
        };
        let missing = |group: &Group| {
            let all: Vec<String> = group.point.missing.iter().map(ToString::to_string).collect();
            (!all.is_empty()).then(|| all.join("; "))
        };
        for (what, before, after) in [
            ("client", client(was), client(group)),
            ("not known", missing(was), missing(group)),
        ] {
            if before != after {
                out.push(Change {
                    launch: "point".into(),
                    what: what.into(),
                    before,
                    after,
                    source: None,
                });
            }
        }
        out
    };
    let names = |rows: &[&Row]| rows.iter().map(|row| row.exp_name.clone()).collect::<Vec<_>>();
    if args.format == Form::Json {
        let points: Vec<Json> = told
            .iter()
            .map(|(rows, was, group)| match was {
                None => json!({ "jobs": names(rows), "new": true }),
                Some(was) => json!({ "jobs": names(rows), "new": false, "changes": changes(was, group) }),
            })
            .collect();
        let all = json!({
            "entry": key, "base": args.diff, "rev": args.rev, "points": points, "gone": names(&gone),
        });
        return Ok(Ok(format!("{all:#}\n")));
    }
    let mut out = String::new();
    for (rows, was, group) in &told {
        writeln!(out, "== {}", names(rows).join(", "))?;
        let Some(was) = was else {
            writeln!(out, "new")?;
            continue;
        };
        let changes = changes(was, group);
        if changes.is_empty() {
            writeln!(out, "starts the same")?;
        }
        for change in changes {
            let said = |value: &Option<String>| value.clone().unwrap_or_else(|| "(not said)".into());
            let place = change.source.as_ref().map(|s| format!("  [{s}]")).unwrap_or_default();
            writeln!(
                out,
                "  {}: {}: {} -> {}{place}",
                change.launch,
                change.what,
                said(&change.before),
                said(&change.after)
            )?;
        }
    }
    for row in gone {
        writeln!(out, "== {}\ngone", row.exp_name)?;
    }
    Ok(Ok(out))
}

fn summary(state: &State<'_>, args: &LaunchArgs) -> Result<Report> {
    let mode = if args.eval {
        EvalMode::EvalsOnly
    } else {
        EvalMode::Unmarked
    };
    let rows = match full_sweep(&state.configs, &state.policy.matrix, mode) {
        Ok(rows) => rows,
        Err(problems) => return Ok(Err(problems)),
    };
    let tree = state.tree();
    let mut summary = Summary::default();
    let mut folders: BTreeSet<String> = BTreeSet::new();
    for row in &rows {
        let key = &*row.head.key;
        if args.entry.as_deref().is_some_and(|only| only != key) {
            continue;
        }
        let Some(entry) = state.configs.masters.get(key) else {
            continue;
        };
        let point = point::derive(&tree, entry, row);
        folders.extend(point.files.iter().filter_map(|f| Some(f.split_once('/')?.0.to_owned())));
        let nodes = if row.head.multi_node {
            "several machines"
        } else {
            "one machine"
        };
        let name = format!("{nodes}, {}", row.scenario().name());
        summary.add(&name, key, &point);
    }
    let mut scripts = 0usize;
    let mut unread: Vec<(String, Vec<String>)> = Vec::new();
    for path in folders
        .iter()
        .flat_map(|folder| state.files.list(&format!("{folder}/")))
    {
        if !(path.ends_with(".sh") || path.ends_with(".slurm")) {
            continue;
        }
        let Some(text) = state.files.read(&path) else {
            unread.push((path, vec!["it is no UTF-8 text".into()]));
            continue;
        };
        scripts += 1;
        let script = countersign_shell::Script::parse(&path, &text, &Limits::default());
        let issues: Vec<String> = script
            .issues()
            .iter()
            .map(|issue| format!("line {}: {}", issue.at.line, issue.message))
            .collect();
        if !issues.is_empty() || script.incomplete() {
            unread.push((path, issues));
        }
    }
    if args.format == Form::Json {
        let all = json!({ "summary": summary, "scripts": scripts, "not_read": unread });
        return Ok(Ok(format!("{all:#}\n")));
    }
    let mut out = summary.to_string();
    writeln!(out, "scripts: {scripts}, not read to the end: {}", unread.len())?;
    for (path, issues) in unread {
        writeln!(out, "  {path}: {}", issues.join("; "))?;
    }
    Ok(Ok(out))
}
