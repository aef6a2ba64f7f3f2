//! Webhook deliveries come in: each is stored, once, before its sender gets an answer.
//!
//! Deliveries that arrive while a transaction is under way are written together by the next one (group commit). Nothing waits for a
//! timer: a single delivery is written at once, a flood in batches as large as the database is slow.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;
use sqlx::PgPool;
use tokio::sync::{Mutex, mpsc, oneshot};

use crate::blobs::{Packed, pack_fast};
use crate::error::{check_text, clean_json};
use crate::work::{NewWork, request_work};
use crate::{Store, StoreError, StoreOptions};

/// A delivery whose signature was right.
#[derive(Debug, Clone, PartialEq)]
pub struct NewDelivery {
    /// `X-GitHub-Delivery`; a redelivery carries the same.
    pub guid: String,
    /// `X-GitHub-Event`.
    pub event: String,
    /// `action` of the payload.
    pub action: Option<String>,
    /// Full name of the repository, such as `octo/hello`.
    pub repository: Option<String>,
    /// Number of the pull request, where the event is about one.
    pub pull_request: Option<i64>,
    /// The headers worth keeping.
    pub headers: Value,
    /// The body, byte for byte.
    pub payload: Bytes,
    /// What becomes of it.
    pub disposition: Disposition,
}

/// What becomes of a delivery, as far as it is known when it comes in.
#[derive(Debug, Clone, PartialEq)]
pub enum Disposition {
    /// Not known yet: it waits for [`Store::claim_deliveries`].
    Pending,
    /// It asks for this work, and is processed when a run that saw it finishes.
    Work(NewWork),
    /// Nothing to do, for this reason.
    Ignored(String),
    /// Dealt with by the fact that it is stored.
    Processed,
}

/// What [`Store::accept_delivery`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accepted {
    /// Stored now.
    New,
    /// A delivery of this GUID is stored already; nothing was changed.
    Duplicate,
}

struct Waiting {
    delivery: Arc<Ready>,
    answer: oneshot::Sender<Result<Accepted, StoreError>>,
}

/// Checked, packed, ready to be written.
struct Ready {
    delivery: NewDelivery,
    headers: String,
    packed: Packed,
}

pub(crate) struct Intake {
    sender: mpsc::Sender<Waiting>,
    timeout: Duration,
}

impl Intake {
    pub(crate) fn start(pool: PgPool, options: &StoreOptions) -> Self {
        let (sender, receiver) = mpsc::channel(options.intake_waiting.max(1));
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..options.intake_writers.max(1) {
            tokio::spawn(write_batches(
                pool.clone(),
                Arc::clone(&receiver),
                options.intake_batch.max(1),
                options.intake_batch_bytes,
            ));
        }
        Self {
            sender,
            timeout: options.acquire_timeout,
        }
    }
}

impl Store {
    /// Stores a delivery, and bumps the work it asks for, in one transaction that is durable when this returns.
    ///
    /// Must be called within a Tokio runtime. An error means that nothing is stored, or that it is not known whether it is (the connection
    /// broke at the commit): the sender may send it again with the same GUID either way.
    pub async fn accept_delivery(&self, delivery: NewDelivery) -> Result<Accepted, StoreError> {
        check(&delivery)?;
        let headers = clean_json(&delivery.headers).to_string();
        check_text("the headers of a delivery", &headers, 64 << 10)?;
        let packed = pack_fast(&delivery.payload);
        let intake = self.intake();
        let ready = Arc::new(Ready {
            delivery,
            headers,
            packed,
        });
        let (answer, answered) = oneshot::channel();
        match intake
            .sender
            .send_timeout(
                Waiting {
                    delivery: ready,
                    answer,
                },
                intake.timeout,
            )
            .await
        {
            Ok(()) => {}
            Err(mpsc::error::SendTimeoutError::Timeout(_)) => {
                return Err(StoreError::Overloaded {
                    what: "too many deliveries wait to be stored",
                });
            }
            Err(mpsc::error::SendTimeoutError::Closed(_)) => {
                return Err(StoreError::Unavailable {
                    source: "the intake has stopped".into(),
                });
            }
        }
        answered.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable {
                source: "the intake has stopped".into(),
            })
        })
    }
}

fn check(delivery: &NewDelivery) -> Result<(), StoreError> {
    if delivery.guid.is_empty() {
        return Err(StoreError::Invalid {
            what: "a delivery",
            why: "its GUID is empty".to_owned(),
        });
    }
    check_text("a delivery's GUID", &delivery.guid, 128)?;
    check_text("a delivery's event", &delivery.event, 128)?;
    check_text(
        "a delivery's action",
        delivery.action.as_deref().unwrap_or_default(),
        128,
    )?;
    check_text(
        "a delivery's repository",
        delivery.repository.as_deref().unwrap_or_default(),
        256,
    )?;
    match &delivery.disposition {
        Disposition::Work(work) => work.check(),
        Disposition::Ignored(reason) => check_text("the reason for ignoring a delivery", reason, 4096),
        Disposition::Pending | Disposition::Processed => Ok(()),
    }
}

async fn write_batches(pool: PgPool, receiver: Arc<Mutex<mpsc::Receiver<Waiting>>>, most: usize, most_bytes: usize) {
    loop {
        let mut batch = Vec::new();
        {
            let mut receiver = receiver.lock().await;
            let Some(first) = receiver.recv().await else { return };
            let mut size = first.delivery.packed.bytes.len();
            batch.push(first);
            while batch.len() < most && size < most_bytes {
                let Ok(next) = receiver.try_recv() else { break };
                size += next.delivery.packed.bytes.len();
                batch.push(next);
            }
        }
        // A sender that went away meanwhile (its request timed out) is written all the same: its delivery is as good as any.
        let deliveries: Vec<Arc<Ready>> = batch.iter().map(|waiting| Arc::clone(&waiting.delivery)).collect();
        match write(&pool, &deliveries).await {
            Ok(new) => answer(batch, &new),
            Err(error) if batch.len() == 1 || error.retryable() => {
                for waiting in batch {
                    let _ = waiting.answer.send(Err(error.share()));
                }
            }
            // One of them is at fault: find out which, so that it alone is refused.
            Err(_) => {
                for waiting in batch {
                    let one = [Arc::clone(&waiting.delivery)];
                    let result = write(&pool, &one).await;
                    let result = result.map(|new| {
                        if new.contains(&waiting.delivery.delivery.guid) {
                            Accepted::New
                        } else {
                            Accepted::Duplicate
                        }
                    });
                    let _ = waiting.answer.send(result);
                }
            }
        }
    }
}

/// The first of several with one GUID is the new one.
fn answer(batch: Vec<Waiting>, new: &[String]) {
    let mut new: std::collections::BTreeSet<&str> = new.iter().map(String::as_str).collect();
    for waiting in batch {
        let accepted = if new.remove(waiting.delivery.delivery.guid.as_str()) {
            Accepted::New
        } else {
            Accepted::Duplicate
        };
        let _ = waiting.answer.send(Ok(accepted));
    }
}

const INSERT: &str = "
    INSERT INTO deliveries (guid, event, action, repository, pull_request, headers, payload, payload_encoding, status,
                            ignored_reason, work_kind, work_key, processed_at)
    SELECT guid, event, action, repository, pull_request, headers::jsonb, payload, encoding, status,
           ignored_reason, work_kind, work_key, CASE WHEN status = 'pending' THEN NULL ELSE now() END
    FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[], $7::bytea[], $8::text[], $9::text[],
                $10::text[], $11::text[], $12::text[])
         WITH ORDINALITY AS t (guid, event, action, repository, pull_request, headers, payload, encoding, status,
                               ignored_reason, work_kind, work_key, ordinal)
    ORDER BY ordinal
    ON CONFLICT (guid) DO NOTHING
    RETURNING guid";

/// Writes all of them, or none; answers which are new.
async fn write(pool: &PgPool, deliveries: &[Arc<Ready>]) -> Result<Vec<String>, StoreError> {
    // One GUID once: the first. Sorted, so that two writers with the same GUIDs wait for each other instead of deadlocking.
    let mut by_guid: BTreeMap<&str, &Ready> = BTreeMap::new();
    for ready in deliveries {
        by_guid.entry(&ready.delivery.guid).or_insert(ready);
    }
    let rows: Vec<&Ready> = by_guid.values().copied().collect();
    let work_of = |ready: &Ready| match &ready.delivery.disposition {
        Disposition::Work(work) => Some((work.kind.clone(), work.key.clone())),
        _ => None,
    };
    let insert = sqlx::query_scalar(INSERT)
        .bind(rows.iter().map(|row| row.delivery.guid.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.delivery.event.as_str()).collect::<Vec<_>>())
        .bind(
            rows.iter()
                .map(|row| row.delivery.action.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(
            rows.iter()
                .map(|row| row.delivery.repository.as_deref())
                .collect::<Vec<_>>(),
        )
        .bind(rows.iter().map(|row| row.delivery.pull_request).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.headers.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.packed.bytes.as_ref()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.packed.encoding).collect::<Vec<_>>())
        .bind(
            rows.iter()
                .map(|row| row.delivery.disposition.status())
                .collect::<Vec<_>>(),
        )
        .bind(
            rows.iter()
                .map(|row| row.delivery.disposition.ignored_reason())
                .collect::<Vec<_>>(),
        )
        .bind(
            rows.iter()
                .map(|row| work_of(row).map(|work| work.0))
                .collect::<Vec<_>>(),
        )
        .bind(
            rows.iter()
                .map(|row| work_of(row).map(|work| work.1))
                .collect::<Vec<_>>(),
        );

    if rows
        .iter()
        .all(|row| !matches!(row.delivery.disposition, Disposition::Work(_)))
    {
        return Ok(insert.fetch_all(pool).await?);
    }
    let mut transaction = pool.begin().await?;
    let new: Vec<String> = insert.fetch_all(&mut *transaction).await?;
    // A duplicate asks for nothing: what it asked for was asked for when it came first.
    let work: Vec<&NewWork> = new
        .iter()
        .filter_map(|guid| match &by_guid.get(guid.as_str())?.delivery.disposition {
            Disposition::Work(work) => Some(work),
            _ => None,
        })
        .collect();
    request_work(&mut transaction, &work).await?;
    transaction.commit().await?;
    Ok(new)
}

impl Disposition {
    fn status(&self) -> &'static str {
        match self {
            Self::Pending | Self::Work(_) => "pending",
            Self::Ignored(_) => "ignored",
            Self::Processed => "processed",
        }
    }

    fn ignored_reason(&self) -> Option<&str> {
        match self {
            Self::Ignored(reason) => Some(reason),
            _ => None,
        }
    }
}
