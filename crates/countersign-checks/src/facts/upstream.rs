//! The recipes that a sign-off links to: what each link leads to, and which launches its documents show (domain guide,
//! section 16). Read are documents of the evidence; no address is ever opened here.

use std::collections::BTreeMap;

use countersign_core::evidence::{Page, Upstream, UpstreamPull};
use countersign_core::{Cause, CauseKind, Evidence, Observed};
use countersign_launch::upstream::{self, Catalog, Mention, PageRules};
use countersign_policy::{Policy, UpstreamReading};
use countersign_signoff::signoff::Section;
use countersign_signoff::{Link, LinkSource, SignOff, Template, links};

use super::words::words;

/// Most addresses of the thread that are offered to a reviewer who linked none.
const SUGGESTIONS: usize = 3;

/// A link to a recipe, and what it leads to.
#[derive(Debug)]
pub struct Linked<'e> {
    /// The link.
    pub link: Link,
    /// Where in the sign-off it stands.
    pub section: Section,
    /// What it leads to.
    pub leads_to: LeadsTo<'e>,
}

/// What a link leads to.
#[derive(Debug)]
pub enum LeadsTo<'e> {
    /// A pull request, in whatever state.
    Pull(&'e UpstreamPull),
    /// A published page.
    Page(&'e Page),
    /// Nothing.
    Nothing,
    /// It could not be read.
    Unread(Cause),
}

/// The links of the given kinds that the reviewer added, in order, each place once. Those behind the signature are among
/// them; they are no part of the sign-off.
#[must_use]
pub fn linked<'e>(evidence: &'e Evidence, signoff: &SignOff, template: &Template, kinds: &[String]) -> Vec<Linked<'e>> {
    let mut out: Vec<Linked<'e>> = Vec::new();
    for found in signoff.links_beyond_template(template) {
        let counts = found.link.kind.as_ref().is_some_and(|kind| kinds.contains(kind));
        if !counts || out.iter().any(|known| known.link.same_place(&found.link)) {
            continue;
        }
        let leads_to = match evidence.upstream.get(&found.link.url) {
            Some(Observed::Present(Upstream::Pull(pull))) => LeadsTo::Pull(pull),
            Some(Observed::Present(Upstream::Page(page))) => LeadsTo::Page(page),
            Some(Observed::Absent) => LeadsTo::Nothing,
            Some(Observed::Unavailable(cause)) => LeadsTo::Unread(cause.clone()),
            None => LeadsTo::Unread(Cause::new(
                CauseKind::NotRecorded,
                format!("what {} leads to", found.link.url),
                "it was not gathered",
            )),
        };
        out.push(Linked {
            link: found.link,
            section: found.section,
            leads_to,
        });
    }
    out
}

/// Everything that the given documents show, as one page.
#[must_use]
pub fn read<'d>(
    documents: impl Iterator<Item = (&'d String, &'d String)> + Clone,
    reading: &UpstreamReading,
) -> upstream::Page {
    let is_taxonomy = |path: &str| reading.taxonomy.as_deref() == Some(path);
    let is_strategy = |path: &str| {
        reading
            .strategies
            .as_ref()
            .is_some_and(|folder| path.starts_with(folder.as_str()))
    };
    let taxonomy = documents
        .clone()
        .find(|(path, _)| is_taxonomy(path))
        .map(|(_, text)| text.as_str());
    let strategies: Vec<(String, String)> = documents
        .clone()
        .filter(|(path, _)| is_strategy(path))
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect();
    let (catalog, notes) = Catalog::parse(taxonomy, &strategies);
    let rules = PageRules {
        hardware: reading.hardware.clone(),
        catalog,
    };
    let mut page = upstream::Page {
        notes,
        ..upstream::Page::default()
    };
    for (path, text) in documents {
        let ignored = reading.ignore.iter().any(|start| path.starts_with(start.as_str()));
        if ignored || is_taxonomy(path) || is_strategy(path) {
            continue;
        }
        page.absorb(upstream::read(path, text, &rules));
    }
    page
}

/// The flags that the running text of the given documents names with a value, commands apart: by name, then values with
/// their places.
#[must_use]
pub fn prose<'d>(
    documents: impl Iterator<Item = (&'d String, &'d String)>,
    reading: &UpstreamReading,
) -> BTreeMap<String, Vec<Mention>> {
    let mut out: BTreeMap<String, Vec<Mention>> = BTreeMap::new();
    let is_text = |path: &str| path.ends_with(".md") || path.ends_with(".mdx");
    let ignored = |path: &str| reading.ignore.iter().any(|start| path.starts_with(start.as_str()));
    for (path, text) in documents.filter(|(path, _)| is_text(path) && !ignored(path)) {
        let page = upstream::read(path, &without_blocks(text), &PageRules::default());
        for (name, mentions) in page.mentions {
            out.entry(name).or_default().extend(mentions);
        }
    }
    out
}

/// A Markdown text in which the lines of fenced blocks are empty, so that lines keep their numbers.
fn without_blocks(text: &str) -> String {
    let mut fence: Option<&str> = None;
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => out.push_str(line),
            _ => {}
        }
        out.push('\n');
    }
    out
}

/// Addresses of recipes in the description and the comments, for a reviewer who linked none.
#[must_use]
pub fn suggestions(evidence: &Evidence, policy: &Policy, kinds: &[String]) -> Vec<String> {
    let comments = evidence.comments.present().map_or(&[][..], Vec::as_slice);
    let texts = std::iter::once(&evidence.pull_request.body).chain(comments.iter().map(|comment| &comment.body));
    let mut out: Vec<String> = Vec::new();
    for word in texts.flat_map(|text| words(text)) {
        if !word.starts_with("https://") {
            continue;
        }
        let link = links::read(word, 0, None, LinkSource::Bare, &policy.signoff.links);
        let fits = |link: &Link| link.kind.as_ref().is_some_and(|kind| kinds.contains(kind));
        if let Some(link) = link.filter(fits)
            && !out.contains(&link.url)
        {
            out.push(link.url);
            if out.len() == SUGGESTIONS {
                break;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::without_blocks;

    #[test]
    fn commands_are_no_running_text() {
        let text = "a --x 1\n```bash\n--y 2\n```\n  ~~~\n--z 3\n```\n~~~\nb --w 4\n";
        assert_eq!(without_blocks(text), "a --x 1\n\n\n\n\n\n\n\nb --w 4\n");
    }
}
