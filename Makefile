PYTHON   ?= python3
VENV     ?= .venv
# Workers of make test, refresh and mutate
JOBS     ?= $(shell $(PYTHON) -c 'import os; print(min(os.cpu_count(), 4))')
# Narrow a run: make refresh CHAPTERS=book/notation.ipynb, make test TESTS=tests/test_core.py
CHAPTERS ?=
BOOK     ?=
TESTS    ?=
MODULES  ?=
# Slow tests that seldom fail run only in .ci/run, or with make test ALL=1
ALL      ?=
SLOW     := calculator_random cases chapter_inputs floors kernel_model metamorphic percentiles replaced simulate sixth_source verdict
LATER    := $(SLOW:%=--ignore=tests/test_%.py)
KEY      ?=
# Homework: make assignment SESSION=2 STUDENTS=class.txt; make mark SHEETS=returned. KEYS: folder of the answer
# key, outside of this one (default: beside it); ROWS: measurements to predict; SEALS: hashes sent beforehand.
SESSION  ?= 1
STUDENTS ?= Ada
KEYS     ?=
ROWS     ?=
SEALS    ?=
SHEETS   ?= returned
VARIANTS ?= 20

BIN     := $(VENV)/bin
STAMP   := $(VENV)/.installed
HTML    := _build/html
BUILT   := $(HTML)/.complete
# Everything that the pages depend on; a build is due when one of these is newer than the last.
SOURCES := _config.yml _toc.yml $(shell find book tokenprice inferlib -type f \
             -not -path '*/.*' -not -path '*/__pycache__/*')

# Kernels must not run the user's start-up files.
export IPYTHONDIR := $(abspath $(VENV))/ipython
# Otherwise Matplotlib warns on a page if it cannot write to the user's home.
export MPLCONFIGDIR := $(abspath $(VENV))/matplotlib
# What takes long, and which chapters passed, is kept there between runs (book/build_cache.py).
export TOKENPRICE_BUILD := $(abspath _build)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# If a path has non-ASCII letters, pip writes it in the locale's encoding.
export LC_ALL := C.UTF-8
# Containers often set this; every chapter would then compile the whole library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help book slides test refresh lab bench mutate lock clean pdf stories cheatsheet lecture assignment quiz mark paper
# A build that failed half-way must not look finished.
.DELETE_ON_ERROR:

help:
	@echo "make book     build the book and check its links (first call: also .venv, about 2 minutes)"
	@echo "make slides   the same, and see in a browser that all fits on the slides"
	@echo "make test     style, unit tests, doctests, and every chapter that has changed run again and compared (ALL=1: slow ones too)"
	@echo "make refresh  run the chapters and store their outputs (CHAPTERS=book/x.ipynb for one)"
	@echo "make pdf      the whole book as _build/the-price-of-a-token.pdf (needs Chromium or Chrome)"
	@echo "make stories  the stories alone: a PDF for students, without solutions"
	@echo "make cheatsheet  the formulas worth remembering as _build/cheatsheet.pdf"
	@echo "make lecture  copies of the stories without solutions, for a course, in _build/lecture"
	@echo "make assignment SESSION=2 STUDENTS=class.txt  graded sheets in _build/assignment, their key beside this folder"
	@echo "make quiz SESSION=2  the same problems for Moodle and Canvas, beside this folder"
	@echo "make mark SHEETS=returned  the marks of graded sheets that came back, as CSV"
	@echo "make paper KEY=mine2026  the folders, story and record of a new source, which run, to be filled in"
	@echo "make lab      open the chapters in JupyterLab"
	@echo "make bench    time the library"
	@echo "make mutate   sixty slips put into the code: how many the tests notice (MODULES=inferlib/x.py for one)"
	@echo "make lock     write constraints.txt from pyproject.toml (UPGRADE=1 for newer versions)"
	@echo "make clean    remove what was built (rm -r $(VENV) removes the environment too)"

book: $(BUILT)
	@$(BIN)/python -c 'import pathlib; print("Open", pathlib.Path("$(HTML)/index.html").resolve().as_uri())'

$(BUILT): $(STAMP) $(SOURCES)
	@echo "Building the book: some seconds"
	@rm -f $@
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	$(BIN)/python -m book.teaching.slides $(HTML)
	$(BIN)/python book/site/tools/links.py $(HTML)
	@touch $@

slides: $(BUILT)
	$(BIN)/python -m book.teaching.slides $(HTML) --measure
	@$(BIN)/python -c 'import pathlib; print("Open", pathlib.Path("$(HTML)/slides/index.html").resolve().as_uri())'

# The book of the stories is the same book with a shorter table of contents.
ifeq ($(BOOK),stories)
PAPER := _build/the-price-of-a-token-stories
MADE  := _build/stories/_build
PARTS := --toc _build/stories/_toc.yml --config _build/stories/_config.yml --path-output _build/stories
else
PAPER := _build/the-price-of-a-token
MADE  := _build
PARTS :=
endif

pdf: $(STAMP)
	@$(BIN)/python book/site/tools/formats.py browser
	@echo "Building one page and printing it: one to three minutes"
	$(if $(PARTS),$(BIN)/python book/site/tools/formats.py stories _build/stories)
	$(BIN)/jupyter-book build . --all $(PARTS) --builder singlehtml -W -n --keep-going
	$(BIN)/python book/site/tools/formats.py pdf $(MADE)/singlehtml $(PAPER).pdf $(if $(PARTS),--students)

stories:
	$(MAKE) pdf BOOK=stories

cheatsheet: $(BUILT)
	$(BIN)/python book/site/tools/formats.py page $(HTML)/book/cheatsheet.html _build/cheatsheet.pdf

paper: $(STAMP)
	$(BIN)/python book/site/tools/new_paper.py "$(KEY)"

lecture: $(STAMP)
	$(BIN)/python book/site/tools/lecture.py _build/lecture

assignment: $(STAMP)
	$(BIN)/python -m book.teaching.problems.assignment --session "$(SESSION)" --students "$(STUDENTS)" \
	  --keys "$(KEYS)" --rows "$(ROWS)"

quiz: $(STAMP)
	$(BIN)/python -m book.teaching.problems.assignment --session "$(SESSION)" --variants "$(VARIANTS)" --keys "$(KEYS)"

mark: $(STAMP)
	$(BIN)/python -m book.teaching.problems.assignment --mark "$(SHEETS)" --keys "$(KEYS)" --seals "$(SEALS)"

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff format --check --config book/cells.toml book/*.ipynb
	@echo "Testing: some minutes; of chapters only those that changed"
	$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(TESTS) $(if $(TESTS)$(ALL),,$(LATER))

refresh: $(STAMP)
	$(BIN)/python book/site/tools/refresh.py --jobs $(JOBS) $(CHAPTERS)
	$(if $(CHAPTERS),,$(BIN)/python book/site/tools/readme_figure.py)

# Notebooks are trusted here rather than in the user's home, so that stored figures and explorers show before a run.
LABDATA := $(abspath $(VENV))/jupyter
lab: $(VENV)/.lab
	@JUPYTER_DATA_DIR=$(LABDATA) $(BIN)/jupyter trust book/*.ipynb > /dev/null
	JUPYTER_DATA_DIR=$(LABDATA) $(BIN)/jupyter lab --notebook-dir=book --LabApp.default_url=/lab/tree/introduction.ipynb

# A progress bar would become an output of a slow cell.
test refresh: export TQDM_DISABLE := 1
# Each worker fills one core, and the arrays are small.
test refresh: export OPENBLAS_NUM_THREADS := 1

bench: $(STAMP)
	$(BIN)/python benchmarks/bench.py

mutate: $(STAMP)
	$(BIN)/python benchmarks/mutate.py --jobs $(JOBS) --seed "$$(git rev-parse HEAD)" $(MODULES)
	$(if $(MODULES),,$(BIN)/python benchmarks/mutate.py --jobs $(JOBS) --seed "$$(git rev-parse HEAD)" --text --most 40)

lock:
	@echo "Resolving versions: half a minute"
	@$(PYTHON) -m venv _build/lock
	@_build/lock/bin/python -m pip install -q uv
	_build/lock/bin/uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 \
	  --no-header --no-annotate --quiet $(if $(UPGRADE),--upgrade) -o constraints.txt

clean:
	rm -rf _build build dist .pytest_cache .ruff_cache .hypothesis

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Python 3.11 or newer is needed; name one: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "This Python cannot make environments; on Debian or Ubuntu: apt install python3-venv"; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo "Installing the pinned packages into $(VENV): one to two minutes, only now"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[book,test]'
	@$(BIN)/python -c 'import matplotlib.font_manager' # which says so where building its cache of fonts takes long
	@mkdir -p $(VENV)/ipython/profile_default
	@echo 'c.IPKernelApp.log_level = 40' > $(VENV)/ipython/profile_default/ipython_kernel_config.py
	@touch $@

# JupyterLab shows Markdown files rendered, and fetches nothing from the network.
LABSET  := $(VENV)/share/jupyter/lab/settings
LABSAYS := {"@jupyterlab/docmanager-extension:plugin": {"defaultViewers": {"markdown": "Markdown Preview"}}, \
  "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}
$(VENV)/.lab: $(STAMP)
	@echo "Installing JupyterLab into $(VENV): half a minute, only now"
	@$(BIN)/python -m pip install -q -c constraints.txt -e '.[lab]'
	@mkdir -p $(LABSET)
	@echo '$(LABSAYS)' > $(LABSET)/overrides.json
	@touch $@
