//! GitHub's limits as they are known from its answers, one set an installation, and what calls cost.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use metrics::{counter, gauge};

/// What a piece of work cost so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) calls: AtomicU64,
    pub(crate) not_modified: AtomicU64,
    pub(crate) downloads: AtomicU64,
}

/// How long to stay away after a secondary limit that does not say how long: GitHub asks for a minute at least.
const UNSAID: TimeDelta = TimeDelta::seconds(60);

/// The limits of one installation, or of the App itself.
#[derive(Debug)]
pub(crate) struct Budget {
    /// For metrics: the installation's id, or `app`.
    pub(crate) name: String,
    blocked_until: AtomicI64,
}

impl Budget {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            blocked_until: AtomicI64::new(0),
        }
    }

    /// Until when calls would only be refused.
    pub(crate) fn blocked(&self, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let until = DateTime::from_timestamp(self.blocked_until.load(Ordering::Relaxed), 0)?;
        (until > now).then_some(until)
    }

    pub(crate) fn block(&self, until: DateTime<Utc>) {
        // Rounded up: a call in the same second would still be refused.
        let second = until.timestamp() + i64::from(until.timestamp_subsec_nanos() > 0);
        self.blocked_until.fetch_max(second, Ordering::Relaxed);
    }

    /// Counts an answer.
    pub(crate) fn note(&self, status: u16, headers: &HeaderMap, now: DateTime<Utc>) {
        let class = match status {
            304 => "not_modified",
            200..=399 => "ok",
            403 | 429 => "refused",
            400..=499 => "client_error",
            _ => "server_error",
        };
        counter!("countersign_github_calls_total", "installation" => self.name.clone(), "answer" => class).increment(1);
        let core = text(headers, "x-ratelimit-resource").is_none_or(|resource| resource == "core");
        let Some(remaining) = number(headers, "x-ratelimit-remaining").filter(|_| core) else {
            return;
        };
        #[expect(clippy::cast_precision_loss, reason = "a gauge")]
        gauge!("countersign_github_rate_remaining", "installation" => self.name.clone()).set(remaining as f64);
        if remaining == 0
            && let Some(reset) = reset(headers)
            && reset > now
        {
            self.block(reset);
        }
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}

fn number(headers: &HeaderMap, name: &str) -> Option<i64> {
    text(headers, name)?.trim().parse().ok()
}

fn reset(headers: &HeaderMap) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp(number(headers, "x-ratelimit-reset")?, 0)
}

/// When calls are allowed again, if the answer is a refusal because of a limit: `Retry-After`, else an empty primary
/// limit's reset, else the words of a secondary limit, of which some answers carry no header at all.
pub(crate) fn limited(status: u16, headers: &HeaderMap, message: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    if !matches!(status, 403 | 429 | 503) {
        return None;
    }
    if let Some(wait) = text(headers, "retry-after") {
        let until = match wait.trim().parse::<i64>() {
            Ok(seconds) => Some(now + TimeDelta::seconds(seconds.clamp(0, 86_400))),
            Err(_) => DateTime::parse_from_rfc2822(wait)
                .ok()
                .map(|date| date.with_timezone(&Utc)),
        };
        return Some(until.unwrap_or(now + UNSAID));
    }
    if status == 503 {
        return None;
    }
    if number(headers, "x-ratelimit-remaining") == Some(0) {
        // A reset in the past is a clock that differs from ours.
        return Some(reset(headers).filter(|reset| *reset > now).unwrap_or(now + UNSAID));
    }
    let message = message.to_ascii_lowercase();
    let says = message.contains("rate limit") || message.contains("abuse detection");
    (status == 429 || says).then_some(now + UNSAID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(list: &[(&'static str, &str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect()
    }

    #[test]
    fn refusals_for_a_limit_are_told_from_missing_permissions() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let after = |seconds| Some(now + TimeDelta::seconds(seconds));
        let cases: [(u16, &[(&'static str, &str)], &str, Option<DateTime<Utc>>); 12] = [
            (403, &[("retry-after", "7")], "", after(7)),
            (429, &[("retry-after", "7")], "", after(7)),
            (503, &[("retry-after", "7")], "", after(7)),
            (503, &[], "", None),
            (429, &[], "", after(60)),
            (
                403,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000300")],
                "x",
                after(300),
            ),
            (
                403,
                &[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "5")],
                "x",
                after(60),
            ),
            (
                403,
                &[("x-ratelimit-remaining", "12")],
                "You have exceeded a secondary rate limit.",
                after(60),
            ),
            (403, &[], "You have triggered an abuse detection mechanism.", after(60)),
            (
                403,
                &[("x-ratelimit-remaining", "12")],
                "Resource not accessible by integration",
                None,
            ),
            (404, &[("retry-after", "7")], "rate limit", None),
            (403, &[("retry-after", "soon")], "", after(60)),
        ];
        for (status, list, message, wanted) in cases {
            assert_eq!(
                limited(status, &headers(list), message, now),
                wanted,
                "{status} {list:?} {message}"
            );
        }
    }

    #[test]
    fn an_empty_budget_is_not_called_before_its_reset() {
        let now = DateTime::from_timestamp(1_000_000, 0).unwrap();
        let budget = Budget::new("1".into());
        assert_eq!(budget.blocked(now), None);
        budget.note(
            200,
            &headers(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1000060")]),
            now,
        );
        assert_eq!(budget.blocked(now), DateTime::from_timestamp(1_000_060, 0));
        assert_eq!(budget.blocked(now + TimeDelta::seconds(60)), None);
        let other = Budget::new("2".into());
        other.note(
            200,
            &headers(&[
                ("x-ratelimit-remaining", "0"),
                ("x-ratelimit-reset", "1000060"),
                ("x-ratelimit-resource", "graphql"),
            ]),
            now,
        );
        assert_eq!(other.blocked(now), None);
    }
}
