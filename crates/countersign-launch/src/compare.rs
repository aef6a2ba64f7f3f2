//! Compares a launch with what a recipe documents, argument by argument (domain guide 16, check on recipes).
//!
//! Only arguments that the rules call major count. The documented launch that fits best is chosen first: same engine,
//! then model, hardware, role, and then as many equal arguments as possible.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::launch::Launch;
use crate::upstream::{Documented, leaves_sizes};
use crate::value::{Fact, Source};

/// Which arguments are major, and which values mean the same. A parameter of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MajorRules {
    /// Names: a property (`model`, `hardware`, `tp`, `pp`, `dp`, `ep`, `dcp`, `dp-attention`, `quantisation`,
    /// `kv-cache-dtype`, `attention-backend`, `moe-backend`, `spec-method`, `spec-length`, `draft-model`), a normalised
    /// flag, or an environment variable after `$`.
    pub arguments: Vec<String>,
    /// Groups of values that mean the same for one argument: the argument, then its values in lower case.
    #[serde(default)]
    pub equal: Vec<(String, Vec<String>)>,
}

/// What is being compared.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    /// The derived launch.
    pub launch: &'a Launch,
    /// Names of its model besides the launch's own, such as the one of the configuration.
    pub models: &'a [String],
    /// Identifier of its hardware.
    pub hardware: Option<&'a str>,
}

/// How an argument compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Documented with this value, or a default that the documented launch also has.
    Matching,
    /// Ours is set; the best documented launch does not say it.
    Missing,
    /// As [`Class::Missing`], but another documented launch of the same engine and model says it with our value, such
    /// as one for other hardware. Whether that suffices is the policy's to say.
    Elsewhere,
    /// Both say it, with different values.
    Contradicting,
    /// The documented launch says it, ours leaves the engine's default.
    Informational,
    /// Ours depends on an unknown.
    Undecided,
}

/// One argument compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// The argument.
    pub argument: String,
    /// Our value, for people.
    pub ours: String,
    /// Where ours is said.
    pub ours_at: Option<Source>,
    /// The value of the best documented launch, then other values documented for the same engine and model.
    pub documented: Vec<String>,
    /// How they compare.
    pub class: Class,
    /// For [`Class::Elsewhere`]: the hardware of the documented launches that say it with our value, sorted; an empty
    /// text stands for one that names no hardware.
    pub elsewhere: Vec<String>,
    /// Where the best documented launch says it, or stands.
    pub source: Option<Source>,
}

/// The result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Index of the documented launch that fits best.
    pub best: Option<usize>,
    /// How many documented launches have our engine.
    pub same_engine: usize,
    /// How many of these have our model.
    pub same_model: usize,
    /// Every major argument.
    pub differences: Vec<Difference>,
}

impl Comparison {
    /// The arguments of one class.
    pub fn of(&self, class: Class) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(move |d| d.class == class)
    }

    /// Whether every major argument is documented.
    pub fn is_documented(&self) -> bool {
        self.best.is_some()
            && self
                .differences
                .iter()
                .all(|d| matches!(d.class, Class::Matching | Class::Informational))
    }
}

/// A value as said by one side.
#[derive(Clone, Debug, PartialEq)]
struct Said {
    fact: Fact<String>,
    at: Option<Source>,
}

/// Documented launches, with what each says of every major argument looked up once for all comparisons.
pub struct Shelf<'d> {
    documented: &'d [Documented],
    rules: &'d MajorRules,
    /// By launch, then by argument.
    said: Vec<Vec<Said>>,
    /// The names of each launch's model.
    names: Vec<Vec<String>>,
}

/// Compares one launch with the documented ones.
pub fn compare(subject: &Subject<'_>, documented: &[Documented], rules: &MajorRules) -> Comparison {
    Shelf::new(documented, rules).compare(subject)
}

impl<'d> Shelf<'d> {
    /// Over documented launches.
    pub fn new(documented: &'d [Documented], rules: &'d MajorRules) -> Self {
        let of = |doc: &Documented| {
            rules
                .arguments
                .iter()
                .map(|argument| their_said(doc, argument))
                .collect()
        };
        Shelf {
            documented,
            rules,
            said: documented.iter().map(of).collect(),
            names: documented.iter().map(|doc| model_names(&doc.launch)).collect(),
        }
    }

    /// Compares one launch.
    pub fn compare(&self, subject: &Subject<'_>) -> Comparison {
        let candidates: Vec<usize> = (0..self.documented.len())
            .filter(|&i| self.documented[i].launch.engine == subject.launch.engine)
            .collect();
        let arguments = &self.rules.arguments;
        let ours: Vec<Said> = arguments.iter().map(|a| ours_said(subject, a)).collect();
        let mut own_names = model_names(subject.launch);
        own_names.extend(subject.models.iter().cloned());
        let same_model: Vec<usize> = candidates
            .iter()
            .copied()
            .filter(|&i| self.is_model(&own_names, i))
            .collect();
        let pool = if same_model.is_empty() {
            &candidates
        } else {
            &same_model
        };
        // Of equally good ones the first in the text wins.
        let best = pool
            .iter()
            .copied()
            .max_by_key(|&i| (self.score(subject, &ours, i), std::cmp::Reverse(i)));
        let against = Against {
            subject,
            names: &own_names,
            best,
            pool,
        };
        let differences = ours
            .iter()
            .enumerate()
            .map(|(index, said)| self.difference(&against, index, said))
            .collect();
        Comparison {
            best,
            same_engine: candidates.len(),
            same_model: same_model.len(),
            differences,
        }
    }

    /// Whether a documented launch serves our model, under any of its names.
    fn is_model(&self, names: &[String], i: usize) -> bool {
        names
            .iter()
            .any(|a| self.names[i].iter().any(|b| a.eq_ignore_ascii_case(b)))
    }

    fn score(&self, subject: &Subject<'_>, ours: &[Said], i: usize) -> i64 {
        let doc = &self.documented[i];
        let mut score = 0;
        score += match subject.hardware {
            Some(hw) if doc.hardware.iter().any(|h| h.eq_ignore_ascii_case(hw)) => 1_000,
            Some(_) if !doc.hardware.is_empty() => -1_000,
            _ => 0,
        };
        if doc.launch.role == subject.launch.role {
            score += 200;
        }
        for (index, said) in ours.iter().enumerate() {
            score += match self.class(i, index, said) {
                Class::Matching => 10,
                Class::Contradicting => -20,
                Class::Missing | Class::Elsewhere => -10,
                Class::Informational => -3,
                Class::Undecided => 0,
            };
        }
        score
    }

    /// How our value of an argument compares with what one documented launch says.
    fn class(&self, i: usize, index: usize, said: &Said) -> Class {
        let argument = &self.rules.arguments[index];
        against(&self.documented[i], argument, said, &self.said[i][index], self.rules)
    }

    fn difference(&self, with: &Against<'_>, index: usize, said: &Said) -> Difference {
        let argument = self.rules.arguments[index].as_str();
        let subject = with.subject;
        let theirs = with.best.map(|i| &self.said[i][index]);
        let class = match (argument, with.best) {
            (_, None) if said.fact.is_symbolic() => Class::Undecided,
            (_, None) => Class::Missing,
            ("model", Some(i)) => {
                if self.is_model(with.names, i) {
                    Class::Matching
                } else if said.fact.is_symbolic() && subject.models.is_empty() {
                    Class::Undecided
                } else {
                    Class::Missing
                }
            }
            ("hardware", Some(i)) => match (subject.hardware, &self.documented[i].hardware) {
                (None, _) => Class::Undecided,
                (Some(hw), named) if named.iter().any(|h| h.eq_ignore_ascii_case(hw)) => Class::Matching,
                (Some(_), named) if named.is_empty() => Class::Missing,
                (Some(_), _) => Class::Contradicting,
            },
            (_, Some(i)) => self.class(i, index, said),
        };
        let (elsewhere, elsewhere_at) = match said.fact.value() {
            Some(ours) if class == Class::Missing && argument != "model" && argument != "hardware" => {
                self.said_elsewhere(with, index, ours)
            }
            _ => (Vec::new(), None),
        };
        let class = if elsewhere.is_empty() { class } else { Class::Elsewhere };
        let mut values: Vec<String> = Vec::new();
        let mut add = |fact: &Fact<String>| {
            if let Fact::Known(value) | Fact::Default(value) = fact
                && values.len() < 12
                && !values.contains(value)
            {
                values.push(value.clone());
            }
        };
        if let Some(theirs) = theirs {
            add(&theirs.fact);
        }
        for &i in with.pool {
            if let said @ Fact::Known(_) = &self.said[i][index].fact {
                add(said);
            }
        }
        Difference {
            argument: argument.to_owned(),
            ours: if argument == "model" && !said.fact.is_known() && !subject.models.is_empty() {
                subject.models.join(", ")
            } else {
                said.fact.to_string()
            },
            ours_at: said.at.clone(),
            documented: values,
            class,
            elsewhere,
            source: elsewhere_at
                .or_else(|| theirs.and_then(|t| t.at.clone()))
                .or_else(|| with.best.map(|i| self.documented[i].launch.source.clone())),
        }
    }

    /// The hardware of the documented launches that say an argument with our value, and where the first of them does.
    fn said_elsewhere(&self, with: &Against<'_>, index: usize, ours: &str) -> (Vec<String>, Option<Source>) {
        let argument = &self.rules.arguments[index];
        let mut hardware: BTreeSet<String> = BTreeSet::new();
        let mut at = None;
        for &i in with.pool.iter().filter(|&&i| self.is_model(with.names, i)) {
            let theirs = &self.said[i][index];
            if !matches!(&theirs.fact, Fact::Known(value) if same_value(argument, ours, value, self.rules)) {
                continue;
            }
            let doc = &self.documented[i];
            if doc.hardware.is_empty() {
                hardware.insert(String::new());
            }
            hardware.extend(doc.hardware.iter().cloned());
            at = at.or_else(|| theirs.at.clone());
        }
        (hardware.into_iter().collect(), at)
    }
}

/// One comparison.
struct Against<'c> {
    subject: &'c Subject<'c>,
    /// The names of our model.
    names: &'c [String],
    best: Option<usize>,
    pool: &'c [usize],
}

/// How our value compares with what one documented launch says.
fn against(doc: &Documented, argument: &str, said: &Said, theirs: &Said, rules: &MajorRules) -> Class {
    if let (true, Fact::Known(ours) | Fact::Default(ours)) = (leaves_sizes(&doc.labels), &said.fact) {
        let size = |text: &str| text.parse::<u32>().ok();
        match (argument, size(ours), theirs.fact.value().and_then(|text| size(text))) {
            // However many GPUs the deployment has.
            ("tp", Some(_), _) => return Class::Matching,
            // Whether the dimension is used at all is the recipe's to say; its size is not.
            ("dp" | "ep", Some(a), Some(b)) if (a > 1) == (b > 1) => return Class::Matching,
            _ => {}
        }
    }
    // A path on a host names a draft by its last part.
    if argument == "draft-model"
        && let (Fact::Known(ours), Fact::Known(theirs)) = (&said.fact, &theirs.fact)
        && ours.starts_with('/')
        && last_part(ours).eq_ignore_ascii_case(last_part(theirs))
    {
        return Class::Matching;
    }
    classify(argument, said, theirs, rules)
}

fn last_part(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

fn classify(argument: &str, ours: &Said, theirs: &Said, rules: &MajorRules) -> Class {
    let equal = |a: &str, b: &str| same_value(argument, a, b, rules);
    match (&ours.fact, &theirs.fact) {
        (Fact::Symbolic(_), _) => Class::Undecided,
        (Fact::Known(a) | Fact::Default(a), Fact::Known(b) | Fact::Default(b)) if equal(a, b) => Class::Matching,
        (Fact::Known(_), Fact::Known(_)) => Class::Contradicting,
        // Sizes have true defaults: leaving them out is a statement.
        (Fact::Known(_), Fact::Default(b)) if b.parse::<u32>().is_ok() || b == "false" => Class::Contradicting,
        (Fact::Default(a), Fact::Known(_)) if a.parse::<u32>().is_ok() => Class::Contradicting,
        (Fact::Known(_), _) => Class::Missing,
        (Fact::Default(_) | Fact::Absent, Fact::Known(_) | Fact::Symbolic(_)) => Class::Informational,
        (Fact::Default(_) | Fact::Absent, _) => Class::Matching,
    }
}

fn same_value(argument: &str, a: &str, b: &str, rules: &MajorRules) -> bool {
    if a == b {
        return true;
    }
    let (a, b) = (a.trim().to_lowercase(), b.trim().to_lowercase());
    if a == b {
        return true;
    }
    if let (Ok(x), Ok(y)) = (a.parse::<f64>(), b.parse::<f64>()) {
        return x == y;
    }
    rules
        .equal
        .iter()
        .any(|(name, group)| name == argument && group.contains(&a) && group.contains(&b))
}

fn ours_said(subject: &Subject<'_>, argument: &str) -> Said {
    match argument {
        "hardware" => Said {
            fact: subject.hardware.map_or(Fact::Absent, |h| Fact::Known(h.to_owned())),
            at: None,
        },
        _ => said(subject.launch, argument),
    }
}

fn their_said(doc: &Documented, argument: &str) -> Said {
    match argument {
        "hardware" if doc.hardware.is_empty() => Said {
            fact: Fact::Absent,
            at: None,
        },
        "hardware" => Said {
            fact: Fact::Known(doc.hardware.join(", ")),
            at: Some(doc.launch.source.clone()),
        },
        _ => said(&doc.launch, argument),
    }
}

fn said(launch: &Launch, argument: &str) -> Said {
    let number = |f: &Fact<u32>| f.clone().map(|n| n.to_string());
    let p = &launch.parallel;
    let (fact, flags): (Fact<String>, &[&str]) = match argument {
        "model" => (launch.model.clone(), &["model", "model-path"]),
        "tp" => (number(&p.tp), &["tensor-parallel-size"]),
        "pp" => (number(&p.pp), &["pipeline-parallel-size"]),
        "dp" => (number(&p.dp), &["data-parallel-size"]),
        "ep" => (
            number(&p.ep),
            &[
                "expert-parallel-size",
                "enable-expert-parallel",
                "moe-expert-parallel-size",
            ],
        ),
        "dcp" => (number(&p.dcp), &["decode-context-parallel-size"]),
        "dp-attention" => (
            p.dp_attention.clone().map(|b| b.to_string()),
            &["enable-dp-attention", "enable-attention-dp", "data-parallel-size"],
        ),
        "quantisation" => (
            launch.quantisation.clone(),
            &["quantization", "quant-config.quant_algo"],
        ),
        "kv-cache-dtype" => (
            launch.kv_cache_dtype.clone(),
            &["kv-cache-dtype", "kv-cache-config.dtype"],
        ),
        "attention-backend" => (
            launch.attention_backend.clone(),
            &["attention-backend", "attn-backend", "attention-config.backend"],
        ),
        "moe-backend" => (
            launch.moe_backend.clone(),
            &["moe-runner-backend", "moe-backend", "moe-config.backend"],
        ),
        "draft-model" => (
            launch.draft_model.clone(),
            &["speculative-config.model", "speculative-draft-model-path"],
        ),
        "spec-method" => (
            launch
                .spec
                .as_ref()
                .map_or(Fact::Default("none".into()), |s| s.method.clone()),
            &[
                "speculative-algorithm",
                "speculative-config.method",
                "speculative-config.decoding_type",
                "method",
            ],
        ),
        "spec-length" => (
            launch
                .spec
                .as_ref()
                .map_or(Fact::Default("none".into()), |s| number(&s.draft_tokens)),
            &[
                "speculative-num-steps",
                "speculative-config.num_speculative_tokens",
                "speculative-config.max_draft_len",
                "num-speculative-tokens",
            ],
        ),
        other => {
            let value = match other.strip_prefix('$') {
                Some(variable) => launch.environment.get(variable),
                None => launch.flags.get(other),
            };
            let fact = match value {
                Some(v) => v
                    .value
                    .as_known()
                    .map_or_else(|| Fact::Symbolic(v.value.unknowns()), |t| Fact::Known(t.to_owned())),
                None if launch.opaque.is_empty() => Fact::Absent,
                None => Fact::Symbolic(launch.opaque.iter().flat_map(|w| w.text.unknowns()).collect()),
            };
            return Said {
                fact,
                at: value.map(|v| v.source.clone()),
            };
        }
    };
    let at = flags.iter().find_map(|f| launch.flags.get(f)).map(|v| v.source.clone());
    Said { fact, at }
}

/// The names that a launch gives its model.
fn model_names(launch: &Launch) -> Vec<String> {
    let mut out: Vec<String> = launch.model.value().into_iter().cloned().collect();
    out.extend(
        launch
            .served_names
            .iter()
            .filter_map(|t| t.as_known().map(str::to_owned)),
    );
    for key in ["identity.model.repo", "model.path"] {
        out.extend(
            launch
                .extra
                .get(key)
                .and_then(|v| v.value.as_known().map(str::to_owned)),
        );
    }
    // A path on a host says nothing about the checkpoint, and a bare name is not one.
    out.retain(|name| !name.starts_with('/') && !name.is_empty());
    out
}
