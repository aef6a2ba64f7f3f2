#!/usr/bin/env python3
"""Replays the changelog items of every merged pull request on the configs of one revision.

    replayed.py <git-dir> <new git directory> [<revision>]

Older pull requests were made for configs that the present generator refuses as a whole; their selections can still be
compared on present configs. Prints one pair of base and head for each pull request (by its link) that still names at
least one entry; keys that name none any more are left out. For `changelog.py ... --tool own`.
"""
import fnmatch
import re
import subprocess
import sys

import yaml

FILE = "perf-changelog.yaml"
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def main():
    source, target, revision = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["HEAD"])[0]
    run = lambda *args: subprocess.run(["git", f"--git-dir={source}", *args], check=True, capture_output=True).stdout
    names = run("ls-tree", "-r", "--name-only", revision, "--", "configs", "utils").decode().split("\n")
    wanted = [name for name in names if re.fullmatch(r"configs/[^/]*\.yaml|utils/([^/]*|matrix_logic/[^/]*)\.py", name)]
    tree = {name: run("cat-file", "blob", f"{revision}:{name}") for name in wanted}
    changelog = run("cat-file", "blob", f"{revision}:{FILE}")
    known = set()
    for name in ("amd", "nvidia"):
        known |= set(yaml.load(tree[f"configs/{name}-master.yaml"], Loader=LOADER))
    pulls = {}
    for item in yaml.load(changelog, Loader=LOADER):
        # `?` and brackets are literal there; none occurs in a key.
        item["config-keys"] = [key for key in item["config-keys"] if fnmatch.filter(known, key)]
        number = re.search(r"/pull/(\d+)", item["pr-link"])
        if item["config-keys"] and number:
            item.pop("append-only", None)
            pulls.setdefault(int(number.group(1)), []).append(item)
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", target], check=True)
    stream, mark = [], 0

    def data(text):
        stream.append(b"data %d\n%s\n" % (len(text), text))

    def commit(files, parent):
        nonlocal mark
        mark += 1
        stream.append(b"commit refs/heads/main\nmark :%d\ncommitter a <a@b> %d +0000\n" % (mark, mark))
        data(b"x")
        stream.append(b"from :%d\n" % parent if parent else b"")
        for path, content in files.items():
            stream.append(b"M 100644 inline %s\n" % path.encode())
            data(content)
        return mark

    # A short history stands for the real one; what is added is what counts.
    short = b"- config-keys:\n    - old\n  description:\n    - x\n  pr-link: l\n"
    base = commit({**tree, FILE: short}, None)
    heads = []
    for _, items in sorted(pulls.items()):
        heads.append(commit({FILE: short + b"\n" + yaml.safe_dump(items, sort_keys=False).encode()}, base))
    marks = f"{target}/marks"
    subprocess.run(["git", f"--git-dir={target}", "fast-import", "--quiet", "--force", f"--export-marks={marks}"],
                   input=b"".join(stream), check=True)
    found = dict(line.split() for line in open(marks).read().splitlines())
    for head in heads:
        print(found[f":{base}"], found[f":{head}"])


main()
