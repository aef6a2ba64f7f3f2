"""Compares our CODEOWNERS matcher with `codeowners` and `pathspec` from PyPI.

`codeowners` implements GitHub's rules; `pathspec` implements gitignore's, which GitHub's
documentation names as the basis. A difference is explained only if it falls into one of the
classes below, and each class is checked, not assumed: asked again in a form that avoids the
class, the other implementation must give our answer.

refused      We refuse a pattern that GitHub refuses or that can match nothing: brackets, a
             leading `!`, three asterisks, an empty, `.` or `..` segment. The others accept them.
blank        `codeowners` turns a blank into twenty slashes, so that `*` and `?` do not match a
             blank and `docs` matches in `my docs`. With a letter in place of the blank it agrees.
lone star    gitignore lets a last segment `*` match a directory with all its content. GitHub's
             documentation says that `docs/*` matches no nested file. The path lies below
             something that we match.
zero dirs    `a/**/`: we let `**` stand for no directory here as everywhere, so the direct
             content of `a` belongs to it, and `**/` is everything. The others want at least one
             directory. GitHub does not document the case. They agree on `a/`.
"""

import collections
import json
import random
import subprocess
import sys

import pathspec
from codeowners import CodeOwners

NAMES = ["a", "b", "ab", "src", "docs", "lib.rs", "x.md", ".github", "A", "a-b", "é"]
WILD = ["*.rs", "*.md", "a*", "*b", "s*c", "l?b.rs", "*.*", "?", "??", "a?", "?*", "*?", "*a*", ".*", "*a*b*"]
ESCAPED = ["a\\*b", "a\\?", "\\[x\\]", "\\a", "a\\\\b", "\\!a"]
LITERAL = ["{a,b}", "(a)", "a+b", "a|b", "@a", "~a", "^a", "$a", "a!"]
INNER = ["a**", "**a", "a**b"]
REFUSED = ["[ab]", "!a", "***", "a]", ".", "..", ""]
PATH_NAMES = NAMES + ["my docs", "a*b", "a?", "[x]", "a\\b", "{a,b}", "(a)", "a+b", "axb", "abb", "lab.rs", "@a", "!a"]


def segment(r, odd=True):
    kinds = [(45, NAMES), (10, ["*"]), (13, ["**"]), (12, WILD)]
    if odd:
        kinds += [(5, ["my\\ docs", "a\\ *"]), (5, ESCAPED), (5, LITERAL), (3, INNER), (2, REFUSED)]
    weights, lists = zip(*kinds)
    return r.choice(r.choices(lists, weights)[0])


def pattern(r, odd=True):
    body = "/".join(segment(r, odd) for _ in range(r.choice([1, 1, 1, 2, 2, 2, 3, 3, 4])))
    return r.choice(["", "", "/"]) + body + r.choice(["", "", "/"])


def near(r, text):
    """A path that the pattern may well match."""
    out = []
    for seg in text.strip("/").split("/"):
        if seg == "**":
            out += r.choices(PATH_NAMES, k=r.choice([0, 1, 2]))
            continue
        name, chars = "", iter(seg)
        for c in chars:
            if c == "\\":
                name += next(chars, "")
            elif c == "*":
                name += r.choice(["", "b", "x.y", " "])
            else:
                name += r.choice("abx ") if c == "?" else c
        out.append(name)
    if r.random() < 0.4:
        out += r.choices(PATH_NAMES, k=r.choice([1, 2]))
    if r.random() < 0.3:
        out.insert(0, r.choice(PATH_NAMES))
    # Only paths that git can have.
    return "/".join(n for n in out if n not in ("", ".", "..")) or "a"


def path(r, text):
    if r.random() < 0.7:
        return near(r, text)
    return "/".join(r.choices(PATH_NAMES, k=r.choice([1, 1, 2, 2, 3, 4])))


def by_codeowners(text, name):
    return CodeOwners(text + " @someone").matching_line(name)[1] is not None


def by_gitignore(text, name):
    return pathspec.GitIgnoreSpec.from_lines([text]).match_file(name)


def is_refused(text):
    plain, chars = "", iter(text)
    for c in chars:
        plain += "x" if c == "\\" and next(chars, None) else c
    segments = plain.removeprefix("/").removesuffix("/").split("/")
    return plain.startswith("!") or any(x in plain for x in ("[", "]", "***")) or any(s in ("", ".", "..") for s in segments)


def without_zero_dirs(text):
    """`a/**/` as `/a/`, `**/` as `**`."""
    while text.endswith("**/") and (len(text) == 3 or text[-4] == "/"):
        text = text[:-3]
    return "/" + text.lstrip("/") if text.strip("/") else "**"


def explain(ours, other, name, text, target):
    """The class of a difference, or None."""
    if ours == "refused":
        return "refused" if is_refused(text) else None
    if name == "codeowners" and " " in target:
        text, target = text.replace("\\ ", "_"), target.replace(" ", "_")
        if other(text, target) == ours:
            return "blank"
    if text.endswith("**/") and ours and other(without_zero_dirs(text), target):
        return "zero dirs"
    if name == "pathspec" and not ours and (text == "*" or text.endswith("/*")):
        parts = target.split("/")
        parents = ["/".join(parts[:n]) for n in range(1, len(parts))]
        # gitignore, asked about the path with everything below the directory cut off.
        if any(other(text, p) and not other(text.removesuffix("*") + "zzz", p) for p in parents):
            return "lone star"
    return None


def ask(binary, questions):
    lines = "\n".join(json.dumps(q) for q in questions)
    done = subprocess.run([binary], input=lines, text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(questions), "one answer a question"
    return answers


def whole_file(r):
    """A valid file in the part of the language on which nobody differs."""
    lines = []
    for _ in range(r.randrange(1, 9)):
        kind = r.random()
        if kind < 0.1:
            lines.append(r.choice(["", "   ", "# note", "\t# * @nobody"]))
            continue
        text = pattern(r, odd=False)
        while text.endswith("**/"):
            text = pattern(r, odd=False)
        owners = r.sample(["@a", "@B-c", "@Org/team", "x@y.example"], k=r.choice([0, 1, 1, 2, 3]))
        lines.append(r.choice(["", " "]) + r.choice([" ", "\t", "  "]).join([text, *owners]) + r.choice(["", " "]))
    return r.choice(["\n", "\r\n"]).join(lines) + r.choice(["", "\n"]), r.choice(lines)


def main(binary, count, seed):
    r = random.Random(seed)
    pairs = []
    for _ in range(count):
        text = pattern(r)
        pairs.append((text, path(r, text)))
    answers = ask(binary, [{"pattern": p, "path": x} for p, x in pairs])

    explained, unexplained = collections.Counter(), []
    for (text, target), ours in zip(pairs, answers):
        if (ours == "refused") != is_refused(text):
            unexplained.append(f"{text!r}: ours {ours}, wrongly refused or wrongly accepted")
        for name, other in (("codeowners", by_codeowners), ("pathspec", by_gitignore)):
            if ours != "refused":
                theirs = other(text, target)
                if theirs == ours:
                    continue
            reason = explain(ours, other, name, text, target)
            if reason:
                explained[name, reason] += 1
            else:
                unexplained.append(f"{text!r} on {target!r}: ours {ours}, {name} differs")

    # Whole files: the winning line and its owners, no class of difference allowed.
    questions = []
    for _ in range(count // 10):
        text, line = whole_file(r)
        name = path(r, line.split()[0] if line.split() else "a").replace(" ", "-")
        questions.append({"file": text, "path": name})
    for question, ours in zip(questions, ask(binary, questions)):
        owners, line, _, _ = CodeOwners(question["file"]).matching_line(question["path"])
        theirs = {"line": line or 0, "owners": [text for _, text in owners]}
        if theirs != ours:
            unexplained.append(f"{question}: ours {ours}, codeowners {theirs}")

    yes, no = answers.count(True), answers.count(False)
    print(f"{yes} matched, {no} not, {answers.count('refused')} refused; {len(questions)} whole files")
    for (name, reason), n in sorted(explained.items()):
        print(f"  {name}: {n} differ as explained under '{reason}'")
    for text in unexplained[:50]:
        print("UNEXPLAINED", text)
    # A generator that stopped matching anything would agree with everybody.
    if min(yes, no) < count // 10:
        print("the questions are one-sided")
        return 1
    print(f"{len(pairs)} pairs, {len(unexplained)} unexplained differences")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
