//! What the servers, the webhook task and the handle share.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::state::State;

/// The state behind its lock.
#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
}

impl Shared {
    pub(crate) fn new(state: State) -> Self {
        Shared {
            state: Mutex::new(state),
        }
    }

    /// Locks the state. A panic elsewhere must not hide the first failure behind a poisoned lock.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
