//! Places in the scripts.

use serde::Serialize;

/// Where something is written: file (index into [`crate::Evaluation::files`]), line and byte column from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Span {
    /// Index of the file.
    pub file: u32,
    /// Line, from one; zero when the text was not written in any file (the environment given).
    pub line: u32,
    /// Byte column, from one.
    pub col: u32,
}

impl Span {
    /// The place as `line` only, for text that has none.
    pub const NOWHERE: Span = Span {
        file: 0,
        line: 0,
        col: 0,
    };
}
