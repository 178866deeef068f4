"""Calls in machine code: the same results as in Python, for all kinds of arguments; and nothing is lost or kept."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import inspect
import pickle
import sys
import threading
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hloom.hlo.runners import NativeRunner
from hloom.hlo.support.slots import CALL_OFFSET, HAS_SLOTS, TYPE_OFFSET, slot_offset, word_at
from hloom.numba_backend.runtime import array_calls
from hloom.numba_backend.runtime.memory import allocate, in_use
from hloom.tracer.arrays.array import Array

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.errors import DeletedArrayError
from support.runtime_kernels import python

pytestmark = pytest.mark.skipif(not HAS_SLOTS, reason="this Python has no calls in machine code")

X = np.arange(8, dtype=np.float32)


def called(f: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of the call in machine code: the site must know the arguments."""
    call = f._fast.call
    assert call is not None
    result = call(args, kwargs)
    assert result is not NotImplemented
    return result


def is_known(f: Any, *args: Any, **kwargs: Any) -> bool:
    call = f._fast.call
    return call is not None and call(args, kwargs) is not NotImplemented


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


def _frames(call: Callable[[], Any]) -> list[str]:
    """The functions of Python that run during a call."""
    found: list[str] = []
    sys.setprofile(lambda frame, event, _: found.append(frame.f_code.co_name) if event == "call" else None)
    try:
        call()
    finally:
        sys.setprofile(None)
    return found[1:]


def test_a_known_call_runs_no_code_of_python() -> None:
    results = []
    f, again = (hloom.jit(_doubled) for _ in range(2))
    for function in (f, again):
        for _ in range(3):
            function(X, y=[X])
        assert _frames(lambda: results.append(function(X, y=[X]))) == []  # noqa: B023
    hloom.clear_caches()
    for function in (f, again):
        assert "__call__" in _frames(lambda: results.append(function(X, y=[X])))  # noqa: B023
    for function in (f, again):
        function(X, y=[X])
        assert _frames(lambda: results.append(function(X, y=[X]))) == []  # noqa: B023
    for result in results:
        np.testing.assert_array_equal(result, X * 2)


def _doubled(x: Any, *, y: Any) -> Any:
    return x + y[0]


def test_an_object_that_was_not_made_by_jit() -> None:
    f = hloom.jit(lambda x: x)
    for _ in range(3):
        f(X)
    with pytest.raises((SystemError, AttributeError)):
        type(f).__new__(type(f))(X)


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
        assert f._fast.call((other,), {}) is NotImplemented
    assert f._fast.call((), {}) is NotImplemented
    assert f._fast.call((X, X), {}) is NotImplemented
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float32)
    assert f._fast.call((unaligned,), {}) is NotImplemented
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
    assert f._fast.call((number,), {}) is NotImplemented
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
        assert f._fast.call((other,), {}) is NotImplemented
    f(True)
    assert called(f, True).dtype == bool
    assert f._fast.call((1,), {}) is NotImplemented


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


def _stepped(state: Any, rate: Any) -> Any:
    return {name: x - rate * x.sum() for name, x in state.items()}, rate + 1


SIZES = {"small": 8, "large": 200_000}
"""Elements of results in a bin, and of results whose memory is made and freed by functions of Python."""


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_donated_arguments_become_results_without_python(size: int) -> None:
    f = hloom.jit(_stepped, donate_argnums=0)
    plain = hloom.jit(_stepped)
    start = {"w": np.linspace(-1, 1, size, dtype=np.float32), "b": np.arange(8, dtype=np.float32)}
    rate = jnp.float32(0.001)
    state: Any = hloom.tree.map(jnp.asarray, start)
    expected: Any = hloom.tree.map(jnp.asarray, start)
    for _ in range(3):  # the first memory is NumPy's
        state, _ = f(state, rate)
        expected, _ = plain(expected, rate)
    for _ in range(3):
        before, places = state, {name: x._buffer.address for name, x in state.items()}
        results: list[Any] = []
        assert _frames(lambda: results.append(f(before, rate))) == []  # noqa: B023
        state, _ = results.pop()
        expected, _ = plain(expected, rate)
        assert all(x.is_deleted() for x in before.values())
        assert not rate.is_deleted()
        assert {name: x._buffer.address for name, x in state.items()} == places
    hloom.tree.map(np.testing.assert_array_equal, state, expected)
    with pytest.raises(hloom.errors.DeletedArrayError):
        f(before, rate)


def test_donated_memory_that_something_else_sees_is_copied() -> None:
    f = hloom.jit(lambda x: x * 2, donate_argnums=0)
    x = f(f(f(jnp.asarray(X) + 0)))
    assert is_known(f, f(jnp.asarray(X) + 0))
    view = np.asarray(x)
    kept = view.copy()
    result = f(x)
    assert x.is_deleted()
    np.testing.assert_array_equal(result, kept * 2)
    np.testing.assert_array_equal(view, kept)
    buffer = result._buffer  # a reference to the memory alone
    again = f(result)
    np.testing.assert_array_equal(again, kept * 4)
    assert again._buffer is not buffer
    own = X.copy()  # memory of the user
    np.testing.assert_array_equal(f(own), own * 2)
    given = jnp.asarray(own)
    np.testing.assert_array_equal(f(given), own * 2)
    assert given.is_deleted()
    np.testing.assert_array_equal(own, X)


def test_a_donated_array_that_a_deferred_operation_reads() -> None:
    f = hloom.jit(lambda x: x * 2, donate_argnums=0)
    make = hloom.jit(lambda: jnp.asarray(X))
    f(f(make()))
    for _ in range(2):
        with hloom.jit_scope():
            x = make()
            deferred = x + 1
            np.testing.assert_array_equal(f(x), X * 2)
            np.testing.assert_array_equal(deferred, X + 1)
        x = make()
        assert _frames(lambda: f(x)) == []  # noqa: B023


def test_an_array_that_is_donated_and_used_elsewhere() -> None:
    for donated in (0, (0, 1)):
        f = hloom.jit(lambda x, y: (x * 2, y + 1), donate_argnums=donated)
        for _ in range(4):
            x, y = (hloom.jit(lambda x: x + 0)(X) for _ in range(2))
            f(x, y)
            same = hloom.jit(lambda x: x + 0)(X)
            double, more = f(same, same)
            np.testing.assert_array_equal(double, X * 2)
            np.testing.assert_array_equal(more, X + 1)
            assert same.is_deleted()
            assert double._buffer.address != more._buffer.address


@pytest.mark.filterwarnings("ignore:Some donated buffers")
def test_donated_arguments_of_which_no_result_takes_the_memory() -> None:
    f = hloom.jit(lambda x, y: x[:2].astype(np.int32) + y.sum().astype(np.int32), donate_argnums=(0, 1))
    make = hloom.jit(lambda: (jnp.asarray(X), jnp.ones(3)))
    for _ in range(4):
        x, y = make()
        np.testing.assert_array_equal(f(x, y), X[:2].astype(np.int32) + 3)
        assert x.is_deleted()
        assert y.is_deleted()
    x, y = make()
    assert _frames(lambda: f(x, y)) == []


class Mine(Exception):
    """An error of the user's."""


class Look:
    """A callback that returns its argument, or raises."""

    fails = False

    def __call__(self, x: Any) -> Any:
        if self.fails:
            raise Mine("no")
        return x


def test_a_donating_call_that_fails() -> None:
    look = Look()

    def called_back(x: Any) -> Any:
        return hloom.pure_callback(look, hloom.ShapeDtypeStruct((8,), np.float32), x) + x

    f = hloom.jit(called_back, donate_argnums=0)
    make = hloom.jit(lambda: jnp.asarray(X))
    for _ in range(3):
        np.testing.assert_array_equal(f(make()), X + X)
    used = in_use()[0]
    look.fails = True
    for _ in range(50):
        x = make()
        with pytest.raises(Exception, match="no"):
            f(x)
        assert x.is_deleted()
        del x
    gc.collect()
    assert in_use()[0] <= used  # copies are NumPy's


def test_nothing_is_kept_or_lost_of_donated_arguments() -> None:
    f = hloom.jit(_stepped, donate_argnums=0)
    make = hloom.jit(lambda: {"a": jnp.asarray(X), "b": jnp.ones(200_000)})
    rate = jnp.float32(0.001)
    state: Any = make()
    for _ in range(10):
        state, _ = f(state, rate)
    watched = [None, rate, rate.aval, *(x.aval for x in state.values()), Array]
    gc.collect()
    counts, used = [*map(sys.getrefcount, watched)], in_use()[0]
    gc.disable()
    try:
        for k in range(1000):
            view = np.asarray(state["a"]) if k % 3 == 0 else None
            state, _ = f(state, rate)
            del view
        assert in_use()[0] <= used  # copies are NumPy's
        after = [*map(sys.getrefcount, watched)]
        assert max(abs(a - b) for a, b in zip(after, counts, strict=True)) < 100
    finally:
        gc.enable()


def test_threads_that_donate_the_same_array() -> None:
    f = hloom.jit(lambda x: x + 1, donate_argnums=0)
    make = hloom.jit(lambda: jnp.zeros(100_000))
    f(f(make()))
    wrong: list[Any] = []

    def work(shared: list[Any], taken: list[Any], gate: threading.Barrier) -> None:
        for x in shared:
            gate.wait()
            try:
                view = np.asarray(x) if len(taken) % 3 == 0 else None
                taken.append(f(x))
                if view is not None and view.any():
                    wrong.append("a view changed")
            except RuntimeError as error:
                if "deleted" not in str(error):
                    wrong.append(error)

    shared, results = [make() for _ in range(60)], [[], []]  # type: ignore[var-annotated]
    gate = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(shared, taken, gate)) for taken in results]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
    assert len(results[0]) + len(results[1]) == len(shared)  # each array goes to one of them
    assert all((np.asarray(x) == 1).all() for taken in results for x in taken)


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
    look = Look()

    f = hloom.jit(lambda x: hloom.pure_callback(look, hloom.ShapeDtypeStruct((8,), np.float32), x) + 1)
    for _ in range(2):
        np.testing.assert_array_equal(f(X), X + 1)
    assert is_known(f, X)
    look.fails = True
    errors = []
    for call in (f, f.__call__):
        with pytest.raises(Exception, match="no") as caught:
            call(X)
        assert {Path(entry.path) for entry in caught.traceback} == {Path(__file__)}
        errors.append((type(caught.value), str(caught.value), repr(caught.value.__cause__), len(caught.traceback)))
    assert errors[0] == errors[1]
    look.fails = False
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
            f._fast.call((*own, None), {})
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


class State(NamedTuple):
    mean: Any
    others: Any = ()


def _everything(*args: Any, **kwargs: Any) -> Any:
    return [k * leaf for k, leaf in enumerate(hloom.tree.leaves((args, kwargs)), 1)]


Y = X + 1
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "a name": ((), {"a": X}),
    "names": ((X,), {"b": Y, "a": X}),
    "a list": (([X, Y],), {}),
    "nested": (([(X, Y), [X, (Y, X)], Y],), {}),
    "empty containers": ((X, (), [], {}), {"a": {}}),
    "None": ((None, X, [None, Y]), {"n": None}),
    "dictionaries": (({"w": X, "b": {"z": Y, "a": X}},), {"more": {"k": [Y]}}),
    "keys of integers": (({2: X, 1: Y},), {}),
    "a key of two kinds": (({"": X, "\u20ac": Y},), {}),
    "named tuples": ((State(X, (Y, State(X))),), {}),
    "numbers": ((X, {"rate": 0.5, "steps": 3, "on": True}), {"scale": 2}),
    "scalars of NumPy": ((np.float32(2), [np.int32(-3), np.bool_(True)]), {"u": np.uint8(255), "c": np.complex64(1j)}),
    "many": ((X, [{"a": X, "b": (Y,) * 20}] * 3), {}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("as_arrays", [True, False], ids=["arrays", "NumPy"])
def test_calls_with_containers_and_names(name: str, as_arrays: bool) -> None:
    args, kwargs = CALLS[name]
    if as_arrays:
        args, kwargs = hloom.tree.map(lambda x: jnp.asarray(x) if type(x) is np.ndarray else x, (args, kwargs))
    f = hloom.jit(_everything)
    slow = f(*args, **kwargs)
    for _ in range(3):
        f(*args, **kwargs)
        for one, other in zip(called(f, *args, **kwargs), slow, strict=True):
            assert one.aval is other.aval
            np.testing.assert_array_equal(one, other)


def test_containers_that_no_site_has() -> None:
    f = hloom.jit(lambda tree, **more: hloom.tree.map(lambda x: x * 2, (tree, more)))
    f({"a": X, "b": [Y, (X,), None]}, c=Y)
    assert is_known(f, {"a": X, "b": [Y, (X,), None]}, c=Y)
    assert is_known(f, {"".join(["", "a"]): X, "b": [Y, (X,), None]}, c=Y)
    others: list[Any] = [
        {"b": [Y, (X,), None], "a": X}, {"a": X}, {"a": X, "c": [Y, (X,), None]}, {"a": X, "b": (Y, (X,), None)},
        {"a": X, "b": [Y, (X, X), None]}, {"a": X, "b": [Y, [X], None]}, {"a": X, "b": [Y, (X,), X]},
        {"a": X, "b": [Y, (X,)]}, {"a": X, 1: [Y, (X,), None]}, {"a": X, "b": [Y, None, (X,)]}, X, None, {}, [], (),
        {"a": X, "b": [Y, (X,), ()]}, {"a": X[:4], "b": [Y, (X,), None]}, {"a": "a", "b": [Y, (X,), None]},
        OrderedDict(a=X, b=[Y, (X,), None]), defaultdict(list, a=X, b=[Y, (X,), None]),
        {"a": X, "b": [Y, One(X), None]}, {"a": X, "b": Many([Y, (X,), None])}, {Text("a"): X, "b": [Y, (X,), None]},
    ]  # fmt: skip
    for other in others:
        assert not is_known(f, other, c=Y)
    for names in ({}, {"d": Y}, {"c": Y, "d": Y}, {"c": [Y]}, {"c": None}):
        assert not is_known(f, {"a": X, "b": [Y, (X,), None]}, **names)


class One(NamedTuple):
    one: Any


class Many(list[Any]):
    """No container of trees."""


class Text(str):
    """Equal to a text, and no text."""

    __slots__ = ()


def _not_asked(_: Any) -> Any:
    raise AssertionError


class Reversed(State):
    """A named tuple with methods of its own for its parts."""

    __iter__: Any = _not_asked
    __len__: Any = _not_asked
    __bool__: Any = _not_asked


def test_named_tuples_with_methods_of_their_own() -> None:
    f = hloom.jit(lambda t: t.mean * 2 + t.others)
    for _ in range(2):
        np.testing.assert_array_equal(f(Reversed(X, Y)), X * 2 + Y)
    np.testing.assert_array_equal(called(f, Reversed(X, Y)), X * 2 + Y)


def test_a_named_tuple_that_is_registered_later() -> None:
    class Late(NamedTuple):
        first: Any
        second: Any

    f = hloom.jit(lambda t: hloom.tree.leaves(t)[0])
    f(Late(X, Y))
    assert is_known(f, Late(X, Y))
    hloom.tree.register_pytree_node(Late, lambda t: ((t.second,), None), lambda _, parts: Late(None, *parts))
    for _ in range(3):
        np.testing.assert_array_equal(f(Late(X, Y)), Y)


def test_keys_by_another_order_and_by_other_objects() -> None:
    f = hloom.jit(lambda tree: tree["one"] - tree["two"])
    for _ in range(2):
        np.testing.assert_array_equal(f({"one": X, "two": Y}), X - Y)
        np.testing.assert_array_equal(f({"two": Y, "one": X}), X - Y)
    assert is_known(f, {"two": Y, "one": X})
    built = dict(zip(("-one-two"[1:4], "-one-two"[5:]), (X, Y), strict=True))
    np.testing.assert_array_equal(called(f, built), X - Y)


def test_results_with_sorted_keys_are_known_as_arguments() -> None:
    f = hloom.jit(lambda state: hloom.tree.map(lambda x: x + 1, state))
    state = {"w": jnp.asarray(X), "b": {"z": jnp.asarray(Y), "a": jnp.asarray(X)}}
    for _ in range(20):
        state = f(state)
    assert is_known(f, state)
    np.testing.assert_array_equal(state["b"]["z"], Y + 20)


def test_keys_with_an_equality_of_their_own_run_no_code() -> None:
    class Key:
        asked = 0

        def __hash__(self) -> int:
            return hash("a")

        def __eq__(self, other: object) -> bool:
            Key.asked += 1
            return True

    f = hloom.jit(lambda tree: tree)
    f({"a": X})
    evil = {Key(): X}
    Key.asked = 0
    assert not is_known(f, evil)
    assert Key.asked == 0


def test_static_arguments_keep_their_programs() -> None:
    f = hloom.jit(lambda x, n=1: x * n, static_argnames="n")
    for _ in range(3):
        np.testing.assert_array_equal(f(X), X)
        np.testing.assert_array_equal(f(X, n=2), X * 2)
        np.testing.assert_array_equal(f(X, n=3), X * 3)
        np.testing.assert_array_equal(f(X, 4), X * 4)
        np.testing.assert_array_equal(f(x=X, n=5), X * 5)
    assert is_known(f, X)
    assert is_known(f, X, 4)
    assert is_known(f, X, n=2)
    assert not is_known(f, X, n=4)
    assert not is_known(f, X, 2)
    assert not is_known(f, X, 4, n=2)


def test_static_arguments_of_equal_value_and_other_types() -> None:
    f = hloom.jit(lambda x, n: x * n, static_argnums=1)
    values = 1, 1.0, True, np.float32(1), 2, -1, 10**6
    for _ in range(3):
        for n in values:
            expected = (jnp.arange(3) * n).dtype
            assert f(jnp.arange(3), n).dtype == expected
            np.testing.assert_array_equal(f(jnp.arange(3), n), np.arange(3) * n)


class Setting:
    """Equal to others by a value that may change."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Setting) and self.value == other.value

    def __hash__(self) -> int:
        return self.value


class Model:
    """Equal to itself alone."""

    def __init__(self, scale: float) -> None:
        self.scale = scale

    @functools.partial(hloom.jit, static_argnums=0, static_argnames="mode")
    def __call__(self, x: Any, mode: str = "up") -> Any:
        return x * self.scale if mode == "up" else x / self.scale


def test_static_arguments_that_change() -> None:
    f = hloom.jit(lambda x, s: x * s.value, static_argnums=1)
    setting = Setting(2)
    for value in (2, 3, 4, 2, 3):
        setting.value = value
        np.testing.assert_array_equal(f(X, setting), X * value)
    assert not is_known(f, X, setting)
    assert not is_known(f, X, (setting, 1))


def test_methods_with_a_static_self() -> None:
    models = Model(2.0), Model(4.0)
    for _ in range(3):
        for model in models:
            np.testing.assert_array_equal(model(X), X * model.scale)
            np.testing.assert_array_equal(model(X, mode="down"), X / model.scale)
    for model in models:
        assert _frames(lambda: model(X)) == ["__get__"]  # noqa: B023
        assert _frames(lambda: model(X, mode="down")) == ["__get__"]  # noqa: B023


def test_static_containers_are_not_taken_apart() -> None:
    f = hloom.jit(lambda shape, x, options: x["a"].reshape(shape) * (2 if options else 1), static_argnums=(0, 2))
    shape = (2, 4)
    for _ in range(3):
        np.testing.assert_array_equal(f(shape, {"a": X}, None), X.reshape(2, 4))
        np.testing.assert_array_equal(f((4, 2), {"a": X}, "double"), X.reshape(4, 2) * 2)
    assert is_known(f, shape, {"a": X}, None)
    assert not is_known(f, (4, 2)[::-1], {"a": X}, None)  # another object: Python compares it


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_kept_or_lost_of_containers(name: str) -> None:
    args, kwargs = CALLS[name]
    f = hloom.jit(_everything)
    for _ in range(10):
        f(*args, **kwargs)
    leaves = hloom.tree.leaves((args, kwargs))
    watched = [*leaves, None, *(value for value in (*args, *kwargs.values()) if type(value) in (list, dict, State))]
    watched += [key for value in args if type(value) is dict for key in value]
    gc.collect()
    counts, used = [*map(sys.getrefcount, watched)], in_use()[0]
    for _ in range(300):
        f(*args, **kwargs)
        f._fast.call((*args, Y), kwargs)
        f._fast.call(args, {**kwargs, "unknown": Y})
    assert in_use()[0] == used
    after = [*map(sys.getrefcount, watched)]
    assert max(abs(a - b) for a, b in zip(after, counts, strict=True)) < 50


def test_a_list_that_changes_while_the_program_runs() -> None:
    given: list[Any] = []

    def look(x: Any) -> Any:
        given.clear()
        gc.collect()
        return x

    def f(tree: Any) -> Any:
        first = hloom.pure_callback(look, hloom.ShapeDtypeStruct((8,), np.float32), tree[0])
        return first + tree[1]

    jitted = hloom.jit(f)
    for k in range(5):
        given[:] = [np.full(8, k, np.float32), np.full(8, 10, np.float32)]
        np.testing.assert_array_equal(jitted(given), np.full(8, k + 10))
        assert given == []


def test_the_runner_in_machine_code_asks_python_where_needed() -> None:
    f = hloom.jit(lambda x: x + 1)
    f(X)
    (run,) = f._programs.runners.values()
    fresh = jnp.asarray(X)  # no buffer yet
    np.testing.assert_array_equal(run([fresh]), X + 1)
    fresh.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        run([fresh])


@pytest.mark.parametrize("as_list", [True, False])
def test_many_arguments_in_a_thread_with_a_small_stack(as_list: bool) -> None:
    """The addresses of arguments are on the stack of machine code: more of them are left to Python."""
    given = [jnp.ones(())] * 20_000
    f = hloom.jit((lambda values: values[0] + values[-1]) if as_list else lambda *values: values[0] + values[-1])
    results: list[float] = []

    def work() -> None:
        results.extend(float(f(given) if as_list else f(*given)) for _ in range(3))

    f(given) if as_list else f(*given)  # which traces and compiles, and may need more of the stack
    before = threading.stack_size(256 << 10)
    try:
        thread = threading.Thread(target=work)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results == [2.0, 2.0, 2.0]


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


def test_each_thread_has_its_own_settings() -> None:
    f = hloom.jit(lambda x: x * 2)
    x = np.ones(3)
    found: list[tuple[bool | None, Any]] = []

    def work(x64: bool | None) -> None:
        if x64 is None:  # those of the process
            found.append((x64, f(x).dtype))
            return
        with hloom.enable_x64(x64):
            found.append((x64, f(x).dtype))

    for k in range(30):  # one after the other: a thread may get the memory that the one before had
        thread = threading.Thread(target=work, args=((None, True, False)[k % 3],))
        thread.start()
        thread.join()
        assert f(x).dtype == np.float32
    assert {*found} == {(None, np.dtype("f4")), (False, np.dtype("f4")), (True, np.dtype("f8"))}


def test_another_class_of_thread_locals() -> None:
    """As after gevent's patches: one thread has several sets of attributes."""
    code = """
import threading, _threading_local
threading.local = _threading_local.local
import hloom, hloom.numpy as jnp, numpy as np
f = hloom.jit(lambda x: x * 2)
for _ in range(3):
    assert f(np.ones(3)).dtype == np.float32
    with hloom.enable_x64(True):
        assert f(np.ones(3)).dtype == np.float64
print(f._fast.call)
"""
    assert python(code).strip() == "None"


def test_memory_of_dead_results_goes_back_without_python() -> None:
    f = hloom.jit(lambda x: x + 1)
    results = [f(X) for _ in range(3)]
    addresses = [r._buffer.address for r in results]
    free = results[0]._buffer._free
    assert _frames(lambda: results.clear()) == []
    assert sorted(free[-3:]) == sorted(addresses)
    used = in_use()[0]
    held = [f(X) for _ in range(5000)]
    assert len({r._buffer.address for r in held}) == 5000
    addresses = [r._buffer.address for r in held]
    held.clear()  # more than the bin has room for, so some of it is left to Python
    assert in_use()[0] == used
    assert {*addresses} <= {*free}
    assert len(free) == len({*free})
    addresses.clear()
    (usual,) = {sys.getrefcount(number) for number in [10**15 + k for k in range(3)]}
    counts = [sys.getrefcount(address) for address in free]
    assert max(counts) <= usual + 1  # each slab keeps its first address
    assert counts.count(usual) >= 0.99 * len(counts)


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


def test_waiting_in_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays in memory of this process are ready; all else, and all mistakes, are Python's."""
    f = hloom.jit(lambda x: x + 1)
    for _ in range(3):
        result = f(X)
    wait = hloom.block_until_ready
    calls: list[Any] = []
    kind = vars(type(wait))["__call__"]

    def noted(*args: Any, **kwargs: Any) -> Any:
        calls.append(args)
        return kind.__func__(*args, **kwargs)

    code = word_at(id(type(wait)) + CALL_OFFSET)
    monkeypatch.setattr(type(wait), "__call__", staticmethod(noted))  # this undoes `take_waits`
    ctypes.c_size_t.from_address(id(type(wait)) + CALL_OFFSET).value = code
    counts = sys.getrefcount(result)
    kept = [wait(result) for _ in range(5)]
    assert all(found is result for found in kept) and not calls
    assert sys.getrefcount(result) == counts + 5
    absent = jnp.asarray(X)
    assert wait(absent) is absent and wait(x=result) is result and wait({"a": result})["a"] is result and wait(3) == 3
    assert len(calls) == 4
    for args, kwargs in (((), {}), ((result, result), {}), ((), {"y": result})):
        with pytest.raises(TypeError, match="block_until_ready"):
            wait(*args, **kwargs)
    result.delete()
    with pytest.raises(DeletedArrayError):
        wait(result)
    monkeypatch.undo()
    ctypes.c_size_t.from_address(id(type(wait)) + CALL_OFFSET).value = code


def test_the_function_is_as_others_are() -> None:
    wait = hloom.block_until_ready
    assert (wait.__name__, wait.__module__) == ("block_until_ready", "hloom")
    assert list(inspect.signature(wait).parameters) == ["x"]
    assert pickle.loads(pickle.dumps(wait)) is wait is copy.deepcopy(wait)
