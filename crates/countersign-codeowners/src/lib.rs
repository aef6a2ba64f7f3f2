//! CODEOWNERS parsing and matching with GitHub's semantics. Pure.
