//! Simple commands: assignments, functions, builtins, scripts of the tree, programs.

use std::sync::Arc;

use super::{Evaluator, paths};
use crate::builder::joined_lines;
use crate::output::{Call, Command, CommandKind, Note, Redirect, Word};
use crate::pmap::PMap;
use crate::syntax::Script;
use crate::syntax::ast::{Arg, Simple, Stmt};
use crate::value::{Shape, Span, Value, Why};
use crate::world::{Flow, Frame, FrameKind, Function, Source, Status, VarValue, World};

/// A command about to run: what the record and the callee need.
pub(super) struct Invocation<'s> {
    pub(super) argv: Arc<Vec<Word>>,
    pub(super) assignments: Vec<(Arc<str>, Word)>,
    pub(super) redirects: Vec<Redirect>,
    pub(super) simple: &'s Simple,
    pub(super) at: Span,
    pub(super) end_line: u32,
}

impl Invocation<'_> {
    /// An argument's known text.
    pub(super) fn arg(&self, index: usize) -> Option<std::borrow::Cow<'_, str>> {
        self.argv.get(index)?.value.known()
    }
}

impl Evaluator<'_> {
    pub(super) fn simple(&mut self, simple: &Simple, stmt: &Stmt, mut world: World) -> Vec<World> {
        let at = self.span(stmt.at);
        self.substituted = None;
        if simple.words.is_empty() {
            for assign in &simple.assigns {
                self.assign(&mut world, assign);
            }
            if !simple.redirs.is_empty() {
                let saved = (world.out.clone(), world.input.clone(), world.err_to_out);
                self.redirect(&mut world, &simple.redirs);
                (world.out, world.input, world.err_to_out) = saved;
            }
            world.status = self.substituted.take().unwrap_or(Status::Known(0));
            return vec![world];
        }
        if let Some(Arg::Word(first)) = simple.words.first()
            && let Some(name) = first.literal_text()
            && matches!(&*name, "export" | "local" | "declare" | "typeset" | "readonly")
        {
            // These take their arguments from the tree: an assignment is not split, an array is an array.
            let word = Word {
                value: Value::text(&*name, at),
                span: at,
                ..Word::default()
            };
            let invocation = Invocation {
                argv: Arc::new(vec![word]),
                assignments: Vec::new(),
                redirects: Vec::new(),
                simple,
                at,
                end_line: stmt.end_line,
            };
            self.declare(&mut world, &name, &invocation);
            return vec![world];
        }
        let mut argv: Vec<Word> = Vec::with_capacity(simple.words.len());
        for arg in &simple.words {
            match arg {
                Arg::Word(word) => self.fields_to(&mut world, word, &mut argv),
                // Kept as one word for the record; `declare` and kin take it from the tree.
                Arg::Assign(assign) => argv.push(self.assign_word(&mut world, assign)),
            }
            if !self.within_words(&mut argv, at) {
                return vec![world];
            }
        }
        if argv.is_empty() {
            // `$(…)` or an empty expansion as the command.
            world.status = self.substituted.take().unwrap_or(Status::Known(0));
            for assign in &simple.assigns {
                self.assign(&mut world, assign);
            }
            return vec![world];
        }
        let mut assignments = Vec::with_capacity(simple.assigns.len());
        for assign in &simple.assigns {
            let word = self.prefix_value(&mut world, assign);
            assignments.push((assign.name.clone(), word));
        }
        let saved = (world.out.clone(), world.input.clone(), world.err_to_out);
        let redirects = self.redirect(&mut world, &simple.redirs);
        let invocation = Invocation {
            argv: Arc::new(argv),
            assignments,
            redirects,
            simple,
            at,
            end_line: stmt.end_line,
        };
        let keeps = invocation.arg(0).as_deref() == Some("exec") && invocation.argv.len() == 1;
        let input_changed = simple.redirs.iter().any(super::redirect::is_input);
        let mut after = self.invoke(world, invocation);
        if !keeps {
            for world in &mut after {
                world.out = saved.0.clone();
                world.err_to_out = saved.2;
                if input_changed {
                    world.input = saved.1.clone();
                }
            }
        }
        after
    }

    /// Run what the words name.
    pub(super) fn invoke(&mut self, mut world: World, invocation: Invocation<'_>) -> Vec<World> {
        let at = invocation.at;
        let Some(name) = invocation
            .argv
            .first()
            .and_then(|w| w.value.known())
            .map(|n| n.into_owned())
        else {
            // The program itself is not known; for one point it may be.
            if invocation.argv.first().is_some_and(|w| w.value.is_laned()) {
                self.lanes.void();
            }
            let from = invocation.argv[0].value.depends_on();
            let shown = super::flow::short(&invocation.argv[0].value.display());
            self.record_invocation(&world, &invocation, CommandKind::External);
            self.program_output(&mut world, &invocation);
            world.status = self.unknown_status(&format!("{shown} succeeds"), at, from);
            return vec![world];
        };
        if let Some(function) = world.functions.get(&name).cloned() {
            self.record_invocation(&world, &invocation, CommandKind::Function);
            return self.call(world, &function, invocation);
        }
        if invocation.assignments.is_empty() {
            return match self.builtin(&name, world, &invocation) {
                Ok(after) => after,
                Err(world) => self.program(world, &name, invocation),
            };
        }
        // Variables in front of a builtin (`IFS=, read …`) hold only while it runs.
        let before = world.clone();
        for (name, word) in &invocation.assignments {
            let var = crate::world::Var::scalar(word.value.clone(), true);
            world.vars.insert(name.clone(), Arc::new(var));
        }
        match self.builtin(&name, world, &invocation) {
            Ok(mut after) => {
                for world in &mut after {
                    for (name, _) in &invocation.assignments {
                        match before.vars.get(name) {
                            Some(var) => world.vars.insert(name.clone(), var.clone()),
                            None => {
                                world.vars.remove(name);
                            }
                        }
                    }
                }
                after
            }
            Err(_) => self.program(before, &name, invocation),
        }
    }

    pub(super) fn record_invocation(
        &mut self,
        world: &World,
        invocation: &Invocation<'_>,
        kind: CommandKind,
    ) -> Option<usize> {
        if !self.is_read(invocation, kind) {
            return None;
        }
        let stdin = self.stdin(world, invocation.at);
        let in_function = world
            .frames
            .iter()
            .rev()
            .find(|f| f.kind != FrameKind::Source)
            .filter(|f| f.kind == FrameKind::Function);
        let command = Command {
            argv: invocation.argv.clone(),
            assignments: invocation.assignments.clone(),
            redirects: invocation.redirects.clone(),
            stdin,
            background: self.background > 0,
            pipe_stage: self.pipe_stage,
            kind,
            in_function: in_function.map(|f| f.name.clone()),
            calls: self.calls.clone(),
            path: world.path.clone(),
            span: invocation.at,
            end_line: invocation.end_line,
            cwd: world.cwd.clone(),
            vars: world.vars.clone(),
            files: world.files.clone(),
        };
        self.record(command)
    }

    /// Whether somebody asks for a command: the caller, or what is known of the program.
    fn is_read(&self, invocation: &Invocation<'_>, kind: CommandKind) -> bool {
        self.answers.is_none_or(|answers| {
            let known = || invocation.arg(0).is_some_and(|name| answers.knows(&name));
            answers.reads(&invocation.argv, &invocation.assignments) || (kind == CommandKind::External && known())
        })
    }

    /// What is left of the input as one text, where it is known. Every command of a loop may have the same.
    fn stdin(&mut self, world: &World, at: Span) -> Option<Value> {
        let Source::Lines(lines, taken) = &world.input else {
            return None;
        };
        if lines.len() >= 20_000 {
            return None;
        }
        if let Some((of, from, text)) = &self.stdin
            && Arc::ptr_eq(of, lines)
            && from == taken
        {
            return Some(text.clone());
        }
        let text = joined_lines(lines.get(*taken..).unwrap_or_default());
        self.count_bytes(at, text.size());
        self.stdin = Some((lines.clone(), *taken, text.clone()));
        Some(text)
    }

    fn enter_call(
        &mut self,
        name: &Arc<str>,
        at: Span,
        script: &Arc<Script>,
        file: u32,
    ) -> (Arc<Script>, u32, Arc<Vec<Call>>) {
        let saved = (self.script.clone(), self.file, self.calls.clone());
        let mut calls = (*self.calls).clone();
        calls.push(Call { name: name.clone(), at });
        self.calls = Arc::new(calls);
        self.script = script.clone();
        self.file = file;
        self.calls_open += 1;
        saved
    }

    fn leave_call(&mut self, saved: (Arc<Script>, u32, Arc<Vec<Call>>)) {
        (self.script, self.file, self.calls) = saved;
        self.calls_open -= 1;
    }

    /// Call a function.
    fn call(&mut self, mut world: World, function: &Arc<Function>, invocation: Invocation<'_>) -> Vec<World> {
        let at = invocation.at;
        let active = world
            .frames
            .iter()
            .filter(|f| f.kind == FrameKind::Function && f.name == function.name)
            .count();
        if active >= self.limits.recursion || self.calls_open >= self.limits.call_depth {
            self.note(
                Note::Bound,
                at,
                format!(
                    "function {} calls itself or nests too deeply; not followed",
                    function.name
                ),
            );
            if matches!(world.out, crate::world::Sink::Collect | crate::world::Sink::File(_)) {
                let text = self.unknown_value(
                    Why::Limit,
                    format!("output of {}", function.name),
                    at,
                    Default::default(),
                );
                self.emit(&mut world, &text, at);
            }
            world.status = self.unknown_status(&format!("{} succeeds", function.name), at, Default::default());
            return vec![world];
        }
        let mut locals = Vec::new();
        for (name, word) in &invocation.assignments {
            locals.push((name.clone(), world.vars.get(name).cloned()));
            let var = crate::world::Var::scalar(word.value.clone(), true);
            world.vars.insert(name.clone(), Arc::new(var));
        }
        let frame = Frame {
            kind: FrameKind::Function,
            name: function.name.clone(),
            source: function.source.clone(),
            file: function.file,
            positional: Arc::new(invocation.argv[1..].to_vec()),
            locals,
            called_at: at,
        };
        let depth = world.frames.len();
        world.frames.push(Arc::new(frame));
        let saved = self.enter_call(&function.name, at, &function.script, function.file);
        let stage = self.pipe_stage.take();
        let mut after = self.stmt(&function.body, vec![world]);
        self.pipe_stage = stage;
        self.leave_call(saved);
        for world in &mut after {
            leave_frames(world, depth);
            if matches!(world.flow, Flow::Return | Flow::Break(_) | Flow::Continue(_)) {
                world.flow = Flow::Normal;
            }
        }
        self.settle(after, at, self.limits.worlds, Why::Joined, true)
    }

    /// `source file args`: the file's statements in this world.
    pub(super) fn source(&mut self, mut world: World, invocation: &Invocation<'_>) -> Vec<World> {
        let at = invocation.at;
        let Some(path) = invocation.argv.get(1).cloned() else {
            world.succeed(false);
            return vec![world];
        };
        self.record_invocation(&world, invocation, CommandKind::Script);
        match self.tree_script(&world, &path.value) {
            Some((script, file)) => {
                let arguments = &invocation.argv[2..];
                let positional = if arguments.is_empty() {
                    world.positional()
                } else {
                    Arc::new(arguments.to_vec())
                };
                let name: Arc<str> = path.value.display().into();
                let frame = Frame {
                    kind: FrameKind::Source,
                    name: name.clone(),
                    source: name.clone(),
                    file,
                    positional,
                    locals: Vec::new(),
                    called_at: at,
                };
                if self.calls_open >= self.limits.call_depth
                    || world
                        .frames
                        .iter()
                        .filter(|f| f.file == file && f.kind == FrameKind::Source)
                        .count()
                        >= self.limits.recursion
                {
                    self.note(Note::Bound, at, format!("{name} is sourced too deeply; not followed"));
                    return self.foreign(vec![world], &name, at);
                }
                let depth = world.frames.len();
                world.frames.push(Arc::new(frame));
                let saved = self.enter_call(&name, at, &script, file);
                let mut after = self.block(&script.body, vec![world]);
                self.leave_call(saved);
                for world in &mut after {
                    if arguments.is_empty()
                        && let Some(top) = world.frames.get(depth).map(|f| f.positional.clone())
                        && let Some(below) = world.frames.get_mut(depth.wrapping_sub(1))
                        && !Arc::ptr_eq(&top, &below.positional)
                    {
                        Arc::make_mut(below).positional = top;
                    }
                    leave_frames(world, depth);
                    if world.flow == Flow::Return {
                        world.flow = Flow::Normal;
                    }
                }
                self.settle(after, at, self.limits.worlds, Why::Joined, true)
            }
            None => {
                // A file that the script wrote itself.
                if let Some(content) = self.file_content(&world, &path.value) {
                    return self.eval_text(world, &content, at);
                }
                let shown = path.value.display();
                if shown == "/dev/null" {
                    return vec![world];
                }
                self.note(Note::NotInTree, at, format!("{shown} is sourced but not in the tree"));
                self.foreign(vec![world], &shown, at)
            }
        }
    }

    /// Code that is not known ran: variables that are not set may be set now.
    pub(super) fn foreign(&mut self, worlds: Vec<World>, what: &str, at: Span) -> Vec<World> {
        let name = super::flow::short(what);
        let unknown = self.fresh(Why::Foreign, name.as_str(), at, Default::default(), Shape::Any);
        let mark = |mut w: World| {
            w.foreign = w.foreign.or(Some(unknown.clone()));
            w.status = self.unknown_status(&format!("{name} succeeds"), at, unknown.depends_on.clone());
            w
        };
        worlds.into_iter().map(mark).collect()
    }

    /// The script of the tree at a known path.
    pub(super) fn tree_script(&mut self, world: &World, path: &Value) -> Option<(Arc<Script>, u32)> {
        if path.known().is_none() {
            // The tree may have the script of one point.
            self.lanes.check(&path.depends_on());
            return None;
        }
        let key = paths::key(&world.cwd, path);
        if world.files.get(&key).is_some() {
            return None;
        }
        let inside = paths::in_tree(&self.setup.roots, &key)?;
        let text = self.files.read(&inside)?;
        self.no_marks(&text);
        if self.out.files.len() >= self.limits.files && !self.out.files.iter().any(|f| **f == *inside) {
            self.note(
                Note::Bound,
                Span::NOWHERE,
                format!("more than {} scripts", self.limits.files),
            );
            return None;
        }
        let script = self.cache.script(&inside, &text);
        let file = self.load(&script);
        Some((script, file))
    }

    /// A script of the tree started as a program of its own.
    pub(super) fn run_script(
        &mut self,
        world: World,
        script: &Arc<Script>,
        file: u32,
        name: Arc<str>,
        arguments: Vec<Word>,
        assignments: &[(Arc<str>, Word)],
        at: Span,
    ) -> Vec<World> {
        if self.calls_open >= self.limits.call_depth
            || world
                .frames
                .iter()
                .filter(|f| f.file == file && f.kind == FrameKind::Script)
                .count()
                >= self.limits.recursion
        {
            self.note(Note::Bound, at, format!("{name} is started too deeply; not followed"));
            let status = self.unknown_status(&format!("{name} succeeds"), at, Default::default());
            return vec![World { status, ..world }];
        }
        let frames = world.frames.clone();
        let assignments = assignments.to_vec();
        let after = self.subshell(vec![world], at, |e, mut worlds| {
            for world in &mut worlds {
                child_process(world);
                for (name, word) in &assignments {
                    let var = crate::world::Var::scalar(word.value.clone(), true);
                    world.vars.insert(name.clone(), Arc::new(var));
                }
                let frame = Frame {
                    kind: FrameKind::Script,
                    name: name.clone(),
                    source: name.clone(),
                    file,
                    positional: Arc::new(arguments.clone()),
                    locals: Vec::new(),
                    called_at: at,
                };
                world.frames.push(Arc::new(frame));
            }
            let saved = e.enter_call(&name, at, script, file);
            let (stage, suppressed) = (e.pipe_stage.take(), std::mem::take(&mut e.no_errexit));
            let mut after = e.block(&script.body, worlds);
            e.pipe_stage = stage;
            e.no_errexit = suppressed;
            let outer = std::mem::take(&mut e.exited);
            e.run_exit_traps(&mut after);
            e.exited = outer;
            e.leave_call(saved);
            for world in &mut after {
                world.frames.clone_from(&frames);
            }
            after
        });
        self.settle(after, at, self.limits.worlds, Why::Joined, true)
    }
}

/// What a program started from the shell inherits: exported variables, directory, files.
pub(super) fn child_process(world: &mut World) {
    let mut vars = PMap::default();
    for (name, var) in world.vars.iter() {
        if var.exported && matches!(var.value, VarValue::Scalar(_)) {
            vars.insert(name.clone(), var.clone());
        } else if var.value == VarValue::Unset {
            // An unset variable of the environment stays unset.
            vars.insert(name.clone(), var.clone());
        }
    }
    world.vars = vars;
    world.functions = PMap::default();
    world.errexit = false;
    world.pipefail = false;
    world.exit_trap = None;
    world.last_background = None;
    world.status = Status::Known(0);
}

/// Drop frames above a depth and give back what their locals hid.
fn leave_frames(world: &mut World, depth: usize) {
    while world.frames.len() > depth {
        let Some(frame) = world.frames.pop() else { return };
        for (name, old) in frame.locals.iter().rev() {
            match old {
                Some(var) => world.vars.insert(name.clone(), var.clone()),
                None => {
                    world.vars.remove(name);
                }
            }
        }
    }
}
