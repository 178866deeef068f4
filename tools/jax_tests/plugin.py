"""The plugin that pytest loads for tests of JAX and of libraries: hloom in place of JAX, a limit of time, a file of
outcomes.

The environment says how: HLOOM_JAX_TESTS is the folder of the tests; HLOOM_JAX_TESTS_SUITE is "jax", whose tests need
stand-ins for internal modules, or a library; HLOOM_JAX_TESTS_WITH is "hloom" or "jax";
HLOOM_JAX_TESTS_OUT is the file of outcomes, with a line of JSON for each test; HLOOM_JAX_TESTS_ONE_IN,
HLOOM_JAX_TESTS_PIECE and HLOOM_JAX_TESTS_FAILED choose tests.
"""

from __future__ import annotations

import json
import os
import re
import signal
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .report import read

SECONDS = 60
"""A test that takes more of the processor has failed."""

MOST_SECONDS = 600
"""A test that takes longer by the clock has failed, too: it waits for something."""

_PLACE = Path(os.environ["HLOOM_JAX_TESTS"])
_ON_HLOOM = os.environ["HLOOM_JAX_TESTS_WITH"] == "hloom"

_STANDS_IN = _ON_HLOOM and os.environ["HLOOM_JAX_TESTS_SUITE"] == "jax"

if _STANDS_IN:
    from . import counting, private, stand_ins

    stand_ins.install(_PLACE)
elif _ON_HLOOM:
    import hloom

    hloom.as_jax()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one test in HLOOM_JAX_TESTS_ONE_IN: one piece, the same each time. A file of outcomes further restricts them
    to the files that it knows, without the tests that passed: it keeps tests that failed or were not even collected."""
    one_in, piece = (int(os.environ[f"HLOOM_JAX_TESTS_{name}"]) for name in ("ONE_IN", "PIECE"))
    kept = [item for item in items if zlib.crc32(_of_jax(item.nodeid).encode()) % one_in == piece]
    if failed := os.environ.get("HLOOM_JAX_TESTS_FAILED"):
        before = read(Path(failed))
        passed = {name for name, line in before.items() if line["outcome"] == "passed"}
        files = {name.partition("::")[0] for name in before}
        names = {id(item): test_name(item.nodeid) for item in kept}
        kept = [i for i in kept if names[id(i)] not in passed and names[id(i)].partition("::")[0] in files]
    ids = {id(item) for item in kept}
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in ids])
    items[:] = kept


def test_name(nodeid: str) -> str:
    """file_test.py::Class::test, in the folder of the tests."""
    return _of_jax(nodeid).removeprefix("tests/")


def _of_jax(nodeid: str) -> str:
    """With JAX's names of modules, which some tests have in their names."""
    return re.sub(r"(?<![A-Za-z])hloom\.", "jax.", nodeid)


class TooSlow(Exception):
    """A test took longer than `SECONDS` of the processor or `MOST_SECONDS` by the clock."""


def _alarm(number: int, _: Any) -> None:
    raise TooSlow(f"longer than {SECONDS if number == signal.SIGPROF else MOST_SECONDS} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    timers = ((signal.ITIMER_PROF, signal.SIGPROF, SECONDS), (signal.ITIMER_REAL, signal.SIGALRM, MOST_SECONDS))
    for timer, number, seconds in timers:
        signal.signal(number, _alarm)
        signal.setitimer(timer, seconds)
    try:
        return (yield)
    finally:
        for timer, _, _ in timers:
            signal.setitimer(timer, 0)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    if not _STANDS_IN:
        return (yield)
    private.Private.testing = True
    counting.count()
    try:
        return (yield)
    finally:
        private.Private.testing = False


class _Outcomes:
    """Writes outcomes, in the process that controls the workers."""

    def __init__(self, path: str) -> None:
        self._file = open(path, "w", buffering=1)  # noqa: SIM115  # closed when the run ends
        self._last: dict[str, tuple[str, str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = test_name(report.nodeid)
        before = self._last.get(name, ("", "", 0.0))
        if report.when == "call" or (report.outcome != "passed" and before[0] != "failed"):
            self._last[name] = (report.outcome, _why(report), before[2] + report.duration)
        if report.when == "teardown":
            outcome, why, seconds = self._last.pop(name, ("passed", "", 0.0))
            self._write(name, outcome, why, seconds)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._write(test_name(report.nodeid), "not collected", _why(report), 0.0)

    def pytest_sessionfinish(self) -> None:
        for name, (outcome, why, seconds) in self._last.items():  # a worker ended in the middle
            self._write(name, outcome, why, seconds)
        self._file.close()

    def _write(self, name: str, outcome: str, why: str, seconds: float) -> None:
        line = {"test": name, "outcome": outcome, "why": why, "seconds": round(seconds, 3), "at": round(time.time(), 1)}
        self._file.write(json.dumps(line) + "\n")


def _why(report: Any) -> str:
    """The last error of a report, with the lines of its message."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:600]
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])[:200]
    return str(report.longrepr or "")[-600:]


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Outcomes(os.environ["HLOOM_JAX_TESTS_OUT"]))
