# The README's two commands are `make demo` and `make test`; each makes .venv first.
# Nothing but Python 3.11 or newer (with its venv module) is needed; `interop` also wants Java 11+ and Maven.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SPARK := $(VENV)/.installed-spark
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)

PACKAGES := $(notdir $(patsubst %/,%,$(dir $(wildcard */py.typed))))
INTEROP_MISSING := $(strip $(foreach program,java javac mvn,$(if $(shell command -v $(program)),,$(program))))

# Java programs and servers have deadlines of their own, which a busy machine makes them miss: what fails beside them is
# tried once more, and named as tried again in the summary.
AGAIN := --reruns 1 -r aR

.PHONY: help install demo pipeline-demo lint format test unit spark spark-all interop interop-all bench torture soak pictures pins golden clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(STAMP) ## .venv with PocketMQ (editable) and its tools

$(STAMP): pyproject.toml setup.py constraints.txt
	@[ -n "$(PYTHON)" ] || { echo "PocketMQ needs Python 3.11 or newer: none found on PATH" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
		exit 2; }
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@

$(SPARK): $(STAMP)
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --editable '.[dev,spark]' --constraint constraints.txt
	@touch $@

demo: $(STAMP) ## a guided tour on this machine
	@$(BIN)/pocketmq demo

pipeline-demo: $(SPARK) ## from a running broker to a report of what its clients did (needs Java 17+)
	@$(BIN)/pocketmq pipeline demo

lint: $(SPARK) ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix -p pocketmq.,$(PACKAGES))
	$(BIN)/mypy conformance tests/golden

format: $(STAMP) ## let ruff fix and lay out the source
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Where two workers share the tests, who is done first takes over from the other.
unit: $(SPARK) ## the default suite (no Java); WORKERS=2 is quicker, but then others may take a port that a test gave free
	$(BIN)/pytest --numprocesses $(or $(WORKERS),0) --dist worksteal

spark: $(SPARK) ## the pipeline on Spark; skips itself, with the reason, without Java 17+
	$(BIN)/pytest -m spark tests/spark

spark-all: export POCKETMQ_SPARK_ALL := 1
spark-all: spark ## the same and what takes longest: drivers that are killed, the installed wheel, a master and two workers

interop: $(STAMP) ## official RocketMQ programs against PocketMQ and themselves, on WORKERS=2
ifeq ($(INTEROP_MISSING),)
	$(BIN)/pytest -m interop conformance --numprocesses $(or $(WORKERS),2) $(AGAIN)
else
	@echo "interop: skipped, not on PATH: $(INTEROP_MISSING)"
endif

interop-all: export POCKETMQ_INTEROP_ALL := 1
interop-all: interop ## the same and what takes longest, on the official servers too: about an hour

test: ## lint, default suite, the pipeline, interop where Java and Maven are present
	@$(MAKE) --no-print-directory lint
ifneq ($(INTEROP_MISSING),)
	@$(MAKE) --no-print-directory interop spark unit
else
	@$(MAKE) --no-print-directory unit spark
	@$(MAKE) --no-print-directory interop
endif

bench: $(SPARK) ## the numbers of bench/RESULTS.md
	$(BIN)/python -m bench.start
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.send_path
	$(BIN)/python -m bench.journal
	$(BIN)/python -m bench.filters
	$(BIN)/python -m bench.timed
	$(BIN)/python -m bench.stalls
	$(BIN)/python -m bench.recovery
	$(BIN)/python -m bench.replication
ifeq ($(INTEROP_MISSING),)
	$(BIN)/python -m bench.java_ratio
	$(BIN)/python -m bench.java_ratio --set flushDiskType=SYNC_FLUSH --only "64 threads, 128"
	$(BIN)/python -m bench.ha_ratio
	$(BIN)/python -m bench.client
	$(BIN)/python -m bench.pipeline
else
	@echo "bench.java_ratio, bench.ha_ratio, bench.client: skipped, not on PATH: $(INTEROP_MISSING)"
endif

torture: $(STAMP) ## a thousand kills of a writer, and a thousand lives of a store with power losses
	POCKETMQ_TORTURE_RUNS=$(or $(RUNS),1000) $(BIN)/pytest -q tests/store/durability/test_kill.py tests/store/durability/test_power_loss.py

soak: $(STAMP) ## mixed traffic for MINUTES=30: memory, handles, latency, losses
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),30)

golden: $(STAMP) ## record tests/golden again from official clients and servers
	PYTHONPATH=tests $(BIN)/python -m conformance.recorders.record
	PYTHONPATH=tests $(BIN)/python -m conformance.recorders.record_stores

pictures: $(STAMP) ## the pictures of the documents, from what the program prints
	$(BIN)/python docs/pictures/draw.py

pins: $(SPARK) ## write constraints.txt from what .venv holds
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable > constraints.txt

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
