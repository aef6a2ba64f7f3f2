//! `matrix`: what a revision of a clone would benchmark, what differs from another one, or what its changelog selects.
//!
//! The clone is read through the `git` program, never checked out; nothing of it is run.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context as _, Result, bail};
use clap::{Args, ValueEnum};
use countersign_matrix::{
    Configs, EvalMode, Files, Format, Problem, SelectOptions, added_items, diff, diff_report, full_sweep,
    problems_report, rows_report, select, selection_report,
};

/// Largest file that is read, in bytes; the policy's own bound for evidence may be smaller.
const MAX_FILE_BYTES: u64 = 16 << 20;

#[derive(Debug, Args)]
pub(crate) struct MatrixArgs {
    /// The clone: a work tree or a bare repository.
    clone: PathBuf,
    /// The revision.
    #[arg(long)]
    rev: String,
    /// Compare with this revision.
    #[arg(long)]
    base: Option<String>,
    /// Print what the changelog items that are new since the base select.
    #[arg(long, requires = "base")]
    changelog: bool,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// The policy that has the rules of the matrix and the layout of the repository.
    #[arg(long, default_value = "config/policies/inferencex.yaml")]
    policy: PathBuf,
}

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// For people, lane by lane.
    Text,
    /// In the field names of the repository's own generator.
    Json,
    /// One row a line, with a header.
    Csv,
}

impl From<Form> for Format {
    fn from(form: Form) -> Self {
        match form {
            Form::Text => Self::Text,
            Form::Json => Self::Json,
            Form::Csv => Self::Csv,
        }
    }
}

/// Prints; exit code 1 where the generator would refuse the revision, with its problems.
pub(crate) fn run(args: &MatrixArgs) -> Result<ExitCode> {
    let policy = crate::policy::load(&args.policy)?.policy;
    let (layout, rules, format) = (&policy.layout, &policy.matrix, args.format.into());
    let git = Git::open(&args.clone)?;
    let head_tree = Revision::at(&git, &args.rev)?;
    let head = Configs::read(&head_tree, layout, rules);
    let base_tree = args.base.as_deref().map(|base| Revision::at(&git, base)).transpose()?;
    let base = base_tree.as_ref().map(|tree| Configs::read(tree, layout, rules));
    let report = match (&base_tree, &base) {
        (Some(base_tree), Some(base)) if args.changelog => {
            let text = |tree: &Revision<'_>| tree.read(&layout.changelog).unwrap_or_else(|| Arc::from(""));
            added_items(&layout.changelog, &text(base_tree), &text(&head_tree))
                .and_then(|items| {
                    select(
                        &layout.changelog,
                        &items,
                        &head,
                        Some(base),
                        rules,
                        SelectOptions::default(),
                    )
                })
                .map(|selection| selection_report(&selection, rules, format))
        }
        (_, Some(base)) => full_sweep(base, rules, EvalMode::Marked)
            .and_then(|before| Ok((before, full_sweep(&head, rules, EvalMode::Marked)?)))
            .map(|(before, after)| diff_report(&diff(&before, &after), rules, format)),
        _ => full_sweep(&head, rules, EvalMode::Marked).map(|rows| rows_report(&rows, rules, format)),
    };
    if let Some(why) = git.fault() {
        bail!("{}: {why}", args.clone.display());
    }
    print(report, format)
}

fn print(report: Result<String, Vec<Problem>>, format: Format) -> Result<ExitCode> {
    let (text, code) = match report {
        Ok(text) => (text, 0),
        Err(problems) => (problems_report(&problems, format), 1),
    };
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // A reader such as `head` that has seen enough is no failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(ExitCode::from(code)),
    }
}

/// A clone, with one `git cat-file --batch` for all reads.
struct Git {
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
    fn open(folder: &Path) -> Result<Self> {
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

    fn fault(&self) -> Option<String> {
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
struct Revision<'g> {
    git: &'g Git,
    commit: String,
    paths: BTreeSet<String>,
}

impl<'g> Revision<'g> {
    fn at(git: &'g Git, name: &str) -> Result<Self> {
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
