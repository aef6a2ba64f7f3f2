//! Jobs of a run by lane. A lane is the part of a job's name before the first slash, compared whole: `eval` is neither
//! `agentic eval` nor `multi-node eval` (domain guide, section 4.4).

use std::collections::BTreeMap;

use countersign_core::evidence::{Conclusion, Job, RunStatus};
use countersign_policy::Lane;

/// What happened in one lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneResult {
    /// Green jobs.
    pub success: usize,
    /// Jobs that ran, or should have run, and are not green: name and conclusion.
    pub bad: Vec<(String, &'static str)>,
    /// Jobs that are not finished.
    pub running: usize,
    /// Jobs that were skipped.
    pub skipped: usize,
    /// Normalised names of green jobs, for matching with points; in order, with repeats.
    pub green_names: Vec<String>,
}

impl LaneResult {
    /// Whether anything ran at all.
    #[must_use]
    pub fn executed(&self) -> bool {
        self.success + self.bad.len() + self.running > 0
    }
}

/// The lane's name of a job: the text before the first slash, white space folded.
#[must_use]
pub fn lane_of(job: &str) -> String {
    fold(job.split('/').next().unwrap_or_default())
}

/// The rest of a job's name after the lane: slashes of the caller dropped, white space folded.
#[must_use]
pub fn callee_of(job: &str) -> String {
    fold(
        job.split_once('/')
            .map_or("", |(_, rest)| rest)
            .trim_start_matches(['/', ' ']),
    )
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Groups the jobs of the known lanes. Jobs of other names are no evidence.
#[must_use]
pub fn by_lane<'l>(jobs: &[Job], lanes: &'l [Lane]) -> BTreeMap<&'l str, LaneResult> {
    let mut results: BTreeMap<&str, LaneResult> = BTreeMap::new();
    for job in jobs {
        let name = lane_of(&job.name);
        let Some(lane) = lanes.iter().find(|lane| fold(&lane.name) == name) else {
            continue;
        };
        let result = results.entry(lane.name.as_str()).or_default();
        match (job.status, job.conclusion) {
            (RunStatus::Running, _) | (RunStatus::Completed, None) => result.running += 1,
            (_, Some(Conclusion::Success)) => {
                result.success += 1;
                result.green_names.push(callee_of(&job.name));
            }
            (_, Some(Conclusion::Skipped)) => result.skipped += 1,
            (_, Some(other)) => result.bad.push((fold(&job.name), word(other))),
        }
    }
    results
}

fn word(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Success => "success",
        Conclusion::Failure => "failure",
        Conclusion::Skipped => "skipped",
        Conclusion::Cancelled => "cancelled",
        Conclusion::Neutral => "neutral",
        Conclusion::TimedOut => "timed out",
        Conclusion::ActionRequired => "action required",
        Conclusion::StartupFailure => "could not start",
        Conclusion::Stale => "stale",
        Conclusion::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_are_compared_whole_and_spacing_does_not_matter() {
        assert_eq!(lane_of("single-node 8k1k / / p4.250 | x"), "single-node 8k1k");
        assert_eq!(lane_of("agentic eval / x"), "agentic eval");
        assert_eq!(lane_of("eval /"), "eval");
        assert_eq!(lane_of("canary"), "canary");
        assert_eq!(callee_of("single-node 8k1k / / p4.250 |  x   c4"), "p4.250 | x c4");
    }
}
