#!/usr/bin/env python3
"""Builds world files from a fetched clone of the benchmark repository and the plain-text threads.

    build_real.py --clone GIT_DIR --seeds FOLDER --out FOLDER

What is written holds real texts and stays outside of this repository. Boxes were lost when the threads were copied: an
item is ticked unless it is named in OPEN below, which follows what the thread itself says about it. Expected evaluation
rows come from the repository's own generator, run in a scratch checkout; their scores are spread over the range that the
thread reports. What the upstream cookbook said on each day is rebuilt from the facts that the threads and its sources name:
commands for each hardware, precision and decoding mode, in a page of our own.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

from from_cases import slug_of

REPOSITORY = "SemiAnalysisAI/InferenceX"
SIGNER = "Ankur-singh"
PHRASE = "As a PR reviewer and CODEOWNER"

# Items left open, by words of theirs, as the sign-off's own detail section says.
OPEN = {
    "2205-1": ["For agentic workloads", "If any of the above criteria"],
    "2205-2": ["For agentic workloads", "If any of the above criteria"],
    "2550": ["documented in the official", "linked the corresponding upstream", "If any of the above criteria"],
    "2121": ["passes evals", "recipes are similar", "If any of the above criteria"],
}

# Sub-bullets that had no box yet in the template of that day.
NO_BOX = ["If they are not, I have verified"]


def posts(path):
    """Author and text of every post of a thread, in order."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = re.fullmatch(r"\[([A-Za-z0-9-]+)\]", line)
        if match:
            found.append((match.group(1), []))
        elif found:
            found[-1][1].append(line)
    return [(author, "\n".join(lines).strip()) for author, lines in found]


def signoff(text, key):
    """The sign-off as it was typed: bullets become boxes down to the detail section, plain bullets below."""
    out, detail = [], False
    for line in text.splitlines():
        if line.startswith("Additional detail section"):
            detail = True
            out.append("### Additional detail section:")
            continue
        match = re.match(r"(\s*)• (.*)", line)
        if match and not detail and not any(match.group(2).startswith(words) for words in NO_BOX):
            box = " " if any(words in match.group(2) for words in OPEN[key]) else "x"
            out.append(f"{match.group(1)}- [{box}] {match.group(2)}")
        elif match:
            out.append(f"{match.group(1)}- {match.group(2)}")
        else:
            out.append(line)
    return "\n".join(out).replace("github.meowingcats01.workers.dev", "github.com") + "\n"


COOKBOOK = "sgl-project/sglang"
PAGE = "docs/cookbook/autoregressive/Qwen/Qwen3.5.mdx"

# Tensor and expert parallel sizes of the cookbook's 397B commands.
SIZES = {
    ("H100", "fp8"): (8, 1), ("H200", "fp8"): (8, 8), ("B200", "fp8"): (4, 1), ("B300", "fp8"): (4, 1), ("MI300X", "fp8"): (4, 1),
    ("MI325X", "fp8"): (2, 1), ("MI355X", "fp8"): (2, 1), ("B200", "fp4"): (4, 1), ("B300", "fp4"): (4, 1), ("MI355X", "fp4"): (2, 1),
}


def serve(hardware, precision, drafts, second, experts):
    """A command of the cookbook. `second`: it names the second NVFP4 checkpoint. `experts`: B200 drafts on two GPUs."""
    amd = hardware.startswith("MI")
    model = "Qwen/Qwen3.5-397B-A17B-FP8" if precision == "fp8" else "amd/Qwen3.5-397B-A17B-MXFP4" if amd else "nvidia/Qwen3.5-397B-A17B-NVFP4" + ("-V2" if second else "")
    tp, ep = (2, 2) if experts and drafts and (hardware, precision) == ("B200", "fp4") else SIZES[hardware, precision]
    words = [f"--model-path {model}", f"--tp {tp}"] + ([f"--expert-parallel-size {ep}"] if ep > 1 else [])
    if drafts:
        words += ["--speculative-algorithm NEXTN", "--speculative-num-steps 3", "--speculative-eagle-topk 1", "--speculative-num-draft-tokens 4"]
    if amd:
        words += ["--attention-backend aiter"]
    elif precision == "fp8":
        words += ["--enable-flashinfer-allreduce-fusion"]
    if hardware == "H200" or (hardware, precision) == ("B300", "fp8"):
        words += ["--attention-backend flashinfer"]
    elif hardware == "B200" or hardware == "B300":
        words += ["--attention-backend trtllm_mha"]
    if precision == "fp4" and hardware == "B300":
        words += ["--moe-runner-backend flashinfer_trtllm"]
    if precision == "fp4" and hardware == "B200":
        words += ["--quantization modelopt_fp4", "--kv-cache-dtype fp8_e4m3", "--moe-runner-backend flashinfer_trtllm"]
    return " \\\n  ".join(["sglang serve", *words])


def cookbook(second=False, experts=False):
    """The cookbook's page on one day."""
    parts = ["# Qwen3.5\n"]
    for hardware, precision in SIZES:
        for drafts in (False, True):
            title = f"{hardware}, {precision}" + (", MTP" if drafts else "")
            parts.append(f"## {title}\n\n```bash\n{serve(hardware, precision, drafts, second, experts)}\n```\n")
    return "\n".join(parts)


def upstream(*changes):
    """The cookbook's repository: its first state, then merged pull requests as number, time and page."""
    commits = [{"id": "first", "date": "2026-07-01T00:00:00Z", "files": {PAGE: cookbook()}}]
    pulls = []
    for number, moment, page in changes:
        parent = commits[-1]["id"]
        commits.append({"id": f"merge-{number}", "parent": parent, "date": moment, "files": {PAGE: page}})
        pulls.append({"number": number, "title": "Qwen3.5", "author": "someone", "state": "merged", "merged_at": moment,
                      "merge_commit": f"merge-{number}", "head": {"sha": f"merge-{number}", "ref": f"change-{number}"}, "base": {"ref": "main", "sha": parent}})
    return {COOKBOOK: {"commits": commits, "branches": {"main": commits[-1]["id"]}, "pulls": pulls}}


class Clone:
    def __init__(self, path):
        self.path = path

    def git(self, *args):
        return subprocess.run(["git", "-C", self.path, *args], check=True, capture_output=True, text=True).stdout.strip()

    def sha(self, revision):
        return self.git("rev-parse", f"{revision}^{{commit}}")

    def main_at(self, moment):
        return self.git("log", "--first-parent", "--format=%H", f"--before={moment}", "-1", "main")

    def selection(self, head, base):
        """The rows that the repository's own tool selects for head against base."""
        with tempfile.TemporaryDirectory(prefix="countersign-worlds-") as scratch:
            subprocess.run(["git", "clone", "-q", "--shared", "--no-checkout", self.path, scratch], check=True)
            subprocess.run(["git", "-C", scratch, "checkout", "-q", "--detach", head], check=True)
            done = subprocess.run(
                [sys.executable, "utils/process_changelog.py", "--changelog-file", "perf-changelog.yaml", "--base-ref", base, "--head-ref", head],
                cwd=scratch, capture_output=True, text=True)
            if done.returncode != 0:
                raise SystemExit(f"process_changelog.py refuses {head[:8]}: {done.stderr[-500:]}")
            return json.loads(done.stdout)


def eval_rows(selected, low, high, bar_task="gsm8k"):
    """A result for every evaluation row of a selection, scores spread evenly over the reported range."""
    rows = []
    for bucket in ("evals", "agentic_evals", "multinode_evals", "multinode_agentic_evals"):
        for row in selected.get(bucket) or []:
            for conc in ([row["eval-conc"]] if row.get("eval-conc") else row["conc"] if isinstance(row["conc"], list) else [row["conc"]]):
                rows.append((row, conc))
    out = []
    for index, (row, conc) in enumerate(rows):
        score = low + (high - low) * (index / max(1, len(rows) - 1))
        fields = {
            "is_multinode": "prefill" in row, "model": row["model"], "hw": row["runner"].upper(), "framework": row["framework"],
            "precision": row["precision"], "spec_decoding": row["spec-decoding"], "isl": row.get("isl", 0), "osl": row.get("osl", 0),
        }
        if "tp" in row:
            fields |= {"tp": row["tp"], "ep": row["ep"], "dp_attention": str(row["dp-attn"]).lower()}
        for role in ("prefill", "decode"):
            if role in row:
                fields |= {f"{role}_tp": row[role]["tp"], f"{role}_ep": row[role]["ep"], f"{role}_num_workers": row[role]["num-worker"]}
        out.append({"task": bar_task, "model_prefix": row["model-prefix"], "score": round(score, 4), "flexible": round(score, 4), "conc": conc, "n_eff": 1319, "row": fields})
    return out


def count(selected, bucket):
    rows = selected.get(bucket) or {}
    return {name: len(items) for name, items in rows.items()}


def expectation(name, number, day, policy, text):
    """What a verdict in a thread says, row by row, for `countersign accuracy`."""
    rows = {}
    for found in re.finditer(r"Check (\d+) \([^)]*\): (PASS|FAIL|N/A|WARN) — (.*)", text):
        slug = slug_of(int(found.group(1)), day)
        if slug:
            rows[slug] = {"status": found.group(2), "reason": found.group(3).strip()}
    return {"name": name, "pull": number, "date": day, "kind": "a public thread", "decision": "REJECTED" if "REJECTED" in text.splitlines()[0] else "PASS",
            "policy": policy, "rows": rows, "failing": sorted(slug for slug, row in rows.items() if row["status"] == "FAIL"), "complete": True, "assumed": []}


def world(clone, number, head, title, clock, main, runs, comments, timeline, author="hshrivastava-droid", upstream=None):
    return {
        "world": 1,
        "clock": clock,
        "orgs": {"InferenceX": {"teams": {"core": {"unreadable": 403}}}, "SemiAnalysisAI": {}},
        "repositories": {
            REPOSITORY: {
                "clone": clone.path,
                "branches": {"main": main},
                "collaborators": {SIGNER: "write"},
                "pulls": [{
                    "number": number, "title": title, "author": author, "head": {"sha": head, "ref": "topic"}, "base": "main",
                    "labels": ["full-sweep-fail-fast"], "comments": comments,
                }],
                "runs": runs,
            }
        },
        **({"upstream": upstream} if upstream else {}),
        "timeline": timeline,
    }


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--clone", required=True)
    arguments.add_argument("--seeds", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    options = arguments.parse_args()
    clone = Clone(options.clone)
    options.out.mkdir(parents=True, exist_ok=True)
    thread = {path.name[:3]: posts(path) for path in options.seeds.glob("00*.txt")}
    written = lambda name: [text for author, text in thread[name] if author == SIGNER and text.startswith(PHRASE)]
    say = lambda body, identity, moment: {"id": identity, "author": SIGNER, "association": "COLLABORATOR", "body": body, "created_at": moment}

    # Verdicts in the threads, in the order of the worlds below.
    verdicts = {name: [text for _, text in thread[name] if re.search(r"Check 0 \(", text)] for name in thread}
    policies = {"2205-first": ("003", 0, "2026-07-30"), "2205-second": ("003", 1, "2026-08-11"), "2550": ("002", 0, "2026-08-11"), "2121": ("001", 0, "2026-07-29")}

    def save(name, content):
        # A world that goes on from a thread has no verdict to compare with.
        if name in policies:
            seed, nth, policy = policies[name]
            number = content["repositories"][REPOSITORY]["pulls"][0]["number"]
            known = expectation(f"seed-{name}", number, content["clock"][:10], f"inferencex-{policy}", verdicts[seed][nth])
            (options.out / f"seed-{name}.expect.json").write_text(json.dumps(known, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        path = options.out / f"seed-{name}.yaml"
        # JSON is YAML; a world needs nothing more.
        path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
        print(path)

    # 2205: two sign-offs on one head, the template changed in between.
    head = clone.sha("99e3a3fd")
    base = clone.git("merge-base", head, "main")
    selected = clone.selection(head, base)
    lanes = {"canary": 1, "single-node 8k1k": 36, "eval": 12}
    lanes |= {lane: "skipped" for lane in ("single-node 1k1k", "multi-node 1k1k", "multi-node 8k1k", "agentic", "agentic eval", "multi-node agentic", "multi-node eval", "multi-node agentic eval")}
    run = {"id": 30506346629, "workflow": "run-sweep.yml", "head": head, "lanes": lanes, "evals": eval_rows(selected, 0.9621, 0.9697),
           "artifacts": [{"name": "results_bmk", "files": {"agg_bmk.json": []}}]}
    first, second = written("003")
    reuse = say("/reuse-sweep-run 30506346629", 5126999001, "2026-07-30T06:30:00Z")
    save("2205-first", world(clone, 2205, head, "Switch Qwen3.5 FP4 SGLang configs to NVFP4 V2", "2026-07-30T07:00:00Z", clone.main_at("2026-07-30T07:00:00Z"), [run], [reuse],
         [{"note": "the first sign-off", "comment": {"pull": 2205, **say(signoff(first, "2205-1"), 5127202001, "2026-07-30T07:00:30Z")}}], upstream=upstream()))
    save("2205-second", world(clone, 2205, head, "Switch Qwen3.5 FP4 SGLang configs to NVFP4 V2", "2026-08-07T23:00:00Z", clone.main_at("2026-08-07T23:00:00Z"), [run], [reuse],
         [{"note": "the second sign-off", "comment": {"pull": 2205, **say(signoff(second, "2205-2"), 5127202002, "2026-08-07T23:00:30Z")}}],
         upstream=upstream((32945, "2026-08-07T22:26:07Z", cookbook(second=True)))))

    # The TEP2 arm.
    head = clone.sha("e3643999")
    base = clone.git("merge-base", head, "main")
    selected = clone.selection(head, base)
    sizes = count(selected, "single_node")
    expected = sizes.get("8k1k", 0)
    lanes = {"canary": 1, "single-node 8k1k": expected - 1, "eval": len(selected.get("evals") or [])}
    run = {"id": 31432304739, "workflow": "run-sweep.yml", "head": head, "lanes": lanes, "evals": eval_rows(selected, 0.968, 0.971),
           "artifacts": [{"name": "results_bmk", "files": {"agg_bmk.json": []}}]}
    reuse = say("/reuse-sweep-run 31432304739", 5200000001, "2026-08-11T20:00:00Z")
    save("2550", world(clone, 2550, head, "add TEP2 arm", "2026-08-11T21:00:00Z", clone.main_at("2026-08-11T20:00:00Z"), [run], [reuse],
         [{"note": "the sign-off", "comment": {"pull": 2550, **say(signoff(written("002")[0], "2550"), 5200000002, "2026-08-11T21:00:30Z")}}],
         upstream=upstream((32945, "2026-08-07T22:26:07Z", cookbook(second=True)))))

    # The same thread two days later: the head that rides on the second checkpoint, after the cookbook has the arm. Its
    # sign-off is not in the thread that we have; this one is the first with the link that the verdict names.
    later = clone.sha("f705dd1f")
    selected = clone.selection(later, clone.git("merge-base", later, "main"))
    lanes = {"canary": 1, "single-node 8k1k": count(selected, "single_node").get("8k1k", 0) - 1, "eval": len(selected.get("evals") or [])}
    run = {"id": 31500000001, "workflow": "run-sweep.yml", "head": later, "lanes": lanes, "evals": eval_rows(selected, 0.968, 0.971),
           "artifacts": [{"name": "results_bmk", "files": {"agg_bmk.json": []}}]}
    text = signoff(written("002")[0], "2550").replace("Signed:", f"The arm is documented by https://github.com/{COOKBOOK}/pull/34357, merged.\n\nSigned:")
    reuse = say("/reuse-sweep-run 31500000001", 5200000003, "2026-08-13T20:00:00Z")
    save("2550-later", world(clone, 2550, later, "add TEP2 arm", "2026-08-13T21:00:00Z", clone.main_at("2026-08-13T20:00:00Z"), [run], [reuse],
         [{"note": "the sign-off", "comment": {"pull": 2550, **say(text, 5200000004, "2026-08-13T21:00:30Z")}}],
         upstream=upstream((32945, "2026-08-07T22:26:07Z", cookbook(second=True)), (34357, "2026-08-11T23:00:00Z", cookbook(second=True, experts=True)))))

    # 2121: the swept head (about 10 July) is not in the clone. The branch's first commit that is there and that today's
    # generator accepts (it names the runner's hardware), of 20 July, is the nearest. The target branch gets the checklist of the day of the sign-off on top; all else is as of that commit.
    branch = clone.git("log", "--first-parent", "--format=%H %s", "--since=2026-07-14", "--until=2026-07-21", clone.sha("refs/pull/2121/head") + "^1")
    head = next(line.split()[0] for line in branch.splitlines() if "add gb300-nv hardware metadata" in line)
    base = clone.git("merge-base", head, "main")
    selected = clone.selection(head, base)
    lanes = {"multi-node agentic": sum(count(selected, "multi_node").values()), "eval": "skipped", "single-node 8k1k": "skipped", "agentic": "skipped"}
    run = {"id": 29056354557, "workflow": "run-sweep.yml", "head": head, "lanes": lanes, "evals": eval_rows(selected, 0.95, 0.96),
           "artifacts": [{"name": "bmk_agentic_x", "files": {"x.json": {}}}]}
    moment = "2026-07-20T21:00:00Z"
    reuse = say("/reuse-sweep-run", 5300000001, moment)
    content = world(clone, 2121, head, "Add GB300 AgentX Qwen3.5 recipes", moment, "main-then", [run], [reuse],
                    [{"note": "the sign-off", "comment": {"pull": 2121, **say(signoff(written("001")[0], "2121"), 5300000002, "2026-07-20T21:10:00Z")}}], author="csahithi")
    then = clone.git("show", f"{clone.main_at('2026-07-10T15:00:00Z')}:docs/PR_REVIEW_CHECKLIST.md")
    content["repositories"][REPOSITORY]["commits"] = [{"id": "main-then", "parent": base, "date": "2026-07-20T20:00:00Z", "files": {"docs/PR_REVIEW_CHECKLIST.md": then + "\n"}}]
    save("2121", content)


if __name__ == "__main__":
    main()
