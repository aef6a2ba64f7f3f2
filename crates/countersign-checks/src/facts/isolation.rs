//! Whether a changed file can reach points that were there before (product page, section 6; domain guide 3.8, 3.9, 4.6).
//!
//! A point reads the scripts and recipes that its entry leads to, and whatever these name. For every such point all that
//! its scripts would carry out, or all that its recipe says, is taken at the merge base and at head and compared. Equal
//! traces of which nothing is hidden prove that the change does not reach it; a difference proves that it does; anything
//! else is open, with the reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_core::{Cause, CommitSha, Observed};
use countersign_launch::point::{self, DeriveRules, Statement, Trace};
use countersign_matrix::{Configs, Entry, FileRole, Files, Point, Resolution, Row, entry_rows, resolve};
use countersign_shell::ScriptCache;

use super::tree::TreeFiles;
use crate::context::Context;

/// Most points that are compared for one pull request.
const MOST_POINTS: usize = 600;

/// How many names lead from a file to the points that read it.
const MOST_STEPS: usize = 4;

/// What a changed file can reach.
#[derive(Debug)]
pub enum Reach {
    /// No point that was there before.
    Isolated(String),
    /// This one.
    Shared(Box<Shared>),
    /// That cannot be told, for this reason.
    Open(String),
}

/// A point that a change reaches.
#[derive(Debug)]
pub struct Shared {
    /// Its entry.
    pub key: Arc<str>,
    /// Its topology and concurrency.
    pub point: String,
    /// What it did, where it did anything.
    pub before: Option<Statement>,
    /// What it does, where it does anything.
    pub after: Option<Statement>,
}

struct Side<'c> {
    configs: &'c Configs,
    files: TreeFiles<'c>,
    scripts: ScriptCache,
}

/// See the module.
pub struct Isolation<'c, 'e> {
    cx: &'c Context<'e>,
    rules: &'c DeriveRules,
    followed: &'c [String],
    base: Side<'c>,
    head: Side<'c>,
    /// Entries of the base, with what they use there and at head.
    used: Vec<(Arc<Entry>, [Resolution; 2])>,
    pairs: BTreeMap<Arc<str>, Pairs>,
    compared: usize,
}

/// The traces of an entry's points of before.
enum Pairs {
    Known(Vec<Pair>),
    Unknown(String),
}

struct Pair {
    row: Row,
    before: Trace,
    after: Trace,
}

impl<'c, 'e> Isolation<'c, 'e> {
    /// Over the configs of both sides. `followed`: folders of which it is known what reads their files.
    ///
    /// # Errors
    /// What could not be read.
    pub fn new(cx: &'c Context<'e>, followed: &'c [String]) -> Result<Self, Cause> {
        let affected = cx.affected().map_err(Cause::clone)?;
        let rules = cx.section("derive", &cx.policy().derive)?;
        let merge_base = cx.evidence.merge_base.known().map_err(Cause::clone)?;
        let merge_base = merge_base.ok_or_else(|| {
            Cause::new(
                countersign_core::CauseKind::NotRecorded,
                "merge base",
                "it was not gathered",
            )
        })?;
        let side = |commit: &CommitSha, configs| -> Result<Side<'c>, Cause> {
            Ok(Side {
                configs,
                files: TreeFiles::new(cx.evidence, commit)?,
                scripts: ScriptCache::default(),
            })
        };
        let (base, head) = (
            side(merge_base, &affected.base)?,
            side(&cx.evidence.pull_request.head_sha, &affected.head)?,
        );
        let (layout, matrix) = (&cx.policy().layout, &cx.policy().matrix);
        let used = base.configs.masters.entries.iter().map(|entry| {
            let now = head.configs.masters.get(&entry.head.key).unwrap_or(entry);
            let before = resolve(entry, &base.configs.runners, &base.files, layout, matrix);
            let after = resolve(now, &head.configs.runners, &head.files, layout, matrix);
            (entry.clone(), [before, after])
        });
        let used = used.collect();
        Ok(Self {
            cx,
            rules,
            followed,
            base,
            head,
            used,
            pairs: BTreeMap::new(),
            compared: 0,
        })
    }

    /// What a changed path can reach.
    ///
    /// # Errors
    /// What could not be read.
    pub fn of(&mut self, path: &str) -> Result<Reach, Cause> {
        let reach = self.judge(path)?;
        self.base
            .files
            .unread()
            .or_else(|| self.head.files.unread())
            .map_or(Ok(reach), Err)
    }

    fn judge(&mut self, path: &str) -> Result<Reach, Cause> {
        if !self.followed.iter().any(|folder| path.starts_with(folder.as_str())) {
            return Ok(Reach::Open("what reads it is not known here".into()));
        }
        if self.only_remarks(path)? {
            return Ok(Reach::Isolated("only comments and blank lines differ".into()));
        }
        let readers = self.readers(path);
        let mut keys: BTreeSet<Arc<str>> = BTreeSet::new();
        for (entry, sides) in &self.used {
            for reader in &readers {
                match sides.iter().find_map(|side| side.uses(reader)) {
                    Some(FileRole::Launcher) if reader == path => {
                        return Ok(Reach::Open(format!(
                            "it launches points of {} that were there before",
                            entry.head.key
                        )));
                    }
                    Some(FileRole::Launcher) => {
                        return Ok(Reach::Open(format!(
                            "{reader}, which launches points of {}, names it",
                            entry.head.key
                        )));
                    }
                    Some(_) => {
                        keys.insert(entry.head.key.clone());
                    }
                    None => {}
                }
            }
        }
        let mut points = 0;
        for key in &keys {
            match self.entry(path, key) {
                Ok(count) => points += count,
                Err(reach) => return Ok(*reach),
            }
        }
        Ok(Reach::Isolated(if points == 0 {
            "no earlier point reads it".into()
        } else {
            format!("all that {points} earlier points do is the same at the merge base and at head")
        }))
    }

    /// How many points of an entry were compared and are the same.
    fn entry(&mut self, path: &str, key: &Arc<str>) -> Result<usize, Box<Reach>> {
        if !self.pairs.contains_key(key) {
            let pairs = self.traces(key);
            self.pairs.insert(key.clone(), pairs);
        }
        let names = names_of(path);
        let open = |why: String| Err(Box::new(Reach::Open(why)));
        let pairs = match self.pairs.get(key) {
            Some(Pairs::Known(pairs)) => pairs,
            Some(Pairs::Unknown(why)) => return open(why.clone()),
            None => return open("it was not traced".into()),
        };
        // A difference is proof even where something else is hidden.
        for pair in pairs {
            let of_this = |statement: &&Statement| &*statement.source.file == path || is_named(&statement.text, &names);
            if let Some((before, after)) = pair.before.difference(&pair.after)
                && (before.is_some_and(|said| of_this(&said)) || after.is_some_and(|said| of_this(&said)))
            {
                return Err(Box::new(Reach::Shared(Box::new(Shared {
                    key: key.clone(),
                    point: point_name(&pair.row),
                    before: before.cloned(),
                    after: after.cloned(),
                }))));
            }
        }
        for pair in pairs {
            let point = || format!("{key} at {}", point_name(&pair.row));
            if pair.before.difference(&pair.after).is_some() {
                return open(format!("{} does something else at head, through another file", point()));
            }
            if let Some(why) = pair.before.open.first().or_else(|| pair.after.open.first()) {
                return open(format!("not all that {} does is known: {why}", point()));
            }
            let evaluated = |trace: &Trace| trace.files.iter().any(|file| file == path);
            let named = |trace: &Trace| trace.statements.iter().any(|said| is_named(&said.text, &names));
            let read = evaluated(&pair.before) && evaluated(&pair.after);
            if !read && (named(&pair.before) || named(&pair.after)) {
                return open(format!("{} runs it", point()));
            }
        }
        Ok(pairs.len())
    }

    fn traces(&mut self, key: &str) -> Pairs {
        let (Some(old), Some(new)) = (self.base.configs.masters.get(key), self.head.configs.masters.get(key)) else {
            return Pairs::Known(Vec::new());
        };
        let rows = |configs: &Configs, entry: &Arc<Entry>| entry_rows(configs, &self.cx.policy().matrix, entry);
        let (Ok(before), Ok(after)) = (rows(self.base.configs, old), rows(self.head.configs, new)) else {
            return Pairs::Unknown(format!("the points of {key} cannot be expanded"));
        };
        self.compared += before.len();
        if self.compared > MOST_POINTS {
            return Pairs::Unknown("more points read it than are compared".into());
        }
        let mut seen: BTreeMap<Point, usize> = BTreeMap::new();
        let mut pairs = Vec::new();
        for row in before {
            let point = row.point();
            let nth = seen.entry(point.clone()).or_default();
            let now = after.iter().filter(|other| other.point() == point).nth(*nth);
            *nth += 1;
            // That a point is gone is told by the comparison of the configs.
            let Some(now) = now else { continue };
            pairs.push(Pair {
                before: self.trace(&self.base, old, &row),
                after: self.trace(&self.head, new, now),
                row,
            });
        }
        Pairs::Known(pairs)
    }

    fn trace(&self, side: &Side<'_>, entry: &Entry, row: &Row) -> Trace {
        let tree = point::Tree {
            files: &side.files,
            runners: &side.configs.runners,
            layout: &self.cx.policy().layout,
            matrix: &self.cx.policy().matrix,
            rules: self.rules,
            scripts: &side.scripts,
        };
        point::trace(&tree, entry, row)
    }

    /// The path, and every followed file of either side that leads to it by name.
    fn readers(&self, path: &str) -> BTreeSet<String> {
        let mut found: BTreeSet<String> = BTreeSet::from([path.to_owned()]);
        let mut newest: Vec<String> = vec![path.to_owned()];
        for _ in 0..MOST_STEPS {
            let names: Vec<String> = newest.iter().flat_map(|path| names_of(path)).collect();
            let mut more = BTreeSet::new();
            for side in [&self.base, &self.head] {
                for folder in self.followed {
                    for file in side.files.list(folder) {
                        let is_new = !found.contains(&file) && !more.contains(&file);
                        if is_new && side.files.read(&file).is_some_and(|text| is_named(&text, &names)) {
                            more.insert(file);
                        }
                    }
                }
            }
            newest = more.iter().cloned().collect();
            found.extend(more);
            if newest.is_empty() {
                break;
            }
        }
        found
    }

    /// Whether both sides have the file and differ in nothing but lines that are comments or blank.
    fn only_remarks(&self, path: &str) -> Result<bool, Cause> {
        if ![".sh", ".py", ".yaml", ".yml"]
            .iter()
            .any(|ending| path.ends_with(ending))
        {
            return Ok(false);
        }
        let (before, after) = match (self.cx.evidence.base_file(path), self.cx.evidence.head_file(path)) {
            (Observed::Present(before), Observed::Present(after)) => (before, after),
            (Observed::Unavailable(cause), _) | (_, Observed::Unavailable(cause)) => return Err(cause),
            _ => return Ok(false),
        };
        let is_said = |line: &&str| {
            let line = line.trim_start();
            !line.is_empty() && (!line.starts_with('#') || line.starts_with("#!"))
        };
        Ok(before.lines().filter(is_said).eq(after.lines().filter(is_said)))
    }
}

/// The names by which a file may be asked for: its own; for code that is imported its stem; and for what is neither a script
/// nor a recipe also its folder's, since a whole folder may be taken.
fn names_of(path: &str) -> Vec<String> {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or(path);
    let mut names = vec![file.strip_suffix(".py").unwrap_or(file).to_owned()];
    if ![".sh", ".yaml", ".yml"].iter().any(|ending| file.ends_with(ending)) {
        names.extend(parts.next().map(str::to_owned));
    }
    names
}

fn is_named(text: &str, names: &[String]) -> bool {
    names.iter().any(|name| text.contains(name.as_str()))
}

fn point_name(row: &Row) -> String {
    let concs: Vec<String> = row.conc.values().iter().map(i64::to_string).collect();
    format!("{} at concurrency {}", row.point().shape, concs.join(", "))
}

/// The lines of a file at head that differ from the base, as one span from the first to the last; `None` where the file is
/// not on both sides.
#[must_use]
pub fn changed_lines(before: &str, after: &str) -> Option<(usize, usize)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let front = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let rest = old.len().min(new.len()) - front;
    let back = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(rest)
        .take_while(|(a, b)| a == b)
        .count();
    let last = new.len() - back;
    Some((front + 1, last.max(front + 1)))
}

#[cfg(test)]
mod tests {
    use super::changed_lines;

    #[test]
    fn the_span_of_changed_lines() {
        assert_eq!(changed_lines("a\nb\nc\n", "a\nx\nc\n"), Some((2, 2)));
        assert_eq!(changed_lines("a\nc\n", "a\nx\ny\nc\n"), Some((2, 3)));
        assert_eq!(changed_lines("a\nb\nc\n", "a\nc\n"), Some((2, 2)));
        assert_eq!(changed_lines("", "a\n"), Some((1, 1)));
    }
}
