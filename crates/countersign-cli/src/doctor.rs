//! `doctor`: what is wrong with this installation, and what to do about it.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use countersign_core::RepoName;

use crate::serve;

/// Permissions that the App needs, with the least access.
const PERMISSIONS: &[(&str, &str, &str)] = &[
    ("contents", "read", "files at pinned commits"),
    ("pull_requests", "write", "pull requests, reviews, reactions"),
    ("issues", "write", "the verdict comment"),
    ("statuses", "write", "the commit status"),
    ("checks", "write", "the check run"),
    ("actions", "read", "runs, jobs and artifacts"),
    ("members", "read", "teams in CODEOWNERS"),
];

struct Report {
    bad: bool,
}

impl Report {
    fn fine(&self, what: &str) {
        println!("✅ {what}");
    }

    fn wrong(&mut self, what: &str, remedy: &str) {
        self.bad = true;
        println!("❌ {what}\n   → {remedy}");
    }
}

pub(crate) async fn run(path: &Path) -> Result<ExitCode> {
    let mut report = Report { bad: false };
    let settings = match serve::settings(path) {
        Ok(settings) => settings,
        Err(error) => {
            report.wrong("the configuration cannot be used", &format!("{error:#}"));
            return Ok(ExitCode::from(2));
        }
    };
    report.fine("configuration");
    for (name, entry) in &settings.config.repositories {
        match countersign_server::policies::load_from(&settings.config.policies, &entry.policy) {
            Ok(policy) => {
                let notes = countersign_checks::validate(&policy)
                    .map(|notes| notes.len())
                    .unwrap_or_default();
                report.fine(&format!(
                    "policy {} for {name}{}",
                    entry.policy,
                    if notes > 0 {
                        format!(" ({notes} checks not in this version)")
                    } else {
                        String::new()
                    }
                ));
            }
            Err(error) => report.wrong(
                &format!("the policy {} for {name} is broken", entry.policy),
                &error.to_string(),
            ),
        }
    }
    database(&settings, &mut report).await;
    github(&settings, &mut report).await?;
    Ok(ExitCode::from(u8::from(report.bad)))
}

async fn database(settings: &countersign_server::config::Settings, report: &mut Report) {
    let store = match serve::database(settings) {
        Ok(store) => store,
        Err(error) => return report.wrong("the database is not configured", &format!("{error:#}")),
    };
    match store.ping().await {
        Err(error) => report.wrong(
            &format!("the database cannot be reached: {error}"),
            "Check DATABASE_URL and that the server runs.",
        ),
        Ok(()) => match store.migration_state().await {
            Ok(state) => report.fine(&format!("database ({state:?})")),
            Err(error) => report.wrong(
                &format!("the database has not this version's form: {error}"),
                "Run `countersign migrate`.",
            ),
        },
    }
    if let Ok(counts) = store.counts().await {
        if counts.deliveries_dead > 0 || counts.publications_failed > 0 {
            report.wrong(
                &format!(
                    "{} deliveries and {} publications were given up",
                    counts.deliveries_dead, counts.publications_failed
                ),
                "Look at their last error in the log, mend the cause, then revive them (deploy/runbook.md).",
            );
        } else {
            report.fine("nothing was given up");
        }
    }
}

async fn github(settings: &countersign_server::config::Settings, report: &mut Report) -> Result<()> {
    let app = match serve::app(settings) {
        Ok(app) => app,
        Err(error) => {
            report.wrong(
                &format!("the App's key cannot be used: {error:#}"),
                "Generate a private key on the App's settings page.",
            );
            return Ok(());
        }
    };
    match app.identity().await {
        Ok(identity) => report.fine(&format!("GitHub knows the App as {} ({})", identity.slug, identity.bot)),
        Err(error) => {
            report.wrong(
                &format!("GitHub does not accept the App: {error}"),
                "Compare app_id and private key with the App's settings page, and check this machine's clock.",
            );
            return Ok(());
        }
    }
    for name in settings.config.repositories.keys().filter(|name| *name != "*") {
        let Ok(repository) = name.parse::<RepoName>() else {
            report.wrong(&format!("{name:?} is no repository"), "Write it as owner/name.");
            continue;
        };
        match app.installation_grants(&repository).await {
            Err(error) => report.wrong(&format!("{repository}: {error}"), "Install the App on this repository."),
            Ok(grants) if grants.suspended => report.wrong(
                &format!("{repository}: the installation is suspended"),
                "Unsuspend it in the organisation's settings.",
            ),
            Ok(grants) => {
                let lacking: Vec<String> = PERMISSIONS
                    .iter()
                    .filter(|(permission, least, _)| {
                        let granted = grants.permissions.get(*permission).map(String::as_str);
                        !(granted == Some("write") || granted == Some("admin") || granted == Some(*least))
                    })
                    .map(|(permission, least, why)| format!("{permission}: {least} ({why})"))
                    .collect();
                if lacking.is_empty() {
                    report.fine(&format!("{repository}: all permissions"));
                } else {
                    report.wrong(
                        &format!("{repository}: permissions are missing: {}", lacking.join(", ")),
                        "Add them on the App's settings page, then accept them for the installation.",
                    );
                }
            }
        }
    }
    if let Some(skew) = app.skew() {
        if skew.ahead.num_seconds().abs() > 30 {
            report.wrong(
                &format!("this machine's clock is off by {} seconds", skew.ahead.num_seconds()),
                "Synchronise it: GitHub refuses tokens from the future.",
            );
        } else {
            report.fine("clock");
        }
    }
    match app.failed_deliveries(chrono::Utc::now() - chrono::TimeDelta::hours(24)).await {
        Ok(failed) if failed.is_empty() => report.fine("no failed webhook delivery in 24 hours"),
        Ok(failed) => report.wrong(
            &format!("{} webhook deliveries failed in 24 hours (last answer: {})", failed.len(), failed.first().map_or(0, |delivery| delivery.status_code)),
            "Check the webhook address and secret on the App's settings page; what is missing is asked for again by a running server.",
        ),
        Err(error) => report.wrong(&format!("deliveries cannot be listed: {error}"), "Check the App's webhook settings."),
    }
    Ok(())
}
