#!/usr/bin/env python3
"""Measures reading and expanding a whole revision, ours and the repository's own generator, in one run.

    time_both.py <matrix-binary> <policy.yaml> <git-dir> <scratch> [<revision>]

Ours: texts in memory, read, expanded, every fingerprint computed, the median of 50. The generator: its `main()` over the
same texts on disk, once with PyYAML's pure loader as it is run, once with libyaml, without the start of Python; and the
whole program. The best of three each.
"""
import contextlib
import importlib.util
import io
import pathlib
import subprocess
import sys
import time

import yaml

LOGIC = "utils/matrix_logic"
CONFIGS = ["configs/amd-master.yaml", "configs/nvidia-master.yaml", "configs/runners.yaml"]


def best(action):
    times = []
    for _ in range(3):
        started = time.perf_counter()
        rows = action()
        times.append(time.perf_counter() - started)
    return min(times) * 1000, rows


def main():
    binary, policy, git_dir = sys.argv[1:4]
    scratch, revision = pathlib.Path(sys.argv[4]), (sys.argv[5:] or ["HEAD"])[0]
    for path in [*CONFIGS, f"{LOGIC}/generate_sweep_configs.py", f"{LOGIC}/validation.py"]:
        (scratch / path).parent.mkdir(parents=True, exist_ok=True)
        blob = subprocess.run(["git", f"--git-dir={git_dir}", "cat-file", "blob", f"{revision}:{path}"],
                              check=True, capture_output=True).stdout
        (scratch / path).write_bytes(blob)
    program = scratch / LOGIC / "generate_sweep_configs.py"
    options = ["full-sweep", "--config-files", *(str(scratch / path) for path in CONFIGS[:2]),
               "--runner-config", str(scratch / CONFIGS[2])]
    print("ours:", subprocess.run([binary, policy, git_dir, "time", revision, "50"], check=True, capture_output=True,
                                  text=True).stdout.strip())
    sys.path.insert(0, str(program.parent))
    spec = importlib.util.spec_from_file_location("generate_sweep_configs", program)
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    sys.argv = ["generate", *options]

    def inside():
        with contextlib.redirect_stdout(io.StringIO()):
            return len(generator.main())

    pure = yaml.safe_load
    print("generator, pure loader: %.0f ms, %d rows" % best(inside))
    yaml.safe_load = lambda stream: yaml.load(stream, Loader=yaml.CSafeLoader)
    print("generator, libyaml: %.0f ms, %d rows" % best(inside))
    yaml.safe_load = pure
    whole = lambda: len(subprocess.run([sys.executable, str(program), *options], check=True, capture_output=True).stdout)
    print("generator, whole program: %.0f ms, %d bytes printed" % best(whole))


main()
