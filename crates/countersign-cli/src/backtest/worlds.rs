//! World files beside a clone: for pull requests of which more is known than their commits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use countersign_backtest::Worlds;
use countersign_core::Evidence;
use countersign_core::digest::sha256_hex;
use countersign_policy::LoadedPolicy;
use countersign_sim::World;

/// The worlds of a folder, by the number of the pull request.
pub(super) struct Folder {
    known: BTreeMap<u64, Known>,
}

struct Known {
    file: PathBuf,
    digest: String,
    world: World,
    repository: String,
}

impl Folder {
    /// Reads every `.yaml`, `.yml` and `.json` file of a folder; a world that names no clone tells of this one.
    pub(super) fn open(folder: Option<&Path>, clone: &Path) -> Result<Self> {
        let mut known: BTreeMap<u64, Known> = BTreeMap::new();
        let Some(folder) = folder else {
            return Ok(Self { known });
        };
        let listing = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
        let mut files: Vec<PathBuf> = listing.filter_map(|entry| Some(entry.ok()?.path())).collect();
        files.retain(|file| {
            file.extension()
                .is_some_and(|ending| ending == "yaml" || ending == "yml" || ending == "json")
        });
        files.sort();
        let clone = std::fs::canonicalize(clone).with_context(|| format!("{} is no clone", clone.display()))?;
        for file in files {
            let bytes = std::fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?;
            let mut world = World::load(&file)?;
            countersign_worlds::lay_over(&mut world, &clone);
            for (repository, number) in countersign_worlds::pulls(&world) {
                if let Some(other) = known.get(&number) {
                    bail!(
                        "{} and {} both tell of #{number}: take one of them away",
                        other.file.display(),
                        file.display()
                    );
                }
                let one = Known {
                    file: file.clone(),
                    digest: sha256_hex(&bytes),
                    world: world.clone(),
                    repository,
                };
                known.insert(number, one);
            }
        }
        Ok(Self { known })
    }
}

impl Worlds for Folder {
    fn numbers(&self) -> Vec<u64> {
        self.known.keys().copied().collect()
    }

    fn digest(&self, number: u64) -> Option<String> {
        self.known.get(&number).map(|known| known.digest.clone())
    }

    fn evidence(&self, number: u64, policy: &LoadedPolicy) -> Result<(Evidence, bool), String> {
        let known = self.known.get(&number).ok_or("no world tells of it")?;
        let case = countersign_worlds::read(&known.world, &known.repository, number, policy)
            .map_err(|error| format!("{}: {error}", known.file.display()))?;
        Ok((case.evidence, case.signed))
    }
}
