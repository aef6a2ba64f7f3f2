//! Launches as text and JSON, and what a change does to them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::launch::{Acceptance, Launch};
use crate::value::Source;

/// A launch for people: the named properties, then every flag and variable with its line.
pub fn text(launch: &Launch) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "{} {} ({}) at {}",
        launch.role, launch.engine, launch.program, launch.source
    );
    for condition in &launch.conditions {
        let _ = writeln!(out, "  only if {condition}");
    }
    let p = &launch.parallel;
    let _ = writeln!(out, "  model {}", launch.model);
    if let Some(image) = &launch.image {
        let _ = writeln!(out, "  image {image}");
    }
    let _ = writeln!(
        out,
        "  TP {} PP {} DP {} EP {} DCP {} DP-attention {}",
        p.tp, p.pp, p.dp, p.ep, p.dcp, p.dp_attention
    );
    let _ = writeln!(
        out,
        "  quantisation {} KV {} attention {} MoE {}",
        launch.quantisation, launch.kv_cache_dtype, launch.attention_backend, launch.moe_backend
    );
    match &launch.spec {
        None => {
            let _ = writeln!(out, "  no speculative decoding");
        }
        Some(s) => {
            let acceptance = match &s.acceptance {
                Acceptance::Real => "real acceptance".to_owned(),
                Acceptance::Unknown(why) => format!("acceptance unknown ({})", why.join(", ")),
                Acceptance::Synthetic { length, knob, source } => {
                    format!("synthetic acceptance {length} by {knob} at {source}")
                }
                Acceptance::Incomplete { knob, missing, source } => format!("{knob} at {source} without {missing}"),
            };
            let _ = writeln!(
                out,
                "  speculative {} draft {} K {} {acceptance}",
                s.method, s.draft_model, s.draft_tokens
            );
        }
    }
    if let Some(client) = &launch.client {
        let _ = writeln!(
            out,
            "  client {} chat template {:?} at {}",
            client.tool, client.chat_template, client.source
        );
    }
    for (name, values) in launch.flags.iter() {
        for value in values {
            let _ = writeln!(out, "    {name} = {}  [{}]", value.value, value.source);
        }
    }
    for (name, value) in &launch.environment {
        let _ = writeln!(out, "    ${name} = {}  [{}]", value.value, value.source);
    }
    for word in &launch.opaque {
        let _ = writeln!(out, "    unknown word {}  [{}]", word.text, word.source);
    }
    for (unknown, uses) in launch.unknowns() {
        let _ = writeln!(out, "  depends on {unknown}: {}", uses.join(", "));
    }
    for note in &launch.notes {
        let _ = writeln!(out, "  note: {note}");
    }
    out
}

/// A launch as one line of JSON.
///
/// # Errors
/// Never for launches made by this crate; a number that JSON cannot hold would be one.
pub fn json(launch: &Launch) -> Result<String, serde_json::Error> {
    serde_json::to_string(launch)
}

/// One statement that a change adds, removes or alters.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Role and engine of the launch.
    pub launch: String,
    /// The flag, the variable after `$`, or a property.
    pub what: String,
    /// Value at the base; `None` if it was not said.
    pub before: Option<String>,
    /// Value at the head; `None` if it is not said.
    pub after: Option<String>,
    /// Where the head says it, else where the base did.
    pub source: Option<Source>,
}

/// What changed between the launches of one point at base and head. Launches pair by role and engine, in order.
pub fn diff_launches(base: &[Launch], head: &[Launch]) -> Vec<Change> {
    let mut out = Vec::new();
    let keyed = |list: &[Launch]| -> BTreeMap<(String, usize), usize> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut map = BTreeMap::new();
        for (i, launch) in list.iter().enumerate() {
            let name = format!("{} {}", launch.role, launch.engine);
            let n = seen.entry(name.clone()).or_default();
            map.insert((name, *n), i);
            *n += 1;
        }
        map
    };
    let (b, h) = (keyed(base), keyed(head));
    for key in b.keys().chain(h.keys().filter(|k| !b.contains_key(*k))) {
        let (old, new) = (b.get(key).map(|i| &base[*i]), h.get(key).map(|i| &head[*i]));
        let name = if key.1 == 0 {
            key.0.clone()
        } else {
            format!("{} #{}", key.0, key.1 + 1)
        };
        match (old, new) {
            (Some(old), Some(new)) => pair(&name, old, new, &mut out),
            (old, new) => out.push(Change {
                launch: name,
                what: "launch".into(),
                before: old.map(|l| l.program.clone()),
                after: new.map(|l| l.program.clone()),
                source: new.or(old).map(|l| l.source.clone()),
            }),
        }
    }
    out
}

fn statements(launch: &Launch) -> BTreeMap<String, (String, Source)> {
    let mut out = BTreeMap::new();
    for (name, values) in launch.flags.iter() {
        if let Some(last) = values.last() {
            let all: Vec<String> = values.iter().map(|v| v.value.to_string()).collect();
            out.insert(name.to_owned(), (all.join(" "), last.source.clone()));
        }
    }
    for (name, value) in &launch.environment {
        out.insert(format!("${name}"), (value.value.to_string(), value.source.clone()));
    }
    for (i, word) in launch.opaque.iter().enumerate() {
        out.insert(
            format!("unknown word {}", i + 1),
            (word.text.to_string(), word.source.clone()),
        );
    }
    if let Some(image) = &launch.image {
        out.insert("image".into(), (image.clone(), launch.source.clone()));
    }
    if let Some(client) = &launch.client {
        out.insert(
            "client chat template".into(),
            (format!("{:?}", client.chat_template), client.source.clone()),
        );
    }
    for (name, value) in &launch.extra {
        out.insert(
            format!("recipe {name}"),
            (value.value.to_string(), value.source.clone()),
        );
    }
    if !launch.conditions.is_empty() {
        // A question that only moved to another line is the same question.
        let asked = |c: &String| c.rsplit_once(" [").map_or(c.clone(), |(text, _)| text.to_owned());
        let all: Vec<String> = launch.conditions.iter().map(asked).collect();
        out.insert("conditions".into(), (all.join(" and "), launch.source.clone()));
    }
    out.insert("program".into(), (launch.program.clone(), launch.source.clone()));
    out
}

fn pair(name: &str, old: &Launch, new: &Launch, out: &mut Vec<Change>) {
    let (before, after) = (statements(old), statements(new));
    for what in before.keys().chain(after.keys().filter(|k| !before.contains_key(*k))) {
        let (a, b) = (before.get(what), after.get(what));
        if a.map(|x| &x.0) != b.map(|x| &x.0) {
            out.push(Change {
                launch: name.to_owned(),
                what: what.clone(),
                before: a.map(|x| x.0.clone()),
                after: b.map(|x| x.0.clone()),
                source: b.or(a).map(|x| x.1.clone()),
            });
        }
    }
}
