//! The order of a gathering. Calls that do not need each other's answers are made at once; what follows from what:
//!
//! ```text
//! pull request, sign-off, files, commits, comments
//!   ├─ head's files ──────────────────────────────┐
//!   ├─ tip ─ comparison, tip's files ─ base's files ┴─ template, teams, upstream
//!   ├─ runs ─ jobs, artifacts ─ contents
//!   └─ roles
//! files of runs' commits
//! pull request and sign-off again
//! ```

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use countersign_codeowners::CodeOwners;
use countersign_core::evidence::{Blobs, EVIDENCE_FORMAT, FileVersion, People, SignoffText, Upstream};
use countersign_core::{CommitSha, Evidence, Login, Observed};
use countersign_policy::Policy;
use countersign_signoff::{SignOff, Template};
use futures::future::{join, join4, join5};

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
    let (pull, signed, files, commits, comments) = join5(
        repo.read_pull(number),
        signoff::read(repo, number, request.signoff),
        pull::list_files(repo, number),
        pull::list_commits(repo, number),
        repo.read_comments(number),
    )
    .await;
    let pull = pull.map_err(fatal("the pull request"))?;
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
        content(repo, &trees, policy, &pull, &signed, own.as_ref()),
        runs::runs(repo, &wanted),
        people::permissions(repo, said, signed.created_at, policy),
        signoff::text(repo, signed.clone()),
    )
    .await;
    let mut content = content?;
    let text = text.map_err(fatal("the sign-off"))?;
    content.finish(repo, &trees, policy, &text, &found.commits).await;
    let organisation = people::organisation(repo, &text, &content.teams).await;

    let (after, signed_after) = join(repo.read_pull(number), signoff::read(repo, number, request.signoff)).await;
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
            signer_teams: content.teams,
            signer_in_organisation: organisation,
        },
        previous_template: content.previous_template,
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
    teams: BTreeMap<String, Observed<bool>>,
    upstream: BTreeMap<String, Observed<Upstream>>,
    previous_template: Observed<FileVersion>,
}

async fn content(
    repo: &RepoClient,
    trees: &Trees<'_>,
    policy: &Policy,
    pull: &wire::Pull,
    signed: &crate::info::ThreadItem,
    own: Option<&SignOff>,
) -> Result<Content, GatherError> {
    let head = &pull.head.sha;
    let (mut grown, base) = join(head_tree(trees, head), base(repo, trees, &pull.base.name, head)).await;
    let (trusted, compared) = base?;
    let tip_date = compared
        .as_ref()
        .ok()
        .and_then(|compared| compared.base_commit.committed_at());
    let merge_base = match compared {
        Ok(compared) => Observed::Present(compared.merge_base_commit.sha),
        Err(error) => Observed::Unavailable(error.cause("where the pull request parted from its target")),
    };
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
        tip_date,
        merge_base,
        grown,
        teams: Default::default(),
        upstream: Default::default(),
        previous_template: Observed::Absent,
    };
    let owners = policy
        .paths
        .codeowners
        .iter()
        .find_map(|path| content.trusted_text(path))
        .map(|text| CodeOwners::parse(&text));
    let template = content
        .trusted_text(&policy.paths.template)
        .and_then(|text| Template::parse(&text, &policy.signoff).ok());
    let (teams, found) = join(
        teams(repo, owners.as_ref(), signed.author.as_ref()),
        linked(repo, policy, own, template.as_ref()),
    )
    .await;
    content.teams = teams;
    content.upstream = found;
    Ok(content)
}

async fn head_tree(trees: &Trees<'_>, head: &CommitSha) -> Grown {
    let mut grown = Grown::default();
    trees.read(&[(head.clone(), JUDGED)], &mut grown).await;
    grown
}

/// The target branch's tip, and the head compared with it. Listings are read on the way, into the store: one that fails is
/// asked for again by the tree that needs it, and fails there with its cause.
async fn base(
    repo: &RepoClient,
    trees: &Trees<'_>,
    branch: &str,
    head: &CommitSha,
) -> Result<(CommitSha, Result<wire::Comparison, GitHubError>), GatherError> {
    let call = Call::get(
        repo.path(["git", "ref", "heads", branch]),
        format!("target branch {branch}"),
    );
    let trusted = repo
        .read::<wire::Ref>(&call)
        .await
        .map_err(fatal("the target branch"))?
        .object
        .sha;
    let (compared, _) = join(compare(repo, trees, &trusted, head), trees.listing(&trusted)).await;
    Ok((trusted, compared))
}

async fn compare(
    repo: &RepoClient,
    trees: &Trees<'_>,
    trusted: &CommitSha,
    head: &CommitSha,
) -> Result<wire::Comparison, GitHubError> {
    // The second page has no files, of which this answer may have thousands of lines; who parted where is on every page.
    let range = format!("{trusted}...{head}");
    let what = format!("the comparison of {} and {}", trusted.short(), head.short());
    let call = Call::get(repo.path(["compare", &range]), what)
        .query("per_page", 1)
        .query("page", 2);
    let compared = repo.read::<wire::Comparison>(&call).await?;
    drop(trees.listing(&compared.merge_base_commit.sha).await);
    Ok(compared)
}

async fn teams(
    repo: &RepoClient,
    owners: Option<&CodeOwners>,
    signer: Option<&Login>,
) -> BTreeMap<String, Observed<bool>> {
    match (owners, signer) {
        (Some(owners), Some(signer)) => people::teams(repo, signer, owners).await,
        _ => BTreeMap::new(),
    }
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

    /// What had to wait for the runs and for the time of the sign-off's last edit.
    async fn finish(
        &mut self,
        repo: &RepoClient,
        trees: &Trees<'_>,
        policy: &Policy,
        text: &SignoffText,
        commits: &[CommitSha],
    ) {
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
        let (previous, ()) = join(history, trees.read(&missing, &mut self.grown)).await;
        self.previous_template = previous;
    }
}
