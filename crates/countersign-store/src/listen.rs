//! Waking up: `NOTIFY` from any replica, with a poll as net.
//!
//! A worker arms its wake-up, then looks for work, then waits: what comes in between the look and the wait is not missed.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::Store;

const CHANNEL: &str = "countersign_work";

/// One connection that listens, for all workers of the process.
pub(crate) struct Hub {
    receiver: watch::Receiver<u64>,
    task: JoinHandle<()>,
}

impl Drop for Hub {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Hub {
    pub(crate) fn start(options: PgConnectOptions) -> Self {
        let (sender, receiver) = watch::channel(0_u64);
        let task = tokio::spawn(async move {
            let pool = PgPoolOptions::new()
                .max_connections(1)
                .max_lifetime(None)
                .idle_timeout(None)
                .connect_lazy_with(options);
            let bump = || sender.send_modify(|count| *count = count.wrapping_add(1));
            let mut failures = 0_u32;
            loop {
                let listening = async {
                    let mut listener = PgListener::connect_with(&pool).await?;
                    listener.ignore_pool_close_event(true);
                    listener.listen(CHANNEL).await?;
                    Ok::<_, sqlx::Error>(listener)
                };
                match listening.await {
                    Ok(mut listener) => {
                        failures = 0;
                        // What was sent before this moment was not heard.
                        bump();
                        while let Ok(Some(_)) = listener.try_recv().await {
                            while listener.next_buffered().is_some() {}
                            bump();
                        }
                        tracing::debug!("the listening connection broke");
                    }
                    Err(error) => {
                        failures = failures.saturating_add(1);
                        if failures == 1 {
                            tracing::warn!(%error, "cannot listen for work; polling goes on");
                        }
                        // Up to 6.4 s: the poll is there meanwhile.
                        tokio::time::sleep(Duration::from_millis(100 << failures.min(6))).await;
                    }
                }
            }
        });
        Self { receiver, task }
    }
}

/// A worker's alarm clock.
#[derive(Debug, Clone)]
pub struct WakeUps {
    receiver: watch::Receiver<u64>,
}

impl Store {
    /// A wake-up for one worker, armed. Must be called within a Tokio runtime; the first call opens the listening connection.
    pub fn wake_ups(&self) -> WakeUps {
        WakeUps {
            receiver: self.listener().receiver.clone(),
        }
    }
}

impl WakeUps {
    /// To be called before looking for work.
    pub fn arm(&mut self) {
        self.receiver.borrow_and_update();
    }

    /// Returns when work was announced since [`WakeUps::arm`], or after `poll`. True: it was announced.
    pub async fn wait(&mut self, poll: Duration) -> bool {
        match tokio::time::timeout(poll, self.receiver.changed()).await {
            Ok(Ok(())) => true,
            // The store is gone; its other calls will say so. Do not spin.
            Ok(Err(_)) => {
                tokio::time::sleep(poll).await;
                false
            }
            Err(_) => false,
        }
    }
}
