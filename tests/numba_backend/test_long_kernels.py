"""Kernels that take long are run in steps, and can be interrupted; the results are the same as for the whole range."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.text.parser import parse
from hloom.numba_backend.compiler import NumbaCompiler
from hloom.numba_backend.runtime import long_kernels
from hloom.numba_backend.runtime.executor import Op
from hloom.numba_backend.runtime.threads import set_num_threads

import hloom
import hloom.numpy as jnp
from support.signals import ANOTHER, interrupt
from support.trace_events import on_track, read_trace

X = np.linspace(-3, 3, 100_003, dtype=np.float32)
SQUARE = np.sin(np.arange(700 * 900, dtype=np.float32)).reshape(700, 900)

PROGRAMS: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "elementwise": (lambda x: jnp.tanh(x) * 3 + x, X),
    "several results": (lambda x: (jnp.sin(x), jnp.cos(x) > 0, x.astype(jnp.int8)), X),
    "rows": (lambda x: jnp.exp(x).sum(1), SQUARE),
    "columns": (lambda x: (x * 2).sum(0), SQUARE),
    "everything": (lambda x: (x * x).sum(), SQUARE),
    "argmax": (lambda x: jnp.argmax(x, 1), SQUARE),
    "softmax": (lambda x: hloom.nn.softmax(x, 1), SQUARE),
    "transposed": (lambda x: jnp.sin(x).T + 1, SQUARE),
    "a large copy": (lambda x: jnp.concatenate([x, x[::-1]]), SQUARE),
    "scans": (lambda x: jnp.cumsum(x, 1), SQUARE),
    "sorted rows": (lambda x: jnp.sort(x[:, :60], 1), SQUARE),
    "windows": (lambda x: hloom.lax.reduce_window(x, -np.inf, hloom.lax.max, (3, 3), (1, 1), "SAME"), SQUARE),
}


def results(function: Callable[..., Any], x: np.ndarray) -> tuple[list[np.ndarray], list[Op]]:
    """The result of the program, and its rows."""
    executable = NumbaCompiler().compile(parse(hloom.make_hlo(function)(x).to_text()))
    return executable.execute([x]), [row.op for row in executable._program.rows]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_give_the_same_bits(name: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    function, x = PROGRAMS[name]
    expected, rows = results(function, x)
    assert Op.LONG not in rows
    monkeypatch.setattr(long_kernels, "LONG_NANOSECONDS", 0)
    monkeypatch.setattr(long_kernels, "STEP_NANOSECONDS", 1)
    set_num_threads(threads)
    try:
        found, rows = results(function, x)
    finally:
        set_num_threads(None)
    assert Op.LONG in rows or name == "sorted rows"
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("extent", "grain", "nanoseconds", "threads", "step"),
    [
        (1000, 10, 1e8, 2, None),
        (1000, 0, 1e12, 2, None),
        (1, 1, 1e12, 1, None),
        (1000, 1, 1e12, 2, 4),
        (10**9, 1000, 1e9, 2, 20_000_000),
        (10**9, 1000, 0.99e9, 2, 20_202_048),
        (1000, 600, 1e12, 1, None),
    ],
)
def test_steps(
    extent: int, grain: int, nanoseconds: float, threads: int, step: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_kernels, "get_num_threads", lambda: threads)
    assert long_kernels.step_of(extent, grain, nanoseconds) == step


class Stop(Exception):
    """The error that the handler raises."""


def _pairs(x: Any, y: Any) -> Any:
    return jnp.sin(x[:, None] - y[None, :])


LONG: dict[str, Callable[..., Any]] = {
    "rows": lambda x, y: _pairs(x, y).sum(1),
    "a number": lambda x, y: _pairs(x, y).sum(),
    "few long rows": lambda x, y: _pairs(jnp.concatenate([x, x]), y).reshape(20, -1).sum(1),
    "the largest": lambda x, y: jnp.argmax(_pairs(x, y).sum(1)),
}


@pytest.mark.parametrize("name", LONG)
def test_a_kernel_of_ten_to_the_twelve_elements_can_be_interrupted(name: str) -> None:
    x = np.linspace(0, 1, 1_000_000, dtype=np.float32)
    compiled = hloom.jit(LONG[name]).lower(x, x).compile()

    def handler(*_: object) -> None:
        raise Stop

    before = signal.signal(ANOTHER, handler)
    started = time.monotonic()
    timer = threading.Timer(0.5, interrupt, (ANOTHER,))
    timer.start()
    try:
        with pytest.raises(Stop):
            hloom.block_until_ready(compiled(x, x))
    finally:
        timer.cancel()
        timer.join()
        signal.signal(ANOTHER, before)
    assert time.monotonic() - started < 20, "some steps on a busy machine, and not the whole range"


def test_a_timeline_has_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long_kernels, "LONG_NANOSECONDS", 0)
    monkeypatch.setattr(long_kernels, "STEP_NANOSECONDS", 1)
    function, x = PROGRAMS["rows"]
    executable = NumbaCompiler().compile(hloom.make_hlo(function)(x))
    with hloom.profiler.trace(tmp_path):
        executable.execute([x])
    events = on_track(read_trace(tmp_path / "timeline.json"), "Kernels and products")
    assert [e["args"]["kernel"] for e in events if "kernel" in e["args"]]
