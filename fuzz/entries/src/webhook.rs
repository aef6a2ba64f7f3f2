//! Payloads of webhooks: the first byte says of which event.

use countersign_github::webhook;

const EVENTS: &[&str] = &[
    "issue_comment",
    "pull_request_review",
    "pull_request_review_comment",
    "pull_request",
    "workflow_run",
    "status",
    "check_run",
    "installation",
    "some_future_event",
];

pub(crate) fn run(data: &[u8]) {
    let Some((first, body)) = data.split_first() else {
        return;
    };
    let event = EVENTS[usize::from(*first) % EVENTS.len()];
    if let Err(error) = webhook::parse(event, body) {
        // What is answered to whoever sent it: short, and without the body.
        let shown = error.to_string();
        assert!(shown.len() < 1_000, "{} bytes of refusal", shown.len());
    }
}
