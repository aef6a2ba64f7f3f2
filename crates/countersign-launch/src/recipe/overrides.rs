//! Variants of one recipe file: `base` with `override_*` and `zip_override_*`, chosen by a selector such as
//! `zip_override_x[3]` (domain guide 3.9).

use crate::tree::{Node, Tree};

/// A selector, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// Name of the override.
    pub name: String,
    /// Which of the zipped variants.
    pub index: Option<usize>,
}

impl Selector {
    /// Reads `name` or `name[3]`.
    pub fn parse(text: &str) -> Selector {
        let index = text
            .strip_suffix(']')
            .and_then(|t| t.rsplit_once('['))
            .and_then(|(name, n)| n.trim().parse().ok().map(|n| (name, n)));
        match index {
            Some((name, n)) => Selector {
                name: name.to_owned(),
                index: Some(n),
            },
            None => Selector {
                name: text.to_owned(),
                index: None,
            },
        }
    }
}

/// The selectors that a recipe file offers; empty for a plain recipe.
pub fn variants(text: &str) -> Vec<String> {
    crate::yaml::parse(text).map(|tree| names(&tree)).unwrap_or_default()
}

fn names(tree: &Tree) -> Vec<String> {
    let mut out = Vec::new();
    for (key, value) in tree.entries() {
        if key.starts_with("override_") {
            out.push(key.clone());
        } else if key.starts_with("zip_override_") {
            out.extend((0..width(value, 0)).map(|i| format!("{key}[{i}]")));
        }
    }
    out
}

/// How many variants a zipped override holds: the length of its longest list.
fn width(tree: &Tree, depth: usize) -> usize {
    if depth > crate::tree::MAX_DEPTH {
        return 1;
    }
    match &tree.node {
        Node::Seq(items) => items.len().max(1),
        Node::Map(entries) => entries.iter().map(|(_, v)| width(v, depth + 1)).max().unwrap_or(1),
        _ => 1,
    }
}

/// One variant out of a zipped override: of every list the item at `index`.
fn pick(tree: &Tree, index: usize, depth: usize) -> Tree {
    let node = match &tree.node {
        Node::Seq(items) => {
            return items
                .get(index)
                .or(items.last())
                .cloned()
                .unwrap_or_else(|| tree.clone());
        }
        Node::Map(entries) if depth < crate::tree::MAX_DEPTH => Node::Map(
            entries
                .iter()
                .map(|(k, v)| (k.clone(), pick(v, index, depth + 1)))
                .collect(),
        ),
        other => other.clone(),
    };
    Tree { node, line: tree.line }
}

/// The recipe that a selector means.
///
/// # Errors
/// The selectors that exist, if this one does not.
pub(super) fn apply(whole: &Tree, selector: Option<&str>) -> Result<Tree, Vec<String>> {
    let base = whole.get("base").filter(|b| matches!(b.node, Node::Map(_)));
    let mut out = base.unwrap_or(whole).clone();
    let Some(text) = selector else { return Ok(out) };
    let selector = Selector::parse(text);
    if base.is_some() && selector.name == "base" {
        return Ok(out);
    }
    let zipped = selector.name.starts_with("zip_override_");
    let over = whole
        .get(&selector.name)
        .filter(|_| zipped || selector.name.starts_with("override_"));
    let Some(over) = over else { return Err(names(whole)) };
    match (zipped, selector.index) {
        (true, index) => {
            let index = index.unwrap_or(0);
            if index >= width(over, 0) {
                return Err(names(whole));
            }
            out.merge(&pick(over, index, 0));
        }
        (false, None) => out.merge(over),
        (false, Some(_)) => return Err(names(whole)),
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "base:\n  a: {x: 1, y: [9]}\n  n: 0\noverride_one:\n  a: {x: 2}\nzip_override_many:\n  n: [5, 6]\n  a: {y: [[1, 2], [3]], z: 7}\n";

    fn applied(selector: &str) -> Result<String, Vec<String>> {
        apply(&crate::yaml::parse(FILE).unwrap(), Some(selector)).map(|t| t.to_text().to_string())
    }

    #[test]
    fn selectors() {
        assert_eq!(applied("override_one").unwrap(), "{a:{x:2,y:[9]},n:0}");
        assert_eq!(applied("zip_override_many[1]").unwrap(), "{a:{x:1,y:[3],z:7},n:6}");
        assert_eq!(applied("zip_override_many[0]").unwrap(), "{a:{x:1,y:[1,2],z:7},n:5}");
        assert_eq!(applied("base").unwrap(), "{a:{x:1,y:[9]},n:0}");
        let known = vec![
            "override_one".to_owned(),
            "zip_override_many[0]".into(),
            "zip_override_many[1]".into(),
        ];
        for bad in ["zip_override_many[2]", "override_two", "override_one[0]", "n", ""] {
            assert_eq!(applied(bad).unwrap_err(), known, "{bad}");
        }
        assert_eq!(variants(FILE), known);
    }
}
