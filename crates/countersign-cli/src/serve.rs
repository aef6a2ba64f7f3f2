//! `serve` and `migrate`.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use countersign_github::{App, AppConfig};
use countersign_server::config::Settings;
use countersign_server::{Clock, Engine, Service};
use countersign_store::{Store, StoreOptions};
use secrecy::ExposeSecret as _;

/// Logs to standard error: JSON lines for a server, warnings in words for a command.
pub(crate) fn logging(quiet: bool) {
    let filter = tracing_subscriber::EnvFilter::try_from_env("COUNTERSIGN_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(if quiet { "off" } else { "info" }));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    if quiet {
        builder.with_target(false).init();
    } else {
        builder.json().init();
    }
}

pub(crate) fn settings(path: &Path) -> Result<Settings> {
    Ok(Settings::load(path, &|name| std::env::var(name).ok())?)
}

pub(crate) fn app(settings: &Settings) -> Result<App> {
    let url = settings
        .config
        .github
        .api_url
        .parse()
        .with_context(|| format!("github.api_url {:?} is no address", settings.config.github.api_url))?;
    let mut config = AppConfig::new(settings.app_id, settings.private_key.clone(), url);
    config
        .archive_hosts
        .extend(settings.config.github.archive_hosts.iter().cloned());
    Ok(App::new(config)?)
}

pub(crate) fn database(settings: &Settings) -> Result<Store> {
    let url = settings
        .database_url
        .as_ref()
        .context("no database is named\n  → Set DATABASE_URL, or database.url in the configuration file.")?;
    let options = StoreOptions {
        max_connections: settings.config.database.max_connections,
        ..StoreOptions::default()
    };
    Ok(Store::connect_lazily(url.expose_secret(), options)?)
}

pub(crate) async fn serve(path: &Path) -> Result<ExitCode> {
    let settings = settings(path)?;
    // A policy that is broken from the start must not be found by the first pull request.
    for entry in settings.config.repositories.values() {
        let policy = countersign_server::policies::load_from(&settings.config.policies, &entry.policy)?;
        for note in countersign_checks::validate(&policy)? {
            tracing::warn!(policy = %entry.policy, check = %note.slug, "{}", note.message);
        }
    }
    let store = database(&settings)?;
    let engine = Engine::new(store, app(&settings)?, settings, Clock::System);
    let service = Service::start(engine)
        .await
        .context("cannot listen; choose another server.listen")?;
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    let mut reload = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?;
    loop {
        tokio::select! {
            _ = tokio::signal::ctrl_c() => break,
            _ = terminate.recv() => break,
            _ = reload.recv() => { service.engine().policies.reload(); }
        }
    }
    service.stop().await;
    Ok(ExitCode::SUCCESS)
}

pub(crate) async fn migrate(path: &Path) -> Result<ExitCode> {
    let settings = settings(path)?;
    let store = database(&settings)?;
    store.migrate().await?;
    println!("the database has this version's form");
    Ok(ExitCode::SUCCESS)
}
