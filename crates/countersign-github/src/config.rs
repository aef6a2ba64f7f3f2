//! How to reach GitHub, as which App, and within which bounds.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures::future::BoxFuture;
use secrecy::SecretString;
use url::Url;

/// The App and the server it talks to.
#[derive(Debug, Clone)]
pub struct AppConfig {
    /// The App's id.
    pub app_id: u64,
    /// Its private key, PEM.
    pub private_key_pem: SecretString,
    /// `https://api.github.com`, or with its path on GitHub Enterprise Server: `https://host/api/v3`.
    pub api_base_url: Url,
    /// `User-Agent`; GitHub refuses calls without one.
    pub user_agent: String,
    /// Time limits.
    pub timeouts: Timeouts,
    /// Size limits and caches.
    pub limits: Limits,
    /// Hosts that archives and artifacts may be redirected to: a host, `host:port`, or `*.suffix`. The API's own host is allowed too.
    pub archive_hosts: Vec<String>,
    /// The clock and the way to wait; replaced in tests.
    pub time: Time,
}

impl AppConfig {
    /// An App on github.com with the usual bounds.
    #[must_use]
    pub fn new(app_id: u64, private_key_pem: SecretString, api_base_url: Url) -> Self {
        Self {
            app_id,
            private_key_pem,
            api_base_url,
            user_agent: concat!("countersign/", env!("CARGO_PKG_VERSION")).to_owned(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            archive_hosts: default_archive_hosts(),
            time: Time::default(),
        }
    }
}

/// The hosts on which github.com keeps archives and artifacts.
#[must_use]
pub fn default_archive_hosts() -> Vec<String> {
    [
        "codeload.github.com",
        "*.actions.githubusercontent.com",
        "objects.githubusercontent.com",
        "*.blob.core.windows.net",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Time limits.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// For a connection.
    pub connect: Duration,
    /// Between two pieces of an answer.
    pub read: Duration,
    /// For one API call, from the request to the last byte.
    pub call: Duration,
    /// For one archive or artifact.
    pub download: Duration,
    /// The longest wait for which a call is repeated by itself; longer ones are returned to the caller.
    pub patience: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            read: Duration::from_secs(15),
            call: Duration::from_secs(30),
            download: Duration::from_secs(120),
            patience: Duration::from_secs(2),
        }
    }
}

/// Size limits and caches.
#[derive(Debug, Clone)]
pub struct Limits {
    /// Largest JSON answer, in bytes.
    pub json_bytes: usize,
    /// Largest archive, packed, in bytes.
    pub archive_bytes: u64,
    /// Largest archive, unpacked, in bytes.
    pub archive_unpacked_bytes: u64,
    /// Most pages of one list.
    pub pages: u32,
    /// Memory for answers kept for conditional requests, in bytes.
    pub etag_cache_bytes: u64,
    /// Memory for file contents and listings of commits, in bytes.
    pub tree_cache_bytes: u64,
    /// Memory for contents of artifacts, in bytes.
    pub artifact_cache_bytes: u64,
    /// Calls under way at once, for one installation.
    pub concurrent: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            json_bytes: 24 << 20,
            archive_bytes: 256 << 20,
            archive_unpacked_bytes: 2 << 30,
            pages: 100,
            etag_cache_bytes: 48 << 20,
            tree_cache_bytes: 96 << 20,
            artifact_cache_bytes: 32 << 20,
            concurrent: 24,
        }
    }
}

type Now = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;
type Pause = Arc<dyn Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync>;

/// The clock and the way to wait.
#[derive(Clone)]
pub struct Time {
    now: Now,
    pause: Pause,
}

impl Time {
    /// A clock of one's own.
    pub fn new(
        now: impl Fn() -> DateTime<Utc> + Send + Sync + 'static,
        pause: impl Fn(Duration) -> BoxFuture<'static, ()> + Send + Sync + 'static,
    ) -> Self {
        Self {
            now: Arc::new(now),
            pause: Arc::new(pause),
        }
    }

    pub(crate) fn now(&self) -> DateTime<Utc> {
        (self.now)()
    }

    pub(crate) async fn pause(&self, time: Duration) {
        (self.pause)(time).await;
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::new(Utc::now, |time| Box::pin(tokio::time::sleep(time)))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Time")
    }
}
