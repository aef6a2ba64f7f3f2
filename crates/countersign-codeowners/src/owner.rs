//! Owners as a CODEOWNERS line names them: a user, a team, or an e-mail address.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use serde::{Serialize, Serializer};

/// Longest login or organisation name GitHub gives out, in characters.
const MAX_LOGIN: usize = 39;
/// Longest team slug accepted, in characters (a team name has at most 255).
const MAX_SLUG: usize = 255;
/// Longest address accepted, in bytes (RFC 5321, 4.5.3.1.3, less the angle brackets).
const MAX_EMAIL: usize = 254;

/// One owner, spelled as in the file.
///
/// Equality, order and hash ignore ASCII case, because GitHub's logins, organisation names and
/// team slugs do (domain guide 2: the file has `ankur-singh`, the person signs as
/// `Ankur-singh`). The original spelling is what [`fmt::Display`] prints.
#[derive(Debug, Clone)]
pub enum Owner {
    /// `@login`, stored without the at sign. A GitHub App is written `@name[bot]`.
    User(String),
    /// `@org/slug`, stored without the at sign.
    Team {
        /// The organisation; it need not be the repository's own (domain guide 2).
        org: String,
        /// The team's slug.
        slug: String,
    },
    /// An address that GitHub looks up among its users' addresses.
    Email(String),
}

/// A word that cannot be an owner. GitHub skips the whole line that contains one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an owner: expected @user, @org/team or an e-mail address")]
pub struct InvalidOwner;

impl Owner {
    /// Reads one owner.
    ///
    /// A login or organisation is 1 to 39 of `A-Z a-z 0-9 - _` beginning with a letter or digit
    /// (the underscore comes with managed users); a login may end in `[bot]`, which GitHub's
    /// error list treats as well-formed. A slug is 1 to 255 of `A-Z a-z 0-9 - _`. Any other word
    /// with an at sign inside is taken for an address, as GitHub does; see
    /// [`Owner::is_plausible`].
    ///
    /// # Errors
    /// [`InvalidOwner`] for everything else, such as `user`, `@`, `@org/`, `@org/a/b`, `docs@`.
    pub fn parse(word: &str) -> Result<Self, InvalidOwner> {
        let Some(name) = word.strip_prefix('@') else {
            return Self::parse_email(word);
        };
        // `@one@two` has no separator between two logins. GitHub reports no error for it and
        // resolves it to nobody, which is how an unknown address behaves.
        if name.contains('@') {
            return Self::parse_email(word);
        }
        match name.split_once('/') {
            Some((org, slug)) => {
                let slug_ok = (1..=MAX_SLUG).contains(&slug.len()) && slug.bytes().all(is_name_byte);
                if is_login(org) && slug_ok {
                    Ok(Self::Team {
                        org: org.to_owned(),
                        slug: slug.to_owned(),
                    })
                } else {
                    Err(InvalidOwner)
                }
            }
            None if is_login(name.strip_suffix("[bot]").unwrap_or(name)) => Ok(Self::User(name.to_owned())),
            None => Err(InvalidOwner),
        }
    }

    fn parse_email(word: &str) -> Result<Self, InvalidOwner> {
        match word.rsplit_once('@') {
            Some((local, domain)) if !local.is_empty() && !domain.is_empty() && word.len() <= MAX_EMAIL => {
                Ok(Self::Email(word.to_owned()))
            }
            _ => Err(InvalidOwner),
        }
    }

    /// Whether this is the user with that login (without the at sign), ignoring case.
    #[must_use]
    pub fn is_user(&self, login: &str) -> bool {
        matches!(self, Self::User(name) if name.eq_ignore_ascii_case(login))
    }

    /// Whether this is that team, ignoring case.
    #[must_use]
    pub fn is_team(&self, org: &str, slug: &str) -> bool {
        matches!(self, Self::Team { org: o, slug: s } if o.eq_ignore_ascii_case(org) && s.eq_ignore_ascii_case(slug))
    }

    /// False for an address that no mail system would take (no dot in the domain, a second at
    /// sign, forbidden characters). Users and teams are always plausible. There is no limit on
    /// the length of a top-level domain other than DNS's own.
    #[must_use]
    pub fn is_plausible(&self) -> bool {
        let Self::Email(address) = self else { return true };
        let Some((local, domain)) = address.rsplit_once('@') else {
            return false;
        };
        let local_ok = local.len() <= 64
            && local
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-.".contains(&b));
        let labels: Vec<&str> = domain.split('.').collect();
        let label_ok = |l: &&str| {
            (1..=63).contains(&l.len())
                && !l.starts_with('-')
                && !l.ends_with('-')
                && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        let tld_ok = labels.last().is_some_and(|tld| {
            tld.len() >= 2
                && (tld.bytes().all(|b| b.is_ascii_alphabetic()) || tld.to_ascii_lowercase().starts_with("xn--"))
        });
        local_ok && labels.len() >= 2 && labels.iter().all(label_ok) && tld_ok
    }

    /// The text that decides equality: as printed, in ASCII lower case.
    #[must_use]
    pub fn folded(&self) -> String {
        self.to_string().to_ascii_lowercase()
    }
}

fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_'
}

fn is_login(name: &str) -> bool {
    (1..=MAX_LOGIN).contains(&name.len())
        && name.bytes().all(is_name_byte)
        && name.bytes().next().is_some_and(|b| b.is_ascii_alphanumeric())
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(login) => write!(f, "@{login}"),
            Self::Team { org, slug } => write!(f, "@{org}/{slug}"),
            Self::Email(address) => f.write_str(address),
        }
    }
}

impl PartialEq for Owner {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::User(a), Self::User(b)) | (Self::Email(a), Self::Email(b)) => a.eq_ignore_ascii_case(b),
            (Self::Team { org, slug }, team) => team.is_team(org, slug),
            _ => false,
        }
    }
}

impl Eq for Owner {}

impl PartialOrd for Owner {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Owner {
    fn cmp(&self, other: &Self) -> Ordering {
        // The printed forms of two kinds never coincide: a user has no slash and no second at
        // sign, a team has a slash and one at sign in front, an address has neither shape.
        self.folded().cmp(&other.folded())
    }
}

impl Hash for Owner {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.folded().hash(state);
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_refusals() {
        let user = |s: &str| matches!(Owner::parse(s), Ok(Owner::User(_)));
        let team = |s: &str| matches!(Owner::parse(s), Ok(Owner::Team { .. }));
        let email = |s: &str| matches!(Owner::parse(s), Ok(Owner::Email(_)));
        for good in [
            "@octocat",
            "@1am9trash",
            "@Octo-Cat",
            "@octo_corp",
            "@renovate[bot]",
            "@a",
            "@legacy-",
        ] {
            assert!(user(good), "{good}");
        }
        assert!(user(&format!("@{}", "a".repeat(39))));
        for good in ["@org/team", "@Org/My_Team-2", "@org/-x"] {
            assert!(team(good), "{good}");
        }
        for good in [
            "docs@example.com",
            "a.b+c@sub.example.photography",
            "x@one@two",
            "@one@two",
            "@a,@b,",
            "a@localhost",
        ] {
            assert!(email(good), "{good}");
        }
        let long = format!("@{}", "a".repeat(40));
        for bad in [
            "",
            "@",
            "@@",
            "user",
            "docs@",
            "org/team",
            "@/team",
            "@org/",
            "@org/a/b",
            "@org//a",
            "@-x",
            "@_x",
            "@a.b",
            "@org/a.b",
            "@org/team[bot]",
            "@[bot]",
            "@a[bot",
            "@ä",
            "@user,",
            "*",
            &long,
        ] {
            assert_eq!(Owner::parse(bad).err(), Some(InvalidOwner), "{bad}");
        }
    }

    #[test]
    fn plausible_addresses() {
        let plausible = |s: &str| Owner::parse(s).expect(s).is_plausible();
        for good in [
            "docs@example.com",
            "a@b.co",
            "a@b.international",
            "a@b.cancerresearch",
            "a@b.xn--vermgensberatung-pwb",
            "o'neil+ci@x-y.example.org",
            "@octocat",
            "@org/team",
        ] {
            assert!(plausible(good), "{good}");
        }
        for bad in [
            "a@localhost",
            "@one@two",
            "x@one@two",
            "a@b.c",
            "a@-b.com",
            "a@b..com",
            "a@b.c0m",
            "ä@b.com",
        ] {
            assert!(!plausible(bad), "{bad}");
        }
    }

    #[test]
    fn comparison_ignores_case_and_never_mixes_kinds() {
        let o = |s: &str| Owner::parse(s).expect(s);
        assert_eq!(o("@Ankur-Singh"), o("@ankur-singh"));
        assert_eq!(o("@Org/Team"), o("@oRG/tEAM"));
        assert_eq!(o("Docs@Example.COM"), o("docs@example.com"));
        assert_ne!(o("@org"), o("@org/org"));
        assert_ne!(o("@a@b.com"), o("a@b.com"));
        assert_ne!(o("@octocat"), o("@octocat[bot]"));
        assert!(o("@OctoCat").is_user("octocat") && !o("@OctoCat").is_user("octocats"));
        assert!(o("@Org/Team").is_team("org", "TEAM") && !o("@org/team").is_team("org2", "team"));
        assert_eq!(o("@OctoCat").to_string(), "@OctoCat");
    }
}
