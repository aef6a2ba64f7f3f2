//! The way from evidence to an outcome: a check run by itself, with the files that it read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use countersign_checks::{Context, checks, policy_then};
use countersign_core::evidence::{BlobSource, Blobs};
use countersign_core::outcome::CheckReport;
use countersign_core::{BlobId, CommitSha, Evidence, Observed};
use countersign_policy::LoadedPolicy;

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReadFile {
    /// Its path.
    pub path: String,
    /// The commit.
    pub commit: CommitSha,
    /// What that commit is here: `target branch`, `head`, `merge base`, `commit of a run`.
    pub role: &'static str,
    /// Address for readers.
    pub url: String,
}

/// One check, run by itself.
#[derive(Debug)]
pub struct Trace {
    /// Its name in the program.
    pub slug: String,
    /// What it says of itself, in Markdown.
    pub doc: String,
    /// What it answered, before the policy's level and people's answers.
    pub report: CheckReport,
    /// The files that it read, or that facts were derived from which it asked for.
    pub files: Vec<ReadFile>,
}

struct Watched {
    inner: Blobs,
    seen: Arc<Mutex<BTreeSet<BlobId>>>,
}

impl BlobSource for Watched {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        // A poisoned lock means that another reader panicked; the set is as good as before.
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(id.clone());
        self.inner.get(id)
    }
}

/// Runs the checks of a row, each by itself; `slug` may be `a+b` or one of them. Checks that the program does not have are
/// left out.
#[must_use]
pub fn trace(evidence: &Evidence, policy: &LoadedPolicy, slug: &str) -> Vec<Trace> {
    slug.split('+').filter_map(|slug| one(evidence, policy, slug)).collect()
}

fn one(evidence: &Evidence, policy: &LoadedPolicy, slug: &str) -> Option<Trace> {
    let check = checks::find(slug)?;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let mut watched = evidence.clone();
    watched.blobs = Blobs::new(Watched {
        inner: evidence.blobs.clone(),
        seen: Arc::clone(&seen),
    });
    let then = policy_then(&watched, policy);
    let report = check.run(&Context::new(&watched, &then));
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    Some(Trace {
        slug: slug.to_owned(),
        doc: check.doc(),
        report,
        files: files(evidence, &seen),
    })
}

/// Where contents that were read stand: in the first of target branch, head, merge base that has them.
fn files(evidence: &Evidence, seen: &BTreeSet<BlobId>) -> Vec<ReadFile> {
    let mut order: Vec<(&CommitSha, &'static str)> = vec![
        (&evidence.trusted_sha, "target branch"),
        (&evidence.pull_request.head_sha, "head"),
    ];
    order.extend(evidence.merge_base.present().map(|sha| (sha, "merge base")));
    order.extend(evidence.trees.keys().map(|sha| (sha, "commit of a run")));
    let mut found: BTreeMap<&BlobId, ReadFile> = BTreeMap::new();
    for (sha, role) in order {
        let Some(tree) = evidence.trees.get(sha).and_then(Observed::present) else {
            continue;
        };
        for (path, entry) in tree.entries.iter().filter(|(_, entry)| seen.contains(&entry.id)) {
            found.entry(&entry.id).or_insert_with(|| ReadFile {
                path: path.clone(),
                commit: sha.clone(),
                role,
                url: evidence.file_url(sha, path, None),
            });
        }
    }
    let mut files: Vec<ReadFile> = found.into_values().collect();
    files.sort_by(|a, b| {
        (a.role != "target branch", a.role != "head", &a.path).cmp(&(
            b.role != "target branch",
            b.role != "head",
            &b.path,
        ))
    });
    files
}
