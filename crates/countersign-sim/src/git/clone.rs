//! One clone on disk, read through a `git cat-file --batch-command` process that stays open.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{GitError, Kind};

/// The process, and the directory it reads.
pub(crate) struct Clone {
    path: String,
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl std::fmt::Debug for Clone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clone")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Clone {
    /// Starts reading a git directory.
    pub(crate) fn open(path: &str) -> Result<Self, GitError> {
        let fail = |message: String| GitError::Process {
            path: path.to_owned(),
            message,
        };
        if !std::path::Path::new(path).is_dir() {
            return Err(fail("no such directory".to_owned()));
        }
        // The directory may be bare or have a work tree; `-C` finds either. Replacement objects and grafts are ignored, and
        // a partial clone must not reach for the network.
        let mut child = Command::new("git")
            .args(["-C", path, "--no-replace-objects", "cat-file", "--batch-command"])
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| fail(e.to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fail("no pipe".to_owned()));
        };
        Ok(Clone {
            path: path.to_owned(),
            child,
            input: Some(input),
            output: BufReader::new(output),
        })
    }

    /// The object that a revision names: its SHA, kind and bytes. None where there is none.
    pub(crate) fn read(&mut self, revision: &str) -> Result<Option<(String, Kind, Vec<u8>)>, GitError> {
        let Some((sha, kind, size)) = self.ask("contents", revision)? else {
            return Ok(None);
        };
        let mut data = vec![0; size + 1];
        let read = self.output.read_exact(&mut data);
        read.map_err(|e| GitError::Process {
            path: self.path.clone(),
            message: e.to_string(),
        })?;
        data.pop();
        Ok(Kind::parse(&kind).map(|kind| (sha, kind, data)))
    }

    /// The size of an object, without its bytes.
    pub(crate) fn size(&mut self, sha: &str) -> Result<Option<usize>, GitError> {
        Ok(self.ask("info", sha)?.map(|(_, _, size)| size))
    }

    /// Sends one command and reads the line that answers it: SHA, kind, size.
    fn ask(&mut self, command: &str, revision: &str) -> Result<Option<(String, String, usize)>, GitError> {
        if revision.is_empty() || revision.len() > 1_024 || revision.chars().any(char::is_control) {
            return Ok(None);
        }
        let fail = |path: &str, message: String| GitError::Process {
            path: path.to_owned(),
            message,
        };
        let input = self
            .input
            .as_mut()
            .ok_or_else(|| fail(&self.path, "closed".to_owned()))?;
        writeln!(input, "{command} {revision}")
            .and_then(|()| input.flush())
            .map_err(|e| fail(&self.path, e.to_string()))?;
        let mut header = String::new();
        self.output
            .read_line(&mut header)
            .map_err(|e| fail(&self.path, e.to_string()))?;
        if header.is_empty() {
            return Err(fail(&self.path, "git cat-file ended".to_owned()));
        }
        let header = header.trim_end();
        if header.ends_with(" missing") || header.ends_with(" ambiguous") {
            return Ok(None);
        }
        let mut words = header.split(' ');
        let (Some(sha), Some(kind), Some(size)) = (words.next(), words.next(), words.next()) else {
            return Err(fail(&self.path, format!("unexpected answer `{header}`")));
        };
        let size = size
            .parse()
            .map_err(|_| fail(&self.path, format!("unexpected answer `{header}`")))?;
        Ok(Some((sha.to_owned(), kind.to_owned(), size)))
    }

    /// The branch that HEAD names.
    pub(crate) fn head_branch(&self) -> Option<String> {
        let out = Command::new("git")
            .args(["-C", &self.path, "symbolic-ref", "--short", "HEAD"])
            .output()
            .ok()?;
        out.status
            .success()
            .then(|| String::from_utf8_lossy(&out.stdout).trim().to_owned())
            .filter(|s| !s.is_empty())
    }
}

impl Drop for Clone {
    fn drop(&mut self) {
        // Closing its input ends the process; waiting keeps it from staying behind.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
