//! The folder of a private server: made by us, marked as ours, owned by the user the server runs as.

use std::fs::{self, DirBuilder, File};
use std::io::Write;
#[cfg(any(test, feature = "testing"))]
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::binaries::Binaries;
use super::{PrivateError, USER};

/// A folder that has this file is ours; no other is ever deleted.
pub(super) const MARKER: &str = ".countersign-private-postgres";

const PREFIX: &str = "countersign-pg-";

/// `sun_path` holds 108 bytes with the final NUL; the socket is called `.s.PGSQL.5432`, its lock two letters more.
const LONGEST_SOCKET_PATH: usize = 103;

/// The user the server runs as, where we are root.
#[derive(Debug, Clone, Copy)]
struct Ordinary {
    uid: u32,
    gid: u32,
}

#[derive(Debug)]
pub(super) struct Marked {
    path: PathBuf,
    temporary: bool,
    ordinary: Option<Ordinary>,
}

impl Marked {
    pub(super) fn temporary(parent: &Path) -> Result<Self, PrivateError> {
        sweep(parent);
        let name = format!(
            "{PREFIX}{}-{}",
            std::process::id(),
            &uuid::Uuid::new_v4().simple().to_string()[..8]
        );
        let mut folder = Self::make(&parent.join(name))?;
        folder.temporary = true;
        Ok(folder)
    }

    pub(super) fn kept(path: &Path) -> Result<Self, PrivateError> {
        let path = std::path::absolute(path).map_err(|error| PrivateError::io("cannot find", path, error))?;
        if !path.exists() {
            return Self::make(&path);
        }
        if !is_marked(&path) {
            return Err(PrivateError::NotOurs { path, marker: MARKER });
        }
        let owner = fs::metadata(path.join(MARKER))
            .map_err(|error| PrivateError::io("cannot read", &path, error))?
            .uid();
        // The marker stays ours, so its owner is who we are.
        let ordinary = if owner == 0 { Some(ordinary_user()?) } else { None };
        let folder = Self {
            path,
            temporary: false,
            ordinary,
        };
        folder.check_length()?;
        Ok(folder)
    }

    fn make(path: &Path) -> Result<Self, PrivateError> {
        let mut folder = Self {
            path: path.to_owned(),
            temporary: false,
            ordinary: None,
        };
        folder.check_length()?;
        // Fails where it exists, so nobody else can have put anything into it.
        DirBuilder::new()
            .mode(0o700)
            .create(path)
            .map_err(|error| PrivateError::io("cannot make", path, error))?;
        let marker = path.join(MARKER);
        let write = || {
            let mut file = File::create_new(&marker)?;
            writeln!(file, "{}", std::process::id())?;
            writeln!(
                file,
                "A private PostgreSQL of countersign lives here; countersign may delete this folder."
            )?;
            file.metadata()
        };
        let uid = write()
            .map_err(|error| PrivateError::io("cannot write", &marker, error))?
            .uid();
        DirBuilder::new()
            .mode(0o700)
            .create(folder.sockets())
            .map_err(|error| PrivateError::io("cannot make", &folder.sockets(), error))?;
        if uid == 0 {
            let ordinary = ordinary_user()?;
            folder.ordinary = Some(ordinary);
            for path in [path, &folder.sockets()] {
                chown(path, Some(ordinary.uid), Some(ordinary.gid))
                    .map_err(|error| PrivateError::io("cannot hand over", path, error))?;
            }
        }
        Ok(folder)
    }

    fn check_length(&self) -> Result<(), PrivateError> {
        if self.sockets().join(".s.PGSQL.5432.lock").as_os_str().len() > LONGEST_SOCKET_PATH {
            return Err(PrivateError::PathTooLong {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_temporary(&self) -> bool {
        self.temporary
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    pub(super) fn sockets(&self) -> PathBuf {
        self.path.join("s")
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("log")
    }

    /// A command that runs as the server's user, with nothing of our environment that Postgres would listen to.
    pub(super) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("LC_ALL", "C")
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", &self.path);
        command.current_dir("/").stdin(Stdio::null());
        if let Some(ordinary) = self.ordinary {
            command.uid(ordinary.uid).gid(ordinary.gid);
        }
        command
    }

    /// Makes the data folder, unless it is there.
    pub(super) fn init(&self, binaries: &Binaries) -> Result<(), PrivateError> {
        if self.data().join("PG_VERSION").exists() {
            return Ok(());
        }
        let program = binaries.program("initdb");
        let output = self
            .command(&program)
            .arg("--pgdata")
            .arg(self.data())
            .args([
                "--username",
                USER,
                "--auth",
                "trust",
                "--encoding",
                "UTF8",
                "--locale",
                "C",
                "--no-sync",
                "--no-instructions",
            ])
            .output()
            .map_err(|error| PrivateError::io("cannot run", &program, error))?;
        if output.status.success() {
            return Ok(());
        }
        let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
        said.push_str(&String::from_utf8_lossy(&output.stderr));
        Err(PrivateError::Failed {
            program: "initdb",
            status: output.status.to_string(),
            output: tail(&said),
        })
    }

    pub(super) fn remove_if_temporary(&self) -> Result<(), PrivateError> {
        if self.temporary {
            remove_marked(&self.path)
        } else {
            Ok(())
        }
    }
}

impl Drop for Marked {
    fn drop(&mut self) {
        // Where making the server failed half-way. Afterwards it is gone already.
        if let Err(error) = self.remove_if_temporary() {
            tracing::warn!(%error, "a temporary folder stays");
        }
    }
}

fn is_marked(path: &Path) -> bool {
    // Not through a link, at neither end.
    let is = |path: &Path, test: fn(&fs::Metadata) -> bool| fs::symlink_metadata(path).is_ok_and(|meta| test(&meta));
    is(path, fs::Metadata::is_dir) && is(&path.join(MARKER), fs::Metadata::is_file)
}

fn remove_marked(path: &Path) -> Result<(), PrivateError> {
    if !is_marked(path) {
        return Ok(());
    }
    match fs::remove_dir_all(path) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(PrivateError::io("cannot remove", path, error)),
    }
}

/// Removes what killed processes left. Their servers have stopped by themselves (see the supervisor); this is for their folders.
fn sweep(parent: &Path) {
    if !Path::new("/proc/self").exists() {
        return;
    }
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let path = entry.path();
        let Some(rest) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .map(str::to_owned)
        else {
            continue;
        };
        let Some(owner) = rest.split('-').next().and_then(|pid| pid.parse::<u32>().ok()) else {
            continue;
        };
        let server = fs::read_to_string(path.join("data/postmaster.pid"))
            .ok()
            .and_then(|text| text.lines().next()?.trim().parse::<u32>().ok());
        let alive = |pid: u32| Path::new("/proc").join(pid.to_string()).exists();
        if is_marked(&path) && !alive(owner) && !server.is_some_and(alive) {
            // Someone else's, or gone meanwhile: not worth a word.
            let _ = remove_marked(&path);
        }
    }
}

fn ordinary_user() -> Result<Ordinary, PrivateError> {
    let passwd = fs::read_to_string("/etc/passwd").unwrap_or_default();
    user_in(&passwd, "postgres")
        .or_else(|| user_in(&passwd, "nobody"))
        .ok_or(PrivateError::NoOrdinaryUser)
}

fn user_in(passwd: &str, name: &str) -> Option<Ordinary> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next()? != name {
            return None;
        }
        let (uid, gid) = (fields.nth(1)?.parse().ok()?, fields.next()?.parse().ok()?);
        (uid != 0).then_some(Ordinary { uid, gid })
    })
}

/// The end of what a program said.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// Lets the server's user pass through a folder of ours.
#[cfg(feature = "testing")]
pub(super) fn open_to_pass(path: &Path) -> Result<(), PrivateError> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))
        .map_err(|error| PrivateError::io("cannot open up", path, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_users_but_never_root() {
        let passwd =
            "root:x:0:0::/root:/bin/sh\npostgres:x:101:104:PG:/var/lib:/bin/sh\nnobody:x:0:0::/:/bin/false\nbroken:x\n";
        let found = user_in(passwd, "postgres").unwrap();
        assert_eq!((found.uid, found.gid), (101, 104));
        assert!(user_in(passwd, "nobody").is_none());
        assert!(user_in(passwd, "broken").is_none());
        assert!(user_in(passwd, "absent").is_none());
    }

    #[test]
    fn deletes_nothing_without_the_marker_and_follows_no_link() {
        let root = tempfile::tempdir().unwrap();
        let plain = root.path().join("countersign-pg-1-aaaa");
        fs::create_dir(&plain).unwrap();
        fs::write(plain.join("precious"), "x").unwrap();
        remove_marked(&plain).unwrap();
        assert!(plain.join("precious").exists());

        let ours = root.path().join("ours");
        fs::create_dir(&ours).unwrap();
        fs::write(ours.join(MARKER), "").unwrap();
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&ours, &link).unwrap();
        remove_marked(&link).unwrap();
        assert!(ours.exists());
        remove_marked(&ours).unwrap();
        assert!(!ours.exists());
    }

    #[test]
    fn sweeps_only_what_a_dead_process_left() {
        let root = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(MARKER), "").unwrap();
            path
        };
        // Process numbers end far below this.
        let dead = make("countersign-pg-4294967290-aaaa");
        let alive = make(&format!("countersign-pg-{}-aaaa", std::process::id()));
        let other = make("other-4294967290");
        sweep(root.path());
        assert!(!dead.exists() || !Path::new("/proc/self").exists());
        assert!(alive.exists());
        assert!(other.exists());
    }

    #[test]
    fn a_folder_that_is_not_ours_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let error = Marked::kept(root.path()).unwrap_err();
        assert!(matches!(error, PrivateError::NotOurs { .. }), "{error}");
        let long = root.path().join("x".repeat(120));
        assert!(matches!(
            Marked::kept(&long).unwrap_err(),
            PrivateError::PathTooLong { .. }
        ));
    }
}
