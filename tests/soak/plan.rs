//! What a run will do, made from its seed alone: the stories of the pull requests, the faults, and when which server is killed.

use countersign_sim::World;
use countersign_sim::world::faults::{FaultSpec, LimitFault};
use countersign_sim::world::spell::{Clock, Span};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The policy and world of `countersign demo`, of which every pull request here is a copy.
pub(crate) const POLICY: &str = include_str!("../../crates/countersign-cli/demo/policy.yaml");
const WORLD: &str = include_str!("../../crates/countersign-cli/demo/world.yaml");
/// The status context of [`POLICY`].
pub(crate) const CONTEXT: &str = "owner-signoff";

/// The sign-off that passes.
pub(crate) const GOOD: &str = "As a reviewer and owner, I looked at this and:\n- [x] Used the latest version of the checklist\n- [x] Saw that evals pass\n- [ ] If any of this cannot be satisfied, said why below\n";
/// One that lacks an item.
pub(crate) const SHORT: &str = "As a reviewer and owner, I looked at this and:\n- [x] Used the latest version of the checklist\n- [ ] If any of this cannot be satisfied, said why below\n";

/// Repositories, of one installation.
pub(crate) const REPOSITORIES: u64 = 10;

/// SplitMix64, with the constants of the published algorithm.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.next() % most.max(1)
    }
}

/// One thing that somebody does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Do {
    /// Names the run that is to be reused.
    Use,
    /// Signs off, rightly.
    Sign,
    /// Signs off with an item missing.
    SignShort,
    /// Edits the first sign-off so that it is right, and newer than the head.
    EditGood,
    /// Signs off a second time.
    SignAgain,
    /// Pushes a commit.
    Push,
    /// Pushes a commit that says it was made well after the sign-off, as one that nobody saw before the sign-off would.
    PushYoung,
    /// Deletes the first sign-off.
    Delete,
    /// Somebody else edits the first sign-off.
    ForeignEdit,
    /// Converts to a draft.
    Draft,
    /// Makes it ready.
    Ready,
    /// Somebody writes a status on our context that says the opposite.
    OverwriteStatus,
    /// Somebody edits our comment.
    EditOurs,
    /// Somebody deletes our comment.
    DeleteOurs,
    /// A comment that is neither sign-off nor command, some of them made to look like one.
    Chatter(u8),
    /// The run ends.
    CompleteRun,
    /// Closes the pull request.
    Close,
}

/// What a step waits for, as a person would.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gate {
    /// Nothing.
    None,
    /// A status of ours on the present head.
    HeadShown,
    /// A decided status of ours on the present head, and our comment.
    Decided,
}

/// What has to be there at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Right {
    /// Waiting for a sign-off; no comment.
    Waiting,
    /// Waiting until the draft is ready; no comment.
    Draft,
    /// PASS on the head, for the newest sign-off.
    Pass,
    /// REJECTED on the head, for the newest sign-off.
    Rejected,
    /// The head moved after the sign-off; at most the comment for the old head.
    Stale,
    /// The sign-off was deleted.
    Deleted,
    /// The sign-off was edited by another person.
    EditedByOther,
}

/// A kind of story.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) steps: &'static [(Gate, Do)],
    pub(crate) right: Right,
    /// Whether the run is still going at the start.
    pub(crate) late_run: bool,
}

const fn kind(name: &'static str, steps: &'static [(Gate, Do)], right: Right) -> Kind {
    Kind {
        name,
        steps,
        right,
        late_run: false,
    }
}

/// All kinds; each is as likely as the others.
pub(crate) const KINDS: &[Kind] = &[
    kind("pass", &[(Gate::None, Do::Use), (Gate::None, Do::Sign)], Right::Pass),
    kind(
        "sign first",
        &[(Gate::None, Do::Sign), (Gate::None, Do::Use)],
        Right::Pass,
    ),
    kind(
        "no reuse command",
        &[(Gate::None, Do::Chatter(0)), (Gate::None, Do::Sign)],
        Right::Rejected,
    ),
    kind(
        "mended at once",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::SignShort),
            (Gate::None, Do::EditGood),
        ],
        Right::Pass,
    ),
    kind(
        "mended after the verdict",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::SignShort),
            (Gate::Decided, Do::EditGood),
        ],
        Right::Pass,
    ),
    kind(
        "pushed after the verdict",
        &[(Gate::None, Do::Use), (Gate::None, Do::Sign), (Gate::Decided, Do::Push)],
        Right::Stale,
    ),
    kind(
        "pushed at once",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::None, Do::PushYoung),
        ],
        Right::Stale,
    ),
    kind(
        "signed again for a new head",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::Push),
            (Gate::HeadShown, Do::EditGood),
        ],
        Right::Pass,
    ),
    kind(
        "deleted",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::Delete),
        ],
        Right::Deleted,
    ),
    kind(
        "draft",
        &[(Gate::None, Do::Draft), (Gate::None, Do::Use), (Gate::None, Do::Sign)],
        Right::Draft,
    ),
    kind(
        "draft that becomes ready",
        &[
            (Gate::None, Do::Draft),
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::None, Do::Ready),
        ],
        Right::Pass,
    ),
    kind(
        "edited by another person",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::None, Do::ForeignEdit),
        ],
        Right::EditedByOther,
    ),
    kind(
        "status overwritten",
        &[
            (Gate::None, Do::Chatter(1)),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::OverwriteStatus),
        ],
        Right::Rejected,
    ),
    kind(
        "our comment edited",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::EditOurs),
        ],
        Right::Pass,
    ),
    kind(
        "our comment deleted",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::DeleteOurs),
        ],
        Right::Pass,
    ),
    kind(
        "chatter only",
        &[
            (Gate::None, Do::Chatter(0)),
            (Gate::None, Do::Chatter(1)),
            (Gate::None, Do::Chatter(2)),
            (Gate::None, Do::Chatter(3)),
        ],
        Right::Waiting,
    ),
    Kind {
        name: "run ends late",
        steps: &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::None, Do::CompleteRun),
        ],
        right: Right::Pass,
        late_run: true,
    },
    kind(
        "second sign-off",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::SignAgain),
        ],
        Right::Pass,
    ),
    kind(
        "closed",
        &[
            (Gate::None, Do::Use),
            (Gate::None, Do::Sign),
            (Gate::Decided, Do::Close),
        ],
        Right::Pass,
    ),
];

/// A pull request and its story.
#[derive(Debug)]
pub(crate) struct Story {
    pub(crate) repository: String,
    pub(crate) number: u64,
    pub(crate) run: u64,
    pub(crate) kind: &'static Kind,
}

/// Which server dies when, and for how long it is away.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kill {
    pub(crate) after: Duration,
    pub(crate) server: usize,
    pub(crate) away: Duration,
}

/// The whole run.
pub(crate) struct Plan {
    pub(crate) stories: Vec<Story>,
    /// Which story goes on next, again and again until all are told.
    pub(crate) order: Vec<usize>,
    pub(crate) faults: Vec<FaultSpec>,
    pub(crate) kills: Vec<Kill>,
    pub(crate) digest: String,
}

impl Plan {
    pub(crate) fn new(seed: u64, pulls: u64, lively: bool) -> Self {
        let mut random = Random(seed);
        let stories: Vec<Story> = (0..pulls)
            .map(|index| Story {
                repository: format!("octo/bench-{}", index % REPOSITORIES),
                number: 1 + index / REPOSITORIES,
                run: 100_000 + index,
                kind: &KINDS[usize::try_from(random.below(KINDS.len() as u64)).unwrap_or(0)],
            })
            .collect();
        let mut order: Vec<usize> = stories
            .iter()
            .enumerate()
            .flat_map(|(index, story)| std::iter::repeat_n(index, story.kind.steps.len()))
            .collect();
        for at in (1..order.len()).rev() {
            order.swap(at, usize::try_from(random.below(at as u64 + 1)).unwrap_or(0));
        }
        let faults = faults(&mut random);
        let (shortest, spread) = if lively { (1_200, 1_500) } else { (2_500, 2_500) };
        let kills = (0..400)
            .map(|_| Kill {
                after: Duration::from_millis(shortest + random.below(spread)),
                server: usize::try_from(random.below(2)).unwrap_or(0),
                away: Duration::from_millis(random.below(800)),
            })
            .collect::<Vec<_>>();
        let mut hash = Sha256::new();
        for story in &stories {
            hash.update(story.kind.name);
        }
        hash.update(format!("{order:?}{faults:?}{kills:?}"));
        Self {
            stories,
            order,
            faults,
            kills,
            digest: hex::encode(hash.finalize())[..16].to_owned(),
        }
    }

    /// Stories that pass, in order, and nothing that goes wrong.
    pub(crate) fn plain(pulls: u64) -> Self {
        let mut plan = Self::new(0, pulls, true);
        for story in &mut plan.stories {
            story.kind = &KINDS[0];
        }
        let all = 0..plan.stories.len();
        plan.order = all.clone().chain(all).collect();
        plan.faults.clear();
        plan.kills.clear();
        plan
    }

    /// The simulated GitHub at the start.
    pub(crate) fn world(&self) -> World {
        let mut world = World::parse("demo world", WORLD).expect("the demo's world is right");
        world.timeline.clear();
        world.clock = Clock::Real;
        world.limits.core = 1 << 40;
        let now = chrono::Utc::now();
        let model = world.repositories.remove("octo/bench").expect("the demo's repository");
        let (root, change) = (model.commits[0].clone(), model.commits[1].clone());
        let pull = model.pulls[0].clone();
        let run = model.runs.as_ref().expect("a run")[0].clone();
        for index in 0..REPOSITORIES {
            let name = format!("octo/bench-{index}");
            let mut repository = model.clone();
            repository.commits = vec![countersign_sim::world::repo::CommitSpec {
                date: Some(now - chrono::TimeDelta::days(2)),
                ..root.clone()
            }];
            repository.pulls.clear();
            let mut runs = Vec::new();
            for story in self.stories.iter().filter(|story| story.repository == name) {
                let id = format!("change-{}", story.number);
                let mut commit = change.clone();
                commit.id.clone_from(&id);
                commit.message = Some(format!("Change {}", story.number));
                commit.date = Some(now - chrono::TimeDelta::hours(3));
                repository.commits.push(commit);
                let mut one = pull.clone();
                one.number = story.number;
                one.head = serde_json::from_value(serde_json::json!({ "sha": id, "ref": id })).ok();
                one.created_at = Some(now - chrono::TimeDelta::hours(3));
                repository.pulls.push(one);
                let mut one = run.clone();
                one.id = Some(story.run);
                one.head = id;
                one.created_at = Some(now - chrono::TimeDelta::hours(2));
                if story.kind.late_run {
                    one.status = Some("in_progress".into());
                }
                runs.push(one);
            }
            repository.runs = Some(runs);
            world.repositories.insert(name, repository);
        }
        world
    }
}

/// What goes wrong, each with a chance and a seed of its own.
fn faults(random: &mut Random) -> Vec<FaultSpec> {
    let on = |place: &str, chance: f64, random: &mut Random| FaultSpec {
        on: place.to_owned(),
        // A tenth more or less, so that runs differ in kind too.
        chance: Some(chance * (0.5 + random.below(100) as f64 / 100.0)),
        seed: random.next(),
        ..FaultSpec::default()
    };
    let limit = |place: &str, chance, kind, seconds, random: &mut Random| FaultSpec {
        limit: Some(kind),
        retry_after: Some(seconds),
        ..on(place, chance, random)
    };
    vec![
        // Webhooks: not delivered, delivered twice, late, after others, with a wrong signature, taken but answered as if not, lost
        // without a trace.
        FaultSpec {
            drop: true,
            ..on("webhook", 0.03, random)
        },
        FaultSpec {
            duplicate: Some(2),
            ..on("webhook", 0.04, random)
        },
        FaultSpec {
            delay: Some(Span(Duration::from_millis(30))),
            ..on("webhook", 0.02, random)
        },
        FaultSpec {
            hold: Some(1 + random.below(40)),
            ..on("webhook", 0.05, random)
        },
        FaultSpec {
            bad_signature: true,
            ..on("webhook", 0.02, random)
        },
        FaultSpec {
            status: Some(502),
            applied: true,
            ..on("webhook", 0.02, random)
        },
        FaultSpec {
            status: Some(504),
            ..on("webhook", 0.01, random)
        },
        FaultSpec {
            unrecorded: true,
            ..on("webhook", 0.01, random)
        },
        // Writes that GitHub takes, and then answers 502 or nothing.
        FaultSpec {
            status: Some(502),
            applied: true,
            ..on("POST /repos/*/*/issues/*/comments", 0.06, random)
        },
        FaultSpec {
            drop: true,
            applied: true,
            ..on("POST /repos/*/*/issues/*/comments", 0.03, random)
        },
        FaultSpec {
            status: Some(502),
            applied: true,
            ..on("POST /repos/*/*/statuses/*", 0.05, random)
        },
        FaultSpec {
            drop: true,
            applied: true,
            ..on("PATCH /repos/*/*/issues/comments/*", 0.03, random)
        },
        FaultSpec {
            status: Some(502),
            applied: true,
            ..on("POST /repos/*/*/issues/comments/*/reactions", 0.05, random)
        },
        // Answers that fail, break off, end early, or come late.
        FaultSpec {
            status: Some(500),
            ..on("* /**", 0.004, random)
        },
        FaultSpec {
            status: Some(503),
            ..on("* /**", 0.003, random)
        },
        FaultSpec {
            drop: true,
            ..on("* /**", 0.003, random)
        },
        FaultSpec {
            truncate: Some(random.below(400)),
            ..on("GET /**", 0.002, random)
        },
        FaultSpec {
            cut: Some(random.below(400)),
            ..on("GET /**", 0.002, random)
        },
        FaultSpec {
            delay: Some(Span(Duration::from_millis(60))),
            ..on("GET /**", 0.005, random)
        },
        FaultSpec {
            status: Some(401),
            ..on("GET /repos/**", 0.001, random)
        },
        // Limits.
        limit("* /**", 0.0005, LimitFault::Secondary, 1, random),
        limit("POST /**", 0.001, LimitFault::TooMany, 1, random),
        limit("GET /**", 0.0003, LimitFault::Primary, 1, random),
    ]
}
