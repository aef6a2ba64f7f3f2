//! One generated row: the runtime contract between configs and benchmark jobs, in the generator's own field names, with
//! the recipe fingerprint (domain guide 4.2).

use std::fmt::Write as _;
use std::sync::Arc;

use countersign_yaml::Span;
use serde_json::{Map as JsonMap, Value as Json};
use sha2::{Digest as _, Sha256};

use crate::entry::{Component, Head, SingleShape, Worker};
use crate::rules::{NodeKind, Purpose, ScenarioType};

/// One row of the matrix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The entry it comes from.
    pub head: Arc<Head>,
    /// The search-space row it comes from.
    pub place: Span,
    /// What is run.
    pub work: Work,
    /// The parallelism.
    pub shape: RowShape,
    /// `spec-decoding`.
    pub spec_decoding: Arc<str>,
    /// `conc`.
    pub conc: Conc,
    /// `exp-name`.
    pub exp_name: String,
    /// `router`.
    pub router: Option<Arc<Component>>,
    /// `kv-p2p-transfer`.
    pub kv_p2p_transfer: Option<Arc<str>>,
    /// `run-eval`.
    pub run_eval: Option<bool>,
    /// `eval-only`.
    pub eval_only: Option<bool>,
    /// `eval-conc`.
    pub eval_conc: Option<i64>,
    /// `eval-all-concs`.
    pub eval_all_concs: Option<bool>,
    /// `recipe-fingerprint`: 64 hex digits, on throughput rows of a changelog selection.
    pub recipe_fingerprint: Option<String>,
}

/// The scenario's own fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Work {
    /// Random prompts of fixed lengths.
    Fixed {
        /// `isl`.
        isl: i64,
        /// `osl`.
        osl: i64,
        /// `max-model-len`.
        max_model_len: i64,
    },
    /// Trace replay.
    Agentic {
        /// `kv-offloading`.
        kv_offloading: Arc<str>,
        /// `kv-offload-backend`.
        backend: Option<Arc<Component>>,
        /// `total-cpu-dram-gb`; absent where the rules say that multi-node rows have none.
        memory_gb: Option<i64>,
        /// `duration`, in seconds.
        duration: i64,
    },
}

/// The parallelism of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowShape {
    /// One machine.
    Single(SingleShape),
    /// Prefill and decode workers.
    Multi {
        /// `prefill`.
        prefill: Arc<Worker>,
        /// `decode`.
        decode: Arc<Worker>,
    },
}

/// `conc`: a number for one machine, a list for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conc {
    /// One concurrency.
    One(i64),
    /// The concurrencies of one job, in order.
    Many(Vec<i64>),
}

impl Conc {
    /// The concurrencies as a slice.
    #[must_use]
    pub fn values(&self) -> &[i64] {
        match self {
            Conc::One(value) => std::slice::from_ref(value),
            Conc::Many(values) => values,
        }
    }

    fn json(&self) -> Json {
        match self {
            Conc::One(value) => Json::from(*value),
            Conc::Many(values) => Json::from(values.clone()),
        }
    }
}

/// Which fields a canonical form leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    /// `conc`, `exp-name`, `recipe-fingerprint`: what distinguishes points of one curve.
    Point,
    /// `conc` and every evaluation field: what makes two multi-node rows one topology.
    Evaluation,
}

impl Row {
    /// One machine or several.
    #[must_use]
    pub fn nodes(&self) -> NodeKind {
        match self.shape {
            RowShape::Single(_) => NodeKind::Single,
            RowShape::Multi { .. } => NodeKind::Multi,
        }
    }

    /// The scenario type.
    #[must_use]
    pub fn scenario(&self) -> ScenarioType {
        match self.work {
            Work::Fixed { .. } => ScenarioType::Fixed,
            Work::Agentic { .. } => ScenarioType::Agentic,
        }
    }

    /// Throughput, or accuracy only.
    #[must_use]
    pub fn purpose(&self) -> Purpose {
        if self.eval_only == Some(true) {
            Purpose::Eval
        } else {
            Purpose::Throughput
        }
    }

    /// Input and output length of a fixed-length row.
    #[must_use]
    pub fn lengths(&self) -> Option<(i64, i64)> {
        match self.work {
            Work::Fixed { isl, osl, .. } => Some((isl, osl)),
            Work::Agentic { .. } => None,
        }
    }

    /// `disagg`, where the row has it: single-node agentic rows do not.
    #[must_use]
    pub fn disagg(&self) -> Option<bool> {
        match (&self.work, &self.shape) {
            (Work::Agentic { .. }, RowShape::Single(_)) => None,
            _ => Some(self.head.disagg),
        }
    }

    /// The fingerprint of the recipe: SHA-256 of the row's canonical JSON without `conc`, `exp-name` and itself, in hex.
    /// Over the row as generated without evaluation (domain guide 4.2).
    #[must_use]
    pub fn fingerprint(&self) -> String {
        hex::encode(Sha256::digest(self.canonical(Without::Point).as_bytes()))
    }

    /// Identifies the curve: two rows are on one curve if this is equal (domain guide 4.6).
    #[must_use]
    pub fn curve_key(&self) -> String {
        self.canonical(Without::Point)
    }

    /// Identifies the topology of a multi-node row for the choice of evaluations.
    pub(crate) fn topology_key(&self) -> String {
        self.canonical(Without::Evaluation)
    }

    /// The row as JSON, fields named and ordered as by the generator.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let mut out = JsonMap::with_capacity(28);
        let mut put = |key: &str, value: Json| {
            out.insert(key.to_owned(), value);
        };
        let head = &self.head;
        put("image", Json::from(&*head.image));
        put("model", Json::from(&*head.model));
        put("model-prefix", Json::from(&*head.model_prefix));
        put("precision", Json::from(&*head.precision));
        put("framework", Json::from(&*head.framework));
        put("runner", Json::from(&*head.runner));
        if let Work::Fixed { isl, osl, .. } = self.work {
            put("isl", Json::from(isl));
            put("osl", Json::from(osl));
        }
        match &self.shape {
            RowShape::Single(shape) => {
                put("tp", Json::from(shape.tp));
                put("pp", Json::from(shape.pp));
                put("dcp-size", Json::from(shape.dcp));
                put("pcp-size", Json::from(shape.pcp));
                put("ep", Json::from(shape.ep));
                put("dp-attn", Json::from(shape.dp_attention));
                put("spec-decoding", Json::from(&*self.spec_decoding));
            }
            RowShape::Multi { prefill, decode } => {
                put("spec-decoding", Json::from(&*self.spec_decoding));
                put("prefill", worker_json(prefill));
                put("decode", worker_json(decode));
            }
        }
        put("conc", self.conc.json());
        match &self.work {
            Work::Fixed { max_model_len, .. } => put("max-model-len", Json::from(*max_model_len)),
            Work::Agentic {
                kv_offloading,
                memory_gb,
                duration,
                ..
            } => {
                put("kv-offloading", Json::from(&**kv_offloading));
                if let Some(memory) = memory_gb {
                    put("total-cpu-dram-gb", Json::from(*memory));
                }
                put("duration", Json::from(*duration));
            }
        }
        put("exp-name", Json::from(self.exp_name.as_str()));
        if let Some(disagg) = self.disagg() {
            put("disagg", Json::from(disagg));
        }
        if let Work::Agentic { backend, .. } = &self.work {
            put("scenario-type", Json::from(ScenarioType::Agentic.name()));
            if let Some(backend) = backend {
                put("kv-offload-backend", component_json(backend));
            }
        }
        if let Some(router) = &self.router {
            put("router", component_json(router));
        }
        if let Some(transfer) = &self.kv_p2p_transfer {
            put("kv-p2p-transfer", Json::from(&**transfer));
        }
        if let Some(flag) = self.run_eval {
            put("run-eval", Json::from(flag));
        }
        if let Some(flag) = self.eval_only {
            put("eval-only", Json::from(flag));
        }
        if let Some(conc) = self.eval_conc {
            put("eval-conc", Json::from(conc));
        }
        if let Some(flag) = self.eval_all_concs {
            put("eval-all-concs", Json::from(flag));
        }
        if let Some(fingerprint) = &self.recipe_fingerprint {
            put("recipe-fingerprint", Json::from(fingerprint.as_str()));
        }
        Json::Object(out)
    }

    /// The canonical JSON: keys sorted, no blanks, everything beyond ASCII escaped. Written out by hand because it is
    /// needed for every row of a revision; a test holds it equal to a generic sort of [`Row::to_json`].
    fn canonical(&self, without: Without) -> String {
        let head = &self.head;
        let eval_fields = without == Without::Point;
        let mut out = Canonical::new();
        if let RowShape::Single(shape) = &self.shape {
            out.number("dcp-size", shape.dcp);
        }
        if let RowShape::Multi { decode, .. } = &self.shape {
            out.worker("decode", decode);
        }
        if let Some(disagg) = self.disagg() {
            out.flag("disagg", disagg);
        }
        if let RowShape::Single(shape) = &self.shape {
            out.flag("dp-attn", shape.dp_attention);
        }
        if let Work::Agentic { duration, .. } = &self.work {
            out.number("duration", *duration);
        }
        if let RowShape::Single(shape) = &self.shape {
            out.number("ep", shape.ep);
        }
        if eval_fields {
            if let Some(flag) = self.eval_all_concs {
                out.flag("eval-all-concs", flag);
            }
            if let Some(conc) = self.eval_conc {
                out.number("eval-conc", conc);
            }
            if let Some(flag) = self.eval_only {
                out.flag("eval-only", flag);
            }
        }
        out.text("framework", &head.framework);
        out.text("image", &head.image);
        if let Work::Fixed { isl, .. } = self.work {
            out.number("isl", isl);
        }
        if let Work::Agentic {
            kv_offloading, backend, ..
        } = &self.work
        {
            if let Some(backend) = backend {
                out.component("kv-offload-backend", backend);
            }
            out.text("kv-offloading", kv_offloading);
        }
        if let Some(transfer) = &self.kv_p2p_transfer {
            out.text("kv-p2p-transfer", transfer);
        }
        if let Work::Fixed { max_model_len, .. } = self.work {
            out.number("max-model-len", max_model_len);
        }
        out.text("model", &head.model);
        out.text("model-prefix", &head.model_prefix);
        if let Work::Fixed { osl, .. } = self.work {
            out.number("osl", osl);
        }
        if let RowShape::Single(shape) = &self.shape {
            out.number("pcp-size", shape.pcp);
            out.number("pp", shape.pp);
        }
        out.text("precision", &head.precision);
        if let RowShape::Multi { prefill, .. } = &self.shape {
            out.worker("prefill", prefill);
        }
        if let (Without::Evaluation, Some(fingerprint)) = (without, &self.recipe_fingerprint) {
            out.text("recipe-fingerprint", fingerprint);
        }
        if let Some(router) = &self.router {
            out.component("router", router);
        }
        if let (true, Some(flag)) = (eval_fields, self.run_eval) {
            out.flag("run-eval", flag);
        }
        out.text("runner", &head.runner);
        if let Work::Agentic { .. } = self.work {
            out.text("scenario-type", ScenarioType::Agentic.name());
        }
        out.text("spec-decoding", &self.spec_decoding);
        if let Work::Agentic {
            memory_gb: Some(memory),
            ..
        } = self.work
        {
            out.number("total-cpu-dram-gb", memory);
        }
        if let RowShape::Single(shape) = &self.shape {
            out.number("tp", shape.tp);
        }
        out.finish()
    }
}

fn worker_json(worker: &Worker) -> Json {
    let mut out = JsonMap::new();
    out.insert("num-worker".to_owned(), Json::from(worker.count));
    out.insert("tp".to_owned(), Json::from(worker.tp));
    out.insert("ep".to_owned(), Json::from(worker.ep));
    out.insert("dp-attn".to_owned(), Json::from(worker.dp_attention));
    if let Some(hardware) = &worker.hardware {
        out.insert(
            "hardware".to_owned(),
            hardware.as_deref().map_or(Json::Null, Json::from),
        );
    }
    if let Some(settings) = &worker.settings {
        out.insert(
            "additional-settings".to_owned(),
            settings.clone().map_or(Json::Null, Json::from),
        );
    }
    out.insert("pp".to_owned(), Json::from(worker.pp));
    out.insert("dcp-size".to_owned(), Json::from(worker.dcp));
    out.insert("pcp-size".to_owned(), Json::from(worker.pcp));
    Json::Object(out)
}

fn component_json(component: &Component) -> Json {
    let mut out = JsonMap::new();
    out.insert("name".to_owned(), Json::from(&*component.name));
    if let Some(version) = &component.version {
        out.insert("version".to_owned(), version.as_deref().map_or(Json::Null, Json::from));
    }
    Json::Object(out)
}

/// Writes an object whose keys are given in sorted order, as Python's `json.dumps` with sorted keys, no blanks and
/// ASCII only.
struct Canonical {
    out: String,
}

impl Canonical {
    fn new() -> Self {
        let mut out = String::with_capacity(768);
        out.push('{');
        Self { out }
    }

    fn key(&mut self, key: &str) {
        if !self.out.ends_with('{') {
            self.out.push(',');
        }
        quoted(&mut self.out, key);
        self.out.push(':');
    }

    fn number(&mut self, key: &str, value: i64) {
        self.key(key);
        let _ = write!(self.out, "{value}");
    }

    fn flag(&mut self, key: &str, value: bool) {
        self.key(key);
        self.out.push_str(if value { "true" } else { "false" });
    }

    fn text(&mut self, key: &str, value: &str) {
        self.key(key);
        quoted(&mut self.out, value);
    }

    fn optional(&mut self, key: &str, value: Option<&str>) {
        match value {
            Some(value) => self.text(key, value),
            None => {
                self.key(key);
                self.out.push_str("null");
            }
        }
    }

    fn worker(&mut self, key: &str, worker: &Worker) {
        self.key(key);
        self.out.push('{');
        if let Some(settings) = &worker.settings {
            self.key("additional-settings");
            match settings {
                None => self.out.push_str("null"),
                Some(list) => {
                    self.out.push('[');
                    for (index, setting) in list.iter().enumerate() {
                        if index > 0 {
                            self.out.push(',');
                        }
                        quoted(&mut self.out, setting);
                    }
                    self.out.push(']');
                }
            }
        }
        self.number("dcp-size", worker.dcp);
        self.flag("dp-attn", worker.dp_attention);
        self.number("ep", worker.ep);
        if let Some(hardware) = &worker.hardware {
            self.optional("hardware", hardware.as_deref());
        }
        self.number("num-worker", worker.count);
        self.number("pcp-size", worker.pcp);
        self.number("pp", worker.pp);
        self.number("tp", worker.tp);
        self.out.push('}');
    }

    fn component(&mut self, key: &str, component: &Component) {
        self.key(key);
        self.out.push('{');
        self.text("name", &component.name);
        if let Some(version) = &component.version {
            self.optional("version", version.as_deref());
        }
        self.out.push('}');
    }

    fn finish(mut self) -> String {
        self.out.push('}');
        self.out
    }
}

/// A string as Python writes it with `ensure_ascii`: beyond U+FFFF as a surrogate pair.
fn quoted(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            _ => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.push('"');
}
