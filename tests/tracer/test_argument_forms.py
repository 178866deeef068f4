"""The forms in which functions take arguments: shapes as anything that iterates, sequences of integers that hold traced
values, objects that are arrays by `__jax_array__`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.image
import hloom.numpy as jnp
import hloom.scipy.special
from hloom import lax, nn, random
from hloom.errors import ConcretizationTypeError

M = jnp.arange(6.0).reshape(2, 3)
V = jnp.arange(6.0)
KEY = random.key(0)


# ---- shapes


class Shape:
    def __init__(self, *sizes: int) -> None:
        self.sizes = sizes

    def __iter__(self) -> Iterator[int]:
        return iter(self.sizes)


SHAPES: dict[str, Callable[[Any], Any]] = {
    "zeros": jnp.zeros,
    "empty": jnp.empty,
    "full": lambda s: jnp.full(s, 2.0),
    "zeros_like": lambda s: jnp.zeros_like(V, shape=s),
    "method reshape": lambda s: V.reshape(s),
    "reshape": lambda s: jnp.reshape(V, s),
    "broadcast_to": lambda s: jnp.broadcast_to(V[:3], s),
    "resize": lambda s: jnp.resize(V, s),
    "tile": lambda s: jnp.tile(jnp.ones((1, 1)), s),
    "indices": lambda s: jnp.indices(s)[0],
    "fromfunction": lambda s: jnp.fromfunction(lambda i, j: i + j, s),
    "broadcast_shapes": lambda s: jnp.zeros(jnp.broadcast_shapes(s, (1, 3))),
    "unravel_index": lambda s: jnp.unravel_index(jnp.arange(6).reshape(2, 3), tuple(s))[1],
    "lax.full": lambda s: lax.full(s, 1.0),
    "lax.reshape": lambda s: lax.reshape(V, s),
    "lax.broadcast": lambda s: lax.broadcast(1.0, s),
    "lax.broadcasted_iota": lambda s: lax.broadcasted_iota(np.int32, s, 1),
    "lax.dynamic_slice": lambda s: lax.dynamic_slice(jnp.eye(4), (1, 0), s),
    "lax.slice": lambda s: lax.slice(jnp.eye(4), (0, 0), s),
    "lax.rng_bit_generator": lambda s: lax.rng_bit_generator(jnp.zeros(4, "uint32"), s)[1],
    "image.resize": lambda s: hloom.image.resize(jnp.eye(4), s, "linear"),
    "random.normal": lambda s: random.normal(KEY, s),
    "random.uniform by name": lambda s: random.uniform(KEY, shape=s),
    "random.split": lambda s: random.split(KEY, s),
    "random.gamma": lambda s: random.gamma(KEY, 2.0, s),
    "random.choice": lambda s: random.choice(KEY, 9, s),
    "random.categorical": lambda s: random.categorical(KEY, V, shape=s),
    "initializers": lambda s: nn.initializers.he_normal()(KEY, s),
}
FORMS: dict[str, Callable[[], Any]] = {
    "an object": lambda: Shape(2, 3),
    "a list": lambda: [2, 3],
    "a NumPy array": lambda: np.array([2, 3]),
    "an array": lambda: jnp.array([2, 3]),
    "a range": lambda: range(2, 4),
    "a generator": lambda: (n for n in (2, 3)),
    "a tuple of NumPy integers": lambda: (np.int64(2), np.uint8(3)),
}


def numbers(x: Any) -> Any:
    return np.asarray(random.key_data(x) if jnp.issubdtype(x.dtype, hloom.dtypes.prng_key) else x)


@pytest.mark.usefixtures("evaluator")
@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name: str) -> None:
    wanted = SHAPES[name]((2, 3))
    assert wanted.shape == (2, 3)
    for form, make in FORMS.items():
        found = SHAPES[name](make())
        np.testing.assert_array_equal(numbers(found), numbers(wanted), form)
    constant = FORMS["an array"]()
    assert hloom.jit(lambda: SHAPES[name](constant) if name != "unravel_index" else wanted)().shape == (2, 3)


def test_a_shape_that_changes_is_read_anew() -> None:
    shape = Shape(2, 3)
    assert random.normal(KEY, shape).shape == (2, 3)
    shape.sizes = (4,)
    assert random.normal(KEY, shape).shape == (4,)


@pytest.mark.parametrize("shape", ["23", {2, 3}, {2: 3}, 2.5, [2.0], None])
def test_what_is_no_shape(shape: Any) -> None:
    for f in (jnp.zeros, lambda s: lax.full(s, 1.0), lambda s: lax.reshape(V, s)):
        with pytest.raises(TypeError, match="Shapes must be 1D sequences"):
            f(shape)


# ---- sequences that hold traced values

SEQUENCES: dict[str, Callable[[Any], Any]] = {
    "roll": lambda k: jnp.roll(M, [k], 1),
    "roll by a tuple": lambda k: jnp.roll(M, (k, 1), (0, 1)),
    "roll twice along one axis": lambda k: jnp.roll(M, [k, 2], 1),
    "roll of the flattened": lambda k: jnp.roll(M, [k]),
    "roll by several of the flattened": lambda k: jnp.roll(M, (k, k)),
    "pad: constants": lambda k: jnp.pad(V, 1, constant_values=[k, 2]),
    "pad: constants of each axis": lambda k: jnp.pad(M, 1, constant_values=((k, 2), (k + 1, 4))),
    "pad: ends": lambda k: jnp.pad(V, 2, mode="linear_ramp", end_values=(k, 2)),
    "dynamic_slice": lambda k: lax.dynamic_slice(M, [k, 0], (1, 2)),
    "dynamic_update_slice": lambda k: lax.dynamic_update_slice(M, jnp.ones((1, 1)), (k, 0)),
    "nested sequences as an index": lambda k: M[[k, 0], (k, 2)],
    "nested sequences at": lambda k: M.at[[k, 0], [k, 2]].set(5.0),
    "choices": lambda k: jnp.choose(jnp.array([k, 0]), [jnp.array([1.0, k]), k], mode="clip"),
    "select": lambda k: jnp.select([k < V, V > 0], [k, 2.0]),
    "piecewise": lambda k: jnp.piecewise(V, [k < V], [k, 2.0]),
    "array": lambda k: jnp.array([[k, 1], [2, k]]),
    "concatenate": lambda k: jnp.concatenate([jnp.array([k]), jnp.ones(1)]),
    "hstack": lambda k: jnp.hstack([k, 2.0]),
    "block": lambda k: jnp.block([[k, 2.0], [3.0, k]]),
    "full": lambda k: jnp.full(2, jnp.array([k, 2])),
    "array_equal": lambda k: jnp.array_equal([k, 0], [1, 0]),
    "array_equiv": lambda k: jnp.array_equiv([k, 1], 1),
    "vectorize": lambda k: jnp.vectorize(lambda a: a + 1)([k, 1]),
    "histogram: range": lambda k: jnp.histogram(V, 3, (0, k + 4))[0],
    "trace: offset": lambda k: jnp.trace(M, k),
    "trace of several": lambda k: jnp.trace(jnp.stack([M, M]), k, 1, 2),
    "map_coordinates": lambda k: hloom.scipy.ndimage.map_coordinates(M, [jnp.array([k * 1.0]), jnp.array([1.0])], 1),
    "segment_sum": lambda k: hloom.ops.segment_sum(V[:2], jnp.array([k, 0]), 2),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", SEQUENCES)
def test_traced_values_in_sequences(name: str) -> None:
    f = SEQUENCES[name]
    wanted = np.asarray(f(1))
    np.testing.assert_array_equal(hloom.jit(f)(1), wanted)
    np.testing.assert_array_equal(hloom.vmap(f)(jnp.array([1, 1]))[1], wanted)
    np.testing.assert_array_equal(f(jnp.array(1)), wanted)
    looped = lax.fori_loop(1, 2, lambda k, _: f(k) * 1.0, jnp.zeros(wanted.shape, jnp.result_type(f(1), 1.0)))
    np.testing.assert_array_equal(looped, wanted)


SIZES: dict[str, Callable[[Any], Any]] = {
    "pad": lambda k: jnp.pad(V, [(k, 1)]),
    "split": lambda k: jnp.split(V, [k, 3]),
    "array_split": lambda k: jnp.array_split(V, (k, 3)),
    "tile": lambda k: jnp.tile(V, [k, 2]),
    "reshape": lambda k: V.reshape([k, 6]),
    "repeat": lambda k: jnp.repeat(V[:2], jnp.array([k, 2])),
    "transpose": lambda k: jnp.transpose(M, (k, 0)),
    "sum": lambda k: jnp.sum(M, axis=(k,)),
    "slice": lambda k: lax.slice(V, [k], [3]),
    "dynamic_slice": lambda k: lax.dynamic_slice(V, [0], [k]),
    "delete": lambda k: jnp.delete(V, slice(k, 3)),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_and_axes_must_be_known(name: str) -> None:
    SIZES[name](1)
    with pytest.raises(ConcretizationTypeError, match=r"be known|concrete values|asked for|needs the") as caught:
        hloom.jit(lambda k: SIZES[name](k))(1)
    assert "it depends on the value of the argument k" in str(caught.value)


# ---- objects that are arrays


class Wrapped:
    def __init__(self, value: Any) -> None:
        self.value = jnp.asarray(value)

    def __jax_array__(self) -> Any:
        return self.value


OBJECTS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "sin": (jnp.sin, (V,)),
    "add": (jnp.add, (V, 1.0)),
    "operator": (lambda x: V + x, (1.0,)),
    "operator, reflected": (lambda x: V[0] * 2 - x, (V,)),
    "index": (lambda i: V[i], (2,)),
    "index array": (lambda i: V[i], (np.array([2, 0]),)),
    "index at": (lambda i, x: V.at[i].set(x), (2, 7.0)),
    "roll": (lambda x, k: jnp.roll(x, k), (V, 1)),
    "isscalar": (lambda x: jnp.array(jnp.isscalar(x)), (1.0,)),
    "isscalar of a vector": (lambda x: jnp.array(jnp.isscalar(x)), (V,)),
    "shape": (lambda x: jnp.array([*jnp.shape(x), jnp.ndim(x), jnp.size(x)]), (M,)),
    "arange": (jnp.arange, (1, 5, 2)),
    "linspace": (jnp.linspace, (1.0, 5.0)),
    "full": (lambda x: jnp.full(3, x), (2.0,)),
    "full of a vector": (lambda x: jnp.full((2, 3), x), (V[:3],)),
    "full_like": (jnp.full_like, (V, 2.0)),
    "bincount": (lambda x, w: jnp.bincount(x, w, length=3), (np.array([0, 1, 1]), np.ones(3, "f"))),
    "histogramdd": (lambda x: jnp.histogramdd(x, 2)[0], (M,)),
    "histogram": (lambda x, w: jnp.histogram(x, 2, weights=w)[0], (V, V)),
    "isin": (jnp.isin, (M, V[:2])),
    "searchsorted": (jnp.searchsorted, (V, 2.5)),
    "concatenate": (lambda x: jnp.concatenate(x), (M,)),
    "stack": (lambda x, y: jnp.stack([x, y]), (V, V)),
    "choose": (lambda a, c: jnp.choose(a, c, mode="clip"), (np.array([0, 1, 0]), M)),
    "select": (lambda c, x: jnp.select([c], [x]), (V > 2, V)),
    "lexsort": (jnp.lexsort, (M,)),
    "array": (lambda x: jnp.array([x, 2.0]), (1.0,)),
    "diag_indices_from": (lambda x: jnp.array(jnp.diag_indices_from(x)), (M[:, :2],)),
    "triu_indices_from": (lambda x: jnp.array(jnp.triu_indices_from(x)), (M,)),
    "pad": (lambda x, c: jnp.pad(x, 1, constant_values=c), (V, V[:2])),
    "take": (jnp.take, (V, np.array([1, 9]))),
    "where": (jnp.where, (V > 2, V, 0.0)),
    "sum": (lambda x, s: jnp.sum(x, initial=s), (V, 3.0)),
    "array_equal": (jnp.array_equal, (V, V)),
    "array_repr": (lambda x: jnp.array(len(jnp.array_repr(x))), (V,)),
    "linalg.norm": (jnp.linalg.norm, (M,)),
    "dot": (jnp.dot, (M, V[:3])),
    "lax.add": (lax.add, (V, V)),
    "lax.dynamic_slice": (lambda x, k: lax.dynamic_slice(x, [k], [2]), (V, 1)),
    "lax.broadcast_like": (lax.broadcast_like, (V[:1], V)),
    "softmax": (nn.softmax, (V,)),
    "attention": (nn.dot_product_attention, (jnp.ones((2, 1, 3)),) * 3),
    "normal": (lambda k: random.normal(k, (2,)), (KEY,)),
    "choice": (lambda k, x, p: random.choice(k, x, (3,), p=p), (KEY, V[:2], np.array([0.5, 0.5], "f"))),
    "truncated_normal": (random.truncated_normal, (KEY, -1.0, 1.0)),
    "resize": (lambda x: hloom.image.resize(x, (4, 6), "linear"), (M,)),
    "gamma": (hloom.scipy.special.gamma, (V + 1,)),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", OBJECTS)
def test_objects_that_are_arrays(name: str) -> None:
    f, args = OBJECTS[name]
    wanted = f(*args)
    for k, arg in enumerate(args):
        found = f(*args[:k], Wrapped(arg), *args[k + 1 :])
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)
    traced = hloom.jit(lambda *values: f(*map(Wrapped, values)))
    if name not in ("arange", "histogramdd", "array_repr"):  # these need numbers
        np.testing.assert_allclose(traced(*args), wanted, rtol=1e-6)


# ---- several axes


AXES: dict[str, Callable[[Any], Any]] = {
    name: partial(getattr(jnp, name), M)
    for name in ("sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "median", "nansum", "count_nonzero")
} | {
    "norm": lambda axis: jnp.linalg.norm(M, axis=axis),
    "gradient": lambda axis: jnp.stack(jnp.gradient(M, axis=axis)),
    "ufunc": lambda axis: jnp.add.reduce(M, axis=axis),
    "method": lambda axis: M.sum(axis),
}


@pytest.mark.parametrize("name", AXES)
def test_axes_may_be_a_range(name: str) -> None:
    assert jnp.array_equal(AXES[name](range(2)), AXES[name]((0, 1)))
