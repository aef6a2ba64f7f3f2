//! What the derivation must be told about one repository. All of it belongs to the policy file.

use std::collections::BTreeMap;

use countersign_matrix::{Conc, Row, RowShape, ScenarioType, Work, Worker};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::ClientRules;
use crate::engine::Engine;
use crate::recipe::InjectorKind;

/// Rules of derivation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeriveRules {
    /// Absolute places where the repository is found while a script runs, the working directory first.
    pub roots: Vec<String>,
    /// Variables of a script's environment as templates over the row: `{model}`, `{image}`, `{prefix}`, `{precision}`,
    /// `{framework}`, `{runner}`, `{exp_name}`, `{tp}`, `{pp}`, `{dcp}`, `{pcp}`, `{ep}`, `{dp_attention}`, `{conc}`,
    /// `{isl}`, `{osl}`, `{max_model_len}`, `{spec_decoding}`, `{kv_offloading}`, `{kv_offload_backend}`,
    /// `{memory_gb}`, `{duration}`, `{eval_only}`, `{run_eval}`, `{is_agentic}`, `{scenario}`; for several machines
    /// `{prefill_tp}` and so on. A variable whose template names something that the row lacks is not set; `{isl:-0}`
    /// says what stands there instead.
    pub variables: BTreeMap<String, String>,
    /// Names of variables whose value is not known; they may be unset.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Beginnings of such names.
    #[serde(default)]
    pub unknown_prefixes: Vec<String>,
    /// Names of variables that are set, to a value that is not known.
    #[serde(default)]
    pub filled: Vec<String>,
    /// Benchmark clients.
    #[serde(default)]
    pub clients: ClientRules,
    /// Injection of synthetic acceptance into recipes.
    #[serde(default)]
    pub injection: Option<InjectionRules>,
    /// Frameworks whose servers are described by tables that a wrapper reads.
    #[serde(default)]
    pub tables: Vec<TableRule>,
}

/// How an entry asks for injected acceptance, and who carries it out (domain guide 10.3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InjectionRules {
    /// The worker setting that asks for it.
    pub setting: String,
    /// Its value.
    pub value: String,
    /// The worker setting with the length.
    pub length_setting: String,
    /// Paths of launchers that call the injector; on every other the setting does nothing.
    pub launchers: Vec<String>,
    /// The injector registered for a framework.
    pub frameworks: BTreeMap<String, InjectorKind>,
}

/// A family of entries described by a table or by an llm-d recipe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TableRule {
    /// Frameworks.
    pub frameworks: Vec<String>,
    /// Kind of file.
    pub kind: TableKind,
    /// The engine that is served.
    pub engine: Engine,
    /// Path of the table; for llm-d the recipe that the entry names.
    #[serde(default)]
    pub file: Option<String>,
    /// The worker setting with the draft length.
    #[serde(default)]
    pub draft_setting: Option<String>,
    /// The script that starts the servers with the table's flags: it is evaluated for the environment of each role.
    #[serde(default)]
    pub server_script: Option<String>,
    /// Variables of that script besides those of [`DeriveRules::variables`], as templates.
    #[serde(default)]
    pub server_variables: BTreeMap<String, String>,
    /// Once for each, it is evaluated with these variables besides, as on the machines of each role; once without any
    /// if there are none.
    #[serde(default)]
    pub server_runs: Vec<BTreeMap<String, String>>,
    /// What programs that it runs print.
    #[serde(default)]
    pub answers: Vec<AnswerRule>,
    /// The program to which the entry's own script hands over: what is exported at that moment reaches the server
    /// script, under the variables above.
    #[serde(default)]
    pub handed_to: Option<String>,
    /// Files outside of the repository that are there while the server script runs, with their texts, by absolute path.
    #[serde(default)]
    pub server_files: BTreeMap<String, String>,
}

/// What is known of a program that a script runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AnswerRule {
    /// First word of the command.
    pub program: String,
    /// Text that occurs in one of its words.
    pub contains: String,
    /// What it prints.
    pub output: String,
}

/// Kind of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableKind {
    /// Flags by model and role.
    Models,
    /// An llm-d recipe.
    LlmD,
}

/// The values that templates may name for a row.
pub(super) fn values(row: &Row) -> BTreeMap<&'static str, String> {
    let mut out: BTreeMap<&'static str, String> = BTreeMap::new();
    let head = &row.head;
    out.insert("model", head.model.to_string());
    out.insert(
        "model_name",
        head.model.rsplit('/').next().unwrap_or(&head.model).to_owned(),
    );
    out.insert("image", head.image.to_string());
    out.insert("prefix", head.model_prefix.to_string());
    out.insert("precision", head.precision.to_string());
    out.insert("framework", head.framework.to_string());
    out.insert("runner", head.runner.to_string());
    out.insert("exp_name", row.exp_name.clone());
    out.insert("spec_decoding", row.spec_decoding.to_string());
    let concs: Vec<String> = row.conc.values().iter().map(i64::to_string).collect();
    match &row.conc {
        Conc::One(n) => out.insert("conc", n.to_string()),
        Conc::Many(_) => out.insert("conc_list", concs.join(" ")),
    };
    out.insert("conc_x", concs.join("x"));
    let agentic = row.scenario() == ScenarioType::Agentic;
    out.insert("is_agentic", if agentic { "1" } else { "0" }.to_owned());
    out.insert(
        "scenario",
        if agentic {
            row.scenario().name().to_owned()
        } else {
            String::new()
        },
    );
    out.insert("eval_only", (row.eval_only == Some(true)).to_string());
    out.insert("run_eval", (row.run_eval == Some(true)).to_string());
    match &row.work {
        Work::Fixed {
            isl,
            osl,
            max_model_len,
        } => {
            out.insert("isl", isl.to_string());
            out.insert("osl", osl.to_string());
            out.insert("max_model_len", max_model_len.to_string());
        }
        Work::Agentic {
            kv_offloading,
            backend,
            memory_gb,
            duration,
        } => {
            out.insert("kv_offloading", kv_offloading.to_string());
            out.insert(
                "kv_offload_backend",
                backend.as_ref().map_or(String::new(), |b| b.name.to_string()),
            );
            out.insert("duration", duration.to_string());
            if let Some(memory) = memory_gb {
                out.insert("memory_gb", memory.to_string());
            }
        }
    }
    if let Some(transfer) = &row.kv_p2p_transfer {
        out.insert("kv_p2p_transfer", transfer.to_string());
    }
    match &row.shape {
        RowShape::Single(s) => {
            out.insert("tp", s.tp.to_string());
            out.insert("pp", s.pp.to_string());
            out.insert("dcp", s.dcp.to_string());
            out.insert("pcp", s.pcp.to_string());
            out.insert("ep", s.ep.to_string());
            out.insert("dp_attention", s.dp_attention.to_string());
        }
        RowShape::Multi { prefill, decode } => {
            let mut put = |names: [&'static str; 5], w: &Worker| {
                out.insert(names[0], w.tp.to_string());
                out.insert(names[1], w.ep.to_string());
                out.insert(names[2], w.dp_attention.to_string());
                out.insert(names[3], w.count.to_string());
                out.insert(names[4], (w.ep > 1).to_string());
            };
            put(
                [
                    "prefill_tp",
                    "prefill_ep",
                    "prefill_dp_attention",
                    "prefill_workers",
                    "prefill_expert",
                ],
                prefill,
            );
            put(
                [
                    "decode_tp",
                    "decode_ep",
                    "decode_dp_attention",
                    "decode_workers",
                    "decode_expert",
                ],
                decode,
            );
        }
    }
    out
}

/// Settings of the workers of a row, which the launchers export (domain guide 3.4).
pub(super) fn settings(row: &Row) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    if let RowShape::Multi { prefill, decode } = &row.shape {
        for worker in [prefill, decode] {
            for setting in worker.settings.iter().flatten().flatten() {
                if let Some((name, value)) = setting.split_once('=') {
                    out.insert(name.to_owned(), value.to_owned());
                }
            }
        }
    }
    out
}

/// Fills a template; `None` if it names something that the row lacks and says nothing instead.
pub(super) fn fill(template: &str, values: &BTreeMap<&'static str, String>) -> Option<String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, tail) = after.split_once('}')?;
        match (values.get(name), name.split_once(":-")) {
            (Some(value), _) => out.push_str(value),
            (None, Some((name, instead))) => out.push_str(values.get(name).map_or(instead, String::as_str)),
            (None, None) => return None,
        }
        rest = tail;
    }
    out.push_str(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates() {
        let values = BTreeMap::from([("tp", "8".to_owned()), ("model", "a/b".to_owned())]);
        assert_eq!(fill("x{tp}-{model}", &values).as_deref(), Some("x8-a/b"));
        assert_eq!(fill("plain", &values).as_deref(), Some("plain"));
        assert_eq!(fill("{ep}", &values), None);
        assert_eq!(fill("{ep:-0}/{tp:-0}", &values).as_deref(), Some("0/8"));
        assert_eq!(fill("{tp", &values), None);
    }
}
