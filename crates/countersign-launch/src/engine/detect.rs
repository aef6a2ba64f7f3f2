//! Finds the server inside a command: past wrappers such as `mpirun -n 1`, `env A=b`, `docker run image`, `exec`.

use super::{Engine, Role};
use crate::value::{Arg, Text};

/// A server found in a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The engine.
    pub engine: Engine,
    /// The role that the program name alone tells.
    pub role: Role,
    /// How it was spelled: `vllm serve`, `sglang.launch_server`.
    pub spelled: String,
    /// Index of the first argument after the program words.
    pub args: usize,
    /// Index of the first program word: everything before is the wrapper.
    pub start: usize,
    /// Image named by a container wrapper in front, if any.
    pub image: Option<Text>,
    /// Whether a positional word may name the model.
    pub positional_model: bool,
}

/// Commands whose words are data: a server named in their arguments is not started by them.
pub const SHELL_OPAQUE: &[&str] = &[
    "echo",
    "printf",
    "pip",
    "pip3",
    "grep",
    "egrep",
    "pgrep",
    "pkill",
    "killall",
    "which",
    "command",
    "type",
    "cat",
    "sed",
    "awk",
    "git",
    "curl",
    "wget",
    "hf",
    "huggingface-cli",
    "test",
    "[",
    "[[",
    "ls",
    "find",
    "mkdir",
    "rm",
    "cp",
    "mv",
    "export",
    "trap",
    "local",
    "declare",
    "readonly",
    "unset",
    "kill",
    "wait",
    "sleep",
    "ps",
    "tail",
    "head",
];

/// Python modules that are servers: module, engine, role, whether a positional word may name the model.
const MODULES: &[(&str, Engine, Role, bool)] = &[
    (
        "vllm.entrypoints.openai.api_server",
        Engine::Vllm,
        Role::Aggregated,
        false,
    ),
    ("vllm.entrypoints.api_server", Engine::Vllm, Role::Aggregated, false),
    ("sglang.launch_server", Engine::Sglang, Role::Aggregated, false),
    ("sglang_router.launch_router", Engine::Router, Role::Router, false),
    ("sglang_router.launch_server", Engine::Sglang, Role::Aggregated, false),
    (
        "tensorrt_llm.commands.serve",
        Engine::TensorrtLlm,
        Role::Aggregated,
        true,
    ),
    ("atom.entrypoints.openai_server", Engine::Atom, Role::Aggregated, false),
    ("dynamo.vllm", Engine::Vllm, Role::Aggregated, false),
    ("dynamo.sglang", Engine::Sglang, Role::Aggregated, false),
    ("dynamo.trtllm", Engine::TensorrtLlm, Role::Aggregated, false),
    ("dynamo.frontend", Engine::Router, Role::Frontend, false),
    ("dynamo.router", Engine::Router, Role::Router, false),
];

/// Whether a command in which this word stands, without its folder, may start a server: one without such a word starts none.
pub(crate) fn is_telling(base: &str) -> bool {
    matches!(
        base,
        "vllm"
            | "vllm-rs"
            | "sglang"
            | "trtllm-serve"
            | "vllm-router"
            | "sglang-router"
            | "atomesh"
            | "smg"
            | "-m"
            | "docker"
            | "podman"
            | "nerdctl"
    )
}

/// Finds the server that a command starts; `None` if it starts none.
pub fn detect(argv: &[Arg]) -> Option<Program> {
    let word = |i: usize| argv.get(i).and_then(|a| a.text.as_known()).unwrap_or("");
    let first = (0..argv.len()).find(|&i| !is_assignment(word(i)))?;
    if SHELL_OPAQUE.contains(&base(word(first))) {
        return None;
    }
    for i in first..argv.len() {
        let name = base(word(i));
        if !is_telling(name) {
            continue;
        }
        let next = word(i + 1);
        let (engine, role, words, positional) = match name {
            "vllm" | "vllm-rs" if next == "serve" => (Engine::Vllm, Role::Aggregated, 2, true),
            "sglang" if next == "serve" => (Engine::Sglang, Role::Aggregated, 2, true),
            "trtllm-serve" if next == "disaggregated" => (Engine::Router, Role::Router, 2, false),
            "trtllm-serve" if matches!(next, "serve" | "disaggregated_mpi_worker") => {
                (Engine::TensorrtLlm, Role::Aggregated, 2, true)
            }
            "trtllm-serve" => (Engine::TensorrtLlm, Role::Aggregated, 1, true),
            "vllm-router" | "sglang-router" | "atomesh" => (Engine::Router, Role::Router, 1, false),
            "smg" if next == "launch" => (Engine::Router, Role::Router, 2, false),
            "-m" => match MODULES.iter().find(|(module, ..)| *module == next) {
                Some((_, engine, role, positional)) => (*engine, *role, 2, *positional),
                None => continue,
            },
            _ => continue,
        };
        let spelled = if words == 2 {
            format!("{name} {next}")
        } else {
            name.to_owned()
        };
        let image = container_image(argv, i);
        return Some(Program {
            engine,
            role,
            spelled: spelled.trim_start_matches("-m ").to_owned(),
            args: i + words,
            start: i,
            image,
            positional_model: positional,
        });
    }
    container_entry(argv, first)
}

/// `docker run ... vllm/vllm-openai:tag MODEL --flag`: the image's entry point is the server.
fn container_entry(argv: &[Arg], first: usize) -> Option<Program> {
    let (image, at) = image_of(argv, first, argv.len())?;
    let name = image.known_prefix();
    let repository = name.split('@').next().unwrap_or(name);
    let repository = repository.rsplit_once(':').map_or(repository, |(r, _)| r).to_owned();
    let path = repository.rsplit('/').next().unwrap_or(&repository);
    path.starts_with("vllm-openai").then(|| Program {
        engine: Engine::Vllm,
        role: Role::Aggregated,
        spelled: repository.clone(),
        args: at + 1,
        start: at,
        image: Some(image),
        positional_model: true,
    })
}

fn container_image(argv: &[Arg], before: usize) -> Option<Text> {
    image_of(argv, 0, before).map(|(image, _)| image)
}

/// The image word of a container run: the first word that is neither an option nor an option's value.
fn image_of(argv: &[Arg], from: usize, to: usize) -> Option<(Text, usize)> {
    let word = |i: usize| argv.get(i).and_then(|a| a.text.as_known()).unwrap_or("");
    let run = (from..to).find(|&i| matches!(base(word(i)), "docker" | "podman" | "nerdctl") && word(i + 1) == "run")?;
    let mut i = run + 2;
    while i < to {
        let w = argv[i].text.known_prefix();
        if !w.starts_with('-') {
            if w.contains('/') || w.contains(':') {
                return Some((argv[i].text.clone(), i));
            }
            i += 1;
            continue;
        }
        let flag = w.split('=').next().unwrap_or(w);
        let alone = w.contains('=')
            || matches!(
                flag,
                "-d" | "-i"
                    | "-t"
                    | "-it"
                    | "-ti"
                    | "-itd"
                    | "-dit"
                    | "--rm"
                    | "--privileged"
                    | "--detach"
                    | "--init"
                    | "--tty"
                    | "--interactive"
            );
        i += if alone { 1 } else { 2 };
    }
    None
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a word in front of a command is an assignment.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Source;

    fn argv(line: &str) -> Vec<Arg> {
        line.split_whitespace()
            .map(|w| Arg::new(Text::known(w), Source::new("t", 1)))
            .collect()
    }

    #[test]
    fn servers_behind_wrappers() {
        let cases = [
            ("vllm serve M --x", Some((Engine::Vllm, "vllm serve"))),
            ("A=1 B=2 /usr/bin/vllm serve M", Some((Engine::Vllm, "vllm serve"))),
            (
                "python3 -u -m sglang.launch_server --model-path M",
                Some((Engine::Sglang, "sglang.launch_server")),
            ),
            (
                "mpirun -n 1 --oversubscribe trtllm-serve M --tp_size 8",
                Some((Engine::TensorrtLlm, "trtllm-serve")),
            ),
            (
                "nohup numactl --cpunodebind=0 python -m atom.entrypoints.openai_server",
                Some((Engine::Atom, "atom.entrypoints.openai_server")),
            ),
            (
                "python -m sglang_router.launch_router --policy x",
                Some((Engine::Router, "sglang_router.launch_router")),
            ),
            ("python3 -m dynamo.frontend", Some((Engine::Router, "dynamo.frontend"))),
            ("echo vllm serve M", None),
            ("pip install vllm", None),
            ("vllm bench serve --model M", None),
            ("python3 -m sglang.bench_serving", None),
            ("grep -m sglang.launch_server x", None),
        ];
        for (line, want) in cases {
            let got = detect(&argv(line));
            assert_eq!(got.as_ref().map(|p| (p.engine, p.spelled.as_str())), want, "{line}");
        }
    }

    #[test]
    fn container_runs() {
        let p = detect(&argv(
            "docker run --gpus all -p 8000:8000 --ipc=host vllm/vllm-openai:v1 org/M --tensor-parallel-size 8",
        ))
        .unwrap();
        assert_eq!((p.engine, p.args), (Engine::Vllm, 8));
        assert_eq!(p.image.unwrap().as_known(), Some("vllm/vllm-openai:v1"));
        let p = detect(&argv(
            "docker run -e A=b lmsysorg/sglang:latest python3 -m sglang.launch_server --model-path M",
        ))
        .unwrap();
        assert_eq!(p.engine, Engine::Sglang);
        assert_eq!(p.image.unwrap().as_known(), Some("lmsysorg/sglang:latest"));
        assert_eq!(detect(&argv("docker run lmsysorg/sglang:latest bash")), None);
    }
}
