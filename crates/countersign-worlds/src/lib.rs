//! World files as evidence, without a server: for judging many pull requests of a clone, and for judging one that was
//! recorded. What a partial world does not say is unavailable in the evidence, never absent.
//!
//! [`read`] finds every pull request of a world that has a sign-off, and gathers its evidence from the world and from the
//! clone that it names, by the same choices as the gatherer for GitHub (`countersign_github::gather::wanted`). [`lay_over`]
//! gives a world the clone that it does not name.

pub mod accuracy;
mod blobs;
mod evidence;
mod files;
mod gaps;
mod record;
mod runs;
mod thread;
mod trace;
mod upstream;

pub use record::{Recorded, record};
pub use trace::{ReadFile, Trace, trace};

use std::path::Path;

use countersign_core::{Evidence, PrNumber, RepoName};
use countersign_policy::LoadedPolicy;
use countersign_sim::still::Still;
use countersign_sim::{SimError, World};

/// Why a world cannot be read as evidence.
#[derive(Debug, thiserror::Error)]
pub enum WorldsError {
    /// The world contradicts itself, or names what is not there.
    #[error(transparent)]
    World(#[from] SimError),
    /// Something in it has no usable form.
    #[error("{at}: {why}")]
    Form {
        /// Where.
        at: String,
        /// What is wrong with it, and what to do.
        why: String,
    },
    /// The pull request is not in the world.
    #[error("{repository}#{number} is not in this world: add it under `pulls`")]
    NoPull {
        /// The repository.
        repository: String,
        /// The number.
        number: u64,
    },
}

/// A pull request of a world as evidence.
#[derive(Debug)]
pub struct Case {
    /// The repository.
    pub repository: RepoName,
    /// The pull request.
    pub number: PrNumber,
    /// The facts.
    pub evidence: Evidence,
    /// Whether the world has a sign-off. Without one the evidence has an empty text by `ghost`, for checks that need none.
    pub signed: bool,
}

/// The pull requests that a world describes.
#[must_use]
pub fn pulls(world: &World) -> Vec<(String, u64)> {
    let all = world.repositories.iter();
    all.flat_map(|(name, spec)| spec.pulls.iter().map(move |pull| (name.clone(), pull.number)))
        .collect()
}

/// Gives a world the clone that it does not name: every repository under `repositories` without history of its own has the
/// clone's. In a partial world target branches that it does not name are set back to its clock.
pub fn lay_over(world: &mut World, clone: &Path) {
    for spec in world.repositories.values_mut() {
        if spec.clone.is_none() && spec.commits.is_empty() && spec.files.is_none() && spec.fork_of.is_none() {
            spec.clone = Some(clone.display().to_string());
        }
    }
    set_back(world);
}

/// In a partial world over a clone, target branches that it does not name are as they were at its clock: a clone is younger
/// than the day that a world tells of.
fn set_back(world: &mut World) {
    use countersign_sim::world::spell::Clock;
    let Clock::At(clock) = world.clock else { return };
    if !world.partial {
        return;
    }
    for spec in world.repositories.values_mut().filter(|spec| spec.clone.is_some()) {
        let default = spec.default_branch.clone().unwrap_or_else(|| "main".to_owned());
        let bases: Vec<String> = spec
            .pulls
            .iter()
            .map(|pull| {
                pull.base
                    .as_ref()
                    .and_then(|base| base.0.branch.clone())
                    .unwrap_or_else(|| default.clone())
            })
            .collect();
        for base in bases {
            let then = format!("{base}@{}", clock.format("%Y-%m-%dT%H:%M:%SZ"));
            spec.branches.entry(base).or_insert(then);
        }
    }
}

/// Evidence of one pull request of a world, at the end of the world's timeline.
///
/// # Errors
/// [`WorldsError`].
pub fn read(world: &World, repository: &str, number: u64, policy: &LoadedPolicy) -> Result<Case, WorldsError> {
    let mut world = world.clone();
    set_back(&mut world);
    let still = Still::of(&world)?;
    evidence::gather(still, &world, repository, number, &policy.policy)
}

/// Evidence of every pull request of a world.
///
/// # Errors
/// [`WorldsError`], of the first that cannot be read.
pub fn read_all(world: &World, policy: &LoadedPolicy) -> Result<Vec<Case>, WorldsError> {
    pulls(world)
        .iter()
        .map(|(repository, number)| read(world, repository, *number, policy))
        .collect()
}
