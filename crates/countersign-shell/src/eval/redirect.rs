//! Redirections: here-documents become known input, files written by the script are kept by path.

use std::sync::Arc;

use super::{Evaluator, paths};
use crate::builder::joined_lines;
use crate::output::{Redirect, Word};
use crate::syntax::RedirectOp;
use crate::syntax::ast::{PartKind, Redir};
use crate::value::{Span, Value, Why};
use crate::world::{Sink, Source, World, WrittenFile};

pub(super) fn is_input(redir: &Redir) -> bool {
    matches!(
        redir.op,
        RedirectOp::Read | RedirectOp::HereDoc | RedirectOp::HereString | RedirectOp::ReadWrite | RedirectOp::DupIn
    ) && redir.fd.unwrap_or(0) == 0
}

impl Evaluator<'_> {
    /// Apply redirections to the world; what they are, for the record.
    pub(super) fn redirect(&mut self, world: &mut World, redirs: &[Redir]) -> Vec<Redirect> {
        let mut out = Vec::with_capacity(redirs.len());
        for redir in redirs {
            let at = self.span(redir.at);
            if redir.op == RedirectOp::HereDoc {
                let script = self.script.clone();
                let Some(doc) = redir.heredoc.and_then(|i| script.heredocs.get(i)) else {
                    continue;
                };
                let text = self.value(world, &doc.body);
                let text = self.bounded(text, at);
                world.input = Source::Lines(Arc::new(text.lines()), 0);
                let name = redir.target.literal().unwrap_or_default();
                let target = Word {
                    value: Value::text(name, at),
                    span: at,
                    ..Word::default()
                };
                out.push(Redirect {
                    fd: redir.fd,
                    op: redir.op,
                    target,
                    text: Some(text),
                });
                continue;
            }
            if let [part] = redir.target.parts.as_slice()
                && let PartKind::Process(body, input, text) = &part.kind
            {
                let span = self.span(part.at);
                let value = self.process(world, body, *input, text, span);
                if *input && redir.op == RedirectOp::Read {
                    world.input = Source::Lines(Arc::new(value.lines()), 0);
                } else if !*input {
                    world.out = Sink::Drop;
                }
                let target = Word {
                    value: Value::text(text.clone(), span),
                    span,
                    ..Word::default()
                };
                out.push(Redirect {
                    fd: redir.fd,
                    op: redir.op,
                    target,
                    text: None,
                });
                continue;
            }
            let value = self.value(world, &redir.target);
            let target = Word {
                value,
                span: self.span(redir.target.at),
                ..Word::default()
            };
            if redir.op == RedirectOp::HereString {
                let mut text = target.value.clone();
                text.push_text("\n".into(), at);
                world.input = Source::Lines(Arc::new(text.lines()), 0);
                out.push(Redirect {
                    fd: redir.fd,
                    op: redir.op,
                    target,
                    text: Some(text),
                });
                continue;
            }
            self.apply(world, redir, &target, at);
            out.push(Redirect {
                fd: redir.fd,
                op: redir.op,
                target,
                text: None,
            });
        }
        out
    }

    fn apply(&mut self, world: &mut World, redir: &Redir, target: &Word, at: Span) {
        // Another file for each point.
        self.lanes.void_for(&target.value);
        let name = target.value.known();
        let key = paths::key(&world.cwd, &target.value);
        match redir.op {
            RedirectOp::Read => {
                if redir.fd.unwrap_or(0) == 0 {
                    world.input = match self.file_content(world, &target.value) {
                        Some(content) => Source::Lines(Arc::new(content.lines()), 0),
                        None => Source::Unknown,
                    };
                }
            }
            RedirectOp::Write
            | RedirectOp::Clobber
            | RedirectOp::Append
            | RedirectOp::WriteBoth
            | RedirectOp::AppendBoth => {
                let append = matches!(redir.op, RedirectOp::Append | RedirectOp::AppendBoth);
                let both = matches!(redir.op, RedirectOp::WriteBoth | RedirectOp::AppendBoth);
                let descriptor = redir.fd.unwrap_or(1);
                if descriptor > 2 {
                    return;
                }
                let device = name.as_deref().is_some_and(|n| n.starts_with("/dev/"));
                if !device {
                    let empty = || {
                        Arc::new(WrittenFile {
                            content: Value::empty(),
                            at,
                        })
                    };
                    if !append {
                        world.files.insert(key.clone(), empty());
                    } else if world.files.get(&key).is_none() {
                        // Appending to a file that was there before, or not: its beginning is not known.
                        let content = match self.file_content(world, &target.value) {
                            Some(content) => content,
                            None => Value::empty(),
                        };
                        world.files.insert(key.clone(), Arc::new(WrittenFile { content, at }));
                    }
                }
                if descriptor == 1 || both {
                    world.out = if device { Sink::Drop } else { Sink::File(key) };
                }
            }
            RedirectOp::DupOut => {
                let descriptor = redir.fd.unwrap_or(1);
                if descriptor == 1 && name.as_deref() != Some("1") {
                    // To the error stream, closed, or to a descriptor that is not followed.
                    world.out = Sink::Drop;
                }
                if descriptor == 2 && name.as_deref() == Some("1") {
                    world.err_to_out = true;
                }
            }
            RedirectOp::DupIn | RedirectOp::ReadWrite => {
                if redir.fd.unwrap_or(0) == 0 {
                    world.input = Source::Unknown;
                }
            }
            RedirectOp::HereDoc | RedirectOp::HereString => {}
        }
    }

    /// Write to the world's output.
    pub(super) fn emit(&mut self, world: &mut World, value: &Value, at: Span) {
        match world.out.clone() {
            Sink::Drop => {}
            Sink::Collect => {
                let mut buffer = std::mem::take(&mut world.buffer);
                buffer.append(value);
                world.buffer = self.bounded(buffer, at);
            }
            Sink::File(key) => self.append_file(world, key, value, at),
        }
    }

    pub(super) fn append_file(&mut self, world: &mut World, key: Arc<str>, value: &Value, at: Span) {
        let (mut content, first) = match world.files.get(&key) {
            Some(file) => (file.content.clone(), file.at),
            None => (Value::empty(), at),
        };
        content.append(value);
        let content = self.bounded(content, at);
        world.files.insert(key, Arc::new(WrittenFile { content, at: first }));
    }

    pub(super) fn write_file(&mut self, world: &mut World, key: Arc<str>, content: Value, at: Span) {
        world.files.insert(key, Arc::new(WrittenFile { content, at }));
    }

    /// What a file holds: written before, or of the tree. None when that is not known.
    pub(super) fn file_content(&mut self, world: &World, path: &Value) -> Option<Value> {
        let key = paths::key(&world.cwd, path);
        if let Some(file) = world.files.get(&key) {
            return Some(self.settled(file.content.clone()));
        }
        self.lanes.void_for(path);
        let known = path.known()?;
        if known == "/dev/null" {
            return Some(Value::empty());
        }
        let inside = paths::in_tree(&self.setup.roots, &key)?;
        let text = self.files.read(&inside)?;
        if text.len() > self.limits.file_bytes {
            return None;
        }
        // Its lines keep their places when it is one of the scripts read; otherwise they have none.
        let at = Span::NOWHERE;
        Some(Value::text(text, at))
    }

    /// Whether a file is known to be there.
    pub(super) fn file_exists(&self, world: &World, path: &Value) -> bool {
        let key = paths::key(&world.cwd, path);
        world.files.get(&key).is_some()
            || (path.is_known()
                && paths::in_tree(&self.setup.roots, &key).is_some_and(|inside| self.files.read(&inside).is_some()))
    }

    /// All that is left to read, when known.
    pub(super) fn read_all(&mut self, world: &mut World) -> Option<Value> {
        let Source::Lines(lines, taken) = world.input.clone() else {
            return None;
        };
        let out = joined_lines(lines.get(taken..).unwrap_or_default());
        world.input = Source::Lines(lines.clone(), lines.len());
        Some(out)
    }

    /// The rest of the input, or an unknown that says so.
    pub(super) fn input_text(&mut self, world: &mut World, at: Span) -> Value {
        self.read_all(world)
            .unwrap_or_else(|| self.unknown_value(Why::Input, "standard input", at, Default::default()))
    }
}
