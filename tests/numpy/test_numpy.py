"""hloom.numpy against NumPy (values, eagerly and traced) and against JAX (result types, recorded and live)."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from support import jax_facts
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

RNG = np.random.default_rng(0)
A = RNG.standard_normal((2, 3, 4)).astype(np.float32)
B = RNG.standard_normal((3, 4)).astype(np.float32)
M = RNG.standard_normal((4, 4)).astype(np.float32)
V = RNG.standard_normal(5).astype(np.float32)
W = RNG.standard_normal(5).astype(np.float32)
N = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
J = np.where(N == 0, 3, N[::-1]).astype(np.int32)
J = np.where(J == 0, 2, J).astype(np.int32)
C = (RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))).astype(np.complex64)
P = N > 0
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 0.5], np.float32)

Case = Callable[..., Any]
"""case(namespace, *arrays)"""


def case(function: Case, *arrays: Any, name: str = "") -> Any:
    return pytest.param(function, arrays, id=name or f"{function.__code__.co_firstlineno}")


UNARY = [
    *("exp", "exp2", "expm1", "sin", "cos", "tan", "arctan", "sinh", "cosh", "tanh", "arcsinh", "floor", "ceil"),
    *("trunc", "rint", "square", "negative", "abs", "sign", "isfinite", "isnan", "isinf", "cbrt", "deg2rad", "rad2deg"),
    *("signbit", "nan_to_num", "isposinf", "isneginf", "logical_not", "fabs", "positive", "reciprocal"),
]
BINARY = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "mod", "fmod", "maximum", "minimum", "fmax", "fmin"),
    *("arctan2", "hypot", "logaddexp", "copysign", "heaviside", "equal", "not_equal", "less", "less_equal", "greater"),
    *("greater_equal", "logical_and", "logical_or", "logical_xor"),
]
INTEGER = [
    *("add", "subtract", "multiply", "floor_divide", "mod", "fmod", "maximum", "minimum", "bitwise_and"),
    *("bitwise_or", "bitwise_xor", "equal", "less"),
]

CASES = [
    *[case(lambda xp, x, n=n: getattr(xp, n)(x), SPECIAL, name=n) for n in UNARY],
    *[
        case(lambda xp, x, n=n: getattr(xp, n)(x), np.abs(V) / 3 + 0.1, name=n)
        for n in ("sqrt", "log", "log1p", "log2")
    ],
    *[case(lambda xp, x, n=n: getattr(xp, n)(x), np.tanh(V), name=n) for n in ("arcsin", "arccos", "arctanh")],
    *[case(lambda xp, x, y, n=n: getattr(xp, n)(x, y), A, B, name=f"{n} broadcast") for n in BINARY],
    *[
        case(lambda xp, x, y, n=n: getattr(xp, n)(x[:, None], y), SPECIAL, SPECIAL, name=f"{n} special")
        for n in BINARY
        if n not in ("floor_divide", "mod", "fmod")
    ],
    *[case(lambda xp, x, y, n=n: getattr(xp, n)(x, y), N, J, name=f"{n} int") for n in INTEGER],
    case(lambda xp, x, y: xp.left_shift(x, y), N, np.abs(J), name="left_shift"),
    case(lambda xp, x, y: xp.right_shift(x, y), N, np.abs(J), name="right_shift"),
    case(lambda xp, x: xp.bitwise_not(x), N, name="bitwise_not"),
    case(lambda xp, x: (x**3, x**0, x**2.5, 2.0**x), np.abs(V), name="power"),
    case(lambda xp, x: xp.power(x, -2), V, name="negative power"),
    case(lambda xp, x: xp.power(x, 3), N, name="integer power"),
    case(lambda xp, x: (xp.einsum("ij->i", x), xp.einsum("...i->...", x[:0])), V[None] > 0, name="einsum of booleans"),
    case(lambda xp, x: xp.power(x, xp.full_like(x, 101)), np.array([3, 5, -7, 2, 0], np.int32), name="large exponents"),
    case(lambda xp, x: (xp.round(x, 2), xp.round(x), xp.round(x, -1)), V * 10, name="round"),
    case(lambda xp, x, y: xp.divmod(x, y), N, J, name="divmod"),
    case(lambda xp, x: (xp.real(x), xp.imag(x), xp.conj(x), xp.abs(x), xp.angle(x)), C, name="complex parts"),
    case(lambda xp, x: (xp.exp(x), x * x, x / (x + 1), xp.isfinite(x)), C, name="complex arithmetic"),
    case(lambda xp, x, y: (xp.less(x, y), xp.equal(x, y)), C, C[::-1], name="complex comparison"),
    case(lambda xp, p, x, y: xp.where(p, x, y), P, N, 0, name="where"),
    case(lambda xp, p, x: xp.where(p, x, 2.5), P, B, name="where scalar"),
    case(lambda xp, x: (xp.clip(x, -0.5, 0.5), xp.clip(x, None, 0.1)), V, name="clip"),
    case(lambda xp, x, y: (xp.allclose(x, x), xp.isclose(x, y), xp.array_equal(x, y)), V, W, name="closeness"),
    case(lambda xp, x: xp.allclose(x, x, equal_nan=True), SPECIAL, name="allclose nan"),
    # reductions
    *[
        case(lambda xp, x, n=n, k=k, kd=kd: getattr(xp, n)(x, axis=k, keepdims=kd), A, name=f"{n} {k} {kd}")
        for n in ("sum", "prod", "mean", "var", "std", "max", "min", "any", "all")
        for k in (None, 0, -1, (0, 2))
        for kd in (False, True)
    ],
    *[
        case(lambda xp, x, n=n, k=k: getattr(xp, n)(x, k), x, name=f"{n} {k}")
        for n in ("argmax", "argmin")
        for k, x in ((None, A), (1, A), (0, SPECIAL), (None, N))
    ],
    case(lambda xp, x: (xp.sum(x, dtype=xp.float32), xp.mean(x), xp.max(x, axis=0)), N, name="integer reductions"),
    case(lambda xp, x, p: xp.sum(x, where=p, initial=2.0), B, P, name="sum where"),
    case(lambda xp, x, p: xp.max(x, axis=1, where=p, initial=-5.0), B, P, name="max where"),
    case(lambda xp, x, p: (xp.mean(x, where=p), xp.var(x, where=p)), B, P, name="mean where"),
    case(lambda xp, x: (xp.var(x, ddof=1), xp.std(x, axis=0, ddof=1)), A, name="ddof"),
    case(lambda xp, x: (xp.var(x), xp.mean(x)), C, name="complex var"),
    case(lambda xp, x: (xp.cumsum(x, axis=1), xp.cumsum(x), xp.cumprod(x, 0)), A, name="cumulative"),
    case(lambda xp, x: (xp.sum(x), xp.sum(x, axis=0), xp.prod(x, axis=1)), np.zeros((0, 3), np.float32), name="empty"),
    case(lambda xp, x: (xp.ptp(x, axis=0), xp.count_nonzero(x), xp.average(x, axis=0)), N, name="others"),
    case(lambda xp, x, w: xp.average(x, axis=1, weights=w), B, np.abs(W[:4]), name="average"),
    # shapes
    case(lambda xp, x: (xp.reshape(x, (4, -1)), x.reshape(6, 4), xp.ravel(x), xp.reshape(x, -1, order="F")), A),
    case(lambda xp, x: (x.T, xp.transpose(x, (1, 0, 2)), xp.swapaxes(x, 0, -1), xp.moveaxis(x, 0, 2)), A),
    case(lambda xp, x: (xp.moveaxis(x, (0, 1), (-1, 0)), xp.matrix_transpose(x)), A),
    case(lambda xp, x: (xp.expand_dims(x, (0, 2)), xp.squeeze(x[:1, None]), xp.squeeze(x[None], 0)), A),
    case(lambda xp, x: (xp.broadcast_to(x, (2, 3, 4)), *xp.broadcast_arrays(x, x[0])), B),
    case(lambda xp, x: (xp.concatenate([x, x], 1), xp.stack([x, x], -1), xp.vstack([x, x]), xp.hstack([x, x])), B),
    case(lambda xp, x, i: (xp.concatenate([x, i], None), xp.column_stack([x[0], i[0]])), B, N),
    case(lambda xp, x: (*xp.split(x, 2, 2), *xp.split(x, [1, 3], 2), *xp.array_split(x, 3, 2)), A),
    case(lambda xp, x: (xp.flip(x), xp.flip(x, 1), xp.fliplr(x), xp.roll(x, 2), xp.roll(x, (1, -1), (0, 1))), B),
    case(lambda xp, x: [xp.rot90(x, k) for k in range(4)], B),
    case(lambda xp, x: (xp.tile(x, 2), xp.tile(x, (2, 1, 3)), xp.repeat(x, 2), xp.repeat(x, 3, 1)), B),
    case(lambda xp, x: xp.repeat(x, np.array([0, 2, 1]), 0), B),
    case(lambda xp, x: (xp.pad(x, 1), xp.pad(x, ((0, 2), (1, 0)), constant_values=3)), B),
    case(lambda xp, x: xp.pad(x, (1, 2), constant_values=(5, 6)), B),
    case(lambda xp, x: (xp.tril(x), xp.triu(x, 1), xp.tri(3, 4, -1), xp.trace(x), xp.diag(x), xp.diag(x[0], 1)), M),
    case(lambda xp, x: (xp.diagonal(x, 1), xp.diagonal(x, -1), xp.diagonal(x, 9), x.diagonal()), M),
    case(lambda xp, x: (xp.diagonal(x, 0, 0, 2), xp.trace(x, 1, 1, 2)), A),
    case(lambda xp, x: (xp.atleast_2d(x), xp.atleast_1d(x[0])), V),
    # products
    case(lambda xp, x, y: (xp.dot(x, y[0]), x @ y.T, xp.vdot(x[0], y), xp.inner(x, y), xp.outer(y, y[0])), A, B),
    case(lambda xp, x, y: (xp.matmul(x[:, None], y.T), xp.matmul(y, x[0].T), x @ y[0]), A, B),
    case(lambda xp, x, y: xp.matmul(x, y), B[:, :3], A, name="matmul batch right"),
    case(lambda xp, x: (xp.tensordot(x, x, 3), xp.tensordot(x, x, ([0, 1], [0, 1])), xp.kron(x[0], x[1])), A),
    case(lambda xp, x, y: (xp.einsum("ijk,jk->i", x, y), xp.einsum("ijk->kji", x), xp.einsum("ijk,lk", x, y)), A, B),
    case(lambda xp, x: (xp.einsum("ii", x), xp.einsum("ii->i", x), xp.einsum("ij,jk,kl->il", x, x, x)), M),
    case(
        lambda xp, x, y: (
            xp.einsum("...k,k", x, y[0]),
            xp.einsum("i,j->ij", y[0], y[1]),
            xp.einsum("i,i->i", y[0], y[1]),
        ),
        A,
        B,
    ),
    case(lambda xp, x, y: (xp.einsum("ijk,ilk->ijl", x, x), xp.einsum(x, [0, 1, 2], y, [1, 2], [0])), A, B),
    case(lambda xp, x, y: (x @ y, xp.dot(x, y)), N, N.T, name="integer matmul"),
    *[case(lambda xp, x, o=o: xp.linalg.norm(x, o), V, name=f"norm {o}") for o in (None, 1, 2, 3, 0, np.inf, -np.inf)],
    *[case(lambda xp, x, o=o: xp.linalg.norm(x, o, (0, 2), True), A, name=f"norm {o}") for o in ("fro", 1, -1, np.inf)],
    case(lambda xp, x: (xp.linalg.norm(x), xp.linalg.norm(x, axis=1, keepdims=True)), A, name="norm all"),
    case(lambda xp, x: (xp.linalg.matrix_power(x, 3), xp.linalg.matrix_power(x, 0)), M, name="matrix_power"),
    case(
        lambda xp, x: (xp.nansum(x), xp.nanmean(x), xp.nanmax(x[2:]), xp.nanmin(x[:4]), xp.nanprod(x[:4])),
        SPECIAL[[0, 2, 3, 6, 7]],
    ),
    case(lambda xp, x: (xp.nanvar(x, 1), xp.nanstd(x), xp.nanmax(x, 0, keepdims=True)), np.where(B > 1, np.nan, B)),
    case(lambda xp, x: (xp.nansum(x), xp.nanmax(x)), N, name="nan reductions of integers"),
    case(lambda xp, x: (xp.diff(x), xp.diff(x, 2, 0), xp.diff(x > 0), xp.append(x, x), xp.dstack([x, x])), B),
    case(lambda xp, x: (xp.sinc(x), xp.polyval(x, 0.5), xp.logaddexp2(x, x), xp.select([x > 1, x > 0], [x, -x], 7)), V),
    case(lambda xp, x: (xp.cross(x[:, :3], x[::-1, :3]), xp.indices((2, 3)), *xp.indices((2, 3), sparse=True)), B),
    case(lambda xp, x: (xp.ndim(x), xp.size(x), xp.size(x, 0), xp.isscalar(3), xp.iscomplexobj(x)), B, name="queries"),
    # indexing
    case(lambda xp, x: (x[0], x[-1, 2], x[..., 1], x[:, ::-1], x[1:, None, :2, ::2], x[0, 1, -1]), A, name="index"),
    case(lambda xp, x: (x[::-2], x[5:1], x[-3:-1], x[:, -1:0:-2], x[()], x[None]), B, name="index slices"),
    # creation
    case(
        lambda xp: (xp.zeros((2, 3), np.float32), xp.ones(3, np.int32), xp.full((2,), 7, np.float32)), name="constants"
    ),
    case(
        lambda xp: (xp.arange(5, dtype=np.int32), xp.arange(2, 9, 3), xp.arange(5, 0, -2), xp.arange(0.0, 1.0, 0.3)),
        name="arange",
    ),
    case(lambda xp: (xp.arange(3, 3), xp.arange(10, 0)), name="arange empty"),
    case(
        lambda xp: (xp.linspace(0, 1, 7), xp.linspace(-2, 3, 4, endpoint=False), xp.linspace(1, 2, 1)), name="linspace"
    ),
    case(lambda xp: xp.linspace(np.array([0.0, 1.0], np.float32), 5, 3, axis=-1), name="linspace arrays"),
    case(lambda xp: (xp.eye(3, dtype=np.float32), xp.eye(2, 4, 1), xp.identity(2), xp.logspace(0, 2, 3)), name="eye"),
    case(lambda xp: (*xp.meshgrid(V, W[:2]), *xp.meshgrid(V, W[:2], indexing="ij", sparse=True)), name="meshgrid"),
    case(lambda xp, x: (xp.zeros_like(x), xp.ones_like(x, np.int32), xp.full_like(x, 3), xp.empty_like(x) * 0), B),
    case(lambda xp: (xp.array([[1, 2], [3, 4]]), xp.array([1.5, 2]), xp.array([True, False]), xp.array(3, ndmin=2))),
    # methods and operators
    case(lambda xp, x: (x.sum(0), x.mean(), x.max(1), x.argmax(), x.std(), x.clip(-1, 1), x.round(1), x.T), B),
    case(lambda xp, x: (+x, -x, abs(x), x + 1, 1 - x, x * 2, 2 / x, x // 0.5, x % 0.3, 2**x), B),
    case(lambda xp, x, y: (x & y, x | 3, x ^ y, ~x, x << 1, x >> 1, x // y, x % y, *divmod(x, y)), N, J),
    case(lambda xp, x: (x > 0, x >= 0.5, x == x, x != 0, x < 1, x <= 0), V),
    case(lambda xp, x: (x.astype(np.int32), x.astype(np.float16), x.flatten(), x.repeat(2), x.dot(x)), V),
]


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def check(found: Any, expected: Any) -> None:
    for f, e in zip(flat(found), flat(expected), strict=True):
        assert np.shape(f) == np.shape(e)
        tolerance = 2e-5 if np.asarray(e).dtype.kind in "fc" else 0
        np.testing.assert_allclose(np.asarray(f), np.asarray(e), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("function", "arrays"), CASES)
def test_values(function: Case, arrays: tuple[Any, ...]) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = function(np, *arrays)
    check(function(jnp, *[jnp.asarray(a) for a in arrays]), expected)
    check(hloom.jit(lambda *values: function(jnp, *values))(*arrays), expected)


def test_the_check_can_fail() -> None:
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        check(jnp.exp(jnp.ones(3)), np.exp(np.ones(3)) * 1.001)
    with pytest.raises(AssertionError, match=r"\(3, 1\) == \(3,\)"):
        check(jnp.ones((3, 1)), np.ones(3))


# ---- result types

FACTS = jax_facts.load()
NOT_COMPLEX = {"argmax", "argmin"}
"""Where JAX orders complex numbers by real, then imaginary part, and hloom refuses them."""


@pytest.mark.filterwarnings("ignore:Explicitly requested dtype:UserWarning")
def test_promotion_is_that_of_jax() -> None:
    assert jax_facts.promotion_of(jnp, hloom.eval_shape) == FACTS["promotion"]


@pytest.mark.usefixtures("x64")
def test_promotion_with_x64_is_that_of_jax() -> None:
    assert jax_facts.promotion_of(jnp, hloom.eval_shape) == FACTS["promotion_x64"]


def test_result_types_are_those_of_jax() -> None:
    found = jax_facts.types_of(jnp, hloom.eval_shape)
    for name, expected in FACTS["types"].items():
        different = [(f, e) for f, e in zip(found[name].split(), expected.split(), strict=True) if f != e]
        if name in NOT_COMPLEX:
            different = [(f, e) for f, e in different if f != "error"]
        assert different == [], name


def test_recorded_facts_are_those_of_the_installed_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != FACTS["jax"]:
        pytest.skip(f"the facts are those of JAX {FACTS['jax']}")
    import jax.numpy

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert jax_facts.promotion_of(jax.numpy, jax.eval_shape) == FACTS["promotion"]


def test_result_type() -> None:
    assert jnp.result_type(np.float32, 1) == np.float32
    assert jnp.result_type(jnp.ones(2, jnp.bfloat16), 1.5) == ml_dtypes.bfloat16
    assert jnp.promote_types("int32", "uint32") == np.int32
    assert jnp.promote_types("float64", "float32") == np.float64  # not narrowed
    assert jnp.finfo(np.float64).dtype == np.float64
    assert jnp.iinfo(np.int64).max == 2**63 - 1
    assert jnp.result_type(int) == np.int32
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert not jnp.issubdtype(jnp.int32, jnp.floating)
    assert float(jnp.finfo(jnp.bfloat16).max) > 3e38
    assert jnp.iinfo(jnp.int8).max == 127


def test_64_bit_inputs_become_32_bit() -> None:
    assert jnp.asarray(np.zeros(2)).dtype == np.float32
    assert jnp.asarray(np.zeros(2, np.int64)).dtype == np.int32
    assert (jnp.ones(2, np.float32) + np.float64(1)).dtype == np.float32


@pytest.mark.usefixtures("x64")
def test_x64_keeps_64_bit() -> None:
    assert jnp.asarray(np.zeros(2)).dtype == np.float64
    assert jnp.arange(3).dtype == np.int64
    assert jnp.ones(2).dtype == np.float64
    assert hloom.jit(lambda x: x * 2)(np.ones(2)).dtype == np.float64
    check(jnp.exp(jnp.asarray(A.astype(np.float64))), np.exp(A.astype(np.float64)))


# ---- x.at[...]

UPDATES: list[tuple[Any, Any]] = [
    ((0,), 9.0),
    ((-1, 2), 5.0),
    ((slice(None), 1), np.arange(3.0)),
    ((slice(1, 3), slice(None, None, 2)), 7.0),
    ((slice(None, None, -1), slice(None)), np.arange(12.0).reshape(3, 4)),
    ((Ellipsis, slice(3, 0, -2)), np.arange(6.0).reshape(3, 2)),
    ((slice(2, 1),), 3.0),
    ((None, 1), np.arange(4.0)),
]
OPERATIONS: dict[str, Callable[[Any, Any, Any], None]] = {
    "set": lambda x, i, y: x.__setitem__(i, y),
    "add": lambda x, i, y: x.__setitem__(i, x[i] + y),
    "subtract": lambda x, i, y: x.__setitem__(i, x[i] - y),
    "multiply": lambda x, i, y: x.__setitem__(i, x[i] * y),
    "divide": lambda x, i, y: x.__setitem__(i, x[i] / (y + 1)),
    "min": lambda x, i, y: x.__setitem__(i, np.minimum(x[i], y)),
    "max": lambda x, i, y: x.__setitem__(i, np.maximum(x[i], y)),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize(("index", "values"), UPDATES)
def test_at(operation: str, index: Any, values: Any) -> None:
    expected = B.astype(np.float64)
    OPERATIONS[operation](expected, index, values)
    given = values + 1 if operation == "divide" else values

    def update(x: Any) -> Any:
        return getattr(x.at[index], operation)(given)

    x = jnp.asarray(B)
    for result in (update(x), hloom.jit(update)(x)):
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-5)
        assert result.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(x), B)


def test_at_get_and_apply() -> None:
    x = jnp.asarray(B)
    np.testing.assert_array_equal(np.asarray(x.at[1, ::2].get()), B[1, ::2])
    expected = B.copy()
    expected[:, 1] = np.exp(expected[:, 1])
    np.testing.assert_allclose(np.asarray(x.at[:, 1].apply(jnp.exp)), expected, rtol=1e-6)


@pytest.mark.parametrize("index", [-7, -3, -1, 0, 2, 3, 9])
def test_traced_index(index: int) -> None:
    """Reading clamps, writing out of bounds does nothing: with constant and with traced integers, as in JAX."""
    x = jnp.asarray(B)
    wrapped = index + 3 if index < 0 else index
    read = np.asarray(hloom.jit(lambda x, i: x[i, 1:])(x, index))
    np.testing.assert_array_equal(read, B[min(max(wrapped, 0), 2), 1:])
    np.testing.assert_array_equal(read, np.asarray(x[index, 1:]))
    expected = B.copy()
    if 0 <= wrapped < 3:
        expected[wrapped, ::2] += 1
    written = hloom.jit(lambda x, i: x.at[i, ::2].add(1))(x, index)
    np.testing.assert_allclose(np.asarray(written), expected)
    np.testing.assert_allclose(np.asarray(x.at[index, ::2].add(1)), expected)


def test_traced_index_beside_steps() -> None:
    x = jnp.asarray(A)
    got = hloom.jit(lambda x, i, j: x[i, ::-2, j])(x, 1, 3)
    np.testing.assert_array_equal(np.asarray(got), A[1, ::-2, 3])


# ---- what is not there


def test_missing_names_say_so() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'"):
        _ = jnp.no_such_thing


def test_unknown_pad_mode() -> None:
    with pytest.raises(hloom.errors.UnsupportedError, match=r"Unimplemented padding mode 'mirror'.*reflect"):
        jnp.pad(jnp.ones(3), 1, mode="mirror")
