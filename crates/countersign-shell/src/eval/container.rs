//! `docker run … image command`: the command starts in the container, with what the options give it.
//!
//! As for the script itself, what the image sets is not looked at: variables that are not given are not set, unless a file
//! of them is not known. Files of the tree are taken to be where they are outside: which host folder is mounted is known on
//! the host only.

use std::sync::Arc;

use super::Evaluator;
use super::simple::{Invocation, child_process};
use crate::output::Word;
use crate::pmap::PMap;
use crate::value::{PieceKind, Shape, Unknown, Value, Why};
use crate::world::{Var, World};

const PROGRAMS: [&str; 2] = ["docker", "podman"];

/// Options of `run` and `exec` that take a value.
const WITH_VALUE: &[&str] = &[
    "-a",
    "--add-host",
    "--annotation",
    "--attach",
    "--blkio-weight",
    "-c",
    "--cap-add",
    "--cap-drop",
    "--cgroup-parent",
    "--cgroupns",
    "--cidfile",
    "--cpu-shares",
    "--cpus",
    "--cpuset-cpus",
    "--cpuset-mems",
    "--detach-keys",
    "--device",
    "--dns",
    "-e",
    "--entrypoint",
    "--env",
    "--env-file",
    "--expose",
    "--gpus",
    "--group-add",
    "-h",
    "--health-cmd",
    "--hostname",
    "--ip",
    "--ipc",
    "-l",
    "--label",
    "--link",
    "--log-driver",
    "--log-opt",
    "-m",
    "--memory",
    "--memory-swap",
    "--mount",
    "--name",
    "--net",
    "--network",
    "--oom-score-adj",
    "-p",
    "--pid",
    "--pids-limit",
    "--platform",
    "--publish",
    "--pull",
    "--restart",
    "--runtime",
    "--security-opt",
    "--shm-size",
    "--stop-signal",
    "--stop-timeout",
    "--sysctl",
    "--tmpfs",
    "-u",
    "--ulimit",
    "--user",
    "--userns",
    "--uts",
    "-v",
    "--volume",
    "--volumes-from",
    "-w",
    "--workdir",
];

/// Options that stand alone.
const ALONE: &[&str] = &[
    "-P",
    "-d",
    "--detach",
    "--help",
    "-i",
    "--init",
    "--interactive",
    "--no-healthcheck",
    "--privileged",
    "--publish-all",
    "-q",
    "--quiet",
    "--read-only",
    "--rm",
    "-t",
    "--tty",
];

/// A command that a container starts.
pub(super) struct Started {
    /// Its words.
    argv: Vec<Word>,
    /// Variables given to it; without a value, the one outside.
    environment: Vec<(Arc<str>, Option<Value>)>,
    /// Files with more of them.
    files: Vec<Value>,
    /// Where it starts; else where the image says.
    directory: Option<Value>,
}

/// The command of a container, where all options before it are known ones.
pub(super) fn started(argv: &[Word]) -> Option<Started> {
    let known = |index: usize| argv.get(index).and_then(|w| w.value.known());
    let program = known(0)?;
    if !PROGRAMS.contains(&program.rsplit('/').next()?) || !matches!(known(1).as_deref(), Some("run" | "exec")) {
        return None;
    }
    let (mut environment, mut files, mut directory, mut entry) = (Vec::new(), Vec::new(), None, None);
    let mut index = 2;
    while let Some(word) = argv.get(index) {
        let Some(PieceKind::Text(start)) = word.value.pieces().first().map(|p| &p.kind) else {
            break;
        };
        if !start.starts_with('-') {
            break;
        }
        let (name, attached) = match start.split_once('=') {
            Some((name, head)) if start.starts_with("--") => (name, Some(after(&word.value, head))),
            _ => (&**start, None),
        };
        index += 1;
        if attached.is_none() && alone(name) {
            continue;
        }
        if !WITH_VALUE.contains(&name) && !ALONE.contains(&name) {
            return None;
        }
        let value = match attached {
            Some(value) => value,
            None => {
                index += 1;
                argv.get(index - 1)?.value.clone()
            }
        };
        match name {
            "-e" | "--env" => environment.push(variable(&value)?),
            "--env-file" => files.push(value),
            "-w" | "--workdir" => directory = Some(value),
            "--entrypoint" if !value.is_empty() => entry = Some(Word { value, ..word.clone() }),
            _ => {}
        }
    }
    // The image, then the command.
    let rest = argv.get(index + 1..).unwrap_or_default();
    let argv: Vec<Word> = entry.into_iter().chain(rest.iter().cloned()).collect();
    (!argv.is_empty()).then_some(Started {
        argv,
        environment,
        files,
        directory,
    })
}

/// `--rm`, `-it`.
fn alone(name: &str) -> bool {
    let letters = name.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    ALONE.contains(&name)
        || letters.is_some_and(|l| l.len() > 1 && l.chars().all(|c| ALONE.contains(&format!("-{c}").as_str())))
}

/// What follows the `=` of a word, of which the first piece goes on with `head`.
fn after(word: &Value, head: &str) -> Value {
    let at = word.pieces().first().map(|p| p.at).unwrap_or_default();
    let mut value = Value::text(head, at);
    for piece in &word.pieces()[1..] {
        value.push_piece(piece);
    }
    value
}

/// `NAME=value`, or `NAME` alone.
fn variable(word: &Value) -> Option<(Arc<str>, Option<Value>)> {
    let Some(PieceKind::Text(start)) = word.pieces().first().map(|p| &p.kind) else {
        return None;
    };
    match start.split_once('=') {
        Some((name, head)) => Some((name.into(), Some(after(word, head)))),
        None => Some((word.known()?.into(), None)),
    }
}

impl Evaluator<'_> {
    /// Run what a container starts.
    pub(super) fn in_container(&mut self, world: World, started: &Started, call: &Invocation<'_>) -> Vec<World> {
        let at = call.at;
        let frames = world.frames.clone();
        self.subshell(vec![world], at, |e, worlds| {
            let mut after = Vec::new();
            for mut world in worlds {
                let (vars, foreign) = e.given(&world, started, call);
                child_process(&mut world);
                world.vars = vars;
                world.foreign = foreign;
                world.cwd = started.directory.clone().unwrap_or_else(|| Value::text("/", at));
                let inner = Invocation {
                    argv: Arc::new(started.argv.clone()),
                    assignments: Vec::new(),
                    redirects: Vec::new(),
                    simple: call.simple,
                    at,
                    end_line: call.end_line,
                };
                let (stage, suppressed) = (e.pipe_stage.take(), std::mem::take(&mut e.no_errexit));
                after.extend(e.invoke(world, inner));
                e.pipe_stage = stage;
                e.no_errexit = suppressed;
            }
            for world in &mut after {
                world.frames.clone_from(&frames);
            }
            after
        })
    }

    /// The variables of a container, and what may set more of them.
    fn given(
        &mut self,
        world: &World,
        started: &Started,
        call: &Invocation<'_>,
    ) -> (PMap<Arc<Var>>, Option<Arc<Unknown>>) {
        let mut all: Vec<(Arc<str>, Option<Value>)> = Vec::new();
        let mut foreign = None;
        for path in &started.files {
            let lines = self.file_content(world, path).map(|content| content.lines());
            let mut open = lines.is_none();
            for line in lines.unwrap_or_default() {
                if line.is_empty() || line.known().is_some_and(|text| text.starts_with('#')) {
                    continue;
                }
                match variable(&line) {
                    Some(given) => all.push(given),
                    None => open = true,
                }
            }
            if open {
                let name = super::flow::short(&path.display());
                foreign = Some(self.fresh(Why::Foreign, name, call.at, Default::default(), Shape::Any));
            }
        }
        // What is said in words stands over what the files say.
        all.extend(started.environment.iter().cloned());
        let mut vars = PMap::default();
        for (name, value) in all {
            let var = match value {
                Some(value) => Some(Arc::new(Var::scalar(value, true))),
                None => world.vars.get(&name).filter(|v| v.exported).cloned(),
            };
            if let Some(var) = var {
                vars.insert(name, var);
            }
        }
        (vars, foreign)
    }
}
