#!/usr/bin/env python3
"""Compare our changelog answers with the repository's own tools, commit by commit.

The tools are not part of this repository: fetch them into a scratch folder and name it (see README.md beside this
file). Input is what tests/changelog_history.rs writes; output is one table and the list of every difference.
"""

import argparse
import collections
import concurrent.futures
import functools
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile

FILE = "perf-changelog.yaml"
FAST = """
import yaml
yaml.safe_load = lambda stream: yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""


def git(clone, *args):
    done = subprocess.run(["git", "--git-dir", clone, *args], capture_output=True)
    return done.stdout if done.returncode == 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clone", required=True)
    parser.add_argument("--reference", required=True, help="folder with the repository's utils at one revision")
    parser.add_argument("--ours", required=True)
    parser.add_argument("--whole-gate", metavar="FILE",
                        help="also run each commit's own gate, matrix included; answers are kept in this file and not asked twice")
    parser.add_argument("--fast", action="store_true", help="let the reference scan YAML with libyaml")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--whole-limit", type=int, help="at most so many new answers of whole gates")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--select", nargs=2, metavar=("BINARY", "RULES"),
                        help="the matrix example and its rules: our whole gate is then the gate and the generated matrix")
    parser.add_argument("--only-whole-gate", action="store_true", help="ask only for whole gates, compare nothing")
    args = parser.parse_args()

    sys.path.insert(0, args.reference)
    os.environ["GIT_DIR"] = args.clone
    import yaml

    if args.fast:
        yaml.SafeLoader = yaml.CSafeLoader
    import process_changelog as process
    import validate_perf_changelog as validate
    from matrix_logic.validation import ChangelogEntry

    @functools.lru_cache(maxsize=8)
    def parsed(raw):
        try:
            return validate.parse_changelog(raw, "changelog")
        except validate.ChangelogValidationError as error:
            return error

    def strict(base, head, number):
        old, new = parsed(base), parsed(head)
        for version in (old, new):
            if isinstance(version, Exception):
                return str(version)
        try:
            additions, corrections = validate.compare_entries(old, new, number)
            validate.validate_raw_change(base, head, len(additions), corrections)
        except validate.ChangelogValidationError as error:
            return str(error)
        return None

    @functools.lru_cache(maxsize=8)
    def master(blob):
        return yaml.load(blob, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) or {}

    def gate(base, head, raw):
        """The gate up to the generated matrix."""
        if not raw.endswith(b"\n"):
            return "no final newline"
        try:
            added = process.get_added_lines(base, head, FILE)
            if not added.strip():
                raise ValueError("no additions")
            data = yaml.safe_load(added)
            if not data:
                raise ValueError("no entries")
            entries = [ChangelogEntry.model_validate(entry) for entry in data]
            only = [entry.append_only for entry in entries]
            if any(only) and not all(only):
                raise ValueError("append-only beside regular entries")
            keys = {}
            for folder in ("configs", ".github/configs"):
                for name in ("amd-master.yaml", "nvidia-master.yaml"):
                    blob = git(args.clone, "show", f"{head}:{folder}/{name}")
                    keys.update(master(blob) if blob else {})
            for entry in entries:
                process.get_config_keys_from_master(entry.config_keys, keys)
        except Exception as error:  # noqa: BLE001 - any failure is a red gate
            return f"{type(error).__name__}: {error}"
        return None

    def whole_gate(row):
        """The commit's own gate, in a copy of its own tree."""
        archive = git(args.clone, "archive", row["head"], "utils", "configs", ".github/configs")
        if archive is None:
            archive = git(args.clone, "archive", row["head"], "utils", "configs") or git(
                args.clone, "archive", row["head"], "utils", ".github/configs")
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as loader:
            environment = dict(os.environ)
            if args.fast:
                (pathlib.Path(loader) / "sitecustomize.py").write_text(FAST)
                environment["PYTHONPATH"] = loader
            tarfile.open(fileobj=io.BytesIO(archive)).extractall(folder, filter="data")
            done = subprocess.run(
                [sys.executable, "utils/process_changelog.py", "--changelog-file", FILE,
                 "--base-ref", row["base"], "--head-ref", row["head"]],
                cwd=folder, capture_output=True, text=True, env=environment)
        return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]

    rows = [json.loads(line) for line in pathlib.Path(args.ours).read_text().splitlines()]
    rows = [row for row in rows if row["changed"]][: args.limit]
    whole = {}
    if args.whole_gate:
        kept = pathlib.Path(args.whole_gate)
        if kept.exists():
            whole = dict(json.loads(line) for line in kept.read_text().splitlines())
        # Evenly spread first, so that an interrupted run is a fair sample.
        spread = sorted(range(len(rows)), key=lambda i: (int(f"{i:010b}"[::-1], 2), i))
        todo = [rows[i] for i in spread if rows[i]["head"] not in whole][: args.whole_limit]
        with kept.open("a") as out, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            for row, reason in zip(todo, pool.map(whole_gate, todo)):
                whole[row["head"]] = reason
                print(json.dumps([row["head"], reason]), file=out, flush=True)
    if args.only_whole_gate:
        print(f"{len(whole)} whole gates known")
        return
    ours_whole = {}
    if args.select:
        pairs = "".join(f"{row['base']} {row['head']}\n" for row in rows)
        done = subprocess.run([*args.select, args.clone, "select"], input=pairs, capture_output=True, text=True, check=True)
        for row, line in zip(rows, done.stdout.splitlines()):
            ours_whole[row["head"]] = row["gate"] or json.loads(line).get("problems")
    tables = {name: collections.Counter() for name in ("strict on the branch", "strict in the pull", "gate", "whole gate",
                                                      "whole gate, matrix")}
    both = collections.Counter()
    for row in rows:
        base, head = (git(args.clone, "show", f"{row[side]}:{FILE}") or b"" for side in ("base", "head"))
        theirs = {
            "strict on the branch": (strict(base, head, None), row["main"]),
            "strict in the pull": (strict(base, head, row["number"]), row["pull"]),
            "gate": (gate(row["base"], row["head"], head), row["gate"]),
        }
        if row["head"] in whole:
            reason = whole[row["head"]] if head.endswith(b"\n") else "no final newline"
            theirs["whole gate"] = (reason, row["gate"])
            if args.select:
                theirs["whole gate, matrix"] = (reason, ours_whole[row["head"]])
        word = lambda reason: "refuses" if reason else "accepts"
        for name, (reason, ours) in theirs.items():
            tables[name][(word(reason), word(ours))] += 1
            if bool(reason) != bool(ours):
                print(f"DIFFERENT {name} {row['head'][:9]} reference: {reason!r} ours: {str(ours)[:300]}")
        both[(word(theirs["gate"][0]), word(theirs["strict in the pull"][0]))] += 1
    print(f"{len(rows)} commits that change the changelog")
    for name, table in tables.items():
        for (reference, ours), count in sorted(table.items()):
            print(f"{name:22} reference {reference:8} ours {ours:8} {count}")
    for (a, b), count in sorted(both.items()):
        print(f"gate {a:8} strict {b:8} {count}")


if __name__ == "__main__":
    main()
