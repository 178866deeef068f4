"""How cases are measured: interleaved rounds, medians, and results that are first checked to be equal.

A case runs in a separate process. Each peer's program is built and warmed, and the results are compared. Then rounds go
over the peers in turn, so that other load on the machine affects all of them. One sample is the mean over as many calls
as fill `SAMPLE_SECONDS`; a case's number is the median of its samples. On a machine that is busy with other work that
says little; there the best of many short samples is nearer to what a program takes.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

SAMPLE_SECONDS = 0.05
BEST_SECONDS, BEST_ROUNDS = 0.004, 25
"""Of a sample, and the number of rounds, where the best sample counts: shorter than what the system gives a process at
once."""
SETTLE_SECONDS = 0.06
"""Pause before each sample: threads of the peer before spin for a while when they have no more work (OpenBLAS's: 2**26
cycles)."""


class Mismatch(Exception):
    """Two peers compute different things; their times may not be compared."""


@dataclass(frozen=True)
class Program:
    """One peer's program for the work. Its inputs are ready in memory, in the peer's own arrays."""

    run: Callable[[], Any]
    wait: Callable[[Any], Any] = lambda result: result
    """Returns when the result is ready (the work may continue after `run` has returned)."""
    check: Callable[[], Any] | None = None
    """What to compare, if it is not the result of `run`: arrays, or lists of them."""


@dataclass(frozen=True)
class Case:
    """`programs` are builders. One that raises ImportError is skipped with its reason, except hloom's."""

    name: str
    title: str
    programs: Mapping[str, Callable[[], Program]]
    tolerance: float = 1e-4
    wait_each: bool = True
    """Wait for each result; otherwise only for the last of a sample, to measure the cost of a call itself."""


@dataclass
class Outcome:
    """The result of a case. `samples` are seconds (or bytes, by `unit`), by peer."""

    name: str
    title: str
    unit: str = "s"
    samples: dict[str, list[float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    best: bool = False
    """Whether the best sample counts."""

    def number(self, peer: str) -> float | None:
        """The median, or the best."""
        of = min if self.best else statistics.median
        return of(self.samples[peer]) if self.samples.get(peer) else None


def measure(case: Case, rounds: int, best: bool = False) -> Outcome:
    """Run a case in this process. Raises Mismatch."""
    outcome = Outcome(case.name, case.title, best=best)
    seconds = BEST_SECONDS if best else SAMPLE_SECONDS
    programs = {}
    for peer, build in case.programs.items():
        try:
            programs[peer] = build()
        except ImportError as error:
            if peer == "hloom":
                raise
            outcome.notes.append(f"{peer}: not measured, {error}")
    _compare({peer: _arrays((p.check or p.run)()) for peer, p in programs.items()}, case.tolerance)
    calls = {peer: _calls_a_sample(program, case.wait_each, seconds) for peer, program in programs.items()}
    outcome.samples = {peer: [] for peer in programs}
    order = list(programs)
    gc.collect()
    gc.disable()  # as timeit does
    for _ in range(rounds):
        for peer in order:
            time.sleep(SETTLE_SECONDS)
            _sample(programs[peer], 1, case.wait_each)
            outcome.samples[peer].append(_sample(programs[peer], calls[peer], case.wait_each))
        order = order[1:] + order[:1]
    gc.enable()
    return outcome


def _sample(program: Program, calls: int, wait_each: bool) -> float:
    """Seconds for one call."""
    run, wait = program.run, program.wait
    result = None
    began = time.perf_counter()
    if wait_each:
        for _ in range(calls):
            wait(run())
    else:
        for _ in range(calls):
            result = run()
        wait(result)
    return (time.perf_counter() - began) / calls


def _calls_a_sample(program: Program, wait_each: bool, wanted: float) -> int:
    calls = 1
    while (seconds := _sample(program, calls, wait_each) * calls) < wanted / 4:
        calls *= 4
    return max(1, round(calls * wanted / seconds))


def _arrays(value: Any) -> list[np.ndarray]:
    """The arrays in nested lists, tuples and dictionaries, in order."""
    if isinstance(value, dict):
        return [array for key in sorted(value) for array in _arrays(value[key])]
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return [np.asarray(value)]


def _compare(results: Mapping[str, list[np.ndarray]], tolerance: float) -> None:
    peers = list(results)
    for peer in peers[1:]:
        for one, other in zip(results[peers[0]], results[peer], strict=True):
            scale = float(np.max(np.abs(one), initial=1e-30))
            try:
                np.testing.assert_allclose(other / scale, one / scale, rtol=tolerance, atol=tolerance)
            except AssertionError as error:
                raise Mismatch(f"{peers[0]} and {peer} differ: {error}") from error
