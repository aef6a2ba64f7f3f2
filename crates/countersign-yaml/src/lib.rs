//! Bounded, span-keeping YAML reading that agrees with the benchmark repository's own reader. Pure.
