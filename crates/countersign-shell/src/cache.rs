//! Parsed scripts and compiled expressions, kept between evaluations: a library sourced by every launch script
//! is read once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::limits::Limits;
use crate::pattern::bounded;
use crate::syntax::Script;
use crate::uses::{Telling, Uses};

/// Scripts by path and text, and what follows from them. Bounded; what was not used for longest goes first.
#[derive(Debug, Default)]
pub struct ScriptCache {
    limits: Limits,
    scripts: Mutex<Scripts>,
    regexes: Mutex<BTreeMap<String, Option<regex::Regex>>>,
    tellings: Mutex<Vec<(Vec<Arc<Script>>, Arc<Telling>)>>,
}

#[derive(Debug, Default)]
struct Scripts {
    by_path: FxHashMap<Arc<str>, Vec<Known>>,
    bytes: usize,
    /// Counts what was asked.
    clock: u64,
}

#[derive(Debug)]
struct Known {
    text: Arc<str>,
    script: Arc<Script>,
    used: u64,
}

/// Text of the scripts kept, in bytes; parsed they are some twenty times as large.
const MAX_BYTES: usize = 512 << 10;

/// Sets of scripts kept, of which it is known what keeps worlds apart.
const MAX_TELLINGS: usize = 64;

/// Expressions kept.
const MAX_REGEXES: usize = 256;

impl Scripts {
    fn find(&mut self, path: &str, text: &Arc<str>) -> Option<Arc<Script>> {
        self.clock += 1;
        let mut versions = self.by_path.get_mut(path)?.iter_mut();
        let known = versions.find(|known| Arc::ptr_eq(&known.text, text) || known.text == *text)?;
        known.used = self.clock;
        Some(known.script.clone())
    }

    fn keep(&mut self, text: &Arc<str>, script: &Arc<Script>) {
        self.bytes += text.len();
        self.by_path.entry(script.path.clone()).or_default().push(Known {
            text: text.clone(),
            script: script.clone(),
            used: self.clock,
        });
    }

    /// The script that was not used for longest, where there is too much; never the one that was used last.
    fn drop_oldest(&mut self) -> Option<Arc<Script>> {
        if self.bytes <= MAX_BYTES {
            return None;
        }
        let all = self.by_path.values().flatten();
        let used = all.map(|known| known.used).filter(|used| *used < self.clock).min()?;
        let versions = self
            .by_path
            .values_mut()
            .find(|all| all.iter().any(|known| known.used == used))?;
        let at = versions.iter().position(|known| known.used == used)?;
        let gone = versions.remove(at);
        if versions.is_empty() {
            self.by_path.remove(&gone.script.path);
        }
        self.bytes -= gone.text.len();
        Some(gone.script)
    }
}

impl ScriptCache {
    /// An empty cache; scripts are parsed with these limits.
    pub fn new(limits: Limits) -> ScriptCache {
        ScriptCache {
            limits,
            ..ScriptCache::default()
        }
    }

    /// Whether no script was asked for yet.
    pub fn is_empty(&self) -> bool {
        lock(&self.scripts).by_path.is_empty()
    }

    /// The parsed script: parsed now, or the same path and text as before.
    pub fn script(&self, path: &str, text: &Arc<str>) -> Arc<Script> {
        if let Some(known) = lock(&self.scripts).find(path, text) {
            return known;
        }
        let script = Arc::new(Script::parse(path, text, &self.limits));
        let mut scripts = lock(&self.scripts);
        scripts.keep(text, &script);
        while let Some(gone) = scripts.drop_oldest() {
            lock(&self.tellings).retain(|(all, _)| !all.iter().any(|script| Arc::ptr_eq(script, &gone)));
        }
        script
    }

    /// What keeps worlds apart in scripts that are read together.
    pub(crate) fn telling(&self, scripts: &[Arc<Script>]) -> Arc<Telling> {
        let same = |known: &[Arc<Script>]| {
            known.len() == scripts.len() && known.iter().zip(scripts).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let mut tellings = lock(&self.tellings);
        if let Some((_, known)) = tellings.iter().find(|(known, _)| same(known)) {
            return known.clone();
        }
        let uses: Vec<&Uses> = scripts.iter().map(|s| s.uses.get_or_init(|| Uses::of(s))).collect();
        let telling = Arc::new(Telling::of(&uses));
        if tellings.len() >= MAX_TELLINGS {
            tellings.remove(0);
        }
        tellings.push((scripts.to_vec(), telling.clone()));
        telling
    }

    /// A compiled expression; None when it is not one or is too large.
    pub(crate) fn regex(&self, text: &str) -> Option<regex::Regex> {
        let mut regexes = lock(&self.regexes);
        if let Some(known) = regexes.get(text) {
            return known.clone();
        }
        if regexes.len() >= MAX_REGEXES {
            regexes.clear();
        }
        let compiled = if text.len() > 4096 {
            None
        } else {
            bounded(regex::RegexBuilder::new(text))
        };
        regexes.insert(text.to_string(), compiled.clone());
        compiled
    }
}

/// Nothing here is left half changed by a panic.
fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_lately_is_kept_and_all_of_it_is_bounded() {
        let cache = ScriptCache::default();
        let text = |n: usize| -> Arc<str> { format!("echo {n}\n# {}\n", "x".repeat(MAX_BYTES / 8)).into() };
        let library: Arc<str> = "f() { :; }\n".into();
        let first = cache.script("lib.sh", &library);
        let once = cache.script("0.sh", &text(0));
        cache.telling(&[first.clone(), once.clone()]);
        for n in 1..20 {
            cache.script(&format!("{n}.sh"), &text(n));
            assert!(Arc::ptr_eq(&first, &cache.script("lib.sh", &library)));
        }
        assert!(lock(&cache.scripts).bytes <= MAX_BYTES);
        assert!(!Arc::ptr_eq(&once, &cache.script("0.sh", &text(0))));
        // Whatever is known of a script that is gone would keep it.
        assert!(lock(&cache.tellings).is_empty());
        let large: Arc<str> = "#".repeat(MAX_BYTES + 1).into();
        let large = [cache.script("large.sh", &large), cache.script("large.sh", &large)];
        assert!(Arc::ptr_eq(&large[0], &large[1]));
    }
}
