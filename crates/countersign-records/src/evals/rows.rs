//! Rows of the aggregated evaluation file: one for each evaluated point and task.

use serde::Serialize;
use serde_json::{Map, Value};

use super::json::type_name;
use super::{JsonError, Judged, MAX_ROWS, Number, Samples, TaskRule, judge, parse};

/// One row. Fields that old files lack are `None`; `isl` and `osl` are 0 in agentic rows. No row records the image.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EvalRow {
    /// Position in the file, from 0.
    pub index: usize,
    /// More than one node.
    pub is_multinode: bool,
    /// Model prefix.
    pub model_prefix: String,
    /// Model, which may be a path on the cluster.
    pub model: Option<String>,
    /// Runner label, upper-cased by the collector.
    pub hw: Option<String>,
    /// Framework, lower-cased by the collector.
    pub framework: Option<String>,
    /// Precision, lower-cased by the collector.
    pub precision: Option<String>,
    /// Speculative decoding, as in the config row.
    pub spec_decoding: Option<String>,
    /// Input length in tokens.
    pub isl: Option<u64>,
    /// Output length in tokens.
    pub osl: Option<u64>,
    /// Tensor parallel size.
    pub tp: Option<u64>,
    /// Expert parallel size.
    pub ep: Option<u64>,
    /// Tensor parallel size of a prefill worker, and so on for both roles.
    pub prefill_tp: Option<u64>,
    /// Expert parallel size of a prefill worker.
    pub prefill_ep: Option<u64>,
    /// Number of prefill workers.
    pub prefill_num_workers: Option<u64>,
    /// Tensor parallel size of a decode worker.
    pub decode_tp: Option<u64>,
    /// Expert parallel size of a decode worker.
    pub decode_ep: Option<u64>,
    /// Number of decode workers.
    pub decode_num_workers: Option<u64>,
    /// Concurrency.
    pub conc: u64,
    /// `true`, `false`, `none`, or a text for both roles.
    pub dp_attention: Option<String>,
    /// Of the prefill workers.
    pub prefill_dp_attention: Option<String>,
    /// Of the decode workers.
    pub decode_dp_attention: Option<String>,
    /// Task.
    pub task: String,
    /// Strict score, if there is one.
    pub em_strict: Option<Number>,
    /// Flexible score, if there is one.
    pub em_flexible: Option<Number>,
    /// Effective number of samples.
    pub n_eff: Option<u64>,
    /// The collector's choice of a score and its name.
    pub score: Option<Number>,
    /// See [`EvalRow::score`].
    pub score_name: Option<String>,
    /// Result file that the row comes from.
    pub source: Option<String>,
}

/// A row that could not be read; it counts as evidence of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RowProblem {
    /// Position in the file, from 0.
    pub index: usize,
    /// What is wrong.
    pub what: String,
}

/// The file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EvalRows {
    /// Rows, in the order of the file.
    pub rows: Vec<EvalRow>,
    /// Rows that could not be read.
    pub problems: Vec<RowProblem>,
}

/// Reads fields and remembers the first that is of the wrong type.
pub(super) struct Fields<'v> {
    pub(super) map: &'v Map<String, Value>,
    pub(super) wrong: Option<String>,
}

/// Longest text of a field that is kept.
const MAX_TEXT: usize = 4096;

impl<'v> Fields<'v> {
    pub(super) fn new(map: &'v Map<String, Value>) -> Self {
        Fields { map, wrong: None }
    }

    fn fail(&mut self, name: &str, value: &Value, wanted: &str) {
        self.wrong
            .get_or_insert_with(|| format!("{name} is {}, not {wanted}", type_name(value)));
    }

    /// A text; a boolean counts as its text, as the collector writes it.
    pub(super) fn text(&mut self, name: &str) -> Option<String> {
        match self.map.get(name)? {
            Value::Null => None,
            Value::String(text) if text.len() <= MAX_TEXT => Some(text.clone()),
            Value::Bool(flag) => Some(flag.to_string()),
            value => {
                self.fail(name, value, "a text");
                None
            }
        }
    }

    /// A count; a text of digits counts as one.
    pub(super) fn count(&mut self, name: &str) -> Option<u64> {
        let value = self.map.get(name)?;
        let number = match value {
            Value::Null => return None,
            Value::Number(n) => n.as_u64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        };
        if number.is_none() {
            self.fail(name, value, "a count");
        }
        number
    }

    /// A boolean; the texts `true` and `false` count as ones.
    pub(super) fn flag(&mut self, name: &str) -> Option<bool> {
        let value = self.map.get(name)?;
        match value {
            Value::Null => None,
            Value::Bool(flag) => Some(*flag),
            Value::String(text) if text.eq_ignore_ascii_case("true") => Some(true),
            Value::String(text) if text.eq_ignore_ascii_case("false") => Some(false),
            _ => {
                self.fail(name, value, "a boolean");
                None
            }
        }
    }

    pub(super) fn number(&self, name: &str) -> Option<Number> {
        self.map.get(name).and_then(Number::read)
    }

    pub(super) fn need<T>(&mut self, name: &str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.wrong.get_or_insert_with(|| format!("{name} is missing"));
        }
        value
    }
}

impl EvalRow {
    fn read(index: usize, value: &Value) -> Result<EvalRow, String> {
        let Some(map) = value.as_object() else {
            return Err(format!("the row is {}", type_name(value)));
        };
        let mut f = Fields::new(map);
        let (prefix, task, conc) = (f.text("model_prefix"), f.text("task"), f.count("conc"));
        let required = (
            f.need("model_prefix", prefix),
            f.need("task", task),
            f.need("conc", conc),
        );
        let row = |(model_prefix, task, conc), f: &mut Fields<'_>| EvalRow {
            index,
            is_multinode: f.flag("is_multinode").unwrap_or_default(),
            model_prefix,
            model: f.text("model"),
            hw: f.text("hw"),
            framework: f.text("framework"),
            precision: f.text("precision"),
            spec_decoding: f.text("spec_decoding"),
            isl: f.count("isl"),
            osl: f.count("osl"),
            tp: f.count("tp"),
            ep: f.count("ep"),
            prefill_tp: f.count("prefill_tp"),
            prefill_ep: f.count("prefill_ep"),
            prefill_num_workers: f.count("prefill_num_workers"),
            decode_tp: f.count("decode_tp"),
            decode_ep: f.count("decode_ep"),
            decode_num_workers: f.count("decode_num_workers"),
            conc,
            dp_attention: f.text("dp_attention"),
            prefill_dp_attention: f.text("prefill_dp_attention"),
            decode_dp_attention: f.text("decode_dp_attention"),
            task,
            em_strict: f.number("em_strict"),
            em_flexible: f.number("em_flexible"),
            n_eff: f.count("n_eff"),
            score: f.number("score"),
            score_name: f.text("score_name"),
            source: f.text("source"),
        };
        let made = match required {
            (Some(prefix), Some(task), Some(conc)) => Some(row((prefix, task, conc), &mut f)),
            _ => None,
        };
        match (made, f.wrong) {
            (Some(row), None) => Ok(row),
            (_, wrong) => Err(wrong.unwrap_or_default()),
        }
    }

    /// The metrics that count: both scores, where they are.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, Number)> {
        let named = [("em_strict", &self.em_strict), ("em_flexible", &self.em_flexible)];
        named
            .into_iter()
            .filter_map(|(name, n)| n.clone().map(|n| (name.to_owned(), n)))
            .collect()
    }

    /// Whether the metrics reach the bar; `rule` says which ones the task must have.
    #[must_use]
    pub fn judge(&self, rule: Option<&TaskRule>, bar: f64) -> Judged {
        judge(
            &self.metrics(),
            rule.map(|r| r.needs.as_slice()).unwrap_or_default(),
            bar,
        )
    }

    /// Whether the run was a full one.
    #[must_use]
    pub fn samples(&self, rule: Option<&TaskRule>) -> Samples {
        Samples::of(self.n_eff, rule)
    }
}

impl EvalRows {
    /// Reads the aggregated file: a list of rows.
    ///
    /// # Errors
    /// When it is no JSON list, or has more than [`MAX_ROWS`] rows.
    pub fn read(bytes: &[u8]) -> Result<EvalRows, JsonError> {
        let value = parse(bytes)?;
        let Some(list) = value.as_array() else {
            return Err(JsonError::Shape {
                expected: "a list of rows",
                found: type_name(&value),
            });
        };
        if list.len() > MAX_ROWS {
            return Err(JsonError::Shape {
                expected: "a list of a reasonable length",
                found: "more rows than are read",
            });
        }
        let mut out = EvalRows::default();
        for (index, value) in list.iter().enumerate() {
            match EvalRow::read(index, value) {
                Ok(row) => out.rows.push(row),
                Err(what) => out.problems.push(RowProblem { index, what }),
            }
        }
        Ok(out)
    }
}
