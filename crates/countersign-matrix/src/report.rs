//! Rows, selections and differences as text for people, JSON in the generator's own field names, and CSV.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Map as JsonMap, Value as Json, json};

use crate::diff::MatrixDiff;
use crate::entry::Problem;
use crate::jobs::{canary, job_name, lane};
use crate::row::Row;
use crate::rules::{MatrixRules, NodeKind, Purpose, ScenarioType};
use crate::select::Selection;

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Lines for people.
    Text,
    /// JSON; rows have the generator's own field names.
    Json,
    /// One row a line, with a header.
    Csv,
}

/// The heading for rows that no lane takes.
const NO_LANE: &str = "(no lane)";

/// Rows.
#[must_use]
pub fn rows_report(rows: &[Row], rules: &MatrixRules, format: Format) -> String {
    match format {
        Format::Text => rows_text(rows, rules),
        Format::Json => pretty(&Json::Array(rows.iter().map(Row::to_json).collect())),
        Format::Csv => csv(rows.iter().map(|row| (None, row)), rules),
    }
}

/// What a changelog selects, lane by lane.
#[must_use]
pub fn selection_report(selection: &Selection, rules: &MatrixRules, format: Format) -> String {
    match format {
        Format::Text => {
            let mut out = String::new();
            for entry in &selection.entries {
                let _ = writeln!(out, "item on line {}: {}", entry.line, entry.key);
            }
            if selection.append_only {
                out.push_str("only new points of existing curves are run, without evaluations\n");
            }
            out.push('\n');
            if let (Some(rule), Some(row)) = (
                &rules.canary,
                canary(&selection.throughput, rules).and_then(|index| selection.throughput.get(index)),
            ) {
                let _ = writeln!(out, "{} (where it is enabled): {}\n", rule.lane, job_name(row, rules));
            }
            let rows: Vec<Row> = selection.rows().cloned().collect();
            out.push_str(&rows_text(&rows, rules));
            out
        }
        Format::Json => pretty(&buckets_json(selection, rules)),
        Format::Csv => csv(selection.rows().map(|row| (None, row)), rules),
    }
}

/// A selection in the buckets of the repository's own tool.
#[must_use]
pub fn buckets_json(selection: &Selection, rules: &MatrixRules) -> Json {
    let mut throughput: BTreeMap<NodeKind, JsonMap<String, Json>> = BTreeMap::new();
    for row in &selection.throughput {
        let name = match row.lengths() {
            None => "agentic".to_owned(),
            Some((isl, osl)) => rules
                .sequence_name(isl, osl)
                .map_or_else(|| format!("{isl}_{osl}"), str::to_owned),
        };
        let bucket = throughput
            .entry(row.nodes())
            .or_default()
            .entry(name)
            .or_insert_with(|| json!([]));
        if let Json::Array(rows) = bucket {
            rows.push(row.to_json());
        }
    }
    let evals = |nodes: NodeKind, scenario: ScenarioType| {
        let fits = |row: &&Row| row.nodes() == nodes && row.scenario() == scenario;
        Json::Array(selection.evals.iter().filter(fits).map(Row::to_json).collect())
    };
    let mut bucket = |nodes: NodeKind| Json::Object(throughput.remove(&nodes).unwrap_or_default());
    json!({
        "single_node": bucket(NodeKind::Single),
        "multi_node": bucket(NodeKind::Multi),
        "evals": evals(NodeKind::Single, ScenarioType::Fixed),
        "agentic_evals": evals(NodeKind::Single, ScenarioType::Agentic),
        "multinode_evals": evals(NodeKind::Multi, ScenarioType::Fixed),
        "multinode_agentic_evals": evals(NodeKind::Multi, ScenarioType::Agentic),
    })
}

/// A difference.
#[must_use]
pub fn diff_report(diff: &MatrixDiff, rules: &MatrixRules, format: Format) -> String {
    match format {
        Format::Text => diff_text(diff, rules),
        Format::Json => {
            let changed: Vec<Json> = diff
                .changed
                .iter()
                .map(|changed| {
                    json!({
                        "entry": &*changed.after.head.key,
                        "fields": changed.fields,
                        "before": changed.before.to_json(),
                        "after": changed.after.to_json(),
                    })
                })
                .collect();
            let rows = |rows: &[Row]| -> Vec<Json> {
                rows.iter()
                    .map(|row| json!({"entry": &*row.head.key, "row": row.to_json()}))
                    .collect()
            };
            pretty(&json!({"added": rows(&diff.added), "removed": rows(&diff.removed), "changed": changed}))
        }
        Format::Csv => {
            let rows = diff
                .added
                .iter()
                .map(|row| (Some("added"), row))
                .chain(diff.removed.iter().map(|row| (Some("removed"), row)))
                .chain(diff.changed.iter().flat_map(|changed| {
                    [
                        (Some("changed from"), &changed.before),
                        (Some("changed to"), &changed.after),
                    ]
                }));
            csv(rows, rules)
        }
    }
}

/// Problems, one a line.
#[must_use]
pub fn problems_report(problems: &[Problem], format: Format) -> String {
    match format {
        Format::Text => problems.iter().map(|problem| format!("{problem}\n")).collect(),
        Format::Json => pretty(&json!({ "problems": problems.iter().map(|p| json!(p)).collect::<Vec<_>>() })),
        Format::Csv => {
            let mut out = String::from("file,line,column,entry,path,message,remedy\n");
            for problem in problems {
                let entry = problem.entry.as_deref().unwrap_or_default();
                let (line, column) = (problem.line.to_string(), problem.column.to_string());
                let cells = [
                    &*problem.file,
                    &line,
                    &column,
                    entry,
                    &problem.path,
                    &problem.message,
                    &problem.remedy,
                ];
                csv_line(&mut out, cells.into_iter());
            }
            out
        }
    }
}

fn pretty(json: &Json) -> String {
    let mut text = format!("{json:#}");
    text.push('\n');
    text
}

fn rows_text(rows: &[Row], rules: &MatrixRules) -> String {
    let mut lanes: Vec<(String, Vec<&Row>)> = rules.lanes.iter().map(|lane| (lane.name.clone(), Vec::new())).collect();
    lanes.push((NO_LANE.to_owned(), Vec::new()));
    for row in rows {
        let name = lane(row, rules).map_or(NO_LANE, |lane| lane.name.as_str());
        if let Some((_, rows)) = lanes.iter_mut().find(|(lane, _)| lane == name) {
            rows.push(row);
        }
    }
    let mut out = format!("{} jobs\n", rows.len());
    for (name, rows) in lanes.iter().filter(|(_, rows)| !rows.is_empty()) {
        let _ = writeln!(out, "\n{name}: {}", rows.len());
        for row in rows {
            let _ = writeln!(out, "  {}  [{}]", job_name(row, rules), row.head.key);
        }
    }
    out
}

fn diff_text(diff: &MatrixDiff, rules: &MatrixRules) -> String {
    if diff.is_empty() {
        return "no difference\n".to_owned();
    }
    let mut out = format!(
        "{} added, {} removed, {} changed, in {} entries\n",
        diff.added.len(),
        diff.removed.len(),
        diff.changed.len(),
        diff.entries().len()
    );
    for (mark, rows) in [("+", &diff.added), ("-", &diff.removed)] {
        for row in rows {
            let _ = writeln!(out, "{mark} {}  [{}]", job_name(row, rules), row.head.key);
        }
    }
    for changed in &diff.changed {
        let _ = writeln!(
            out,
            "~ {}  [{}]",
            job_name(&changed.after, rules),
            changed.after.head.key
        );
        for field in &changed.fields {
            let show = |value: &Option<Json>| value.as_ref().map_or("(none)".to_owned(), Json::to_string);
            let _ = writeln!(
                out,
                "    {}: {} -> {}",
                field.field,
                show(&field.before),
                show(&field.after)
            );
        }
    }
    out
}

/// The columns of a row that are the same in every table; what else a row has follows in its own columns.
fn csv<'r>(rows: impl Iterator<Item = (Option<&'static str>, &'r Row)>, rules: &MatrixRules) -> String {
    let mut columns: Vec<String> = Vec::new();
    let mut table: Vec<BTreeMap<String, String>> = Vec::new();
    let mut put = |cells: &mut BTreeMap<String, String>, column: String, value: String| {
        if !columns.contains(&column) {
            columns.push(column.clone());
        }
        cells.insert(column, value);
    };
    for (change, row) in rows {
        let mut cells = BTreeMap::new();
        if let Some(change) = change {
            put(&mut cells, "change".to_owned(), change.to_owned());
        }
        put(&mut cells, "entry".to_owned(), row.head.key.to_string());
        let lane = lane(row, rules).map_or(NO_LANE, |lane| lane.name.as_str());
        put(&mut cells, "lane".to_owned(), lane.to_owned());
        put(&mut cells, "job".to_owned(), job_name(row, rules));
        let purpose = if row.purpose() == Purpose::Eval {
            "eval"
        } else {
            "throughput"
        };
        put(&mut cells, "purpose".to_owned(), purpose.to_owned());
        if let Json::Object(fields) = row.to_json() {
            for (name, value) in fields {
                match value {
                    Json::Object(inner) => {
                        for (key, value) in inner {
                            put(&mut cells, format!("{name}.{key}"), cell(&value));
                        }
                    }
                    _ => put(&mut cells, name, cell(&value)),
                }
            }
        }
        table.push(cells);
    }
    let mut out = String::new();
    csv_line(&mut out, columns.iter().map(String::as_str));
    for cells in &table {
        csv_line(
            &mut out,
            columns
                .iter()
                .map(|column| cells.get(column).map_or("", String::as_str)),
        );
    }
    out
}

fn cell(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        Json::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

fn csv_line<'c>(out: &mut String, cells: impl Iterator<Item = &'c str>) {
    for (index, cell) in cells.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if cell.contains([',', '"', '\n', '\r']) {
            let _ = write!(out, "\"{}\"", cell.replace('"', "\"\""));
        } else {
            out.push_str(cell);
        }
    }
    out.push('\n');
}
