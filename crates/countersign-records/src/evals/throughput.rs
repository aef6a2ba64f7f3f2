//! Throughput rows: what was measured with which image, and the two numbers of the throughput/latency frontier.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::json::type_name;
use super::rows::{Fields, RowProblem};
use super::{JsonError, MAX_ROWS, Number, parse};

/// Where the numbers of a frontier stand in a row: paths with dots, the first that exists counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AxisPaths {
    /// End-to-end latency in seconds.
    pub latency: Vec<String>,
    /// Throughput of one GPU.
    pub throughput: Vec<String>,
}

/// The frontier of both kinds of rows (newest policy, check 14).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrontierPaths {
    /// Field with the model prefix.
    pub prefix_field: String,
    /// Value of `scenario_type` that marks an agentic row.
    pub agentic_scenario: String,
    /// Rows with fixed lengths.
    pub fixed: AxisPaths,
    /// Agentic rows.
    pub agentic: AxisPaths,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThroughputRow {
    /// Position in the file, from 0.
    pub index: usize,
    /// Agentic, else with fixed lengths.
    pub agentic: bool,
    /// Runner label.
    pub hw: String,
    /// Concurrency.
    pub conc: u64,
    /// Image that ran, as the config has it.
    pub image: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Model prefix.
    pub model_prefix: String,
    /// Framework.
    pub framework: String,
    /// Precision.
    pub precision: String,
    /// Speculative decoding.
    pub spec_decoding: Option<String>,
    /// Separate prefill and decode workers.
    pub disagg: bool,
    /// More than one node.
    pub is_multinode: bool,
    /// Fingerprint of the matrix row, if the run recorded one.
    pub recipe_fingerprint: Option<String>,
    /// Input and output length in tokens; none in agentic rows.
    pub lengths: Option<(u64, u64)>,
    /// Tensor, expert parallel size; of the whole deployment where there are two roles.
    pub tp: Option<u64>,
    /// See [`ThroughputRow::tp`].
    pub ep: Option<u64>,
    /// Prefill tensor parallel size, workers; then the same of decode.
    pub prefill: Option<(u64, u64)>,
    /// See [`ThroughputRow::prefill`].
    pub decode: Option<(u64, u64)>,
    /// KV offloading, where the row says so.
    pub kv_offloading: Option<String>,
    /// End-to-end latency in seconds, if the row has it.
    pub latency: Option<Number>,
    /// Throughput of one GPU, if the row has it.
    pub throughput: Option<Number>,
}

/// A file of rows, or of one.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ThroughputRows {
    /// Rows, in the order of the file.
    pub rows: Vec<ThroughputRow>,
    /// Rows that could not be read.
    pub problems: Vec<RowProblem>,
}

fn look(map: &Map<String, Value>, paths: &[String]) -> Option<Number> {
    paths.iter().find_map(|path| {
        let mut steps = path.split('.');
        let first = map.get(steps.next()?)?;
        steps
            .try_fold(first, |value, step| value.get(step))
            .and_then(Number::read)
    })
}

impl ThroughputRow {
    fn read(index: usize, value: &Value, paths: &FrontierPaths) -> Result<ThroughputRow, String> {
        let Some(map) = value.as_object() else {
            return Err(format!("the row is {}", type_name(value)));
        };
        let mut f = Fields::new(map);
        let agentic = f.text("scenario_type").is_some_and(|s| s == paths.agentic_scenario);
        let axis = if agentic { &paths.agentic } else { &paths.fixed };
        let mut need = |name: &str| {
            let text = f.text(name);
            f.need(name, text).unwrap_or_default()
        };
        let (hw, model_prefix) = (need("hw"), need(&paths.prefix_field));
        let (framework, precision) = (need("framework"), need("precision"));
        let conc = f.count("conc");
        let conc = f.need("conc", conc).unwrap_or_default();
        let row = ThroughputRow {
            index,
            agentic,
            hw,
            conc,
            image: f.text("image").filter(|t| !t.is_empty()),
            model: f.text("model"),
            model_prefix,
            framework,
            precision,
            spec_decoding: f.text("spec_decoding"),
            disagg: f.flag("disagg").unwrap_or_default(),
            is_multinode: f.flag("is_multinode").unwrap_or_default(),
            recipe_fingerprint: f.text("recipe_fingerprint").filter(|t| !t.is_empty()),
            lengths: f.count("isl").zip(f.count("osl")),
            tp: f.count("tp"),
            ep: f.count("ep"),
            prefill: f.count("prefill_tp").zip(f.count("prefill_num_workers")),
            decode: f.count("decode_tp").zip(f.count("decode_num_workers")),
            kv_offloading: f.text("kv_offloading"),
            latency: look(map, &axis.latency),
            throughput: look(map, &axis.throughput),
        };
        f.wrong.map_or(Ok(row), Err)
    }

    /// The point of the frontier: latency in seconds and throughput of one GPU. `None` where a number is missing, not
    /// finite, or not positive, which is invalid evidence (newest policy, check 14).
    #[must_use]
    pub fn point(&self) -> Option<(f64, f64)> {
        let positive = |n: &Option<Number>| n.as_ref().and_then(Number::finite).filter(|v| *v > 0.0);
        positive(&self.latency).zip(positive(&self.throughput))
    }
}

impl ThroughputRows {
    /// Reads a list of rows, or one row.
    ///
    /// # Errors
    /// When it is no JSON list or object, or has more than [`MAX_ROWS`] rows.
    pub fn read(bytes: &[u8], paths: &FrontierPaths) -> Result<ThroughputRows, JsonError> {
        let value = parse(bytes)?;
        let list = match &value {
            Value::Array(list) => list.as_slice(),
            Value::Object(_) => std::slice::from_ref(&value),
            other => {
                return Err(JsonError::Shape {
                    expected: "rows",
                    found: type_name(other),
                });
            }
        };
        if list.len() > MAX_ROWS {
            return Err(JsonError::Shape {
                expected: "a list of a reasonable length",
                found: "more rows than are read",
            });
        }
        let mut out = ThroughputRows::default();
        for (index, value) in list.iter().enumerate() {
            match ThroughputRow::read(index, value, paths) {
                Ok(row) => out.rows.push(row),
                Err(what) => out.problems.push(RowProblem { index, what }),
            }
        }
        Ok(out)
    }
}
