//! GitHub: webhooks in, evidence gathered, verdicts published. The only crate that knows octocrab.

pub mod client;
pub mod config;

mod calls;
pub mod error;
pub mod exercise;
pub mod gather;
pub mod info;
pub mod publish;
mod store;
pub mod webhook;
mod wire;

pub use client::{App, RepoClient};
pub use config::{AppConfig, Limits, Time, Timeouts};
pub use error::{GitHubError, Retry};
pub use gather::{GatherError, GatherRequest, GatherStats, Gathered, gather};
pub use info::{FailedDelivery, Grants, Identity, PullInfo, Skew, ThreadItem};
