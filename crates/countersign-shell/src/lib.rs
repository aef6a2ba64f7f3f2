//! A bounded symbolic evaluator for bash that executes nothing. Pure.
//!
//! A launch script is read for one environment and gives the commands it would start, in order, with every word's
//! value and place. What cannot be known stays symbolic and says which unknown it depends on (product page 6).
//! Every input is hostile: sizes, depths and steps are bounded by [`Limits`], and nothing is ever run.

mod arith;
mod builder;
mod cache;
mod eval;
mod fuzz;
#[cfg(feature = "grammar")]
mod grammar;
mod join;
mod lanes;
mod limits;
mod output;
mod pattern;
mod pieces;
mod pmap;
mod scan;
mod span;
mod syntax;
mod text;
mod uses;
mod value;
mod world;
mod wrappers;

pub use cache::ScriptCache;
pub use eval::{Answer, Answers, Environment, Files, Rest, Setup, evaluate, evaluate_points, evaluate_with};
#[cfg(feature = "grammar")]
pub use grammar::{Disagreement, GrammarReport, check_grammar};
pub use lanes::{can_differ, in_lane};
pub use limits::Limits;
pub use output::{Call, Command, CommandKind, Diagnostic, End, Evaluation, Literal, Note, Redirect, Word};
pub use scan::{RawCommand, RawHereDoc, RawRedirect, RawWord, Scanned, scan, scan_bounded, scan_script};
pub use syntax::{Issue, IssueKind, Pos, RedirectOp, Script};
pub use value::{Piece, PieceKind, Shape, Span, Unknown, Value, Why};
pub use world::{Var, VarValue, WrittenFile};
pub use wrappers::{Unwrapped, unwrap_wrappers};

#[doc(hidden)]
pub use fuzz::fuzz_entry;
