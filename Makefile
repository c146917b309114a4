# Each target sets up .venv (virtual environment, dependencies, native build) by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
NATIVE := $(wildcard native/*)
# Measured defaults: keep freed memory in the process, one thread per library pool.
export OMP_NUM_THREADS ?= 1
export MPLBACKEND ?= Agg

.PHONY: install demo test test-rllib slow check format bench docs wheel test-wheel clean sanitize sanitize-quick mutants mutants-tenth chaos
install: $(STAMP)

$(STAMP): pyproject.toml constraints.txt CMakeLists.txt $(NATIVE)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt scikit-build-core nanobind ninja numpy pybind11 setuptools torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable ".[dev]"
	touch $@

demo: install  ## the main job, with pictures in demo/
	$(BIN)/python -m experiments.demo --out demo

test: install  ## the default test suite
	$(BIN)/python -m pytest

# RLlib pins another Gymnasium, so it has an environment of its own.
test-rllib: $(VENV)-rllib/.installed  ## the bonus in RLlib, in .venv-rllib
	$(VENV)-rllib/bin/python -m pytest -o addopts="--import-mode=importlib" tests/rllib

$(VENV)-rllib/.installed: pyproject.toml constraints-rllib.txt CMakeLists.txt $(NATIVE)
	test -x $(VENV)-rllib/bin/python || $(PYTHON) -m venv $(VENV)-rllib
	$(VENV)-rllib/bin/python -m pip install --quiet --constraint constraints-rllib.txt scikit-build-core nanobind ninja pytest pytest-timeout
	$(VENV)-rllib/bin/python -m pip install --quiet --constraint constraints-rllib.txt --no-build-isolation --config-settings=build-dir=build/rllib --editable ".[rllib]"
	touch $@

slow: install  ## learning tests and long exactness runs
	$(BIN)/python -m pytest -m slow

check: install  ## formatting, lint, types, import arrows, sentences of the documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/sentences.py

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: install  ## the memory against a flat nearest-neighbour search
	$(BIN)/python -m benchmarks.memory

docs: install  ## the documentation as a site in build/site, every link checked
	$(BIN)/python scripts/docs_site.py --out build/site

wheel: install  ## a wheel and an sdist in dist/
	rm -rf dist
	$(BIN)/python -m build --no-isolation --wheel --sdist --outdir dist .

test-wheel: wheel  ## installs both into empty environments and does there what the README says
	$(BIN)/python scripts/try_install.py dist --agent

sanitize: install  ## the memory under address, undefined and thread sanitizers (gcc, Linux)
	$(call sanitized,address,address$(comma)undefined,all,)
	$(call sanitized,thread,thread,all,)

sanitize-quick: install  ## the same in about a minute: fewer tests, seconds of bad inputs and threads
	$(call sanitized,address,address$(comma)undefined,_native,--quick)
	$(call sanitized,thread,thread,_native,--quick)

mutants: install  ## makes one line wrong at a time; a test must notice each (docs/mutants.md)
	PYTHONPATH=tests $(BIN)/python -m mutants --out results/mutants/mutants.json

mutants-tenth: install  ## a tenth of them, chosen by the commit
	PYTHONPATH=tests $(BIN)/python -m mutants --tenth

chaos: install  ## processes killed, hung and starved at random: nothing may be lost or counted twice
	PYTHONPATH=tests $(BIN)/python -m chaos
	PYTHONPATH=tests $(BIN)/python -m chaos.run_storm

# Builds native modules with sanitizers, as $(1), and tests them. The runtime has to be loaded before Python, and
# C++'s with it, or it does not find what throws; leaks are not looked for, since Python keeps what it likes. Addresses are not randomised for ThreadSanitizer.
comma := ,
define sanitized
	cmake -S . -B build/sanitize-$(1) -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_COMPILER=g++ \
	  -DCMAKE_MAKE_PROGRAM=$(abspath $(BIN))/ninja -DPython_EXECUTABLE=$(abspath $(BIN))/python \
	  -Dnanobind_DIR="$$($(BIN)/python -m nanobind --cmake_dir)" -DSOFTCOUNT_SANITIZE=$(2) >/dev/null
	cmake --build build/sanitize-$(1) --target $(3) >/dev/null
	LD_PRELOAD="$$(g++ -print-file-name=lib$(if $(filter thread,$(1)),tsan,asan).so) $$(g++ -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1 \
	  setarch -R $(BIN)/python tests/sanitize/run.py build/sanitize-$(1) $(4)
endef

clean:
	rm -rf $(VENV) $(VENV)-rllib build demo dist .pytest_cache .mypy_cache .ruff_cache
