//! Bounded, span-keeping YAML reading that agrees with the benchmark repository's own reader. Pure.
//!
//! The repository reads its files with PyYAML's `safe_load`, which follows YAML 1.1. This crate drives the event
//! parser of the workspace's YAML crate (one place, options set once) and composes the tree itself, so that every
//! scalar is resolved by PyYAML's own rules (`1_998_848` is an integer, `n` a string, `yes` a boolean, `1e5` a
//! string, `010` is eight, `22:22` is sexagesimal), merge keys are flattened in PyYAML's order, and of two equal
//! keys the last one wins. What PyYAML only swallows is kept: each duplicate key is reported with its position.
//!
//! Every node and every key has a [`Span`]. Input is hostile: bytes, nodes, depth and the size of what aliases copy
//! are bounded by [`Limits`].
//!
//! Knowingly stricter than PyYAML, all refused with position and remedy: recursive aliases, `!!set`, `!!omap`,
//! `!!pairs` and `!!binary`, keys longer than the parser's limit, and whatever [`Limits`] forbids.

mod compose;
mod error;
mod mapping;
mod node;
mod pieces;
mod resolve;
mod serde_node;
mod source;
mod strict;

pub use compose::{parse, parse_all};
pub use error::{YamlError, YamlErrorKind};
pub use node::{Document, DuplicateKey, Entry, Map, Node, OpaqueKind, Segment, Span, Value};
pub use pieces::{Piece, Root, pieces};
pub use serde_node::{from_node, from_str};
pub use strict::{Problem, Strict};

/// The deepest nesting that is ever accepted, whatever [`Limits`] says: trees are walked recursively, so this is what
/// keeps a small thread stack safe.
pub const HARD_MAX_DEPTH: usize = 128;

/// Bounds on one text. Reaching one is a [`YamlError`], never an abort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Longest text, in bytes.
    pub max_bytes: usize,
    /// Most nodes in the tree, counting every copy that an alias makes.
    pub max_nodes: usize,
    /// Deepest nesting of sequences and mappings; values above [`HARD_MAX_DEPTH`] count as that.
    pub max_depth: usize,
    /// Most bytes of scalar text in the tree, counting every copy that an alias makes.
    pub max_scalar_bytes: usize,
}

impl Default for Limits {
    /// Generous for configuration files of a few hundred kilobytes, and far from what could hurt a server: 4 MiB of
    /// text, 250,000 nodes, 64 levels, 8 MiB of scalar text.
    fn default() -> Self {
        Self {
            max_bytes: 4 << 20,
            max_nodes: 250_000,
            max_depth: 64,
            max_scalar_bytes: 8 << 20,
        }
    }
}
