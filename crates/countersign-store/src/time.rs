//! When to try again.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// Exponential backoff with jitter: after the n-th failure somewhere between half and the whole of `first * 2^(n-1)`, at most `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The longest wait after the first failure.
    pub first: Duration,
    /// The longest wait of all.
    pub most: Duration,
}

impl Default for Backoff {
    /// 2 s, 4 s, 8 s … at most 10 minutes.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(2),
            most: Duration::from_secs(600),
        }
    }
}

impl Backoff {
    /// The wait after `attempts` failures (1 or more). `chance` is any number, such as a random one: it places the wait in the
    /// upper half of the window, so that many failures of the same moment do not return in the same moment.
    pub fn delay(&self, attempts: u32, chance: u64) -> Duration {
        let doublings = attempts.saturating_sub(1).min(32);
        let window = self
            .first
            .saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
            .min(self.most);
        let half = window / 2;
        let steps = u64::try_from((window - half).as_millis())
            .unwrap_or(u64::MAX)
            .saturating_add(1);
        half + Duration::from_millis(chance % steps)
    }
}

/// What a failure means for the next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Retry {
    /// Exponentially later with the number of attempts; a new event may make it sooner.
    Backoff(Backoff),
    /// After this time; a new event may make it sooner.
    After(Duration),
    /// Not before this moment, whatever events come in: a rate limit.
    NotBefore(DateTime<Utc>),
    /// Never: to the dead letters, where an operator may revive it.
    Never,
}

/// A number that differs between calls and processes. Not for secrets.
pub(crate) fn chance() -> u64 {
    uuid::Uuid::new_v4().as_u64_pair().0
}

/// Seconds as Postgres' `make_interval(secs => …)` takes them.
pub(crate) fn seconds(duration: Duration) -> f64 {
    // A hundred years: beyond that, timestamps overflow.
    duration.as_secs_f64().min(3.2e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn grows_and_stops_growing() {
        let backoff = Backoff {
            first: Duration::from_secs(2),
            most: Duration::from_secs(60),
        };
        assert_eq!(backoff.delay(1, 0), Duration::from_secs(1));
        assert_eq!(backoff.delay(2, 0), Duration::from_secs(2));
        assert_eq!(backoff.delay(5, 0), Duration::from_secs(16));
        assert_eq!(backoff.delay(6, 0), Duration::from_secs(30));
        assert_eq!(backoff.delay(u32::MAX, 0), Duration::from_secs(30));
    }

    proptest! {
        #[test]
        fn stays_in_the_upper_half_of_its_window(attempts in 1_u32..60, chance: u64) {
            let backoff = Backoff { first: Duration::from_millis(100), most: Duration::from_secs(30) };
            let delay = backoff.delay(attempts, chance);
            let window = (0.1 * f64::from(2_u32).powi(attempts.min(40) as i32 - 1)).min(30.0);
            prop_assert!(delay.as_secs_f64() <= window + 1e-9);
            prop_assert!(delay.as_secs_f64() >= window / 2.0 - 1e-9);
        }
    }
}
