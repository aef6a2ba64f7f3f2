//! Reads the words after a server's name into flags.

use super::{Engine, normalise, table};
use crate::flags::{FlagValue, Flags, Via};
use crate::tree::{self, Node, Tree};
use crate::value::{Arg, Source, Text};

/// The words of a command line, read.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// Flags by normalised name.
    pub flags: Flags,
    /// Words that belong to no flag, such as the model.
    pub positional: Vec<Arg>,
    /// Whole words that are unknown and stand where a flag could stand: any flag may hide in them.
    pub opaque: Vec<Arg>,
}

/// Reads arguments by an engine's table. Never fails: what cannot be told apart is kept as positional or opaque.
pub fn parse_flags(engine: Engine, args: &[Arg]) -> Parsed {
    let mut out = Parsed::default();
    let table = table(engine);
    let mut i = 0;
    while let Some(arg) = args.get(i) {
        i += 1;
        let prefix = arg.text.known_prefix();
        if prefix == "--" && arg.text.as_known().is_some() {
            out.positional.extend(args[i..].iter().cloned());
            break;
        }
        if !looks_like_flag(prefix) {
            if arg.text.is_opaque() && !(out.positional.is_empty() && out.flags.is_empty()) {
                out.opaque.push(arg.clone());
            } else if !arg.text.is_empty() {
                out.positional.push(arg.clone());
            }
            continue;
        }
        let (spelled, inline) = match arg.text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (arg.text.clone(), None),
        };
        let Some(spelled) = spelled.as_known() else {
            // `--$KIND-size 8`: the name itself is unknown.
            out.opaque.push(arg.clone());
            continue;
        };
        let name = normalise(engine, spelled);
        if let Some(value) = inline {
            put(
                engine,
                &mut out.flags,
                &name,
                value,
                spelled,
                &arg.source,
                Via::CommandLine,
            );
            continue;
        }
        if table.many.contains(&name.as_str()) {
            let start = i;
            while args.get(i).is_some_and(|a| !looks_like_flag(a.text.known_prefix())) {
                put(
                    engine,
                    &mut out.flags,
                    &name,
                    args[i].text.clone(),
                    spelled,
                    &args[i].source,
                    Via::CommandLine,
                );
                i += 1;
            }
            if i == start {
                put(
                    engine,
                    &mut out.flags,
                    &name,
                    Text::known("true"),
                    spelled,
                    &arg.source,
                    Via::CommandLine,
                );
            }
            continue;
        }
        let negated = name.strip_prefix("no-").map(|n| normalise(engine, n));
        let is_switch = table.switches.contains(&name.as_str()) || negated.is_some();
        let next_is_value = args.get(i).is_some_and(|a| !looks_like_flag(a.text.known_prefix()));
        // A switch takes no value, except a spelled-out truth value (`--flag true`), which some engines accept.
        let spelled_truth = is_switch
            && negated.is_none()
            && args
                .get(i)
                .and_then(|a| a.text.as_known())
                .is_some_and(|w| tree::parse_bool(w).is_some());
        if next_is_value && (!is_switch || spelled_truth) {
            put(
                engine,
                &mut out.flags,
                &name,
                args[i].text.clone(),
                spelled,
                &args[i].source,
                Via::CommandLine,
            );
            i += 1;
        } else if let Some(name) = negated {
            put(
                engine,
                &mut out.flags,
                &name,
                Text::known("false"),
                spelled,
                &arg.source,
                Via::CommandLine,
            );
        } else {
            put(
                engine,
                &mut out.flags,
                &name,
                Text::known("true"),
                spelled,
                &arg.source,
                Via::CommandLine,
            );
        }
    }
    out
}

/// Reads a mapping of options (an options file, or one role of a recipe) into flags.
pub fn parse_options_tree(engine: Engine, options: &Tree, file: &str, via: Via, flags: &mut Flags) {
    for (key, value) in options.entries() {
        let name = normalise(engine, key);
        let source = Source::new(file, value.line);
        match &value.node {
            Node::Scalar(text) => put_bool_aware(engine, flags, &name, text.clone(), key, &source, via),
            Node::Seq(items)
                if items.iter().all(|t| matches!(t.node, Node::Scalar(_)))
                    && table(engine).many.contains(&name.as_str()) =>
            {
                for item in items {
                    if let Some(text) = item.text() {
                        flags.push(
                            &name,
                            FlagValue {
                                value: text.clone(),
                                spelled: key.clone(),
                                source: source.clone(),
                                via,
                            },
                        );
                    }
                }
            }
            _ => explode(flags, &name, value, key, file, via),
        }
    }
}

fn put_bool_aware(engine: Engine, flags: &mut Flags, name: &str, text: Text, spelled: &str, source: &Source, via: Via) {
    // `no-enable-x: true` in a recipe is the switch `--no-enable-x`.
    if let Some(positive) = name.strip_prefix("no-")
        && let Some(on) = text.as_known().and_then(tree::parse_bool)
    {
        let name = normalise(engine, positive);
        put(
            engine,
            flags,
            &name,
            Text::known((!on).to_string()),
            spelled,
            source,
            via,
        );
        return;
    }
    put(engine, flags, name, text, spelled, source, via);
}

/// Stores a value; a JSON object is taken apart into its leaves with dotted names.
fn put(engine: Engine, flags: &mut Flags, name: &str, value: Text, spelled: &str, source: &Source, via: Via) {
    if value.known_prefix().trim_start().starts_with('{')
        && let Some(tree) = tree::from_json(&value, source.line)
    {
        explode(flags, name, &tree, spelled, &source.file, via);
        return;
    }
    let value = match value.as_known().and_then(tree::parse_bool) {
        Some(b) => Text::known(b.to_string()),
        None => value,
    };
    let name = if name.contains('.') {
        name.to_owned()
    } else {
        normalise(engine, name)
    };
    flags.push(
        &name,
        FlagValue {
            value,
            spelled: spelled.to_owned(),
            source: source.clone(),
            via,
        },
    );
}

fn explode(flags: &mut Flags, name: &str, value: &Tree, spelled: &str, file: &str, via: Via) {
    tree::leaves(name, value, &mut |leaf, text, line| {
        flags.push(
            &leaf,
            FlagValue {
                value: text,
                spelled: spelled.to_owned(),
                source: Source::new(file, line),
                via,
            },
        );
    });
}

fn looks_like_flag(word: &str) -> bool {
    let mut chars = word.chars();
    match (chars.next(), chars.next()) {
        (Some('-'), Some('-')) => true,
        (Some('-'), Some(c)) => c.is_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(words: &[&str]) -> Vec<Arg> {
        words
            .iter()
            .enumerate()
            .map(|(i, w)| {
                let mut t = Text::default();
                let mut rest = *w;
                while let Some((before, after)) = rest.split_once('<') {
                    t.push_known(before);
                    let (name, tail) = after.split_once('>').unwrap();
                    t.push_unknown(name);
                    rest = tail;
                }
                t.push_known(rest);
                Arg::new(t, Source::new("f", i as u32 + 1))
            })
            .collect()
    }

    fn shown(engine: Engine, words: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
        let p = parse_flags(engine, &args(words));
        let flags = p
            .flags
            .iter()
            .flat_map(|(n, vs)| vs.iter().map(move |v| format!("{n}={}", v.value)))
            .collect();
        (
            flags,
            p.positional.iter().map(|a| a.text.to_string()).collect(),
            p.opaque.iter().map(|a| a.text.to_string()).collect(),
        )
    }

    #[test]
    fn forms() {
        let (flags, pos, opaque) = shown(
            Engine::Vllm,
            &[
                "org/M",
                "--trust-remote-code",
                "-tp",
                "8",
                "--data_parallel_size=2",
                "--no-enable-prefix-caching",
                "--speculative-config",
                r#"{"method":"mtp","num_speculative_tokens":3}"#,
                "--attention_config.use_fp4=True",
                "--served-model-name",
                "a",
                "b",
                "--port",
                "<PORT>",
                "<EXTRA>",
                "--max-num-seqs",
                "-1",
                "--unknown-switch",
                "--block-size",
                "256",
            ],
        );
        assert_eq!(
            flags,
            [
                "attention-config.use_fp4=true",
                "block-size=256",
                "data-parallel-size=2",
                "enable-prefix-caching=false",
                "max-num-seqs=-1",
                "port=${PORT}",
                "served-model-name=a",
                "served-model-name=b",
                "speculative-config.method=mtp",
                "speculative-config.num_speculative_tokens=3",
                "tensor-parallel-size=8",
                "trust-remote-code=true",
                "unknown-switch=true",
            ]
        );
        assert_eq!(pos, ["org/M"]);
        assert_eq!(opaque, ["${EXTRA}"]);
    }

    #[test]
    fn a_switch_does_not_eat_the_model_and_a_negation_takes_nothing() {
        let (flags, pos, _) = shown(
            Engine::Vllm,
            &["--trust-remote-code", "org/M", "--no-async-scheduling", "x"],
        );
        assert_eq!(flags, ["async-scheduling=false", "trust-remote-code=true"]);
        assert_eq!(pos, ["org/M", "x"]);
    }

    #[test]
    fn unknown_flag_names_are_opaque_and_truth_values_are_taken() {
        let (flags, pos, opaque) = shown(Engine::Sglang, &["--enable-metrics", "true", "--<KIND>-size", "8"]);
        assert_eq!(flags, ["enable-metrics=true"]);
        assert_eq!(opaque, ["--${KIND}-size"]);
        assert_eq!(pos, ["8"]);
    }
}
