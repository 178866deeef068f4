"""Calls in machine code: the same results as in Python, for all kinds of arguments; and nothing is lost or kept."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.runners import NativeRunner
from hloom.hlo.support.slots import HAS_SLOTS, TYPE_OFFSET, slot_offset, word_at
from hloom.numba_backend.runtime import array_calls
from hloom.numba_backend.runtime.memory import allocate, in_use
from hloom.tracer.arrays.array import Array

import hloom
import hloom.numpy as jnp
from hloom import lax

pytestmark = pytest.mark.skipif(not HAS_SLOTS, reason="this Python has no calls in machine code")

X = np.arange(8, dtype=np.float32)


def called(f: Any, *args: Any) -> Any:
    """The result of the call in machine code: the site must know the arguments."""
    call = f._fast.call
    assert call is not None
    result = call(args)
    assert result is not NotImplemented
    return result


def is_known(f: Any, *args: Any) -> bool:
    call = f._fast.call
    return call is not None and call(args) is not NotImplemented


CAPTURED = jnp.asarray(X) + 1

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "no argument": (lambda: jnp.arange(3), ()),
    "one": (lambda x: x * 2, (X,)),
    "two": (lambda x, y: x + y, (X, X[::-1].copy())),
    "many": (lambda *xs: sum(k * x for k, x in enumerate(xs)), (X,) * 20),
    "scalars": (lambda x, y: x * y, (np.array(2, np.float32), X)),
    "captured": (lambda x: x + CAPTURED, (X,)),
    "tuple": (lambda x, y: (x + y, x - y), (X, X)),
    "one in a tuple": (lambda x: (x + 1,), (X,)),
    "nothing": (lambda x: (), (X,)),
    "dictionary": (lambda x: {"b": x + 1, "a": [x, None, x * 2]}, (X,)),
    "empty": (lambda x: x + 1, (np.zeros((0, 3), np.float32),)),
    "integers": (lambda x, y: x // y, (np.arange(6).astype(np.int32).reshape(2, 3), np.full((2, 3), 2, np.int32))),
    "booleans": (lambda x, y: x & y, (np.array([True, False]), np.array([True, True]))),
    "large": (lambda x: x + 1, (np.ones(100_000, np.float32),)),
    "scratch": (lambda x: jnp.sort(jnp.cumsum(x * 3)[::-1]) @ jnp.outer(x, x), (X,)),
    "a loop": (lambda x: lax.fori_loop(0, 10, lambda i, c: c * 0.5 + i, x), (X,)),
    "a product": (lambda x: x @ x.T, (np.ones((200, 200), np.float32),)),
    "half": (lambda x: x * 2, (X.astype(np.float16),)),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("as_arrays", [True, False], ids=["arrays", "NumPy"])
def test_results_are_those_of_the_runner_in_python(name: str, as_arrays: bool) -> None:
    function, arguments = PROGRAMS[name]
    given = tuple(map(jnp.asarray, arguments)) if as_arrays else arguments
    f = hloom.jit(function)
    slow = f(*arguments)  # compiles, and runs in Python at least where memory comes for the first time
    for _ in range(3):
        f(*given)
        fast = called(f, *given)
        assert hloom.tree.structure(fast) == hloom.tree.structure(slow)
        for one, other in zip(hloom.tree.leaves(fast), hloom.tree.leaves(slow), strict=True):
            assert type(one) is Array
            assert one.aval is other.aval
            np.testing.assert_array_equal(one, other)


def test_arguments_that_no_site_has() -> None:
    f = hloom.jit(lambda x: x * 2)
    f(X)
    assert is_known(f, X)
    assert is_known(f, jnp.asarray(X).block_until_ready()) or f(jnp.asarray(X)) is not None
    others = [
        X[::2], X.reshape(2, 4), X[:4], X.astype(np.int32), X.astype(np.float64), X.astype(">f4"), X.view(np.int32),
        np.lib.stride_tricks.as_strided(X, (8,), (0,)), X.view(Named), np.float32(1), 1.0, 1, None, [X], "x", object(),
        jnp.asarray(X[:4]), jnp.float32(1), hloom.random.key(0),
    ]  # fmt: skip
    for other in others:
        assert f._fast.call((other,)) is NotImplemented
    assert f._fast.call(()) is NotImplemented
    assert f._fast.call((X, X)) is NotImplemented
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float32)
    assert f._fast.call((unaligned,)) is NotImplemented
    np.testing.assert_array_equal(f(unaligned), unaligned * 2)


class Named(np.ndarray[Any, Any]):
    """A subclass: its arrays may behave otherwise."""


def test_weak_types_and_settings_have_programs_of_their_own() -> None:
    f = hloom.jit(lambda x: x * 2)
    weak = hloom.jit(lambda: 1.0)()
    for _ in range(2):
        assert f(weak).weak_type
        assert not f(np.array(1, np.float32)).weak_type
        assert not f(jnp.float32(1)).weak_type
        assert f(np.array(1, np.float64)).dtype == np.float32
        with hloom.enable_x64(True):
            assert f(np.array(1, np.float64)).dtype == np.float64
            assert f(np.array(1, np.float32)).dtype == np.float32
    with hloom.enable_x64(True):
        assert is_known(f, np.array(1, np.float64))
    assert not is_known(f, np.array(1, np.float64))


LARGEST = float(np.finfo(np.float32).max)
NUMBERS = [
    0.0, -0.0, 1.5, 0.1, -1e-45, 1e-60, LARGEST, -LARGEST, float("inf"), float("-inf"), float("nan"), 0, 1, -1,
    2**31 - 1, -(2**31), True, False,
]  # fmt: skip


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_of_python(number: Any, x64: bool) -> None:
    f = hloom.jit(lambda x, s: (s, x * s))
    with hloom.enable_x64(x64):
        expected = f(X, number)
        f(X, number)
        found = called(f, X, number)
        for one, other in zip(found, expected, strict=True):
            assert one.aval is other.aval
            assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
        np.testing.assert_array_equal(found[0], np.asarray(number, found[0].dtype))


@pytest.mark.parametrize("number", [1e39, -1e300, LARGEST * (1 + 2**-24), 2**31, -(2**31) - 1, 2**63, -(2**80), 1j])
def test_numbers_that_are_left_to_python(number: Any) -> None:
    f = hloom.jit(lambda s: s)
    for small in (1.0, 1):
        f(small)
    f(1.0)
    assert f._fast.call((number,)) is NotImplemented
    if isinstance(number, int):
        with pytest.raises(OverflowError):
            f(number)
    else:
        assert complex(f(number)) == (number if number == 1j else float("inf") * np.sign(number))


def test_only_numbers_of_the_very_type() -> None:
    class Mine(float):
        pass

    f = hloom.jit(lambda s: s)
    f(1.0)
    for other in (Mine(1), True, 1, np.float32(1), np.float64(1), "1"):
        assert f._fast.call((other,)) is NotImplemented
    f(True)
    assert called(f, True).dtype == bool
    assert f._fast.call((1,)) is NotImplemented


def test_within_a_trace_nothing_runs() -> None:
    f = hloom.jit(lambda x: x * 2)
    f(X)
    known = []

    def g(x: Any) -> Any:
        known.append(is_known(f, X))
        return f(x) + f(X)

    np.testing.assert_array_equal(hloom.jit(g)(X), X * 4)
    np.testing.assert_array_equal(hloom.grad(lambda x: g(x).sum())(jnp.asarray(X)), np.full(8, 2))
    assert known == [False, False]
    assert is_known(f, X)


def test_settings_that_watch_calls() -> None:
    f = hloom.jit(lambda x: x / x)
    f(X[1:])
    zeros = np.zeros(7, np.float32)
    assert is_known(f, zeros)
    with hloom.debug_nans(True):
        assert not is_known(f, zeros)
        with pytest.raises(FloatingPointError):
            f(zeros)
    with hloom.disable_jit():
        assert not is_known(f, zeros)


def test_deleted_and_donated_arguments() -> None:
    f = hloom.jit(lambda x, y: x + y)
    x, y = jnp.asarray(X) + 0, jnp.asarray(X) + 1
    f(x, y)
    assert is_known(f, x, y)
    hloom.jit(lambda x: x * 2, donate_argnums=0)(y)
    with pytest.raises(RuntimeError, match="deleted"):
        f(x, y)
    g = hloom.jit(lambda x: x * 2, donate_argnums=0)
    for _ in range(3):
        given = jnp.asarray(X) + 0
        np.testing.assert_array_equal(g(given), X * 2)
        assert given.is_deleted()


def test_results_are_arrays_like_others() -> None:
    f = hloom.jit(lambda x: x + 1)
    f(X)
    result = called(f, X)
    view = np.asarray(result)
    assert not view.flags.writeable
    kept = view.copy()
    del result
    for _ in range(100):  # the memory is not given to others while the view lives
        f(X * 0)
    np.testing.assert_array_equal(view, kept)
    assert weakref.ref(called(f, X)) is not None


def test_errors_of_callbacks_reach_the_user() -> None:
    class Mine(Exception):
        pass

    fails = False

    def look(x: Any) -> Any:
        if fails:
            raise Mine("no")
        return x

    f = hloom.jit(lambda x: hloom.pure_callback(look, hloom.ShapeDtypeStruct((8,), np.float32), x) + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), X + 1)
    assert is_known(f, X)
    fails = True
    for _ in range(3):
        with pytest.raises(Exception, match="no"):
            f(X)
    fails = False
    np.testing.assert_array_equal(f(X), X + 1)


@pytest.mark.parametrize("name", PROGRAMS)
def test_nothing_is_kept_or_lost(name: str) -> None:
    function, arguments = PROGRAMS[name]
    own = tuple(map(jnp.asarray, arguments))
    f = hloom.jit(function)
    for _ in range(10):
        f(*own), f(*arguments)
    watched = [None, own, *own, *arguments, *(a.aval for a in own), *(a._buffer for a in own)]
    watched += [x for r in hloom.tree.leaves(f(*own)) for x in (r.aval, r._buffer.shape)]
    gc.collect()
    counts, used = [*map(sys.getrefcount, watched)], in_use()[0]
    gc.disable()
    try:
        for _ in range(1000):
            f(*own)
            f(*arguments)
            f._fast.call((*own, None))
        assert in_use()[0] == used
        after = [*map(sys.getrefcount, watched)]
        assert max(abs(a - b) for a, b in zip(after, counts, strict=True)) < 100
    finally:
        gc.enable()


def test_empty_bins_are_left_to_python() -> None:
    f = hloom.jit(lambda x: x + 1)
    f(X)
    held = [f(X) for _ in range(5000)]  # more than a slab
    for each in held:
        np.testing.assert_array_equal(each, X + 1)
    blocks = [allocate(32) for _ in range(5000)]
    assert len({b.address for b in blocks}) == 5000


def test_functions_go_with_their_programs() -> None:
    def make() -> weakref.ref[Array]:
        big = jnp.ones(1000)
        f = hloom.jit(lambda x: x + big)
        for _ in range(3):
            f(np.ones(1000, np.float32))
        assert is_known(f, np.ones(1000, np.float32))
        return weakref.ref(big)

    gc.disable()  # no cycle keeps them
    try:
        assert make()() is None
    finally:
        gc.enable()


def test_caches_are_cleared() -> None:
    times = 0

    def f(x: Any) -> Any:
        nonlocal times
        times += 1
        return x + 1

    jitted = hloom.jit(f)
    jitted(X)
    jitted(X)
    hloom.clear_caches()
    jitted(X)
    jitted(X)
    assert times == 2


def test_more_forms_than_there_are_sites() -> None:
    f = hloom.jit(lambda x: x + 1)
    for _ in range(2):
        for n in range(2 * array_calls.MOST_SITES):
            x = np.arange(n, dtype=np.float32)
            np.testing.assert_array_equal(f(x), x + 1)
    assert is_known(f, np.zeros(0, np.float32))
    assert not is_known(f, np.zeros(2 * array_calls.MOST_SITES - 1, np.float32))


def test_containers_and_names_use_the_same_runner() -> None:
    f = hloom.jit(lambda a, b: a["x"] + b)
    x = jnp.asarray(X)
    for _ in range(20):
        np.testing.assert_array_equal(f({"x": x}, b=x), X * 2)
        np.testing.assert_array_equal(f({"x": X}, X), X * 2)
    (run, *_) = f._programs.runners.values()
    assert isinstance(run.__self__, NativeRunner)
    np.testing.assert_array_equal(run([x, x]), X * 2)
    np.testing.assert_array_equal(run((x, x)), X * 2)


def test_the_runner_in_machine_code_asks_python_where_needed() -> None:
    f = hloom.jit(lambda x: x + 1)
    f(X)
    (run,) = f._programs.runners.values()
    fresh = jnp.asarray(X)  # no buffer yet
    np.testing.assert_array_equal(run([fresh]), X + 1)
    fresh.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        run([fresh])


def test_threads() -> None:
    f = hloom.jit(lambda x, y: (x + y, x * y))
    wrong: list[Any] = []

    def work(number: int) -> None:
        x = np.full(8, number, np.float32)
        own = jnp.asarray(x)
        for k in range(300):
            with hloom.enable_x64(k % 3 == 0):
                total, product = f(own, x)
            if float(total[0]) != 2 * number or float(product[0]) != number * number:
                wrong.append((number, k))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


def test_slots_are_where_the_descriptors_say() -> None:
    x = called(_added(), X)
    assert word_at(id(x) + slot_offset(Array, "aval")) == id(x.aval)
    assert word_at(id(x) + slot_offset(Array, "_buffer")) == id(x._buffer)
    assert word_at(id(x._buffer) + slot_offset(type(x._buffer), "address")) == id(x._buffer.address)
    assert word_at(id(x) + TYPE_OFFSET) == id(Array)


def _added() -> Any:
    f = hloom.jit(lambda x: x + 1)
    f(X)
    return f
