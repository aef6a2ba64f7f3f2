//! A clone, read by the program `git`: its history in one call, its objects by way of `cat-file --batch`. Nothing is checked
//! out, no hook or filter runs, and the clone is not written to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::BacktestError;

/// A clone: a work tree or a bare repository.
#[derive(Debug, Clone)]
pub struct Git {
    folder: PathBuf,
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A file's content.
    Blob,
    /// A folder.
    Tree,
    /// A commit or a tag.
    Other,
}

impl Git {
    /// The clone in a folder. It is looked at when something is asked.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&self.folder)
            .args([
                "-c",
                "core.fsmonitor=false",
                "--no-optional-locks",
                "--no-replace-objects",
            ])
            .env("GIT_TERMINAL_PROMPT", "0");
        command
    }

    /// What a command prints.
    ///
    /// # Errors
    /// The program cannot be started, or says no.
    pub fn output(&self, args: &[&str]) -> Result<String, BacktestError> {
        let fault = |why: String| BacktestError::Git {
            command: args.first().copied().unwrap_or_default().to_owned(),
            why,
        };
        let output = self
            .command()
            .args(args)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| fault(format!("the program cannot be started: {error}")))?;
        if !output.status.success() {
            return Err(fault(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A process that answers for objects.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn objects(&self) -> Result<Objects, BacktestError> {
        let fault = |why: String| BacktestError::Git {
            command: "cat-file".to_owned(),
            why,
        };
        let mut child = self
            .command()
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| fault(format!("the program cannot be started: {error}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(fault("it has no pipes".to_owned()));
        };
        Ok(Objects {
            child,
            input,
            output: BufReader::with_capacity(1 << 16, output),
        })
    }
}

/// One `git cat-file --batch`.
#[derive(Debug)]
pub struct Objects {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

/// An object's answer.
#[derive(Debug)]
pub enum Object {
    /// Kind and content.
    Here(Kind, Vec<u8>),
    /// It has so many bytes, more than were asked for.
    TooLarge(u64),
    /// The clone does not have it.
    Missing,
}

impl Objects {
    /// An object by its id, if it has at most so many bytes.
    ///
    /// # Errors
    /// The process is gone, or answers what it never should.
    pub fn get(&mut self, id: &str, most: u64) -> std::io::Result<Object> {
        // A line break would be a second request.
        if id.is_empty() || !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Ok(Object::Missing);
        }
        writeln!(self.input, "{id}")?;
        self.input.flush()?;
        let mut header = String::new();
        self.output.read_line(&mut header)?;
        let words: Vec<&str> = header.split_whitespace().collect();
        let [_, kind, size] = words.as_slice() else {
            return if words.last() == Some(&"missing") {
                Ok(Object::Missing)
            } else {
                Err(std::io::Error::other("git cat-file ended early"))
            };
        };
        let size: u64 = size.parse().map_err(std::io::Error::other)?;
        // The content, and the line break after it.
        let mut answer = (&mut self.output).take(size + 1);
        if size > most {
            std::io::copy(&mut answer, &mut std::io::sink())?;
            return Ok(Object::TooLarge(size));
        }
        let mut content = Vec::with_capacity(usize::try_from(size).unwrap_or_default() + 1);
        answer.read_to_end(&mut content)?;
        content.pop();
        let kind = match *kind {
            "blob" => Kind::Blob,
            "tree" => Kind::Tree,
            _ => Kind::Other,
        };
        Ok(Object::Here(kind, content))
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        // It ends with its input, which is closed with this value; a process that is gone already is fine too.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
