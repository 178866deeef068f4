"""How cases are measured: interleaved rounds, medians, and results that are first checked to be equal.

Each peer's program is built and warmed, and the results are compared. Then rounds go over the peers in turn, so that
other load on the machine affects all of them. One sample is the mean over as many calls as fill `SAMPLE_SECONDS`; a
case's number is the median of its samples. On a machine that is busy with other work that says little; there the best
of many short samples is nearer to what a program takes.

A peer is a `Side`: `peers.py` has sides that are processes of their own, `Local` is one in this process.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

SAMPLE_SECONDS = 0.03
BEST_SECONDS, BEST_ROUNDS = 0.004, 25
"""Of a sample, and the number of rounds, where the best sample counts: shorter than what the system gives a process at
once."""
SETTLE_SECONDS = 0.06
"""Pause before each sample in this process: threads of the peer before spin for a while when they have no more work
(OpenBLAS's: 2**26 cycles). A process of another peer is stopped meanwhile."""
WARM_SHARE = 8
"""One of so many calls of a sample runs before it: after the pause caches are cold and threads of a pool sleep."""
LONG_SECONDS = 1.0
"""A call that takes longer is a sample, and needs no other one before it."""
LEAST_ROUNDS, LIMIT_SECONDS = 3, 6.0
"""If the rounds of a case take longer than this, the case ends with fewer rounds."""


MOMENTS = 0.06
"""How far the means and deviations of random results may differ, as part of the larger one."""


class Mismatch(Exception):
    """Two peers compute different things; their times may not be compared."""


@dataclass(frozen=True)
class Work:
    """`nbytes`: of arguments and results, or less if less is read. `flops` as the compiled program's cost analysis has
    them, each transcendental operation as one."""

    nbytes: float
    flops: float
    wide: bool


@dataclass(frozen=True)
class Program:
    """One peer's program for the work. Its inputs are ready in memory, in the peer's own arrays."""

    run: Callable[[], Any]
    wait: Callable[[Any], Any] = lambda result: result
    """Returns when the result is ready (the work may continue after `run` has returned)."""
    check: Callable[[], Any] | None = None
    """Returns the values to compare, arrays or lists of arrays; None: compare the result of `run`."""
    prepare: Callable[[], None] | None = None
    """Runs before each call and is not timed: makes new arguments where the program changes them."""
    work: Callable[[], Work] | None = None
    """What a call must do at least; hloom's program knows it."""


@dataclass(frozen=True)
class Case:
    """`programs` are builders. One that raises ImportError is skipped with its reason, except hloom's."""

    name: str
    title: str
    programs: Mapping[str, Callable[[], Program]]
    tolerance: float = 1e-4
    equal: float = 0.0
    """The least share of elements that are equal to the first peer's: less rounding is another computation."""
    wait_each: bool = True
    """Wait for each result; otherwise only for the last of a sample, to measure the cost of a call itself."""
    moments: bool = False
    """Of peers other than hloom and JAX only the means and deviations are compared: the results are random."""
    translated: frozenset[str] = frozenset()
    """Peers whose program nobody wrote for this case. One whose results differ is named and left out."""
    others: frozenset[str] = frozenset()
    """Peers whose program somebody else wrote. One whose results differ is left out, too, but it may have more results
    or fewer, in another order."""


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
    group: str = ""
    peak: dict[str, float] = field(default_factory=dict)
    """The peak growth of a peer's process in bytes, from before the case was built."""
    limit: dict[str, float] = field(default_factory=dict)
    """Seconds that a call must take at least on this machine, by what bounds it (`limits.py`)."""

    def number(self, peer: str) -> float | None:
        """The median, or the best."""
        of = min if self.best else statistics.median
        return of(self.samples[peer]) if self.samples.get(peer) else None


class Side(Protocol):
    """One peer's program of a case, where it runs."""

    def calls(self, seconds: float) -> int:
        """How many calls fill so much time; at least one."""
        ...

    def sample(self, calls: int) -> float:
        """Seconds for one of so many calls. Some more, before them, are not measured."""
        ...


class Local:
    """A program in this process."""

    def __init__(self, program: Program, wait_each: bool, settle: float | None = None) -> None:
        self._program, self._wait_each = program, wait_each
        self._settle = SETTLE_SECONDS if settle is None else settle
        self._is_long = False
        self.work = program.work

    def results(self) -> list[np.ndarray]:
        """The results to compare."""
        return _arrays((self._program.check or self._program.run)())

    def calls(self, seconds: float) -> int:
        self._is_long = _sample(self._program, 1, self._wait_each) > LONG_SECONDS
        return 1 if self._is_long else _calls_a_sample(self._program, self._wait_each, seconds)

    def sample(self, calls: int) -> float:
        time.sleep(self._settle)
        if not self._is_long:
            _sample(self._program, 1 + calls // WARM_SHARE, self._wait_each)
        return _sample(self._program, calls, self._wait_each)


def measure(case: Case, rounds: int, best: bool = False) -> Outcome:
    """Run a case in this process: a program that cannot be imported is skipped, except hloom's. Raises Mismatch."""
    outcome = Outcome(case.name, case.title, best=best)
    sides = {}
    for peer, build in case.programs.items():
        try:
            sides[peer] = Local(build(), case.wait_each)
        except ImportError as error:
            if peer == "hloom":
                raise
            outcome.notes.append(f"{peer}: not measured, {error}")
    compare({peer: side.results() for peer, side in sides.items()}, case)
    gc.collect()
    gc.disable()  # as timeit does
    outcome.samples = interleave(sides, rounds, BEST_SECONDS if best else SAMPLE_SECONDS)
    gc.enable()
    return outcome


def interleave(sides: Mapping[str, Side], rounds: int, seconds: float) -> dict[str, list[float]]:
    """The samples of each side, taken in turns, each of so many seconds."""
    calls = {peer: side.calls(seconds) for peer, side in sides.items()}
    samples: dict[str, list[float]] = {peer: [] for peer in sides}
    order = list(sides)
    began = time.perf_counter()
    for k in range(rounds):
        if k >= LEAST_ROUNDS and time.perf_counter() - began > LIMIT_SECONDS:
            break
        for peer in order:
            samples[peer].append(sides[peer].sample(calls[peer]))
        order = order[1:] + order[:1]
    return samples


def _sample(program: Program, calls: int, wait_each: bool) -> float:
    """Seconds for one call."""
    run, wait = program.run, program.wait
    result = None
    if program.prepare is not None:
        return sum(_prepared(program) for _ in range(calls)) / calls
    began = time.perf_counter()
    if wait_each:
        for _ in range(calls):
            wait(run())
    else:
        for _ in range(calls):
            result = run()
        wait(result)
    return (time.perf_counter() - began) / calls


def _prepared(program: Program) -> float:
    """Seconds for one call with new arguments."""
    assert program.prepare is not None
    program.prepare()
    began = time.perf_counter()
    program.wait(program.run())
    return time.perf_counter() - began


def _calls_a_sample(program: Program, wait_each: bool, wanted: float) -> int:
    """Of the quickest of three: one that is disturbed would make samples of few calls, which are hardly warm."""
    calls = 1
    while (seconds := min(_sample(program, calls, wait_each) for _ in range(3)) * calls) < wanted / 4:
        calls *= 4
    return max(1, round(calls * wanted / seconds))


def _arrays(value: Any) -> list[np.ndarray]:
    """The arrays in nested lists, tuples and dictionaries, in order."""
    if isinstance(value, dict):
        return [array for key in sorted(value) for array in _arrays(value[key])]
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in _arrays(item)]
    return [_array(value)]


def _array(value: Any) -> np.ndarray:
    """As NumPy has it; bf16 as f32."""
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":
        return value.float().numpy()  # type: ignore[no-any-return]
    array = np.asarray(value)
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def arrays(value: Any) -> list[np.ndarray]:
    """The arrays in nested lists, tuples and dictionaries, in order."""
    return _arrays(value)


def compare(results: Mapping[str, Sequence[np.ndarray]], case: Case) -> None:
    """Raises Mismatch if a peer's results differ from the first peer's."""
    peers = list(results)
    for peer in peers[1:]:
        if case.moments and {peer, peers[0]} != {"hloom", "jax"}:
            _compare_pair(peers[0], peer, *(_moments(results[p]) for p in (peers[0], peer)), MOMENTS)
        else:
            _compare_pair(peers[0], peer, results[peers[0]], results[peer], case.tolerance, case.equal)


def compare_some(results: Mapping[str, Sequence[np.ndarray]], case: Case) -> None:
    """Raises Mismatch if the second peer's results are not among the first peer's, or the reverse if it has more."""
    (first, one), (second, other) = results.items()
    few, many = sorted((one, other), key=len)
    if not few:
        raise Mismatch(f"{first} has {len(one)} results, {second} {len(other)}")
    for array in few:
        errors = [_difference(first, second, array, a, case.tolerance) for a in many if a.shape == array.shape]
        if all(errors):
            raise Mismatch(errors[0] if errors else f"{first} and {second} differ: none has shape {array.shape}")


def _difference(first: str, second: str, one: np.ndarray, other: np.ndarray, tolerance: float) -> str:
    try:
        _compare_pair(first, second, [one], [other], tolerance)
    except Mismatch as error:
        return str(error)
    return ""


def _compare_pair(
    first: str, second: str, one: Sequence[np.ndarray], other: Sequence[np.ndarray], tolerance: float,
    equal: float = 0.0,
) -> None:  # fmt: skip
    if len(one) != len(other):
        raise Mismatch(f"{first} has {len(one)} results, {second} {len(other)}")
    for a, b in zip(one, other):
        if a.shape != b.shape:
            raise Mismatch(f"{first} and {second} differ: shapes {a.shape} and {b.shape}")
        if a.ndim and {a.dtype.kind, b.dtype.kind} <= set("fc") and a.dtype.itemsize != b.dtype.itemsize:
            raise Mismatch(f"{first} and {second} differ: {a.dtype} and {b.dtype}")
        if a.dtype == bool or b.dtype == bool:
            a, b = a.astype(np.int32), b.astype(np.int32)
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            a, b = a.astype(np.int64), b.astype(np.int64)
        largest = float(np.max(np.abs(a), initial=0.0, where=np.isfinite(a)))
        scale = largest if largest > 1e-30 and math.isfinite(largest) else 1.0
        try:
            np.testing.assert_allclose(b / scale, a / scale, rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            raise Mismatch(f"{first} and {second} differ: {error}") from error
        if equal and (share := float(np.mean(a == b))) < equal:
            raise Mismatch(f"{first} and {second} round differently: {share:.0%} of the elements are equal")


def _moments(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Means and deviations; a single number as it is."""
    wide = [array.astype(np.float64) for array in arrays]
    return [np.array([array.mean(), array.std()]) if array.size > 1 else array for array in wide]
