//! One pull request, judged and timed. A panic of a check is a result that says so, never the end of the backtest.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use countersign_checks::{Memo, Step, evaluate_watched};
use countersign_core::Evidence;
use countersign_policy::LoadedPolicy;

use crate::record::{PullResult, Standing};
use crate::source::Source;
use crate::time::Times;

/// What this thread has computed so far. Time on the wall would measure the other workers too.
pub(crate) fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Judges the evidence into a result.
pub(crate) fn judge(
    result: &mut PullResult,
    evidence: &Evidence,
    signed: bool,
    policy: &LoadedPolicy,
    memo: &Memo,
    source: &Source,
    gathering: Duration,
    times: &mut Times,
) {
    // What the checks compute, without reading what they ask for.
    let read = source.reading();
    let computed = || processor_time().saturating_sub(source.reading());
    let mut at = "";
    let mut begun = computed();
    let mut laps: Vec<(&'static str, Duration)> = Vec::new();
    let start = begun;
    let mut watch = |step: Step| match step {
        Step::Begins(slug) => {
            at = slug;
            begun = computed();
        }
        Step::Ended(slug) => laps.push((slug, computed().saturating_sub(begun))),
    };
    let judged = catch_unwind(AssertUnwindSafe(|| {
        evaluate_watched(evidence, policy, memo.clone(), &mut watch)
    }));
    let all = computed().saturating_sub(start);
    let gathering = gathering + source.reading().saturating_sub(read);
    match judged {
        Ok(verdict) => result.fill(&verdict, evidence, signed),
        Err(_) => {
            result.standing = Standing::Unjudged;
            result.problem = Some(format!(
                "the check `{at}` panicked: a mistake in it; report it with this pull request"
            ));
        }
    }
    for (slug, lap) in laps {
        times.checks.entry(slug).or_default().push(lap);
    }
    times.pulls.push((result.number, all, gathering));
}
