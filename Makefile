# Every target makes the virtual environment it needs; nothing else has to be installed beforehand than Python >= 3.11.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DATA ?=

# uv installs in a third of pip's time; where it does not get through (a mirror that only pip is told of), pip does it.
# Both write bytecode, for where PYTHONDONTWRITEBYTECODE is set every process would compile what it imports.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
comma := ,
install = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1) || $(INSTALL) $(1)

.PHONY: demo test lint reference pictures lock image bench soak chaos chaos-pieces rolling clean

demo: $(VENV)/.demo
	$(BIN)/stream-anon demo

test: $(VENV)/.test lint
	$(BIN)/python -m compileall -q stream_anon
	$(BIN)/python -m pytest -n 4 --dist worksteal

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# docs/reference.md, from the code: commands, words of the policy, codes, metrics.
reference: $(VENV)/.test
	$(BIN)/python docs/make_reference.py > docs/reference.new && mv docs/reference.new docs/reference.md

# The pictures of the docs, taken by the system's Chromium, so that they stay true.
pictures: $(VENV)/.test
	$(BIN)/python docs/make_pictures.py

# The versions and hashes of what the image installs, for every Python and platform; with no address of a registry.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: $(VENV)/.test
	$(LOCK) --upgrade --extra fast --extra kafka --extra speed --extra avro --extra protobuf --extra zstd --output-file deploy/requirements.lock pyproject.toml
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	    | $(LOCK) --upgrade --output-file deploy/build.lock -

# The image as it is written, without Docker: all that is locked is fetched, its bytecode and kernels are compiled.
image: $(VENV)/.test
	STREAM_ANON_WHOLE_IMAGE=1 $(BIN)/python -m pytest tests/deploy/test_image.py

# DATA: a folder with adult.csv and hierarchies/; without it a synthetic table serves.
bench: $(VENV)/.test
	$(BIN)/python benchmarks/encode.py --json $(if $(DATA),--data $(DATA))
	$(BIN)/python benchmarks/stream.py --json $(if $(DATA),--data $(DATA))

soak: $(VENV)/.test
	$(BIN)/python benchmarks/soak.py --json

# A real broker, WORKERS workers, KILLS failures of all kinds; one JSON line in which lost, doubled and the like are 0.
# LEDGER=1 keeps ledgers in a topic of their own, LINE=1 spoils the line between workers and broker, too.
KILLS ?= 60
WORKERS ?= 2
CLIENT ?= kafka-python
LEDGER ?=
LINE ?=
chaos: $(VENV)/.test
	$(BIN)/python tests/chaos/chaos.py --kills $(KILLS) --workers $(WORKERS) --client $(CLIENT) $(if $(LEDGER),--ledger) $(if $(LINE),--line)

# The same at length, with both clients and both together in turns, in pieces of PIECE failures that FILE keeps: called
# again it does what is missing of KILLS, and prints the sum.
PIECE ?= 20
FILE ?= chaos.jsonl
chaos-pieces: $(VENV)/.test
	$(BIN)/python tests/chaos/pieces.py $(FILE) --kills $(KILLS) --piece $(PIECE) $(if $(LEDGER),--ledger)

# Each of three workers is stopped and replaced in turn, under load; gaps and late rows tell what an upgrade costs.
rolling: $(VENV)/.test
	$(BIN)/python tests/chaos/rolling.py --client $(CLIENT)

clean:
	rm -rf $(VENV)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) uv

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(call install,-e '.[speed]')
	touch $@

$(VENV)/.test: pyproject.toml tests/oracle/requirements.txt | $(BIN)/python
	$(call install,-e '.[test$(comma)lint]')
	$(call install,--no-deps --upgrade --target $(VENV)/oracle -r tests/oracle/requirements.txt)
	touch $@ $(VENV)/.demo
