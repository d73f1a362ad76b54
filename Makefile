# Everything a person needs to run, test and measure Sandbank. `make` lists the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup serve test test-vm lint fmt-check clippy deny bench fuzz clean

# Where rustup puts cargo, for shells that have not been told.
export PATH := $(PATH):$(HOME)/.cargo/bin

SANDBANK := target/release/sandbank

help: ## List the targets
	@echo 'usage: make <target>'
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: ## Build the release binary and start the server on this machine (ARGS="--port 9000")
	@scripts/setup.sh
	cargo build --release --locked --package sandbank-cli
	$(SANDBANK) serve $(ARGS)

test: ## Everything that guards a commit: format, lints, all tests
	@scripts/setup.sh --test
	@$(MAKE) --no-print-directory fmt-check clippy
	cargo test --workspace --locked

test-vm: ## The engine's tests on a pure cgroup v2 kernel, in a small VM under qemu (as root)
	scripts/test-vm.sh

lint: fmt-check clippy deny ## Format, lints, and the dependency policy of deny.toml

fmt-check:
	cargo fmt --all --check

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

deny:
	@scripts/deny.sh

bench: ## Measure this machine against its peers into docs/benchmarks.md (ARGS="--quick")
	@scripts/setup.sh --bench
	cargo build --release --locked --package sandbank-cli
	$(SANDBANK) bench --write docs/benchmarks.md $(ARGS)

fuzz: ## Fuzz the parsers of hostile input (not there yet)
	@echo 'make fuzz: there are no fuzz targets yet; the parsers are property-tested by `make test`' >&2
	@exit 1

clean: ## Remove what builds left behind (sandboxes and data directories stay)
	cargo clean
	rm -rf .build
