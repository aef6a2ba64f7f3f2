//! A database of its own for each test, on one server for all of them.
//!
//! `COUNTERSIGN_TEST_DATABASE_URL`, where set, names a server and a role that may create databases; else a private server is shared
//! by all test processes of the user (docs/decisions/0004-private-postgres.md). Each test gets a copy of a migrated template.

use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::sync::OnceCell;

use crate::private::shared::SharedPostgres;
use crate::private::{PrivateError, PrivateOptions, PrivatePostgres};
use crate::{Store, StoreError, StoreOptions, migrations};

/// Why a test got no database.
#[derive(Debug, thiserror::Error)]
pub enum TestError {
    /// No server.
    #[error(transparent)]
    Server(#[from] PrivateError),
    /// The server does not do as it should.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The driver says no.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

enum Server {
    Given(String),
    Shared(SharedPostgres),
    /// Where there is no `flock` program to share with. Its supervisor stops it when this process ends.
    Own(PrivatePostgres),
}

impl Server {
    fn url_of(&self, database: &str) -> String {
        match self {
            Self::Shared(server) => server.url_of(database),
            Self::Own(server) => server.url_of(database),
            Self::Given(url) => {
                let (base, query) = url
                    .split_once('?')
                    .map_or((url.as_str(), ""), |(base, query)| (base, query));
                let start = base.find("://").map_or(0, |at| at + 3);
                let host = base[start..].find('/').map_or(base, |at| &base[..start + at]);
                let mark = if query.is_empty() { "" } else { "?" };
                format!("{host}/{database}{mark}{query}")
            }
        }
    }
}

static SERVER: OnceCell<Arc<Server>> = OnceCell::const_new();

async fn server() -> Result<Arc<Server>, TestError> {
    SERVER
        .get_or_try_init(|| async {
            if let Ok(url) = std::env::var("COUNTERSIGN_TEST_DATABASE_URL")
                && !url.is_empty()
            {
                return Ok(Arc::new(Server::Given(url)));
            }
            let found = tokio::task::spawn_blocking(|| {
                if SharedPostgres::possible() {
                    return SharedPostgres::join().map(Server::Shared);
                }
                PrivatePostgres::start(PrivateOptions::default()).map(Server::Own)
            })
            .await;
            let found = found.map_err(|error| StoreError::Invalid {
                what: "the server",
                why: error.to_string(),
            })??;
            if matches!(found, Server::Shared(_)) {
                let mut connection = admin(&found).await?;
                reap(&mut connection).await?;
                connection.close().await?;
            }
            Ok(Arc::new(found))
        })
        .await
        .map(Arc::clone)
}

/// A database with the schema, dropped at the end.
pub struct TestDatabase {
    server: Arc<Server>,
    name: String,
}

impl TestDatabase {
    /// Makes one, in some tens of milliseconds.
    pub async fn new() -> Result<Self, TestError> {
        let server = server().await?;
        let mut connection = admin(&server).await?;
        let template = template(&server, &mut connection).await?;
        let name = format!(
            "cs_test_{}_{}",
            std::process::id(),
            &uuid::Uuid::new_v4().simple().to_string()[..12]
        );
        run(&mut connection, format!("CREATE DATABASE {name} TEMPLATE {template}")).await?;
        connection.close().await?;
        Ok(Self { server, name })
    }

    /// Its URL.
    pub fn url(&self) -> String {
        self.server.url_of(&self.name)
    }

    /// A store on it: a replica of its own, with its own pool.
    pub async fn store(&self) -> Result<Store, TestError> {
        self.replica("test").await
    }

    /// A store on it under this name, as another replica would be.
    pub async fn replica(&self, name: &str) -> Result<Store, TestError> {
        let options = StoreOptions {
            name: name.to_owned(),
            max_connections: 8,
            ..StoreOptions::default()
        };
        Ok(Store::connect(&self.url(), options).await?)
    }

    /// Breaks all sessions, and lets no new ones in until [`TestDatabase::let_in`]: the database is away.
    pub async fn cut(&self) -> Result<(), TestError> {
        let mut connection = admin(&self.server).await?;
        run(
            &mut connection,
            format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", self.name),
        )
        .await?;
        self.terminate(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    /// Ends [`TestDatabase::cut`].
    pub async fn let_in(&self) -> Result<(), TestError> {
        let mut connection = admin(&self.server).await?;
        run(
            &mut connection,
            format!("ALTER DATABASE {} ALLOW_CONNECTIONS true", self.name),
        )
        .await?;
        connection.close().await?;
        Ok(())
    }

    /// Breaks all sessions; new ones may follow at once.
    pub async fn disconnect_all(&self) -> Result<(), TestError> {
        let mut connection = admin(&self.server).await?;
        self.terminate(&mut connection).await?;
        connection.close().await?;
        Ok(())
    }

    async fn terminate(&self, connection: &mut PgConnection) -> Result<(), TestError> {
        sqlx::query("SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1")
            .bind(&self.name)
            .execute(connection)
            .await?;
        Ok(())
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (url, name) = (self.server.url_of("postgres"), self.name.clone());
        // A runtime of its own: the test's may be ending, and must not be blocked.
        let dropping = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let dropped = async {
                    let mut connection = PgConnection::connect(&url).await?;
                    sqlx::query(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
                        .execute(&mut connection)
                        .await?;
                    connection.close().await
                };
                // If not now, then when a later process finds that we are gone.
                let _ = tokio::time::timeout(Duration::from_secs(10), dropped).await;
            });
        });
        let _ = dropping.join();
    }
}

async fn admin(server: &Server) -> Result<PgConnection, TestError> {
    Ok(PgConnection::connect(&server.url_of("postgres")).await?)
}

// Names are ours: letters, digits and underscores.
async fn run(connection: &mut PgConnection, sql: String) -> Result<(), TestError> {
    sqlx::query(AssertSqlSafe(sql)).execute(connection).await?;
    Ok(())
}

/// The migrated template: one for each set of migrations, made by whoever comes first.
async fn template(server: &Server, connection: &mut PgConnection) -> Result<String, TestError> {
    let name = format!(
        "cs_template_{}",
        hex::encode(&Sha256::digest(migrations::fingerprint())[..8])
    );
    let known = "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1 AND datistemplate)";
    if sqlx::query_scalar(known)
        .bind(&name)
        .fetch_one(&mut *connection)
        .await?
    {
        return Ok(name);
    }
    sqlx::query("SELECT pg_advisory_lock(hashtextextended('countersign template', 0))")
        .execute(&mut *connection)
        .await?;
    // The lock goes with the connection, should anything fail.
    if !sqlx::query_scalar(known)
        .bind(&name)
        .fetch_one(&mut *connection)
        .await?
    {
        run(connection, format!("DROP DATABASE IF EXISTS {name}")).await?;
        run(connection, format!("CREATE DATABASE {name}")).await?;
        let options: PgConnectOptions = server.url_of(&name).parse()?;
        migrations::up(&options).await?;
        run(connection, format!("ALTER DATABASE {name} IS_TEMPLATE true")).await?;
    }
    sqlx::query("SELECT pg_advisory_unlock(hashtextextended('countersign template', 0))")
        .execute(&mut *connection)
        .await?;
    Ok(name)
}

/// Drops what killed test processes of this machine left.
async fn reap(connection: &mut PgConnection) -> Result<(), TestError> {
    if !std::path::Path::new("/proc/self").exists() {
        return Ok(());
    }
    let names: Vec<String> = sqlx::query_scalar("SELECT datname FROM pg_database WHERE datname LIKE 'cs\\_test\\_%'")
        .fetch_all(&mut *connection)
        .await?;
    for name in names {
        let pid = name.split('_').nth(2).unwrap_or_default();
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if plain && !std::path::Path::new("/proc").join(pid).exists() {
            // Another process may be at it as well.
            let _ = run(connection, format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_the_database_into_a_given_url() {
        let url = |given: &str| Server::Given(given.to_owned()).url_of("x");
        assert_eq!(
            url("postgres://u:p@h:5432/old?sslmode=disable"),
            "postgres://u:p@h:5432/x?sslmode=disable"
        );
        assert_eq!(url("postgres://h"), "postgres://h/x");
        assert_eq!(
            url("postgres://u@localhost/old?host=/run/pg"),
            "postgres://u@localhost/x?host=/run/pg"
        );
    }
}
