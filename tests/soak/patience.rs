//! How long a run may go on: as long as less and less is left to do. The clock of a busy machine says nothing about what is lost.

use std::time::{Duration, Instant};

/// Nothing has got less for so long: something is stuck. Longer than any pause that a server makes by itself.
const STILL: Duration = Duration::from_secs(240);

/// How often what was given up is taken up again.
const TAKEN_UP: Duration = Duration::from_secs(30);

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
    taken_up: Instant,
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
            taken_up: now,
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

    /// Begins anew, for what has another measure.
    pub(crate) fn renew(&mut self) {
        self.left = usize::MAX;
        self.since = Instant::now();
        self.over = self.since - self.started > self.most;
    }

    /// Whether it is time again to take up what was given up.
    pub(crate) fn may_take_up(&mut self) -> bool {
        let due = self.taken_up.elapsed() >= TAKEN_UP;
        if due {
            self.taken_up = Instant::now();
        }
        due
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
