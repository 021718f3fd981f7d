# Everything starts from here: `make demo` and `make test` install what they need by themselves.

.DEFAULT_GOAL := help
.PHONY: help demo test test-failed test-long test-more test-api test-agents test-runners test-containers test-browser simulate simulate-bugs simulate-week bench worth coverage check format docs site picture screenshots agents-table trust-table capabilities wheel clean system-packages

VENV := .venv
BIN := $(VENV)/bin
# The stamps carry the checkout's place in their name: a copied checkout installs again.
HERE := $(shell pwd -P | cksum | cut -d ' ' -f 1)
RUNTIME := $(VENV)/.runtime-$(HERE)
DEV := $(VENV)/.dev-$(HERE)
SITE := $(VENV)/.docs-$(HERE)
AGENTS := .agents/.installed-$(HERE)
RUNNERS := .runners/.installed-$(HERE)
# How many tests run at once. Half of what a test does is to wait, so two share a processor.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) \* 2)
# Every test process would compile all tests anew where the environment forbids to keep what was compiled.
export PYTHONDONTWRITEBYTECODE :=
# How many seeds a simulation plays, and from which on.
SEEDS ?= 300
FIRST ?= 0
# More arguments for pytest, for example ARGS="-k receipts".
ARGS ?=
# Temporary files are in memory where that has room.
PYTEST := sh scripts/in_memory.sh $(BIN)/pytest

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## See it work on a sample repository, without an agent account
	@$(BIN)/loopwright demo

test: $(DEV) system-packages ## Run all tests but the long ones
	@$(PYTEST) -n $(JOBS) --maxprocesses 8 --maxschedchunk 2 -rs $(ARGS)

test-failed: $(DEV) ## Run what failed the last time once more, one test at a time
	@test -s .failed-tests || { echo "nothing is written down in .failed-tests"; exit 1; }
	@tr '\n' '\0' < .failed-tests | xargs -0 $(BIN)/pytest -n 0 -rs

test-long: $(DEV) system-packages ## Run the long tests: hours of crashes and random walks
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 8 -rs -m long --timeout 3600 $(ARGS)

test-more: $(DEV) system-packages ## Run what says the same once more: PostgreSQL, DBOS, every source, rarer ways of gates
	@$(PYTEST) -n $(JOBS) --maxprocesses 8 --maxschedchunk 2 -rs -m more $(ARGS)

test-agents: $(DEV) $(AGENTS) ## Run the tests with goose, Gemini CLI and OpenCode, which it installs beside the tests
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 2 -rs -m agents $(ARGS)

test-runners: $(DEV) $(RUNNERS) ## Run the tests with jest, vitest and go, which it installs beside the tests
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 2 -rs -m runners $(ARGS)

test-containers: $(DEV) ## Run the tests with podman, which it installs where it may
	@sh scripts/setup.sh containers
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 2 -rs -m containers --timeout 600 $(ARGS)

test-browser: $(DEV) system-packages ## Run all tests of the pages in chromium, which it installs where it may
	@sh scripts/setup.sh axe
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 2 -rs -m browser tests/browser $(ARGS)

simulate: $(DEV) ## Play random crashes and faults in simulated time: SEEDS=20000, SEED=7 for one
	@$(BIN)/python -m tests.simulation $(if $(SEED),--seed $(SEED),--seeds $(SEEDS) --first $(FIRST))

simulate-week: $(DEV) ## Play fifty loops on four slots for a simulated week, half an hour of work: SEED=1, HOURS=12
	@$(BIN)/python -m tests.simulation.week $(if $(SEED),--seed $(SEED)) $(if $(HOURS),--hours $(HOURS))

simulate-bugs: $(DEV) ## Show that the simulation finds every planted bug within 2,000 seeds
	@$(BIN)/python -m tests.simulation --bugs --seeds 2000 $(if $(ANEW),--anew) $(if $(RECORD),--record)

test-api: $(DEV) ## Ask every endpoint of the HTTP interface many random things
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 4 -rs -m api --timeout 3600 $(ARGS)

bench: $(DEV) ## Measure it beside its baselines; QUICK=1 in 3 minutes, CASES=keeper,recovery, DOCS=1 into the docs
	@$(BIN)/python -m bench $(if $(QUICK),--quick) $(if $(CASES),--cases $(CASES)) $(if $(DOCS),--docs) $(ARGS)

worth: $(DEV) ## Compare ways of working with simulated agents; DOCS=1 plays everything, into the docs
	@$(BIN)/python -m bench.worth $(if $(DOCS),--docs)

# Part of `make check`: it takes about ten seconds. It leaves .failed-tests as it is.
coverage: $(DEV) ## Measure what the unit tests of the core run: a line or branch that they leave out fails
	@$(BIN)/coverage run -m pytest tests/unit/core -n 0 -p no:randomly -p no:tests.failures_plugin $(ARGS)
	@$(BIN)/coverage report --show-missing --skip-covered --fail-under=100

check: $(DEV) ## Check format, lint, types, layers, generated pages, English and the coverage of the core
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m scripts.render_docs --check
	@$(BIN)/python -m tests.unit.config.published --check
	@$(BIN)/typos
	@$(BIN)/python -m scripts.check_text
	@$(BIN)/pytest -q -n 0 tests/migrations/test_migrations.py::test_the_migrations_lead_to_the_tables_of_this_program
	@$(MAKE) --no-print-directory coverage

format: $(DEV) ## Format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(DEV) ## Generate the pages and schemas that come from the code
	@$(BIN)/python -m scripts.render_docs
	@$(BIN)/python -m tests.unit.config.published

site: $(SITE) ## Build the documentation site into site/, and check its links
	@$(BIN)/zensical build --strict

picture: $(DEV) ## Draw the picture in the README from a real run
	@$(BIN)/python -m scripts.render_picture

screenshots: $(DEV) system-packages ## Take the pictures of the dashboard in the docs
	@$(BIN)/python -m scripts.render_screenshots

agents-table: $(DEV) ## Run the conformance suite and write its results into docs/reference/adapter-behaviours.md
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 8 -m 'agents or not agents' tests/contracts/agents/test_conformance.py --agents-table docs/reference/agents.json
	@$(BIN)/python -m scripts.render_docs

trust-table: $(DEV) ## Run the liar's suite and write its results into docs/reference/trust-table.md
	@$(BIN)/pytest -n $(JOBS) --maxprocesses 8 tests/trust/test_liars.py --trust-table docs/reference/trust.json
	@$(BIN)/python -m scripts.render_docs

capabilities: $(DEV) ## Show which capability is proven, and which known trap is watched, by which tests
	@$(BIN)/pytest --capabilities -p no:randomly $(ARGS)

wheel: $(DEV) ## Build the wheel into dist/
	@$(BIN)/pip wheel -q --no-deps --wheel-dir dist . && ls dist

clean: ## Remove everything that was made here, the environment too
	@rm -rf $(VENV) .agents .axe .runners .cache dist build site .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.*
	@find src tests bench scripts -name __pycache__ -type d -prune -exec rm -rf {} +

system-packages:
	@sh scripts/setup.sh system

# The stamps make a second call instant.
$(RUNTIME): pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh runtime
	@touch $@

$(DEV): pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh dev
	@touch $@ $(RUNTIME)

$(SITE): pyproject.toml constraints.txt scripts/setup.sh
	@sh scripts/setup.sh docs
	@touch $@

$(AGENTS): scripts/setup.sh
	@sh scripts/setup.sh agents
	@touch $@

$(RUNNERS): scripts/setup.sh
	@sh scripts/setup.sh runners
	@touch $@
