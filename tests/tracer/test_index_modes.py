"""`x.at[...]` with `mode`, `fill_value` and the other options: every index form, mode and method, beside NumPy.

`expected` says in NumPy what each mode means. Where JAX is installed, it says the same (slow: JAX compiles each one).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

s = slice
INDICES: list[Any] = [
    *(1, 5, 3, -1, -3, -4, -9),
    *((5, 1), (1, 7), (2, -5), (-9, 9), (2, 3)),
    *((s(None), 5), (s(None), -5), (s(1, 3), 5), (s(None, None, -1), -9), (Ellipsis, 4), (None, 4), (s(None), None, 9)),
    *((5, s(None, None, 2)), (s(None, None, -2), 9), (-4, s(3, 0, -2)), (1, s(None, None, 3))),
    *(s(1, None), (s(0, 3, 2), s(None, None, -3)), (Ellipsis, s(2)), (), Ellipsis, None),
    *((0, s(2, 1)), (9, s(2, 1)), (s(2, 1), 9)),
]
MODES = (None, "clip", "fill", "drop", "promise_in_bounds", lax.GatherScatterMode.CLIP)
X = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "set": lambda old, new: np.broadcast_to(new, old.shape),
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
    "apply": lambda old, new: old * old,
}


def in_bounds(index: Any, shape: tuple[int, ...], wrap: bool = True) -> tuple[bool, Any]:
    """Whether all integers are in bounds, and the index with each moved into bounds."""
    items = index if isinstance(index, tuple) else (index,)
    used = sum(i is not None and i is not Ellipsis for i in items)
    inside, clipped, d = True, [], 0
    for item in items:
        if isinstance(item, int):
            wrapped = item + shape[d] if item < 0 and wrap else item
            inside = inside and 0 <= wrapped < shape[d]
            item = min(max(wrapped, 0), shape[d] - 1)
        clipped.append(item)
        d += len(shape) - used if item is Ellipsis else item is not None
    return inside, tuple(clipped)


def expected(x: Any, index: Any, method: str, mode: Any, values: Any, fill: Any = np.nan, wrap: bool = True) -> Any:
    inside, clipped = in_bounds(index, x.shape, wrap)
    name = mode.value if isinstance(mode, lax.GatherScatterMode) else mode
    if method == "get":
        found = x[clipped]
        return np.full_like(found, fill) if name in ("fill", "drop") and not inside else found
    if not inside and name != "clip":
        return x
    changed = x.copy()
    changed[clipped] = UPDATES[method](x[clipped], values)
    return changed


def call(x: Any, index: Any, method: str, mode: Any, values: Any, **options: Any) -> Any:
    if mode is not None:
        options["mode"] = mode
    changed = getattr(x.at[index], method)
    if method == "get":
        return changed(**options)
    return changed((lambda v: v * v) if method == "apply" else values, **options)


def traced_integers(index: Any) -> tuple[list[int], Callable[[Iterator[Any]], Any]]:
    """The integers of an index, and the index with others in their places."""
    items = index if isinstance(index, tuple) else (index,)

    def rebuilt(values: Iterator[Any]) -> Any:
        found = tuple([next(values) if isinstance(i, int) else i for i in items])
        return found if isinstance(index, tuple) else found[0]

    return [i for i in items if isinstance(i, int)], rebuilt


@pytest.mark.one_in(2)
@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("index", INDICES, ids=str)
def test_modes(index: Any, mode: Any) -> None:
    x = jnp.asarray(X)
    integers, rebuilt = traced_integers(index)
    for method in ("get", *UPDATES):
        wanted = expected(X, index, method, mode, 3.0)

        def traced(x: Any, *values: Any, method: str = method) -> Any:
            return call(x, rebuilt(iter(values)), method, mode, 3.0)

        results = [call(x, index, method, mode, 3.0)]
        if method in ("get", "set", "add", "divide"):
            results.append(hloom.jit(traced)(x, *integers))
        for found in results:
            np.testing.assert_allclose(np.asarray(found), wanted, rtol=1e-6, err_msg=method)
            assert found.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(x), X)


@pytest.mark.parametrize("index", [5, (1, 7), (5, s(None, None, 2)), (s(None, None, -2), 9)], ids=str)
@pytest.mark.parametrize("mode", ["clip", "fill"])
def test_compiled(index: Any, mode: str) -> None:
    """The same on the Numba backend."""
    integers, rebuilt = traced_integers(index)
    for method in ("get", "set", "add", "divide"):
        found = hloom.jit(lambda x, *v, m=method: call(x, rebuilt(iter(v)), m, mode, 3.0))(X, *integers)
        np.testing.assert_allclose(np.asarray(found), expected(X, index, method, mode, 3.0), rtol=1e-6)


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("mode", [None, "clip", "fill"])
@pytest.mark.parametrize("index", [2, 7, -8, s(None, None, 2), s(3, 0, -2)], ids=str)
@pytest.mark.parametrize("method", ["get", *UPDATES])
def test_gradients(method: str, index: Any, mode: Any) -> None:
    """Beside central differences; elements without an index have no part in a division by other elements."""
    x, y = np.array([0.0, 1.0, 2.0, 3.0, 4.0]) + 0.5, 1.7

    def loss(x: Any, y: Any) -> Any:
        options = {"fill_value": 2.0} if method == "get" else {}
        return (call(x, index, method, mode, y, **options) ** 2).sum()

    with hloom.enable_x64():
        by_x, by_y = hloom.grad(loss, (0, 1))(jnp.asarray(x), jnp.asarray(np.float64(y)))

        def value(x: Any, y: Any) -> float:
            return float(np.sum(expected(x, index, method, mode, y, 2.0) ** 2))

        step = 1e-6
        for k in range(5):
            away = step * np.eye(5)[k]
            slope = (value(x + away, y) - value(x - away, y)) / (2 * step)
            np.testing.assert_allclose(float(by_x[k]), slope, atol=1e-5, rtol=1e-5)
        slope = (value(x, y + step) - value(x, y - step)) / (2 * step)
        np.testing.assert_allclose(float(by_y), slope, atol=1e-5, rtol=1e-5)


def test_division_by_steps_has_finite_gradients() -> None:
    gradient = hloom.grad(lambda x: x.at[::2].divide(2.0).sum())(jnp.ones(5))
    assert np.asarray(gradient).tolist() == [0.5, 1, 0.5, 1, 0.5]


FILLS = {
    "float32": np.nan, "bfloat16": np.nan, "float8_e5m2": np.nan, "complex64": np.nan, "bool": True,
    "int8": -128, "int16": -(2**15), "int32": -(2**31), "uint8": 255, "uint16": 2**16 - 1, "uint32": 2**32 - 1,
    "int4": -8, "uint4": 15, "int2": -2, "uint2": 3,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FILLS)
def test_default_fill(dtype: str) -> None:
    found = jnp.zeros(3, dtype).at[9].get(mode="fill")
    assert found.dtype == np.dtype(jnp.zeros(0, dtype).dtype)
    np.testing.assert_array_equal(np.asarray(found).astype(complex), np.asarray(FILLS[dtype], complex))


def test_fill_value() -> None:
    x = jnp.arange(4, dtype="uint8")
    assert int(x.at[9].get(mode="fill", fill_value=7)) == 7
    assert int(x.at[9].get(mode="fill", fill_value=-1)) == 255
    assert int(x.at[2].get(mode="fill", fill_value=7)) == 2
    assert int(x.at[9].get(fill_value=7)) == 3  # not in this mode
    with pytest.raises(ValueError, match="must be a scalar"):
        x.at[9].get(mode="fill", fill_value=jnp.ones(2))
    assert int(hloom.jit(lambda v: x.at[9].get(mode="fill", fill_value=v))(5)) == 5
    y = jnp.arange(3.0)
    for read in (
        lambda v: y.at[9].get(mode="fill", fill_value=v),
        lambda v: jnp.take(y, jnp.array([1, 9]), fill_value=v)[1],
    ):
        assert float(hloom.grad(read)(5.0)) == float(hloom.jit(hloom.grad(read))(5.0)) == 1


def test_keys_are_filled_with_ones() -> None:
    keys = hloom.random.split(hloom.random.key(0), 3)
    assert np.asarray(hloom.random.key_data(keys.at[9].get(mode="fill"))).tolist() == [2**32 - 1] * 2
    last = hloom.random.key_data(keys)[2].tolist()
    assert np.asarray(hloom.random.key_data(keys.at[9].get(mode="clip"))).tolist() == last


@pytest.mark.parametrize("mode", [None, "clip", "fill"])
@pytest.mark.parametrize("method", ["get", "set", "add"])
def test_negative_indices_that_do_not_wrap(method: str, mode: Any) -> None:
    found = call(jnp.asarray(X[0]), -1, method, mode, 9.0, wrap_negative_indices=False)
    np.testing.assert_array_equal(np.asarray(found), expected(X[0], -1, method, mode, 9.0, wrap=False))
    traced = hloom.jit(lambda x, i: call(x, i, method, mode, 9.0, wrap_negative_indices=False))(X[0], -1)
    np.testing.assert_array_equal(np.asarray(traced), np.asarray(found))


def test_options() -> None:
    x = jnp.arange(3.0)
    assert x.at[1].set(9, indices_are_sorted=True, unique_indices=True, out_sharding=None).tolist() == [0, 9, 2]
    with pytest.raises(TypeError, match="unexpected option 'mod'; known: mode"):
        x.at[1].set(9, mod="clip")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match=r"Unknown gather mode 'wrap'.*clip"):
        x.at[1].set(9, mode="wrap")
    with hloom.set_mesh(hloom.make_mesh((1,), ("i",))):
        assert x.at[1].get(out_sharding=hloom.P()) == 1
    with pytest.raises(ValueError, match="not under a mesh context"):
        x.at[1].get(out_sharding=hloom.P())
    with pytest.raises(TypeError, match="out_sharding"):
        x.at[1].get(out_sharding="x")
    with pytest.raises(IndexError, match="with size 0"):
        jnp.zeros((0, 3))[0]
    assert jnp.zeros((0, 3)).at[0].set(1).shape == (0, 3)
    with pytest.raises(IndexError, match="with size 0"):
        jnp.zeros((2, 0)).at[:, 5].get()


VALUES: list[tuple[str, str, Any, list[Any]]] = [
    # dtype, method, value, the array [1, 1, 1] with element 1 changed: values are promoted with x, results converted
    ("int32", "set", 2.7, [1, 2, 1]),
    ("int32", "set", 1e10, [1, 2**31 - 1, 1]),
    ("int32", "set", np.nan, [1, 0, 1]),
    ("int32", "add", 1.5, [1, 2, 1]),
    ("int32", "multiply", 2.7, [1, 2, 1]),
    ("int32", "max", 1.9, [1, 1, 1]),
    ("uint8", "set", -1.5, [1, 0, 1]),
    ("uint8", "set", 300, [1, 44, 1]),
    ("int32", "divide", 2, [1.0, 0.5, 1.0]),
    ("bool", "power", 300, [1, 1, 1]),
    ("bool", "set", 0, [True, False, True]),
    ("float16", "add", np.float32(0.1), [1.0, float(np.float16(1.1)), 1.0]),
]


@pytest.mark.filterwarnings("ignore:.*values of:FutureWarning")
@pytest.mark.parametrize(("dtype", "method", "value", "wanted"), VALUES)
def test_values_of_another_dtype(dtype: str, method: str, value: Any, wanted: list[Any]) -> None:
    found = getattr(jnp.ones(3, dtype).at[1], method)(value)
    assert found.tolist() == wanted
    kinds = {"divide": "float32", "power": "int32"}
    assert found.dtype == (kinds.get(method, dtype) if dtype in ("int32", "bool") else dtype)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_jax_says_the_same() -> None:
    jax = pytest.importorskip("jax")
    wrong, x = [], jax.numpy.asarray(X)
    for index, mode, method in itertools.product(INDICES, (None, "clip", "fill"), ("get", "set", "add", "divide")):
        found = np.asarray(call(x, index, method, mode, 3.0))
        if not np.allclose(found, expected(X, index, method, mode, 3.0), equal_nan=True):
            wrong.append((index, mode, method))
    assert wrong == []
