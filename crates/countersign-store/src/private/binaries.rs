//! Finding `initdb` and `postgres`.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::PrivateError;

/// The oldest major version that has all we use.
const OLDEST: u32 = 13;

#[derive(Debug, Clone)]
pub(super) struct Binaries {
    folder: PathBuf,
}

impl Binaries {
    pub(super) fn find(given: Option<&Path>) -> Result<Self, PrivateError> {
        let from_environment = std::env::var_os("COUNTERSIGN_PG_BIN")
            .filter(|value| !value.is_empty())
            .map(PathBuf::from);
        let path = std::env::var_os("PATH").unwrap_or_default();
        match given.map(Path::to_owned).or(from_environment) {
            // Asked for: that one or none.
            Some(folder) => choose(&[folder]),
            None => {
                let mut folders: Vec<PathBuf> =
                    std::env::split_paths(&path).filter(|path| path.is_absolute()).collect();
                folders.extend(installed(Path::new("/usr/lib/postgresql")));
                choose(&folders)
            }
        }
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Tells installations apart.
    #[cfg(feature = "testing")]
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Debian keeps versions side by side; the newest first.
fn installed(root: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .collect();
    versions.sort_by(|a, b| b.cmp(a));
    versions.into_iter().map(|(_, path)| path).collect()
}

fn choose(folders: &[PathBuf]) -> Result<Binaries, PrivateError> {
    let mut too_old = None;
    for folder in folders {
        // Behind links: initdb looks for postgres beside where it really is.
        let Ok(initdb) = folder.join("initdb").canonicalize() else {
            continue;
        };
        let Some(folder) = initdb.parent() else { continue };
        let postgres = folder.join("postgres");
        if !postgres.is_file() {
            continue;
        }
        let Ok(answer) = Command::new(&postgres).arg("--version").output() else {
            continue;
        };
        match major(&String::from_utf8_lossy(&answer.stdout)) {
            Some(found) if found >= OLDEST => {
                return Ok(Binaries {
                    folder: folder.to_owned(),
                });
            }
            Some(found) => {
                too_old.get_or_insert(PrivateError::TooOld {
                    path: postgres,
                    found,
                    needed: OLDEST,
                });
            }
            None => {}
        }
    }
    Err(too_old.unwrap_or_else(|| PrivateError::BinariesMissing {
        looked_in: folders.to_vec(),
    }))
}

/// `postgres (PostgreSQL) 15.18 (Debian …)`, `postgres (PostgreSQL) 17beta1`
fn major(version: &str) -> Option<u32> {
    let number = version.split_once("(PostgreSQL)")?.1.trim_start();
    let end = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
    number[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_versions() {
        assert_eq!(
            major("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"),
            Some(15)
        );
        assert_eq!(major("postgres (PostgreSQL) 17beta1"), Some(17));
        assert_eq!(major("postgres (PostgreSQL) 9"), Some(9));
        assert_eq!(major("psql 15"), None);
        assert_eq!(major(""), None);
    }

    #[test]
    fn missing_binaries_say_where_they_were_looked_for_and_what_to_do() {
        let empty = tempfile::tempdir().unwrap();
        let error = Binaries::find(Some(empty.path())).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, PrivateError::BinariesMissing { .. }), "{text}");
        assert!(text.contains("apt-get install postgresql"), "{text}");
        assert!(text.contains(&empty.path().display().to_string()), "{text}");
    }

    #[test]
    fn newest_installed_first() {
        let root = tempfile::tempdir().unwrap();
        for name in ["9", "15", "17", "common"] {
            std::fs::create_dir_all(root.path().join(name).join("bin")).unwrap();
        }
        let found = installed(root.path());
        let names: Vec<_> = found
            .iter()
            .map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap())
            .collect();
        assert_eq!(names, ["17/bin", "15/bin", "9/bin"]);
    }
}
