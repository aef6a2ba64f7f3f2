//! CODEOWNERS and the paths of a pull request: the first line is a path, the rest the file.

use countersign_codeowners::CodeOwners;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (path, file) = text.split_once('\n').unwrap_or((&text, &text));
    let owners = CodeOwners::parse(file);
    for path in [path, "a", "docs/a b.md", ".github/x/y/z.yml"] {
        let owner = owners.owners_of(path);
        if let Some(rule) = owner.rule() {
            assert!(rule.matches(path), "{path:?} is owned by a line that does not match it");
        }
        let _ = (owners.doubts_about(path), owners.owners_of_change(path, Some("old")));
    }
    let _ = owners.listed_owners();
}
