//! The server is killed at every named point of the way, as kill -9 would, and started again: one comment, one status, nothing
//! lost, nothing doubled.

use countersign_server::points;
use countersign_sim::Sim;
use countersign_store::testing::TestDatabase;

use crate::harness::{CONTEXT, Folder, GOOD, PATIENCE, PULL, Server, quiet_world, wait_for};

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_every_point() {
    for point in points::ALL {
        killed_at(point).await;
    }
}

async fn killed_at(point: &'static str) {
    let sim = Sim::start(&quiet_world()).expect("the simulator starts");
    let database = TestDatabase::new().await.expect("a database");
    let store = database.store().await.expect("a store");
    let folder = Folder::new();
    sim.post_comment(PULL, "olive", "/use 9001").expect("posted");
    let sink = |server: &Server| sim.set_sink(Some(&format!("http://{}/webhook", server.address)));

    let mut first = Server::start(&folder, &sim, &database.url(), Some(point));
    sink(&first);
    let signoff = sim.post_comment(PULL, "olive", GOOD).expect("posted");
    // GitHub does not repeat a delivery by itself: whatever the server answered or did not answer, it was sent once.
    let sent = sim.clone();
    let sending = tokio::spawn(async move { sent.deliver_all().await });
    let ended = tokio::task::spawn_blocking(move || {
        wait_for(&format!("the server to end itself at {point}"), || first.has_ended());
        first
    });
    drop(ended.await.expect("it ended"));
    sending.await.expect("no panic").expect("sent or refused");

    let second = Server::start(&folder, &sim, &database.url(), None);
    sink(&second);
    let pumping = sim.clone();
    let done = async {
        loop {
            // What the restarted server asks GitHub to deliver again goes out here.
            pumping.deliver_all().await.expect("sent or refused");
            let right = sim
                .status(PULL, CONTEXT)
                .expect("there")
                .is_some_and(|status| status.state == "success");
            if right && store.settled().await.expect("the database answers").empty {
                break;
            }
            tokio::task::yield_now().await;
            tokio::time::sleep(std::time::Duration::from_millis(30)).await;
        }
    };
    if tokio::time::timeout(PATIENCE, done).await.is_err() {
        let log = folder.log();
        let tail: Vec<&str> = log.lines().rev().take(15).collect();
        panic!(
            "{point}: not settled; status {:?}; work {:?}; log {tail:#?}",
            sim.status(PULL, CONTEXT),
            store.pending_work(5).await
        );
    }
    let comments = sim.own_comments(PULL).expect("there");
    assert_eq!(comments.len(), 1, "{point}: one comment, not {}", comments.len());
    assert!(
        comments[0].body.contains(&format!("signoff=issuecomment-{signoff} ")),
        "{point}"
    );
    let head = sim.head(PULL).expect("a head");
    let decided = sim
        .statuses("octo/bench", &head)
        .into_iter()
        .filter(|status| status.context == CONTEXT && status.state == "success")
        .count();
    assert_eq!(decided, 1, "{point}: one status with the result");
    assert!(sim.complaints().is_empty(), "{point}: {:?}", sim.complaints());
}
