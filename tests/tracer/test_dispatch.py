"""Calls of jitted functions: which are traced again and which are not, for every way to pass the arguments."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.tracer.caches import BoundedCache

import hloom
import hloom.numpy as jnp

X = np.arange(4, dtype=np.float32)


class Counted:
    """A function that counts how often it is traced."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, x: Any, n: Any = 2, *, scale: Any = 1.0, mode: str = "up") -> Any:
        self.times += 1
        return x * n * scale if mode == "up" else x - n


@pytest.mark.parametrize("options", [{}, {"static_argnums": 1}, {"static_argnames": ("n", "mode")}, {"inline": True}])
def test_programs_belong_to_the_function(options: dict[str, Any]) -> None:
    f = Counted()
    for _ in range(3):
        np.testing.assert_array_equal(hloom.jit(f, **options)(X, 3), X * 3)
    assert f.times == 1


def test_donation_shares_the_trace() -> None:
    f = Counted()
    hloom.jit(f)(jnp.asarray(X))
    given = jnp.asarray(X)
    hloom.jit(f, donate_argnums=0)(given)
    assert f.times == 1
    assert given.is_deleted()
    kept = jnp.asarray(X)
    hloom.jit(f)(kept)
    assert not kept.is_deleted()


def test_functions_that_are_not_hashable_keep_their_own() -> None:
    class Unhashable(Counted):
        __hash__ = None  # type: ignore[assignment]

    f = Unhashable()
    jitted = hloom.jit(f)
    for _ in range(3):
        jitted(X)
    assert f.times == 1


def test_programs_go_with_the_function() -> None:
    def make() -> tuple[Any, Any]:
        big = jnp.ones(1000)
        hloom.jit(lambda x: x + big)(jnp.ones(1000))
        return weakref.ref(big), None

    gc.disable()  # no cycle keeps them
    try:
        reference, _ = make()
        assert reference() is None
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda f: f(X, 3), X * 3),
        (lambda f: f(X, n=3), X * 3),
        (lambda f: f(n=3, x=X), X * 3),
        (lambda f: f(x=X, n=3), X * 3),
        (lambda f: f(jnp.asarray(X), 3, mode="down"), X - 3),
        (lambda f: f(X, mode="down", n=1), X - 1),
        (lambda f: f(X), X * 2),
        (lambda f: f(X, 3, scale=2.0), X * 6),
        (lambda f: f(X, 3, scale=np.float32(2)), X * 6),
    ],
)
def test_static_and_keyword_arguments(call: Callable[[Any], Any], expected: Any) -> None:
    counted = Counted()
    f = hloom.jit(counted, static_argnames=("n", "mode"))
    for _ in range(3):
        np.testing.assert_array_equal(call(f), expected)
    assert counted.times == 1


def test_static_values_are_told_apart_by_type() -> None:
    f = hloom.jit(lambda x, n: jnp.asarray(n), static_argnums=1)
    for _ in range(2):
        assert [f(X, n).dtype.name for n in (1, 1.0, True)] == ["int32", "float32", "bool"]


def test_forms_of_calls_are_told_apart() -> None:
    f = hloom.jit(lambda a, b=1.0, *, c=2.0: a - 10 * b - 100 * c)
    one, two, three = (jnp.asarray(float(k)) for k in (1, 2, 3))
    for _ in range(2):
        assert float(f(one, two)) == 1 - 20 - 200
        assert float(f(one, b=two)) == 1 - 20 - 200
        assert float(f(one, c=two)) == 1 - 10 - 200
        assert float(f(b=one, a=two)) == 2 - 10 - 200
        assert float(f(one, c=three, b=two)) == 1 - 20 - 300
    g = hloom.jit(lambda x: x[0] - x[1] if isinstance(x, tuple) else x["a"] - x["b"])
    for _ in range(2):
        assert float(g((one, two))) == -1
        assert float(g({"b": one, "a": two})) == 1


def test_clear_caches() -> None:
    f = Counted()
    jitted = hloom.jit(f)
    jitted(X)
    hloom.clear_caches()
    assert jitted._cache_size() == 0
    jitted(X)
    assert f.times == 2


def test_bounded_cache() -> None:
    dropped = []
    cache: BoundedCache[int] = BoundedCache(4, lambda: dropped.append(1))
    for k in range(4):
        cache[k] = k
    assert cache.get(0) == 0  # used again: not the first to go
    cache[4] = 4
    assert (cache.get(0), cache.get(1), cache.get(4)) == (0, None, 4)
    assert dropped == [1]


def test_what_is_dropped_is_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    f = Counted()
    jitted = hloom.jit(f)
    monkeypatch.setattr(jitted._programs.runners, "_maxsize", 2)
    for _ in range(2):
        for n in range(1, 6):
            np.testing.assert_array_equal(jitted(np.ones(n, np.float32)), np.full(n, 2))
    assert jitted._cache_size() <= 2
    assert sum(len(entries) for entries in jitted._fast.values()) <= 2
    assert f.times == 5  # the traces are kept


NUMBERS = [
    *(True, False, 0, 7, -(2**31), 2**31 - 1, 0.0, -0.0, 0.1, -2.5, 1e300, -1e300),
    *(3.4028235677973366e38, 1e-45, 1e-320, float("inf"), float("-inf"), float("nan"), -float("nan")),
    *(1.5 - 2j, complex("nan+infj")),
]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_numbers_of_python_are_weakly_typed_arrays(number: complex, x64: bool) -> None:
    """Bit for bit what an array of the number is, at the first call and at later ones."""
    with hloom.enable_x64(x64):
        expected = jnp.asarray(number)
        f, added = hloom.jit(lambda n: n), hloom.jit(lambda a, n: a + n)
        for _ in range(3):
            result = f(number)
            assert (result.dtype, result.weak_type) == (expected.dtype, type(number) is not bool)
            assert np.asarray(result).tobytes() == np.asarray(expected).tobytes()
            if number == number:
                half = jnp.ones(2, jnp.bfloat16)
                assert added(half, number).dtype == (half + number).dtype


@pytest.mark.parametrize("x64, number", [(False, 2**31), (False, -(2**31) - 1), (True, 2**63)])
def test_integers_that_do_not_fit_are_refused(x64: bool, number: int) -> None:
    f = hloom.jit(lambda n: n + 1)
    with hloom.enable_x64(x64):
        assert f(1) == 2
        for _ in range(2):
            with pytest.raises(OverflowError):
                f(number)


def test_settings_change_between_calls_with_numbers() -> None:
    f = hloom.jit(lambda n: n)
    for _ in range(3):
        assert f(1.5).dtype == np.float32
        with hloom.enable_x64():
            assert f(1.5).dtype == np.float64
            assert f(2**40) == 2**40


def test_donated_numbers_are_copied() -> None:
    """The memory of a number belongs to Python: no result takes it over."""
    f = hloom.jit(lambda n: n + 1, donate_argnums=0)
    results = [f(k / 2) for k in range(5)]
    assert [float(r) for r in results] == [1.0, 1.5, 2.0, 2.5, 3.0]
    assert hloom.jit(lambda n: ~n, donate_argnums=0)(True) == False  # noqa: E712


def test_arrays_of_numpy_in_any_order() -> None:
    base = np.arange(48, dtype=np.float32)
    frozen = base[:8].copy()
    frozen.flags.writeable = False
    shifted = np.frombuffer(b"\0" + base[:8].tobytes(), np.uint8)[1:].view(np.float32)
    cases = [base[:8], base[1:9], base[::2][:8], base[8:0:-1], frozen, shifted, base.reshape(6, 8)[:, 1][:6]]
    f, g = hloom.jit(lambda a: a * 2), hloom.jit(lambda a, b: (a - b, {"sum": a + b}))
    for _ in range(3):
        for a in cases:
            np.testing.assert_array_equal(f(a), a * 2)
            difference, rest = g(a, jnp.asarray(a))
            np.testing.assert_array_equal(difference, a - a)
            np.testing.assert_array_equal(rest["sum"], a + a)


def test_programs_of_several_results() -> None:
    """With values that the function closes over, arguments that are results, no elements, no arguments, none at all."""
    closed = jnp.arange(4, dtype=jnp.float32)
    f = hloom.jit(lambda t: {"a": t["a"] + closed, "b": (t["b"], None), "c": closed})
    empty = hloom.jit(lambda a, b: (a + b, b))
    for k in range(12):  # containers are flattened by a function of their own after a while
        given = {"a": X + k, "b": jnp.asarray(X - k)}
        got = f(given)
        np.testing.assert_array_equal(got["a"], X + k + X)
        np.testing.assert_array_equal(got["b"][0], X - k)
        np.testing.assert_array_equal(got["c"], X)
        assert [r.shape for r in empty(jnp.zeros((0, 3)), jnp.zeros(3))] == [(0, 3), (3,)]
        assert [float(r) for r in hloom.jit(lambda: (jnp.float32(1), jnp.float32(2)))()] == [1, 2]
        assert hloom.jit(lambda x: ())(X) == ()
    given["b"].delete()
    with pytest.raises(RuntimeError, match="delete"):
        f(given)
