# Two commands do everything on a fresh machine with Python and make: `make verify` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 1

.PHONY: verify test lint clean

verify: $(VENV)/installed
	@$(BIN)/assay verify

test: $(VENV)/installed-test
	@$(BIN)/python -m pytest -n 2

lint: $(VENV)/installed-test
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(BIN)/pyright --pythonpath $(BIN)/python
	@$(BIN)/lint-imports

$(VENV)/installed: pyproject.toml constraints.txt
	@test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[test]"
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
