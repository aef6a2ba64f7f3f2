//! See `countersign_fuzz_entries`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| countersign_fuzz_entries::entry("matrix")(data));
