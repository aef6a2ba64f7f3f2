//! Parsed scripts and compiled expressions, kept between evaluations: a library sourced by every launch script
//! is read once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::limits::Limits;
use crate::pattern::bounded;
use crate::syntax::Script;
use crate::uses::{Telling, Uses};

/// Scripts by path and text. Shared between threads; bounded.
#[derive(Debug, Default)]
pub struct ScriptCache {
    limits: Limits,
    scripts: Mutex<BTreeMap<Arc<str>, Vec<(Arc<str>, Arc<Script>)>>>,
    regexes: Mutex<BTreeMap<String, Option<regex::Regex>>>,
    tellings: Mutex<Vec<(Vec<Arc<Script>>, Arc<Telling>)>>,
}

/// Sets of scripts kept, of which it is known what keeps worlds apart.
const MAX_TELLINGS: usize = 64;

/// Scripts of one path kept (base and head of a change, and a few more).
const VERSIONS: usize = 4;

/// Expressions kept.
const MAX_REGEXES: usize = 1024;

/// Paths kept; above it the cache is emptied.
const MAX_PATHS: usize = 4096;

impl ScriptCache {
    /// An empty cache; scripts are parsed with these limits.
    pub fn new(limits: Limits) -> ScriptCache {
        ScriptCache {
            limits,
            ..ScriptCache::default()
        }
    }

    /// The parsed script: parsed now, or the same path and text as before.
    pub fn script(&self, path: &str, text: &Arc<str>) -> Arc<Script> {
        {
            let scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
            let known = scripts
                .get(path)
                .and_then(|v| v.iter().find(|(t, _)| Arc::ptr_eq(t, text) || t == text));
            if let Some((_, script)) = known {
                return script.clone();
            }
        }
        let script = Arc::new(Script::parse(path, text, &self.limits));
        let mut scripts = self.scripts.lock().unwrap_or_else(PoisonError::into_inner);
        if scripts.len() >= MAX_PATHS {
            scripts.clear();
        }
        let versions = scripts.entry(path.into()).or_default();
        if versions.len() >= VERSIONS {
            versions.remove(0);
        }
        versions.push((text.clone(), script.clone()));
        script
    }

    /// What keeps worlds apart in scripts that are read together.
    pub(crate) fn telling(&self, scripts: &[Arc<Script>]) -> Arc<Telling> {
        let same = |known: &[Arc<Script>]| {
            known.len() == scripts.len() && known.iter().zip(scripts).all(|(a, b)| Arc::ptr_eq(a, b))
        };
        let mut tellings = self.tellings.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut regexes = self.regexes.lock().unwrap_or_else(PoisonError::into_inner);
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
