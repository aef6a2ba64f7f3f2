//! From an entry to the files it runs: launchers, scripts, recipes (domain guide 3.6, 3.8, 3.9). The rules are data.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use serde::Serialize;

use crate::entry::{Entry, Shape, Worker};
use crate::files::Files;
use crate::read::{Configs, Runners};
use crate::rules::{Layout, MatrixRules, MultiNodeRule, NodeKind, RecipeRule, ScenarioType, ScriptRule, fill};
use crate::select::wildcard;

/// A file that an entry uses, and whether it is in the revision.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UsedFile {
    /// The path.
    pub path: String,
    /// Whether the revision has it.
    pub exists: bool,
}

/// A recipe that an entry's rows name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UsedRecipe {
    /// The name as written, without a selector.
    pub name: String,
    /// What the name selects inside the recipe.
    pub selector: Option<String>,
    /// The path in the repository; `None` for a name that no rule maps to one.
    pub path: Option<String>,
    /// Whether the revision has it. A recipe that is not here may live in another repository: unknown, not absent.
    pub exists: bool,
    /// Whether only evaluation jobs use it.
    pub eval_only: bool,
}

/// The files of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Resolution {
    /// The hardware word.
    pub sku: Option<String>,
    /// Launchers of the runners behind the label.
    pub launchers: BTreeSet<UsedFile>,
    /// Scripts. Where none of the possible names exists, the first one, as missing.
    pub scripts: BTreeSet<UsedFile>,
    /// Recipes.
    pub recipes: BTreeSet<UsedRecipe>,
    /// Files and directories (ending in `/`) that such entries use besides.
    pub support: BTreeSet<String>,
}

/// The hardware word of a runner label: the first of the words that the label begins with, up to a dash or the end.
#[must_use]
pub fn sku<'l>(runner: &str, layout: &'l Layout, rules: &MatrixRules) -> Option<&'l str> {
    let label = runner.strip_prefix(&rules.cluster_prefix).unwrap_or(runner);
    layout.sku_words.iter().map(String::as_str).find(|word| {
        label
            .strip_prefix(word)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// Finds the files of an entry in a revision.
#[must_use]
pub fn resolve(
    entry: &Entry,
    runners: &Runners,
    files: &dyn Files,
    layout: &Layout,
    rules: &MatrixRules,
) -> Resolution {
    let tree = Tree {
        files,
        known: RefCell::default(),
        links: RefCell::default(),
    };
    Resolver {
        tree: &tree,
        layout,
        rules,
        entry,
        sku: sku(&entry.head.runner, layout, rules),
    }
    .run(runners)
}

/// Finds the files of every entry in a revision, in the order of the entries; asks the tree about each path once.
#[must_use]
pub fn resolve_all(configs: &Configs, files: &dyn Files, layout: &Layout, rules: &MatrixRules) -> Vec<Resolution> {
    let tree = Tree {
        files,
        known: RefCell::default(),
        links: RefCell::default(),
    };
    configs
        .masters
        .entries
        .iter()
        .map(|entry| {
            let sku = sku(&entry.head.runner, layout, rules);
            Resolver {
                tree: &tree,
                layout,
                rules,
                entry,
                sku,
            }
            .run(&configs.runners)
        })
        .collect()
}

/// A revision's files, with what has been asked about them already.
struct Tree<'a> {
    files: &'a dyn Files,
    known: RefCell<HashMap<String, bool>>,
    links: RefCell<HashMap<String, Option<UsedFile>>>,
}

impl Tree<'_> {
    fn exists(&self, path: &str) -> bool {
        if let Some(known) = self.known.borrow().get(path) {
            return *known;
        }
        let found = self.files.exists(path);
        self.known.borrow_mut().insert(path.to_owned(), found);
        found
    }

    /// A launcher that is a symbolic link has its target's name as its whole text.
    fn link_target(&self, path: &str) -> Option<UsedFile> {
        if let Some(known) = self.links.borrow().get(path) {
            return known.clone();
        }
        let text = self
            .files
            .read(path)
            .filter(|text| text.len() <= 200 && !text.contains(['\n', ' ', '/']));
        let target = text.and_then(|text| {
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            let target = format!("{folder}/{text}");
            self.exists(&target).then_some(UsedFile {
                path: target,
                exists: true,
            })
        });
        self.links.borrow_mut().insert(path.to_owned(), target.clone());
        target
    }
}

struct Resolver<'a> {
    tree: &'a Tree<'a>,
    layout: &'a Layout,
    rules: &'a MatrixRules,
    entry: &'a Entry,
    sku: Option<&'a str>,
}

impl Resolver<'_> {
    fn run(&self, runners: &Runners) -> Resolution {
        let mut out = Resolution {
            sku: self.sku.map(str::to_owned),
            ..Resolution::default()
        };
        let bases = self.launcher_bases(runners);
        for base in &bases {
            let path = fill(&self.layout.launcher.path, &[("base", base)]);
            if let Some(target) = self.tree.link_target(&path) {
                out.launchers.insert(target);
            }
            out.launchers.insert(self.used(path));
        }
        for scenario in [ScenarioType::Fixed, ScenarioType::Agentic] {
            if self.entry.has(scenario) {
                if self.entry.head.multi_node {
                    self.multi_node(scenario, &mut out);
                } else {
                    self.single_node(scenario, &bases, &mut out);
                }
            }
        }
        for shared in &self.layout.shared {
            let nodes = if self.entry.head.multi_node {
                NodeKind::Multi
            } else {
                NodeKind::Single
            };
            if shared.nodes.is_none_or(|wanted| wanted == nodes)
                && shared.scenario.is_none_or(|scenario| self.entry.has(scenario))
            {
                out.support.extend(shared.paths.iter().cloned());
            }
        }
        out
    }

    fn used(&self, path: String) -> UsedFile {
        UsedFile {
            exists: self.tree.exists(&path),
            path,
        }
    }

    /// The bases of the runners behind the label. A label that the runners file does not know is taken for the
    /// beginning of a base.
    fn launcher_bases(&self, runners: &Runners) -> BTreeSet<String> {
        let head = &self.entry.head;
        if let Some(names) = runners.labels.get(&*head.runner) {
            let ends_at = self.layout.launcher.base_ends_at.as_str();
            return names
                .iter()
                .map(|name| name.split(ends_at).next().unwrap_or(name).to_owned())
                .collect();
        }
        let label = head
            .runner
            .strip_prefix(&self.rules.cluster_prefix)
            .unwrap_or(&head.runner);
        let Some((before, after)) = self.layout.launcher.path.split_once("{base}") else {
            return BTreeSet::new();
        };
        self.tree
            .files
            .list(&format!("{before}{label}"))
            .iter()
            .filter_map(|path| path.strip_prefix(before)?.strip_suffix(after))
            .filter(|base| !base.contains('/'))
            .map(str::to_owned)
            .collect()
    }

    fn specs(&self, scenario: ScenarioType) -> BTreeSet<Arc<str>> {
        self.entry
            .search_rows()
            .filter(|(found, _)| *found == scenario)
            .map(|(_, row)| row.spec_decoding.clone())
            .collect()
    }

    /// Model prefixes reach the launchers inside an experiment name and end there at its first underscore.
    fn prefix(&self) -> &str {
        self.entry.head.model_prefix.split('_').next().unwrap_or_default()
    }

    fn single_node(&self, scenario: ScenarioType, bases: &BTreeSet<String>, out: &mut Resolution) {
        let layout = &self.layout.single_node;
        let directory = match scenario {
            ScenarioType::Fixed => &layout.fixed_directory,
            ScenarioType::Agentic => &layout.agentic_directory,
        };
        for spec in self.specs(scenario) {
            let suffix = layout.spec_suffix.get(&*spec).map_or("", String::as_str);
            for base in bases {
                let matches = |rule: &&ScriptRule| rule.launchers.iter().any(|pattern| wildcard(pattern, base));
                let Some(rule) = layout.rules.iter().find(matches) else {
                    continue;
                };
                let head = &self.entry.head;
                let framework_suffix = rule.framework_suffix.get(&*head.framework).map_or("", String::as_str);
                let mut candidates = rule.names.iter().map(|name| {
                    let name = fill(
                        name,
                        &[
                            ("prefix", self.prefix()),
                            ("precision", &head.precision),
                            ("sku", self.sku.unwrap_or_default()),
                            ("framework", &head.framework),
                            ("framework_suffix", framework_suffix),
                            ("spec", suffix),
                        ],
                    );
                    self.used(format!("{directory}{name}"))
                });
                let first = candidates.next();
                let found = match first {
                    Some(file) if !file.exists => candidates.find(|other| other.exists).or(Some(file)),
                    other => other,
                };
                out.scripts.extend(found);
            }
        }
    }

    fn multi_node(&self, scenario: ScenarioType, out: &mut Resolution) {
        let head = &self.entry.head;
        let matches = |rule: &&MultiNodeRule| {
            rule.frameworks.iter().any(|pattern| wildcard(pattern, &head.framework))
                && (rule.skus.is_empty() || self.sku.is_some_and(|sku| rule.skus.iter().any(|word| word == sku)))
        };
        for rule in self.layout.multi_node.iter().filter(matches) {
            let agentic_directory = if scenario == ScenarioType::Agentic {
                rule.agentic_directory.as_str()
            } else {
                ""
            };
            for script in &rule.scripts {
                let path = fill(
                    script,
                    &[
                        ("prefix", self.prefix()),
                        ("precision", &head.precision),
                        ("sku", self.sku.unwrap_or_default()),
                        ("framework", &head.framework),
                        ("agentic_directory", agentic_directory),
                    ],
                );
                out.scripts.insert(self.used(path));
            }
            out.support.extend(rule.support.iter().cloned());
            let Some(recipe) = &rule.recipe else { continue };
            for (_, row) in self.entry.search_rows().filter(|(found, _)| *found == scenario) {
                if let Shape::Multi { prefill, decode } = &row.shape {
                    for worker in [prefill, decode] {
                        out.recipes.extend(self.recipe(recipe, worker, &recipe.setting, false));
                        if let Some(setting) = &recipe.eval_setting {
                            out.recipes.extend(self.recipe(recipe, worker, setting, true));
                        }
                    }
                }
            }
        }
    }

    fn recipe(&self, rule: &RecipeRule, worker: &Worker, setting: &str, eval_only: bool) -> Option<UsedRecipe> {
        let value = worker.setting(setting)?;
        Some(recipe_of(value, rule, self.tree, eval_only))
    }
}

/// Reads the value of a recipe setting.
fn recipe_of(value: &str, rule: &RecipeRule, tree: &Tree<'_>, eval_only: bool) -> UsedRecipe {
    let (name, selector) = match value.split_once(rule.selector.as_str()) {
        Some((name, selector)) if !rule.selector.is_empty() => (name, Some(selector.to_owned())),
        _ => (value, None),
    };
    // A name that climbs out of its directory is nothing that is looked up here.
    let climbs = name.split('/').any(|part| part == "..");
    let path = rule.prefixes.iter().filter(|_| !climbs).find_map(|prefix| {
        name.strip_prefix(prefix.from.as_str())
            .map(|rest| format!("{}{rest}", prefix.to))
    });
    let exists = path.as_deref().is_some_and(|path| tree.exists(path));
    UsedRecipe {
        name: name.to_owned(),
        selector,
        path,
        exists,
        eval_only,
    }
}

impl Resolution {
    /// Whether a path is one of the files of the entry, and as what.
    #[must_use]
    pub fn uses(&self, path: &str) -> Option<FileRole> {
        if self.scripts.iter().any(|file| file.path == path) {
            Some(FileRole::Script)
        } else if self.recipes.iter().any(|recipe| recipe.path.as_deref() == Some(path)) {
            Some(FileRole::Recipe)
        } else if self.launchers.iter().any(|file| file.path == path) {
            Some(FileRole::Launcher)
        } else if self.support.iter().any(|support| {
            if support.ends_with('/') {
                path.starts_with(support.as_str())
            } else {
                path == support
            }
        }) {
            Some(FileRole::Support)
        } else {
            None
        }
    }
}

/// As what an entry uses a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileRole {
    /// The script that starts the server.
    Script,
    /// The recipe that its rows name.
    Recipe,
    /// The launcher of its cluster.
    Launcher,
    /// A library or a table that entries of its kind share.
    Support,
}

impl FileRole {
    /// The word for it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FileRole::Script => "script",
            FileRole::Recipe => "recipe",
            FileRole::Launcher => "launcher",
            FileRole::Support => "support file",
        }
    }
}
