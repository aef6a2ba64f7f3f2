//! Archives and artifacts: GitHub redirects to a storage host, which is read without a token, in pieces, up to a bound.

use std::sync::atomic::Ordering;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use tokio::time::timeout;
use url::Url;

use super::call::Call;
use super::limits::Tally;
use super::refuse::refuse;
use super::transport::Stream;
use crate::client::hub::{Hub, Who};
use crate::error::GitHubError;

/// Tries of a download as a whole; signed addresses live for minutes only, so each try asks for a new one.
const TRIES: u32 = 3;

/// Counts tries.
#[derive(Default)]
pub(crate) struct Tries(u32);

impl Tries {
    /// Whether a try that ended so is followed by another one. Calls to the API have been repeated within it already.
    pub(crate) fn again<T>(&mut self, done: &Result<T, GitHubError>) -> bool {
        self.0 += 1;
        self.0 < TRIES && matches!(done, Err(GitHubError::Network { .. } | GitHubError::Transient { .. }))
    }
}

impl Hub {
    /// Reads an archive whole, up to `cap` bytes.
    pub(crate) async fn download(
        &self,
        who: &Who,
        call: &Call,
        cap: usize,
        tally: &Tally,
    ) -> Result<Bytes, GitHubError> {
        let mut tries = Tries::default();
        loop {
            let read = self.within(call, self.read_whole(who, call, cap as u64, tally)).await;
            if !tries.again(&read) {
                return read;
            }
        }
    }

    async fn read_whole(&self, who: &Who, call: &Call, cap: u64, tally: &Tally) -> Result<Bytes, GitHubError> {
        let mut pieces = self.open_archive(who, call, cap, tally).await?;
        let mut read = BytesMut::new();
        while let Some(piece) = pieces.next().await? {
            read.extend_from_slice(&piece);
        }
        Ok(read.freeze())
    }

    /// Bounds the time of one try.
    pub(crate) async fn within<T>(
        &self,
        call: &Call,
        work: impl Future<Output = Result<T, GitHubError>>,
    ) -> Result<T, GitHubError> {
        let limit = self.config.timeouts.download;
        timeout(limit, work).await.unwrap_or_else(|_| {
            Err(GitHubError::Network {
                what: call.what.clone(),
                why: format!("it was not read in {} s", limit.as_secs()),
            })
        })
    }

    /// Begins an archive; its pieces are to be read.
    pub(crate) async fn open_archive<'a>(
        &'a self,
        who: &Who,
        call: &'a Call,
        cap: u64,
        tally: &Tally,
    ) -> Result<Pieces<'a>, GitHubError> {
        let (headers, body) = self.storage(who, call, tally).await?;
        let told = headers
            .get(CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if told.is_some_and(|told| told > cap) {
            return Err(too_large(&call.what, cap));
        }
        Ok(Pieces {
            hub: self,
            body,
            left: cap,
            cap,
            what: &call.what,
        })
    }

    /// The storage host's answer.
    async fn storage(&self, who: &Who, call: &Call, tally: &Tally) -> Result<(HeaderMap, Stream), GitHubError> {
        let what = &call.what;
        let target = self.locate(who, call, tally).await?;
        tally.downloads.fetch_add(1, Ordering::Relaxed);
        let request = self.transport.request(call, target.as_str(), None, None)?;
        let (status, headers, mut body) = self.transport.open(request, what).await?;
        if status.is_success() {
            return Ok((headers, body));
        }
        // The body says in XML or HTML what the status says; a short piece of it is read to keep the connection usable.
        drop(self.transport.piece(&mut body, what).await);
        Err(match status.as_u16() {
            404 | 410 => GitHubError::Gone { what: what.clone() },
            // A signed address that expired between two calls; a new one may work.
            403 => GitHubError::Transient {
                status: 403,
                what: what.clone(),
                message: "the storage host refused the signed address".into(),
            },
            300..=399 => redirected(what),
            _ => refuse(status, &headers, b"", what, self.config.time.now()),
        })
    }

    /// Asks the API for the address.
    async fn locate(&self, who: &Who, call: &Call, tally: &Tally) -> Result<Url, GitHubError> {
        let location = self.send_for_location(who, call, tally).await?;
        let url = Url::parse(&self.transport.url(call)).and_then(|from| from.join(&location));
        url.ok()
            .filter(|url| self.may_download_from(url))
            .ok_or_else(|| redirected(&call.what))
    }

    fn may_download_from(&self, url: &Url) -> bool {
        if self.transport.is_ours(url) {
            return true;
        }
        let secure = url.scheme() == "https" || (url.scheme() == "http" && self.transport.is_plain());
        let plain = url.username().is_empty() && url.password().is_none();
        secure && plain && self.config.archive_hosts.iter().any(|rule| host_matches(rule, url))
    }
}

/// `host`, `host:port` or `*.suffix`.
fn host_matches(rule: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else { return false };
    if let Some(suffix) = rule.strip_prefix("*.") {
        return url.port().is_none()
            && host.len() > suffix.len() + 1
            && host
                .to_ascii_lowercase()
                .ends_with(&format!(".{}", suffix.to_ascii_lowercase()));
    }
    match url.port() {
        Some(port) => rule.eq_ignore_ascii_case(&format!("{host}:{port}")),
        None => rule.eq_ignore_ascii_case(host),
    }
}

fn redirected(what: &str) -> GitHubError {
    GitHubError::Unprocessable {
        what: what.to_owned(),
        message: "it is redirected to a host that is not in `archive_hosts`, and that is not followed".into(),
    }
}

fn too_large(what: &str, cap: u64) -> GitHubError {
    GitHubError::TooLarge {
        what: what.to_owned(),
        limit: format!("{cap} bytes"),
    }
}

/// A body in pieces, up to its bound.
pub(crate) struct Pieces<'a> {
    hub: &'a Hub,
    body: Stream,
    left: u64,
    cap: u64,
    what: &'a str,
}

impl Pieces<'_> {
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, GitHubError> {
        let Some(piece) = self.hub.transport.piece(&mut self.body, self.what).await? else {
            return Ok(None);
        };
        self.left = self
            .left
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| too_large(self.what, self.cap))?;
        Ok(Some(piece))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_named_hosts() {
        let may = |rule: &str, url: &str| host_matches(rule, &Url::parse(url).unwrap());
        assert!(may("codeload.github.com", "https://codeload.github.com/x"));
        assert!(may(
            "*.blob.core.windows.net",
            "https://abc.blob.core.windows.net/x?sig=1"
        ));
        assert!(may("127.0.0.1:8081", "http://127.0.0.1:8081/x"));
        for (rule, url) in [
            ("codeload.github.com", "https://codeload.github.com.evil.example/x"),
            ("codeload.github.com", "https://codeload.github.com:8443/x"),
            ("*.blob.core.windows.net", "https://blob.core.windows.net/x"),
            ("*.blob.core.windows.net", "https://evilblob.core.windows.net/x"),
            ("*.blob.core.windows.net", "https://a.blob.core.windows.net:1/x"),
            ("127.0.0.1:8081", "http://127.0.0.1:8082/x"),
        ] {
            assert!(!may(rule, url), "{rule} {url}");
        }
    }
}
