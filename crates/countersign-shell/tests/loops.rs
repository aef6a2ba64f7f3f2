//! Loops: those that end, those that may not, and those that only wait.
#![allow(missing_docs)]

mod common;

use common::{eval, outs, tree, with_env};
use countersign_shell::{Limits, ScriptCache, Setup, evaluate};

#[test]
fn loops_of_unknown_length_end() {
    let evaluation = eval(
        "i=0\nwhile ! curl -sf http://h; do\n  i=$((i+1))\n  if ! kill -0 $P; then exit 1; fi\n  sleep 5\ndone\nout \"$i\"",
        &["P?"],
    );
    // No round, some rounds, any number: every one reaches the command behind the loop.
    let all = outs(&evaluation);
    let texts: Vec<String> = evaluation
        .programs()
        .filter(|c| c.name().as_deref() == Some("out"))
        .flat_map(|c| c.argv[1].value.possible_texts().unwrap_or_default())
        .collect();
    assert!(
        texts.contains(&"0".to_string()) && texts.contains(&"1".to_string()),
        "{texts:?}"
    );
    assert!(all.iter().any(|l| l.contains("$i after the loop of line 2")), "{all:?}");
    assert_eq!(evaluation.truncated, None);
    let evaluation = eval(
        "for d in a b c; do if test -e /x/$d; then R=$d; break; fi; done\n[ -z \"$R\" ] && exit 1\nout \"$R\"",
        &[],
    );
    let found = evaluation.programs().filter(|c| c.name().as_deref() == Some("out"));
    let mut found: Vec<String> = found
        .flat_map(|c| c.argv[1].value.possible_texts().expect("one of the words"))
        .collect();
    found.sort();
    assert_eq!(found, ["a", "b", "c"], "and never empty: that ends the script");
    let evaluation = eval("while true; do sleep 1; done\nout never", &[]);
    assert!(outs(&evaluation).is_empty());
}

#[test]
fn a_loop_that_counts_in_vain_ends_too() {
    let evaluation = eval(
        "for ((i = 1; i <= 30; i++)); do\n  probe && break\ndone\nout \"$i\"\nfor ((i = 0; i < 3; i++)); do\n  sleep 1\ndone\nout \"$i\"",
        &[],
    );
    let found = evaluation.programs().filter(|c| c.name().as_deref() == Some("out"));
    let found: Vec<_> = found.map(|c| c.argv[1].value.clone()).collect();
    let mut texts = found
        .iter()
        .flat_map(|value| value.possible_texts().unwrap_or_default());
    assert!(texts.any(|text| text == "1"), "{found:?}");
    // Any of the rounds may have been the last.
    let open = |name: &str| name.contains("after the loop of line 1");
    assert!(
        found
            .iter()
            .any(|value| open(&value.display()) || value.depends_on().iter().any(|name| open(name))),
        "{found:?}"
    );
    assert!(
        found.iter().any(|value| value.known().as_deref() == Some("3")),
        "{found:?}"
    );
}

#[test]
fn waiting_is_not_gone_through_round_by_round() {
    let wait = |used: &str| {
        let script = format!(
            "clean=false\nfor i in $(seq 1 90); do\n  used=$(smi | grep x)\n  if [ \"${{used:-0}}\" -le 10 ]; then\n    echo \"clean after $((i * 10))s\"\n    clean=true\n    break\n  fi\n  echo \"waiting $i\"\n  {used}sleep 10\ndone\n[ \"$clean\" = true ] || exit 1\nout \"$clean\" \"$i\""
        );
        let files = tree(&[("run.sh", script.as_str())]);
        // A round takes some ten steps.
        let limits = Limits {
            steps: 400,
            ..Limits::default()
        };
        let setup = Setup {
            limits,
            ..with_env("run.sh", &[])
        };
        evaluate(&files, &ScriptCache::new(limits), &setup)
    };
    let evaluation = wait("");
    assert_eq!(evaluation.truncated, None);
    let found: Vec<_> = evaluation
        .programs()
        .filter(|c| c.name().as_deref() == Some("out"))
        .collect();
    assert!(found.iter().all(|c| c.argv[1].value.known().as_deref() == Some("true")));
    // The first rounds are told apart; it may have been any other.
    assert!(found.iter().any(|c| !c.argv[2].value.is_known()), "{}", found.len());
    let slept = evaluation.programs().filter(|c| c.name().as_deref() == Some("sleep"));
    assert_eq!(slept.count(), 1);
    // A round that does something of its own is worth seeing.
    for used in [
        "touch /tmp/$i; ",
        "[ $i -eq 80 ] && exit 1; ",
        "n=$i; ",
        "(( i > 80 )) && exit 1; ",
    ] {
        assert!(wait(used).truncated.is_some(), "{used}");
    }
    // Where nothing is open, the last word is what it was.
    let evaluation = eval(
        "for i in $(seq 1 90); do echo \"$i\"; n=1; done > /dev/null\nout $i $n",
        &[],
    );
    assert_eq!(outs(&evaluation), ["[90][1]"]);
}
