//! A Postgres of our own: started from the installed binaries, as an ordinary user, on a Unix socket in a folder that we make
//! ourselves, and stopped again. For demos, rehearsals and tests (docs/decisions/0004-private-postgres.md).
//!
//! Nothing is deleted but a folder that holds our marker file. No server outlives its starter: a small supervisor holds the other end of a
//! pipe, and stops the server when that closes, for whatever reason, `kill -9` too.

mod binaries;
mod folder;
#[cfg(feature = "testing")]
pub(crate) mod shared;
mod supervisor;

use std::path::{Path, PathBuf};
use std::time::Duration;

use binaries::Binaries;
use folder::Marked;
use supervisor::Supervisor;

/// Where the server lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In a new folder in the system's folder for temporary files, deleted at the end.
    Temporary,
    /// In a new folder in this one, deleted at the end.
    TemporaryIn(PathBuf),
    /// In this folder, which is made if it does not exist, must else be one that we made, and is kept.
    Kept(PathBuf),
}

/// How to start a private server.
#[derive(Debug, Clone)]
pub struct PrivateOptions {
    /// Where.
    pub location: Location,
    /// Whether data must outlive a crash of the machine. Off: about ten times as fast to set up and tear down.
    pub durable: bool,
    /// Sessions at most.
    pub max_connections: u32,
    /// How long the start may take.
    pub start_timeout: Duration,
    /// Further settings, as in `postgresql.conf`.
    pub settings: Vec<(String, String)>,
    /// Folder with `initdb` and `postgres`. None: `COUNTERSIGN_PG_BIN`, then `PATH`, then `/usr/lib/postgresql/*/bin`, the newest.
    pub binaries: Option<PathBuf>,
}

impl Default for PrivateOptions {
    fn default() -> Self {
        Self {
            location: Location::Temporary,
            durable: false,
            max_connections: 100,
            start_timeout: Duration::from_secs(60),
            settings: Vec::new(),
            binaries: None,
        }
    }
}

/// Why a private server cannot be had. Each says what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrivateError {
    /// No server binaries.
    #[error(
        "no PostgreSQL server is installed here (looked for initdb and postgres in {}). Install one (Debian, Ubuntu: `apt-get install postgresql`), \
         or set COUNTERSIGN_PG_BIN to the folder that holds these programs, or set DATABASE_URL to a server that runs elsewhere",
        looked_in.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    BinariesMissing {
        /// Where they were looked for.
        looked_in: Vec<PathBuf>,
    },
    /// Too old.
    #[error("{} is PostgreSQL {found}, and {needed} or newer is needed: install a newer one, or set COUNTERSIGN_PG_BIN to its folder", path.display())]
    TooOld {
        /// The program.
        path: PathBuf,
        /// Its major version.
        found: u32,
        /// The oldest that will do.
        needed: u32,
    },
    /// Postgres refuses to run as root, and no other user was found.
    #[error(
        "PostgreSQL does not run as root, and neither `postgres` nor `nobody` is in /etc/passwd: run as an ordinary user, or set DATABASE_URL"
    )]
    NoOrdinaryUser,
    /// The folder is not one that we made.
    #[error("{} exists and was not made by countersign (it has no {marker}): choose another folder", path.display())]
    NotOurs {
        /// The folder.
        path: PathBuf,
        /// The file that ours have.
        marker: &'static str,
    },
    /// The path is too long for a Unix socket.
    #[error("{} is too long for a Unix socket: set TMPDIR to a shorter one, such as /tmp", path.display())]
    PathTooLong {
        /// The folder.
        path: PathBuf,
    },
    /// A file or folder could not be made, read or removed.
    #[error("{what} {}: {source}", path.display())]
    Io {
        /// What was tried.
        what: &'static str,
        /// With what.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// A program of Postgres failed.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// Which.
        program: &'static str,
        /// How it ended.
        status: String,
        /// The end of what it said.
        output: String,
    },
}

impl PrivateError {
    fn io(what: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Io {
            what,
            path: path.to_owned(),
            source,
        }
    }
}

/// A running private server. Dropping it stops it, and deletes its folder if that is temporary.
#[derive(Debug)]
pub struct PrivatePostgres {
    // In this order: the server stops before its folder goes.
    supervisor: Option<Supervisor>,
    folder: Marked,
    binaries: Binaries,
    options: PrivateOptions,
}

impl PrivatePostgres {
    /// Starts a server, and returns when it accepts connections: about 0.7 s in a new folder, 0.2 s in a kept one. Blocks; in asynchronous code
    /// use [`PrivatePostgres::start_async`].
    pub fn start(options: PrivateOptions) -> Result<Self, PrivateError> {
        let binaries = Binaries::find(options.binaries.as_deref())?;
        let folder = match &options.location {
            Location::Temporary => Marked::temporary(&std::env::temp_dir())?,
            Location::TemporaryIn(parent) => Marked::temporary(parent)?,
            Location::Kept(path) => Marked::kept(path)?,
        };
        let mut server = Self {
            supervisor: None,
            folder,
            binaries,
            options,
        };
        server.resume()?;
        Ok(server)
    }

    /// [`PrivatePostgres::start`] on a thread where it may block.
    pub async fn start_async(options: PrivateOptions) -> Result<Self, PrivateError> {
        tokio::task::spawn_blocking(|| Self::start(options))
            .await
            .unwrap_or_else(|error| {
                Err(PrivateError::Failed {
                    program: "start",
                    status: "panic".to_owned(),
                    output: error.to_string(),
                })
            })
    }

    /// The URL of its first database, `postgres`; the user may do everything.
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of another of its databases.
    pub fn url_of(&self, database: &str) -> String {
        url(&self.folder.sockets(), database)
    }

    /// The folder it lives in.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Stops it and tells whether that went well.
    pub fn stop(mut self) -> Result<(), PrivateError> {
        if let Some(supervisor) = self.supervisor.take() {
            supervisor.stop(&self.binaries, &self.folder)?;
        }
        self.folder.remove_if_temporary()
    }

    /// Lets it crash: sessions break at once, data stays. For tests of what happens then.
    pub fn crash(&mut self) -> Result<(), PrivateError> {
        match self.supervisor.take() {
            Some(supervisor) => supervisor.crash(&self.binaries, &self.folder),
            None => Ok(()),
        }
    }

    /// Starts it again after [`PrivatePostgres::crash`], with its data and under the same URL.
    pub fn resume(&mut self) -> Result<(), PrivateError> {
        if self.supervisor.is_none() {
            self.folder.init(&self.binaries)?;
            self.supervisor = Some(Supervisor::start(&self.binaries, &self.folder, &self.options)?);
        }
        Ok(())
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        let stopped = match self.supervisor.take() {
            Some(supervisor) => supervisor.stop(&self.binaries, &self.folder),
            None => Ok(()),
        };
        if let Err(error) = stopped.and_then(|()| self.folder.remove_if_temporary()) {
            tracing::warn!(%error, "the private database did not stop cleanly");
        }
    }
}

/// Settings common to all private servers.
fn settings(options: &PrivateOptions, sockets: &Path) -> Vec<String> {
    let mut settings = vec![
        "listen_addresses=".to_owned(),
        format!("unix_socket_directories={}", sockets.display()),
        "unix_socket_permissions=0700".to_owned(),
        format!("max_connections={}", options.max_connections),
        "timezone=UTC".to_owned(),
        "log_timezone=UTC".to_owned(),
    ];
    if !options.durable {
        // A commit still reaches the operating system, so it outlives the server; only a crash of the machine can undo it.
        settings.extend(["fsync=off", "full_page_writes=off", "max_wal_size=256MB"].map(str::to_owned));
    }
    settings.extend(options.settings.iter().map(|(name, value)| format!("{name}={value}")));
    settings
}

fn url(sockets: &Path, database: &str) -> String {
    let mut encoded = String::new();
    for byte in sockets.to_string_lossy().bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' => encoded.push(char::from(byte)),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    format!("postgres://{USER}@localhost/{database}?host={encoded}")
}

/// Name of the superuser of a private server.
const USER: &str = "countersign";
