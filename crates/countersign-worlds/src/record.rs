//! Evidence as a partial world: what was gathered of a pull request, in the format of world files, from which [`crate::read`]
//! makes the same evidence again, to the byte, and so the same verdict.
//!
//! Commits keep their SHAs but only the files that the policy asked for. What looks like a secret in a text that people
//! wrote is taken out; credentials of the App are not part of evidence at all.

mod texts;
mod tree;

use std::collections::BTreeMap;

use countersign_core::evidence::{Artifact, Job, Page, PullState, RunStatus, Upstream, UpstreamPull, WorkflowRun};
use countersign_core::{Cause, Evidence, Observed};
use countersign_policy::{Policy, UpstreamSource};
use countersign_sim::World;
use countersign_sim::world::actions::{ArtifactSpec, JobSpec, RunSpec};
use countersign_sim::world::pulls::{
    BaseSpec, ChangeSpec, FullBase, FullHead, HeadSpec, PullSpec, PullState as WorldState,
};
use countersign_sim::world::repo::{CommitSpec, EarlierSpec, RepoSpec, RoleSpec};
use countersign_sim::world::spell::{Clock, FileSpec};
use countersign_sim::world::{GapSpec, OrgSpec, TeamSpec, UserSpec};

use texts::Texts;

/// A pull request as a world.
#[derive(Debug)]
pub struct Recorded {
    /// The world.
    pub world: World,
    /// How many secrets were taken out of texts. With any, the recorded texts are not those that were judged.
    pub secrets: usize,
}

/// Makes a world of evidence that was gathered under a policy.
#[must_use]
pub fn record(evidence: &Evidence, policy: &Policy) -> Recorded {
    let mut world = World {
        partial: true,
        description: Some(format!(
            "{}#{} as it was on {}, with its sign-off {}",
            evidence.repository,
            evidence.pull_request.number,
            evidence.now.format("%Y-%m-%d"),
            evidence.signoff.key
        )),
        clock: Clock::At(evidence.now),
        ..World::default()
    };
    let web = evidence
        .pull_request
        .url
        .split(&format!("/{}/pull/", evidence.repository))
        .next()
        .unwrap_or_default();
    if web != "https://github.com" && !web.is_empty() {
        world.web = Some(web.to_owned());
    }
    let mut texts = Texts::default();
    let mut repo = RepoSpec {
        default_branch: Some(evidence.pull_request.base_ref.clone()),
        branches: BTreeMap::from([(evidence.pull_request.base_ref.clone(), evidence.trusted_sha.to_string())]),
        commits: tree::commits(evidence, &mut world.unavailable),
        ..RepoSpec::default()
    };
    let mut pull = pull(evidence, &mut texts);
    let number = evidence.pull_request.number;
    list(
        &evidence.changed_files,
        &format!("the changed files of #{number}"),
        &mut world,
        |files| {
            pull.files = Some(files.iter().map(change).collect());
        },
    );
    list(
        &evidence.commits,
        &format!("the commits of #{number}"),
        &mut world,
        |commits| {
            pull.commits = Some(commits.iter().map(|commit| commit.sha.to_string()).collect());
        },
    );
    texts::conversation(evidence, &mut pull, &mut world, &mut texts);
    list(
        &evidence.runs,
        &format!("runs of {}", policy.ci.workflow),
        &mut world,
        |_| {},
    );
    if let Observed::Present(runs) = &evidence.runs {
        repo.runs = Some(
            runs.iter()
                .map(|run| self::run(run, policy, &mut world, &mut texts))
                .collect(),
        );
    }
    repo.pulls = vec![pull];
    people(evidence, &mut repo, &mut world);
    if let Observed::Present(version) = &evidence.previous_template {
        let earlier = EarlierSpec {
            commit: version.commit.to_string(),
            replaced_at: version.replaced_at,
            text: version.text.clone(),
        };
        repo.earlier.insert(policy.paths.template.clone(), earlier);
    } else {
        list(
            &evidence.previous_template,
            &format!("earlier versions of {}", policy.paths.template),
            &mut world,
            |_| {},
        );
    }
    if let Observed::Unavailable(cause) = &evidence.merge_base {
        gap(
            &mut world.unavailable,
            "where the pull request parted from its target",
            cause,
        );
    }
    upstream(evidence, policy, &mut world);
    world.repositories.insert(evidence.repository.to_string(), repo);
    Recorded {
        world,
        secrets: texts.secrets,
    }
}

/// Keeps why a fact was not read.
fn gap(gaps: &mut BTreeMap<String, GapSpec>, key: &str, cause: &Cause) {
    let kind = serde_json::to_value(cause.kind)
        .ok()
        .and_then(|kind| kind.as_str().map(str::to_owned))
        .unwrap_or_default();
    let what = (cause.what != key).then(|| cause.what.clone());
    gaps.insert(
        key.to_owned(),
        GapSpec {
            what,
            kind,
            why: cause.why.clone(),
        },
    );
}

fn list<T>(fact: &Observed<T>, what: &str, world: &mut World, keep: impl FnOnce(&T)) {
    match fact {
        Observed::Present(value) => keep(value),
        Observed::Absent => world.absent.push(what.to_owned()),
        Observed::Unavailable(cause) => gap(&mut world.unavailable, what, cause),
    }
}

fn word<T: serde::Serialize>(value: T) -> Option<String> {
    serde_json::to_value(value)
        .ok()
        .and_then(|value| value.as_str().map(str::to_owned))
}

fn pull(evidence: &Evidence, texts: &mut Texts) -> PullSpec {
    let from = &evidence.pull_request;
    PullSpec {
        number: from.number.0,
        title: Some(texts.clean(&from.title)),
        body: Some(texts.clean(&from.body)),
        author: Some(from.author.as_ref().map(ToString::to_string).unwrap_or_default()),
        head: Some(HeadSpec(FullHead {
            sha: Some(from.head_sha.to_string()),
            branch: Some(from.head_ref.clone()),
            // A repository that was deleted has no name.
            repo: Some(
                from.head_repository
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default(),
            ),
        })),
        base: Some(BaseSpec(FullBase {
            branch: Some(from.base_ref.clone()),
            sha: Some(evidence.trusted_sha.to_string()),
        })),
        draft: from.draft,
        state: match (from.merged, from.open) {
            (true, _) => WorldState::Merged,
            (false, true) => WorldState::Open,
            (false, false) => WorldState::Closed,
        },
        labels: Some(from.labels.clone()),
        head_seen_at: Some(evidence.head_seen_at),
        signoff: Some(evidence.signoff.key.to_string()),
        ..PullSpec::default()
    }
}

fn change(file: &countersign_core::evidence::ChangedFile) -> ChangeSpec {
    ChangeSpec {
        path: file.path.clone(),
        status: word(file.status),
        previous: file.previous_path.clone(),
        ..ChangeSpec::default()
    }
}

fn run(run: &WorkflowRun, policy: &Policy, world: &mut World, texts: &mut Texts) -> RunSpec {
    let mut spec = RunSpec {
        id: Some(run.id),
        workflow: Some(run.workflow_path.clone()),
        head: run.head_sha.to_string(),
        event: Some(run.event.clone()),
        status: Some(status(run.status)),
        conclusion: run.conclusion.and_then(word),
        attempt: Some(u64::from(run.attempt)),
        created_at: Some(run.created_at),
        ..RunSpec::default()
    };
    let of = |what: &str| format!("{what} of run {}", run.id);
    // Runs that can be no evidence have no jobs here, by rule; their cause is not a fact to keep.
    let kept = countersign_github::gather::wanted::can_be_evidence(run, policy, None);
    match &run.jobs {
        Observed::Present(jobs) => spec.jobs = Some(jobs.iter().map(job).collect()),
        Observed::Absent => {}
        Observed::Unavailable(cause) if kept && cause.why != countersign_github::gather::wanted::NO_EVIDENCE => {
            gap(&mut world.unavailable, &of("jobs"), cause)
        }
        Observed::Unavailable(_) => {}
    }
    match &run.artifacts {
        Observed::Present(list) => {
            spec.artifacts = Some(list.iter().map(|artifact| self::artifact(artifact, texts)).collect())
        }
        Observed::Absent => {}
        Observed::Unavailable(cause) if kept && cause.why != countersign_github::gather::wanted::NO_EVIDENCE => {
            gap(&mut world.unavailable, &of("artifacts"), cause)
        }
        Observed::Unavailable(_) => {}
    }
    spec
}

fn status(status: RunStatus) -> String {
    match status {
        RunStatus::Completed => "completed",
        RunStatus::Running => "in_progress",
    }
    .to_owned()
}

fn job(job: &Job) -> JobSpec {
    JobSpec {
        id: Some(job.id),
        name: job.name.clone(),
        status: Some(status(job.status)),
        conclusion: job.conclusion.and_then(word),
        attempt: Some(u64::from(job.attempt)),
        ..JobSpec::default()
    }
}

fn artifact(artifact: &Artifact, texts: &mut Texts) -> ArtifactSpec {
    let files = match &artifact.files {
        Some(Observed::Present(files)) => files
            .iter()
            .map(|(path, text)| (path.clone(), serde_json::Value::String(texts.clean(text))))
            .collect(),
        _ => BTreeMap::new(),
    };
    ArtifactSpec {
        id: Some(artifact.id),
        name: artifact.name.clone(),
        size: Some(artifact.size),
        expired: artifact.expired,
        created_at: artifact.created_at,
        files,
        ..ArtifactSpec::default()
    }
}

fn people(evidence: &Evidence, repo: &mut RepoSpec, world: &mut World) {
    let people = &evidence.people;
    let mut roles = BTreeMap::new();
    for (login, permission) in &people.permissions {
        match permission {
            Observed::Present(permission) => {
                let role = word(permission.role).unwrap_or_default();
                roles.insert(login.clone(), RoleSpec::Named(role));
            }
            Observed::Absent => {}
            Observed::Unavailable(cause) => gap(&mut world.unavailable, &cause.what.clone(), cause),
        }
    }
    if !roles.is_empty() {
        repo.collaborators = Some(roles);
    }
    let signer = evidence.signoff.author.to_string();
    for (team, member) in &people.signer_teams {
        let Some((org, slug)) = team.split_once('/') else {
            continue;
        };
        match member {
            Observed::Present(member) => {
                let members = if *member { vec![signer.clone()] } else { Vec::new() };
                let teams = &mut world.orgs.entry(org.to_owned()).or_default().teams;
                teams.insert(
                    slug.to_owned(),
                    TeamSpec {
                        members: Some(members),
                        ..TeamSpec::default()
                    },
                );
            }
            Observed::Absent => world.absent.push(format!("the members of team {team}")),
            Observed::Unavailable(cause) => gap(&mut world.unavailable, &format!("the members of team {team}"), cause),
        }
    }
    let owner = evidence.repository.owner();
    match &people.signer_in_organisation {
        Some(Observed::Present(member))
            if !matches!(
                evidence.signoff.association,
                countersign_core::evidence::Association::Owner | countersign_core::evidence::Association::Member
            ) =>
        {
            let members = if *member { vec![signer] } else { Vec::new() };
            let known = world
                .orgs
                .keys()
                .find(|org| org.eq_ignore_ascii_case(owner))
                .cloned()
                .unwrap_or_else(|| owner.to_owned());
            world.orgs.entry(known).or_insert_with(OrgSpec::default).members = Some(members);
        }
        Some(Observed::Unavailable(cause)) => gap(&mut world.unavailable, &format!("the members of {owner}"), cause),
        _ => {}
    }
    for (login, is_bot) in texts::accounts(evidence) {
        if login.ends_with("[bot]") != is_bot {
            let kind = if is_bot { "Bot" } else { "User" };
            world.users.insert(
                login,
                UserSpec {
                    kind: Some(kind.to_owned()),
                    ..UserSpec::default()
                },
            );
        }
    }
}

fn upstream(evidence: &Evidence, policy: &Policy, world: &mut World) {
    for (url, leads) in &evidence.upstream {
        let what = format!("what {url} leads to");
        match leads {
            Observed::Absent => world.absent.push(what),
            Observed::Unavailable(cause) => gap(&mut world.unavailable, &what, cause),
            Observed::Present(Upstream::Pull(pull)) => upstream_pull(pull, world),
            Observed::Present(Upstream::Page(page)) => upstream_page(page, policy, world),
        }
    }
}

fn upstream_pull(from: &UpstreamPull, world: &mut World) {
    let repo = world.upstream.entry(from.repository.to_string()).or_default();
    if repo.pulls.iter().any(|pull| pull.number == from.number) {
        return;
    }
    let document = |(path, text): (&String, &String)| ChangeSpec {
        path: path.clone(),
        status: Some("modified".to_owned()),
        text: Some(text.clone()),
        ..ChangeSpec::default()
    };
    repo.pulls.push(PullSpec {
        number: from.number,
        draft: from.state == PullState::Draft,
        state: match from.state {
            PullState::Open | PullState::Draft => WorldState::Open,
            PullState::Closed => WorldState::Closed,
            PullState::Merged => WorldState::Merged,
        },
        merged_at: from.merged_at,
        merge_commit: from.merge_commit.as_ref().map(ToString::to_string),
        files: Some(from.documents.iter().map(document).collect()),
        ..PullSpec::default()
    });
}

fn upstream_page(from: &Page, policy: &Policy, world: &mut World) {
    let (Some((repository, _)), Some(commit)) = (from.source.split_once(':'), &from.commit) else {
        return;
    };
    let branch = policy.upstream.sources.values().find_map(|source| match source {
        UpstreamSource::Page {
            repository: of, branch, ..
        } if of.eq_ignore_ascii_case(repository) => Some(branch.clone()),
        _ => None,
    });
    let Some(branch) = branch else { return };
    let repo = world.upstream.entry(repository.to_owned()).or_default();
    repo.branches.insert(branch, commit.to_string());
    if repo.commits.is_empty() {
        repo.commits.push(CommitSpec {
            sha: Some(commit.to_string()),
            covers: Some(Vec::new()),
            ..CommitSpec::default()
        });
    }
    if let Some(known) = repo.commits.first_mut() {
        known.files.extend(
            from.documents
                .iter()
                .map(|(path, text)| (path.clone(), FileSpec::Text(text.clone()))),
        );
    }
}
