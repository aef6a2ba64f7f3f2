//! One request, one answer; and the only place where octocrab is spoken to.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use chrono::{DateTime, Utc};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, IF_NONE_MATCH, USER_AGENT};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use octocrab::{AuthState, Octocrab, OctocrabBuilder};
use tokio::time::timeout;
use url::Url;

use super::call::Call;
use crate::config::AppConfig;
use crate::error::GitHubError;

const NO_SKEW: i64 = i64::MIN;

/// An answer of any status, read whole.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The body of an answer that is read in pieces.
pub(crate) type Stream = BoxBody<Bytes, octocrab::Error>;

pub(crate) struct Transport {
    connector: HttpsConnector<HttpConnector>,
    client: OnceLock<Octocrab>,
    base: String,
    graphql: String,
    origin: url::Origin,
    user_agent: HeaderValue,
    read: Duration,
    skew: AtomicI64,
}

impl Transport {
    pub(crate) fn new(config: &AppConfig) -> Result<Self, GitHubError> {
        let url = &config.api_base_url;
        let plain = url.scheme() == "http";
        if !(plain || url.scheme() == "https")
            || url.host_str().is_none()
            || url.query().is_some()
            || !url.username().is_empty()
        {
            return Err(GitHubError::Config(format!(
                "the API address {url} must be http(s)://host, with a path at most"
            )));
        }
        let mut tcp = HttpConnector::new();
        tcp.set_connect_timeout(Some(config.timeouts.connect));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let builder = hyper_rustls::HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(|error| GitHubError::Config(format!("the system's certificates cannot be read: {error}")))?;
        let builder = if plain {
            builder.https_or_http()
        } else {
            builder.https_only()
        };
        let base = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self {
            connector: builder.enable_http1().wrap_connector(tcp),
            client: OnceLock::new(),
            graphql: graphql_url(&base),
            base,
            origin: url.origin(),
            user_agent: HeaderValue::from_str(&config.user_agent)
                .map_err(|_| GitHubError::Config("the user agent holds characters that no header may hold".into()))?,
            read: config.timeouts.read,
            skew: AtomicI64::new(NO_SKEW),
        })
    }

    /// Built at first use: octocrab starts a task, which needs a runtime.
    fn client(&self) -> &Octocrab {
        self.client.get_or_init(|| {
            let service = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
                .pool_idle_timeout(Duration::from_secs(30))
                .build(self.connector.clone());
            let built: Result<Octocrab, std::convert::Infallible> = OctocrabBuilder::new_empty()
                .with_service(service)
                .with_auth(AuthState::None)
                .build();
            match built {
                Ok(client) => client,
                Err(never) => match never {},
            }
        })
    }

    pub(crate) fn url(&self, call: &Call) -> String {
        if call.query.is_empty() {
            format!("{}{}", self.base, call.path)
        } else {
            format!("{}{}?{}", self.base, call.path, call.query)
        }
    }

    pub(crate) fn graphql_url(&self) -> &str {
        &self.graphql
    }

    /// Whether an address belongs to the API's own server.
    pub(crate) fn is_ours(&self, url: &Url) -> bool {
        url.origin() == self.origin
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.base.starts_with("http://")
    }

    /// Sends and reads whole, up to `cap` bytes and `limit` time.
    pub(crate) async fn exchange(
        &self,
        request: Request<String>,
        what: &str,
        cap: usize,
        limit: Duration,
    ) -> Result<Reply, GitHubError> {
        let work = async {
            let (status, headers, mut body) = self.open(request, what).await?;
            let mut read = BytesMut::new();
            while let Some(piece) = self.piece(&mut body, what).await? {
                if read.len() + piece.len() > cap {
                    return Err(GitHubError::TooLarge {
                        what: what.to_owned(),
                        limit: format!("{cap} bytes"),
                    });
                }
                read.extend_from_slice(&piece);
            }
            Ok(Reply {
                status,
                headers,
                body: read.freeze(),
            })
        };
        timeout(limit, work).await.unwrap_or_else(|_| Err(slow(what, limit)))
    }

    /// Sends; the body is still to be read.
    pub(crate) async fn open(
        &self,
        request: Request<String>,
        what: &str,
    ) -> Result<(StatusCode, HeaderMap, Stream), GitHubError> {
        let answer = timeout(self.read, self.client().execute(request))
            .await
            .map_err(|_| slow(what, self.read))?
            .map_err(|error| network(what, &error))?;
        let (parts, body) = answer.into_parts();
        self.note_time(&parts.headers);
        Ok((parts.status, parts.headers, body))
    }

    /// The next piece of a body; `None` at its end.
    pub(crate) async fn piece(&self, body: &mut Stream, what: &str) -> Result<Option<Bytes>, GitHubError> {
        loop {
            let frame = timeout(self.read, body.frame())
                .await
                .map_err(|_| slow(what, self.read))?;
            match frame {
                None => return Ok(None),
                Some(Err(error)) => return Err(network(what, &error)),
                Some(Ok(frame)) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }

    /// A request with the headers that GitHub wants. The token is sent to the API's own server only; callers that follow a
    /// redirect to another one pass none.
    pub(crate) fn request(
        &self,
        call: &Call,
        url: &str,
        authorization: Option<&HeaderValue>,
        etag: Option<&str>,
    ) -> Result<Request<String>, GitHubError> {
        let mut builder = Request::builder()
            .method(call.method.clone())
            .uri(url)
            .header(USER_AGENT, self.user_agent.clone())
            .header(ACCEPT, call.accept)
            .header("x-github-api-version", "2022-11-28");
        if let Some(authorization) = authorization {
            builder = builder.header(AUTHORIZATION, authorization.clone());
        }
        if let Some(etag) = etag {
            builder = builder.header(IF_NONE_MATCH, etag);
        }
        let body = match &call.body {
            Some(body) => {
                builder = builder.header(CONTENT_TYPE, "application/json");
                body.to_string()
            }
            None => String::new(),
        };
        builder.body(body).map_err(|error| GitHubError::Unprocessable {
            what: call.what.clone(),
            message: format!("the request cannot be written: {error}"),
        })
    }

    fn note_time(&self, headers: &HeaderMap) {
        let date = headers
            .get(http::header::DATE)
            .and_then(|date| date.to_str().ok())
            .and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        if let Some(date) = date {
            self.skew
                .store(date.timestamp() - Utc::now().timestamp(), Ordering::Relaxed);
        }
    }

    /// GitHub's clock less this machine's, in seconds.
    pub(crate) fn skew(&self) -> Option<i64> {
        Some(self.skew.load(Ordering::Relaxed)).filter(|skew| *skew != NO_SKEW)
    }
}

/// GitHub Enterprise Server has REST under `/api/v3` and GraphQL under `/api/graphql`.
fn graphql_url(base: &str) -> String {
    base.strip_suffix("/api/v3")
        .map_or_else(|| format!("{base}/graphql"), |host| format!("{host}/api/graphql"))
}

fn slow(what: &str, limit: Duration) -> GitHubError {
    GitHubError::Network {
        what: what.to_owned(),
        why: format!("nothing came for {} s", limit.as_secs_f32()),
    }
}

/// The innermost cause: octocrab's own words say only that its service failed, and may hold a backtrace.
fn network(what: &str, error: &octocrab::Error) -> GitHubError {
    let mut inner: &dyn std::error::Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    GitHubError::Network {
        what: what.to_owned(),
        why: inner
            .to_string()
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(200)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphql_is_beside_rest_on_enterprise_servers() {
        assert_eq!(graphql_url("https://api.github.com"), "https://api.github.com/graphql");
        assert_eq!(
            graphql_url("https://git.example/api/v3"),
            "https://git.example/api/graphql"
        );
        assert_eq!(graphql_url("http://127.0.0.1:1"), "http://127.0.0.1:1/graphql");
    }
}
