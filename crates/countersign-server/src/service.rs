//! Starting and stopping the whole server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use countersign_store::RejectionCounter;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::http::{AppState, router};
use crate::{meters, recover, worker};

/// A running server.
pub struct Service {
    address: SocketAddr,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    engine: Arc<Engine>,
    rejections: Arc<RejectionCounter>,
}

impl Service {
    /// Listens, and starts workers. Webhooks are answered before anything else is known, so that none is lost while
    /// GitHub or the database are slow.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(engine: Arc<Engine>) -> std::io::Result<Self> {
        let listener = TcpListener::bind(engine.settings.config.server.listen).await?;
        let address = listener.local_addr()?;
        let stop = CancellationToken::new();
        let rejections = Arc::new(RejectionCounter::default());
        let app = router(AppState {
            engine: Arc::clone(&engine),
            rejections: Arc::clone(&rejections),
        });
        let mut tasks = Vec::new();
        if let Some(listen) = engine.settings.config.server.metrics_listen
            && let Some(handle) = meters::install()
        {
            let listener = TcpListener::bind(listen).await?;
            let app = meters::router(Arc::clone(&engine), handle);
            let stopping = stop.clone();
            tasks.push(tokio::spawn(async move {
                if let Err(error) = axum::serve(listener, app)
                    .with_graceful_shutdown(async move { stopping.cancelled().await })
                    .await
                {
                    tracing::error!(%error, "the server of metrics ended");
                }
            }));
        }
        let stopping = stop.clone();
        tasks.push(tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app)
                .with_graceful_shutdown(async move { stopping.cancelled().await })
                .await
            {
                tracing::error!(%error, "the HTTP server ended");
            }
        }));
        tasks.push(tokio::spawn(worker::run(
            Arc::clone(&engine),
            engine.settings.config.server.workers,
            stop.clone(),
        )));
        tasks.push(tokio::spawn(recover::run(Arc::clone(&engine), stop.clone())));
        tasks.push(tokio::spawn(flush(
            Arc::clone(&engine),
            Arc::clone(&rejections),
            stop.clone(),
        )));
        tracing::info!(%address, "listening");
        Ok(Self {
            address,
            stop,
            tasks,
            engine,
            rejections,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The engine.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Takes no more requests and no more work; waits for what is under way, at most as long as the settings say. What is
    /// not finished by then is taken up by the next start when its lease has run out.
    pub async fn stop(self) {
        self.stop.cancel();
        let all = futures::future::join_all(self.tasks);
        if tokio::time::timeout(self.engine.settings.shutdown(), all)
            .await
            .is_err()
        {
            tracing::warn!("stopped with work under way; it will be taken up again");
        }
        if let Err(error) = self.rejections.flush(&self.engine.store).await {
            tracing::warn!(%error, "the count of refused requests was not stored");
        }
    }
}

async fn flush(engine: Arc<Engine>, rejections: Arc<RejectionCounter>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        tokio::select! { () = tokio::time::sleep(Duration::from_secs(5)) => {}, () = stop.cancelled() => {} }
        if let Err(error) = rejections.flush(&engine.store).await {
            tracing::debug!(%error, "the count of refused requests waits for the database");
        }
    }
}
