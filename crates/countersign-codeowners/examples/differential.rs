//! Answers questions of the differential test (`differential/run.sh`).
//!
//! Reads one JSON object a line from standard input, writes one JSON value a line:
//! `{"pattern": P, "path": X}` is answered by `true`, `false` or `"refused"`;
//! `{"file": TEXT, "path": X}` by `{"line": N, "owners": [...]}`, line 0 when unmatched.

use std::io::{BufRead, BufWriter, Write};

use countersign_codeowners::{CodeOwners, Pattern};
use serde_json::{Value, json};

fn answer(question: &Value) -> Value {
    let text = |key: &str| question.get(key).and_then(Value::as_str).unwrap_or_default();
    let path = text("path");
    if question.get("file").is_none() {
        return Pattern::parse(text("pattern")).map_or(json!("refused"), |p| json!(p.matches(path)));
    }
    let file = CodeOwners::parse(text("file"));
    let found = file.owners_of(path);
    json!({ "line": found.rule().map_or(0, |r| r.line()), "owners": found.owners() })
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(std::io::stdout().lock());
    for line in std::io::stdin().lock().lines() {
        writeln!(out, "{}", answer(&serde_json::from_str(&line?)?))?;
    }
    Ok(out.flush()?)
}
