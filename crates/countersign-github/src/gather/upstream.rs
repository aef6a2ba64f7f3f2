//! What links to other projects lead to. Only kinds that the policy names are followed, and only through GitHub's API: a
//! published page is read from the repository that it is made of, so no address of a sign-off is ever fetched.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use countersign_core::evidence::{EntryMode, Page, PullState, Upstream, UpstreamPull};
use countersign_core::{Cause, CauseKind, CommitSha, Observed, RepoName};
use countersign_policy::{EvidencePaths, Policy, UpstreamSource};
use countersign_signoff::signoff::Section;
use countersign_signoff::{Link, SignOff, Target, Template};
use futures::future::BoxFuture;
use tokio::sync::OnceCell;
use url::Url;

use super::trees::Trees;
use crate::calls::call::RAW;
use crate::calls::{Call, at_once};
use crate::client::RepoClient;
use crate::client::hub::lock;
use crate::error::GitHubError;
use crate::store::{Listed, Listing};
use crate::wire;

/// Links followed in one sign-off.
pub const LINKS: usize = 16;
/// Documents read for one link.
pub const DOCUMENTS: usize = 48;
/// How deep a page's snippets may include snippets.
pub const DEPTH: usize = 2;
const AT_ONCE: usize = 8;

/// Everything that the reviewer's links lead to, by address as the reader of sign-offs gives it.
pub(crate) async fn upstream(
    repo: &RepoClient,
    policy: &Policy,
    signoff: &SignOff,
    template: Option<&Template>,
) -> BTreeMap<String, Observed<Upstream>> {
    let wanted = followed_links(policy, signoff, template);
    let sites = Sites::default();
    let sites = &sites;
    let mut found = BTreeMap::new();
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for (index, (link, source)) in wanted.iter().enumerate() {
        if index < LINKS {
            work.push(Box::pin(async move {
                (link.url.clone(), followed(repo, policy, sites, link, source).await)
            }));
        } else {
            let what = format!("what {} leads to", link.url);
            let why = format!("at most {LINKS} links are followed");
            found.insert(link.url.clone(), Observed::unavailable(CauseKind::TooLarge, what, why));
        }
    }
    found.extend(at_once(AT_ONCE, work).await);
    found
}

/// The links of a sign-off that are followed, with what the policy makes of them; each address once.
#[must_use]
pub fn followed_links<'p>(
    policy: &'p Policy,
    signoff: &SignOff,
    template: Option<&Template>,
) -> Vec<(Link, &'p UpstreamSource)> {
    let links: Vec<Link> = match template {
        Some(template) => signoff
            .links_beyond_template(template)
            .into_iter()
            .filter(|found| found.section != Section::AfterSignature)
            .map(|found| found.link.clone())
            .collect(),
        None => super::links::all(signoff).into_iter().cloned().collect(),
    };
    let mut wanted: Vec<(Link, &UpstreamSource)> = Vec::new();
    for link in links {
        let source = link.kind.as_ref().and_then(|kind| policy.upstream.sources.get(kind));
        if let Some(source) = source
            && !wanted.iter().any(|(known, _)| known.url == link.url)
        {
            wanted.push((link, source));
        }
    }
    wanted
}

/// Sources of pages that have been read, by repository, branch and paths: several links lead to one.
#[derive(Default)]
struct Sites(Mutex<BTreeMap<SiteKey, Arc<OnceCell<Site>>>>);

type SiteKey = (String, String, Vec<String>);

type Site = (CommitSha, Listing);

impl Sites {
    fn of(&self, repository: &RepoName, branch: &str, paths: &[String]) -> Arc<OnceCell<Site>> {
        let key = (
            repository.as_str().to_ascii_lowercase(),
            branch.to_owned(),
            paths.to_vec(),
        );
        Arc::clone(lock(&self.0).entry(key).or_default())
    }
}

async fn followed(
    repo: &RepoClient,
    policy: &Policy,
    sites: &Sites,
    link: &Link,
    source: &UpstreamSource,
) -> Observed<Upstream> {
    match follow(repo, policy, sites, link, source).await {
        Ok(found) => found,
        Err(Failure::Cause(cause)) => Observed::Unavailable(cause),
        Err(Failure::GitHub(error)) => Observed::Unavailable(error.cause(format!("what {} leads to", link.url))),
    }
}

enum Failure {
    GitHub(GitHubError),
    Cause(Cause),
}

impl From<GitHubError> for Failure {
    fn from(error: GitHubError) -> Self {
        Self::GitHub(error)
    }
}

impl From<Cause> for Failure {
    fn from(cause: Cause) -> Self {
        Self::Cause(cause)
    }
}

async fn follow(
    repo: &RepoClient,
    policy: &Policy,
    sites: &Sites,
    link: &Link,
    source: &UpstreamSource,
) -> Result<Observed<Upstream>, Failure> {
    match source {
        UpstreamSource::Pull { documents, context } => {
            let (Target::Pull { repository, number } | Target::IssueOrPull { repository, number }) = &link.target
            else {
                return Ok(Observed::Absent);
            };
            let Ok(name) = repository.parse::<RepoName>() else {
                return Ok(Observed::Absent);
            };
            pull(&repo.other(name), *number, documents, context, policy).await
        }
        UpstreamSource::Page {
            repository,
            branch,
            roots,
            endings,
            strip,
            snippets,
        } => {
            let name = repository
                .parse::<RepoName>()
                .map_err(|error| Cause::new(CauseKind::Malformed, "the policy", error.to_string()))?;
            let Some(path) = page_path(&link.url, strip) else {
                return Ok(Observed::Absent);
            };
            let repo = &repo.other(name);
            // A root without a name is the whole repository.
            let covers: Vec<String> = if roots.iter().any(String::is_empty) {
                Vec::new()
            } else {
                roots.iter().chain(snippets).cloned().collect()
            };
            let paths = EvidencePaths {
                trusted: covers.clone(),
                judged: covers,
                ..policy.evidence.clone()
            };
            let trees = Trees { repo, paths: &paths };
            let cell = sites.of(repo.name(), branch, &paths.trusted);
            let site = cell.get_or_try_init(|| site(&trees, branch)).await?;
            let Some((source, entry)) = find(&site.1, &path, roots, endings) else {
                return Ok(Observed::Absent);
            };
            page(&trees, site, source, entry, snippets).await
        }
    }
}

async fn pull(
    repo: &RepoClient,
    number: u64,
    prefixes: &[String],
    context: &[String],
    policy: &Policy,
) -> Result<Observed<Upstream>, Failure> {
    let id = number.to_string();
    let call = Call::get(repo.path(["pulls", &id]), format!("pull request {}#{id}", repo.name()));
    let pull: wire::Pull = match repo.read(&call).await {
        Ok(pull) => pull,
        Err(GitHubError::NotFound { .. }) => return Ok(Observed::Absent),
        Err(error) => return Err(error.into()),
    };
    let files = Call::get(
        repo.path(["pulls", &id, "files"]),
        format!("the files of {}#{id}", repo.name()),
    );
    let mut paths: Vec<String> = repo
        .list_up_to::<Vec<wire::File>>(&files, 30)
        .await?
        .into_iter()
        .filter(|file| {
            file.status != "removed" && prefixes.iter().any(|prefix| file.filename.starts_with(prefix.as_str()))
        })
        // Binary files have no changed lines; nor have new files without content.
        .filter(|file| file.changes > 0 || file.status == "renamed")
        .map(|file| file.filename)
        .collect();
    // Alone they document nothing.
    if !paths.is_empty() {
        paths.extend(context.iter().cloned());
    }
    paths.sort();
    paths.dedup();
    if paths.len() > DOCUMENTS {
        let why = format!("it changes {} documents, and at most {DOCUMENTS} are read", paths.len());
        return Err(Cause::new(CauseKind::TooLarge, call.what, why).into());
    }
    let merge_commit = pull.merge_commit_sha.clone().filter(|_| pull.is_merged());
    let at = merge_commit.clone().unwrap_or_else(|| pull.head.sha.clone());
    let cap = usize::try_from(policy.evidence.max_file_bytes).unwrap_or(usize::MAX);
    let at = &at;
    let mut work: Vec<BoxFuture<'_, Result<_, GitHubError>>> = Vec::new();
    for path in paths {
        work.push(Box::pin(async move {
            let call = Call::get(repo.path(["contents", &path]), format!("{path} of {}", repo.name()))
                .query("ref", at)
                .accept(RAW)
                .cap(cap);
            match repo.send(&call).await {
                Ok(answer) => Ok(String::from_utf8(answer.body.to_vec()).ok().map(|text| (path, text))),
                // Changed again before the merge, and gone at its commit.
                Err(GitHubError::NotFound { .. }) => Ok(None),
                Err(error) => Err(error),
            }
        }));
    }
    let read: Vec<Option<(String, String)>> = at_once(AT_ONCE, work).await.into_iter().collect::<Result<_, _>>()?;
    let documents = read.into_iter().flatten().collect();
    Ok(Observed::Present(Upstream::Pull(UpstreamPull {
        repository: repo.name().clone(),
        number,
        state: match (pull.is_merged(), pull.is_open(), pull.draft) {
            (true, ..) => PullState::Merged,
            (false, true, true) => PullState::Draft,
            (false, true, false) => PullState::Open,
            (false, false, _) => PullState::Closed,
        },
        merged_at: pull.merged_at,
        merge_commit,
        documents,
    })))
}

/// The path of a page without what the policy drops; `None` where it is no page of its own.
#[must_use]
pub fn page_path(url: &str, strip: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let bytes: Vec<u8> = percent_decode(url.path());
    let path = String::from_utf8(bytes).ok()?;
    let path = path.trim_matches('/');
    let path = path
        .strip_prefix(strip.trim_end_matches('/'))
        .unwrap_or(path)
        .trim_matches('/');
    let plain = !path.is_empty()
        && path.len() <= 300
        && !path.chars().any(char::is_control)
        && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
    plain.then(|| path.to_owned())
}

fn percent_decode(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let pair = text
            .get(at + 1..at + 3)
            .filter(|_| bytes[at] == b'%')
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        out.push(pair.unwrap_or(bytes[at]));
        at += if pair.is_some() { 3 } else { 1 };
    }
    out
}

async fn site(trees: &Trees<'_>, branch: &str) -> Result<Site, Failure> {
    let repo = trees.repo;
    let call = Call::get(
        repo.path(["git", "ref", "heads", branch]),
        format!("branch {branch} of {}", repo.name()),
    );
    let tip = repo.read::<wire::Ref>(&call).await?.object.sha;
    let listing = trees.listing(&tip).await?;
    Ok((tip, listing))
}

async fn page(
    trees: &Trees<'_>,
    (tip, listing): &Site,
    source: &str,
    entry: &Listed,
    snippets: &[String],
) -> Result<Observed<Upstream>, Failure> {
    let name = trees.repo.name();
    let Some(text) = text_of(trees, source, entry).await? else {
        return Err(Cause::new(CauseKind::Malformed, format!("{name}:{source}"), "it is no text").into());
    };
    let mut documents: BTreeMap<String, String> = BTreeMap::new();
    let mut last: Vec<Arc<str>> = vec![Arc::clone(&text)];
    documents.insert(source.to_owned(), text.to_string());
    for _ in 0..DEPTH {
        let included: Vec<(&str, &Listed)> = listing
            .entries
            .iter()
            .filter(|(path, entry)| {
                matches!(entry.mode, EntryMode::File | EntryMode::Executable)
                    && !documents.contains_key(*path)
                    && last.iter().any(|text| includes(text, path, snippets))
            })
            .map(|(path, entry)| (path.as_str(), entry))
            .collect();
        if documents.len() + included.len() > DOCUMENTS {
            let why = format!("it includes more than {DOCUMENTS} files");
            return Err(Cause::new(CauseKind::TooLarge, format!("{name}:{source}"), why).into());
        }
        let mut work: Vec<BoxFuture<'_, Result<_, Failure>>> = Vec::new();
        for (path, entry) in included {
            work.push(Box::pin(async move { Ok((path, text_of(trees, path, entry).await?)) }));
        }
        let read: Vec<(&str, Option<Arc<str>>)> = at_once(AT_ONCE, work).await.into_iter().collect::<Result<_, _>>()?;
        last.clear();
        for (path, text) in read.into_iter().filter_map(|(path, text)| Some((path, text?))) {
            documents.insert(path.to_owned(), text.to_string());
            last.push(text);
        }
    }
    Ok(Observed::Present(Upstream::Page(Page {
        source: format!("{name}:{source}"),
        commit: Some(tip.clone()),
        documents,
    })))
}

async fn text_of(trees: &Trees<'_>, path: &str, entry: &Listed) -> Result<Option<Arc<str>>, Failure> {
    if entry.size > trees.paths.max_file_bytes {
        let why = format!(
            "it has {} bytes, and at most {} are read",
            entry.size, trees.paths.max_file_bytes
        );
        return Err(Cause::new(CauseKind::TooLarge, format!("{}:{path}", trees.repo.name()), why).into());
    }
    Ok(trees.text(entry).await?)
}

/// The source of a page: the first root and ending that give a file, in its own spelling before any other.
fn find<'l>(listing: &'l Listing, page: &str, roots: &[String], endings: &[String]) -> Option<(&'l str, &'l Listed)> {
    let is_file = |entry: &Listed| matches!(entry.mode, EntryMode::File | EntryMode::Executable);
    let files = listing.entries.iter().filter(|(_, entry)| is_file(entry));
    let paths: BTreeSet<&str> = files.map(|(path, _)| path.as_str()).collect();
    let found = page_source(&paths, page, roots, endings)?;
    listing
        .entries
        .get_key_value(found)
        .map(|(path, entry)| (path.as_str(), entry))
}

/// The path of a page's source, of all files that its repository has.
#[must_use]
pub fn page_source<'l>(paths: &BTreeSet<&'l str>, page: &str, roots: &[String], endings: &[String]) -> Option<&'l str> {
    let stem = endings
        .iter()
        .find_map(|ending| page.strip_suffix(ending.as_str()))
        .unwrap_or(page);
    let stem = stem.strip_suffix(".html").unwrap_or(stem);
    let candidates = || {
        roots
            .iter()
            .flat_map(move |root| endings.iter().map(move |ending| format!("{root}{stem}{ending}")))
    };
    if let Some(path) = candidates().find_map(|candidate| paths.get(candidate.as_str()).copied()) {
        return Some(path);
    }
    let lower: BTreeMap<String, &str> = paths.iter().map(|path| (path.to_lowercase(), *path)).collect();
    candidates().find_map(|candidate| lower.get(&candidate.to_lowercase()).copied())
}

/// Whether a text includes a file: the file is named outright by the policy, or lies in one of its folders and the text has
/// its name.
#[must_use]
pub fn includes(text: &str, path: &str, snippets: &[String]) -> bool {
    snippets.iter().any(|snippet| {
        if !snippet.ends_with('/') {
            return path == snippet;
        }
        let Some(rest) = path.strip_prefix(snippet.as_str()) else {
            return false;
        };
        let file = rest.rsplit('/').next().unwrap_or(rest);
        let stem = file.rsplit_once('.').map_or(file, |(stem, _)| stem);
        stem.len() >= 3 && has_word(text, stem)
    })
}

/// Whether a text has a word that is not a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_');
    text.match_indices(word).any(|(at, _)| {
        !text[..at].chars().next_back().is_some_and(inside)
            && !text[at + word.len()..].chars().next().is_some_and(inside)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Paths;

    fn listing(paths: &[&str]) -> Listing {
        let entry = || Listed {
            mode: EntryMode::File,
            id: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391".parse().unwrap(),
            size: 0,
        };
        let entries = paths.iter().map(|path| ((*path).to_owned(), entry())).collect();
        Arc::new(Paths { entries, bytes: 0 })
    }

    #[test]
    fn pages_lead_to_their_sources() {
        let list = listing(&[
            "models/Org/Model-1.yaml",
            "Org/Guide.md",
            "docs/org/README.md",
            "docs/a.mdx",
        ]);
        let strings = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let (roots, endings) = (
            strings(&["models/", "", "docs/"]),
            strings(&[".yaml", ".md", ".mdx", "/README.md"]),
        );
        for (url, wanted) in [
            ("https://h.example/Org/Model-1", Some("models/Org/Model-1.yaml")),
            ("https://h.example/org/model-1/", Some("models/Org/Model-1.yaml")),
            (
                "https://h.example/Org/Model-1?hw=x#top",
                Some("models/Org/Model-1.yaml"),
            ),
            ("https://h.example/Org/Guide.html", Some("Org/Guide.md")),
            ("https://h.example/book/a.mdx", Some("docs/a.mdx")),
            ("https://h.example/book/org", Some("docs/org/README.md")),
            ("https://h.example/Org/None", None),
            // Dots are resolved as a browser does it, and lead nowhere else.
            ("https://h.example/%2e%2e/Org", Some("docs/org/README.md")),
        ] {
            let found = page_path(url, "book/")
                .and_then(|path| find(&list, &path, &roots, &endings).map(|(path, _)| path.to_owned()));
            assert_eq!(found.as_deref(), wanted, "{url}");
        }
        assert_eq!(page_path("https://h.example/", ""), None);
        assert_eq!(page_path("https://h.example/a/%2E%2E%2Fb", ""), None);
        assert_eq!(page_path("https://h.example/a%20b", "").as_deref(), Some("a b"));
    }

    #[test]
    fn snippets_are_included_by_name() {
        let snippets = vec!["src/snippets/".to_owned(), "taxonomy.yaml".to_owned()];
        let text = "import X from '/src/snippets/auto/model-deployment.jsx'; strategy: tp_ep";
        assert!(includes(text, "src/snippets/auto/model-deployment.jsx", &snippets));
        assert!(includes(text, "src/snippets/tp_ep.yaml", &snippets));
        assert!(includes(text, "taxonomy.yaml", &snippets));
        for no in [
            "src/snippets/model.jsx",
            "src/snippets/tp.yaml",
            "src/other/model-deployment.jsx",
            "src/snippets/deployment.jsx",
        ] {
            assert!(!includes(text, no, &snippets), "{no}");
        }
    }
}
