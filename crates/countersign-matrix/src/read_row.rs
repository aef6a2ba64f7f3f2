//! Reads one search-space row: parallelism, concurrencies, offloading (domain guide 3.4).

use std::sync::Arc;

use countersign_yaml::{Map, Node, Span};

use crate::entry::{Component, ConcList, Own, SearchRow, Shape, SingleShape, Worker};
use crate::read_entry::Reader;
use crate::rules::ScenarioType;

const CONC_AND_COMPONENTS: [&str; 5] = ["spec-decoding", "conc-start", "conc-end", "conc-list", "router"];
const SINGLE_SHAPE: [&str; 6] = ["tp", "pp", "dcp-size", "pcp-size", "ep", "dp-attn"];
const WORKERS: [&str; 3] = ["prefill", "decode", "kv-p2p-transfer"];
const OFFLOAD: [&str; 2] = ["kv-offloading", "kv-offload-backend"];
const WORKER_FIELDS: [&str; 9] = [
    "num-worker",
    "tp",
    "pp",
    "dcp-size",
    "pcp-size",
    "ep",
    "dp-attn",
    "hardware",
    "additional-settings",
];

pub(crate) fn search_row(
    reader: &mut Reader<'_>,
    node: &Node,
    scenario: ScenarioType,
    multi_node: bool,
) -> Option<SearchRow> {
    let agentic = scenario == ScenarioType::Agentic;
    let mut known: Vec<&str> = Vec::with_capacity(16);
    known.extend(CONC_AND_COMPONENTS);
    if !multi_node || agentic {
        known.extend(SINGLE_SHAPE);
    }
    if multi_node || agentic {
        known.extend(WORKERS);
    }
    if agentic {
        known.extend(OFFLOAD);
    }
    let map = reader.strict.expect_map(node, "", &known)?;
    let shape = if multi_node {
        workers(reader, map, node.span, agentic)
    } else {
        single(reader, map, node.span)
    };
    let spec_decoding = spec_decoding(reader, map);
    let (conc_list, conc_range) = concurrencies(reader, map, node.span)?;
    let router = match map.get("router") {
        None => Own::Inherit,
        Some(value) if value.is_null() => Own::Nothing,
        Some(value) => Own::Value(reader.component(value, "router", true)?),
    };
    let kv_p2p_transfer = match map.get("kv-p2p-transfer") {
        None => Own::Inherit,
        Some(value) if value.is_null() => Own::Nothing,
        Some(value) => Own::Value(reader.non_empty(value, "kv-p2p-transfer")?),
    };
    let (kv_offloading, kv_offload_backend) = if agentic {
        offloading(reader, map, node.span, multi_node)?
    } else {
        (None, None)
    };
    Some(SearchRow {
        span: node.span,
        shape: shape?,
        spec_decoding: spec_decoding?,
        conc_list,
        conc_range,
        router,
        kv_p2p_transfer,
        kv_offloading,
        kv_offload_backend,
    })
}

fn single(reader: &mut Reader<'_>, map: &Map, at: Span) -> Option<Shape> {
    for field in ["prefill", "decode"] {
        if let Some(value) = map.get(field) {
            reader.strict.problem(
                value.span,
                field,
                "a single-node entry has no workers",
                "remove it, or set `multinode: true` for the entry",
            );
        }
    }
    let tp = reader.required_int(map, at, "tp");
    let pp = factor(reader, map, "pp");
    let dcp = factor(reader, map, "dcp-size");
    let pcp = factor(reader, map, "pcp-size");
    let ep = optional_int(reader, map, "ep", 1);
    let dp_attention = optional_bool(reader, map, "dp-attn");
    let shape = SingleShape {
        tp: tp?,
        pp: pp?,
        dcp: dcp?,
        pcp: pcp?,
        ep: ep?,
        dp_attention: dp_attention?,
    };
    divisible(reader, at, shape.tp, shape.dcp);
    Some(Shape::Single(shape))
}

fn workers(reader: &mut Reader<'_>, map: &Map, at: Span, agentic: bool) -> Option<Shape> {
    if agentic {
        if let Some(value) = map.get("tp").filter(|value| !value.is_null()) {
            reader.strict.problem(
                value.span,
                "tp",
                "a multi-node entry has its parallelism in `prefill` and `decode`",
                "move it there",
            );
        }
        for field in ["pp", "dcp-size", "pcp-size"] {
            if let Some(value) = map.get(field) {
                reader.strict.problem(
                    value.span,
                    field,
                    "a multi-node row cannot have this",
                    "move it into `prefill` and `decode`",
                );
            }
        }
        // Allowed by the schema and ignored by the generator; only the type is checked.
        optional_int(reader, map, "ep", 1);
        optional_bool(reader, map, "dp-attn");
    }
    let prefill = worker(reader, map, at, "prefill");
    let decode = worker(reader, map, at, "decode");
    let (prefill, decode) = (prefill?, decode?);
    if prefill.hardware().is_some() != decode.hardware().is_some() {
        reader.strict.problem(
            at,
            "hardware",
            "`hardware` is given for one kind of workers only",
            "give it for both, or for neither",
        );
    }
    Some(Shape::Multi {
        prefill: Arc::new(prefill),
        decode: Arc::new(decode),
    })
}

fn worker(reader: &mut Reader<'_>, map: &Map, at: Span, role: &'static str) -> Option<Worker> {
    let node = reader.strict.required(map, at, "", role)?;
    reader.strict.enter(role);
    let worker = worker_fields(reader, node);
    reader.strict.leave();
    worker
}

fn worker_fields(reader: &mut Reader<'_>, node: &Node) -> Option<Worker> {
    let map = reader.strict.expect_map(node, "", &WORKER_FIELDS)?;
    let count = reader.required_int(map, node.span, "num-worker");
    let tp = reader.required_int(map, node.span, "tp");
    let pp = factor(reader, map, "pp");
    let dcp = factor(reader, map, "dcp-size");
    let pcp = factor(reader, map, "pcp-size");
    let ep = reader.required_int(map, node.span, "ep");
    let dp_attention = match reader.strict.required(map, node.span, "", "dp-attn") {
        Some(value) => reader.strict.expect_bool(value, "dp-attn"),
        None => None,
    };
    let hardware = match map.get("hardware") {
        None => None,
        Some(value) if value.is_null() => Some(None),
        Some(value) => Some(Some(reader.non_empty(value, "hardware")?)),
    };
    let settings = match map.get("additional-settings") {
        None => None,
        Some(value) if value.is_null() => Some(None),
        Some(value) => {
            let list = reader.strict.expect_str_list(value, "additional-settings")?;
            Some(Some(list.into_iter().map(str::to_owned).collect()))
        }
    };
    let worker = Worker {
        count: count?,
        tp: tp?,
        pp: pp?,
        dcp: dcp?,
        pcp: pcp?,
        ep: ep?,
        dp_attention: dp_attention?,
        hardware,
        settings,
    };
    divisible(reader, node.span, worker.tp, worker.dcp);
    Some(worker)
}

fn divisible(reader: &mut Reader<'_>, at: Span, tp: i64, dcp: i64) {
    if dcp > 0 && tp.rem_euclid(dcp) != 0 {
        reader.strict.problem(
            at,
            "dcp-size",
            format!("`tp` ({tp}) is not divisible by `dcp-size` ({dcp})"),
            "correct one of the two",
        );
    }
}

/// A parallelism that multiplies: an integer above zero, 1 where it is not written.
fn factor(reader: &mut Reader<'_>, map: &Map, field: &str) -> Option<i64> {
    let Some(node) = map.get(field) else { return Some(1) };
    let number = reader.strict.expect_int(node, field)?;
    if number <= 0 {
        reader.strict.problem(
            node.span,
            field,
            format!("`{field}` must be positive"),
            "correct the number",
        );
        return None;
    }
    Some(number)
}

fn optional_int(reader: &mut Reader<'_>, map: &Map, field: &str, default: i64) -> Option<i64> {
    match map.get(field) {
        Some(node) if !node.is_null() => reader.strict.expect_int(node, field),
        _ => Some(default),
    }
}

fn optional_bool(reader: &mut Reader<'_>, map: &Map, field: &str) -> Option<bool> {
    match map.get(field) {
        Some(node) if !node.is_null() => reader.strict.expect_bool(node, field),
        _ => Some(false),
    }
}

fn spec_decoding(reader: &mut Reader<'_>, map: &Map) -> Option<Arc<str>> {
    let rules = &reader.rules.spec_decoding;
    let Some(node) = map.get("spec-decoding") else {
        return Some(reader.words.get(&rules.none));
    };
    let text = reader.strict.expect_str(node, "spec-decoding")?;
    if !rules.values.iter().any(|value| value == text) {
        reader.strict.problem(
            node.span,
            "spec-decoding",
            format!("`{text}` is not a value of `spec-decoding`"),
            format!("use one of {}", rules.values.join(", ")),
        );
        return None;
    }
    Some(reader.words.get(text))
}

/// A list, or a range, and not both. An empty list counts as none.
fn concurrencies(reader: &mut Reader<'_>, map: &Map, at: Span) -> Option<(ConcList, Option<(i64, i64)>)> {
    let list = match map.get("conc-list") {
        None => ConcList::Absent,
        Some(node) if node.is_null() => ConcList::Null,
        Some(node) => {
            let items = reader.strict.expect_seq(node, "conc-list")?;
            let mut values = Vec::with_capacity(items.len());
            for item in items {
                values.push(reader.strict.expect_int(item, "conc-list")?);
            }
            if values.iter().any(|value| *value <= 0) {
                reader.strict.problem(
                    node.span,
                    "conc-list",
                    "concurrencies must be positive",
                    "correct the list",
                );
                return None;
            }
            ConcList::Values(values)
        }
    };
    let mut bound = |field: &str| match map.get(field) {
        Some(node) if !node.is_null() => reader.strict.expect_int(node, field).map(Some),
        _ => Some(None),
    };
    let (start, end) = (bound("conc-start"), bound("conc-end"));
    let range = start?.zip(end?);
    let has_list = matches!(&list, ConcList::Values(values) if !values.is_empty());
    let problem = match range {
        Some(_) if has_list => Some(("a list and a range of concurrencies", "keep one of the two")),
        None if !has_list => Some(("no concurrency", "add `conc-list`, or `conc-start` and `conc-end`")),
        Some((start, end)) if start <= 0 || end <= 0 => Some(("concurrencies must be positive", "correct the range")),
        Some((start, end)) if start > end => Some(("`conc-start` is above `conc-end`", "swap the two")),
        _ => None,
    };
    if let Some((message, remedy)) = problem {
        reader.strict.problem(at, "", message, remedy);
        return None;
    }
    Some((list, range))
}

type Offloading = (Option<Arc<str>>, Option<Arc<Component>>);

fn offloading(reader: &mut Reader<'_>, map: &Map, at: Span, multi_node: bool) -> Option<Offloading> {
    let rules = &reader.rules.kv_offloading;
    let kind = match map.get("kv-offloading") {
        Some(node) => {
            let text = reader.strict.expect_str(node, "kv-offloading")?;
            if text != rules.none && text != rules.memory {
                reader.strict.problem(
                    node.span,
                    "kv-offloading",
                    format!("`{text}` is not a value of `kv-offloading`"),
                    format!("use `{}` or `{}`", rules.none, rules.memory),
                );
                return None;
            }
            Some(reader.words.get(text))
        }
        None if multi_node => None,
        None => {
            reader.strict.required(map, at, "", "kv-offloading")?;
            None
        }
    };
    let backend = match map.get("kv-offload-backend") {
        Some(node) if !node.is_null() => Some(reader.component(node, "kv-offload-backend", false)?),
        _ => None,
    };
    let offloads = kind.as_deref().is_some_and(|kind| kind != rules.none);
    if offloads != backend.is_some() {
        let (message, remedy) = if offloads {
            ("offloading needs a backend", "add `kv-offload-backend`")
        } else {
            (
                "a backend without offloading",
                "remove `kv-offload-backend`, or set `kv-offloading`",
            )
        };
        reader.strict.problem(at, "kv-offload-backend", message, remedy);
        return None;
    }
    Some((kind, backend))
}
