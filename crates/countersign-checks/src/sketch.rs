//! Evidence from a few lines of YAML: what a fixture says, and sane values for the rest.
//!
//! What a sketch does not say is there and empty (no comments, no runs), except for what stands under `unavailable`.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::evidence::{
    Artifact, Association, Blobs, ChangeStatus, ChangedFile, Comment, Commit, Conclusion, EVIDENCE_FORMAT, EntryMode,
    FileVersion, Job, MemoryBlobs, People, Permission, PullRequest, Role, RunStatus, SignoffText, Tree, TreeEntry,
    Upstream, WorkflowRun,
};
use countersign_core::{
    BlobId, Cause, CauseKind, CommitSha, Evidence, InvalidId, Login, Observed, PrNumber, SignoffKey, SignoffPlace,
};
use serde::Deserialize;

/// See the module. Every field may be left out.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Sketch {
    /// Who signs.
    pub signer: String,
    /// The signer's relation to the repository.
    pub association: Association,
    /// The sign-off's text.
    pub signoff: String,
    /// Files of the target branch's tip.
    pub trusted: BTreeMap<String, String>,
    /// Files at the merge base; what is missing here is taken from `trusted`.
    pub base: BTreeMap<String, String>,
    /// Files at head; what is missing here is taken from the merge base. `null` removes a file.
    pub head: BTreeMap<String, Option<String>>,
    /// Changed paths besides those that follow from `base` and `head`.
    pub changed: Vec<String>,
    /// Renames: from → to.
    pub renamed: BTreeMap<String, String>,
    /// Commits of the pull request, oldest first, by any words; the last is head. Default: one.
    pub commits: Vec<String>,
    /// Comments, oldest first.
    pub comments: Vec<SketchComment>,
    /// Roles by login.
    pub roles: BTreeMap<String, Role>,
    /// Membership of the signer: `true`, `false`, or `null` for unreadable.
    pub teams: BTreeMap<String, Option<bool>>,
    /// Files at earlier commits, by the words of `commits`, where they differ from head.
    pub files_at: BTreeMap<String, BTreeMap<String, String>>,
    /// Runs, newest first.
    pub runs: Vec<SketchRun>,
    /// The template that the trusted one replaced after the sign-off.
    pub previous_template: Option<OldTemplate>,
    /// Labels of the pull request.
    pub labels: Vec<String>,
    /// Description.
    pub body: String,
    /// Facts that could not be read: `changed_files`, `commits`, `comments`, `runs`, `trusted`, `base`, `head`.
    pub unavailable: Vec<String>,
    /// What links lead to.
    pub upstream: BTreeMap<String, Observed<Upstream>>,
    /// The day that counts as now.
    pub now: DateTime<Utc>,
}

/// A comment of a sketch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchComment {
    /// Login.
    pub by: String,
    /// Association.
    #[serde(default = "collaborator")]
    pub association: Association,
    /// Text.
    pub body: String,
    /// Minutes after the sign-off; negative = before.
    #[serde(default)]
    pub minutes: i64,
    /// Whether it is a bot's.
    #[serde(default)]
    pub bot: bool,
}

fn collaborator() -> Association {
    Association::Collaborator
}

/// A template of the past.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldTemplate {
    /// Its text.
    pub text: String,
    /// When it was replaced, in minutes after the sign-off.
    pub replaced_minutes: i64,
}

/// A run of a sketch.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SketchRun {
    /// Id.
    pub id: u64,
    /// The commit it ran on, by the words of `commits`; `head` and any other word are commits too.
    #[serde(default = "head_word")]
    pub at: String,
    /// Workflow path; default: the policy of fixtures' own.
    #[serde(default = "sweep_path")]
    pub workflow: String,
    /// Event.
    #[serde(default = "pull_request_event")]
    pub event: String,
    /// Conclusion; `null` = still running.
    #[serde(default = "success")]
    pub conclusion: Option<Conclusion>,
    /// Lanes: name → outcome → count.
    #[serde(default)]
    pub lanes: BTreeMap<String, BTreeMap<String, u32>>,
    /// Job names by outcome, besides lanes.
    #[serde(default)]
    pub jobs: BTreeMap<String, String>,
    /// Artifacts: name → files; `null` = expired.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Option<BTreeMap<String, String>>>,
    /// Whether the jobs could not be read.
    #[serde(default)]
    pub jobs_unavailable: bool,
    /// Whether the artifacts could not be read.
    #[serde(default)]
    pub artifacts_unavailable: bool,
}

fn head_word() -> String {
    "head".into()
}
fn sweep_path() -> String {
    ".ci/sweep.yml".into()
}
fn pull_request_event() -> String {
    "pull_request".into()
}
#[expect(clippy::unnecessary_wraps, reason = "the default of an optional field")]
fn success() -> Option<Conclusion> {
    Some(Conclusion::Success)
}

impl Default for Sketch {
    fn default() -> Self {
        Self {
            signer: "olive".into(),
            association: Association::Collaborator,
            signoff: String::new(),
            trusted: BTreeMap::new(),
            base: BTreeMap::new(),
            head: BTreeMap::new(),
            changed: Vec::new(),
            renamed: BTreeMap::new(),
            commits: Vec::new(),
            comments: Vec::new(),
            roles: BTreeMap::new(),
            teams: BTreeMap::new(),
            files_at: BTreeMap::new(),
            runs: Vec::new(),
            previous_template: None,
            labels: Vec::new(),
            body: String::new(),
            unavailable: Vec::new(),
            upstream: BTreeMap::new(),
            now: DateTime::from_timestamp(1_786_000_000, 0).unwrap_or_default(),
        }
    }
}

/// A stable SHA for a word: 40 hexadecimal digits.
///
/// # Errors
/// Never for any word.
pub fn sha_of(word: &str) -> Result<CommitSha, InvalidId> {
    let hash = countersign_core::digest::sha256_hex(word.as_bytes());
    hash[..40].parse()
}

impl Sketch {
    /// The evidence.
    ///
    /// # Errors
    /// A login that is none.
    pub fn evidence(&self) -> Result<Evidence, InvalidId> {
        let head_word = self.commits.last().map_or("head", String::as_str);
        let head_sha = sha_of(head_word)?;
        let trusted_sha = sha_of("trusted")?;
        let base_sha = sha_of("merge base")?;
        let mut base_files = self.trusted.clone();
        base_files.extend(self.base.clone());
        let mut head_files = base_files.clone();
        for (path, text) in &self.head {
            match text {
                Some(text) => head_files.insert(path.clone(), text.clone()),
                None => head_files.remove(path),
            };
        }
        let mut blobs = MemoryBlobs::default();
        let mut trees = BTreeMap::new();
        for (name, sha, files) in [
            ("trusted", &trusted_sha, &self.trusted),
            ("base", &base_sha, &base_files),
            ("head", &head_sha, &head_files),
        ] {
            let tree = if self.is_unavailable(name) {
                gone(name)
            } else {
                Observed::Present(tree(sha, files, &mut blobs)?)
            };
            trees.insert(sha.clone(), tree);
        }
        // Runs on earlier commits see the head's files, unless a fixture gives that commit files of its own.
        for run in &self.runs {
            let commit = self.sha_for(&run.at)?;
            let mut files = head_files.clone();
            files.extend(self.files_at.get(&run.at).cloned().unwrap_or_default());
            trees
                .entry(commit.clone())
                .or_insert(Observed::Present(tree(&commit, &files, &mut blobs)?));
        }
        let signed_at = self.now - TimeDelta::hours(1);
        Ok(Evidence {
            format: EVIDENCE_FORMAT,
            now: self.now,
            head_seen_at: signed_at - TimeDelta::hours(1),
            repository: "octo/bench".parse()?,
            pull_request: PullRequest {
                number: PrNumber(7),
                title: "A change".into(),
                body: self.body.clone(),
                author: Some("author".parse()?),
                draft: false,
                open: true,
                merged: false,
                base_ref: "main".into(),
                head_sha: head_sha.clone(),
                head_ref: "topic".into(),
                head_repository: Some("octo/bench".parse()?),
                labels: self.labels.clone(),
                url: "https://github.com/octo/bench/pull/7".into(),
            },
            signoff: SignoffText {
                key: SignoffKey {
                    place: SignoffPlace::IssueComment,
                    id: 99,
                },
                author: self.signer.parse()?,
                author_is_bot: false,
                association: self.association,
                body: self.signoff.clone(),
                created_at: signed_at,
                updated_at: signed_at,
                edited_by_other: None,
                url: "https://github.com/octo/bench/pull/7#issuecomment-99".into(),
            },
            trusted_sha,
            merge_base: Observed::Present(base_sha),
            changed_files: self.or_gone("changed_files", self.changes(&base_files, &head_files)),
            commits: self.or_gone("commits", self.commit_list()?),
            comments: self.or_gone("comments", self.comment_list(signed_at)?),
            people: self.people(),
            previous_template: match &self.previous_template {
                None => Observed::Absent,
                Some(old) => Observed::Present(FileVersion {
                    commit: sha_of("previous template")?,
                    replaced_at: signed_at + TimeDelta::minutes(old.replaced_minutes),
                    text: old.text.clone(),
                }),
            },
            trees,
            runs: self.or_gone(
                "runs",
                self.runs.iter().map(|run| self.run(run)).collect::<Result<_, _>>()?,
            ),
            upstream: self.upstream.clone(),
            blobs: Blobs::new(blobs),
        })
    }

    fn is_unavailable(&self, name: &str) -> bool {
        self.unavailable.iter().any(|known| known == name)
    }

    fn or_gone<T>(&self, name: &str, value: T) -> Observed<T> {
        if self.is_unavailable(name) {
            gone(name)
        } else {
            Observed::Present(value)
        }
    }

    fn sha_for(&self, word: &str) -> Result<CommitSha, InvalidId> {
        let word = if word == "head" {
            self.commits.last().map_or("head", String::as_str)
        } else {
            word
        };
        sha_of(word)
    }

    fn changes(&self, base: &BTreeMap<String, String>, head: &BTreeMap<String, String>) -> Vec<ChangedFile> {
        let mut files: Vec<ChangedFile> = Vec::new();
        let mut add = |path: &str, previous: Option<&str>, status| {
            files.push(ChangedFile {
                path: path.to_owned(),
                previous_path: previous.map(str::to_owned),
                status,
            })
        };
        for (from, to) in &self.renamed {
            add(to, Some(from), ChangeStatus::Renamed);
        }
        for path in &self.changed {
            add(path, None, ChangeStatus::Modified);
        }
        for (path, text) in head {
            match base.get(path) {
                None => add(path, None, ChangeStatus::Added),
                Some(old) if old != text => add(path, None, ChangeStatus::Modified),
                Some(_) => {}
            }
        }
        for path in base.keys().filter(|path| !head.contains_key(*path)) {
            add(path, None, ChangeStatus::Removed);
        }
        files
    }

    fn commit_list(&self) -> Result<Vec<Commit>, InvalidId> {
        let words: Vec<&str> = if self.commits.is_empty() {
            vec!["head"]
        } else {
            self.commits.iter().map(String::as_str).collect()
        };
        words
            .into_iter()
            .map(|word| {
                Ok(Commit {
                    sha: sha_of(word)?,
                    headline: word.to_owned(),
                    committed_at: None,
                    parents: 1,
                })
            })
            .collect()
    }

    fn comment_list(&self, signed_at: DateTime<Utc>) -> Result<Vec<Comment>, InvalidId> {
        let mut comments = Vec::new();
        for (index, comment) in self.comments.iter().enumerate() {
            let at = signed_at + TimeDelta::minutes(comment.minutes);
            let id = 1000 + index as u64;
            comments.push(Comment {
                id,
                author: Some(comment.by.parse::<Login>()?),
                author_is_bot: comment.bot,
                association: comment.association,
                body: comment.body.clone(),
                created_at: at,
                updated_at: at,
                url: format!("https://github.com/octo/bench/pull/7#issuecomment-{id}"),
            });
        }
        comments.sort_by_key(|comment| (comment.created_at, comment.id));
        Ok(comments)
    }

    fn people(&self) -> People {
        People {
            permissions: self
                .roles
                .iter()
                .map(|(login, role)| {
                    (
                        login.to_ascii_lowercase(),
                        Observed::Present(Permission { role: *role }),
                    )
                })
                .collect(),
            signer_teams: self
                .teams
                .iter()
                .map(|(team, member)| {
                    (
                        team.to_ascii_lowercase(),
                        member.map_or_else(|| gone("team"), Observed::Present),
                    )
                })
                .collect(),
            signer_in_organisation: None,
        }
    }

    fn run(&self, run: &SketchRun) -> Result<WorkflowRun, InvalidId> {
        let mut jobs = Vec::new();
        for (lane, outcomes) in &run.lanes {
            for (outcome, count) in outcomes {
                for index in 0..*count {
                    let conclusion = conclusion(outcome);
                    let name = if conclusion == Some(Conclusion::Skipped) {
                        format!("{lane} /")
                    } else {
                        format!("{lane} / / c{index}")
                    };
                    jobs.push(job(jobs.len() as u64, name, conclusion));
                }
            }
        }
        for (name, outcome) in &run.jobs {
            jobs.push(job(jobs.len() as u64, name.clone(), conclusion(outcome)));
        }
        let artifacts = run
            .artifacts
            .iter()
            .enumerate()
            .map(|(index, (name, files))| Artifact {
                id: index as u64,
                name: name.clone(),
                expired: files.is_none(),
                size: 1000,
                created_at: Some(self.now),
                files: files.clone().map(Observed::Present),
            })
            .collect();
        Ok(WorkflowRun {
            id: run.id,
            attempt: 1,
            workflow_path: run.workflow.clone(),
            event: run.event.clone(),
            head_sha: self.sha_for(&run.at)?,
            status: if run.conclusion.is_some() {
                RunStatus::Completed
            } else {
                RunStatus::Running
            },
            conclusion: run.conclusion,
            created_at: self.now - TimeDelta::days(1),
            url: format!("https://github.com/octo/bench/actions/runs/{}", run.id),
            jobs: if run.jobs_unavailable {
                gone("jobs")
            } else {
                Observed::Present(jobs)
            },
            artifacts: if run.artifacts_unavailable {
                gone("artifacts")
            } else {
                Observed::Present(artifacts)
            },
        })
    }
}

fn conclusion(word: &str) -> Option<Conclusion> {
    match word {
        "success" => Some(Conclusion::Success),
        "skipped" => Some(Conclusion::Skipped),
        "failure" => Some(Conclusion::Failure),
        "cancelled" => Some(Conclusion::Cancelled),
        "running" => None,
        _ => Some(Conclusion::Unknown),
    }
}

fn job(id: u64, name: String, conclusion: Option<Conclusion>) -> Job {
    Job {
        id,
        name,
        attempt: 1,
        status: if conclusion.is_some() {
            RunStatus::Completed
        } else {
            RunStatus::Running
        },
        conclusion,
    }
}

fn gone<T>(what: &str) -> Observed<T> {
    Observed::Unavailable(Cause::new(CauseKind::Transient, what, "GitHub answered 502"))
}

fn tree(sha: &CommitSha, files: &BTreeMap<String, String>, blobs: &mut MemoryBlobs) -> Result<Tree, InvalidId> {
    let mut entries = BTreeMap::new();
    for (path, text) in files {
        let id: BlobId = countersign_core::digest::sha256_hex(text.as_bytes())[..40].parse()?;
        blobs.0.insert(id.clone(), Arc::from(text.as_str()));
        entries.insert(
            path.clone(),
            TreeEntry {
                mode: EntryMode::File,
                id,
            },
        );
    }
    Ok(Tree {
        commit: sha.clone(),
        covers: Vec::new(),
        entries: Arc::new(entries),
    })
}
