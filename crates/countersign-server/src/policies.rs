//! The policies in force. A broken file keeps the one before in force and says so (product page, section 11).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use countersign_policy::{LoadError, LoadedPolicy};

/// Loads policies from a folder and keeps them.
#[derive(Debug)]
pub struct Policies {
    folder: PathBuf,
    loaded: RwLock<BTreeMap<String, Arc<LoadedPolicy>>>,
}

/// Loads one policy from a folder and checks the parameters of its checks.
///
/// # Errors
/// [`LoadError`] with file, line and remedy.
pub fn load_from(folder: &Path, name: &str) -> Result<LoadedPolicy, LoadError> {
    let source = |file: &str| {
        let path = folder.join(format!("{file}.yaml"));
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let policy = countersign_policy::load(name, &source)?;
    countersign_checks::validate(&policy)?;
    Ok(policy)
}

impl Policies {
    /// Over a folder; loads nothing yet.
    #[must_use]
    pub fn new(folder: PathBuf) -> Self {
        Self {
            folder,
            loaded: RwLock::default(),
        }
    }

    /// The policy in force under a name: loaded when first asked for.
    ///
    /// # Errors
    /// Only when it was never loaded: [`LoadError`].
    pub fn get(&self, name: &str) -> Result<Arc<LoadedPolicy>, LoadError> {
        if let Some(policy) = self.read().get(name) {
            return Ok(Arc::clone(policy));
        }
        let policy = Arc::new(load_from(&self.folder, name)?);
        self.write().insert(name.to_owned(), Arc::clone(&policy));
        Ok(policy)
    }

    /// Reads all loaded policies anew. Those that are broken now stay as they were; their errors are returned.
    pub fn reload(&self) -> Vec<LoadError> {
        let names: Vec<String> = self.read().keys().cloned().collect();
        let mut errors = Vec::new();
        for name in names {
            match load_from(&self.folder, &name) {
                Ok(policy) => {
                    self.write().insert(name, Arc::new(policy));
                }
                Err(error) => {
                    tracing::error!(policy.name = %name, %error, "the policy file is broken; the one before stays in force");
                    metrics::counter!("countersign_policy_reload_failures_total").increment(1);
                    errors.push(error);
                }
            }
        }
        errors
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, BTreeMap<String, Arc<LoadedPolicy>>> {
        self.loaded.read().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, BTreeMap<String, Arc<LoadedPolicy>>> {
        self.loaded.write().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMO: &str = include_str!("../../countersign-cli/demo/policy.yaml");

    #[test]
    fn a_broken_policy_leaves_the_one_before_in_force() {
        let folder = std::env::temp_dir().join(format!("countersign-policies-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("demo.yaml");
        std::fs::write(&file, DEMO).unwrap();
        let policies = Policies::new(folder.clone());
        let before = policies.get("demo").unwrap().digest.clone();
        std::fs::write(&file, format!("{DEMO}\nno_such_field: 1\n")).unwrap();
        let errors = policies.reload();
        assert_eq!(errors.len(), 1);
        assert!(errors[0].to_string().contains("no_such_field"), "{}", errors[0]);
        assert_eq!(policies.get("demo").unwrap().digest, before);
        std::fs::write(&file, DEMO.replacen("settle_seconds: 0", "settle_seconds: 1", 1)).unwrap();
        assert!(policies.reload().is_empty());
        assert_ne!(policies.get("demo").unwrap().digest, before);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
