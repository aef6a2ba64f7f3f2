#!/usr/bin/env python3
"""Makes a repository of made-up changes.

    made_up_changes.py <folder with the repository's utils> testdata/made-up <new git directory> <count> <seed> [distort]

Prints pairs of base and head, for `changelog.py ... --tool own`: each pair edits the made-up configs at random, mostly by
adding points, and appends changelog items of every kind; most are append-only, whose rules history exercises only once.
With `distort` it prints revisions, for `matrix.py`: in each a few values are of another type, out of range, or gone.
"""
import copy
import json
import pathlib
import random
import subprocess
import sys

import yaml

BASE_ITEM = "- config-keys:\n    - old\n  description:\n    - x\n  pr-link: l\n"
MASTERS = {"configs/amd-master.yaml": "three", "configs/nvidia-master.yaml": "corners"}


def rows(masters):
    for master in masters.values():
        for entry in master.values():
            for blocks in entry["scenarios"].values():
                for block in blocks:
                    for row in block["search-space"]:
                        yield entry, block, row


def edit(rng, masters, runners):
    """One random edit; the first ones only add points."""
    entry, block, row = rng.choice(list(rows(masters)))
    kind = rng.choices(range(20), [8, 3, 3] + [1] * 17)[0]
    several = "conc-list" in row
    if kind == 0 and several:
        row["conc-list"].insert(rng.randrange(len(row["conc-list"]) + 1), rng.choice([1, 6, 24, 48, 200]))
    elif kind == 1 and not several:
        row["conc-end"] *= rng.choice([2, 3])
    elif kind == 2:
        new = copy.deepcopy(row)
        part = new if "tp" in new else new[rng.choice(["prefill", "decode"])]
        part[rng.choice(["tp", "ep"])] = rng.choice([1, 2, 4, 8])
        block["search-space"].insert(rng.randrange(len(block["search-space"]) + 1), new)
    elif kind == 3 and several:
        row["conc-list"].pop(rng.randrange(len(row["conc-list"])))
    elif kind == 4:
        block["search-space"].remove(row)
    elif kind == 5:
        entry["image"] = rng.choice(["acme/engine:v9", "acme/engine:v1"])
    elif kind == 6:
        row["router"] = {"name": "gate", "version": rng.choice(["1.0", "9"])}
    elif kind == 7:
        row["spec-decoding"] = rng.choice(["mtp", "none", "draft_model"])
    elif kind == 8:
        block["dram-utilization"] = rng.choice([0.5, 0.8, 1])
    elif kind == 9:
        facts = rng.choice(list(runners["hardware"].values()))
        facts["available-cpu-dram-mib"] += rng.choice([0, 1, 2000])
    elif kind == 10:
        master = rng.choice(list(masters.values()))
        master[f"new-{rng.randrange(9)}"] = copy.deepcopy(entry)
    elif kind == 11:
        for master in masters.values():
            for key in [key for key, other in master.items() if other is entry and len(master) > 1]:
                del master[key]
    elif kind == 12:
        entry["scenarios"]["fixed-seq-len"] = [{"isl": 1024, "osl": 1024, "search-space": [{"tp": 1, "conc-list": [1]}]}]
    elif kind == 13:
        entry["scenarios"].pop(rng.choice(list(entry["scenarios"])))
    elif kind == 14:
        rng.shuffle(block["search-space"])
    elif kind == 15 and "prefill" in row:
        row["prefill"]["hardware"] = row["decode"]["hardware"] = rng.choice(["r900", "r901"])
    elif kind == 16 and "prefill" in row:
        row["decode"]["num-worker"] += 1
    elif kind == 17:
        entry[rng.choice(["model", "model-prefix", "framework", "precision"])] = rng.choice(["acme/Zeta-2.5", "other"])
    elif kind == 18 and "kv-offloading" in row:
        row["kv-offloading"], row["kv-offload-backend"] = "dram", {"name": rng.choice(["pool", "none"])}
    elif kind == 19 and "isl" in block:
        block["isl"] = rng.choice([1024, 2048])
    return entry


ODD = [None, 0, -1, 1, 4, 1.0, 1.5, 0.5, True, False, "4", "", " ", "x", "none", "true", "image:1", "mtp", "dram", [], [1], ["x"],
       [None], {}, {"name": "a"}, {"name": "a", "version": "b"}, 10**6, 2**63, 10**30, 1e300, "\u00e9", "a=b", "1_000", "*", "?"]


def distort(rng, masters, runners):
    """Anything anywhere: another value, a field gone, added, renamed or moved."""
    places = []

    def walk(node):
        for key, value in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
            places.append((node, key))
            if isinstance(value, (dict, list)):
                walk(value)

    roots = [*masters.values(), runners]
    walk(rng.choices(roots, [3, 6, 1])[0])
    node, key = rng.choice(places)
    kind = rng.randrange(6)
    if kind == 0:
        del node[key]
    elif kind == 1 and isinstance(node, dict):
        other = rng.choice([str(key).replace("-", "_"), str(key) + "s", "trace-source", "pp", "tp", "disagg", "hardware", "router",
                            "kv-offloading", "kv-p2p-transfer", "dram-utilization", "conc-list", "conc-end", "multinode", "ep"])
        node[other] = node.pop(key) if rng.random() < 0.5 else rng.choice(ODD)
    elif kind == 2:
        other, name = rng.choice(places)
        node[key] = copy.deepcopy(other[name])
    else:
        node[key] = copy.deepcopy(rng.choice(ODD))


def items(rng, masters, touched):
    keys = [key for master in masters.values() for key in master]
    names = [key for master in masters.values() for key, entry in master.items() if any(entry is one for one in touched)]
    pools = [keys, names or keys, names or keys, ["*", "zeta*", "theta*", "*agentic*", "gone"]]
    only = rng.random() < 0.7
    text = ""
    for _ in range(rng.choice([1, 1, 1, 2])):
        chosen = set(names) if names and rng.random() < 0.7 else [rng.choice(rng.choice(pools))]
        item = {"config-keys": sorted(chosen), "description": ["d"], "pr-link": "XXX"}
        if only and rng.random() < 0.97:
            item["append-only"] = True
        if rng.random() < 0.2:
            item["scenario-type"] = rng.choice([["fixed-seq-len"], ["agentic-coding"], ["agentic-coding", "fixed-seq-len"]])
        if rng.random() < (0.02 if only else 0.4):
            item[rng.choice(["evals-only", "all-evals"])] = True
        if rng.random() < (0.02 if only else 0.3):
            item["eval-min-prefill-ep"] = rng.choice([1, 2, 4, 8])
        text += "\n" + yaml.safe_dump([item], sort_keys=False)
    return text


def main():
    utils, folder, target = (pathlib.Path(path) for path in sys.argv[1:4])
    count, rng, odd = int(sys.argv[4]), random.Random(int(sys.argv[5])), sys.argv[6:] == ["distort"]
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(target)], check=True)
    stream, mark = [], 0

    def blob(data):
        stream.append(b"data %d\n%s\n" % (len(data), data))

    def commit(files, parent=None):
        nonlocal mark
        mark += 1
        stream.append(b"commit refs/heads/main\nmark :%d\ncommitter a <a@b> %d +0000\n" % (mark, mark))
        blob(b"x")
        if parent:
            stream.append(b"from :%d\n" % parent)
        for path, data in files.items():
            stream.append(b"M 100644 inline %s\n" % path.encode())
            blob(data if isinstance(data, bytes) else data.encode())
        return mark

    original = {path: yaml.safe_load((folder / f"{name}.yaml").read_text()) for path, name in MASTERS.items()}
    facts = yaml.safe_load((folder / "runners.yaml").read_text())
    tools = {f"utils/{path.relative_to(utils)}": path.read_bytes() for path in utils.rglob("*.py")}

    def files(masters, runners, changelog):
        # Through JSON, so that no anchors are written for what is shared.
        plain = {path: yaml.safe_dump(json.loads(json.dumps(master)), sort_keys=False) for path, master in masters.items()}
        return {**plain, "configs/runners.yaml": yaml.safe_dump(runners, sort_keys=False), "perf-changelog.yaml": changelog}

    pairs = []
    for _ in range(count):
        masters = json.loads(json.dumps(original))
        runners = copy.deepcopy(facts)
        if odd:
            for _ in range(rng.choice([1, 1, 1, 2])):
                distort(rng, masters, runners)
            pairs.append([commit({**tools, **files(masters, runners, BASE_ITEM)})])
            continue
        for _ in range(rng.choice([0, 0, 0, 1, 2])):  # Bases differ too.
            edit(rng, masters, runners)
        base = commit({**tools, **files(masters, runners, BASE_ITEM)})
        touched = [edit(rng, masters, runners) for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        head = commit(files(masters, runners, BASE_ITEM + items(rng, masters, touched)), base)
        pairs.append([base, head])
    marks = target / "marks"
    subprocess.run(["git", f"--git-dir={target}", "fast-import", "--quiet", "--force", f"--export-marks={marks}"],
                   input=b"".join(stream), check=True)
    known = dict(line.split() for line in marks.read_text().splitlines())
    for marks in pairs:
        print(*(known[f":{mark}"] for mark in marks))


main()
