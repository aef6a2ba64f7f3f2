//! The clock of the service: the system's, or a world's in a rehearsal.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use chrono::{DateTime, Utc};

/// What counts as now.
#[derive(Debug, Clone, Default)]
pub enum Clock {
    /// The system's clock.
    #[default]
    System,
    /// Seconds since 1970 that somebody else moves.
    Shared(Arc<AtomicI64>),
}

impl Clock {
    /// The time.
    #[must_use]
    pub fn now(&self) -> DateTime<Utc> {
        match self {
            Self::System => Utc::now(),
            Self::Shared(seconds) => DateTime::from_timestamp(seconds.load(Ordering::SeqCst), 0).unwrap_or_default(),
        }
    }
}
