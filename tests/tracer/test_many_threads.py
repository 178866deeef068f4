"""Caches, dispatch and the store under many threads at once: with the GIL, and without one on free-threaded Python."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hloom.hlo.support.snapshots import snapshot
from hloom.numba_backend.runtime.kernel import KernelSource
from hloom.numba_backend.runtime.store import KernelStore
from hloom.tracer.aval import ShapedArray
from hloom.tracer.caches import BoundedCache

import hloom
import hloom.numpy as jnp
from support.runtime_kernels import F32, python

THREADS = 8


@pytest.fixture(autouse=True)
def switched_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    yield
    sys.setswitchinterval(before)


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """The results of `work(n)`, each in a thread of its own, which begin together."""
    start, results, errors = threading.Barrier(THREADS), [None] * THREADS, []

    def run(n: int) -> None:
        start.wait()
        try:
            results[n] = work(n)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    if errors:
        raise errors[0]
    return results


def test_the_first_calls_of_a_function() -> None:
    for turn in range(2):
        f = hloom.jit(lambda x, y, n=2: jnp.dot(x, y) * n + turn, static_argnames="n")  # noqa: B023
        x = np.arange(12, dtype=np.float32).reshape(3, 4)
        found = at_once(lambda n: f(x, x.T, n=n % 3))  # noqa: B023
        for n, result in enumerate(found):
            np.testing.assert_array_equal(result, x @ x.T * (n % 3) + turn)


@pytest.mark.slow
def test_programs_with_temporary_memory_run_beside_themselves() -> None:
    f = hloom.jit(lambda x: jnp.linalg.norm((x @ x.T) @ (x + 1), axis=0) + jnp.sort(x, 0)[0])
    given = [np.random.default_rng(n).standard_normal((40, 40)).astype(np.float32) for n in range(THREADS)]
    expected = [np.asarray(f(x)) for x in given]

    def work(n: int) -> None:
        for _ in range(20):
            np.testing.assert_array_equal(f(given[n]), expected[n])

    at_once(work)


@pytest.mark.slow
def test_calls_while_caches_are_cleared() -> None:
    functions = [hloom.jit(lambda x, k=k: jnp.cumsum(x * k)[-1]) for k in range(3)]
    eager = np.arange(5, dtype=np.float32)

    def work(n: int) -> None:
        for turn in range(4):
            if n == 0:
                hloom.clear_caches()
            k = (n + turn) % 3
            assert functions[k](eager) == 10 * k and jnp.sum(jnp.asarray(eager) + k) == 10 + 5 * k
            assert hloom.grad(functions[k])(2 * eager).tolist() == [k] * 5

    at_once(work)


def test_a_weak_set_is_read_while_others_add_to_it() -> None:
    first = [BoundedCache[int]() for _ in range(5000)]  # a reading lasts longer than a thread's turn
    found: weakref.WeakSet[Any] = weakref.WeakSet(first)

    def work(n: int) -> list[Any]:
        if n == 0:
            return [len(snapshot(found)) for _ in range(10)]
        made = [BoundedCache[int]() for _ in range(1000)]
        for each in made:
            found.add(each)
        return made

    lengths, *made = at_once(work)
    assert lengths == sorted(lengths) and lengths[0] >= 5000
    assert len(snapshot(found)) == 5000 + sum(map(len, made))


def test_types_are_the_same_object() -> None:
    for turn in range(10):
        found = at_once(lambda n: ShapedArray((3, 1000 + turn), np.dtype(np.float32)))  # noqa: B023
        assert len({*map(id, found)}) == 1


def test_a_full_cache() -> None:
    dropped: list[int] = []
    cache: BoundedCache[int] = BoundedCache(16, lambda: dropped.append(1))

    def work(n: int) -> None:
        for k in range(300):
            cache[n, k] = k
            assert cache.get((n, k)) in (k, None)
            assert all(isinstance(key, tuple) for key in cache.keys()) and len(cache.values()) < 100  # noqa: SIM118
            if k % 100 == 0:
                cache.clear()

    at_once(work)
    assert dropped and len(cache) <= 16 + THREADS


def test_a_store_of_kernels(tmp_path: Path) -> None:
    """Two stores on one folder, as of two processes; each compiles or loads a kernel once."""
    stores = [KernelStore(tmp_path) for _ in range(2)]
    text = "def k(lo, hi, x):\n    for i in range(lo, hi):\n        x[i] = {}\n"
    sources = [KernelSource("k", text.format(i), (F32,)) for i in range(3)]
    found = at_once(lambda n: (n % 2, tuple(stores[n % 2].get_many(sources))))
    assert len({*found}) == 2
    assert all(s.statistics.compiled + s.statistics.loaded_from_disk == 3 for s in stores)


MADE_ONCE = """
import threading, time
from hloom.numba_backend.runtime import call, callbacks, store

def slow(function):
    def wait(*arguments):
        time.sleep(0.1)
        return function(*arguments)
    return wait

# The steps on the way are slow, so that all threads take them at the same time.
store.default_folder = slow(store.default_folder)
call.ctypes.cast = slow(call.ctypes.cast)
made = [store.default_store, call._api, call._definition, callbacks.callback_api]
start, found = threading.Barrier(8), []

def work():
    start.wait()
    found.append([make() for make in made])

threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*[len({id(each[k]) for each in found}) for k in range(len(made))], len(found))
"""


def test_what_programs_have_the_address_of_is_made_once() -> None:
    """A process crashed whose threads called their first programs at the same time: the program of one had the address
    of a definition of which another thread's took the place."""
    assert python(MADE_ONCE).split() == ["1", "1", "1", "1", "8"]
