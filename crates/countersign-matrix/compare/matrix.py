#!/usr/bin/env python3
"""Compares the expansion with the repository's own generator, row by row, over revisions.

    cargo build --release -p countersign-matrix --example matrix
    matrix.py <matrix-binary> <policy.yaml> <git-dir> <scratch> [--generator own|<revision>] <revision>...

For each revision the reference is the generator of that revision (`own`) or of one fixed revision, run with its own
`main()` in four modes (throughput rows with fingerprints, marked rows, evaluation rows, all evaluation rows). Rows are
compared as multisets, every field. Nothing fetched stays behind but what is put into <scratch>. Needs PyYAML, pydantic.
"""
import argparse
import collections
import contextlib
import copy
import importlib.util
import io
import json
import pathlib
import subprocess
import sys
import time

import yaml

MODES = {"unmarked": ["--no-evals"], "marked": [], "evals-only": ["--evals-only"], "all-evals": ["--all-evals"]}
LOGIC = "utils/matrix_logic"


class Git:
    def __init__(self, directory):
        self.directory = directory

    def run(self, *args):
        return subprocess.run(["git", f"--git-dir={self.directory}", *args], check=True, capture_output=True).stdout

    def blob(self, revision, path):
        try:
            return self.run("cat-file", "blob", f"{revision}:{path}")
        except subprocess.CalledProcessError:
            return None


class FastYaml:
    """PyYAML's C loader in place of the pure one, each text parsed once."""

    def __init__(self):
        self.known = {}

    def __call__(self, stream):
        text = stream.read() if hasattr(stream, "read") else stream
        if text not in self.known:
            if len(self.known) > 64:
                self.known.clear()
            self.known[text] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return copy.deepcopy(self.known[text])


def load(path, name, also=()):
    for module in (name, *also):
        sys.modules.pop(module, None)
    sys.path.insert(0, str(path.parent))
    try:
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path = [entry for entry in sys.path if entry != str(path.parent)]


class Reference:
    def __init__(self, git, scratch):
        self.git, self.scratch, self.generators = git, pathlib.Path(scratch), {}
        utils = self.scratch / "fingerprint"
        (utils / "matrix_logic").mkdir(parents=True, exist_ok=True)
        for path in ("process_changelog.py", "constants.py", "matrix_logic/generate_sweep_configs.py",
                     "matrix_logic/validation.py"):
            (utils / path).write_bytes(git.blob("HEAD", f"utils/{path}"))
        self.fingerprint = load(utils / "process_changelog.py", "process_changelog").recipe_fingerprint

    def generator(self, revision):
        sources = [self.git.blob(revision, f"{LOGIC}/{name}.py") for name in ("generate_sweep_configs", "validation")]
        key = tuple(sources)
        if key not in self.generators:
            place = self.scratch / f"generator-{len(self.generators)}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "generate_sweep_configs.py").write_bytes(sources[0])
            (place / "validation.py").write_bytes(sources[1])
            self.generators[key] = load(place / "generate_sweep_configs.py", "generate_sweep_configs", ["validation"])
        return self.generators[key]

    def rows(self, generator, masters, runners, mode):
        argv = ["generate", "full-sweep", "--config-files", *masters, "--runner-config", runners, *MODES[mode]]
        saved, sys.argv = sys.argv, argv
        try:
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                rows = generator.main()
        except SystemExit as error:
            return None, f"exit {error.code}"
        except Exception as error:  # noqa: BLE001 - whatever it raises is a refusal
            return None, f"{type(error).__name__}: {str(error)[:300]}"
        finally:
            sys.argv = saved
        rows = json.loads(json.dumps(rows))
        if mode == "unmarked":
            for row in rows:
                row["recipe-fingerprint"] = self.fingerprint(row)
        return rows, None


def bag(rows):
    return collections.Counter(json.dumps(row, sort_keys=True) for row in rows)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("binary")
    parser.add_argument("policy")
    parser.add_argument("git_dir")
    parser.add_argument("scratch")
    parser.add_argument("--generator", default="own")
    parser.add_argument("--masters", nargs="+", default=["configs/amd-master.yaml", "configs/nvidia-master.yaml"])
    parser.add_argument("--runners", default="configs/runners.yaml")
    parser.add_argument("--pure", action="store_true", help="PyYAML's pure loader, as the generator runs it")
    parser.add_argument("--quiet", action="store_true")
    parser.add_argument("--without", action="append", default=[], metavar="FIELD",
                        help="leave a field out of the comparison of marked rows")
    parser.add_argument("revisions", nargs="*", help="or one per line on standard input")
    options = parser.parse_intermixed_args()
    revisions = options.revisions or sys.stdin.read().split()
    git = Git(options.git_dir)
    reference = Reference(git, options.scratch)
    if not options.pure:
        yaml.safe_load = FastYaml()
    ours = subprocess.Popen([options.binary, options.policy, options.git_dir, "serve"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    counts, seconds, total = collections.Counter(), 0.0, 0
    place = pathlib.Path(options.scratch) / "configs"
    place.mkdir(parents=True, exist_ok=True)
    for revision in revisions:
        ours.stdin.write(revision + "\n")
        ours.stdin.flush()
        paths = []
        for number, path in enumerate([*options.masters, options.runners]):
            target, blob = place / f"{number}.yaml", git.blob(revision, path)
            target.unlink(missing_ok=True)
            if blob is not None:
                target.write_bytes(blob)
            paths.append(str(target))
        generator = reference.generator(revision if options.generator == "own" else options.generator)
        answer = json.loads(ours.stdout.readline())
        outcomes = []
        for mode in MODES:
            started = time.perf_counter()
            theirs, refusal = reference.rows(generator, paths[:-1], paths[-1], mode)
            seconds += time.perf_counter() - started
            mine = answer[mode].get("rows")
            if theirs is None or mine is None:
                outcome = ("both refuse" if theirs is None and mine is None
                           else "only the generator refuses" if theirs is None else "only we refuse")
            else:
                total += len(mine)
                if mode == "marked":
                    for row in [*mine, *theirs]:
                        for field in options.without:
                            row.pop(field, None)
                outcome = "identical" if bag(mine) == bag(theirs) else "differ"
            outcomes.append(outcome)
            counts[f"{mode}: {outcome}"] += 1
            if outcome not in ("identical", "both refuse") and not options.quiet:
                print(f"{revision[:12]} {mode}: {outcome}")
                if refusal:
                    print("   generator:", refusal.replace("\n", " | "))
                for problem in answer[mode].get("problems", [])[:3]:
                    print("   ours:", problem)
                if outcome == "differ":
                    for label, rows in (("ours", bag(mine) - bag(theirs)), ("generator", bag(theirs) - bag(mine))):
                        print(f"   only {label}: {sum(rows.values())}", *list(rows)[:1], sep="\n      ")
        kind = ("identical in all modes" if set(outcomes) == {"identical"} else
                "refused by both" if set(outcomes) == {"both refuse"} else "not the same")
        counts[f"revisions {kind}"] += 1
    print(json.dumps({"revisions": len(revisions), "rows compared": total, "generator seconds": round(seconds, 1),
                      **dict(sorted(counts.items()))}, indent=1))


main()
