//! Injection of synthetic acceptance: a launcher rewrites the recipe's text before it runs (domain guide 10.3).
//!
//! The rules are parameters; what each kind of injector matches in the text is modelled exactly, because a recipe that
//! it does not match makes the job abort, or runs with real acceptance.

use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::engine::Engine;
use crate::flags::{FlagValue, Via};
use crate::launch::Launch;
use crate::value::{Source, Text};

/// How an injector rewrites a recipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum InjectorKind {
    /// Adds two keys to every single-quoted JSON after `speculative-config:`.
    VllmSpeculativeConfig,
    /// Adds three variables to every `*_environment:` block indented by two spaces.
    SglangEnvironment,
}

/// An injection that the entry asks for and the launcher carries out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Injection {
    /// The injector registered for the framework; `None` if there is none, which aborts the job.
    pub kind: Option<InjectorKind>,
    /// The mean acceptance length; `None` if the entry gives none.
    pub length: Option<String>,
    /// Where the entry asks for it.
    pub source: Source,
}

/// What injection did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Injected {
    /// Nothing was asked for.
    NotAsked,
    /// So many roles were changed.
    Applied(usize),
    /// The job would abort, for this reason.
    Aborts(String),
}

static VLLM_LINE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"speculative-config:\s*'([^']+)'").ok());
static SGLANG_BLOCK: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?m)^  (aggregated|prefill|decode)_environment:\s*$").ok());

pub(super) fn apply(launches: &mut [Launch], text: &str, injection: Option<&Injection>, file: &str) -> Injected {
    let Some(injection) = injection else {
        return Injected::NotAsked;
    };
    let Some(kind) = injection.kind else {
        return Injected::Aborts("no injector is registered for this framework".into());
    };
    let Some(length) = injection.length.as_deref() else {
        return Injected::Aborts("no acceptance length is given, and the table for a look-up does not exist".into());
    };
    if length.trim().parse::<f64>().is_err() {
        return Injected::Aborts(format!("acceptance length `{length}` is not a number"));
    }
    let count = match kind {
        InjectorKind::VllmSpeculativeConfig => vllm(launches, text, length, injection),
        InjectorKind::SglangEnvironment => {
            if text.contains("SGLANG_SIMULATE_ACC_LEN") {
                return Injected::Aborts("the recipe already sets SGLANG_SIMULATE_ACC_LEN".into());
            }
            sglang(launches, text, length, injection)
        }
    };
    if count == 0 {
        return Injected::Aborts(format!("nothing in {file} matches what the injector looks for"));
    }
    Injected::Applied(count)
}

fn value(text: &str, name: &str, injection: &Injection) -> FlagValue {
    FlagValue {
        value: Text::known(text),
        spelled: name.to_owned(),
        source: injection.source.clone(),
        via: Via::Injected,
    }
}

fn vllm(launches: &mut [Launch], text: &str, length: &str, injection: &Injection) -> usize {
    let Some(pattern) = VLLM_LINE.as_ref() else { return 0 };
    let lines: Vec<u32> = pattern
        .find_iter(text)
        .map(|m| text[..m.start()].bytes().filter(|b| *b == b'\n').count() as u32 + 1)
        .collect();
    let mut count = 0;
    for launch in launches.iter_mut().filter(|l| l.engine == Engine::Vllm) {
        let Some(line) = launch
            .flags
            .under("speculative-config")
            .map(|(_, v)| v.source.line)
            .next()
        else {
            continue;
        };
        if lines.contains(&line) {
            for (name, text) in [
                ("rejection_sample_method", "synthetic"),
                ("synthetic_acceptance_length", length),
            ] {
                launch
                    .flags
                    .push(&format!("speculative-config.{name}"), value(text, name, injection));
            }
            count += 1;
        }
    }
    count
}

fn sglang(launches: &mut [Launch], text: &str, length: &str, injection: &Injection) -> usize {
    let Some(pattern) = SGLANG_BLOCK.as_ref() else { return 0 };
    let roles: Vec<String> = pattern
        .captures_iter(text)
        .filter_map(|c| c.get(1).map(|m| m.as_str().to_owned()))
        .collect();
    let mut count = 0;
    for launch in launches
        .iter_mut()
        .filter(|l| l.engine == Engine::Sglang && roles.iter().any(|r| r == l.role.name()))
    {
        for (name, text) in [
            ("SGLANG_SIMULATE_ACC_LEN", length),
            ("SGLANG_SIMULATE_ACC_METHOD", "match-expected"),
            ("SGLANG_SIMULATE_ACC_TOKEN_MODE", "real-draft-token"),
        ] {
            launch.environment.insert(name.to_owned(), value(text, name, injection));
        }
        count += 1;
    }
    count
}
