//! One changelog item and its schema (domain guide 7.1).
//!
//! The repository validates items with a lenient model: `"yes"` and `1` are booleans, `"3"` is an integer, and a field
//! may be written with its underscored name. The same is accepted here, so that the answer is the same.

use countersign_yaml::{Map, Node, OpaqueKind, Value};
use serde::Serialize;

use super::{ChangelogRules, shown};

/// One item, as the repository understands it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Item {
    /// Line of the item's first key, from 1.
    pub line: usize,
    /// Line of the link, from 1.
    pub link_line: usize,
    /// Keys and patterns, as written.
    pub config_keys: Vec<String>,
    /// The lines of the description.
    pub description: Vec<String>,
    /// The link, as written.
    pub pr_link: String,
    /// No throughput points.
    pub evals_only: bool,
    /// Every eval row.
    pub all_evals: bool,
    /// Only added points.
    pub append_only: bool,
    /// Drops multi-node evals below this prefill EP. A value beyond 64 bits counts as the largest one.
    pub eval_min_prefill_ep: Option<u64>,
    /// Restriction to scenarios.
    pub scenario_type: Option<Vec<String>>,
}

/// What is wrong with an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ItemProblem {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

/// The fields: as they are written, and the other spelling that is accepted.
const FIELDS: [(&str, &str); 8] = [
    ("config-keys", "config_keys"),
    ("description", "description"),
    ("pr-link", "pr_link"),
    ("evals-only", "evals_only"),
    ("all-evals", "all_evals"),
    ("append-only", "append_only"),
    ("eval-min-prefill-ep", "eval_min_prefill_ep"),
    ("scenario-type", "scenario_type"),
];

struct Reader<'n> {
    map: &'n Map,
    line: usize,
    problems: Vec<ItemProblem>,
}

fn line(node: &Node) -> usize {
    node.span.line as usize
}

impl<'n> Reader<'n> {
    fn problem(&mut self, line: usize, what: impl Into<String>, fix: impl Into<String>) {
        self.problems.push(ItemProblem {
            line,
            what: what.into(),
            fix: fix.into(),
        });
    }

    fn field(&self, index: usize) -> Option<&'n Node> {
        let (name, other) = FIELDS[index];
        self.map.get(name).or_else(|| self.map.get(other))
    }

    fn required(&mut self, index: usize) -> Option<&'n Node> {
        let found = self.field(index);
        if found.is_none() {
            let name = FIELDS[index].0;
            self.problem(self.line, format!("the field {name} is missing"), format!("add {name}"));
        }
        found
    }

    fn strings(&mut self, node: &Node, name: &str) -> Vec<String> {
        let Some(list) = node.as_seq() else {
            self.problem(
                line(node),
                format!("{name} is {}, not a list", node.type_name()),
                format!("write {name} as a list of strings, one `- ` line each"),
            );
            return Vec::new();
        };
        if list.is_empty() {
            self.problem(
                line(node),
                format!("{name} is empty"),
                format!("give {name} at least one element"),
            );
        }
        let mut out = Vec::new();
        for element in list {
            match element.as_str() {
                Some(text) => out.push(text.to_owned()),
                None => self.problem(
                    line(element),
                    format!("an element of {name} is {}, not a string", element.type_name()),
                    "put the text in double quotes",
                ),
            }
        }
        out
    }

    fn flag(&mut self, index: usize) -> bool {
        let Some(node) = self.field(index) else { return false };
        let value = match &node.value {
            Value::Bool(flag) => Some(*flag),
            Value::Int(0) => Some(false),
            Value::Int(1) => Some(true),
            Value::Float(f) if *f == 0.0 => Some(false),
            Value::Float(f) if (*f - 1.0).abs() < f64::EPSILON => Some(true),
            Value::Str(text) => match text.to_ascii_lowercase().as_str() {
                "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
                "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
                _ => None,
            },
            _ => None,
        };
        if value.is_none() {
            let name = FIELDS[index].0;
            self.problem(line(node), format!("{name} is not a boolean"), "write true or false");
        }
        value.unwrap_or_default()
    }

    fn threshold(&mut self) -> Option<u64> {
        let node = self.field(6)?;
        let number = match &node.value {
            Value::Null => return None,
            Value::Int(n) => u64::try_from(*n).ok(),
            Value::Bool(flag) => Some(u64::from(*flag)),
            Value::Float(f) if f.fract() == 0.0 && *f >= 0.0 && *f < 9.0e15 => whole(&format!("{f:.0}")),
            Value::Str(text) => whole(text),
            Value::Opaque(OpaqueKind::BigInt, text) if !text.starts_with('-') => Some(u64::MAX),
            _ => None,
        };
        match number {
            Some(n) if n >= 1 => Some(n),
            _ => {
                self.problem(
                    line(node),
                    format!("{} is not an integer of at least 1", FIELDS[6].0),
                    "write 1 or more",
                );
                None
            }
        }
    }
}

/// An integer written as a string: blanks around it, a plus sign, single underscores between digits and a zero
/// fraction are accepted.
fn whole(text: &str) -> Option<u64> {
    let text = text.trim();
    let text = text.strip_prefix('+').unwrap_or(text);
    let text = match text.split_once('.') {
        Some((head, zeros)) if !zeros.is_empty() && zeros.bytes().all(|b| b == b'0') => head,
        Some(_) => return None,
        None => text,
    };
    if text.is_empty()
        || text
            .split('_')
            .any(|part| part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()))
    {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    Some(digits.parse().unwrap_or(u64::MAX))
}

impl Item {
    /// Reads an item.
    ///
    /// # Errors
    /// Everything that is wrong with it; never an empty list.
    pub fn read(node: &Node, rules: &ChangelogRules) -> Result<Item, Vec<ItemProblem>> {
        let Some(map) = node.as_map() else {
            return Err(vec![ItemProblem {
                line: line(node),
                what: format!("an item is {}, not a mapping", node.type_name()),
                fix: "begin the item with `- config-keys:`".into(),
            }]);
        };
        let start = map.entries.first().map_or(line(node), |e| line(&e.key));
        let mut reader = Reader {
            map,
            line: start,
            problems: Vec::new(),
        };
        for (key, _) in map.iter() {
            let name = key.as_str();
            let known = FIELDS
                .iter()
                .find(|(alias, other)| name == Some(alias) || name == Some(other));
            // Both spellings at once: the first one counts and the other one is a stranger.
            let twice =
                known.is_some_and(|(alias, other)| alias != other && name == Some(other) && map.get(alias).is_some());
            if known.is_none() || twice {
                reader.problem(
                    line(key),
                    format!("the field {} is not known", shown(&key.scalar_text())),
                    format!("remove it; the fields are {}", FIELDS.map(|f| f.0).join(", ")),
                );
            }
        }
        let config_keys = reader
            .required(0)
            .map(|n| reader.strings(n, FIELDS[0].0))
            .unwrap_or_default();
        let description = reader
            .required(1)
            .map(|n| reader.strings(n, FIELDS[1].0))
            .unwrap_or_default();
        let link = reader.required(2);
        let link_line = link.map_or(start, line);
        let pr_link = match link.map(|n| (n, n.as_str())) {
            Some((_, Some(text))) => text.to_owned(),
            Some((node, None)) => {
                let what = format!("pr-link is {}, not a string", node.type_name());
                reader.problem(line(node), what, "write the link of the pull request");
                String::new()
            }
            None => String::new(),
        };
        let (evals_only, all_evals, append_only) = (reader.flag(3), reader.flag(4), reader.flag(5));
        let eval_min_prefill_ep = reader.threshold();
        let mut scenario_type = None;
        if let Some(node) = reader.field(7).filter(|n| !n.is_null()) {
            let list = reader.strings(node, FIELDS[7].0);
            for value in list.iter().filter(|v| !rules.scenario_types.contains(v)) {
                reader.problem(
                    line(node),
                    format!("scenario-type has the unknown value {}", shown(value)),
                    format!("use {}", rules.scenario_types.join(" or ")),
                );
            }
            scenario_type = Some(list);
        }
        if append_only && (evals_only || all_evals || eval_min_prefill_ep.is_some()) {
            reader.problem(
                start,
                "append-only stands beside a field that selects evals",
                "remove one of the two",
            );
        }
        if !reader.problems.is_empty() {
            return Err(reader.problems);
        }
        Ok(Item {
            line: start,
            link_line,
            config_keys,
            description,
            pr_link,
            evals_only,
            all_evals,
            append_only,
            eval_min_prefill_ep,
            scenario_type,
        })
    }
}
