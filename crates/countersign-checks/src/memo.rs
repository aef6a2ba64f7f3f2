//! What follows from the contents of files alone, kept: within one judgement, which asks for the same configs several times, and
//! between judgements of one policy, of which many share a merge base. Forgetting changes nothing but the time it takes.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use countersign_core::{BlobId, Cause, CommitSha, Evidence};
use countersign_matrix::{Configs, Files as _, MatrixRules, Near};
use countersign_policy::{Policy, ScriptRules};
use countersign_records::changelog::{ChangelogRules, History};
use countersign_records::models::{self, ModelsError, ModelsRules, ModelsTable};
use countersign_shell::ScriptCache;

use crate::facts::acts::Patterns;
use crate::facts::tree::TreeFiles;
use crate::share::locked;

/// How many revisions' configs are kept. One judgement needs three: trusted, merge base and head.
const KEPT: usize = 6;

/// How many threads' parsed scripts are kept.
const KEPT_SCRIPTS: usize = 2;

/// What configs follow from.
#[derive(PartialEq)]
struct Key {
    /// The rules of reading: they are as old as the generator at the merge base.
    rules: MatrixRules,
    /// Ids of the files that are read, in the order of the layout; `None` for a file that is not there.
    files: Vec<Option<String>>,
}

/// See the module. All copies share what they know. It belongs to one policy: another has other rules of reading.
#[derive(Clone, Default)]
pub struct Memo {
    kept: Arc<Kept>,
    /// Held while configs are read: who asks for the same ones meanwhile waits for them.
    reading: Arc<Mutex<()>>,
}

#[derive(Default)]
struct Kept {
    configs: Mutex<Vec<(Key, Read)>>,
    histories: Mutex<Vec<(BlobId, Arc<History>)>>,
    models: Mutex<Vec<(Arc<str>, Models)>>,
    patterns: Mutex<Vec<(ScriptRules, Arc<Patterns>)>>,
    scripts: Mutex<Vec<ScriptCache>>,
}

/// Parsed scripts for one thread, given back with this value. Each thread has its own: counting who holds a part of a script
/// would cost several of them more than reading it once each.
pub(crate) struct Lent {
    scripts: ScriptCache,
    kept: Arc<Kept>,
}

impl Deref for Lent {
    type Target = ScriptCache;

    fn deref(&self) -> &ScriptCache {
        &self.scripts
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut others = locked(&self.kept.scripts);
        // One that was not needed must not take the place of one that was.
        if others.len() < KEPT_SCRIPTS && !self.scripts.is_empty() {
            others.push(std::mem::take(&mut self.scripts));
        }
    }
}

/// Configs, and the texts that they were read from: master configs, then the runners file.
type Read = (Arc<Configs>, Arc<[Option<Arc<str>>]>);

/// A models file, or why it cannot be read.
type Models = Result<Arc<ModelsTable>, ModelsError>;

/// The one with a key, which moves to the front.
fn find<K: PartialEq, V: Clone>(kept: &Mutex<Vec<(K, V)>>, key: &K) -> Option<V> {
    let mut kept = locked(kept);
    let at = kept.iter().position(|(known, _)| known == key)?;
    kept.get_mut(..=at)?.rotate_right(1);
    kept.first().map(|(_, value)| value.clone())
}

/// Puts one to the front; the one that was asked for longest ago goes.
fn keep<K, V>(kept: &Mutex<Vec<(K, V)>>, key: K, value: V) {
    let mut kept = locked(kept);
    kept.truncate(KEPT - 1);
    kept.insert(0, (key, value));
}

/// Forgets the one that was asked for longest ago, of those that a newer one resembles; of all if there is none.
fn forget<T>(kept: &mut Vec<T>, alike: impl Fn(&T, &T) -> bool) {
    let resembled = |at: &usize| {
        let (newer, older) = kept.split_at(*at);
        older
            .first()
            .is_some_and(|older| newer.iter().any(|newer| alike(older, newer)))
    };
    let at = (0..kept.len())
        .rev()
        .find(resembled)
        .unwrap_or(kept.len().saturating_sub(1));
    if at < kept.len() {
        kept.remove(at);
    }
}

impl fmt::Debug for Memo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Memo")
    }
}

impl Memo {
    /// The same memory for one judgement more, which waits for none of the others.
    pub(crate) fn for_one(&self) -> Self {
        Self {
            kept: self.kept.clone(),
            reading: Arc::default(),
        }
    }

    /// Master configs and runners of a commit.
    ///
    /// # Errors
    /// What could not be read; that is not kept.
    pub fn configs(&self, evidence: &Evidence, policy: &Policy, commit: &CommitSha) -> Result<Arc<Configs>, Cause> {
        let files = TreeFiles::new(evidence, commit)?;
        let layout = &policy.layout;
        let paths = layout.masters.iter().chain([&layout.runners]);
        // What the listing does not cover is not known to be missing: reading it gives the cause.
        let covered = evidence.trees.get(commit).and_then(|tree| tree.present());
        let covered = covered.is_some_and(|tree| {
            layout
                .masters
                .iter()
                .chain([&layout.runners])
                .all(|path| tree.covers(path))
        });
        let key = Key {
            rules: policy.matrix.clone(),
            files: paths.map(|path| files.id(path).map(str::to_owned)).collect(),
        };
        let _reading = locked(&self.reading);
        if covered && let Some((known, _)) = find(&self.kept.configs, &key) {
            return Ok(known);
        }
        // The one that was used last resembles this one most: a neighbour in time, or the other side of a change. Entries
        // with problems, or read by other rules, are judged anew.
        let near = {
            let kept = locked(&self.kept.configs);
            let work =
                |(known, (configs, _)): &&(Key, Read)| (known.rules != key.rules, configs.masters.problems.len());
            kept.iter()
                .min_by_key(work)
                .map(|(known, read)| (known.rules == key.rules, read.clone()))
        };
        let configs = Arc::new(match &near {
            Some((same_rules, (configs, texts))) => {
                let near = Near {
                    configs,
                    texts,
                    same_rules: *same_rules,
                };
                Configs::read_beside(&files, layout, &policy.matrix, near)
            }
            None => Configs::read(&files, layout, &policy.matrix),
        });
        if let Some(cause) = files.unread() {
            return Err(cause);
        }
        // Which files exist beside these is asked of the tree when entries are resolved, not here.
        if covered {
            let paths = layout.masters.iter().chain([&layout.runners]);
            let texts = paths.map(|path| files.read(path)).collect();
            let mut kept = locked(&self.kept.configs);
            if kept.len() >= KEPT {
                forget(&mut kept, |(older, _), (newer, _)| older.rules == newer.rules);
            }
            kept.insert(0, (key, (configs.clone(), texts)));
        }
        Ok(configs)
    }

    /// Parsed scripts that no other thread uses meanwhile.
    pub(crate) fn scripts(&self) -> Lent {
        Lent {
            scripts: locked(&self.kept.scripts).pop().unwrap_or_default(),
            kept: self.kept.clone(),
        }
    }

    /// What the rules about scripts look for.
    pub fn patterns(&self, rules: &ScriptRules) -> Arc<Patterns> {
        find(&self.kept.patterns, rules).unwrap_or_else(|| {
            let patterns = Arc::new(Patterns::new(rules));
            keep(&self.kept.patterns, rules.clone(), patterns.clone());
            patterns
        })
    }

    /// A models file, read.
    ///
    /// # Errors
    /// Why it cannot be.
    pub(crate) fn models(&self, text: &Arc<str>, rules: &ModelsRules) -> Models {
        find(&self.kept.models, text).unwrap_or_else(|| {
            let read = models::read(text, rules).map(Arc::new);
            keep(&self.kept.models, text.clone(), read.clone());
            read
        })
    }

    /// The changelog as it was, read; its id must be that of the text.
    pub fn history(&self, id: &BlobId, text: &str, rules: &ChangelogRules) -> Arc<History> {
        find(&self.kept.histories, id).unwrap_or_else(|| {
            // A changelog grows: the one that was used last is often the beginning of this one.
            let near = locked(&self.kept.histories).first().map(|(_, near)| near.clone());
            let history = Arc::new(match near {
                Some(near) => near.read_younger(text.as_bytes(), rules),
                None => History::read(text.as_bytes(), rules),
            });
            keep(&self.kept.histories, id.clone(), history.clone());
            history
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_its_kind_is_forgotten_last() {
        let mut kept = vec!["a1", "b1", "a2", "c1"];
        let kind = |one: &&str| one.chars().next();
        let alike = |one: &&str, other: &&str| kind(one) == kind(other);
        forget(&mut kept, alike);
        assert_eq!(kept, ["a1", "b1", "c1"]);
        forget(&mut kept, alike);
        assert_eq!(kept, ["a1", "b1"]);
        kept.clear();
        forget(&mut kept, alike);
        assert!(kept.is_empty());
    }
}
