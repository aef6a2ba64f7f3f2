//! Hostile input: deep, long and broken scripts end in a reported reason, on a small stack, never in an abort.

mod common;

#[cfg(feature = "grammar")]
use countersign_shell::check_grammar;
use countersign_shell::{IssueKind, Limits, Note, Script, fuzz_entry, scan, scan_bounded};
use proptest::prelude::*;

/// As small as the stack of a worker thread may be.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(work)
        .expect("thread");
    thread.join().expect("no panic");
}

#[test]
fn deep_nesting_is_reported() {
    on_small_stack(|| {
        for (opens, closes) in [
            ("if true; then ", "; fi"),
            ("{ ", "; }"),
            ("( ", ")"),
            ("$(", ")"),
            ("`echo ", "`"),
            ("${a:-", "}"),
            ("\"$(", ")\""),
            ("$((", "))"),
            ("((", "))"),
            ("@(", ")"),
            ("[[ ( ", " ) ]]"),
            ("[[ ! ", " ]]"),
            ("while true; do ", "; done"),
            ("case x in x) ", ";; esac"),
            ("f() { ", "; }"),
            ("a=(", ")"),
            ("${a[", "]}"),
            ("<(", ")"),
            ("! ", ""),
            ("eval 'eval ", "'"),
        ] {
            for depth in [50, 400, 20_000] {
                let text = format!("{}x{}\n", opens.repeat(depth), closes.repeat(depth));
                let text = if text.len() > 250_000 {
                    opens.repeat(depth.min(200_000 / opens.len()))
                } else {
                    text
                };
                fuzz_entry(text.as_bytes());
            }
        }
        let deep = Script::parse("x", &"{ ".repeat(20_000), &Limits::default());
        assert!(deep.incomplete());
        assert!(deep.issues().iter().any(|i| i.kind == IssueKind::TooDeep));
    });
}

#[test]
fn deep_nesting_that_is_allowed_works() {
    on_small_stack(|| {
        let depth = 40;
        let text = format!("{}out deep{}\n", "if true; then ".repeat(depth), "; fi".repeat(depth));
        assert_eq!(common::outs(&common::eval(&text, &[])), ["[deep]"]);
        // Functions that nest to the evaluator's own bound.
        let mut text = String::new();
        for i in 0..200 {
            text.push_str(&format!("f{i}() {{ if true; then f{}; fi; }}\n", i + 1));
        }
        text.push_str("f200() { out end; }\nf0\nout after\n");
        let evaluation = common::eval(&text, &[]);
        assert!(evaluation.diagnostics.iter().any(|d| d.note == Note::Bound));
        assert!(common::outs(&evaluation).contains(&"[after]".to_string()));
    });
}

#[test]
fn long_input_is_bounded() {
    on_small_stack(|| {
        let words = format!("echo{}", " x".repeat(100_000));
        let script = Script::parse("x", &words, &Limits::default());
        assert!(script.incomplete() && script.issues().iter().any(|i| i.kind == IssueKind::TooLarge));
        fuzz_entry(words.as_bytes());
        let large = "x".repeat(300_000);
        let script = Script::parse("x", &large, &Limits::default());
        assert_eq!(script.issues()[0].kind, IssueKind::TooLarge);
        #[cfg(feature = "grammar")]
        assert!(check_grammar(&large, &Limits::default()).cancelled);
        for text in [
            "a && ".repeat(40_000) + "b",
            "a | ".repeat(40_000) + "b",
            "[[ a && ".to_string() + &"b && ".repeat(40_000) + "c ]]",
            "x=x; ".to_string() + &"x=$x$x; ".repeat(20_000) + "out $x",
            "a=(1 2 3 4 5 6 7 8); ".to_string() + &"a+=(\"${a[@]}\"); ".repeat(10_000),
            "for i in {1..2000}; do for j in {1..2000}; do echo $i; done; done".to_string(),
            "f() { f; f; }; f".to_string(),
            ":(){ :|:& };:".to_string(),
            "while read a; do while read b; do while read c; do x=$x$a; done; done; done".to_string(),
            "echo {1..9}{1..9}{1..9}{1..9}{1..9}{1..9}".to_string(),
            (0..2000)
                .map(|i| format!("if p{i}; then v{i}=1; fi\n"))
                .collect::<String>(),
            (0..2000)
                .map(|i| format!("cat > f{i} <<E{i}\n$x\nE{i}\n"))
                .collect::<String>(),
            "x='".to_string() + &"a".repeat(60_000) + "'; " + &"y=${x//a/bb}; x=$y; ".repeat(30),
            "source run.sh; bash run.sh".to_string(),
            "x=1; while [ $x -gt 0 ]; do x=$((x+1)); done; out $x".to_string(),
        ] {
            fuzz_entry(text.as_bytes());
        }
    });
}

#[test]
fn unfinished_constructs_are_reported_and_the_rest_is_read() {
    for (text, kind) in [
        ("if true; then out a", IssueKind::Unterminated),
        ("out a; )", IssueKind::Unexpected),
        ("out a; fi", IssueKind::Unexpected),
        ("out a; x='open", IssueKind::Unterminated),
        ("out a; x=\"open", IssueKind::Unterminated),
        ("out a; x=$(open", IssueKind::Unterminated),
        ("out a; cat <<E\nbody", IssueKind::Unterminated),
        ("out a; x=(1 2", IssueKind::Unterminated),
        ("out a; y=${x@@@}", IssueKind::UnknownExpansion),
        ("out a &&", IssueKind::Unexpected),
        ("out a; [[ x == ", IssueKind::Unterminated),
        ("out a\0", IssueKind::Binary),
    ] {
        let evaluation = common::eval(text, &[]);
        assert!(
            evaluation.diagnostics.iter().any(|d| d.note == Note::Syntax(kind)),
            "{text:?}: {:?}",
            evaluation.diagnostics
        );
        assert!(
            evaluation.commands.iter().any(|c| c.display().starts_with("out a")),
            "{text:?}"
        );
    }
}

#[cfg(feature = "grammar")]
#[test]
fn the_second_grammar_agrees_on_plain_scripts_and_shows_two_readings() {
    let plain = "set -e\nx=$(basename \"$0\")\nif [ -f x ]; then a | b && c; fi\nfor i in 1 2; do export A=$i; done\ncat <<E > f\n$(d)\nE\nprog \\\n  --a 1\n";
    let report = check_grammar(plain, &Limits::default());
    assert!(
        report.errors.is_empty() && report.disagreements.is_empty() && !report.cancelled,
        "{report:?}"
    );
    // Two here-documents on a line: bash takes both, the grammar only one.
    let report = check_grammar("cat <<A <<B\n1\nA\n2\nB\nprog\n", &Limits::default());
    assert!(!report.errors.is_empty());
    assert!(
        report.disagreements.iter().any(|d| !d.ours && d.at.line == 4),
        "{report:?}"
    );
}

#[test]
fn scan_sees_what_is_not_reached() {
    let text = "D=/opt/site-packages/lib\nF=\"$D/model.py\"\nif false; then\n  sed -i \\\n    's/a/b/' \\\n    \"$F\"\nfi\nf() {\n  python3 - \"$F\" <<'PY'\nopen(\"x\", \"w\")\nPY\n}\nA=(pip install -e .)\n\"${A[@]}\"\nx=$(cp \"$(dirname \"$0\")/new.py\" \"$F\")\nbash -c 'patch -p1 < p.diff'\n: \"${Q:=v}\"; echo $Q $UNKNOWN\n";
    let commands = scan("dir/run.sh", text, &Limits::default());
    let find = |name: &str| {
        commands
            .iter()
            .find(|c| c.name() == Some(name))
            .unwrap_or_else(|| panic!("{name}"))
    };
    let sed = find("sed");
    assert_eq!(
        sed.argv.iter().map(|w| w.texts[0].as_str()).collect::<Vec<_>>(),
        ["sed", "-i", "s/a/b/", "/opt/site-packages/lib/model.py"]
    );
    assert_eq!((sed.at.line, sed.end_line), (4, 6));
    let python = find("python3");
    assert_eq!(python.function.as_deref(), Some("f"));
    assert_eq!(
        (&*python.heredocs[0].text, python.heredocs[0].quoted),
        ("open(\"x\", \"w\")\n", true)
    );
    assert_eq!((python.at.line, python.end_line), (9, 11));
    assert_eq!(find("pip").display(), "pip install -e .");
    let cp = find("cp");
    assert!(cp.nested);
    assert_eq!(cp.argv[1].texts, ["dir/new.py"]);
    assert_eq!(find("patch").redirects[0].target.texts, ["p.diff"]);
    let echo = find("echo");
    assert_eq!((echo.argv[1].texts[0].as_str(), echo.argv[1].known), ("v", true));
    assert_eq!(
        (echo.argv[2].texts[0].as_str(), echo.argv[2].known),
        ("${UNKNOWN}", false)
    );
    // Several assignments: all of them.
    let commands = scan("x.sh", "if a; then P=1; else P=2; fi; rm \"/d/$P\"", &Limits::default());
    assert_eq!(
        commands.iter().find(|c| c.name() == Some("rm")).expect("rm").argv[1].texts,
        ["/d/1", "/d/2"]
    );
}

#[test]
fn a_scan_says_whether_it_saw_everything() {
    let whole = |text: &str| scan_bounded("x.sh", text, &Limits::default()).whole;
    assert!(whole("eval 'eval \"eval ls\"'"));
    assert!(!whole(r#"eval "eval 'eval \"eval ls\"'""#));
    assert!(whole(&"ls\n".repeat(19_000)));
    assert!(!whole(&"ls\n".repeat(20_001)));
    assert!(!whole(&"# nothing\n".repeat(40_000)), "beyond the size of a file");
    // Each name stands for two texts of the one before: what a name stands for is worked out once.
    let mut text = String::from("A0=x; A0=y\n");
    for at in 1..6 {
        text.push_str(&format!("A{at}=\"$A{}\"; A{at}=\"$A{}z\"\n", at - 1, at - 1));
    }
    text.push_str(&"echo \"$A5\" \"$A4\" \"$A3\"\n".repeat(2_000));
    let scanned = scan_bounded("x.sh", &text, &Limits::default());
    assert!(scanned.whole);
    let last = scanned.commands.last().expect("there");
    assert_eq!(last.argv[2].texts[0], "x", "{:?}", last.argv);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_text_ends(text in "\\PC{0,200}") {
        fuzz_entry(text.as_bytes());
    }

    #[test]
    fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        fuzz_entry(&bytes);
    }

    #[test]
    fn shell_like_text_ends(tokens in proptest::collection::vec(
        proptest::sample::select(vec![
            "if ", "then ", "else ", "fi\n", "for x in ", "do ", "done\n", "while ", "case $x in ", "esac\n", ") ", "( ", "{ ", "}\n",
            "$(", "${x", "}", "`", "\"", "'", "<<E\n", "E\n", "<<< ", "> f ", "2>&1 ", "| ", "&& ", "|| ", "& ", "; ", ";; ", "\n", "[[ ",
            " ]]", "[ ", " ] ", " == ", " =~ ", "-f ", "$x", "$((x+1))", "((", "))", "x=1 ", "x+=(", "a b ", "\\", "\\\n", "#c\n", "f() ",
            "local ", "export ", "eval ", "read x ", "shift ", "set -- ", "${x[@]}", "${!x}", "${x//a/b}", "*", "{a,b}", "é", "\u{E000}0\u{E001}",
            "source run.sh ", "return ", "exit ", "break ", "printf %s ", "echo ", "bash -c ", "trap ", "unset x ", "declare -A m ", "~",
        ]), 0..60)) {
        fuzz_entry(tokens.concat().as_bytes());
    }

    /// `N` is another number for each of several points: together they must give what each gives alone.
    #[test]
    fn points_together_give_what_each_gives_alone(statements in proptest::collection::vec(
        proptest::sample::select(vec![
            "x=$N", "x=$x,$N", "x=\"a b\"", "y=$((N * 2))", "unset y", "export x y", "a+=(\"$N\")", "a=()", "set -- $x $N", "cd /d$N",
            "if [ \"$N\" -gt 8 ]; then\nx=1\nelse\nx=2\nfi", "if [ \"$N\" -gt 8 ]; then y=$x; fi", "[ \"$N\" = 64 ] && y=$x",
            "[ \"$x\" = \"$N\" ] || exit 3", "for ((i = 0; i < N; i++)); do x=$x.$i; done", "for i in $(seq 1 $N); do y=$i; done",
            "case $N in 1)\ny=a;; 8|64)\ny=b;; *) y=$N;; esac", "while [ \"$y\" -lt \"$N\" ]; do y=$((y + 3)); done",
            "if probe; then x=$N; fi", "if [ \"$N\" -gt 8 ]; then if probe; then y=1; fi; fi", "if probe; then if [ \"$N\" -gt 8 ]; then y=1; fi; fi",
            "run $x \"$y\" $N", "run \"${a[@]}\"", "run $# $1", "if [ \"$N\" -gt 8 ]; then run big; fi", "run $N > out; run \"$(cat out)\"",
            "z=$(echo $x | tr , '\\n' | sort | tail -1)", "echo $N > f; read -r y < f", "echo $x,$N | tr , '\\n' | while read -r y; do x=$y; done",
            "f() { local l=$1; if [ \"$l\" -gt 8 ]; then return 1; fi; x=$l; }", "f $N || x=5", "f 3", "env | grep '^x=' | sort | tee g",
            "y=$(cat g)", "eval \"x=$N; run $x\"", "bash -c \"run $N $x\"", "printf '%q ' $x | tee q; run \"$(cat q)\"", "printf -v y %q \"$x\"",
            "trap 'run $N $x' EXIT", "y=$(seq -s, 1 $N)", "y=${x%,*}", "y=${#x}", "mapfile -t a <<< \"$x\"", "IFS=, read -r y z <<< \"$x\"",
            "run $L", "x=$L", "x=\"${L// /x}\"", "for i in $L; do y=$i; done", "run \"$L\"", "read -r -a a <<< \"$L\"", "y=$(echo \"$L\" | tr ' ' x)",
            "L+=3", "export L", "run \"${L[@]}\"", "run ${L[@]}", "y=${#L}", "case $L in *' '*) y=b;; esac", "[[ $L == 8 ]] && y=l", "y=$((L + 1))",
            "bash -c \"run $L\"", "eval \"run $L\"", "unset L", "[ \"$N\" -gt 8 ]; x=$?", "[ \"$N\" -gt 8 ]; run $?", "f 3; return $?", "f 64 && y=t",
            "[ \"$N\" -gt 8 ] && x=4; probe && [ \"$N\" -gt 8 ]", "set -o pipefail", "[ \"$N\" -gt 8 ] | cat", "x=$([ \"$N\" -gt 8 ]; echo $?)", "set -e", "(exit $N); y=$?",
            "if probe; then [ \"$N\" -gt 8 ] && x=1; fi", "[ \"$N\" -gt 8 ] && x=1; exit",
            "echo $N | run", "! [ \"$N\" -gt 8 ]", "x=$?", "{ x=3; [ \"$N\" -gt 8 ] && x=4; }", "(x=$N; run $x)", "run & y=$!",
            "while probe; do if [ \"$N\" -gt 8 ]; then x=1; fi; done", "while probe; do x=$N; done", "until probe; do y=$((y + N)); done",
            "for i in $(probe); do a+=(\"$i\" $N); done", "while probe; do a=($N 1); done", "while read -r l; do x=$x$l; done < <(probe)",
            "x=8", "y=1", "a=(8)", "while probe; do run $x; [ \"$N\" -gt 8 ] && break; done", "probe && x=$N || y=$N",
            "for ((i = 0; i < N; i++)); do if [ -n \"$x\" ]; then x+=,; fi; x+=$((i * 2)); done", "for ((i = 1; i <= 3; i++)); do y+=\"${y:+,}$((i * N))\"; done",
            "for i in 1 2 3 4 5 6 7 8 9 10; do if probe \"$y\"; then x=$N; break; fi; echo \"$i\"; done", "for i in $(seq 1 20); do echo $i; if probe; then y=$i; fi; done",
            "for i in a b c d e f g h i; do if probe; then run $x; continue; fi; x=$N; echo $i; done", "for ((i = N; i > 0; i -= 5)); do if [ \"$i\" -gt 8 ]; then y=$i; else y+=.; fi; done",
            "readonly x", "declare -i y", "export x; for w in a b; do x+=\"$w\"; done", "if [ \"$N\" -gt 8 ]; then set -e; fi", "if [ \"$N\" -gt 8 ]; then trap 'run t' EXIT; fi", "if [ \"$N\" -gt 8 ]; then echo 1 > f; fi",
        ]), 1..12)) {
        let mut text = statements.join("\n");
        text.push_str("\nrun \"$x\" \"$y\" \"${a[*]}\" \"$z\" $?\n");
        fuzz_entry(text.as_bytes());
    }
}
