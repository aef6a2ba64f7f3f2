//! Check runs, workflow runs, jobs and artifacts of a world, in full and in short form.

use std::collections::BTreeMap;
use std::fmt;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::spell::OneOrMany;

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkflowSpec {
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The file: `ci.yml`, or a full path.
    pub file: String,
    /// Its name; the file's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A workflow run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RunSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// The workflow's file: `ci.yml` (the default) or a full path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow: Option<String>,
    /// The run's name; the workflow's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The display title; the head commit's first line when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The commit it ran on: a name, a branch, a revision of the clone. Needed.
    pub head: String,
    /// The branch; the pull request's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The event; `pull_request` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// `queued`, `in_progress` or `completed` (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The conclusion; worked out from the jobs when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// The attempt that this describes; 1 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// Who started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
    /// The pull requests that GitHub lists for it; those with this head when left out, none for forks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pulls: Option<Vec<u64>>,
    /// When it was created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it was last changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<DateTime<Utc>>,
    /// Jobs in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<JobSpec>>,
    /// Jobs in short form: lane → conclusion → how many. A lane of `skipped: 1` alone is one job with the lane's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<BTreeMap<String, LaneSpec>>,
    /// Artifacts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<ArtifactSpec>>,
    /// Evaluation scores in short form; they make one more artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub evals: Option<Vec<EvalSpec>>,
    /// Earlier attempts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptSpec>,
}

/// An earlier attempt of a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct AttemptSpec {
    /// Its number, from 1.
    pub attempt: u64,
    /// The conclusion; worked out from the jobs when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// When it was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// Jobs in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Vec<JobSpec>>,
    /// Jobs in short form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lanes: Option<BTreeMap<String, LaneSpec>>,
}

/// A job, which is also a check run of the same id and name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct JobSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its full name, such as `caller / callee`.
    pub name: String,
    /// `queued`, `in_progress` or `completed` (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The conclusion; `success` when left out and completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// The attempt it ran in, when not the run's: GitHub keeps a green job of an earlier attempt on a partial re-run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
    /// The runner's labels.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<String>,
}

/// How the jobs of one lane ended: `36` (all green), `skipped`, or a mapping of conclusion → how many, or → their names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct LaneSpec(pub BTreeMap<String, LaneJobs>);

/// The jobs with one conclusion in one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LaneJobs {
    /// So many, with made-up names `<lane> / / c<i>`.
    Count(u64),
    /// These, by what stands after the lane's prefix.
    Named(Vec<String>),
}

impl<'de> Deserialize<'de> for LaneJobs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = LaneJobs;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of jobs, or a list of their names")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<LaneJobs, E> {
                if v > 10_000 {
                    Err(E::custom("at most 10000 jobs a lane"))
                } else {
                    Ok(LaneJobs::Count(v))
                }
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<LaneJobs, E> {
                u64::try_from(v)
                    .map_err(|_| E::custom("a number of jobs is not negative"))
                    .and_then(|v| self.visit_u64(v))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> Result<LaneJobs, A::Error> {
                let mut out = Vec::new();
                while let Some(v) = seq.next_element()? {
                    out.push(v);
                }
                Ok(LaneJobs::Named(out))
            }
        }
        d.deserialize_any(V)
    }
}

const CONCLUSIONS: [&str; 9] = [
    "success",
    "failure",
    "neutral",
    "cancelled",
    "skipped",
    "timed_out",
    "action_required",
    "in_progress",
    "queued",
];

impl<'de> Deserialize<'de> for LaneSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = LaneSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of green jobs, `skipped`, or a mapping of conclusion to jobs")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<LaneSpec, E> {
                Ok(LaneSpec(BTreeMap::from([("success".to_owned(), LaneJobs::Count(v))])))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<LaneSpec, E> {
                u64::try_from(v)
                    .map_err(|_| E::custom("a number of jobs is not negative"))
                    .and_then(|v| self.visit_u64(v))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<LaneSpec, E> {
                if !CONCLUSIONS.contains(&v) {
                    return Err(E::custom(format!(
                        "unknown conclusion `{v}`: one of {}",
                        CONCLUSIONS.join(", ")
                    )));
                }
                Ok(LaneSpec(BTreeMap::from([(v.to_owned(), LaneJobs::Count(1))])))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LaneSpec, A::Error> {
                let mut out = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    if !CONCLUSIONS.contains(&key.as_str()) {
                        return Err(de::Error::custom(format!(
                            "unknown conclusion `{key}`: one of {}",
                            CONCLUSIONS.join(", ")
                        )));
                    }
                    out.insert(key, map.next_value()?);
                }
                Ok(LaneSpec(out))
            }
        }
        d.deserialize_any(V)
    }
}

/// An artifact of a run. Its zip is made when it is asked for.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ArtifactSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// The size that GitHub reports; the zip's when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Whether it can no longer be had (410).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expired: bool,
    /// When it was made; the run's time when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<DateTime<Utc>>,
    /// When it expires; 90 days after it was made when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<DateTime<Utc>>,
    /// Its files: text, or any YAML value, which becomes a JSON file.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, serde_json::Value>,
    /// A ready zip file instead, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zip: Option<String>,
}

/// One or more rows of evaluation scores. A list of `score` or `conc` makes one row each.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct EvalSpec {
    /// The task, such as `gsm8k`.
    pub task: String,
    /// The model's prefix.
    pub model_prefix: String,
    /// The score, or one a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<OneOrMany<f64>>,
    /// The second metric; the score when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flexible: Option<OneOrMany<f64>>,
    /// The concurrency, or one a row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conc: Option<OneOrMany<u64>>,
    /// How many samples were scored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub n_eff: Option<u64>,
    /// How many rows, when neither `score` nor `conc` is a list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Any other field of the row, over the defaults.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub row: BTreeMap<String, serde_json::Value>,
}

/// A check run of an app.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CheckSpec {
    /// Its id; the next free one when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
    /// Its name.
    pub name: String,
    /// The commit.
    pub head: String,
    /// The app's slug; `github-actions` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// `queued`, `in_progress` or `completed` (the default).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The conclusion; `success` when left out and completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// The app's own id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Where its details are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details_url: Option<String>,
    /// The output's title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The output's summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// When it started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<DateTime<Utc>>,
}

/// A commit status.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct StatusSpec {
    /// The commit.
    pub sha: String,
    /// The context.
    pub context: String,
    /// `success`, `failure`, `error` or `pending`.
    pub state: String,
    /// The text beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The link behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_url: Option<String>,
    /// Who set it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<DateTime<Utc>>,
}
