//! Configuration: a TOML file, with secrets and addresses from the environment (docs/configuration.md).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// A configuration that cannot be used: what, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("{path}: {why}\n  → Give the path of a configuration file with --config; an example is config/countersign.example.toml.", path = path.display())]
    Unreadable {
        /// Path.
        path: PathBuf,
        /// The system's words.
        why: String,
    },
    /// The file is not TOML of the right form.
    #[error("{path}: {why}\n  → Compare with config/countersign.example.toml.", path = path.display())]
    Malformed {
        /// Path.
        path: PathBuf,
        /// With line and column.
        why: String,
    },
    /// A value is missing.
    #[error("{what} is not set\n  → {remedy}")]
    Missing {
        /// Name.
        what: &'static str,
        /// What to do.
        remedy: &'static str,
    },
}

/// The file, as written. Unknown fields are errors.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The HTTP server.
    #[serde(default)]
    pub server: ServerConfig,
    /// The GitHub App.
    pub github: GitHubConfig,
    /// The database.
    #[serde(default)]
    pub database: DatabaseConfig,
    /// Folder of policy files.
    #[serde(default = "default_policies")]
    pub policies: PathBuf,
    /// Which policy judges which repository, by `owner/name`; `*` = every repository of the installation.
    pub repositories: BTreeMap<String, RepositoryConfig>,
}

fn default_policies() -> PathBuf {
    PathBuf::from("config/policies")
}

/// `[server]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ServerConfig {
    /// Where to listen.
    pub listen: SocketAddr,
    /// Address under which readers reach this server, for links; none = verdicts link to no page.
    pub public_url: Option<String>,
    /// Largest webhook body, in bytes. GitHub's own limit is 25 MB.
    pub max_body_bytes: usize,
    /// Verdicts worked on at once.
    pub workers: usize,
    /// Seconds that a stop waits for work under way.
    pub shutdown_seconds: u64,
    /// Minutes between two looks for what was lost.
    pub reconcile_minutes: u64,
    /// Minutes after which an open pull request is looked at again though nothing seems to have changed: what GitHub shows is compared
    /// with what we wrote, and evidence is read again. Catches what no event and no date tells of.
    pub recheck_minutes: u64,
    /// Where `/metrics` is served: an address that only the operator reaches. None = not at all.
    pub metrics_listen: Option<SocketAddr>,
    /// Seconds after which work of a replica that died is taken up by another. A living one extends its claim.
    pub lease_seconds: u64,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            public_url: None,
            max_body_bytes: 25 * 1024 * 1024,
            workers: 4,
            shutdown_seconds: 20,
            reconcile_minutes: 10,
            recheck_minutes: 360,
            metrics_listen: None,
            lease_seconds: 60,
        }
    }
}

/// `[github]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GitHubConfig {
    /// App id; or `COUNTERSIGN_APP_ID`.
    #[serde(default)]
    pub app_id: Option<u64>,
    /// File with the App's private key (PEM); or the key itself in `COUNTERSIGN_PRIVATE_KEY`.
    #[serde(default)]
    pub private_key_file: Option<PathBuf>,
    /// File with the webhook secret; or `COUNTERSIGN_WEBHOOK_SECRET`.
    #[serde(default)]
    pub webhook_secret_file: Option<PathBuf>,
    /// Address of the API; GitHub Enterprise Server: `https://HOST/api/v3`.
    #[serde(default = "default_api")]
    pub api_url: String,
    /// Hosts that archives and artifacts may be redirected to, besides GitHub's own: for GitHub Enterprise Server. Nothing else is followed.
    #[serde(default)]
    pub archive_hosts: Vec<String>,
}

fn default_api() -> String {
    "https://api.github.com".into()
}

/// `[database]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseConfig {
    /// `DATABASE_URL` of the environment goes before this.
    pub url: Option<String>,
    /// Most connections.
    pub max_connections: u32,
}

impl Default for DatabaseConfig {
    fn default() -> Self {
        Self {
            url: None,
            max_connections: 16,
        }
    }
}

/// `[repositories."owner/name"]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RepositoryConfig {
    /// Name of the policy file, without ending.
    pub policy: String,
    /// Judge and store, publish nothing.
    #[serde(default)]
    pub shadow: bool,
    /// Serve the page of each verdict to everybody who has its address.
    #[serde(default)]
    pub pages: bool,
}

/// Everything resolved: what the server runs with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The file's values.
    pub config: Config,
    /// App id.
    pub app_id: u64,
    /// The App's private key.
    pub private_key: SecretString,
    /// The webhook secret.
    pub webhook_secret: SecretString,
    /// The database, if one was named.
    pub database_url: Option<SecretString>,
}

/// Reads an environment variable; given from outside so that this stays testable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

impl Settings {
    /// Reads file and environment.
    ///
    /// # Errors
    /// [`ConfigError`] at the first thing that is wrong or missing.
    pub fn load(path: &Path, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        Self::from_text(&text, path, environment)
    }

    /// Reads a text as if it stood in `path`.
    ///
    /// # Errors
    /// As [`Settings::load`].
    pub fn from_text(text: &str, path: &Path, environment: Environment<'_>) -> Result<Self, ConfigError> {
        let config: Config = toml::from_str(text).map_err(|error| ConfigError::Malformed {
            path: path.to_owned(),
            why: error.to_string(),
        })?;
        let app_id = environment("COUNTERSIGN_APP_ID")
            .and_then(|id| id.trim().parse().ok())
            .or(config.github.app_id)
            .ok_or(ConfigError::Missing {
                what: "github.app_id",
                remedy: "Copy the App ID from the App's settings page into the file or COUNTERSIGN_APP_ID.",
            })?;
        let private_key = secret(environment("COUNTERSIGN_PRIVATE_KEY"), config.github.private_key_file.as_deref())?.ok_or(ConfigError::Missing {
            what: "github.private_key_file",
            remedy: "Generate a private key on the App's settings page and give its path, or the key in COUNTERSIGN_PRIVATE_KEY.",
        })?;
        let webhook_secret = secret(environment("COUNTERSIGN_WEBHOOK_SECRET"), config.github.webhook_secret_file.as_deref())?
            .filter(|secret| !secret.expose_secret().is_empty())
            .ok_or(ConfigError::Missing {
                what: "the webhook secret",
                remedy: "Set one on the App's settings page and give it in COUNTERSIGN_WEBHOOK_SECRET or github.webhook_secret_file.",
            })?;
        let database_url = environment("DATABASE_URL")
            .or_else(|| config.database.url.clone())
            .map(SecretString::from);
        if config.repositories.is_empty() {
            return Err(ConfigError::Missing {
                what: "repositories",
                remedy: "Add [repositories.\"owner/name\"] with policy = \"NAME\".",
            });
        }
        Ok(Self {
            config,
            app_id,
            private_key,
            webhook_secret,
            database_url,
        })
    }

    /// The entry for a repository: its own, else `*`.
    #[must_use]
    pub fn repository(&self, name: &str) -> Option<&RepositoryConfig> {
        self.config
            .repositories
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, entry)| entry)
            .or_else(|| self.config.repositories.get("*"))
    }

    /// How long a stop waits.
    #[must_use]
    pub fn shutdown(&self) -> Duration {
        Duration::from_secs(self.config.server.shutdown_seconds)
    }
}

fn secret(from_environment: Option<String>, file: Option<&Path>) -> Result<Option<SecretString>, ConfigError> {
    if let Some(value) = from_environment {
        return Ok(Some(SecretString::from(value)));
    }
    let Some(path) = file else { return Ok(None) };
    let text = std::fs::read_to_string(path).map_err(|error| ConfigError::Unreadable {
        path: path.to_owned(),
        why: error.to_string(),
    })?;
    Ok(Some(SecretString::from(text.trim_end().to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[github]\napp_id = 7\n[repositories.\"octo/bench\"]\npolicy = \"sample\"\n[repositories.\"*\"]\npolicy = \"rest\"\n";

    fn environment(name: &str) -> Option<String> {
        match name {
            "COUNTERSIGN_PRIVATE_KEY" => Some("key".into()),
            "COUNTERSIGN_WEBHOOK_SECRET" => Some("secret".into()),
            _ => None,
        }
    }

    #[test]
    fn names_ignore_case_and_the_star_is_last() {
        let settings = Settings::from_text(FILE, Path::new("x.toml"), &environment).unwrap();
        assert_eq!(settings.repository("Octo/Bench").unwrap().policy, "sample");
        assert_eq!(settings.repository("octo/other").unwrap().policy, "rest");
    }

    #[test]
    fn what_is_missing_is_named_with_a_remedy_and_secrets_do_not_show() {
        let error = Settings::from_text(FILE, Path::new("x.toml"), &|_| None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("private_key") && error.contains('→'), "{error}");
        let error = Settings::from_text(
            "[github]\nbogus = 1\n[repositories]\n",
            Path::new("x.toml"),
            &environment,
        )
        .unwrap_err()
        .to_string();
        assert!(error.contains("bogus") && error.contains("x.toml"), "{error}");
        let settings = Settings::from_text(FILE, Path::new("x.toml"), &environment).unwrap();
        assert!(!format!("{settings:?}").contains("secret\""));
    }
}
