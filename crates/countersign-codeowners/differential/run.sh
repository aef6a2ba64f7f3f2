#!/usr/bin/env bash
# Holds our CODEOWNERS matcher against two independent implementations from PyPI on generated
# questions. Prints "N pairs, 0 unexplained differences" and exits 0, or shows the differences
# and exits 1.
#
#   differential/run.sh [PAIRS [SEED]]     default: 60000 pairs, seed 1
#
# Needs cargo, python3 with venv and pip, and a package index. Nothing is left behind.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check codeowners==0.9.0 pathspec==1.1.1

cd "$here/.."
cargo build --quiet -p countersign-codeowners --example differential
target=$(cargo metadata --format-version 1 --no-deps |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["target_directory"])')

"$scratch/venv/bin/python" "$here/compare.py" "$target/debug/examples/differential" "${1:-60000}" "${2:-1}"
