# Two commands: `make demo` and `make test`. Each makes its own .venv on a fresh machine.

PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test test-fast lint types docs release-check clean

demo: .venv/ready
	$(BIN)/python examples/demo.py

# One thread per process: the test workers already fill the cores.
test test-fast: export OMP_NUM_THREADS = 1
test test-fast: export OPENBLAS_NUM_THREADS = 1

test: .venv/ready
	$(BIN)/python -m pytest -n auto --dist worksteal

test-fast: .venv/ready
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: .venv/ready
	$(BIN)/mypy

.venv/ready: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

docs: .venv/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir site

release-check:
	.ci/release

clean:
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build site
