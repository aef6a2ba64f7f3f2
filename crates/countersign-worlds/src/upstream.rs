//! What links to other projects lead to, as far as the world says it.

use std::collections::{BTreeMap, BTreeSet};

use countersign_core::evidence::{Page, PullState, Upstream, UpstreamPull};
use countersign_core::{CauseKind, Observed, RepoName};
use countersign_github::gather::wanted::{DEPTH, DOCUMENTS, LINKS, followed_links, includes, page_path, page_source};
use countersign_policy::{Policy, UpstreamSource};
use countersign_signoff::{Link, SignOff, Target, Template};
use countersign_sim::still::{Fact, Still, StillMode, StillPull};

use crate::WorldsError;
use crate::gaps::Gaps;

pub(crate) fn upstream(
    still: &mut Still,
    gaps: &Gaps<'_>,
    policy: &Policy,
    signoff: &SignOff,
    template: Option<&Template>,
) -> Result<BTreeMap<String, Observed<Upstream>>, WorldsError> {
    let mut found = BTreeMap::new();
    for (index, (link, source)) in followed_links(policy, signoff, template).into_iter().enumerate() {
        let recorded = gaps.known(&leads_to(&link));
        let leads = if let Some(recorded) = recorded {
            recorded
        } else if index < LINKS {
            follow(still, gaps, policy, &link, source)?
        } else {
            Observed::unavailable(
                CauseKind::TooLarge,
                leads_to(&link),
                format!("at most {LINKS} links are followed"),
            )
        };
        found.insert(link.url.clone(), leads);
    }
    Ok(found)
}

fn follow(
    still: &mut Still,
    gaps: &Gaps<'_>,
    policy: &Policy,
    link: &Link,
    source: &UpstreamSource,
) -> Result<Observed<Upstream>, WorldsError> {
    match source {
        UpstreamSource::Pull { documents, context } => {
            let (Target::Pull { repository, number } | Target::IssueOrPull { repository, number }) = &link.target
            else {
                return Ok(Observed::Absent);
            };
            let Ok(name) = repository.parse::<RepoName>() else {
                return Ok(Observed::Absent);
            };
            match still.pull(name.as_str(), *number) {
                Fact::Known(found) => pull(still, gaps, &name, *number, &found, (documents, context), policy),
                Fact::Nothing => Ok(Observed::Absent),
                Fact::Unsaid(_) | Fact::Refused(_) => Ok(gaps.missing(&leads_to(link))),
            }
        }
        UpstreamSource::Page {
            repository,
            branch,
            roots,
            endings,
            strip,
            snippets,
        } => {
            let Some(path) = page_path(&link.url, strip) else {
                return Ok(Observed::Absent);
            };
            let Fact::Known(tip) = still.tip(repository, branch)? else {
                return Ok(gaps.missing(&leads_to(link)));
            };
            let Some(files) = still.tree(repository, &tip, &|_| true, &|_| true)? else {
                return Ok(gaps.missing(&leads_to(link)));
            };
            let files: BTreeMap<String, String> = files
                .into_iter()
                .filter(|(_, mode, _)| matches!(mode, StillMode::File | StillMode::Executable))
                .map(|(path, _, id)| (path, id))
                .collect();
            let paths: BTreeSet<&str> = files.keys().map(String::as_str).collect();
            let Some(source) = page_source(&paths, &path, roots, endings) else {
                return Ok(Observed::Absent);
            };
            page(still, repository, &tip, &files, source, snippets, policy)
        }
    }
}

fn leads_to(link: &Link) -> String {
    format!("what {} leads to", link.url)
}

fn pull(
    still: &mut Still,
    gaps: &Gaps<'_>,
    name: &RepoName,
    number: u64,
    found: &StillPull,
    wanted: (&[String], &[String]),
    policy: &Policy,
) -> Result<Observed<Upstream>, WorldsError> {
    let merged = found.merged_at.is_some();
    let state = match (merged, found.open, found.draft) {
        (true, ..) => PullState::Merged,
        (false, true, true) => PullState::Draft,
        (false, true, false) => PullState::Open,
        (false, false, _) => PullState::Closed,
    };
    let documents = match documents(still, name, number, found, wanted, policy)? {
        Some(documents) => documents,
        // What an unmerged one documents does not matter: its state alone decides.
        None if !merged => BTreeMap::new(),
        None => {
            return Ok(gaps.missing(&format!("the documents of {name}#{number}")));
        }
    };
    let commit = found.merge_commit.as_ref().filter(|_| merged);
    Ok(Observed::Present(Upstream::Pull(UpstreamPull {
        repository: name.clone(),
        number,
        state,
        merged_at: found.merged_at,
        merge_commit: commit.and_then(|sha| sha.parse().ok()),
        documents,
    })))
}

/// The documents that a pull request changes, and those beside them; none where the world does not say.
fn documents(
    still: &mut Still,
    name: &RepoName,
    number: u64,
    found: &StillPull,
    (prefixes, context): (&[String], &[String]),
    policy: &Policy,
) -> Result<Option<BTreeMap<String, String>>, WorldsError> {
    let Fact::Known(changes) = still.changes(name.as_str(), number)? else {
        return Ok(None);
    };
    let mut paths: BTreeSet<String> = changes
        .into_iter()
        .filter(|(path, _, status)| *status != "removed" && prefixes.iter().any(|prefix| path.starts_with(prefix)))
        .map(|(path, _, _)| path)
        .collect();
    // Alone they document nothing.
    if !paths.is_empty() {
        paths.extend(context.iter().cloned());
    }
    if paths.len() > DOCUMENTS {
        return Ok(None);
    }
    let mut out = BTreeMap::new();
    for path in paths {
        let text = match still.text_after(name.as_str(), number, &path) {
            Some(text) => Some(text),
            None => {
                let at = found
                    .merge_commit
                    .as_ref()
                    .filter(|_| found.merged_at.is_some())
                    .unwrap_or(&found.head_sha);
                match still.blob_at(name.as_str(), at, &path)? {
                    Some(blob) => text_of(still, name.as_str(), &blob, policy)?,
                    None if still.has_history(name.as_str()) || context.contains(&path) => None,
                    None => return Ok(None),
                }
            }
        };
        out.extend(text.map(|text| (path, text)));
    }
    Ok(Some(out))
}

fn text_of(still: &mut Still, repository: &str, blob: &str, policy: &Policy) -> Result<Option<String>, WorldsError> {
    let bytes = still.blob(repository, blob)?;
    Ok(bytes
        .filter(|bytes| bytes.len() as u64 <= policy.evidence.max_file_bytes)
        .and_then(|bytes| String::from_utf8(bytes.to_vec()).ok()))
}

fn page(
    still: &mut Still,
    repository: &str,
    tip: &str,
    files: &BTreeMap<String, String>,
    source: &str,
    snippets: &[String],
    policy: &Policy,
) -> Result<Observed<Upstream>, WorldsError> {
    let place = format!("{repository}:{source}");
    let Some(text) = files
        .get(source)
        .map(|blob| text_of(still, repository, blob, policy))
        .transpose()?
        .flatten()
    else {
        return Ok(Observed::unavailable(CauseKind::Malformed, place, "it is no text"));
    };
    let mut documents = BTreeMap::from([(source.to_owned(), text.clone())]);
    let mut last = vec![text];
    for _ in 0..DEPTH {
        let included: Vec<(&String, &String)> = files
            .iter()
            .filter(|(path, _)| {
                !documents.contains_key(*path) && last.iter().any(|text| includes(text, path, snippets))
            })
            .collect();
        if documents.len() + included.len() > DOCUMENTS {
            return Ok(Observed::unavailable(
                CauseKind::TooLarge,
                place,
                format!("it includes more than {DOCUMENTS} files"),
            ));
        }
        last.clear();
        for (path, blob) in included {
            if let Some(text) = text_of(still, repository, blob, policy)? {
                documents.insert(path.clone(), text.clone());
                last.push(text);
            }
        }
    }
    Ok(Observed::Present(Upstream::Page(Page {
        source: place,
        commit: tip.parse().ok(),
        documents,
    })))
}
