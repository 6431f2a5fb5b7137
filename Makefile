# What people and CI call. `make setup` is called by the others; PYTHON chooses the interpreter that everything runs on.
PYTHON ?= python3
PYTEST ?= .venv/bin/python -m pytest
VENV := .venv
BIN := $(VENV)/bin
.DEFAULT_GOAL := help
.PHONY: help setup image run test test-parts test-all check format lock bench soak proof clean

help:
	@echo "make run       set up what is missing, start server and host; prints an address, a key and a first command"
	@echo "make test      the fast tests          make test-all  all of them"
	@echo "make check     linter, types, format   make bench     measure against peers, write bench/RESULTS.md"
	@echo "make soak      ten minutes of checked sessions with kernels killed at random; writes bench/SOAK.md"
	@echo "make proof     attack a real sandbox   make lock      renew the lock files"

# With what arrives late, PyTorch, which tests and measurements need.
setup: $(VENV)/.ready
	@$(BIN)/workbench image build --late

image: $(VENV)/.ready
	@$(BIN)/workbench image build

$(VENV)/.ready: locks/dev.txt pyproject.toml scripts/setup
	@PYTHON=$(PYTHON) scripts/setup $(VENV)
	@touch $@

# The server does not wait for PyTorch: it is brought beside it, with a line now and then.
run: image
	@scripts/install-search-model $(BIN)/python || echo "tools will be found by words alone, not by meaning" >&2
	@scripts/install-languages || true
	@scripts/run $(BIN)/workbench

test: setup
	@scripts/install-test-parts
	@scripts/test-all $(PYTEST) -m "not long"

test-parts: setup
	@scripts/install-test-parts
	@scripts/install-vm-parts
	@scripts/install-node-parts
	@scripts/install-example-parts
	@PYTHON=$(PYTHON) scripts/install-sdk-parts
	@scripts/install-local-model $(BIN)/python
	@scripts/install-search-model $(BIN)/python

test-all: test-parts
	@scripts/test-all $(PYTEST)

check: $(VENV)/.ready
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(VENV)/.ready
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: setup
	@scripts/install-bench-peers
	@scripts/install-search-model $(BIN)/python
	@$(BIN)/python -m bench.engine --write bench/RESULTS.md
	@$(BIN)/python -m bench.kernel --write bench/RESULTS.md
	@$(BIN)/python -m bench.state --write bench/RESULTS.md
	@$(BIN)/python -m bench.server --write bench/RESULTS.md
	@$(BIN)/python -m bench.extract --write bench/RESULTS.md
	@$(BIN)/python -m bench.search --write bench/RESULTS.md
	@$(BIN)/python -m bench.installs --write bench/RESULTS.md
	@$(BIN)/python -m bench.corrections --write bench/RESULTS.md
	@$(BIN)/python -m bench.runtimes --write bench/RESULTS.md

soak: setup
	@$(BIN)/python -m bench.soak --minutes 10 --write bench/SOAK.md

proof: setup
	@$(BIN)/workbench doctor --prove

lock: $(VENV)/.ready
	@scripts/lock $(BIN)/python

clean:
	@rm -rf $(VENV) .venv-examples .venv-composio-* tests/node/node_modules tests/composio_sdks/typescript/node_modules \
		tests/composio_sdks/typescript/newest/node_modules .mypy_cache .ruff_cache .pytest_cache dist
