//! What an evaluation keeps: commands, each once, and the ways a script ends.

use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

use super::Evaluator;
use crate::lanes::MARK;
use crate::output::{Command, End, Evaluation};
use crate::value::{PieceKind, Span};
use crate::world::{Status, Var, World, same_var};

/// Early ends kept.
const MAX_ENDS: usize = 200;

impl Evaluator<'_> {
    /// Record a command; an equal one of another world takes it in. Gives its place in the list.
    pub(super) fn record(&mut self, command: Command) -> Option<usize> {
        let at = command.span;
        if !self.keeps() {
            return None;
        }
        if self.out.commands.len() >= self.limits.commands {
            self.bound(at, format!("more than {} commands", self.limits.commands));
            return None;
        }
        let mut hasher = rustc_hash::FxHasher::default();
        at.hash(&mut hasher);
        for word in command.argv.iter().chain(command.assignments.iter().map(|(_, w)| w)) {
            for piece in word.value.pieces() {
                match &piece.kind {
                    PieceKind::Text(text) => text.hash(&mut hasher),
                    PieceKind::Unknown(unknown) => unknown.id.hash(&mut hasher),
                }
            }
            hasher.write_u8(1);
        }
        let hash = hasher.finish();
        let mut size = 0;
        if let Some(known) = self.seen.get(&hash) {
            for &index in known {
                let other = &mut self.out.commands[index];
                let equal = other.kind == command.kind
                    && (Arc::ptr_eq(&other.argv, &command.argv) || other.argv == command.argv)
                    && other.assignments == command.assignments
                    && other.redirects == command.redirects
                    && other.calls == command.calls
                    && other.stdin == command.stdin
                    && other.background == command.background
                    && same_environment(other, &command);
                if equal {
                    if !Arc::ptr_eq(&other.path, &command.path) {
                        let common = other
                            .path
                            .iter()
                            .filter(|l| command.path.contains(l))
                            .cloned()
                            .collect();
                        other.path = Arc::new(common);
                        self.first_changed.0 = self.first_changed.0.min(index);
                    }
                    return Some(index);
                }
            }
        }
        for word in command.argv.iter() {
            size += word.value.size() + 64;
        }
        self.count_bytes(at, size);
        self.seen.entry(hash).or_default().push(self.out.commands.len());
        self.out.commands.push(command);
        Some(self.out.commands.len() - 1)
    }

    pub(super) fn end(&mut self, world: &World, at: Span) {
        if !self.keeps() || self.out.ends.len() >= MAX_ENDS {
            return;
        }
        let status = match self.same_status(&world.status) {
            Status::Known(code) => Some(code),
            Status::Each(_) | Status::Unknown(..) | Status::Ran(..) => None,
        };
        let calls = &self.calls;
        let mut ends = self.out.ends.iter_mut().enumerate();
        match ends.find(|(_, e)| e.at == at && e.status == status && e.calls == *calls) {
            Some((index, known)) => {
                let common = known.path.iter().filter(|l| world.path.contains(l)).cloned().collect();
                known.path = Arc::new(common);
                self.first_changed.1 = self.first_changed.1.min(index);
            }
            None => self.out.ends.push(End {
                status,
                at,
                path: world.path.clone(),
                calls: calls.clone(),
            }),
        }
    }
}

impl Evaluator<'_> {
    pub(super) fn collect_files(&mut self, world: &World) {
        for (key, file) in world.files.iter().filter(|(_, file)| file.at != Span::NOWHERE) {
            let known = self.out.written.entry(key.clone()).or_default();
            if known.len() < 16 && !known.iter().any(|f| f.content.same(&file.content)) {
                known.push((**file).clone());
            }
        }
    }

    pub(super) fn finish(mut self) -> Evaluation {
        for command in &self.out.commands {
            for word in command.argv.iter().chain(command.assignments.iter().map(|(_, w)| w)) {
                for unknown in word.value.unknowns() {
                    self.out
                        .unknowns
                        .entry(unknown.name.clone())
                        .or_insert_with(|| unknown.clone());
                }
            }
        }
        // A file whose name differs between points is another file for each of them.
        let named = |key: &Arc<str>| key.contains(MARK);
        if self.out.truncated.is_some()
            || self.out.written.keys().any(named)
            || self
                .out
                .commands
                .iter()
                .any(|c| c.files.iter().any(|(key, _)| named(key)))
        {
            self.lanes.void();
        }
        self.out.holds = self.lanes.held();
        self.out.diagnostics = self.notes.into_iter().collect();
        self.out
    }
}

fn same_environment(a: &Command, b: &Command) -> bool {
    // Others are not looked at: they may hold long texts.
    let same = |a: &Arc<Var>, b: &Arc<Var>| (!a.exported && !b.exported) || same_var(a, b);
    let exported = |var: Option<&Arc<Var>>| var.is_some_and(|var| var.exported);
    a.vars
        .find_differing(&b.vars, same, |_, a, b| exported(a) || exported(b))
        .is_none()
        && crate::world::same_known_files(&a.files, &b.files)
}
