//! Gathering against the simulator.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use countersign_core::evidence::{Conclusion, EntryMode, PullState, Role, Upstream};
use countersign_core::{Cause, CauseKind, CommitSha, Evidence, Observed};
use countersign_github::Gathered;
use countersign_sim::world::actions::ArtifactSpec;
use countersign_sim::world::faults::FaultSpec;
use countersign_sim::world::repo::CommitSpec;
use countersign_sim::world::spell::Files;
use countersign_sim::world::timeline::{Push, Step};
use serde_json::json;
use support::{Bench, world};

#[tokio::test]
async fn everything_is_gathered() {
    let bench = Bench::new(&world());
    let (evidence, stats) = bench.evidence().await;
    assert_eq!(bench.sim.unserved(), [] as [String; 0]);
    eprintln!("{stats:?}\n{}", bench.calls().join("\n"));

    let pull = &evidence.pull_request;
    assert_eq!(
        (
            pull.number.0,
            pull.base_ref.as_str(),
            pull.head_ref.as_str(),
            pull.open,
            pull.draft
        ),
        (7, "main", "arm", true, false)
    );
    assert_eq!(evidence.repository.as_str(), support::REPO);
    let commits = evidence.commits.present().unwrap();
    assert_eq!(
        commits
            .iter()
            .map(|commit| commit.headline.as_str())
            .collect::<Vec<_>>(),
        ["Add an arm", "Change arm-2"]
    );
    assert_eq!(commits.last().unwrap().sha, pull.head_sha);
    let files: Vec<&str> = evidence
        .changed_files
        .present()
        .unwrap()
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    assert_eq!(files, [".gitattributes", "configs/master.yaml", "scripts/hidden.sh"]);
    assert_eq!(evidence.comments.present().unwrap().len(), 6);
    assert!(evidence.comments.present().unwrap()[0].author_is_bot);
    assert_eq!(evidence.signoff.author.as_str(), "dave");
    assert_eq!(evidence.signoff.edited_by_other, None);
    // Without being told, the head was there when its first run was.
    assert_eq!(evidence.head_seen_at.to_rfc3339(), "2026-08-05T09:10:00+00:00");
}

#[tokio::test]
async fn trees_are_whole_and_bounded() {
    let bench = Bench::new(&world());
    let (evidence, _) = bench.evidence().await;
    let text = |found: Observed<std::sync::Arc<str>>| found.present().map(|text| text.to_string());
    assert!(
        text(evidence.trusted_file(".github/CODEOWNERS"))
            .unwrap()
            .contains("@dave")
    );
    assert_eq!(text(evidence.trusted_file("docs/extra.md")).as_deref(), Some("extra\n"));
    assert!(
        text(evidence.head_file("configs/master.yaml"))
            .unwrap()
            .contains("engine/serve:v2")
    );
    assert!(
        text(evidence.base_file("configs/master.yaml"))
            .unwrap()
            .contains("engine/serve:v1")
    );
    assert_eq!(
        text(evidence.head_file("scripts/hidden.sh")).as_deref(),
        Some("exec hidden\n")
    );
    assert_eq!(evidence.base_file("scripts/hidden.sh"), Observed::Absent);
    assert_eq!(text(evidence.head_file("scripts/latest")).as_deref(), Some("run.sh"));
    let head = evidence.trees[&evidence.pull_request.head_sha].present().unwrap();
    assert_eq!(head.entries["scripts/latest"].mode, EntryMode::Symlink);
    assert_eq!(head.entries["scripts/run.sh"].mode, EntryMode::Executable);
    // Listed, but not readable: no text, and too large.
    for path in ["scripts/logo.png", "scripts/big.txt"] {
        assert!(head.entries.contains_key(path));
        assert!(
            matches!(evidence.head_file(path), Observed::Unavailable(cause) if cause.kind == CauseKind::NotRecorded),
            "{path}"
        );
    }
    // Outside of what the policy asks for: unavailable, never absent. What is trusted is not read from the head.
    for path in ["README.md", ".github/CODEOWNERS", "docs/checklist.md"] {
        assert!(matches!(evidence.head_file(path), Observed::Unavailable(_)), "{path}");
    }
    // The commit of the run that measured something.
    let arm = &evidence.commits.present().unwrap()[0].sha;
    assert!(
        text(evidence.file(arm, "configs/master.yaml"))
            .unwrap()
            .contains("engine/serve:v2")
    );
    assert_eq!(evidence.file(arm, "scripts/hidden.sh"), Observed::Absent);
    assert_eq!(evidence.trees.len(), 4);
}

#[tokio::test]
async fn what_an_archive_leaves_out_is_read_all_the_same() {
    // `export-ignore` keeps a file out of a commit's archive; here the archive is that of a commit without it.
    let bench = Bench::new(&world());
    let (full, _) = bench.evidence().await;
    let base = full.merge_base.present().unwrap();
    let bench = Bench::new(&world());
    let archive = format!(
        "{}/codeload/{}/legacy.tar.gz/{base}",
        bench.sim.storage_url(),
        support::REPO
    );
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(302),
            headers: [("location".to_owned(), archive)].into(),
            ..fault("GET /repos/*/*/tarball/**")
        })
        .unwrap();
    let (evidence, _) = bench.evidence().await;
    let text = |path: &str| evidence.head_file(path).present().map(|text| text.to_string());
    assert_eq!(text("scripts/hidden.sh").as_deref(), Some("exec hidden\n"));
    assert!(text("configs/master.yaml").unwrap().contains("engine/serve:v2"));
    // Two of the head, one of the tip, one of the merge base.
    let single = bench
        .calls()
        .iter()
        .filter(|call| call.starts_with("GET /git/blobs/"))
        .count();
    assert_eq!(single, 4, "{:?}", bench.calls());
}

#[tokio::test]
async fn runs_are_those_that_can_matter() {
    let bench = Bench::new(&world());
    let (evidence, _) = bench.evidence().await;
    let runs = evidence.runs.present().unwrap();
    // The newest first; the linked one of another workflow is there, so that a check can say why it does not count. The run of
    // another repository and the one on a commit that is not in the pull request are not.
    assert_eq!(runs.iter().map(|run| run.id).collect::<Vec<_>>(), [9002, 9001, 9003]);
    assert!(runs[2].workflow_path.ends_with("other.yml"));
    let jobs = runs[1].jobs.present().unwrap();
    assert_eq!(
        jobs.iter()
            .filter(|job| job.conclusion == Some(Conclusion::Success))
            .count(),
        6
    );
    let artifacts = runs[1].artifacts.present().unwrap();
    let files = |name: &str| {
        let artifact = artifacts.iter().find(|artifact| artifact.name == name).unwrap();
        (
            artifact.expired,
            artifact
                .files
                .as_ref()
                .map(|files| files.present().unwrap().keys().cloned().collect::<Vec<_>>()),
        )
    };
    assert_eq!(
        files("eval_results_all"),
        (false, Some(vec!["agg_eval_all.json".to_owned()]))
    );
    assert_eq!(files("results_bmk"), (false, Some(vec!["agg_bmk.json".to_owned()])));
    assert_eq!(files("old-logs"), (true, None));
}

#[tokio::test]
async fn people_are_known_as_far_as_they_may_be() {
    // Named himself for all that he has to own: no team can decide anything, and none is asked for.
    let bench = Bench::new(&world());
    let (evidence, _) = bench.evidence().await;
    assert_eq!(evidence.people.signer_teams.len(), 0);
    assert!(!bench.calls().iter().any(|call| call.contains("/teams/")));
    // Where he is not, all teams are.
    let mut world = world();
    let files = &mut world.repositories.get_mut(support::REPO).unwrap().commits[0].files;
    let owners = "* @octo-org/core\n/configs/ @olivia @octo-org/vendor @octo-org/hidden @octo-org/gone\n";
    files.extend(serde_json::from_value::<Files>(json!({".github/CODEOWNERS": owners})).unwrap());
    let bench = Bench::new(&world);
    let (evidence, _) = bench.evidence().await;
    let people = &evidence.people;
    let roles: Vec<_> = people
        .permissions
        .iter()
        .map(|(login, found)| (login.as_str(), found.present().unwrap().role))
        .collect();
    // Only those who answered; the custom role authorises nothing.
    assert_eq!(roles, [("dave", Role::Maintain), ("erin", Role::Read)]);
    let team = |name: &str| people.signer_teams[&format!("octo-org/{name}")].clone();
    assert_eq!(team("core"), Observed::Present(false));
    assert_eq!(team("vendor"), Observed::Present(true));
    for (name, says) in [("hidden", "grant the App"), ("gone", "may not see")] {
        let Observed::Unavailable(cause) = team(name) else {
            panic!("{name}: {:?}", team(name))
        };
        assert_eq!(cause.kind, CauseKind::Forbidden);
        assert!(
            cause.to_string().contains(&format!("octo-org/{name}")) && cause.why.contains(says),
            "{cause}"
        );
    }
    assert_eq!(people.signer_in_organisation, Some(Observed::Present(true)));
}

#[tokio::test]
async fn upstream_is_read_from_repositories_only() {
    let bench = Bench::new(&world());
    let (evidence, _) = bench.evidence().await;
    let found: Vec<&str> = evidence.upstream.keys().map(String::as_str).collect();
    assert_eq!(
        found,
        [
            "https://docs.engine.example/cookbook/model-a",
            "https://docs.engine.example/cookbook/no-such-page",
            "https://github.com/engine/recipes/pull/42",
        ]
    );
    let Observed::Present(Upstream::Page(page)) = &evidence.upstream[found[0]] else {
        panic!("{:?}", evidence.upstream)
    };
    assert_eq!(page.source, "engine/recipes:docs/model-a.mdx");
    assert_eq!(
        page.documents.keys().collect::<Vec<_>>(),
        [
            "docs/model-a.mdx",
            "snippets/model-a-flags.jsx",
            "snippets/two-nodes.yaml",
            "taxonomy.yaml"
        ]
    );
    assert_eq!(evidence.upstream[found[1]], Observed::Absent);
    let Observed::Present(Upstream::Pull(pull)) = &evidence.upstream[found[2]] else {
        panic!("{:?}", evidence.upstream)
    };
    assert_eq!((pull.state, pull.number), (PullState::Open, 42));
    assert_eq!(
        pull.documents.clone().into_iter().collect::<Vec<_>>(),
        [("docs/model-a.mdx".to_owned(), "serve --tp 8\n".to_owned())]
    );
    assert!(!bench.calls().iter().any(|call| call.contains("evil")));
}

#[tokio::test]
async fn a_second_gathering_costs_next_to_nothing() {
    let bench = Bench::new(&world());
    let (first, cold) = bench.evidence().await;
    let (second, warm) = bench.evidence().await;
    assert_eq!(
        serde_json::to_value(&first).unwrap(),
        serde_json::to_value(&second).unwrap()
    );
    eprintln!("cold {cold:?}, warm {warm:?}");
    // Only who edited the sign-off last: GraphQL knows no 304.
    assert_eq!((warm.calls, warm.downloads), (1, 0), "{warm:?}");
    assert!(warm.not_modified > 0);
}

#[tokio::test]
async fn signoffs_of_all_places_and_of_no_place() {
    let bench = Bench::new(&world());
    let policy = support::policy();
    for (place, body) in [("pullrequestreview-650", "Looks right."), ("discussion_r660", "Why 4?")] {
        let (evidence, _) = support::evidence(bench.gather_with(&policy, place).await);
        assert_eq!(
            (evidence.signoff.body.as_str(), evidence.signoff.author.as_str()),
            (body, "carol")
        );
    }
    for gone in ["issuecomment-1", "pullrequestreview-1", "discussion_r1"] {
        assert!(
            matches!(bench.gather_with(&policy, gone).await, Gathered::SignoffGone),
            "{gone}"
        );
    }
    // Numbers of comments are the repository's: one of another pull request is not this one's.
    let other = bench.sim.post_comment(8, "dave", "hello").unwrap();
    assert!(matches!(
        bench.gather_with(&policy, &format!("issuecomment-{other}")).await,
        Gathered::SignoffGone
    ));
}

#[tokio::test]
async fn an_edit_by_somebody_else_is_seen() {
    let bench = Bench::new(&world());
    let body = world().repositories[support::REPO].pulls[0].comments.as_ref().unwrap()[1]
        .body
        .clone()
        .unwrap();
    bench.sim.edit_comment(600, &format!("{body}\nmore"), "dave").unwrap();
    let (evidence, _) = bench.evidence().await;
    assert_eq!(evidence.signoff.edited_by_other, None);
    assert!(evidence.signoff.updated_at > evidence.signoff.created_at);
    bench.sim.edit_comment(600, &body, "olivia").unwrap();
    let (evidence, _) = bench.evidence().await;
    assert_eq!(evidence.signoff.edited_by_other.unwrap().as_str(), "olivia");
}

fn fault(on: &str) -> FaultSpec {
    FaultSpec {
        on: on.into(),
        ..FaultSpec::default()
    }
}

fn moved(step: Step) -> FaultSpec {
    // While the files are read: after the pull request was.
    FaultSpec {
        before: Some(Box::new(step)),
        times: Some(1),
        ..fault("GET /repos/*/*/git/trees/*")
    }
}

#[tokio::test]
async fn what_moves_meanwhile_is_noticed() {
    let policy = support::policy();
    let push = Push {
        pull: 7.into(),
        head: None,
        commit: Some(CommitSpec {
            id: "arm-3".into(),
            files: Default::default(),
            ..CommitSpec::default()
        }),
        by: None,
    };
    let bench = Bench::new(&world());
    let from = bench.sim.head(7).unwrap();
    bench
        .sim
        .add_fault(moved(Step {
            push: Some(push),
            ..Step::default()
        }))
        .unwrap();
    let Gathered::HeadMoved { from: old, to } = bench.gather_with(&policy, support::SIGNOFF).await else {
        panic!("not noticed")
    };
    assert_eq!(
        (old.as_str(), to.as_str()),
        (from.as_str(), bench.sim.head(7).unwrap().as_str())
    );
    // And the next time it is as it is now.
    assert_eq!(bench.evidence().await.0.pull_request.head_sha, to);

    let changes: [(&str, serde_json::Value, fn(&Gathered) -> bool); 6] = [
        (
            "edited",
            json!({"edit_comment": {"id": 600, "body": "other", "by": "dave"}}),
            |found| matches!(found, Gathered::SignoffChanged),
        ),
        ("deleted", json!({"delete_comment": {"id": 600}}), |found| {
            matches!(found, Gathered::SignoffGone)
        }),
        ("draft", json!({"draft": {"pull": 7}}), |found| {
            matches!(found, Gathered::PullRequestChanged)
        }),
        ("closed", json!({"close": {"pull": 7}}), |found| {
            matches!(found, Gathered::PullRequestChanged)
        }),
        ("label", json!({"label": {"pull": 7, "label": "evals-only"}}), |found| {
            matches!(found, Gathered::PullRequestChanged)
        }),
        ("target", json!({"edit_pull": {"pull": 7, "base": "arm"}}), |found| {
            matches!(found, Gathered::PullRequestChanged)
        }),
    ];
    for (what, step, wanted) in changes {
        let bench = Bench::new(&world());
        bench
            .sim
            .add_fault(moved(serde_json::from_value(step).unwrap()))
            .unwrap();
        let found = bench.gather_with(&policy, support::SIGNOFF).await;
        assert!(wanted(&found), "{what}: {found:?}");
    }
}

#[tokio::test]
async fn facts_that_cannot_be_read_are_unavailable_and_nothing_else_is() {
    let cases: [(&str, Fact); 6] = [
        ("GET /repos/*/*/pulls/7/files", |evidence| {
            unavailable(&evidence.changed_files)
        }),
        ("GET /repos/*/*/pulls/7/commits", |evidence| {
            unavailable(&evidence.commits)
        }),
        ("GET /repos/*/*/issues/7/comments", |evidence| {
            unavailable(&evidence.comments)
        }),
        ("GET /repos/*/*/actions/workflows/**", |evidence| {
            unavailable(&evidence.runs)
        }),
        ("GET /repos/*/*/actions/runs/9001/jobs", |evidence| {
            let run = evidence.runs.present()?.iter().find(|run| run.id == 9001)?;
            unavailable(&run.jobs)
        }),
        ("GET /repos/*/*/tarball/**", |evidence| {
            unavailable(&evidence.trees[&evidence.pull_request.head_sha])
        }),
    ];
    for (on, fact) in cases {
        let bench = Bench::new(&world());
        bench
            .sim
            .add_fault(FaultSpec {
                status: Some(502),
                ..fault(on)
            })
            .unwrap();
        let (evidence, _) = bench.evidence().await;
        let cause = fact(&evidence).unwrap_or_else(|| panic!("{on}: it is not unavailable"));
        assert_eq!(cause.kind, CauseKind::Transient, "{on}: {cause}");
        assert!(cause.why.contains("502"), "{on}: {cause}");
        // The next time it can be read.
        bench.sim.clear_faults();
        assert_eq!(fact(&bench.evidence().await.0), None, "{on}");
    }
    // Without the pull request, the sign-off or the target branch there is nothing to judge.
    for on in [
        "GET /repos/*/*/pulls/7",
        "GET /repos/*/*/issues/**",
        "GET /repos/*/*/branches/main",
    ] {
        let bench = Bench::new(&world());
        bench
            .sim
            .add_fault(FaultSpec {
                status: Some(502),
                ..fault(on)
            })
            .unwrap();
        let policy = support::policy();
        let request = support::request(&policy, support::SIGNOFF, bench.sim.now());
        let error = countersign_github::gather(&bench.repo().await, &request)
            .await
            .unwrap_err();
        assert_eq!(error.retry(), countersign_github::Retry::Soon, "{on}: {error}");
    }
}

type Fact = fn(&Evidence) -> Option<Cause>;

fn unavailable<T>(fact: &Observed<T>) -> Option<Cause> {
    match fact {
        Observed::Unavailable(cause) => Some(cause.clone()),
        _ => None,
    }
}

#[tokio::test]
async fn artifacts_that_are_gone_large_or_hostile() {
    let mut world = world();
    let runs = world
        .repositories
        .get_mut(support::REPO)
        .unwrap()
        .runs
        .as_mut()
        .unwrap();
    runs[0].evals = None;
    let zeros = serde_json::Value::String("0".repeat(40 << 20));
    runs[0].artifacts = Some(vec![
        ArtifactSpec {
            id: Some(70),
            name: "eval_results_all".into(),
            files: [("agg_eval_all.json".to_owned(), zeros)].into(),
            ..Default::default()
        },
        ArtifactSpec {
            id: Some(71),
            name: "results_bmk".into(),
            size: Some(500 << 20),
            ..Default::default()
        },
        ArtifactSpec {
            id: Some(72),
            name: "bmk_agentic_x".into(),
            expired: true,
            ..Default::default()
        },
    ]);
    let bench = Bench::new(&world);
    let (evidence, _) = bench.evidence().await;
    let run = evidence
        .runs
        .present()
        .unwrap()
        .iter()
        .find(|run| run.id == 9001)
        .unwrap()
        .clone();
    let artifacts = run.artifacts.present().unwrap();
    let of = |id: u64| artifacts.iter().find(|artifact| artifact.id == id).unwrap();
    let cause = |id: u64| unavailable(of(id).files.as_ref().unwrap()).unwrap();
    assert!(
        cause(70).kind == CauseKind::TooLarge && cause(70).why.contains("unpacks to more"),
        "{}",
        cause(70)
    );
    assert!(
        cause(71).kind == CauseKind::TooLarge && cause(71).why.contains("524288000"),
        "{}",
        cause(71)
    );
    assert!(of(72).expired && of(72).files.is_none());
    assert!(
        !bench
            .calls()
            .iter()
            .any(|call| call.contains("artifacts/71") || call.contains("artifacts/72"))
    );
    // Listed, and deleted before it was read.
    let bench = Bench::new(&support::world());
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(410),
            ..fault("GET /repos/*/*/actions/artifacts/*/zip")
        })
        .unwrap();
    let (evidence, _) = bench.evidence().await;
    let run = evidence
        .runs
        .present()
        .unwrap()
        .iter()
        .find(|run| run.id == 9001)
        .unwrap()
        .clone();
    assert!(
        run.artifacts
            .present()
            .unwrap()
            .iter()
            .all(|artifact| artifact.expired && artifact.files.is_none())
    );
}

#[tokio::test]
async fn downloads_come_from_named_hosts_only_and_without_a_token() {
    let strict = Bench::with(&world(), Default::default(), |config| config.archive_hosts.clear());
    let (evidence, stats) = strict.evidence().await;
    let cause = unavailable(&evidence.trees[&evidence.pull_request.head_sha]).unwrap();
    assert!(cause.why.contains("archive_hosts"), "{cause}");
    assert_eq!(stats.downloads, 0);
    let bench = Bench::new(&world());
    bench.evidence().await;
    assert_eq!(bench.sim.complaints(), [] as [String; 0]);
}

#[tokio::test]
async fn the_template_of_the_time_of_signing() {
    let bench = Bench::new(&world());
    assert_eq!(bench.evidence().await.0.previous_template, Observed::Absent);
    let before: CommitSha = bench.evidence().await.0.trusted_sha;
    let date = "2026-08-07T20:00:00Z".parse().unwrap();
    let change = CommitSpec {
        id: "newer".into(),
        date: Some(date),
        files: serde_json::from_value(json!({"docs/checklist.md": "As a PR reviewer and CODEOWNER\n- [ ] more\n"}))
            .unwrap(),
        ..CommitSpec::default()
    };
    bench.sim.push_branch(support::REPO, "main", change).unwrap();
    // The simulator's answer about a path's history, where it has none.
    let commit = |sha: &CommitSha, date: &str, parent: &CommitSha| json!({"sha": sha, "commit": {"message": "x", "committer": {"date": date}}, "parents": [{"sha": parent}]});
    let tip: CommitSha = bench.evidence().await.0.trusted_sha;
    let body = json!([
        commit(&tip, "2026-08-07T20:00:00Z", &before),
        commit(&before, "2026-08-01T09:00:00Z", &before)
    ]);
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(200),
            body: Some(body.to_string()),
            ..fault("GET /repos/*/*/commits")
        })
        .unwrap();
    let (evidence, _) = bench.evidence().await;
    let previous = evidence.previous_template.present().unwrap();
    assert_eq!((&previous.commit, previous.replaced_at), (&before, date));
    assert!(previous.text.contains("passes evals"));
    // Signed anew after the change: nothing is owed.
    bench
        .sim
        .edit_comment(600, "As a PR reviewer and CODEOWNER\n- [x] more", "dave")
        .unwrap();
    assert_eq!(bench.evidence().await.0.previous_template, Observed::Absent);
}

#[tokio::test]
async fn where_the_target_was_merged_in_the_comparison_says_where_they_parted() {
    let mut world = world();
    let repository = world.repositories.get_mut(support::REPO).unwrap();
    repository.commits.push(CommitSpec {
        id: "sync".into(),
        parents: vec!["arm-2".into(), "tip".into()],
        message: Some("Merge main".into()),
        ..CommitSpec::default()
    });
    repository.branches.insert("arm".into(), "sync".into());
    repository.pulls[0].head = serde_json::from_value(json!({"sha": "sync", "ref": "arm"})).unwrap();
    let bench = Bench::new(&world);
    let (evidence, _) = bench.evidence().await;
    assert_eq!(evidence.merge_base.present(), Some(&evidence.trusted_sha));
    // One commit is both: its tree shows what either shows.
    assert!(evidence.trusted_file("docs/checklist.md").present().is_some());
    assert!(evidence.base_file("configs/master.yaml").present().is_some());
    assert_eq!(
        bench.calls().iter().filter(|call| call.contains("/compare/")).count(),
        1
    );

    let bench = Bench::new(&world);
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            ..fault("GET /repos/*/*/compare/**")
        })
        .unwrap();
    let (evidence, _) = bench.evidence().await;
    assert!(unavailable(&evidence.merge_base).unwrap().why.contains("502"));
    assert!(matches!(
        evidence.base_file("configs/master.yaml"),
        Observed::Unavailable(_)
    ));
}
