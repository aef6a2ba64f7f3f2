//! Entry points for fuzzers: they must return for any input, within the bounds of the readers.

use crate::recipe::{self, RecipeOptions};
use crate::upstream::{self, PageRules};

/// Reads any bytes as a recipe, in every way a recipe is read.
pub fn fuzz_recipe(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let mut selectors: Vec<Option<String>> = recipe::variants(&text).into_iter().take(4).map(Some).collect();
    selectors.push(None);
    for selector in selectors {
        let _ = recipe::read(
            "fuzz.yaml",
            &text,
            &RecipeOptions {
                selector: selector.as_deref(),
                injection: None,
            },
        );
    }
    let _ = recipe::llmd_recipe("fuzz.yaml", &text, &[]);
    for engine in [crate::Engine::Sglang, crate::Engine::Atom] {
        let _ = recipe::model_table(
            engine,
            "fuzz.yaml",
            &text,
            "m",
            crate::Role::Decode,
            &recipe::TableInput::default(),
        );
    }
}

/// Reads any bytes as a page of every kind; the first byte chooses.
pub fn fuzz_page(data: &[u8]) {
    let (kind, rest) = data.split_first().unwrap_or((&0, &[]));
    let text = String::from_utf8_lossy(rest);
    let rules = PageRules::default();
    match kind % 5 {
        0 => drop(upstream::read("fuzz.mdx", &text, &rules)),
        1 => drop(upstream::read("fuzz.jsx", &text, &rules)),
        2 => drop(upstream::read("fuzz.yaml", &text, &rules)),
        3 => drop(upstream::read("fuzz.sh", &text, &rules)),
        _ => drop(upstream::read_diff(&text, None, &rules)),
    }
}
