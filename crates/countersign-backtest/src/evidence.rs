//! A head of a clone as evidence. What a clone cannot hold is unavailable; there is no sign-off.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::DateTime;
use countersign_core::evidence::{
    Association, BlobSource, Blobs, EVIDENCE_FORMAT, People, PullRequest, SignoffText, Tree,
};
use countersign_core::{
    BlobId, CauseKind, CommitSha, Evidence, Observed, PrNumber, RepoName, SignoffKey, SignoffPlace,
};
use countersign_policy::Policy;

use crate::graph::{Graph, Head};
use crate::source::Source;

/// Who signs where nobody has: the account that GitHub shows for deleted ones.
const NOBODY: &str = "ghost";

/// One worker's source, as evidence wants to hold it.
struct Shared(Arc<Source>);

impl BlobSource for Shared {
    fn blob(&self, id: &BlobId) -> Observed<Arc<str>> {
        self.0.blob(id)
    }
}

fn unsaid<T>(what: &str) -> Observed<T> {
    Observed::unavailable(CauseKind::NotRecorded, what, "a clone does not hold it")
}

/// The facts of a head, or why it cannot be judged.
pub(crate) fn of_head(
    head: &Head,
    graph: &Graph,
    source: &Arc<Source>,
    policy: &Policy,
    repository: &RepoName,
) -> Result<Evidence, String> {
    let place = head
        .trusted
        .ok_or("the head is older than the target branch, so nothing of that day is trusted")?;
    let trusted = graph.main_at(place).ok_or("the target branch has no such commit")?;
    let base = graph
        .merge_base(place, &head.sha)
        .ok_or("the head has no commit in common with the target branch")?;
    let tree_of = |sha: &str| {
        graph
            .tree(sha)
            .ok_or_else(|| format!("the clone lacks the commit {sha}"))
    };
    let parse = |sha: &str| sha.parse::<CommitSha>().map_err(|error| error.to_string());
    let (head_tree, base_tree) = (tree_of(&head.sha)?, tree_of(base)?);
    let changed = source
        .changes(base_tree, head_tree)
        .map_err(|error| error.to_string())?;
    // One listing serves a commit in each of its roles, so each covers what is trusted and what is judged.
    let mut covers = policy.evidence.judged.clone();
    covers.extend(policy.evidence.trusted.iter().cloned());
    covers.sort();
    covers.dedup();
    let mut trees = BTreeMap::new();
    for sha in [trusted, base, &head.sha] {
        let commit = parse(sha)?;
        let entries = source
            .listing(tree_of(sha)?, &covers)
            .map_err(|error| error.to_string())?;
        source.read_ahead(&entries);
        let tree = Tree {
            commit: commit.clone(),
            covers: covers.clone(),
            entries,
        };
        trees.insert(commit, Observed::Present(tree));
    }
    let now = DateTime::from_timestamp(head.time, 0).ok_or("the head's date is none")?;
    let url = format!("https://github.com/{repository}/pull/{}", head.number);
    Ok(Evidence {
        format: EVIDENCE_FORMAT,
        now,
        head_seen_at: now,
        repository: repository.clone(),
        pull_request: PullRequest {
            number: PrNumber(head.number),
            title: head.title.clone(),
            body: String::new(),
            author: None,
            draft: false,
            open: true,
            merged: false,
            base_ref: "main".into(),
            head_sha: parse(&head.sha)?,
            head_ref: "head".into(),
            head_repository: Some(repository.clone()),
            labels: Vec::new(),
            url: url.clone(),
        },
        signoff: SignoffText {
            key: SignoffKey {
                place: SignoffPlace::IssueComment,
                id: 1,
            },
            author: NOBODY.parse().map_err(|_| "the word for nobody is no login")?,
            author_is_bot: false,
            association: Association::None,
            body: String::new(),
            created_at: now,
            updated_at: now,
            edited_by_other: None,
            url,
        },
        trusted_sha: parse(trusted)?,
        merge_base: Observed::Present(parse(base)?),
        changed_files: Observed::Present(changed),
        commits: unsaid("the commits of the pull request"),
        comments: unsaid("the comments"),
        people: People {
            permissions: BTreeMap::new(),
            signer_teams: BTreeMap::new(),
            signer_in_organisation: None,
        },
        previous_template: Observed::Absent,
        trees,
        runs: unsaid("the workflow runs"),
        upstream: BTreeMap::new(),
        blobs: Blobs::new(Shared(source.clone())),
    })
}
