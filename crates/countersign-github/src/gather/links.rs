//! What people name: runs in commands and links, documentation in links.

use countersign_core::RepoName;
use countersign_core::evidence::Comment;
use countersign_policy::Policy;
use countersign_signoff::{AuthorInfo, CommandKind, Entry, Link, SignOff, recognise};

use crate::info::ThreadItem;

/// Runs named by reuse commands, the newest first, at most.
const COMMANDS: usize = 3;
/// Runs linked in the sign-off, at most.
const LINKED: usize = 5;

/// The sign-off, read, if it is one.
#[must_use]
pub fn signoff(item: &ThreadItem, policy: &Policy) -> Option<SignOff> {
    let author = AuthorInfo {
        login: item
            .author
            .as_ref()
            .map_or_else(String::new, |login| login.as_str().to_owned()),
        is_bot: item.is_bot,
        is_self: false,
    };
    recognise(&item.body, &author, &policy.signoff).signoff().cloned()
}

/// Every link of a sign-off, in order.
pub(crate) fn all(signoff: &SignOff) -> Vec<&Link> {
    let mut links: Vec<&Link> = Vec::new();
    for item in &signoff.items {
        links.extend(&item.links);
    }
    let detail = signoff
        .detail
        .as_ref()
        .map_or(&[][..], |detail| detail.entries.as_slice());
    let texts: [&[Entry]; 3] = [&signoff.between, detail, &signoff.after_signature];
    links.extend(texts.into_iter().flatten().flat_map(|entry| &entry.links));
    links
}

/// Runs of this repository that somebody with a say has named: in the newest reuse commands, and in the sign-off.
#[must_use]
pub fn runs(repository: &RepoName, comments: &[Comment], signoff: Option<&SignOff>, policy: &Policy) -> Vec<u64> {
    let mut named: Vec<u64> = Vec::new();
    let allowed = &policy.commands.authority.reuse_associations;
    for comment in comments
        .iter()
        .rev()
        .filter(|comment| !comment.author_is_bot && allowed.contains(&comment.association))
    {
        let found = countersign_signoff::commands(&comment.body, &policy.commands.words);
        if let Some(CommandKind::Reuse { run: Some(run), .. }) = found.reuse().map(|command| &command.kind)
            && !named.contains(run)
        {
            named.push(*run);
            if named.len() == COMMANDS {
                break;
            }
        }
    }
    let mut linked = 0;
    for run in signoff
        .into_iter()
        .flat_map(all)
        .filter_map(Link::run)
        .filter(|run| run.is_in(repository.as_str()))
    {
        if linked < LINKED && !named.contains(&run.run_id) {
            named.push(run.run_id);
            linked += 1;
        }
    }
    named
}
