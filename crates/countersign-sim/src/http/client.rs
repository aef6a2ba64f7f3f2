//! A plain HTTP client for loopback: it sends webhooks, and the tests' requests. It follows no redirect and knows no TLS.

use std::io::{Error, ErrorKind};

use bytes::Bytes;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Headers, names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Answer {
    /// The first header of a name (lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }

    /// The body as JSON; null where it is none.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

/// Sends one request on a connection of its own.
///
/// # Errors
/// An address that is not `http://host[:port]/…`, or a connection that fails or is cut.
pub async fn send(method: &str, url: &str, headers: &[(String, String)], body: Vec<u8>) -> std::io::Result<Answer> {
    let invalid = |what: String| Error::new(ErrorKind::InvalidInput, what);
    let uri: Uri = url.parse().map_err(|e| invalid(format!("{url}: {e}")))?;
    let host = uri.host().ok_or_else(|| invalid(format!("{url}: no host")))?;
    let port = uri.port_u16().unwrap_or(80);
    let stream = TcpStream::connect((host, port)).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(Error::other)?;
    let driver = tokio::spawn(connection);
    let method = Method::from_bytes(method.as_bytes()).map_err(|e| invalid(e.to_string()))?;
    let path = uri.path_and_query().map_or("/", |p| p.as_str());
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", format!("{host}:{port}"));
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request
        .body(Full::new(Bytes::from(body)))
        .map_err(|e| invalid(e.to_string()))?;
    let response = sender.send_request(request).await.map_err(Error::other)?;
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(n, v)| {
            (
                n.as_str().to_owned(),
                String::from_utf8_lossy(v.as_bytes()).into_owned(),
            )
        })
        .collect();
    let body = response.into_body().collect().await.map_err(Error::other)?.to_bytes();
    driver.abort();
    Ok(Answer { status, headers, body })
}
