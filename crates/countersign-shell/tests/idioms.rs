//! What a launch script does: values decided in branches stay paired, unknowns stay symbolic and say what they depend
//! on, every word keeps its line, scripts and option files of the tree are followed.

mod common;

use common::{branches, eval, eval_tree, outs};
use countersign_shell::{CommandKind, Note, Why, unwrap_wrappers};

/// Domain guide 19.5, as it stands there.
const GUIDE: &str = r#"SPEC='{"method":"mtp","num_speculative_tokens":3}'
if [[ "$EVAL_ONLY" != "true" ]]; then
  SPEC=$(printf '{"method":"mtp","num_speculative_tokens":%d,"rejection_sample_method":"synthetic","synthetic_acceptance_length":%.2f}' 3 2.49)
fi
EXTRA=(--kv-cache-dtype fp8)
[[ "$DP_ATTENTION" == "true" ]] && EXTRA+=(--data-parallel-size "$TP") || EXTRA+=(--tensor-parallel-size="$TP")
SOME_ENV=1 vllm serve "${MODEL_PATH:-$MODEL}" --port $PORT \
  --speculative-config "$SPEC" \
  `# a comment inside a continued command` \
  "${EXTRA[@]}" > "$LOG" 2>&1 &
"#;

#[test]
fn the_guide_example_known() {
    let evaluation = eval(
        GUIDE,
        &[
            "MODEL=org/m",
            "TP=8",
            "PORT=8888",
            "DP_ATTENTION=true",
            "EVAL_ONLY=false",
            "LOG=/tmp/l",
        ],
    );
    let servers: Vec<_> = evaluation.programs().collect();
    assert_eq!(servers.len(), 1);
    let server = servers[0];
    let words: Vec<String> = server
        .argv
        .iter()
        .map(|w| w.value.known().expect("known").into_owned())
        .collect();
    assert_eq!(
        words,
        [
            "vllm",
            "serve",
            "org/m",
            "--port",
            "8888",
            "--speculative-config",
            r#"{"method":"mtp","num_speculative_tokens":3,"rejection_sample_method":"synthetic","synthetic_acceptance_length":2.49}"#,
            "--kv-cache-dtype",
            "fp8",
            "--data-parallel-size",
            "8",
        ]
    );
    assert!(server.background);
    assert_eq!(server.env("SOME_ENV").and_then(|v| v.known()).as_deref(), Some("1"));
    // Lines: the array elements where they were written, the value of the config where its text is.
    let lines: Vec<u32> = server.argv.iter().map(|w| w.span.line).collect();
    assert_eq!(lines, [7, 7, 7, 7, 7, 8, 8, 5, 5, 6, 6]);
    assert_eq!(
        server.argv[6]
            .value
            .sources()
            .iter()
            .map(|s| s.line)
            .collect::<Vec<_>>(),
        [3]
    );
    assert_eq!(server.redirects.len(), 2);
    assert!(evaluation.assumed_unset.contains("MODEL_PATH"));
    assert_eq!(evaluation.truncated, None);
}

#[test]
fn the_guide_example_unknown() {
    let evaluation = eval(
        GUIDE,
        &[
            "MODEL=org/m",
            "TP?",
            "PORT=8888",
            "DP_ATTENTION?",
            "EVAL_ONLY?",
            "LOG=/tmp/l",
        ],
    );
    let servers: Vec<_> = evaluation.programs().collect();
    // Two questions, four consistent commands: K = 3 in all, the length only for throughput.
    assert_eq!(servers.len(), 4);
    for server in &servers {
        let eval_only = server
            .path
            .iter()
            .find(|l| l.text.contains("EVAL_ONLY"))
            .expect("asked")
            .holds;
        let dp = server
            .path
            .iter()
            .find(|l| l.text.contains("DP_ATTENTION"))
            .expect("asked")
            .holds;
        let line = server.display();
        assert!(line.contains("\"num_speculative_tokens\":3"));
        assert_eq!(line.contains("\"synthetic_acceptance_length\":2.49"), !eval_only);
        assert_eq!(line.contains("--data-parallel-size $TP"), dp);
        assert_eq!(line.contains("--tensor-parallel-size=$TP"), !dp);
        let size = server.argv.last().expect("words");
        assert!(!size.value.is_known());
        assert_eq!(
            size.value
                .depends_on()
                .into_iter()
                .map(|n| n.to_string())
                .collect::<Vec<_>>(),
            ["TP"]
        );
        assert!(!size.splits, "quoted: one word whatever it is");
    }
}

#[test]
fn pairs_stay_in_their_branch() {
    let script = r#"
if [ "$CONC" -le 8 ]; then K=7; AL=3.84
elif [ "$CONC" -le 16 ]; then K=3; AL=3.00
else K=0
fi
if [ "$CONC" -le 8 ]; then UTIL=0.9; else UTIL=0.8; fi
if [ "$CONC" -gt 64 ]; then BIG=yes; fi
out "$K" "$AL" "$UTIL" "$BIG"
"#;
    // The second and third question follow from the first where they can.
    let evaluation = eval(script, &["CONC?"]);
    let mut lines = branches(&evaluation);
    lines.sort();
    assert_eq!(
        lines,
        [
            "\"$CONC\" -le 8 => [7][3.84][0.9][]",
            "not \"$CONC\" -le 8, \"$CONC\" -le 16 => [3][3.00][0.8][]",
            "not \"$CONC\" -le 8, not \"$CONC\" -le 16, \"$CONC\" -gt 64 => [0][][0.8][yes]",
            "not \"$CONC\" -le 8, not \"$CONC\" -le 16, not \"$CONC\" -gt 64 => [0][][0.8][]",
        ]
    );
    assert_eq!(outs(&eval(script, &["CONC=12"])), ["[3][3.00][0.8][]"]);
}

#[test]
fn a_decision_gives_the_value() {
    let evaluation = eval(
        "case \"$MODE\" in fast) a=1 ;; slow) a=2 ;; *) a=3 ;; esac\nif [ \"$MODE\" = fast ]; then b=x; else b=y; fi\nout \"$MODE\" $a $b",
        &["MODE?"],
    );
    assert_eq!(outs(&evaluation), ["[fast][1][x]", "[slow][2][y]", "[$MODE][3][y]"]);
    let evaluation = eval(
        "[ -n \"$M\" ] || exit 2\nif [ -z \"$M\" ]; then out never; fi\nout \"${M:-d}\" ${M:+set}",
        &["M?"],
    );
    assert_eq!(outs(&evaluation), ["[$M][set]"]);
    assert_eq!(evaluation.ends.len(), 1);
    assert_eq!(evaluation.ends[0].status, Some(2));
    assert!(evaluation.commands[0].path[0].other_side_ends);
}

#[test]
fn unknowns_are_never_absent() {
    let evaluation = eval(
        "h=$(hostname -s)\nx=\"${D:-5555}\"\nn=$((2 * T))\nout \"$h\" \"pre-${h}.log\" \"$x\" $n ${#h} \"${h%.x}\" \"$(ls /data)\"",
        &["D?", "T?"],
    );
    let command = evaluation
        .programs()
        .find(|c| c.name().as_deref() == Some("out"))
        .expect("recorded");
    assert_eq!(command.argv.len(), 8);
    for word in &command.argv[1..] {
        assert!(!word.value.is_known());
        assert!(!word.value.depends_on().is_empty(), "{}", word.value.display());
    }
    assert_eq!(command.argv[2].value.display(), "pre-$(hostname -s).log");
    let default = command.argv[3].value.single_unknown().expect("one unknown");
    assert_eq!(default.why, Why::Default);
    assert_eq!(
        default.choices.iter().map(|c| c.display()).collect::<Vec<_>>(),
        ["$D", "5555"]
    );
    let number = command.argv[4].value.single_unknown().expect("one unknown");
    assert_eq!(number.why, Why::Arithmetic);
    assert!(number.depends_on.contains("T"));
    assert!(!command.argv[4].splits, "a number is one word");
}

#[test]
fn an_unquoted_unknown_may_be_any_number_of_words() {
    let evaluation = eval("out a $X \"$Y\" --f=$X", &["X?", "Y?"]);
    let splits: Vec<bool> = evaluation.commands[0].argv.iter().map(|w| w.splits).collect();
    assert_eq!(splits, [false, false, true, false, true]);
}

#[test]
fn fragments_keep_their_lines() {
    let script =
        "OPTS=\" --a 1\"\nif true; then\n  OPTS+=\" --b 2\"\nfi\nA=(\n  --c\n  \"$V\"\n)\nprog $OPTS \"${A[@]}\" --d\n";
    let evaluation = eval(script, &["V=v"]);
    let command = &evaluation.commands[0];
    let placed: Vec<(String, u32)> = command.argv.iter().map(|w| (w.value.display(), w.span.line)).collect();
    let expected = [
        ("prog", 9),
        ("--a", 1),
        ("1", 1),
        ("--b", 3),
        ("2", 3),
        ("--c", 6),
        ("v", 7),
        ("--d", 9),
    ];
    assert_eq!(placed, expected.map(|(t, l)| (t.to_string(), l)));
}

#[test]
fn scripts_of_the_tree_are_followed() {
    let files = [
        (
            "bench/a/run.sh",
            "source \"$(dirname \"$0\")/../lib.sh\"\ncheck M || exit 1\nstart --port 1\nX=set\nbash \"$(dirname \"${BASH_SOURCE[0]}\")/child.sh\" arg\nbash bench/a/missing.sh\nout $X",
        ),
        (
            "bench/lib.sh",
            "check() { [[ -n \"${!1:-}\" ]]; }\nstart() {\n  local port=\"\"\n  while [[ $# -gt 0 ]]; do case $1 in --port) port=\"$2\"; shift 2;; esac; done\n  out server \"$port\" \"${BASH_SOURCE[0]}\" \"${BASH_SOURCE[1]}\"\n}\nout caller \"${BASH_SOURCE[1]}\"",
        ),
        (
            "bench/a/child.sh",
            "out child \"$1\" \"$0\" \"${X-unset}\" \"$E\"; X=changed; exit 7",
        ),
    ];
    let evaluation = eval_tree(&files, &["M=m", "E=exported"]);
    assert_eq!(
        outs(&evaluation),
        [
            "[caller][bench/a/run.sh]",
            "[server][1][bench/a/../lib.sh][bench/a/run.sh]",
            "[child][arg][bench/a/child.sh][unset][exported]",
            "[set]",
        ]
    );
    assert_eq!(
        evaluation.files.iter().map(|f| f.to_string()).collect::<Vec<_>>(),
        files.map(|(p, _)| p.to_string())
    );
    let server = evaluation
        .commands
        .iter()
        .find(|c| c.display().starts_with("out server"))
        .expect("recorded");
    assert_eq!(evaluation.place(server.span), "bench/lib.sh:5");
    assert_eq!(server.in_function.as_deref(), Some("start"));
    assert_eq!(
        evaluation.place(server.calls.last().expect("called").at),
        "bench/a/run.sh:3"
    );
    assert!(
        evaluation
            .diagnostics
            .iter()
            .any(|d| d.note == Note::NotInTree && d.message.contains("missing.sh"))
    );
    let child = evaluation
        .commands
        .iter()
        .find(|c| c.kind == CommandKind::Script && c.display().contains("child"))
        .expect("kept");
    assert_eq!(child.display(), "bash bench/a/child.sh arg");
}

#[test]
fn nothing_outside_the_tree_is_read() {
    let files = [(
        "a.sh",
        "source ../secret.sh; source /workspace/../etc/passwd; source /etc/profile; x=$(cat /etc/passwd); out \"$x\" \"${UNSET_BEFORE:-d}\"",
    )];
    let evaluation = eval_tree(&files, &[]);
    let command = evaluation
        .programs()
        .find(|c| c.name().as_deref() == Some("out"))
        .expect("recorded");
    assert_eq!(command.argv[1].value.single_unknown().map(|u| u.why), Some(Why::File));
    // What an unseen script may have set is not taken as unset.
    let maybe = command.argv[2].value.single_unknown().expect("a choice");
    assert_eq!(maybe.choices.len(), 2);
    assert_eq!(
        evaluation
            .diagnostics
            .iter()
            .filter(|d| d.note == Note::NotInTree)
            .count(),
        3
    );
}

#[test]
fn option_files_are_kept() {
    let script = "F=opts.yml\ncat > \"$F\" << EOF\nbackend: $B\nmoe:\n  kind: ${K:-plain}\nEOF\nif [ \"$B\" = x ]; then\ncat << 'EOF' >> $F\nraw: $B\nEOF\nfi\nserve --config \"$F\" &\necho later > $F";
    let evaluation = eval(script, &["B=x"]);
    let server = evaluation
        .programs()
        .find(|c| c.name().as_deref() == Some("serve"))
        .expect("recorded");
    let file = server.file(&server.argv[2].value).expect("written before");
    assert_eq!(
        file.content.known().as_deref(),
        Some("backend: x\nmoe:\n  kind: plain\nraw: $B\n")
    );
    let lines: Vec<u32> = file.content.sources().iter().map(|s| s.line).collect();
    assert_eq!(lines, [3, 4, 5, 9]);
    assert_eq!(
        evaluation.written["/workspace/opts.yml"][0].content.display(),
        "later\n"
    );
    // With an unknown value two different files, each with its command.
    let evaluation = eval(script, &["B?"]);
    let servers: Vec<String> = evaluation
        .programs()
        .filter(|c| c.name().as_deref() == Some("serve"))
        .map(|c| c.file(&c.argv[2].value).expect("written").content.display())
        .collect();
    assert_eq!(
        servers,
        [
            "backend: $B\nmoe:\n  kind: plain\nraw: $B\n",
            "backend: $B\nmoe:\n  kind: plain\n"
        ]
    );
}

#[test]
fn partly_unknown_text_given_to_eval() {
    let script = "HOST=$(hostname -i)\nCMD=\"serve $MODEL --ip $HOST \\\n  --json '{\\\"ip\\\": \\\"$HOST\\\"}'\"\neval \"$CMD\" > log 2>&1 &\neval \"$(python3 conf.py)\"\nout \"$FROM_PY\" $MODEL";
    let evaluation = eval(script, &["MODEL=m"]);
    let server = evaluation
        .programs()
        .find(|c| c.name().as_deref() == Some("serve"))
        .expect("recorded");
    let words: Vec<String> = server.argv.iter().map(|w| w.value.display()).collect();
    assert_eq!(
        words,
        [
            "serve",
            "m",
            "--ip",
            "$(hostname -i)",
            "--json",
            "{\"ip\": \"$(hostname -i)\"}"
        ]
    );
    assert!(server.background);
    let out = evaluation
        .programs()
        .find(|c| c.name().as_deref() == Some("out"))
        .expect("recorded");
    assert_eq!(out.argv[1].value.single_unknown().map(|u| u.why), Some(Why::Foreign));
    assert_eq!(out.argv[2].value.display(), "m");
    assert!(evaluation.diagnostics.iter().any(|d| d.note == Note::ForeignCode));
}

#[test]
fn wrappers_are_seen_through() {
    for (line, inner, wrappers) in [
        (
            "mpirun -n 1 --oversubscribe --allow-run-as-root trtllm-serve m",
            "trtllm-serve m",
            1,
        ),
        ("env A=b -u C timeout -k 5 10 nohup vllm serve m", "vllm serve m", 3),
        ("sudo -E numactl --membind=0 -N 1 python3 -m x", "python3 -m x", 2),
        ("stdbuf -oL -eL nice -n 5 prog", "prog", 2),
        ("exec taskset -c 0-7 prog a", "prog a", 1),
        ("mpirun --mca btl self -x PATH prog", "prog", 1),
        ("prog env x", "prog env x", 0),
        ("timeout \"$T\" prog", "prog", 1),
        ("env", "env", 0),
    ] {
        let evaluation = eval(line, &["T?"]);
        let unwrapped = unwrap_wrappers(&evaluation.commands[0]);
        let words: Vec<String> = unwrapped.argv.iter().map(|w| w.value.display()).collect();
        assert_eq!(words.join(" "), inner, "{line}");
        assert_eq!(unwrapped.wrappers.len(), wrappers, "{line}");
        assert!(!unwrapped.uncertain);
    }
    let evaluation = eval("mpirun --strange-option x prog", &[]);
    assert!(unwrap_wrappers(&evaluation.commands[0]).uncertain);
    let evaluation = eval("env A=1 bash -c 'out $A $B'", &["B=2"]);
    assert_eq!(outs(&evaluation), ["[1][2]"]);
}

#[test]
fn worlds_are_joined_when_there_are_too_many() {
    let mut script = String::new();
    for i in 0..10 {
        script.push_str(&format!("if probe {i}; then v{i}=yes; else v{i}=no; fi\n"));
    }
    // Used in a command, all of them, or they would not keep worlds apart.
    script.push_str("out");
    (0..10).for_each(|i| script.push_str(&format!(" \"$v{i}\"")));
    script.push('\n');
    let evaluation = eval(&script, &[]);
    assert!(evaluation.diagnostics.iter().any(|d| d.note == Note::Joined));
    assert_eq!(evaluation.truncated, None);
    assert!(evaluation.worlds <= 64);
    // Every combination is still there, as a value or as a choice between the two.
    for command in evaluation.programs().filter(|c| c.name().as_deref() == Some("out")) {
        for word in &command.argv[1..] {
            let texts = word.value.possible_texts().expect("yes, no, or one of them");
            assert!(texts.iter().all(|t| t == "yes" || t == "no"), "{texts:?}");
        }
    }
}

#[test]
fn set_e_ends_where_bash_ends() {
    let evaluation = eval(
        "set -e\nf() { return 1; }\nout a\nunknown_program\nout b\nf\nout c",
        &[],
    );
    assert_eq!(outs(&evaluation), ["[a]", "[b]"]);
    assert_eq!(evaluation.ends.len(), 1);
    assert_eq!(evaluation.place(evaluation.ends[0].at), "run.sh:6");
}

#[test]
fn commands_carry_their_surroundings() {
    let evaluation = eval(
        "export A=1\nB=2\ncd /srv\n{ prog x 2>/dev/null | tee log; } &\nunset A\npython3 - <<'PY' arg && prog2\nprint(1)\nPY\nprog3",
        &[],
    );
    let by_name = |name: &str| {
        evaluation
            .commands
            .iter()
            .find(|c| c.name().as_deref() == Some(name))
            .expect("recorded")
    };
    let prog = by_name("prog");
    assert!(prog.background);
    assert_eq!((prog.pipe_stage, by_name("tee").pipe_stage), (Some(0), Some(1)));
    assert_eq!(prog.env("A").map(|v| v.display()), Some("1".into()));
    assert_eq!(prog.env("B"), None);
    assert!(prog.var("B").is_some());
    assert_eq!(prog.cwd.display(), "/srv");
    let python = by_name("python3");
    assert_eq!(
        python.stdin.as_ref().and_then(|s| s.known()).as_deref(),
        Some("print(1)\n")
    );
    assert_eq!(python.argv.len(), 3);
    assert_eq!(python.env("A"), None);
    assert_eq!(by_name("prog2").path.len(), 1);
    assert_eq!(by_name("prog3").path.len(), 0);
}

#[test]
fn same_result_every_time() {
    let run = || {
        let evaluation = eval(GUIDE, &["TP?", "DP_ATTENTION?", "EVAL_ONLY?"]);
        format!(
            "{:?}",
            evaluation
                .commands
                .iter()
                .map(|c| (c.display(), c.path.clone(), c.environment()))
                .collect::<Vec<_>>()
        )
    };
    assert_eq!(run(), run());
}

#[test]
fn what_only_decides_does_not_multiply_worlds_and_stays_consistent() {
    let script = r#"
if probe a; then MODE=low; MON=1; else MODE=high; MON=; fi
if probe b; then X=1; fi
if [ "$MODE" = low ]; then K=7; else K=3; fi
if [ "$MODE" = low ]; then AL=3.84; else AL=3.00; fi
if [ -n "$MON" ]; then kill "$PID"; fi
echo "mode $MODE"
out "$K" "$AL"
"#;
    let evaluation = eval(script, &[]);
    let mut lines = outs(&evaluation);
    lines.sort();
    // The same question asked twice has one answer, although the worlds were put together in between.
    assert_eq!(lines, ["[3][3.00]", "[7][3.84]"]);
    for command in evaluation.programs().filter(|c| c.name().as_deref() == Some("out")) {
        assert!(
            command.path.iter().any(|l| l.depends_on.contains("$(probe a)")),
            "{:?}",
            command.path
        );
    }
    // A variable whose text is taken keeps its worlds, also when a function prints it.
    let script = "name() { echo \"$N\"; }\nif probe; then N=a; M=1; else N=b; M=2; fi\nout \"$(name)\" \"$M\"";
    let mut lines = outs(&eval(script, &[]));
    lines.sort();
    assert_eq!(lines, ["[a][1]", "[b][2]"]);
}

#[test]
fn answers_belong_to_their_command() {
    use countersign_shell::{Answer, Answers, Command, Limits, ScriptCache, evaluate_with};
    struct Known;
    impl Answers for Known {
        fn answer(&self, command: &Command) -> Option<Answer> {
            let name = command.name()?;
            (name == "version" || name == "other").then(|| Answer {
                output: Some(format!("{name} says\n")),
                status: Some(i32::from(name == "other")),
            })
        }
    }
    let script = "ask() { x=$(version); y=$(other) || y=failed; }\nask\nask\nout \"$x\" \"$y\"";
    let files = common::tree(&[("run.sh", script)]);
    let cache = ScriptCache::new(Limits::default());
    let evaluation = evaluate_with(&files, &cache, &common::setup("run.sh"), Some(&Known));
    assert_eq!(outs(&evaluation), ["[version says][failed]"]);
}

#[test]
fn a_container_starts_its_command_with_what_it_is_given() {
    let files = [
        (
            "run.sh",
            r#"export GIVEN=outside KEPT=outside
helper() { inner wrong; }
{ echo "FILED=a"; echo "FRESH=hidden"; [ -n "$HOST" ] && printf '%s=%s\n' HOST "$HOST"; } > /tmp/all.env
docker run --rm -it --network host --shm-size=32G -v "$HOST:/workspace" --env-file /tmp/all.env -e GIVEN -e FRESH="$HOST/x" \
  --entrypoint "" "$IMAGE" bash -lc "cd /workspace/tools && bash client.sh first \"$GIVEN\""
docker run --env-file /etc/not-known "$IMAGE" bash /workspace/tools/client.sh
docker run --new-option x image out never
docker pull image
docker exec name out "$KEPT"
"#,
        ),
        (
            "tools/client.sh",
            r#"helper
out "$1" "$2" "$GIVEN" "${FRESH}" "$FILED" "$HOST" "${KEPT:-none}"
"#,
        ),
    ];
    let evaluation = eval_tree(&files, &["HOST=/h", "IMAGE?"]);
    let all = outs(&evaluation);
    assert_eq!(all.len(), 3, "{all:?}");
    // `KEPT` is not given to it.
    assert_eq!(all[0], "[first][outside][outside][/h/x][a][/h][none]");
    // A file that is not known may give everything.
    assert!(!all[1].contains("[none]") && all[1].contains("not-known"), "{all:?}");
    // These words were made outside.
    assert_eq!(all[2], "[outside]");
    assert!(evaluation.commands.iter().all(|c| c.name().as_deref() != Some("inner")));
}
