//! What is known of the people in a thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::observed::Observed;

/// GitHub's `author_association` of a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Association {
    /// Owner of the repository.
    Owner,
    /// Member of the owning organisation.
    Member,
    /// Invited to collaborate.
    Collaborator,
    /// Has contributed before.
    Contributor,
    /// Has never contributed to this repository.
    FirstTimeContributor,
    /// Has never contributed to GitHub.
    FirstTimer,
    /// A placeholder user.
    Mannequin,
    /// None of these. Unknown words are read as this, which authorises nothing.
    #[serde(other)]
    None,
}

impl Association {
    /// As GitHub spells it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Member => "MEMBER",
            Self::Collaborator => "COLLABORATOR",
            Self::Contributor => "CONTRIBUTOR",
            Self::FirstTimeContributor => "FIRST_TIME_CONTRIBUTOR",
            Self::FirstTimer => "FIRST_TIMER",
            Self::Mannequin => "MANNEQUIN",
            Self::None => "NONE",
        }
    }
}

/// A repository role. Ordered: a later one may do more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// No access.
    None,
    /// May read.
    Read,
    /// May triage.
    Triage,
    /// May push.
    Write,
    /// May maintain.
    Maintain,
    /// May administer.
    Admin,
}

/// A person's permission on the judged repository. GitHub reports two words; the lesser of both counts, since a custom
/// role must not authorise by its name (reference guide, section 2.3).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Permission {
    /// The role that counts.
    pub role: Role,
}

/// Facts about people, by lower-case login or team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct People {
    /// Permission on the repository, by login in lower case.
    pub permissions: BTreeMap<String, Observed<Permission>>,
    /// The signer's membership of teams named in CODEOWNERS, by `org/team` in lower case.
    pub signer_teams: BTreeMap<String, Observed<bool>>,
    /// Whether the signer belongs to the organisation that owns the repository.
    pub signer_in_organisation: Option<Observed<bool>>,
}
