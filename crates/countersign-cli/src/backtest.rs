//! `backtest`: every pull request of a clone judged by a policy, or by two with what differs.

use std::collections::BTreeSet;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use chrono::{DateTime, NaiveDate, Utc};
use clap::{Args, ValueEnum};
use countersign_backtest::{Ask, Change, Outcome, Progress, PullResult};
use countersign_core::digest::sha256_hex;
use countersign_policy::LoadedPolicy;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

mod worlds;

/// Up to so many pull requests are printed row by row.
const SHOWN: usize = 12;

#[derive(Debug, Args)]
pub(crate) struct BacktestArgs {
    /// The clone, with the heads of pull requests under `refs/pull/*/head`; its HEAD is the target branch.
    clone: PathBuf,
    /// The policy file.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
    /// Heads from this day on, such as 2026-07-01 (UTC).
    #[arg(long)]
    since: Option<NaiveDate>,
    /// These pull requests only, such as 2500-2600,2710.
    #[arg(long, value_delimiter = ',')]
    pulls: Vec<String>,
    /// A folder of world files; a pull request with one is judged by all checks.
    #[arg(long)]
    worlds: Option<PathBuf>,
    /// Where results, reports and times are written; a second backtest there judges only what changed.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Another policy file: show only what it judges otherwise.
    #[arg(long, value_name = "OTHER_POLICY")]
    compare: Option<PathBuf>,
    /// How to print: tables, or one JSON object a line.
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// How many pull requests are judged at once; by default as many as there are processors.
    #[arg(long)]
    workers: Option<usize>,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables for people.
    Text,
    /// One object a line.
    Json,
}

/// Judges and prints. Exit code 3 where a pull request could not be judged because of a mistake in a check.
pub(crate) fn run(args: &BacktestArgs) -> Result<ExitCode> {
    let policy = crate::policy::load(&args.policy)?;
    countersign_checks::validate(&policy)?;
    let other = args.compare.as_deref().map(crate::policy::load).transpose()?;
    if let Some(other) = &other {
        countersign_checks::validate(other)?;
        if other.digest == policy.digest {
            bail!("both policies are the same: name two different files");
        }
    }
    if let Some(folder) = &args.out {
        std::fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let asked = Asked {
        pulls: numbers(&args.pulls)?,
        worlds: worlds::Folder::open(args.worlds.as_deref(), &args.clone)?,
        engine: engine()?,
        workers: args
            .workers
            .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
            .unwrap_or(1),
    };
    let first = asked.judge(args, &policy)?;
    let Some(other) = other else {
        shown(args, &first, &policy)?;
        return Ok(exit_of(&first.results));
    };
    let second = asked.judge(args, &other)?;
    let changes = countersign_backtest::compare(&first.results, &second.results);
    compared(args, &changes, &policy, &other)?;
    Ok(exit_of(&second.results))
}

struct Asked {
    pulls: BTreeSet<u64>,
    worlds: worlds::Folder,
    engine: String,
    workers: usize,
}

impl Asked {
    fn judge(&self, args: &BacktestArgs, policy: &LoadedPolicy) -> Result<Outcome> {
        let kept = args
            .out
            .as_ref()
            .map(|folder| folder.join(format!("judged-{}.jsonl", name(policy))));
        let bar = Bar::new(&format!("{} {}", policy.policy.name, policy.policy.version));
        let since = args.since.and_then(|day| day.and_hms_opt(0, 0, 0));
        let outcome = countersign_backtest::run(
            &Ask {
                clone: &args.clone,
                policy,
                since: since.map(|time| DateTime::<Utc>::from_naive_utc_and_offset(time, Utc)),
                pulls: &self.pulls,
                worlds: &self.worlds,
                engine: &self.engine,
                kept: kept.as_deref(),
                workers: self.workers,
            },
            &bar,
        )?;
        bar.0.finish_and_clear();
        let times = outcome.times.text();
        if let Some(folder) = &args.out
            && !outcome.times.pulls.is_empty()
        {
            write(folder, &format!("times-{}.txt", name(policy)), &times)?;
        }
        if outcome.known > 0 {
            eprintln!(
                "{} of {} were judged before and are reused",
                outcome.known,
                outcome.results.len()
            );
        }
        eprint!("{times}");
        Ok(outcome)
    }
}

/// The policy's name as part of a file name.
fn name(policy: &LoadedPolicy) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    policy
        .policy
        .name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect()
}

fn words(policy: &LoadedPolicy) -> String {
    format!("{} {}", policy.policy.name, policy.policy.version)
}

/// Results of another build are not reused: a digest of this program's own file says which build it is.
fn engine() -> Result<String> {
    let file = std::env::current_exe().context("where this program lies is not known")?;
    let bytes = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
    Ok(sha256_hex(&bytes))
}

/// Numbers and ranges of them.
fn numbers(words: &[String]) -> Result<BTreeSet<u64>> {
    let mut out = BTreeSet::new();
    for word in words
        .iter()
        .map(|word| word.trim().trim_start_matches('#'))
        .filter(|word| !word.is_empty())
    {
        let (from, to) = word.split_once('-').unwrap_or((word, word));
        let number = |text: &str| {
            let number: u64 = text
                .trim()
                .parse()
                .with_context(|| format!("{word:?} is no pull request: write 2500, or 2500-2600"))?;
            anyhow::Ok(number)
        };
        let (from, to) = (number(from)?, number(to)?);
        if from > to || to - from > 100_000 {
            bail!("{word:?} is no range of pull requests: write the smaller number first");
        }
        out.extend(from..=to);
    }
    Ok(out)
}

fn exit_of(results: &[PullResult]) -> ExitCode {
    let broken = results
        .iter()
        .any(|result| result.problem.as_ref().is_some_and(|why| why.contains("panicked")));
    ExitCode::from(if broken { 3 } else { 0 })
}

fn write(folder: &Path, file: &str, text: &str) -> Result<()> {
    let path = folder.join(file);
    std::fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))
}

fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn lines<T: serde::Serialize>(items: &[T]) -> Result<String> {
    let mut out = String::new();
    for item in items {
        out.push_str(&serde_json::to_string(item)?);
        out.push('\n');
    }
    Ok(out)
}

fn repository(policy: &LoadedPolicy) -> &str {
    policy.policy.repository.as_deref().unwrap_or("a repository")
}

fn shown(args: &BacktestArgs, outcome: &Outcome, policy: &LoadedPolicy) -> Result<()> {
    let results = &outcome.results;
    if let Some(folder) = &args.out {
        write(folder, "results.jsonl", &lines(results)?)?;
        let page = countersign_backtest::page(results, repository(policy), &words(policy));
        write(folder, "report.html", &page)?;
        eprintln!("{}", folder.join("report.html").display());
    }
    match args.format {
        Form::Json => print(&lines(results)?),
        Form::Text => {
            let mut text = countersign_backtest::counts_text(results);
            if results.len() <= SHOWN {
                text.push('\n');
                text.push_str(&countersign_backtest::pulls_text(results));
            }
            print(&text)
        }
    }
}

fn compared(args: &BacktestArgs, changes: &[Change], before: &LoadedPolicy, after: &LoadedPolicy) -> Result<()> {
    let (old, new) = (words(before), words(after));
    if let Some(folder) = &args.out {
        write(folder, "changes.jsonl", &lines(changes)?)?;
        let page = countersign_backtest::comparison_page(changes, repository(after), &old, &new);
        write(folder, "changes.html", &page)?;
        eprintln!("{}", folder.join("changes.html").display());
    }
    match args.format {
        Form::Json => print(&lines(changes)?),
        Form::Text => print(&countersign_backtest::changes_text(changes, &old, &new)),
    }
}

/// On a terminal a bar, in a pipe nothing.
struct Bar(ProgressBar);

impl Bar {
    fn new(what: &str) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if !std::io::stderr().is_terminal() {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {per_sec} {eta}") {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }
}

impl Progress for Bar {
    fn start(&self, new: usize, _known: usize) {
        self.0.set_length(new as u64);
    }

    fn done(&self) {
        self.0.inc(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Vec<u64>> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Ok(numbers(&words)?.into_iter().collect())
    }

    #[test]
    fn pull_requests_are_given_one_by_one_or_as_ranges() {
        assert_eq!(read(&["7", "#9", " 3-5 "]).unwrap(), [3, 4, 5, 7, 9]);
        assert!(read(&[]).unwrap().is_empty());
        for bad in ["x", "5-3", "1-", "-2", "1-9999999"] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }
}
