//! Golden acceptance lengths: for each file a curve from the number of draft tokens to the mean acceptance length, by
//! thinking mode (domain guide 10.1).
//!
//! Curves are told apart by file, never by the key inside, since two files can carry the same one. Which file belongs
//! to which model and draft is the policy's business.

use std::collections::BTreeMap;

use countersign_yaml::{Limits, Strict, YamlError, parse};
use serde::{Deserialize, Serialize};

pub use crate::thresholds::Problem;

/// Largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// Largest number of draft tokens that is believed.
const MAX_DRAFT: i64 = 64;

/// Names of the thinking modes in the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct GoldenRules {
    /// Keys of the modes, each a curve.
    pub modes: Vec<String>,
}

/// A value of a curve.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Point {
    /// Mean acceptance length in hundredths of a token, the always-accepted one included.
    pub hundredths: u32,
    /// Its line, from 1.
    pub line: usize,
}

impl Point {
    /// The length in tokens.
    #[must_use]
    pub fn value(self) -> f64 {
        f64::from(self.hundredths) / 100.0
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GoldenFile {
    /// The key under which the curves stand.
    pub model: String,
    /// Curves by mode: number of draft tokens to length.
    pub curves: BTreeMap<String, BTreeMap<u32, Point>>,
    /// What is wrong with the file; what is wrong is not among the curves.
    pub problems: Vec<Problem>,
}

/// Rounds to hundredths as the files are written; `None` for what is no length (below one token, not finite).
#[must_use]
pub fn hundredths(value: f64) -> Option<u32> {
    let scaled = (value * 100.0).round();
    // The bounds make the conversion exact.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within 100..=100_000"
    )]
    (100.0..=100_000.0).contains(&scaled).then_some(scaled as u32)
}

impl GoldenFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it is no YAML.
    pub fn read(text: &str, rules: &GoldenRules) -> Result<GoldenFile, YamlError> {
        let document = parse(
            text,
            &Limits {
                max_bytes: MAX_BYTES,
                ..Limits::default()
            },
        )?;
        let mut strict = Strict::new();
        let mut out = GoldenFile {
            model: String::new(),
            curves: BTreeMap::new(),
            problems: Vec::new(),
        };
        let root = strict.expect_any_map(&document.root, "");
        if let Some(map) = root.filter(|m| m.len() != 1) {
            let what = format!("{} top-level keys, expected one", map.len());
            strict.problem(document.root.span, "", what, "keep one model in a file");
        }
        let known: Vec<&str> = rules.modes.iter().map(String::as_str).collect();
        for (key, modes) in root.into_iter().flat_map(|m| m.iter()).take(1) {
            out.model = key.scalar_text();
            let Some(modes) = strict.expect_map(modes, &out.model, &known) else {
                continue;
            };
            for (mode, curve) in modes.iter() {
                let name = mode.scalar_text();
                let path = format!("{}.{name}", out.model);
                let Some(curve) = strict
                    .expect_any_map(curve, &path)
                    .filter(|_| rules.modes.contains(&name))
                else {
                    continue;
                };
                let points = out.curves.entry(name).or_default();
                for (tokens, length) in curve.iter() {
                    let path = format!("{path}.{}", tokens.scalar_text());
                    let draft = tokens.as_int().filter(|k| (1..=MAX_DRAFT).contains(k));
                    let value = length.as_float().and_then(hundredths);
                    match (draft.and_then(|k| u32::try_from(k).ok()), value) {
                        // A length above the number of drafts plus one cannot be measured.
                        (Some(k), Some(value)) if value <= (k + 1) * 100 => {
                            points.insert(
                                k,
                                Point {
                                    hundredths: value,
                                    line: length.span.line as usize,
                                },
                            );
                        }
                        _ => strict.problem(
                            length.span,
                            &path,
                            "not a number of draft tokens with a length from 1 to that number plus 1",
                            "write the measured value",
                        ),
                    }
                }
            }
        }
        for p in strict.problems {
            let what = format!("{}: {}", p.path, p.message);
            out.problems.push(Problem {
                line: p.line as usize,
                what,
                fix: p.remedy,
            });
        }
        for twice in &document.duplicate_keys {
            let what = format!(
                "the key {:?} occurs twice, first on line {}",
                twice.key, twice.first_line
            );
            out.problems.push(Problem {
                line: twice.line as usize,
                what,
                fix: "keep one of the two".into(),
            });
        }
        out.problems.sort_by_key(|p| p.line);
        Ok(out)
    }

    /// The golden length of a mode and a number of draft tokens.
    #[must_use]
    pub fn length(&self, mode: &str, draft_tokens: u32) -> Option<Point> {
        self.curves.get(mode)?.get(&draft_tokens).copied()
    }

    /// The numbers of draft tokens of a mode that have this length, after rounding to hundredths.
    #[must_use]
    pub fn drafts_with(&self, mode: &str, length: f64) -> Vec<u32> {
        let wanted = hundredths(length);
        let curve = self.curves.get(mode).into_iter().flatten();
        curve
            .filter(|(_, p)| Some(p.hundredths) == wanted)
            .map(|(k, _)| *k)
            .collect()
    }
}
