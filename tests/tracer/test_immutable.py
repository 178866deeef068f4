"""Arrays are immutable: nothing that NumPy or another library is handed lets it write to their memory."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp

X = np.arange(6, dtype=np.float32).reshape(2, 3)
compiled = hloom.jit(lambda x: x + x)

ARRAYS: dict[str, Callable[[], Any]] = {
    "from NumPy": lambda: jnp.asarray(X),
    "eager": lambda: jnp.asarray(X) + 1,
    "compiled": lambda: compiled(X),
    "compiled, donated": lambda: hloom.jit(lambda x: x + 1, donate_argnums=0)(compiled(X)),
    "a scalar": lambda: jnp.asarray(2.5) * 2,
    "a compiled scalar": lambda: compiled(1.0),
    "a Python number": lambda: jnp.asarray(2),
    "transposed": lambda: (jnp.asarray(X) + 1).T,
    "a slice": lambda: jnp.arange(10.0)[2:8:2],
    "a row of many": lambda: jnp.ones((200, 200))[3],
    "bool": lambda: jnp.asarray(X) > 2,
    "complex64": lambda: jnp.asarray(X) * 1j,
    "bfloat16": lambda: jnp.ones((2, 3), "bfloat16") + 1,
    "bfloat16, transposed": lambda: (jnp.ones((2, 3), "bfloat16") + 1).T,
    "bfloat16, compiled": lambda: compiled(jnp.ones((2, 3), "bfloat16")),
    "int4": lambda: jnp.ones((2, 3), "int4") + 1,
    "int4, compiled": lambda: compiled(jnp.ones((2, 3), "int4")),
    "float8": lambda: jnp.ones(3, "float8_e4m3fn"),
    **{
        f"{name}, transposed": lambda name=name: (jnp.ones((2, 3), name) + 1).T
        for name in ("float8_e5m2", "float8_e4m3fn", "float4_e2m1fn", "int4", "uint2")
    },
    "words of keys": lambda: hloom.random.key_data(hloom.random.split(hloom.random.key(1))),
    "of a program on the evaluator": lambda: _on_evaluator(),
    "unpickled": lambda: copy.deepcopy(jnp.asarray(X) + 1),
    "from a DLPack capsule": lambda: jnp.from_dlpack(np.array(X)),
    "of a loop": lambda: hloom.lax.fori_loop(0, 3, lambda i, c: c + i, jnp.asarray(X)),
    "converted in a call": lambda: compiled(np.arange(3)),
}


def _on_evaluator() -> Any:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", "evaluator")
    try:
        return hloom.jit(lambda x: x * 2)(X)
    finally:
        hloom.config.update("hloom_backend", before)


@pytest.mark.parametrize("name", ARRAYS)
def test_numpy_cannot_unlock_an_array(name: str) -> None:
    x = ARRAYS[name]()
    array: Any = np.asarray(x)
    assert np.asarray(x) is array, "a second conversion makes no new array"
    assert (array.shape, array.dtype) == (x.shape, x.dtype)
    for view in (array, array.view(), array[...], array.reshape(-1)[:1], array.T):
        if np.may_share_memory(view, array):
            _is_locked(view)
    base = array.base
    while isinstance(base, np.ndarray):
        _is_locked(base)
        base = base.base
    if array.dtype.isbuiltin == 1:
        assert memoryview(array).readonly
    again = np.array(x)
    again[...] = 0  # a copy is the caller's own


def _is_locked(view: Any) -> None:
    assert not view.flags.writeable
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.setflags(write=True)
    with pytest.raises(ValueError, match="WRITEABLE"):
        view.flags.writeable = True


@pytest.mark.parametrize("make", [lambda: jnp.asarray(X) + 1, lambda: compiled(X)])
def test_conversion_copies_nothing(make: Callable[[], Any]) -> None:
    x = make()
    assert np.asarray(x).__array_interface__["data"][0] == x.addressable_data_pointer


@pytest.mark.parametrize("make", [lambda: jnp.asarray(X) + 1, lambda: compiled(X), lambda: (jnp.asarray(X) + 1).T])
def test_dlpack_is_read_only(make: Callable[[], Any]) -> None:
    x = make()
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, np.asarray(x))
    _is_locked(there)
    back = jnp.from_dlpack(x)
    assert back.addressable_data_pointer == jnp.from_dlpack(there).addressable_data_pointer
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))


class _OldConsumer:
    """Asks as libraries did before DLPack 1.0, which cannot say that memory is read-only."""

    def __init__(self, x: Any) -> None:
        self.x = x

    def __dlpack__(self, **options: Any) -> Any:
        return self.x.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.x.__dlpack_device__()


def test_old_dlpack_gets_a_copy() -> None:
    x = jnp.asarray(X) + 1
    there = np.from_dlpack(_OldConsumer(x))
    np.testing.assert_array_equal(there, X + 1)
    assert not np.shares_memory(there, np.asarray(x))
    with pytest.raises(BufferError, match=r"max_version=\(1, 0\)"):
        x.__dlpack__(copy=False)


def test_memory_given_to_numpy_survives_its_array() -> None:
    views = [np.asarray(compiled(np.full(5, k, np.float32))) for k in range(50)]
    for k, view in enumerate(views):
        np.testing.assert_array_equal(view, np.full(5, 2 * k))


def test_bytes_of_small_floats() -> None:
    x = jnp.asarray([1.0, 2.5], "bfloat16") + 0
    np.testing.assert_array_equal(np.asarray(x), np.array([1.0, 2.5], ml_dtypes.bfloat16))
