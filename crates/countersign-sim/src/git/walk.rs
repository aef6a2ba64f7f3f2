//! Walks over history: merge bases, and the commits that one side has and the other has not.

use std::collections::{BTreeMap, BinaryHeap, HashMap};

use super::GitError;
use super::store::Store;

const LEFT: u8 = 1;
const RIGHT: u8 = 2;
const STALE: u8 = 4;

/// The best common ancestor, found as git does: both sides are painted downwards by commit date, and what lies below a
/// common commit is stale.
pub(super) fn merge_base(store: &mut Store, a: &str, b: &str) -> Result<Option<String>, GitError> {
    if a == b {
        return Ok(Some(a.to_owned()));
    }
    let mut flags: HashMap<String, u8> = HashMap::new();
    let mut queue: BinaryHeap<(i64, String)> = BinaryHeap::new();
    for (sha, side) in [(a, LEFT), (b, RIGHT)] {
        let Some(commit) = store.commit(sha)? else {
            return Ok(None);
        };
        flags.insert(sha.to_owned(), side);
        queue.push((commit.committer.time, sha.to_owned()));
    }
    let mut found: Vec<String> = Vec::new();
    // Ends where only stale commits are left to look at.
    while queue
        .iter()
        .any(|(_, sha)| flags.get(sha).is_some_and(|f| f & STALE == 0))
    {
        let Some((_, sha)) = queue.pop() else { break };
        let mut flag = flags.get(&sha).copied().unwrap_or(0);
        if flag & (LEFT | RIGHT) == LEFT | RIGHT && flag & STALE == 0 {
            if !found.contains(&sha) {
                found.push(sha.clone());
            }
            flag |= STALE;
        }
        let Some(commit) = store.commit(&sha)? else { continue };
        for parent in commit.parents.clone() {
            let old = flags.get(&parent).copied().unwrap_or(0);
            if old & flag == flag {
                continue;
            }
            flags.insert(parent.clone(), old | flag);
            // A shallow clone lacks parents.
            if let Some(c) = store.commit(&parent)? {
                queue.push((c.committer.time, parent));
            }
        }
    }
    // One that was found first may turn out to lie below another.
    Ok(found.into_iter().find(|sha| {
        // Its own flags are LEFT and RIGHT; STALE only when painted from above.
        flags.get(sha).is_some_and(|f| f & STALE == 0)
    }))
}

/// The commits reachable from `head` and not from `base`, parents before children, otherwise by date.
pub(super) fn between(store: &mut Store, base: &str, head: &str) -> Result<Vec<String>, GitError> {
    let mut hidden: HashMap<String, bool> = HashMap::new();
    let mut queue: BinaryHeap<(i64, String)> = BinaryHeap::new();
    for (sha, hide) in [(head, false), (base, true)] {
        let Some(commit) = store.commit(sha)? else { continue };
        let entry = hidden.entry(sha.to_owned()).or_insert(hide);
        *entry |= hide;
        queue.push((commit.committer.time, sha.to_owned()));
    }
    while queue.iter().any(|(_, sha)| hidden.get(sha) == Some(&false)) {
        let Some((_, sha)) = queue.pop() else { break };
        let hide = hidden.get(&sha).copied().unwrap_or(true);
        let Some(commit) = store.commit(&sha)? else { continue };
        for parent in commit.parents.clone() {
            match hidden.get(&parent) {
                Some(old) if *old || !hide => continue,
                _ => {}
            }
            hidden.insert(parent.clone(), hide);
            if let Some(c) = store.commit(&parent)? {
                queue.push((c.committer.time, parent));
            }
        }
    }
    let mut wanted: BTreeMap<String, usize> = hidden
        .into_iter()
        .filter(|(_, hide)| !hide)
        .map(|(sha, _)| (sha, 0))
        .collect();
    let mut edges: Vec<(String, i64, Vec<String>)> = Vec::new();
    for sha in wanted.keys() {
        if let Some(c) = store.commit(sha)? {
            edges.push((sha.clone(), c.committer.time, c.parents.clone()));
        }
    }
    for (_, _, parents) in &edges {
        for parent in parents {
            if let Some(children) = wanted.get_mut(parent) {
                *children += 1;
            }
        }
    }
    let by_sha: HashMap<&str, (i64, &[String])> =
        edges.iter().map(|(s, t, p)| (s.as_str(), (*t, p.as_slice()))).collect();
    let mut ready: BinaryHeap<(i64, String)> = edges
        .iter()
        .filter(|(s, _, _)| wanted.get(s) == Some(&0))
        .map(|(s, t, _)| (*t, s.clone()))
        .collect();
    let mut out = Vec::new();
    while let Some((_, sha)) = ready.pop() {
        for parent in by_sha.get(sha.as_str()).map_or(&[][..], |(_, p)| p) {
            if let Some(children) = wanted.get_mut(parent) {
                *children -= 1;
                if *children == 0
                    && let Some((time, _)) = by_sha.get(parent.as_str())
                {
                    ready.push((*time, parent.clone()));
                }
            }
        }
        out.push(sha);
    }
    out.reverse();
    Ok(out)
}
