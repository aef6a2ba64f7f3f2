//! What happens in a world, step by step. Each step has exactly one action; webhooks are derived from the change it makes.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PageSpec;
use super::actions::{CheckSpec, RunSpec, StatusSpec};
use super::pulls::{CommentSpec, PullSpec, ReviewCommentSpec, ReviewSpec};
use super::repo::{CommitSpec, RoleSpec};
use super::spell::{PullRef, Span};

macro_rules! steps {
    ($($(#[$doc:meta])* $field:ident: $ty:ty => $variant:ident,)*) => {
        /// One step: when, and exactly one action.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields, default)]
        pub struct Step {
            /// The simulated time at which it happens; not before the previous step's.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub at: Option<DateTime<Utc>>,
            /// How long after the previous step it happens.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub after: Option<Span>,
            /// A line shown to whoever watches.
            #[serde(skip_serializing_if = "Option::is_none")]
            pub note: Option<String>,
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $field: Option<$ty>,)*
        }

        /// A step's action.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Action {
            /// Nothing but the time or the note.
            Nothing,
            $($(#[$doc])* $variant($ty),)*
        }

        impl Step {
            /// The step's one action; an error names those that were given beside each other.
            pub fn action(&self) -> Result<Action, String> {
                let mut found: Vec<(&'static str, Action)> = Vec::new();
                $(if let Some(value) = &self.$field { found.push((stringify!($field), Action::$variant(value.clone()))); })*
                if found.len() > 1 {
                    let names: Vec<_> = found.iter().map(|(name, _)| *name).collect();
                    return Err(format!("a step has one action, not {}: write one step for each", names.join(" and ")));
                }
                Ok(found.pop().map_or(Action::Nothing, |(_, action)| action))
            }

            /// The name of the step's action, as written in the world.
            pub fn name(&self) -> &'static str {
                $(if self.$field.is_some() { return stringify!($field); })*
                "nothing"
            }
        }
    };
}

steps! {
    /// An issue comment is written.
    comment: On<CommentSpec> => Comment,
    /// An issue comment's text is changed.
    edit_comment: Edit => EditComment,
    /// An issue comment is deleted.
    delete_comment: Remove => DeleteComment,
    /// A review is submitted.
    review: On<ReviewSpec> => Review,
    /// A review's text is changed.
    edit_review: Edit => EditReview,
    /// A review is dismissed.
    dismiss_review: Remove => DismissReview,
    /// An inline review comment is written.
    review_comment: On<ReviewCommentSpec> => ReviewComment,
    /// An inline review comment's text is changed.
    edit_review_comment: Edit => EditReviewComment,
    /// An inline review comment is deleted.
    delete_review_comment: Remove => DeleteReviewComment,
    /// Commits are pushed to a pull request's branch.
    push: Push => Push,
    /// A branch of a repository moves.
    push_branch: PushBranch => PushBranch,
    /// A pull request is opened.
    open: Open => OpenPull,
    /// A draft becomes ready for review.
    ready: Touch => Ready,
    /// A pull request becomes a draft.
    draft: Touch => Draft,
    /// The title, the description or the target is changed.
    edit_pull: EditPull => EditPullRequest,
    /// A pull request is closed.
    close: Touch => Close,
    /// A pull request is opened again.
    reopen: Touch => Reopen,
    /// A pull request is merged.
    merge: Merge => MergePull,
    /// A label is put on.
    label: Labelled => Label,
    /// A label is taken off.
    unlabel: Labelled => Unlabel,
    /// A workflow run starts, or is there already completed.
    run: InRepo<RunSpec> => Run,
    /// A workflow run ends, or starts again as the next attempt.
    update_run: UpdateRun => UpdateWorkflowRun,
    /// Another app's check run.
    check: InRepo<CheckSpec> => Check,
    /// Somebody presses "re-run" on one of our check runs.
    rerequest_check: Rerequest => RerequestCheck,
    /// A commit status by somebody.
    status: InRepo<StatusSpec> => Status,
    /// A collaborator's role changes.
    collaborator: Collaborator => SetCollaborator,
    /// A team changes.
    team: TeamChange => SetTeam,
    /// A web page changes.
    page: PageChange => SetPage,
    /// An artifact expires.
    expire_artifacts: ExpireArtifacts => Expire,
    /// All installation tokens stop working.
    expire_tokens: bool => ExpireTokens,
    /// The App is installed, suspended, or removed.
    installation: InstallationChange => ChangeInstallation,
    /// A merge group asks for its checks.
    merge_group: MergeGroup => QueueMergeGroup,
}

/// Something written on a pull request.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct On<T> {
    /// The pull request.
    pub pull: PullRef,
    /// What is written.
    #[serde(flatten)]
    pub what: T,
}

/// Something in a repository.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct InRepo<T> {
    /// `owner/name`; the only installed repository when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// What it is.
    #[serde(flatten)]
    pub what: T,
}

/// Takes one key off a mapping before the rest goes to a strict type; serde's `flatten` would lose strictness and position.
macro_rules! peel {
    ($outer:ident, $key:literal, $field:ident, $value:ty, $missing:expr) => {
        impl<'de, T: Deserialize<'de>> Deserialize<'de> for $outer<T> {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                use serde::de::{DeserializeSeed, Error, MapAccess, Visitor, value::MapAccessDeserializer};
                use std::marker::PhantomData;
                struct Peel<'a, A> {
                    inner: A,
                    taken: &'a mut Option<$value>,
                }
                impl<'de, A: MapAccess<'de>> MapAccess<'de> for Peel<'_, A> {
                    type Error = A::Error;
                    fn next_key_seed<K: DeserializeSeed<'de>>(
                        &mut self,
                        seed: K,
                    ) -> Result<Option<K::Value>, A::Error> {
                        loop {
                            let Some(key) = self.inner.next_key::<String>()? else {
                                return Ok(None);
                            };
                            if key == $key {
                                *self.taken = Some(self.inner.next_value()?);
                                continue;
                            }
                            let key: serde::de::value::StringDeserializer<A::Error> =
                                serde::de::IntoDeserializer::into_deserializer(key);
                            return seed.deserialize(key).map(Some);
                        }
                    }
                    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, A::Error> {
                        self.inner.next_value_seed(seed)
                    }
                }
                struct V<T>(PhantomData<T>);
                impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
                    type Value = $outer<T>;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a mapping with ", $key))
                    }
                    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                        let mut taken = None;
                        let what = T::deserialize(MapAccessDeserializer::new(Peel {
                            inner: map,
                            taken: &mut taken,
                        }))?;
                        let missing: fn(Option<$value>) -> Option<_> = $missing;
                        let $field = missing(taken).ok_or_else(|| A::Error::missing_field($key))?;
                        Ok($outer { $field, what })
                    }
                }
                d.deserialize_map(V(PhantomData))
            }
        }
    };
}
peel!(On, "pull", pull, PullRef, |taken| taken);
peel!(InRepo, "repo", repo, String, Some);

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $ty:ty,)* })*) => {
        $($(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(deny_unknown_fields)]
        pub struct $name { $($(#[$fdoc])* pub $field: $ty,)* })*
    };
}

plain! {
    /// A changed text, by the thing's id.
    Edit {
        /// The id.
        id: u64,
        /// The new text.
        #[serde(default)]
        body: Option<String>,
        /// A file with the new text, relative to the world file.
        #[serde(default)]
        body_file: Option<String>,
        /// Who changes it; its author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// Something taken away, by its id.
    Remove {
        /// The id.
        id: u64,
        /// Who takes it away; its author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// A push to a pull request's branch: to a commit that exists, or one made here.
    Push {
        /// The pull request.
        pull: PullRef,
        /// The new head.
        #[serde(default)]
        head: Option<String>,
        /// A new commit on top of the present head.
        #[serde(default)]
        commit: Option<CommitSpec>,
        /// Who pushes; the author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// A branch moves.
    PushBranch {
        /// `owner/name`; the only installed repository when left out.
        #[serde(default)]
        repo: Option<String>,
        /// The branch; the default branch when left out.
        #[serde(default)]
        branch: Option<String>,
        /// The new tip.
        #[serde(default)]
        head: Option<String>,
        /// A new commit on top of the present tip.
        #[serde(default)]
        commit: Option<CommitSpec>,
        /// Who pushes.
        #[serde(default)]
        by: Option<String>,
    }
    /// A new pull request.
    Open {
        /// `owner/name`; the only installed repository when left out.
        #[serde(default)]
        repo: Option<String>,
        /// The pull request.
        pull: PullSpec,
    }
    /// Something done to a pull request as a whole.
    Touch {
        /// The pull request.
        pull: PullRef,
        /// Who does it; the author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// A change of title, description or target.
    EditPull {
        /// The pull request.
        pull: PullRef,
        /// The new title.
        #[serde(default)]
        title: Option<String>,
        /// The new description.
        #[serde(default)]
        body: Option<String>,
        /// The new target branch.
        #[serde(default)]
        base: Option<String>,
        /// Who does it; the author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// A merge.
    Merge {
        /// The pull request.
        pull: PullRef,
        /// Who merges; the author when left out.
        #[serde(default)]
        by: Option<String>,
        /// The commit it makes; the target branch moves there where the repository has history.
        #[serde(default)]
        commit: Option<String>,
    }
    /// A label on a pull request.
    Labelled {
        /// The pull request.
        pull: PullRef,
        /// The label.
        label: String,
        /// Who does it; the author when left out.
        #[serde(default)]
        by: Option<String>,
    }
    /// A workflow run's next state.
    UpdateRun {
        /// The run's id.
        id: u64,
        /// The new status; `completed` when left out.
        #[serde(default)]
        status: Option<String>,
        /// The new conclusion; worked out from the jobs when left out.
        #[serde(default)]
        conclusion: Option<String>,
        /// A new attempt: the present one is kept as an earlier attempt.
        #[serde(default)]
        attempt: Option<u64>,
        /// The jobs from now on.
        #[serde(default)]
        jobs: Option<Vec<super::actions::JobSpec>>,
        /// The jobs from now on, in short form.
        #[serde(default)]
        lanes: Option<std::collections::BTreeMap<String, super::actions::LaneSpec>>,
        /// The artifacts from now on.
        #[serde(default)]
        artifacts: Option<Vec<super::actions::ArtifactSpec>>,
        /// Evaluation scores from now on, in short form.
        #[serde(default)]
        evals: Option<Vec<super::actions::EvalSpec>>,
    }
    /// A press on "re-run".
    Rerequest {
        /// The check run's name.
        name: String,
        /// The pull request whose head carries it.
        pull: PullRef,
        /// Who presses.
        by: String,
    }
    /// A collaborator's new role.
    Collaborator {
        /// `owner/name`; the only installed repository when left out.
        #[serde(default)]
        repo: Option<String>,
        /// The login.
        login: String,
        /// The role; `none` takes it away.
        role: RoleSpec,
    }
    /// A team's new state.
    TeamChange {
        /// The organisation.
        org: String,
        /// The team's slug.
        team: String,
        /// Its members from now on.
        #[serde(default)]
        members: Option<Vec<String>>,
        /// The status with which questions are refused from now on.
        #[serde(default)]
        unreadable: Option<u16>,
    }
    /// A page's new state.
    PageChange {
        /// The URL.
        url: String,
        /// The page; gone when null.
        #[serde(default)]
        page: Option<PageSpec>,
    }
    /// Artifacts that expire.
    ExpireArtifacts {
        /// The run.
        run: u64,
        /// Only the artifact of this name.
        #[serde(default)]
        name: Option<String>,
    }
    /// A change of the installation.
    InstallationChange {
        /// Its id; the first one when left out.
        #[serde(default)]
        id: Option<u64>,
        /// `suspend`, `unsuspend`, `deleted`, `created`, `new_permissions_accepted`.
        action: String,
    }
    /// A merge group.
    MergeGroup {
        /// The pull requests in it.
        pulls: Vec<PullRef>,
        /// The group's commit; the first pull request's head when left out.
        #[serde(default)]
        head: Option<String>,
    }
}
