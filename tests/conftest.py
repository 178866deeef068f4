"""Setup for every test run: the kernel store, how hypothesis draws, the import path to examples and benchmarks."""

from __future__ import annotations

import gc
import math
import os
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from support.known_kernels import forget_known

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "examples"), str(ROOT)]  # the second for `benchmarks`

# All workers of a run share one store, so that no kernel is compiled twice; it is the repository's own, so that a run
# neither uses nor fills the user's. Set before anything imports hloom; workers inherit it.
# If the repository belongs to another user (a container's host user, say), code in it would not be trusted.
_own = hasattr(os, "geteuid") and ROOT.stat().st_uid in (0, os.geteuid())
_folder = ROOT / "build" / "test-kernels" if _own else Path.home() / ".cache" / "hloom-test-kernels"
os.environ.setdefault("HLOOM_CACHE_DIR", str(_folder))

# Every pass that changes a module is followed by the verifier.
os.environ.setdefault("HLOOM_VERIFY_PASSES", "1")

# Under emulation processes take longer.
if _patience := os.environ.get("HLOOM_TESTS_PATIENCE"):
    from support.patience import wait_longer

    wait_longer(float(_patience))

# A parent may ignore interrupts, as a shell does for what runs in the background; tests send some to themselves.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A first example may compile for a second: no deadline. On CI the same examples each time.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The collected tests stay for the whole run: the garbage collector skips them, both while pytest collects and
    after each test. So a test that looks for what refers to its objects imports a module anew."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`one_in(n)`: one case in n of a table runs by default, and the others are slow. In a product of two tables each
    n-th diagonal runs, so that every value of both tables is in a case; n is at most the number of diagonals that make
    this so. Values that are marked slow themselves do not count.

    `first`: these tests come first. A worker that has run out of tests takes some of another's, but none that runs."""
    cases: Counter[tuple[Path, str]] = Counter()
    for item in items:
        marker = item.get_closest_marker("one_in")
        if marker is None or item.get_closest_marker("slow") is not None:
            continue
        assert isinstance(item, pytest.Function)
        sizes = [sum(map(_runs_by_default, mark.args[1])) for mark in item.iter_markers("parametrize")]
        case = item.path, item.originalname
        place = cases[case]
        cases[case] += 1
        assert place < math.prod(sizes), f"{item.nodeid}: of a parametrized fixture one_in loses values; use indirect"
        if len(sizes) > 1:  # the first changes slowest
            diagonals = sum(sizes) - max(sizes) - len(sizes) + 2
            assert marker.args[0] <= diagonals, f"{item.nodeid}: one_in({diagonals}) at most, to have all values"
            place = sum(place // math.prod(sizes[k + 1 :]) % size for k, size in enumerate(sizes))
        if place % marker.args[0]:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("first") is None)


def _runs_by_default(value: object) -> bool:
    """Whether a value of a table is not marked slow itself."""
    return all(mark.name != "slow" for mark in getattr(value, "marks", ()))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Before a file's first test, the garbage collector forgets what the files before it left alive: modules, kernels,
    entries of caches. A collection visits the objects of one file then, not some millions."""
    if _file.count(item.path) == 0:
        _file[:] = [item.path]
        gc.collect()
        gc.freeze()
    return (yield)


_file: list[Path] = []


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture
def evaluator() -> Iterator[None]:
    """Programs run on the evaluator, for tests that ask for it; `support/evaluator_fixture.py` is for whole files."""
    import hloom  # here, after the settings above

    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", "evaluator")
    yield
    hloom.config.update("hloom_backend", before)


@pytest.fixture
def narrow_registers() -> Iterator[None]:
    """Kernels are those of 16 registers of 32 bytes, for tests of programs whose kernels depend on the registers."""
    from hloom.numba_backend.machine import compiling_for

    from support.registers import NARROW  # here, after the settings above

    with compiling_for(NARROW):
        yield


def pytest_make_parametrize_id(val: object) -> str | None:
    """Functions and classes are called by their names: their addresses would differ between workers."""
    return getattr(val, "__name__", None) if callable(val) else None


@pytest.fixture(autouse=True)
def kernels_of_the_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that changes a limit or a function sees kernels that are made so, and the next one sees none of them."""
    changes = "monkeypatch" in request.fixturenames
    if changes:
        forget_known()
    yield
    if changes:
        forget_known()
