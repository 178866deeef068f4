"""Donation: an array that is given to a call is gone before the call begins, for every thread at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hloom.hlo import Opcode, Shape
from hloom.hlo.element_type import ElementType
from hloom.hlo.ops.custom_call import CustomCallAttributes
from hloom.tracer.core import bind

import hloom
import hloom.numpy as jnp
from hloom.errors import CustomCallError, DeletedArrayError

X = np.arange(5, dtype=np.float32)
THREADS = 8
BACKENDS = ("numba", "evaluator")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", request.param)
    yield request.param
    hloom.config.update("hloom_backend", before)


@pytest.fixture
def fails() -> Iterator[Callable[[Any], Any]]:
    """An operation that raises while the program runs."""

    def target(x: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    hloom.register_custom_call("fails", target)
    shape = Shape.array(ElementType.F32, (5,))
    yield lambda x: bind(Opcode.CUSTOM_CALL, [x], CustomCallAttributes("fails"), shape=shape)
    hloom.unregister_custom_call("fails")


def test_a_call_that_raises_has_taken_its_argument(backend: str, fails: Callable[[Any], Any]) -> None:
    f = hloom.jit(lambda s, t: (fails(s * 2 + 1), t), donate_argnums=0)
    s, t = jnp.asarray(X) + 0, jnp.asarray(X)
    with pytest.raises(CustomCallError, match="on purpose"):
        f(s, t)
    assert s.is_deleted()
    assert not t.is_deleted()
    with pytest.raises(DeletedArrayError, match="Array has been deleted"):
        np.asarray(s)


def test_a_donation_without_use_is_said_once() -> None:
    f = hloom.jit(lambda x, y, z: x.sum() + y.sum(), donate_argnums=(0, 1, 2))
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: float32\[2\], int32\[2\]\. No result"):
        f(jnp.ones(2), jnp.ones(2, int), jnp.ones(3))  # JAX says nothing of an argument that is not read either
    f(jnp.ones(2), jnp.ones(2, int), jnp.ones(3))
    hloom.jit(lambda x: x + 1, donate_argnums=0)(jnp.ones(2))


def test_a_call_that_cannot_begin_takes_nothing() -> None:
    f = hloom.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))
    a, b = jnp.asarray(X), jnp.asarray(X)
    f(jnp.asarray(X), jnp.asarray(X))
    b.delete()
    with pytest.raises(DeletedArrayError, match="Array has been deleted"):
        f(a, b)
    assert not a.is_deleted()


KEPT: dict[str, Callable[[Any], Any]] = {
    "NumPy's view": np.asarray,
    "a part of it": lambda s: np.asarray(s)[1:],
    "a DLPack view": np.from_dlpack,
    "another type": lambda s: s.with_aval(s.aval),
    "a shallow copy": lambda s: s.__copy__(),
    "a reshaped view": lambda s: s.reshape(5, 1),
    "a slice": lambda s: s[1:4],
    "an array of views": lambda s: list(s),
    "a memoryview": lambda s: memoryview(np.asarray(s)),
    "an iterator": lambda s: iter(np.asarray(s)),
    "bits": lambda s: s.view(np.int32),
}


@pytest.mark.parametrize("start", [lambda: jnp.asarray(X) * 1, lambda: hloom.jit(lambda x: x * 1)(X)])
@pytest.mark.parametrize("name", KEPT)
def test_what_still_reads_the_memory_keeps_its_values(start: Callable[[], Any], name: str, backend: str) -> None:
    f = hloom.jit(lambda s: s * -3 - 1, donate_argnums=0)
    s = start()
    kept = KEPT[name](s)
    before = hloom.tree.map(np.array, list(kept) if "iterator" not in name else 0)
    result = f(s)
    assert s.is_deleted()
    np.testing.assert_array_equal(np.asarray(result), X * -3 - 1)
    if "iterator" in name:
        assert list(kept) == X.tolist()
        return
    for now, then in zip(kept, before, strict=True):
        np.testing.assert_array_equal(np.asarray(now), then)


def test_keys_are_given_without_a_copy() -> None:
    hloom.config.update("hloom_backend", "numba")
    f = hloom.jit(lambda k: hloom.random.wrap_key_data(hloom.random.key_data(k) + 1), donate_argnums=0)
    keys = f(hloom.random.split(hloom.random.key(0), 4))
    address = keys.addressable_data_pointer
    after = f(keys)
    assert keys.is_deleted()
    assert after.addressable_data_pointer == address
    words = hloom.random.key_data(after)
    before = np.array(words)
    np.testing.assert_array_equal(np.asarray(hloom.random.key_data(f(after))), before + 1)
    np.testing.assert_array_equal(np.asarray(words), before)


def test_one_array_twice() -> None:
    f = hloom.jit(lambda a, b: (a + 1, b * 2), donate_argnums=(0, 1))
    g = hloom.jit(lambda a, b: (a + 1, b * 2), donate_argnums=0)
    for call in (f, g):
        x = jnp.asarray(X) + 0
        a, b = call(x, x)
        assert x.is_deleted()
        np.testing.assert_array_equal(np.asarray(a), X + 1)
        np.testing.assert_array_equal(np.asarray(b), X * 2)


def _together(count: int, work: Callable[[int], None]) -> None:
    """Run `work` in threads that begin at the same time."""
    barrier = threading.Barrier(count)

    def run(k: int) -> None:
        barrier.wait()
        work(k)

    threads = [threading.Thread(target=run, args=(k,)) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_one_of_many_donors_gets_the_array() -> None:
    """The others get the error of a deleted array; no result mixes the work of two."""
    n = 20_000
    f = hloom.jit(lambda s: hloom.lax.fori_loop(0, 100, lambda i, c: c + 1, s), donate_argnums=0)
    f(jnp.zeros(n) + 1)
    for _ in range(10):
        s = jnp.zeros(n) + 1
        results: list[Any] = []
        errors: list[Exception] = []

        def donate(k: int, s: Any = s, results: Any = results, errors: Any = errors) -> None:
            try:
                results.append(f(s))
            except DeletedArrayError as error:
                errors.append(error)

        _together(THREADS, donate)
        assert (len(results), len(errors)) == (1, THREADS - 1)
        np.testing.assert_array_equal(np.asarray(results[0]), np.full(n, 101))


READERS: dict[str, Callable[[Any], Any]] = {
    "NumPy": lambda s: np.array(np.asarray(s)),
    "eager": lambda s: np.asarray(s * 1),
    "compiled": lambda s: np.asarray(_read(s)),
    "a view": lambda s: np.asarray(s.reshape(-1)),
    "DLPack": lambda s: np.array(np.from_dlpack(s)),
}
_read = hloom.jit(lambda s: s * 1)


@pytest.mark.parametrize("name", READERS)
def test_no_reader_sees_torn_data(name: str) -> None:
    """A reader gets the values from before the call, or the error."""
    n = 20_000
    f = hloom.jit(lambda s: hloom.lax.fori_loop(0, 100, lambda i, c: c + 1, s), donate_argnums=0)
    f(jnp.zeros(n) + 1)
    READERS[name](jnp.zeros(n))
    wrong: list[Any] = []
    for _ in range(10):
        s = hloom.jit(lambda x: x + 1)(jnp.zeros(n))

        def read(s: Any = s) -> None:
            for _ in range(1000):
                try:
                    found = READERS[name](s)
                except DeletedArrayError:
                    return
                if not (found == 1).all():
                    wrong.append(found)

        def work(k: int, s: Any = s, read: Any = read) -> None:
            if k == 0 and not (np.asarray(f(s)) == 101).all():
                wrong.append(s)
            elif k:
                read()

        _together(4, work)
        assert s.is_deleted()
        assert not wrong
