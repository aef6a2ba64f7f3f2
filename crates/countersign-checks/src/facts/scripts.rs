//! The scripts that a pull request changes or that touched entries run, and what in them changes a serving engine or
//! the description of a model. Text is read, nothing is run (domain guide, section 12).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use countersign_core::Cause;
use countersign_launch::Source;
use countersign_policy::{Policy, ScriptRules};
use countersign_shell::RawCommand;

use super::acts::{self, Act};
use super::launches::{Group, Launches};
use super::looked::{Changed, Looked, Looking, Wanted, look};
use super::seen::Said;

/// Scripts that are looked at in one pull request.
pub(super) const MOST_SCRIPTS: usize = 400;

/// A script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its path at head.
    pub path: String,
    /// Whether the pull request changes what it does; comments and blank lines apart.
    pub changed: bool,
    /// Whether a script that the pull request changes starts it, and did not before.
    pub called_anew: bool,
    /// Whether what it does is not published: nothing runs it, or it measures something else.
    pub aside: bool,
    /// False where reading it ended at a bound: it may do more than is known.
    pub whole: bool,
    /// Lines that the pull request adds; `None` = all.
    pub(super) added: Option<Arc<BTreeSet<u32>>>,
    pub(super) said: Arc<Said>,
}

impl Script {
    /// Whether the pull request added a line of a range.
    #[must_use]
    pub fn adds(&self, first: u32, last: u32) -> bool {
        self.added
            .as_ref()
            .is_none_or(|added| added.range(first..=last.max(first)).next().is_some())
    }

    /// What it does to the engine or the model, in file order.
    #[must_use]
    pub fn acts(&self) -> &[Act] {
        &self.said.acts
    }

    /// Every text of its commands with its first and last line: words, assignments, here-documents.
    pub fn texts(&self) -> impl Iterator<Item = (u32, u32, String)> {
        self.said.commands.iter().flat_map(texts_of)
    }

    /// The texts of those commands in which one of these words stands: each stands in one word of the script, or in the name of a variable.
    pub fn texts_with<'s>(&'s self, words: &'s [String]) -> impl Iterator<Item = (u32, u32, String)> + 's {
        let has = |text: &str| words.iter().any(|word| text.contains(word.as_str()));
        let named = move |command: &&RawCommand| {
            let mut names = command.assignments.iter().map(|(name, _)| &**name);
            let assigned = command.assignments.iter().flat_map(|(_, word)| &word.texts);
            let given = command.argv.iter().filter_map(|word| word.texts.first());
            let targets = command
                .redirects
                .iter()
                .filter_map(|redirect| redirect.target.texts.first());
            let documents = command.heredocs.iter().map(|document| &document.resolved);
            let mut texts = assigned.chain(given).chain(targets).chain(documents);
            names.any(has) || texts.any(|text| has(text))
        };
        self.said.commands.iter().filter(named).flat_map(texts_of)
    }
}

fn texts_of(command: &RawCommand) -> Vec<(u32, u32, String)> {
    let words = command
        .assignments
        .iter()
        .map(|(_, word)| (word.at.line, command.end_line, word.texts.join("\n")));
    let line = std::iter::once((command.at.line, command.end_line, acts::joined(command)));
    let documents = command
        .heredocs
        .iter()
        .map(|document| (document.first_line, document.last_line, document.resolved.clone()));
    words.chain(line).chain(documents).collect()
}

/// The scripts, by path.
#[derive(Debug, Default)]
pub struct Scripts {
    scripts: BTreeMap<String, Script>,
    /// Scripts that were not looked at, since there are too many.
    pub left: usize,
}

impl Scripts {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Script> {
        self.scripts.values()
    }
}

/// Collects the scripts.
///
/// # Errors
/// A file could not be read.
pub(crate) fn collect(
    looking: Looking<'_>,
    policy: &Policy,
    rules: &ScriptRules,
    launches: &Launches<'_>,
    changed: &Changed,
) -> Result<Scripts, Cause> {
    let reader = looking.reader;
    let shared = |path: &str| {
        let named = |folder: &String| path == folder || (folder.ends_with('/') && path.starts_with(folder.as_str()));
        policy.layout.shared.iter().any(|shared| shared.paths.iter().any(named))
    };
    let mut queue: VecDeque<Wanted> = VecDeque::new();
    for (entry, scenarios) in launches.touched() {
        let head = launches.head(&entry.head.key);
        head.read()?;
        let groups = head.groups.iter().filter(|group| group.touched_by(scenarios));
        let used = groups
            .flat_map(|group| group.starts.files.iter())
            .filter(|path| !shared(path));
        let used = used.filter(|path| reader.is_script(path));
        queue.extend(used.map(|path| Wanted::as_it_is(path.clone(), false)));
        let named = head
            .groups
            .iter()
            .flat_map(|group| setup_scripts(group, rules))
            .map(|(name, _)| name);
        for name in named.collect::<BTreeSet<_>>() {
            let there = rules.setup_folders.iter().map(|folder| format!("{folder}{name}"));
            queue.extend(there.map(|path| Wanted::as_it_is(path, false)));
        }
    }
    let mut out = Scripts::default();
    let cache = launches.scripts();
    let follows = |path: &str| !shared(path) && reader.is_script(path);
    let mut add = |wanted: &Wanted, looked: &dyn Fn() -> Result<Option<Looked>, Cause>| {
        if let Some(seen) = out.scripts.get_mut(&wanted.path) {
            seen.called_anew |= wanted.anew;
            return Ok(Vec::new());
        }
        if out.scripts.len() >= MOST_SCRIPTS {
            out.left += 1;
            return Ok(Vec::new());
        }
        if !looking.lists(&wanted.path) {
            return Ok(Vec::new());
        }
        let Some(Looked { script, calls }) = looked()? else {
            return Ok(Vec::new());
        };
        out.scripts.insert(wanted.path.clone(), script);
        let followed = calls.into_iter().filter(|(called, _)| follows(called));
        Ok(followed.map(|(called, anew)| Wanted::as_it_is(called, anew)).collect())
    };
    changed.look(looking, &cache);
    for (wanted, looked) in changed.all(looking, &cache) {
        queue.extend(add(wanted, &looked)?);
    }
    while let Some(wanted) = queue.pop_front() {
        queue.extend(add(&wanted, &|| look(looking, &wanted, &cache))?);
    }
    Ok(out)
}

/// The scripts that the recipes of a group name for setting up, with their places.
pub fn setup_scripts<'g>(group: &'g Group, rules: &'g ScriptRules) -> impl Iterator<Item = (String, &'g Source)> + 'g {
    group.starts.launches.iter().filter_map(|launch| {
        let value = launch.extra.get(rules.setup_setting.as_deref()?)?;
        Some((value.value.to_string(), &value.source))
    })
}

/// Keys and values of an object in JSON that stands in a text, whatever quoting surrounds it: dotted keys, leaves only.
#[must_use]
pub fn json_leaves(text: &str) -> Vec<(String, String)> {
    let plain = text.replace('\\', "");
    let Some(start) = plain.find('{') else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let mut path: Vec<String> = Vec::new();
    let mut key: Option<String> = None;
    let mut chars = plain[start..].char_indices().peekable();
    let body = &plain[start..];
    while let Some((at, c)) = chars.next() {
        match c {
            '{' => path.extend(key.take()),
            '}' => {
                if path.pop().is_none() {
                    break;
                }
            }
            '"' => {
                let rest = &body[at + 1..];
                let Some(end) = rest.find('"') else { break };
                let word = &rest[..end];
                let after = rest[end + 1..].trim_start();
                if after.starts_with(':') && key.is_none() {
                    key = Some(word.to_owned());
                } else if let Some(key) = key.take() {
                    out.push((dotted(&path, &key), word.to_owned()));
                }
                while chars.peek().is_some_and(|(next, _)| *next <= at + 1 + end) {
                    chars.next();
                }
            }
            ':' | ',' | ' ' | '\t' | '\n' => {}
            _ => {
                if let Some(key) = key.take() {
                    let rest = &body[at..];
                    let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
                    out.push((dotted(&path, &key), rest[..end].trim().to_owned()));
                    while chars.peek().is_some_and(|(next, _)| *next < at + end) {
                        chars.next();
                    }
                }
            }
        }
        if out.len() > 200 || path.len() > 32 {
            break;
        }
    }
    out
}

/// Ways to change an object, or the text that it is read from, other than by an assignment to one key.
const OTHERWISE: &[&str] = &[
    ".append(",
    ".clear(",
    ".extend(",
    ".insert(",
    ".pop(",
    ".popitem(",
    ".remove(",
    ".replace(",
    ".setdefault(",
    ".sub(",
    ".update(",
    " | ",
    "**",
    ";",
    "__",
    ": del ",
    "dict(",
    "eval(",
    "exec(",
    "hook",
    "lambda",
    "setattr(",
];

/// Keys and values that a Python program sets in objects, one assignment to a quoted key a line. `None` where it may change
/// an object in any other way: what is not read key by key could take anything away.
#[must_use]
pub fn keys_written(text: &str) -> Option<Vec<(String, String)>> {
    // This one moves a file.
    let other = text.replace("os.replace(", "");
    if OTHERWISE.iter().any(|how| other.contains(how)) {
        return None;
    }
    let mut out = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        match assignments_to_items(line) {
            0 if !line.starts_with("del ") && !sets_an_attribute(line) && !holds_a_literal(line) => {}
            1 => out.push(key_assigned(line)?),
            _ => return None,
        }
    }
    Some(out)
}

/// How often something in brackets is written to in a line, in any way, such as `a["b"] -= 1`.
fn assignments_to_items(line: &str) -> usize {
    let writes = |rest: &str| {
        let rest = rest.trim_start();
        let operator: &str = rest
            .split(|c: char| !"=+-*/%@&|^<>:".contains(c))
            .next()
            .unwrap_or_default();
        let compares = ["==", "<=", ">="].contains(&operator);
        // A colon ends a condition, or names a type before the value.
        let annotated = operator == ":" && rest.contains('=');
        annotated || (operator.ends_with('=') && !compares)
    };
    line.match_indices(']')
        .filter(|(at, _)| writes(&line[at + 1..]))
        .count()
}

/// `config.layers = 4`.
fn sets_an_attribute(line: &str) -> bool {
    let target = line
        .split('=')
        .next()
        .unwrap_or_default()
        .trim_end_matches(|c: char| "+-*/%@&|^: ".contains(c));
    let name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
    line.contains('=') && target.contains('.') && target.chars().all(name)
}

/// A key of an object that is written out, such as `{"layers": 4}`. A condition may end so as well.
fn holds_a_literal(line: &str) -> bool {
    let condition = ["if ", "elif ", "while ", "for "]
        .iter()
        .any(|word| line.starts_with(word));
    line.match_indices(['"', '\'']).any(|(at, _)| {
        let after = line[at + 1..].trim_start().strip_prefix(':');
        after.is_some_and(|rest| !condition || !rest.trim().is_empty())
    })
}

/// The key and the value of a line that sets one quoted key of a named object, and does nothing else.
fn key_assigned(line: &str) -> Option<(String, String)> {
    let (target, value) = line.split_once("] = ")?;
    let (object, key) = target.split_once('[')?;
    let key = ['"', '\'']
        .iter()
        .find_map(|quote| key.strip_prefix(*quote)?.strip_suffix(*quote))?;
    let plain = |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '_');
    (plain(object) && plain(key)).then(|| (key.to_owned(), value.trim_matches(['"', '\'']).to_owned()))
}

fn dotted(path: &[String], key: &str) -> String {
    let mut all: Vec<&str> = path.iter().map(String::as_str).collect();
    all.push(key);
    all.join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_in_any_quoting_are_read_to_their_leaves() {
        let found =
            |text: &str| -> Vec<String> { json_leaves(text).into_iter().map(|(k, v)| format!("{k}={v}")).collect() };
        assert_eq!(
            found(r#" '{"a": true, "b": {"c": 4, "d": "x"}}' --next"#),
            ["a=true", "b.c=4", "b.d=x"]
        );
        assert_eq!(found(r#" '{\"a\":true,\"f\":4}'"#), ["a=true", "f=4"]);
        assert_eq!(found("{}"), Vec::<String>::new());
        assert_eq!(found("no object"), Vec::<String>::new());
        assert_eq!(found(r#"{"a": ["#), ["a=["]);
        assert_eq!(found(&"{\"a\":".repeat(100)).len(), 0);
    }

    #[test]
    fn keys_that_a_program_sets() {
        let found = |text: &str| -> Vec<String> {
            keys_written(text)
                .unwrap_or_default()
                .into_iter()
                .map(|(k, v)| format!("{k}={v}"))
                .collect()
        };
        let program = "c = json.loads(f.read_text())\nif c[\"a\"] == 1:\n    c[\"model_type\"] = \"m\"\nc['n'] = x\n";
        assert_eq!(found(program), ["model_type=m", "n=x"]);
        assert_eq!(found("c[\"a\"][\"b\"] = 1\nc[\"d\"] = 1\n"), Vec::<String>::new());
        assert_eq!(found("c[\"a\"] = 1\nc.pop(\"layers\")\n"), Vec::<String>::new());
        assert_eq!(found("print(1)\n"), Vec::<String>::new());
        // The programs of real scripts, shortened.
        let real = "with open(path) as f:\n    c = json.load(f)\nif c.get(\"model_type\") == \"x\":\n    c[\"model_type\"] = \"y\"\n    json.dump(c, f, indent=2)\nos.replace(a, b / \"config.json\")\n";
        assert_eq!(found(real), ["model_type=y"]);
    }

    #[test]
    fn a_program_that_writes_in_any_other_way_is_not_read() {
        for hidden in ["c[\"layers\"] = 1 if c[\"a\"] == 2 else 3", "c[\"layers\"]=1"] {
            let text = format!("c[\"model_type\"] = \"m\"\n{hidden}\n");
            let keys = keys_written(&text);
            let silent = keys.is_some_and(|keys| !keys.iter().any(|(key, _)| key == "layers"));
            assert!(!silent, "{hidden}");
        }
        for hidden in [
            "c[\"layers\"] -= 2",
            "c[\"layers\"]: int = 4",
            "c[model_type] = 4",
            "c[\"a\"] = c[\"layers\"] = 4",
            "c[\"a\"], c[\"layers\"] = 1, 2",
            "c.layers = 4",
            "c.layers -= 4",
            "c = c | {\"layers\": 4}",
            "c = {**c}",
            "c = dict(c, layers=4)",
            "json.dump({\"layers\": 4}, f)",
            "c[\"a\"] = 1; c[\"layers\"] = 2",
            "text = text.replace(\"61\", \"4\")",
            "if c[\"a\"]: del c[\"layers\"]",
            "del c[\"layers\"]",
        ] {
            let text = format!("c[\"model_type\"] = \"m\"\n{hidden}\n");
            assert_eq!(keys_written(&text), None, "{hidden}");
        }
    }
}
