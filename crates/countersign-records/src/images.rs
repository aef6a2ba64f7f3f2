//! Container image references: reading, comparing, and whose namespace they are in (domain guide 14).
//!
//! The form is `[registry[#/]]namespace/name[:tag][@sha256:hex]`. A hash sign stands for the slash after the registry
//! host and nowhere else. Without a registry, or with Docker Hub's own names, the registry is Docker Hub.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest reference that is read, in bytes.
pub const MAX_BYTES: usize = 1024;
/// Longest tag, in bytes.
const MAX_TAG: usize = 128;
/// Names of Docker Hub.
const HUB: [&str; 2] = ["docker.io", "index.docker.io"];

/// Why a text is no image reference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Nothing there.
    #[error("the image is empty")]
    Empty,
    /// Longer than [`MAX_BYTES`].
    #[error("the image reference has {0} bytes, more than {MAX_BYTES}")]
    TooLong(usize),
    /// A hash sign that does not follow the registry host.
    #[error("`#` may stand only between the registry host and the path")]
    Hash,
    /// The registry host.
    #[error("{0:?} is no registry host")]
    Registry(String),
    /// A component of the path.
    #[error("{0:?} is no path component: lower-case letters, digits, and separators `.`, `_`, `-` between them")]
    Component(String),
    /// The tag.
    #[error("{0:?} is no tag")]
    Tag(String),
    /// The digest.
    #[error("{0:?} is no digest of the form sha256:<64 hex digits>")]
    Digest(String),
}

/// An image reference, normalised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Image {
    /// Registry host, with port if any, lower-case; `None` is Docker Hub.
    pub registry: Option<String>,
    /// Path components, at least one.
    pub path: Vec<String>,
    /// Tag, as written.
    pub tag: Option<String>,
    /// The 64 hex digits of the digest, lower-case.
    pub digest: Option<String>,
}

/// A namespace that images may come from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NamespaceRule {
    /// Registry host; absent for Docker Hub.
    #[serde(default)]
    pub registry: Option<String>,
    /// First path component, compared exactly.
    pub namespace: String,
}

/// Whether an image comes from an allowed namespace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// It does.
    Allowed,
    /// It does not, but it looks like one of the allowed ones: this rule's namespace.
    LookAlike(String),
    /// It does not.
    Other,
}

impl Image {
    /// Reads a reference.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Image, ImageError> {
        if text.is_empty() {
            return Err(ImageError::Empty);
        }
        if text.len() > MAX_BYTES {
            return Err(ImageError::TooLong(text.len()));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(read_digest(digest)?)),
            None => (text, None),
        };
        let (registry, rest) = split_registry(rest)?;
        if rest.contains('#') {
            return Err(ImageError::Hash);
        }
        let last = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (path, tag) = match rest[last..].find(':') {
            Some(colon) => (&rest[..last + colon], Some(read_tag(&rest[last + colon + 1..])?)),
            None => (rest, None),
        };
        let path = path.split('/').map(read_component).collect::<Result<Vec<_>, _>>()?;
        Ok(Image {
            registry: registry.filter(|r| !HUB.contains(&r.as_str())),
            path,
            tag,
            digest,
        })
    }

    /// Path as one text.
    #[must_use]
    pub fn repository(&self) -> String {
        self.path.join("/")
    }

    /// First path component of a path with at least two; a bare name is in nobody's namespace.
    #[must_use]
    pub fn namespace(&self) -> Option<&str> {
        self.path.first().filter(|_| self.path.len() > 1).map(String::as_str)
    }

    /// Same registry and path.
    #[must_use]
    pub fn same_repository(&self, other: &Image) -> bool {
        self.registry == other.registry && self.path == other.path
    }

    /// The same image: same repository, and the same digest or, where neither has one, the same tag. No tag is
    /// `latest`. A digest on one side only is a difference, since the tag may move.
    #[must_use]
    pub fn same_image(&self, other: &Image) -> bool {
        let tag = |image: &Image| image.tag.clone().unwrap_or_else(|| "latest".into());
        self.same_repository(other)
            && match (&self.digest, &other.digest) {
                (Some(a), Some(b)) => a == b,
                (None, None) => tag(self) == tag(other),
                _ => false,
            }
    }

    /// Whether the image comes from one of the namespaces. Registry and namespace are compared exactly; what merely
    /// resembles an allowed namespace is named, so that the refusal can say so.
    #[must_use]
    pub fn provenance(&self, rules: &[NamespaceRule]) -> Provenance {
        let exact = |r: &&NamespaceRule| {
            let registry = r
                .registry
                .as_deref()
                .map(str::to_ascii_lowercase)
                .filter(|x| !HUB.contains(&x.as_str()));
            registry == self.registry && self.namespace() == Some(r.namespace.as_str())
        };
        if rules.iter().any(|r| exact(&r)) {
            return Provenance::Allowed;
        }
        let fold = |text: &str| {
            let folded: String = text.chars().filter(char::is_ascii_alphanumeric).collect();
            folded.replace('0', "o").replace(['1', 'i'], "l")
        };
        let close = |r: &&NamespaceRule| {
            let wanted = fold(&r.namespace);
            let parts = self.path.iter().take(self.path.len().saturating_sub(1));
            !wanted.is_empty() && parts.map(|p| fold(p)).any(|p| p.starts_with(&wanted))
        };
        rules
            .iter()
            .find(close)
            .map_or(Provenance::Other, |r| Provenance::LookAlike(r.namespace.clone()))
    }
}

impl fmt::Display for Image {
    /// The normalised form: a slash after the registry, Docker Hub left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(registry) = &self.registry {
            write!(f, "{registry}/")?;
        }
        f.write_str(&self.repository())?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@sha256:{digest}")?;
        }
        Ok(())
    }
}

/// Splits off the registry: what stands before a hash sign, or a first component that looks like a host.
fn split_registry(text: &str) -> Result<(Option<String>, &str), ImageError> {
    let slash = text.find('/');
    if let Some(hash) = text.find('#') {
        if slash.is_some_and(|s| s < hash) {
            return Err(ImageError::Hash);
        }
        return Ok((Some(read_host(&text[..hash])?), &text[hash + 1..]));
    }
    let Some(slash) = slash else { return Ok((None, text)) };
    let first = &text[..slash];
    if first.contains(['.', ':']) || first.eq_ignore_ascii_case("localhost") {
        return Ok((Some(read_host(first)?), &text[slash + 1..]));
    }
    Ok((None, text))
}

fn read_host(host: &str) -> Result<String, ImageError> {
    let (name, port) = host
        .split_once(':')
        .map_or((host, None), |(name, port)| (name, Some(port)));
    let label = |l: &str| {
        !l.is_empty()
            && l.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !l.starts_with('-')
            && !l.ends_with('-')
    };
    let port_fine = port.is_none_or(|p| (1..=5).contains(&p.len()) && p.bytes().all(|b| b.is_ascii_digit()));
    if name.split('.').all(label) && port_fine {
        Ok(host.to_ascii_lowercase())
    } else {
        Err(ImageError::Registry(host.to_owned()))
    }
}

fn read_component(text: &str) -> Result<String, ImageError> {
    let word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().is_some_and(word) && bytes.last().is_some_and(word);
    // Between words: one dot, one or two underscores, or any number of dashes.
    let between = bytes
        .split(word)
        .filter(|s| !s.is_empty())
        .all(|s| matches!(s, b"." | b"_" | b"__") || s.iter().all(|b| *b == b'-'));
    if ends && between {
        Ok(text.to_owned())
    } else {
        Err(ImageError::Component(text.to_owned()))
    }
}

fn read_tag(text: &str) -> Result<String, ImageError> {
    let first = text
        .bytes()
        .next()
        .is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_');
    let all = text
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if first && all && text.len() <= MAX_TAG {
        Ok(text.to_owned())
    } else {
        Err(ImageError::Tag(text.to_owned()))
    }
}

fn read_digest(text: &str) -> Result<String, ImageError> {
    let hex = text.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        Ok(hex.to_ascii_lowercase())
    } else {
        Err(ImageError::Digest(text.to_owned()))
    }
}
