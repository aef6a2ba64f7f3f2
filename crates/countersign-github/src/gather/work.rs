//! The order of a gathering. Calls that do not need each other's answers are made at once; what follows from what:
//!
//! ```text
//! pull request, files, commits, conversation with the sign-off
//!   ├─ head's files ─────────────────────┐
//!   ├─ tip ─ tip's files, base's files ──┴─ upstream
//!   ├─ runs ─ jobs, artifacts ─ contents
//!   └─ roles
//! files of runs' commits, teams, earlier template
//! pull request and sign-off again
//! ```

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use countersign_codeowners::CodeOwners;
use countersign_core::evidence::{Blobs, ChangedFile, EVIDENCE_FORMAT, FileVersion, People, SignoffText, Upstream};
use countersign_core::{CommitSha, Evidence, Login, Observed};
use countersign_policy::Policy;
use countersign_signoff::{SignOff, Template};
use futures::future::{join, join3, join4};

use super::runs::{self, Wanted};
use super::trees::{Grown, Part, Trees};
use super::{GatherError, GatherRequest, Gathered, history, links, people, pull, signoff, upstream};
use crate::calls::Call;
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

const JUDGED: Part = Part {
    trusted: false,
    judged: true,
};

fn fatal(what: impl Into<String>) -> impl FnOnce(GitHubError) -> GatherError {
    let what = what.into();
    |source| GatherError::GitHub { what, source }
}

pub(crate) async fn gather(repo: &RepoClient, request: &GatherRequest<'_>) -> Result<Gathered, GatherError> {
    let repo = &repo.counted();
    let policy = &request.policy.policy;
    let number = request.pull_request;
    let (pull, files, commits, (comments, signed)) = join4(
        repo.read_pull(number),
        pull::list_files(repo, number),
        pull::list_commits(repo, number),
        signoff::conversation(repo, number, request.signoff),
    )
    .await;
    let pull = pull.map_err(fatal("the pull request"))?;
    let parted = commits.as_ref().ok().and_then(|list| pull::parted(&pull, list));
    let Some(signed) = signed.map_err(fatal("the sign-off"))? else {
        return Ok(Gathered::SignoffGone);
    };
    let files = pull::files(&pull, files);
    let commits = pull::commits(&pull, commits);
    let comments = match comments {
        Ok(list) => Observed::Present(pull::comments(list)),
        Err(error) => Observed::Unavailable(error.cause(format!("the comments of #{number}"))),
    };
    let own = links::signoff(&signed, policy);
    let said = comments.present().map_or(&[][..], Vec::as_slice);
    let named = links::runs(repo.name(), said, own.as_ref(), policy);
    let shas: Option<BTreeSet<CommitSha>> = commits
        .present()
        .map(|list| list.iter().map(|commit| commit.sha.clone()).collect());
    let wanted = Wanted {
        policy,
        pull: &pull,
        commits: shas.as_ref(),
        named: &named,
    };
    let trees = Trees {
        repo,
        paths: &policy.evidence,
    };

    let (content, found, permissions, text) = join4(
        content(repo, &trees, policy, &pull, parted.as_ref(), own.as_ref()),
        runs::runs(repo, &wanted),
        people::permissions(repo, said, signed.created_at, policy),
        signoff::text(repo, signed.clone()),
    )
    .await;
    let mut content = content?;
    let text = match text {
        // Deleted between its reading and the question who edited it.
        Err(GitHubError::NotFound { .. } | GitHubError::Gone { .. }) => return Ok(Gathered::SignoffGone),
        other => other.map_err(fatal("the sign-off"))?,
    };
    let changed = files.present().map(Vec::as_slice);
    let (previous_template, teams) = content
        .finish(repo, &trees, policy, &text, changed, &found.commits)
        .await;
    let organisation = people::organisation(repo, &text, &teams).await;

    let (after, signed_after) = join(repo.read_pull(number), signoff::again(repo, number, request.signoff)).await;
    let after = after.map_err(fatal("the pull request"))?;
    let Some(signed_after) = signed_after.map_err(fatal("the sign-off"))? else {
        return Ok(Gathered::SignoffGone);
    };
    if after.head.sha != pull.head.sha {
        return Ok(Gathered::HeadMoved {
            from: pull.head.sha,
            to: after.head.sha,
        });
    }
    if !signoff::same(&signed, &signed_after) {
        return Ok(Gathered::SignoffChanged);
    }
    if after.base.name != pull.base.name
        || after.draft != pull.draft
        || after.state != pull.state
        || labels(&after) != labels(&pull)
    {
        return Ok(Gathered::PullRequestChanged);
    }
    let evidence = Evidence {
        format: EVIDENCE_FORMAT,
        now: request.now,
        head_seen_at: request.head_seen_at.or(found.first_on_head).unwrap_or(request.now),
        repository: pull
            .base
            .repo
            .as_ref()
            .map_or_else(|| repo.name().clone(), |base| base.full_name.clone()),
        pull_request: pull::pull_request(&pull),
        signoff: text,
        trusted_sha: content.trusted,
        merge_base: content.merge_base,
        changed_files: files,
        commits,
        comments,
        people: People {
            permissions,
            signer_teams: teams,
            signer_in_organisation: organisation,
        },
        previous_template,
        trees: content.grown.trees,
        runs: found.runs,
        upstream: content.upstream,
        blobs: Blobs::new(content.grown.blobs),
    };
    Ok(Gathered::Evidence {
        evidence: Box::new(evidence),
        stats: repo.stats(),
    })
}

fn labels(pull: &wire::Pull) -> BTreeSet<&str> {
    pull.labels.iter().map(|label| label.name.as_str()).collect()
}

/// What is read from commits, and what follows from trusted files.
struct Content {
    trusted: CommitSha,
    tip_date: Option<DateTime<Utc>>,
    merge_base: Observed<CommitSha>,
    grown: Grown,
    upstream: BTreeMap<String, Observed<Upstream>>,
}

async fn content(
    repo: &RepoClient,
    trees: &Trees<'_>,
    policy: &Policy,
    pull: &wire::Pull,
    parted: Option<&CommitSha>,
    own: Option<&SignOff>,
) -> Result<Content, GatherError> {
    let head = &pull.head.sha;
    let (mut grown, base) = join(head_tree(trees, head), base(repo, trees, &pull.base.name, head, parted)).await;
    let (tip, merge_base) = base?;
    let trusted = tip.sha.clone();
    // One commit may be two or three of trusted tip, merge base and head; its tree then shows all that any of them shows.
    let same = |sha: &CommitSha| Part {
        trusted: *sha == trusted,
        judged: merge_base.present() == Some(sha) || sha == head,
    };
    let mut wanted = vec![(trusted.clone(), same(&trusted))];
    wanted.extend(
        merge_base
            .present()
            .filter(|sha| **sha != trusted)
            .map(|sha| (sha.clone(), same(sha))),
    );
    trees.read(&wanted, &mut grown).await;
    let mut content = Content {
        trusted,
        tip_date: tip.committed_at(),
        merge_base,
        grown,
        upstream: Default::default(),
    };
    let template = content
        .trusted_text(&policy.paths.template)
        .and_then(|text| Template::parse(&text, &policy.signoff).ok());
    content.upstream = linked(repo, policy, own, template.as_ref()).await;
    Ok(content)
}

async fn head_tree(trees: &Trees<'_>, head: &CommitSha) -> Grown {
    let mut grown = Grown::default();
    trees.read(&[(head.clone(), JUDGED)], &mut grown).await;
    grown
}

/// The target branch's tip, and where the head parted from it. Listings are read on the way, into the store: one that fails
/// is asked for again by the tree that needs it, and fails there with its cause.
async fn base(
    repo: &RepoClient,
    trees: &Trees<'_>,
    branch: &str,
    head: &CommitSha,
    parted: Option<&CommitSha>,
) -> Result<(wire::Commit, Observed<CommitSha>), GatherError> {
    let (tip, ()) = join(tip(repo, trees, branch), look(trees, parted)).await;
    let tip = tip?;
    let merge_base = match parted {
        Some(parted) => Observed::Present(parted.clone()),
        None => match compare(repo, trees, &tip.sha, head).await {
            Ok(sha) => Observed::Present(sha),
            Err(error) => Observed::Unavailable(error.cause("where the pull request parted from its target")),
        },
    };
    Ok((tip, merge_base))
}

/// The branch by its own name: no tag of the same name is taken for it.
async fn tip(repo: &RepoClient, trees: &Trees<'_>, branch: &str) -> Result<wire::Commit, GatherError> {
    let call = Call::get(repo.path(["branches", branch]), format!("target branch {branch}"));
    let tip = repo
        .read::<wire::Tip>(&call)
        .await
        .map_err(fatal("the target branch"))?
        .commit;
    look(trees, Some(&tip.sha)).await;
    Ok(tip)
}

async fn look(trees: &Trees<'_>, sha: Option<&CommitSha>) {
    if let Some(sha) = sha {
        drop(trees.listing(sha).await);
    }
}

async fn compare(
    repo: &RepoClient,
    trees: &Trees<'_>,
    trusted: &CommitSha,
    head: &CommitSha,
) -> Result<CommitSha, GitHubError> {
    // The second page has no files, of which this answer may have thousands of lines; who parted where is on every page.
    let range = format!("{trusted}...{head}");
    let what = format!("the comparison of {} and {}", trusted.short(), head.short());
    let call = Call::get(repo.path(["compare", &range]), what)
        .query("per_page", 1)
        .query("page", 2);
    let sha = repo.read::<wire::Comparison>(&call).await?.merge_base_commit.sha;
    look(trees, Some(&sha)).await;
    Ok(sha)
}

async fn linked(
    repo: &RepoClient,
    policy: &Policy,
    own: Option<&SignOff>,
    template: Option<&Template>,
) -> BTreeMap<String, Observed<Upstream>> {
    match own {
        Some(own) => upstream::upstream(repo, policy, own, template).await,
        None => BTreeMap::new(),
    }
}

impl Content {
    fn trusted_text(&self, path: &str) -> Option<std::sync::Arc<str>> {
        let tree = self.grown.trees.get(&self.trusted)?.present()?;
        let entry = tree.entries.get(path)?;
        self.grown.blobs.0.get(&entry.id).cloned()
    }

    /// What had to wait for the runs, for the time of the sign-off's last edit, and for the list of changed files.
    async fn finish(
        &mut self,
        repo: &RepoClient,
        trees: &Trees<'_>,
        policy: &Policy,
        text: &SignoffText,
        changed: Option<&[ChangedFile]>,
        commits: &[CommitSha],
    ) -> (Observed<FileVersion>, BTreeMap<String, Observed<bool>>) {
        let owners = policy.paths.codeowners.iter().find_map(|path| self.trusted_text(path));
        let owners = owners.map(|text| CodeOwners::parse(&text));
        let owners = owners.filter(|owners| people::teams_matter(&text.author, owners, changed));
        let history = history::previous(
            repo,
            &policy.paths.template,
            &self.trusted,
            self.tip_date,
            text.updated_at,
            policy.evidence.max_file_bytes,
        );
        let missing: Vec<_> = commits
            .iter()
            .filter(|sha| !self.grown.trees.contains_key(*sha))
            .map(|sha| (sha.clone(), JUDGED))
            .collect();
        let teams = teams(repo, owners.as_ref(), &text.author);
        let (previous, (), teams) = join3(history, trees.read(&missing, &mut self.grown), teams).await;
        (previous, teams)
    }
}

async fn teams(repo: &RepoClient, owners: Option<&CodeOwners>, signer: &Login) -> BTreeMap<String, Observed<bool>> {
    match owners {
        Some(owners) => people::teams(repo, signer, owners).await,
        None => BTreeMap::new(),
    }
}
