//! From an answer that is no success to a typed error.

use chrono::{DateTime, Utc};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;

use super::limits::limited;
use crate::error::GitHubError;

#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    errors: Option<serde_json::Value>,
}

/// GitHub's message, on one line and bounded.
fn message(body: &[u8]) -> String {
    let refusal: Refusal = serde_json::from_slice(body).unwrap_or_default();
    let mut text = refusal.message.unwrap_or_default();
    if let Some(first) = refusal.errors.as_ref().and_then(|errors| errors.as_array()?.first()) {
        let more = first
            .as_str()
            .or_else(|| first.get("message").and_then(serde_json::Value::as_str))
            .or_else(|| first.get("code").and_then(serde_json::Value::as_str));
        if let Some(more) = more {
            text = format!("{text}: {more}");
        }
    }
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(300)
        .collect()
}

/// The error of an answer.
pub(crate) fn refuse(
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    what: &str,
    now: DateTime<Utc>,
) -> GitHubError {
    let what = what.to_owned();
    let message = message(body);
    if let Some(until) = limited(status.as_u16(), headers, &message, now) {
        return GitHubError::RateLimited { until };
    }
    match status.as_u16() {
        401 => GitHubError::Unauthorized { what, message },
        403 | 451 => GitHubError::Forbidden {
            resource: what,
            message,
        },
        404 => GitHubError::NotFound { what },
        410 => GitHubError::Gone { what },
        // A request that took GitHub too long, or that came too early.
        408 | 425 | 500..=599 => GitHubError::Transient {
            status: status.as_u16(),
            what,
            message,
        },
        300..=399 => GitHubError::Unprocessable {
            what,
            message: "it is answered with a redirect that is not followed".into(),
        },
        code => GitHubError::Unprocessable {
            what,
            message: format!("{code} {message}").trim_end().to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_and_name_the_cause() {
        let now = DateTime::from_timestamp(0, 0).unwrap();
        let error = |status: u16, body: &str| {
            refuse(
                StatusCode::from_u16(status).unwrap(),
                &HeaderMap::new(),
                body.as_bytes(),
                "the thing",
                now,
            )
        };
        assert_eq!(
            error(
                422,
                r#"{"message":"Validation Failed","errors":[{"code":"custom","message":"body is too\nlong"}]}"#
            )
            .to_string(),
            "GitHub refuses the thing: 422 Validation Failed: body is too long"
        );
        assert_eq!(error(502, "<html>").to_string(), "GitHub answered 502 for the thing");
        assert_eq!(
            error(404, "").to_string(),
            "the thing is not on GitHub, or the App may not see it"
        );
        assert!(matches!(
            error(403, r#"{"message":"Resource not accessible by integration"}"#),
            GitHubError::Forbidden { .. }
        ));
        assert!(matches!(error(410, ""), GitHubError::Gone { .. }));
        assert!(matches!(error(301, ""), GitHubError::Unprocessable { .. }));
    }
}
