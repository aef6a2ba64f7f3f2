//! Upstream readers: which launch commands a recipe page, a cookbook page, a recipe file or a pull request's diff
//! documents, with the model and hardware context that it states (domain guide 16).
//!
//! Pages are read as text; nothing of them is trusted, everything is bounded, and a broken part never hides the rest.

mod catalog;
mod diff;
mod js;
mod markdown;
mod mention;
mod synthesis;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine;
use crate::flags::Via;
use crate::launch::{Launch, Start};
use crate::shwords;
use crate::tree::Node;
use crate::value::Source;
use crate::yaml;

pub use catalog::{Catalog, Hardware};
pub use diff::{DiffFile, read_diff};
pub(crate) use js::{MARK, MARK_END};
pub use mention::Mention;
pub(crate) use synthesis::leaves_sizes;

/// Longest text that is read.
pub const MAX_BYTES: usize = 1 << 20;
/// Most launches kept from one text.
pub const MAX_DOCUMENTED: usize = 6_000;

/// What a reader is told beforehand. All of it belongs to the policy.
#[derive(Clone, Debug, Default)]
pub struct PageRules {
    /// Hardware products by identifier, each with the spellings that pages use. Matching ignores case and takes whole words.
    pub hardware: BTreeMap<String, Vec<String>>,
    /// Hardware and strategies for recipe files that name them only.
    pub catalog: Catalog,
}

impl PageRules {
    /// The hardware named in a text, in order of identifiers.
    pub fn hardware_in(&self, text: &str) -> Vec<String> {
        let lower = text.to_lowercase();
        self.hardware
            .iter()
            .filter(|(id, spellings)| {
                std::iter::once(*id)
                    .chain(spellings.iter())
                    .any(|s| has_word(&lower, &s.to_lowercase()))
            })
            .map(|(id, _)| id.clone())
            .collect()
    }
}

fn has_word(text: &str, word: &str) -> bool {
    if word.is_empty() {
        return false;
    }
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(char::is_alphanumeric) && !after.is_some_and(char::is_alphanumeric)
    })
}

/// How a launch is documented.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A command written on the page.
    Command,
    /// A command that the page's generator shows for some choice of options.
    Generated,
    /// A cell of the page's list of deployments.
    Cell,
    /// Composed from a recipe file's variant, strategy and hardware.
    Composed,
    /// A file of options.
    Options,
}

/// A documented launch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Documented {
    /// The launch.
    pub launch: Launch,
    /// Hardware that it is said to be for; empty if none is stated.
    pub hardware: Vec<String>,
    /// Headings above it, outermost first, then tab titles.
    pub headings: Vec<String>,
    /// Options under which it is shown.
    pub labels: BTreeMap<String, String>,
    /// How it is documented.
    pub kind: Kind,
    /// Whether the page calls it verified, where it says.
    pub verified: Option<bool>,
}

/// What one text documents.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Page {
    /// Launches.
    pub documented: Vec<Documented>,
    /// Every flag with a value named anywhere, prose included, by name in dash form.
    pub mentions: BTreeMap<String, Vec<Mention>>,
    /// Every model identifier (`owner/name`) with the first place where it stands.
    pub models: BTreeMap<String, Source>,
    /// Snippet files that the page takes its commands from.
    pub imports: Vec<String>,
    /// What could not be read.
    pub notes: Vec<String>,
}

impl Page {
    /// Adds what another text documents.
    pub fn absorb(&mut self, other: Page) {
        self.documented.extend(other.documented);
        self.documented.truncate(MAX_DOCUMENTED);
        for (name, mentions) in other.mentions {
            self.mentions.entry(name).or_default().extend(mentions);
        }
        for (model, source) in other.models {
            self.models.entry(model).or_insert(source);
        }
        self.imports.extend(other.imports);
        self.notes.extend(other.notes);
    }
}

/// Reads a text by the ending of its path.
pub fn read(path: &str, text: &str, rules: &PageRules) -> Page {
    let mut page = Page::default();
    let mut end = text.len().min(MAX_BYTES);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if end < text.len() {
        page.notes
            .push(format!("{path}: only the first {MAX_BYTES} bytes were read"));
    }
    let text = &text[..end];
    let ending = path.rsplit('.').next().unwrap_or("").to_lowercase();
    match ending.as_str() {
        "md" | "mdx" | "markdown" => markdown::read(path, text, 1, rules, &mut page),
        "js" | "jsx" | "ts" | "tsx" | "mjs" => read_snippet(path, text, rules, &mut page),
        "yaml" | "yml" => read_yaml(path, text, rules, &mut page),
        "sh" | "bash" => read_block(path, text, 1, &Context::default(), rules, &mut page),
        _ => markdown::read(path, text, 1, rules, &mut page),
    }
    mention::scan(path, text, 1, &mut page);
    page
}

/// What stands around a block of commands.
#[derive(Clone, Debug, Default)]
struct Context {
    headings: Vec<String>,
    /// Nearest first: prose, tab titles, headings.
    around: Vec<String>,
}

/// Reads the commands of a block.
fn read_block(path: &str, text: &str, first_line: u32, context: &Context, rules: &PageRules, page: &mut Page) {
    for command in shwords::commands(text, path, first_line) {
        if page.documented.len() >= MAX_DOCUMENTED {
            return;
        }
        let start = Start {
            argv: &command.argv,
            environment: &command.environment,
            options: &|_| None,
        };
        let Some(launch) = Launch::from_command(&start) else {
            continue;
        };
        let hardware = std::iter::once(&command.comment)
            .chain(&context.around)
            .map(|t| rules.hardware_in(t))
            .find(|h| !h.is_empty())
            .unwrap_or_default();
        page.documented.push(Documented {
            launch,
            hardware,
            headings: context.headings.clone(),
            labels: BTreeMap::new(),
            kind: Kind::Command,
            verified: None,
        });
    }
}

/// Runs a snippet's generator and reads every command that it shows.
fn read_snippet(path: &str, text: &str, rules: &PageRules, page: &mut Page) {
    let snippet = js::read_snippet(text);
    page.notes.extend(snippet.notes.iter().map(|n| format!("{path}: {n}")));
    for generated in &snippet.commands {
        let said: Vec<&str> = generated
            .labels
            .iter()
            .filter(|(k, _)| js::is_hardware_key(k))
            .map(|(_, v)| v.as_str())
            .collect();
        let mut hardware: Vec<String> = said.iter().flat_map(|v| rules.hardware_in(v)).collect();
        if hardware.is_empty() {
            hardware = said.iter().map(|v| v.to_lowercase()).collect();
        }
        for command in shwords::commands_at(&generated.command, path, generated.line) {
            if page.documented.len() >= MAX_DOCUMENTED {
                return;
            }
            let start = Start {
                argv: &command.argv,
                environment: &command.environment,
                options: &|_| None,
            };
            let Some(launch) = Launch::from_command(&start) else {
                continue;
            };
            page.documented.push(Documented {
                launch,
                hardware: hardware.clone(),
                headings: Vec::new(),
                labels: generated.labels.clone(),
                kind: if generated.cell { Kind::Cell } else { Kind::Generated },
                verified: generated.verified,
            });
        }
    }
}

fn read_yaml(path: &str, text: &str, rules: &PageRules, page: &mut Page) {
    let tree = match yaml::parse(text) {
        Ok(tree) => tree,
        Err(error) => {
            page.notes.push(format!("{path}: not readable as YAML: {error}"));
            return;
        }
    };
    if tree.at(&["model", "model_id"]).is_some() && tree.get("variants").is_some() {
        synthesis::read(path, &tree, &rules.catalog, page);
        if let Some(guide) = tree.get("guide")
            && let Some(guide_text) = guide.as_str()
        {
            markdown::read(path, guide_text, guide.line + 1, rules, page);
        }
        return;
    }
    // A file of options for `--config`: keys that the engine knows, at the top.
    let known = tree
        .entries()
        .iter()
        .filter(|(k, v)| k.contains('-') && !matches!(v.node, Node::Map(_)))
        .count();
    if known >= 2 && known * 2 >= tree.entries().len() {
        let mut launch = Launch::new(
            engine::Role::Aggregated,
            engine::Engine::Vllm,
            "options file",
            Source::new(path, 1),
        );
        engine::parse_options_tree(engine::Engine::Vllm, &tree, path, Via::OptionsFile, &mut launch.flags);
        launch.settle();
        page.documented.push(Documented {
            launch,
            hardware: rules.hardware_in(path),
            headings: Vec::new(),
            labels: BTreeMap::new(),
            kind: Kind::Options,
            verified: None,
        });
    }
}
