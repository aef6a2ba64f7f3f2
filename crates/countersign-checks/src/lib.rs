//! The checks, their registry, and the pure function that turns evidence into a verdict.
