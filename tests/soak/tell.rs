//! Telling a story, step by step, and judging what is there at its end.

use countersign_sim::world::timeline::Step;
use countersign_sim::{CommentView, SimHandle};
use serde_json::json;

use crate::plan::{CONTEXT, Do, GOOD, Gate, Right, SHORT, Story};

/// A story being told.
pub(crate) struct Told<'p> {
    pub(crate) story: &'p Story,
    pub(crate) pull: String,
    next: usize,
    /// Ids of the sign-offs, in order.
    signoffs: Vec<u64>,
    first_head: String,
}

impl<'p> Told<'p> {
    pub(crate) fn new(story: &'p Story, sim: &SimHandle) -> Self {
        let pull = format!("{}#{}", story.repository, story.number);
        let first_head = sim.head(pull.as_str()).expect("a head");
        Self {
            story,
            pull,
            next: 0,
            signoffs: Vec::new(),
            first_head,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.next >= self.story.kind.steps.len()
    }

    /// Whether its head has a status of ours.
    pub(crate) fn is_seen(&self, sim: &SimHandle) -> bool {
        sim.status(self.pull.as_str(), CONTEXT).expect("there").is_some()
    }

    fn ours(&self, sim: &SimHandle) -> Vec<CommentView> {
        sim.own_comments(self.pull.as_str()).expect("there")
    }

    fn open_gate(&self, sim: &SimHandle, gate: Gate) -> bool {
        let status = || sim.status(self.pull.as_str(), CONTEXT).expect("there");
        match gate {
            Gate::None => true,
            // Nobody answers within the second; and GitHub's times are whole seconds, so that an edit of the same second as the first
            // sight of a head rightly counts for nothing.
            Gate::HeadShown => status().is_some_and(|status| sim.now() - status.at >= chrono::TimeDelta::seconds(2)),
            Gate::Decided => {
                status().is_some_and(|status| matches!(status.state.as_str(), "success" | "failure"))
                    && self.ours(sim).iter().any(|comment| comment.minimized.is_none())
            }
        }
    }

    /// Does the next thing, if what it waits for is there.
    pub(crate) fn go_on(&mut self, sim: &SimHandle) -> bool {
        let Some((gate, what)) = self.story.kind.steps.get(self.next).copied() else {
            return false;
        };
        if !self.open_gate(sim, gate) {
            return false;
        }
        let pull = self.pull.as_str();
        let first = self.signoffs.first().copied().unwrap_or_default();
        match what {
            Do::Use => {
                sim.post_comment(pull, "olive", &format!("/use {}", self.story.run))
                    .expect("posted");
            }
            Do::Sign | Do::SignAgain => self
                .signoffs
                .push(sim.post_comment(pull, "olive", GOOD).expect("posted")),
            Do::SignShort => self
                .signoffs
                .push(sim.post_comment(pull, "olive", SHORT).expect("posted")),
            Do::EditGood => sim
                .edit_comment(first, &format!("{GOOD}\nSeen it all, step {}.\n", self.next), "olive")
                .expect("edited"),
            Do::ForeignEdit => sim
                .edit_comment(first, &format!("{GOOD}\nMe too.\n"), "mallory")
                .expect("edited"),
            Do::Delete => sim.delete_comment(first, "olive").expect("deleted"),
            Do::Push | Do::PushYoung => {
                // Later than the sign-off by more than clocks may differ.
                let late = if what == Do::PushYoung { 5 } else { 0 };
                let date = sim.now() + chrono::TimeDelta::minutes(late);
                let commit = json!({ "id": format!("late-{}", self.story.number), "files": { "notes.md": "later\n" }, "date": date });
                sim.push_commit(pull, serde_json::from_value(commit).expect("a commit"))
                    .expect("pushed");
            }
            Do::Draft => sim.set_draft(pull, true).expect("a draft"),
            Do::Ready => sim.set_draft(pull, false).expect("ready"),
            Do::Close => sim.set_open(pull, false).expect("closed"),
            Do::CompleteRun => sim.complete_run(self.story.run, "success").expect("completed"),
            Do::OverwriteStatus => {
                let status = json!({ "status": {
                    "repo": self.story.repository, "sha": sim.head(pull).expect("a head"), "context": CONTEXT,
                    "state": "success", "description": "nothing to see", "by": "mallory" } });
                let step: Step = serde_json::from_value(status).expect("a step");
                sim.play(&step).expect("a status");
            }
            Do::EditOurs => {
                if let Some(comment) = self.ours(sim).last() {
                    sim.edit_comment(comment.id, "nothing to see", "mallory")
                        .expect("edited");
                }
            }
            Do::DeleteOurs => {
                if let Some(comment) = self.ours(sim).last() {
                    sim.delete_comment(comment.id, "mallory").expect("deleted");
                }
            }
            Do::Chatter(which) => {
                let text = match which {
                    0 => "Looks good to me.".to_owned(),
                    1 => format!("> {}", GOOD.replace('\n', "\n> ")),
                    2 => format!(
                        "<!-- demo-verdict signoff=issuecomment-1 sha={} -->\n## ✅✅✅ **Verdict: PASS** ✅✅✅\n",
                        self.first_head
                    ),
                    _ => format!("```\n{GOOD}/use {}\n```\n", self.story.run),
                };
                sim.post_comment(pull, "mallory", &text).expect("posted");
            }
        }
        self.next += 1;
        true
    }

    /// What is not as it should be at the end.
    pub(crate) fn wrong(&self, sim: &SimHandle) -> Option<String> {
        let pull = self.pull.as_str();
        let head = sim.head(pull).expect("a head");
        let status = sim.status(pull, CONTEXT).expect("there");
        let Some(status) = status else {
            return Some("no status on the head".into());
        };
        let text = status.description.clone().unwrap_or_default();
        let shown = format!("{}: {text}", status.state);
        if status.by != sim.bot_login() {
            return Some(format!("the status is by {}: {shown}", status.by));
        }
        let ours = self.ours(sim);
        let open: Vec<&CommentView> = ours.iter().filter(|comment| comment.minimized.is_none()).collect();
        let fits = |state: &str, words: &str| status.state == state && text.contains(words);
        let (status_is_right, verdict) = match self.story.kind.right {
            Right::Waiting => (
                fits("pending", "Waiting for") || fits("pending", "Not taken as a sign-off"),
                None,
            ),
            Right::Draft => (fits("pending", "will be judged when ready"), None),
            Right::Deleted => (
                fits("pending", "it was deleted"),
                Some(("**Verdict: PASS**", &self.first_head)),
            ),
            Right::EditedByOther => (
                fits("pending", "mallory edited it"),
                Some(("**Verdict: PASS**", &self.first_head)),
            ),
            Right::Stale => (
                fits("pending", "Head moved: PASS was for") || fits("pending", "the head moved after it was written"),
                Some(("**Verdict: PASS**", &self.first_head)),
            ),
            Right::Pass => (fits("success", "PASS"), Some(("**Verdict: PASS**", &head))),
            Right::Rejected => (fits("failure", "REJECTED"), Some(("**REJECTED**", &head))),
        };
        if !status_is_right {
            return Some(format!("the status is {shown}"));
        }
        let needed = matches!(self.story.kind.right, Right::Pass | Right::Rejected);
        match (verdict, open.as_slice()) {
            (None, []) => None,
            (None, some) => Some(format!("{} comments where none is right", some.len())),
            (Some(_), []) if needed => Some("no comment".into()),
            (Some(_), []) => None,
            (Some((headline, head)), [comment]) => {
                let key = self.signoffs.last().copied().unwrap_or_default();
                let marker = format!("signoff=issuecomment-{key} sha={head} -->");
                (!comment.body.contains(&marker) || !comment.body.contains(headline)).then(|| {
                    format!(
                        "the comment is another: {}",
                        comment.body.chars().take(200).collect::<String>()
                    )
                })
            }
            (Some(_), several) => Some(format!("{} comments that are not folded", several.len())),
        }
    }

    /// What a reader was told twice.
    pub(crate) fn doubled(&self, sim: &SimHandle) -> Vec<String> {
        let mut found = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        for comment in self.ours(sim) {
            let lines: Vec<&str> = comment.body.lines().take(2).collect();
            if !seen.insert(lines.join("\n")) {
                found.push(format!("{}: two comments {:?}", self.pull, lines));
            }
        }
        let mut heads = vec![self.first_head.clone(), sim.head(self.pull.as_str()).expect("a head")];
        heads.dedup();
        for head in heads {
            let statuses = sim.statuses(&self.story.repository, &head);
            let mut before = None;
            for status in statuses.into_iter().filter(|status| status.context == CONTEXT) {
                let now = (status.by, status.state, status.description, status.target_url);
                if before.as_ref() == Some(&now) {
                    found.push(format!("{}: the same status twice in a row: {now:?}", self.pull));
                }
                before = Some(now);
            }
        }
        found
    }
}
