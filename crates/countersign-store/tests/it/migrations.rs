//! The schema goes up, down and up again.

use countersign_store::testing::TestDatabase;
use countersign_store::{MigrationState, StoreError, migration_versions};

async fn shape(store: &countersign_store::Store) -> Vec<(String, String, String, String)> {
    sqlx::query_as(
        "SELECT table_name::text, column_name::text, data_type::text, coalesce(column_default, '') || is_nullable
         FROM information_schema.columns WHERE table_schema = 'public' ORDER BY table_name, ordinal_position",
    )
    .fetch_all(store.raw_pool())
    .await
    .unwrap()
}

#[tokio::test]
async fn up_down_up() {
    let database = TestDatabase::new().await.unwrap();
    let store = database.store().await.unwrap();
    assert_eq!(store.migration_state().await.unwrap(), MigrationState::Current);
    let before = shape(&store).await;
    // Step by step, each undone by its own down file.
    for target in migration_versions().into_iter().rev() {
        store.migrate_down(target - 1).await.unwrap();
    }
    let left = shape(&store).await;
    assert!(left.iter().all(|column| column.0 == "_sqlx_migrations"), "{left:?}");
    let functions: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
        .fetch_one(store.raw_pool())
        .await
        .unwrap();
    assert_eq!(functions, 0);
    assert_eq!(
        store.migration_state().await.unwrap(),
        MigrationState::Behind(migration_versions().len())
    );
    assert!(matches!(store.counts().await, Err(StoreError::Schema(text)) if text.contains("countersign migrate")));
    store.migrate().await.unwrap();
    store.migrate().await.unwrap();
    assert_eq!(shape(&store).await, before);
    assert_eq!(store.migration_state().await.unwrap(), MigrationState::Current);
}

#[tokio::test]
async fn replicas_that_migrate_together_wait_for_each_other() {
    let database = TestDatabase::new().await.unwrap();
    let store = database.store().await.unwrap();
    store.migrate_down(0).await.unwrap();
    let others = [
        database.replica("a").await.unwrap(),
        database.replica("b").await.unwrap(),
    ];
    let (one, two, three) = tokio::join!(store.migrate(), others[0].migrate(), others[1].migrate());
    one.and(two).and(three).unwrap();
    assert_eq!(store.migration_state().await.unwrap(), MigrationState::Current);
}

#[tokio::test]
async fn a_schema_that_is_ahead_is_left_alone() {
    let database = TestDatabase::new().await.unwrap();
    let store = database.store().await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time) VALUES (9999, 'later', true, '', 0)",
    )
    .execute(store.raw_pool())
    .await
    .unwrap();
    assert_eq!(store.migration_state().await.unwrap(), MigrationState::Ahead(1));
    store.migrate().await.unwrap();
    sqlx::query("UPDATE _sqlx_migrations SET checksum = '\\x00' WHERE version = 1")
        .execute(store.raw_pool())
        .await
        .unwrap();
    let error = store.migrate().await.unwrap_err();
    assert!(error.to_string().contains("must never be edited"), "{error}");
}
