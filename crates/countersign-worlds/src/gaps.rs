//! What a world does not say, and why: the causes that it was recorded with, else that it does not say it.

use countersign_core::{Cause, CauseKind, Observed};
use countersign_sim::World;
use countersign_sim::still::Fact;

/// Why a fact is unavailable that a partial world leaves out.
pub(crate) const UNSAID: &str = "the world does not say it";

pub(crate) struct Gaps<'w>(pub(crate) &'w World);

impl Gaps<'_> {
    /// A fact of a world as evidence has it.
    pub(crate) fn observed<T>(&self, what: &str, fact: Fact<T>) -> Observed<T> {
        match fact {
            Fact::Known(value) => Observed::Present(value),
            Fact::Nothing => Observed::Absent,
            Fact::Unsaid(_) => self.missing(what),
            Fact::Refused(status) => self.known(what).unwrap_or_else(|| {
                Observed::unavailable(CauseKind::Forbidden, what, format!("GitHub answered {status}"))
            }),
        }
    }

    /// A fact that the world does not give.
    pub(crate) fn missing<T>(&self, what: &str) -> Observed<T> {
        self.known(what)
            .unwrap_or_else(|| Observed::unavailable(CauseKind::NotRecorded, what, UNSAID))
    }

    /// What was recorded of a fact that was not read, or not found.
    pub(crate) fn known<T>(&self, what: &str) -> Option<Observed<T>> {
        if let Some(gap) = self.0.unavailable.get(what) {
            let kind =
                serde_json::from_value(serde_json::Value::String(gap.kind.clone())).unwrap_or(CauseKind::NotRecorded);
            let named = gap.what.clone().unwrap_or_else(|| what.to_owned());
            return Some(Observed::Unavailable(Cause::new(kind, named, gap.why.clone())));
        }
        self.0
            .absent
            .iter()
            .any(|absent| absent == what)
            .then_some(Observed::Absent)
    }
}
