//! One call as data.

use bytes::Bytes;
use http::Method;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::GitHubError;

/// GitHub's JSON.
pub(crate) const JSON: &str = "application/vnd.github+json";
/// A file as it is.
pub(crate) const RAW: &str = "application/vnd.github.raw+json";

/// What is sent.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) method: Method,
    /// From the API's root, encoded, with a leading slash.
    pub(crate) path: String,
    /// Encoded, without the question mark.
    pub(crate) query: String,
    pub(crate) accept: &'static str,
    pub(crate) body: Option<Value>,
    /// Whether sending it twice does the same as sending it once.
    pub(crate) repeatable: bool,
    /// For errors: what is asked for.
    pub(crate) what: String,
    /// Whether a redirect is the answer: it says where an archive lies.
    pub(crate) locate: bool,
    /// Whether the answer can never change and is kept elsewhere: then it is not kept for conditional requests.
    pub(crate) passing: bool,
    /// Largest answer, where it differs from the usual.
    pub(crate) cap: Option<usize>,
}

impl Call {
    fn new(method: Method, path: String, what: impl Into<String>) -> Self {
        Self {
            repeatable: method == Method::GET || method == Method::DELETE,
            method,
            path,
            query: String::new(),
            accept: JSON,
            body: None,
            what: what.into(),
            locate: false,
            passing: false,
            cap: None,
        }
    }

    pub(crate) fn get(path: String, what: impl Into<String>) -> Self {
        Self::new(Method::GET, path, what)
    }

    pub(crate) fn delete(path: String, what: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path, what)
    }

    pub(crate) fn post(path: String, body: Value, what: impl Into<String>) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::POST, path, what)
        }
    }

    pub(crate) fn patch(path: String, body: Value, what: impl Into<String>) -> Self {
        Self {
            body: Some(body),
            ..Self::new(Method::PATCH, path, what)
        }
    }

    pub(crate) fn query(mut self, name: &str, value: impl ToString) -> Self {
        if !self.query.is_empty() {
            self.query.push('&');
        }
        self.query.push_str(name);
        self.query.push('=');
        self.query.push_str(&encode(&value.to_string()));
        self
    }

    pub(crate) fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub(crate) fn cap(mut self, bytes: usize) -> Self {
        self.cap = Some(bytes);
        self
    }

    /// Marks an answer that is not to be kept for conditional requests.
    pub(crate) fn passing(mut self) -> Self {
        self.passing = true;
        self
    }

    /// Marks a POST or PATCH of which a second copy does nothing.
    pub(crate) fn repeatable(mut self) -> Self {
        self.repeatable = true;
        self
    }
}

/// What came back; always a success.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) link: Option<String>,
    pub(crate) body: Bytes,
}

impl Answer {
    /// Reads the body.
    pub(crate) fn decode<T: DeserializeOwned>(&self, what: &str) -> Result<T, GitHubError> {
        let mut deserializer = serde_json::Deserializer::from_slice(&self.body);
        serde_path_to_error::deserialize(&mut deserializer).map_err(|error| GitHubError::Decode {
            what: what.to_owned(),
            path: error.path().to_string(),
            why: error.inner().to_string().chars().take(200).collect(),
        })
    }
}

/// Joins path segments, each encoded; a slash inside of one separates segments, so names of files and branches can be given whole.
pub(crate) fn join<'a>(segments: impl IntoIterator<Item = &'a str>) -> String {
    let mut out = String::new();
    for segment in segments.into_iter().flat_map(|part| part.split('/')) {
        out.push('/');
        // A dot segment would be resolved away by servers on the road, and the call would be another one.
        match segment {
            "." => out.push_str("%2E"),
            ".." => out.push_str("%2E%2E"),
            segment => out.push_str(&encode(segment)),
        }
    }
    out
}

/// Percent-encodes everything but unreserved characters.
pub(crate) fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_name_changes_the_call() {
        assert_eq!(
            join(["repos", "o", "r", "contents", "a b/c?d#e/ü"]),
            "/repos/o/r/contents/a%20b/c%3Fd%23e/%C3%BC"
        );
        assert_eq!(join(["repos", "../x"]), "/repos/%2E%2E/x");
        let call = Call::get(join(["x"]), "x").query("branch", "a&b=c").query("page", 2);
        assert_eq!(call.query, "branch=a%26b%3Dc&page=2");
        assert!(call.repeatable && !Call::post(join(["x"]), Value::Null, "x").repeatable);
    }
}
