//! How long a run may go on: as long as less and less is left to do. The clock of a busy machine says nothing about what is lost.

use std::time::{Duration, Instant};

/// Nothing has got less for so long: something is stuck. Longer than any pause that a server makes by itself.
const STILL: Duration = Duration::from_secs(240);

/// How often a run says how it goes.
const SAID: Duration = Duration::from_secs(20);

/// Watches how much is left to do.
pub(crate) struct Patience {
    started: Instant,
    /// Whatever happens, it ends after so long: what goes round in circles gets less all the time.
    most: Duration,
    left: usize,
    since: Instant,
    over: bool,
    told: Instant,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        let now = Instant::now();
        Self {
            started: now,
            most,
            left: usize::MAX,
            since: now,
            over: false,
            told: now,
        }
    }

    /// Takes note of how much is left now; whether to go on.
    pub(crate) fn lasts(&mut self, left: usize) -> bool {
        let now = Instant::now();
        if left < self.left {
            self.since = now;
        }
        self.left = left;
        self.over = self.over || now - self.since > STILL || now - self.started > self.most;
        !self.over
    }

    /// Says now and then how it goes.
    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) {
        if self.told.elapsed() >= SAID {
            self.told = Instant::now();
            crate::say(&format!("{:>5.1} s  {}", self.seconds(), what()));
        }
    }

    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}
