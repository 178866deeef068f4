"""`hloom.progress`: bars of loops in compiled programs, of every kind of loop and under every transformation."""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo.support import loop_progress, progress

import hloom
import hloom.numpy as jnp
from hloom import lax
from support import evaluator_fixture

on_the_evaluator = evaluator_fixture.on_the_evaluator

N = 50
Loop = Callable[[Callable[..., Any], Any], Any]


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, int | None, int]]]:
    """(title, total, count) of each bar that was closed; nothing is drawn."""
    found: list[tuple[str, int | None, int]] = []

    class Seen(loop_progress.Bar):
        def close(self) -> None:
            found.append((self.title, self.total, self.count))

    monkeypatch.setattr(loop_progress, "is_shown", lambda: True)
    monkeypatch.setattr(loop_progress, "LOOP_DELAY", 1e9)
    monkeypatch.setattr(loop_progress, "Bar", Seen)
    yield found
    assert not loop_progress._thread.open


def step(c: Any) -> Any:
    return jnp.sin(c) * 1.1


def scan(mark: Any, c: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        return step(c) * x, c

    return lax.scan(mark(body), c, jnp.linspace(0.5, 1.0, N))[1].sum()


def backwards(mark: Any, c: Any) -> Any:
    def body(c: Any, x: Any) -> Any:
        return step(c) * x, c

    return lax.scan(mark(body), c, jnp.linspace(0.5, 1.0, N), reverse=True)[0]


def fori(mark: Any, c: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return step(c)

    return lax.fori_loop(3, N + 3, mark(body), c)


def dynamic(mark: Any, c: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return step(c)

    return lax.fori_loop(0, N + jnp.int32(0 * c), mark(body), c)


def while_(mark: Any, c: Any) -> Any:
    def body(s: Any) -> Any:
        return s[0] + 1, step(s[1])

    return lax.while_loop(lambda s: s[0] < N, mark(body), (0, c))[1]


def map_(mark: Any, c: Any) -> Any:
    def body(x: Any) -> Any:
        return step(x) * c

    return lax.map(mark(body), jnp.linspace(0.0, 1.0, N)).sum()


def in_jit(mark: Any, c: Any) -> Any:
    def body(i: Any, c: Any) -> Any:
        return step(c)

    return lax.fori_loop(0, N, hloom.jit(mark(body)), c)


LOOPS: dict[str, Loop] = {
    f.__name__: f for f in (scan, backwards, fori, dynamic, while_, map_, in_jit)
}
UNKNOWN = {"dynamic", "while_"}


def batched(f: Callable[..., Any]) -> Callable[..., Any]:
    return lambda c: hloom.vmap(f)(jnp.arange(3.0) * c)


WAYS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "plain": (lambda f: f, 1, 0),
    "vmap": (batched, 1, 0),
    "jvp": (lambda f: lambda c: hloom.jvp(f, (c,), (c,))[1], 1, 0),
    "grad": (hloom.grad, 1, 1),
    "value_and_grad": (hloom.value_and_grad, 1, 1),
    "vmap of grad": (lambda f: batched(hloom.grad(f)), 1, 1),
    "remat": (lambda f: hloom.grad(hloom.checkpoint(f)), 1, 1),
}
"""A transformation; how many bars there are forwards, and backwards."""


def check(bars: list[Any], loop: str, way: str, on_numba: bool) -> None:
    transform, forwards, backwards = WAYS[way]
    name = "body"
    f = hloom.jit(transform(functools.partial(LOOPS[loop], hloom.progress)))
    plain = hloom.jit(transform(functools.partial(LOOPS[loop], lambda body: body)))
    total = None if loop in UNKNOWN else N
    expected = [(name, total, N)] * forwards
    if loop not in UNKNOWN:  # reverse mode of a while loop repeats parts of it, and reports none of them
        expected += [(f"{name} (derivative)", total, N)] * backwards
    for _ in range(2):
        bars.clear()
        np.testing.assert_array_equal(*map(hloom.tree.leaves, (f(0.3), plain(0.3))))
        assert bars == expected
    assert "hloom.progress" in f.lower(0.3).as_text()
    assert "hloom.progress" not in plain.lower(0.3).as_text()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", LOOPS)
def test_loops(bars: list[Any], loop: str, way: str) -> None:
    if loop == "in_jit" and way not in ("plain", "vmap"):
        pytest.skip("the same as fori")
    check(bars, loop, way, False)


@pytest.mark.parametrize(
    ("loop", "way"), [("scan", "plain"), ("scan", "grad"), ("fori", "vmap"), ("while_", "grad"), ("dynamic", "plain")]
)
def test_compiled_loops(bars: list[Any], loop: str, way: str) -> None:
    hloom.config.update("hloom_backend", "numba")
    check(bars, loop, way, True)


def test_the_loop_stays_one_kernel(bars: list[Any]) -> None:
    hloom.config.update("hloom_backend", "numba")
    for loop in ("scan", "fori", "while_"):
        f = hloom.jit(functools.partial(LOOPS[loop], hloom.progress))
        compiled = f.lower(0.3).compile()
        assert [k for k in compiled.kernels() if k.startswith("loop_fusion")], loop
        text = compiled.as_text()
        assert text.count('custom_call_target="hloom.progress"') == 3  # before, between chunks, after


def test_every_is_a_divisor_of_the_chunks(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    hloom.config.update("hloom_backend", "numba")
    counts = []
    advance = loop_progress.Bar.advance
    monkeypatch.setattr(
        loop_progress.Bar, "advance", lambda self, count: (counts.append(count), advance(self, count))[1]
    )
    body = hloom.progress(lambda i, c: step(c), every=7)
    hloom.jit(lambda c: lax.fori_loop(0, 100_003, body, c))(0.3)
    assert sum(counts) == 100_003
    assert all(count % 7 == 0 for count in counts[:-1])
    assert bars == [("<lambda>", 100_003, 100_003)]


def test_nested_loops(bars: list[Any]) -> None:
    inner = hloom.progress(lambda j, c: step(c), desc="inner")
    outer = hloom.progress(lambda i, c: lax.fori_loop(0, 4, inner, c), desc="outer")
    hloom.jit(lambda c: lax.fori_loop(0, 3, outer, c))(0.3)
    assert bars == [*[("inner", 4, 4)] * 3, ("outer", 3, 3)]


def test_the_first_chunk_counts_at_once(bars: list[Any]) -> None:
    total = hloom.progress(lambda s: s + 1, total=5)
    assert lax.while_loop(lambda s: s < 5, total, 0) == 5
    assert lax.while_loop(lambda s: s < 0, total, 0) == 0
    assert bars == [("<lambda>", 5, 5), ("<lambda>", 5, 0)]


@pytest.mark.parametrize("backend", ["numba", "evaluator"])
def test_an_exception_closes_the_bars(bars: list[Any], backend: str) -> None:
    hloom.config.update("hloom_backend", backend)

    def fail(i: Any) -> None:
        if i == 3:
            raise KeyError("three")

    def body(i: Any, c: Any) -> Any:
        hloom.debug.callback(fail, i)
        return step(c)

    f = hloom.jit(lambda c: lax.fori_loop(0, 9, hloom.progress(body), c))
    for _ in range(2):
        with pytest.raises(KeyError, match="three"):
            f(0.3)
        assert not loop_progress._thread.open
    assert bars == [("body", 9, bars[0][2])] * 2
    assert 3 <= bars[0][2] <= 4


def test_python_loops(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["hloom.tracer.control_flow.progress"], "is_shown", lambda: True)
    assert [2 * k for k in hloom.progress(range(5), desc="five")] == [0, 2, 4, 6, 8]
    for k in hloom.progress(iter("abc")):
        if k == "b":
            break
    assert list(hloom.progress(jnp.arange(3.0), every=2)) == [0, 1, 2]
    assert bars == [("five", 5, 5), ("", None, 1), ("", 3, 3)]


def test_without_a_terminal_nothing_is_drawn() -> None:
    items = range(3)
    assert hloom.progress(items) is items
    f = hloom.jit(lambda c: lax.fori_loop(0, 3, hloom.progress(lambda i, c: step(c)), c))
    assert f(0.3) == hloom.jit(lambda c: lax.fori_loop(0, 3, lambda i, c: step(c), c))(0.3)
    assert not progress.BARS


def test_off() -> None:
    body = operator.add
    f = hloom.jit(lambda c: lax.fori_loop(0, 3, hloom.progress(body), c))
    assert "hloom.progress" in f.lower(0).as_text()
    with hloom.progress_bars(False):
        assert hloom.progress(body) is body
        assert "hloom.progress" not in f.lower(0).as_text()


def test_the_body_is_marked_once() -> None:
    assert hloom.progress(scan) is hloom.progress(scan)
    assert hloom.progress(scan).__name__ == "scan"

    class Unhashable:
        __hash__ = None  # type: ignore[assignment]

        def __call__(self, i: Any, c: Any) -> Any:
            return c + i

    assert lax.fori_loop(0, 3, hloom.progress(Unhashable()), 0) == 3


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"body": 3}, TypeError, "takes the body of a loop or an iterable, not 3 of int"),
        ({"body": scan, "every": 0}, ValueError, "every must be at least 1, not 0"),
        ({"body": scan, "every": 1.5}, TypeError, "every must be an integer, not 1.5"),
        ({"body": scan, "every": "x"}, TypeError, "every must be an integer, not 'x'"),
        ({"body": scan, "total": -1}, ValueError, "total is negative: -1"),
        ({"body": scan, "total": 1.5}, TypeError, "total must be an integer, not 1.5"),
    ],
)
def test_errors(options: dict[str, Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        hloom.progress(options.pop("body"), **options)


def test_every_above_all_numbers_of_iterations(bars: list[Any]) -> None:
    hloom.config.update("hloom_backend", "numba")
    assert hloom.jit(lambda x: lax.fori_loop(0, 10, hloom.progress(lambda i, c: c + 1.0, every=2**40), x))(0.0) == 10


def test_disable_jit() -> None:
    with hloom.disable_jit():
        assert lax.fori_loop(0, 3, hloom.progress(lambda i, c: c + i), 0) == 3


@pytest.mark.parametrize(
    ("took", "count", "every", "allowed"),
    [
        (0.0, 1, 1, 64),  # too short to measure: it grows
        (0.05, 100, 1, 100),
        (5.0, 100, 1, 1),
        (50.0, 1, 1, 1),
        (0.025, 100, 30, 180),
        (50.0, 100, 30, 30),
        (0.0, 1 << 30, 1, (1 << 31) - 1),
    ],
)
def test_sizes_of_chunks(
    monkeypatch: pytest.MonkeyPatch, took: float, count: int, every: int, allowed: int
) -> None:
    now = [100.0]
    monkeypatch.setattr(loop_progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(loop_progress, "LOOP_DELAY", 1e9)
    bar = loop_progress.Bar("loop", None, every)
    now[0] += took
    assert bar.advance(count) == pytest.approx(allowed, abs=1)
