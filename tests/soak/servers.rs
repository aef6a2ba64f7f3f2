//! The two servers, as processes that are killed and started again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use countersign_sim::SimHandle;

/// Whether `setpriv` of util-linux is here. It lets the kernel end a program when this process is gone, however it went; without it
/// a server outlives a harness that is killed.
static DIES_WITH_US: LazyLock<bool> = LazyLock::new(|| {
    let mut probe = Command::new("setpriv");
    probe.args(["--pdeathsig", "KILL", "true"]).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
});

/// The program, to be started from a thread that lives as long as this process.
fn dying_with_us(program: OsString) -> Command {
    if !*DIES_WITH_US {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]).arg(program);
    command
}

/// One server: its folder, its port, and the process while it lives.
pub(crate) struct Server {
    folder: PathBuf,
    database: String,
    pub(crate) address: String,
    child: Option<Child>,
}

impl Server {
    pub(crate) fn new(folder: PathBuf, database: &str) -> Self {
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(folder.join("demo.yaml"), crate::plan::POLICY).expect("written");
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .expect("a free port")
            .port();
        Self {
            folder,
            database: database.to_owned(),
            address: format!("127.0.0.1:{port}"),
            child: None,
        }
    }

    /// Starts it. Minutes as in the configuration.
    pub(crate) fn start(&mut self, sim: &SimHandle, recheck_minutes: u64, reconcile_minutes: u64) {
        let config = format!(
            "policies = {:?}\n[server]\nlisten = {:?}\nworkers = 8\nlease_seconds = 2\nreconcile_minutes = {reconcile_minutes}\nrecheck_minutes = {recheck_minutes}\n[github]\napp_id = {}\napi_url = {:?}\narchive_hosts = [{:?}]\n[repositories.\"*\"]\npolicy = \"demo\"\n",
            self.folder,
            self.address,
            sim.app_id(),
            sim.base_url(),
            sim.storage_url().trim_start_matches("http://"),
        );
        let file = self.folder.join("countersign.toml");
        std::fs::write(&file, config).expect("written");
        let log = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder.join("log"))
            .expect("a log");
        // Another program than the one of this build, where it is named.
        let program =
            std::env::var_os("COUNTERSIGN_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_countersign").into());
        let child = dying_with_us(program)
            .args(["serve", "--config"])
            .arg(&file)
            .env("DATABASE_URL", &self.database)
            .env("COUNTERSIGN_PRIVATE_KEY", sim.app_key_pem())
            .env("COUNTERSIGN_WEBHOOK_SECRET", sim.webhook_secret())
            .env(
                "COUNTERSIGN_LOG",
                std::env::var("COUNTERSIGN_LOG").unwrap_or_else(|_| "warn".into()),
            )
            .env_remove("COUNTERSIGN_KILL_AT")
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .expect("the program starts");
        self.child = Some(child);
    }

    pub(crate) fn listens(&self) -> bool {
        std::net::TcpStream::connect(&self.address).is_ok()
    }

    /// SIGKILL: nothing is flushed.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}
