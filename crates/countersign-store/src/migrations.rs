//! The schema's steps, compiled in here and nowhere else (`migrations/README.md`).

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{Connection, PgConnection};

use crate::{Store, StoreError};

static MIGRATOR: Migrator = sqlx::migrate!("../../migrations");

/// How the schema stands against what this program was built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MigrationState {
    /// All steps of this program are applied, and no others.
    Current,
    /// The schema is older: so many steps are missing.
    Behind(usize),
    /// The schema has steps that this program does not know: a newer program made them. The rule of expanding before contracting
    /// (`migrations/README.md`) lets this program go on.
    Ahead(usize),
}

/// The numbers of all steps this program carries, in order.
pub fn migration_versions() -> Vec<i64> {
    MIGRATOR
        .iter()
        .filter(|step| step.migration_type.is_up_migration())
        .map(|step| step.version)
        .collect()
}

/// Applies what is missing, on a connection of its own without a statement time limit. Replicas that start together wait for each other.
/// A schema that is ahead is left alone.
pub(crate) async fn up(options: &sqlx::postgres::PgConnectOptions) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect_with(options).await?;
    let mut migrator = Migrator::with_migrations(MIGRATOR.iter().cloned().collect());
    migrator.set_ignore_missing(true);
    let done = migrator.run(&mut connection).await;
    connection.close().await?;
    done.map_err(explain)
}

/// Undoes steps down to `target` (0: all).
pub(crate) async fn down(options: &sqlx::postgres::PgConnectOptions, target: i64) -> Result<(), StoreError> {
    let mut connection = PgConnection::connect_with(options).await?;
    let done = MIGRATOR.undo(&mut connection, target).await;
    connection.close().await?;
    done.map_err(explain)
}

fn explain(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(error) => error.into(),
        MigrateError::ExecuteMigration(error, version) => {
            StoreError::Schema(format!("migration {version} failed: {error}"))
        }
        MigrateError::VersionMismatch(version) => StoreError::Schema(format!(
            "migration {version} is not the one that was applied to this database; a released migration must never be edited"
        )),
        MigrateError::Dirty(version) => StoreError::Schema(format!(
            "migration {version} was interrupted; repair the schema by hand, then remove its row from _sqlx_migrations"
        )),
        other => StoreError::Schema(format!("migrations: {other}")),
    }
}

impl Store {
    /// Brings the schema up to this program's version. Needs the role that owns the tables.
    pub async fn migrate(&self) -> Result<(), StoreError> {
        up(&self.unlimited_options()).await
    }

    /// Undoes the schema's steps down to `target` (0: everything, with all data). For tests and for an operator who goes back a release.
    pub async fn migrate_down(&self, target: i64) -> Result<(), StoreError> {
        down(&self.unlimited_options(), target).await
    }

    /// Compares the schema with what this program needs. Reads only.
    pub async fn migration_state(&self) -> Result<MigrationState, StoreError> {
        let applied: Result<Vec<i64>, _> =
            sqlx::query_scalar("SELECT version FROM _sqlx_migrations WHERE success ORDER BY version")
                .fetch_all(self.pool())
                .await;
        let applied = match applied {
            Ok(applied) => applied,
            Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("42P01") => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        let known = migration_versions();
        let missing = known.iter().filter(|version| !applied.contains(version)).count();
        let unknown = applied.iter().filter(|version| !known.contains(version)).count();
        Ok(match (missing, unknown) {
            (0, 0) => MigrationState::Current,
            (0, unknown) => MigrationState::Ahead(unknown),
            (missing, _) => MigrationState::Behind(missing),
        })
    }
}

/// Differs where any step differs.
#[cfg(feature = "testing")]
pub(crate) fn fingerprint() -> Vec<u8> {
    MIGRATOR.iter().flat_map(|step| step.checksum.iter().copied()).collect()
}
