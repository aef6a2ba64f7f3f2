//! Prints the matrix of a revision as JSON, reading a git directory through the `git` program: a development aid for
//! comparing with the generator (`compare/`), and for measuring.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};

use countersign_matrix::*;

type Failure = Box<dyn std::error::Error>;

#[derive(serde::Deserialize)]
struct Policy {
    matrix: MatrixRules,
    layout: Layout,
}

/// One `git cat-file --batch` for all reads.
struct Git {
    dir: String,
    batch: Mutex<(Child, ChildStdin, BufReader<ChildStdout>)>,
}

impl Git {
    fn open(dir: &str) -> Result<Self, Failure> {
        let mut child = Command::new("git")
            .args([&format!("--git-dir={dir}"), "cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = child.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(child.stdout.take().ok_or("no stdout")?);
        Ok(Self {
            dir: dir.to_owned(),
            batch: Mutex::new((child, input, output)),
        })
    }

    fn blob(&self, name: &str) -> Result<Option<Vec<u8>>, Failure> {
        let mut batch = self.batch.lock().map_err(|_| "poisoned")?;
        writeln!(batch.1, "{name}")?;
        batch.1.flush()?;
        let mut header = String::new();
        batch.2.read_line(&mut header)?;
        let words: Vec<&str> = header.split_whitespace().collect();
        if words.last() == Some(&"missing") || words.len() != 3 {
            return Ok(None);
        }
        let mut content = vec![0; words[2].parse::<usize>()? + 1];
        batch.2.read_exact(&mut content)?;
        content.pop();
        Ok((words[1] == "blob").then_some(content))
    }

    fn lines(&self, args: &[&str]) -> Result<Vec<String>, Failure> {
        let output = Command::new("git")
            .arg(format!("--git-dir={}", self.dir))
            .args(args)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(str::to_owned)
            .collect())
    }
}

struct Tree<'g> {
    git: &'g Git,
    revision: String,
    paths: std::sync::OnceLock<BTreeSet<String>>,
}

impl<'g> Tree<'g> {
    fn at(git: &'g Git, revision: &str) -> Self {
        Self {
            git,
            revision: revision.to_owned(),
            paths: std::sync::OnceLock::new(),
        }
    }
}

impl Tree<'_> {
    fn paths(&self) -> &BTreeSet<String> {
        self.paths.get_or_init(|| {
            let lines = self.git.lines(&["ls-tree", "-r", "--name-only", &self.revision]);
            lines.unwrap_or_default().into_iter().collect()
        })
    }
}

impl Files for Tree<'_> {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        let blob = self.git.blob(&format!("{}:{path}", self.revision)).ok()??;
        String::from_utf8(blob).ok().map(Arc::from)
    }

    fn list(&self, prefix: &str) -> Vec<String> {
        self.paths()
            .range(prefix.to_owned()..)
            .take_while(|path| path.starts_with(prefix))
            .cloned()
            .collect()
    }

    fn exists(&self, path: &str) -> bool {
        self.paths().contains(path)
    }
}

fn show(rows: &Result<Vec<Row>, Vec<Problem>>, fingerprints: bool) -> serde_json::Value {
    match rows {
        Ok(rows) => {
            let rows: Vec<_> = rows
                .iter()
                .map(|row| {
                    let mut json = row.to_json();
                    if fingerprints {
                        json["recipe-fingerprint"] = row.fingerprint().into();
                    }
                    json
                })
                .collect();
            serde_json::json!({ "rows": rows })
        }
        Err(problems) => {
            serde_json::json!({ "problems": problems.iter().map(ToString::to_string).collect::<Vec<_>>() })
        }
    }
}

fn eval_mode(name: &str) -> Result<EvalMode, Failure> {
    Ok(match name {
        "unmarked" => EvalMode::Unmarked,
        "marked" => EvalMode::Marked,
        "evals-only" => EvalMode::EvalsOnly,
        "all-evals" => EvalMode::AllEvals,
        _ => return Err("mode: unmarked | marked | evals-only | all-evals".into()),
    })
}

fn main() -> Result<(), Failure> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [policy, git_dir, command, rest @ ..] = &args[..] else {
        return Err("usage: matrix <policy.yaml> <git-dir> <command> ...".into());
    };
    let policy: Policy =
        countersign_yaml::from_str(&std::fs::read_to_string(policy)?, &countersign_yaml::Limits::default())?;
    let (rules, layout) = (&policy.matrix, &policy.layout);
    let git = Git::open(git_dir)?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    match (command.as_str(), rest) {
        // Rows of one revision.
        ("rows", [revision, mode]) => {
            let configs = Configs::read(&Tree::at(&git, revision), layout, rules);
            let rows = full_sweep(&configs, rules, eval_mode(mode)?);
            writeln!(out, "{}", show(&rows, mode == "unmarked"))?;
        }
        // One line per revision read from standard input: rows in every mode.
        ("serve", []) => {
            for line in std::io::stdin().lock().lines() {
                let revision = line?;
                let configs = Configs::read(&Tree::at(&git, &revision), layout, rules);
                let mut answer: BTreeMap<&str, serde_json::Value> = BTreeMap::new();
                for mode in ["unmarked", "marked", "evals-only", "all-evals"] {
                    answer.insert(
                        mode,
                        show(&full_sweep(&configs, rules, eval_mode(mode)?), mode == "unmarked"),
                    );
                }
                writeln!(out, "{}", serde_json::to_string(&answer)?)?;
                out.flush()?;
            }
        }
        // What the changelog selects: lines "base head [options]" on standard input, one JSON line each. Options are
        // any of trim, all-evals, evals-only.
        ("select", []) => {
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                let words: Vec<&str> = line.split_whitespace().collect();
                let [base, head, options @ ..] = &words[..] else {
                    return Err("base head [options]".into());
                };
                let options = SelectOptions {
                    trim: options.contains(&"trim"),
                    all_evals: options.contains(&"all-evals"),
                    evals_only: options.contains(&"evals-only"),
                };
                let (base, head) = (Tree::at(&git, base), Tree::at(&git, head));
                let text = |tree: &Tree| tree.read(&layout.changelog).unwrap_or_else(|| Arc::from(""));
                let answer = added_items(&layout.changelog, &text(&base), &text(&head)).and_then(|items| {
                    let base = items
                        .iter()
                        .any(|item| item.append_only)
                        .then(|| Configs::read(&base, layout, rules));
                    let head = Configs::read(&head, layout, rules);
                    select(&layout.changelog, &items, &head, base.as_ref(), rules, options)
                });
                let answer = match answer {
                    Ok(selection) => {
                        let mut buckets = buckets_json(&selection, rules);
                        buckets["jobs"] = selection
                            .rows()
                            .map(|row| job_name(row, rules))
                            .collect::<Vec<_>>()
                            .into();
                        buckets
                    }
                    Err(problems) => show(&Err(problems), false),
                };
                writeln!(out, "{answer}")?;
                out.flush()?;
            }
        }
        // The difference of two revisions, and the entries that the change affects.
        ("diff", [base, head, format]) => {
            let (base_tree, head_tree) = (Tree::at(&git, base), Tree::at(&git, head));
            let (old, new) = (
                Configs::read(&base_tree, layout, rules),
                Configs::read(&head_tree, layout, rules),
            );
            let format = match format.as_str() {
                "json" => Format::Json,
                "csv" => Format::Csv,
                _ => Format::Text,
            };
            let rows = full_sweep(&old, rules, EvalMode::Marked)
                .and_then(|old| full_sweep(&new, rules, EvalMode::Marked).map(|new| diff(&old, &new)));
            match rows {
                Ok(diff) => write!(out, "{}", diff_report(&diff, rules, format))?,
                Err(problems) => write!(out, "{}", problems_report(&problems, format))?,
            }
            let changed = git.lines(&["diff", "--name-only", "--no-renames", base, head])?;
            let (base, head) = (
                Revision {
                    configs: &old,
                    files: &base_tree,
                },
                Revision {
                    configs: &new,
                    files: &head_tree,
                },
            );
            for entry in affected(base, head, &changed, &[], layout, rules) {
                writeln!(
                    out,
                    "affected {}: {}",
                    entry.key,
                    serde_json::to_string(&entry.reasons)?
                )?;
            }
        }
        // How every entry of a revision resolves to files.
        ("resolve", [revision]) => {
            let tree = Tree::at(&git, revision);
            let configs = Configs::read(&tree, layout, rules);
            for entry in &configs.masters.entries {
                let found = resolve(entry, &configs.runners, &tree, layout, rules);
                writeln!(
                    out,
                    "{}",
                    serde_json::json!({"key": &*entry.head.key, "multi": entry.head.multi_node, "files": found})
                )?;
            }
        }
        // Everything for lines "base head" on standard input: outcome and milliseconds, one JSON line each.
        ("survey", []) => {
            for line in std::io::stdin().lock().lines() {
                let line = line?;
                let (base, head) = line.split_once(' ').ok_or("base head")?;
                let changed = git
                    .lines(&["diff", "--name-only", "--no-renames", base, head])
                    .unwrap_or_default();
                let (base_tree, head_tree) = (Tree::at(&git, base), Tree::at(&git, head));
                let _ = (base_tree.list(""), head_tree.list(""));
                let start = std::time::Instant::now();
                let (old, new) = (
                    Configs::read(&base_tree, layout, rules),
                    Configs::read(&head_tree, layout, rules),
                );
                let text = |tree: &Tree| tree.read(&layout.changelog).unwrap_or_else(|| Arc::from(""));
                let selection =
                    added_items(&layout.changelog, &text(&base_tree), &text(&head_tree)).and_then(|items| {
                        select(
                            &layout.changelog,
                            &items,
                            &new,
                            Some(&old),
                            rules,
                            SelectOptions::default(),
                        )
                    });
                let rows = full_sweep(&new, rules, EvalMode::Marked);
                let before = full_sweep(&old, rules, EvalMode::Marked);
                let difference = match (&before, &rows) {
                    (Ok(before), Ok(rows)) => {
                        let diff = diff(before, rows);
                        Some([diff.added.len(), diff.removed.len(), diff.changed.len()])
                    }
                    _ => None,
                };
                let selected = selection.as_ref().map(|s| s.entries.clone()).unwrap_or_default();
                let touched = affected(
                    Revision {
                        configs: &old,
                        files: &base_tree,
                    },
                    Revision {
                        configs: &new,
                        files: &head_tree,
                    },
                    &changed,
                    &selected,
                    layout,
                    rules,
                );
                let first = |problems: &[Problem]| problems.first().map(|problem| problem.message.clone());
                writeln!(
                    out,
                    "{}",
                    serde_json::json!({
                        "head": head,
                        "rows": rows.as_ref().ok().map(Vec::len),
                        "refused": rows.as_ref().err().and_then(|problems| first(problems)),
                        "problems": rows.as_ref().err().map(Vec::len),
                        "diff": difference,
                        "affected": touched.len(),
                        "selected": selection.as_ref().ok().map(|s| [s.throughput.len(), s.evals.len()]),
                        "not selected": selection.as_ref().err().and_then(|problems| first(problems)),
                        "ms": start.elapsed().as_secs_f64() * 1000.0,
                    })
                )?;
                out.flush()?;
            }
        }
        // Wall time of reading and expanding a revision, in milliseconds.
        ("time", [revision, runs]) => {
            let tree = Tree::at(&git, revision);
            let mut memory = MapFiles::new();
            for path in layout.masters.iter().chain([&layout.runners]) {
                memory = memory.with(path, tree.read(path).ok_or("missing")?);
            }
            let mut times: Vec<f64> = Vec::new();
            let mut count = 0;
            for _ in 0..runs.parse::<usize>()? {
                let start = std::time::Instant::now();
                let configs = Configs::read(&memory, layout, rules);
                let rows = full_sweep(&configs, rules, EvalMode::Marked).map_err(|problems| format!("{problems:?}"))?;
                let fingerprints: Vec<String> = rows.iter().map(Row::fingerprint).collect();
                times.push(start.elapsed().as_secs_f64() * 1000.0);
                count = fingerprints.len();
            }
            times.sort_by(f64::total_cmp);
            writeln!(
                out,
                "{count} rows: median {:.1} ms, best {:.1} ms",
                times[times.len() / 2],
                times[0]
            )?;
        }
        _ => return Err("commands: rows, serve, select, diff, resolve, survey, time".into()),
    }
    out.flush()?;
    Ok(())
}
