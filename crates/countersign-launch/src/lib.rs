//! Which server command each benchmark point would start, derived from text alone. Pure.
//!
//! Three kinds of text are read: commands (from the shell evaluator), recipes, and upstream pages. All become
//! [`Launch`]es with normalised flag names, so that checks and comparisons need not know how a flag was spelled.
//! Nothing is executed and nothing is opened; every input is hostile and bounded.

mod client;
pub mod compare;
mod engine;
mod facts;
mod flags;
mod fuzz;
mod launch;
pub mod point;
pub mod recipe;
pub mod render;
mod shwords;
pub mod summary;
mod tree;
pub mod upstream;
mod value;
mod yaml;

pub use client::{ChatTemplate, ClientCall, ClientRules, ClientTool};
pub use compare::compare;
pub use engine::{
    Alias, Engine, Parsed, Program, Role, SHELL_OPAQUE, Table, detect, flag_environment, normalise, parse_flags,
    parse_options_tree, table,
};
pub use flags::{FlagValue, Flags, Via};
#[doc(hidden)]
pub use fuzz::{fuzz_page, fuzz_recipe};
pub use launch::{Acceptance, Launch, OptionsFile, Parallel, Spec, Start};
pub use render::diff_launches;
pub use tree::{Node, Tree};
pub use value::{Arg, Fact, Piece, Source, Text};
