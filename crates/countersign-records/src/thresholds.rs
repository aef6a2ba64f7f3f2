//! Accuracy bars: a default for each task, overrides for each model prefix, and a fallback (domain guide 5.1).

use countersign_yaml::{Limits, Map, Node, Strict, YamlError, parse};
use serde::Serialize;

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
const DEFAULT: &str = "default";
const MODELS: &str = "models";

/// One bar as written.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Written {
    prefix: Option<String>,
    task: String,
    value: f64,
    line: usize,
}

/// Where a bar comes from, most specific first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// The model's own override.
    Model,
    /// The task's default.
    Default,
    /// The file does not name the task.
    Fallback,
}

/// A bar for one model and task.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Bar {
    /// The score to reach; reaching it exactly passes.
    pub value: f64,
    /// Where it comes from.
    pub origin: Origin,
    /// Its line, from 1; none for the fallback.
    pub line: Option<usize>,
}

/// Something wrong with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub what: String,
    /// What to do.
    pub fix: String,
}

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Thresholds {
    bars: Vec<Written>,
    /// What is wrong with it; a bar that is wrong is not among the bars, so a caller that finds problems must not judge.
    pub problems: Vec<Problem>,
    /// The file has neither of the two maps: all of it is the default.
    pub legacy: bool,
}

impl Thresholds {
    /// Reads the file, YAML or JSON.
    ///
    /// # Errors
    /// When it is no YAML or no mapping.
    pub fn read(text: &str) -> Result<Thresholds, YamlError> {
        let document = parse(
            text,
            &Limits {
                max_bytes: MAX_BYTES,
                ..Limits::default()
            },
        )?;
        let mut strict = Strict::new();
        let mut out = Thresholds {
            bars: Vec::new(),
            problems: Vec::new(),
            legacy: false,
        };
        if let Some(root) = strict.expect_any_map(&document.root, "") {
            let (default, models) = (root.get(DEFAULT), root.get(MODELS));
            out.legacy = default.is_none() && models.is_none();
            if out.legacy {
                out.tasks(root, None, "", &mut strict);
            } else {
                strict.expect_map(&document.root, "", &[DEFAULT, MODELS]);
                if let Some(map) = default.and_then(|d| strict.expect_any_map(d, DEFAULT)) {
                    out.tasks(map, None, DEFAULT, &mut strict);
                }
                if let Some(map) = models.and_then(|m| strict.expect_any_map(m, MODELS)) {
                    for (key, value) in map.iter() {
                        let path = format!("{MODELS}.{}", key.scalar_text());
                        let Some(prefix) = strict.expect_str(key, &path) else {
                            continue;
                        };
                        if let Some(tasks) = strict.expect_any_map(value, &path) {
                            out.tasks(tasks, Some(prefix), &path, &mut strict);
                        }
                    }
                }
            }
        }
        let place = |line: u32, what: String, fix: String| Problem {
            line: line as usize,
            what,
            fix,
        };
        for p in strict.problems {
            out.problems
                .push(place(p.line, format!("{}: {}", p.path, p.message), p.remedy));
        }
        for twice in &document.duplicate_keys {
            let what = format!(
                "the key {:?} occurs twice, first on line {}",
                twice.key, twice.first_line
            );
            out.problems.push(place(twice.line, what, "keep one of the two".into()));
        }
        out.problems.sort_by_key(|p| p.line);
        Ok(out)
    }

    fn tasks(&mut self, map: &Map, prefix: Option<&str>, path: &str, strict: &mut Strict) {
        for (key, value) in map.iter() {
            let path = format!("{path}.{}", key.scalar_text());
            let Some(task) = strict.expect_str(key, &path) else {
                continue;
            };
            let Some(number) = strict.expect_number(value, &path) else {
                continue;
            };
            if !(0.0..=1.0).contains(&number) {
                let what = format!("{} is not between 0 and 1", value.scalar_text());
                strict.problem(value.span, &path, what, "write a fraction");
                continue;
            }
            let line = line(value);
            self.bars.push(Written {
                prefix: prefix.map(str::to_owned),
                task: task.to_owned(),
                value: number,
                line,
            });
        }
    }

    /// The bar: the model's override, else the task's default, else `fallback`. Prefixes are compared exactly.
    #[must_use]
    pub fn bar(&self, prefix: &str, task: &str, fallback: f64) -> Bar {
        let find = |prefix: Option<&str>| {
            self.bars
                .iter()
                .rfind(|b| b.prefix.as_deref() == prefix && b.task == task)
        };
        let made = |written: &Written, origin| Bar {
            value: written.value,
            origin,
            line: Some(written.line),
        };
        find(Some(prefix))
            .map(|w| made(w, Origin::Model))
            .or_else(|| find(None).map(|w| made(w, Origin::Default)))
            .unwrap_or(Bar {
                value: fallback,
                origin: Origin::Fallback,
                line: None,
            })
    }
}

fn line(node: &Node) -> usize {
    node.span.line as usize
}
