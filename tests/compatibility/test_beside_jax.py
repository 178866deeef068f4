"""Where hloom raised and JAX has a result, or the other way round: what recorded outcomes alone do not show.

`test_outcomes.py` has the calls themselves; here are warnings, messages, derivatives and NumPy's word on indices.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

X = jnp.arange(6.0).reshape(2, 3)


# ---- boolean scalars as indices

INDICES: list[Any] = [
    True, False, (None, True), (True, None), (True, 1), (1, True), (False, 1), (True, slice(None), 1), np.True_,
    (slice(None), True, 1), (slice(None), True), (slice(None), False), (Ellipsis, True), (True, Ellipsis, True),
    (True, slice(None), True), (True, False), (slice(None), None, True), (0, slice(None), True), (0, None, True),
    (slice(None), True, None, 1), (0, True, slice(None)), (True, -1, -1), (np.array(False), 0),
]  # fmt: skip


@pytest.mark.parametrize("index", INDICES, ids=str)
@pytest.mark.parametrize("transform", [lambda f: f, hloom.jit], ids=["eager", "jit"])
def test_boolean_scalars_index_as_in_numpy(index: Any, transform: Callable[..., Any]) -> None:
    array = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    found = np.asarray(transform(lambda x: x[index])(X))
    np.testing.assert_array_equal(found, array[index])
    changed = array.copy()
    changed[index] = 9
    np.testing.assert_array_equal(np.asarray(transform(lambda x: x.at[index].set(9))(X)), changed)
    counted = np.asarray(hloom.grad(lambda x: x[index].sum())(X))
    expected = np.zeros_like(array)
    expected[index] = 1
    np.testing.assert_array_equal(counted, expected)


# ---- traced counts, offsets and shifts have derivatives


def test_repeat_with_traced_counts_is_differentiable_any_number_of_times() -> None:
    def f(x: Any, counts: Any) -> Any:
        return (jnp.repeat(x, counts, axis=0, total_repeat_length=5) ** 3).sum()

    x, counts = jnp.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), jnp.array([2, 0, 3])
    weights = np.array([[2.0], [0.0], [3.0]], np.float32)
    for transform in (lambda g: g, hloom.jit):
        first = transform(hloom.grad(f))(x, counts)
        np.testing.assert_allclose(np.asarray(first), 3 * np.asarray(x) ** 2 * weights, rtol=1e-6)
        second = transform(hloom.grad(lambda x: hloom.grad(f)(x, counts).sum()))(x)
        np.testing.assert_allclose(np.asarray(second), 6 * np.asarray(x) * weights, rtol=1e-6)


@pytest.mark.parametrize("counts", [[5], [0, 0, 7], [9, 1, 1], [1] * 40, [0, 3] * 20])
@pytest.mark.parametrize("length", [1, 6, 60])
def test_repeat_cuts_or_fills_up(counts: list[int], length: int) -> None:
    x = np.arange(len(counts), dtype=np.int32) * 10
    whole = np.repeat(x, counts)
    expected = np.concatenate([whole, np.full(length, x[-1])])[:length]
    found = hloom.jit(lambda x, c: jnp.repeat(x, c, total_repeat_length=length))(x, np.array(counts))
    np.testing.assert_array_equal(np.asarray(found), expected)
    np.testing.assert_array_equal(np.asarray(jnp.repeat(x, np.array(counts))), whole)


def test_offsets_and_shifts_that_are_traced() -> None:
    for k in (-2, 0, 1, 5):
        for name in ("tril", "triu"):
            found = hloom.jit(lambda x, k, name=name: getattr(jnp, name)(x, k))(X, k)
            np.testing.assert_array_equal(np.asarray(found), getattr(np, name)(np.asarray(X), k))
        rolled = hloom.jit(lambda x, s: jnp.roll(x, s, (0, 1)))(X, jnp.array([k, 1]))
        np.testing.assert_array_equal(np.asarray(rolled), np.roll(np.asarray(X), (k, 1), (0, 1)))
    gradient = hloom.grad(lambda x, s: (jnp.roll(x, s, 1) * X).sum())(X, 1)
    np.testing.assert_array_equal(np.asarray(gradient), np.roll(np.asarray(X), -1, 1))


# ---- views

DTYPES = ("bool", "int2", "uint4", "int8", "uint8", "float8_e5m2", "bfloat16", "int16", "float32", "complex64")


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_views_come_back(first: str, second: str) -> None:
    if "bool" in (first, second):
        numbers = jnp.array([[1, 0, 1, 1, 0, 0, 1, 0] * 2] * 2, "uint8").view(first if second == "bool" else second)
        assert (numbers.view("bool").view(numbers.dtype) == numbers).all()
        return
    x = jnp.arange(64, dtype="uint8").reshape(2, 32).view(first)
    there = hloom.jit(lambda v: v.view(second))(x)
    assert there.nbytes * (0.25 if second[3:] == "2" else 0.5 if second[4:] == "4" else 1) == 64
    np.testing.assert_array_equal(np.asarray(there.view("uint8")), np.arange(64).reshape(2, 32))


# ---- complex extrema


def test_complex_extrema_have_derivatives() -> None:
    x = jnp.array([1 + 2j, 1 + 3j, 1 + 3j])
    largest, pull = hloom.vjp(jnp.max, x)
    assert complex(largest) == 1 + 3j
    np.testing.assert_allclose(np.asarray(pull(jnp.complex64(1 + 1j))[0]), [0, 0.5 + 0.5j, 0.5 + 0.5j])
    _, pull = hloom.vjp(lambda a: jnp.minimum(a, 1 + 3j), x)
    np.testing.assert_allclose(np.asarray(pull(jnp.ones(3, complex))[0]), [1, 0.5, 0.5])
    _, moved = hloom.jvp(lambda a: jnp.max(a, keepdims=True), (x,), (jnp.array([1.0, 2.0, 4.0]) * (1 + 0j),))
    np.testing.assert_allclose(np.asarray(moved), [3])


# ---- silent no more


def test_masked_arrays_are_refused_wherever_they_come_in() -> None:
    masked = np.ma.masked_array(np.float32([1, 2]), [True, False])
    uses: Iterator[Callable[[], Any]] = iter([
        lambda: jnp.array(masked), lambda: jnp.asarray(masked), lambda: jnp.sin(masked), lambda: X[0, :2] + masked,
        lambda: lax.add(X[0, :2], masked), lambda: hloom.jit(lambda x: x)(masked), lambda: hloom.device_put(masked),
        lambda: hloom.grad(jnp.sum)(masked), lambda: hloom.jit(lambda x: x + masked)(X[0, :2]),
        lambda: jnp.full((2,), masked), lambda: X.at[0, :2].set(masked), lambda: hloom.eval_shape(jnp.sin, masked),
    ])  # fmt: skip
    for use in uses:
        with pytest.raises(ValueError, match=r"its mask would be lost\n  at .*test_beside_jax(.|\n)*x\.filled"):
            use()


def test_updates_of_a_narrower_dtype_warn_and_keep_the_common_dtype() -> None:
    x = jnp.array([2, 2, 2])
    with pytest.warns(FutureWarning, match=r"float32 are converted to int32(.|\n)*astype"):
        assert x.at[0].multiply(1.5).tolist() == [3, 2, 2]
    with pytest.warns(FutureWarning):
        assert x.at[1].set(1.9).tolist() == [2, 1, 2]
    with pytest.raises(ValueError, match="no common dtype"):
        jnp.ones(3, "float8_e4m3fn").at[0].set(jnp.float32(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert x.at[0].set(True).tolist() == [1, 2, 2]
        assert jnp.ones(3, "float16").at[0].set(3).tolist() == [3, 1, 1]
        assert jnp.ones(3, "int32").at[:].set([1, 2, 3]).tolist() == [1, 2, 3]


@pytest.mark.parametrize("name", ["top_k", "approx_max_k", "approx_min_k"])
def test_the_largest_and_their_places_are_a_list(name: str) -> None:
    """As in JAX: a loop with them as its state begins with a list."""
    largest = getattr(lax, name)
    start = [jnp.zeros(2), jnp.zeros(2, int)]

    def step(state: list[Any], x: Any) -> tuple[list[Any], None]:
        return largest(x + state[0].sum(), 2), None

    for run in (lax.scan, hloom.jit(lax.scan, static_argnums=0)):
        (values, places), _ = run(step, start, jnp.array([[1.0, 3.0, 2.0], [0.0, 5.0, 4.0]]))
        assert (values.shape, places.dtype) == ((2,), jnp.int32)
    assert hloom.tree.structure(largest(jnp.arange(3.0), 2)) == hloom.tree.structure([0, 0])


def test_start_indices_have_one_dtype() -> None:
    with pytest.raises(TypeError, match=r"the same type, got int32, uint8(.|\n)*hloom.numpy.int32\(i\)"):
        lax.dynamic_slice(X, (0, np.uint8(1)), (1, 1))
    assert lax.dynamic_slice(X, (-1, -1), (1, 1)).tolist() == [[5]]
    assert lax.dynamic_slice(X, (jnp.int32(-1), 0), (1, 1), allow_negative_indices=False).tolist() == [[0]]


@pytest.mark.parametrize(
    ("data", "meta", "drop", "message"),
    [
        (("a",), (), (), "Missing fields: {'b'}"),
        (("a", "b", "z"), (), (), "Unexpected fields: {'z'}"),
        (("a", "b"), ("b",), (), "must not overlap. Overlapping fields: {'b'}"),
        (("a", "b", "c"), (), (), "these are a, b. Unexpected fields: {'c'}"),
        (("a",), (), ("b",), None),
        (("a",), ("b",), (), None),
    ],
)
def test_fields_of_registered_dataclasses(data: Any, meta: Any, drop: Any, message: str | None) -> None:
    @dataclasses.dataclass
    class Point:
        a: float = 1.0
        b: float = 2.0
        c: int = dataclasses.field(default=0, init=False)

    if message is None:
        hloom.tree_util.register_dataclass(Point, data, meta, drop)
        assert hloom.tree.leaves(Point(3.0, 4.0)) == [3.0]
        assert hloom.tree.map(lambda x: x + 1, Point(3.0, 4.0)).a == 4.0
    else:
        with pytest.raises(ValueError, match=message):
            hloom.tree_util.register_dataclass(Point, data, meta, drop)


def test_functions_that_return_no_arrays_are_refused() -> None:
    def generator(x: Any) -> Any:
        yield x

    async def coroutine(x: Any) -> Any:
        return x

    for transform in (hloom.jit, hloom.grad, hloom.value_and_grad, hloom.checkpoint):
        for function in (generator, coroutine):
            with pytest.raises(TypeError, match="needs a function that returns arrays"):
                transform(function)
    with pytest.raises(TypeError, match="generator"):
        hloom.eval_shape(generator, 1.0)
    with pytest.raises(TypeError, match="got None"):
        hloom.jit(None)
    assert hloom.jit(inline=True)(lambda x: x)(1) == 1


def test_types_stand_in_for_arrays_where_only_types_are_asked_for() -> None:
    struct = hloom.ShapeDtypeStruct((3,), "float32")
    inner = hloom.jit(lambda y: {"sum": y.sum(), "twice": hloom.jit(lambda z: z * 2)(y)})
    found = hloom.eval_shape(lambda x: (inner(struct), x), 1)
    assert found[0]["twice"] == struct
    assert found[0]["sum"].shape == ()
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        inner(struct)
    with pytest.raises(TypeError, match="ShapeDtypeStruct"):
        hloom.jit(lambda x: inner(struct)["sum"] + x)(1.0)


def test_keys_of_custom_nodes_are_in_paths() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    hloom.tree_util.register_pytree_node(
        Pair, lambda p: ((p.a, p.b), None), lambda _, c: Pair(*c), lambda p: ((("a", p.a), ("b", p.b)), None)
    )
    found, _ = hloom.tree_util.tree_flatten_with_path([Pair(1, 2)])
    first = hloom.tree_util.SequenceKey(0)
    assert found == [((first, "a"), 1), ((first, "b"), 2)]


def test_a_polynomial_without_coefficients_can_be_divided() -> None:
    quotient, rest = jnp.polydiv(jnp.zeros(0), jnp.ones(4, "float16"))
    assert quotient.tolist() == [0.0] and rest.shape == (0,)


def test_standardize_of_equal_numbers() -> None:
    x = jnp.full((4,), 1.1)
    for algorithm in ("fast", "stable"):
        assert np.isfinite(np.asarray(hloom.nn.standardize(x, epsilon=1e-9, algorithm=algorithm))).all()


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda: jnp.repeat(X, jnp.array([1, 2]), 0, total_repeat_length="x"), TypeError, "integer"),
        (lambda: hloom.jit(lambda r: jnp.repeat(X, r))(2), TypeError, "total_repeat_length"),
        (lambda: jnp.tensordot(X, X, [1, [0]]), TypeError, "a pair of ints, or a pair of lists"),
        (lambda: jnp.arange(3, dtype=bool), TypeError, "dtype=int"),
        (lambda: jnp.sum(X, where=1), ValueError, "where must be None or a boolean array"),
        (lambda: jnp.sum(X, axis=5), IndexError, "axis 5 is out of bounds for an array of 2 dimensions"),
        (lambda: jnp.max(X, axis="x"), TypeError, "an axis cannot be interpreted as an integer: 'x'"),
        (lambda: jnp.zeros((2, -1)), TypeError, "negative dimension"),
        (lambda: lax.real(X), TypeError, "hloom.numpy.real takes real ones"),
        (lambda: lax.slice(X, (), (2, 3)), ValueError, "slice"),
        (lambda: lax.broadcast_in_dim(X[0], (2, 3), ()), ValueError, "equal to operand ndim, got \\(\\) for float32"),
        (lambda: X.at[0, 0].set(jnp.ones(1)), ValueError, "do not broadcast"),
        (lambda: lax.dot(jnp.ones(3, "bool"), jnp.ones(3, ml_dtypes.int1)), TypeError, "neither dtype is wider"),
        (lambda: jnp.meshgrid(X, X), ValueError, "hloom.numpy.ravel"),
        (lambda: jnp.ediff1d(X > 2), TypeError, "booleans have no differences"),
    ],
)
def test_messages(use: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        use()
