//! Which server command each benchmark point would start, derived from text alone. Pure.
