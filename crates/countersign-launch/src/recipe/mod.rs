//! Recipes: YAML files that describe the servers of a multi-node benchmark (domain guide 3.9, 9.4, 10.3).

mod inject;
mod overrides;
mod tables;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::client::{self, ClientCall};
use crate::engine::{self, Engine, Role};
use crate::flags::{FlagValue, Via};
use crate::launch::Launch;
use crate::tree::{self, Node, Tree};
use crate::value::{Source, Text};
use crate::yaml;

pub use inject::{Injected, Injection, InjectorKind};
pub use overrides::{Selector, variants};
pub use tables::{TableError, TableInput, llmd_recipe, model_table};

/// A recipe, read for one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Recipe {
    /// The recipe's own name.
    pub name: Option<String>,
    /// Servers by role: aggregated, or prefill and decode; then the frontend.
    pub launches: Vec<Launch>,
    /// Scalars outside the engine maps by dotted name: resources, benchmark, identity, setup script and so on.
    pub facts: BTreeMap<String, FlagValue>,
    /// The benchmark section as a client call.
    pub client: Option<ClientCall>,
    /// What injection of synthetic acceptance did.
    pub injected: Injected,
    /// What could not be read.
    pub notes: Vec<String>,
}

/// What else decides what a recipe starts.
#[derive(Clone, Debug, Default)]
pub struct RecipeOptions<'a> {
    /// Which override to apply: the text after the first `:` of a reference.
    pub selector: Option<&'a str>,
    /// Injection of synthetic acceptance, if the entry asks for it and the launcher does it.
    pub injection: Option<Injection>,
}

/// Why a recipe could not be read. The author can fix each of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecipeError {
    /// Not YAML.
    #[error("{file}: not readable as YAML: {detail}. Fix the syntax at the named line.")]
    Yaml {
        /// The file.
        file: String,
        /// The reader's message with its line.
        detail: String,
    },
    /// The selector names no override of the file.
    #[error(
        "{file}: there is no override `{selector}`; the file has {known:?}. Correct the text after `:` in the reference."
    )]
    Selector {
        /// The file.
        file: String,
        /// The selector.
        selector: String,
        /// The overrides that exist.
        known: Vec<String>,
    },
    /// No engine section.
    #[error("{file}: no engine configuration under `backend`. A recipe needs one of the `*_config` maps.")]
    NoBackend {
        /// The file.
        file: String,
    },
}

/// Splits a recipe reference into the path and the selector after the first `:` (domain guide 3.9).
pub fn split_reference(reference: &str) -> (&str, Option<&str>) {
    match reference.split_once(':') {
        Some((path, selector)) if !selector.is_empty() => (path, Some(selector)),
        Some((path, _)) => (path, None),
        None => (reference, None),
    }
}

const ENGINES: &[(&str, &str, Engine)] = &[
    ("vllm", "vllm_config", Engine::Vllm),
    ("sglang", "sglang_config", Engine::Sglang),
    ("trtllm", "trtllm_config", Engine::TensorrtLlm),
    ("atom", "atom_config", Engine::Atom),
];

const ROLES: &[(&str, &str, Role)] = &[
    ("aggregated", "agg", Role::Aggregated),
    ("prefill", "prefill", Role::Prefill),
    ("decode", "decode", Role::Decode),
];

/// Reads an srt-slurm recipe.
///
/// # Errors
/// [`RecipeError`]; each says what to fix.
pub fn read(file: &str, text: &str, options: &RecipeOptions<'_>) -> Result<Recipe, RecipeError> {
    let whole = yaml::parse(text).map_err(|e| RecipeError::Yaml {
        file: file.into(),
        detail: e.to_string(),
    })?;
    let tree = overrides::apply(&whole, options.selector).map_err(|known| RecipeError::Selector {
        file: file.into(),
        selector: options.selector.unwrap_or("").into(),
        known,
    })?;
    let mut recipe = read_tree(file, &tree)?;
    recipe.injected = inject::apply(&mut recipe.launches, text, options.injection.as_ref(), file);
    for launch in &mut recipe.launches {
        launch.settle();
    }
    Ok(recipe)
}

/// Every value of a recipe as the selector leaves it: its path and the value, with its place.
///
/// # Errors
/// [`RecipeError`]; each says what to fix.
pub fn statements(file: &str, text: &str, selector: Option<&str>) -> Result<Vec<(String, Source)>, RecipeError> {
    let whole = yaml::parse(text).map_err(|e| RecipeError::Yaml {
        file: file.into(),
        detail: e.to_string(),
    })?;
    let tree = overrides::apply(&whole, selector).map_err(|known| RecipeError::Selector {
        file: file.into(),
        selector: selector.unwrap_or("").into(),
        known,
    })?;
    let mut out = Vec::new();
    flatten(file, "", &tree, &mut out);
    Ok(out)
}

fn flatten(file: &str, path: &str, tree: &Tree, out: &mut Vec<(String, Source)>) {
    let at = |name: &str| {
        if path.is_empty() {
            name.to_owned()
        } else {
            format!("{path}.{name}")
        }
    };
    match &tree.node {
        Node::Map(entries) if !entries.is_empty() => {
            for (name, value) in entries {
                flatten(file, &at(name), value, out);
            }
        }
        Node::Seq(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                flatten(file, &at(&index.to_string()), item, out);
            }
        }
        _ => out.push((format!("{path}: {}", tree.to_text()), Source::new(file, tree.line))),
    }
}

fn read_tree(file: &str, tree: &Tree) -> Result<Recipe, RecipeError> {
    let backend = tree.get("backend").cloned().unwrap_or_else(|| Tree::empty_map(0));
    let said = backend.get("type").and_then(Tree::as_str);
    let flavour = ENGINES
        .iter()
        .find(|(name, ..)| said == Some(*name))
        .or_else(|| ENGINES.iter().find(|(_, map, _)| backend.get(map).is_some()))
        .ok_or_else(|| RecipeError::NoBackend { file: file.into() })?;
    let (name, config, engine) = *flavour;
    let facts = scalars(file, tree, &backend);
    let mut recipe = Recipe {
        name: tree.get("name").and_then(Tree::as_str).map(str::to_owned),
        launches: Vec::new(),
        client: benchmark(file, tree),
        facts,
        injected: Injected::NotAsked,
        notes: Vec::new(),
    };
    let config_map = backend
        .get(config)
        .cloned()
        .unwrap_or_else(|| Tree::empty_map(backend.line));
    for (role_key, short, role) in ROLES {
        let role_tree = config_map.get(role_key).or_else(|| config_map.get(short));
        let workers = tree
            .at(&["resources", &format!("{short}_workers")])
            .and_then(Tree::as_u32);
        let has_env = backend.get(&format!("{role_key}_environment")).is_some();
        if workers == Some(0) || (role_tree.is_none() && workers.is_none() && !has_env) {
            continue;
        }
        let line = role_tree.map_or(config_map.line, |t| t.line);
        let mut launch = Launch::new(*role, engine, format!("recipe {name}"), Source::new(file, line));
        if let Some(options) = role_tree {
            read_options(engine, options, file, &mut launch);
        }
        environment(file, tree.get("environment"), &mut launch);
        for key in [role_key, short] {
            environment(file, backend.get(&format!("{key}_environment")), &mut launch);
        }
        describe(file, tree, short, &mut launch);
        launch.client.clone_from(&recipe.client);
        launch.settle();
        // srt-slurm passes the role itself; a config may repeat it.
        launch.role = *role;
        recipe.launches.push(launch);
    }
    if recipe.launches.is_empty() {
        return Err(RecipeError::NoBackend { file: file.into() });
    }
    recipe.launches.extend(frontend(file, tree));
    Ok(recipe)
}

/// Null members of a command line's map are left out by the runner; an options file keeps them.
fn read_options(engine: Engine, options: &Tree, file: &str, launch: &mut Launch) {
    let mut tree = options.clone();
    if engine != Engine::TensorrtLlm
        && let Node::Map(entries) = &mut tree.node
    {
        entries.retain(|(_, v)| !matches!(v.node, Node::Null));
    }
    engine::parse_options_tree(engine, &tree, file, Via::Recipe, &mut launch.flags);
}

fn environment(file: &str, map: Option<&Tree>, launch: &mut Launch) {
    for (name, value) in map.map_or(&[][..], Tree::entries) {
        let text = value.text().cloned().unwrap_or_else(|| value.to_text());
        launch.set_env(name, text, Source::new(file, value.line));
    }
}

/// Model, image and copies, which a recipe states outside the engine's map.
fn describe(file: &str, tree: &Tree, short: &str, launch: &mut Launch) {
    let mut note = |name: &str, path: &[&str]| {
        if let Some(t) = tree.at(path)
            && let Some(text) = t.text()
        {
            let value = FlagValue {
                value: text.clone(),
                spelled: path.join("."),
                source: Source::new(file, t.line),
                via: Via::Recipe,
            };
            launch.extra.insert(name.to_owned(), value);
        }
    };
    note("model.path", &["model", "path"]);
    note("model.precision", &["model", "precision"]);
    note("model.container", &["model", "container"]);
    note("identity.model.repo", &["identity", "model", "repo"]);
    note("identity.container.image", &["identity", "container", "image"]);
    note("setup_script", &["setup_script"]);
    note("gpu_type", &["resources", "gpu_type"]);
    note("workers", &["resources", &format!("{short}_workers")]);
    note("nodes", &["resources", &format!("{short}_nodes")]);
    note("gpus", &["resources", &format!("gpus_per_{short}")]);
    launch.image = ["identity.container.image", "model.container"]
        .iter()
        .find_map(|k| launch.extra.get(*k))
        .map(|v| v.value.to_string().replace('#', "/"));
    if !launch.flags.mentions("model") && !launch.flags.mentions("model-path") {
        let stated = ["identity.model.repo", "model.path"]
            .iter()
            .find_map(|k| launch.extra.get(*k))
            .cloned();
        if let Some(value) = stated {
            launch.flags.push("model", value);
        }
    }
}

/// The frontend in front of the workers, where the recipe configures one.
fn frontend(file: &str, tree: &Tree) -> Option<Launch> {
    let section = tree.get("frontend")?;
    let kind = section.get("type").and_then(Tree::as_str).unwrap_or("dynamo");
    let mut launch = Launch::new(
        Role::Frontend,
        Engine::Router,
        format!("frontend {kind}"),
        Source::new(file, section.line),
    );
    if let Some(args) = section.get("args") {
        engine::parse_options_tree(Engine::Router, args, file, Via::Recipe, &mut launch.flags);
    }
    environment(file, section.get("env"), &mut launch);
    for (key, value) in section.entries() {
        if let Some(text) = value.text() {
            launch.extra.insert(
                key.clone(),
                FlagValue {
                    value: text.clone(),
                    spelled: key.clone(),
                    source: Source::new(file, value.line),
                    via: Via::Recipe,
                },
            );
        }
    }
    launch.settle();
    Some(launch)
}

fn benchmark(file: &str, tree: &Tree) -> Option<ClientCall> {
    let section = tree.get("benchmark")?;
    let kind = section.get("type").and_then(Tree::as_str).unwrap_or("unknown");
    let mut call = client::from_recipe(
        kind,
        section.get("use_chat_template").and_then(Tree::text),
        Source::new(file, section.get("use_chat_template").map_or(section.line, |t| t.line)),
    );
    for (key, value) in section.entries() {
        tree::leaves(key, value, &mut |name, text, line| {
            call.flags.push(
                &name,
                FlagValue {
                    value: text,
                    spelled: key.clone(),
                    source: Source::new(file, line),
                    via: Via::Recipe,
                },
            );
        });
    }
    Some(call)
}

/// Every scalar that is not part of an engine map or environment, by dotted name.
fn scalars(file: &str, tree: &Tree, backend: &Tree) -> BTreeMap<String, FlagValue> {
    let mut out = BTreeMap::new();
    let mut put = |name: String, text: Text, line: u32| {
        out.insert(
            name.clone(),
            FlagValue {
                value: text,
                spelled: name,
                source: Source::new(file, line),
                via: Via::Recipe,
            },
        );
    };
    for (key, value) in tree.entries() {
        if key != "backend" {
            tree::leaves(key, value, &mut put);
        }
    }
    for (key, value) in backend.entries() {
        if !key.ends_with("_config") && !key.ends_with("_environment") {
            tree::leaves(&format!("backend.{key}"), value, &mut put);
        }
    }
    out
}
