//! The policy: which checks run, under which numbers, levels and parameters, and every path, label, phrase and list
//! that belongs to the repository that is judged. Nothing else in the program may know these.
//!
//! A policy is one YAML file, read strictly: an unknown field is an error with line and column. `extends` names a
//! sibling file whose values stand where this one has none (mappings merge, lists are replaced).

mod load;
mod scripts;
mod sections;

pub use load::{LoadError, MAX_EXTENDS, Source, load};
pub use scripts::ScriptRules;
pub use sections::{
    Artifacts, Authority, CheckEntry, Ci, Commands, EvidencePaths, ImageRules, Labels, Paths, Publish, Scope, Timing,
    UpstreamReading, UpstreamRules, UpstreamSource,
};

use countersign_core::CheckReport;
use countersign_launch::point::DeriveRules;
use countersign_matrix::{Layout, MatrixRules};
use countersign_records::changelog::ChangelogRules;
use countersign_records::evals::EvalRules;
use countersign_records::models::ModelsRules;
use countersign_records::waiver::WaiverRules;
use countersign_signoff::Rules as SignoffRules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A whole policy, after `extends` was followed. Section numbers refer to the product page.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Name, as shown in every verdict.
    pub name: String,
    /// Version, as shown in every verdict.
    pub version: String,
    /// What it is for, one sentence.
    #[serde(default)]
    pub description: String,
    /// `owner/name` of the repository that it was written for; absent = any.
    #[serde(default)]
    pub repository: Option<String>,
    /// When a sign-off is needed at all.
    #[serde(default)]
    pub scope: Scope,
    /// How sign-offs look (section 4).
    pub signoff: SignoffRules,
    /// Commands and who may give them (section 4).
    pub commands: Commands,
    /// Files that checks read.
    pub paths: Paths,
    /// Which parts of which trees belong to the evidence.
    pub evidence: EvidencePaths,
    /// Workflow, lanes and artifacts (section 5, `sweep` and `evals`).
    pub ci: Ci,
    /// How master configs expand into points, lanes and job names (domain guide, section 4).
    pub matrix: MatrixRules,
    /// Where configs, scripts, recipes and launchers are (domain guide, sections 3.6 to 3.9).
    pub layout: Layout,
    /// How a point leads to the server that it starts (product page, section 6); needed by the checks on launches.
    #[serde(default)]
    pub derive: Option<DeriveRules>,
    /// What in scripts changes a serving engine or a model; needed by `engine-patch` and `architecture`.
    #[serde(default)]
    pub scripts: Option<ScriptRules>,
    /// What a waiver must have (domain guide, section 11); needed by `engine-patch`.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub waivers: Option<WaiverRules>,
    /// What evaluation results look like (domain guide, section 5).
    #[schemars(with = "serde_json::Value")]
    pub results: EvalRules,
    /// Which images are upstream's (domain guide, section 14); needed by `image` and `engine-first`.
    #[serde(default)]
    pub images: Option<ImageRules>,
    /// How the models file is read (domain guide, section 8); needed by `deprecation`.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub models: Option<ModelsRules>,
    /// What the changelog calls its links and scenarios (domain guide, section 7); needed by `changelog`.
    #[serde(default)]
    #[schemars(with = "serde_json::Value")]
    pub changelog: Option<ChangelogRules>,
    /// Where upstream documentation may live (section 5, `recipe`; section 10).
    #[serde(default)]
    pub upstream: UpstreamRules,
    /// What is published, and how (section 7).
    pub publish: Publish,
    /// How long things are waited for.
    #[serde(default)]
    pub timing: Timing,
    /// The checks in the order of their rows.
    pub checks: Vec<CheckEntry>,
}

/// A loaded policy with its digest and the file it came from.
#[derive(Debug, Clone)]
pub struct LoadedPolicy {
    /// The policy.
    pub policy: Policy,
    /// SHA-256 over the canonical form of the merged values.
    pub digest: String,
    /// The merged tree, with places, for reading the parameters of checks.
    pub tree: countersign_yaml::Node,
    /// The file's name, for messages.
    pub file: String,
}

impl Policy {
    /// The entry of a check.
    #[must_use]
    pub fn check(&self, slug: &str) -> Option<&CheckEntry> {
        self.checks.iter().find(|entry| entry.slug == slug)
    }

    /// The report of a check whose parameters could not be read. `policy check` finds this before a policy is in force.
    #[must_use]
    pub fn broken_parameters(slug: &str, why: &str) -> CheckReport {
        CheckReport::unavailable(&countersign_core::Cause::new(
            countersign_core::CauseKind::Malformed,
            format!("parameters of check {slug}"),
            why.to_owned(),
        ))
    }
}
