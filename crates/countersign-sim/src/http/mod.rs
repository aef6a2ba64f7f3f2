//! HTTP: the servers, requests and answers, credentials, limits, faults, and a small client.

pub(crate) mod auth;
pub mod client;
pub(crate) mod faults;
pub(crate) mod limits;
pub(crate) mod message;
pub(crate) mod serve;
pub(crate) mod storage;
