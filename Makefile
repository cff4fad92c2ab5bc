# Everything a fresh clone needs: `make demo` shows agentd at work, `make test` proves it.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

CLIS   ?= .cache/clis
VENDOR := src/agentd/web/static/vendor
AS_ROOT := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

NEEDED := tools browser $(VENDOR)/mermaid.min.js $(CLIS)/.ready
# Tests wait for processes now and then, so twice as many workers as cores keep the cores busy.
WORKERS ?= $(shell expr 2 \* $$(nproc 2>/dev/null || sysctl -n hw.ncpu))
PYTEST  := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
SEED    ?= 1
MINUTES ?=

.PHONY: test test-long demo lint format bench mutants clean tools browser pictures docs

test: $(READY) $(NEEDED)
	$(PYTEST)

# What is exhaustive by nature: a crash at every write, long random runs, property tests, large inputs.
# `make test` has a sample of each. SEED repeats a run, MINUTES ends one early.
test-long: $(READY) $(NEEDED)
	AGENTD_TEST_LONG=1 AGENTD_TEST_SEED=$(SEED) AGENTD_TEST_MINUTES=$(MINUTES) $(PYTEST)

demo: $(READY) $(VENDOR)/mermaid.min.js
	@$(BIN)/agentd demo

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Ratios, measured side by side on this machine; no test depends on them.
bench: $(READY)
	for script in tests/bench/*.py; do $(BIN)/python $$script || exit 1; done

# Small faults in the core and the guard, one at a time; each must make its tests fail (FILTER=text for a part).
mutants: $(READY)
	$(BIN)/python tests/mutants.py "$(FILTER)"

# The pages that are made from the code; a test fails where they are stale.
docs: $(READY)
	PYTHONPATH=tests $(BIN)/python -m reference

# The viewer's pages and the terminal as the documentation shows them.
pictures: $(READY) browser $(VENDOR)/mermaid.min.js
	AGENTD_TEST_BROWSER_REQUIRED=1 AGENTD_PICTURES=docs/pictures $(BIN)/python -m pytest \
		tests/web/test_browser_pictures.py tests/docs/test_terminal_pictures.py

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "agentd needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

# The tests run what `init` proposes for a Node project.
tools:
	@command -v npm >/dev/null || $(AS_ROOT) sh -c 'apt-get -qq update && apt-get -qq install --yes nodejs npm' || \
		{ echo "The tests need node and npm; install them and run make test again." >&2; exit 1; }

# The browser that looks at the viewer's pages. Without it those tests are skipped, unless they are required.
browser:
	@command -v chromium >/dev/null || $(AS_ROOT) sh -c 'apt-get -qq update && apt-get -qq install --yes chromium' || \
		{ echo "chromium could not be installed: the tests of the viewer's pages need it." >&2; \
		  [ "$$AGENTD_TEST_BROWSER_REQUIRED" != 1 ]; }

# The scripts of the viewer's pages. Without npm or a network they are left out, and asked for the next time.
$(VENDOR)/mermaid.min.js: vendoring/package.json vendoring/fetch.py
	@$(PYTHON) vendoring/fetch.py
	@[ ! -e $@ ] || touch $@

# The CLIs that tests/real_cli runs, as pinned there. Without them those tests are skipped, and say so.
$(CLIS)/.ready: tests/loopback/package.json
	@mkdir -p $(CLIS) && cp $< $(CLIS)/package.json
	@npm install --prefix $(CLIS) --no-audit --no-fund --no-package-lock --loglevel=error && touch $@ || \
		echo "The real CLIs could not be installed: tests/real_cli will be skipped." >&2

clean:
	rm -rf $(VENV) $(VENDOR) .cache build dist .mypy_cache .ruff_cache .pytest_cache
