"""jnp.float32 and its like: they make arrays, and are dtypes. Explicit 64-bit dtypes warn without x64."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
from hloom import lax, nn, random
from support.evaluator_fixture import on_the_evaluator, x64  # noqa: F401  # fixtures

NARROW = (
    *("bool_", "int2", "int4", "int8", "int16", "int32", "uint2", "uint4", "uint8", "uint16", "uint32"),
    *("float16", "bfloat16", "float32", "complex64", "float8_e5m2", "float8_e4m3fn", "float4_e2m1fn"),
)
WIDE = ("int64", "uint64", "float64", "complex128")


@pytest.mark.parametrize("name", NARROW)
def test_a_scalar_type_makes_arrays(name: str) -> None:
    scalar = getattr(jnp, name)
    wanted = np.dtype(getattr(ml_dtypes, name, getattr(np, name, None)))
    given = (1, 1.0, True, [0, 1], np.ones(2), jnp.ones(2, "int32"), np.float64(1))
    for value in given:
        found = scalar(value)
        assert isinstance(found, hloom.Array)
        assert found.dtype == wanted == scalar == np.dtype(scalar)
        assert not found.weak_type
        assert found.shape == np.shape(value)
        np.testing.assert_array_equal(np.asarray(found).astype(complex), np.asarray(value).astype(complex))
    assert hloom.jit(lambda x: scalar(x))(1).dtype == wanted
    assert jnp.zeros(2, scalar).dtype == jnp.ones(2).astype(scalar).dtype == wanted


def test_gradients_pass_through_a_scalar_type() -> None:
    assert float(hloom.grad(lambda x: jnp.float32(jnp.bfloat16(x)) * 2)(3.0)) == 2


def test_a_scalar_type_is_a_dtype() -> None:
    x = jnp.ones(3)
    assert x.dtype == jnp.float32
    assert jnp.float32 == x.dtype
    assert jnp.float32 == np.float32
    assert np.float32 == jnp.float32
    assert jnp.float32 != jnp.float16
    assert x.dtype in (jnp.float32, jnp.bfloat16)
    assert {np.float32: 1}[jnp.float32] == 1
    assert isinstance(np.float32(1), jnp.float32)
    assert not isinstance(1.0, jnp.float32)
    assert isinstance(jnp.float32, type)
    assert np.zeros(2, jnp.bfloat16).dtype == ml_dtypes.bfloat16
    assert np.issubdtype(jnp.float32, np.floating)
    assert jnp.issubdtype(jnp.bfloat16, jnp.floating)
    assert jnp.issubdtype(jnp.int4, jnp.signedinteger)
    assert jnp.issubdtype(x.dtype, jnp.float32)
    assert jnp.finfo(jnp.bfloat16).bits == 16
    assert jnp.iinfo(jnp.uint8).max == 255
    assert jnp.result_type(jnp.int8, jnp.float16) == np.float16
    assert lax.full((2,), 1, jnp.int8).dtype == np.int8
    assert hloom.ShapeDtypeStruct((2,), jnp.float16).dtype == np.float16
    assert pickle.loads(pickle.dumps(jnp.float32)) is jnp.float32
    assert repr(jnp.float32) == "<class 'hloom.numpy.float32'>"
    assert (jnp.bool, jnp.int_, jnp.uint, jnp.float_, jnp.complex_) == (
        *(jnp.bool_, jnp.int64, jnp.uint64, jnp.float64, jnp.complex128),
    )


def test_numbers_that_do_not_fit() -> None:
    """A number that is made an array must fit; one that fills an array wraps or saturates. As in JAX."""
    for make in (jnp.uint8, lambda v: jnp.asarray(v, "uint8"), lambda v: jnp.asarray([v], "uint8")):
        for value in (-1, 256):
            with pytest.raises(OverflowError):
                make(value)
    fills: list[tuple[Any, str, int]] = [
        (-1, "uint8", 255), (300, "uint8", 44), (2**40 + 1, "int32", 1), (-1.7, "uint8", 0), (1.7, "uint8", 1),
        (1e10, "int32", 2**31 - 1), (float("nan"), "int32", 0), (-9, "int4", 7), (float("-inf"), "int8", -128),
    ]  # fmt: skip
    for value, dtype, wanted in fills:
        assert jnp.full(2, value, dtype).tolist() == [wanted] * 2
        assert jnp.full_like(jnp.ones(2, dtype), value).tolist() == [wanted] * 2


# ---- explicit 64-bit dtypes

X = np.ones((2, 2), np.float32)
REQUESTS: dict[str, Callable[[Any], Any]] = {
    "zeros": lambda t: jnp.zeros(3, t),
    "ones": lambda t: jnp.ones(3, t),
    "empty": lambda t: jnp.empty(3, t),
    "full": lambda t: jnp.full(3, 1, t),
    "full_like": lambda t: jnp.full_like(X, 1, t),
    "zeros_like": lambda t: jnp.zeros_like(X, t),
    "ones_like": lambda t: jnp.ones_like(X, t),
    "array": lambda t: jnp.array([1], t),
    "asarray": lambda t: jnp.asarray(1, t),
    "asarray of an array": lambda t: jnp.asarray(jnp.ones(2), t),
    "array of NumPy's": lambda t: jnp.array(np.ones(2), dtype=t),
    "arange": lambda t: jnp.arange(3, dtype=t),
    "linspace": lambda t: jnp.linspace(0, 1, 3, dtype=t),
    "logspace": lambda t: jnp.logspace(0, 1, 3, dtype=t),
    "eye": lambda t: jnp.eye(3, dtype=t),
    "identity": lambda t: jnp.identity(3, t),
    "tri": lambda t: jnp.tri(3, dtype=t),
    "indices": lambda t: jnp.indices((2,), t),
    "astype": lambda t: jnp.ones(3).astype(t),
    "view": lambda t: jnp.ones(4).view(t) if np.dtype(t).itemsize == 8 else jnp.ones(4).view("complex128"),
    "jit astype": lambda t: hloom.jit(lambda x: x.astype(t))(X),
    "sum": lambda t: jnp.sum(X, dtype=t),
    "prod": lambda t: jnp.prod(X, dtype=t),
    "mean": lambda t: jnp.mean(X, dtype=t),
    "var": lambda t: jnp.var(X, dtype=t),
    "cumsum": lambda t: jnp.cumsum(X, dtype=t),
    "nansum": lambda t: jnp.nansum(X, dtype=t),
    "trace": lambda t: jnp.trace(X, dtype=t),
    "stack": lambda t: jnp.stack([X], dtype=t),
    "concatenate": lambda t: jnp.concatenate([X], dtype=t),
    "lax.full": lambda t: lax.full((2,), 1, t),
    "lax.iota": lambda t: lax.iota(t, 3),
    "convert_element_type": lambda t: lax.convert_element_type(X, t),
    "one_hot": lambda t: nn.one_hot(jnp.asarray([1]), 3, dtype=t),
    "dot": lambda t: jnp.dot(X, X, preferred_element_type=t),
    "zeros initializer": lambda t: nn.initializers.zeros(random.key(0), (2,), t),
}
FLOAT_REQUESTS: dict[str, Callable[[], Any]] = {
    "jnp.float64": lambda: jnp.float64(1),
    "normal": lambda: random.normal(random.key(0), (2,), np.float64),
    "uniform": lambda: random.uniform(random.key(0), (2,), np.float64),
    "normal initializer": lambda: nn.initializers.normal()(random.key(0), (2,), np.float64),
    "bitcast": lambda: lax.bitcast_convert_type(jnp.ones(2, "uint32"), "float64"),
    "randint": lambda: random.randint(random.key(0), (2,), 0, 3, np.int64),
    "bits": lambda: random.bits(random.key(0), (2,), "uint64"),
    "argmax": lambda: lax.argmax(jnp.ones(3), 0, np.int64),
}
TRUNCATED = r"Explicitly requested dtype \w+64 requested in .* is not available, and will be truncated to dtype \w+32"


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("dtype", ["float64", np.float64, jnp.float64, np.dtype("int64"), jnp.int_], ids=str)
@pytest.mark.parametrize("name", REQUESTS)
def test_an_explicit_64_bit_dtype_warns(name: str, dtype: Any) -> None:
    if name in ("dot", "var") and np.dtype(dtype).kind == "i":
        return
    pattern = TRUNCATED if name != "view" else r"truncated to dtype (float32|int32|complex64)"
    with pytest.warns(UserWarning, match=pattern) as caught:
        found = REQUESTS[name](dtype)
    assert found.dtype.itemsize == 4
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.parametrize("name", ["array", "asarray", "zeros", "arange"])
def test_the_warning_names_the_function(name: str) -> None:
    end = r"To enable more dtypes, set the jax_enable_x64 configuration option or the JAX_ENABLE_X64 shell environment "
    with pytest.warns(UserWarning, match=rf"float64 requested in {name} is not .*float32\. {end}variable, or use"):
        getattr(jnp, name)(3, dtype="float64")


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("name", FLOAT_REQUESTS)
def test_other_requests_warn(name: str) -> None:
    with pytest.warns(UserWarning, match=r"(truncated to dtype \w+32)") as caught:
        FLOAT_REQUESTS[name]()
    assert {w.filename for w in caught} == {__file__}


@pytest.mark.usefixtures("on_the_evaluator", "x64")
@pytest.mark.parametrize("name", REQUESTS)
def test_nothing_warns_with_x64(name: str) -> None:
    assert REQUESTS[name]("float64").dtype == np.float64


@pytest.mark.usefixtures("on_the_evaluator")
def test_what_is_not_explicit_does_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind, dtype in ((float, "float32"), (int, "int32"), (complex, "complex64")):
            assert jnp.zeros(3, kind).dtype == jnp.ones(3).astype(kind).dtype == dtype
            assert jnp.asarray([1], dtype=kind).dtype == dtype
        assert jnp.asarray(np.ones(3)).dtype == np.float32
        assert jnp.ones_like(np.ones(3)).dtype == np.float32
        assert (jnp.ones(2) + np.float64(1)).dtype == np.float32
        assert jnp.arange(np.int64(3)).dtype == np.int32
        assert hloom.jit(lambda x: x)(np.ones(3)).dtype == np.float32
        assert hloom.device_put(np.ones(3)).dtype == np.float32
        assert hloom.dtypes.canonicalize_dtype(np.float64) == np.float32
        assert jnp.zeros(3, np.float32).dtype == np.float32


PROMOTED = [
    ("int32", "uint32", "int32"), ("uint32", "int8", "int32"), ("float64", "float32", "float64"),
    (int, "int16", "int16"), ("int64", "float32", "float32"), ("uint64", "int64", "float64"),
    ("int64", "int8", "int64"), (float, "int32", "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "wanted"), PROMOTED)
def test_promote_types(a: Any, b: Any, wanted: str) -> None:
    """As JAX's: narrowed only if neither is of 64 bits."""
    assert jnp.promote_types(a, b) == jnp.promote_types(b, a) == np.dtype(wanted)
