#!/usr/bin/env bash
# Checks the simulated GitHub against GitHub's published OpenAPI description: every endpoint that it serves, and every webhook
# that it sends. The npm packages go into a scratch folder (OPENAPI_SCRATCH, else a cache folder), never into this tree.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
scratch=${OPENAPI_SCRATCH:-${XDG_CACHE_HOME:-$HOME/.cache}/countersign/openapi}
mkdir -p "$scratch"
packages=(@octokit/openapi@23.0.2 ajv@8.20.0 ajv-formats@3.0.1)
if [ "$(cat "$scratch/installed" 2>/dev/null || true)" != "${packages[*]}" ]; then
  echo '{"private": true}' > "$scratch/package.json"
  npm install --prefix "$scratch" --no-audit --no-fund --silent "${packages[@]}"
  echo "${packages[*]}" > "$scratch/installed"
fi
cd "$root"
cargo build --quiet -p countersign-sim --example serve_world
target=${CARGO_TARGET_DIR:-$root/target}
exec node tests/openapi/validate.mjs --packages "$scratch" --server "$target/debug/examples/serve_world" "$@"
