# Every target is a short script under scripts/; the variables below are read by them from the environment.
.PHONY: help test lint bench bench-proxy fuzz soak docs audits
.DEFAULT_GOAL := help

help: ## List the targets.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile

test: ## All that a change must pass: format, vet, staticcheck, tidy modules, tests under the race detector.
	@scripts/test

lint: ## What make test does before it runs a test.
	@scripts/test format vet staticcheck tidy windows darwin ports

bench: ## Benchmarks in interleaved rounds, with ratios. BENCH=regexp ROUNDS=6 BENCHTIME=1s
	@scripts/bench

bench-proxy: ## riprap proxy beside nginx, haproxy, Caddy and a bare ReverseProxy. ROUNDS=6 SECONDS_EACH=5
	@scripts/bench-proxy

fuzz: ## Every fuzz target for FUZZTIME (30s) each. FUZZ=regexp picks some.
	@scripts/fuzz

soak: ## The long tests, which make test skips. SOAK=regexp picks some.
	@scripts/soak

docs: ## Links and snippets of README.md and docs/: do they resolve, compile and run?
	@go test -count=1 -run '^TestDocs' ./internal/integration

audits: ## docs/audits.md: riprap audit on clients of other projects. CLIENTS="got curl" repeats theirs.
	@scripts/audits
