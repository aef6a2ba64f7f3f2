#!/usr/bin/env python3
"""Compares the changelog selection with the repository's own tool, over pairs of base and head.

    changelog.py <matrix-binary> <policy.yaml> <git-dir> <scratch> [--tool own|<revision>] [--options "a b;c"]
                 [--in-process]

Pairs come on standard input, one "base head" a line. The reference is `process_changelog.py` of the head revision
(`own`) or of one fixed revision, run as a program beside the head's configs, with the generator of the same revision; with
`--in-process` both are imported instead of started, which is ten times as fast.
Every bucket must hold the same rows in the same order; our rows first pass through the tool's own output model, which
fills in the fields that it adds. Needs PyYAML and pydantic in the Python that runs this. What is fetched stays in
<scratch>.
"""
import argparse
import collections
import contextlib
import importlib.util
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

BUCKETS = ["evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals"]
DUMP = """
import json, sys
from matrix_logic.validation import ChangelogMatrixEntry
known = set(ChangelogMatrixEntry.model_fields)
data = {key: value for key, value in json.load(sys.stdin).items() if key in known}
data["changelog_metadata"] = {"base_ref": "", "head_ref": "", "entries": []}
print(ChangelogMatrixEntry.model_validate(data).model_dump_json(by_alias=True, exclude_none=True))
"""
FAST = """
import yaml
yaml.safe_load = lambda stream: yaml.load(stream, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
"""


def git(directory, *args):
    return subprocess.run(["git", f"--git-dir={directory}", *args], check=True, capture_output=True).stdout


def extract(directory, revision, paths, place):
    there = git(directory, "ls-tree", "--name-only", revision, "--", *paths).decode().split()
    if not there:
        return
    paths = [path for path in paths if path in there]
    archive = git(directory, "archive", revision, "--", *paths)
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive, check=True)


class Tool:
    def __init__(self, options):
        self.options, self.scratch = options, pathlib.Path(options.scratch).resolve()
        self.scratch.mkdir(parents=True, exist_ok=True)
        commands = self.scratch / "bin"
        commands.mkdir(exist_ok=True)
        python = commands / "python3"
        python.unlink(missing_ok=True)
        python.symlink_to(sys.executable)
        fast = self.scratch / "fast"
        fast.mkdir(exist_ok=True)
        (fast / "sitecustomize.py").write_text(FAST)
        site = next(path for path in sys.path if path.endswith("site-packages"))
        self.environment = {
            **os.environ,
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PYTHONPATH": f"{fast}:{site}",
            "GIT_DIR": str(pathlib.Path(options.git_dir).resolve()),
            "GIT_WORK_TREE": str(self.scratch / "tree"),
        }

    def prepare(self, head):
        self.tree = self.scratch / "tree"
        shutil.rmtree(self.tree, ignore_errors=True)
        self.tree.mkdir()
        extract(self.options.git_dir, head, ["configs", "perf-changelog.yaml"], self.tree)
        extract(self.options.git_dir, head if self.options.tool == "own" else self.options.tool, ["utils"], self.tree)

    def python(self, arguments, text=None):
        return subprocess.run([sys.executable, *arguments], cwd=self.tree, input=text, capture_output=True, text=True,
                              env=self.environment)

    def select(self, base, head, flags):
        done = self.python(["utils/process_changelog.py", "--changelog-file", "perf-changelog.yaml", "--base-ref",
                            base, "--head-ref", head, *flags])
        if done.returncode:
            lines = (done.stderr.strip() or "no message").splitlines()
            return None, " | ".join(lines[-3:])[:300]
        return json.loads(done.stdout), None

    def dump(self, answer):
        place = self.tree / "utils" / "dump_for_comparison.py"
        place.write_text(DUMP)
        done = self.python([str(place)], json.dumps(answer))
        if done.returncode:
            raise RuntimeError(done.stderr[-600:])
        return json.loads(done.stdout)


class InProcess(Tool):
    """Imports the tool and the generators; the tool's own calls of a generator are answered here."""

    def __init__(self, options):
        super().__init__(options)
        import yaml

        known, load = {}, getattr(yaml, "CSafeLoader", yaml.SafeLoader)

        def fast(stream):
            text = stream.read() if hasattr(stream, "read") else stream
            if text not in known:
                known.clear() if len(known) > 32 else None
                known[text] = yaml.load(text, Loader=load)
            return json.loads(json.dumps(known[text])) if isinstance(known[text], (dict, list)) else known[text]

        yaml.safe_load = fast
        self.modules, self.run_program = {}, subprocess.run

    def load(self, path, name):
        """A module and those beside it, fresh for each distinct set of sources."""
        path = pathlib.Path(path).resolve()
        folder = path.parent
        sources = tuple(file.read_bytes() for file in sorted(folder.rglob("*.py")) if "test" not in file.name)
        key = (name, sources)
        if key not in self.modules:
            ours = ("process_changelog", "generate_sweep_configs", "validation", "constants", "matrix_logic")
            for module in [module for module in sys.modules if module.split(".")[0] in ours]:
                del sys.modules[module]
            sys.path.insert(0, str(folder))
            spec = importlib.util.spec_from_file_location(name, path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[name] = module
            spec.loader.exec_module(module)
            sys.path[:] = [entry for entry in sys.path if pathlib.Path(entry).resolve() != folder]
            self.modules[key] = module
        return self.modules[key]

    def call(self, module, argv):
        saved, sys.argv = sys.argv, argv
        out = io.StringIO()
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
                module.main()
            return out.getvalue(), None
        except (SystemExit, Exception) as error:  # noqa: BLE001 - whatever it raises is a refusal
            return None, f"{type(error).__name__}: {error}".replace("\n", " | ")[:300]
        finally:
            sys.argv = saved

    def run(self, command, **options):
        if command[0] != "python3":
            return self.run_program(command, **options)
        answer, refusal = self.call(self.load(command[1], "generate_sweep_configs"), command[1:])
        if refusal:
            raise subprocess.CalledProcessError(1, command, "", refusal)
        return subprocess.CompletedProcess(command, 0, answer, "")

    def select(self, base, head, flags):
        here, environment = os.getcwd(), dict(os.environ)
        os.chdir(self.tree)
        os.environ.update(GIT_DIR=self.environment["GIT_DIR"], GIT_WORK_TREE=str(self.tree))
        subprocess.run = self.run
        try:
            self.tool = self.load("utils/process_changelog.py", "process_changelog")
            answer, refusal = self.call(self.tool, ["process_changelog", "--changelog-file", "perf-changelog.yaml",
                                                    "--base-ref", base, "--head-ref", head, *flags])
        finally:
            subprocess.run = self.run_program
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environment)
        return (json.loads(answer), None) if refusal is None else (None, refusal)

    def dump(self, answer):
        if not hasattr(self.tool, "recipe_fingerprint"):  # Older tools know none.
            for row in answer_rows(answer):
                row.pop("recipe-fingerprint", None)
        model = self.tool.ChangelogMatrixEntry
        data = {key: value for key, value in answer.items() if key in model.model_fields}
        data["changelog_metadata"] = {"base_ref": "", "head_ref": "", "entries": []}
        return json.loads(model.model_validate(data).model_dump_json(by_alias=True, exclude_none=True))


def answer_rows(answer):
    for kind in ("single_node", "multi_node"):
        for rows in answer[kind].values():
            yield from rows


def without_empty(value):
    if isinstance(value, dict):
        return {key: without_empty(part) for key, part in value.items() if part is not None}
    return [without_empty(part) for part in value] if isinstance(value, list) else value


def buckets(answer):
    found = {f"{kind}.{name}": rows for kind in ("single_node", "multi_node") for name, rows in answer[kind].items()}
    return {**found, **{name: answer[name] for name in BUCKETS if answer.get(name)}}


def main():
    parser = argparse.ArgumentParser()
    for name in ("binary", "policy", "git_dir", "scratch"):
        parser.add_argument(name)
    parser.add_argument("--tool", default="own")
    parser.add_argument("--options", default="", help="sets of trim, all-evals, evals-only; sets separated by `;`")
    parser.add_argument("--in-process", action="store_true")
    parser.add_argument("--without-empty", action="store_true", help="a field that is null is as good as none")
    options = parser.parse_args()
    tool = InProcess(options) if options.in_process else Tool(options)
    ours = subprocess.Popen([options.binary, options.policy, options.git_dir, "select"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    counts, rows, seconds = collections.Counter(), 0, 0.0
    for line in sys.stdin:
        base, head = line.split()
        tool.prepare(head)
        for flags in options.options.split(";"):
            ours.stdin.write(f"{base} {head} {flags}\n")
            ours.stdin.flush()
            answer = json.loads(ours.stdout.readline())
            started = time.perf_counter()
            names = {"trim": "--trim-conc", "all-evals": "--all-evals", "evals-only": "--evals-only"}
            theirs, refusal = tool.select(base, head, [names[flag] for flag in flags.split()])
            seconds += time.perf_counter() - started
            if "problems" in answer or theirs is None:
                outcome = ("both refuse" if "problems" in answer and theirs is None
                           else "only the tool refuses" if theirs is None else "only we refuse")
            else:
                mine, reference = buckets(tool.dump(answer)), buckets(theirs)
                if options.without_empty:
                    mine, reference = without_empty(mine), without_empty(reference)
                outcome = "identical" if mine == reference else "differ"
                rows += sum(map(len, reference.values()))
            counts[f"{flags or 'plain'}: {outcome}"] += 1
            if outcome == "both refuse":
                print(f"{head[:12]} {flags} both refuse: ours {answer['problems'][:1]}, tool {refusal}")
            elif outcome != "identical":
                print(f"{head[:12]} {flags} {outcome}: {answer.get('problems', [])[:2]} {refusal or ''}")
                if outcome == "differ":
                    for name in sorted(mine.keys() | reference.keys()):
                        left, right = mine.get(name, []), reference.get(name, [])
                        if left != right:
                            print(f"   {name}: ours {len(left)}, tool {len(right)}")
                            for a, b in zip(left, right):
                                if a != b:
                                    print(f"      ours {json.dumps(a)[:900]}\n      tool {json.dumps(b)[:900]}")
                                    break
    print(json.dumps({"rows": rows, "tool seconds": round(seconds, 1), **dict(sorted(counts.items()))}, indent=1))


main()
