"""hloom.lax: values against NumPy, traced and eager; what it refuses; its control flow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.errors import OperandError, ShapeError, TreeStructureError, UnsupportedError
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

RNG = np.random.default_rng(1)
A = RNG.standard_normal((2, 3, 4)).astype(np.float32)
B = RNG.standard_normal((3, 4)).astype(np.float32)
V = RNG.standard_normal(5).astype(np.float32)
N = RNG.integers(-9, 9, (3, 4)).astype(np.int32)
U = RNG.integers(0, 2**32, 6, dtype=np.uint32)
C = (RNG.standard_normal(3) + 1j * RNG.standard_normal(3)).astype(np.complex64)


def case(found: Callable[..., Any], expected: Callable[..., Any], *arrays: Any) -> Any:
    return pytest.param(found, expected, arrays, id=str(found.__code__.co_firstlineno))


def trunc_div(a: Any, b: Any) -> Any:
    return np.trunc(a / b).astype(a.dtype)


CASES = [
    case(lambda x: (lax.add(x, 1.0), lax.max(x, 0.0), lax.sub(2.0, x)), lambda x: (x + 1, np.maximum(x, 0), 2 - x), B),
    case(lambda x: lax.mul(x, jnp.ones((3, 1))), lambda x: x, B),
    case(lambda x, y: (lax.div(x, y), lax.rem(x, y)), lambda x, y: (trunc_div(x, y), np.fmod(x, y)), N, np.abs(N) + 1),
    case(lambda x: (lax.pow(x, 3), lax.integer_pow(x, 5), lax.integer_pow(x, -2)), lambda x: (x**3, x**5, x**-2.0), V),
    case(lambda x: (lax.square(x), lax.reciprocal(x), lax.exp2(x)), lambda x: (x * x, 1 / x, 2**x), V),
    case(lambda x: (lax.logistic(x), lax.erf(x)), lambda x: (scipy.special.expit(x), scipy.special.erf(x)), V),
    case(lambda x: (lax.rsqrt(x), lax.cbrt(x)), lambda x: (1 / np.sqrt(x), np.cbrt(x)), np.abs(V)),
    case(lambda x: (lax.atan(x), lax.atan2(x, x + 1)), lambda x: (np.arctan(x), np.arctan2(x, x + 1)), V),
    case(
        lambda x: (lax.round(x), lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)),
        lambda x: (np.array([1, 2, 3, -1, -3]), np.round(x)),
        np.array([0.5, 1.5, 2.5, -0.5, -2.5], np.float32),
    ),
    case(
        lambda x: (lax.population_count(x), lax.clz(x)),
        lambda x: ([bin(v).count("1") for v in x], [32 - int(v).bit_length() for v in x]),
        U,
    ),
    case(
        lambda x: (lax.shift_left(x, np.uint32(3)), lax.shift_right_logical(x, np.uint32(3))),
        lambda x: (x << 3, x >> 3),
        U,
    ),
    case(lambda x: lax.shift_right_arithmetic(x, 2), lambda x: x >> 2, N),
    case(
        lambda x: (lax.bitwise_and(x, 6), lax.bitwise_or(x, 1), lax.bitwise_xor(x, 5), lax.bitwise_not(x)),
        lambda x: (x & 6, x | 1, x ^ 5, ~x),
        N,
    ),
    case(
        lambda x: (lax.eq(x, 0), lax.ne(x, 1), lax.lt(x, 2), lax.le(x, 2), lax.gt(x, 2), lax.ge(x, 2)),
        lambda x: (x == 0, x != 1, x < 2, x <= 2, x > 2, x >= 2),
        N,
    ),
    case(
        lambda x: (lax.real(x), lax.imag(x), lax.conj(x), lax.abs(x)),
        lambda x: (x.real, x.imag, x.conj(), np.abs(x)),
        C,
    ),
    case(lambda x: lax.complex(x, x), lambda x: x + 1j * x, V),
    case(lambda x: (lax.select(lax.gt(x, 0.0), x, lax.neg(x)), lax.select(True, x, x)), lambda x: (np.abs(x), x), V),
    case(lambda i, x: lax.select_n(i, x, x + 1, x + 2), lambda i, x: x + i, np.array([0, 1, 2, 0, 2], np.int32), V),
    case(lambda x: (lax.clamp(-0.5, x, 0.5), lax.clamp(x, x, x)), lambda x: (np.clip(x, -0.5, 0.5), x), V),
    case(
        lambda x: (lax.convert_element_type(x, np.int32), lax.convert_element_type(x, bool)),
        lambda x: (x.astype(np.int32), x != 0),
        V,
    ),
    case(lambda x: lax.bitcast_convert_type(x, np.uint32), lambda x: x.view(np.uint32), V),
    case(lambda x: lax.bitcast_convert_type(x, np.uint16), lambda x: x.view(np.uint16).reshape(6, 2), U),
    # movement
    case(
        lambda x: (lax.broadcast(x, (2, 1)), lax.broadcast_in_dim(x, (2, 3, 4), (1, 2))),
        lambda x: (np.broadcast_to(x, (2, 1, 3, 4)), np.broadcast_to(x, (2, 3, 4))),
        B,
    ),
    case(
        lambda x: lax.broadcast_in_dim(x, (2, 3, 5), (0, 2)),
        lambda x: np.broadcast_to(x[:, None], (2, 3, 5)),
        A[:, :1, 0],
    ),
    case(
        lambda x: (lax.reshape(x, (4, 6)), lax.reshape(x, (24,), (2, 0, 1)), lax.collapse(x, 1)),
        lambda x: (x.reshape(4, 6), x.transpose(2, 0, 1).ravel(), x.reshape(2, 12)),
        A,
    ),
    case(
        lambda x: (lax.transpose(x, (2, 0, 1)), lax.rev(x, (0, 2)), lax.expand_dims(x, (0, 2))),
        lambda x: (x.transpose(2, 0, 1), x[::-1, :, ::-1], x[None, :, None]),
        A,
    ),
    case(lambda x: lax.squeeze(x, (1,)), lambda x: x[:, 0], A[:, :1]),
    case(
        lambda x: (
            lax.slice(x, (1, 0), (3, 4), (1, 2)),
            lax.slice_in_dim(x, 1, -1, 1, 1),
            lax.index_in_dim(x, -1, 0, False),
        ),
        lambda x: (x[1:3, ::2], x[:, 1:-1], x[-1]),
        B,
    ),
    case(
        lambda x: lax.pad(x, 0.0, [(1, -1, 0), (0, 2, 1)]),
        lambda x: np.stack(
            [np.zeros(9, np.float32), *[np.array([r[0], 0, r[1], 0, r[2], 0, r[3], 0, 0]) for r in x[:2]]]
        ),
        B,
    ),
    case(
        lambda x: (lax.concatenate([x, x], 1), *lax.split(x, [1, 3], 1)),
        lambda x: (np.concatenate([x, x], 1), x[:, :1], x[:, 1:]),
        B,
    ),
    case(
        lambda: (lax.iota(np.int32, 4), lax.broadcasted_iota(np.float32, (2, 3), 1)),
        lambda: (np.arange(4), np.array([[0, 1, 2]] * 2)),
    ),
    case(
        lambda x: (lax.full((2,), 3), lax.full_like(x, 2)),
        lambda x: (np.full(2, 3), np.full((3, 4), 2)),
        B,
    ),
    case(
        lambda x, i: (lax.dynamic_slice(x, (i, 1), (2, 2)), lax.dynamic_slice_in_dim(x, i, 2, 1)),
        lambda x, i: (x[1:3, 1:3], x[:, 1:3]),
        B,
        np.int32(1),
    ),
    case(
        lambda x, i: (lax.dynamic_index_in_dim(x, i, 1, False), lax.dynamic_slice(x, (9, -1), (1, 1))),
        lambda x, i: (x[:, 2], x[2:, 3:]),
        B,
        np.int32(2),
    ),
    case(
        lambda x, i: (
            lax.dynamic_update_slice(x, x[:1], (i, 0)),
            lax.dynamic_update_slice_in_dim(x, x[:, :2], i, 1),
            lax.dynamic_update_index_in_dim(x, x[0], i, 0),
        ),
        lambda x, i: (
            np.stack([x[0], x[0], x[2]]),
            np.concatenate([x[:, :1], x[:, :2], x[:, 3:]], 1),
            np.stack([x[0], x[0], x[2]]),
        ),
        B,
        np.int32(1),
    ),
    # reductions
    case(
        lambda x: (
            lax.reduce_sum(x, (0, 2)),
            lax.reduce_max(x, (1,)),
            lax.reduce_min(x, ()),
            lax.reduce_prod(x, (0, 1, 2)),
        ),
        lambda x: (x.sum((0, 2)), x.max(1), x, x.prod()),
        A,
    ),
    case(
        lambda x: (lax.reduce_and(x, (0,)), lax.reduce_or(x, (0,)), lax.reduce_xor(x, (1,))),
        lambda x: (np.bitwise_and.reduce(x), np.bitwise_or.reduce(x), np.bitwise_xor.reduce(x, 1)),
        N,
    ),
    case(
        lambda x: (lax.reduce_and(x > 0, (0,)), lax.reduce_or(x > 0, (0,))),
        lambda x: ((x > 0).all(0), (x > 0).any(0)),
        N,
    ),
    case(lambda x: lax.reduce(x, 0.0, lax.add, (0,)), lambda x: x.sum(0), B),
    case(lambda x: lax.reduce(x, -99.0, lambda a, b: jnp.where(a > b, a, b), (0,)), lambda x: x.max(0), B),
    case(
        lambda x: lax.reduce((x, x), (0.0, -math.inf), lambda a, b: (a[0] + b[0], lax.max(a[1], b[1])), (1,)),
        lambda x: (x.sum(1), x.max(1)),
        B,
    ),
    case(lambda x: (lax.argmax(x, 1, np.int32), lax.argmin(x, 0, np.uint8)), lambda x: (x.argmax(1), x.argmin(0)), B),
    case(lambda x: lax.argmax(x, 0, np.int32), lambda x: np.int32(2), np.array([1, 5, np.nan, 5, np.nan], np.float32)),
    case(lambda x: lax.argmax(x, 0, np.int32), lambda x: np.int32(1), np.array([1, 5, 5], np.float32)),
    case(
        lambda x: (lax.cumsum(x, 1), lax.cumsum(x, 0, reverse=True), lax.cummax(x, 1), lax.cummin(x, 0)),
        lambda x: (x.cumsum(1), x[::-1].cumsum(0)[::-1], np.maximum.accumulate(x, 1), np.minimum.accumulate(x, 0)),
        B,
    ),
    case(lambda x: (lax.cumprod(x), lax.cumlogsumexp(x)), lambda x: (x.cumprod(), np.logaddexp.accumulate(x)), V),
    # products
    case(
        lambda x, y: (lax.dot(x, y), lax.dot(x[0], y), lax.dot(x[0], x[0])),
        lambda x, y: (x @ y, x[0] @ y, x[0] @ x[0]),
        B,
        B.T,
    ),
    case(
        lambda x, y: lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))),
        lambda x, y: np.einsum("bij,bj->bi", x, y),
        A,
        A[:, 0],
    ),
    case(
        lambda x: lax.dot_general(x, x, (((0,), (0,)), ((), ())), preferred_element_type=np.float32),
        lambda x: np.einsum("ij,ik->jk", x, x),
        N.astype(np.float16),
    ),
    case(lambda x: lax.batch_matmul(x, lax.transpose(x, (0, 2, 1))), lambda x: x @ x.swapaxes(1, 2), A),
    case(lambda x: (lax.optimization_barrier(x), lax.stop_gradient(x)), lambda x: (x, x), V),
]


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


@pytest.mark.parametrize(("found", "expected", "arrays"), CASES)
def test_values(found: Callable[..., Any], expected: Callable[..., Any], arrays: tuple[Any, ...]) -> None:
    for results in (found(*[jnp.asarray(a) for a in arrays]), hloom.jit(found)(*arrays)):
        for f, e in zip(flat(results), flat(expected(*arrays)), strict=True):
            assert tuple(f.shape) == np.shape(e)
            np.testing.assert_allclose(np.asarray(f), e, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.usefixtures("x64")
def test_erf_inv(dtype: str) -> None:
    x = jnp.asarray(np.concatenate([np.linspace(-0.999, 0.999, 201), [1e-30, 0, -0.0, 1 - 1e-7]]), dtype)
    y = np.asarray(lax.erf_inv(x)).astype(np.float64)
    exact = scipy.special.erfinv(np.asarray(x).astype(np.float64))
    tolerance = {"float32": 3e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 1e-2}[dtype]
    finite = np.isfinite(exact)
    np.testing.assert_allclose(y[finite], exact[finite], rtol=tolerance)
    ends = np.asarray(lax.erf_inv(jnp.asarray([1.0, -1.0, 1.5, np.nan], dtype))).astype(np.float64)
    np.testing.assert_array_equal(ends, [np.inf, -np.inf, np.nan, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.usefixtures("x64")
def test_nextafter(dtype: Any) -> None:
    values = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-7, np.finfo(dtype).max], dtype)
    for target in (np.inf, -np.inf, 0.0, 1.0):
        with np.errstate(all="ignore"):
            expected = np.nextafter(values, dtype(target))
        found = np.asarray(lax.nextafter(values, dtype(target)))
        if dtype is not np.float16:  # NumPy's neighbour of -0.0 towards 0.0 is -0.0 in float16 alone
            np.testing.assert_array_equal(np.signbit(found[:6]), np.signbit(expected[:6]))
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtypes", [("int32", "int32"), ("complex64", "complex64"), ("float32", "bfloat16")])
def test_functions_of_floats_refuse_other_types(dtypes: tuple[str, str]) -> None:
    x, y = (jnp.ones(2, dtype) for dtype in dtypes)
    with pytest.raises(OperandError, match="nextafter does not accept"):
        lax.nextafter(x, y)
    if dtypes[0] == dtypes[1]:
        with pytest.raises(OperandError, match="erf_inv does not accept"):
            lax.erf_inv(x)


# ---- types


def test_weak_types() -> None:
    assert lax.add(1, 2).weak_type
    assert not lax.add(jnp.ones(2), 1.0).weak_type
    assert lax.full((2,), 1).weak_type
    assert not lax.full((2,), 1, np.int32).weak_type
    assert not lax.convert_element_type(1, np.int32).weak_type
    assert lax.exp(1.0).weak_type
    assert lax.lt(1, 2).weak_type and not lax.lt(jnp.ones(2), 1.0).weak_type
    assert lax.reshape(jnp.asarray(1), (1,)).weak_type


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.int8, "int4"])
@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf, 300.0, -1.5, 3e10])
def test_a_number_saturates_as_an_array_does(number: float, dtype: Any) -> None:
    expected = int(lax.convert_element_type(jnp.asarray([number]), dtype)[0])
    for wrap in (lambda f: f, hloom.jit):
        assert int(wrap(lambda: lax.convert_element_type(number, dtype))()) == expected
    assert int(jnp.pad(jnp.zeros(1, dtype), 1, constant_values=number)[0]) == expected


REFUSED: list[tuple[Callable[[], Any], str, str]] = [
    (lambda: lax.add(B, N), "add_dtypes", "float32, int32"),
    (lambda: lax.add(B, 1), "add_dtypes", "float32, int32"),
    (lambda: lax.add(B, V), "add_rank", "same number of dimensions"),
    (lambda: lax.add(B, A[0, :2]), "broadcast_shapes", "Incompatible shapes"),
    (lambda: lax.exp(N), "exponential_c1", "exp does not accept dtype int32"),
    (lambda: lax.reshape(B, (5,)), "reshape_c2", "12 elements"),
    (lambda: lax.transpose(B, (0, 0)), "transpose_c2", "permutation"),
    (lambda: lax.concatenate([B, N], 0), "concatenate_c2", "float32, int32"),
    (lambda: lax.concatenate([B, B[:, :2]], 0), "concatenate_c4", "dimension 0 only"),
    (lambda: lax.slice(B, (0, 0), (4, 4)), "slice_c3", "0:4"),
    (lambda: lax.dot(B, B), "dot_c5", "sizes are"),
    (lambda: lax.dot(A, A), "dot_rank", "vectors and matrices"),
    (lambda: lax.select(B, B, B), "select_c1", "pred"),
    (lambda: lax.dynamic_slice(B, (0,), (1, 1)), "dynamic-slice_c2", "1 start indices for 2"),
    (lambda: lax.dynamic_slice(B, (0.0, 1.0), (1, 1)), "dynamic-slice_c3", "integers"),
    (lambda: lax.squeeze(B, (0,)), "squeeze_c1", "cannot select an axis to squeeze out"),
    (lambda: lax.pad(B, np.int32(0), [(0, 0, 0)] * 2), "pad_c1", "padding_value"),
    (lambda: lax.split(B, [1, 1]), "split", "Sum of sizes 2 must be equal to 3"),
    (lambda: lax.split(B, [-1, 4]), "split", "must be nonnegative, got (-1, 4)"),
    (lambda: lax.full((2,), B), "full_c1", "scalar"),
    (lambda: lax.reduce((B, B), (0.0,), lambda a, b: a, (0,)), "reduce_c1", "init_values"),
]


@pytest.mark.parametrize(("call", "label", "message"), REFUSED, ids=[label for _, label, _ in REFUSED])
def test_refusals_name_the_rule_and_the_line(call: Callable[[], Any], label: str, message: str) -> None:
    with pytest.raises(OperandError) as caught:
        call()
    assert caught.value.label == label
    assert message in str(caught.value)
    assert f"test_lax.py:{call.__code__.co_firstlineno}" in str(caught.value)
    assert isinstance(caught.value, ShapeError)
    assert isinstance(caught.value, TypeError)


def test_a_reducer_cannot_capture() -> None:
    def scaled_sum(x: Any, y: Any) -> Any:
        return lax.reduce(x, 0.0, lambda a, b: a + b * y, (0,))

    with pytest.raises(UnsupportedError, match="uses values from outside"):
        hloom.jit(scaled_sum)(B, 2.0)


# ---- control flow


def test_while_loop() -> None:
    def collatz(n: Any) -> Any:
        def body(state: Any) -> Any:
            n, steps = state
            return jnp.where(n % 2 == 0, n // 2, 3 * n + 1), steps + 1

        return lax.while_loop(lambda s: s[0] != 1, body, (n, 0))[1]

    assert int(collatz(27)) == 111
    assert int(hloom.jit(collatz)(27)) == 111


def test_while_loop_uses_values_from_outside() -> None:
    @hloom.jit
    def f(x: Any, limit: Any, step: Any) -> Any:
        return lax.while_loop(lambda v: v.sum() < limit, lambda v: v + step, x)

    np.testing.assert_array_equal(np.asarray(f(np.zeros(2, np.float32), 5.0, np.ones(2, np.float32))), [3, 3])


def test_weak_carry_takes_the_body_type() -> None:
    result = lax.while_loop(lambda x: x < 3, lambda x: x + 1.5, 0)
    assert (float(result), result.dtype, result.weak_type) == (3.0, np.float32, False)


@pytest.mark.parametrize("bounds", [(0, 5), (2, 2), (3, 0), (-2, 3)])
def test_fori_loop(bounds: tuple[int, int]) -> None:
    expected = sum(i * i for i in range(*bounds))
    constant = lax.fori_loop(*bounds, lambda i, x: x + i * i, 0)
    traced = hloom.jit(lambda a, b: lax.fori_loop(a, b, lambda i, x: x + i * i, 0))(*bounds)
    assert int(constant) == int(traced) == expected


@pytest.mark.parametrize(
    "bounds, numbers", [((-1.0, 1.0), [-1, 0]), ((0.5, 3.7), [0.5, 1.5, 2.5, 3.5]), ((3.0, 0.0), [])]
)
def test_fori_loop_between_floats(bounds: tuple[float, float], numbers: list[float]) -> None:
    def run(a: Any, b: Any) -> Any:
        return lax.fori_loop(a, b, lambda i, s: (s[0].at[s[1]].set(i), s[1] + 1), (jnp.zeros(5), 0))

    with hloom.disable_jit():
        plain = run(*bounds)
    for found, count in (plain, run(*bounds), hloom.jit(run)(*bounds)):
        np.testing.assert_array_equal(found[: len(numbers)], numbers)
        assert count == len(numbers)
    assert hloom.grad(lambda x: lax.fori_loop(1.0, 3.0, lambda i, c: c * x * i, 1.0))(2.0) == 8


def test_cond() -> None:
    x = jnp.arange(3.0)
    for choose in (lax.cond, hloom.jit(lambda p, *a: lax.cond(p, lambda v: v + x, lambda v: v * x, *a))):
        if choose is lax.cond:
            np.testing.assert_array_equal(np.asarray(choose(True, lambda v: v + x, lambda v: v * x, x)), [0, 2, 4])
        else:
            np.testing.assert_array_equal(np.asarray(choose(True, x)), [0, 2, 4])
            np.testing.assert_array_equal(np.asarray(choose(0, x)), [0, 1, 4])
    assert float(lax.cond(2.5, lambda: 1.0, lambda: 2.0)) == 1.0
    assert float(lax.cond(False, lambda v: v, lambda v: -v, operand=3.0)) == -3.0


@pytest.mark.parametrize(("index", "expected"), [(-4, 1), (0, 1), (1, 20), (2, 300), (7, 300)])
def test_switch(index: int, expected: int) -> None:
    branches = [lambda x: x, lambda x: x * 20, lambda x: x * 300]
    assert int(lax.switch(index, branches, 1)) == expected
    assert int(hloom.jit(lambda i: lax.switch(i, branches, 1))(index)) == expected
    assert int(lax.switch(index, branches[:1], 1)) == 1


def scan_in_numpy(c: Any, xs: Any, reverse: bool) -> tuple[Any, Any]:
    ys = []
    for x in xs[::-1] if reverse else xs:
        c = np.tanh(c + x)
        ys.append(c * 2)
    return c, np.stack(ys[::-1] if reverse else ys)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_scan(reverse: bool, compiled: bool) -> None:
    def f(c: Any, x: Any) -> Any:
        c = jnp.tanh(c + x["x"])
        return c, {"y": c * 2, "none": None}

    def run(c: Any, xs: Any) -> Any:
        return lax.scan(f, c, {"x": xs}, reverse=reverse, unroll=2)

    last, ys = (hloom.jit(run) if compiled else run)(B[0], B)
    expected = scan_in_numpy(B[0], B, reverse)
    np.testing.assert_allclose(np.asarray(last), expected[0], rtol=1e-5)
    np.testing.assert_allclose(np.asarray(ys["y"]), expected[1], rtol=1e-5)
    assert ys["none"] is None


def test_scan_without_arrays_and_over_nothing() -> None:
    last, ys = lax.scan(lambda c, _: (c * 2, c), 1, None, length=4)
    assert int(last) == 16
    np.testing.assert_array_equal(np.asarray(ys), [1, 2, 4, 8])
    last, ys = lax.scan(lambda c, x: (c, x * 2.0), 1.0, jnp.zeros((0, 3)))
    assert (float(last), ys.shape) == (1.0, (0, 3))


def test_scan_is_a_composite_call() -> None:
    text = hloom.make_hlo(lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x))(V).to_text()
    assert 'composite.name="scan"' in text
    assert "while(" in text


def test_map() -> None:
    np.testing.assert_allclose(np.asarray(lax.map(lambda r: r.sum() * 2, jnp.asarray(B))), B.sum(1) * 2, rtol=1e-6)


def test_control_flow_without_jit() -> None:
    """Under disable_jit loops are Python's."""
    seen: list[Any] = []

    def body(c: Any, x: Any) -> Any:
        seen.append(float(x))
        return c + x, c

    with hloom.disable_jit():
        assert float(lax.scan(body, 0.0, jnp.arange(3.0), reverse=True)[0]) == 3.0
        assert float(lax.fori_loop(0, 3, lambda i, x: x + i, 1.0)) == 4.0
        assert float(lax.while_loop(lambda x: x < 3, lambda x: x + 1, 0)) == 3.0
        assert float(lax.cond(True, lambda: 1.0, lambda: "never run")) == 1.0
    assert seen == [2.0, 1.0, 0.0]


DIFFER: list[tuple[Callable[[], Any], list[str]]] = [
    (
        lambda: lax.while_loop(lambda x: x < 3, lambda x: x + 1.5, jnp.zeros((), int)),
        ["int32[]", "float32[]", "dtypes"],
    ),
    (lambda: lax.while_loop(lambda x: x[0] < 3, lambda x: (x[0],), [0]), ["<class 'list'>", "<class 'tuple'>"]),
    (lambda: lax.while_loop(lambda x: x, lambda x: x, 0), ["boolean scalar", "int32[]"]),
    (lambda: lax.scan(lambda c, x: (c[:1], x), V, V), ["float32[5]", "float32[1]", "shapes"]),
    (lambda: lax.scan(lambda c, x: ({"a": c["a"] * 1j}, x), {"a": V}, V), ["['a']", "float32[5]", "complex64[5]"]),
    (lambda: lax.scan(lambda c, x: c, V, V), ["pair"]),
    (lambda: lax.cond(True, lambda: 1, lambda: (1,)), ["true_fun output is a pytree leaf", "<class 'tuple'>"]),
    (lambda: lax.cond(True, lambda: 1, lambda: 1.5), ["int32[]", "float32[]"]),
    (lambda: lax.cond(V, lambda: 1, lambda: 2), ["scalar", "float32[5]"]),
    (lambda: lax.switch(1.5, [lambda: 1, lambda: 2]), ["Index type must be an integer", "float32[]"]),
    (lambda: lax.switch(1, [lambda: 1, lambda: 2, lambda: B]), ["branch 2", "float32[3,4]"]),
    (lambda: lax.fori_loop(0, 2.5, lambda i, x: x, 0), ["int32 and float32"]),
]


@pytest.mark.parametrize(("call", "words"), DIFFER, ids=[str(c.__code__.co_firstlineno) for c, _ in DIFFER])
def test_structures_that_differ(call: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(TreeStructureError) as caught:
        call()
    for word in [*words, "test_lax.py"]:
        assert word in str(caught.value)


def test_lengths_that_differ() -> None:
    for call in (
        lambda: lax.scan(lambda c, x: (c, x), 0, (V, B)),
        lambda: lax.scan(lambda c, x: (c, x), 0, V, length=3),
        lambda: lax.scan(lambda c, x: (c, x), 0, None),
        lambda: lax.scan(lambda c, x: (c, x), 0, 1.0),
    ):
        with pytest.raises(ValueError, match="scan"):
            call()
