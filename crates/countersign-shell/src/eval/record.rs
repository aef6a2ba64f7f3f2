//! What an evaluation keeps: commands, each once, and the ways a script ends.

use std::sync::Arc;

use super::Evaluator;
use crate::output::{Command, End};
use crate::value::{Span, Why};
use crate::world::{Status, Var, World, id_of};

/// Early ends kept.
const MAX_ENDS: usize = 200;

impl Evaluator<'_> {
    /// Record a command; an equal one of another world takes it in. Gives its place in the list.
    pub(super) fn record(&mut self, command: Command) -> Option<usize> {
        let at = command.span;
        if self.out.commands.len() >= self.limits.commands {
            self.bound(at, format!("more than {} commands", self.limits.commands));
            return None;
        }
        let mut hash: u64 = id_of(Why::Process, "", at);
        for word in command.argv.iter().chain(command.assignments.iter().map(|(_, w)| w)) {
            for piece in word.value.pieces() {
                let mix = match &piece.kind {
                    crate::value::PieceKind::Text(text) => id_of(Why::Output, text, Span::NOWHERE),
                    crate::value::PieceKind::Unknown(unknown) => unknown.id,
                };
                hash = hash.rotate_left(5) ^ mix;
            }
            hash = hash.wrapping_mul(31).wrapping_add(1);
        }
        let mut size = 0;
        if let Some(known) = self.seen.get(&hash) {
            for &index in known {
                let other = &mut self.out.commands[index];
                let equal = other.kind == command.kind
                    && other.argv == command.argv
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
                    }
                    return Some(index);
                }
            }
        }
        for word in &command.argv {
            size += word.value.size() + 64;
        }
        self.count_bytes(at, size);
        self.seen.entry(hash).or_default().push(self.out.commands.len());
        self.out.commands.push(command);
        Some(self.out.commands.len() - 1)
    }

    pub(super) fn end(&mut self, world: &World, at: Span) {
        if self.out.ends.len() >= MAX_ENDS {
            return;
        }
        let status = match world.status {
            Status::Known(code) => Some(code),
            Status::Unknown(..) | Status::Ran(..) => None,
        };
        let calls = &self.calls;
        match self
            .out
            .ends
            .iter_mut()
            .find(|e| e.at == at && e.status == status && e.calls == *calls)
        {
            Some(known) => {
                let common = known.path.iter().filter(|l| world.path.contains(l)).cloned().collect();
                known.path = Arc::new(common);
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

fn same_environment(a: &Command, b: &Command) -> bool {
    let same = |x: &Arc<Var>, y: &Arc<Var>| Arc::ptr_eq(x, y) || x == y;
    let seen = |c: &Command, name: &str| c.vars.get(name).is_some_and(|v| v.exported);
    let differing = a.vars.differing(&b.vars, same);
    differing.iter().all(|name| !seen(a, name) && !seen(b, name)) && crate::world::same_known_files(&a.files, &b.files)
}
