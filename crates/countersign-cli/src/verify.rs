//! `verify`: one verdict, printed; nothing stored, nothing posted.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use countersign_core::{PrNumber, RepoName, SignoffKey};
use countersign_policy::LoadedPolicy;
use countersign_server::config::Settings;
use countersign_server::verify::verify_once;

use crate::{Format, exit_of, serve};

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Address of a pull request, or of the sign-off in it (`…#issuecomment-1`, `…#pullrequestreview-1`, `…#discussion_r1`).
    url: String,
    /// The configuration file.
    #[arg(long, env = "COUNTERSIGN_CONFIG", default_value = "countersign.toml")]
    config: PathBuf,
    /// Another policy file than the configured one.
    #[arg(long)]
    policy: Option<PathBuf>,
    /// How to print.
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// Repository, number and sign-off of an address.
pub(crate) fn read_url(text: &str) -> Result<(RepoName, PrNumber, Option<SignoffKey>)> {
    let url: url::Url = text.parse().with_context(|| format!("{text:?} is no address"))?;
    let parts: Vec<&str> = url
        .path_segments()
        .map(|parts| parts.filter(|part| !part.is_empty()).collect())
        .unwrap_or_default();
    let [.., owner, name, "pull", number] = parts.as_slice() else {
        // `…/pull/7/files#discussion_r1` is what the browser shows for inline comments.
        let [.., owner, name, "pull", number, "files" | "changes"] = parts.as_slice() else {
            bail!("{text:?} is no pull request: it must read https://HOST/OWNER/NAME/pull/NUMBER");
        };
        return Ok((
            format!("{owner}/{name}").parse()?,
            PrNumber(number.parse()?),
            key_of(&url)?,
        ));
    };
    Ok((
        format!("{owner}/{name}").parse()?,
        PrNumber(number.parse()?),
        key_of(&url)?,
    ))
}

fn key_of(url: &url::Url) -> Result<Option<SignoffKey>> {
    Ok(match url.fragment() {
        None | Some("") => None,
        Some(fragment) => Some(fragment.parse()?),
    })
}

/// The policy that is named, else the one that is configured for the repository.
pub(crate) fn policy(settings: &Settings, named: Option<&Path>, repository: &RepoName) -> Result<LoadedPolicy> {
    match named {
        Some(file) => crate::policy::load(file),
        None => {
            let entry = settings
                .repository(repository.as_str())
                .with_context(|| format!("no policy is configured for {repository}; name one with --policy"))?;
            Ok(countersign_server::policies::load_from(
                &settings.config.policies,
                &entry.policy,
            )?)
        }
    }
}

pub(crate) async fn run(args: &VerifyArgs) -> Result<ExitCode> {
    let (repository, number, signoff) = read_url(&args.url)?;
    let settings = serve::settings(&args.config)?;
    let app = serve::app(&settings)?;
    let policy = policy(&settings, args.policy.as_deref(), &repository)?;
    let verdict = verify_once(&app, &policy, &repository, number, signoff, chrono::Utc::now()).await?;
    crate::worlds::show(&verdict, &policy, args.format)?;
    Ok(exit_of(verdict.decision))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pull_requests_and_signoffs() {
        let (repository, number, key) = read_url("https://github.com/o/r/pull/7#issuecomment-9").unwrap();
        assert_eq!(
            (repository.as_str(), number.0, key.map(|key| key.to_string()).as_deref()),
            ("o/r", 7, Some("issuecomment-9"))
        );
        assert!(
            read_url("https://ghes.example/o/r/pull/7/files#discussion_r1")
                .unwrap()
                .2
                .is_some()
        );
        assert!(read_url("https://github.com/o/r/pull/7").unwrap().2.is_none());
        for bad in [
            "x",
            "https://github.com/o/r",
            "https://github.com/o/r/pull/x",
            "https://github.com/o/r/pull/7#x-1",
        ] {
            assert!(read_url(bad).is_err(), "{bad}");
        }
    }
}
