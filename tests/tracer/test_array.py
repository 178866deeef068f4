"""hloom.Array: immutability, conversions to and from Python, NumPy and DLPack, printing, lifetime."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo.host_buffers import HostBuffer
from hloom.tracer.arrays.array import Array

import hloom
import hloom.numpy as jnp
from hloom.errors import DeletedArrayError, OperandError, UnsupportedElementTypeError, UnsupportedError
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_type() -> None:
    x = jnp.asarray(X)
    assert isinstance(x, hloom.Array)
    assert (x.shape, x.dtype, x.ndim, x.size, x.itemsize, x.nbytes, len(x)) == ((2, 3), np.float32, 2, 6, 4, 24, 2)
    assert not x.weak_type
    assert jnp.asarray(1).weak_type
    assert hloom.eval_shape(lambda v: isinstance(v, hloom.Array) * 1, x).shape == ()


def test_immutable() -> None:
    x = jnp.asarray(X)
    with pytest.raises(TypeError, match=r"x\.at\[i\]\.set\(y\)"):
        x[0] = 1
    view = np.asarray(x)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 1
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_numpy_data_is_copied() -> None:
    data = X.copy()
    x, y = jnp.asarray(data), jnp.array(data)
    total = jnp.add(data, 0)
    data[:] = -1
    for kept in (x, y, total):
        np.testing.assert_array_equal(np.asarray(kept), X)


def test_to_numpy() -> None:
    x = jnp.asarray(X)
    assert np.asarray(x).dtype == np.float32
    assert np.asarray(x, np.float64).dtype == np.float64
    assert np.array(x, copy=True).flags.writeable
    assert np.asarray(x).base is not None or not np.asarray(x).flags.writeable
    with pytest.raises(ValueError, match="without a copy"):
        x.__array__(np.float64, copy=False)


def test_numpy_operators_defer() -> None:
    x = jnp.asarray(X)
    for result in (X + x, x + X, np.float32(1) + x, X @ x.T, x == X):
        assert isinstance(result, hloom.Array)
    np.testing.assert_array_equal(np.asarray(X - x), np.zeros((2, 3)))


def test_to_python() -> None:
    assert float(jnp.asarray(1.5)) == 1.5
    assert int(jnp.asarray(3)) == 3
    assert complex(jnp.asarray(1 + 2j)) == 1 + 2j
    assert bool(jnp.asarray([True]))
    assert jnp.asarray([7]).item() == 7
    assert jnp.asarray(X).item(4) == 4.0
    assert jnp.asarray(X).tolist() == X.tolist()
    assert [10, 20, 30][jnp.asarray(1)] == 20
    assert list(range(jnp.asarray(3))) == [0, 1, 2]
    assert f"{jnp.asarray(1.25):.1f}" == "1.2"
    assert f"{jnp.asarray([1, 2])}" == "[1 2]"
    assert round(jnp.asarray(2.567), 2) == jnp.asarray(2.57)
    assert jnp.asarray(X).tobytes() == X.tobytes()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: float(jnp.ones(2)), TypeError, "Only scalar arrays"),
        (lambda: bool(jnp.ones(2)), ValueError, "ambiguous"),
        (lambda: bool(jnp.ones(0)), ValueError, "empty"),
        (lambda: [1, 2][jnp.asarray(1.0)], TypeError, "integer"),
        (lambda: [1, 2][jnp.asarray([1])], TypeError, "Only integer scalar arrays"),
        (lambda: len(jnp.asarray(1)), TypeError, "unsized"),
        (lambda: list(jnp.asarray(1)), TypeError, "iteration"),
        (lambda: jnp.ones(2) + [1, 2], TypeError, "unsupported operand"),
        (lambda: jnp.ones(2) == [1, 1], TypeError, "unsupported operand type.* for ==: .Array. and .list."),
        (lambda: jnp.ones(2) != (1, 1), TypeError, "unsupported operand type.* for !=: .Array. and .tuple."),
        (lambda: jnp.add(jnp.ones(2), [1, 2]), OperandError, "list at position 1"),
        (lambda: jnp.asarray("text"), UnsupportedElementTypeError, "'text' of type str"),
        (lambda: jnp.asarray(None), OperandError, "None is not a valid value"),
        (lambda: jnp.asarray([1, [2, 3]]), ValueError, "inhomogeneous"),
        (lambda: jnp.asarray(np.array(["a"])), UnsupportedElementTypeError, "not a valid array"),
        (lambda: jnp.asarray(2**40), OverflowError, "too large|out of bounds"),
        (lambda: jnp.ones(2).no_such_attribute, AttributeError, "no_such_attribute"),
        (lambda: jnp.arange(3)[1.5], TypeError, "integer"),
        (lambda: jnp.arange(3)["a"], TypeError, "string"),
        (lambda: jnp.arange(3)[0, 0], IndexError, "Too many indices"),
        (lambda: jnp.arange(3)[..., ...], IndexError, "one Ellipsis"),
        (lambda: jnp.arange(3)[[0, 1]], TypeError, "non-tuple sequence"),
        (lambda: jnp.zeros((0, 2))[0], IndexError, "size 0"),
        (lambda: jnp.zeros(-1), ValueError, "negative"),
        (lambda: jnp.zeros(1.5), TypeError, "Shapes must be 1D sequences"),
    ],
)
def test_errors(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


REPRS = [
    (lambda xp: xp.asarray(1.5), "Array(1.5, dtype=float32, weak_type=True)"),
    (lambda xp: xp.ones((2, 2)), "Array([[1., 1.],\n       [1., 1.]], dtype=float32)"),
    (lambda xp: xp.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
    (lambda xp: xp.arange(3), "Array([0, 1, 2], dtype=int32)"),
    (lambda xp: xp.asarray([True]), "Array([ True], dtype=bool)"),
    (lambda xp: xp.ones(2, "bfloat16"), "Array([1, 1], dtype=bfloat16)"),
    (lambda xp: xp.arange(19.0) * 1.37, None),
    (lambda xp: xp.arange(5000), None),
    (lambda xp: xp.asarray(1 + 2j), None),
]


@pytest.mark.parametrize(("make", "text"), REPRS)
def test_repr(make: Any, text: str | None) -> None:
    found = repr(make(jnp))
    if text is not None:
        assert found == text
    jax = pytest.importorskip("jax")
    assert found == repr(make(jax.numpy))
    assert str(make(jnp)) == str(make(jax.numpy))


def test_pickle_and_copy() -> None:
    for x in (jnp.asarray(X), jnp.asarray(2), jnp.ones(2, "bfloat16")):
        for other in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x), x.copy()):
            assert isinstance(other, hloom.Array)
            assert (other.dtype, other.shape, other.weak_type) == (x.dtype, x.shape, x.weak_type)
            np.testing.assert_array_equal(np.asarray(other), np.asarray(x))
            assert other is not x


@pytest.mark.parametrize("old", [False, True], ids=["1.0", "before 1.0"])
def test_dlpack_of_bfloat16(old: bool) -> None:
    x = jnp.asarray(X).astype("bfloat16")

    class Other:
        def __dlpack__(self, **options: Any) -> Any:
            return x.__dlpack__() if old else x.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    back = jnp.from_dlpack(Other())
    assert back.dtype == jnp.bfloat16 and hloom.dlpack.is_supported_dtype(jnp.bfloat16)
    np.testing.assert_array_equal(np.asarray(back), np.asarray(x))
    assert old != (back.addressable_data_pointer == x.addressable_data_pointer)
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(np.asarray(jax.numpy.from_dlpack(x)), np.asarray(x))
    there = jax.numpy.asarray(X, "bfloat16")
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(there)), np.asarray(there))


def test_dlpack() -> None:
    x = jnp.asarray(X)
    there = np.from_dlpack(x)
    np.testing.assert_array_equal(there, X)
    assert there.__array_interface__["data"][0] == x.addressable_data_pointer
    back = jnp.from_dlpack(x)
    np.testing.assert_array_equal(np.asarray(back), X)
    assert back.addressable_data_pointer == x.addressable_data_pointer
    assert jnp.from_dlpack(x, copy=True).addressable_data_pointer != x.addressable_data_pointer
    assert x.__dlpack_device__() == (1, 0)
    jax = pytest.importorskip("jax")
    np.testing.assert_array_equal(np.asarray(jax.numpy.from_dlpack(x)), X)
    np.testing.assert_array_equal(np.asarray(jnp.from_dlpack(jax.numpy.asarray(X))), X)


def test_views_of_bits() -> None:
    x = jnp.asarray(X)
    np.testing.assert_array_equal(np.asarray(x.view(np.int32)), X.view(np.int32))
    np.testing.assert_array_equal(np.asarray(x.view(np.uint8)), X.view(np.uint8))
    y = jnp.arange(8, dtype=np.uint8)
    np.testing.assert_array_equal(np.asarray(y.view(np.uint32)), np.arange(8, dtype=np.uint8).view(np.uint32))
    assert x.view() is x


def test_iteration_and_membership() -> None:
    x = jnp.asarray(X)
    rows = list(x)
    assert len(rows) == 2
    np.testing.assert_array_equal(np.asarray(rows[1]), X[1])
    np.testing.assert_array_equal(np.asarray(next(iter(reversed(x)))), X[1])
    assert 4.0 in x.ravel()
    assert 9.0 not in x.ravel()
    with pytest.raises(ValueError, match="one-dimensional"):
        assert 4.0 in x
    a, b = x
    np.testing.assert_array_equal(np.asarray(a + b), X.sum(0))


def test_delete() -> None:
    x = jnp.asarray(X)
    kept = np.asarray(x)
    assert not x.is_deleted()
    x.delete()
    x.delete()
    assert x.is_deleted()
    assert x.shape == (2, 3)
    for use in (lambda: repr(x), lambda: str(x), lambda: f"{x}"):
        with pytest.raises(DeletedArrayError, match=r"deleted with shape=float32\[2,3\]"):
            use()
    for use in (lambda: x + 1, lambda: np.asarray(x), lambda: x[0], lambda: hloom.jit(lambda v: v)(x), x.tolist):
        with pytest.raises(DeletedArrayError, match=r"deleted with shape=float32\[2,3\]"):
            use()
    np.testing.assert_array_equal(kept, X)


def test_contents_from_values() -> None:
    a = jnp.ones(2)
    mixed = jnp.asarray([[a, a * 2], [3 * a, a]])
    assert mixed.shape == (2, 2, 2)
    assert jnp.asarray([jnp.asarray(1), 2.5]).dtype == np.float32
    assert hloom.jit(lambda x: jnp.array([x, x + 1, 0]))(2.0).tolist() == [2, 3, 0]
    assert jnp.asarray(a) is a
    assert jnp.array(a) is not a
    assert jnp.asarray(np.ones(2), "int8").dtype == np.int8
    assert jnp.asarray([1.5, 2.5], np.int32).tolist() == [1, 2]


def test_bfloat16() -> None:
    x = jnp.asarray([1.0, 2.5], "bfloat16")
    assert (x + 1).dtype == ml_dtypes.bfloat16
    assert (x * jnp.ones(2)).dtype == np.float32
    assert float(x.sum()) == 3.5
    assert (x @ x).dtype == ml_dtypes.bfloat16


def test_device_functions() -> None:
    x = jnp.asarray(X)
    assert hloom.block_until_ready({"a": x})["a"] is x
    assert x.block_until_ready() is x
    assert isinstance(hloom.device_put({"a": X})["a"], hloom.Array)
    assert isinstance(hloom.device_get([x])[0], np.ndarray)
    assert x.devices() == {hloom.devices()[0]}


class _Waited(HostBuffer):
    """A buffer that counts how often it is waited for."""

    __slots__ = ("waits",)

    def block_until_ready(self) -> None:
        self.waits = getattr(self, "waits", 0) + 1


def test_memory_of_the_process_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    x = hloom.jit(jnp.negative)(X)
    assert hloom.block_until_ready(x) is hloom.block_until_ready([x])[0]  # now the class of its buffer is known
    monkeypatch.delattr(Array, "block_until_ready")
    for several in (x, (x, x), [x, (x,)], ()):
        assert hloom.block_until_ready(several) is several
    with pytest.raises(AttributeError):
        hloom.block_until_ready({"a": x})  # other containers are taken apart
    monkeypatch.undo()
    without = jnp.asarray(X)
    assert hloom.block_until_ready(without) is without
    without.delete()
    with pytest.raises(DeletedArrayError):
        hloom.block_until_ready(without)


def test_each_buffer_of_a_device_is_waited_for() -> None:
    x = jnp.asarray(X)
    x._buffer = buffer = _Waited(X, x.aval.hlo)
    for wait in (hloom.block_until_ready, hloom.block_until_ready, Array.block_until_ready):
        assert wait(x) is x
    assert buffer.waits == 3
    y = hloom.jit(jnp.negative)(X)
    for several in ((y, x), [y, (y, x)], (x, None)):
        assert hloom.block_until_ready(several) is several
    assert buffer.waits == 6


def test_beyond_the_range() -> None:
    assert float(jnp.asarray(1e300)) == float("inf")
    assert float(jnp.asarray(1.0, "float16") * 1e30) == float("inf")
    assert (jnp.asarray(3, "uint8") + 300).tolist() == 47


def test_types_take_and_say_how_values_vary() -> None:
    varies = hloom.sharding.ManualAxisType(varying=frozenset({"x"}))
    found = hloom.core.ShapedArray((2, 3), jnp.float32, manual_axis_type=varies)
    assert found.manual_axis_type == found.mat == varies and found.vma == {"x"}
    assert found.update(manual_axis_type=hloom.sharding.ManualAxisType()) is hloom.core.ShapedArray((2, 3), jnp.float32)
    assert found.update(shape=(2,)).mat == varies and found.update_manual_axis_type(varies) is found
    with pytest.raises(UnsupportedError, match="unreduced or reduced axes"):
        hloom.core.ShapedArray((2,), jnp.float32, manual_axis_type=varies._replace(unreduced=frozenset({"y"})))
    assert found.dec_rank(2, 0).shape == (3,) and found.inc_rank(5, 1).shape == (2, 5, 3)
    assert found.dec_rank(2, None) is found
