//! A clone of a repository, read through the `git` program: never checked out, nothing of it run.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use countersign_matrix::Files;

/// Largest file that is read, in bytes; the policy's own bound for evidence may be smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

/// A clone, with one `git cat-file --batch` for all reads.
pub(crate) struct Git {
    folder: PathBuf,
    batch: Mutex<Batch>,
}

struct Batch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The first failure to read. Readers of files know only "there" and "not there", so it is asked for at the end.
    fault: Option<String>,
}

impl Git {
    pub(crate) fn open(folder: &Path) -> Result<Self> {
        let mut child = Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("the program `git` cannot be started")?;
        let input = child.stdin.take().context("git takes no input")?;
        let output = BufReader::new(child.stdout.take().context("git gives no output")?);
        Ok(Self {
            folder: folder.to_owned(),
            batch: Mutex::new(Batch {
                child,
                input,
                output,
                fault: None,
            }),
        })
    }

    fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn fault(&self) -> Option<String> {
        self.batch().fault.clone()
    }

    fn output(&self, args: &[&str]) -> Result<String> {
        let output = Command::new("git").arg("-C").arg(&self.folder).args(args).output()?;
        if !output.status.success() {
            bail!(
                "git {}: {}",
                args.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Git {
    fn drop(&mut self) {
        let batch = self.batch.get_mut().unwrap_or_else(PoisonError::into_inner);
        // It ends with its input, which is closed with this value; a process that is gone already is fine too.
        let _ = batch.child.kill();
        let _ = batch.child.wait();
    }
}

impl Batch {
    /// The content of a blob; nothing for what is missing or no blob.
    fn blob(&mut self, name: &str) -> Result<Option<Vec<u8>>> {
        writeln!(self.input, "{name}")?;
        self.input.flush()?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let words: Vec<&str> = header.split_whitespace().collect();
        let [_, kind, size] = words.as_slice() else {
            return Ok(None);
        };
        let size: u64 = size.parse()?;
        if size > MAX_FILE_BYTES {
            bail!("{name} has {size} bytes, more than are read");
        }
        let mut content = Vec::new();
        (&mut self.output).take(size + 1).read_to_end(&mut content)?;
        content.pop();
        Ok((*kind == "blob").then_some(content))
    }
}

/// The files of a revision.
pub(crate) struct Revision<'g> {
    git: &'g Git,
    commit: String,
    paths: BTreeSet<String>,
}

impl<'g> Revision<'g> {
    pub(crate) fn at(git: &'g Git, name: &str) -> Result<Self> {
        let wanted = format!("{name}^{{commit}}");
        let commit = git.output(&["rev-parse", "--verify", "--end-of-options", &wanted])?;
        let commit = commit.trim().to_owned();
        let listing = git.output(&["ls-tree", "-r", "-z", "--name-only", &commit])?;
        Ok(Self {
            git,
            commit,
            paths: listing
                .split('\0')
                .filter(|path| !path.is_empty())
                .map(str::to_owned)
                .collect(),
        })
    }
}

impl Files for Revision<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        // A name with a line break would be two requests.
        if !self.paths.contains(path) || path.contains('\n') {
            return None;
        }
        let mut batch = self.git.batch();
        match batch.blob(&format!("{}:{path}", self.commit)) {
            Ok(content) => String::from_utf8(content?).ok().map(Arc::from),
            Err(error) => {
                batch.fault.get_or_insert(error.to_string());
                None
            }
        }
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.paths
            .range(prefix.to_owned()..)
            .take_while(|path| path.starts_with(prefix))
            .cloned()
            .collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.paths.contains(path)
    }
}
