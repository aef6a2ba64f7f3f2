//! From an entry to the files it runs: launchers, scripts, recipes (domain guide 3.6, 3.8, 3.9). The rules are data.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use crate::entry::{Entry, Shape};
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
    Resolver {
        tree: &Tree::new(files),
        layout,
        rules,
        entry,
        sku: sku(&entry.head.runner, layout, rules),
    }
    .run(runners)
}

/// Finds the files of every entry in two revisions, in the order of the entries. What answers the same questions in the
/// same way in both is found once and shared.
pub(crate) fn resolve_both(
    base: (&Configs, &dyn Files),
    head: (&Configs, &dyn Files),
    layout: &Layout,
    rules: &MatrixRules,
) -> [Vec<Arc<Resolution>>; 2] {
    let (old, new) = (Tree::new(base.1), Tree::new(head.1));
    let resolver = |tree, entry| Resolver {
        tree,
        layout,
        rules,
        entry,
        sku: sku(&entry.head.runner, layout, rules),
    };
    let mut known: HashMap<&str, (&Entry, Vec<Rc<str>>, Arc<Resolution>)> = HashMap::new();
    let mut before = Vec::new();
    for entry in &base.0.masters.entries {
        let found = Arc::new(resolver(&old, entry).run(&base.0.runners));
        known.insert(&entry.head.key, (&**entry, old.asked.take(), found.clone()));
        before.push(found);
    }
    let after = head.0.masters.entries.iter().map(|entry| {
        let resolver = resolver(&new, entry);
        let same = known.get(&*entry.head.key).filter(|(was, asked, _)| {
            let then = Resolver { tree: &old, ..resolver };
            Arc::ptr_eq(&was.raw, &entry.raw)
                && then.behind(&base.0.runners) == resolver.behind(&head.0.runners)
                && asked.iter().all(|path| old.exists(path) == new.exists(path))
        });
        let found = same.map(|(_, _, found)| found.clone());
        found.unwrap_or_else(|| Arc::new(resolver.run(&head.0.runners)))
    });
    let after = after.collect();
    [before, after]
}

/// A revision's files, with what has been asked about them already.
struct Tree<'a> {
    files: &'a dyn Files,
    known: RefCell<HashMap<Rc<str>, bool>>,
    /// The paths that were asked for, of which only whether they exist counts.
    asked: RefCell<Vec<Rc<str>>>,
    links: RefCell<HashMap<String, Option<UsedFile>>>,
    labels: RefCell<HashMap<Arc<str>, Rc<Behind>>>,
}

/// What stands behind a runner label.
#[derive(PartialEq)]
struct Behind {
    /// The bases of its runners.
    bases: BTreeSet<String>,
    /// Their launchers.
    launchers: BTreeSet<UsedFile>,
}

impl<'a> Tree<'a> {
    fn new(files: &'a dyn Files) -> Self {
        Self {
            files,
            known: RefCell::default(),
            asked: RefCell::default(),
            links: RefCell::default(),
            labels: RefCell::default(),
        }
    }

    fn exists(&self, path: &str) -> bool {
        let known = self
            .known
            .borrow()
            .get_key_value(path)
            .map(|(path, found)| (path.clone(), *found));
        let (path, found) = known.unwrap_or_else(|| {
            let (path, found) = (Rc::from(path), self.files.exists(path));
            self.known.borrow_mut().insert(Rc::clone(&path), found);
            (path, found)
        });
        self.asked.borrow_mut().push(path);
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

#[derive(Clone, Copy)]
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
        let behind = self.behind(runners);
        self.tree.asked.take();
        out.launchers.clone_from(&behind.launchers);
        for scenario in [ScenarioType::Fixed, ScenarioType::Agentic] {
            if self.entry.has(scenario) {
                if self.entry.head.multi_node {
                    self.multi_node(scenario, &mut out);
                } else {
                    self.single_node(scenario, &behind.bases, &mut out);
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

    /// What stands behind the entry's label; found once for all entries that have it.
    fn behind(&self, runners: &Runners) -> Rc<Behind> {
        let label = &self.entry.head.runner;
        if let Some(known) = self.tree.labels.borrow().get(label) {
            return known.clone();
        }
        let bases = self.launcher_bases(runners);
        let mut launchers = BTreeSet::new();
        for base in &bases {
            let path = fill(&self.layout.launcher.path, &[("base", base)]);
            launchers.extend(self.tree.link_target(&path));
            launchers.insert(self.used(path));
        }
        let behind = Rc::new(Behind { bases, launchers });
        self.tree.labels.borrow_mut().insert(label.clone(), behind.clone());
        behind
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
        let rule_of = |base: &str| {
            let matches = |rule: &ScriptRule| rule.launchers.iter().any(|pattern| wildcard(pattern, base));
            layout.rules.iter().position(matches)
        };
        for spec in self.specs(scenario) {
            let suffix = layout.spec_suffix.get(&*spec).map_or("", String::as_str);
            // What a rule names depends on the entry only, not on the base.
            let rules: BTreeSet<usize> = bases.iter().filter_map(|base| rule_of(base)).collect();
            for rule in rules.into_iter().filter_map(|at| layout.rules.get(at)) {
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
            // Rows of one recipe name it each.
            let mut seen: BTreeSet<(&str, bool)> = BTreeSet::new();
            for (_, row) in self.entry.search_rows().filter(|(found, _)| *found == scenario) {
                if let Shape::Multi { prefill, decode } = &row.shape {
                    for worker in [prefill, decode] {
                        let settings = [(Some(&recipe.setting), false), (recipe.eval_setting.as_ref(), true)];
                        for (setting, eval_only) in settings {
                            if let Some(value) = setting.and_then(|setting| worker.setting(setting))
                                && seen.insert((value, eval_only))
                            {
                                out.recipes.insert(recipe_of(value, recipe, self.tree, eval_only));
                            }
                        }
                    }
                }
            }
        }
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
    /// Those of some paths, sorted, that are files of the entry, and as what.
    pub(crate) fn uses_of<'p>(&self, paths: &BTreeSet<&'p str>) -> Vec<(&'p str, FileRole)> {
        let files = self
            .scripts
            .iter()
            .chain(&self.launchers)
            .map(|file| file.path.as_str());
        let recipes = self.recipes.iter().filter_map(|recipe| recipe.path.as_deref());
        let support = self.support.iter().map(String::as_str);
        let (folders, single): (Vec<&str>, Vec<&str>) = support.partition(|path| path.ends_with('/'));
        let named = files.chain(recipes).chain(single);
        let mut found: BTreeSet<&'p str> = named.filter_map(|path| paths.get::<str>(path)).copied().collect();
        for folder in folders {
            let from = (Bound::Included(folder), Bound::Unbounded);
            let inside = paths.range::<str, _>(from).take_while(|path| path.starts_with(folder));
            found.extend(inside.copied());
        }
        found
            .into_iter()
            .filter_map(|path| Some((path, self.uses(path)?)))
            .collect()
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changed_files_of_an_entry_are_those_that_it_uses() {
        let file = |path: &str| UsedFile {
            path: path.to_owned(),
            exists: true,
        };
        let recipe = |path: Option<&str>| UsedRecipe {
            name: "r".to_owned(),
            selector: None,
            path: path.map(str::to_owned),
            exists: true,
            eval_only: false,
        };
        let resolution = Resolution {
            sku: None,
            launchers: BTreeSet::from([file("run/a.sh"), file("lib/x")]),
            scripts: BTreeSet::from([file("bench/one.sh"), file("run/a.sh")]),
            recipes: BTreeSet::from([recipe(None), recipe(Some("lib/r.yaml"))]),
            support: BTreeSet::from(["lib/".to_owned(), "table.md".to_owned(), "lib/deep/".to_owned()]),
        };
        let all = [
            "bench/one.sh",
            "lib",
            "lib/",
            "lib/deep/y",
            "lib/r.yaml",
            "lib/x",
            "library",
            "other",
            "run/a.sh",
            "table.md",
        ];
        for mask in 0..1_u32 << all.len() {
            let paths: BTreeSet<&str> = all
                .iter()
                .enumerate()
                .filter(|(bit, _)| mask >> bit & 1 == 1)
                .map(|(_, path)| *path)
                .collect();
            let one_by_one: Vec<_> = paths
                .iter()
                .filter_map(|path| Some((*path, resolution.uses(path)?)))
                .collect();
            assert_eq!(resolution.uses_of(&paths), one_by_one);
        }
    }
}
