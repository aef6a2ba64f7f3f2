//! Postgres: deliveries, work, evaluations, publications, audit log, and a private server for tests and demos.
//!
//! Everything that must survive the process is here, and nothing else is: no GitHub, no rules. The server crate is written
//! against [`Store`]. The way of one event:
//!
//! 1. [`Store::accept_delivery`] stores the delivery and bumps the row of the pull request it is about, in one transaction.
//! 2. [`Store::claim_work`] hands that row to one worker at a time, with the deliveries that asked for it ([`WorkLease`]).
//! 3. The worker gathers and judges with no transaction open, then [`Store::commit`] stores the evaluation, the wished
//!    publications and the audit rows, and finishes the work, in one transaction that a worker who lost its lease cannot make.
//! 4. The `publish` work that this has asked for is claimed in the same manner; each [`Publication`] is settled by itself.
//!
//! A process killed anywhere between leaves a lease that runs out, and the next claim starts that step again.
//!
//! All times that decide anything are the database's, so that replicas with different clocks agree.

mod audit;
mod blobs;
mod commit;
mod counts;
mod deliveries;
mod error;
mod evaluations;
mod intake;
mod lease;
mod listen;
mod migrations;
mod pins;
pub mod private;
mod publications;
mod pull_requests;
mod rejected;
mod remarks;
mod repositories;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod work;

pub use audit::{AuditEntry, AuditFilter, NewAudit};
pub use blobs::BlobKind;
pub use commit::{Changes, Committed, Next};
pub use counts::{Counts, Settled, WorkCounts};
pub use deliveries::{Delivery, DeliveryHead, DeliveryLease, DeliveryStatus};
pub use error::StoreError;
pub use evaluations::{Evaluation, EvaluationFilter, NewEvaluation};
pub use intake::{Accepted, Disposition, NewDelivery};
pub use lease::{Keeper, PrLock, WorkLease};
pub use listen::WakeUps;
pub use migrations::{MigrationState, migration_versions};
pub use pins::HeadSeen;
pub use publications::{DesiredPublication, Publication, PublicationState, Published, WORK_KIND_PUBLISH};
pub use pull_requests::{KnownPullRequest, PullRequestChange, PullRequestState};
pub use rejected::RejectionCounter;
pub use remarks::{Command, NewCommand, NewSignoff, ObservedRemark, RemarkOutcome, Signoff, SignoffState};
pub use repositories::RepositoryState;
pub use store::{Store, StoreOptions};
pub use time::{Backoff, Retry};
pub use work::{ClaimOptions, Claimed, DeadWork, NewWork, WorkRow};
