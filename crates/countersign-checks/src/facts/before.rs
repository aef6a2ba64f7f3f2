//! What an entry started at the merge base, derived when it is first asked for: most findings are judged by head alone, and
//! deriving the other side would double the time of a judgement.

use std::cell::OnceCell;
use std::sync::Arc;

use countersign_core::Cause;
use countersign_launch::point::Missing;
use countersign_matrix::Row;

use super::launches::{EntryLaunches, Group, Launches};

/// See the module.
pub struct Before<'l, 'a> {
    launches: &'l Launches<'a>,
    key: &'l str,
    found: OnceCell<Arc<EntryLaunches>>,
}

impl<'l, 'a> Before<'l, 'a> {
    pub(super) fn new(launches: &'l Launches<'a>, key: &'l str) -> Self {
        Self {
            launches,
            key,
            found: OnceCell::new(),
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn get(&self) -> Result<&EntryLaunches, Cause> {
        let found = self.found.get_or_init(|| self.launches.base(self.key));
        found.read()?;
        Ok(found)
    }

    /// Whether each of these points was there, in a group of which something holds.
    ///
    /// # Errors
    /// A file could not be read.
    pub fn all(&self, rows: &[Row], holds: impl Fn(&Group) -> bool) -> Result<bool, Cause> {
        let base = self.get()?;
        let mut rows = rows.iter();
        Ok(rows.all(|row| base.group_of(&row.point(), 0).is_some_and(&holds)))
    }
}

/// Whether checks are likely to ask what there was before: where something is not known at head, it counts who brought
/// that about.
pub(super) fn is_likely_asked(head: &EntryLaunches) -> bool {
    let unknown = |group: &Group| {
        let mut missing = group.starts.missing.iter();
        missing.any(|missing| !matches!(missing, Missing::Script(_)))
            || group.starts.launches.iter().any(|launch| !launch.opaque.is_empty())
    };
    head.groups.iter().any(unknown)
}
