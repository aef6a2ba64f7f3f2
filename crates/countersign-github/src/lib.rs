//! GitHub: webhooks in, evidence gathered, verdicts published. The only crate that knows octocrab.

pub mod webhook;
