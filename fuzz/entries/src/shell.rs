//! Scripts: parsed, scanned, compared with a second grammar, and evaluated.

pub(crate) fn run(data: &[u8]) {
    countersign_shell::fuzz_entry(data);
}
