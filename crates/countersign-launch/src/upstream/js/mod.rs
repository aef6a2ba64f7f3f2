//! A reader for the JavaScript of documentation snippets: a bounded evaluator, and what it is used for.

mod ast;
mod builtins;
mod eval;
mod flow;
mod value;
mod widget;

pub(crate) use value::{MARK, MARK_END};
pub(crate) use widget::{is_hardware_key, read_snippet};
