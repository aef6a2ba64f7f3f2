//! Rate limits: the primary one in a window of calls, the secondary one by writes a minute and calls at once.

use std::collections::{BTreeMap, VecDeque};
use std::time::Instant;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::auth::Caller;
use super::message::Answer;
use crate::state::State;

/// What was used.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    windows: BTreeMap<String, Window>,
    writes: VecDeque<Instant>,
    pub(crate) under_way: u64,
}

#[derive(Debug, Clone, Copy)]
struct Window {
    used: u64,
    reset: DateTime<Utc>,
}

impl State {
    fn window(&mut self, caller: &Caller) -> (u64, Window) {
        let limit = if *caller == Caller::Anonymous {
            self.limits.core.min(60)
        } else {
            self.limits.core
        };
        let now = Utc::now();
        let length = self.limits.window.delta();
        let window = self.usage.windows.entry(caller.bucket()).or_insert(Window {
            used: 0,
            reset: now + length,
        });
        if window.reset <= now {
            *window = Window {
                used: 0,
                reset: now + length,
            };
        }
        (limit, *window)
    }

    /// The limit's answer where it is reached.
    pub(crate) fn limited(&mut self, caller: &Caller, write: bool) -> Option<Answer> {
        if self.limits.concurrent.is_some_and(|most| self.usage.under_way > most) {
            return Some(self.secondary(403, self.limits.retry_after));
        }
        if write && let Some(most) = self.limits.writes_per_minute {
            let now = Instant::now();
            while self
                .usage
                .writes
                .front()
                .is_some_and(|t| now.duration_since(*t).as_secs() >= 60)
            {
                self.usage.writes.pop_front();
            }
            if self.usage.writes.len() as u64 >= most {
                return Some(self.secondary(403, self.limits.retry_after));
            }
            self.usage.writes.push_back(now);
        }
        let (limit, window) = self.window(caller);
        (window.used >= limit).then(|| self.primary(window.reset))
    }

    /// GitHub's answer when the primary limit is reached.
    pub(crate) fn primary(&self, reset: DateTime<Utc>) -> Answer {
        let body = json!({
            "message": "API rate limit exceeded for installation. If you reach out to GitHub Support for help, please include the request ID.",
            "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api", "status": "403",
        });
        Answer::json(403, &body)
            .with("x-ratelimit-limit", Some(self.limits.core.to_string()))
            .with("x-ratelimit-remaining", Some("0".to_owned()))
            .with("x-ratelimit-used", Some(self.limits.core.to_string()))
            .with("x-ratelimit-reset", Some(reset.timestamp().to_string()))
            .with("x-ratelimit-resource", Some("core".to_owned()))
    }

    /// GitHub's answer when a secondary limit is reached.
    pub(crate) fn secondary(&self, status: u16, retry_after: Option<u64>) -> Answer {
        let body = json!({
            "message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
            "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits",
            "status": status.to_string(),
        });
        Answer::json(status, &body).with("retry-after", retry_after.map(|s| s.to_string()))
    }

    /// Counts a call and writes the limit's headers on its answer.
    pub(crate) fn count(&mut self, caller: &Caller, answer: &mut Answer, free: bool) {
        let (limit, _) = self.window(caller);
        if !free && let Some(window) = self.usage.windows.get_mut(&caller.bucket()) {
            window.used += 1;
        }
        let (_, window) = self.window(caller);
        if answer.headers.iter().any(|(n, _)| n == "x-ratelimit-limit") {
            return;
        }
        for (name, value) in [
            ("x-ratelimit-limit", limit.to_string()),
            ("x-ratelimit-remaining", limit.saturating_sub(window.used).to_string()),
            ("x-ratelimit-used", window.used.to_string()),
            ("x-ratelimit-reset", window.reset.timestamp().to_string()),
            ("x-ratelimit-resource", "core".to_owned()),
        ] {
            answer.headers.push((name.to_owned(), value));
        }
    }

    /// Limit, used, remaining and reset of a caller, as `/rate_limit` shows them.
    pub(crate) fn rate(&mut self, caller: &Caller) -> serde_json::Value {
        let (limit, window) = self.window(caller);
        json!({
            "limit": limit, "used": window.used, "remaining": limit.saturating_sub(window.used), "reset": window.reset.timestamp(),
        })
    }

    /// Leaves every caller so many calls in the present window.
    pub(crate) fn set_remaining(&mut self, remaining: u64) {
        let used = self.limits.core.saturating_sub(remaining);
        for window in self.usage.windows.values_mut() {
            window.used = used;
        }
    }
}
