//! `rehearse` and `demo`: a world file the whole way, against a simulated GitHub, with the real server and a real database.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use countersign_core::Decision;
use countersign_server::config::Settings;
use countersign_server::{Clock, Engine, Service};
use countersign_sim::{Sim, SimHandle, World};
use countersign_store::private::{PrivateOptions, PrivatePostgres};
use countersign_store::{Store, StoreOptions};
use serde_json::json;

use crate::{Format, exit_of};

/// How long one step may take until everything has settled.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is due within this time is waited for; what is due later is a retry, and belongs to the world's future.
const SOON: chrono::TimeDelta = chrono::TimeDelta::seconds(10);

#[derive(Debug, Args)]
pub(crate) struct RehearseArgs {
    /// The world file (docs/worlds.md).
    world: PathBuf,
    /// The policy file.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
    /// The clone whose history a world has that names none. The world is then judged directly, without a server.
    #[arg(long)]
    clone: Option<PathBuf>,
    /// Take a partial world through the simulated GitHub too.
    #[arg(long, conflicts_with = "clone")]
    served: bool,
    /// How to print: text shows every step, markdown the last comments alone, json one object a line.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

const DEMO_WORLD: &str = include_str!("../demo/world.yaml");
const DEMO_POLICY: &str = include_str!("../demo/policy.yaml");

/// `demo`.
pub(crate) async fn demo() -> Result<ExitCode> {
    let world = World::parse("demo world", DEMO_WORLD)?;
    let folder = std::env::temp_dir().join(format!("countersign-demo-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let policy = folder.join("demo.yaml");
    std::fs::write(&policy, DEMO_POLICY)?;
    println!("A simulated GitHub, a private Postgres, and the real server. Webhooks are signed, calls go over HTTP.\n");
    let result = Rehearsal::start(world, &policy).await;
    let outcome = match result {
        Ok(mut rehearsal) => {
            let outcome = rehearsal.play(Format::Text).await;
            rehearsal.stop().await?;
            outcome
        }
        Err(error) => Err(error),
    };
    // Only what was written above is removed.
    std::fs::remove_file(&policy)?;
    std::fs::remove_dir(&folder)?;
    let decision = outcome?;
    println!("\nThe last verdict is {}.", decision.map_or("none", Decision::word));
    Ok(decision.map_or(ExitCode::from(3), exit_of))
}

/// `rehearse`.
pub(crate) async fn run(args: &RehearseArgs) -> Result<ExitCode> {
    let world = World::load(&args.world)?;
    if args.clone.is_some() || (world.partial && !args.served) {
        return crate::worlds::rehearse(world, args.clone.as_deref(), &args.policy, args.format);
    }
    let mut rehearsal = Rehearsal::start(world, &args.policy).await?;
    let decision = rehearsal.play(args.format).await;
    rehearsal.stop().await?;
    let decision = decision?;
    Ok(decision.map_or(ExitCode::from(3), exit_of))
}

struct Rehearsal {
    sim: SimHandle,
    service: Service,
    store: Store,
    postgres: PrivatePostgres,
    seconds: Arc<AtomicI64>,
    pulls: Vec<(String, u64)>,
    context: String,
    /// What was shown already: comment id → (text, hidden), status → text.
    comments: BTreeMap<u64, (String, bool)>,
    statuses: BTreeMap<(String, u64), String>,
}

impl Rehearsal {
    async fn start(world: World, policy: &Path) -> Result<Self> {
        let name = policy
            .file_stem()
            .and_then(|name| name.to_str())
            .context("a policy file is named NAME.yaml")?
            .to_owned();
        let folder = policy
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
            .to_owned();
        let loaded = crate::policy::load(policy)?;
        let pulls = world
            .repositories
            .iter()
            .flat_map(|(repository, spec)| spec.pulls.iter().map(move |pull| (repository.clone(), pull.number)))
            .collect();
        let sim = Sim::start(&world)?;
        let postgres = PrivatePostgres::start_async(PrivateOptions::default()).await?;
        let store = Store::connect(&postgres.url(), StoreOptions::default()).await?;
        store.migrate().await?;
        let seconds = Arc::new(AtomicI64::new(sim.now().timestamp()));
        let settings = settings_of(&sim, &folder, &name)?;
        let app = crate::serve::app(&settings)?;
        let engine = Engine::new(store.clone(), app, settings, Clock::Shared(Arc::clone(&seconds)));
        let service = Service::start(engine).await?;
        sim.set_sink(Some(&format!("http://{}/webhook", service.address())));
        Ok(Self {
            sim,
            service,
            store,
            postgres,
            seconds,
            pulls,
            context: loaded.policy.publish.status_context.clone(),
            comments: BTreeMap::new(),
            statuses: BTreeMap::new(),
        })
    }

    /// Plays the timeline; returns what the newest verdict came to.
    async fn play(&mut self, format: Format) -> Result<Option<Decision>> {
        // What the world holds from the start is found as after a first installation: by looking at open pull requests.
        self.service_ready().await?;
        self.settle().await?;
        self.show(format, None)?;
        while let Some(done) = self.sim.step()? {
            self.seconds.store(self.sim.now().timestamp(), Ordering::SeqCst);
            self.sim.deliver_all().await?;
            self.settle().await?;
            self.show(
                format,
                Some(done.step.note.as_deref().unwrap_or("a step of the timeline")),
            )?;
        }
        for complaint in self.sim.complaints() {
            eprintln!("the simulated GitHub complains: {complaint}");
        }
        if format == Format::Markdown {
            for (repository, number) in &self.pulls {
                for comment in self.sim.own_comments(format!("{repository}#{number}").as_str())? {
                    if comment.minimized.is_none() {
                        println!("{}", comment.body);
                    }
                }
            }
        }
        self.last_decision().await
    }

    /// Until the first look for what was lost is done, so that the rehearsal starts from a known state.
    async fn service_ready(&self) -> Result<()> {
        countersign_server::recover::reconcile(self.service.engine()).await?;
        Ok(())
    }

    /// Until nothing is due, under way, or due soon: events of a conversation wait a moment for each other.
    async fn settle(&self) -> Result<()> {
        let start = std::time::Instant::now();
        loop {
            let settled = self.store.wait_until_settled(PATIENCE).await?;
            let soon = settled.next_at.is_some_and(|at| at - chrono::Utc::now() < SOON);
            if settled.now && !soon {
                return Ok(());
            }
            if start.elapsed() > PATIENCE {
                let waiting = self.store.pending_work(5).await?;
                bail!("not settled after {} seconds; waiting: {waiting:?}", PATIENCE.as_secs());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    fn show(&mut self, format: Format, step: Option<&str>) -> Result<()> {
        if format == Format::Text
            && let Some(step) = step
        {
            println!("── {} · {step}", self.sim.now().format("%Y-%m-%d %H:%M"));
        }
        for (repository, number) in self.pulls.clone() {
            let pull = format!("{repository}#{number}");
            let at = pull.as_str();
            if let Some(status) = self.sim.status(at, &self.context)? {
                let shown = format!("{}: {}", status.state, status.description.clone().unwrap_or_default());
                if self
                    .statuses
                    .insert((repository.clone(), number), shown.clone())
                    .as_ref()
                    != Some(&shown)
                {
                    match format {
                        Format::Text => println!("   {repository}#{number} status {shown}"),
                        Format::Json => println!(
                            "{}",
                            json!({ "kind": "status", "pull_request": number, "state": status.state, "description": status.description })
                        ),
                        Format::Markdown => {}
                    }
                }
            }
            for comment in self.sim.own_comments(at)? {
                let now = (comment.body.clone(), comment.minimized.is_some());
                let before = self.comments.insert(comment.id, now.clone());
                if before.as_ref() == Some(&now) {
                    continue;
                }
                match format {
                    Format::Text if now.1 => println!("   comment {} is folded as outdated", comment.id),
                    Format::Text => println!(
                        "   comment {} by {}:\n\n{}",
                        comment.id,
                        comment.author,
                        indent(&comment.body)
                    ),
                    Format::Json => println!(
                        "{}",
                        json!({ "kind": "comment", "pull_request": number, "id": comment.id, "body": comment.body, "folded": now.1 })
                    ),
                    Format::Markdown => {}
                }
            }
        }
        Ok(())
    }

    async fn last_decision(&self) -> Result<Option<Decision>> {
        let newest = self
            .store
            .evaluations(&countersign_store::EvaluationFilter::default(), 1)
            .await?;
        Ok(newest.first().map(|evaluation| {
            [
                Decision::Pass,
                Decision::Warn,
                Decision::Rejected,
                Decision::NeedsConfirmation,
            ]
            .into_iter()
            .find(|decision| decision.word() == evaluation.decision)
            .unwrap_or(Decision::Undecided)
        }))
    }

    async fn stop(self) -> Result<()> {
        self.sim.set_sink(None);
        self.service.stop().await;
        self.store.close().await;
        self.postgres.stop()?;
        Ok(())
    }
}

fn indent(text: &str) -> String {
    text.lines()
        .map(|line| format!("   │ {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn settings_of(sim: &SimHandle, policies: &Path, policy: &str) -> Result<Settings> {
    let file = toml::to_string(&json!({
        "server": { "listen": "127.0.0.1:0", "workers": 2, "reconcile_minutes": 1_000_000 },
        "github": { "app_id": sim.app_id(), "api_url": sim.base_url(), "archive_hosts": [sim.storage_url().trim_start_matches("http://")] },
        "policies": policies,
        "repositories": { "*": { "policy": policy } },
    }))?;
    let (key, secret) = (sim.app_key_pem().to_owned(), sim.webhook_secret());
    Ok(Settings::from_text(
        &file,
        Path::new("rehearsal"),
        &|name| match name {
            "COUNTERSIGN_PRIVATE_KEY" => Some(key.clone()),
            "COUNTERSIGN_WEBHOOK_SECRET" => Some(secret.clone()),
            _ => None,
        },
    )?)
}
