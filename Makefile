# Everything a person needs to run, test and measure Sandbank. `make` lists the targets.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup serve images daemon-image test test-docker test-docker-newer docker-suites test-dockerfiles test-vm test-vm-systemd torture lint fmt-check clippy deny bench instructions fuzz schemathesis clean

# Where rustup puts cargo, for shells that have not been told; before an older cargo of the system.
export HOME ?= /root
export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH):/usr/sbin:/sbin

SANDBANK := target/release/sandbank
DOCKER_SUITES := never_lies never_loses shells commands lifecycle survives ports pool posture containment at_once seeds browser \
	sandboxd_contract sessions_api tools workspaces agents hostile attacks workspace_terminals workspace_modes sessions search sandkasten \
	run_alone strangers

help: ## List the targets
	@echo 'usage: make <target>'
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: ## Build the release binary and start the server on this machine (ARGS="--port 9000")
	@scripts/setup.sh
	cargo build --release --locked --package sandbank-cli
	$(SANDBANK) serve $(ARGS)

images: ## Build base, node24 and python3.13 without a container registry, and import them (as root; ARGS="--force --arch arm64")
	@scripts/setup.sh --images $(ARGS)
	cargo build --release --locked --package sandbank-cli
	@scripts/images.sh $(ARGS)

daemon-image: ## The server's image for Docker, without a registry (as root; ARGS="tag")
	@scripts/setup.sh
	cargo build --release --locked --package sandbank-cli
	@scripts/daemon-image.sh $(ARGS)

test: ## Everything that guards a commit: format, lints, all tests
	@scripts/setup.sh --test
	@$(MAKE) --no-print-directory fmt-check clippy
	cargo test --workspace --locked

torture: ## The longest suites at full length: 200 kills, 20 GiB of output, 1 000 machines (as root)
	@scripts/setup.sh --test
	SANDBANK_TORTURE=full cargo test --locked --package sandbank-cli --test never_lies --test never_loses -- --nocapture
	SANDBANK_TORTURE=full cargo test --locked --package sandbank-engine-native --test siblings -- --nocapture

test-docker: ## The suites that know no engine, over a Docker of the tests' own (as root)
	@scripts/setup.sh --test
	SANDBANK_TEST_ENGINE=docker cargo test --locked --no-fail-fast --package sandbank-cli $(DOCKER_SUITES:%=--test %)

test-docker-newer: ## The same, and the tests of the Docker engine, over the Docker of a later Debian (as root; ARGS="suite…")
	@scripts/setup.sh --test
	@scripts/setup.sh --images
	@scripts/newer-docker.sh $(ARGS)

docker-suites:
	@echo $(DOCKER_SUITES)

test-dockerfiles: ## Every Dockerfile by `docker build`, with both builders, and Compose over it (as root; ARGS="images")
	@scripts/setup.sh --test
	@scripts/setup.sh --images
	@scripts/dockerfiles.sh $(ARGS)

test-vm: ## The engine's tests on a pure cgroup v2 kernel, in a small VM under qemu (as root)
	scripts/test-vm.sh

test-vm-systemd: ## The service of deploy/ under a real systemd, in the same VM (as root)
	cargo build --locked --package sandbank-cli
	scripts/test-vm.sh --systemd

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

instructions: ## Count the instructions of hot paths against the committed counts (ARGS="--bless")
	@scripts/setup.sh --instructions
	@scripts/count-instructions.sh $(ARGS)

fuzz: ## Fuzz the parsers of hostile input, each for FUZZ_SECONDS (default 30)
	@scripts/setup.sh --fuzz
	@scripts/fuzz.sh

schemathesis: ## Check a daemon against its own OpenAPI document, in about three minutes (as root)
	@scripts/setup.sh --schemathesis
	@scripts/schemathesis.sh

clean: ## Remove what builds left behind (sandboxes and data directories stay)
	cargo clean
	rm -rf .build
