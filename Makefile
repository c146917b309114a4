# Each target sets up .venv (virtual environment, dependencies, native build) by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NATIVE := $(wildcard native/*)
# Measured defaults: keep freed memory in the process, one thread per library pool.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg

.PHONY: install demo test slow check format bench clean
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt scikit-build-core nanobind ninja numpy pybind11 setuptools torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $@

demo: install  ## the main job, with pictures in demo/
	$(BIN)/python -m softcount.experiments.demo --out demo

test: install  ## the default test suite
	$(BIN)/python -m pytest

slow: install  ## learning tests and long exactness runs
	$(BIN)/python -m pytest -m slow

check: install  ## formatting, lint, types, import arrows
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## the memory against a flat nearest-neighbour search
	$(BIN)/python benchmarks/memory.py

clean:
	rm -rf $(VENV) build demo .pytest_cache .mypy_cache .ruff_cache
