//! Known inputs: what the evaluator says must be what bash does. Every expected line was produced by bash 5.2; with
//! COUNTERSIGN_BASH naming a bash, the table is produced again and compared (`out` prints its words in brackets).

mod common;

/// A script and the words its `out` commands get.
const TABLE: &[(&str, &str)] = &[
    // Quoting and words.
    (r#"out a 'b c' "d  e" f\ g $'h\ti' ''"#, "[a][b c][d  e][f g][h\ti][]"),
    ("out a\\\nb 'x'\"y\"z", "[ab][xyz]"),
    ("x='a  b'; out $x \"$x\" p$x", "[a][b][a  b][pa][b]"),
    ("out one `# a comment` two $(true) three", "[one][two][three]"),
    ("out \\\n  a \\\n  b", "[a][b]"),
    ("x=''; out $x \"$x\" \"a$x\"", "[][a]"),
    (
        "out {a,b}c x{1..3} {01..03} {a..c} {} {a} a{b,c{d,e}}",
        "[ac][bc][x1][x2][x3][01][02][03][a][b][c][{}][{a}][ab][acd][ace]",
    ),
    ("x=5; out \"{$x,y}\" {$x,y}", "[{5,y}][5][y]"),
    // Parameters.
    ("out ${x:-d} ${x-d} \"${x:+s}\" ${y:=v} $y", "[d][d][][v][v]"),
    ("x=''; out \"${x:-d}\" \"${x-d}\" \"${x:+s}\" \"${x+s}\"", "[d][][][s]"),
    (
        "x=a/b/c.tar.gz; out ${x##*/} ${x#*/} ${x%.*} ${x%%.*} ${x%/*}",
        "[c.tar.gz][b/c.tar.gz][a/b/c.tar][a/b/c][a/b]",
    ),
    (
        "x=banana; out ${x/a/o} ${x//a/o} ${x/#b/B} ${x/%a/A} ${x//an/} ${x/z/y}",
        "[bonana][bonono][Banana][bananA][ba][banana]",
    ),
    (
        "x=hello; out ${x:1} ${x:1:3} ${x: -3} ${x: -3:2} ${#x} ${x:0:-1}",
        "[ello][ell][llo][ll][5][hell]",
    ),
    ("x=heLLo; out ${x^} ${x^^} ${x,,} ${x,}", "[HeLLo][HELLO][hello][heLLo]"),
    (
        "n=x; x=val; out ${!n} ${!n:-d}; n=missing; out \"${!n:-d}\"",
        "[val][val]\n[d]",
    ),
    (
        "x='{\"a\": 1}'; out \"${x}\" \"{\\\"k\\\": \\\"$x\\\"}\"",
        "[{\"a\": 1}][{\"k\": \"{\"a\": 1}\"}]",
    ),
    ("x=\"a b\"; y=\"<$x>\"; out \"$y\" ${x// /_}", "[<a b>][a_b]"),
    ("d=/data; out \"${d:+${d}:}p\" \"${e:+${e}:}p\"", "[/data:p][p]"),
    ("x=*.txt; out \"$x\" \"${x%.txt}\"", "[*.txt][*]"),
    ("x='a.b'; out ${x%\".b\"} ${x#\"a\"}", "[a][.b]"),
    ("x=abc; out ${x#[ab]} ${x##[!c]*[!c]} ${x/[b-c]/X}", "[bc][c][aXc]"),
    ("x=aXbXc; IFS=X; out $x; unset IFS; out $x", "[a][b][c]\n[aXbXc]"),
    ("IFS=,; x=a,,b; out $x", "[a][][b]"),
    // Positional parameters.
    (
        "set -- a 'b c' d; out \"$@\"; out \"$*\"; out $#; shift; out \"$1\" $#; shift 5; out $#",
        "[a][b c][d]\n[a b c d]\n[3]\n[b c][2]\n[2]",
    ),
    (
        "set -- a b c d; out \"${@:2}\" \"${@:2:2}\" \"${@: -1}\"; out x\"$@\"y",
        "[b][c][d][b][c][d]\n[xa][b][c][dy]",
    ),
    (
        "f() { out \"$1\" \"$#\"; set -- z; out \"$1\"; }; set -- p; f a b; out \"$1\"",
        "[a][2]\n[z]\n[p]",
    ),
    ("set --; out \"$@\" end; out \"x$@\"", "[end]\n[x]"),
    // Arrays.
    (
        "a=(x 'y z'); a+=(w); out \"${a[@]}\" ${#a[@]} \"${a[1]}\" ${a[-1]} \"${a[*]}\"",
        "[x][y z][w][3][y z][w][x y z w]",
    ),
    (
        "a=(); out ${#a[@]} \"${a[@]}\" end; a+=(1); out \"${a[@]}\"",
        "[0][end]\n[1]",
    ),
    (
        "a=(1 2 3 4); out \"${a[@]:1:2}\" \"${a[@]/3/x}\" ${!a[@]}",
        "[2][3][1][2][x][4][0][1][2][3]",
    ),
    (
        "a=(\n  one # first\n  # nothing\n  two\n)\nout \"${a[@]}\"",
        "[one][two]",
    ),
    (
        "a[3]=x; a[1]=y; out \"${a[@]}\" \"${!a[@]}\"; unset 'a[1]'; out ${#a[@]}",
        "[y][x][1][3]\n[1]",
    ),
    (
        "declare -A m=([k]=v [j]='w x'); m[l]+=z; out \"${m[k]}\" \"${m[j]}\" ${#m[@]} \"${m[l]}\"",
        "[v][w x][3][z]",
    ),
    (
        "a=(a b); b=(\"${a[@]}\" c); out \"${b[@]}\"; a=x; out \"${a[@]}\"",
        "[a][b][c]\n[x][b]",
    ),
    ("a=(p q); out pre\"${a[@]}\"post", "[prep][qpost]"),
    ("s='x y'; a=($s); out ${#a[@]}; a=(\"$s\"); out ${#a[@]}", "[2]\n[1]"),
    (
        "f() { local -a a=(1 2); a+=(3); out \"${a[@]}\"; }; f; out \"${a[@]}\" end",
        "[1][2][3]\n[end]",
    ),
    (
        "a=([2]=c [0]=a b2); out \"${!a[@]}\" \"${a[@]}\"",
        "[0][1][2][a][b2][c]",
    ),
    // Arithmetic.
    (
        "x=8; out $((x * 2)) $((x > 16 ? x : 16)) $(( (x + 1) % 4 )) $((x++)) $x $((--x))",
        "[16][16][1][8][9][8]",
    ),
    (
        "((i = 3)); ((i += 2)); let i*=2; out $i; if ((i > 5)); then out big; fi",
        "[10]\n[big]",
    ),
    (
        "a=(5 6); out $((a[1] * 2)); declare -i n=2+3; n+=4; out $n",
        "[12]\n[9]",
    ),
    (
        "for ((i = 0; i < 3; i++)); do s+=\"${s:+,}$((i * 2))\"; done; out $s",
        "[0,2,4]",
    ),
    ("out $((0x10)) $((010)) $((2**10)) $((7 & 3 | 8))", "[16][8][1024][11]"),
    // Conditions.
    (
        "[ 3 -le 8 ] && out yes || out no; [ a = b ] && out yes || out no",
        "[yes]\n[no]",
    ),
    (
        "[[ abc == a* && ! x == y ]] && out 1; [[ abc == \"a*\" ]] || out 2; [[ b > a ]] && out 3",
        "[1]\n[2]\n[3]",
    ),
    (
        "[[ v12.3 =~ ^v([0-9]+)\\.([0-9]+)$ ]] && out ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}",
        "[12][3]",
    ),
    (
        "re='^[0-9]+$'; [[ 42 =~ $re ]] && out num; [[ 4x =~ $re ]] || out text",
        "[num]\n[text]",
    ),
    (
        "[ -n \"$x\" ] || out empty; [ -z \"$x\" -a 1 -eq 1 ] && out both; [ ! -n \"$x\" ] && out not",
        "[empty]\n[both]\n[not]",
    ),
    ("x=dynamo-vllm; [[ $x == dynamo-* && ${y:-1} != 0 ]] && out on", "[on]"),
    ("if false; then out a; elif true; then out b; else out c; fi", "[b]"),
    ("[[ -v x ]] || out unset; x=; [[ -v x ]] && out set", "[unset]\n[set]"),
    (
        "x=3; case $x in 1|2) out low;; [3-5]) out mid;; *) out high;; esac",
        "[mid]",
    ),
    (
        "case 'a b' in 'a b') out quoted;; esac; case x in y) out no;; esac; out end",
        "[quoted]\n[end]",
    ),
    (
        "case a in a) out 1;& b) out 2;; c) out 3;; esac; case a in a) out 4;;& ?) out 5;; esac",
        "[1]\n[2]\n[4]\n[5]",
    ),
    (
        "shopt -s extglob\ncase foo.sh in @(*.sh|*.py)) out script;; esac; [[ 123 == +([0-9]) ]] && out digits",
        "[script]\n[digits]",
    ),
    (
        "true && false || out x; ! true || out y; { false; } || { out z; }",
        "[x]\n[y]\n[z]",
    ),
    ("test 1 = 1 && out t; test; out $?", "[t]\n[1]"),
    // Loops.
    (
        "for x in a 'b c' d; do [[ $x == d ]] && continue; out \"$x\"; done; out \"$x\"",
        "[a]\n[b c]\n[d]",
    ),
    (
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); [ $i -eq 2 ] && break; done; out $i",
        "[2]",
    ),
    (
        "i=3; until ((i == 0)); do ((i--)); done; out $i; for i in $(seq 2 4); do out $i; done",
        "[0]\n[2]\n[3]\n[4]",
    ),
    (
        "for i in 1 2; do for j in a b; do [ $j = b ] && continue 2; out $i$j; done; done",
        "[1a]\n[2a]",
    ),
    (
        "f() { while [[ $# -gt 0 ]]; do case $1 in --m) m=$2; shift 2;; --flag) g=1; shift;; *) out bad $1; return 1;; esac; done; out $m $g; }; f --m x --flag; f --z; out $?",
        "[x][1]\n[bad][--z]\n[1]",
    ),
    (
        "set -- 1 2; for x; do out $x; done; for x in; do out never; done; out end",
        "[1]\n[2]\n[end]",
    ),
    // Functions.
    (
        "f() { local x=in y; y=2; z=3; out $x; return 4; }; x=out; f; out $? $x \"$y\" $z",
        "[in]\n[4][out][][3]",
    ),
    (
        "function g { out g \"$@\"; }; g 1; h() ( x=sub; out $x ); x=top; h; out $x",
        "[g][1]\n[sub]\n[top]",
    ),
    (
        "f() { x=$1; [ $1 -gt 2 ] && return; f $(($1 + 1)); }; f 1; out $x",
        "[3]",
    ),
    (
        "f() { V=$V2 out \"$V\"; }; V2=a; V=old; f; out $V; V=tmp f; out $V",
        "[old]\n[old]\n[tmp]\n[old]",
    ),
    ("f() { echo \"r:$1\"; }; x=$(f a); out \"$x\" \"$(f b)\"", "[r:a][r:b]"),
    (
        "f() { unset x; }; x=1; f; out \"${x-gone}\"; g() { local x=2; unset x; out \"${x-none}\"; }; g",
        "[gone]\n[none]",
    ),
    // Substitutions and text programs.
    (
        "out $(echo a b) \"$(printf '%s-%03d' x 7)\" \"$(echo 'a  b')\"",
        "[a][b][x-007][a  b]",
    ),
    (
        "out $(basename /a/b/c.sh .sh) $(dirname /a/b/c.sh) $(basename a/) $(dirname x)",
        "[c][/a/b][a][.]",
    ),
    (
        "x=$(echo 1x2x3 | tr 'x' '\\n' | sort -n | tail -1); out $x $(echo a,b,c | cut -d, -f2)",
        "[3][b]",
    ),
    (
        "out $(printf '%s\\n' b a c a | sort -u | paste -sd, -) $(printf 'a\\nb\\n' | wc -l)",
        "[a,b,c][2]",
    ),
    (
        "out \"$(echo 'a/b:c' | sed 's/[\\/:]/_/g')\" \"$(echo aXb | sed -E 's/(a)(X)/\\2\\1/')\"",
        "[a_b_c][Xab]",
    ),
    (
        "out $(echo x_fp8_vllm_tp8 | sed -n 's/.*_\\([^_][^_]*\\)_\\([^_][^_]*\\)_tp.*/\\1 \\2/p')",
        "[fp8][vllm]",
    ),
    (
        "out $(awk 'BEGIN{printf \"%.6f\", (2.49-1)/3}') $(awk -v a=5 'BEGIN { print a*2 }')",
        "[0.496667][10]",
    ),
    (
        "out $(awk 'BEGIN{print (3.75-1)/6}'); if awk -v s=3 'BEGIN { exit !(s > 2) }'; then out more; fi",
        "[0.458333]\n[more]",
    ),
    (
        "echo 'a --tp 8' | grep -q -- '--tp' && out found; echo x | grep -q y || out missing",
        "[found]\n[missing]",
    ),
    ("out \"$(cat <<EOF\nl1 $((1+1))\nl2\nEOF\n)\"", "[l1 2\nl2]"),
    (
        "x=1; (x=2; out $x); out $x; { x=3; }; out $x; x=4 | true; out $x",
        "[2]\n[1]\n[3]\n[3]",
    ),
    (
        "cat > /tmp/cs_t1 <<EOF\nk: ${V:-d}\nEOF\necho more >> /tmp/cs_t1; out \"$(cat /tmp/cs_t1)\"; rm /tmp/cs_t1",
        "[k: d\nmore]",
    ),
    (
        "cat > /tmp/cs_t2 <<'EOF'\nk: $V\nEOF\nsed -i 's/k/j/' /tmp/cs_t2; out \"$(cat /tmp/cs_t2)\" \"$(< /tmp/cs_t2)\"; rm /tmp/cs_t2",
        "[j: $V][j: $V]",
    ),
    (
        "cat <<-A > /tmp/cs_t3; out after\n\tx\n\tA\nout \"$(cat /tmp/cs_t3)\"; rm /tmp/cs_t3",
        "[after]\n[x]",
    ),
    (
        "cat <<A - <<B | tr a-z A-Z > /tmp/cs_t4\none\nA\ntwo\nB\nout \"$(cat /tmp/cs_t4)\"; rm /tmp/cs_t4",
        "[TWO]",
    ),
    (
        "read -r a b <<< 'x y z'; out $a \"$b\"; IFS=',' read -ra L <<< 'p,q'; out \"${L[@]}\"",
        "[x][y z]\n[p][q]",
    ),
    (
        "while read -r l; do out \"$l\"; done <<EOF\na b\nc\nEOF\nwhile read -r k v; do out $v; done < <(printf 'x 1\\ny 2\\n')",
        "[a b]\n[c]\n[1]\n[2]",
    ),
    (
        "mapfile -t m <<< $'a\\nb'; out ${#m[@]} ${m[1]}; printf -v p '%s.%s' 1 2; out $p",
        "[2][b]\n[1.2]",
    ),
    (
        "eval 'x=5; out $x'; y='out \"q r\" s'; eval \"$y\"; eval \"v_$x=7\"; out $v_5",
        "[5]\n[q r][s]\n[7]",
    ),
    (
        "x=$(bash -c 'echo \"$0-$1\"' name arg); out $x; bash -c 'exit 3'; out $?",
        "[name-arg]\n[3]",
    ),
    (
        "printf '%q ' out 'a b' | cat > /tmp/cs_t5; out \"$(cat /tmp/cs_t5)\"; rm /tmp/cs_t5",
        "[out a\\ b ]",
    ),
    (
        "cd /; out $PWD \"$(pwd)\"; cd /usr/bin; out $PWD; cd ..; out $PWD; x=$(cd /tmp && pwd); out $x $PWD",
        "[/][/]\n[/usr/bin]\n[/usr]\n[/tmp][/usr]",
    ),
    (
        "pushd /usr >/dev/null; out $PWD; popd >/dev/null; [ \"$PWD\" != /usr ] && out back",
        "[/usr]\n[back]",
    ),
    ("export A=1; bash -c 'echo $A-$B' | { read -r x; out \"$x\"; }", "[1-]"),
    (
        "set -e; f() { false; out not reached; }; if f; then out suppressed; fi; false || out go; out end; false; out never",
        "[not][reached]\n[suppressed]\n[go]\n[end]",
    ),
    (
        "set -euo pipefail; x=${y:-z}; out $x; [[ a == b ]] && out no; out still; (exit 3) || out $?",
        "[z]\n[still]\n[3]",
    ),
    ("trap 'out bye' EXIT; out hi", "[hi]\n[bye]"),
    (
        "x=a; x+=b; x+=$x; out $x; export E=1 F=\"$x\"; out $E $F; readonly R=2; out $R",
        "[abab]\n[1][abab]\n[2]",
    ),
    (
        "out $(for i in 1 2; do echo $i; done) $(if true; then echo y; fi) $(x=3; echo $x)",
        "[1][2][y][3]",
    ),
    (
        "false; out $?; true; out $?; x=$(exit 3); out $?; local_test() { local v=$(exit 3); out $?; }; local_test",
        "[1]\n[0]\n[3]\n[0]",
    ),
    (
        "command -v out >/dev/null && out found; type nosuchthing >/dev/null 2>&1 || true; out direct",
        "[found]\n[direct]",
    ),
    (
        "x='$(echo no)'; out \"$x\" '$x' \\$x; y='`echo no`'; out \"$y\"",
        "[$(echo no)][$x][$x]\n[`echo no`]",
    ),
    ("a=1 b=$a; out $b; a=2 b=$a c=3; out $b $c", "[1]\n[2][3]"),
    (
        "x=$'a\\nb\\n\\n'; out \"$(echo \"$x\")\"; out \"${x%%$'\\n'*}\"",
        "[a\nb]\n[a]",
    ),
    (
        "if ! out in condition; then :; fi; ! false && out ok",
        "[in][condition]\n[ok]",
    ),
    (
        "out a;out b&&out c||out d;out e&\nwait; out f # comment; out g",
        "[a]\n[b]\n[c]\n[e]\n[f]",
    ),
    ("x=5\ny=6\nFOO=1\nout $x $y $FOO", "[5][6][1]"),
    (
        "x=${x:-$(echo def)} y=\"${y:-\"q z\"}\"; out $x \"$y\" \"${z:-'s'}\" ${z:-'s t'}",
        "[def][q z]['s'][s t]",
    ),
    (
        "out ~root | cat; x=~; [ \"$x\" = \"$HOME\" ] && out home; out a~b",
        "[~root]\n[home]\n[a~b]",
    ),
    // Loops that count or put a list together.
    (
        r#"s=; for ((n = 1; n <= 4; n++)); do if [ -n "$s" ]; then s+=","; fi; s+="$((n * 2))"; done; out "$s" $n"#,
        r#"[2,4,6,8][5]"#,
    ),
    (
        r#"k=3; s=x; for ((n = 0; n < 9; n += k)); do s+="${s:+,}$n"; done; out "$s" $n"#,
        r#"[x,0,3,6][9]"#,
    ),
    (
        r#"s=; for w in a 'b c' d; do if [ "$w" = a ]; then s="<$w"; elif [ "$w" = d ]; then s+=" $w>"; else s+="|$w"; fi; done; out "$s" "$w""#,
        r#"[<a|b c d>][d]"#,
    ),
    (
        r#"declare -i t=1; for ((n = 1; n <= 3; n++)); do t+=n; done; out $t"#,
        r#"[7]"#,
    ),
    (
        r#"readonly r=1; for w in a b; do s+="$r$w"; done; out "$s""#,
        r#"[1a1b]"#,
    ),
    (
        r#"for ((n = 5; n <= 4; n++)); do s=never; done; out "$n[$s]""#,
        r#"[5[]]"#,
    ),
    (
        r#"for ((n = 0; ; n++)); do if [ "$n" -ge 3 ]; then break; fi; done; out $n"#,
        r#"[3]"#,
    ),
    (
        r#"a=b; b=4; for ((n = 0; n < a; n++)); do s+="$n"; done; out "$s""#,
        r#"[0123]"#,
    ),
    (
        r#"for w in 1 2 3; do if ((w % 2)); then s+="$((w ** 2));"; fi; done; out "$s""#,
        r#"[1;9;]"#,
    ),
    (
        r#"n=0; for w in 1 2 3 4 5 6 7 8 9 10 11; do echo "$w"; n=1; done > /dev/null; out $w $n"#,
        r#"[11][1]"#,
    ),
    (
        r#"for w in $(seq 1 12); do if [ "$w" -eq 10 ]; then break; fi; done; out $w"#,
        r#"[10]"#,
    ),
    (
        r#"a=(x y); for ((n = 0; n < ${#a[@]}; n++)); do a[n]+="$n"; done; out "${a[@]}""#,
        r#"[x0][y1]"#,
    ),
    (r#"export E=1; for w in a b; do E+="$w"; done; out "$E""#, r#"[1ab]"#),
    (
        r#"s=; for ((n = 0; n < 3; n++)); do s="$s$n"; t=$s; s+="-"; done; out "$s" "$t""#,
        r#"[0-1-2-][0-1-2]"#,
    ),
];

/// Lines that depend on the machine are left out of the comparison with a real bash.
const MACHINE: &str = "~root";

#[test]
fn same_words_as_bash() {
    let mut wrong = Vec::new();
    for (script, expected) in TABLE.iter().filter(|(s, _)| !s.contains(MACHINE)) {
        let evaluation = common::eval_answered(script, &["HOME=/root", "PATH=/bin"]);
        let ours = common::outs(&evaluation).join("\n");
        if ours != *expected {
            wrong.push(format!(
                "{script}\n  bash: {expected:?}\n  ours: {ours:?}\n  {:?}",
                evaluation.diagnostics
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        TABLE.len(),
        wrong.join("\n")
    );
}

#[test]
fn table_is_what_bash_does() {
    let Ok(bash) = std::env::var("COUNTERSIGN_BASH") else {
        eprintln!("skipped: COUNTERSIGN_BASH names no bash");
        return;
    };
    let mut wrong = Vec::new();
    for (script, expected) in TABLE.iter().filter(|(s, _)| !s.contains(MACHINE)) {
        let text = format!("out() {{ printf '[%s]' \"$@\"; printf '\\n'; }}\nexport -f out\n{script}\n");
        let output = std::process::Command::new(&bash)
            .args(["-c", &text])
            .env_clear()
            .env("HOME", "/root")
            .env("PATH", "/usr/bin:/bin")
            .output()
            .expect("bash starts");
        let got = String::from_utf8_lossy(&output.stdout);
        if got.trim_end_matches('\n') != *expected {
            wrong.push(format!(
                "{script}\n  table: {expected:?}\n  bash: {got:?} {}",
                String::from_utf8_lossy(&output.stderr)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
