"""Results and errors of `hloom.numpy` at the edges: strict promotion, mixed ranks, scalars of NumPy, objects."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax
from hloom.scipy import linalg

A = np.arange(6.0, dtype=np.float32).reshape(2, 3)
HALF = np.arange(1.0, 4.0, dtype=np.float16)


def _both(name: str, *args: Any, **options: Any) -> tuple[Any, Any]:
    """The function of hloom, and NumPy's."""
    return getattr(jnp, name)(*args, **options), getattr(np, name)(*args, **options)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _both("all", A, 1, where=np.array([True, False, True])),
        lambda: _both("nanmean", A, 0, where=np.array([True, True, True])),
        lambda: _both("nanmax", A, initial=-9.0, where=np.array([True, False, True])),
        lambda: _both("cov", A, fweights=np.array([1, 2, 1])),
        lambda: _both("polyfit", A[0], A.T, 1),
        lambda: _both("polyfit", A[0], A.T, 0, cov=True),
        lambda: _both("where", np.array([True, False, True]), A, A[0]),
        lambda: _both("geomspace", np.float16(1), np.float16(8), 4),
        lambda: _both("linspace", A, A + 1, 1, retstep=True),
        lambda: _both("gradient", A, axis=(1,)),
        lambda: _both("trapezoid", A, dx=np.array([[1.0, 2.0, 3.0]], np.float32), axis=0),
        lambda: _both("histogram2d", np.arange(4), np.arange(4), 2, weights=np.arange(4)),
        lambda: _both("eye", 3, k=2**100),
        lambda: _both("zeros", np.array(3)),
        lambda: _both("lcm", np.int8(100), np.int8(63)),
        lambda: (jnp.mgrid[:], np.mgrid[:]),
        lambda: (jnp.add.outer(A, A[0]), np.add.outer(A, A[0])),
        lambda: (jnp.maximum.reduceat(A, np.array([0, 1])), np.maximum.reduceat(A, np.array([0, 1]))),
        lambda: (jnp.asarray(A).byteswap(), A.byteswap()),
        lambda: (jnp.asarray(A + 1j).byteswap(), (A + 1j).astype(np.complex64).byteswap()),
    ],
)
def test_strictly(call: Any) -> None:
    """Functions promote and broadcast within themselves, even if users forbid it for their own operations."""
    with hloom.numpy_dtype_promotion("strict"), hloom.numpy_rank_promotion("raise"):
        found, wanted = call()
    many = isinstance(wanted, tuple | list)
    for one, other in zip(found if many else [found], wanted if many else [wanted], strict=True):
        assert one.shape == np.shape(other)
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "numbers, dtype",
    [
        ([0, np.int16(1)], "int16"),
        ([0, np.float16(1)], "float16"),
        ([0.5, np.int16(1)], "float32"),
        ([True, np.int8(1)], "int8"),
        ([[0], [np.int8(1)]], "int8"),
        ([HALF, [1, 2, 3.0]], "float16"),
        ([np.int8(1), np.zeros((), np.int16)], "int16"),
        ([1, 2.0], "float32"),
    ],
)
def test_lists_of_numpy_scalars(numbers: Any, dtype: str) -> None:
    """Python's numbers are weak beside NumPy's, as everywhere."""
    assert jnp.array(numbers).dtype == dtype and not jnp.array(numbers).weak_type


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, jnp.copy, jnp.array, lambda x: x.astype(x.dtype, copy=True)]
)
def test_copies_have_their_own_memory(make: Any) -> None:
    x = jnp.arange(3.0)
    y = make(x)
    x.delete()
    assert y.tolist() == [0.0, 1.0, 2.0]


def test_variance_in_a_wider_dtype() -> None:
    with hloom.numpy_dtype_promotion("strict"):
        assert jnp.var(jnp.asarray(A), dtype=np.float16).dtype == np.float16
        assert float(jnp.nanvar(HALF, dtype=np.float32)) == pytest.approx(2 / 3)
    with pytest.raises(ValueError, match="computed with a complex dtype"):
        jnp.var(jnp.ones(3, np.complex64), dtype=np.float32)


class Named:
    """An object that says which array it is."""

    def __jax_array__(self) -> Any:
        return jnp.arange(3.0)


def test_objects_with_an_array() -> None:
    assert (Named() * jnp.arange(3.0)).tolist() == [0.0, 1.0, 4.0]
    assert (jnp.arange(3.0) - Named()).tolist() == [0.0, 0.0, 0.0]
    assert jnp.asarray(Named()).tolist() == jnp.array(Named()).tolist() == jnp.copy(Named()).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="unsupported operand type"):
        _ = jnp.arange(3.0) + object()


def test_described_arrays() -> None:
    described = hloom.ShapeDtypeStruct((2, 1), np.int16)
    made = [jnp.zeros_like(described), jnp.ones_like(described), jnp.full_like(described, 2)]
    for value, found in enumerate([*made, hloom.lax.full_like(described, 3)]):
        assert found.dtype == np.int16 and found.tolist() == [[value], [value]]
    assert jnp.full_like(described, np.array([4, 5]), shape=(2,)).tolist() == [4, 5]
    placed = jnp.zeros_like(described, device=hloom.devices()[0])
    assert placed.devices() == {hloom.devices()[0]} and placed.committed
    weak = hloom.lax.full_like(hloom.ShapeDtypeStruct((2,), np.float32, weak_type=True), 1)
    assert weak.weak_type and weak.shape == (2,)


@pytest.mark.parametrize("name", ["log", "log2", "log10"])
@pytest.mark.parametrize("value", [0j, complex(0, 2), complex(-3, 4), complex(np.inf, 1)])
def test_logarithms_of_complex_numbers(name: str, value: complex) -> None:
    with np.errstate(divide="ignore"):
        wanted = {"log": 1, "log2": np.log(2), "log10": np.log(10)}
        expected = np.log(np.complex64(value))
        parts = (expected.real / wanted[name], expected.imag / wanted[name])
    found = np.asarray(getattr(jnp, name)(jnp.complex64(value)))
    np.testing.assert_allclose((found.real, found.imag), parts, rtol=1e-6)


@pytest.mark.parametrize("divisor", [[0.0], [0.0, 0.0], [np.nan]])
def test_a_remainder_that_is_no_number_is_not_trimmed(divisor: list[float]) -> None:
    with np.errstate(all="ignore"):
        _, expected = np.polydiv([1.0, 0.0, 3.0], divisor)
    _, found = jnp.polydiv(jnp.array([1.0, 0.0, 3.0]), jnp.array(divisor), trim_leading_zeros=True)
    np.testing.assert_array_equal(found, expected)


def test_a_choice_that_is_not_there() -> None:
    with pytest.raises(ValueError, match=r"^invalid entry in choice array"):
        jnp.choose(jnp.array([0, 2]), [jnp.arange(2), jnp.arange(2)])


def test_vectorize_takes_none_and_returns_arrays() -> None:
    def shifted(x: Any, y: Any) -> Any:
        return x + jnp.arange(2.0) if y is None else x

    assert jnp.vectorize(shifted)(jnp.arange(3.0), None).tolist() == [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]
    assert jnp.vectorize(shifted)(jnp.arange(2.0), jnp.arange(2.0)).tolist() == [0.0, 1.0]
    with hloom.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match="rank promotion for vectorize"):
        jnp.vectorize(jnp.add)(A, A[0])


@pytest.mark.parametrize("name", ["nin", "nout", "nargs", "identity"])
def test_ufuncs_are_read_only(name: str) -> None:
    with pytest.raises(AttributeError, match="has no setter"):
        setattr(jnp.add, name, 3)


X = jnp.arange(6.0).reshape(2, 3)


_COMPILED = hloom.jit(lambda x: x + 4).lower(1.0).compile()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda: 1 in X, ValueError, "search array must be one-dimensional"),
        (lambda: X[0] in X[0], ValueError, "query value must be a scalar"),
        (lambda: "a" in X[0], TypeError, "unsupported operand type"),
        (lambda: X[[0, 1]], TypeError, r"use `arr\[array\(seq\)\]`"),
        (lambda: X[[0, None]], TypeError, r"use `arr\[tuple\(seq\)\]`"),
        (lambda: X[0.5], TypeError, "Indexer must have integer or boolean type, got indexer with type float"),
        (lambda: X[1, 2, 3], IndexError, "array is 2-dimensional, but 3 were indexed"),
        (lambda: jnp.array([1.0, None]), ValueError, "None is not a valid value for jnp.array"),
        (lambda: jnp.zeros(3, [("a", "i4")]), TypeError, "only supports number"),
        (lambda: jnp.zeros(2, 3), TypeError, r"Did you accidentally write `jax.numpy.zeros\(2, 3\)`"),
        (lambda: jnp.zeros(1.5), TypeError, "Shapes must be 1D sequences"),
        (lambda: hloom.jit(jnp.zeros)(2), TypeError, r"Shapes must be 1D sequences.*\nIf using `jit`"),
        (lambda: jnp.array([0, 2**70]), OverflowError, "Python int too large"),
        (lambda: jnp.argmin(jnp.zeros((2, 0)), 1), ValueError, "attempt to get argmin of an empty sequence"),
        (lambda: lax.argmax(X, -1, jnp.int32), ValueError, "Invalid axis -1 for operand"),
        (lambda: jnp.array(X, None, True, "K", 0, 1), TypeError, "takes at most 5 positional arguments but 6 were"),
        (lambda: jnp.array(X, None, True, copy=False), TypeError, "multiple values for argument 'copy'"),
        (lambda: hloom.vmap(_COMPILED)(jnp.ones(3)), TypeError, "Detected argument of Tracer type BatchTracer"),
        (lambda: hloom.grad(lambda x: _COMPILED(x))(1.0), TypeError, "for a particular signature. Detected argument"),
        (lambda: hloom.eval_shape(lambda x: (x, "a"), 1), TypeError, r"component \[1\], which is not a valid JAX type"),
        (lambda: linalg.fiedler_companion(jnp.ones(0)), ValueError, "last axis must be nonzero"),
        (lambda: lax.reduce_window(X, [0], lax.max, (2, 2)), TypeError, "reduce_window: operands are"),
        (lambda: lax.reduce_window(X, X[0], lax.max, (2, 2)), TypeError, r"scalars but init_values have shapes \[\("),
        (lambda: jnp.rot90(X[0]), ValueError, "ndim at least two"),
        (lambda: jnp.rot90(X, axes=(1, -1)), ValueError, "Axes must be different"),
        (lambda: jnp.trace(X, axis1=1, axis2=-1), ValueError, "axis1 and axis2 can not be same"),
        (lambda: jnp.broadcast_to(X, (3,)), ValueError, "fewer dimensions"),
        (lambda: jnp.hypot(X, 1j), ValueError, "not well defined for complex-valued"),
        (lambda: jnp.tensordot(X, X[0], 2), TypeError, "exceeds input ranks"),
        (lambda: jnp.nanstd(X, where=X), TypeError, "jnp.nanstd: where must be None or a boolean array"),
        (lambda: jnp.fft.ihfft(X, axis=[0, 1]), ValueError, "Please use jax.numpy.fft.ihfftn"),
        (lambda: jnp.vectorize(jnp.add, signature="(),()->(),()")(1, 2), TypeError, "output must be a tuple"),
        (lambda: jnp.vectorize(jnp.divmod, signature="(),()->()")(1, 2), TypeError, "number of output arguments"),
        (lambda: jnp.vectorize(jnp.add, signature="(),()->()")(1, None), ValueError, "Cannot pass None at locations"),
    ],
)
def test_errors(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_dtypes_of_traced_sequences() -> None:
    assert hloom.jit(lambda x: (jnp.iscomplexobj([x, 1.0]), x)[0] and x)(1j) == 1j


def test_arguments_of_array_by_position() -> None:
    with pytest.warns(DeprecationWarning, match="Passing the copy, order, and ndmin arguments to jnp.array") as caught:
        assert jnp.array(X, None, False) is X and jnp.array(1.0, None, True, "K", 2).shape == (1, 1)
    assert {w.filename for w in caught} == {__file__}


def test_dtypes_of_64_bits_that_are_asked_for() -> None:
    with pytest.warns(UserWarning, match="will be truncated to dtype float32"):
        jnp.zeros(2, "float64")
    hloom.config.update("jax_explicit_x64_dtypes", "error")
    try:
        with pytest.raises(ValueError, match="Explicitly requested dtype float64 requested in zeros is not available"):
            jnp.zeros(2, "float64")
        assert jnp.zeros(2, float).dtype == jnp.float32
    finally:
        hloom.config.update("jax_explicit_x64_dtypes", "warn")


WIDE: dict[str, tuple[Callable[[], Any], str]] = {
    "zeros": (lambda: jnp.zeros(2, "float64"), "float64"),
    "a number": (lambda: jnp.array(1.0, jnp.float64), "float64"),
    "a list": (lambda: jnp.array([1, 2], jnp.int64), "int64"),
    "NumPy's data": (lambda: jnp.asarray(np.ones(2), jnp.float64), "float64"),
    "NumPy's data, without a request": (lambda: jnp.asarray(np.ones(2)), "float32"),
    "arange": (lambda: jnp.arange(3, dtype="int64"), "int64"),
    "astype": (lambda: jnp.ones(2).astype("float64"), "float64"),
    "bits": (lambda: hloom.random.bits(hloom.random.key(0), (2,), "uint64"), "uint64"),
    "uniform": (lambda: hloom.random.uniform(hloom.random.key(0), (2,), "float64"), "float64"),
    "normal": (lambda: hloom.random.normal(hloom.random.key(0), (2,), "float64"), "float64"),
    "a sum with 32 bits": (lambda: jnp.ones(2, "float64") + jnp.ones(2), "float64"),
    "a sum with a Python number": (lambda: jnp.ones(2, "int64") + 1, "int64"),
    "a sum with a Python float": (lambda: jnp.ones(2, "int64") + 1.0, "float32"),
    "a sum with NumPy's number": (lambda: jnp.ones(2, "float64") + np.float64(1), "float64"),
    "a sum of signed and unsigned": (lambda: jnp.int32(1) + jnp.uint32(1), "int32"),
    "sum": (lambda: jnp.arange(3, dtype="int64").sum(), "int64"),
    "a loop": (lambda: hloom.lax.fori_loop(0, 2, lambda i, x: x * 2 + i, jnp.ones(2, "float64")), "float64"),
}  # fmt: skip


@pytest.mark.parametrize("traced", [False, True], ids=["outside of jit", "jit"])
@pytest.mark.parametrize("case", WIDE)
def test_dtypes_of_64_bits_that_are_allowed(case: str, traced: bool) -> None:
    function, dtype = WIDE[case]
    hloom.config.update("jax_explicit_x64_dtypes", "allow")
    try:
        assert (hloom.jit(function) if traced else function)().dtype == dtype
    finally:
        hloom.config.update("jax_explicit_x64_dtypes", "warn")


def test_a_mapped_function_says_that_it_is() -> None:
    def f(x: Any) -> Any:
        """Twice."""
        return 2 * x

    assert str(hloom.vmap(f).__doc__).startswith("Vectorized version of f. Takes similar arguments")
    assert str(hloom.vmap(f).__doc__).endswith("Original documentation:\n\nTwice.")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: jnp.trunc(1.0, y=1), r"trunc\(\) got an unexpected keyword argument 'y'\. It takes x\."),
        (lambda: jnp.heaviside(1.0, 2, wrong=1), "It takes x, y"),
        (lambda: jnp.sum(A, axs=0), "Did you mean 'axis'"),
    ],
)
def test_an_unknown_keyword_names_those_of_the_function(call: Any, message: str) -> None:
    """Of the one that a decorator wraps, too."""
    with pytest.raises(TypeError, match=message):
        call()
