//! The commits of a clone in memory: which were on the target branch when, and where a head parted from it.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::BacktestError;
use crate::git::Git;

/// A head to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The pull request.
    pub(crate) number: u64,
    /// The commit.
    pub(crate) sha: String,
    /// When it was committed, in seconds.
    pub(crate) time: i64,
    /// The title, as far as the clone tells.
    pub(crate) title: String,
    /// Whether a commit of the target branch names it.
    pub(crate) merged: bool,
    /// Index in [`Graph::main`] of the commit whose files are trusted; nothing for a head from before them all.
    pub(crate) trusted: Option<usize>,
}

impl Head {
    /// One of which the clone knows nothing.
    pub(crate) fn unknown(number: u64) -> Self {
        Self {
            number,
            sha: String::new(),
            time: 0,
            title: String::new(),
            merged: false,
            trusted: None,
        }
    }
}

#[derive(Debug)]
struct Node {
    sha: String,
    time: i64,
    tree: String,
    parents: Vec<u32>,
    subject: String,
    /// The oldest commit of the target branch that has this one in its history.
    reached: Option<u32>,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Graph {
    nodes: Vec<Node>,
    index: HashMap<String, u32>,
    /// The target branch by first parents, oldest first.
    main: Vec<u32>,
}

const HEADS: &str = "refs/pull/*/head";

impl Graph {
    /// Reads the history of the target branch, which is where the clone's HEAD stands, and of all heads.
    pub(crate) fn read(git: &Git) -> Result<Self, BacktestError> {
        let mut graph = Self {
            nodes: Vec::new(),
            index: HashMap::new(),
            main: Vec::new(),
        };
        // The subject comes last, after a zero, so that no text of a commit can pass for another field.
        let listing = git.output(&["log", "--format=%H %ct %T %P%x00%s", "HEAD", &format!("--glob={HEADS}")])?;
        let mut parents: Vec<Vec<&str>> = Vec::new();
        for line in listing.lines() {
            let Some((fields, subject)) = line.split_once('\0') else {
                continue;
            };
            let mut words = fields.split(' ').filter(|word| !word.is_empty());
            let (Some(sha), Some(time), Some(tree)) = (words.next(), words.next(), words.next()) else {
                continue;
            };
            let at = u32::try_from(graph.nodes.len()).map_err(|_| BacktestError::Nothing("too many commits".into()))?;
            graph.index.insert(sha.to_owned(), at);
            graph.nodes.push(Node {
                sha: sha.to_owned(),
                time: time.parse().unwrap_or_default(),
                tree: tree.to_owned(),
                parents: Vec::new(),
                subject: subject.to_owned(),
                reached: None,
            });
            parents.push(words.collect());
        }
        // A shallow clone has commits without their parents.
        for (node, names) in graph.nodes.iter_mut().zip(&parents) {
            node.parents = names
                .iter()
                .filter_map(|name| graph.index.get(*name).copied())
                .collect();
        }
        let tip = git.output(&["rev-parse", "--verify", "HEAD^{commit}"])?;
        let mut at = graph.index.get(tip.trim()).copied();
        while let Some(commit) = at {
            graph.main.push(commit);
            at = graph.nodes[commit as usize].parents.first().copied();
        }
        graph.main.reverse();
        if graph.main.is_empty() {
            return Err(BacktestError::Nothing(
                "the clone's HEAD has no commits; set it to the target branch".into(),
            ));
        }
        graph.mark();
        Ok(graph)
    }

    fn mark(&mut self) {
        for place in 0..self.main.len() {
            let mut open = vec![self.main[place]];
            while let Some(at) = open.pop() {
                let node = &mut self.nodes[at as usize];
                if node.reached.is_none() {
                    node.reached = u32::try_from(place).ok();
                    open.extend(node.parents.iter().copied());
                }
            }
        }
    }

    /// The pull requests of the clone: by `refs/pull/*/head`, or where it has none, by the commits that merged them.
    pub(crate) fn heads(&self, git: &Git) -> Result<Vec<Head>, BacktestError> {
        let mut merged: BTreeMap<u64, (usize, String)> = BTreeMap::new();
        for (place, at) in self.main.iter().enumerate() {
            if let Some((number, title)) = merged_by(&self.nodes[*at as usize].subject) {
                merged.insert(number, (place, title));
            }
        }
        let listing = git.output(&["for-each-ref", "--format=%(refname) %(objectname)", HEADS])?;
        let mut heads = Vec::new();
        for line in listing.lines() {
            let Some((name, sha)) = line.split_once(' ') else {
                continue;
            };
            let number = name
                .strip_prefix("refs/pull/")
                .and_then(|rest| rest.strip_suffix("/head"));
            let Some(number) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let Some(node) = self.node(sha) else { continue };
            let trusted = self.tip_at(node.time);
            let by = merged.get(&number);
            heads.push(Head {
                number,
                sha: sha.to_owned(),
                time: node.time,
                title: by.map_or_else(|| self.first_subject(node, trusted), |(_, title)| title.clone()),
                merged: by.is_some(),
                trusted,
            });
        }
        if heads.is_empty() {
            heads.extend(merged.iter().filter_map(|(number, (place, title))| {
                let node = &self.nodes[self.main[*place] as usize];
                // A merge has the pull request's head as its second parent; a squashed one is its own.
                let head = node.parents.get(1).map_or(node, |at| &self.nodes[*at as usize]);
                Some(Head {
                    number: *number,
                    sha: head.sha.clone(),
                    time: node.time,
                    title: title.clone(),
                    merged: true,
                    trusted: Some(place.checked_sub(1)?),
                })
            }));
        }
        heads.sort_by_key(|head| head.number);
        if heads.is_empty() {
            return Err(BacktestError::Nothing(format!(
                "the clone has neither {HEADS} nor merge commits that name pull requests: fetch them with `git fetch origin '+{HEADS}:{HEADS}'`"
            )));
        }
        Ok(heads)
    }

    /// What stands over the first commit that a head has and the target branch has not: most often the title.
    fn first_subject(&self, head: &Node, trusted: Option<usize>) -> String {
        let own = |node: &Node| {
            node.reached
                .is_none_or(|reached| trusted.is_none_or(|place| reached as usize > place))
        };
        let mut first = head;
        while let Some(parent) = first
            .parents
            .first()
            .map(|at| &self.nodes[*at as usize])
            .filter(|node| own(node))
        {
            first = parent;
        }
        first.subject.clone()
    }

    fn node(&self, sha: &str) -> Option<&Node> {
        self.index.get(sha).map(|at| &self.nodes[*at as usize])
    }

    /// The tree of a commit.
    pub(crate) fn tree(&self, sha: &str) -> Option<&str> {
        Some(self.node(sha)?.tree.as_str())
    }

    /// The commit of the target branch at a place.
    pub(crate) fn main_at(&self, place: usize) -> Option<&str> {
        Some(self.nodes[*self.main.get(place)? as usize].sha.as_str())
    }

    /// Where the target branch stood at a time: its newest commit that is not younger.
    fn tip_at(&self, time: i64) -> Option<usize> {
        self.main.iter().rposition(|at| self.nodes[*at as usize].time <= time)
    }

    /// Where a head parted from the target branch as it was at a place: the newest commit that both have.
    pub(crate) fn merge_base(&self, place: usize, head: &str) -> Option<&str> {
        let start = *self.index.get(head)?;
        let within = |at: u32| {
            let reached = self.nodes[at as usize].reached?;
            (reached as usize <= place).then_some(reached)
        };
        let (mut open, mut seen) = (vec![start], HashSet::from([start]));
        let mut best: Option<(u32, bool, i64, u32)> = None;
        while let Some(at) = open.pop() {
            let node = &self.nodes[at as usize];
            if let Some(reached) = within(at) {
                // Of two common commits the one that the branch took in later has the other in its history, if any has.
                let own = self.main.get(reached as usize) == Some(&at);
                best = best.max(Some((reached, own, node.time, at)));
            } else {
                open.extend(node.parents.iter().copied().filter(|parent| seen.insert(*parent)));
            }
        }
        best.map(|(.., at)| self.nodes[at as usize].sha.as_str())
    }
}

/// The pull request that a commit of the target branch merged, and its title.
fn merged_by(subject: &str) -> Option<(u64, String)> {
    if let Some(rest) = subject.strip_prefix("Merge pull request #") {
        let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
        return Some((digits.parse().ok()?, subject.to_owned()));
    }
    let (title, rest) = subject.trim_end().rsplit_once("(#")?;
    let number = rest.strip_suffix(')')?.parse().ok()?;
    Some((number, title.trim_end().to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squashed_and_merged_subjects_name_their_pull_request() {
        assert_eq!(merged_by("Faster things (#12)"), Some((12, "Faster things".to_owned())));
        assert_eq!(merged_by("Undo (#3) (#14)"), Some((14, "Undo (#3)".to_owned())));
        assert_eq!(
            merged_by("Merge pull request #7 from a/b"),
            Some((7, "Merge pull request #7 from a/b".to_owned()))
        );
        for plain in ["Fix #12", "Merge branch 'main'", "(#x)", ""] {
            assert_eq!(merged_by(plain), None, "{plain}");
        }
    }
}
