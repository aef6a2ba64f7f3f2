//! Whether metrics reach a bar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Number;

/// What the repository's evaluations look like.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EvalRules {
    /// Field of the metadata with the model prefix.
    pub prefix_field: String,
    /// Metrics of raw results that count: their names begin with this, for example `exact_match,`.
    pub metric_prefix: String,
    /// Metrics of raw results that do not count although they begin so: their names contain this, for example `stderr`.
    pub metric_exclude: String,
    /// Tasks whose shape is known.
    pub tasks: BTreeMap<String, TaskRule>,
}

/// The shape of one task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TaskRule {
    /// Number of samples of a full run.
    #[serde(default)]
    pub full_samples: Option<u64>,
    /// Metrics that must be there, by their name in the aggregated rows.
    #[serde(default)]
    pub needs: Vec<String>,
}

/// The judgement of one row or one task.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "judged")]
pub enum Judged {
    /// Every metric reaches the bar; the lowest of them.
    Reached {
        /// Its name.
        metric: String,
        /// Its value.
        value: f64,
    },
    /// A metric is below the bar; the lowest of them.
    Below {
        /// Its name.
        metric: String,
        /// Its value.
        value: f64,
    },
    /// A value that no score can have.
    Invalid {
        /// Its name.
        metric: String,
        /// What is wrong with it.
        why: String,
    },
    /// A metric that the task must have is not there.
    Missing {
        /// Its name.
        metric: String,
    },
    /// There is nothing to judge.
    Nothing,
}

impl Judged {
    /// Whether the bar is reached.
    #[must_use]
    pub fn reached(&self) -> bool {
        matches!(self, Judged::Reached { .. })
    }
}

/// How many samples a result rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Samples {
    /// As many as a full run has, or more.
    Full(u64),
    /// Fewer: a limited (smoke) run.
    Partial {
        /// Samples of the result.
        have: u64,
        /// Samples of a full run.
        full: u64,
    },
    /// The result does not say, or the size of a full run is not known.
    Unknown(Option<u64>),
}

impl Samples {
    /// Compares a count with the task's full run.
    #[must_use]
    pub fn of(count: Option<u64>, rule: Option<&TaskRule>) -> Samples {
        match (count, rule.and_then(|r| r.full_samples)) {
            (Some(have), Some(full)) if have < full => Samples::Partial { have, full },
            (Some(have), Some(_)) => Samples::Full(have),
            (count, _) => Samples::Unknown(count),
        }
    }
}

/// Judges metrics against a bar: all of them must reach it, equality included (domain guide 5.2). An invalid value goes
/// before everything else, a missing one before a low one.
#[must_use]
pub fn judge(metrics: &[(String, Number)], needs: &[String], bar: f64) -> Judged {
    for (name, number) in metrics {
        let why = match number {
            Number::Finite(value) if (0.0..=1.0).contains(value) => continue,
            Number::Finite(value) => format!("{value} is not between 0 and 1"),
            Number::NotFinite(word) => format!("{word} is not a finite number"),
            Number::Other(kind) => format!("it is {kind}, not a number"),
        };
        return Judged::Invalid {
            metric: name.clone(),
            why,
        };
    }
    if let Some(missing) = needs.iter().find(|n| !metrics.iter().any(|(name, _)| name == *n)) {
        return Judged::Missing {
            metric: missing.clone(),
        };
    }
    if !bar.is_finite() {
        return Judged::Invalid {
            metric: "bar".into(),
            why: format!("the bar is {bar}"),
        };
    }
    let values = metrics
        .iter()
        .filter_map(|(name, number)| number.finite().map(|value| (name, value)));
    match values.min_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((metric, value)) if value >= bar => Judged::Reached {
            metric: metric.clone(),
            value,
        },
        Some((metric, value)) => Judged::Below {
            metric: metric.clone(),
            value,
        },
        None => Judged::Nothing,
    }
}
