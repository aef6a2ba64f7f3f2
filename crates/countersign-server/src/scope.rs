//! Whether a pull request needs a sign-off at all, by the owners of what it changes (reference guide, section 2.2). Pure.
//!
//! Whatever cannot be read or understood means that a sign-off is needed: an exemption is never a guess.

use std::collections::BTreeSet;

use countersign_codeowners::CodeOwners;
use countersign_core::Observed;
use countersign_core::evidence::ChangedFile;
use countersign_github::gather::Scope;

/// Names shown in a status line.
const SHOWN: usize = 3;

/// Why no sign-off is needed; `None` where one is. `exempt` are owners as written in CODEOWNERS, with `@`.
pub(crate) fn exemption(scope: &Scope, exempt: &[String]) -> Option<String> {
    let Observed::Present(files) = &scope.files else {
        return None;
    };
    // Without a file nobody owns anything: that is no statement about this pull request.
    let Observed::Present(text) = &scope.codeowners else {
        return None;
    };
    let owners = CodeOwners::parse(text);
    if exempt.is_empty() || files.is_empty() || owners.is_ignored() {
        return None;
    }
    let exempt: BTreeSet<String> = exempt.iter().map(|owner| owner.to_ascii_lowercase()).collect();
    let mut found = BTreeSet::new();
    for path in files.iter().flat_map(ChangedFile::paths) {
        // A line that cannot be understood may be the one that owns this path.
        if !owners.doubts_about(path).is_empty() {
            return None;
        }
        for owner in owners.owners_of(path).owners() {
            let owner = owner.folded();
            if !exempt.contains(&owner) {
                return None;
            }
            found.insert(owner);
        }
    }
    Some(if found.is_empty() {
        "no changed path has an owner".to_owned()
    } else {
        let names: Vec<&str> = found.iter().take(SHOWN).map(String::as_str).collect();
        format!("all owners of the changed paths are exempt ({})", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use countersign_core::evidence::ChangeStatus;
    use countersign_core::{Cause, CauseKind};

    use super::*;

    fn scope(files: &[(&str, Option<&str>)], codeowners: &str) -> Scope {
        let files = files.iter().map(|(path, previous)| ChangedFile {
            path: (*path).to_owned(),
            previous_path: previous.map(str::to_owned),
            status: if previous.is_some() {
                ChangeStatus::Renamed
            } else {
                ChangeStatus::Modified
            },
        });
        Scope {
            head: "0123456789abcdef0123456789abcdef01234567".parse().unwrap(),
            files: Observed::Present(files.collect()),
            codeowners: Observed::Present(codeowners.to_owned()),
        }
    }

    const OWNERS: &str = "* @octo/core\nconfigs/a.yaml @octo/core @olive\nconfigs/b.yaml @olive\n/free\n";

    fn of(files: &[(&str, Option<&str>)]) -> Option<String> {
        exemption(&scope(files, OWNERS), &["@Octo/Core".to_owned()])
    }

    #[test]
    fn only_exempt_owners_exempt_and_both_paths_of_a_rename_count() {
        assert!(of(&[("docs/x.md", None)]).is_some_and(|why| why.contains("@octo/core")));
        assert_eq!(of(&[("docs/x.md", None), ("configs/b.yaml", None)]), None);
        // A core owner on the same line does not exempt the other one.
        assert_eq!(of(&[("configs/a.yaml", None)]), None);
        assert_eq!(of(&[("docs/x.md", Some("configs/b.yaml"))]), None);
        // A line without owners takes the path out of everybody's hands.
        assert!(of(&[("free", None)]).is_some_and(|why| why.contains("no changed path has an owner")));
    }

    #[test]
    fn what_is_not_known_is_no_exemption() {
        let cause = || Cause::new(CauseKind::Transient, "x", "y");
        let mut unread = scope(&[("docs/x.md", None)], OWNERS);
        unread.files = Observed::Unavailable(cause());
        let exempt = ["@octo/core".to_owned()];
        assert_eq!(exemption(&unread, &exempt), None);
        let mut unread = scope(&[("docs/x.md", None)], OWNERS);
        unread.codeowners = Observed::Unavailable(cause());
        assert_eq!(exemption(&unread, &exempt), None);
        unread.codeowners = Observed::Absent;
        assert_eq!(exemption(&unread, &exempt), None);
        assert_eq!(exemption(&scope(&[], OWNERS), &exempt), None);
        assert_eq!(exemption(&scope(&[("docs/x.md", None)], OWNERS), &[]), None);
        let broken = format!("{OWNERS}docs/ @not/a/team/name\n");
        assert_eq!(exemption(&scope(&[("docs/x.md", None)], &broken), &exempt), None);
    }
}
