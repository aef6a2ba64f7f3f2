//! The private server: starts, stops, survives what it should, leaves nothing behind.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use countersign_store::private::{Location, PrivateError, PrivateOptions, PrivatePostgres};
use countersign_store::{Store, StoreError, StoreOptions};

use crate::common::PATIENCE;

fn in_folder(parent: &Path) -> PrivateOptions {
    PrivateOptions {
        location: Location::TemporaryIn(parent.to_owned()),
        ..PrivateOptions::default()
    }
}

/// A folder that the server's user may pass through, also where we are root.
fn passable() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new().prefix("cs").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn starts_serves_and_leaves_nothing_behind() {
    let parent = passable();
    let server = PrivatePostgres::start_async(in_folder(parent.path())).await.unwrap();
    let store = Store::connect(&server.url(), StoreOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    // No TCP port at all, and not as root.
    let listen: String = sqlx::query_scalar("SHOW listen_addresses")
        .fetch_one(store.raw_pool())
        .await
        .unwrap();
    assert_eq!(listen, "");
    let pid = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap();
    let pid = pid.lines().next().unwrap().to_owned();
    if let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) {
        let uid = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
        assert!(!uid.split_whitespace().any(|id| id == "0"), "{uid}");
    }
    drop(server);
    assert!(is_empty(parent.path()));
    assert!(!Path::new("/proc").join(&pid).exists());
    assert!(store.ping().await.is_err_and(|error| error.retryable()));
}

#[tokio::test]
async fn a_kept_folder_keeps_its_data_and_a_foreign_one_is_not_touched() {
    let parent = passable();
    let path = parent.path().join("kept");
    let options = PrivateOptions {
        location: Location::Kept(path.clone()),
        durable: true,
        ..PrivateOptions::default()
    };
    let server = PrivatePostgres::start(options.clone()).unwrap();
    let store = Store::connect(&server.url(), StoreOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    store
        .put_blob(countersign_store::BlobKind::Other, "d", "x")
        .await
        .unwrap();
    store.close().await;
    server.stop().unwrap();
    assert!(path.exists());
    let server = PrivatePostgres::start(options).unwrap();
    let store = Store::connect(&server.url(), StoreOptions::default()).await.unwrap();
    assert!(store.blob("d").await.unwrap().is_some());
    let fsync: String = sqlx::query_scalar("SHOW fsync")
        .fetch_one(store.raw_pool())
        .await
        .unwrap();
    assert_eq!(fsync, "on");

    let foreign = parent.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("thesis"), "x").unwrap();
    let options = PrivateOptions {
        location: Location::Kept(foreign.clone()),
        ..PrivateOptions::default()
    };
    let error = PrivatePostgres::start(options).unwrap_err();
    assert!(matches!(error, PrivateError::NotOurs { .. }), "{error}");
    assert!(foreign.join("thesis").exists());
}

#[tokio::test]
async fn after_a_crash_it_resumes_with_what_was_committed() {
    let parent = passable();
    let mut server = PrivatePostgres::start(in_folder(parent.path())).unwrap();
    let store = Store::connect(&server.url(), StoreOptions::default()).await.unwrap();
    store.migrate().await.unwrap();
    store
        .put_blob(countersign_store::BlobKind::Other, "d", "x")
        .await
        .unwrap();
    server.crash().unwrap();
    assert!(store.ping().await.is_err_and(|error: StoreError| error.retryable()));
    server.resume().unwrap();
    assert_eq!(store.blob("d").await.unwrap().unwrap(), "x");
    server.stop().unwrap();
    assert!(is_empty(parent.path()));
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_nothing() {
    let parent = passable();
    let options = PrivateOptions {
        settings: vec![("shared_buffers".to_owned(), "nonsense".to_owned())],
        ..in_folder(parent.path())
    };
    let error = PrivatePostgres::start(options).unwrap_err();
    assert!(error.to_string().contains("shared_buffers"), "{error}");
    assert!(is_empty(parent.path()));
}

const CHILD: &str = "COUNTERSIGN_TEST_CHILD_FOLDER";

/// Not a test: what the next one kills.
#[test]
fn child_that_is_killed() {
    let Some(parent) = std::env::var_os(CHILD) else { return };
    let server = PrivatePostgres::start(in_folder(Path::new(&parent))).unwrap();
    // The parent sees this file and kills us.
    std::fs::write(Path::new(&parent).join("ready"), "").unwrap();
    std::thread::sleep(Duration::from_secs(600));
    drop(server);
}

#[test]
fn no_server_outlives_a_killed_starter() {
    let parent = passable();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "private_postgres::child_that_is_killed"])
        .env(CHILD, parent.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    until("the child starts its server", || parent.path().join("ready").exists());
    let folder: PathBuf = std::fs::read_dir(parent.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.join("data").exists())
        .unwrap();
    let pid = std::fs::read_to_string(folder.join("data/postmaster.pid")).unwrap();
    let pid = pid.lines().next().unwrap().to_owned();
    let alive = || Path::new("/proc").join(&pid).exists();
    assert!(alive() || !Path::new("/proc/self").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    until("the server stops", || !alive());
    until("its data go", || !folder.join("data").exists());
    // Where we are root the folder itself may be left, empty; the next start in this place sweeps it.
    drop(PrivatePostgres::start(in_folder(parent.path())).unwrap());
    until("the folder goes", || !folder.exists());
}
