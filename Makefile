# Leaseway's chores: one word each, the same on a laptop and in CI. Needs Python 3.11, Java 17 and make; no Docker, no root.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# A distribution's Python is built with profile-guided optimisation, one of pyenv mostly is not: 1.1x the messages a second (docs/lab/performance.md).
PYTHON ?= $(shell for one in /usr/bin/python3.11 python3.11 python3; do $$one -c 'import ensurepip' 2>/dev/null && command -v $$one && break; done)
PORT ?= 9400
DATA ?= .data
SEEDS ?= 1 2 3 4
export LW_JARS ?= $(CURDIR)/.cache/jars

BIN := .venv/bin
# A stamp's name has the check sum of what it stands for, so a changed lock or ivy.xml is a missing stamp.
sum = $(firstword $(shell cat $(1) | cksum))
# What the service needs; what Spark jobs need beside it; the demo's data set; what the tests and checks need beside both.
RUN_STAMP := .venv/.run-$(call sum,requirements/run.lock pyproject.toml)
SPARK_STAMP := .venv/.spark-$(call sum,requirements/spark.lock)
OTEL_STAMP := .venv/.otel-$(call sum,requirements/otel.lock)
DEMO_STAMP := .venv/.demo-$(call sum,requirements/demo.lock)
TEST_STAMP := .venv/.test-$(call sum,requirements/test.lock)
BROKER_JARS := $(LW_JARS)/.make-broker-$(call sum,facade/programs/stack/processes/ivy.xml facade/programs/stack/class_archive.py)
SPARK_JARS := $(LW_JARS)/.make-spark-$(call sum,facade/programs/stack/processes/ivy.xml spark/warm_up.py)
S3_JARS := $(LW_JARS)/.make-s3-$(call sum,facade/programs/stack/processes/ivy.xml)
# Clients of other services, for the tests: each lock in a folder of its own, and programs of the JavaScript and Go worlds.
CLIENT_LOCKS := $(wildcard tests/conformance/*/*.lock tests/spark/*.lock)
CLIENT_SOURCES := tests/conformance/sqs/celery.lock:kombu
CLIENT_PROGRAMS := tests/conformance/sqs/clients/consumer tests/conformance/rocketmq/clients/rocketmq-node
GO_PROGRAMS := tests/conformance/sqs/clients/watermill tests/conformance/rocketmq/clients/rocketmq-go
CLIENTS_STAMP := .cache/.clients-$(call sum,Makefile $(CLIENT_LOCKS) tests/node.lock tests/browser/fetch.py tests/browser/axe.py \
  $(wildcard $(CLIENT_PROGRAMS:%=%/*) $(GO_PROGRAMS:%=%/*)))
# The native library: built where cargo is; without it, uvicorn serves HTTP.
CRATE := native/Cargo.toml native/Cargo.lock $(wildcard native/src/*.rs native/src/*/*.rs native/src/*/*/*.rs)
FRONT_STAMP := .cache/.front-$(call sum,$(CRATE))
CARGO := $(shell command -v cargo)

.PHONY: help setup up spark otel demo check test test-change faults two-redis bench bench-scale bench-quick native front-tests lint audit types fmt lock docs protos spark-zip

help: ## print this
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/make \1|\2/p' Makefile | awk -F'|' '{printf "%-12s %s\n", $$1, $$2}'

up: $(RUN_STAMP) $(BROKER_JARS) $(FRONT_STAMP) ## start Kafka, Redis and the facade; Ctrl-C stops all (DATA=folder, PORT=number)
	@exec $(BIN)/leaseway up --data $(DATA) --port $(PORT)

spark: $(SPARK_STAMP) $(SPARK_JARS) ## install what `leaseway report`, `sql`, `live`, `lake`, `redrive` and `spark` need

otel: $(OTEL_STAMP) ## install what LEASEWAY_TRACES=otlp needs

demo: $(RUN_STAMP) $(BROKER_JARS) $(DEMO_STAMP) ## stream a real data set through a queue and show what went where
	@exec $(BIN)/leaseway demo

setup: ## all of it, also what the tests need; nothing to do = under a second
	@$(MAKE) --no-print-directory -j4 everything IN_TURN=yes

# The compiler and what is fetched need not wait for each other; what pip installs does, and
# what Ivy does: each has one folder.
.PHONY: everything
everything: spark $(S3_JARS) $(BROKER_JARS) $(DEMO_STAMP) $(TEST_STAMP) $(CLIENTS_STAMP) $(FRONT_STAMP)
ifdef IN_TURN
$(DEMO_STAMP): | $(SPARK_STAMP)
$(TEST_STAMP): | $(DEMO_STAMP)
$(BROKER_JARS): | $(S3_JARS)
$(S3_JARS): | $(SPARK_JARS)
endif

# setuptools first, from the lock too: source packages are then built with it, not with whatever the registry has newest.
$(RUN_STAMP):
	@echo "setup: .venv from requirements/run.lock"
	@test -x $(BIN)/python || test -n "$(PYTHON)" || { echo "setup: no Python with ensurepip here (Debian: python3.11 and python3.11-venv)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@mkdir -p .cache
	@awk '/^setuptools==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements/run.lock > .cache/build.lock
	@$(call twice,$(BIN)/python -m pip install -q --require-hashes -r .cache/build.lock)
	@$(call install,run)
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@rm -f .venv/.run-* .venv/.setup-* && touch $@

$(SPARK_STAMP) $(OTEL_STAMP) $(DEMO_STAMP) $(TEST_STAMP): .venv/.%: $(RUN_STAMP)
	@echo "setup: requirements/$(firstword $(subst -, ,$*)).lock"
	@$(call install,$(firstword $(subst -, ,$*)))
	@rm -f .venv/.$(firstword $(subst -, ,$*))-* && touch $@

$(BROKER_JARS) $(SPARK_JARS) $(S3_JARS): $(LW_JARS)/.make-%: $(RUN_STAMP)
	@test -f $@ || $(BIN)/leaseway jars $(firstword $(subst -, ,$*))
	@rm -f $(LW_JARS)/.make-$(firstword $(subst -, ,$*))-* && touch $@

# With PySpark, Spark's class archive is made too.
$(SPARK_JARS): | $(SPARK_STAMP)

# Not built: nobody is stopped, and the next set-up tries again.
$(FRONT_STAMP): $(CRATE)
	@mkdir -p .cache && rm -f .cache/.front-*
	@$(if $(CARGO),echo "setup: the native library"; cargo build -q --release --locked --manifest-path native/Cargo.toml && touch $@ || \
	  echo "setup: cargo can't build the native library; uvicorn serves HTTP",echo "setup: no cargo, no native library; uvicorn serves HTTP")

# The tests fetch what is missing here too, so a registry that does not answer now stops nobody.
$(CLIENTS_STAMP): $(TEST_STAMP)
	@mkdir -p .cache && rm -f .cache/.clients-*
	@$(BIN)/python -m tests.clients $(CLIENT_LOCKS) $(CLIENT_SOURCES) && $(BIN)/python -m tests.node $(CLIENT_PROGRAMS) \
	  && $(BIN)/python -m tests.browser.fetch && $(BIN)/python -m tests.browser.axe && $(BIN)/python -m tests.golang $(GO_PROGRAMS) \
	  && touch $@ || echo "setup: some clients for the tests are missing"

test: setup lint types native audit ## set-up, lint, types, import contracts, all tests (30 minutes)
	$(BIN)/python -m tests.tiers full

check: $(TEST_STAMP) ## lint what has changed, all types, and the unit tests of what has changed (seconds; starts nothing)
	@$(BIN)/python -m tests.check

test-change: setup lint types native ## what every change should pass: all but what takes long (9 minutes)
	$(BIN)/python -m tests.tiers change

faults: setup ## inject every fault into a running service for 10 minutes and check every promise (SEEDS="1 2 3 4")
	@mkdir -p .cache/faults
	@failed=0; for seed in $(SEEDS); do \
	  echo "seed $$seed"; \
	  $(BIN)/python -m tests.faults.run --seed $$seed --fault all --seconds 120 --report .cache/faults/$$seed.json || failed=1; \
	done; \
	$(BIN)/python -m tests.judge.table $(SEEDS:%=.cache/faults/%.json) || failed=1; exit $$failed

CASES ?= failover split failback stale stopped evict mute
two-redis: setup ## two lives of Redis under traffic: failover, split, eviction and others, a minute each (SEEDS="1 2 3 4")
	@failed=0; for seed in $(SEEDS); do for case in $(CASES); do \
	  $(BIN)/python -m tests.two_redis --case $$case --seed $$seed || failed=1; \
	done; done; exit $$failed

bench: setup ## Leaseway beside its peers by the one protocol (SIDES=leaseway,rabbitmq CELLS=1x8 ROUNDS=3 BESIDE=FOLDER OUT=FILE); writes benchmarks/results.md
	@$(BIN)/python -m benchmarks.bench --out $(or $(OUT),benchmarks/results.md) $(if $(SIDES),--sides $(SIDES)) $(if $(CELLS),--cells $(CELLS)) \
	  $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(SECONDS),--seconds $(SECONDS)) $(if $(BESIDE),--beside $(BESIDE))

bench-scale: setup ## what a message costs as the state grows, half an hour (ONLY=backlog,tags STEPS=small); writes benchmarks/scale.md
	@$(BIN)/python -m benchmarks.scale $(if $(ONLY),--only $(ONLY)) $(if $(STEPS),--steps $(STEPS))

bench-quick: setup ## count what each hot verb costs, against benchmarks/budget.json (UPDATE=1 rewrites it); part of the tests
	@$(BIN)/python -m benchmarks.quick $(if $(UPDATE),--update)

native: $(FRONT_STAMP) ## the tests of the native front, where cargo is
	$(if $(CARGO),cargo test -q --locked --manifest-path native/Cargo.toml,@echo "native: no cargo here, its tests are skipped")

front-tests: $(TEST_STAMP) $(BROKER_JARS) $(FRONT_STAMP) ## what SQS promises, by the native front that is there; it must be there
	LEASEWAY_NATIVE=require $(BIN)/pytest -q tests/unit/facade/test_front*.py tests/unit/test_protocol.py tests/acceptance/test_front*.py tests/conformance/cases

lint: setup ## ruff, formatting, import contracts; of the native front too, where cargo is
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(if $(CARGO),cargo fmt --check --manifest-path native/Cargo.toml)
	$(if $(CARGO),cargo clippy -q --locked --all-targets --manifest-path native/Cargo.toml -- -D warnings)

audit: $(TEST_STAMP) ## look for advisories on the locked packages; where the index has none, at the age of the locks
	@$(BIN)/python -m tests.advisories

types: setup ## mypy --strict, tests too
	$(BIN)/mypy

fmt: setup ## format, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The largest first: the others are parts of it at the same versions. The demo reads one file of its package and imports none.
lock: setup ## pin the requirements of pyproject.toml again, with hashes and without addresses
	@$(call compile,--extra dev --extra spark --extra otel --upgrade pyproject.toml,test)
	@$(call compile,--extra build --extra spark -c requirements/test.lock pyproject.toml,spark)
	@$(call compile,--extra build --extra otel -c requirements/test.lock pyproject.toml,otel)
	@$(call compile,--extra build -c requirements/test.lock pyproject.toml,run)
	@echo vega-datasets | $(call compile,--no-deps -,demo)
	@$(BIN)/python -c "from facade.programs.stack.processes.jars import pin; pin(print)"

spark-zip: $(RUN_STAMP) ## write spark/ and schemas/ as dist/leaseway-spark.zip, for --py-files of your own Spark
	@mkdir -p dist && $(BIN)/leaseway spark-zip dist/leaseway-spark.zip

docs: $(RUN_STAMP) ## write the generated pages
	$(BIN)/leaseway config --markdown > docs/reference/config.md
	$(BIN)/leaseway config --example > .env.example
	$(BIN)/python -m tests.docs

# The generator is needed by nobody else, so it has a folder of its own; what it writes is committed.
PROTOS := facade/dialects/rocketmq/wire
protos: $(TEST_STAMP) ## write the messages of RocketMQ again from facade/dialects/rocketmq/wire/rocketmq.proto
	@$(BIN)/uv run -q --no-project --isolated --with grpcio-tools==1.85.1 --python $(BIN)/python \
	  python -m grpc_tools.protoc -I $(PROTOS) --python_out=$(PROTOS) --pyi_out=$(PROTOS) $(PROTOS)/rocketmq.proto

compile = $(BIN)/uv pip compile $(1) --generate-hashes --universal --python-version 3.11 \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate -q -o requirements/$(2).lock
# The demo's lock is one package without those that it asks for.
install = $(call twice,$(BIN)/python -m pip install -q $(if $(filter demo,$(1)),--no-deps) --no-build-isolation --use-pep517 \
  --require-hashes -r requirements/$(1).lock)
# A fetch may fail once for no reason of ours.
twice = $(1) || { echo "setup: failed, trying once more"; sleep 3; $(1); }
