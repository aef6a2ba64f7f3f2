//! Everything about one benchmark repository that the expansion needs to know, as data. Nothing here has a default
//! but what older branches lack: the words and numbers come from the policy file (a ready fragment is `testdata/rules.yaml`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How search spaces become rows (domain guide 4.2, 4.3) and how rows become jobs (4.4).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MatrixRules {
    /// Named pairs of input and output length in tokens, for example `8k1k`.
    pub sequences: BTreeMap<String, Sequence>,
    /// Tokens added to input plus output length for the model's context length.
    pub context_margin: i64,
    /// A concurrency range grows by this factor from its start; at least 2.
    pub range_factor: i64,
    /// The most rows that are ever generated from one revision; a bound for hostile configs, not a rule of the
    /// repository.
    pub max_rows: usize,
    /// The values of `spec-decoding`.
    pub spec_decoding: SpecDecodingRules,
    /// The values of `kv-offloading`.
    pub kv_offloading: OffloadRules,
    /// What a runner label that names one exact cluster begins with; every agentic entry needs such a label.
    pub cluster_prefix: String,
    /// What a component's version may not begin with.
    pub forbidden_version_prefix: String,
    /// Agentic scenarios.
    pub agentic: AgenticRules,
    /// Which rows are evaluated.
    pub eval: EvalRules,
    /// The generator's experiment names.
    pub exp_name: ExpNameRules,
    /// The lanes of the sweep workflow, in the order in which they are reported.
    pub lanes: Vec<Lane>,
    /// The canary job, if the workflow has one.
    pub canary: Option<CanaryRules>,
    /// How the workflow templates name their jobs.
    pub job_name: JobNameRules,
    /// Whether components are mappings, and disaggregated entries name their transfer; see [`Generator::components`].
    #[serde(default = "yes")]
    pub components: bool,
    /// By which words it is seen that a rule does not hold yet for a branch: it is swept by the generator that it has.
    #[serde(default)]
    pub generator: Option<Generator>,
}

const fn yes() -> bool {
    true
}

impl MatrixRules {
    /// The rules as they were where a branch left its target, whose files `text` reads. A file that cannot be read says
    /// nothing: then all rules hold.
    #[must_use]
    pub fn then(&self, text: &dyn Fn(&str) -> Option<Arc<str>>) -> Cow<'_, Self> {
        let Some(generator) = &self.generator else {
            return Cow::Borrowed(self);
        };
        let holds = |words: &Option<Words>| {
            let Some(words) = words else { return true };
            text(&words.path).is_none_or(|text| words.fit(&text))
        };
        let now = [
            holds(&generator.agentic_single_node_evals),
            holds(&generator.agentic_multi_node_evals),
            holds(&generator.multi_node_memory_budget),
            holds(&generator.components),
        ];
        if now == [true; 4] {
            return Cow::Borrowed(self);
        }
        let mut rules = self.clone();
        rules.eval.agentic_single_node &= now[0];
        rules.eval.agentic_multi_node &= now[1];
        rules.agentic.multi_node_memory_budget &= now[2];
        rules.components &= now[3];
        Cow::Owned(rules)
    }
}

/// Input and output length in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sequence {
    /// Input length.
    pub isl: i64,
    /// Output length.
    pub osl: i64,
}

/// The values of `spec-decoding`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecDecodingRules {
    /// Every allowed value.
    pub values: Vec<String>,
    /// The one that means "off"; also the value of a row that does not say.
    pub none: String,
}

/// The values of `kv-offloading`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadRules {
    /// The value that means "off".
    pub none: String,
    /// The value that means "to host memory": needs a backend and a memory budget.
    pub memory: String,
}

/// Agentic scenarios (domain guide 4.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgenticRules {
    /// Length of one profile, in seconds.
    pub duration_seconds: i64,
    /// How many concurrencies of a multi-node search-space row share one job.
    pub multi_node_concurrencies_per_job: usize,
    /// Whether multi-node rows carry a memory budget.
    pub multi_node_memory_budget: bool,
    /// The most host memory of a node that counts, in MiB.
    pub memory_cap_mib: i64,
}

/// Which rows are evaluated (domain guide 4.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EvalRules {
    /// The name of the only sequence at which fixed-length rows are evaluated.
    pub sequence: String,
    /// Concurrencies below this are not evaluated (single-node agentic rows excepted).
    pub min_concurrency: i64,
    /// Whether single-node agentic rows are evaluated.
    pub agentic_single_node: bool,
    /// Whether multi-node agentic rows are evaluated.
    pub agentic_multi_node: bool,
}

/// What a branch's own generator knows, by words of its text where the branch left its target. Where the words are not there,
/// the rule that is named does not hold for that branch yet.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Generator {
    /// Single-node agentic rows are evaluated.
    pub agentic_single_node_evals: Option<Words>,
    /// Multi-node agentic rows are evaluated.
    pub agentic_multi_node_evals: Option<Words>,
    /// Multi-node agentic rows carry a memory budget.
    pub multi_node_memory_budget: Option<Words>,
    /// Components are named with their versions, and disaggregated entries name their transfer.
    pub components: Option<Words>,
}

/// Words that a file has, and words that it lacks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Words {
    /// The file.
    pub path: String,
    /// All of these.
    pub has: Vec<String>,
    /// None of these.
    #[serde(default)]
    pub lacks: Vec<String>,
}

impl Words {
    /// Whether a text is so.
    #[must_use]
    pub fn fit(&self, text: &str) -> bool {
        self.has.iter().all(|word| text.contains(word.as_str()))
            && !self.lacks.iter().any(|word| text.contains(word.as_str()))
    }
}

/// Templates of the generator's `exp-name`. Placeholders stand in braces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpNameRules {
    /// `{prefix}` and `{sequence}`.
    pub fixed: String,
    /// A sequence without a name: `{isl}` and `{osl}`.
    pub unnamed_sequence: String,
    /// `{prefix}`, `{tp}`, `{conc}`, `{offload}`, `{spec}`.
    pub agentic_single_node: String,
    /// `{prefix}`, `{prefill}`, `{decode}`, `{conc}`, `{offload}`.
    pub agentic_multi_node: String,
    /// Between the concurrencies of one multi-node job.
    pub conc_separator: String,
    /// `{offload}` where nothing is offloaded, single-node; nothing stands there multi-node.
    pub offload_none: String,
    /// `{offload}` otherwise: `{kind}` and `{backend}`.
    pub offload: String,
    /// What stands before `{offload}` in a multi-node name.
    pub multi_node_offload_separator: String,
    /// `{spec}` when speculative decoding is on: `{value}`.
    pub spec: String,
    /// `{prefill}`: `{workers}`, `{tp}`, `{expert}`, `{dp_attention}`.
    pub prefill: String,
    /// `{decode}`, likewise.
    pub decode: String,
    /// `{expert}` where expert parallelism is not 1: `{ep}`.
    pub expert: String,
    /// `{dp_attention}` where it is on.
    pub dp_attention: String,
}

/// One machine or several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKind {
    /// One machine.
    Single,
    /// Prefill and decode workers on several machines.
    Multi,
}

/// The two scenario types, named as in the configs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ScenarioType {
    /// Random prompts of fixed lengths.
    #[serde(rename = "fixed-seq-len")]
    Fixed,
    /// Trace replay.
    #[serde(rename = "agentic-coding")]
    Agentic,
}

impl ScenarioType {
    /// The name in the configs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            ScenarioType::Fixed => "fixed-seq-len",
            ScenarioType::Agentic => "agentic-coding",
        }
    }
}

/// What a lane measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// Throughput.
    Throughput,
    /// Accuracy.
    Eval,
}

/// A family of jobs that share one caller name (domain guide 4.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Lane {
    /// The caller's name without the closing slash.
    pub name: String,
    /// One machine or several.
    pub nodes: NodeKind,
    /// The scenario type.
    pub scenario: ScenarioType,
    /// Throughput or accuracy.
    pub purpose: Purpose,
    /// The named sequence, for a lane that takes only one.
    pub sequence: Option<String>,
}

/// The canary: one cheap point taken out of its lane and run first (domain guide 4.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CanaryRules {
    /// The caller's name without the closing slash.
    pub lane: String,
    /// Single-node throughput sequences from which it is taken, in this order.
    pub sequences: Vec<String>,
}

/// The words of a job's name (domain guide 4.4). The arrangement is that of the two workflow templates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct JobNameRules {
    /// Frameworks that are abbreviated.
    pub framework_words: BTreeMap<String, String>,
    /// Offload backends that are not shown.
    pub hidden_backends: Vec<String>,
    /// Tensor parallelism.
    pub tensor: String,
    /// Pipeline parallelism, shown unless 1.
    pub pipeline: String,
    /// Decode context parallelism, shown unless 1.
    pub decode_context: String,
    /// Prefill context parallelism, shown unless 1.
    pub prefill_context: String,
    /// Expert parallelism, shown unless 1.
    pub expert: String,
    /// Data-parallel attention, shown when on.
    pub dp_attention: String,
    /// After the number of prefill workers.
    pub prefill: String,
    /// After the number of decode workers.
    pub decode: String,
    /// Between prefill and decode.
    pub times: String,
    /// After the kind of offloading.
    pub offload: String,
    /// Before the concurrency.
    pub concurrency: String,
    /// Between the concurrencies of one job.
    pub concurrency_separator: String,
    /// At the end of a job that only evaluates.
    pub eval_only: String,
    /// At the end of a job that measures and evaluates.
    pub with_eval: String,
    /// Between the parts of a check-run's name: caller and job.
    pub caller_separator: String,
    /// Between the priority, where the template writes one, and the rest.
    pub priority_separator: String,
    /// What a priority begins with; digits and dots follow.
    pub priority_prefix: String,
}

/// Where things lie in the repository (domain guide 1, 3.6, 3.8, 3.9).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// The active master configs, in the order in which the generator reads them.
    pub masters: Vec<String>,
    /// The runner labels and hardware facts.
    pub runners: String,
    /// The changelog that selects what is swept.
    pub changelog: String,
    /// Words for hardware, longest first where one begins with another; found at the start of a runner label.
    pub sku_words: Vec<String>,
    /// From a concrete runner's name to its launcher.
    pub launcher: LauncherLayout,
    /// Single-node scripts.
    pub single_node: SingleNodeLayout,
    /// Multi-node recipes and wrappers; every rule that matches an entry applies.
    pub multi_node: Vec<MultiNodeRule>,
    /// Files that many entries use without naming them.
    pub shared: Vec<SharedFiles>,
}

/// From a concrete runner's name to its launcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LauncherLayout {
    /// The path of a launcher, with `{base}`.
    pub path: String,
    /// The base of a runner's name ends before the first of these.
    pub base_ends_at: String,
}

/// How a single-node entry finds its script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SingleNodeLayout {
    /// Directory for fixed-length scenarios.
    pub fixed_directory: String,
    /// Directory for agentic scenarios.
    pub agentic_directory: String,
    /// What a script's name ends with for a value of `spec-decoding`, for example `mtp: _mtp`.
    pub spec_suffix: BTreeMap<String, String>,
    /// The first rule whose launcher pattern matches the launcher's base decides the names.
    pub rules: Vec<ScriptRule>,
}

/// The script names that one family of launchers tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptRule {
    /// Launcher bases; `*` stands for anything.
    pub launchers: Vec<String>,
    /// File names, tried in order: `{prefix}`, `{precision}`, `{sku}`, `{framework}`, `{framework_suffix}`, `{spec}`.
    pub names: Vec<String>,
    /// `{framework_suffix}` by framework; nothing for a framework that is not here.
    #[serde(default)]
    pub framework_suffix: BTreeMap<String, String>,
}

/// How a family of multi-node entries finds what it runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MultiNodeRule {
    /// Frameworks; `*` stands for anything.
    pub frameworks: Vec<String>,
    /// Hardware words this rule holds for; empty for all.
    #[serde(default)]
    pub skus: Vec<String>,
    /// The recipe that a worker's settings name.
    #[serde(default)]
    pub recipe: Option<RecipeRule>,
    /// Wrapper scripts, all of which are used: `{prefix}`, `{precision}`, `{sku}`, `{framework}`, `{agentic_directory}`.
    #[serde(default)]
    pub scripts: Vec<String>,
    /// `{agentic_directory}` for agentic scenarios; nothing otherwise.
    #[serde(default)]
    pub agentic_directory: String,
    /// Files and directories (ending in `/`) that such entries use.
    #[serde(default)]
    pub support: Vec<String>,
}

/// How a worker's settings name a recipe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecipeRule {
    /// The setting that names the recipe.
    pub setting: String,
    /// The setting that names another recipe for evaluation jobs.
    #[serde(default)]
    pub eval_setting: Option<String>,
    /// Everything from the first of these on selects inside the recipe.
    pub selector: String,
    /// From the beginning of a recipe's name to the beginning of its path here; the first that matches.
    pub prefixes: Vec<PrefixRule>,
}

/// A replacement of the beginning of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrefixRule {
    /// What the name begins with; may be empty.
    pub from: String,
    /// What the path begins with instead.
    pub to: String,
}

/// Files that many entries use without naming them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SharedFiles {
    /// Files and directories (ending in `/`).
    pub paths: Vec<String>,
    /// Entries of this kind; all where absent.
    #[serde(default)]
    pub nodes: Option<NodeKind>,
    /// Entries with this scenario; all where absent.
    #[serde(default)]
    pub scenario: Option<ScenarioType>,
}

impl MatrixRules {
    /// The name of a pair of lengths, if it has one.
    #[must_use]
    pub fn sequence_name(&self, isl: i64, osl: i64) -> Option<&str> {
        self.sequences
            .iter()
            .find(|(_, sequence)| sequence.isl == isl && sequence.osl == osl)
            .map(|(name, _)| &**name)
    }

    /// What is wrong with the rules themselves; a policy is refused for these when it is loaded.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.range_factor < 2 {
            faults.push("matrix: range_factor must be at least 2".to_owned());
        }
        if self.agentic.multi_node_concurrencies_per_job == 0 {
            faults.push("matrix: agentic.multi_node_concurrencies_per_job must be at least 1".to_owned());
        }
        if !self.spec_decoding.values.contains(&self.spec_decoding.none) {
            faults.push("matrix: spec_decoding.none must be one of spec_decoding.values".to_owned());
        }
        let named = self.lanes.iter().filter_map(|lane| lane.sequence.as_ref());
        let canary = self.canary.iter().flat_map(|canary| &canary.sequences);
        for name in named.chain(canary).chain([&self.eval.sequence]) {
            if !self.sequences.contains_key(name) {
                faults.push(format!("matrix: `{name}` is not one of sequences"));
            }
        }
        faults
    }
}

/// Fills a template: `{name}` becomes the value given for it, once each, in one pass.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        let known = after.find('}').and_then(|close| {
            let name = &after[..close];
            values
                .iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (close, *value))
        });
        match known {
            Some((close, value)) => {
                out.push_str(value);
                rest = &after[close + 1..];
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}
