//! What is on record cannot be changed: not by the server's role, and not even by the owner of the tables.

use countersign_store::testing::TestDatabase;
use countersign_store::{Changes, NewAudit, Next, Store};
use serde_json::json;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, Row};

use crate::common::{claim_one, evaluation, put_blobs, work};

const ROLES: &str = include_str!("../../../../deploy/sql/roles.sql");

const APPEND_ONLY: [&str; 3] = ["audit_log", "evaluations", "blobs"];

async fn database_with_records() -> (TestDatabase, Store) {
    let database = TestDatabase::new().await.unwrap();
    let store = database.store().await.unwrap();
    put_blobs(&store).await;
    store.request_work(&[work(1)]).await.unwrap();
    let lease = claim_one(&store, "verify").await;
    let audit = NewAudit {
        actor: "a".to_owned(),
        action: "b".to_owned(),
        repository: None,
        pull_request: None,
        evaluation: None,
        message: "c".to_owned(),
        detail: json!({}),
    };
    let changes = Changes {
        evaluations: vec![evaluation("issuecomment-1", "h", "PASS")],
        audit: vec![audit],
        ..Changes::default()
    };
    store.commit(&lease, &changes, &Next::Done).await.unwrap();
    (database, store)
}

/// Tries to change each append-only table; answers what got through.
async fn changes_that_get_through(connection: &mut PgConnection) -> Vec<String> {
    let mut through = Vec::new();
    for table in APPEND_ONLY {
        let column = if table == "audit_log" {
            "actor = actor"
        } else {
            "created_at = created_at"
        };
        for sql in [
            format!("UPDATE {table} SET {column}"),
            format!("DELETE FROM {table}"),
            format!("TRUNCATE {table} CASCADE"),
        ] {
            match sqlx::query(AssertSqlSafe(sql.clone())).execute(&mut *connection).await {
                Ok(_) => through.push(sql),
                Err(error) => {
                    let code = error
                        .as_database_error()
                        .and_then(|error| error.code())
                        .map(|code| code.into_owned());
                    assert_eq!(code.as_deref(), Some("42501"), "{sql}: {error}");
                }
            }
        }
    }
    through
}

#[tokio::test]
async fn the_servers_role_adds_and_changes_nothing() {
    let (database, _store) = database_with_records().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    connection.execute(AssertSqlSafe(ROLES)).await.unwrap();
    // Running it again is safe.
    connection.execute(AssertSqlSafe(ROLES)).await.unwrap();
    // Without the triggers: the rights alone must do.
    for table in APPEND_ONLY {
        connection
            .execute(AssertSqlSafe(format!("ALTER TABLE {table} DISABLE TRIGGER USER")))
            .await
            .unwrap();
    }
    connection.execute("SET ROLE countersign_server").await.unwrap();
    assert_eq!(changes_that_get_through(&mut connection).await, Vec::<String>::new());
    for sql in [
        "ALTER TABLE audit_log ENABLE TRIGGER USER",
        "DROP TABLE audit_log",
        "CREATE TABLE public.mine (a int)",
        "DROP TRIGGER audit_log_append_only ON audit_log",
        "INSERT INTO _sqlx_migrations SELECT * FROM _sqlx_migrations",
        "GRANT UPDATE ON audit_log TO countersign_server",
    ] {
        let answer = sqlx::query(sql).execute(&mut connection).await;
        // A grant by one who may not grant is only a warning: what counts is that it changed nothing.
        assert!(answer.is_err() || sql.starts_with("GRANT"), "{sql}");
    }
    assert_eq!(changes_that_get_through(&mut connection).await, Vec::<String>::new());
}

#[tokio::test]
async fn the_owner_cannot_either() {
    let (database, store) = database_with_records().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    assert_eq!(changes_that_get_through(&mut connection).await, Vec::<String>::new());
    assert_eq!(store.evaluations(&Default::default(), 10).await.unwrap().len(), 1);
    assert_eq!(store.audit_entries(&Default::default(), 10).await.unwrap().len(), 1);
}

#[tokio::test]
async fn the_servers_role_can_do_all_the_server_does() {
    let (database, _store) = database_with_records().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    connection.execute(AssertSqlSafe(ROLES)).await.unwrap();
    let member = format!("cs_member_{}", uuid::Uuid::new_v4().simple());
    connection
        .execute(AssertSqlSafe(format!(
            "CREATE ROLE {member} LOGIN PASSWORD 'x' IN ROLE countersign_server"
        )))
        .await
        .unwrap();
    let url = database.url().replacen("countersign@", &format!("{member}:x@"), 1);
    let done = async {
        if !url.contains(&member) {
            eprintln!("skipped: a given server's URL names a role of its own");
            return;
        }
        let store = Store::connect(&url, Default::default()).await.unwrap();
        assert_eq!(
            store.migration_state().await.unwrap(),
            countersign_store::MigrationState::Current
        );
        store
            .put_blob(countersign_store::BlobKind::Evidence, "more", "x")
            .await
            .unwrap();
        store
            .accept_delivery(crate::common::delivery(
                "g-1",
                countersign_store::Disposition::Work(work(1)),
            ))
            .await
            .unwrap();
        let lease = claim_one(&store, "verify").await;
        let changes = Changes {
            evaluations: vec![evaluation("issuecomment-1", "h", "PASS")],
            publications: vec![crate::common::wish("comment", "c", json!(1))],
            ..Changes::default()
        };
        store.commit(&lease, &changes, &Next::Done).await.unwrap();
        store.counts().await.unwrap();
        store.settled().await.unwrap();
        let error = store.migrate_down(0).await.unwrap_err();
        assert!(!error.retryable());
        store.close().await;
    };
    done.await;
    connection
        .execute(AssertSqlSafe(format!("DROP ROLE {member}")))
        .await
        .unwrap();
}

/// A migration that adds a table must say what the server may do with it.
#[tokio::test]
async fn every_table_has_its_grants() {
    let (database, _store) = database_with_records().await;
    let mut connection = PgConnection::connect(&database.url()).await.unwrap();
    connection.execute(AssertSqlSafe(ROLES)).await.unwrap();
    let rows = sqlx::query(
        "SELECT relname::text, has_table_privilege('countersign_server', oid, 'SELECT') AS read
         FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r' ORDER BY relname",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert!(rows.len() > 10);
    for row in rows {
        assert!(
            row.get::<bool, _>("read"),
            "{} is not in deploy/sql/roles.sql",
            row.get::<String, _>("relname")
        );
    }
}
