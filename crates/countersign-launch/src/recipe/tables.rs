//! Other YAML that decides launches: llm-d recipes, and tables of flags by model that wrapper scripts read
//! (domain guide 3.9).

use crate::engine::{self, Engine, Role};
use crate::flags::{FlagValue, Via};
use crate::launch::Launch;
use crate::shwords;
use crate::tree::Tree;
use crate::value::{Arg, Source, Text};
use crate::yaml;

/// What a wrapper script takes from its environment when it reads a table or an llm-d recipe.
#[derive(Clone, Debug, Default)]
pub struct TableInput {
    /// Tensor size of the role.
    pub tp: Option<u32>,
    /// Whether expert parallelism is on.
    pub ep: Option<bool>,
    /// Whether data-parallel attention is on.
    pub dp_attention: Option<bool>,
    /// Draft tokens; 0 is off.
    pub draft_tokens: Option<u32>,
    /// Whether the run is agentic.
    pub agentic: bool,
    /// Where these come from.
    pub source: Option<Source>,
}

/// Why a table could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// Not YAML.
    #[error("{file}: not readable as YAML: {detail}. Fix the syntax at the named line.")]
    Yaml {
        /// The file.
        file: String,
        /// The reader's message.
        detail: String,
    },
    /// The model has no entry.
    #[error("{file}: no entry for model `{model}`. Add one, or correct the model name.")]
    NoModel {
        /// The file.
        file: String,
        /// The names that were tried.
        model: String,
    },
    /// Neither role is described.
    #[error("{file}: neither `prefill` nor `decode` is described.")]
    NoRoles {
        /// The file.
        file: String,
    },
}

fn parse(file: &str, text: &str) -> Result<Tree, TableError> {
    yaml::parse(text).map_err(|e| TableError::Yaml {
        file: file.into(),
        detail: e.to_string(),
    })
}

fn add_words(launch: &mut Launch, tree: Option<&Tree>, file: &str) {
    let Some((text, line)) = tree.and_then(|t| t.as_str().map(|s| (s, t.line))) else {
        return;
    };
    let parsed = engine::parse_flags(launch.engine, &shwords::words(text, file, line));
    for (name, values) in parsed.flags.iter() {
        for value in values {
            launch.flags.push(
                name,
                FlagValue {
                    via: Via::Recipe,
                    ..value.clone()
                },
            );
        }
    }
    launch.opaque.extend(parsed.opaque);
}

fn add_env_words(launch: &mut Launch, tree: Option<&Tree>, file: &str) {
    let Some((text, line)) = tree.and_then(|t| t.as_str().map(|s| (s, t.line))) else {
        return;
    };
    for word in text.split_whitespace() {
        if let Some((name, value)) = word.split_once('=') {
            launch.set_env(name, Text::known(value), Source::new(file, line));
        }
    }
}

fn put(launch: &mut Launch, name: &str, value: impl ToString, source: &Source) {
    let value = FlagValue {
        value: Text::known(value.to_string()),
        spelled: name.to_owned(),
        source: source.clone(),
        via: Via::Recipe,
    };
    launch.flags.push(name, value);
}

/// Reads an llm-d recipe: flags and environment by role. Sizes that the wrapper takes from its environment come from
/// `inputs`; unknown ones stay symbolic.
///
/// # Errors
/// [`TableError`].
pub fn llmd_recipe(file: &str, text: &str, inputs: &[(Role, TableInput)]) -> Result<Vec<Launch>, TableError> {
    let tree = parse(file, text)?;
    let mut out = Vec::new();
    for role in [Role::Prefill, Role::Decode] {
        let Some(section) = tree.get(role.name()) else { continue };
        let source = Source::new(file, section.line);
        let mut launch = Launch::new(role, Engine::Vllm, "recipe llm-d", source.clone());
        let input = inputs.iter().find(|(r, _)| *r == role).map(|(_, i)| i);
        add_words(&mut launch, section.get("extra-args"), file);
        for (name, value) in section.get("env").map_or(&[][..], Tree::entries) {
            launch.set_env(
                name,
                value.text().cloned().unwrap_or_default(),
                Source::new(file, value.line),
            );
        }
        if let Some(t) = section.get("enable-expert-parallel") {
            put(
                &mut launch,
                "enable-expert-parallel",
                t.as_bool().unwrap_or(false),
                &Source::new(file, t.line),
            );
        }
        let own_tp = section.get("tp").and_then(Tree::as_u32);
        match input {
            Some(TableInput {
                tp: Some(size),
                dp_attention: Some(true),
                source: from,
                ..
            }) => {
                let from = from.clone().unwrap_or_else(|| source.clone());
                let tp = own_tp.unwrap_or(1);
                put(&mut launch, "tensor-parallel-size", tp, &source);
                put(&mut launch, "data-parallel-size", size / tp.max(1), &from);
            }
            Some(TableInput {
                tp: Some(size),
                source: from,
                ..
            }) => {
                put(
                    &mut launch,
                    "tensor-parallel-size",
                    own_tp.unwrap_or(*size),
                    from.as_ref().unwrap_or(&source),
                );
            }
            _ => launch
                .opaque
                .push(Arg::new(Text::unknown("sizes given by the entry"), source.clone())),
        }
        launch.settle();
        launch.role = role;
        out.push(launch);
    }
    if out.is_empty() {
        Err(TableError::NoRoles { file: file.into() })
    } else {
        Ok(out)
    }
}

/// Reads one role of a table of flags by model, as AMD's disaggregated wrappers do: `base_flags`, `dp_flags`,
/// `ep_flags` and `mtp_flags`, or `<role>_flags`, or `<role>_tp_dp_flags`; sizes come from `input`, over those of the
/// table.
///
/// # Errors
/// [`TableError`].
pub fn model_table(
    engine: Engine,
    file: &str,
    text: &str,
    model: &str,
    role: Role,
    input: &TableInput,
) -> Result<Launch, TableError> {
    let tree = parse(file, text)?;
    let base = model.rsplit('/').next().unwrap_or(model);
    let suffix = if input.agentic { "-AgentX" } else { "-DI" };
    let entry = [format!("{base}{suffix}"), base.to_owned(), model.to_owned()]
        .iter()
        .find_map(|name| tree.get(name).cloned())
        .ok_or_else(|| TableError::NoModel {
            file: file.into(),
            model: base.into(),
        })?;
    let source = Source::new(file, entry.line);
    let from = input.source.clone().unwrap_or_else(|| source.clone());
    let mut launch = Launch::new(role, engine, "recipe table", source.clone());
    let (ep, dp) = (input.ep, input.dp_attention);
    if let Some(tp) = input.tp {
        put(&mut launch, "tensor-parallel-size", tp, &from);
    }
    add_words(&mut launch, entry.get("base_flags"), file);
    add_words(&mut launch, entry.get(&format!("{}_flags", role.name())), file);
    add_words(&mut launch, entry.get("kv_cache_flags"), file);
    match engine {
        Engine::Vllm => {
            // The wrapper writes the role's size over the table's, and adds switches that the table does not have.
            if let Some(tp) = input.tp {
                launch.flags.remove("tensor-parallel-size");
                put(&mut launch, "tensor-parallel-size", tp, &from);
            }
            for (on, switch) in [(ep, "enable-expert-parallel"), (dp, "enable-dp-attention")] {
                if on == Some(true) && !launch.flags.mentions(switch) {
                    put(&mut launch, switch, true, &from);
                }
            }
        }
        Engine::Sglang => {
            if ep == Some(true) {
                put(&mut launch, "expert-parallel-size", input.tp.unwrap_or(1), &from);
                add_words(&mut launch, entry.get("ep_flags"), file);
            }
            if dp == Some(true) {
                put(&mut launch, "data-parallel-size", input.tp.unwrap_or(1), &from);
                add_words(&mut launch, entry.get("dp_flags"), file);
            }
        }
        _ => {
            let mode = match (ep, dp) {
                (Some(true), Some(true)) => Some("ep_dp"),
                (_, Some(true)) => Some("tp_dp"),
                _ => None,
            };
            if let Some(mode) = mode {
                let own = entry
                    .get(&format!("{}_{mode}_flags", role.name()))
                    .or_else(|| entry.get(&format!("{mode}_flags")));
                add_words(&mut launch, own, file);
                add_env_words(&mut launch, entry.get(&format!("{mode}_env")), file);
            }
            let quant = if dp == Some(true) {
                entry
                    .get("online_quant_dpa_config")
                    .or_else(|| entry.get("online_quant_config"))
            } else {
                entry.get("online_quant_config")
            };
            if let Some(t) = quant.and_then(Tree::text) {
                let parsed = engine::parse_flags(
                    engine,
                    &[
                        Arg::new(Text::known("--online_quant_config"), source.clone()),
                        Arg::new(t.clone(), source.clone()),
                    ],
                );
                for (name, values) in parsed.flags.iter() {
                    values.iter().for_each(|v| launch.flags.push(name, v.clone()));
                }
            }
        }
    }
    for key in ["env".to_owned(), format!("{}_env", role.name())] {
        add_env_words(&mut launch, entry.get(&key), file);
    }
    spec(&mut launch, &entry, file, input, &from);
    for unknown in [
        ("tp", input.tp.is_none()),
        ("ep", ep.is_none()),
        ("dp-attn", dp.is_none()),
    ] {
        if unknown.1 {
            launch.opaque.push(Arg::new(
                Text::unknown(format!("{} of the entry", unknown.0)),
                from.clone(),
            ));
        }
    }
    launch.flags.push(
        "model",
        FlagValue {
            value: Text::known(model),
            spelled: "model".into(),
            source: from,
            via: Via::Recipe,
        },
    );
    launch.settle();
    launch.role = role;
    Ok(launch)
}

fn spec(launch: &mut Launch, entry: &Tree, file: &str, input: &TableInput, from: &Source) {
    let Some(k) = input.draft_tokens else {
        launch
            .opaque
            .push(Arg::new(Text::unknown("draft length of the entry"), from.clone()));
        return;
    };
    if k == 0 {
        return;
    }
    match launch.engine {
        Engine::Sglang => {
            add_words(launch, entry.get("mtp_flags"), file);
            put(launch, "speculative-num-steps", k, from);
            put(launch, "speculative-num-draft-tokens", k + 1, from);
        }
        _ => {
            // The table's words end in the flag whose value is the draft length.
            if let Some((text, line)) = entry.get("mtp_flags").and_then(|t| t.as_str().map(|s| (s, t.line))) {
                let mut words = shwords::words(text, file, line);
                words.push(Arg::new(Text::known(k.to_string()), from.clone()));
                let parsed = engine::parse_flags(launch.engine, &words);
                for (name, values) in parsed.flags.iter() {
                    values.iter().for_each(|v| launch.flags.push(name, v.clone()));
                }
            }
        }
    }
}
