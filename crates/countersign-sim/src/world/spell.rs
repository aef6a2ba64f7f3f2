//! Small value types of the world format that may be written in more than one way: spans of time, the clock, a pull
//! request named by `owner/name#5` or by its number alone, an edit, a file.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// A span of time, written with a unit: `250ms`, `90s`, `10m`, `2h`, `3d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

impl Span {
    /// Reads `250ms`, `90s`, `10m`, `2h` or `3d`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        let (digits, unit) = text.split_at(split);
        let number: u64 = digits
            .parse()
            .map_err(|_| format!("`{text}` is not a span such as 250ms, 90s, 10m, 2h or 3d"))?;
        let millis = match unit {
            "ms" => Some(1),
            "s" => Some(1_000),
            "m" | "min" => Some(60_000),
            "h" => Some(3_600_000),
            "d" => Some(86_400_000),
            _ => None,
        };
        let millis = millis.ok_or_else(|| format!("`{text}` needs a unit: ms, s, m, h or d"))?;
        number
            .checked_mul(millis)
            .map(|ms| Span(Duration::from_millis(ms)))
            .ok_or_else(|| format!("`{text}` is too long"))
    }

    /// The same span for arithmetic on timestamps.
    pub fn delta(self) -> chrono::TimeDelta {
        chrono::TimeDelta::from_std(self.0).unwrap_or(chrono::TimeDelta::MAX)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        Span::parse(&text).map_err(de::Error::custom)
    }
}

impl Serialize for Span {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(&format!("{}ms", self.0.as_millis()))
    }
}

impl JsonSchema for Span {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Span".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^[0-9]+(ms|s|m|min|h|d)$"})
    }
}

/// The simulated clock: a fixed start time (it then moves only when a step moves it), or `real`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Time stands still at this moment until the timeline or the test moves it.
    At(DateTime<Utc>),
    /// Simulated time is the machine's time (load and soak tests).
    Real,
}

impl Default for Clock {
    fn default() -> Self {
        Clock::At(DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for Clock {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = String::deserialize(d)?;
        if text == "real" {
            return Ok(Clock::Real);
        }
        DateTime::parse_from_rfc3339(&text)
            .map(|t| Clock::At(t.to_utc()))
            .map_err(|e| {
                de::Error::custom(format!(
                    "clock `{text}`: expected `real` or a time such as 2026-08-07T23:00:00Z ({e})"
                ))
            })
    }
}

impl Serialize for Clock {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Clock::At(t) => t.serialize(s),
            Clock::Real => s.serialize_str("real"),
        }
    }
}

impl JsonSchema for Clock {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Clock".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"type": "string", "format": "date-time"}, {"const": "real"}]})
    }
}

/// A pull request by `owner/name#5`, or by its number where the world has one installed repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "String")]
pub struct PullRef {
    /// `owner/name`; none stands for the only installed repository.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    /// The pull request's number.
    pub number: u64,
}

impl PullRef {
    /// Reads `owner/name#5`, `#5` or `5`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (repo, number) = match text.split_once('#') {
            Some((repo, number)) => (repo.trim(), number),
            None => ("", text),
        };
        let number = number
            .trim()
            .parse()
            .map_err(|_| format!("`{text}` is not a pull request such as owner/name#5"))?;
        Ok(PullRef {
            repo: (!repo.is_empty()).then(|| repo.to_owned()),
            number,
        })
    }
}

impl fmt::Display for PullRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.repo.as_deref().unwrap_or(""), self.number)
    }
}

impl From<PullRef> for String {
    fn from(p: PullRef) -> String {
        p.to_string()
    }
}

impl From<u64> for PullRef {
    fn from(number: u64) -> Self {
        PullRef { repo: None, number }
    }
}

impl From<&str> for PullRef {
    /// For tests and builders: text that is not a pull request becomes number 0, which no world has.
    fn from(text: &str) -> Self {
        PullRef::parse(text).unwrap_or(PullRef { repo: None, number: 0 })
    }
}

impl<'de> Deserialize<'de> for PullRef {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl Visitor<'_> for V {
            type Value = PullRef;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a pull request: a number or owner/name#number")
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<PullRef, E> {
                Ok(PullRef::from(v))
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<PullRef, E> {
                u64::try_from(v)
                    .map(PullRef::from)
                    .map_err(|_| E::custom("a pull request's number is not negative"))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<PullRef, E> {
                PullRef::parse(v).map_err(E::custom)
            }
        }
        d.deserialize_any(V)
    }
}

impl JsonSchema for PullRef {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PullRef".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^([^/#]+/[^/#]+)?#?[0-9]+$"}]})
    }
}

/// A value, or several of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One value.
    One(T),
    /// Several values.
    Many(Vec<T>),
}

impl<T> OneOrMany<T> {
    /// The values as a slice.
    pub fn as_slice(&self) -> &[T] {
        match self {
            OneOrMany::One(v) => std::slice::from_ref(v),
            OneOrMany::Many(v) => v,
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for V<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of values")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut out = Vec::new();
                while let Some(v) = seq.next_element()? {
                    out.push(v);
                }
                Ok(OneOrMany::Many(out))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<Self::Value, E> {
                T::deserialize(de::value::U64Deserializer::new(v)).map(OneOrMany::One)
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> Result<Self::Value, E> {
                T::deserialize(de::value::I64Deserializer::new(v)).map(OneOrMany::One)
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> Result<Self::Value, E> {
                T::deserialize(de::value::F64Deserializer::new(v)).map(OneOrMany::One)
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<Self::Value, E> {
                T::deserialize(de::value::StrDeserializer::new(v)).map(OneOrMany::One)
            }
        }
        d.deserialize_any(V(std::marker::PhantomData))
    }
}

/// Defines `Deserialize` for a type that is written either as plain text or as a mapping of its fields. The mapping keeps
/// its strictness and its line and column, which serde's own `untagged` would lose.
macro_rules! text_or_map {
    ($ty:ident, $full:ident, $what:literal, |$text:ident| $from:expr) => {
        impl<'de> serde::Deserialize<'de> for $ty {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct V;
                impl<'de> serde::de::Visitor<'de> for V {
                    type Value = $ty;
                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str($what)
                    }
                    fn visit_str<E: serde::de::Error>(self, $text: &str) -> Result<$ty, E> {
                        $from.map_err(E::custom)
                    }
                    fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<$ty, E> {
                        self.visit_str(&v.to_string())
                    }
                    fn visit_bool<E: serde::de::Error>(self, v: bool) -> Result<$ty, E> {
                        self.visit_str(if v { "true" } else { "false" })
                    }
                    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<$ty, A::Error> {
                        <$full as serde::Deserialize>::deserialize(serde::de::value::MapAccessDeserializer::new(map))
                            .map(Into::into)
                    }
                }
                d.deserialize_any(V)
            }
        }
    };
}
pub(crate) use text_or_map;

/// A file of an inline commit: its text, or a mapping with exactly one of `text`, `file`, `base64`, `symlink`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[schemars(untagged)]
#[serde(untagged)]
pub enum FileSpec {
    /// The file's text.
    Text(String),
    /// Content from elsewhere, or a special mode.
    Full(FullFile),
    /// The file is deleted by this commit (written as `null`).
    #[default]
    Deleted,
}

/// The long form of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FullFile {
    /// The text itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A path, relative to the world file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Bytes in base64, for binary content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base64: Option<String>,
    /// The target of a symbolic link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symlink: Option<String>,
    /// The object id alone, for a file whose content is not here (binary, or too large to be recorded).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The commit of a submodule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submodule: Option<String>,
    /// Whether the file is executable.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
    /// Repeats the text this often: large files in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeat: Option<u32>,
}

impl<'de> Deserialize<'de> for FileSpec {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct V;
        impl<'de> Visitor<'de> for V {
            type Value = FileSpec;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a file's text, null for a deletion, or a mapping with text, file, base64 or symlink")
            }
            fn visit_str<E: de::Error>(self, v: &str) -> Result<FileSpec, E> {
                Ok(FileSpec::Text(v.to_owned()))
            }
            fn visit_u64<E: de::Error>(self, v: u64) -> Result<FileSpec, E> {
                Ok(FileSpec::Text(v.to_string()))
            }
            fn visit_unit<E: de::Error>(self) -> Result<FileSpec, E> {
                Ok(FileSpec::Deleted)
            }
            fn visit_none<E: de::Error>(self) -> Result<FileSpec, E> {
                Ok(FileSpec::Deleted)
            }
            fn visit_some<D: Deserializer<'de>>(self, d: D) -> Result<FileSpec, D::Error> {
                d.deserialize_any(V)
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileSpec, A::Error> {
                FullFile::deserialize(de::value::MapAccessDeserializer::new(map)).map(FileSpec::Full)
            }
        }
        d.deserialize_any(V)
    }
}

/// Files by path.
pub type Files = BTreeMap<String, FileSpec>;
