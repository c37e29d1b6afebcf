# Everything runs in .venv, which is made from the lock file when it is missing or out of date.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: help setup extras demo test coverage lint format docs bench torture mutants publish lock clean

help:
	@echo "make demo   train two models, look inside, write a report"
	@echo "make test   run the tests"
	@echo "make lint   format check, linter, type checker"
	@echo "make docs   build the documentation into site/"
	@echo "make bench  measure speed"
	@echo "make torture  kill, damage, fill the disk, make up inputs; see docs/reliability.md"
	@echo "make mutants  put small faults into the code and count those that the tests notice"

setup: .venv/ready

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

# What tests of the extras need; without it they are skipped, each with its reason.
extras: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-extras.lock

demo: setup
	$(BIN)/regard demo

test: setup
	$(BIN)/python -m pytest --numprocesses auto

coverage: setup
	$(BIN)/python -m pytest --numprocesses auto --cov --cov-report=term-missing:skip-covered

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --requirement requirements-docs.lock
	$(BIN)/mkdocs build --strict

bench: setup
	set -e; for name in training instruments lookup snell recurrences explorer; do \
	  $(BIN)/python -m benchmarks $$name --json > benchmarks/$$name.json; cat benchmarks/$$name.json; \
	done

# KILLS=10000 FLIPS=10000 INPUTS=10000 ROUNDS=20 KEEP=torture.json make torture takes most of an hour
# of a core; what was stopped goes on after the last round in the file.
torture: setup
	$(BIN)/python -m torture --kills $(or $(KILLS),200) --flips $(or $(FLIPS),2000) --inputs $(or $(INPUTS),2000) \
	  --rounds $(or $(ROUNDS),1) $(if $(KEEP),--keep $(KEEP))

mutants: setup
	$(BIN)/python tools/mutants.py --count $(or $(COUNT),300) --seed $(or $(SEED),0)

# Measured results into docs/ and the README, after `regard demo` and `regard reproduce`.
publish: setup
	$(BIN)/python tools/publish.py results/demo/quick results/chapter36/full results/aitken2021/full results/baan2019/full results/snell2021/full

lock: setup
	$(BIN)/python tools/lock.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis site
