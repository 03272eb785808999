# Two commands: `make demo` to look at Assay, `make test` to trust it.
# Everything is installed into .venv; everything that Assay writes lies under ASSAY_DATA (./data unless you name another).

PYTHON := .venv/bin/python
PIP := $(PYTHON) -m pip install --quiet --disable-pip-version-check

.PHONY: help setup setup-dev demo serve test test-long lint format screenshots
help:
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/installed ## make .venv and install what Assay runs on
setup-dev: .venv/installed-dev ## the same, and what the tests and checks need

.venv/bin/python:
	@scripts/make-venv

.venv/installed: requirements.txt | .venv/bin/python
	@echo "Installing into .venv (some minutes the first time) ..."
	@$(PIP) -r requirements.txt
	@touch $@

.venv/installed-dev: requirements-dev.txt .venv/installed
	@echo "Installing what the tests need ..."
	@$(PIP) -r requirements-dev.txt
	@touch $@

demo: setup ## start Assay with a demo project; Ctrl-C stops it
	@$(PYTHON) manage.py migrate --verbosity 0
	@$(PYTHON) manage.py demo
	@ASSAY_LOG_LEVEL=$${ASSAY_LOG_LEVEL:-WARNING} $(PYTHON) manage.py serve

serve: setup ## start Assay as it is
	@$(PYTHON) manage.py serve

test: setup-dev ## the whole suite, browser tests included
	@scripts/get-browser
	@$(PYTHON) -m pytest -m "not slow"

test-long: setup-dev ## the suite with the long fault and scale tests
	@scripts/get-browser
	@$(PYTHON) -m pytest

lint: setup-dev ## ruff and mypy
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@$(PYTHON) -m mypy

format: setup-dev ## let ruff put the code in shape
	@$(PYTHON) -m ruff check --fix .
	@$(PYTHON) -m ruff format .

screenshots: setup-dev ## take the README's pictures anew
	@scripts/get-browser
	@$(PYTHON) -m scripts.screenshots
