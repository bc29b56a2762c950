# make demo: everything a newcomer needs to see something. make test: everything CI runs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Python compiles modules when they are first imported, which takes less time than all of them at once; and keeps them, also
# where the environment says that it should not, since every process would compile them again.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo pictures paper test test-fast test-lowest test-python lint unit docs bench check-science \
	check-reliability clean

help:
	@echo "make demo           install into .venv, analyse the embedded crowd, write a report and figures to demo/results"
	@echo "make pictures       the pictures of README and documentation, of the report and of the terminal"
	@echo "make paper          the paper's tables and figures beside ours, into docs/_build/paper"
	@echo "make test           install and run everything CI runs: lint, types, tests, examples, documentation"
	@echo "make test-fast      the tests of the inner loop: without browser, documentation, examples and slow tests"
	@echo "make test-lowest    the tests with the lowest versions that pyproject.toml states, in .venv-lowest"
	@echo "make test-python    the tests with another Python and the newest versions for it: make test-python PYTHON=python3.13"
	@echo "make lint           ruff and mypy"
	@echo "make docs           the documentation, into docs/_build/html"
	@echo "make bench          figures of speed and memory, side by side with what they are compared to"
	@echo "make check-reliability  attacks: kills, fuzz, faults, odd crowds, relations, mutants; hours; writes docs/reliability.md"
	@echo "make check-science  slow checks against the paper's figures and, where CROWDGRAPH_DATA has them, real crowds"

$(BIN)/python:
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'crowdgraph needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing crowdgraph into $(VENV) (PyTorch is large: this takes some minutes the first time)"
	$(PIP) --editable .
	@touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing crowdgraph and what its tests need into $(VENV)"
	$(PIP) --editable ".[dev,bench]"
	@touch $(VENV)/installed $@

demo: $(VENV)/installed
	$(BIN)/crowdgraph demo --out demo/results --force

pictures: demo $(VENV)/installed-dev
	$(BIN)/python docs/thumbnails.py
	$(BIN)/python docs/report_picture.py demo/results/report.html
	$(BIN)/python docs/terminal_picture.py

paper: $(VENV)/installed
	$(BIN)/python examples/paper/make_page.py

# Side by side, so that no processor waits.
test: $(VENV)/installed-dev
	$(MAKE) --jobs=3 lint docs unit

test-fast: $(VENV)/installed-dev
	$(BIN)/pytest -n auto --dist worksteal -m "not science and not browser and not slow" --ignore=tests/docs \
		--ignore=tests/test_examples.py tests

# What other versions deprecate, or warn of, is not ours to mend. The browser and the pages are not tried: figures in examples
# may differ in the last digit, and communities of igraph's Leiden with its version.
TEST_ELSEWHERE := -n auto --dist worksteal -m "not science and not browser" --ignore=tests/docs \
	-W ignore::DeprecationWarning -W ignore::PendingDeprecationWarning -W ignore::FutureWarning -p no:cacheprovider \
	tests crowdgraph

# PyTorch of the lowest version comes with CUDA, several gigabytes, unless PIP_INDEX_URL names an index with builds for CPUs.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) .ci/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
		--constraint .venv-lowest/lowest.txt --editable ".[dev]"
	.venv-lowest/bin/python -m pytest $(TEST_ELSEWHERE)

test-python:
	$(PYTHON) -m venv .venv-other
	.venv-other/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --editable ".[dev]"
	.venv-other/bin/python -m pytest $(TEST_ELSEWHERE)

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

unit: $(VENV)/installed-dev
	$(BIN)/pytest -n auto --dist worksteal -m "not science"

docs: $(VENV)/installed-dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "Documentation: docs/_build/html/index.html"

# crowd-kit says that it needs transformers, which its Dawid-Skene does not.
$(VENV)/installed-bench: $(VENV)/installed-dev
	$(PIP) --no-deps crowd-kit
	$(PIP) attrs nltk
	@touch $@

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/run.py

# With crowd-kit, which is one of the rows of the table over all real crowds.
check-science: $(VENV)/installed-bench
	$(BIN)/pytest -m science -s

# Kills, damaged files, odd crowds, faults and mutants: hours.
check-reliability: $(VENV)/installed-dev
	$(BIN)/python tests/reliability/run.py

clean:
	rm -rf demo docs/_build docs/api .mypy_cache .pytest_cache .ruff_cache .hypothesis
