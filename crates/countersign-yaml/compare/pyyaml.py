#!/usr/bin/env python3
"""Compares this crate's reading of YAML with PyYAML's, value by value and type by type.

    cargo build --release -p countersign-yaml --example tree
    pyyaml.py <tree-binary> git <git-dir> <revision>...      every *.yml and *.yaml of the revisions
    pyyaml.py <tree-binary> fuzz <git-dir> <revision> <count> [seed]   mutated pieces of them

Needs PyYAML. Writes nothing but its report.
"""
import datetime
import json
import random
import subprocess
import sys

import yaml


def git(git_dir, *args):
    return subprocess.run(["git", f"--git-dir={git_dir}", *args], check=True, capture_output=True).stdout


def tree(value):
    if value is None:
        return ["null"]
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, int):
        return ["int", str(value)] if -(2**63) <= value < 2**63 else ["bigint"]
    if isinstance(value, float):
        return ["float", value]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, (datetime.date, datetime.datetime)):
        return ["date"]
    if isinstance(value, list):
        return ["seq", [tree(item) for item in value]]
    if isinstance(value, dict):
        return ["map", [[tree(key), tree(item)] for key, item in value.items()]]
    return ["other", type(value).__name__]


def same(ours, theirs):
    if ours[0] != theirs[0]:
        return False
    if ours[0] == "float":
        text = ours[1].replace("NaN", "nan")
        number = float(text)
        return number == theirs[1] or (number != number and theirs[1] != theirs[1])
    if ours[0] == "seq":
        return len(ours[1]) == len(theirs[1]) and all(map(same, ours[1], theirs[1]))
    if ours[0] == "map":
        return len(ours[1]) == len(theirs[1]) and all(
            same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(ours[1], theirs[1])
        )
    return ours == theirs


def reference(text):
    try:
        return tree(yaml.safe_load(text)), None
    except RecursionError:
        return None, "recursion"
    except Exception as error:  # noqa: BLE001 - whatever PyYAML raises is a refusal
        return None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def surrogate_free(text):
    return text.encode("utf-8", "ignore").decode("utf-8")


def compare(binary, cases, show=40):
    lines = "".join(json.dumps(text) + "\n" for _, text in cases)
    answers = subprocess.run([binary], input=lines.encode(), check=True, capture_output=True).stdout.splitlines()
    counts = {"same": 0, "both refuse": 0, "differ": 0, "only PyYAML refuses": 0, "only we refuse": 0}
    duplicates = 0
    for (name, text), answer in zip(cases, map(json.loads, answers), strict=True):
        theirs, refusal = reference(text)
        duplicates += bool(answer.get("duplicates"))
        if "error" in answer:
            outcome = "both refuse" if theirs is None else "only we refuse"
        elif theirs is None:
            outcome = "only PyYAML refuses"
        else:
            outcome = "same" if same(answer["tree"], theirs) else "differ"
        counts[outcome] += 1
        if outcome not in ("same", "both refuse") and show > 0:
            show -= 1
            print(f"{outcome}: {name}\n  text: {text[:300]!r}\n  ours: {json.dumps(answer)[:300]}\n"
                  f"  PyYAML: {refusal or json.dumps(theirs)[:300]}")
    print(json.dumps({**counts, "with duplicate keys": duplicates, "PyYAML": yaml.__version__}))


def files(git_dir, revision):
    names = git(git_dir, "ls-tree", "-r", "--name-only", "-z", revision).decode().split("\0")
    for name in names:
        if name.endswith((".yml", ".yaml")):
            try:
                yield f"{revision[:8]}:{name}", git(git_dir, "cat-file", "blob", f"{revision}:{name}").decode()
            except (UnicodeDecodeError, subprocess.CalledProcessError) as error:
                print(f"left out {revision}:{name}: {error}")


def mutate(rng, text):
    lines = text.splitlines(keepends=True)
    start = rng.randrange(len(lines))
    piece = "".join(lines[start : start + rng.randrange(1, 12)])
    alphabet = list(":-?#&*!|>'\"%@`{}[],\t\n ~=<.0123456789_eEnyYoxbZT\\\r") + [
        ": ", "- ", "  ", "\n\n", " #", "<<", "<<: ", "&a ", "*a", "!!str ", "! ", "---\n", "...\n", "|\n", ">-\n",
        "null", "yes", "no", "0x1F", "1e5", "1:30", "2026-01-02", "\u00e9", "'", '"', "? ", "%YAML 1.1\n", ".inf",
    ]
    for _ in range(rng.randrange(0, 5)):
        at = rng.randrange(len(piece) + 1)
        action = rng.randrange(4)
        if action == 0:
            piece = piece[:at] + rng.choice(alphabet) + piece[at:]
        elif action == 1:
            piece = piece[:at] + piece[at + rng.randrange(1, 4) :]
        elif action == 2:
            piece = piece[:at] + rng.choice(alphabet) + piece[at + 1 :]
        else:
            other = rng.randrange(len(piece) + 1)
            low, high = min(at, other), max(at, other)
            piece = piece[:high] + piece[low:high][:40] + piece[high:]
    return surrogate_free(piece)


def main():
    binary, mode, git_dir = sys.argv[1:4]
    if mode == "git":
        cases = [case for revision in sys.argv[4:] for case in files(git_dir, revision)]
    else:
        rng = random.Random(int(sys.argv[6]) if len(sys.argv) > 6 else 1)
        sources = [text for _, text in files(git_dir, sys.argv[4]) if text.strip()]
        cases = [("fuzz", mutate(rng, rng.choice(sources))) for _ in range(int(sys.argv[5]))]
    compare(binary, cases)


main()
