//! Hardware profiles and strategies that recipe files refer to by name.

use std::collections::BTreeMap;

use crate::tree::Tree;
use crate::yaml;

/// A hardware profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hardware {
    /// Vendor in lower case.
    pub brand: String,
    /// Generation such as `hopper`.
    pub generation: String,
    /// GPUs of one node.
    pub gpus: Option<u32>,
    /// Memory of one node, in GB.
    pub memory_gb: Option<f64>,
    /// Only offered by recipes that name it.
    pub restricted: bool,
}

/// What recipe files refer to. A default catalogue knows nothing; sizes that depend on it stay symbolic.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Catalog {
    /// Profiles by identifier.
    pub hardware: BTreeMap<String, Hardware>,
    /// Strategy files by name.
    pub strategies: BTreeMap<String, Tree>,
}

impl Catalog {
    /// Reads a taxonomy file and strategy files, each given as name and text. What cannot be read is left out and named
    /// in the second value.
    pub fn parse(taxonomy: Option<&str>, strategies: &[(String, String)]) -> (Catalog, Vec<String>) {
        let mut out = Catalog::default();
        let mut notes = Vec::new();
        match taxonomy.map(yaml::parse) {
            Some(Ok(tree)) => {
                for (id, profile) in tree.get("hardware_profiles").map_or(&[][..], Tree::entries) {
                    let text = |key: &str| profile.get(key).and_then(Tree::as_str).unwrap_or("").to_lowercase();
                    let generation = match profile.get("generation").map(Tree::items) {
                        Some([first, ..]) => first.as_str().unwrap_or("").to_owned(),
                        _ => text("generation"),
                    };
                    out.hardware.insert(
                        id.clone(),
                        Hardware {
                            brand: text("brand"),
                            generation,
                            gpus: profile.get("gpu_count").and_then(Tree::as_u32),
                            memory_gb: profile
                                .get("vram_gb")
                                .and_then(Tree::as_str)
                                .and_then(|s| s.parse().ok()),
                            restricted: profile.get("restricted").and_then(Tree::as_bool).unwrap_or(false),
                        },
                    );
                }
            }
            Some(Err(error)) => notes.push(format!("taxonomy: {error}")),
            None => {}
        }
        for (name, text) in strategies {
            match yaml::parse(text) {
                Ok(tree) => {
                    let name = tree.get("name").and_then(Tree::as_str).unwrap_or(name).to_owned();
                    out.strategies.insert(name, tree);
                }
                Err(error) => notes.push(format!("strategy {name}: {error}")),
            }
        }
        (out, notes)
    }
}
