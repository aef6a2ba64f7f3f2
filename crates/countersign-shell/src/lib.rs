//! A bounded symbolic evaluator for bash that executes nothing. Pure.
//!
//! A launch script is read for one environment and gives the commands it would start, in order, with every word's
//! value and place. What cannot be known stays symbolic and says which unknown it depends on (product page 6).
//! Every input is hostile: sizes, depths and steps are bounded by [`Limits`], and nothing is ever run.

mod arith;
mod cache;
mod eval;
#[cfg(feature = "grammar")]
mod grammar;
mod join;
mod limits;
mod output;
mod pattern;
mod pmap;
mod scan;
mod syntax;
mod text;
mod uses;
mod value;
mod world;
mod wrappers;

pub use cache::ScriptCache;
pub use eval::{Answer, Answers, Environment, Files, Rest, Setup, evaluate, evaluate_with};
#[cfg(feature = "grammar")]
pub use grammar::{Disagreement, GrammarReport, check_grammar};
pub use limits::Limits;
pub use output::{Call, Command, CommandKind, Diagnostic, End, Evaluation, Literal, Note, Redirect, Word};
pub use scan::{RawCommand, RawHereDoc, RawRedirect, RawWord, Scanned, scan, scan_bounded, scan_script};
pub use syntax::{Issue, IssueKind, Pos, RedirectOp, Script};
pub use value::{Piece, PieceKind, Shape, Span, Unknown, Value, Why};
pub use world::{Var, VarValue, WrittenFile};
pub use wrappers::{Unwrapped, unwrap_wrappers};

/// Entry for fuzzing: any bytes as a script, parsed, scanned and evaluated.
/// Must return for every input.
#[doc(hidden)]
pub fn fuzz_entry(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let limits = Limits {
        steps: 20_000,
        total_bytes: 4 << 20,
        ..Limits::default()
    };
    let _ = scan("fuzz.sh", &text, &limits);
    let files: std::collections::BTreeMap<String, std::sync::Arc<str>> =
        [("fuzz.sh".to_string(), std::sync::Arc::from(&*text))].into();
    for rest in [Rest::Unset, Rest::Unknown] {
        let environment = Environment {
            rest,
            ..Environment::default()
        };
        let setup = Setup {
            script: "fuzz.sh".into(),
            roots: vec!["/w".into()],
            environment,
            limits,
            ..Setup::default()
        };
        let evaluation = evaluate(&files, &ScriptCache::new(limits), &setup);
        for command in &evaluation.commands {
            let _ = (
                command.display(),
                command.environment(),
                unwrap_wrappers(command).argv.len(),
            );
        }
    }
}
