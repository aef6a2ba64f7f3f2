//! Named points of the way at which a test can end the process, as kill -9 would (`docs/reliability.md`).
//!
//! Without the feature `kill-points` a point is nothing.

/// Every point, in the order of the way.
pub const ALL: &[&str] = &[
    "webhook-verified",
    "delivery-stored",
    "work-claimed",
    "pull-request-read",
    "thread-recorded",
    "running-status-wished",
    "evidence-gathered",
    "verdict-made",
    "evidence-stored",
    "verdict-committed",
    "publish-claimed",
    "publication-begun",
    "comment-written",
    "status-written",
    "publication-recorded",
    "publishing-finished",
];

/// Ends the process here if `COUNTERSIGN_KILL_AT` names this point.
#[cfg(feature = "kill-points")]
pub fn reach(point: &'static str) {
    debug_assert!(ALL.contains(&point), "{point} is not in the list");
    if std::env::var("COUNTERSIGN_KILL_AT").is_ok_and(|wanted| wanted == point) {
        // Nothing is flushed, no destructor runs.
        std::process::abort();
    }
}

/// Nothing.
#[cfg(not(feature = "kill-points"))]
pub fn reach(point: &'static str) {
    debug_assert!(ALL.contains(&point), "{point} is not in the list");
}
