//! The page of an evaluation: the whole table with its reasons, for repositories whose operator has opened their pages.
//!
//! Everything on it is somebody's text: the template escapes all of it, no script is served, and the headers forbid any.

use std::sync::Arc;

use askama::Template;
use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use countersign_core::{Outcome, OutcomeKind, Row, Verdict};
use countersign_store::Evaluation;
use uuid::Uuid;

use crate::engine::Engine;
use crate::http::AppState;

/// Nothing but our own style sheet: no script, no frame, no form, no image.
const POLICY: &str =
    "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = include_str!("../templates/style.css");

#[derive(Template)]
#[template(path = "evaluation.html")]
struct Page {
    decision: &'static str,
    repository: String,
    pull_request: u64,
    pull_url: Option<String>,
    signoff: String,
    signer: String,
    head: String,
    rows: Vec<Line>,
    not_run: String,
    facts: Vec<(&'static str, String)>,
}

struct Line {
    class: &'static str,
    number: u32,
    name: String,
    outcome: &'static str,
    reason: String,
    findings: Vec<Found>,
    causes: Vec<String>,
    lifted: Option<String>,
}

struct Found {
    message: String,
    remedy: String,
    place: String,
    paste: Option<String>,
}

/// The page of an evaluation. One that is unknown and one that is not open look the same.
pub(crate) async fn evaluation(State(state): State<AppState>, Path(id): Path<String>) -> Response {
    let found = match id.parse::<Uuid>() {
        Ok(id) => state.engine.store.evaluation(id).await,
        Err(_) => Ok(None),
    };
    match found {
        Ok(Some(found)) if is_open(&state.engine, &found.repository) => match render(&state.engine, &found) {
            Ok(page) => with_headers(StatusCode::OK, "text/html; charset=utf-8", page),
            Err(error) => {
                tracing::error!(evaluation.id = %found.id, %error, "a page could not be made");
                plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "this evaluation cannot be shown; its id is in the log\n",
                )
            }
        },
        Ok(_) => plain(
            StatusCode::NOT_FOUND,
            "no such evaluation, or the pages of its repository are not open (repositories.\"…\".pages)\n",
        ),
        Err(error) => {
            tracing::warn!(%error, "an evaluation could not be read");
            plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "the database cannot be reached; try again\n",
            )
        }
    }
}

/// The style sheet.
pub(crate) async fn style() -> Response {
    with_headers(StatusCode::OK, "text/css; charset=utf-8", STYLE.to_owned())
}

fn plain(status: StatusCode, text: &str) -> Response {
    with_headers(status, "text/plain; charset=utf-8", text.to_owned())
}

fn with_headers(status: StatusCode, kind: &'static str, body: String) -> Response {
    let fixed = |text: &'static str| HeaderValue::from_static(text);
    let headers: [(HeaderName, HeaderValue); 5] = [
        (header::CONTENT_TYPE, fixed(kind)),
        (header::CONTENT_SECURITY_POLICY, fixed(POLICY)),
        (header::X_CONTENT_TYPE_OPTIONS, fixed("nosniff")),
        (header::REFERRER_POLICY, fixed("no-referrer")),
        (header::CACHE_CONTROL, fixed("private, max-age=60")),
    ];
    (status, headers, body).into_response()
}

/// Pages are open only where the operator said so: this server knows no logins.
fn is_open(engine: &Arc<Engine>, repository: &str) -> bool {
    engine.settings.repository(repository).is_some_and(|entry| entry.pages)
}

fn render(engine: &Engine, found: &Evaluation) -> Result<String, String> {
    let verdict: Verdict = serde_json::from_str(&found.verdict).map_err(|error| error.to_string())?;
    let page = Page {
        decision: verdict.decision.word(),
        repository: verdict.repository.to_string(),
        pull_request: verdict.pull_request.0,
        pull_url: engine.pull_url(verdict.repository.as_str(), verdict.pull_request.0),
        signoff: verdict.signoff.to_string(),
        signer: verdict.signer.to_string(),
        head: verdict.head_sha.to_string(),
        rows: verdict.rows.iter().map(line).collect(),
        not_run: verdict.not_run.join(", "),
        facts: vec![
            ("Trusted commit", verdict.trusted_sha.to_string()),
            ("Policy", format!("{} {}", verdict.policy, verdict.policy_version)),
            ("Digest of the policy", verdict.policy_digest.clone()),
            ("Digest of the evidence", found.evidence_digest.clone()),
            ("Judged by version", verdict.engine_version.clone()),
            ("Judged at", found.created_at.to_rfc3339()),
        ],
    };
    page.render().map_err(|error| error.to_string())
}

fn line(row: &Row) -> Line {
    let outcome = &row.report.outcome;
    let causes = match outcome {
        Outcome::Unavailable(causes) => causes.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    };
    Line {
        class: match outcome.kind() {
            OutcomeKind::Fail => "bad",
            OutcomeKind::NeedsConfirmation | OutcomeKind::Warn | OutcomeKind::Unavailable => "ask",
            OutcomeKind::Pass | OutcomeKind::NotApplicable => "fine",
        },
        number: row.number,
        name: row.name.clone(),
        outcome: outcome.kind().word(),
        reason: row.report.reason.plain(),
        findings: outcome
            .findings()
            .iter()
            .map(|finding| Found {
                message: finding.message.plain(),
                remedy: finding.remedy.plain(),
                place: finding.location.as_ref().map(ToString::to_string).unwrap_or_default(),
                paste: finding.paste.clone(),
            })
            .collect(),
        causes,
        lifted: row
            .lifted
            .as_ref()
            .map(|lifted| format!("{} by {}: {}", lifted.was.word(), lifted.by, lifted.why)),
    }
}
