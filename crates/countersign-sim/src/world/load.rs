//! Reading a world: text → `World`, with line and column of what is wrong, and the files and environment variables it names.

use std::path::{Path, PathBuf};

use super::actions::ArtifactSpec;
use super::pulls::PullSpec;
use super::repo::RepoSpec;
use super::spell::{FileSpec, Files};
use super::timeline::Step;
use super::{VERSION, World};

/// The largest world file that is read.
pub const MAX_BYTES: u64 = 64 << 20;

/// What is wrong with a world.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorldError {
    /// Not YAML, or not of the format.
    #[error("{name}:{line}:{column}: {message}")]
    Parse {
        /// The file's name.
        name: String,
        /// 1-based line; 0 where unknown.
        line: u64,
        /// 1-based column; 0 where unknown.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// A version that this program does not know.
    #[error("{name}: world version {found} is not known here; this program reads version {VERSION}")]
    Version {
        /// The file's name.
        name: String,
        /// The version it says.
        found: u32,
    },
    /// A file that cannot be read.
    #[error("{path}: {message}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The reason.
        message: String,
    },
    /// An environment variable that is not set.
    #[error("{at}: the environment variable {name} is not set; set it to the path that the world needs")]
    Env {
        /// Where in the world.
        at: String,
        /// The variable.
        name: String,
    },
    /// Something that contradicts itself, or names what is not there.
    #[error("{at}: {message}")]
    Invalid {
        /// Where in the world, such as `repositories.octo/bench.pulls[0].head`.
        at: String,
        /// What is wrong, and what to do.
        message: String,
    },
}

impl WorldError {
    /// An [`WorldError::Invalid`].
    pub fn invalid(at: impl Into<String>, message: impl Into<String>) -> Self {
        WorldError::Invalid {
            at: at.into(),
            message: message.into(),
        }
    }
}

impl World {
    /// Reads a world from text. Files that it names are not opened: see [`World::load`].
    pub fn parse(name: &str, text: &str) -> Result<World, WorldError> {
        let options = serde_yaml::options! {
            strict_booleans: true,
            budget: serde_yaml::budget! {
                max_nodes: 4_000_000,
                max_events: 8_000_000,
                max_total_scalar_bytes: MAX_BYTES as usize,
            },
        };
        let world: World = serde_yaml::from_str_with_options(text, options).map_err(|e| {
            let (line, column) = e.location().map_or((0, 0), |l| (l.line(), l.column()));
            WorldError::Parse {
                name: name.to_owned(),
                line,
                column,
                message: one_line(&e.without_snippet().to_string()),
            }
        })?;
        if world.world != VERSION {
            return Err(WorldError::Version {
                name: name.to_owned(),
                found: world.world,
            });
        }
        Ok(world)
    }

    /// The world as YAML, from which [`World::parse`] reads the same world. What it does not say is left out.
    ///
    /// # Errors
    /// None that a world read by [`World::parse`] can have; the writer's own are passed on.
    pub fn to_yaml(&self) -> Result<String, WorldError> {
        serde_yaml::to_string(self).map_err(|e| WorldError::invalid("world", e.to_string()))
    }

    /// Reads a world from a file, with the files beside it that it names and the environment variables in `clone`.
    pub fn load(path: &Path) -> Result<World, WorldError> {
        let size = std::fs::metadata(path).map_err(|e| io(path, &e))?.len();
        if size > MAX_BYTES {
            return Err(WorldError::Io {
                path: path.to_owned(),
                message: format!("larger than {MAX_BYTES} bytes"),
            });
        }
        let text = std::fs::read_to_string(path).map_err(|e| io(path, &e))?;
        let mut world = World::parse(&path.display().to_string(), &text)?;
        world.resolve(path.parent().unwrap_or(Path::new(".")))?;
        Ok(world)
    }

    /// Reads the files and environment variables that the world names; `folder` is what relative paths start from.
    pub fn resolve(&mut self, folder: &Path) -> Result<(), WorldError> {
        for (name, repo) in &mut self.repositories {
            resolve_repo(folder, &format!("repositories.{name}"), repo)?;
        }
        for (name, repo) in &mut self.upstream {
            resolve_repo(folder, &format!("upstream.{name}"), repo)?;
        }
        for page in self.pages.values_mut() {
            body(folder, &mut page.0.body, &mut page.0.body_file)?;
        }
        let of_faults = self
            .faults
            .iter_mut()
            .flat_map(|f| [f.before.as_deref_mut(), f.after.as_deref_mut()])
            .flatten();
        for step in self.timeline.iter_mut().chain(of_faults) {
            resolve_step(folder, step)?;
        }
        Ok(())
    }
}

fn resolve_repo(folder: &Path, at: &str, repo: &mut RepoSpec) -> Result<(), WorldError> {
    if let Some(clone) = &mut repo.clone {
        let text = expand(&format!("{at}.clone"), clone)?;
        *clone = folder.join(text).display().to_string();
    }
    if let Some(files) = &mut repo.files {
        resolve_files(folder, files)?;
    }
    for commit in &mut repo.commits {
        resolve_files(folder, &mut commit.files)?;
    }
    for pull in &mut repo.pulls {
        resolve_pull(folder, pull)?;
    }
    for run in repo.runs.iter_mut().flatten() {
        resolve_zips(folder, run.artifacts.as_mut());
    }
    Ok(())
}

fn resolve_zips(folder: &Path, artifacts: Option<&mut Vec<ArtifactSpec>>) {
    for zip in artifacts.into_iter().flatten().filter_map(|a| a.zip.as_mut()) {
        *zip = folder.join(&zip).display().to_string();
    }
}

fn resolve_pull(folder: &Path, pull: &mut PullSpec) -> Result<(), WorldError> {
    body(folder, &mut pull.body, &mut pull.body_file)?;
    for c in pull.comments.iter_mut().flatten() {
        body(folder, &mut c.body, &mut c.body_file)?;
    }
    for c in pull.reviews.iter_mut().flatten() {
        body(folder, &mut c.body, &mut c.body_file)?;
    }
    for c in pull.review_comments.iter_mut().flatten() {
        body(folder, &mut c.body, &mut c.body_file)?;
    }
    Ok(())
}

fn resolve_step(folder: &Path, step: &mut Step) -> Result<(), WorldError> {
    if let Some(c) = &mut step.comment {
        body(folder, &mut c.what.body, &mut c.what.body_file)?;
    }
    if let Some(c) = &mut step.review {
        body(folder, &mut c.what.body, &mut c.what.body_file)?;
    }
    if let Some(c) = &mut step.review_comment {
        body(folder, &mut c.what.body, &mut c.what.body_file)?;
    }
    for edit in [
        &mut step.edit_comment,
        &mut step.edit_review,
        &mut step.edit_review_comment,
    ]
    .into_iter()
    .flatten()
    {
        body(folder, &mut edit.body, &mut edit.body_file)?;
    }
    if let Some(run) = &mut step.run {
        resolve_zips(folder, run.what.artifacts.as_mut());
    }
    if let Some(update) = &mut step.update_run {
        resolve_zips(folder, update.artifacts.as_mut());
    }
    if let Some(open) = &mut step.open {
        resolve_pull(folder, &mut open.pull)?;
    }
    if let Some(page) = step.page.as_mut().and_then(|p| p.page.as_mut()) {
        body(folder, &mut page.0.body, &mut page.0.body_file)?;
    }
    for commit in [
        step.push.as_mut().and_then(|p| p.commit.as_mut()),
        step.push_branch.as_mut().and_then(|p| p.commit.as_mut()),
    ]
    .into_iter()
    .flatten()
    {
        resolve_files(folder, &mut commit.files)?;
    }
    Ok(())
}

fn body(folder: &Path, body: &mut Option<String>, file: &mut Option<String>) -> Result<(), WorldError> {
    if let Some(name) = file.take() {
        let path = folder.join(name);
        *body = Some(std::fs::read_to_string(&path).map_err(|e| io(&path, &e))?);
    }
    Ok(())
}

fn resolve_files(folder: &Path, files: &mut Files) -> Result<(), WorldError> {
    for file in files.values_mut() {
        if let FileSpec::Full(full) = file
            && let Some(name) = full.file.take()
        {
            use base64::Engine;
            let path = folder.join(name);
            let bytes = std::fs::read(&path).map_err(|e| io(&path, &e))?;
            match String::from_utf8(bytes) {
                Ok(text) => full.text = Some(text),
                Err(e) => full.base64 = Some(base64::engine::general_purpose::STANDARD.encode(e.as_bytes())),
            }
        }
    }
    Ok(())
}

/// Replaces `${NAME}` by the environment variable's value.
fn expand(at: &str, text: &str) -> Result<String, WorldError> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, from) = rest.split_at(start);
        out.push_str(before);
        let Some(end) = from.find('}') else { break };
        let name = &from[2..end];
        let value = std::env::var(name).map_err(|_| WorldError::Env {
            at: at.to_owned(),
            name: name.to_owned(),
        })?;
        out.push_str(&value);
        rest = &from[end + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

fn io(path: &Path, e: &std::io::Error) -> WorldError {
    WorldError::Io {
        path: path.to_owned(),
        message: e.to_string(),
    }
}

fn one_line(text: &str) -> String {
    text.lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}
