//! `/metrics`: counters of this process, and the state of the queue, in Prometheus' text format, on an address of its own.

use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use metrics::gauge;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

use crate::engine::Engine;

/// Makes this process count. Only the first call does anything; none: another recorder is there already.
pub fn install() -> Option<PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| PrometheusBuilder::new().install_recorder().ok())
        .clone()
}

/// The one route.
pub(crate) fn router(engine: Arc<Engine>, handle: PrometheusHandle) -> Router {
    Router::new().route("/metrics", get(show)).with_state((engine, handle))
}

async fn show(State((engine, handle)): State<(Arc<Engine>, PrometheusHandle)>) -> Response {
    let reached = match engine.store.counts().await {
        Ok(counts) => {
            gauge!("countersign_deliveries_pending").set(number(counts.deliveries_pending));
            gauge!("countersign_deliveries_dead").set(number(counts.deliveries_dead));
            for work in &counts.work {
                let kind = work.kind.clone();
                gauge!("countersign_work_due", "kind" => kind.clone()).set(number(work.due));
                gauge!("countersign_work_dead", "kind" => kind).set(number(work.dead));
            }
            1.0
        }
        Err(error) => {
            tracing::warn!(%error, "the queue could not be counted");
            0.0
        }
    };
    gauge!("countersign_database_reached").set(reached);
    handle.run_upkeep();
    (
        StatusCode::OK,
        [("content-type", "text/plain; version=0.0.4")],
        handle.render(),
    )
        .into_response()
}

fn number(count: i64) -> f64 {
    f64::from(i32::try_from(count).unwrap_or(i32::MAX))
}
