//! One script at head and at the merge base: what it says, what of it is new, and what it starts. Scripts that a pull request
//! changes are looked at by several threads, each of them once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use countersign_core::evidence::{ChangeStatus, ChangedFile};
use countersign_core::{Cause, Evidence, Observed};
use countersign_launch::point::DeriveRules;
use countersign_matrix::line_diff;
use countersign_policy::ScriptRules;
use countersign_shell::{RawCommand, RawRedirect, RawWord, ScriptCache};

use super::acts::{self, Reader};
use super::scripts::{MOST_SCRIPTS, Script};
use super::seen::Said;

/// A script to be looked at, and its path at the merge base.
pub(super) struct Wanted {
    pub(super) path: String,
    before: String,
    changed: bool,
    pub(super) anew: bool,
}

impl Wanted {
    pub(super) fn as_it_is(path: String, anew: bool) -> Self {
        Self {
            before: path.clone(),
            path,
            changed: false,
            anew,
        }
    }

    /// The script of a changed file, where it is one.
    fn changed(file: &ChangedFile, rules: &ScriptRules, reader: &Reader<'_>) -> Option<Self> {
        let within = rules.roots.iter().any(|root| file.path.starts_with(root.as_str()));
        let wanted = file.status != ChangeStatus::Removed && reader.is_script(&file.path) && within;
        wanted.then(|| Self {
            path: file.path.clone(),
            before: file.previous_path.clone().unwrap_or_else(|| file.path.clone()),
            changed: true,
            anew: false,
        })
    }
}

/// A script that was looked at.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    pub(super) script: Script,
    /// Files of the repository that it starts or sources, and whether that is new.
    pub(super) calls: Vec<(String, bool)>,
}

/// The scripts that a pull request changes. Any number of threads may look at them; see [`Changed::look`].
pub(crate) struct Changed {
    /// In the order of the changed files.
    wanted: Vec<(Wanted, OnceLock<Result<Option<Looked>, Cause>>)>,
    /// Those that take longest first.
    order: Vec<usize>,
    next: AtomicUsize,
}

/// What looking at scripts takes.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'l> {
    pub(crate) evidence: &'l Evidence,
    pub(crate) derive: &'l Option<DeriveRules>,
    pub(crate) reader: &'l Reader<'l>,
}

impl Looking<'_> {
    /// Whether the tree at head lists a path. What is called may lie anywhere; only files of the repository are read.
    pub(super) fn lists(&self, path: &str) -> bool {
        match self.evidence.trees.get(&self.evidence.pull_request.head_sha) {
            Some(Observed::Present(tree)) => tree.covers(path) && tree.entries.contains_key(path),
            // That the tree is not known is told when the file is read.
            _ => true,
        }
    }
}

impl Changed {
    /// Of these changed files.
    pub(crate) fn of(files: &[ChangedFile], rules: &ScriptRules, looking: Looking<'_>) -> Self {
        let wanted: Vec<Wanted> = files
            .iter()
            .filter_map(|file| Wanted::changed(file, rules, looking.reader))
            .collect();
        let length = |wanted: &Wanted| {
            looking
                .evidence
                .head_file(&wanted.path)
                .present()
                .map_or(0, |text| text.len())
        };
        let mut order: Vec<(usize, usize)> = wanted
            .iter()
            .take(MOST_SCRIPTS)
            .enumerate()
            .filter(|(_, wanted)| looking.lists(&wanted.path))
            .map(|(at, wanted)| (length(wanted), at))
            .collect();
        order.sort_by_key(|(length, at)| (std::cmp::Reverse(*length), *at));
        Self {
            wanted: wanted.into_iter().map(|wanted| (wanted, OnceLock::new())).collect(),
            order: order.into_iter().map(|(_, at)| at).collect(),
            next: AtomicUsize::new(0),
        }
    }

    /// Looks at those that nobody has begun with.
    pub(crate) fn look(&self, looking: Looking<'_>, scripts: &ScriptCache) {
        while let Some((wanted, looked)) = self
            .order
            .get(self.next.fetch_add(1, Ordering::Relaxed))
            .and_then(|at| self.wanted.get(*at))
        {
            looked.get_or_init(|| look(looking, wanted, scripts));
        }
    }

    /// All of them, in the order of the changed files. Whoever asks for one that another thread is at waits for it.
    pub(super) fn all<'c>(
        &'c self,
        looking: Looking<'c>,
        scripts: &'c ScriptCache,
    ) -> impl Iterator<Item = (&'c Wanted, impl Fn() -> Result<Option<Looked>, Cause> + 'c)> {
        self.wanted.iter().map(move |(wanted, looked)| {
            let looked = move || looked.get_or_init(|| look(looking, wanted, scripts)).clone();
            (wanted, looked)
        })
    }
}

/// Looks at a script; there may be none at head.
pub(super) fn look(looking: Looking<'_>, wanted: &Wanted, scripts: &ScriptCache) -> Result<Option<Looked>, Cause> {
    let Looking {
        evidence,
        derive,
        reader,
    } = looking;
    let text = match evidence.head_file(&wanted.path) {
        Observed::Present(text) => text,
        Observed::Absent => return Ok(None),
        Observed::Unavailable(cause) => return Err(cause),
    };
    let before = match evidence.base_file(&wanted.before) {
        Observed::Present(text) => Some(text),
        Observed::Absent => None,
        Observed::Unavailable(cause) => return Err(cause),
    };
    let added = before.as_ref().and_then(|before| added_lines(before, &text));
    let mut changed = wanted.changed;
    let mut old = None;
    let said = if reader.is_python(&wanted.path) {
        Arc::new(Said {
            commands: Vec::new(),
            acts: reader.python(&text, 1, text.lines().count()),
            whole: true,
        })
    } else {
        let said = reader.script(&wanted.path, &text, scripts);
        if let Some(before) = before.filter(|_| changed) {
            let before = reader.script(&wanted.before, &before, scripts);
            // What was not read may differ.
            changed = !(before.whole && said.whole && same_commands(&before.commands, &said.commands));
            old = Some(before);
        }
        said
    };
    let calls = reader.calls(&wanted.path, &said.commands, derive);
    let called_before = if wanted.anew {
        BTreeSet::new()
    } else if changed {
        let commands = old.as_ref().map_or(&[][..], |old| &old.commands);
        reader.calls(&wanted.before, commands, derive)
    } else {
        calls.clone()
    };
    let calls = calls
        .into_iter()
        .map(|called| {
            let anew = !called_before.contains(&called);
            (called, anew)
        })
        .collect();
    let script = Script {
        path: wanted.path.clone(),
        changed,
        called_anew: wanted.anew,
        aside: reader.is_aside(&wanted.path),
        added: added.map(Arc::new),
        whole: said.whole,
        said,
    };
    Ok(Some(Looked { script, calls }))
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

#[cfg(test)]
mod tests {
    use super::*;

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
