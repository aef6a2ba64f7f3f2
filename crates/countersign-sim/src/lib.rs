//! World files and a simulated GitHub that serves them over HTTP.
