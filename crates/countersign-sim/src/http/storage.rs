//! The second host: archives and artifacts, which GitHub serves elsewhere and without a token, and pages outside GitHub.

use std::sync::Arc;

use http::Request;
use hyper::body::Incoming;

use super::message::Answer;
use super::serve::{Outcome, read};
use crate::shared::Shared;

/// Answers one request to the second host.
pub(crate) async fn call(shared: Arc<Shared>, request: Request<Incoming>) -> Outcome {
    let Some(req) = read(request, "").await else {
        return Outcome::Answer(Answer::empty(413));
    };
    let mut delay = None;
    let (outcome, fault) = {
        let mut state = shared.lock();
        if req.headers.contains_key("authorization") {
            // GitHub's storage refuses it, and a token must not go there.
            state
                .complaints
                .push(format!("a token was sent to the storage host: {}", req.path));
            return Outcome::Answer(Answer::empty(400));
        }
        let fault = state.faults.api(req.method.as_str(), &req.segments).unwrap_or_default();
        let segments: Vec<&str> = req.segments.iter().map(String::as_str).collect();
        let answer = match segments.as_slice() {
            ["codeload", owner, name, "legacy.tar.gz", sha] => {
                crate::api::archive::tarball(&mut state, &format!("{owner}/{name}"), sha)
            }
            ["artifacts", owner, name, id] if req.param("sig").is_some() => {
                crate::api::archive::artifact(&mut state, &format!("{owner}/{name}"), id)
            }
            ["pages", scheme, host, ..] => {
                // The path as it was sent: pages may tell encoded and plain characters apart.
                let skip = format!("/pages/{scheme}/{host}").len();
                let rest = req.path.get(skip..).unwrap_or("");
                let mark = if req.raw_query.is_empty() { "" } else { "?" };
                let url = format!("{scheme}://{host}{rest}{mark}{}", req.raw_query);
                delay = page_delay(&state, &url);
                page(&mut state, &url)
            }
            _ => None,
        };
        (answer.unwrap_or_else(|| Answer::empty(404)), fault)
    };
    for wait in [delay, fault.delay.map(|d| d.0)].into_iter().flatten() {
        tokio::time::sleep(wait).await;
    }
    if fault.drop {
        return Outcome::Dropped;
    }
    if let Some(status) = fault.status {
        return Outcome::Answer(Answer::empty(status));
    }
    match fault.truncate {
        Some(at) => Outcome::Truncated(outcome, usize::try_from(at).unwrap_or(usize::MAX)),
        None => Outcome::Answer(outcome),
    }
}

fn find<'a>(state: &'a crate::state::State, url: &str) -> Option<&'a crate::world::FullPage> {
    // A page is found with and without a slash at its end, as a site root has both.
    state
        .pages
        .get(url)
        .or_else(|| state.pages.get(url.trim_end_matches('/')))
        .or_else(|| state.pages.get(&format!("{url}/")))
}

fn page_delay(state: &crate::state::State, url: &str) -> Option<std::time::Duration> {
    find(state, url).and_then(|p| p.delay).map(|d| d.0)
}

fn page(state: &mut crate::state::State, url: &str) -> Option<Answer> {
    let Some(page) = find(state, url) else {
        if state.partial {
            let fact = format!("the page {url}");
            state.unknown.push(fact.clone());
            return Some(Answer::empty(501).with("x-sim-unknown", Some(fact)));
        }
        return None;
    };
    Some(
        Answer {
            status: page.status,
            headers: vec![("content-type".to_owned(), page.content_type.clone())],
            body: page.body.clone().unwrap_or_default().into_bytes(),
        }
        .with("location", page.redirect.clone()),
    )
}
