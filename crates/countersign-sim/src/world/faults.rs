//! Faults to inject: into chosen API calls, into webhooks, or at random from a seed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::spell::{OneOrMany, Span};
use super::timeline::Step;

/// One fault. `on` says where, `calls` which of the matching calls, and the rest what happens.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FaultSpec {
    /// `METHOD /path` with `*` for one segment and `**` for the rest, such as `GET /repos/*/*/pulls/*/files`; `* /**` is every
    /// call. `webhook` or `webhook <event>` for deliveries.
    pub on: String,
    /// Which matching calls, counted from 1; all when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<OneOrMany<u64>>,
    /// Only from this call on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// At most so many times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u64>,
    /// The chance, 0 to 1, drawn from `seed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chance: Option<f64>,
    /// The seed of `chance`.
    pub seed: u64,
    /// Wait this long first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<Span>,
    /// Answer with this status instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The body of that answer; a fitting message when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Headers of that answer, `name: value`.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub headers: std::collections::BTreeMap<String, String>,
    /// Answer with GitHub's primary rate limit, or its secondary one with or without `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<LimitFault>,
    /// `Retry-After` in seconds, or the seconds until the reset, for `limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u64>,
    /// Carry the call out before the fault shows: a write is accepted, and the answer is the fault.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub applied: bool,
    /// Close the connection without an answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub drop: bool,
    /// Announce the full length and close the connection after so many bytes of the body.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncate: Option<u64>,
    /// Cut the body after so many bytes, with a matching length: JSON that ends too early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<u64>,
    /// Webhooks: deliver it so many times in all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<u64>,
    /// Webhooks: hold it back until so many later ones were delivered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<u64>,
    /// Webhooks: never sent, and never shown in the list of deliveries.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unrecorded: bool,
    /// Webhooks: sign it wrongly.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bad_signature: bool,
    /// A step that happens just before the call is answered, such as a push that moves the head.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Box<Step>>,
    /// A step that happens just after the call was answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Box<Step>>,
}

/// Which of GitHub's limits is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LimitFault {
    /// 403 with `x-ratelimit-remaining: 0` and a reset time.
    Primary,
    /// 403 with `Retry-After`.
    Secondary,
    /// 429 with `Retry-After`.
    TooMany,
    /// 403 with the secondary limit's text and no header that says how long.
    Bare,
}
