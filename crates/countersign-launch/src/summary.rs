//! How much of many points is known: counts of the named properties, and what the rest depends on.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::launch::Launch;
use crate::point::PointLaunches;
use crate::value::Fact;

/// The properties that are counted, in the order of the table.
const PROPERTIES: [&str; 9] = [
    "engine",
    "model",
    "TP",
    "EP",
    "DP",
    "quantisation",
    "KV dtype",
    "spec method",
    "spec length",
];

/// Counts over points, by kind of point.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    kinds: BTreeMap<String, Kind>,
    /// Points of which something is not known, by entry and reason.
    reasons: BTreeMap<String, usize>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
struct Kind {
    points: usize,
    all: usize,
    servers: usize,
    /// Servers of which the property is known, by its place in [`PROPERTIES`].
    known: [usize; PROPERTIES.len()],
    /// What the unknown ones depend on.
    depends: BTreeMap<String, usize>,
}

impl Summary {
    /// Counts a point. `kind` names the group of points, `entry` the one that it belongs to.
    pub fn add(&mut self, kind: &str, entry: &str, point: &PointLaunches) {
        let slot = self.kinds.entry(kind.to_owned()).or_default();
        slot.points += 1;
        let mut all = point.servers().next().is_some();
        let mut why: Vec<String> = point.missing.iter().map(ToString::to_string).collect();
        for launch in point.servers() {
            slot.servers += 1;
            for (index, missing) in unknown(launch).into_iter().enumerate() {
                match missing {
                    None => slot.known[index] += 1,
                    Some(names) => {
                        all = false;
                        for name in names {
                            let text = format!("{} depends on {name}", PROPERTIES[index]);
                            why.push(text.clone());
                            *slot.depends.entry(text).or_default() += 1;
                        }
                    }
                }
            }
        }
        if all {
            slot.all += 1;
        } else {
            why.sort();
            why.dedup();
            *self.reasons.entry(format!("{entry}: {}", why.join("; "))).or_default() += 1;
        }
    }
}

/// For each of [`PROPERTIES`], what it depends on if it is not known.
fn unknown(launch: &Launch) -> [Option<Vec<String>>; PROPERTIES.len()] {
    fn why<T>(fact: &Fact<T>) -> Option<Vec<String>> {
        match fact {
            Fact::Known(_) | Fact::Default(_) => None,
            Fact::Symbolic(names) => Some(names.clone()),
            Fact::Absent => Some(vec!["nothing that is said".into()]),
        }
    }
    let p = &launch.parallel;
    let (method, length) = match &launch.spec {
        Some(spec) => (why(&spec.method), why(&spec.draft_tokens)),
        None if launch.opaque.is_empty() => (None, None),
        None => {
            let names: Vec<String> = launch.opaque.iter().flat_map(|w| w.text.unknowns()).collect();
            (Some(names.clone()), Some(names))
        }
    };
    [
        None,
        why(&launch.model),
        why(&p.tp),
        why(&p.ep),
        why(&p.dp),
        why(&launch.quantisation),
        why(&launch.kv_cache_dtype),
        method,
        length,
    ]
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |n: usize, of: usize| 100.0 * n as f64 / of.max(1) as f64;
        for (name, kind) in &self.kinds {
            writeln!(
                f,
                "{name}: {} points, {} with everything known ({:.2} %); {} servers",
                kind.points,
                kind.all,
                percent(kind.all, kind.points),
                kind.servers
            )?;
            for (property, known) in PROPERTIES.iter().zip(kind.known) {
                writeln!(f, "  {property:13} {known:6}  {:6.2} %", percent(known, kind.servers))?;
            }
            for (text, n) in &kind.depends {
                writeln!(f, "  symbolic: {text} ({n})")?;
            }
        }
        for (text, n) in &self.reasons {
            writeln!(f, "not all known: {text} ({n} points)")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, Role, Source};

    fn server(tp: Fact<u32>) -> Launch {
        let mut launch = Launch::new(Role::Aggregated, Engine::Vllm, "vllm serve", Source::new("a.sh", 3));
        launch.model = Fact::Known("m".into());
        launch.quantisation = Fact::Default("checkpoint".into());
        launch.kv_cache_dtype = Fact::Default("auto".into());
        launch.parallel.tp = tp;
        launch.parallel.ep = Fact::Known(1);
        launch.parallel.dp = Fact::Known(1);
        launch
    }

    #[test]
    fn a_point_counts_as_known_only_if_all_of_it_is() {
        let mut summary = Summary::default();
        for tp in [Fact::Known(8), Fact::Symbolic(vec!["$NODES".into()])] {
            let point = PointLaunches {
                launches: vec![server(tp)],
                ..PointLaunches::default()
            };
            summary.add("single", "e", &point);
        }
        summary.add("single", "gone", &PointLaunches::default());
        let text = summary.to_string();
        assert!(
            text.starts_with("single: 3 points, 1 with everything known (33.33 %); 2 servers\n"),
            "{text}"
        );
        assert!(text.contains("  TP                 1   50.00 %\n"), "{text}");
        assert!(text.contains("  model              2  100.00 %\n"), "{text}");
        assert!(text.contains("symbolic: TP depends on $NODES (1)\n"), "{text}");
        assert!(
            text.contains("not all known: e: TP depends on $NODES (1 points)\n"),
            "{text}"
        );
        assert!(text.contains("not all known: gone: "), "{text}");
    }
}
