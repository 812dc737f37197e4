# Everything runs in a virtual environment made here, in .venv. Needed: make and Python 3.10 or newer.
#
#   make demo                       solve one instance
#   make test PYTHON=python3.12     with another Python (used when .venv is first made)
#   make test JOBS=1                one process
#   make test ARGS=--randomly-seed=7      more for pytest: here the order of an earlier run

PYTHON ?= python3

# Processes for the tests: one a core and one more, because they wait for each other's kernels where there are none yet;
# one for 3 GB of memory (that much goes into compiling), and no more than six, because tests use threads of their own.
JOBS   ?= $(shell $(PYTHON) -c 'import os; m = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"); \
            print(max(1, min(6, os.cpu_count() + 1, int(m / 3e9))))' 2>/dev/null || echo 2)

# Tests start some hundred processes: with their byte code kept each begins in half the time (`make clean` removes it).
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Stamps: touched after an installation, out of date when pyproject.toml changes.
RUNTIME := $(VENV)/.installed-runtime
TESTING := $(VENV)/.installed-testing
WRITING := $(VENV)/.installed-writing

.DEFAULT_GOAL := help
.PHONY: help demo smoke test test-all setup lint style types format bench docs notebooks changelog release clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(RUNTIME)  ## solve a small instance, with a proof of how good the answer is
	$(BIN)/exactsel solve instances/diabetes.npz --loss huber --eps 1e-3

# Only files that hold a test of this tier are collected: the others would take most of its time.
smoke: $(TESTING)  ## a minute's tests, some from each folder: before each commit
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "smoke and not slow and not long" $(ARGS) \
	  $$(grep -rlE --include='test_*.py' 'mark\.smoke$$|smoke=' tests)

# Types and import rules take a core for a minute, for which the tests need not wait; what they say comes at the end.
# In a fresh checkout each process would make pytest's byte code of all tests, and Hypothesis' list of constants of all
# modules, by itself: half of what collecting takes. One does it before they begin, and mypy has the other core. A
# collection that fails fails again where it is seen.
test: style  ## all checks: style, types, import rules, tests, their budgets of processor time
	@mkdir -p build; ($(BIN)/python -m mypy && $(BIN)/lint-imports) > build/types.log 2>&1 & types=$$!; \
	  test -d tests/__pycache__ || $(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1; \
	  $(BIN)/python -m pytest -n $(JOBS) --dist worksteal --budgets $(ARGS); tests=$$?; \
	  wait $$types; types=$$?; tail -n 40 build/types.log; test $$types -eq 0 -a $$tests -eq 0

test-all: lint  ## the same with the slow tests, and with examples that are new each time
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not long" --hypothesis-profile=other $(ARGS)

setup: $(TESTING)  ## make .venv with everything needed to work on exactsel

lint: style types  ## style, types and import rules only

style: $(TESTING)
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .

types: $(TESTING)
	$(BIN)/python -m mypy
	$(BIN)/lint-imports

format: $(TESTING)  ## put the code into the project's style
	$(BIN)/python -m ruff check --fix .
	$(BIN)/python -m ruff format .

bench: $(TESTING)  ## the experiments of the paper, small (see docs/development/paper-experiments.md)
	$(BIN)/python -m benchmarks.paper all --quick

docs: $(WRITING)  ## the documentation as a web site, in build/docs; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/docs
	@echo "open build/docs/index.html"

notebooks: $(WRITING)  ## run the notebooks of the documentation anew, and draw its pictures
	$(BIN)/python docs/notebooks/run.py
	$(BIN)/python docs/pictures/make_pictures.py

changelog: $(TESTING)  ## show the section of the changelog that the files in changes/ make
	$(BIN)/towncrier build --draft --version next

# RELEASE_PYTHONS: the interpreters to install it on, separated by spaces.
RELEASE_PYTHONS ?= $(PYTHON)
release: $(TESTING)  ## build wheel and sdist into dist/, and test what is installed from them elsewhere
	@$(PIP) install --editable ".[test,release]"
	$(BIN)/python -m exactsel_dev.release --out dist $(foreach python,$(RELEASE_PYTHONS),--python $(python))

clean:  ## remove .venv, caches and build outputs
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .benchmarks
	find exactsel heuristics certificates dev tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml | $(BIN)/pip
	@echo "installing exactsel into $(VENV) (once; less than a minute on a fast line)"
	@$(PIP) install "pip>=21.3"
	@$(PIP) install --editable .
	@touch $@

$(TESTING): pyproject.toml dev/pyproject.toml | $(BIN)/pip
	@echo "installing exactsel and its test tools into $(VENV) (once; a minute or so on a fast line)"
	@$(PIP) install "pip>=21.3"
	@$(PIP) install --editable ".[test]" --editable ./dev
	@touch $(RUNTIME) $@

$(WRITING): pyproject.toml | $(BIN)/pip
	@echo "installing exactsel and what its documentation needs into $(VENV) (once; a minute or so on a fast line)"
	@$(PIP) install "pip>=21.3"
	@$(PIP) install --editable ".[docs]"
	@touch $(RUNTIME) $@

$(BIN)/pip:
	@command -v $(PYTHON) >/dev/null || { \
	  echo "There is no '$(PYTHON)' here; install Python 3.10 or newer, or name one: make PYTHON=/path/to/python3."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "'$(PYTHON)' is $$($(PYTHON) --version 2>&1), but exactsel needs Python 3.10 or newer; name one: make PYTHON=python3.12."; exit 1; }
	@$(PYTHON) -m venv $(VENV) >/dev/null 2>&1 || { \
	  echo "'$(PYTHON) -m venv $(VENV)' failed; on Debian and Ubuntu install the missing part first: sudo apt install python3-venv."; exit 1; }
