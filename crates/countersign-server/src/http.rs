//! The HTTP server: `/webhook`, `/healthz`, `/readyz`, and the pages of evaluations.
//!
//! The order at `/webhook` is fixed: size, signature over the raw bytes, then parsing, then storing, then the answer. A
//! delivery that was not stored is answered 503, so that GitHub records the failure and it can be sent again.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use countersign_github::webhook::{self, Event};
use countersign_store::{Accepted, Disposition, NewDelivery, RejectionCounter};
use serde_json::json;

use crate::engine::Engine;
use crate::page;
use crate::points;
use crate::route::{Route, route};
use crate::worker::work_for;

/// What handlers share.
#[derive(Clone)]
pub struct AppState {
    /// The engine.
    pub engine: Arc<Engine>,
    /// Refused requests.
    pub rejections: Arc<RejectionCounter>,
}

/// The routes.
pub fn router(state: AppState) -> Router {
    let limit = state.engine.settings.config.server.max_body_bytes;
    Router::new()
        .route("/webhook", post(receive))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/evaluations/{id}", get(page::evaluation))
        .route("/style.css", get(page::style))
        .layer(DefaultBodyLimit::max(limit))
        .with_state(state)
}

fn answer(status: StatusCode, message: &str) -> Response {
    (status, format!("{message}\n")).into_response()
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

async fn ready(State(state): State<AppState>) -> Response {
    match tokio::time::timeout(Duration::from_secs(2), state.engine.store.ping()).await {
        Ok(Ok(())) => answer(StatusCode::OK, "ready"),
        Ok(Err(_)) | Err(_) => answer(StatusCode::SERVICE_UNAVAILABLE, "the database cannot be reached"),
    }
}

async fn receive(
    State(state): State<AppState>,
    headers: HeaderMap,
    body: Result<Bytes, axum::extract::rejection::BytesRejection>,
) -> Response {
    let refuse = |reason: &'static str, status: StatusCode, message: &str| {
        state.rejections.count(reason);
        metrics::counter!("countersign_webhooks_refused_total", "reason" => reason).increment(1);
        answer(status, message)
    };
    let body = match body {
        Ok(body) => body,
        Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
            return refuse(
                "too_large",
                StatusCode::PAYLOAD_TOO_LARGE,
                "the body is larger than this server accepts (server.max_body_bytes)",
            );
        }
        Err(_) => return refuse("unreadable", StatusCode::BAD_REQUEST, "the body could not be read"),
    };
    let settings = &state.engine.settings;
    if let Err(error) = webhook::verify(&settings.webhook_secret, &body, header(&headers, "x-hub-signature-256")) {
        return refuse("bad_signature", StatusCode::UNAUTHORIZED, &error.to_string());
    }
    points::reach("webhook-verified");
    let (Some(event), Some(guid)) = (
        header(&headers, "x-github-event"),
        header(&headers, "x-github-delivery"),
    ) else {
        return refuse(
            "no_event",
            StatusCode::BAD_REQUEST,
            "the headers X-GitHub-Event and X-GitHub-Delivery are required",
        );
    };
    if guid.is_empty() || guid.len() > 128 || event.len() > 64 {
        return refuse(
            "no_event",
            StatusCode::BAD_REQUEST,
            "the headers X-GitHub-Event and X-GitHub-Delivery are malformed",
        );
    }
    let parsed = match webhook::parse(event, &body) {
        Ok(parsed) => parsed,
        Err(error) => return refuse("bad_payload", StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let delivery = delivery(&state.engine, event, guid, &headers, body, &parsed);
    match state.engine.store.accept_delivery(delivery).await {
        Ok(accepted) => {
            points::reach("delivery-stored");
            metrics::counter!("countersign_webhooks_total", "event" => event.to_owned()).increment(1);
            answer(
                StatusCode::ACCEPTED,
                if accepted == Accepted::New {
                    "stored"
                } else {
                    "stored before"
                },
            )
        }
        Err(error) => {
            tracing::error!(delivery.guid = %guid, %error, "could not store a delivery");
            metrics::counter!("countersign_webhooks_unstored_total").increment(1);
            answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "the delivery could not be stored; send it again",
            )
        }
    }
}

fn delivery(engine: &Engine, name: &str, guid: &str, headers: &HeaderMap, body: Bytes, event: &Event) -> NewDelivery {
    let repository = repository_of(event);
    let policy = repository
        .and_then(|name| engine.settings.repository(name))
        .and_then(|entry| engine.policies.get(&entry.policy).ok());
    let settle = policy.as_ref().map_or(Duration::ZERO, |policy| {
        Duration::from_secs(u64::from(policy.policy.timing.settle_seconds))
    });
    let disposition = match route(
        event,
        policy.as_ref().map(|policy| &policy.policy),
        &engine.identity_if_known(),
    ) {
        Route::Ignored(reason) => Disposition::Ignored(reason.to_owned()),
        Route::PullRequest {
            repository,
            number,
            cause,
            reassert,
        } => {
            // A push is answered at once; a conversation may go on for a moment.
            let settle = if cause == "head moved" || cause == "opened" {
                Duration::ZERO
            } else {
                settle
            };
            Disposition::Work(work_for(&repository, number, settle, reassert))
        }
        Route::Commit { .. } => Disposition::Pending,
    };
    NewDelivery {
        guid: guid.to_owned(),
        event: name.to_owned(),
        action: action_of(event).map(str::to_owned),
        repository: repository.map(str::to_owned),
        pull_request: number_of(event).and_then(|number| i64::try_from(number).ok()),
        headers: json!({
            "hook": header(headers, "x-github-hook-id"),
            "target": header(headers, "x-github-hook-installation-target-id"),
            "agent": header(headers, "user-agent"),
        }),
        payload: body,
        disposition,
    }
}

fn repository_of(event: &Event) -> Option<&str> {
    match event {
        Event::IssueComment(event) => Some(&event.repository),
        Event::Review(event) => Some(&event.repository),
        Event::ReviewComment(event) => Some(&event.repository),
        Event::PullRequest(event) => Some(&event.repository),
        Event::WorkflowRun(event) => Some(&event.repository),
        Event::Status(event) => Some(&event.repository),
        Event::CheckRun(event) => Some(&event.repository),
        Event::Ping | Event::Installation(_) | Event::Other => None,
    }
}

fn number_of(event: &Event) -> Option<u64> {
    match event {
        Event::IssueComment(event) => event.on_pull_request.then_some(event.number),
        Event::Review(event) => Some(event.pull_request.number),
        Event::ReviewComment(event) => Some(event.pull_request.number),
        Event::PullRequest(event) => Some(event.pull_request.number),
        _ => None,
    }
}

fn action_of(event: &Event) -> Option<&str> {
    match event {
        Event::IssueComment(event) => Some(&event.action),
        Event::Review(event) => Some(&event.action),
        Event::ReviewComment(event) => Some(&event.action),
        Event::PullRequest(event) => Some(&event.action),
        Event::WorkflowRun(event) => Some(&event.action),
        Event::Installation(event) => Some(&event.action),
        Event::CheckRun(event) => Some(&event.action),
        Event::Status(_) | Event::Ping | Event::Other => None,
    }
}
