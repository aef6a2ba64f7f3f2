//! Engine front ends: from the words of a started command to one normalised [`Launch`](crate::Launch).
//!
//! What an engine's flags are called is general knowledge about the engine, so it is kept as tables here; names that
//! belong to one benchmark repository never are (domain guide 9.1 lists the forms that occur).

mod detect;
mod parse;
mod tables;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use detect::{Program, SHELL_OPAQUE, detect};
pub(crate) use detect::{is_assignment as is_assignment_word, is_telling};
pub use parse::{Parsed, parse_flags, parse_options_tree};
pub use tables::{Alias, Table, flag_environment, normalise, table};

/// A serving engine, or what stands in front of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Engine {
    /// vLLM.
    Vllm,
    /// SGLang.
    Sglang,
    /// TensorRT-LLM.
    TensorrtLlm,
    /// ATOM.
    Atom,
    /// A router or frontend that runs no model.
    Router,
}

impl Engine {
    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Engine::Vllm => "vllm",
            Engine::Sglang => "sglang",
            Engine::TensorrtLlm => "tensorrt-llm",
            Engine::Atom => "atom",
            Engine::Router => "router",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a server is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Prefill and decode in one server.
    Aggregated,
    /// The prefill side of a disaggregated deployment.
    Prefill,
    /// The decode side of a disaggregated deployment.
    Decode,
    /// A request router.
    Router,
    /// An API frontend without a model.
    Frontend,
}

impl Role {
    /// The name used in reports and as a key in recipes.
    pub fn name(self) -> &'static str {
        match self {
            Role::Aggregated => "aggregated",
            Role::Prefill => "prefill",
            Role::Decode => "decode",
            Role::Router => "router",
            Role::Frontend => "frontend",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
