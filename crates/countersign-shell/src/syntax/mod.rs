//! From text to tree. The parser is a hand-written one with a nesting bound: it follows bash's own reading
//! (newlines end assignments, a redirection belongs to the command it stands in, several here-documents on a
//! line), never recurses without a bound and never aborts. `grammar` sets it against tree-sitter's grammar.

pub(crate) mod ast;
mod brace;
mod command;
mod compound;
mod cond;
mod param;
mod parser;
mod special;
mod word;

pub use ast::{Pos, RedirectOp};
pub use parser::{Issue, IssueKind, Script};
pub(crate) use word::{HOLE, HOLE_END};
