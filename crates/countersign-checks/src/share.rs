//! Work that several threads share. What comes out does not depend on who does what: jobs ask each other only for facts
//! that are computed once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

/// Threads for one piece of work, where the machine has them. More do not help: few jobs are large.
const MOST_THREADS: usize = 4;

static THREADS: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, |n| n.get().min(MOST_THREADS)));

/// What a lock keeps. Nothing here is left half changed by a panic.
pub(crate) fn locked<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does the jobs with these numbers, in no order that could be counted on; comes back when all are done. A panic of one
/// is one of the caller.
pub(crate) fn share(jobs: usize, work: &(dyn Fn(usize) + Sync)) {
    share_with(jobs, &|| (), &|(), job| work(job));
}

/// The same, with something that each thread has for itself while it takes part.
pub(crate) fn share_with<T>(jobs: usize, own: &(dyn Fn() -> T + Sync), work: &(dyn Fn(&mut T, usize) + Sync)) {
    let next = AtomicUsize::new(0);
    let take = || {
        let mut own = own();
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs {
                break;
            }
            work(&mut own, job);
        }
    };
    scope(|scope| {
        for _ in 1..(*THREADS).min(jobs) {
            // Where the system gives no thread, the caller does all of it.
            if Builder::new().spawn_scoped(scope, take).is_err() {
                break;
            }
        }
        take();
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn every_job_is_done_once() {
        for jobs in [0, 1, 2, 100] {
            let done = Mutex::new(Vec::new());
            share(jobs, &|job| done.lock().unwrap().push(job));
            let mut done = done.into_inner().unwrap();
            done.sort_unstable();
            assert_eq!(done, (0..jobs).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_panic_of_a_job_is_one_of_the_caller() {
        let panicked = std::panic::catch_unwind(|| share(8, &|job| assert_ne!(job, 5)));
        assert!(panicked.is_err());
    }
}
