#!/usr/bin/env python3
"""Makes partial worlds, and what is expected of them, from verdicts retold as facts.

    from_cases.py --clone GIT_DIR --cases FOLDER --out FOLDER [--countersign PROGRAM] [--recipes GIT_DIR]

One world for each verdict whose head is in the clone: `<number>-<nth>.yaml`, and beside it `<number>-<nth>.expect.json`
for `countersign accuracy`. Both hold facts of the cases and stay outside of this repository.

What a case says is taken over: who signed and when, open items, links, commands, lanes and how many of their jobs were
green, scores, states of upstream pull requests. What it does not say is left out, which makes it unavailable, but for
what the form of a verdict implies, and what is listed as `assumed` in the expectation:
- PASS means that every row was PASS or N/A, and a rejection that names its failing checks means that for the others.
- Sign-offs are the template of the day with its boxes ticked, but for items that the case names as open or missing.
- A lane without a number had as many green jobs as the points have (`countersign matrix`).
- Scores are spread evenly over the reported range, one for each expected evaluation.
"""

import argparse
import datetime
import json
import pathlib
import re
import subprocess
import sys

REPOSITORY = "SemiAnalysisAI/InferenceX"
TEMPLATE = "docs/PR_REVIEW_CHECKLIST.md"
RENUMBERED = "2026-08-03"  # check 7 was put in; later ones moved by one

# From when a policy file holds; the oldest for what is before.
POLICIES = [
    ("2026-09-16", "inferencex"),
    ("2026-08-14", "inferencex-2026-08-22"),
    ("2026-08-03", "inferencex-2026-08-11"),
    ("2026-07-01", "inferencex-2026-07-30"),
]

SLUGS = {
    "codeowner": "codeowner", "sweep_on_in_pr_commit": "sweep", "evals": "evals", "upstream_recipe": "recipe",
    "reuse_command": "reuse-command", "checklist_template": "template", "upstream_image_engine_first": "image+engine-first",
    "deprecated_models": "deprecation", "architecture_hacks": "architecture", "chat_template": "chat-template",
    "engine_patches": "engine-patch", "golden_al": "golden-al", "append_only": "append-only",
}
BY_NUMBER = ["codeowner", "sweep", "evals", "recipe", "reuse-command", "template", "image+engine-first"]
LATER = ["architecture", "chat-template", "engine-patch", "golden-al", "append-only"]

# Which template line an item is, by the words that cases use for it.
ITEMS = {
    "latest": "latest version", "general code quality": "general code quality", "code quality": "general code quality",
    "validation": "passed PR validation", "evals": "passes evals", "speculative decoding chat templates": "uses chat templates",
    "agentic synthetic acceptance": "For agentic workloads", "MODELS.md deprecated": "MODELS.md", "single-node recipe": "documented in the official",
    "does not patch the inference engine": "does not patch", "append-only": "append-only: true",
    "recipe": "documented in the official", "spec-decode": "uses chat templates", "agentic": "For agentic workloads",
}

# What a reviewer says of an open item that does apply.
REASONS = {
    "validation": "the validation sweep ran on an earlier commit of this pull request, see the run above",
    "evals": "the evals of the run above are the evidence, or there are none for these points",
}

LANES = ["single-node 1k1k", "single-node 8k1k", "agentic", "multi-node 1k1k", "multi-node 8k1k", "multi-node agentic",
         "eval", "agentic eval", "multi-node eval", "multi-node agentic eval"]


class Clone:
    def __init__(self, path):
        self.path = path

    def git(self, *args):
        done = subprocess.run(["git", "-C", self.path, *args], capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else None

    def commit(self, revision):
        return self.git("rev-parse", "-q", "--verify", f"{revision}^{{commit}}") if revision else None

    def main_at(self, moment):
        return self.git("log", "--first-parent", "--format=%H", f"--before={moment}", "-1", "main")

    def show(self, revision, path):
        done = subprocess.run(["git", "-C", self.path, "show", f"{revision}:{path}"], capture_output=True, text=True)
        return done.stdout if done.returncode == 0 else None


def slug_of(number, date):
    if number < len(BY_NUMBER):
        return BY_NUMBER[number]
    later = (["deprecation"] if date >= RENUMBERED else []) + LATER
    return later[number - len(BY_NUMBER)] if number - len(BY_NUMBER) < len(later) else None


def row_of(verdict, semantic):
    return next((row for row in verdict["checks"] if row["semantic"] == semantic), None)


def reason(verdict, semantic):
    row = row_of(verdict, semantic)
    return (row or {}).get("reason") or ""


def selection(options, head, base):
    """Rows by lane, as `countersign matrix` expands them; none where it refuses."""
    done = subprocess.run(
        [options.countersign, "matrix", options.clone, "--rev", head, "--base", base, "--changelog", "--format", "json", "--policy", options.policies / "inferencex.yaml"],
        capture_output=True, text=True)
    if done.returncode != 0:
        return None
    buckets = json.loads(done.stdout)
    lanes = {}
    for nodes, prefix in (("single_node", "single-node "), ("multi_node", "multi-node ")):
        for name, rows in buckets[nodes].items():
            lane = ("agentic" if prefix == "single-node " else "multi-node agentic") if name == "agentic" else prefix + name
            lanes.setdefault(lane, []).extend(rows)
    for bucket, lane in (("evals", "eval"), ("agentic_evals", "agentic eval"), ("multinode_evals", "multi-node eval"), ("multinode_agentic_evals", "multi-node agentic eval")):
        if buckets.get(bucket):
            lanes[lane] = buckets[bucket]
    return lanes


def told_count(text, lane, purpose_total):
    """How many green jobs the text gives a lane; none where it gives no number."""
    words = {"one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10}
    low = text.lower()
    for word, number in words.items():
        low = re.sub(rf"\b{word}\b", str(number), low)
    names = [lane]
    if lane.endswith("eval"):
        names += ["multi-node eval", "agentic eval", "eval"]
    elif lane.startswith("multi-node "):
        names.append(lane.removeprefix("multi-node "))
    for name in names:
        for pattern in (rf"(\d+)/(\d+) {re.escape(name)}\b(?! eval)", rf"\b(\d+) {re.escape(name)}\b(?! eval)"):
            found = re.search(pattern, low)
            if found:
                return int(found.group(1)), int(found.group(found.lastindex))
        found = re.search(rf"{re.escape(name)} / (?:\w+ )?(\d+)/(\d+)", low) or re.search(rf"{re.escape(name)} / (\d+) points", low)
        if found:
            return int(found.group(1)), int(found.group(found.lastindex))
    return None


def lanes_of(text, rows, assumed):
    out, told = {}, {}
    for lane, expected in rows.items():
        count = told_count(text, lane, None)
        # A lane's own number only where the text speaks of it alone: "9 multi-node 1k1k/8k1k" is the sum of both.
        if count and re.search(r"1k1k/8k1k", text) and re.search(r"[18]k1k$", lane):
            count = None
        green, of = count or (len(expected), len(expected))
        told[lane] = green if count else None
        out[lane] = {"success": green}
        if of > green:
            out[lane]["cancelled"] = of - green
        # The canary measures one point of its lane before the lane runs the others.
        if lane.startswith("single-node") and of == green == len(expected) - 1:
            out["canary"] = {"success": 1}
            assumed.append(f"the canary, which took one point out of {lane}")
    return out, told


def scores_of(text, rows, thresholds_task="gsm8k"):
    """One result for each expected evaluation, spread over the reported range."""
    # Bars are no scores, nor are versions of images.
    told = re.sub(r"(?:vs\.?|>=|above|bar|threshold|≥)[^;,(]*?0\.\d+", "", text)
    numbers = [float(n) for n in re.findall(r"(?<![\w.])(0\.\d{2,5}|1\.0)(?!\.?\d)", told)]
    numbers += [float(n) / 100 for n in re.findall(r"(\d\d\.\d+)%", text)]
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    task = "swebench_lite" if "swebench" in text.lower() or "swe-bench" in text.lower() else thresholds_task
    results = []
    wanted = [(row, conc) for lane in LANES if lane.endswith("eval") for row in rows.get(lane, []) for conc in concs(row)]
    for index, (row, conc) in enumerate(wanted):
        score = low + (high - low) * (index / max(1, len(wanted) - 1))
        fields = {"is_multinode": "prefill" in row, "hw": row["runner"].upper(), "framework": row["framework"], "precision": row["precision"],
                  "spec_decoding": row["spec-decoding"], "isl": row.get("isl") or 0, "osl": row.get("osl") or 0}
        if "tp" in row:
            fields |= {"tp": row["tp"], "ep": row["ep"]}
        for role in ("prefill", "decode"):
            if role in row:
                fields |= {f"{role}_tp": row[role]["tp"], f"{role}_ep": row[role]["ep"], f"{role}_num_workers": row[role]["num-worker"]}
        results.append({"task": task, "model_prefix": row["model-prefix"], "score": round(score, 4), "conc": conc,
                        "n_eff": 300 if task == "swebench_lite" else 1319, "row": fields})
    return results


def concs(row):
    if row.get("eval-conc"):
        return [row["eval-conc"]]
    return row["conc"] if isinstance(row["conc"], list) else [row["conc"]]


def fenced(template):
    found = re.search(r"^```[^\n]*\n(.*?)^```", template, re.S | re.M)
    return (found.group(1) if found else template[template.index("As a PR reviewer"):]).rstrip() + "\n"


def signoff(template, author, open_items, missing, links, detail):
    """The template as a reviewer fills it in."""
    out = []
    parents_open = False
    for line in fenced(template).splitlines():
        item = re.match(r"(\s*[-*] )\[ ?\](.*)", line)
        if item:
            is_open = any(words in line for words in open_items) or (parents_open and item.group(1).startswith(" "))
            if any(words in line for words in missing):
                continue
            parents_open = is_open
            mark = " " if is_open or "above criteria" in line else "x"
            line = f"{item.group(1)}[{mark}]{item.group(2)}"
            if "Please link to" in line and links:
                line += f" {links[0]}"
        if "insert any additional info here" in line:
            line = "\n".join(f"- {text}" for text in detail) or "- nothing further"
        out.append(line.replace("FILL_IN_GITHUB_USERNAME", author))
    return "\n".join(out) + "\n"


def upstream_links(verdict, date):
    """Links for the detail section, and the upstream pull requests with their states."""
    text = reason(verdict, "upstream_recipe")
    links, pulls, pages = [], {}, []
    for project, number in re.findall(r"\b((?:vllm-project/)?recipes|(?:sgl-project/)?sglang)(?: PR )?\s*#(\d+)", text):
        repository = "vllm-project/recipes" if "recipes" in project else "sgl-project/sglang"
        pulls[(repository, int(number))] = "open" if re.search(rf"OPEN[^;]*#{number}", text) else "merged"
    # "recipes#628 (MERGED …) and #645 (MERGED …)" names the second without its project.
    for number in re.findall(r"(?<![\w/])#(\d+)", text):
        known = {found for _, found in pulls}
        if pulls and int(number) not in known:
            pulls[(next(iter(pulls))[0], int(number))] = "merged"
    for (repository, number) in pulls:
        links.append(f"https://github.com/{repository}/pull/{number}")
    pages += re.findall(r"recipes\.vllm\.ai/[\w./-]+", text)
    links += [f"https://{page}" for page in pages]
    return links, pulls


def day_end(date):
    return f"{date}T23:59:59Z"


def parse_time(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def convert(case, nth, verdict, clone, options):
    number, date = case["number"], verdict["date"]
    expect = {
        "name": f"{number}-{nth}", "pull": number, "date": date, "kind": case["kind"], "decision": verdict["result"],
        "source": case["url"], "rows": {}, "assumed": [], "failing": [], "complete": False,
    }
    if date:
        expect["policy"] = next(name for since, name in POLICIES if date >= since or name == POLICIES[-1][1])
        expect["failing"] = sorted({slug_of(n, date) for n in verdict["failing_checks"]} - {None})
    complete = (verdict.get("failing_checks_known") or "").startswith("complete")
    expect["complete"] = complete
    for row in verdict["checks"]:
        slug = SLUGS.get(row["semantic"])
        if slug:
            expect["rows"][slug] = {"status": row["status"], "reason": row["reason"] or ""}
    if verdict["result"] == "PASS" and date:
        for slug in BY_NUMBER + (["deprecation"] if date >= RENUMBERED else []) + LATER[:4]:
            expect["rows"].setdefault(slug, {"status": "PASS or N/A", "reason": "not seen; the verdict is PASS"})
    for slug in expect["failing"]:
        expect["rows"].setdefault(slug, {"status": "FAIL", "reason": verdict["blocking_summary"] or ""})
    if not date:
        expect["none"] = "the case does not say when the verdict was given"
        return None, expect
    if verdict["inferred"]:
        expect["none"] = "the verdict is known from a later text only; its sign-off, evidence and rows are not"
        return None, expect
    ref = clone.commit(f"refs/pull/{number}/head")
    if not ref:
        expect["none"] = "its head is not in the clone, which ends on 2026-08-22"
        return None, expect

    sweep_text = reason(verdict, "sweep_on_in_pr_commit")
    head = clone.commit(verdict["head_sha"])
    if verdict["head_sha"] and not head:
        expect["none"] = "its head is not in the clone: it was rewritten later"
        return None, expect
    if not head:
        head = clone.git("log", "--first-parent", "--format=%H", f"--before={day_end(date)}", "-1", ref) or ref
        expect["assumed"].append("the head: the newest commit of that day")
    trusted = clone.main_at(day_end(date))
    merge = clone.commit(case["merge_commit"])
    if merge and clone.git("merge-base", "--is-ancestor", merge, trusted) is not None:
        trusted = clone.commit(f"{merge}^")
    base = clone.git("merge-base", head, trusted)
    # Noon, or just after what the verdict refers to; the day is what counts.
    clock = max(parse_time(f"{date}T12:00:00Z"), parse_time(clone.git("log", "-1", "--format=%cI", head)) + datetime.timedelta(minutes=10))
    merged_at = parse_time(clone.git("log", "-1", "--format=%cI", trusted)) + datetime.timedelta(minutes=1)
    clock = max(clock, merged_at)
    if clock.strftime("%Y-%m-%d") > date:
        clock = parse_time(day_end(date))
    signed_at = clock - datetime.timedelta(seconds=30)
    stamp = lambda moment: moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")

    rows = selection(options, head, base)
    run_ids = [int(run) for run in verdict["run_ids"]]
    mentioned = [clone.commit(word) for word in re.findall(r"\b[0-9a-f]{7,12}\b", sweep_text) if not word.isdigit()]
    own = [sha for sha in mentioned if sha and clone.git("merge-base", "--is-ancestor", sha, head) is not None]
    run_head = own[0] if own else head
    rebased = re.search(r"rebased-out ([0-9a-f]{7,40})", sweep_text)
    if rebased:
        run_head = rebased.group(1) + "0" * (40 - len(rebased.group(1)))
    runs = None
    if run_ids:
        run = {"id": run_ids[0], "workflow": "run-sweep.yml", "head": run_head, "created_at": stamp(signed_at - datetime.timedelta(hours=2))}
        if rows is not None:
            run["lanes"], told = lanes_of(sweep_text, rows, expect["assumed"])
            if any(count is None for count in told.values()):
                expect["assumed"].append("green jobs of lanes for which no number is told")
            scores = scores_of(reason(verdict, "evals"), rows)
            artifacts = [{"name": "results_bmk", "files": {"agg_bmk.json": []}}]
            if scores is not None:
                run["evals"] = scores
                run["artifacts"] = artifacts
            elif not any(lane.endswith("eval") for lane in rows):
                run["artifacts"] = artifacts
        else:
            expect["assumed"].append("no lanes: the changelog selects nothing that can be expanded")
        runs = [run]
    elif "sweep" in expect["failing"]:
        runs = []

    comments = []
    signer = verdict["signoff"]["author"]
    reuse = reason(verdict, "reuse_command")
    associations = {command["author"]: command["association"] for command in case["reuse_commands"] if command["association"]}
    said = re.search(r"(/reuse-sweep-run(?: \d+)?)(?: by ([\w-]+) \((\w+)\))?", reuse)
    if "reuse-command" not in expect["failing"]:
        command, by, association = f"/reuse-sweep-run {run_ids[0]}" if run_ids else "/reuse-sweep-run", signer, "COLLABORATOR"
        if said and not reuse.endswith("(truncated)"):
            command = said.group(1)
        elif case["reuse_commands"] and said:
            pass
        else:
            expect["assumed"].append("a reuse command, since that check passed")
        if said and said.group(2):
            by, association = said.group(2), said.group(3)
        elif case["reuse_commands"]:
            by = case["reuse_commands"][-1]["author"]
            association = associations.get(by, "COLLABORATOR")
        comments.append({"id": 5_000_000_001, "author": by, "association": association, "body": command, "created_at": stamp(signed_at - datetime.timedelta(minutes=30))})

    owner_text = reason(verdict, "codeowner")
    association = associations.get(signer) or ("MEMBER" if "MEMBER" in owner_text else "COLLABORATOR")
    template_at = trusted
    missing = []
    template_text = reason(verdict, "checklist_template") + " " + (verdict["blocking_summary"] or "")
    if "template" in expect["failing"] and ("stale" in template_text or "omits" in template_text or "missing" in template_text):
        changed = clone.git("log", "--first-parent", "--format=%H", "-1", trusted, "--", TEMPLATE)
        if "append-only" in template_text:
            missing = ["append-only: true"]
        elif "MODELS.md" in template_text:
            missing = ["MODELS.md"]
        else:
            template_at = f"{changed}^"
    item_names = list(verdict["signoff"].get("unchecked_items") or [])
    if verdict["result"] == "REJECTED" and "code-quality item unchecked" in template_text:
        item_names.append("code quality")
    listed = re.search(r"\(([^)]*)\) accepted as explained", reason(verdict, "checklist_template"))
    if listed and not item_names:
        item_names += [name.strip() for name in listed.group(1).split(",")]
    open_items = [ITEMS[name] for name in item_names if name in ITEMS]
    links, pulls = upstream_links(verdict, date)
    if "recipe" in expect["failing"] and not links:
        open_items.append("documented in the official")
    detail = [f"{ITEMS[name]}: {REASONS.get(name, 'does not apply to this change')}" for name in item_names if name in ITEMS and "template" not in expect["failing"]]
    detail += [f"Upstream recipe: {link}" for link in links]
    if "recipe" in expect["failing"] and not links:
        detail.append("Upstream recipe: none is merged for this configuration yet")
    run_links = [link.replace("semiAnalysisAI", "SemiAnalysisAI") for link in verdict["signoff"].get("links") or []]
    if not run_links and run_ids:
        run_links = [f"https://github.com/{REPOSITORY}/actions/runs/{run_ids[0]}"]
    body = signoff(clone.show(template_at, TEMPLATE) or "", signer, open_items, missing, run_links, detail)
    signed = {"id": 5_000_000_002, "author": signer, "association": association, "body": body}
    review = verdict["signoff"].get("kind") == "review"
    world = {
        "world": 1, "partial": True, "description": f"#{number}, verdict {nth} of {date}: {verdict['result']}", "clock": stamp(clock),
        "repositories": {REPOSITORY: {
            "branches": {"main": trusted},
            "pulls": [{
                "number": number, "title": case["title"], "author": case["author"] or "somebody", "head": {"sha": head, "ref": "topic"}, "base": "main",
                "comments": comments + ([] if review else [signed | {"created_at": stamp(signed_at)}]),
            }],
        }},
    }
    repository = world["repositories"][REPOSITORY]
    if review:
        repository["pulls"][0]["reviews"] = [signed | {"submitted_at": stamp(signed_at)}]
    if runs is not None:
        repository["runs"] = runs
    upstream = {}
    for (name, pull), state in pulls.items():
        upstream.setdefault(name, {"pulls": []})["pulls"].append({"number": pull, "state": state})
    if options.recipes and (any(name == "vllm-project/recipes" for name, _ in pulls) or any("recipes.vllm.ai" in link for link in links)):
        with_recipes(upstream, options.recipes, date)
    if upstream:
        world["upstream"] = upstream
    return world, expect


def with_recipes(upstream, path, date):
    """Pull requests of the recipes from their clone: head and merge commit, so that their documents can be read."""
    recipes = Clone(path)
    spec = upstream.setdefault("vllm-project/recipes", {"pulls": []})
    spec["clone"] = path
    spec["branches"] = {"main": recipes.main_at(day_end(date))}
    for pull in spec["pulls"]:
        ref = recipes.commit(f"refs/pull/{pull['number']}/head")
        merged = recipes.git("log", "--first-parent", "--format=%H %cI", f"--grep=(#{pull['number']})$", "-1", "main")
        if merged and pull["state"] == "merged":
            sha, when = merged.split(" ", 1)
            pull |= {"merge_commit": sha, "merged_at": parse_time(when).astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "head": {"sha": sha}, "base": {"ref": "main", "sha": f"{sha}^"}}
        elif ref:
            pull["head"] = {"sha": ref}
        else:
            pull["head"] = {"sha": spec["branches"]["main"]}
            pull["files"] = []


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--clone", required=True)
    arguments.add_argument("--cases", required=True, type=pathlib.Path)
    arguments.add_argument("--out", required=True, type=pathlib.Path)
    arguments.add_argument("--countersign", default="countersign")
    arguments.add_argument("--recipes")
    arguments.add_argument("--policies", type=pathlib.Path, default=pathlib.Path(__file__).parents[2] / "config" / "policies")
    options = arguments.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    clone = Clone(options.clone)
    for path in sorted(options.cases.glob("*.json"), key=lambda path: int(re.search(r"\d+", path.name).group())):
        case = json.loads(path.read_text(encoding="utf-8"))
        for nth, verdict in enumerate(case["verdicts"], 1):
            world, expect = convert(case, nth, verdict, clone, options)
            name = f"{case['number']}-{nth}"
            # JSON is YAML; a world needs nothing more.
            if world:
                (options.out / f"{name}.yaml").write_text(json.dumps(world, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            (options.out / f"{name}.expect.json").write_text(json.dumps(expect, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
            print(name, "world" if world else f"none: {expect['none']}", file=sys.stderr)


if __name__ == "__main__":
    main()
