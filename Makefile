# `make demo` and `make test` are the first two commands to try; each makes .venv first.
# They need nothing but Python 3.11 or newer (with its venv module). Spark wants Java 17+, `interop` Java 11+ and Maven.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.installed-run
STAMP := $(VENV)/.installed
SPARK := $(VENV)/.installed-spark
SITE := $(VENV)/.installed-site
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)

PACKAGES := $(notdir $(patsubst %/,%,$(dir $(wildcard */py.typed))))
CORE := $(filter-out pipeline,$(PACKAGES))
WORKERS ?= 2
INTEROP_MISSING := $(strip $(foreach program,java javac mvn,$(if $(shell command -v $(program)),,$(program))))

# Java programs and servers have deadlines of their own, which a busy machine makes them miss: a test that fails beside
# them runs once more, and the summary names it; more than three fail the run (tests/run_limits.py). At night nothing
# runs twice.
AGAIN := $(if $(POCKETMQ_NIGHTLY),,--reruns 1 -r aR)
# JUNIT=reports/daily.xml keeps what ran, and for how long, for programs; a second suite of the same run has its name behind.
REPORT = $(if $(JUNIT),--junitxml=$(JUNIT:.xml=)-$@.xml)
PYTEST = $(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal $(REPORT)

.PHONY: help install demo pipeline-demo lint lint-all format test test-all test-nightly nightly-parts native-check unit slow fuzz licences \
	spark spark-all browser interop interop-all package image notes bench torture scale soak soak-tests simulate behaviour pictures reference docs pins golden clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

install: $(STAMP) ## .venv with PocketMQ (editable) and its tools

# What each stamp stands for: the program alone, with test and lint tools, with Spark as well.
$(RUN): EXTRA :=
$(STAMP): EXTRA := [dev]
$(SPARK): EXTRA := [dev,spark,tables,frames,connect]
$(SITE): EXTRA := [docs]
$(RUN) $(STAMP) $(SPARK) $(SITE): pyproject.toml setup.py constraints.txt $(wildcard core/*.[ch])
	@[ -n "$(PYTHON)" ] || { echo "PocketMQ needs Python 3.11 or newer: none found on PATH" >&2; exit 2; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make virtual environments: install its venv package (Debian, Ubuntu: apt-get install python3-venv)" >&2; \
		exit 2; }
	@[ -x $(BIN)/python ] || "$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip --disable-pip-version-check install --quiet --editable '.$(EXTRA)' --constraint constraints.txt
	@touch $(RUN) $(if $(findstring dev,$(EXTRA)),$(STAMP)) $@

demo: $(RUN) ## a guided tour on this machine
	@$(BIN)/pocketmq demo

pipeline-demo: $(SPARK) ## from a running broker to a report of what its clients did (needs Java 17+)
	@$(BIN)/pocketmq pipeline demo

lint: $(STAMP) ## ruff and mypy --strict, without the Spark pipeline
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --follow-imports=silent $(addprefix -p pocketmq.,$(CORE))
	$(BIN)/mypy --follow-imports=silent tests/conformance tests/golden

lint-all: $(SPARK) ## ruff and mypy --strict of everything
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(addprefix -p pocketmq.,$(PACKAGES))
	$(BIN)/mypy tests/conformance tests/golden

format: $(STAMP) ## let ruff fix and lay out the source
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Lint runs beside the tests, on two cores or fewer after them: the tests have both then. What it finds is printed
# before pytest's closing line, which is always the last.
LINT := lint
test: $(STAMP) ## lint and the daily tests: three minutes, no Java, no Spark
	@lint() { $(MAKE) --no-print-directory $(LINT) > $(VENV)/lint.log 2>&1; }; result=0; lint=; \
	if [ "$$(getconf _NPROCESSORS_ONLN)" -gt 2 ]; then lint & lint=$$!; fi; \
	$(PYTEST) -m 'not slow and not interop and not spark and not soak' $$([ -t 1 ] && echo --color=yes) | tee $(VENV)/test.log || result=$$?; \
	if [ -n "$$lint" ]; then wait $$lint; else lint; fi || { \
		cat $(VENV)/lint.log; echo "lint failed: see above"; tail -n 1 $(VENV)/test.log; exit 1; }; \
	exit $$result

test-all: $(SPARK) ## `make test` with all types, then what CI adds: slow tests, Spark, official programs
	@$(MAKE) --no-print-directory test LINT=lint-all
ifneq ($(INTEROP_MISSING),)
	@$(MAKE) --no-print-directory interop spark slow
else
	@$(MAKE) --no-print-directory slow
	@$(MAKE) --no-print-directory spark
	@$(MAKE) --no-print-directory interop
endif

test-nightly: export POCKETMQ_NIGHTLY := 1
test-nightly: ## everything, new random examples, nothing twice: about two hours; goes on after a failure
	@$(MAKE) --no-print-directory --keep-going nightly-parts

nightly-parts: lint-all unit soak-tests native-check torture soak fuzz simulate spark-all interop-all

unit: $(STAMP) ## the daily tests and the slow ones, without lint; WORKERS=2
	$(PYTEST)

slow: $(STAMP) ## the tests marked slow
	$(PYTEST) -m 'slow and not interop and not spark and not soak'

soak-tests: $(STAMP) ## the tests marked soak: minutes of the same at random
	$(BIN)/pytest -m soak $(REPORT)

spark: $(SPARK) ## the pipeline's own tests, and the pipeline on Spark; skips itself, with the reason, without Java 17+
	$(BIN)/pytest -m 'not interop and not soak' tests/pipeline tests/spark $(AGAIN) $(REPORT)

spark-all: export POCKETMQ_SPARK_ALL := 1
spark-all: spark ## the same and what takes longest: drivers that are killed, the installed wheel, a master and two workers

interop: $(STAMP) ## official RocketMQ programs against PocketMQ and themselves
ifeq ($(INTEROP_MISSING),)
	$(BIN)/pytest -m interop tests/conformance --numprocesses $(WORKERS) $(AGAIN) $(REPORT)
else
	@echo "interop: skipped, not on PATH: $(INTEROP_MISSING)"
endif

interop-all: export POCKETMQ_INTEROP_ALL := 1
interop-all: interop ## the same and what takes longest, on the official servers too: about an hour

browser: export DEBIAN_FRONTEND := noninteractive
browser: ## Chromium and its driver, for the tests of the HTTP port's page: Debian or Ubuntu, as root
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null || { apt-get update --quiet=2 && \
		apt-get install --quiet=2 --yes --no-install-recommends chromium chromium-driver fonts-dejavu-core >/dev/null; }

# From what git has, so that no file of this folder is missed or added.
package: export PIP_DISABLE_PIP_VERSION_CHECK := 1
package: BUILD := build/package
package: export SOURCE_DATE_EPOCH := $(shell git log -1 --format=%ct 2>/dev/null)
package: ## wheel and source distribution in dist/; each is installed into an environment of its own and shown to work; an install from a clone leaves it as it was
	rm -rf $(BUILD) dist && mkdir -p $(BUILD)/source
	git -c tar.umask=0022 archive HEAD | tar --extract --directory $(BUILD)/source
	"$(PYTHON)" -m venv $(BUILD)/tools
	$(BUILD)/tools/bin/pip install --quiet build
	$(BUILD)/tools/bin/python -m build --outdir dist $(BUILD)/source > $(BUILD)/log || { cat $(BUILD)/log; exit 1; }
	for made in dist/*; do \
		rm -rf $(BUILD)/user && "$(PYTHON)" -m venv $(BUILD)/user && \
		$(BUILD)/user/bin/pip install --quiet --constraint constraints.txt "$$made" && \
		(cd $(BUILD) && user/bin/pocketmq --version && user/bin/pocketmq demo > demo) || exit 1; \
		[ -z "$(TAG)" ] || $(BUILD)/user/bin/pocketmq --version | grep --quiet --word-regexp --fixed-strings "$(TAG:v%=%)" || \
			{ echo "the tag $(TAG) is not this version" >&2; exit 2; }; \
	done
	git clone --quiet . $(BUILD)/clone
	$(BUILD)/user/bin/pip install --quiet --no-deps --force-reinstall $(BUILD)/clone
	@left=$$(git -C $(BUILD)/clone status --short --ignored); [ -z "$$left" ] || { echo "pip install leaves $$left" >&2; exit 1; }
	rm -rf $(BUILD)

image: ## the container image, and whether it serves (needs Docker)
	docker build --tag pocketmq .
	docker run --detach --rm --name pocketmq-probe --publish 127.0.0.1::8080 pocketmq
	trap 'docker stop --time 5 pocketmq-probe > /dev/null' EXIT; \
		port=$$(docker port pocketmq-probe 8080 | head -n 1); \
		curl --fail --silent --show-error --retry 20 --retry-connrefused --retry-delay 1 "http://$$port/readyz"

notes: ## what CHANGELOG.md says of TAG=v1.2.3
	@awk -v version="$(TAG:v%=%)" '/^## /{on = ($$2 == version)} on' CHANGELOG.md | grep . || { echo "CHANGELOG.md has no $(TAG)" >&2; exit 2; }

bench: $(SPARK) ## the numbers of bench/RESULTS.md
	$(BIN)/python -m bench.start
	$(BIN)/python -m bench.companion
	$(BIN)/python -m bench.load
	$(BIN)/python -m bench.send_path
	$(BIN)/python -m bench.pull_path
	$(BIN)/python -m bench.journal
	$(BIN)/python -m bench.filters
	$(BIN)/python -m bench.timed
	$(BIN)/python -m bench.clock
	$(BIN)/python -m bench.stalls
	$(BIN)/python -m bench.broker_stalls
	$(BIN)/python -m bench.recovery
	$(BIN)/python -m bench.replication
ifeq ($(INTEROP_MISSING),)
	$(BIN)/python -m bench.java_ratio
	$(BIN)/python -m bench.limit
	$(BIN)/python -m bench.client
	$(BIN)/python -m bench.pipeline
else
	@echo "bench.java_ratio, bench.limit, bench.client: skipped, not on PATH: $(INTEROP_MISSING)"
endif

scale: $(STAMP) ## docs/scale.md: how costs grow with what others have stored (ten minutes); QUICK=1 only prints, in two
	$(BIN)/python -m bench.scale $(if $(QUICK),--quick)

native-check: $(STAMP) ## the comparison of its two forms, with the C of the core under the address and undefined-behaviour sanitizers
	$(BIN)/python tests/native_check.py -q

torture: $(STAMP) ## a thousand kills of a writer, and a thousand lives of a store with power losses
	POCKETMQ_TORTURE_RUNS=$(or $(RUNS),1000) $(BIN)/pytest -q tests/store -k 'test_kill.py or test_power_loss.py'

simulate: $(STAMP) ## a cluster in simulation for SEEDS=1000 seeds; SEED=17 EVENTS=3,7 repeats one with these of its faults
	PYTHONPATH=tests $(BIN)/python -m simulation.run $(if $(SEED),--seed $(SEED) $(if $(EVENTS),--events $(EVENTS)),--seeds $(or $(SEEDS),1000))

fuzz: $(STAMP) ## REQUESTS=1000000 at random to every port, from many connections at once (ten minutes); SEED=17 repeats one
	PYTHONPATH=tests $(BIN)/python -m hostile.fuzz --requests $(or $(REQUESTS),1000000) $(if $(SEED),--seed $(SEED))

soak: $(STAMP) ## mixed traffic for MINUTES=30: memory, handles, latency, losses
	$(BIN)/python -m bench.soak --minutes $(or $(MINUTES),30)

licences: $(STAMP) ## what is installed, with versions and licences
	@$(BIN)/python tests/licences.py

golden: $(STAMP) ## record tests/golden and the recordings of tests/conformance again from official programs
	PYTHONPATH=tests $(BIN)/python -m conformance.recorders.record
	PYTHONPATH=tests $(BIN)/python -m conformance.recorders.record_stores
	PYTHONPATH=tests $(BIN)/python -m conformance.recorders.record_conversations

behaviour: $(STAMP) ## docs/behaviour.md: what clients in six languages do while their brokers have trouble (15 minutes)
	PYTHONPATH=tests $(BIN)/python -m conformance.behaviour.document

pictures: $(STAMP) ## the pictures of the documents: drawings, terminals, and with a browser the page
	PYTHONPATH=tests $(BIN)/python docs/pictures/draw.py

reference: $(STAMP) ## the parts of the documents that are made of the program: settings, the HTTP port
	$(BIN)/python docs/settings.py
	$(BIN)/python docs/reference.py

docs: $(SITE) ## the site in build/site: every link and anchor is checked, and nothing in it is loaded from the network
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pins: $(SPARK) $(SITE) ## write constraints.txt from what .venv holds
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable > constraints.txt

clean: ## remove .venv and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist *.egg-info
