//! What all clients of one App share: the key, tokens, caches, limits.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use chrono::{DateTime, TimeDelta, Utc};
use countersign_core::RepoName;
use http::HeaderValue;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};

use crate::calls::etag::Etags;
use crate::calls::limits::Budget;
use crate::calls::transport::Transport;
use crate::calls::{Call, Tally, join};
use crate::config::AppConfig;
use crate::error::GitHubError;
use crate::info::Identity;
use crate::store::Stores;
use crate::wire;

/// Tokens are renewed this long before they expire, so that none expires on its way.
const MARGIN: TimeDelta = TimeDelta::minutes(5);
/// The App's own token lives for nine minutes.
const JWT_LIFE: TimeDelta = TimeDelta::minutes(8);

/// In whose name a call is made.
#[derive(Clone)]
pub(crate) enum Who {
    /// The App itself.
    App,
    /// An installation.
    Installation(Arc<Installation>),
}

impl Who {
    pub(crate) fn budget<'a>(&'a self, hub: &'a Hub) -> &'a Budget {
        match self {
            Self::App => &hub.budget,
            Self::Installation(installation) => &installation.budget,
        }
    }

    /// A place among the calls under way.
    pub(crate) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        match self {
            Self::App => None,
            Self::Installation(installation) => installation.places.acquire().await.ok(),
        }
    }
}

/// One installation: its token and its limits.
pub(crate) struct Installation {
    id: u64,
    token: tokio::sync::Mutex<Option<Token>>,
    budget: Budget,
    places: Semaphore,
}

struct Token {
    header: HeaderValue,
    expires_at: DateTime<Utc>,
}

pub(crate) struct Hub {
    pub(crate) config: AppConfig,
    pub(crate) transport: Transport,
    pub(crate) etags: Etags,
    pub(crate) stores: Stores,
    pub(crate) identity: OnceCell<Identity>,
    budget: Budget,
    key: EncodingKey,
    jwt: Mutex<Option<Token>>,
    /// By id.
    installations: Mutex<HashMap<u64, Arc<Installation>>>,
    /// By `owner/name` in lower case.
    homes: Mutex<HashMap<String, Arc<Installation>>>,
}

impl Hub {
    pub(crate) fn new(config: AppConfig) -> Result<Self, GitHubError> {
        let key = EncodingKey::from_rsa_pem(config.private_key_pem.expose_secret().as_bytes()).map_err(|_| {
            GitHubError::Config(
                "the App's private key is no RSA key in PEM form; download it anew from the App's settings".into(),
            )
        })?;
        Ok(Self {
            transport: Transport::new(&config)?,
            etags: Etags::new(config.limits.etag_cache_bytes),
            stores: Stores::new(&config.limits),
            identity: OnceCell::new(),
            budget: Budget::new("app".into()),
            key,
            jwt: Mutex::new(None),
            installations: Mutex::new(HashMap::new()),
            homes: Mutex::new(HashMap::new()),
            config,
        })
    }

    /// The `Authorization` header.
    pub(crate) async fn authorization(&self, who: &Who) -> Result<HeaderValue, GitHubError> {
        match who {
            Who::App => self.jwt(),
            Who::Installation(installation) => {
                let mut token = installation.token.lock().await;
                let now = self.config.time.now();
                if let Some(token) = token.as_ref().filter(|token| token.expires_at > now + MARGIN) {
                    return Ok(token.header.clone());
                }
                let fresh = match self.mint(installation).await {
                    Ok(fresh) => fresh,
                    Err(error) => {
                        if matches!(error, GitHubError::NotFound { .. }) {
                            // The App was removed and maybe installed anew, and the event of it was lost.
                            lock(&self.homes).retain(|_, home| home.id != installation.id);
                        }
                        return Err(error);
                    }
                };
                let header = fresh.header.clone();
                *token = Some(fresh);
                Ok(header)
            }
        }
    }

    /// Drops a token that was refused, unless it has been replaced meanwhile.
    pub(crate) async fn refused(&self, who: &Who, header: &HeaderValue) {
        let mine = |token: &mut Token| token.header == header;
        match who {
            Who::App => drop(lock(&self.jwt).take_if(mine)),
            Who::Installation(installation) => drop(installation.token.lock().await.take_if(mine)),
        }
    }

    fn jwt(&self) -> Result<HeaderValue, GitHubError> {
        let mut kept = lock(&self.jwt);
        let now = self.config.time.now();
        if let Some(token) = kept.as_ref().filter(|token| token.expires_at > now) {
            return Ok(token.header.clone());
        }
        // By GitHub's clock, as far as it is known: tokens from the future are refused, and machines' clocks are wrong.
        let time = now.timestamp() + self.transport.skew().unwrap_or_default();
        let claims = json!({"iat": time - 60, "exp": time + 540, "iss": self.config.app_id.to_string()});
        let jwt = jsonwebtoken::encode(&Header::new(Algorithm::RS256), &claims, &self.key)
            .map_err(|_| GitHubError::Config("the App's private key cannot sign".into()))?;
        let header = bearer(&jwt)?;
        *kept = Some(Token {
            header: header.clone(),
            expires_at: now + JWT_LIFE,
        });
        Ok(header)
    }

    /// Asks for an installation token. Asking twice does no harm: the first one just expires.
    async fn mint(&self, installation: &Installation) -> Result<Token, GitHubError> {
        let id = installation.id.to_string();
        let call = Call::post(
            join(["app", "installations", &id, "access_tokens"]),
            json!({}),
            format!("an access token for installation {id}"),
        )
        .repeatable();
        let answer = Box::pin(self.send(&Who::App, &call, &Tally::default())).await?;
        let token: wire::AccessToken = answer.decode(&call.what)?;
        Ok(Token {
            header: bearer(&token.token)?,
            expires_at: token.expires_at,
        })
    }

    /// The installation that holds a repository; asked once.
    pub(crate) async fn installation_of(&self, name: &RepoName) -> Result<Arc<Installation>, GitHubError> {
        let key = name.as_str().to_ascii_lowercase();
        if let Some(found) = lock(&self.homes).get(&key) {
            return Ok(Arc::clone(found));
        }
        let found: wire::Installation = self.read_installation(name).await?;
        let installation = self.installation(found.id);
        lock(&self.homes).insert(key, Arc::clone(&installation));
        Ok(installation)
    }

    pub(crate) async fn read_installation(&self, name: &RepoName) -> Result<wire::Installation, GitHubError> {
        let call = Call::get(
            join(["repos", name.as_str(), "installation"]),
            format!("the App's installation on {name}"),
        );
        self.send(&Who::App, &call, &Tally::default()).await?.decode(&call.what)
    }

    pub(crate) fn installation(&self, id: u64) -> Arc<Installation> {
        let places = self.config.limits.concurrent.max(1);
        let mut known = lock(&self.installations);
        Arc::clone(known.entry(id).or_insert_with(|| {
            Arc::new(Installation {
                id,
                token: tokio::sync::Mutex::new(None),
                budget: Budget::new(id.to_string()),
                places: Semaphore::new(places),
            })
        }))
    }

    /// Forgets which installation holds which repository, and all tokens.
    pub(crate) fn forget_installations(&self) {
        lock(&self.homes).clear();
        lock(&self.installations).clear();
    }
}

fn bearer(token: &str) -> Result<HeaderValue, GitHubError> {
    let text = SecretString::from(format!("Bearer {token}"));
    let mut header = HeaderValue::from_str(text.expose_secret())
        .map_err(|_| GitHubError::Config("GitHub gave a token that no header can hold".into()))?;
    header.set_sensitive(true);
    Ok(header)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    // What is inside is replaced whole, so a panic elsewhere leaves nothing half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
