//! Facts that several checks need, derived from the evidence.

pub mod acts;
pub mod affected;
pub mod before;
pub mod gaps;
mod gathered;
pub mod isolation;
pub mod launches;
pub mod looked;
pub mod patterns;
pub mod points;
pub mod reuse;
pub mod runs;
pub mod scripts;
pub mod seen;
pub mod sorted;
pub mod sweep;
pub mod tally;
pub mod tree;
pub mod upstream;
pub mod words;

use countersign_core::Text;
use countersign_core::text::code;

/// A sentence in which back-ticks mark code, as other readers write them, as parts. What is marked stays plain content:
/// it is escaped when it is rendered.
#[must_use]
pub fn marked(sentence: &str) -> Text {
    let mut out = Text::default();
    for (index, piece) in sentence.split('`').enumerate() {
        if !piece.is_empty() {
            out = if index % 2 == 1 {
                out.with(code(piece))
            } else {
                out.with(piece)
            };
        }
    }
    out
}
