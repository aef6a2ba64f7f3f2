//! Commands that start other commands (`env`, `timeout`, `mpirun`, …): where the started command begins.

use std::sync::Arc;

use crate::output::{Command, Word};

/// A command without the wrappers in front of it.
#[derive(Debug, Clone)]
pub struct Unwrapped<'c> {
    /// The words of the started command.
    pub argv: &'c [Word],
    /// Names of the wrappers, outermost first.
    pub wrappers: Vec<String>,
    /// Variables the wrappers set for it (`env A=b`, `mpirun -x A=b`), in order.
    pub assignments: Vec<(Arc<str>, Word)>,
    /// Variables the wrappers take away (`env -u A`); `*` for all (`env -i`).
    pub removed: Vec<String>,
    /// True when a wrapper has an option that is not known here: where its command begins is then a guess, and
    /// `argv` begins at the last place that is certain.
    pub uncertain: bool,
}

/// How a wrapper's options are read.
struct Wrapper {
    name: &'static str,
    /// Options that take a value as their next word.
    with_value: &'static [&'static str],
    /// Options that stand alone.
    alone: &'static [&'static str],
    /// Plain words in front of the command (`timeout 10`).
    operands: usize,
}

const WRAPPERS: [Wrapper; 20] = [
    Wrapper {
        name: "env",
        with_value: &["-u", "--unset", "-C", "--chdir"],
        alone: &["-i", "-", "--ignore-environment", "-0", "-v"],
        operands: 0,
    },
    Wrapper {
        name: "nohup",
        with_value: &[],
        alone: &[],
        operands: 0,
    },
    Wrapper {
        name: "exec",
        with_value: &["-a"],
        alone: &["-c", "-l"],
        operands: 0,
    },
    Wrapper {
        name: "command",
        with_value: &[],
        alone: &["-p"],
        operands: 0,
    },
    Wrapper {
        name: "timeout",
        with_value: &["-s", "--signal", "-k", "--kill-after"],
        alone: &["--foreground", "--preserve-status", "-v", "--verbose"],
        operands: 1,
    },
    Wrapper {
        name: "numactl",
        with_value: &[
            "-m",
            "--membind",
            "-N",
            "--cpunodebind",
            "-C",
            "--physcpubind",
            "-i",
            "--interleave",
            "-p",
            "--preferred",
        ],
        alone: &["-l", "--localalloc", "-b", "--balancing"],
        operands: 0,
    },
    Wrapper {
        name: "sudo",
        with_value: &["-u", "--user", "-g", "--group", "-h", "-p", "-C", "-D"],
        alone: &["-E", "--preserve-env", "-n", "-H", "-S", "-b", "-i", "-k"],
        operands: 0,
    },
    Wrapper {
        name: "time",
        with_value: &["-f", "-o"],
        alone: &["-p", "-v", "-a"],
        operands: 0,
    },
    Wrapper {
        name: "stdbuf",
        with_value: &["-i", "-o", "-e"],
        alone: &[],
        operands: 0,
    },
    Wrapper {
        name: "nice",
        with_value: &["-n", "--adjustment"],
        alone: &[],
        operands: 0,
    },
    Wrapper {
        name: "ionice",
        with_value: &["-c", "-n", "--class", "--classdata"],
        alone: &["-t"],
        operands: 0,
    },
    Wrapper {
        name: "taskset",
        with_value: &[],
        alone: &["-c", "--cpu-list", "-a"],
        operands: 1,
    },
    Wrapper {
        name: "chrt",
        with_value: &["-T", "-P", "-D"],
        alone: &["-f", "-r", "-o", "-b", "-i", "-R"],
        operands: 1,
    },
    Wrapper {
        name: "setsid",
        with_value: &[],
        alone: &["-c", "-f", "-w", "--wait", "--fork", "--ctty"],
        operands: 0,
    },
    Wrapper {
        name: "unbuffer",
        with_value: &[],
        alone: &["-p"],
        operands: 0,
    },
    Wrapper {
        name: "catchsegv",
        with_value: &[],
        alone: &[],
        operands: 0,
    },
    Wrapper {
        name: "prlimit",
        with_value: &[],
        alone: &[],
        operands: 0,
    },
    Wrapper {
        name: "mpirun",
        with_value: MPI_VALUE,
        alone: MPI_ALONE,
        operands: 0,
    },
    Wrapper {
        name: "mpiexec",
        with_value: MPI_VALUE,
        alone: MPI_ALONE,
        operands: 0,
    },
    Wrapper {
        name: "trtllm-llmapi-launch",
        with_value: &[],
        alone: &[],
        operands: 0,
    },
];

const MPI_VALUE: &[&str] = &[
    "-n",
    "-np",
    "--np",
    "-c",
    "-H",
    "--host",
    "-hosts",
    "--hostfile",
    "-machinefile",
    "-f",
    "-N",
    "--npernode",
    "-ppn",
    "-x",
    "-wdir",
    "--wdir",
    "--map-by",
    "--bind-to",
    "--rank-by",
    "--output-filename",
    "--report-uri",
    "--tag",
];

const MPI_ALONE: &[&str] = &[
    "--oversubscribe",
    "--allow-run-as-root",
    "--tag-output",
    "--report-bindings",
    "--bind-to-none",
    "-v",
    "--verbose",
    "-q",
    "--quiet",
    "--display-map",
    "--nooversubscribe",
    "--use-hwthread-cpus",
];

/// Options of `mpirun` that take two words.
const MPI_TWO: &[&str] = &["-mca", "--mca", "-gmca", "--gmca", "-genv", "-env"];

/// The command that a command starts, through any wrappers.
pub fn unwrap_wrappers(command: &Command) -> Unwrapped<'_> {
    unwrap_words(&command.argv)
}

/// Whether a program starts what its words name.
pub(crate) fn is_wrapper(name: &str) -> bool {
    wrapper(name).is_some()
}

fn wrapper(name: &str) -> Option<&'static Wrapper> {
    WRAPPERS.iter().find(|wrapper| wrapper.name == name)
}

pub(crate) fn unwrap_words(argv: &[Word]) -> Unwrapped<'_> {
    let mut out = Unwrapped {
        argv,
        wrappers: Vec::new(),
        assignments: Vec::new(),
        removed: Vec::new(),
        uncertain: false,
    };
    while let Some(first) = out.argv.first().and_then(|w| w.value.known()) {
        let name = first.rsplit('/').next().unwrap_or(&first).to_string();
        let Some(wrapper) = wrapper(&name) else {
            return out;
        };
        let Some(start) = options(wrapper, &mut out) else {
            out.uncertain = true;
            return out;
        };
        if start >= out.argv.len() {
            return out;
        }
        out.wrappers.push(name);
        out.argv = &out.argv[start..];
    }
    out
}

/// Index of the word after the wrapper's options; None when an option is not known.
fn options(wrapper: &Wrapper, out: &mut Unwrapped<'_>) -> Option<usize> {
    let argv = out.argv;
    let mut index = 1;
    let mut operands = wrapper.operands;
    while let Some(word) = argv.get(index) {
        let Some(text) = word.value.known() else {
            // A value that is not known, where an operand stands; or the command itself.
            if wrapper.name == "env" && assignment(word, out) {
                index += 1;
                continue;
            }
            if operands == 0 {
                return Some(index);
            }
            operands -= 1;
            index += 1;
            continue;
        };
        if text == "--" {
            return Some(index + 1 + operands);
        }
        if !text.starts_with('-') || (text == "-" && wrapper.name != "env") {
            if wrapper.name == "env" && assignment(word, out) {
                index += 1;
                continue;
            }
            if operands == 0 {
                return Some(index);
            }
            operands -= 1;
            index += 1;
            continue;
        }
        let mpi = wrapper.name.starts_with("mpi");
        if mpi && MPI_TWO.contains(&&*text) {
            index += 3;
        } else if wrapper.with_value.contains(&&*text) {
            let value = argv.get(index + 1);
            match (wrapper.name, &*text, value) {
                ("env", "-u" | "--unset", Some(value)) => out.removed.push(value.value.display()),
                (_, "-x", Some(value)) if mpi => {
                    assignment(value, out);
                }
                _ => {}
            }
            index += 2;
        } else if wrapper.alone.contains(&&*text) {
            if wrapper.name == "env" && matches!(&*text, "-i" | "-" | "--ignore-environment") {
                out.removed.push("*".into());
            }
            index += 1;
        } else if attached(wrapper, &text) {
            index += 1;
        } else {
            return None;
        }
    }
    Some(index)
}

/// `--signal=KILL`, `-oL`, `-n10`, `-10`.
fn attached(wrapper: &Wrapper, text: &str) -> bool {
    if let Some((name, _)) = text.split_once('=') {
        return wrapper.with_value.contains(&name) || wrapper.alone.contains(&name) || wrapper.name == "prlimit";
    }
    let short = wrapper.with_value.iter().any(|o| o.len() == 2 && text.starts_with(o));
    short || (wrapper.name == "nice" && text[1..].bytes().all(|b| b.is_ascii_digit()))
}

/// Take `NAME=value`.
fn assignment(word: &Word, out: &mut Unwrapped<'_>) -> bool {
    let Some(crate::value::PieceKind::Text(first)) = word.value.pieces().first().map(|p| &p.kind) else {
        return false;
    };
    let Some((name, head)) = first.split_once('=') else {
        return false;
    };
    if !crate::eval::is_name(name) {
        return false;
    }
    let mut value = crate::value::Value::text(head, word.span);
    for piece in &word.value.pieces()[1..] {
        value.push_piece(piece);
    }
    out.assignments.push((name.into(), Word { value, ..word.clone() }));
    true
}
