//! Programs: recorded, never run. Some that only compute text are computed; scripts of the tree are followed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::simple::{Invocation, child_process};
use super::{Evaluator, paths};
use crate::lanes::MARK;
use crate::output::{CommandKind, Note, Word};
use crate::value::{PieceKind, Shape, Span, Value, Why};
use crate::world::{Sink, Source, Status, World};
use crate::wrappers::unwrap_words;

/// What a program that only computes text gives.
pub(super) struct Computed {
    pub(super) output: Value,
    pub(super) status: Status,
}

impl Computed {
    pub(super) fn ok(output: Value) -> Option<Computed> {
        Some(Computed {
            output,
            status: Status::Known(0),
        })
    }
}

impl Evaluator<'_> {
    /// A program: recorded, then computed, followed or unknown.
    pub(super) fn program(&mut self, mut world: World, name: &str, call: Invocation<'_>) -> Vec<World> {
        let at = call.at;
        let unwrapped = unwrap_words(&call.argv);
        let inner = unwrapped.argv;
        let inner_name = inner.first().and_then(|w| w.value.known());
        let inner_name = inner_name.as_deref().unwrap_or(name);
        let base = inner_name.rsplit('/').next().unwrap_or(inner_name);
        let shell = is_shell(base);
        if (shell || inner_name.contains('/'))
            && let Some((script, file, name, arguments)) = self.started_script(&mut world, base, inner)
        {
            let mut assignments = call.assignments.clone();
            assignments.extend(unwrapped.assignments.iter().cloned());
            self.record_invocation(&world, &call, CommandKind::Script);
            return self.run_script(world, &script, file, name, arguments, &assignments, at);
        }
        let recorded = self.record_invocation(&world, &call, CommandKind::External);
        if shell && let Some((text, arguments)) = self.shell_text(&mut world, base, inner) {
            let mut assignments = call.assignments.clone();
            assignments.extend(unwrapped.assignments.iter().cloned());
            return self.child_text(world, &text, arguments, &assignments, at);
        }
        if let Some(started) = super::container::started(inner) {
            return self.in_container(world, &started, &call);
        }
        let mut status = None;
        let answer = self
            .answers
            .zip(recorded)
            .and_then(|(answers, index)| self.answered(answers, name, self.out.commands.get(index)?));
        if let Some(answer) = answer {
            match answer.output {
                Some(output) => self.emit(&mut world, &Value::text(output, at), at),
                None => self.program_output(&mut world, &call),
            }
            status = answer.status.map(Status::Known);
        } else if let Some(computed) = self.computed(&mut world, base, inner, at) {
            self.emit(&mut world, &computed.output, at);
            status = Some(computed.status);
        } else {
            self.program_output(&mut world, &call);
        }
        world.status = status.unwrap_or(Status::Ran(call.argv, at));
        vec![world]
    }

    /// Output of a program that is not run.
    pub(super) fn program_output(&mut self, world: &mut World, call: &Invocation<'_>) {
        if world.out == Sink::Drop {
            return;
        }
        let shown = super::flow::short(&self.words_as_text(&call.argv).display());
        let name: Arc<str> = format!("$({shown})").into();
        let mut from: BTreeSet<Arc<str>> = call.argv.iter().flat_map(|w| w.value.depends_on()).collect();
        // It is not known for any single point either.
        from.remove(MARK);
        from.insert(name.clone());
        let value = self.unknown_value(Why::Output, name, call.at, from);
        self.emit(world, &value, call.at);
    }

    /// `bash path args`, `./path args`: a script of the tree.
    #[allow(clippy::type_complexity, reason = "used once, right above")]
    fn started_script(
        &mut self,
        world: &mut World,
        base: &str,
        argv: &[Word],
    ) -> Option<(Arc<crate::syntax::Script>, u32, Arc<str>, Vec<Word>)> {
        let mut index = 0;
        if is_shell(base) {
            index = 1;
            while let Some(text) = argv.get(index).and_then(|w| w.value.known()) {
                match &*text {
                    "-c" | "-s" => return None,
                    "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => index += 2,
                    "--" => {
                        index += 1;
                        break;
                    }
                    option if option.starts_with(['-', '+']) && option.len() > 1 => {
                        if !option.starts_with("--") && option.contains('c') {
                            return None;
                        }
                        index += 1;
                    }
                    _ => break,
                }
            }
        } else {
            let path = argv.first()?.value.known()?.into_owned();
            if !path.contains('/') {
                return None;
            }
            let key = paths::key(&world.cwd, &argv[0].value);
            let inside = paths::in_tree(&self.setup.roots, &key)?;
            let text = self.files.read(&inside)?;
            let first = text.lines().next().unwrap_or("");
            let shell = if first.starts_with("#!") {
                first.contains("sh")
            } else {
                inside.ends_with(".sh")
            };
            if !shell {
                return None;
            }
        }
        let word = argv.get(index)?;
        let (script, file) = self.tree_script(world, &word.value)?;
        Some((script, file, word.value.display().into(), argv[index + 1..].to_vec()))
    }

    /// `bash -c text`, `bash <<EOF`, `bash file` with a file the script wrote: text to evaluate.
    fn shell_text(&mut self, world: &mut World, base: &str, argv: &[Word]) -> Option<(Value, Vec<Word>)> {
        if !is_shell(base) {
            return None;
        }
        let mut index = 1;
        let mut text_follows = false;
        while let Some(text) = argv.get(index).and_then(|w| w.value.known()) {
            if !text.starts_with(['-', '+']) || text.len() < 2 {
                break;
            }
            let flags = &text[1..];
            index += 1;
            if text.starts_with('-') && !text.starts_with("--") && flags.contains('c') {
                text_follows = true;
                break;
            }
            if flags.ends_with('o') || flags.ends_with('O') {
                index += 1;
            }
        }
        if text_follows {
            let text = argv.get(index)?.value.clone();
            return Some((text, argv.get(index + 1..).unwrap_or_default().to_vec()));
        }
        if let Some(word) = argv.get(index) {
            let content = self.file_content(world, &word.value);
            if content.is_none() {
                let shown = super::flow::short(&word.value.display());
                self.note(
                    Note::NotInTree,
                    word.span,
                    format!("{shown} is started but not in the tree"),
                );
            }
            let mut arguments = vec![word.clone()];
            arguments.extend(argv.get(index + 1..).unwrap_or_default().iter().cloned());
            return content.map(|c| (c, arguments));
        }
        match world.input {
            Source::Lines(..) => {
                let text = self.read_all(world)?;
                Some((self.settled(text), Vec::new()))
            }
            Source::Unknown => None,
        }
    }

    fn child_text(
        &mut self,
        world: World,
        text: &Value,
        arguments: Vec<Word>,
        assignments: &[(Arc<str>, Word)],
        at: Span,
    ) -> Vec<World> {
        let frames = world.frames.clone();
        // `bash -c text name arguments…`: the word after the text is `$0`.
        let name: Arc<str> = arguments
            .first()
            .map_or_else(|| "bash".into(), |w| w.value.display().into());
        let positional: Arc<Vec<Word>> = Arc::new(arguments.into_iter().skip(1).collect());
        self.subshell(vec![world], at, |e, worlds| {
            let mut after = Vec::new();
            for mut world in worlds {
                child_process(&mut world);
                world.frames.push(Arc::new(crate::world::Frame {
                    kind: crate::world::FrameKind::Script,
                    name: name.clone(),
                    source: name.clone(),
                    file: e.file,
                    positional: positional.clone(),
                    locals: Vec::new(),
                    called_at: at,
                }));
                for (name, word) in assignments {
                    let var = crate::world::Var::scalar(word.value.clone(), true);
                    world.vars.insert(name.clone(), Arc::new(var));
                }
                let suppressed = std::mem::take(&mut e.no_errexit);
                after.extend(e.eval_text(world, text, at));
                e.no_errexit = suppressed;
            }
            for world in &mut after {
                world.frames.clone_from(&frames);
            }
            after
        })
    }

    /// Computes; what is given to a program has to be the same for all points, unless it only passes it on.
    fn computed(&mut self, world: &mut World, base: &str, argv: &[Word], at: Span) -> Option<Computed> {
        let input = match &world.input {
            Source::Lines(lines, taken) => lines.iter().skip(*taken).any(Value::varies),
            Source::Unknown => false,
        };
        let passes = matches!(base, "cat" | "tee");
        if computes(base) && (argv.iter().any(|w| w.value.varies()) || (input && !passes)) {
            if filters(base)
                && !self.lanes.is_void()
                && let Some(computed) = self.computed_in_lanes(world, base, argv, at)
            {
                return Some(computed);
            }
            self.lanes.void();
        }
        self.compute(world, base, argv, at)
    }

    pub(super) fn compute(&mut self, world: &mut World, base: &str, argv: &[Word], at: Span) -> Option<Computed> {
        let args = argv.get(1..)?;
        match base {
            "true" => Some(Computed {
                output: Value::empty(),
                status: Status::Known(0),
            }),
            "false" => Some(Computed {
                output: Value::empty(),
                status: Status::Known(1),
            }),
            "basename" | "dirname" => self.path_part(base, args, at),
            "realpath" | "readlink" => self.real_path(world, args, at),
            "seq" => self.seq(args, at),
            "expr" => self.expr(world, args, at),
            "mktemp" => {
                let unknown = self.fresh(
                    Why::Host,
                    format!("$({})", self.words_as_text(argv).display()),
                    at,
                    BTreeSet::new(),
                    Shape::NonEmpty,
                );
                let mut output = Value::unknown(unknown, at);
                output.push_text("\n".into(), at);
                Computed::ok(output)
            }
            "cat" => {
                let output = self.cat(world, args, at);
                Computed::ok(output)
            }
            "tee" => {
                let text = self.input_text(world, at);
                let append = args
                    .iter()
                    .any(|w| matches!(w.value.known().as_deref(), Some("-a" | "--append")));
                for word in args
                    .iter()
                    .filter(|w| !w.value.known().is_some_and(|t| t.starts_with('-')))
                {
                    let key = paths::key(&world.cwd, &word.value);
                    if key.starts_with("/dev/") {
                        continue;
                    }
                    if append {
                        self.append_file(world, key, &text, at);
                    } else {
                        self.write_file(world, key, text.clone(), at);
                    }
                }
                Computed::ok(text)
            }
            "touch" | "rm" | "mv" | "cp" | "ln" => {
                self.move_files(world, base, args, at);
                None
            }
            "env" | "printenv" if base == "printenv" && args.len() == 1 => {
                let name = args[0].value.known()?;
                let var = world
                    .vars
                    .get(&name)
                    .filter(|v| v.exported)
                    .and_then(|v| v.as_scalar())
                    .cloned();
                match var {
                    Some(mut value) => {
                        value.push_text("\n".into(), at);
                        Computed::ok(value)
                    }
                    None => None,
                }
            }
            "sed" => self.sed(world, args, at),
            "awk" | "gawk" | "mawk" => self.awk(world, args, at),
            "grep" | "egrep" | "fgrep" => self.grep(world, base, args, at),
            "tr" | "cut" | "head" | "tail" | "sort" | "uniq" | "wc" | "rev" | "tac" | "paste" | "xargs" | "bc" => {
                self.filter(world, base, args, at)
            }
            _ => None,
        }
    }

    fn path_part(&mut self, base: &str, args: &[Word], at: Span) -> Option<Computed> {
        let args: Vec<&Word> = args
            .iter()
            .filter(|w| w.value.known().as_deref() != Some("--"))
            .collect();
        let first = args.first()?;
        if first.value.known().is_some_and(|t| t.starts_with('-')) {
            return None;
        }
        let place = first.value.pieces().first().map_or(at, |p| p.at);
        if let Some(path) = first.value.known() {
            let suffix = args.get(1).map(|w| w.value.known());
            let text = match (base, suffix) {
                ("dirname", _) => paths::dirname(&path),
                (_, Some(Some(suffix))) => paths::basename(&path, &suffix),
                (_, None) => paths::basename(&path, ""),
                (_, Some(None)) => return None,
            };
            return Computed::ok(Value::text(format!("{text}\n"), place));
        }
        // Cut at the last slash when it stands in known text behind all unknowns.
        let last = first.value.pieces().last()?;
        let PieceKind::Text(text) = &last.kind else {
            let name = format!("$({base} {})", first.value.display());
            let mut output = self.unknown_value(Why::Transform, name, at, first.value.depends_on());
            output.push_text("\n".into(), at);
            return Computed::ok(output);
        };
        let mut slash = crate::pattern::Pattern::default();
        if text.ends_with('/') || !text.contains('/') {
            let name = format!("$({base} {})", first.value.display());
            let mut output = self.unknown_value(Why::Transform, name, at, first.value.depends_on());
            output.push_text("\n".into(), at);
            return Computed::ok(output);
        }
        let mut output = if base == "dirname" {
            slash.push_pattern("/*");
            super::cut::remove_suffix(&first.value, &slash, false)?
        } else {
            slash.push_pattern("*/");
            super::cut::remove_prefix(&first.value, &slash, true)?
        };
        output.push_text("\n".into(), at);
        Computed::ok(output)
    }

    /// `realpath`, `readlink -f`: by text; links are not followed.
    fn real_path(&mut self, world: &World, args: &[Word], at: Span) -> Option<Computed> {
        let path = args
            .iter()
            .find(|w| !w.value.known().is_some_and(|t| t.starts_with('-')))?;
        path.value.known()?;
        let key = paths::key(&world.cwd, &path.value);
        Computed::ok(Value::text(format!("{key}\n"), at))
    }

    fn seq(&mut self, args: &[Word], at: Span) -> Option<Computed> {
        let mut numbers = Vec::new();
        let mut separator = "\n".to_string();
        let mut index = 0;
        while let Some(word) = args.get(index) {
            index += 1;
            let text = word.value.known()?;
            if text == "-s" {
                separator = args.get(index)?.value.known()?.into_owned();
                index += 1;
            } else if let Some(own) = text.strip_prefix("-s") {
                separator = own.to_owned();
            } else {
                numbers.push(text.trim().parse::<i64>().ok()?);
            }
        }
        let (first, step, last) = match numbers.as_slice() {
            [last] => (1, 1, *last),
            [first, last] => (*first, 1, *last),
            [first, step, last] => (*first, *step, *last),
            _ => return None,
        };
        if step == 0 || (first.abs_diff(last) / step.unsigned_abs()) as usize > self.limits.loop_iterations {
            return None;
        }
        let mut out: Vec<String> = Vec::new();
        let mut n = first;
        while (step > 0 && n <= last) || (step < 0 && n >= last) {
            out.push(n.to_string());
            n = n.checked_add(step)?;
        }
        let mut text = out.join(&separator);
        if !text.is_empty() {
            text.push('\n');
        }
        Computed::ok(Value::text(text, at))
    }

    fn expr(&mut self, world: &mut World, args: &[Word], at: Span) -> Option<Computed> {
        let plain = |w: &Word| {
            w.value
                .known()
                .is_some_and(|t| t.parse::<i64>().is_ok() || ["+", "-", "*", "/", "%", "(", ")"].contains(&&*t))
        };
        if !args.iter().all(plain) {
            return None;
        }
        let text = self.words_as_text(args);
        let number = self.arith(world, &text, at);
        match self.lanes.one(number) {
            crate::arith::Num::Known(n) => {
                let status = Status::Known(i32::from(n == 0));
                Some(Computed {
                    output: Value::text(format!("{n}\n"), at),
                    status,
                })
            }
            crate::arith::Num::Unknown(_) | crate::arith::Num::Each(_) => None,
        }
    }

    fn cat(&mut self, world: &mut World, args: &[Word], at: Span) -> Value {
        let mut out = Value::empty();
        let mut any = false;
        for word in args {
            if word.value.known().is_some_and(|t| t.starts_with('-') && t.len() > 1) {
                continue;
            }
            any = true;
            if word.value.known().as_deref() == Some("-") {
                let text = self.input_text(world, at);
                out.append(&text);
                continue;
            }
            match self.file_content(world, &word.value) {
                Some(content) => out.append(&content),
                None => {
                    let name = format!("contents of {}", super::flow::short(&word.value.display()));
                    let mut from = word.value.depends_on();
                    from.insert(name.as_str().into());
                    let text = self.unknown_value(Why::File, name, at, from);
                    out.append(&text);
                }
            }
        }
        if any { out } else { self.input_text(world, at) }
    }

    /// Files that the script wrote move with `mv`, `cp` and `rm`.
    fn move_files(&mut self, world: &mut World, base: &str, args: &[Word], at: Span) {
        let words: Vec<&Word> = args
            .iter()
            .filter(|w| !w.value.known().is_some_and(|t| t.starts_with('-') && t.len() > 1))
            .collect();
        let keys: Vec<Arc<str>> = words.iter().map(|w| paths::key(&world.cwd, &w.value)).collect();
        match base {
            "rm" => {
                for key in &keys {
                    let inside = format!("{key}/");
                    let gone: Vec<Arc<str>> = world
                        .files
                        .iter()
                        .map(|(k, _)| k.clone())
                        .filter(|k| k == key || k.starts_with(&inside))
                        .collect();
                    for key in gone {
                        world.files.remove(&key);
                    }
                }
            }
            "touch" => {
                for key in keys {
                    if world.files.get(&key).is_none() {
                        self.write_file(world, key, Value::empty(), at);
                    }
                }
            }
            _ => {
                let [sources @ .., target] = keys.as_slice() else {
                    return;
                };
                let target_word = words[words.len() - 1];
                for (source, word) in sources.iter().zip(&words) {
                    let content = match self.file_content(world, &word.value) {
                        Some(content) => content,
                        None => {
                            let name = format!("contents of {}", super::flow::short(&word.value.display()));
                            let mut from = word.value.depends_on();
                            from.insert(name.as_str().into());
                            self.unknown_value(Why::File, name, at, from)
                        }
                    };
                    let directory = sources.len() > 1 || target_word.value.display().ends_with('/');
                    let place: Arc<str> = if directory {
                        format!("{target}/{}", paths::basename(source, "")).into()
                    } else {
                        target.clone()
                    };
                    if base == "mv" {
                        world.files.remove(source);
                    }
                    self.write_file(world, place, content, at);
                }
            }
        }
    }
}

/// Whether a program of these only turns text into text.
fn filters(base: &str) -> bool {
    !matches!(
        base,
        "cat" | "tee" | "touch" | "rm" | "mv" | "cp" | "ln" | "env" | "printenv"
    ) && computes(base)
}

/// Whether the output of a program is computed when what it is given is known.
fn computes(base: &str) -> bool {
    matches!(
        base,
        "basename"
            | "dirname"
            | "realpath"
            | "readlink"
            | "seq"
            | "expr"
            | "cat"
            | "tee"
            | "touch"
            | "rm"
            | "mv"
            | "cp"
            | "ln"
            | "env"
            | "printenv"
            | "sed"
            | "awk"
            | "gawk"
            | "mawk"
            | "grep"
            | "egrep"
            | "fgrep"
            | "tr"
            | "cut"
            | "head"
            | "tail"
            | "sort"
            | "uniq"
            | "wc"
            | "rev"
            | "tac"
            | "paste"
            | "xargs"
            | "bc"
    )
}

fn is_shell(base: &str) -> bool {
    matches!(base, "bash" | "sh" | "dash" | "zsh" | "ksh")
}
