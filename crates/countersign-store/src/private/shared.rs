//! One private server for all test processes of a user: the first starts it, later ones join it, and it stops some time after the last
//! has ended, however that ended.
//!
//! Each process holds a shared lock on a file for as long as it lives; the kernel takes it back when the process dies. The server's supervisor
//! waits for an exclusive lock on the same file. Nothing is counted, so nothing can be miscounted.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::binaries::Binaries;
use super::folder::{Marked, open_to_pass};
use super::supervisor::{script, wait_until_ready};
use super::{Location, PrivateError, PrivateOptions, url};

/// Stops the server when nobody has held the lock for a while. It looks again under the exclusive lock, and whoever comes then waits for the
/// server to be gone before looking for it. A server that ended by itself is not waited for.
const SCRIPT: &str = r#"
users=$COUNTERSIGN_USERS
"$@" </dev/null &
server=$!
exec 9<"$users"
while kill -0 $server 2>/dev/null; do
    flock -x -w 5 9 || continue
    flock -u 9
    sleep 20
    if flock -n -x 9; then
        kill -INT $server 2>/dev/null
        wait $server
        exit 0
    fi
done
"#;

/// Membership in the shared server; ends with the process.
#[derive(Debug)]
pub(crate) struct SharedPostgres {
    sockets: PathBuf,
    _user: File,
}

impl SharedPostgres {
    /// Whether the supervisor has what it needs.
    pub(crate) fn possible() -> bool {
        ["/usr/bin/flock", "/bin/flock", "/usr/local/bin/flock"]
            .iter()
            .any(|path| Path::new(path).exists())
    }

    /// Joins the shared server, starting it if need be. Blocks.
    pub(crate) fn join() -> Result<Self, PrivateError> {
        let binaries = Binaries::find(None)?;
        let root = root(&std::env::temp_dir(), &binaries)?;
        let open = |name: &str| {
            let path = root.join(name);
            OpenOptions::new()
                .create(true)
                .truncate(false)
                .read(true)
                .write(true)
                .mode(0o644)
                .open(&path)
                .map_err(|error| PrivateError::io("cannot open", &path, error))
        };
        let lock = |result: std::io::Result<()>| result.map_err(|error| PrivateError::io("cannot lock", &root, error));
        let user = open("users")?;
        lock(user.lock_shared())?;
        let starting = open("starting")?;
        lock(starting.lock())?;

        let options = PrivateOptions {
            location: Location::Kept(root.join("pg")),
            max_connections: 300,
            ..PrivateOptions::default()
        };
        let folder = Marked::kept(&root.join("pg"))?;
        if UnixStream::connect(folder.sockets().join(".s.PGSQL.5432")).is_err() {
            let users = root.join("users");
            if start(&binaries, &folder, &options, &users).is_err() {
                // What a crash of the machine left of a server that never syncs may be beyond repair.
                fs::remove_dir_all(folder.data())
                    .map_err(|error| PrivateError::io("cannot remove", &folder.data(), error))?;
                start(&binaries, &folder, &options, &users)?;
            }
        }
        let sockets = folder.sockets();
        drop(starting);
        Ok(Self { sockets, _user: user })
    }

    pub(crate) fn url_of(&self, database: &str) -> String {
        url(&self.sockets, database)
    }
}

fn start(binaries: &Binaries, folder: &Marked, options: &PrivateOptions, users: &Path) -> Result<(), PrivateError> {
    folder.init(binaries)?;
    let mut command = script(SCRIPT, binaries, folder, options)?;
    command.env("COUNTERSIGN_USERS", users).stdin(Stdio::null());
    let mut child = command
        .spawn()
        .map_err(|error| PrivateError::io("cannot run", Path::new("/bin/sh"), error))?;
    // It stays when we end.
    wait_until_ready(&mut child, folder, Duration::from_secs(60))
}

/// One folder for each user and each installation of Postgres; not someone else's, who knew its name before us.
fn root(parent: &Path, binaries: &Binaries) -> Result<PathBuf, PrivateError> {
    let installation = hex::encode(&Sha256::digest(binaries.folder().as_os_str().as_encoded_bytes())[..4]);
    let probe = own_uid(parent)?;
    let path = parent.join(format!("countersign-pg-shared-{probe}-{installation}"));
    match DirBuilder::new().mode(0o755).create(&path) {
        Ok(()) => open_to_pass(&path)?,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(PrivateError::io("cannot make", &path, error)),
    }
    let meta = fs::symlink_metadata(&path).map_err(|error| PrivateError::io("cannot read", &path, error))?;
    if !meta.is_dir() || meta.uid() != probe {
        return Err(PrivateError::NotOurs { path, marker: "owner" });
    }
    Ok(path)
}

/// Who we are: the owner of what we make.
fn own_uid(parent: &Path) -> Result<u32, PrivateError> {
    let path = parent.join(format!("countersign-whoami-{}", uuid::Uuid::new_v4().simple()));
    let made = File::create_new(&path).and_then(|file| file.metadata());
    let uid = made
        .map_err(|error| PrivateError::io("cannot write", &path, error))?
        .uid();
    fs::remove_file(&path).map_err(|error| PrivateError::io("cannot remove", &path, error))?;
    Ok(uid)
}
