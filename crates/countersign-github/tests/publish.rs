//! Publishing against the simulator: each thing once, whatever happens to the answers.
#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use countersign_core::render::marker;
use countersign_core::{CommitSha, PrNumber};
use countersign_github::RepoClient;
use countersign_github::publish::{
    Annotation, AnnotationLevel, CheckConclusion, DesiredCheckRun, DesiredComment, DesiredStatus, Reaction,
    StatusState, ensure_check_run, ensure_comment, ensure_reaction, ensure_status, minimise, own_verdict_comments,
};
use countersign_sim::world::actions::StatusSpec;
use countersign_sim::world::faults::FaultSpec;
use countersign_sim::world::timeline::{InRepo, Step};
use support::{Bench, REPO, SIGNOFF, key, world};

const PULL: PrNumber = PrNumber(7);
const WORD: &str = "verdict";

fn fault(on: &str) -> FaultSpec {
    FaultSpec {
        on: on.into(),
        times: Some(1),
        ..FaultSpec::default()
    }
}

struct Comment {
    head: CommitSha,
    body: String,
}

impl Comment {
    fn new(bench: &Bench, text: &str) -> Self {
        let head: CommitSha = bench.sim.head(7).unwrap().parse().unwrap();
        let body = format!("{}\n{text}\n", marker(WORD, &key(SIGNOFF), &head));
        Self { head, body }
    }

    fn wanted(&self, remembered: Option<u64>) -> DesiredComment<'_> {
        DesiredComment {
            pull_request: PULL,
            marker: WORD,
            signoff: key(SIGNOFF),
            head: &self.head,
            body: &self.body,
            not_these: &[],
            uncertain: false,
            remembered,
        }
    }
}

#[tokio::test]
async fn a_comment_is_there_once() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let comment = Comment::new(&bench, "PASS");
    // Anybody can write a marker; only the App's own comments are its own.
    bench.sim.post_comment(7, "mallory", &comment.body).unwrap();
    bench.sim.post_comment(7, "other[bot]", &comment.body).unwrap();
    let first = ensure_comment(&repo, &comment.wanted(None)).await.unwrap();
    assert!(first.written);
    for remembered in [None, Some(first.id), Some(1), Some(600)] {
        let again = ensure_comment(&repo, &comment.wanted(remembered)).await.unwrap();
        assert_eq!((again.id, again.written), (first.id, false), "{remembered:?}");
    }
    // One that must not be changed is not: a new one is made beside it.
    let not_these = [first.id];
    let beside = DesiredComment {
        not_these: &not_these,
        uncertain: false,
        ..comment.wanted(None)
    };
    let second = ensure_comment(&repo, &beside).await.unwrap();
    assert!(second.written && second.id != first.id);
    bench.sim.delete_comment(second.id, "olivia").unwrap();
    let changed = Comment::new(&bench, "REJECTED");
    let updated = ensure_comment(&repo, &changed.wanted(Some(first.id))).await.unwrap();
    assert_eq!((updated.id, updated.written), (first.id, true));
    let own = bench.sim.own_comments(7).unwrap();
    assert_eq!(
        own.iter().map(|comment| comment.body.as_str()).collect::<Vec<_>>(),
        [changed.body.as_str()]
    );
    // Deleted by somebody: made anew.
    bench.sim.delete_comment(first.id, "olivia").unwrap();
    let made = ensure_comment(&repo, &changed.wanted(Some(first.id))).await.unwrap();
    assert!(made.written && made.id != first.id);
}

#[tokio::test]
async fn a_lost_answer_makes_no_second_comment() {
    for lost in [
        FaultSpec {
            status: Some(502),
            applied: true,
            ..fault("POST /repos/*/*/issues/7/comments")
        },
        FaultSpec {
            drop: true,
            applied: true,
            ..fault("POST /repos/*/*/issues/7/comments")
        },
        FaultSpec {
            truncate: Some(20),
            ..fault("POST /repos/*/*/issues/7/comments")
        },
    ] {
        let bench = Bench::new(&world());
        let repo = bench.repo().await;
        let comment = Comment::new(&bench, "PASS");
        bench.sim.add_fault(lost.clone()).unwrap();
        let made = ensure_comment(&repo, &comment.wanted(None)).await.unwrap();
        assert!(made.written);
        assert_eq!(bench.sim.faults_fired(), 1, "{lost:?}");
        assert_eq!(
            bench
                .sim
                .own_comments(7)
                .unwrap()
                .iter()
                .map(|comment| comment.id)
                .collect::<Vec<_>>(),
            [made.id],
            "{lost:?}"
        );
    }
    // Even where the search after it fails too: the next call finds it.
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let comment = Comment::new(&bench, "PASS");
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            applied: true,
            ..fault("POST /repos/*/*/issues/7/comments")
        })
        .unwrap();
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            from: Some(2),
            times: Some(4),
            ..fault("GET /repos/*/*/issues/7/comments")
        })
        .unwrap();
    assert!(
        ensure_comment(&repo, &comment.wanted(None))
            .await
            .unwrap_err()
            .is_ambiguous()
    );
    assert!(!ensure_comment(&repo, &comment.wanted(None)).await.unwrap().written);
    assert_eq!(bench.sim.own_comments(7).unwrap().len(), 1);
}

#[tokio::test]
async fn a_write_that_was_not_done_is_not_claimed() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let comment = Comment::new(&bench, "PASS");
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            ..fault("POST /repos/*/*/issues/7/comments")
        })
        .unwrap();
    assert!(ensure_comment(&repo, &comment.wanted(None)).await.is_err());
    assert!(bench.sim.own_comments(7).unwrap().is_empty());
    assert_eq!(
        bench
            .calls()
            .iter()
            .filter(|call| call.starts_with("POST /issues"))
            .count(),
        1
    );
    // A body that begins with another marker would never be found again.
    let other = DesiredComment {
        body: "no marker",
        ..comment.wanted(None)
    };
    assert!(ensure_comment(&repo, &other).await.is_err());
}

#[tokio::test]
async fn older_verdicts_are_folded() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let old = Comment::new(&bench, "REJECTED");
    ensure_comment(&repo, &old.wanted(None)).await.unwrap();
    bench.sim.post_comment(7, "mallory", &old.body).unwrap();
    let own = own_verdict_comments(&repo, PULL, WORD).await.unwrap();
    assert_eq!(
        own.iter()
            .map(|comment| (comment.signoff, &comment.head))
            .collect::<Vec<_>>(),
        [(key(SIGNOFF), &old.head)]
    );
    minimise(&repo, &own[0].node_id).await.unwrap();
    minimise(&repo, &own[0].node_id).await.unwrap();
    assert_eq!(
        bench.sim.own_comments(7).unwrap()[0]
            .minimized
            .as_deref()
            .map(str::to_ascii_uppercase)
            .as_deref(),
        Some("OUTDATED")
    );
    bench.sim.delete_comment(own[0].id, "olivia").unwrap();
    minimise(&repo, &own[0].node_id).await.unwrap();
}

async fn status(
    repo: &RepoClient,
    sha: &CommitSha,
    state: StatusState,
    description: &str,
) -> countersign_github::publish::PublishedStatus {
    let wanted = DesiredStatus {
        sha,
        context: "signoff",
        state,
        description,
        target_url: Some("https://example.org/1"),
    };
    ensure_status(repo, &wanted).await.unwrap()
}

#[tokio::test]
async fn a_status_is_written_where_it_differs() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let sha: CommitSha = bench.sim.head(7).unwrap().parse().unwrap();
    let states = || {
        bench
            .sim
            .statuses(REPO, sha.as_str())
            .iter()
            .filter(|status| status.context == "signoff")
            .count()
    };
    assert!(status(&repo, &sha, StatusState::Pending, "waiting").await.written);
    assert!(!status(&repo, &sha, StatusState::Pending, "waiting").await.written);
    assert!(status(&repo, &sha, StatusState::Success, "fine").await.written);
    assert_eq!(states(), 2);
    let lost = FaultSpec {
        status: Some(502),
        applied: true,
        ..fault("POST /repos/*/*/statuses/*")
    };
    bench.sim.add_fault(lost).unwrap();
    assert!(status(&repo, &sha, StatusState::Failure, "not fine").await.written);
    assert_eq!(states(), 3);
    // Somebody else's status of the same context does not stand.
    let other = Step {
        status: Some(InRepo {
            repo: None,
            what: StatusSpec {
                sha: sha.to_string(),
                context: "signoff".into(),
                state: "success".into(),
                by: Some("mallory".into()),
                ..StatusSpec::default()
            },
        }),
        ..Default::default()
    };
    bench.sim.play(&other).unwrap();
    let replaced = status(&repo, &sha, StatusState::Failure, "not fine").await;
    assert!(replaced.written);
    assert_eq!(replaced.replaced.unwrap().as_str(), "mallory");
    assert_eq!(bench.sim.status(7, "signoff").unwrap().unwrap().state, "failure");
}

#[tokio::test]
async fn our_reaction_is_exchanged_and_those_of_people_stay() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let reactions = || {
        let comments = bench.sim.comments(7).unwrap();
        let comment = comments.into_iter().find(|comment| comment.id == 601).unwrap();
        comment
            .reactions
            .into_iter()
            .map(|reaction| (reaction.by, reaction.content))
            .collect::<Vec<_>>()
    };
    // A person's own reaction, which stays whatever we do.
    let url = format!("{}/repos/{REPO}/issues/comments/601/reactions", bench.sim.base_url());
    let token = ("authorization".to_owned(), "Bearer ghp_person".to_owned());
    let by_erin = countersign_sim::client::send("POST", &url, &[token], br#"{"content":"+1"}"#.to_vec())
        .await
        .unwrap();
    assert_eq!(by_erin.status, 201);
    let erin = || ("erin".to_owned(), "+1".to_owned());
    assert!(ensure_reaction(&repo, 601, Reaction::Plus).await.unwrap());
    assert!(!ensure_reaction(&repo, 601, Reaction::Plus).await.unwrap());
    assert_eq!(reactions(), [erin(), ("countersign[bot]".to_owned(), "+1".to_owned())]);
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            applied: true,
            ..fault("POST /repos/*/*/issues/comments/601/reactions")
        })
        .unwrap();
    assert!(ensure_reaction(&repo, 601, Reaction::Minus).await.unwrap());
    assert_eq!(reactions(), [erin(), ("countersign[bot]".to_owned(), "-1".to_owned())]);
    assert!(ensure_reaction(&repo, 601, Reaction::None).await.unwrap());
    assert!(!ensure_reaction(&repo, 601, Reaction::None).await.unwrap());
    assert_eq!(reactions(), [erin()]);
    assert!(ensure_reaction(&repo, 1, Reaction::Plus).await.is_err());
}

#[tokio::test]
async fn a_check_run_has_its_annotations_once() {
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    let head: CommitSha = bench.sim.head(7).unwrap().parse().unwrap();
    let notes = |count: u64| -> Vec<Annotation> {
        (1..=count)
            .map(|line| Annotation {
                path: "configs/master.yaml".into(),
                start_line: line,
                end_line: line,
                level: AnnotationLevel::Failure,
                message: format!("line {line}"),
                title: Some("Title".into()),
            })
            .collect()
    };
    let runs = || {
        bench
            .sim
            .check_runs(REPO, head.as_str())
            .into_iter()
            .filter(|run| run.name == "signoff")
            .collect::<Vec<_>>()
    };
    let wanted = |annotations, conclusion, summary| DesiredCheckRun {
        head: &head,
        name: "signoff",
        external_id: SIGNOFF,
        conclusion,
        title: "Title",
        summary,
        text: None,
        details_url: Some("https://example.org/1"),
        annotations,
        actions: &[],
    };
    let many = notes(120);
    let first = ensure_check_run(&repo, &wanted(&many, Some(CheckConclusion::Failure), "table"))
        .await
        .unwrap();
    assert!(first.written);
    assert_eq!(
        (
            runs().len(),
            runs()[0].annotations.len(),
            runs()[0].conclusion.as_deref()
        ),
        (1, 120, Some("failure"))
    );
    let again = ensure_check_run(&repo, &wanted(&many, Some(CheckConclusion::Failure), "table"))
        .await
        .unwrap();
    assert_eq!((again.id, again.written), (first.id, false));
    // Other words: the same run. Other annotations: a new one, since GitHub only adds.
    let words = ensure_check_run(&repo, &wanted(&many, Some(CheckConclusion::Failure), "other table"))
        .await
        .unwrap();
    assert_eq!(
        (words.id, words.written, runs()[0].annotations.len()),
        (first.id, true, 120)
    );
    let fewer = notes(3);
    let anew = ensure_check_run(&repo, &wanted(&fewer, Some(CheckConclusion::Success), "table"))
        .await
        .unwrap();
    assert!(anew.written && anew.id != first.id);
    let newest = runs().into_iter().max_by_key(|run| run.id).unwrap();
    assert_eq!(
        (newest.id, newest.annotations.len(), newest.conclusion.as_deref()),
        (anew.id, 3, Some("success"))
    );
    // An update that was cut off in the middle is completed.
    let bench = Bench::new(&world());
    let repo = bench.repo().await;
    bench
        .sim
        .add_fault(FaultSpec {
            status: Some(502),
            ..fault("PATCH /repos/*/*/check-runs/*")
        })
        .unwrap();
    assert!(
        ensure_check_run(&repo, &wanted(&many, Some(CheckConclusion::Failure), "table"))
            .await
            .is_err()
    );
    assert!(
        ensure_check_run(&repo, &wanted(&many, Some(CheckConclusion::Failure), "table"))
            .await
            .unwrap()
            .written
    );
    let runs = bench.sim.check_runs(REPO, head.as_str());
    assert_eq!(runs.iter().map(|run| run.annotations.len()).collect::<Vec<_>>(), [120]);
}
