//! How long each check took. Times differ from run to run, so they are no part of the results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

/// How many of the slowest pull requests are listed.
const SLOWEST: usize = 10;

/// Times of one backtest.
#[derive(Debug, Clone, Default)]
pub struct Times {
    /// By check: of each pull request, in the order of judging.
    pub checks: BTreeMap<&'static str, Vec<Duration>>,
    /// By pull request: all checks, and gathering.
    pub pulls: Vec<(u64, Duration, Duration)>,
}

impl Times {
    pub(crate) fn add(&mut self, other: Self) {
        for (slug, times) in other.checks {
            self.checks.entry(slug).or_default().extend(times);
        }
        self.pulls.extend(other.pulls);
    }

    /// The table: each check, everything together, and the slowest pull requests.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::new();
        if self.pulls.is_empty() {
            return "nothing was judged anew, so there are no times\n".to_owned();
        }
        let _ = writeln!(
            out,
            "{:<18} {:>7} {:>9} {:>9} {:>9} {:>10}",
            "time of a check", "pulls", "p50 ms", "p99 ms", "max ms", "total s"
        );
        let mut rows: Vec<(&str, Vec<Duration>)> =
            self.checks.iter().map(|(slug, times)| (*slug, times.clone())).collect();
        rows.push(("all checks", self.pulls.iter().map(|pull| pull.1).collect()));
        rows.push(("reading the clone", self.pulls.iter().map(|pull| pull.2).collect()));
        for (slug, mut times) in rows {
            times.sort_unstable();
            let at = |percent: usize| times.get((times.len() * percent).div_ceil(100).saturating_sub(1));
            let ms = |time: Option<&Duration>| time.map_or(0.0, Duration::as_secs_f64) * 1e3;
            let total: Duration = times.iter().sum();
            let _ = writeln!(
                out,
                "{slug:<18} {:>7} {:>9.2} {:>9.2} {:>9.2} {:>10.2}",
                times.len(),
                ms(at(50)),
                ms(at(99)),
                ms(times.last()),
                total.as_secs_f64()
            );
        }
        let mut slowest = self.pulls.clone();
        slowest.sort_by_key(|(number, checks, _)| (std::cmp::Reverse(*checks), *number));
        let _ = write!(out, "slowest:");
        for (number, time, _) in slowest.iter().take(SLOWEST) {
            let _ = write!(out, " #{number} {:.1} ms", time.as_secs_f64() * 1e3);
        }
        out.push('\n');
        out.push_str("Elapsed time. One pull request is judged by several threads: with more than one worker they are in each other's way. The files of a judgement are read before it, as part of reading the clone. A fact that several checks need is part of the time of the first that asks for it, and of those that wait for it.\n");
        out
    }
}
