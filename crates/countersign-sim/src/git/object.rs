//! Git objects: how they are hashed, written and read.

use sha1::{Digest, Sha1};

use super::GitError;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Blob,
    Tree,
    Commit,
    Tag,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Blob => "blob",
            Kind::Tree => "tree",
            Kind::Commit => "commit",
            Kind::Tag => "tag",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Kind> {
        [Kind::Blob, Kind::Tree, Kind::Commit, Kind::Tag]
            .into_iter()
            .find(|k| k.name() == text)
    }
}

/// A tree entry's mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Executable,
    Symlink,
    Tree,
    Submodule,
}

impl Mode {
    /// As a tree object has it.
    fn octal(self) -> &'static str {
        match self {
            Mode::File => "100644",
            Mode::Executable => "100755",
            Mode::Symlink => "120000",
            Mode::Tree => "40000",
            Mode::Submodule => "160000",
        }
    }

    /// As the API shows it.
    pub(crate) fn six(self) -> &'static str {
        if self == Mode::Tree { "040000" } else { self.octal() }
    }

    fn parse(text: &str) -> Option<Mode> {
        match text {
            "100755" => Some(Mode::Executable),
            "120000" => Some(Mode::Symlink),
            "40000" | "040000" => Some(Mode::Tree),
            "160000" => Some(Mode::Submodule),
            // Old histories have group-writable files.
            t if t.starts_with("100") => Some(Mode::File),
            _ => None,
        }
    }
}

/// One entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: Mode,
    pub(crate) name: String,
    pub(crate) sha: String,
}

/// A commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Commit {
    pub(crate) tree: String,
    pub(crate) parents: Vec<String>,
    pub(crate) author: Person,
    pub(crate) committer: Person,
    pub(crate) message: String,
}

/// Name, address and time of an author or committer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Person {
    pub(crate) name: String,
    pub(crate) email: String,
    /// Seconds since the epoch.
    pub(crate) time: i64,
}

/// The SHA-1 that git gives an object, in hexadecimal.
pub(crate) fn hash(kind: Kind, data: &[u8]) -> String {
    let mut sha = Sha1::new();
    sha.update(format!("{} {}\0", kind.name(), data.len()));
    sha.update(data);
    hex::encode(sha.finalize())
}

/// A tree object's bytes. Git sorts directories as if their name ended in a slash.
pub(crate) fn write_tree(entries: &[Entry]) -> Vec<u8> {
    let mut sorted: Vec<&Entry> = entries.iter().collect();
    sorted.sort_by_key(|e| {
        let mut key = e.name.clone().into_bytes();
        if e.mode == Mode::Tree {
            key.push(b'/');
        }
        key
    });
    let mut out = Vec::new();
    for e in sorted {
        out.extend_from_slice(e.mode.octal().as_bytes());
        out.push(b' ');
        out.extend_from_slice(e.name.as_bytes());
        out.push(0);
        out.extend_from_slice(&hex::decode(&e.sha).unwrap_or_default());
    }
    out
}

/// Reads a tree object. A name that is not UTF-8 is shown with replacement characters.
pub(crate) fn read_tree(sha: &str, data: &[u8]) -> Result<Vec<Entry>, GitError> {
    let bad = || GitError::Malformed {
        sha: sha.to_owned(),
        expected: "tree",
    };
    let mut out = Vec::new();
    let mut rest = data;
    while !rest.is_empty() {
        let space = rest.iter().position(|b| *b == b' ').ok_or_else(bad)?;
        let nul = rest
            .iter()
            .position(|b| *b == 0)
            .filter(|n| *n > space)
            .ok_or_else(bad)?;
        let mode = std::str::from_utf8(&rest[..space])
            .ok()
            .and_then(Mode::parse)
            .ok_or_else(bad)?;
        let id = rest.get(nul + 1..nul + 21).ok_or_else(bad)?;
        out.push(Entry {
            mode,
            name: String::from_utf8_lossy(&rest[space + 1..nul]).into_owned(),
            sha: hex::encode(id),
        });
        rest = &rest[nul + 21..];
    }
    Ok(out)
}

/// A commit object's bytes.
pub(crate) fn write_commit(c: &Commit) -> Vec<u8> {
    let mut out = format!("tree {}\n", c.tree);
    for parent in &c.parents {
        out.push_str(&format!("parent {parent}\n"));
    }
    for (role, p) in [("author", &c.author), ("committer", &c.committer)] {
        out.push_str(&format!("{role} {} <{}> {} +0000\n", p.name, p.email, p.time));
    }
    out.push('\n');
    out.push_str(&c.message);
    out.into_bytes()
}

/// Reads a commit object.
pub(crate) fn read_commit(sha: &str, data: &[u8]) -> Result<Commit, GitError> {
    let text = String::from_utf8_lossy(data);
    let (head, message) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut commit = Commit {
        tree: String::new(),
        parents: Vec::new(),
        author: Person::default(),
        committer: Person::default(),
        message: message.to_owned(),
    };
    for line in head.lines() {
        match line.split_once(' ') {
            Some(("tree", v)) => commit.tree = v.to_owned(),
            Some(("parent", v)) => commit.parents.push(v.to_owned()),
            Some(("author", v)) => commit.author = person(v),
            Some(("committer", v)) => commit.committer = person(v),
            _ => {}
        }
    }
    if commit.tree.is_empty() {
        return Err(GitError::Malformed {
            sha: sha.to_owned(),
            expected: "commit",
        });
    }
    Ok(commit)
}

fn person(text: &str) -> Person {
    let (name, rest) = text.split_once('<').unwrap_or((text, ""));
    let (email, rest) = rest.split_once('>').unwrap_or((rest, ""));
    let time = rest.split_whitespace().next().and_then(|t| t.parse().ok()).unwrap_or(0);
    Person {
        name: name.trim().to_owned(),
        email: email.to_owned(),
        time,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_git() {
        // `git hash-object -t blob /dev/null`, and `printf 'hello\n' | git hash-object --stdin`; the empty tree is git's own.
        assert_eq!(hash(Kind::Blob, b""), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(hash(Kind::Blob, b"hello\n"), "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(hash(Kind::Tree, b""), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
    }

    #[test]
    fn trees_and_commits_survive_the_round_trip() {
        let sha = hash(Kind::Blob, b"");
        let entries = vec![
            Entry {
                mode: Mode::File,
                name: "a.b".into(),
                sha: sha.clone(),
            },
            Entry {
                mode: Mode::Tree,
                name: "a".into(),
                sha: sha.clone(),
            },
        ];
        let read = read_tree("x", &write_tree(&entries)).unwrap();
        // "a.b" < "a/" in git's order, although "a" < "a.b".
        assert_eq!(read, entries);
        let p = Person {
            name: "A B".into(),
            email: "a@b".into(),
            time: 5,
        };
        let c = Commit {
            tree: sha,
            parents: vec!["1".into()],
            author: p.clone(),
            committer: p,
            message: "m\n\nn".into(),
        };
        assert_eq!(read_commit("x", &write_commit(&c)).unwrap(), c);
        assert!(read_tree("x", b"100644 a").is_err());
        assert!(read_commit("x", b"nothing").is_err());
    }
}
