//! Strict readers of the master configs and of the runners file. Every problem is reported with file, line and column;
//! a revision with problems generates nothing, as with the repository's own generator.
//!
//! Stricter than the generator, knowingly: a number written as text, a boolean written as a number, a field written
//! with an underscore (which the generator's validator accepts and the generator then ignores), a scenario written as
//! null, an integer beyond 64 bits, and `?` in a key (which the generator would take for a wildcard).

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as MapEntry;
use std::sync::Arc;

use countersign_yaml::{Limits, Map, Node, Span, Strict, parse};

use crate::entry::{AgenticBlock, Component, Entry, FixedBlock, Head, Own, Problem};
use crate::files::Files;
use crate::read_row;
use crate::rules::{Layout, MatrixRules, ScenarioType};

/// The master configs of one revision.
#[derive(Debug, Clone, Default)]
pub struct Masters {
    /// Entries in the order of the files.
    pub entries: Vec<Arc<Entry>>,
    /// What is wrong; anything here means that the generator refuses the revision.
    pub problems: Vec<Problem>,
    /// Keys written twice in one mapping. The generator keeps the last one silently, and so does the expansion.
    pub duplicates: Vec<Problem>,
    /// Every key that is written, also of entries that cannot be read.
    keys: BTreeMap<Arc<str>, Option<usize>>,
}

impl Masters {
    /// The entry with this key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.entries.get((*self.keys.get(key)?)?)
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
    pub runners: Runners,
}

impl Configs {
    /// Reads the master configs and the runners file of a revision. Never fails: what is wrong is in `problems`.
    #[must_use]
    pub fn read(files: &dyn Files, layout: &Layout, rules: &MatrixRules) -> Self {
        Self { masters: read_masters(files, layout, rules), runners: read_runners(files, layout) }
    }

    /// Everything for which the generator refuses the revision.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.masters.problems.iter().chain(&self.runners.problems).cloned().collect()
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
) -> Option<Node> {
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
                    format!("the key `{}` is already written on line {}", duplicate.key, duplicate.first_line),
                    "keep one of the two; the last one counts",
                )
            }));
            Some(document.root)
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
        let Some(root) = read_tree(files, &file, &mut masters.problems, &mut masters.duplicates) else { continue };
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
            let mut reader = Reader { strict, rules, words: &mut words };
            let entry = reader.entry(&name, &file, key.span, value);
            let problems = std::mem::take(&mut reader.strict.problems);
            if let Some(entry) = entry
                && is_new
                && problems.is_empty()
            {
                masters.keys.insert(name.clone(), Some(masters.entries.len()));
                masters.entries.push(Arc::new(entry));
            }
            masters.problems.extend(problems.into_iter().map(|problem| Problem {
                line: problem.line,
                column: problem.column,
                entry: Some(name.clone()),
                path: problem.path,
                ..file_problem(&file, problem.message, problem.remedy)
            }));
        }
    }
    masters
}

/// Reads the runners file.
#[must_use]
pub fn read_runners(files: &dyn Files, layout: &Layout) -> Runners {
    let mut runners = Runners::default();
    let file: Arc<str> = Arc::from(layout.runners.as_str());
    let Some(root) = read_tree(files, &file, &mut runners.problems, &mut runners.duplicates) else { return runners };
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
                    runners.labels.insert(path, found.into_iter().map(str::to_owned).collect());
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
    runners.problems.extend(strict.problems.into_iter().map(|problem| Problem {
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
            strict.problem(node.span, path, format!("`{field}` must be positive"), "correct the number");
            return None;
        }
        Some(number)
    };
    let memory_mib = positive("available-cpu-dram-mib");
    let gpus_per_node = positive("gpus-per-node");
    Some(Hardware { memory_mib: memory_mib?, gpus_per_node: gpus_per_node? })
}

/// Texts that occur in many rows, kept once.
#[derive(Debug, Default)]
pub(crate) struct Words {
    known: BTreeMap<Box<str>, Arc<str>>,
}

impl Words {
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let shared: Arc<str> = Arc::from(text);
        self.known.insert(Box::from(text), shared.clone());
        shared
    }
}

const ENTRY_FIELDS: [&str; 11] = [
    "image",
    "model",
    "model-prefix",
    "precision",
    "framework",
    "runner",
    "multinode",
    "disagg",
    "router",
    "kv-p2p-transfer",
    "scenarios",
];

/// Reads one entry; problems are collected in `strict`.
pub(crate) struct Reader<'r> {
    pub(crate) strict: Strict,
    pub(crate) rules: &'r MatrixRules,
    pub(crate) words: &'r mut Words,
}

impl Reader<'_> {
    fn entry(&mut self, key: &Arc<str>, file: &Arc<str>, span: Span, raw: Node) -> Option<Entry> {
        let map = self.strict.expect_map(&raw, "", &ENTRY_FIELDS)?;
        let image = self.text(map, span, "image");
        let model = self.text(map, span, "model");
        let model_prefix = self.text(map, span, "model-prefix");
        let precision = self.text(map, span, "precision");
        let framework = self.text(map, span, "framework");
        let runner = self.text(map, span, "runner");
        let multi_node = match self.strict.required(map, span, "", "multinode") {
            Some(node) => self.strict.expect_bool(node, "multinode"),
            None => None,
        };
        let disagg = match map.get("disagg") {
            Some(node) => self.strict.expect_bool(node, "disagg"),
            None => Some(false),
        };
        // Without knowing which schema holds, the rest cannot be judged.
        let (multi_node, disagg) = (multi_node?, disagg?);
        if disagg && !multi_node {
            let at = map.get("disagg").map_or(span, |node| node.span);
            self.strict.problem(at, "disagg", "only a multi-node entry can be disaggregated", "remove it");
        }
        let router = match map.get("router") {
            Some(node) if !node.is_null() => self.component(node, "router", true),
            _ => None,
        };
        let kv_p2p_transfer = match map.get("kv-p2p-transfer") {
            Some(node) if !multi_node => {
                self.strict.problem(node.span, "kv-p2p-transfer", "only for multi-node entries", "remove it");
                None
            }
            Some(node) if !node.is_null() => self.non_empty(node, "kv-p2p-transfer"),
            _ => None,
        };
        let (fixed, agentic) = self.scenarios(map, span, multi_node);
        let entry = Entry {
            head: Arc::new(Head {
                key: key.clone(),
                file: file.clone(),
                span,
                image: image?,
                model: model?,
                model_prefix: model_prefix?,
                precision: precision?,
                framework: framework?,
                runner: runner?,
                multi_node,
                disagg,
            }),
            router,
            kv_p2p_transfer,
            fixed,
            agentic,
            raw,
        };
        self.check_entry(&entry);
        Some(entry)
    }

    fn scenarios(&mut self, map: &Map, span: Span, multi_node: bool) -> (Vec<FixedBlock>, Vec<AgenticBlock>) {
        let (mut fixed, mut agentic) = (Vec::new(), Vec::new());
        let Some(node) = self.strict.required(map, span, "", "scenarios") else { return (fixed, agentic) };
        self.strict.enter("scenarios");
        let (fixed_name, agentic_name) = (ScenarioType::Fixed.name(), ScenarioType::Agentic.name());
        if let Some(scenarios) = self.strict.expect_map(node, "", &[fixed_name, agentic_name]) {
            let mut anything = false;
            for (name, list) in scenarios.iter() {
                let scenario = if name.as_str() == Some(fixed_name) {
                    ScenarioType::Fixed
                } else if name.as_str() == Some(agentic_name) {
                    ScenarioType::Agentic
                } else {
                    continue;
                };
                self.strict.enter(scenario.name());
                if let Some(blocks) = self.strict.expect_seq(list, "") {
                    anything |= !blocks.is_empty();
                    for (index, block) in blocks.iter().enumerate() {
                        self.strict.enter(index);
                        match scenario {
                            ScenarioType::Fixed => fixed.extend(self.fixed_block(block, multi_node)),
                            ScenarioType::Agentic => agentic.extend(self.agentic_block(block, multi_node)),
                        }
                        self.strict.leave();
                    }
                }
                self.strict.leave();
            }
            if !anything {
                self.strict.problem(node.span, "", "there is no scenario", format!("add `{fixed_name}` or `{agentic_name}`"));
            }
        }
        self.strict.leave();
        (fixed, agentic)
    }

    fn fixed_block(&mut self, node: &Node, multi_node: bool) -> Option<FixedBlock> {
        let map = self.strict.expect_map(node, "", &["isl", "osl", "search-space"])?;
        let isl = self.required_int(map, node.span, "isl");
        let osl = self.required_int(map, node.span, "osl");
        let rows = self.search_space(map, node.span, ScenarioType::Fixed, multi_node);
        Some(FixedBlock { isl: isl?, osl: osl?, rows: rows? })
    }

    fn agentic_block(&mut self, node: &Node, multi_node: bool) -> Option<AgenticBlock> {
        let map = self.strict.expect_map(node, "", &["search-space", "dram-utilization"])?;
        let memory_utilization = match map.get("dram-utilization") {
            Some(value) if !value.is_null() => {
                let number = self.strict.expect_number(value, "dram-utilization");
                if number.is_some_and(|number| !(number > 0.0 && number <= 1.0)) {
                    self.strict.problem(
                        value.span,
                        "dram-utilization",
                        "must be above 0 and at most 1",
                        "give the share of the host memory to use",
                    );
                }
                number
            }
            _ => None,
        };
        let rows = self.search_space(map, node.span, ScenarioType::Agentic, multi_node)?;
        let memory = &self.rules.kv_offloading.memory;
        if memory_utilization.is_none()
            && let Some(row) = rows.iter().find(|row| row.kv_offloading.as_deref() == Some(memory))
        {
            self.strict.problem(
                row.span,
                "dram-utilization",
                format!("offloading to `{memory}` needs `dram-utilization`"),
                "add it beside `search-space`",
            );
        }
        Some(AgenticBlock { memory_utilization, rows })
    }

    fn search_space(
        &mut self,
        map: &Map,
        at: Span,
        scenario: ScenarioType,
        multi_node: bool,
    ) -> Option<Vec<crate::entry::SearchRow>> {
        let node = self.strict.required(map, at, "", "search-space")?;
        self.strict.enter("search-space");
        let mut rows = None;
        if let Some(items) = self.strict.expect_seq(node, "") {
            let mut read = Vec::with_capacity(items.len());
            for (index, item) in items.iter().enumerate() {
                self.strict.enter(index);
                read.extend(read_row::search_row(self, item, scenario, multi_node));
                self.strict.leave();
            }
            rows = Some(read);
        }
        self.strict.leave();
        rows
    }

    /// Rules that look at the entry as a whole (domain guide 3.2).
    fn check_entry(&mut self, entry: &Entry) {
        let head = &entry.head;
        if !entry.agentic.is_empty() && !head.runner.starts_with(&self.rules.cluster_prefix) {
            self.strict.problem(
                head.span,
                "runner",
                format!("an agentic entry needs a runner that names one cluster, not `{}`", head.runner),
                format!("write `{}<name>`", self.rules.cluster_prefix),
            );
        }
        let own_router = entry.search_rows().find(|(_, row)| matches!(row.router, Own::Value(_)));
        if let (Some(_), Some((_, row))) = (&entry.router, own_router) {
            self.both_levels(row.span, "router");
        }
        let own_transfer = entry.search_rows().find(|(_, row)| matches!(row.kv_p2p_transfer, Own::Value(_)));
        if let (Some(_), Some((_, row))) = (&entry.kv_p2p_transfer, own_transfer) {
            self.both_levels(row.span, "kv-p2p-transfer");
        }
        if let (false, Some((_, row))) = (head.multi_node, own_transfer) {
            self.strict.problem(row.span, "kv-p2p-transfer", "only for multi-node entries", "remove it");
        }
        let without = entry.search_rows().find(|(_, row)| !matches!(row.kv_p2p_transfer, Own::Value(_)));
        if head.disagg && entry.kv_p2p_transfer.is_none() && (without.is_some() || own_transfer.is_none()) {
            let at = without.map_or(head.span, |(_, row)| row.span);
            self.strict.problem(
                at,
                "kv-p2p-transfer",
                "a disaggregated entry needs `kv-p2p-transfer`",
                "add it to the entry, or to every row",
            );
        }
    }

    fn both_levels(&mut self, at: Span, field: &str) {
        self.strict.problem(
            at,
            field,
            format!("`{field}` is written for the entry and for this row"),
            "write it in one of the two places",
        );
    }

    pub(crate) fn text(&mut self, map: &Map, at: Span, field: &str) -> Option<Arc<str>> {
        let node = self.strict.required(map, at, "", field)?;
        let text = self.strict.expect_str(node, field)?;
        Some(self.words.get(text))
    }

    pub(crate) fn non_empty(&mut self, node: &Node, field: &str) -> Option<Arc<str>> {
        let text = self.strict.expect_str(node, field)?;
        if text.is_empty() {
            self.strict.problem(node.span, field, "the text is empty", "write a value");
            return None;
        }
        Some(self.words.get(text))
    }

    pub(crate) fn required_int(&mut self, map: &Map, at: Span, field: &str) -> Option<i64> {
        let node = self.strict.required(map, at, "", field)?;
        self.strict.expect_int(node, field)
    }

    /// A component: `{name, version}`.
    pub(crate) fn component(&mut self, node: &Node, field: &'static str, needs_version: bool) -> Option<Arc<Component>> {
        self.strict.enter(field);
        let component = self.component_fields(node, needs_version);
        self.strict.leave();
        component.map(Arc::new)
    }

    fn component_fields(&mut self, node: &Node, needs_version: bool) -> Option<Component> {
        let map = self.strict.expect_map(node, "", &["name", "version"])?;
        let name = match self.strict.required(map, node.span, "", "name") {
            Some(value) => self.non_empty(value, "name"),
            None => None,
        };
        let version = match map.get("version") {
            None if needs_version => {
                self.strict.required(map, node.span, "", "version")?;
                None
            }
            None => None,
            Some(value) if value.is_null() && !needs_version => Some(None),
            Some(value) => {
                let text = self.non_empty(value, "version")?;
                let forbidden = &self.rules.forbidden_version_prefix;
                if text.starts_with(forbidden.as_str()) {
                    self.strict.problem(
                        value.span,
                        "version",
                        format!("a version may not begin with `{forbidden}`"),
                        "give the component's own release, package version or commit",
                    );
                }
                Some(Some(text))
            }
        };
        Some(Component { name: name?, version })
    }
}
