#!/usr/bin/env python3
"""Write made-up changelog changes with the answers of the repository's own tools, as JSON lines.

tests/changelog_mutations.rs reads them (COUNTERSIGN_MUTATIONS) and must give the same answers. Texts are written as
Latin-1 strings, one character a byte.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

LINK = "https://github.com/SemiAnalysisAI/InferenceX/pull/"
KEYS = ["a-fp8-x", "a-fp8-y", "b-fp4-x"]


def item(rng, link):
    lines = ["- config-keys:"]
    lines += [f"    - {rng.choice(KEYS + ['a-*', '*-x'])}" for _ in range(rng.randint(1, 2))]
    lines += ["  description:"]
    lines += [f'    - "{rng.choice(["Bump", "Tune", "Add", "Ünï"])} {rng.randint(1, 9)}"' for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.3:
        lines += ["  scenario-type:", "    - fixed-seq-len"]
    if rng.random() < 0.15:
        lines += ["  evals-only: true"]
    lines += [f"  pr-link: {link}"]
    return "\n".join(lines) + "\n"


PIECES = ["\n", "  \n", "\n\n", "# note\n", "\t", "\r", "\r\n", "\0", "\u00e9", " ", "- ", "--\n", "++\n", "  pr-link: TBD\n",
          "  evals-only: 1\n", "  evals-only: 'yes'\n", "  append-only: true\n", "  bogus: 1\n", "  <<: {a: 1}\n", "  description: []\n",
          "- a-fp8-x\n", "  config_keys: [a-fp8-x]\n", "  eval-min-prefill-ep: '2'\n", "  eval-min-prefill-ep: 0\n", "---\n", "...\n",
          "  description:\n    - again\n", "  pr-link: XXX\n", "- config-keys: [nope]\n", "&x ", "*x", "  all-evals: no\n", '"', "'", ": ",
          "  scenario-type: []\n", "  scenario-type: null\n", "- {config-keys: [a-fp8-x], description: [x], pr-link: XXX}\n",
          "- description: [x]\n  config-keys: [a-fp8-x]\n  pr-link: XXX\n", "  pr_link: XXX\n", "- \n", "? ", "!!str ", "|\n", ">\n"]


def mutate(rng, text):
    lines = text.splitlines(keepends=True)
    kind = rng.randrange(9)
    at = rng.randrange(len(lines)) if lines else 0
    if rng.random() < 0.6 and lines:
        at = rng.randrange(max(0, len(lines) - 9), len(lines))
    if kind == 0 and lines:
        del lines[at]
    elif kind == 1:
        lines.insert(at, rng.choice(PIECES))
    elif kind == 2 and lines:
        lines.insert(at, lines[rng.randrange(len(lines))])
    elif kind == 3 and lines:
        line = lines[at]
        cut = rng.randrange(len(line) + 1)
        lines[at] = line[:cut] + rng.choice(PIECES) + line[cut:]
    elif kind == 4 and lines:
        other = rng.randrange(len(lines))
        lines[at], lines[other] = lines[other], lines[at]
    elif kind == 5:
        lines.append(rng.choice(PIECES))
    elif kind == 6 and lines:
        lines[-1] = lines[-1].rstrip("\n")
    elif kind == 7 and lines:
        lines[at] = lines[at].replace("pull/7", f"pull/{rng.choice(['8', 'XXX', '7/changes', ''])}").replace("  ", rng.choice(["  ", " ", "   "]), 1)
    elif kind == 8:
        lines.insert(at, "\n" + item(rng, rng.choice([LINK + "7", LINK + "9", "XXX", LINK + "XXX", "TBD"])) + rng.choice(["", "\n"]))
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--reference", required=True)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sys.path.insert(0, args.reference)
    import process_changelog as process
    import validate_perf_changelog as validate
    import yaml
    from matrix_logic.validation import ChangelogEntry

    rng = random.Random(args.seed)
    folder = tempfile.mkdtemp()
    os.chdir(folder)
    git = lambda *a: subprocess.run(["git", *a], check=True, capture_output=True, text=True).stdout.strip()
    git("init", "-q")
    git("config", "user.email", "made@up")
    git("config", "user.name", "Made Up")
    git("config", "core.autocrlf", "false")
    path = pathlib.Path("perf-changelog.yaml")
    trees = []

    def commit(raw):
        path.write_bytes(raw)
        git("add", "-A")
        tree = git("write-tree")
        return git("commit-tree", tree, "-m", "x")

    def strict(base, head, number):
        try:
            old, new = validate.parse_changelog(base, "base"), validate.parse_changelog(head, "head")
            additions, corrections = validate.compare_entries(old, new, number)
            validate.validate_raw_change(base, head, len(additions), corrections)
        except validate.ChangelogValidationError as error:
            return str(error)
        return None

    def gate(base, head, raw):
        if not raw.endswith(b"\n"):
            return "no final newline", None
        added = None
        try:
            added = process.get_added_lines(base, head, str(path))
            if not added.strip():
                raise ValueError("no additions")
            data = yaml.safe_load(added)
            if not data:
                raise ValueError("no entries")
            entries = [ChangelogEntry.model_validate(entry) for entry in data]
            only = [entry.append_only for entry in entries]
            if any(only) and not all(only):
                raise ValueError("append-only beside regular entries")
            for entry in entries:
                process.get_config_keys_from_master(entry.config_keys, dict.fromkeys(KEYS))
        except Exception as error:  # noqa: BLE001
            return f"{type(error).__name__}: {error}", added
        return None, added

    for _ in range(args.count):
        base = "\n".join(item(rng, LINK + str(rng.randint(1, 6))) for _ in range(rng.randint(1, 5)))
        if rng.random() < 0.2:
            base += rng.choice(["\n", "  \n"])
        head = base
        if rng.random() < 0.8:
            head += ("" if base.endswith("\n\n") else "\n") + "\n".join(item(rng, rng.choice([LINK + "7"] * 4 + ["XXX", LINK + "XXX", "TBD", LINK + "8"])) for _ in range(rng.randint(1, 2)))
        for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
            head = mutate(rng, head)
        if rng.random() < 0.05:
            base = mutate(rng, base)
        old, new = base.encode(), head.encode()
        if rng.random() < 0.02:
            spot = rng.randrange(len(new) + 1)
            new = new[:spot] + b"\xff" + new[spot:]
        a, b = commit(old), commit(new)
        red, added = gate(a, b, new)
        print(json.dumps({
            "base": old.decode("latin-1"), "head": new.decode("latin-1"), "pull": strict(old, new, 7), "main": strict(old, new, None),
            "gate": red, "added": added,
        }))


if __name__ == "__main__":
    main()
