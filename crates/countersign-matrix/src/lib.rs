//! Master configs and the expansion into benchmark points, lanes and curves. Pure.
