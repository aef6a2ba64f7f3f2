//! `policy check | schema | list | docs`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Subcommand;
use countersign_checks::checks;

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyCommand {
    /// Check policy files: form, parameters, and checks that this version does not have.
    Check {
        /// Files.
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Print the JSON Schema of policy files.
    Schema,
    /// List the checks of a policy, or all checks of this version.
    List {
        /// A policy file.
        file: Option<PathBuf>,
    },
    /// Write the documentation pages of all checks into a folder.
    Docs {
        /// The folder.
        folder: PathBuf,
    },
}

/// Loads a policy file; what it extends stands beside it.
pub(crate) fn load(file: &Path) -> Result<countersign_policy::LoadedPolicy> {
    let folder = file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let name = file
        .file_stem()
        .and_then(|name| name.to_str())
        .context("a policy file is named NAME.yaml")?;
    Ok(countersign_server::policies::load_from(folder, name)?)
}

pub(crate) fn run(command: &PolicyCommand) -> Result<ExitCode> {
    match command {
        PolicyCommand::Check { files } => {
            let mut bad = false;
            for file in files {
                match load(file).and_then(|policy| Ok((countersign_checks::validate(&policy)?, policy))) {
                    Ok((notes, policy)) => {
                        println!(
                            "{}: fine: {} {}, {} rows",
                            file.display(),
                            policy.policy.name,
                            policy.policy.version,
                            policy.policy.checks.len()
                        );
                        for note in notes {
                            println!("  warning: check {} ({}): {}", note.number, note.slug, note.message);
                        }
                    }
                    Err(error) => {
                        bad = true;
                        eprintln!("{error:#}");
                    }
                }
            }
            Ok(ExitCode::from(if bad { 2 } else { 0 }))
        }
        PolicyCommand::Schema => {
            println!("{}", serde_json::to_string_pretty(&countersign_checks::schema())?);
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::List { file: None } => {
            for check in checks::all() {
                println!(
                    "{:<18} {}",
                    check.slug(),
                    check.doc().lines().next().unwrap_or_default()
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::List { file: Some(file) } => {
            let policy = load(file)?;
            println!(
                "{} {}: {}",
                policy.policy.name, policy.policy.version, policy.policy.description
            );
            for entry in &policy.policy.checks {
                let missing = entry.slugs().any(|slug| checks::find(slug).is_none());
                let level = format!("{:?}", entry.level).to_lowercase();
                println!(
                    "{:>3}  {:<28} {:<24} {:<9}{}",
                    entry.number,
                    entry.name,
                    entry.slug,
                    level,
                    if missing { "not implemented in this version" } else { "" }
                );
            }
            Ok(ExitCode::SUCCESS)
        }
        PolicyCommand::Docs { folder } => {
            std::fs::create_dir_all(folder).with_context(|| format!("{}", folder.display()))?;
            for check in checks::all() {
                let path = folder.join(format!("{}.md", check.slug()));
                std::fs::write(&path, countersign_checks::docs::page(*check))
                    .with_context(|| format!("{}", path.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
