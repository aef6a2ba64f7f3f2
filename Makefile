# What there is to do with this repository. `make` lists it. Debian and its kin are set up by `setup`; elsewhere `setup`
# says what is missing. Variables: PROFILE=release builds optimised, CARGO_TARGET_DIR is honoured as everywhere.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help

PROFILE ?= dev
# In CI the lock file is what is tested; at a desk a changed Cargo.toml may change it.
LOCKED := $(if $(CI),--locked)
RUN := cargo run --quiet $(LOCKED) --profile $(PROFILE) -p countersign --
# The oldest Rust that builds this (Cargo.toml, rust-version).
RUST := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: help
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

.PHONY: setup
setup: ## install the Debian packages that are missing
	@missing=()
	need() { command -v "$$1" >/dev/null 2>&1 || missing+=("$$2"); }
	need git git
	need cc gcc
	need flock util-linux
	# The server's programs are used, never a server that the package started: demo and tests start their own.
	if [[ -z "$${COUNTERSIGN_PG_BIN:-}" ]] && ! command -v initdb >/dev/null 2>&1 &&
		! compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; then
		missing+=(postgresql)
	fi
	if (($${#missing[@]})); then
		if ! command -v apt-get >/dev/null 2>&1; then
			echo "setup: these are missing, and there is no apt-get to install them: $${missing[*]}" >&2
			echo "setup: install them by your system's own means (PostgreSQL 13 or newer: only its programs are used), then run make again" >&2
			exit 1
		fi
		sudo=()
		if (($$(id -u) != 0)); then
			command -v sudo >/dev/null 2>&1 || { echo "setup: become root, or install: $${missing[*]}" >&2; exit 1; }
			sudo=(sudo)
		fi
		echo "setup: installing $${missing[*]}"
		export DEBIAN_FRONTEND=noninteractive
		"$${sudo[@]}" apt-get update -qq
		"$${sudo[@]}" apt-get install -y -qq --no-install-recommends "$${missing[@]}" >/dev/null
	fi
	if ! command -v cargo >/dev/null 2>&1; then
		echo "setup: Rust $(RUST) or newer is needed (https://rustup.rs); Debian's own package is too old" >&2
		exit 1
	fi
	have=$$(rustc --version | cut -d' ' -f2)
	if [[ "$$(printf '%s\n' "$(RUST)" "$${have%%-*}" | sort -V | head -n1)" != "$(RUST)" ]]; then
		echo "setup: Rust $(RUST) or newer is needed, this is $$have: rustup update stable" >&2
		exit 1
	fi

.PHONY: demo
demo: setup ## a sign-off from webhook to comment, against a simulated GitHub
	@$(RUN) demo

.PHONY: build
build: setup ## the optimised program, target/release/countersign
	cargo build $(LOCKED) --release -p countersign

.PHONY: test
test: setup ## all tests, documentation tests included
	@if cargo nextest --version >/dev/null 2>&1; then
		cargo nextest run $(LOCKED) --workspace --all-features $(if $(CI),--profile ci)
		cargo test $(LOCKED) --workspace --all-features --doc
	else
		echo "test: cargo-nextest is not installed, so plain cargo test runs"
		cargo test $(LOCKED) --workspace --all-features
	fi

.PHONY: lint
lint: setup ## format, clippy, documentation, dependencies
	cargo fmt --all --check
	cargo clippy $(LOCKED) --workspace --all-targets --all-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(LOCKED) --workspace --all-features --no-deps --quiet
	$(MAKE) --no-print-directory deny

.PHONY: deny
deny: ## licences, sources and walls of dependencies (deny.toml)
	@if ! cargo deny --version >/dev/null 2>&1; then
		echo "deny: SKIPPED, cargo-deny is not installed (cargo install cargo-deny --locked); the test `walls` covers the walls"
		exit 0
	fi
	cargo deny --workspace --all-features check --hide-inclusion-graph bans licenses sources
	# The list of advisories is fetched; a machine that cannot reach it says so, loudly, and goes on.
	if out=$$(cargo deny --workspace --all-features check --hide-inclusion-graph advisories 2>&1); then
		echo "$$out"
	elif grep -q 'failed to fetch advisory database' <<<"$$out"; then
		echo "deny: ADVISORIES NOT CHECKED, the advisory database cannot be fetched from here"
	else
		echo "$$out" >&2
		exit 1
	fi

.PHONY: policies
policies: ## check every policy in config/policies (files that others extend are none by themselves)
	@$(RUN) policy check $(filter-out %-common.yaml,$(wildcard config/policies/*.yaml))

.PHONY: docs-generate
docs-generate: ## the pages of the checks and the schema of policy files
	$(RUN) policy docs docs/checks
	mkdir -p config/schema
	$(RUN) policy schema > config/schema/policy.json.new
	mv config/schema/policy.json.new config/schema/policy.json

# Faults at random, two servers killed again and again, everything on loopback; the seed reproduces a run's plan. The short one is
# built as the tests are, so that CI compiles nothing for it.
.PHONY: soak
soak: setup ## thousands of deliveries under faults and kill -9; SEED=n repeats a run
	@cargo test --quiet $(LOCKED) --release -p countersign --all-features --test soak -- $(if $(SEED),--seed $(SEED))

.PHONY: soak-short
soak-short: setup ## the same, in the length that CI has
	@cargo test --quiet $(LOCKED) --workspace --all-features --test soak -- --short $(if $(SEED),--seed $(SEED))

# How long each target is fuzzed, in seconds.
TIME ?= 60

.PHONY: fuzz
fuzz: setup ## each fuzz target for TIME seconds (cargo install cargo-fuzz); ONLY=name takes one
	@cd fuzz
	for target in $(if $(ONLY),$(ONLY),$$(cd fuzz_targets && ls *.rs | sed 's/\.rs$$//')); do
		mkdir -p corpus/$$target
		# Sanitizers are not in stable Rust; the variable lets it take their flags.
		RUSTC_BOOTSTRAP=1 cargo fuzz run $$target -- -max_total_time=$(TIME) -max_len=65536 -timeout=10 -rss_limit_mb=2048
	done

.PHONY: fuzz-smoke
fuzz-smoke: setup ## the fuzz entries over the corpus and inputs made from it, with any compiler
	@COUNTERSIGN_FUZZ_INPUTS=$${COUNTERSIGN_FUZZ_INPUTS:-20000} cargo test --quiet $(LOCKED) --workspace --all-features --test smoke

.PHONY: clean
clean: ## what was built
	cargo clean
