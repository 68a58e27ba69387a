# `make demo` shows it, `make test` checks it; both install what they need into .venv first.
# PYTHON=/path/to/python says which interpreter to use; else the newest that is found.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PRECIOUS: .venv-%/.installed
.PHONY: help setup demo dev test test-pythons check e2e simulate bench openapi clean

BIN := .venv/bin
SETUP := .venv/.installed
INPUTS := pyproject.toml constraints.txt
FOLDERS := $(foreach folder,aiki_push handlers infra tests examples bench,$(if $(wildcard $(folder)/*),$(folder)))

# A name on the PATH proves little: it may stand for a version that a version manager lacks, or for a Python without venv.
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
USABLE := -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
usable = $(shell $(1) $(USABLE) && echo $(1))

VERSIONS := 3.11 3.12 3.13 3.14
PYENV_ROOT ?= $(HOME)/.pyenv
pythons_of = python$(1) $(wildcard $(PYENV_ROOT)/versions/$(1).*/bin/python)
python_of = $(firstword $(foreach python,$(call pythons_of,$(1)),$(call usable,$(python))))
LOOP_TESTS := $(wildcard tests/unit/sdk/replay)
FOUND = $(foreach version,$(VERSIONS),$(if $(call python_of,$(version)),$(version)))

help: ## List the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1 /p' Makefile | while read -r target text; do printf '%-14s%s\n' "$$target" "$$text"; done

setup: $(SETUP) ## Make .venv and install everything into it

$(SETUP): $(INPUTS)
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || for python in $(CANDIDATES) none; do \
	  if [ $$python = none ]; then \
	    echo 'Python 3.11 or newer with its venv module is needed, and none of $(CANDIDATES) is one:' \
	      'install it (on Debian: apt-get install python3-venv) or name it (make setup PYTHON=/path/to/python3).' >&2; exit 1; \
	  fi; \
	  $$python $(USABLE) && { $$python -m venv --clear .venv; break; }; \
	done
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[contributing]'
	@touch $@

demo: $(SETUP) ## Process orders while endpoints are killed and frozen, and check the result
	@$(BIN)/aiki-push demo

dev: $(SETUP) ## Run the whole system on this machine
	@$(BIN)/aiki-push dev

test: $(SETUP) ## Run the tests; the event loop's on every Python found
	$(BIN)/python -m pytest -m 'not e2e' -n 2 --dist loadfile
	@$(if $(word 2,$(FOUND)),$(MAKE) --no-print-directory test-pythons,echo 'Only one Python is here: the loop was tested on that.')

test-pythons: ## Run the event loop's tests on every Python found
	@$(if $(and $(LOOP_TESTS),$(FOUND)),$(MAKE) --no-print-directory $(FOUND:%=test-python-%), \
	  echo 'Nothing to run: no tests of the event loop yet, or none of Python $(VERSIONS).')

test-python-%: .venv-%/.installed
	.venv-$*/bin/python -m pytest $(LOOP_TESTS)

.venv-%/.installed: $(INPUTS)
	$(call python_of,$*) -m venv --clear .venv-$*
	.venv-$*/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e . pytest pytest-timeout
	@touch $@

check: $(SETUP) ## Lint, formatting, types, architecture
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(FOLDERS)
	$(BIN)/pyright $(filter aiki_push handlers examples,$(FOLDERS))
	$(BIN)/python -m pytest tests/architecture

e2e: $(SETUP) ## Run the tests with real processes
	$(BIN)/python -m pytest -m e2e

simulate: $(SETUP) ## Break the whole system at random, hundreds of times; SEED=7 shows one of them; SEEDS, FIRST, STEPS
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED)) $(if $(STEPS),--steps $(STEPS)) \
	  $(if $(SEEDS),--seeds $(SEEDS)) $(if $(FIRST),--first $(FIRST))

bench: $(SETUP) ## Run the benchmarks
	@$(BIN)/python -m bench

openapi: $(SETUP) ## Write docs/openapi.json anew
	$(BIN)/aiki-push openapi > docs/openapi.json.new
	mv docs/openapi.json.new docs/openapi.json

clean: ## Remove what the other targets made
	rm -rf .venv .venv-3.* .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
