# SPDX-License-Identifier: Apache-2.0
#
# Every target installs what it lacks (Debian 12 or 13), and costs seconds when nothing has changed.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
JOBS := $(shell nproc)
SEEDS ?= 10000

.PHONY: help run build test test-sanitizers sim bench lint format image clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-24s %s\n", $$1 ($$1 == "run" ? " [STORE=URL]" : $$1 == "sim" ? " [SEEDS=N]" : ""), $$2}' $(MAKEFILE_LIST)

run: build ## build and start a daemon
	@exec build/bin/holdfastd $(if $(STORE),--store='$(STORE)')

build: ## leave the daemon and the command line in build/bin
	@scripts/build dev holdfastd holdfast

test: ## build everything and run all tests
	@scripts/install-deps build test
	@scripts/build dev
	@ctest --preset dev -j $(JOBS)

test-sanitizers: ## the same tests with AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/install-deps build test
	@scripts/build asan
	@ctest --preset asan -j $(JOBS)

sim: ## the simulator, over SEEDS random schedules
	@scripts/build dev sim
	@HOLDFAST_SIM_SEEDS='$(SEEDS)' build/bin/tests/sim

bench: ## the benchmarks
	@scripts/install-deps build test
	@scripts/build dev bench_programs
	@for program in build/bin/bench/*; do $$program; done

lint: ## formatting, contract, layout and clang-tidy
	@scripts/lint

format: ## format the C++ sources and the contract
	@scripts/lint --fix

image: ## the container image, without Docker
	@scripts/build-image

clean: ## remove what was built (not .deps)
	@rm -rf build build-release build-asan
