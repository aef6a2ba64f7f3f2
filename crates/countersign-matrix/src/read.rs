//! Strict readers of the master configs and of the runners file. Every problem is reported with file, line and column;
//! a revision with problems generates nothing, as with the repository's own generator.
//!
//! Stricter than the generator, knowingly: a number written as text, a boolean written as a number, a field written
//! with an underscore (which the generator's validator accepts and the generator then ignores), a scenario written as
//! null, an integer beyond 64 bits, and `?` in a key (which the generator would take for a wildcard).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::sync::Arc;

use countersign_yaml::{Document, Limits, Node, Problem as StrictProblem, Strict, parse};

use crate::entry::{Entry, Problem};
use crate::files::Files;
use crate::read_entry::{Reader, Words};
use crate::rules::{Layout, MatrixRules};

/// The master configs of one revision.
#[derive(Debug, Clone, Default)]
pub struct Masters {
    /// Entries in the order of the files.
    pub entries: Vec<Arc<Entry>>,
    /// What is wrong; anything here means that the generator refuses the revision.
    pub problems: Vec<Problem>,
    /// Keys written twice in one mapping. The generator keeps the last one silently, and so does the expansion.
    pub duplicates: Vec<Problem>,
    /// Something has an anchor.
    pub(crate) anchors: bool,
    /// Every key that is written, also of entries that cannot be read.
    keys: BTreeMap<Arc<str>, Option<usize>>,
}

impl Masters {
    /// The entry with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get((*self.keys.get(key)?)?)
    }

    /// Takes over an entry of another reading; not if its key is here already.
    pub(crate) fn take(&mut self, entry: Arc<Entry>) -> bool {
        let new = self
            .keys
            .insert(entry.head.key.clone(), Some(self.entries.len()))
            .is_none();
        self.entries.push(entry);
        new
    }

    /// Takes over what is wrong with an entry of another reading; not if its key is here already.
    pub(crate) fn refuse(&mut self, name: Arc<str>, problems: Vec<Problem>) -> bool {
        self.problems.extend(problems);
        self.keys.insert(name, None).is_none()
    }

    /// Whether the key is written, even if its entry cannot be read.
    #[must_use]
    pub fn has_key(&self, key: &str) -> bool {
        self.keys.contains_key(key)
    }
}

/// Facts about the machines behind a runner label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hardware {
    /// `available-cpu-dram-mib`.
    pub memory_mib: i64,
    /// `gpus-per-node`.
    pub gpus_per_node: i64,
}

/// The runners file of one revision.
#[derive(Debug, Clone, Default)]
pub struct Runners {
    /// Label to concrete runner names.
    pub labels: BTreeMap<String, Vec<String>>,
    /// Label to hardware facts.
    pub hardware: BTreeMap<String, Hardware>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Keys written twice.
    pub duplicates: Vec<Problem>,
}

/// What the generator reads of one revision.
#[derive(Debug, Clone, Default)]
pub struct Configs {
    /// The master configs.
    pub masters: Masters,
    /// The runners file.
    pub runners: Arc<Runners>,
}

impl Configs {
    /// Reads the master configs and the runners file of a revision. Never fails: what is wrong is in `problems`.
    #[must_use]
    pub fn read(files: &dyn Files, layout: &Layout, rules: &MatrixRules) -> Self {
        Self {
            masters: read_masters(files, layout, rules),
            runners: Arc::new(read_runners(files, layout)),
        }
    }

    /// Everything for which the generator refuses the revision.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.masters
            .problems
            .iter()
            .chain(&self.runners.problems)
            .cloned()
            .collect()
    }
}

fn file_problem(file: &Arc<str>, message: impl Into<String>, remedy: impl Into<String>) -> Problem {
    Problem {
        file: file.clone(),
        line: 0,
        column: 0,
        entry: None,
        path: String::new(),
        message: message.into(),
        remedy: remedy.into(),
    }
}

/// Reads one file into a tree; its syntax errors and duplicate keys become problems.
fn read_tree(
    files: &dyn Files,
    file: &Arc<str>,
    problems: &mut Vec<Problem>,
    duplicates: &mut Vec<Problem>,
) -> Option<Document> {
    let Some(text) = files.read(file) else {
        problems.push(file_problem(file, "the file is missing", "restore it"));
        return None;
    };
    match parse(&text, &Limits::default()) {
        Ok(document) => {
            duplicates.extend(document.duplicate_keys.iter().map(|duplicate| Problem {
                line: duplicate.line,
                column: duplicate.column,
                ..file_problem(
                    file,
                    format!(
                        "the key `{}` is already written on line {}",
                        duplicate.key, duplicate.first_line
                    ),
                    "keep one of the two; the last one counts",
                )
            }));
            Some(document)
        }
        Err(error) => {
            problems.push(Problem {
                line: error.line,
                column: error.column,
                ..file_problem(file, error.message, error.remedy)
            });
            None
        }
    }
}

/// Reads every master config.
#[must_use]
pub fn read_masters(files: &dyn Files, layout: &Layout, rules: &MatrixRules) -> Masters {
    let mut masters = Masters::default();
    for path in &layout.masters {
        let file: Arc<str> = Arc::from(path.as_str());
        let Some(document) = read_tree(files, &file, &mut masters.problems, &mut masters.duplicates) else {
            continue;
        };
        masters.anchors |= document.anchors;
        let root = document.root;
        let countersign_yaml::Value::Map(map) = root.value else {
            let found = root.type_name();
            masters.problems.push(file_problem(
                &file,
                format!("expected a mapping of entries, found {found}"),
                "write one mapping, entry key to entry",
            ));
            continue;
        };
        let mut words = Words::default();
        for countersign_yaml::Entry { key, value } in map.entries {
            let mut strict = Strict::new();
            let name: Arc<str> = Arc::from(key.scalar_text());
            if key.as_str().is_none() {
                strict.problem(key.span, "", "the entry's key is not a string", "put it in quotes");
            }
            if name.contains(['*', '?']) {
                strict.problem(
                    key.span,
                    "",
                    "`*` and `?` are wildcards and cannot be part of a key",
                    "choose a key without them",
                );
            }
            let is_new = match masters.keys.entry(name.clone()) {
                MapEntry::Vacant(slot) => {
                    slot.insert(None);
                    true
                }
                MapEntry::Occupied(_) => {
                    strict.problem(
                        key.span,
                        "",
                        "this key is already in another master config",
                        "keep the entry in one of the two files",
                    );
                    false
                }
            };
            let mut reader = Reader {
                strict,
                rules,
                words: &mut words,
            };
            let entry = reader.entry(&name, &file, key.span, value);
            let problems = std::mem::take(&mut reader.strict.problems);
            if let Some(entry) = entry
                && is_new
                && problems.is_empty()
            {
                masters.keys.insert(name.clone(), Some(masters.entries.len()));
                masters.entries.push(Arc::new(entry));
            }
            masters.problems.extend(of_entry(&file, &name, problems));
        }
    }
    masters
}

/// What is wrong with an entry.
pub(crate) fn of_entry(file: &Arc<str>, name: &Arc<str>, problems: Vec<StrictProblem>) -> Vec<Problem> {
    let of = |problem: StrictProblem| Problem {
        line: problem.line,
        column: problem.column,
        entry: Some(name.clone()),
        path: problem.path,
        ..file_problem(file, problem.message, problem.remedy)
    };
    problems.into_iter().map(of).collect()
}

/// Reads the runners file.
#[must_use]
pub fn read_runners(files: &dyn Files, layout: &Layout) -> Runners {
    let mut runners = Runners::default();
    let file: Arc<str> = Arc::from(layout.runners.as_str());
    let Some(document) = read_tree(files, &file, &mut runners.problems, &mut runners.duplicates) else {
        return runners;
    };
    let root = document.root;
    let mut strict = Strict::new();
    if let Some(map) = strict.expect_map(&root, "", &["labels", "hardware"]) {
        strict.enter("labels");
        if let Some(labels) = strict.required(map, root.span, "", "labels")
            && let Some(labels) = strict.expect_any_map(labels, "")
        {
            for (label, names) in labels.iter() {
                let path = label.scalar_text();
                strict.expect_str(label, &path);
                if let Some(found) = strict.expect_str_list(names, &path) {
                    if found.is_empty() {
                        strict.problem(names.span, &path, "the list of runners is empty", "name a runner");
                    }
                    runners
                        .labels
                        .insert(path, found.into_iter().map(str::to_owned).collect());
                }
            }
        }
        strict.leave();
        strict.enter("hardware");
        if let Some(hardware) = map.get("hardware")
            && let Some(hardware) = strict.expect_any_map(hardware, "")
        {
            for (label, facts) in hardware.iter() {
                let path = label.scalar_text();
                strict.expect_str(label, &path);
                if let Some(facts) = read_hardware(&mut strict, facts, &path) {
                    runners.hardware.insert(path, facts);
                }
            }
        }
        strict.leave();
    }
    runners
        .problems
        .extend(strict.problems.into_iter().map(|problem| Problem {
            line: problem.line,
            column: problem.column,
            path: problem.path,
            ..file_problem(&file, problem.message, problem.remedy)
        }));
    runners
}

fn read_hardware(strict: &mut Strict, facts: &Node, path: &str) -> Option<Hardware> {
    let map = strict.expect_map(facts, path, &["available-cpu-dram-mib", "gpus-per-node"])?;
    let mut positive = |field: &str| {
        let node = strict.required(map, facts.span, path, field)?;
        let number = strict.expect_int(node, path)?;
        if number <= 0 {
            strict.problem(
                node.span,
                path,
                format!("`{field}` must be positive"),
                "correct the number",
            );
            return None;
        }
        Some(number)
    };
    let memory_mib = positive("available-cpu-dram-mib");
    let gpus_per_node = positive("gpus-per-node");
    Some(Hardware {
        memory_mib: memory_mib?,
        gpus_per_node: gpus_per_node?,
    })
}
