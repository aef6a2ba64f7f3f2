//! Paths as text: joining with the working directory, `.` and `..`, and what lies in the tree.

use std::sync::Arc;

use crate::value::{PieceKind, Value};

/// Key of a path in the written files: absolute where the directory is known, unknowns by name.
pub(crate) fn key(cwd: &Value, path: &Value) -> Arc<str> {
    let text = path.display();
    if text.starts_with('/') || starts_unknown(path) {
        return normal(&text).into();
    }
    normal(&format!("{}/{text}", cwd.display())).into()
}

/// True when the path begins with an unknown, so that whether it is relative is not known: such a path is
/// taken as it stands.
fn starts_unknown(path: &Value) -> bool {
    matches!(path.pieces().first().map(|p| &p.kind), Some(PieceKind::Unknown(_)))
}

/// Remove `.`, `..` and doubled slashes, by text only.
pub(crate) fn normal(path: &str) -> String {
    let absolute = path.starts_with('/');
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => match parts.last() {
                Some(&last) if last != ".." && !last.starts_with('$') => {
                    parts.pop();
                }
                None if absolute => {}
                _ => parts.push(".."),
            },
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    match (absolute, joined.is_empty()) {
        (true, _) => format!("/{joined}"),
        (false, true) => ".".into(),
        (false, false) => joined,
    }
}

/// Path inside the tree of a known absolute path, when it lies under one of the tree's places.
pub(crate) fn in_tree(roots: &[String], path: &str) -> Option<String> {
    roots.iter().find_map(|root| {
        let rest = path.strip_prefix(root.trim_end_matches('/'))?;
        let inside = rest.strip_prefix('/')?;
        (!inside.is_empty() && !inside.split('/').any(|p| p == "..")).then(|| inside.to_string())
    })
}

/// `dirname` of a known path.
pub(crate) fn dirname(path: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { ".".into() } else { "/".into() };
    }
    match trimmed.rfind('/') {
        None => ".".into(),
        Some(at) => {
            let head = trimmed[..at].trim_end_matches('/');
            if head.is_empty() { "/".into() } else { head.into() }
        }
    }
}

/// `basename` of a known path, without the suffix if given.
pub(crate) fn basename(path: &str, suffix: &str) -> String {
    let trimmed = path.trim_end_matches('/');
    if trimmed.is_empty() {
        return if path.is_empty() { String::new() } else { "/".into() };
    }
    let base = trimmed.rsplit('/').next().unwrap_or(trimmed);
    match base.strip_suffix(suffix) {
        Some(stem) if !suffix.is_empty() && !stem.is_empty() => stem.into(),
        _ => base.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_by_text() {
        for (path, expected) in [
            ("/a/./b/../c", "/a/c"),
            ("/a/b/../../../c", "/c"),
            ("a//b/", "a/b"),
            ("a/..", "."),
            ("../x", "../x"),
            ("$DIR/../x", "$DIR/../x"),
        ] {
            assert_eq!(normal(path), expected);
        }
        // As the programs print them.
        for (path, dir, base) in [
            ("a/b/c.sh", "a/b", "c.sh"),
            ("c.sh", ".", "c.sh"),
            ("/c", "/", "c"),
            ("a/b/", "a", "b"),
            ("/", "/", "/"),
        ] {
            assert_eq!(
                (dirname(path).as_str(), basename(path, "").as_str()),
                (dir, base),
                "{path}"
            );
        }
        assert_eq!(basename("a/b.sh", ".sh"), "b");
        let roots = vec!["/workspace".to_string()];
        assert_eq!(in_tree(&roots, "/workspace/a/b"), Some("a/b".into()));
        assert_eq!(in_tree(&roots, "/workspaces/a"), None);
        assert_eq!(in_tree(&roots, "/workspace"), None);
    }
}
