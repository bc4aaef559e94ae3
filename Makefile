# Every target makes the virtual environment it needs; nothing else has to be installed beforehand than Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=

.PHONY: demo test lint bench soak chaos rolling clean

demo: $(VENV)/.demo
	$(BIN)/stream-anon demo

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -n 3 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# DATA: a folder with adult.csv and hierarchies/; without it a synthetic table serves.
bench: $(VENV)/.test
	$(BIN)/python benchmarks/encode.py --json $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/stream.py --json $(if $(DATA),--data $(DATA))

soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py --json

# A real broker, WORKERS workers, KILLS failures of all kinds; one JSON line in which lost, doubled and the like are 0.
KILLS ?= 60
WORKERS ?= 2
CLIENT ?= kafka-python
chaos: $(VENV)/.test
	$(BIN)/python tests/chaos/chaos.py --kills $(KILLS) --workers $(WORKERS) --client $(CLIENT)

# Each of three workers is stopped and replaced in turn, under load; gaps and late rows tell what an upgrade costs.
rolling: $(VENV)/.test
	$(BIN)/python tests/chaos/rolling.py --client $(CLIENT)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[speed]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,lint]'
	touch $@ $(VENV)/.demo
