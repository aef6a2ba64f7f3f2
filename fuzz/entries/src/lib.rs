//! What each fuzz target does with its bytes. `cargo fuzz` drives these through `fuzz/fuzz_targets`, and the test `smoke`
//! drives them with the corpus and with inputs made from it.
//!
//! An entry panics exactly where something is wrong: a panic of the reader, or a property that does not hold. A new one is a
//! module here, a line in [`ENTRIES`], a file in `fuzz/fuzz_targets`, and a small seed in `fuzz/corpus/<name>`.

mod artifact;
mod changelog;
mod codeowners;
mod matrix;
mod page;
mod recipe;
mod shell;
mod signoff;
mod text;
mod webhook;
mod yaml;

/// An entry: takes any bytes, and returns.
pub type Entry = fn(&[u8]);

/// Name of the target and of its folder in the corpus → what it does.
pub const ENTRIES: &[(&str, Entry)] = &[
    ("artifact", artifact::run),
    ("changelog", changelog::run),
    ("codeowners", codeowners::run),
    ("matrix", matrix::run),
    ("page", page::run),
    ("recipe", recipe::run),
    ("shell", shell::run),
    ("signoff", signoff::run),
    ("text", text::run),
    ("webhook", webhook::run),
    ("yaml", yaml::run),
];

/// The entry of a name; none of that name does nothing.
#[must_use]
pub fn entry(name: &str) -> Entry {
    ENTRIES
        .iter()
        .find(|(known, _)| *known == name)
        .map_or(|_| {}, |(_, entry)| *entry)
}
