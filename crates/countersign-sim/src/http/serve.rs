//! The API server: from a connection to an endpoint and back, with latency, faults, limits and conditional requests.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper_util::rt::TokioIo;
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;

use super::auth::Caller;
use super::message::{Answer, ApiError, Req, decode, query};
use crate::handle::Call;
use crate::shared::Shared;
use crate::world::faults::{FaultSpec, LimitFault};

/// The largest body that is read; GitHub's own limit is larger than any that a client of ours sends.
const MAX_BODY: usize = 16 << 20;

/// A body that may end with a cut connection.
pub(crate) struct Cuttable {
    data: Option<Bytes>,
    cut: bool,
}

impl Body for Cuttable {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, std::io::Error>>> {
        if let Some(data) = self.data.take().filter(|d| !d.is_empty()) {
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        if std::mem::take(&mut self.cut) {
            return Poll::Ready(Some(Err(std::io::Error::other("cut by a fault"))));
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.data.as_ref().is_none_or(Bytes::is_empty) && !self.cut
    }
}

/// The connection is closed without an answer.
#[derive(Debug, thiserror::Error)]
#[error("dropped by a fault")]
pub(crate) struct Dropped;

/// What both servers answer with.
pub(crate) enum Outcome {
    Answer(Answer),
    /// The answer, its announced length kept, cut after so many bytes.
    Truncated(Answer, usize),
    Dropped,
}

/// How the servers were set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The API's path prefix: empty, or such as `/api/v3`.
    pub(crate) prefix: String,
    pub(crate) latency: Option<Duration>,
}

/// Accepts connections until the runtime stops.
pub(crate) async fn accept<F, W>(listener: TcpListener, handle: F)
where
    F: Fn(Request<Incoming>) -> W + Clone + Send + 'static,
    W: Future<Output = Outcome> + Send + 'static,
{
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        let _ = stream.set_nodelay(true);
        let handle = handle.clone();
        tokio::spawn(async move {
            let service = hyper::service::service_fn(move |request| {
                let answer = handle(request);
                async move {
                    match answer.await {
                        Outcome::Answer(a) => Ok(respond(a, None)),
                        Outcome::Truncated(a, at) => Ok(respond(a, Some(at))),
                        Outcome::Dropped => Err(Dropped),
                    }
                }
            });
            // A connection that ends badly is the client's to notice.
            let _ = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service)
                .await;
        });
    }
}

fn respond(answer: Answer, cut: Option<usize>) -> Response<Cuttable> {
    let mut response = Response::new(Cuttable {
        data: None,
        cut: cut.is_some(),
    });
    *response.status_mut() =
        http::StatusCode::from_u16(answer.status).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in &answer.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    let bodiless = matches!(answer.status, 204 | 304);
    if !bodiless {
        response
            .headers_mut()
            .insert("content-length", HeaderValue::from(answer.body.len()));
        let mut body = Bytes::from(answer.body);
        if let Some(at) = cut {
            body.truncate(at);
        }
        response.body_mut().data = Some(body);
    }
    response
}

/// Reads a request into what endpoints see; `None` for a body over the limit.
pub(crate) async fn read(request: Request<Incoming>, prefix: &str) -> Option<Req> {
    let (parts, body) = request.into_parts();
    let body = Limited::new(body, MAX_BODY).collect().await.ok()?.to_bytes();
    let raw = parts.uri.path();
    let path = raw.strip_prefix(prefix).unwrap_or(raw).to_owned();
    let segments = path
        .split('/')
        .filter(|s| !s.is_empty())
        .map(|s| decode(s, false))
        .collect();
    Some(Req {
        method: parts.method,
        segments,
        query: query(parts.uri.query().unwrap_or("")),
        raw_query: parts.uri.query().unwrap_or("").to_owned(),
        path,
        headers: parts.headers,
        body,
        caller: Caller::Anonymous,
    })
}

/// Answers one API call.
pub(crate) async fn call(shared: Arc<Shared>, setup: Arc<Setup>, request: Request<Incoming>) -> Outcome {
    let outside = !request.uri().path().starts_with(&setup.prefix);
    // GHES serves GraphQL at /api/graphql, beside the REST root.
    let graphql = !setup.prefix.is_empty() && request.uri().path() == "/api/graphql";
    let Some(mut req) = read(request, if graphql { "/api" } else { &setup.prefix }).await else {
        return Outcome::Answer(Answer::empty(413));
    };
    if let Some(latency) = setup.latency {
        tokio::time::sleep(latency).await;
    }
    let fault = {
        let mut state = shared.lock();
        state.usage.under_way += 1;
        state.faults.api(req.method.as_str(), &req.segments).unwrap_or_default()
    };
    if let Some(delay) = fault.delay {
        tokio::time::sleep(delay.0).await;
    }
    let outcome = decide(&shared, &mut req, &fault, outside && !graphql);
    shared.lock().usage.under_way -= 1;
    outcome
}

fn decide(shared: &Shared, req: &mut Req, fault: &FaultSpec, outside: bool) -> Outcome {
    let mut state = shared.lock();
    if let Some(step) = &fault.before
        && let Err(e) = state.play(step)
    {
        state.complaints.push(format!("a fault's step failed: {e}"));
    }
    let replaced = fault.status.is_some() || fault.limit.is_some() || fault.drop;
    let mut answer = None;
    if !replaced || fault.applied {
        answer = Some(answer_of(&mut state, req, outside));
    }
    if let Some(limit) = fault.limit {
        let reset =
            chrono::Utc::now() + chrono::TimeDelta::seconds(i64::try_from(fault.retry_after.unwrap_or(1)).unwrap_or(1));
        answer = Some(match limit {
            LimitFault::Primary => state.primary(reset),
            LimitFault::Secondary => state.secondary(403, Some(fault.retry_after.unwrap_or(1))),
            LimitFault::TooMany => state.secondary(429, Some(fault.retry_after.unwrap_or(1))),
            LimitFault::Bare => state.secondary(403, None),
        });
    } else if let Some(status) = fault.status {
        let mut a = ApiError::Status(status, "Server Error".to_owned()).answer(req);
        if let Some(body) = &fault.body {
            a.body = body.clone().into_bytes();
        }
        answer = Some(a);
    }
    let mut answer = answer.unwrap_or_else(|| Answer::empty(500));
    for (name, value) in &fault.headers {
        answer.headers.push((name.to_ascii_lowercase(), value.clone()));
    }
    if let Some(at) = fault.cut {
        answer.body.truncate(usize::try_from(at).unwrap_or(usize::MAX));
    }
    let faulted = replaced || fault.cut.is_some() || fault.truncate.is_some();
    let call = Call {
        method: req.method.to_string(),
        path: req.path.clone(),
        status: if fault.drop { 0 } else { answer.status },
        token: req.caller.kind(),
        faulted,
    };
    tracing::debug!(method = %call.method, path = %call.path, status = call.status, "simulated GitHub");
    state.calls.push(call);
    if let Some(step) = &fault.after
        && let Err(e) = state.play(step)
    {
        state.complaints.push(format!("a fault's step failed: {e}"));
    }
    if fault.drop {
        return Outcome::Dropped;
    }
    match fault.truncate {
        Some(at) => Outcome::Truncated(answer, usize::try_from(at).unwrap_or(usize::MAX)),
        None => Outcome::Answer(answer),
    }
}

/// The answer of an endpoint, with limits counted and conditions looked at.
fn answer_of(state: &mut crate::state::State, req: &mut Req, outside: bool) -> Answer {
    let caller = match state.caller(&req.headers) {
        Ok(caller) => caller,
        Err(e) => return e.answer(req),
    };
    req.caller = caller.clone();
    let rate_limit = req.path == "/rate_limit";
    let write = req.method != Method::GET && req.method != Method::HEAD;
    if !rate_limit && let Some(limited) = state.limited(&caller, write) {
        return limited;
    }
    let result = if outside {
        Err(ApiError::Unserved)
    } else {
        crate::api::route(state, req)
    };
    let mut answer = match result {
        Ok(answer) => {
            if write && matches!(caller, Caller::Installation { .. }) && answer.status < 300 {
                let body = serde_json::from_slice(&req.body).unwrap_or_default();
                let (method, path, at) = (req.method.to_string(), req.path.clone(), state.now());
                state.writes.push(crate::handle::Write {
                    at,
                    method,
                    path,
                    body,
                    status: answer.status,
                });
            }
            answer
        }
        Err(e) => {
            match &e {
                ApiError::Unserved => {
                    tracing::warn!(method = %req.method, path = %req.path, "the simulated GitHub does not serve this");
                    state.unserved.push(format!("{} {}", req.method, req.path));
                }
                ApiError::Unknown(fact) => state.unknown.push(fact.clone()),
                _ => {}
            }
            e.answer(req)
        }
    };
    let mut free = rate_limit;
    if req.method == Method::GET && answer.status == 200 && !rate_limit {
        let etag = format!("W/\"{}\"", hex::encode(Sha256::digest(&answer.body)));
        if matches_etag(&req.headers, &etag) {
            free = true;
            answer.status = 304;
            answer.body.clear();
            answer.headers.retain(|(n, _)| n != "content-type");
        }
        answer.headers.push(("etag".to_owned(), etag));
        answer.headers.push((
            "cache-control".to_owned(),
            "private, max-age=60, s-maxage=60".to_owned(),
        ));
    }
    answer
        .headers
        .push(("x-github-media-type".to_owned(), "github.v3; format=json".to_owned()));
    answer.headers.push((
        "x-github-request-id".to_owned(),
        format!("SIM:{:06}", state.calls.len() + 1),
    ));
    state.count(&caller, &mut answer, free);
    answer
}

fn matches_etag(headers: &HeaderMap, etag: &str) -> bool {
    let bare = |t: &str| t.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all("if-none-match")
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','))
        .any(|v| v.trim() == "*" || bare(v) == bare(etag))
}
