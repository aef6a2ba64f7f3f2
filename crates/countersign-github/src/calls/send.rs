//! The one layer that repeats calls.
//!
//! Only what does the same when done twice is repeated: a write of which the answer was lost may have been done. Waits are
//! jittered, few and short; a longer one is returned as [`GitHubError::RateLimited`], for a job must not sleep while it holds
//! its place, and a token may expire meanwhile. A refused token is renewed once, for any call: a call that was refused with
//! 401 was not done.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ETAG, LINK, LOCATION};
use http::{HeaderValue, StatusCode};
use url::Url;

use super::call::{Answer, Call, JSON};
use super::etag::{Etags, Kept};
use super::limits::Tally;
use super::refuse::refuse;
use crate::client::hub::{Hub, Who};
use crate::error::GitHubError;

/// Repeats after the first try.
const REPEATS: u32 = 3;
/// Redirects on the API's own server: renamed and moved repositories.
const REDIRECTS: usize = 3;

impl Hub {
    /// Sends a call until it is answered with a success, or with something that repeating does not change.
    pub(crate) async fn send(&self, who: &Who, call: &Call, tally: &Tally) -> Result<Answer, GitHubError> {
        let url = self.transport.url(call);
        self.send_to(who, call, &url, tally).await
    }

    pub(crate) async fn send_to(
        &self,
        who: &Who,
        call: &Call,
        url: &str,
        tally: &Tally,
    ) -> Result<Answer, GitHubError> {
        let mut waited = Duration::ZERO;
        let mut repeats = 0;
        let mut renewed = false;
        loop {
            if let Some(until) = who.budget(self).blocked(self.config.time.now()) {
                return Err(GitHubError::RateLimited { until });
            }
            let authorization = self.authorization(who).await?;
            let error = match self.once(who, call, url, &authorization, tally).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            if matches!(error, GitHubError::Unauthorized { .. }) && !renewed {
                self.refused(who, &authorization).await;
                renewed = true;
                continue;
            }
            let Some(wait) = self.wait_for(&error, call, repeats) else {
                return Err(error);
            };
            if repeats >= REPEATS || waited + wait > self.config.timeouts.patience {
                return Err(error);
            }
            tracing::debug!(what = call.what, %error, wait_ms = wait.as_millis(), "calling again");
            metrics::counter!("countersign_github_repeats_total").increment(1);
            self.config.time.pause(wait).await;
            waited += wait;
            repeats += 1;
        }
    }

    /// How long to wait before the call is repeated; `None` = it is not.
    fn wait_for(&self, error: &GitHubError, call: &Call, repeats: u32) -> Option<Duration> {
        if !call.repeatable {
            return None;
        }
        match error {
            GitHubError::RateLimited { until } => (*until - self.config.time.now()).to_std().ok(),
            // A server that says "not implemented" will say so again.
            GitHubError::Transient { status: 501, .. } => None,
            GitHubError::Transient { .. } | GitHubError::Network { .. } => Some(backoff(repeats)),
            _ => None,
        }
    }

    async fn once(
        &self,
        who: &Who,
        call: &Call,
        url: &str,
        authorization: &HeaderValue,
        tally: &Tally,
    ) -> Result<Answer, GitHubError> {
        let budget = who.budget(self);
        let _place = who.place().await;
        let keeps = call.method == http::Method::GET && !call.passing && !call.locate;
        let mut url = url.to_owned();
        for _ in 0..=REDIRECTS {
            let key = Etags::key(&budget.name, call.accept, &url);
            let kept = keeps.then(|| self.etags.get(&key)).flatten();
            let request = self.transport.request(
                call,
                &url,
                Some(authorization),
                kept.as_ref().map(|kept| kept.etag.as_str()),
            )?;
            let cap = call.cap.unwrap_or(self.config.limits.json_bytes);
            let reply = self
                .transport
                .exchange(request, &call.what, cap, self.config.timeouts.call)
                .await?;
            let now = self.config.time.now();
            budget.note(reply.status.as_u16(), &reply.headers, now);
            let text = |name| reply.headers.get(name).and_then(|value| value.to_str().ok());
            if reply.status == StatusCode::NOT_MODIFIED
                && let Some(kept) = kept
            {
                tally.not_modified.fetch_add(1, Ordering::Relaxed);
                return Ok(Answer {
                    status: kept.status,
                    link: kept.link.clone(),
                    body: kept.body.clone(),
                });
            }
            tally.calls.fetch_add(1, Ordering::Relaxed);
            if reply.status.is_redirection() && call.method == http::Method::GET {
                let to = self.target(&url, text(LOCATION), &call.what)?;
                if call.locate && !self.is_moved(reply.status, &to) {
                    return Ok(Answer {
                        status: reply.status.as_u16(),
                        link: Some(to.to_string()),
                        body: Bytes::new(),
                    });
                }
                if !self.transport.is_ours(&to) {
                    return Err(elsewhere(&call.what));
                }
                url = to.to_string();
                continue;
            }
            if !reply.status.is_success() {
                let error = refuse(reply.status, &reply.headers, &reply.body, &call.what, now);
                if let GitHubError::RateLimited { until } = &error
                    && (*until - now).to_std().unwrap_or_default() > self.config.timeouts.patience
                {
                    budget.block(*until);
                }
                return Err(error);
            }
            if !is_whole(call, reply.status, &reply.body) {
                return Err(GitHubError::Network {
                    what: call.what.clone(),
                    why: "its answer was cut off on the way".into(),
                });
            }
            let link = text(LINK).map(str::to_owned);
            let status = reply.status.as_u16();
            if keeps && let Some(etag) = text(ETAG) {
                let kept = Kept {
                    etag: etag.to_owned(),
                    link: link.clone(),
                    status,
                    body: reply.body.clone(),
                };
                self.etags.keep(key, kept);
            }
            return Ok(Answer {
                status,
                link,
                body: reply.body,
            });
        }
        Err(GitHubError::Unprocessable {
            what: call.what.clone(),
            message: "it is redirected again and again".into(),
        })
    }

    /// Where an archive lies.
    pub(crate) async fn send_for_location(&self, who: &Who, call: &Call, tally: &Tally) -> Result<String, GitHubError> {
        let call = Call {
            locate: true,
            ..call.clone()
        };
        let answer = self.send(who, &call, tally).await?;
        // Some servers answer with the archive itself; it is not expected, and would not be bounded.
        answer
            .link
            .filter(|_| (300..400).contains(&answer.status))
            .ok_or_else(|| GitHubError::Unprocessable {
                what: call.what.clone(),
                message: "GitHub did not say where it lies".into(),
            })
    }

    fn target(&self, from: &str, location: Option<&str>, what: &str) -> Result<Url, GitHubError> {
        location
            .and_then(|to| Url::parse(from).ok()?.join(to).ok())
            .ok_or_else(|| GitHubError::Unprocessable {
                what: what.to_owned(),
                message: "it is redirected to nowhere".into(),
            })
    }

    /// Whether a redirect says that the repository was renamed or moved, and not where an archive lies.
    fn is_moved(&self, status: StatusCode, to: &Url) -> bool {
        matches!(status.as_u16(), 301 | 307 | 308) && self.transport.is_ours(to)
    }
}

fn elsewhere(what: &str) -> GitHubError {
    GitHubError::Unprocessable {
        what: what.to_owned(),
        message: "it is redirected to another server, which is not followed: the token must not leave".into(),
    }
}

/// Something on the way may cut an answer without a trace in its headers. The next one will be whole; one of another form than expected
/// will not change.
fn is_whole(call: &Call, status: StatusCode, body: &[u8]) -> bool {
    let nothing = body.is_empty() && (call.method != http::Method::GET || status == StatusCode::NO_CONTENT);
    call.accept != JSON || nothing || serde_json::from_slice::<serde::de::IgnoredAny>(body).is_ok()
}

/// 100, 200, 400 ms, of which between half and all is waited: servers that failed together are not called together.
fn backoff(repeats: u32) -> Duration {
    static TURN: AtomicU64 = AtomicU64::new(0x9E37_79B9_7F4A_7C15);
    let full = 100_u64 << repeats.min(5);
    // A step of the SplitMix64 generator: no secret, only spread.
    let mut z = TURN.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed) ^ u64::from(std::process::id());
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    Duration::from_millis(full / 2 + (z ^ (z >> 31)) % (full / 2 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_differ() {
        let waits: Vec<_> = (0..200).map(|n| backoff(n % 3).as_millis()).collect();
        for (n, wait) in waits.iter().enumerate() {
            let full = 100 << (n % 3);
            assert!((full / 2..=full).contains(wait), "{wait}");
        }
        assert!(waits.iter().collect::<std::collections::BTreeSet<_>>().len() > 30);
    }
}
