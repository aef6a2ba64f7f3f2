//! The scripts that a pull request changes or that touched entries run, and what in them changes a serving engine or
//! the description of a model. Text is read, nothing is run (domain guide, section 12).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use countersign_core::evidence::{ChangeStatus, ChangedFile};
use countersign_core::{Cause, Evidence, Observed};
use countersign_matrix::line_diff;
use countersign_policy::{Policy, ScriptRules};
use countersign_shell::{RawCommand, RawRedirect, RawWord, ScriptCache};

use super::acts::{self, Act, Patterns, Reader};
use super::launches::{Group, Launches};
use super::seen::Said;
use countersign_launch::Source;

/// Scripts that are looked at in one pull request.
const MOST_SCRIPTS: usize = 400;

/// A script.
#[derive(Debug)]
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
    added: Option<BTreeSet<u32>>,
    said: Arc<Said>,
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
        self.said.commands.iter().flat_map(|command| {
            let words = command
                .assignments
                .iter()
                .map(|(_, word)| (word.at.line, command.end_line, word.texts.join("\n")));
            let line = std::iter::once((command.at.line, command.end_line, acts::joined(command)));
            let documents = command
                .heredocs
                .iter()
                .map(|document| (document.first_line, document.last_line, document.resolved.clone()));
            words.chain(line).chain(documents).collect::<Vec<_>>()
        })
    }
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

/// A script to be looked at, and its path at the merge base.
struct Wanted {
    path: String,
    before: String,
    changed: bool,
    anew: bool,
}

impl Wanted {
    fn as_it_is(path: String, anew: bool) -> Self {
        Self {
            before: path.clone(),
            path,
            changed: false,
            anew,
        }
    }
}

/// Reads the scripts that the pull request changes, at merge base and head: what they say is kept, so that collecting them
/// finds it. That they cannot be read is told there.
pub fn read_ahead(evidence: &Evidence, rules: &ScriptRules, patterns: Arc<Patterns>, scripts: &ScriptCache) {
    let reader = Reader::new(rules, patterns);
    let files = evidence
        .changed_files
        .known()
        .ok()
        .flatten()
        .map_or(&[][..], Vec::as_slice);
    let changed = changed(files, rules, &reader).filter(|wanted| !reader.is_python(&wanted.path));
    for wanted in changed.take(MOST_SCRIPTS) {
        if !listed(evidence, &wanted.path) {
            continue;
        }
        let sides = [
            (&wanted.path, evidence.head_file(&wanted.path)),
            (&wanted.before, evidence.base_file(&wanted.before)),
        ];
        for (path, text) in sides {
            if let Observed::Present(text) = text {
                reader.script(path, &text, scripts);
            }
        }
    }
}

/// Collects the scripts.
///
/// # Errors
/// A file could not be read.
pub fn collect(
    evidence: &Evidence,
    policy: &Policy,
    rules: &ScriptRules,
    launches: &Launches<'_>,
    patterns: Arc<Patterns>,
) -> Result<Scripts, Cause> {
    let reader = Reader::new(rules, patterns);
    let files = evidence
        .changed_files
        .known()
        .map_err(Cause::clone)?
        .map_or(&[][..], Vec::as_slice);
    let mut queue: VecDeque<Wanted> = changed(files, rules, &reader).collect();
    let shared = |path: &str| {
        let named = |folder: &String| path == folder || (folder.ends_with('/') && path.starts_with(folder.as_str()));
        policy.layout.shared.iter().any(|shared| shared.paths.iter().any(named))
    };
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
    while let Some(wanted) = queue.pop_front() {
        if let Some(seen) = out.scripts.get_mut(&wanted.path) {
            seen.called_anew |= wanted.anew;
            continue;
        }
        if out.scripts.len() >= MOST_SCRIPTS {
            out.left += 1;
            continue;
        }
        if !listed(evidence, &wanted.path) {
            continue;
        }
        let text = match evidence.head_file(&wanted.path) {
            Observed::Present(text) => text,
            Observed::Absent => continue,
            Observed::Unavailable(cause) => return Err(cause),
        };
        let (script, before) = read(evidence, &reader, &cache, &wanted, &text)?;
        let called_before = match (script.changed, script.called_anew) {
            (_, true) => BTreeSet::new(),
            (true, _) => reader.calls(
                &wanted.before,
                before.as_ref().map_or(&[], |before| &before.commands),
                &policy.derive,
            ),
            (false, _) => reader.calls(&script.path, &script.said.commands, &policy.derive),
        };
        for called in reader.calls(&script.path, &script.said.commands, &policy.derive) {
            if !shared(&called) && reader.is_script(&called) {
                let anew = !called_before.contains(&called);
                queue.push_back(Wanted::as_it_is(called, anew));
            }
        }
        out.scripts.insert(wanted.path, script);
    }
    Ok(out)
}

/// Whether the tree at head lists a path. What is called may lie anywhere; only files of the repository are read.
fn listed(evidence: &Evidence, path: &str) -> bool {
    match evidence.trees.get(&evidence.pull_request.head_sha) {
        Some(Observed::Present(tree)) => tree.covers(path) && tree.entries.contains_key(path),
        // That the tree is not known is told when the file is read.
        _ => true,
    }
}

fn changed<'r>(
    files: &'r [ChangedFile],
    rules: &'r ScriptRules,
    reader: &'r Reader<'r>,
) -> impl Iterator<Item = Wanted> + 'r {
    files
        .iter()
        .filter(|file| file.status != ChangeStatus::Removed)
        .filter(move |file| {
            reader.is_script(&file.path) && rules.roots.iter().any(|root| file.path.starts_with(root.as_str()))
        })
        .map(|file| Wanted {
            path: file.path.clone(),
            before: file.previous_path.clone().unwrap_or_else(|| file.path.clone()),
            changed: true,
            anew: false,
        })
}

/// The script, and what it said at the merge base where it is changed.
fn read(
    evidence: &Evidence,
    reader: &Reader<'_>,
    scripts: &ScriptCache,
    wanted: &Wanted,
    text: &Arc<str>,
) -> Result<(Script, Option<Arc<Said>>), Cause> {
    let before = match evidence.base_file(&wanted.before) {
        Observed::Present(text) => Some(text),
        Observed::Absent => None,
        Observed::Unavailable(cause) => return Err(cause),
    };
    let added = before.as_ref().and_then(|before| added_lines(before, text));
    let mut changed = wanted.changed;
    let mut old = None;
    let said = if reader.is_python(&wanted.path) {
        Arc::new(Said {
            commands: Vec::new(),
            acts: reader.python(text, 1, text.lines().count()),
            whole: true,
        })
    } else {
        let said = reader.script(&wanted.path, text, scripts);
        if let Some(before) = before.filter(|_| changed) {
            let before = reader.script(&wanted.before, &before, scripts);
            // What was not read may differ.
            changed = !(before.whole && said.whole && same_commands(&before.commands, &said.commands));
            old = Some(before);
        }
        said
    };
    let script = Script {
        path: wanted.path.clone(),
        changed,
        called_anew: wanted.anew,
        aside: reader.is_aside(&wanted.path),
        added,
        whole: said.whole,
        said,
    };
    Ok((script, old))
}

/// Whether two states of a script say the same, wherever in the file they say it.
fn same_commands(old: &[RawCommand], new: &[RawCommand]) -> bool {
    let same = |(a, b): (&RawCommand, &RawCommand)| {
        let assigned = assigned(a).flat_map(|(_, word)| &word.texts);
        let documents = a.heredocs.iter().map(|document| &document.resolved);
        assigned.eq(self::assigned(b).flat_map(|(_, word)| &word.texts))
            && (same_words(a, b) || acts::joined(a) == acts::joined(b))
            && documents.eq(b.heredocs.iter().map(|document| &document.resolved))
            && (&a.function, a.pipe_stage) == (&b.function, b.pipe_stage)
    };
    old.len() == new.len() && old.iter().zip(new).all(same)
}

fn assigned(command: &RawCommand) -> impl Iterator<Item = &(Arc<str>, RawWord)> {
    command.assignments.iter()
}

/// Whether the lines of two commands are equal, as their words tell. Those of other words can be equal too.
fn same_words(a: &RawCommand, b: &RawCommand) -> bool {
    let first = |word: &RawWord, other: &RawWord| word.texts.first() == other.texts.first();
    let targets = |a: &RawCommand, b: &RawCommand| {
        let same = |(a, b): (&RawRedirect, &RawRedirect)| a.op == b.op && first(&a.target, &b.target);
        a.redirects.len() == b.redirects.len() && a.redirects.iter().zip(&b.redirects).all(same)
    };
    a.argv.len() == b.argv.len()
        && a.argv.iter().zip(&b.argv).all(|(a, b)| first(a, b))
        && a.assignments.len() == b.assignments.len()
        && assigned(a)
            .zip(assigned(b))
            .all(|((name, word), (other, same))| name == other && first(word, same))
        && targets(a, b)
}

/// The scripts that the recipes of a group name for setting up, with their places.
pub fn setup_scripts<'g>(group: &'g Group, rules: &'g ScriptRules) -> impl Iterator<Item = (String, &'g Source)> + 'g {
    group.starts.launches.iter().filter_map(|launch| {
        let value = launch.extra.get(rules.setup_setting.as_deref()?)?;
        Some((value.value.to_string(), &value.source))
    })
}

/// Lines that a text has and its earlier form does not; `None` where they differ too much to tell.
fn added_lines(before: &str, after: &str) -> Option<BTreeSet<u32>> {
    if before == after {
        return Some(BTreeSet::new());
    }
    let old: Vec<&str> = before.split_inclusive('\n').collect();
    let new: Vec<&str> = after.split_inclusive('\n').collect();
    if let Some(diff) = line_diff(&old, &new) {
        return Some(
            diff.added
                .iter()
                .filter_map(|index| u32::try_from(index + 1).ok())
                .collect(),
        );
    }
    // Too different for the smallest difference: a line is new where the earlier text has it nowhere.
    let known: BTreeSet<&str> = old.into_iter().collect();
    let fresh = new.iter().enumerate().filter(|(_, line)| !known.contains(*line));
    Some(fresh.filter_map(|(index, _)| u32::try_from(index + 1).ok()).collect())
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

    #[test]
    fn lines_that_a_change_adds() {
        assert_eq!(added_lines("a\nb\nc\n", "a\nx\nb\nc\n"), Some(BTreeSet::from([2])));
        assert_eq!(added_lines("a\n", "a\n"), Some(BTreeSet::new()));
    }

    #[test]
    fn comments_are_no_change_of_what_a_script_does() {
        let commands =
            |text: &str| countersign_shell::scan_script(&ScriptCache::default().script("s.sh", &text.into())).commands;
        let same = |a: &str, b: &str| same_commands(&commands(a), &commands(b));
        assert!(same("# one\nrun --a 1\n", "# two\n\nrun \\\n  --a 1 # three\n"));
        assert!(!same("run --a 1\n", "run --a 2\n"));
        assert!(!same("A=1\nrun\n", "A=2\nrun\n"));
        assert!(!same("cat <<E\nx\nE\n", "cat <<E\ny\nE\n"));
        assert!(!same("run\n", "run\nrun\n"));
        assert!(!same("run > a\n", "run > b\n"));
    }
}
