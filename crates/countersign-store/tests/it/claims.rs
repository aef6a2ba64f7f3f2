//! Many workers of several replicas at once: no key is ever held twice, nothing asked for is left undone.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use countersign_store::testing::TestDatabase;
use countersign_store::{ClaimOptions, Disposition, NewWork, Next, Retry, Store, WorkLease};
use proptest::prelude::*;

use crate::common::{PATIENCE, delivery, work};

/// What is known of each key while the workers run.
#[derive(Default)]
struct Board {
    holders: Mutex<BTreeMap<String, i64>>,
    /// Per key: the events asked for, and how many of them the last finished run had seen.
    asked: Mutex<BTreeMap<i64, usize>>,
    served: Mutex<BTreeMap<String, usize>>,
    runs: AtomicUsize,
}

impl Board {
    fn take(&self, lease: &WorkLease) {
        let before = self
            .holders
            .lock()
            .unwrap()
            .insert(lease.key().to_owned(), lease.lease_no());
        assert_eq!(before, None, "{} is held twice", lease.key());
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    fn give(&self, key: &str) {
        assert!(self.holders.lock().unwrap().remove(key).is_some());
    }
}

async fn one_worker(store: Store, board: &Board, producing: &AtomicUsize, fail_every: usize, batch: usize) {
    let options = ClaimOptions {
        most: batch,
        lease: Duration::from_secs(600),
        ..ClaimOptions::of(&["verify"])
    };
    let mut wake_ups = store.wake_ups();
    let mut n = 0;
    loop {
        wake_ups.arm();
        let leases = store.claim_work(&options).await.unwrap().leases;
        if leases.is_empty() {
            if producing.load(Ordering::Acquire) == 0 && store.settled().await.unwrap().empty {
                return;
            }
            wake_ups.wait(Duration::from_millis(20)).await;
        }
        for lease in &leases {
            board.take(lease);
        }
        for lease in leases {
            let key = lease.key().to_owned();
            let seen = lease.deliveries().len();
            tokio::task::yield_now().await;
            n += 1;
            // Given up on the board before the database does, so that the next holder finds it free.
            board.give(&key);
            if fail_every > 0 && n % fail_every == 0 {
                lease.fail("now and then", &Retry::After(Duration::ZERO)).await.unwrap();
            } else {
                store.finish(&lease, &Next::Done).await.unwrap();
                *board.served.lock().unwrap().entry(key).or_default() += seen;
            }
        }
    }
}

async fn run(events: Vec<i64>, workers: usize, fail_every: usize, batch: usize) {
    let database = TestDatabase::new().await.unwrap();
    let replicas = [
        database.replica("one").await.unwrap(),
        database.replica("two").await.unwrap(),
    ];
    let board = Board::default();
    let producing = AtomicUsize::new(1);
    let produce = async {
        for (n, pull_request) in events.iter().enumerate() {
            *board.asked.lock().unwrap().entry(*pull_request).or_default() += 1;
            let asked = NewWork {
                max_attempts: 1_000_000,
                ..work(*pull_request)
            };
            let new = delivery(&format!("g-{n}"), Disposition::Work(asked));
            replicas[n % 2].accept_delivery(new).await.unwrap();
        }
        producing.store(0, Ordering::Release);
    };
    let work = (0..workers).map(|n| one_worker(replicas[n % 2].clone(), &board, &producing, fail_every, batch));
    let all = async { tokio::join!(produce, futures::future::join_all(work)) };
    tokio::time::timeout(PATIENCE, all).await.expect("everything gets done");
    // Each delivery was seen by exactly one finished run.
    let served = board.served.lock().unwrap().clone();
    for (pull_request, asked) in &*board.asked.lock().unwrap() {
        assert_eq!(served.get(&format!("octo/hello#{pull_request}")), Some(asked));
    }
    let pending: i64 = sqlx::query_scalar("SELECT count(*) FROM deliveries WHERE status <> 'processed'")
        .fetch_one(replicas[0].raw_pool())
        .await
        .unwrap();
    assert_eq!(pending, 0);
    assert!(board.runs.load(Ordering::Relaxed) >= served.len());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, max_shrink_iters: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_key_is_held_twice_and_no_event_is_lost(
        events in proptest::collection::vec(1_i64..6, 1..80),
        workers in 2_usize..6,
        fail_every in 0_usize..5,
        batch in 1_usize..4,
    ) {
        // Failing every single time would never end.
        let fail_every = if fail_every == 1 { 0 } else { fail_every };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(run(events, workers, fail_every, batch));
    }
}

/// The holder of an expired lease races with the next one to commit: exactly one of them gets through, whoever it is.
#[tokio::test]
async fn of_two_holders_one_commits() {
    let database = TestDatabase::new().await.unwrap();
    let (one, two) = (
        database.replica("one").await.unwrap(),
        database.replica("two").await.unwrap(),
    );
    for _ in 0..30 {
        one.request_work(&[work(1)]).await.unwrap();
        let old = crate::common::claim_one(&one, "verify").await;
        crate::common::expire_leases(&one).await;
        let claim = async {
            match two
                .claim_work(&ClaimOptions::of(&["verify"]))
                .await
                .unwrap()
                .leases
                .pop()
            {
                Some(lease) => two.finish(&lease, &Next::Done).await.is_ok(),
                None => false,
            }
        };
        let (first, second) = tokio::join!(one.finish(&old, &Next::Done), claim);
        assert!(first.is_ok() != second, "{first:?}, {second}");
        assert!(one.queue_empty().await.unwrap());
    }
}
