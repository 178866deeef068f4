# make mnist   train a small network to read digits         make mnist ARGS="--data DIR --epochs 3"
#              in the layouts of a TPU                      make mnist ARGS="--target tpu"
# make ode     fit a differential equation by gradients     make ode ARGS="--steps 3000"
# make hmc     sample by Hamiltonian Monte Carlo            make hmc ARGS="--chains 8"
# make rnn     a recurrent network learns a rhyme           make rnn ARGS="--hidden 96"
# make kalman  track a buoy, learn how noisy all is         make kalman ARGS="--points 1000"
# make gradients   find wrong labels, limit each gradient   make gradients ARGS="--data DIR"
# make parallel   digits on several devices: threads, or processes that MPI joins
#              make parallel ARGS="--how shard_map"; HLOOM_NUM_DEVICES=2 make parallel; make parallel PROCESSES=2
# make deploy   the network that reads digits, in C++       make deploy ARGS="--digits --form c"
# make browser  a page that reads the digit that one draws   make browser ARGS="--port 8080"
# make check   before each commit: lint, types, a test file of each room
# make test    the tests; the slow ones too: make test-slow  make test ARGS="-k dot"
#              one or two files of each room: make smoke
#              with the lowest versions that pyproject.toml declares: make test-lowest
# make lint    ruff and the type checker
# make docs    the documentation site: out/docs/index.html
# make fuzz    random programs, run in every way            make fuzz ARGS="--minutes 60 --seed 3 --kind text,hlo,loop"
# make release VERSION=0.2.0   version, changelog, tests, wheel, tag     make release VERSION=0.2.0 DRY=1
# make bench   hloom beside JAX, NumPy, Numba, PyTorch       make bench ARGS="--case dispatch"
#              all groups, and benchmarks/RESULTS.md         make bench ARGS=--write
#
# Each makes its own virtual environment in .venv when there is none, and installs into it what it needs.

PYTHON ?= python3
VENV ?= .venv
ARGS ?=
BIN = $(VENV)/bin
LOWEST = $(VENV)-lowest

EXAMPLES = mnist ode hmc rnn kalman gradients parallel deploy browser
PROGRAM_mnist = train_mnist
PROGRAM_ode = fit_ode
PROGRAM_hmc = sample_hmc
PROGRAM_rnn = char_rnn
PROGRAM_kalman = kalman_smoother
PROGRAM_gradients = per_example_gradients
PROGRAM_parallel = data_parallel_mnist
PROGRAM_deploy = deploy_digits
PROGRAM_browser = browser_digits

.PHONY: $(EXAMPLES) check test smoke test-slow test-lowest lint docs fuzz bench release clean

$(EXAMPLES): $(VENV)/.with-examples
	$(if $(PROCESSES),PYTHON=$(BIN)/python examples/with_mpi.sh -n $(PROCESSES)) $(BIN)/python examples/$(PROGRAM_$@).py $(ARGS)

check: $(VENV)/.with-lint $(VENV)/.with-test
	$(BIN)/python -m ruff check .
	$(BIN)/python tools/typecheck.py
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS) @tests/smoke.txt

smoke: $(VENV)/.with-test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS) @tests/smoke.txt

test: $(VENV)/.with-test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal $(ARGS)

test-slow: $(VENV)/.with-test
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m slow $(ARGS) || [ $$? -eq 5 ] # 5: none is marked so

test-lowest: $(LOWEST)/.with-test
	$(LOWEST)/bin/python -m pytest -q -n 2 --dist worksteal $(ARGS) @tests/smoke.txt

lint: $(VENV)/.with-lint
	$(BIN)/python -m ruff check .
	$(BIN)/python tools/typecheck.py

docs: $(VENV)/.with-docs
	$(BIN)/python -m tools.website $(ARGS)

fuzz: $(VENV)/.with-test
	$(BIN)/python -m tools.fuzz $(ARGS)

release: $(VENV)/.with-release $(VENV)/.with-test
	$(BIN)/python -m tools.release $(VERSION) $(if $(DRY),--dry-run) $(ARGS)

bench: $(VENV)/.with-bench
	$(BIN)/python -m benchmarks $(ARGS)

clean:
	rm -rf $(VENV) $(LOWEST) build out *.egg-info

# one stamp for each extra: installed anew when pyproject.toml changes
$(VENV)/.with-%: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

$(LOWEST)/.with-test: pyproject.toml setup.py tools/lowest.py
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python tools/lowest.py test > $(LOWEST)/constraints.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(LOWEST)/constraints.txt --editable ".[test]"
	touch $@

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("hloom needs Python 3.11 or later: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
