//! Every bound of the reader in one place: hostile scripts end in a reported reason, never in a hang,
//! an overflow or an abort.

use serde::{Deserialize, Serialize};

/// Bounds of parsing and evaluation. All counts, no clock: the same input always ends at the same place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Bytes of one script; a larger file is not parsed and is reported (product page 11).
    pub file_bytes: usize,
    /// Nesting of commands and expansions in one file.
    pub nesting: usize,
    /// Progress callbacks of the second grammar before it is cancelled.
    pub grammar_callbacks: usize,
    /// Statements and words evaluated in one evaluation.
    pub steps: usize,
    /// Steps of one statement of the script for several points together, for each of them. Alone hardly any takes as many:
    /// what takes more together grows with what differs between the points, and going through it for each is less work.
    pub steps_together: usize,
    /// Nested function calls, subshells, command substitutions and sourced files together.
    pub call_depth: usize,
    /// How often the same function may be active at once.
    pub recursion: usize,
    /// Worlds (consistent assignments of the unknowns) kept apart at once.
    pub worlds: usize,
    /// Ways out of one loop kept apart.
    pub loop_exits: usize,
    /// Iterations of a loop whose condition is known.
    pub loop_iterations: usize,
    /// Iterations of a loop in which something unknown was decided.
    pub symbolic_iterations: usize,
    /// Bytes of one value.
    pub value_bytes: usize,
    /// Words of one command or elements of one array.
    pub words: usize,
    /// Commands recorded.
    pub commands: usize,
    /// Files of the tree read in one evaluation.
    pub files: usize,
    /// Bytes of all values held or recorded, counted as they are made.
    pub total_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            file_bytes: 256 * 1024,
            nesting: 96,
            grammar_callbacks: 20_000,
            steps: 400_000,
            steps_together: 20_000,
            call_depth: 40,
            recursion: 3,
            worlds: 64,
            loop_exits: 4,
            loop_iterations: 4096,
            symbolic_iterations: 4,
            value_bytes: 64 * 1024,
            words: 8192,
            commands: 20_000,
            files: 64,
            total_bytes: 64 * 1024 * 1024,
        }
    }
}
