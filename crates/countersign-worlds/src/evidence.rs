//! One pull request of a world as evidence, in the order of the gatherer for GitHub.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use countersign_codeowners::CodeOwners;
use countersign_core::evidence::{
    Association, Blobs, ChangeStatus, ChangedFile, Commit, EVIDENCE_FORMAT, People, Permission, PullRequest, Role,
    SignoffText, Tree,
};
use countersign_core::{CommitSha, Evidence, Observed, PrNumber, RepoName};
use countersign_github::gather::wanted::{self, Part};
use countersign_policy::Policy;
use countersign_signoff::Template;
use countersign_sim::World;
use countersign_sim::still::{Fact, Still, StillChange, StillPull};

use crate::blobs::Contents;
use crate::gaps::Gaps;
use crate::{Case, WorldsError, files, runs, thread, upstream};

const JUDGED: Part = Part {
    trusted: false,
    judged: true,
};

fn form(at: impl Into<String>, why: impl Into<String>) -> WorldsError {
    WorldsError::Form {
        at: at.into(),
        why: why.into(),
    }
}

fn sha(text: &str, at: &str) -> Result<CommitSha, WorldsError> {
    text.parse()
        .map_err(|_| form(at, format!("`{text}` is not a full SHA")))
}

pub(crate) fn gather(
    mut still: Still,
    world: &World,
    repository: &str,
    number: u64,
    policy: &Policy,
) -> Result<Case, WorldsError> {
    let name: RepoName = repository
        .parse()
        .map_err(|_| form(repository, "a repository is named owner/name"))?;
    let missing = || WorldsError::NoPull {
        repository: repository.to_owned(),
        number,
    };
    let Fact::Known(pull) = still.pull(repository, number) else {
        return Err(missing());
    };
    let gaps = &Gaps(world);
    let now = still.now();
    let spec = world
        .repositories
        .get(repository)
        .and_then(|spec| spec.pulls.iter().find(|pull| pull.number == number));
    let asked = spec.and_then(|spec| spec.signoff.as_deref());
    let newest = thread::newest(&still, repository, number, asked, policy)?;
    let signed = newest.is_some();
    let own = newest.as_ref().and_then(|(item, _)| wanted::signoff(item, policy));
    let text = match newest {
        Some((_, text)) => text,
        None => thread::nobody(now, &pull.url)?,
    };

    let head = sha(&pull.head_sha, "head")?;
    let trusted = match still.tip(repository, &pull.base_ref)? {
        Fact::Known(tip) => sha(&tip, "base")?,
        _ => {
            return Err(form(
                format!("{repository}#{number}.base"),
                format!(
                    "the world does not say where `{}` stands: name it under `branches`",
                    pull.base_ref
                ),
            ));
        }
    };
    let parted = still.merge_base(repository, trusted.as_str(), head.as_str())?;
    let merge_base = match parted {
        Some(base) => Observed::Present(sha(&base, "merge base")?),
        None => gaps.missing("where the pull request parted from its target"),
    };
    let changed = gaps
        .observed(
            &format!("the changed files of #{number}"),
            still.changes(repository, number)?,
        )
        .map(|list| list.iter().map(change).collect::<Vec<_>>());
    let commits = match gaps.observed(&format!("the commits of #{number}"), still.commits(repository, number)?) {
        Observed::Present(list) => {
            let commit = |commit: &countersign_sim::still::StillCommit| -> Result<Commit, WorldsError> {
                Ok(Commit {
                    sha: sha(&commit.sha, "commits")?,
                    headline: commit.headline.clone(),
                    committed_at: commit.committed_at,
                    parents: commit.parent_count,
                })
            };
            Observed::Present(list.iter().map(commit).collect::<Result<Vec<_>, _>>()?)
        }
        other => other.map(|_| Vec::new()),
    };
    let comments = thread::comments(&still, gaps, repository, number)?;
    let said = comments.present().map_or(&[][..], Vec::as_slice);
    let named = wanted::named_runs(&name, said, own.as_ref(), policy);
    let own_commits: Option<BTreeSet<CommitSha>> = commits
        .present()
        .map(|list| list.iter().map(|commit| commit.sha.clone()).collect());
    let found = runs::runs(&still, gaps, repository, &head, own_commits.as_ref(), &named, policy)?;
    let permissions = permissions(&still, gaps, repository, said, &text, policy);

    let mut trees: BTreeMap<CommitSha, Observed<Tree>> = BTreeMap::new();
    let mut wanted_trees = vec![head.clone(), trusted.clone()];
    wanted_trees.extend(merge_base.present().cloned());
    for commit in wanted_trees {
        let part = Part {
            trusted: commit == trusted,
            judged: commit == head || merge_base.present() == Some(&commit),
        };
        let tree = files::tree(&mut still, gaps, repository, &commit, part, &policy.evidence)?;
        trees.insert(commit, tree);
    }
    for commit in found.commits {
        if !trees.contains_key(&commit) {
            let tree = files::tree(&mut still, gaps, repository, &commit, JUDGED, &policy.evidence)?;
            trees.insert(commit, tree);
        }
    }
    let trusted_text = |still: &mut Still, path: &str| -> Result<Option<Arc<str>>, WorldsError> {
        let Some(blob) = still.blob_at(repository, trusted.as_str(), path)? else {
            return Ok(None);
        };
        let bytes = still
            .blob(repository, &blob)?
            .filter(|bytes| bytes.len() as u64 <= policy.evidence.max_file_bytes);
        Ok(bytes
            .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok())
            .map(Arc::from))
    };
    let template =
        trusted_text(&mut still, &policy.paths.template)?.and_then(|text| Template::parse(&text, &policy.signoff).ok());
    let upstream = match &own {
        Some(own) => upstream::upstream(&mut still, gaps, policy, own, template.as_ref())?,
        None => BTreeMap::new(),
    };
    let previous_template = files::previous(
        &mut still,
        gaps,
        repository,
        &policy.paths.template,
        &trusted,
        text.updated_at,
        policy.evidence.max_file_bytes,
    )?;
    let mut owners = None;
    for path in &policy.paths.codeowners {
        if let Some(text) = trusted_text(&mut still, path)? {
            owners = Some(CodeOwners::parse(&text));
            break;
        }
    }
    let signer_teams = teams(
        &still,
        gaps,
        owners.as_ref(),
        &text,
        changed.present().map(Vec::as_slice),
    );
    let signer_in_organisation = organisation(&still, gaps, &name, &text, &signer_teams);

    let head_seen_at = spec.and_then(|spec| spec.head_seen_at);
    let evidence = Evidence {
        format: EVIDENCE_FORMAT,
        now,
        head_seen_at: head_seen_at.or(found.first_on_head).unwrap_or(now),
        pull_request: pull_request(number, &pull, &head)?,
        signoff: text,
        trusted_sha: trusted,
        merge_base,
        changed_files: changed,
        commits,
        comments,
        people: People {
            permissions,
            signer_teams,
            signer_in_organisation,
        },
        previous_template,
        trees,
        runs: found.runs,
        upstream,
        blobs: Blobs::new(Contents::new(
            still.into_store(),
            repository,
            policy.evidence.max_file_bytes,
        )),
        repository: name.clone(),
    };
    Ok(Case {
        repository: name,
        number: PrNumber(number),
        evidence,
        signed,
    })
}

fn change((path, previous, status): &StillChange) -> ChangedFile {
    ChangedFile {
        path: path.clone(),
        previous_path: previous.clone(),
        status: match *status {
            "added" => ChangeStatus::Added,
            "removed" => ChangeStatus::Removed,
            "renamed" => ChangeStatus::Renamed,
            "copied" => ChangeStatus::Copied,
            "modified" => ChangeStatus::Modified,
            "unchanged" => ChangeStatus::Unchanged,
            _ => ChangeStatus::Changed,
        },
    }
}

fn pull_request(number: u64, pull: &StillPull, head: &CommitSha) -> Result<PullRequest, WorldsError> {
    Ok(PullRequest {
        number: PrNumber(number),
        title: pull.title.clone(),
        body: pull.body.clone(),
        author: thread::login(&pull.author)?,
        draft: pull.draft,
        open: pull.open,
        merged: pull.merged_at.is_some(),
        base_ref: pull.base_ref.clone(),
        head_sha: head.clone(),
        head_ref: pull.head_ref.clone(),
        head_repository: pull.head_repo.parse().ok(),
        labels: match &pull.labels {
            Fact::Known(labels) => labels.clone(),
            _ => Vec::new(),
        },
        url: pull.url.clone(),
    })
}

fn permissions(
    still: &Still,
    gaps: &Gaps<'_>,
    repository: &str,
    comments: &[countersign_core::evidence::Comment],
    text: &SignoffText,
    policy: &Policy,
) -> BTreeMap<String, Observed<Permission>> {
    let mut found = BTreeMap::new();
    for login in wanted::answerers(comments, text.created_at, policy) {
        let permission = match still.permission(repository, login.as_str()) {
            Fact::Known((permission, role)) => Observed::Present(Permission {
                role: wanted::role(&permission, Some(&role)),
            }),
            Fact::Nothing => Observed::Present(Permission { role: Role::None }),
            other => gaps
                .observed(&format!("the role of {login}"), other)
                .map(|_| Permission { role: Role::None }),
        };
        found.insert(login.as_str().to_ascii_lowercase(), permission);
    }
    found
}

fn teams(
    still: &Still,
    gaps: &Gaps<'_>,
    owners: Option<&CodeOwners>,
    text: &SignoffText,
    changed: Option<&[ChangedFile]>,
) -> BTreeMap<String, Observed<bool>> {
    let Some(owners) = owners.filter(|owners| wanted::teams_matter(&text.author, owners, changed)) else {
        return BTreeMap::new();
    };
    let member = |org: &str, slug: &str| {
        gaps.observed(
            &format!("the members of team {org}/{slug}"),
            still.in_team(org, slug, text.author.as_str()),
        )
    };
    wanted::named_teams(owners)
        .into_iter()
        .map(|(org, slug)| (format!("{org}/{slug}"), member(&org, &slug)))
        .collect()
}

fn organisation(
    still: &Still,
    gaps: &Gaps<'_>,
    name: &RepoName,
    text: &SignoffText,
    teams: &BTreeMap<String, Observed<bool>>,
) -> Option<Observed<bool>> {
    if matches!(text.association, Association::Owner | Association::Member) {
        return Some(Observed::Present(true));
    }
    if !teams.values().any(|team| matches!(team, Observed::Unavailable(_))) {
        return None;
    }
    let what = format!("the members of {}", name.owner());
    Some(gaps.observed(&what, still.in_organisation(name.owner(), text.author.as_str())))
}
