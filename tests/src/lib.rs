//! End-to-end tests live under `tests/`; this library holds what they share.
