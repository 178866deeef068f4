"""Loops outside of jit whose body is made anew in each call: one trace for bodies that compute the same."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.tracer.control_flow import branches, scan
from hloom.tracer.control_flow.equal_functions import earlier
from numpy import random as generators

import hloom
import hloom.numpy as jnp
from hloom import lax

pytestmark = pytest.mark.usefixtures("evaluator")
SCALE = 2.0


@pytest.fixture
def traces(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names of the functions that are traced."""
    hloom.clear_caches()
    found: list[str] = []
    for module in (scan, branches):
        original = module.trace_function

        def traced(fun: Any, *args: Any, original: Any = original, **more: Any) -> Any:
            found.append(fun.__name__)
            return original(fun, *args, **more)

        monkeypatch.setattr(module, "trace_function", traced)
    yield found
    hloom.clear_caches()


def counted(x: Any, a: Any) -> Any:
    return lax.fori_loop(0, 3, lambda k, v: v * a + k * SCALE, x)


def nested(x: Any, a: Any) -> Any:
    def inner(k: Any, v: Any) -> Any:
        return v + jnp.sin(v) * a

    def outer(k: Any, v: Any) -> Any:
        return lax.fori_loop(0, 2, inner, v)

    return lax.fori_loop(0, 2, outer, x)


def scanned(x: Any, a: Any) -> Any:
    return lax.scan(lambda v, _: (v * a, None), x, None, length=3)[0]


def mapped(x: Any, a: Any) -> Any:
    return lax.map(lambda v: v * a, jnp.stack([x, x]))


def while_less(x: Any, a: Any) -> Any:
    return lax.while_loop(lambda v: v < a, lambda v: v * a + 1, x)


@pytest.mark.parametrize("function", [counted, nested, scanned, mapped, while_less])
def test_equal_bodies_are_traced_once(function: Callable[..., Any], traces: list[str]) -> None:
    first = function(jnp.float32(1), 3.0)
    count = len(traces)
    assert count
    np.testing.assert_array_equal(function(jnp.float32(1), 3.0), first)
    assert len(traces) == count
    assert function(jnp.float32(1), 4.0).ravel()[-1] != first.ravel()[-1]
    assert len(traces) > count
    count = len(traces)
    function(jnp.float32(1), 4)  # an int is another constant than a float
    assert len(traces) > count


def test_zeros_of_both_signs_are_different(traces: list[str]) -> None:
    one = lambda a: lax.fori_loop(0, 1, lambda k, v: jnp.copysign(v, a), jnp.float32(1))  # noqa: E731
    assert [float(one(a)) for a in (0.0, -0.0, 0.0)] == [1.0, -1.0, 1.0]


def test_a_global_that_changes(traces: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert counted(jnp.float32(0), 1.0) == 6
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    assert counted(jnp.float32(0), 1.0) == 9


SEEN: list[Any] = []


def writes_outside(a: Any) -> Any:
    count = 0

    def body(k: Any, v: Any) -> Any:
        nonlocal count
        count += 1
        return v * a

    lax.fori_loop(0, 3, body, jnp.float32(1))
    return count


def holds_a_list(a: Any) -> Any:
    seen = [a]

    def body(k: Any, v: Any) -> Any:
        seen.append(k)
        return v * a

    lax.fori_loop(0, 3, body, jnp.float32(1))
    return len(seen) > 1


def appends_to_a_global(a: Any) -> Any:
    before = len(SEEN)

    def body(k: Any, v: Any) -> Any:
        SEEN.append(a)
        return v * a

    lax.fori_loop(0, 3, body, jnp.float32(1))
    return len(SEEN) > before


def draws(a: Any) -> Any:
    return float(lax.fori_loop(0, 1, lambda k, v: v + np.random.rand() * a, jnp.float32(0)))


def draws_by_another_name(a: Any) -> Any:
    return float(lax.fori_loop(0, 1, lambda k, v: v + generators.rand() * a, jnp.float32(0)))


def prints(a: Any) -> Any:
    def body(k: Any, v: Any) -> Any:
        print("body")
        return v * a

    return lax.fori_loop(0, 3, body, jnp.float32(1))


def test_bodies_that_do_more_than_compute_are_traced_each_time(
    traces: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [writes_outside(2.0) for _ in range(3)] == [1, 1, 1]
    assert all(holds_a_list(2.0) for _ in range(3)) and all(appends_to_a_global(2.0) for _ in range(3))
    assert len({draws(2.0) for _ in range(3)}) == 3
    assert len({draws_by_another_name(2.0) for _ in range(3)}) == 3
    for _ in range(3):
        prints(2.0)
    assert capsys.readouterr().out.split() == ["body"] * 3


def test_a_file_is_read_each_time(traces: list[str], tmp_path: Path) -> None:
    path = str(tmp_path / "a.npy")

    def read() -> Any:
        return lax.fori_loop(0, 1, lambda k, v: v + np.load(path), jnp.float32(0))

    for value in (1.0, 2.0):
        np.save(path, np.float32(value))
        assert float(read()) == value


def test_functions_that_call_each_other_are_looked_at_within_a_limit() -> None:
    def last(x: Any) -> Any:
        return x

    looks = 0

    class Counted(dict[str, Any]):
        def __contains__(self, name: object) -> bool:
            nonlocal looks
            looks += 1
            return super().__contains__(name)

    names = Counted(last=last)
    levels = [[f"f{level}{k}" for k in range(4)] for level in range(7)]
    for level, next_level in itertools.pairwise([*levels, ["last"]]):
        called = " + ".join(f"{name}(x)" for name in next_level)
        exec("\n".join(f"def {name}(x): return {called}" for name in level), names)

    def body(k: Any, v: Any, f: Any = names["f00"]) -> Any:
        return f(last(v))

    assert earlier(body) is body
    assert looks < 1000


def test_arrays_around_a_body_are_its_own(traces: list[str]) -> None:
    def scaled(a: Any) -> Any:
        return lax.fori_loop(0, 2, lambda k, v: v * a, jnp.ones(2))

    assert [float(scaled(jnp.float32(a))[0]) for a in (1, 2, 3)] == [1, 4, 9]


def test_functions_of_other_kinds_are_themselves() -> None:
    partial = hloom.jit(lambda x: x)
    assert earlier(partial) is partial and earlier(len) is len and earlier(counted) is counted

    def recursive(x: Any) -> Any:
        return recursive(x)

    assert earlier(recursive) is recursive


def test_under_derivatives_and_batches(traces: list[str]) -> None:
    for a in (2.0, 3.0, 2.0):
        assert float(hloom.grad(lambda x, a=a: scanned(x, a))(1.0)) == a**3
        assert hloom.vmap(lambda x, a=a: scanned(x, a))(jnp.ones(2)).tolist() == [a**3] * 2
