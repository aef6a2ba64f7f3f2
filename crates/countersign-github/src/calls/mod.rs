//! Calls: one way for everything that is sent to GitHub.
//!
//! octocrab carries the requests; the rest of its stack is left out on purpose. Its redirects go to any
//! host, its log holds signed addresses, its retries repeat writes, and it joins absolute addresses to the base's path. What
//! stands here instead: [`transport`] sends one request, [`send`] decides about repeating it, [`etag`] remembers answers,
//! [`pages`] reads lists, [`download`] fetches archives.

pub(crate) mod at_once;
pub(crate) mod call;
pub(crate) mod download;
pub(crate) mod etag;
pub(crate) mod graphql;
pub(crate) mod limits;
pub(crate) mod pages;
pub(crate) mod refuse;
pub(crate) mod send;
pub(crate) mod transport;

pub(crate) use at_once::at_once;
pub(crate) use call::{Answer, Call, join};
pub(crate) use limits::Tally;
