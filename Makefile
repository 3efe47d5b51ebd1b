# make demo: set up and fit a certified model to the bundled penguins.   make test: set up and run every check.
# make check ROOM=cluster: that room's lint, types and tests.            make hooks: check every commit (pre-commit).
# make docs: the site, from build/site/index.html on.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
ROOM   ?= cluster
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
# pip would compile every file on one core; other packages' tests, a third of all, are not needed.
COMPILE := -$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib
# Bytecode is kept, whatever the surroundings say: every program that a check starts would parse the package again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test suite uncompiled defaults check lint code pages hooks bench docs release-check warm-up clean

demo: $(VENV)/.installed
	$(BIN)/certifit demo

test: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory --jobs=2 code suite

# Every test; types and lines of code are looked at meanwhile.
suite: $(VENV)/.installed-dev uncompiled
	$(BIN)/python -m pytest -n auto --dist worksteal

# Compiled loops once more, as the Python that they are written in.
uncompiled: $(VENV)/.installed-dev
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -m compiled $(shell grep -rl --include='*.py' mark.compiled tests)

# scikit-learn's checks of every estimator as it comes, the warm-up of all, and the page of fitted attributes; `make test`
# lets slow estimators fit fewer models, and warms up one.
defaults: $(VENV)/.installed-dev pages
	CERTIFIT_DEFAULTS=1 $(BIN)/python -m pytest -q -n auto --dist worksteal tests/common/test_sklearn_checks.py tests/cli

check: $(VENV)/.installed-dev
	$(BIN)/ruff check src/certifit/$(ROOM) $(wildcard src/certifit/checkers/$(ROOM)) tests/$(ROOM)
	$(BIN)/ruff format --check src/certifit/$(ROOM) $(wildcard src/certifit/checkers/$(ROOM)) tests/$(ROOM)
	$(BIN)/lint-imports
	$(BIN)/mypy src/certifit/$(ROOM) $(wildcard src/certifit/checkers/$(ROOM))
	$(BIN)/python -m pytest -q -n auto --dist worksteal tests/$(ROOM)

lint: $(VENV)/.installed-dev
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target code pages

code: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python tools/stubs.py --check

# tests/migration holds docs/start/differences.md against the classes.
pages: $(VENV)/.installed-dev
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/ledger.py --check

hooks: $(VENV)/.installed-dev
	$(BIN)/pre-commit install

bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks all

# Every page, the atlas' scripts run, references and links checked; a warning is an error.
docs: $(VENV)/.installed-docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -b html -n -W --keep-going -q docs build/site
	! grep -rlE '<(script|link|img)[^>]+(src|href)="https?:' build/site --include='*.html'  # no page loads from elsewhere
	@echo "The site begins at build/site/index.html"

# Wheel and source distribution, built, installed and tried in fresh environments of the Pythons at hand.
release-check:
	$(PYTHON) tools/release_check.py

warm-up: $(VENV)/.installed
	$(BIN)/certifit warm-up

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "certifit needs Python 3.11 or newer: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e .
	$(COMPILE)
	touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e '.[dev]'
	$(COMPILE)
	touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e '.[bench]'
	$(COMPILE)
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) -e '.[docs]'
	$(COMPILE)
	touch $@ $(VENV)/.installed

clean:
	rm -rf $(VENV) dist build docs/_generated .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
