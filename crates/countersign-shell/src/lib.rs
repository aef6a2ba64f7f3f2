//! A bounded symbolic evaluator for bash that executes nothing. Pure.
