//! What is known of people: roles of those who answered, and the signer's teams.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use countersign_codeowners::{CodeOwners, Owner};
use countersign_core::evidence::{Association, ChangedFile, Comment, Permission, Role, SignoffText};
use countersign_core::{Cause, CauseKind, Login, Observed};
use countersign_policy::Policy;
use countersign_signoff::CommandKind;
use futures::future::BoxFuture;

use crate::calls::{Call, at_once, join};
use crate::client::RepoClient;
use crate::error::GitHubError;
use crate::wire;

/// People whose role is asked for, and teams whose members are, at most.
const MOST: usize = 40;
const AT_ONCE: usize = 8;

/// Roles of those who confirmed or overrode something since the sign-off was written.
pub(crate) async fn permissions(
    repo: &RepoClient,
    comments: &[Comment],
    since: DateTime<Utc>,
    policy: &Policy,
) -> BTreeMap<String, Observed<Permission>> {
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for login in answerers(comments, since, policy) {
        work.push(Box::pin(permission(repo, login)));
    }
    at_once(AT_ONCE, work).await.into_iter().collect()
}

/// Those who confirmed or overrode something since a moment.
#[must_use]
pub fn answerers<'c>(comments: &'c [Comment], since: DateTime<Utc>, policy: &Policy) -> Vec<&'c Login> {
    let mut logins: Vec<&Login> = Vec::new();
    for comment in comments
        .iter()
        .rev()
        .filter(|comment| comment.created_at >= since && !comment.author_is_bot)
    {
        let Some(author) = &comment.author else { continue };
        let answers = countersign_signoff::commands(&comment.body, &policy.commands.words)
            .commands
            .iter()
            .any(|command| matches!(command.kind, CommandKind::Confirm { .. } | CommandKind::Override { .. }));
        if answers && logins.len() < MOST && !logins.iter().any(|known| known.same(author.as_str())) {
            logins.push(author);
        }
    }
    logins
}

async fn permission(repo: &RepoClient, login: &Login) -> (String, Observed<Permission>) {
    let what = format!("the role of {login}");
    let call = Call::get(repo.path(["collaborators", login.as_str(), "permission"]), &what);
    let found = match repo.read::<wire::Permission>(&call).await {
        Ok(permission) => Observed::Present(Permission {
            role: role(&permission.permission, permission.role_name.as_deref()),
        }),
        // An account without access at all.
        Err(GitHubError::NotFound { .. }) => Observed::Present(Permission { role: Role::None }),
        Err(error) => Observed::Unavailable(error.cause(what)),
    };
    (login.as_str().to_ascii_lowercase(), found)
}

/// The lesser of both words. `permission` knows no `maintain` and no `triage`: it says `write` and `read` for them. A custom
/// role authorises nothing by its name (reference guide, section 2.3).
#[must_use]
pub fn role(permission: &str, role_name: Option<&str>) -> Role {
    let most = match permission {
        "admin" => Role::Admin,
        "write" => Role::Maintain,
        "read" => Role::Triage,
        _ => Role::None,
    };
    let named = match role_name {
        Some("admin") => Role::Admin,
        Some("maintain") => Role::Maintain,
        Some("write" | "push") => Role::Write,
        Some("triage") => Role::Triage,
        Some("none") => Role::None,
        _ => Role::Read,
    };
    most.min(named)
}

/// The signer's teams, of those that the trusted CODEOWNERS names.
pub(crate) async fn teams(repo: &RepoClient, signer: &Login, owners: &CodeOwners) -> BTreeMap<String, Observed<bool>> {
    let named = named_teams(owners);
    let mut found = BTreeMap::new();
    let mut work: Vec<BoxFuture<'_, _>> = Vec::new();
    for (index, (org, slug)) in named.into_iter().enumerate() {
        if index < MOST {
            work.push(Box::pin(async move {
                (format!("{org}/{slug}"), member(repo, &org, &slug, signer).await)
            }));
        } else {
            let what = format!("the members of team {org}/{slug}");
            let why = format!("CODEOWNERS names more than {MOST} teams");
            found.insert(
                format!("{org}/{slug}"),
                Observed::Unavailable(Cause::new(CauseKind::TooLarge, what, why)),
            );
        }
    }
    found.extend(at_once(AT_ONCE, work).await);
    found
}

/// The teams that CODEOWNERS names, in lower case: organisation and slug.
#[must_use]
pub fn named_teams(owners: &CodeOwners) -> BTreeSet<(String, String)> {
    let mut named: BTreeSet<(String, String)> = BTreeSet::new();
    for owner in owners.listed_owners() {
        if let Owner::Team { org, slug } = owner {
            named.insert((org.to_ascii_lowercase(), slug.to_ascii_lowercase()));
        }
    }
    named
}

/// Whether a team can decide anything: not if the signer is named for every changed path that has owners of its own, and
/// somewhere at all, which is enough for the rest (domain guide, section 2).
#[must_use]
pub fn teams_matter(signer: &Login, owners: &CodeOwners, changed: Option<&[ChangedFile]>) -> bool {
    let is_signer = |owner: &Owner| owner.is_user(signer.as_str());
    let Some(changed) = changed else { return true };
    let paths = changed.iter().flat_map(ChangedFile::paths);
    let named = paths
        .map(|path| owners.owners_of(path))
        .all(|found| found.is_catch_all() || found.owners().iter().any(is_signer));
    !(named && owners.listed_owners().into_iter().any(is_signer))
}

/// From the team's list: the question about one membership is answered with 404 both for "no" and for "not your business".
/// The list leaves out invitations that are not accepted.
async fn member(repo: &RepoClient, org: &str, slug: &str, login: &Login) -> Observed<bool> {
    let what = format!("the members of team {org}/{slug}");
    let call = Call::get(join(["orgs", org, "teams", slug, "members"]), &what);
    match repo.list::<Vec<wire::Account>>(&call).await {
        Ok(members) => Observed::Present(members.iter().any(|member| login.same(&member.login))),
        Err(error) => Observed::Unavailable(error.cause(what)),
    }
}

/// Whether the signer belongs to the organisation. The association says yes; where it does not, membership may be private,
/// and is asked for only where a team could not be read.
pub(crate) async fn organisation(
    repo: &RepoClient,
    signoff: &SignoffText,
    teams: &BTreeMap<String, Observed<bool>>,
) -> Option<Observed<bool>> {
    if matches!(signoff.association, Association::Owner | Association::Member) {
        return Some(Observed::Present(true));
    }
    if !teams.values().any(|team| matches!(team, Observed::Unavailable(_))) {
        return None;
    }
    let what = format!("the members of {}", repo.name().owner());
    let call = Call::get(
        join(["orgs", repo.name().owner(), "members", signoff.author.as_str()]),
        &what,
    );
    Some(match repo.send(&call).await {
        Ok(answer) => Observed::Present(answer.status == 204),
        // To members of the organisation GitHub says 404 for no member; to others, it says a redirect to the public list.
        Err(GitHubError::NotFound { .. }) => Observed::Present(false),
        Err(error) => Observed::Unavailable(error.cause(what)),
    })
}

#[cfg(test)]
mod tests {
    use countersign_core::evidence::ChangeStatus;

    use super::*;

    #[test]
    fn teams_are_asked_for_where_they_decide() {
        let owners = CodeOwners::parse("* @o/core\n/a/ @dave @o/vendor\n/b/ @o/vendor\n/c/\n");
        let changed = |path: &str, before: Option<&str>| ChangedFile {
            path: path.into(),
            previous_path: before.map(str::to_owned),
            status: if before.is_some() {
                ChangeStatus::Renamed
            } else {
                ChangeStatus::Modified
            },
        };
        for (signer, files, wanted) in [
            ("dave", vec![changed("a/x", None)], false),
            ("DAVE", vec![changed("a/x", None), changed("other", None)], false),
            ("dave", vec![changed("b/x", None)], true),
            ("dave", vec![changed("a/x", Some("b/x"))], true),
            ("dave", vec![changed("c/x", None)], true),
            ("erin", vec![changed("other", None)], true),
        ] {
            assert_eq!(
                teams_matter(&signer.parse().unwrap(), &owners, Some(&files)),
                wanted,
                "{signer} {files:?}"
            );
        }
        assert!(teams_matter(&"dave".parse().unwrap(), &owners, None));
    }

    #[test]
    fn the_lesser_word_counts_and_a_custom_role_authorises_nothing() {
        for (permission, name, wanted) in [
            ("admin", Some("admin"), Role::Admin),
            ("write", Some("maintain"), Role::Maintain),
            ("write", Some("write"), Role::Write),
            ("write", Some("admin"), Role::Maintain),
            ("read", Some("maintain"), Role::Triage),
            ("read", Some("triage"), Role::Triage),
            ("read", Some("read"), Role::Read),
            ("admin", Some("release-manager"), Role::Read),
            ("write", None, Role::Read),
            ("none", Some("admin"), Role::None),
            ("", Some("admin"), Role::None),
        ] {
            assert_eq!(role(permission, name), wanted, "{permission} {name:?}");
        }
    }
}
