//! One pull request, judged and timed. A panic of a check is a result that says so, never the end of the backtest.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use countersign_checks::{Memo, Step, evaluate_watched};
use countersign_core::Evidence;
use countersign_policy::LoadedPolicy;

use crate::record::{PullResult, Standing};
use crate::source::reading;
use crate::time::Times;

/// Judges the evidence into a result.
pub(crate) fn judge(
    result: &mut PullResult,
    evidence: &Evidence,
    signed: bool,
    policy: &LoadedPolicy,
    memo: &Memo,
    gathering: Duration,
    times: &mut Times,
) {
    // Files are read ahead. What of them was given up meanwhile is read again, which does not count where this thread does it.
    let read = reading();
    let start = Instant::now();
    let open: Mutex<BTreeMap<&'static str, (Instant, Duration)>> = Mutex::default();
    let laps: Mutex<Vec<(&'static str, Duration)>> = Mutex::default();
    let watch = |step: Step| match step {
        Step::Begins(slug) => {
            let now = (Instant::now(), reading());
            open.lock().unwrap_or_else(PoisonError::into_inner).insert(slug, now);
        }
        Step::Ended(slug) => {
            let begun = open.lock().unwrap_or_else(PoisonError::into_inner).remove(slug);
            if let Some((begun, read)) = begun {
                let lap = begun.elapsed().saturating_sub(reading().saturating_sub(read));
                laps.lock().unwrap_or_else(PoisonError::into_inner).push((slug, lap));
            }
        }
    };
    let judged = catch_unwind(AssertUnwindSafe(|| {
        evaluate_watched(evidence, policy, memo.clone(), &watch)
    }));
    let read = reading().saturating_sub(read);
    let all = start.elapsed().saturating_sub(read);
    let gathering = gathering + read;
    match judged {
        Ok(verdict) => result.fill(&verdict, evidence, signed),
        Err(_) => {
            let open = open.into_inner().unwrap_or_else(PoisonError::into_inner);
            let at: Vec<&str> = open.into_keys().collect();
            let at = at.join(", ");
            result.standing = Standing::Unjudged;
            result.problem = Some(format!(
                "the check `{at}` panicked: a mistake in it; report it with this pull request"
            ));
        }
    }
    for (slug, lap) in laps.into_inner().unwrap_or_else(PoisonError::into_inner) {
        times.checks.entry(slug).or_default().push(lap);
    }
    times.pulls.push((result.number, all, gathering));
}
