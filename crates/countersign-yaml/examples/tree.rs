//! Prints how each text is read, one JSON line per text, for comparison with PyYAML (`compare/pyyaml.py`). Input: JSON
//! strings, one per line, on standard input.
#![allow(clippy::print_stdout)]

use std::io::{BufRead as _, Write as _};

use countersign_yaml::{Limits, Node, OpaqueKind, Value, parse};
use serde_json::{Value as Json, json};

fn tree(node: &Node) -> Json {
    match &node.value {
        Value::Null => json!(["null"]),
        Value::Bool(flag) => json!(["bool", flag]),
        Value::Int(number) => json!(["int", number.to_string()]),
        Value::Float(number) => json!(["float", format!("{number:?}")]),
        Value::Str(text) => json!(["str", text]),
        Value::Opaque(OpaqueKind::BigInt, _) => json!(["bigint"]),
        Value::Opaque(OpaqueKind::Timestamp, _) => json!(["date"]),
        Value::Seq(items) => json!(["seq", items.iter().map(tree).collect::<Vec<_>>()]),
        Value::Map(map) => json!([
            "map",
            map.iter().map(|(k, v)| json!([tree(k), tree(v)])).collect::<Vec<_>>()
        ]),
    }
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        let text: String = serde_json::from_str(&line?)?;
        let answer = match parse(
            &text,
            &Limits {
                max_nodes: 2_000_000,
                ..Limits::default()
            },
        ) {
            Ok(document) => json!({"tree": tree(&document.root), "duplicates": document.duplicate_keys.len()}),
            Err(error) => json!({"error": error.to_string()}),
        };
        writeln!(out, "{answer}")?;
    }
    out.flush()
}
