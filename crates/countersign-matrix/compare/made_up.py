#!/usr/bin/env python3
"""Writes what the repository's own generator makes of the made-up configs, for tests/made_up.rs.

    made_up.py <folder with the repository's utils> testdata/made-up > testdata/made-up/rows.jsonl

One line a row: its mode and its fields. Throughput rows have every field and the fingerprint; in the other modes only
the fields that a mode decides are kept.
"""
import contextlib
import io
import json
import pathlib
import sys

MODES = {"unmarked": ["--no-evals"], "marked": [], "evals-only": ["--evals-only"], "all-evals": ["--all-evals"]}
KEPT = ["exp-name", "conc", "tp", "isl", "run-eval", "eval-only", "eval-conc", "eval-all-concs"]


def main():
    utils, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    sys.path.insert(0, utils)
    import process_changelog
    from matrix_logic import generate_sweep_configs as generator

    for master in ("three", "corners"):
        for mode, flags in MODES.items():
            sys.argv = ["generate", "full-sweep", "--config-files", str(folder / f"{master}.yaml"), "--runner-config",
                        str(folder / "runners.yaml"), *flags]
            with contextlib.redirect_stdout(io.StringIO()):
                rows = generator.main()
            for row in json.loads(json.dumps(rows)):
                if mode == "unmarked":
                    row["recipe-fingerprint"] = process_changelog.recipe_fingerprint(row)
                else:
                    row = {field: row[field] for field in KEPT if field in row}
                print(json.dumps({"config": master, "mode": mode, "row": row}, sort_keys=True))


main()
