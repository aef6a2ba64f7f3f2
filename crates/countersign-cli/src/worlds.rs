//! What is done with worlds and verdicts without a server: judging a partial world, `record`, `explain`, `replay`, `accuracy`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use countersign_core::render::comment;
use countersign_core::{Decision, Evidence, Verdict};
use countersign_policy::LoadedPolicy;
use countersign_sim::World;
use countersign_worlds::accuracy::{CaseResult, Expectation, Reasons, compare, report};
use serde_json::json;

use crate::{ConfigArgs, Format, exit_of, serve};

/// Judges the pull requests of a partial world, without a server.
pub(crate) fn rehearse(mut world: World, clone: Option<&Path>, policy: &Path, format: Format) -> Result<ExitCode> {
    let policy = crate::policy::load(policy)?;
    if let Some(clone) = clone {
        countersign_worlds::lay_over(&mut world, clone);
    }
    let mut worst = None;
    for case in countersign_worlds::read_all(&world, &policy)? {
        if !case.signed {
            bail!(
                "{}#{} has no sign-off in this world\n  → Add one to its comments or reviews: it starts with the policy's phrase, and has a checklist under it.",
                case.repository,
                case.number
            );
        }
        let verdict = countersign_checks::evaluate(&case.evidence, &policy);
        show(&verdict, &policy, format)?;
        worst = worst.max(Some(verdict.decision));
    }
    let decision = worst.context("the world has no pull request\n  → Add one under `pulls` of its repository.")?;
    Ok(exit_of(decision))
}

/// Prints a verdict.
pub(crate) fn show(verdict: &Verdict, policy: &LoadedPolicy, format: Format) -> Result<()> {
    match format {
        Format::Json => println!("{}", serde_json::to_string(verdict)?),
        Format::Markdown => println!("{}", comment(verdict, &policy.policy.publish.comment, None)),
        Format::Text => {
            println!(
                "{} #{} at {}: {}",
                verdict.repository,
                verdict.pull_request,
                verdict.head_sha.short(),
                verdict.decision.word()
            );
            for row in &verdict.rows {
                println!("{}", row.plain());
                for finding in row.report.outcome.findings() {
                    println!("    → {}", finding.remedy.plain());
                }
            }
            if !verdict.not_run.is_empty() {
                println!("not run by this version: {}", verdict.not_run.join(", "));
            }
        }
    }
    Ok(())
}

#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Address of a pull request, or of the sign-off in it.
    url: String,
    /// The configuration file.
    #[arg(long, env = "COUNTERSIGN_CONFIG", default_value = "countersign.toml")]
    config: PathBuf,
    /// Another policy file than the configured one: it says which files belong to the world.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// The world file to write; standard output when left out.
    #[arg(long)]
    out: Option<PathBuf>,
}

/// `record`: a pull request on GitHub, or on a simulated one, as a world file.
pub(crate) async fn record(args: &RecordArgs) -> Result<ExitCode> {
    let (repository, number, signoff) = crate::verify::read_url(&args.url)?;
    let settings = serve::settings(&args.config)?;
    let app = serve::app(&settings)?;
    let policy = crate::verify::policy(&settings, args.policy.as_deref(), &repository)?;
    let evidence =
        countersign_server::verify::gather_once(&app, &policy, &repository, number, signoff, chrono::Utc::now())
            .await?;
    let recorded = countersign_worlds::record(&evidence, &policy.policy);
    if recorded.secrets > 0 {
        eprintln!("{} texts looked like secrets and were taken out", recorded.secrets);
    }
    let text = text_of(&recorded.world)?;
    match &args.out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// A world as a file: YAML that reads back as the same world, else JSON, which is YAML too.
pub(crate) fn text_of(world: &World) -> Result<String> {
    let yaml = world.to_yaml()?;
    if World::parse("recorded", &yaml).is_ok_and(|read| read == *world) {
        return Ok(yaml);
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(world)?))
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The evaluation: the id that a verdict's page, its status or the audit log names.
    evaluation: uuid::Uuid,
    #[command(flatten)]
    config: ConfigArgs,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// A stored verdict with all that it was made from.
struct Kept {
    evaluation: countersign_store::Evaluation,
    evidence: Evidence,
    policy: LoadedPolicy,
}

async fn kept(config: &ConfigArgs, id: uuid::Uuid) -> Result<Kept> {
    let settings = serve::settings(&config.config)?;
    let store = serve::database(&settings)?;
    let kept = read_kept(&store, id).await;
    store.close().await;
    kept
}

async fn read_kept(store: &countersign_store::Store, id: uuid::Uuid) -> Result<Kept> {
    let evaluation = store.evaluation(id).await?.with_context(|| {
        format!("there is no evaluation {id}\n  → `countersign replay` takes the id that the verdict's link ends in.")
    })?;
    let read = async |what: &str, digest: &str| -> Result<Vec<u8>> {
        let bytes = store
            .blob(digest)
            .await?
            .with_context(|| format!("the {what} of {id} is gone: no blob {digest}"))?;
        let found = countersign_core::digest::sha256_hex(&bytes);
        // A policy's digest is of its canonical form, which is what is stored.
        if found != digest {
            bail!("the {what} of {id} is not what was stored: its digest is {found}, not {digest}");
        }
        Ok(bytes.to_vec())
    };
    let evidence = countersign_checks::restore(&read("evidence", &evaluation.evidence_digest).await?)?;
    let text = String::from_utf8(read("policy", &evaluation.policy_digest).await?)?;
    let source = move |_: &str| Ok(text.clone());
    let policy = countersign_policy::load(&evaluation.policy_name, &source).with_context(|| {
        format!(
            "the policy of {id} cannot be read by this version; it was judged by engine {}",
            evaluation.engine_version
        )
    })?;
    Ok(Kept {
        evaluation,
        evidence,
        policy,
    })
}

/// `replay`: judges stored evidence again. Exit code 0 for the same bytes, 1 for a difference.
pub(crate) async fn replay(args: &ReplayArgs) -> Result<ExitCode> {
    let kept = kept(&args.config, args.evaluation).await?;
    let again = countersign_checks::evaluate(&kept.evidence, &kept.policy);
    let text = serde_json::to_string(&again)?;
    let same = text == kept.evaluation.verdict;
    let differences = if same {
        Vec::new()
    } else {
        differences(&kept.evaluation.verdict, &again)
    };
    match args.format {
        Format::Json => println!(
            "{}",
            json!({
                "evaluation": kept.evaluation.id, "same": same, "judged_by": kept.evaluation.engine_version,
                "replayed_by": countersign_checks::ENGINE_VERSION, "decision": again.decision.word(), "differences": differences,
            })
        ),
        _ if same => println!(
            "{}: the same {} bytes, {}, by engine {}",
            kept.evaluation.id,
            text.len(),
            again.decision.word(),
            countersign_checks::ENGINE_VERSION
        ),
        _ => {
            println!("{}: DIFFERENT", kept.evaluation.id);
            println!(
                "  judged by engine {}, replayed by engine {}",
                kept.evaluation.engine_version,
                countersign_checks::ENGINE_VERSION
            );
            for difference in &differences {
                println!("  {difference}");
            }
            println!("  → Replay it with the version that judged it; a difference within one version is a defect.");
        }
    }
    Ok(ExitCode::from(u8::from(!same)))
}

/// What differs between a stored verdict and one made again, a line each.
fn differences(stored: &str, again: &Verdict) -> Vec<String> {
    let Ok(before) = serde_json::from_str::<Verdict>(stored) else {
        return vec!["the stored verdict has a form that this version does not read".to_owned()];
    };
    let mut out = Vec::new();
    let pairs = [
        ("engine", before.engine_version.clone(), again.engine_version.clone()),
        (
            "evidence digest",
            before.evidence_digest.clone(),
            again.evidence_digest.clone(),
        ),
        (
            "policy digest",
            before.policy_digest.clone(),
            again.policy_digest.clone(),
        ),
        (
            "decision",
            before.decision.word().to_owned(),
            again.decision.word().to_owned(),
        ),
        ("not run", before.not_run.join(", "), again.not_run.join(", ")),
    ];
    for (what, then, now) in pairs {
        if then != now {
            out.push(format!("{what}: {then} → {now}"));
        }
    }
    for row in &again.rows {
        let then = before
            .rows
            .iter()
            .find(|old| old.number == row.number && old.slug == row.slug);
        let (was, is) = (
            then.map_or_else(|| "no row".to_owned(), countersign_core::verdict::Row::plain),
            row.plain(),
        );
        if was != is {
            out.push(format!("check {} ({}): {was} → {is}", row.number, row.slug));
        } else if then != Some(row) {
            out.push(format!(
                "check {} ({}): the same line, other findings",
                row.number, row.slug
            ));
        }
    }
    for old in &before.rows {
        if !again
            .rows
            .iter()
            .any(|row| row.number == old.number && row.slug == old.slug)
        {
            out.push(format!("check {} ({}): {} → no row", old.number, old.slug, old.plain()));
        }
    }
    if out.is_empty() {
        out.push("only the form of the bytes".to_owned());
    }
    out
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The evaluation's id, or a world file.
    subject: String,
    /// The check: its name, or its number in the policy.
    check: String,
    /// For a world: the policy file.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
    /// For a world: the clone that it does not name.
    #[arg(long)]
    clone: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
}

/// `explain`: the way from evidence to the outcome of one check.
pub(crate) async fn explain(args: &ExplainArgs) -> Result<ExitCode> {
    if let Ok(id) = args.subject.parse::<uuid::Uuid>() {
        let kept = kept(&args.config, id).await?;
        println!(
            "Evaluation {id} of {}, kept {}, by engine {}",
            kept.evaluation.repository,
            kept.evaluation.created_at.format("%Y-%m-%d %H:%M:%S UTC"),
            kept.evaluation.engine_version
        );
        return crate::explain::print(&kept.evidence, &kept.policy, &args.check);
    }
    let policy = crate::policy::load(&args.policy)?;
    let mut world = World::load(Path::new(&args.subject))?;
    if let Some(clone) = &args.clone {
        countersign_worlds::lay_over(&mut world, clone);
    }
    let mut code = ExitCode::from(2);
    for case in countersign_worlds::read_all(&world, &policy)? {
        println!("{} of {}", args.subject, case.repository);
        code = crate::explain::print(&case.evidence, &policy, &args.check)?;
    }
    Ok(code)
}

#[derive(Debug, Args)]
pub(crate) struct AccuracyArgs {
    /// The folder with worlds and expectations (`NAME.yaml`, `NAME.expect.json`).
    worlds: PathBuf,
    /// The clone that worlds do not name.
    #[arg(long)]
    clone: Option<PathBuf>,
    /// Where the policies are that expectations name.
    #[arg(long, default_value = "config/policies")]
    policies: PathBuf,
    /// Judge everything by this policy instead.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Reasons for differences.
    #[arg(long)]
    reasons: Option<PathBuf>,
    /// The report to write; standard output when left out.
    #[arg(long)]
    out: Option<PathBuf>,
    /// How to print: text and markdown are the report, json is one object a verdict.
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,
}

/// `accuracy`: exit code 1 where anything differs that is ours to answer for.
pub(crate) fn accuracy(args: &AccuracyArgs) -> Result<ExitCode> {
    let reasons: Reasons = match &args.reasons {
        Some(path) => countersign_worlds::accuracy::reasons(
            &std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        )
        .with_context(|| path.display().to_string())?,
        None => Reasons::new(),
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(&args.worlds)
        .with_context(|| args.worlds.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.to_string_lossy().ends_with(".expect.json"))
        .collect();
    if files.is_empty() {
        bail!(
            "{} has no expectation\n  → Make worlds and expectations first, e.g. with tests/worlds/from_cases.py.",
            args.worlds.display()
        );
    }
    files.sort_by_key(|path| number_of(path));
    let mut policies: BTreeMap<PathBuf, LoadedPolicy> = BTreeMap::new();
    let mut results = Vec::new();
    for path in files {
        let text = std::fs::read_to_string(&path)?;
        let expected: Expectation = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        let world = args.worlds.join(format!("{}.yaml", expected.name));
        let (Some(policy), true) = (
            args.policy.clone().or_else(|| {
                expected
                    .policy
                    .as_ref()
                    .map(|name| args.policies.join(format!("{name}.yaml")))
            }),
            world.exists(),
        ) else {
            let why = expected.none.clone().unwrap_or_else(|| "no world".to_owned());
            results.push(CaseResult::not_judged(expected, why));
            continue;
        };
        if !policies.contains_key(&policy) {
            policies.insert(policy.clone(), crate::policy::load(&policy)?);
        }
        let Some(policy) = policies.get(&policy) else { continue };
        let result = match judge(&world, args.clone.as_deref(), policy) {
            Ok(verdict) => compare(expected, &verdict, &reasons),
            Err(error) => CaseResult::not_judged(expected, format!("{error:#}")),
        };
        results.push(result);
    }
    let bad = results.iter().any(|result| {
        result.is_wrong_pass()
            || result
                .rows
                .iter()
                .any(|row| row.result == countersign_worlds::accuracy::Match::Unexplained)
    });
    if args.format == Format::Json {
        for result in &results {
            println!("{}", json_of(result));
        }
    } else {
        let text = report(
            &results,
            "countersign accuracy WORLDS --clone CLONE --reasons tests/worlds/accuracy.yaml --out docs/accuracy.md",
        );
        match &args.out {
            Some(path) => std::fs::write(path, text).with_context(|| path.display().to_string())?,
            None => print!("{text}"),
        }
    }
    Ok(ExitCode::from(u8::from(bad)))
}

fn number_of(path: &Path) -> (u64, String) {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    (
        name.split('-')
            .next()
            .and_then(|number| number.parse().ok())
            .unwrap_or(u64::MAX),
        name,
    )
}

fn judge(world: &Path, clone: Option<&Path>, policy: &LoadedPolicy) -> Result<Verdict> {
    let mut world = World::load(world)?;
    if let Some(clone) = clone {
        countersign_worlds::lay_over(&mut world, clone);
    }
    let mut cases = countersign_worlds::read_all(&world, policy)?;
    let case = cases.pop().context("the world has no pull request")?;
    if !case.signed {
        bail!("the world has no sign-off that the policy recognises");
    }
    Ok(countersign_checks::evaluate(&case.evidence, policy))
}

fn json_of(result: &CaseResult) -> serde_json::Value {
    let rows: Vec<serde_json::Value> = result
        .rows
        .iter()
        .map(|row| {
            json!({
                "check": row.slug, "known": row.theirs, "known_reason": row.their_reason,
                "here": row.ours.map(countersign_core::outcome::OutcomeKind::word), "reason": row.our_reason, "result": format!("{:?}", row.result),
            })
        })
        .collect();
    json!({
        "name": result.expected.name, "known": result.expected.decision, "failing": result.expected.failing,
        "here": result.decision.map(Decision::word), "not_judged": result.failed, "wrong_pass": result.is_wrong_pass(), "rows": rows,
    })
}
