//! Identifiers with their validity built in: a value of these types is safe to put into a URL path or a log field.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize};

/// Why a text is no identifier of the wanted kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a valid {kind}: {why}")]
pub struct InvalidId {
    /// What was wanted, e.g. `commit SHA`.
    pub kind: &'static str,
    /// The offending text, cut to 80 characters.
    pub text: String,
    /// What is wrong with it.
    pub why: &'static str,
}

impl InvalidId {
    fn new(kind: &'static str, text: &str, why: &'static str) -> Self {
        Self {
            kind,
            text: text.chars().take(80).collect(),
            why,
        }
    }
}

macro_rules! string_id {
    ($(#[$doc:meta])* $name:ident, $kind:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, schemars::JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The text of the identifier.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                let check: fn(&str) -> Result<String, &'static str> = $check;
                check(text).map(Self).map_err(|why| InvalidId::new($kind, text, why))
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

fn hex40(text: &str) -> Result<String, &'static str> {
    if text.len() == 40 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(text.to_ascii_lowercase())
    } else {
        Err("it must be 40 hexadecimal digits")
    }
}

fn name_part(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 100
        && text != "."
        && text != ".."
        && text
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

string_id!(
    /// A full commit SHA, lower case.
    CommitSha, "commit SHA", hex40
);
string_id!(
    /// The git object id of a file's content, lower case.
    BlobId, "blob id", hex40
);
string_id!(
    /// `owner/name` of a repository, in the spelling GitHub gave.
    RepoName, "repository name", |text| match text.split_once('/') {
        Some((owner, name)) if name_part(owner) && name_part(name) => Ok(text.to_owned()),
        _ => Err("it must read owner/name"),
    }
);
string_id!(
    /// A user's or bot's login, in the spelling GitHub gave. Compare with [`Login::same`]: logins ignore case.
    Login, "login", |text| {
        let stem = text.strip_suffix("[bot]").unwrap_or(text);
        if !stem.is_empty() && stem.len() <= 64 && stem.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
            Ok(text.to_owned())
        } else {
            Err("only letters, digits, hyphens and underscores, optionally ending in [bot]")
        }
    }
);
string_id!(
    /// `org/team`, in the spelling found. Compare with [`TeamName::same`].
    TeamName, "team name", |text| match text.split_once('/') {
        Some((org, team)) if name_part(org) && name_part(team) => Ok(text.to_owned()),
        _ => Err("it must read org/team"),
    }
);

impl CommitSha {
    /// The first eight digits, as shown to readers.
    #[must_use]
    pub fn short(&self) -> &str {
        &self.0[..8]
    }
}

impl RepoName {
    /// The part before the slash.
    #[must_use]
    pub fn owner(&self) -> &str {
        self.0.split_once('/').map_or("", |(owner, _)| owner)
    }

    /// The part after the slash.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, name)| name)
    }

    /// Repository names ignore case.
    #[must_use]
    pub fn same(&self, other: &Self) -> bool {
        self.0.eq_ignore_ascii_case(&other.0)
    }
}

impl Login {
    /// GitHub compares logins without regard to case (domain guide, section 2).
    #[must_use]
    pub fn same(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// Whether this is an App's or machine account's login.
    #[must_use]
    pub fn is_bot(&self) -> bool {
        self.0.ends_with("[bot]")
    }
}

impl TeamName {
    /// Team names ignore case.
    #[must_use]
    pub fn same(&self, other: &str) -> bool {
        self.0.eq_ignore_ascii_case(other)
    }

    /// The organisation.
    #[must_use]
    pub fn org(&self) -> &str {
        self.0.split_once('/').map_or("", |(org, _)| org)
    }

    /// The team's slug.
    #[must_use]
    pub fn slug(&self) -> &str {
        self.0.split_once('/').map_or("", |(_, slug)| slug)
    }
}

/// A pull request's number in its repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct PrNumber(pub u64);

impl fmt::Display for PrNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The three places in which a sign-off can stand (product page, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignoffPlace {
    /// A comment in the conversation.
    IssueComment,
    /// The summary of a review.
    Review,
    /// An inline comment of a review.
    ReviewComment,
}

/// Which sign-off: its place and its number there. Displayed as in the verdict's marker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SignoffKey {
    /// Where it stands.
    pub place: SignoffPlace,
    /// GitHub's id of the comment or review.
    pub id: u64,
}

const KEY_PREFIXES: [(SignoffPlace, &str); 3] = [
    (SignoffPlace::IssueComment, "issuecomment-"),
    (SignoffPlace::Review, "pullrequestreview-"),
    (SignoffPlace::ReviewComment, "discussion_r"),
];

impl fmt::Display for SignoffKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = KEY_PREFIXES
            .iter()
            .find(|(place, _)| *place == self.place)
            .map_or("", |(_, prefix)| prefix);
        write!(f, "{prefix}{}", self.id)
    }
}

impl FromStr for SignoffKey {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        KEY_PREFIXES
            .iter()
            .find_map(|(place, prefix)| {
                Some(Self {
                    place: *place,
                    id: text.strip_prefix(prefix)?.parse().ok()?,
                })
            })
            .filter(|key| key.to_string() == text)
            .ok_or_else(|| {
                InvalidId::new(
                    "sign-off key",
                    text,
                    "it must read issuecomment-N, pullrequestreview-N or discussion_rN",
                )
            })
    }
}

impl Serialize for SignoffKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SignoffKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_refuse_what_could_act_in_a_url_or_a_comment() {
        assert!("a/b".parse::<RepoName>().is_ok());
        for bad in ["a", "a/b/c", "../b", "a/..", "a/b?x", "a /b", "", "/"] {
            assert!(bad.parse::<RepoName>().is_err(), "{bad}");
        }
        assert!("octo-cat_1".parse::<Login>().is_ok());
        assert!("github-actions[bot]".parse::<Login>().unwrap().is_bot());
        for bad in ["", "a b", "@a", "a/b", "[bot]", "a\n"] {
            assert!(bad.parse::<Login>().is_err(), "{bad:?}");
        }
        assert!("0123456789abcdef0123456789ABCDEF01234567".parse::<CommitSha>().is_ok());
        assert!("0123456".parse::<CommitSha>().is_err());
    }

    #[test]
    fn signoff_keys_round_trip() {
        for text in ["issuecomment-1", "pullrequestreview-22", "discussion_r333"] {
            assert_eq!(text.parse::<SignoffKey>().unwrap().to_string(), text);
        }
        for bad in [
            "issuecomment-",
            "issuecomment-01",
            "issuecomment-+1",
            "x-1",
            "discussion_r1 ",
        ] {
            assert!(bad.parse::<SignoffKey>().is_err(), "{bad}");
        }
    }
}
