//! Builtins of the shell that change a world or decide where it goes on.

use std::sync::Arc;

use super::simple::Invocation;
use super::{Evaluator, paths};
use crate::arith::Num;
use crate::output::{CommandKind, Note, Word};
use crate::value::{Span, Value, Why};
use crate::world::{Flow, FrameKind, Sink, Source, Status, Var, VarValue, World};

impl Evaluator<'_> {
    /// Run a builtin; gives the world back when the name is none.
    pub(super) fn builtin(&mut self, name: &str, mut world: World, call: &Invocation<'_>) -> Result<Vec<World>, World> {
        let at = call.at;
        let args = &call.argv[1..];
        if super::laned::looks_at_text(name) && args.iter().any(|w| w.value.is_laned()) {
            self.lanes.void();
        }
        if matches!(name, "echo" | "printf" | "cat" | "exec") && matches!(world.out, Sink::File(_)) && name != "cat" {
            self.record_invocation(&world, call, CommandKind::Builtin);
        }
        match name {
            ":" | "true" => world.succeed(true),
            "false" => world.succeed(false),
            "echo" => {
                self.echo(&mut world, args, at);
                world.succeed(true);
            }
            "printf" => self.printf_builtin(&mut world, args, at),
            "test" => world.status = self.test_builtin(&mut world, args, at),
            "[" => {
                let inner = match args.split_last() {
                    Some((last, inner)) if last.value.known().as_deref() == Some("]") => inner,
                    _ => args,
                };
                world.status = self.test_builtin(&mut world, inner, at);
            }
            "cd" | "pushd" => self.change_directory(&mut world, name, args, at),
            "popd" => {
                let mut dirs = (*world.dirs).clone();
                if let Some(dir) = dirs.pop() {
                    world.cwd = dir;
                }
                world.dirs = Arc::new(dirs);
                world.succeed(true);
            }
            "pwd" => {
                let mut text = world.cwd.clone();
                text.push_text("\n".into(), at);
                self.emit(&mut world, &text, at);
                world.succeed(true);
            }
            "export" | "declare" | "typeset" | "local" | "readonly" => self.declare(&mut world, name, call),
            "unset" => self.unset(&mut world, call),
            "shift" => self.shift(&mut world, args, at),
            "set" => self.set(&mut world, args),
            "eval" => {
                let text = self.words_as_text(args);
                return Ok(self.eval_text(world, &text, at));
            }
            "source" | "." => return Ok(self.source(world, call)),
            "exec" => return Ok(self.exec(world, call)),
            "exit" | "return" => {
                if let Some(word) = args.first() {
                    world.status = self.status_word(&word.value, at);
                }
                if name == "exit" {
                    return Ok(self.leave_script(world, at).into_iter().collect());
                }
                if world.frames.iter().any(|f| f.kind != FrameKind::Script) {
                    world.flow = Flow::Return;
                }
            }
            "break" | "continue" => {
                let count = args
                    .first()
                    .and_then(|w| w.value.known())
                    .and_then(|t| t.parse().ok())
                    .unwrap_or(1u32)
                    .max(1);
                world.succeed(true);
                world.flow = if name == "break" {
                    Flow::Break(count)
                } else {
                    Flow::Continue(count)
                };
            }
            "read" => self.read(&mut world, args, at),
            "mapfile" | "readarray" => self.mapfile(&mut world, args, at),
            "trap" => self.trap(&mut world, args),
            "let" => {
                world.succeed(true);
                for word in args {
                    world.status = match self.arith(&mut world, &word.value, at) {
                        Num::Known(n) => Status::Known(i32::from(n == 0)),
                        Num::Each(numbers) => self.zero_in_lanes(&numbers),
                        Num::Unknown(from) => self.unknown_status(&format!("let {}", word.value.display()), at, from),
                    };
                }
            }
            "getopts" => {
                if let Some(name) = call.arg(2) {
                    let name: Arc<str> = (&*name).into();
                    for name in [name, "OPTARG".into()] {
                        let value =
                            self.unknown_value(Why::Unsupported, format!("${name} of getopts"), at, Default::default());
                        self.assign_scalar(&mut world, &name, value, at);
                    }
                }
                self.note(Note::Unsupported, at, "getopts is not evaluated".into());
                world.status = self.unknown_status("getopts finds an option", at, Default::default());
            }
            "type" | "hash" => self.find_command(&mut world, args, at),
            "command" | "builtin" => {
                let mut skip = 1;
                while let Some(option) = call.arg(skip).filter(|o| o.starts_with('-')) {
                    if matches!(&*option, "-v" | "-V") {
                        self.find_command(&mut world, &call.argv[skip + 1..], at);
                        return Ok(vec![world]);
                    }
                    skip += 1;
                }
                if call.argv.len() <= skip {
                    world.succeed(true);
                    return Ok(vec![world]);
                }
                let inner = inner_invocation(call, skip);
                let inner_name = inner.argv[0].value.known().map(|n| n.into_owned()).unwrap_or_default();
                return Ok(match self.builtin(&inner_name, world, &inner) {
                    Ok(after) => after,
                    Err(world) => self.program(world, &inner_name, inner),
                });
            }
            "wait" | "kill" | "jobs" | "fg" | "bg" => {
                let from = args.iter().flat_map(|w| w.value.depends_on()).collect();
                let shown = self.words_as_text(&call.argv).display();
                world.status = self.unknown_status(&format!("{shown} succeeds"), at, from);
            }
            "shopt" | "ulimit" | "umask" | "alias" | "unalias" | "disown" | "enable" | "history" | "complete"
            | "times" | "bind" => {
                if name == "ulimit" || name == "umask" {
                    let text = self.unknown_value(Why::Host, format!("output of {name}"), at, Default::default());
                    self.emit(&mut world, &text, at);
                }
                world.succeed(true);
            }
            _ => return Err(world),
        }
        Ok(vec![world])
    }

    pub(super) fn words_as_text(&self, words: &[Word]) -> Value {
        let mut out = Value::empty();
        for (index, word) in words.iter().enumerate() {
            if index > 0 {
                out.push_text(" ".into(), word.span);
            }
            out.append(&word.value);
        }
        out
    }

    fn status_word(&self, value: &Value, at: Span) -> Status {
        match value.known() {
            Some(text) => Status::Known(text.trim().parse::<i64>().map_or(2, |n| (n & 255) as i32)),
            None => self.unknown_status(&format!("{} is zero", value.display()), at, value.depends_on()),
        }
    }

    fn printf_builtin(&mut self, world: &mut World, args: &[Word], at: Span) {
        let mut args = args;
        let mut variable = None;
        if let [first, name, rest @ ..] = args
            && first.value.known().as_deref() == Some("-v")
        {
            variable = name.value.known().map(|n| n.into_owned());
            args = rest;
        }
        if let [first, rest @ ..] = args
            && first.value.known().as_deref() == Some("--")
        {
            args = rest;
        }
        world.succeed(!args.is_empty());
        let [format, rest @ ..] = args else { return };
        if variable.is_none() && world.out == Sink::Drop {
            return;
        }
        let text = self.printf(&format.value, rest, at);
        match variable {
            Some(name) => self.assign_scalar(world, &name.into(), text, at),
            None => self.emit(world, &text, at),
        }
    }

    /// `cd`: taken to succeed.
    fn change_directory(&mut self, world: &mut World, name: &str, args: &[Word], at: Span) {
        let target = args.iter().find(|w| {
            let text = w.value.known();
            !text
                .as_deref()
                .is_some_and(|t| t == "--" || (t.starts_with('-') && t.len() > 1))
        });
        if name == "pushd" {
            let mut dirs = (*world.dirs).clone();
            if dirs.len() < 256 {
                dirs.push(world.cwd.clone());
            }
            world.dirs = Arc::new(dirs);
        }
        let old = world.cwd.clone();
        let path = match target {
            Some(word) if word.value.known().as_deref() == Some("-") => {
                self.lookup(world, "OLDPWD", at).unwrap_or_else(|| world.cwd.clone())
            }
            Some(word) => word.value.clone(),
            None if name == "cd" => match self.lookup(world, "HOME", at) {
                Some(home) => home,
                None => self.unknown_value(Why::Host, "$HOME", at, ["HOME".into()].into()),
            },
            None => world.cwd.clone(),
        };
        world.cwd = if let (Some(_), Some(_)) = (path.known(), world.cwd.known()) {
            Value::text(
                paths::key(&world.cwd, &path),
                path.pieces().first().map_or(at, |p| p.at),
            )
        } else {
            let absolute = match path.pieces().first().map(|p| &p.kind) {
                Some(crate::value::PieceKind::Text(text)) => text.starts_with('/'),
                Some(crate::value::PieceKind::Unknown(_)) => true,
                None => false,
            };
            if absolute {
                path
            } else {
                let mut joined = world.cwd.clone();
                joined.push_text("/".into(), at);
                joined.append(&path);
                joined
            }
        };
        let exported = world.vars.get("OLDPWD").is_some_and(|v| v.exported);
        world.vars.insert("OLDPWD".into(), Arc::new(Var::scalar(old, exported)));
        world.vars.remove("PWD");
        world.succeed(true);
    }

    fn shift(&mut self, world: &mut World, args: &[Word], at: Span) {
        let words = world.positional();
        let count = match args.first() {
            None => Some(1),
            Some(word) => word.value.known().and_then(|t| t.trim().parse::<usize>().ok()),
        };
        let uncertain = words.iter().take(count.unwrap_or(usize::MAX)).any(|w| w.splits);
        match count {
            Some(count) if !uncertain => {
                if count > words.len() {
                    world.succeed(false);
                    return;
                }
                world.set_positional(words[count..].to_vec());
            }
            _ => {
                let from = words.iter().flat_map(|w| w.value.depends_on()).collect();
                let value = self.unknown_value(Why::Input, "$@ after an unknown shift", at, from);
                world.set_positional(vec![Word {
                    value,
                    span: at,
                    splits: true,
                    globs: false,
                }]);
            }
        }
        world.succeed(true);
    }

    fn set(&mut self, world: &mut World, args: &[Word]) {
        let mut rest = args;
        let mut replaces = false;
        while let [first, tail @ ..] = rest {
            let Some(text) = first.value.known() else {
                replaces = true;
                break;
            };
            if text == "--" {
                rest = tail;
                replaces = true;
                break;
            }
            let on = text.starts_with('-');
            if text.len() < 2 || !(on || text.starts_with('+')) {
                replaces = true;
                break;
            }
            rest = tail;
            for letter in text.chars().skip(1) {
                match letter {
                    'e' => world.errexit = on,
                    'o' => {
                        if let [name, tail @ ..] = rest {
                            match name.value.known().as_deref() {
                                Some("errexit") => world.errexit = on,
                                Some("pipefail") => world.pipefail = on,
                                _ => {}
                            }
                            rest = tail;
                        }
                    }
                    _ => {}
                }
            }
        }
        if replaces {
            world.set_positional(rest.to_vec());
        }
        world.succeed(true);
    }

    fn exec(&mut self, mut world: World, call: &Invocation<'_>) -> Vec<World> {
        let mut skip = 1;
        while let Some(option) = call.arg(skip).filter(|o| o.starts_with('-') && o.len() > 1) {
            skip += if &*option == "-a" { 2 } else { 1 };
        }
        if call.argv.len() <= skip {
            world.succeed(true);
            return vec![world];
        }
        let inner = inner_invocation(call, skip);
        let at = call.at;
        let name = inner.argv[0].value.known().map(|n| n.into_owned()).unwrap_or_default();
        self.no_errexit += 1;
        let after = self.program(world, &name, inner);
        self.no_errexit -= 1;
        after.into_iter().filter_map(|w| self.leave_script(w, at)).collect()
    }

    fn find_command(&mut self, world: &mut World, args: &[Word], at: Span) {
        let Some(word) = args
            .iter()
            .find(|w| !w.value.known().is_some_and(|t| t.starts_with('-')))
        else {
            world.succeed(false);
            return;
        };
        let shown = word.value.display();
        if world.functions.get(&shown).is_some() || BUILTINS.contains(&shown.as_str()) {
            self.emit(world, &Value::text(format!("{shown}\n"), at), at);
            world.succeed(true);
            return;
        }
        let path = self.fresh(
            Why::Host,
            format!("$(command -v {shown})"),
            at,
            Default::default(),
            crate::value::Shape::Any,
        );
        self.emit(world, &Value::unknown(path, at), at);
        let name: Arc<str> = format!("command {shown}").into();
        world.status = self.unknown_status(&format!("command {shown} is installed"), at, [name].into());
    }

    fn trap(&mut self, world: &mut World, args: &[Word]) {
        world.succeed(true);
        let mut args = args;
        if let [first, rest @ ..] = args
            && first.value.known().as_deref() == Some("--")
        {
            args = rest;
        }
        let [action, signals @ ..] = args else { return };
        let exit = signals
            .iter()
            .any(|w| matches!(w.value.known().as_deref(), Some("EXIT" | "0")));
        if exit {
            let resets = matches!(action.value.known().as_deref(), Some("-" | ""));
            world.exit_trap = (!resets).then(|| action.value.clone());
        }
    }

    /// The next line of the input: Some(None) at its end, None when it is not known.
    fn next_line(&mut self, world: &mut World) -> Option<Option<Value>> {
        let Source::Lines(lines, taken) = world.input.clone() else {
            return None;
        };
        let Some(line) = lines.get(taken) else {
            return Some(None);
        };
        self.lanes.void_for_several(line);
        // An output may hold any number of lines.
        let many = line.unknowns().any(|u| {
            u.shape != crate::value::Shape::Number
                && u.each.is_none()
                && !matches!(u.why, Why::Environment | Why::Host | Why::Default | Why::Process)
        });
        if many {
            world.input = Source::Unknown;
            return None;
        }
        world.input = Source::Lines(lines.clone(), taken + 1);
        Some(Some(line.clone()))
    }

    fn read(&mut self, world: &mut World, args: &[Word], at: Span) {
        let mut names: Vec<Arc<str>> = Vec::new();
        let mut array: Option<Arc<str>> = None;
        let (mut whole, mut other) = (false, false);
        let mut index = 0;
        while let Some(word) = args.get(index) {
            index += 1;
            let Some(text) = word.value.known() else { continue };
            match text.strip_prefix('-') {
                Some(flags) if !flags.is_empty() => {
                    let last = flags.chars().last().unwrap_or(' ');
                    if "adinNptu".contains(last) {
                        let value = args.get(index).and_then(|w| w.value.known()).map(|v| v.into_owned());
                        index += 1;
                        match last {
                            'a' => array = value.map(Into::into),
                            'd' => whole = value.as_deref() != Some("\n"),
                            'u' | 't' | 'n' | 'N' => other = true,
                            _ => {}
                        }
                    }
                }
                _ => names.push((&*text).into()),
            }
        }
        let line = if other {
            None
        } else if whole {
            // Up to a delimiter that this reader does not look for: all of it, and the end is reached.
            self.read_all(world)
                .map(|text| Some(self.settled(text).trim_newlines()))
        } else {
            self.next_line(world)
        };
        let line = match line {
            None => {
                let value = self.unknown_value(Why::Input, "input of read", at, Default::default());
                if let Some(array) = array {
                    let word = Word {
                        value,
                        span: at,
                        splits: true,
                        globs: false,
                    };
                    let var = Var {
                        value: VarValue::Indexed(vec![(0, word)]),
                        exported: false,
                        readonly: false,
                        integer: false,
                    };
                    self.store(world, &array, var, at);
                } else {
                    for name in &names {
                        let value = self.unknown_value(Why::Input, format!("${name} of read"), at, Default::default());
                        self.assign_scalar(world, name, value, at);
                    }
                }
                world.status = self.unknown_status("read gets a line", at, Default::default());
                return;
            }
            Some(line) => line,
        };
        world.succeed(line.is_some() && !whole);
        let line = line.unwrap_or_default();
        if names.is_empty() && array.is_none() {
            self.assign_scalar(world, &"REPLY".into(), line, at);
            return;
        }
        let mut fields = self.split_value(world, &line, at);
        if let Some(array) = array {
            let items = fields.into_iter().enumerate().map(|(i, w)| (i as i64, w)).collect();
            let var = Var {
                value: VarValue::Indexed(items),
                exported: false,
                readonly: false,
                integer: false,
            };
            self.store(world, &array, var, at);
            return;
        }
        let last = names.len() - 1;
        if fields.len() > names.len() {
            // The last name takes the rest as it stands.
            let separators = self.separators(world);
            let rest = match line.known() {
                Some(text) => Value::text(rest_of(&text, last, &separators), at),
                None => {
                    self.lanes.void_for(&line);
                    let tail = fields.split_off(last);
                    self.words_as_text(&tail)
                }
            };
            fields.truncate(last);
            fields.push(Word {
                value: rest,
                span: at,
                ..Word::default()
            });
        }
        let mut fields = fields.into_iter();
        for name in &names {
            let value = fields.next().map(|w| w.value).unwrap_or_default();
            self.assign_scalar(world, name, value, at);
        }
    }

    fn mapfile(&mut self, world: &mut World, args: &[Word], at: Span) {
        let mut name: Arc<str> = "MAPFILE".into();
        let mut index = 0;
        let mut delimited = false;
        while let Some(text) = args.get(index).and_then(|w| w.value.known()) {
            index += 1;
            match text.strip_prefix('-') {
                Some("t") => {}
                Some(flag) => {
                    delimited |= flag.starts_with('d');
                    index += usize::from(flag.len() == 1);
                }
                None => name = (&*text).into(),
            }
        }
        let mut items = Vec::new();
        let mut open = delimited || matches!(world.input, Source::Unknown);
        while !open && items.len() < self.limits.words {
            match self.next_line(world) {
                Some(Some(line)) => items.push((
                    items.len() as i64,
                    Word {
                        value: line,
                        span: at,
                        ..Word::default()
                    },
                )),
                Some(None) => break,
                None => open = true,
            }
        }
        if open {
            let value = self.unknown_value(Why::Input, format!("${{{name}[@]}} of mapfile"), at, Default::default());
            items = vec![(
                0,
                Word {
                    value,
                    span: at,
                    splits: true,
                    globs: false,
                },
            )];
        }
        let var = Var {
            value: VarValue::Indexed(items),
            exported: false,
            readonly: false,
            integer: false,
        };
        self.store(world, &name, var, at);
        world.succeed(true);
    }
}

/// Names the shell runs itself: what `command -v` and `type` say of them, and that no program of that name is started.
pub(super) const BUILTINS: [&str; 30] = [
    ":", ".", "[", "alias", "break", "cd", "command", "continue", "declare", "echo", "eval", "exec", "exit", "export",
    "false", "local", "printf", "pwd", "read", "readonly", "return", "set", "shift", "source", "test", "trap", "true",
    "type", "unset", "wait",
];

/// The command inside `command`, `builtin` or `exec`.
pub(super) fn inner_invocation<'s>(call: &Invocation<'s>, skip: usize) -> Invocation<'s> {
    Invocation {
        argv: Arc::new(call.argv[skip..].to_vec()),
        assignments: call.assignments.clone(),
        redirects: call.redirects.clone(),
        simple: call.simple,
        at: call.at,
        end_line: call.end_line,
    }
}

/// What is left of a line after a number of fields.
fn rest_of(text: &str, fields: usize, separators: &str) -> String {
    let blank = |c: char| c.is_whitespace() && separators.contains(c);
    let mut rest = text.trim_matches(blank);
    for _ in 0..fields {
        let end = rest.find(|c| separators.contains(c)).unwrap_or(rest.len());
        rest = rest[end..].trim_start_matches(blank);
        if let Some(c) = rest.chars().next()
            && separators.contains(c)
        {
            rest = rest[c.len_utf8()..].trim_start_matches(blank);
        }
    }
    rest.to_string()
}
