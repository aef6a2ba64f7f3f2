//! A simulated GitHub, a database of its own, and the real server: in this process, or as a process that can be killed.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use countersign_github::{App, AppConfig};
use countersign_server::config::Settings;
use countersign_server::{Clock, Engine, Service};
use countersign_sim::{Sim, SimHandle, World};
use countersign_store::Store;
use countersign_store::testing::TestDatabase;
use secrecy::SecretString;

/// The policy and world of `countersign demo`.
pub(crate) const POLICY: &str = include_str!("../../crates/countersign-cli/demo/policy.yaml");
/// See [`POLICY`].
pub(crate) const WORLD: &str = include_str!("../../crates/countersign-cli/demo/world.yaml");
/// The status context of [`POLICY`].
pub(crate) const CONTEXT: &str = "owner-signoff";
/// The pull request of [`WORLD`].
pub(crate) const PULL: &str = "octo/bench#7";

/// A sign-off that passes in [`WORLD`].
pub(crate) const GOOD: &str = "As a reviewer and owner, I looked at this and:\n- [x] Used the latest version of the checklist\n- [x] Saw that evals pass\n- [ ] If any of this cannot be satisfied, said why below\n";

/// How long anything may take before a test says what it waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The world without its timeline.
pub(crate) fn quiet_world() -> World {
    let mut world = World::parse("demo world", WORLD).expect("the demo's world is right");
    world.timeline.clear();
    world
}

/// A folder with the policy, and the configuration that names it.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("demo.yaml"), POLICY).expect("written");
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// What servers that were started with this folder logged.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.path().join("log")).expect("a log")
    }

    pub(crate) fn config(&self, sim: &SimHandle, listen: &str) -> String {
        format!(
            "policies = {:?}\n[server]\nlisten = \"{listen}\"\nworkers = 2\nlease_seconds = 2\nmax_body_bytes = 1000000\n[github]\napp_id = {}\napi_url = \"{}\"\narchive_hosts = [{:?}]\n[repositories.\"*\"]\npolicy = \"demo\"\n",
            self.path(),
            sim.app_id(),
            sim.base_url(),
            sim.storage_url().trim_start_matches("http://"),
        )
    }
}

/// Everything, with the server in this process.
pub(crate) struct InProcess {
    pub(crate) sim: SimHandle,
    pub(crate) store: Store,
    pub(crate) service: Service,
    pub(crate) database: TestDatabase,
    clock: Arc<AtomicI64>,
    _folder: Folder,
}

impl InProcess {
    pub(crate) async fn start(world: &World) -> Self {
        Self::start_with(world, &str::to_owned).await
    }

    /// The same, with another policy made of [`POLICY`].
    pub(crate) async fn start_with(world: &World, policy: &dyn Fn(&str) -> String) -> Self {
        Self::start_configured(world, policy, "").await
    }

    /// The same, with more lines for the repositories' part of the configuration.
    pub(crate) async fn start_configured(world: &World, policy: &dyn Fn(&str) -> String, more: &str) -> Self {
        let _ = tracing_subscriber::fmt()
            .with_env_filter("warn")
            .with_test_writer()
            .try_init();
        let sim = Sim::start(world).expect("the simulator starts");
        let database = TestDatabase::new().await.expect("a database");
        let store = database.store().await.expect("a store");
        let folder = Folder::new();
        std::fs::write(folder.path().join("demo.yaml"), policy(POLICY)).expect("written");
        let (key, secret) = (sim.app_key_pem().to_owned(), sim.webhook_secret());
        let settings = Settings::from_text(
            &format!("{}{more}", folder.config(&sim, "127.0.0.1:0")),
            Path::new("test"),
            &|name| match name {
                "COUNTERSIGN_PRIVATE_KEY" => Some(key.clone()),
                "COUNTERSIGN_WEBHOOK_SECRET" => Some(secret.clone()),
                _ => None,
            },
        )
        .expect("settings");
        let mut config = AppConfig::new(
            sim.app_id(),
            SecretString::from(key.clone()),
            sim.base_url().parse().expect("an address"),
        );
        config
            .archive_hosts
            .extend(settings.config.github.archive_hosts.iter().cloned());
        let clock = Arc::new(AtomicI64::new(sim.now().timestamp()));
        let engine = Engine::new(
            store.clone(),
            App::new(config).expect("an App"),
            settings,
            Clock::Shared(Arc::clone(&clock)),
        );
        let service = Service::start(engine).await.expect("it listens");
        sim.set_sink(Some(&format!("http://{}/webhook", service.address())));
        // What the world holds from the start is found by a look at all open pull requests, as after an installation.
        countersign_server::recover::reconcile(service.engine())
            .await
            .expect("GitHub answers");
        Self {
            sim,
            store,
            service,
            database,
            clock,
            _folder: folder,
        }
    }

    /// Sends what waits, and waits until nothing is left to do now.
    pub(crate) async fn settle(&self) {
        self.sim.deliver_all().await.expect("delivered");
        for delivery in self.sim.deliveries() {
            let fine = matches!(delivery.status_code, 200..=299);
            assert!(
                fine,
                "{} {:?} was answered {}",
                delivery.event, delivery.action, delivery.status_code
            );
        }
        let settled = self
            .store
            .wait_until_settled(PATIENCE)
            .await
            .expect("the database answers");
        assert!(settled.now, "not settled: {:?}", self.store.pending_work(5).await);
    }

    /// Moves the clocks of both, GitHub's and the server's.
    pub(crate) fn pass(&self, time: chrono::TimeDelta) {
        self.sim.advance(time);
        self.clock.store(self.sim.now().timestamp(), Ordering::SeqCst);
    }

    /// Asks for a look at every open pull request, as the timer does for those that were not looked at for long.
    pub(crate) async fn recheck_all(&self) {
        let now = std::time::Duration::ZERO;
        let work = |number| {
            countersign_server::worker::reassert_work("octo/bench", u64::try_from(number).expect("a number"), now)
        };
        let asked = self.store.request_rechecks("octo/bench", now, 10, work).await;
        assert_eq!(asked.expect("the database answers"), 1);
    }

    pub(crate) async fn stop(self) {
        self.sim.set_sink(None);
        self.service.stop().await;
    }
}

/// The server as a process.
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts it and waits until it listens; with `kill_at` it ends itself at that point.
    ///
    /// It takes a port by itself and logs which: one that was looked for here could belong to another test by then.
    pub(crate) fn start(folder: &Folder, sim: &SimHandle, database: &str, kill_at: Option<&str>) -> Self {
        let config = folder.path().join("countersign.toml");
        std::fs::write(&config, folder.config(sim, "127.0.0.1:0")).expect("written");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(folder.path().join("log"))
            .expect("a log");
        let before = folder.log().len();
        let mut command = Command::new(program());
        command
            .args(["serve", "--config"])
            .arg(&config)
            .env("DATABASE_URL", database)
            .env("COUNTERSIGN_PRIVATE_KEY", sim.app_key_pem())
            .env("COUNTERSIGN_WEBHOOK_SECRET", sim.webhook_secret())
            .env_remove("COUNTERSIGN_KILL_AT")
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(point) = kill_at {
            command.env("COUNTERSIGN_KILL_AT", point);
        }
        let mut server = Self {
            child: command.spawn().expect("the program starts"),
            address: String::new(),
        };
        wait_for("the server to listen", || {
            let log = folder.log();
            let said = log.get(before..).unwrap_or_default();
            server.address = said.lines().find_map(listening).unwrap_or_default();
            assert!(
                !server.address.is_empty() || !server.has_ended(),
                "the server ended before it listened: {said}"
            );
            !server.address.is_empty()
        });
        server
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_some()
    }

    pub(crate) fn kill(&mut self) {
        // SIGKILL: nothing is flushed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The address that a line of a server's log says it listens on.
fn listening(line: &str) -> Option<String> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    let fields = line.get("fields")?;
    (fields.get("message")? == "listening").then(|| fields.get("address")?.as_str().map(str::to_owned))?
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_countersign"))
}

/// Waits for a condition.
pub(crate) fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

/// The folder `shared/` beside the repository, if it is there.
pub(crate) fn shared() -> Option<PathBuf> {
    let path = std::env::var_os("COUNTERSIGN_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    path.join("inferencex").is_dir().then_some(path)
}
