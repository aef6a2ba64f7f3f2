//! Connecting, and what all parts of the store share.

use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use sqlx::PgPool;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};

use crate::intake::Intake;
use crate::{StoreError, listen};

/// How to connect, and the bounds.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// Connections at most, for all but the listener, which has one of its own. Each intake writer keeps about one busy.
    pub max_connections: u32,
    /// How long a caller waits for a free connection or for room in the intake.
    pub acquire_timeout: Duration,
    /// Statements that run longer are ended by the database. Not for migrations.
    pub statement_timeout: Duration,
    /// Shown in `pg_stat_activity` and written into leases: which replica this is.
    pub name: String,
    /// Deliveries written by one transaction, at most.
    pub intake_batch: usize,
    /// Bytes of payload written by one transaction, about at most.
    pub intake_batch_bytes: usize,
    /// Transactions of the intake under way at once.
    pub intake_writers: usize,
    /// Deliveries that wait for their transaction, at most; beyond that callers wait, then get [`StoreError::Overloaded`].
    pub intake_waiting: usize,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            max_connections: 16,
            acquire_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            name: format!("countersign-{}", std::process::id()),
            intake_batch: 128,
            intake_batch_bytes: 8 << 20,
            intake_writers: 2,
            intake_waiting: 1024,
        }
    }
}

/// The database. Cheap to clone; all clones share one pool, one intake and one listener.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    pool: PgPool,
    connect: PgConnectOptions,
    options: StoreOptions,
    intake: OnceLock<Intake>,
    listener: OnceLock<listen::Hub>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Never the URL: it may hold a password.
        f.debug_struct("Store")
            .field("name", &self.inner.options.name)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// Connects, and fails at once where the database cannot be reached.
    pub async fn connect(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let store = Self::connect_lazily(url, options)?;
        store.ping().await?;
        Ok(store)
    }

    /// Connects at the first use: a server may start before its database does.
    pub fn connect_lazily(url: &str, options: StoreOptions) -> Result<Self, StoreError> {
        let connect = PgConnectOptions::from_str(url)
            .map_err(|error| StoreError::Invalid {
                what: "the database URL",
                why: format!("{error}; it looks like postgres://user:password@host:5432/database"),
            })?
            .application_name(&options.name);
        let limited = connect
            .clone()
            .options([(
                "statement_timeout",
                format!("{}ms", options.statement_timeout.as_millis()).as_str(),
            )])
            .options([("idle_in_transaction_session_timeout", "60s")]);
        let pool = PgPoolOptions::new()
            .max_connections(options.max_connections)
            .acquire_timeout(options.acquire_timeout)
            .connect_lazy_with(limited);
        Ok(Self {
            inner: Arc::new(Inner {
                pool,
                connect,
                options,
                intake: OnceLock::new(),
                listener: OnceLock::new(),
            }),
        })
    }

    /// For `/readyz`: whether a statement gets through now.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query("SELECT 1").execute(self.pool()).await?;
        Ok(())
    }

    /// Closes all connections, after what is under way. Later calls fail as unavailable.
    pub async fn close(&self) {
        self.inner.pool.close().await;
    }

    /// The name of this replica, as in leases.
    pub fn name(&self) -> &str {
        &self.inner.options.name
    }

    pub(crate) fn pool(&self) -> &PgPool {
        &self.inner.pool
    }

    pub(crate) fn unlimited_options(&self) -> PgConnectOptions {
        self.inner.connect.clone()
    }

    pub(crate) fn intake(&self) -> &Intake {
        self.inner
            .intake
            .get_or_init(|| Intake::start(self.inner.pool.clone(), &self.inner.options))
    }

    pub(crate) fn listener(&self) -> &listen::Hub {
        self.inner
            .listener
            .get_or_init(|| listen::Hub::start(self.unlimited_options()))
    }

    /// The pool itself, for tests that must see or break what is stored.
    #[cfg(feature = "testing")]
    pub fn raw_pool(&self) -> &PgPool {
        &self.inner.pool
    }
}
