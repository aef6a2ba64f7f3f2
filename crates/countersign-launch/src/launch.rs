//! The normalised launch: everything later stages ask of a server command, with the line of every statement.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;

use crate::client::ClientCall;
use crate::engine::{self, Engine, Parsed, Program, Role};
use crate::facts;
use crate::flags::{FlagValue, Flags, Via};
use crate::tree::Tree;
use crate::value::{Arg, Fact, Source, Text};
use crate::yaml;

/// A server that a benchmark point would start.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Launch {
    /// What the server is for.
    pub role: Role,
    /// Which engine it is.
    pub engine: Engine,
    /// Program as spelled: `vllm serve`, `sglang.launch_server`, or the recipe flavour.
    pub program: String,
    /// The model argument: an identifier or a path.
    pub model: Fact<String>,
    /// Names under which the model is served.
    pub served_names: Vec<Text>,
    /// The draft model, where speculative decoding uses one of its own.
    pub draft_model: Fact<String>,
    /// Container image, where the source of this launch states one.
    pub image: Option<String>,
    /// Parallel sizes.
    pub parallel: Parallel,
    /// Quantisation asked for; `checkpoint` where none is.
    pub quantisation: Fact<String>,
    /// Data type of the KV cache; `auto` where none is asked for.
    pub kv_cache_dtype: Fact<String>,
    /// Attention backend; `auto` where none is asked for.
    pub attention_backend: Fact<String>,
    /// Mixture-of-experts backend; `auto` where none is asked for.
    pub moe_backend: Fact<String>,
    /// Speculative decoding, if on.
    pub spec: Option<Spec>,
    /// How the benchmark client drives the server, if known.
    pub client: Option<ClientCall>,
    /// Every flag by normalised name.
    pub flags: Flags,
    /// The environment given to the server.
    pub environment: BTreeMap<String, FlagValue>,
    /// Positional words other than the model.
    pub positional: Vec<Arg>,
    /// Unknown words among the arguments: any flag may hide in them, so nothing unsaid counts as absent.
    pub opaque: Vec<Arg>,
    /// Why further variables may be set than [`Launch::environment`] shows; empty if it is complete.
    pub open_environment: Vec<String>,
    /// Conditions on unknowns under which this server is started; empty if always.
    pub conditions: Vec<String>,
    /// Further facts of recipes: scripts run before serving, copies of this role, benchmark section.
    pub extra: BTreeMap<String, FlagValue>,
    /// Where the server is started.
    pub source: Source,
    /// What could not be read, and contradictions.
    pub notes: Vec<String>,
}

/// Parallel sizes of a server (domain guide 9.1).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Parallel {
    /// Tensor parallel.
    pub tp: Fact<u32>,
    /// Pipeline parallel.
    pub pp: Fact<u32>,
    /// Data parallel.
    pub dp: Fact<u32>,
    /// Expert parallel; for engines with a mere switch, the size it implies.
    pub ep: Fact<u32>,
    /// Decode context parallel.
    pub dcp: Fact<u32>,
    /// Data-parallel attention.
    pub dp_attention: Fact<bool>,
}

/// Speculative decoding of a server (domain guide 9.4, 9.5, 10.2).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Spec {
    /// Method in lower case: `mtp`, `eagle`, `nextn`, `eagle3`, `dspark`.
    pub method: Fact<String>,
    /// Draft model, if it has weights of its own.
    pub draft_model: Fact<String>,
    /// K, the number of draft tokens a step (for SGLang the number of steps, not `num-draft-tokens`).
    pub draft_tokens: Fact<u32>,
    /// SGLang's `eagle-topk`.
    pub eagle_topk: Fact<u32>,
    /// SGLang's `num-draft-tokens`, the tokens verified a step.
    pub verify_tokens: Fact<u32>,
    /// How draft tokens are sampled, where stated.
    pub draft_sampling: Fact<String>,
    /// Real or simulated acceptance.
    pub acceptance: Acceptance,
}

/// Acceptance of draft tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Acceptance {
    /// The engine verifies the draft; nothing is simulated.
    Real,
    /// Acceptance is simulated with this mean length, the always accepted token included.
    Synthetic {
        /// Mean acceptance length.
        length: Fact<f64>,
        /// The knob that sets it.
        knob: String,
        /// Where it is set.
        source: Source,
    },
    /// It may be simulated, by something that is not known here.
    Unknown(Vec<String>),
    /// A knob is set but what makes it act is missing.
    Incomplete {
        /// The knob that is set.
        knob: String,
        /// What is missing.
        missing: String,
        /// Where it is set.
        source: Source,
    },
}

/// A file that a command reads its options from, as the evaluator saw it written.
#[derive(Clone, Debug)]
pub struct OptionsFile {
    /// Its contents, possibly with unknowns.
    pub contents: Text,
    /// Path shown in sources: the file in which the contents stand.
    pub file: Arc<str>,
    /// Line of the first line of the contents in that file.
    pub first_line: u32,
}

/// A command to be read.
pub struct Start<'a> {
    /// The words, with assignments in front.
    pub argv: &'a [Arg],
    /// Exported variables, oldest first.
    pub environment: &'a [(String, Text, Source)],
    /// Files that an earlier command wrote, by path as the command spells it.
    pub options: &'a dyn Fn(&str) -> Option<OptionsFile>,
}

impl Launch {
    /// A launch of which only role, engine and place are known; readers fill the rest and call [`Launch::settle`].
    pub fn new(role: Role, engine: Engine, program: impl Into<String>, source: Source) -> Self {
        Launch {
            role,
            engine,
            program: program.into(),
            model: Fact::Absent,
            served_names: Vec::new(),
            draft_model: Fact::Absent,
            image: None,
            parallel: Parallel {
                tp: Fact::Absent,
                pp: Fact::Absent,
                dp: Fact::Absent,
                ep: Fact::Absent,
                dcp: Fact::Absent,
                dp_attention: Fact::Absent,
            },
            quantisation: Fact::Absent,
            kv_cache_dtype: Fact::Absent,
            attention_backend: Fact::Absent,
            moe_backend: Fact::Absent,
            spec: None,
            client: None,
            flags: Flags::default(),
            environment: BTreeMap::new(),
            positional: Vec::new(),
            opaque: Vec::new(),
            open_environment: Vec::new(),
            conditions: Vec::new(),
            extra: BTreeMap::new(),
            source,
            notes: Vec::new(),
        }
    }

    /// Reads the command; `None` if it starts no server.
    pub fn from_command(start: &Start<'_>) -> Option<Launch> {
        let program = engine::detect(start.argv)?;
        let source = start
            .argv
            .get(program.start)
            .map_or_else(|| Source::new("", 0), |a| a.source.clone());
        let mut launch = Launch::new(program.role, program.engine, program.spelled.clone(), source);
        launch.image = program.image.as_ref().map(Text::to_string);
        for (name, value, source) in start.environment {
            launch.set_env(name, value.clone(), source.clone());
        }
        launch.read_wrapper(&start.argv[..program.start]);
        let Parsed {
            flags,
            positional,
            opaque,
        } = engine::parse_flags(program.engine, &start.argv[program.args..]);
        launch.flags = flags;
        launch.opaque = opaque;
        launch.read_options_files(start);
        launch.take_model(&program, positional);
        launch.settle();
        Some(launch)
    }

    /// Sets an environment variable of the server.
    pub fn set_env(&mut self, name: &str, value: Text, source: Source) {
        self.environment.insert(
            name.to_owned(),
            FlagValue {
                value,
                spelled: name.to_owned(),
                source,
                via: Via::Environment,
            },
        );
    }

    /// Assignments in front of the program, of `env`, and of a container's `-e`.
    fn read_wrapper(&mut self, words: &[Arg]) {
        for (i, word) in words.iter().enumerate() {
            let Some((name, value)) = word.text.split_once('=') else {
                continue;
            };
            let Some(name) = name.as_known() else { continue };
            let prev = i.checked_sub(1).and_then(|p| words[p].text.as_known()).unwrap_or("");
            let free = words[..i].iter().all(|w| {
                let known = w.text.known_prefix();
                engine::is_assignment_word(known) || matches!(known.rsplit('/').next(), Some("env" | "exec" | "nohup"))
            });
            if (free || matches!(prev, "-e" | "--env")) && engine::is_assignment_word(&format!("{name}=")) {
                self.set_env(name, value, word.source.clone());
            }
        }
    }

    fn read_options_files(&mut self, start: &Start<'_>) {
        for name in engine::table(self.engine).option_files {
            let Some(said) = self.flags.get(name).cloned() else {
                continue;
            };
            let path = said.value.to_string();
            let Some(file) = (start.options)(&path) else {
                self.opaque.push(Arg::new(
                    Text::unknown(format!("contents of {path}")),
                    said.source.clone(),
                ));
                continue;
            };
            match yaml::parse_text(&file.contents, file.first_line) {
                Ok(tree) => self.add_options(&tree, &file.file),
                Err(error) => {
                    self.notes.push(format!("options file {path} cannot be read: {error}"));
                    self.opaque.push(Arg::new(
                        Text::unknown(format!("contents of {path}")),
                        said.source.clone(),
                    ));
                }
            }
        }
    }

    /// Adds options of a file. Words of the command line win over the file where both say a flag.
    pub fn add_options(&mut self, tree: &Tree, file: &str) {
        let mut from_file = Flags::default();
        engine::parse_options_tree(self.engine, tree, file, Via::OptionsFile, &mut from_file);
        let said = std::mem::take(&mut self.flags);
        for (name, values) in from_file.iter().chain(said.iter()) {
            for value in values {
                self.flags.push(name, value.clone());
            }
        }
    }

    fn take_model(&mut self, program: &Program, positional: Vec<Arg>) {
        let mut rest = positional;
        if program.positional_model
            && !self.flags.mentions("model")
            && !self.flags.mentions("model-path")
            && !rest.is_empty()
        {
            let model = rest.remove(0);
            self.flags.push(
                "model",
                FlagValue {
                    value: model.text,
                    spelled: "model".into(),
                    source: model.source,
                    via: Via::CommandLine,
                },
            );
        }
        self.positional = rest;
    }

    /// Derives the named properties from flags and environment. Call again after flags were changed.
    pub fn settle(&mut self) {
        for (name, flag) in engine::table(self.engine).environment {
            if let Some(value) = self.environment.get(*name)
                && !self.flags.mentions(flag)
            {
                self.flags.push(flag, value.clone());
            }
        }
        self.model = facts::text_of(self, &["model-path", "model"], None);
        self.served_names = self
            .flags
            .all("served-model-name")
            .iter()
            .map(|v| v.value.clone())
            .collect();
        self.role = facts::role(self);
        self.parallel = facts::parallel(self);
        self.quantisation = facts::quantisation(self);
        self.kv_cache_dtype = facts::text_of(self, &["kv-cache-dtype", "kv-cache-config.dtype"], Some("auto"));
        self.attention_backend = facts::attention_backend(self);
        self.moe_backend = facts::moe_backend(self);
        self.spec = facts::spec(self);
        self.draft_model = self.spec.as_ref().map_or(Fact::Absent, |s| s.draft_model.clone());
    }

    /// The names of everything unknown that this launch depends on, with the flag or property that does.
    pub fn unknowns(&self) -> BTreeMap<String, Vec<String>> {
        let mut out: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in self.flags.iter() {
            if let Some(value) = values.last() {
                for unknown in value.value.unknowns() {
                    out.entry(unknown).or_default().push(name.to_owned());
                }
            }
        }
        for (name, value) in &self.environment {
            for unknown in value.value.unknowns() {
                out.entry(unknown).or_default().push(format!("${name}"));
            }
        }
        for word in &self.opaque {
            for unknown in word.text.unknowns() {
                out.entry(unknown).or_default().push("(any flag)".into());
            }
        }
        out
    }
}
