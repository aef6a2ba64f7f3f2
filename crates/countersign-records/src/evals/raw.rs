//! Raw evaluation results and the metadata beside them, for runs whose aggregate is gone.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::json::type_name;
use super::rows::Fields;
use super::{EvalRules, JsonError, Judged, Number, judge, parse};

/// One task of a raw result.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RawTask {
    /// The metrics that count by the rules, in the order of the file.
    pub metrics: Vec<(String, Number)>,
    /// Effective number of samples.
    pub n_eff: Option<u64>,
}

/// A raw result file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct RawResult {
    /// Tasks by name.
    pub tasks: BTreeMap<String, RawTask>,
    /// Model that the client names.
    pub model_name: Option<String>,
}

impl RawResult {
    /// Reads a raw result file.
    ///
    /// # Errors
    /// When it is no JSON object with an object of results.
    pub fn read(bytes: &[u8], rules: &EvalRules) -> Result<RawResult, JsonError> {
        let value = parse(bytes)?;
        let object = |value: &Value, expected| match value {
            Value::Object(map) => Ok(map.clone()),
            other => Err(JsonError::Shape {
                expected,
                found: type_name(other),
            }),
        };
        let root = object(&value, "an object")?;
        let results = object(root.get("results").unwrap_or(&Value::Null), "an object of results")?;
        let mut out = RawResult {
            model_name: Fields::new(&root).text("model_name"),
            ..RawResult::default()
        };
        for (task, metrics) in &results {
            let metrics = object(metrics, "an object of metrics")?;
            let counts = |name: &str| {
                let excluded = !rules.metric_exclude.is_empty() && name.contains(&rules.metric_exclude);
                name.starts_with(&rules.metric_prefix) && !excluded
            };
            let kept = metrics.iter().filter(|(name, _)| counts(name));
            let read = kept.filter_map(|(name, value)| Number::read(value).map(|n| (name.clone(), n)));
            let samples = root
                .get("n-samples")
                .and_then(|s| s.get(task))
                .and_then(|s| s.get("effective"));
            out.tasks.insert(
                task.clone(),
                RawTask {
                    metrics: read.collect(),
                    n_eff: samples.and_then(Value::as_u64),
                },
            );
        }
        Ok(out)
    }
}

impl RawTask {
    /// Whether every counted metric reaches the bar. A task without any is [`Judged::Nothing`], which is no pass.
    #[must_use]
    pub fn judge(&self, bar: f64) -> Judged {
        judge(&self.metrics, &[], bar)
    }
}

/// The metadata beside raw results.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MetaEnv {
    /// Model prefix; none where the job did not know it.
    pub model_prefix: Option<String>,
    /// More than one node.
    pub is_multinode: bool,
    /// Framework.
    pub framework: Option<String>,
    /// Precision.
    pub precision: Option<String>,
    /// Speculative decoding.
    pub spec_decoding: Option<String>,
    /// Runner label.
    pub hw: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Concurrency.
    pub conc: Option<u64>,
    /// Concurrencies that were asked for, done, and failed, where the job did several.
    pub batch: Option<Batch>,
    /// A field that is of the wrong type.
    pub wrong: Option<String>,
}

/// Concurrencies of a job that evaluates several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Batch {
    /// Asked for.
    pub expected: Vec<u64>,
    /// Done.
    pub completed: Vec<u64>,
    /// Failed.
    pub failed: Vec<u64>,
}

impl MetaEnv {
    /// Reads the metadata.
    ///
    /// # Errors
    /// When it is no JSON object.
    pub fn read(bytes: &[u8], rules: &EvalRules) -> Result<MetaEnv, JsonError> {
        let value = parse(bytes)?;
        let Some(map) = value.as_object() else {
            return Err(JsonError::Shape {
                expected: "an object",
                found: type_name(&value),
            });
        };
        let mut f = Fields::new(map);
        let mut out = MetaEnv {
            model_prefix: f.text(&rules.prefix_field).filter(|p| !p.is_empty() && p != "unknown"),
            is_multinode: f.flag("is_multinode").unwrap_or_default(),
            framework: f.text("framework"),
            precision: f.text("precision"),
            spec_decoding: f.text("spec_decoding"),
            hw: f.text("hw"),
            model: f.text("model"),
            conc: f.count("conc"),
            batch: None,
            wrong: f.wrong,
        };
        if map.contains_key("eval_concs") {
            let mut list = |name: &str| match map.get(name).and_then(Value::as_array) {
                Some(values) => {
                    let counts: Vec<u64> = values.iter().filter_map(Value::as_u64).filter(|n| *n > 0).collect();
                    if counts.len() < values.len() {
                        out.wrong
                            .get_or_insert_with(|| format!("{name} has an invalid concurrency"));
                    }
                    counts
                }
                None => {
                    out.wrong.get_or_insert_with(|| format!("{name} is not a list"));
                    Vec::new()
                }
            };
            let batch = Batch {
                expected: list("eval_concs"),
                completed: list("completed_eval_concs"),
                failed: list("failed_eval_concs"),
            };
            out.batch = Some(batch);
        }
        Ok(out)
    }
}

/// The concurrency in a result file's name: `…_conc<N>.json` or `…_conc<N>_<k>.json`.
#[must_use]
pub fn concurrency_of(name: &str) -> Option<u64> {
    let stem = name.strip_suffix(".json")?;
    let (_, tail) = stem.rsplit_once("_conc")?;
    let digits = |t: &str| !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit());
    let (number, rest) = tail.split_once('_').map_or((tail, None), |(n, rest)| (n, Some(rest)));
    (digits(number) && rest.is_none_or(digits))
        .then(|| number.parse().ok())
        .flatten()
}

/// What is wrong between the metadata, the result files, and the concurrencies that were asked for.
#[must_use]
pub fn manifest_problems(meta: &MetaEnv, files: &[&str], asked: Option<&[u64]>) -> Vec<String> {
    let mut out: Vec<String> = meta.wrong.iter().cloned().collect();
    let list = |set: &BTreeSet<u64>| set.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    let Some(batch) = &meta.batch else {
        match asked {
            None => {}
            Some([one]) => {
                if meta.conc != Some(*one) {
                    out.push(format!(
                        "the metadata does not have the concurrency {one} that was asked for"
                    ));
                }
                if files.len() != 1 {
                    out.push(format!("{} result files, expected one", files.len()));
                }
            }
            Some(_) => out.push("several concurrencies were asked for, and the metadata lists none".into()),
        }
        return out;
    };
    let set = |values: &[u64]| values.iter().copied().collect::<BTreeSet<u64>>();
    let listed = set(&batch.expected);
    let wanted = asked.map_or_else(|| listed.clone(), set);
    let completed = set(&batch.completed);
    if listed.len() != batch.expected.len() || completed.len() != batch.completed.len() {
        out.push("the metadata lists a concurrency twice".into());
    }
    if asked.is_some() && listed != wanted {
        out.push("the metadata lists other concurrencies than were asked for".into());
    }
    if !batch.failed.is_empty() {
        out.push(format!("failed at concurrency {}", list(&set(&batch.failed))));
    }
    let mut have = BTreeSet::new();
    for file in files {
        match concurrency_of(file) {
            Some(conc) => _ = have.insert(conc),
            None => out.push(format!("the result file {file} has no concurrency in its name")),
        }
    }
    for (what, found) in [
        ("completed concurrency", &completed),
        ("result file for concurrency", &have),
    ] {
        let missing: BTreeSet<u64> = wanted.difference(found).copied().collect();
        let extra: BTreeSet<u64> = found.difference(&wanted).copied().collect();
        if !missing.is_empty() {
            out.push(format!("no {what} {}", list(&missing)));
        }
        if !extra.is_empty() {
            out.push(format!("an unexpected {what} {}", list(&extra)));
        }
    }
    out
}
