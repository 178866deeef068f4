"""jnp.int4, jnp.float8_e4m3fn and similar dtypes: as in JAX, no implicit promotion to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hloom.tracer.arrays.extended import ExtendedDType
from hloom.tracer.errors import TypePromotionError

import hloom
import hloom.numpy as jnp
from hloom import lax

SMALL = [
    "float4_e2m1fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz",
    "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "int2", "int4", "uint2", "uint4",
]  # fmt: skip
WITHOUT_ARRAYS = ["float6_e2m3fn", "float6_e3m2fn"]
OTHERS = ["bool_", "int8", "int32", "uint8", "float16", "bfloat16", "float32", "complex64"]


@pytest.mark.parametrize("name", [*SMALL, *WITHOUT_ARRAYS])
def test_promotion_is_that_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")

    def outcome(numpy: object, *values: object) -> str:
        try:
            return str(numpy.result_type(*values))  # type: ignore[attr-defined]
        except ValueError:  # both classes of TypePromotionError are
            return "none"

    for other in (*OTHERS, *SMALL):
        theirs = outcome(jax.numpy, getattr(jax.numpy, name), getattr(jax.numpy, other))
        assert outcome(jnp, getattr(jnp, name), getattr(jnp, other)) == theirs, other
    for scalar in (1, 1.5, 1j):
        assert outcome(jnp, getattr(jnp, name), scalar) == outcome(jax.numpy, getattr(jax.numpy, name), scalar)


@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("name", ["tanh", "sinh", "asinh", "atan", "cbrt", "erf", "sign", "ceil"])
def test_an_f64_with_a_sign_becomes_an_f16(name: str, size: int) -> None:
    """By way of f32. On some processors LLVM made a function of it that no process has."""
    function = getattr(lax, name)
    with hloom.enable_x64(True):
        x = jnp.linspace(-3, 3, size)
        found = hloom.jit(lambda x: function(x).astype(jnp.float16))(x)
        np.testing.assert_array_equal(found, np.asarray(function(x)).astype(np.float32).astype(np.float16))


def test_promotion_error_says_what_to_do() -> None:
    x = jnp.ones(3, jnp.float8_e4m3fn)
    with pytest.raises(TypePromotionError, match=r"float32, float8_e4m3fn .*astype"):
        x + jnp.float32(1)


@pytest.mark.parametrize("name", SMALL)
def test_arrays_keep_their_dtype(name: str) -> None:
    dtype = np.dtype(getattr(jnp, name))
    values = np.asarray([1, 1, 0 if name != "float8_e8m0fnu" else 2]).astype(dtype)
    array = jnp.asarray(values)
    assert array.dtype == dtype and np.asarray(array).dtype == dtype
    doubled = hloom.jit(lambda x: x + x)(array)
    assert doubled.dtype == dtype
    np.testing.assert_array_equal(np.asarray(doubled), np.asarray(array + array))


def test_dtype_queries() -> None:
    assert jnp.issubdtype(jnp.int4, jnp.signedinteger) and jnp.issubdtype(jnp.uint2, jnp.unsignedinteger)
    assert jnp.issubdtype(jnp.float8_e5m2, jnp.floating) and not jnp.issubdtype(jnp.int4, jnp.floating)
    assert int(jnp.iinfo(jnp.int4).max) == 7 and float(jnp.finfo(jnp.float8_e5m2).max) == 57344


def test_products_in_wider_types() -> None:
    x = jnp.asarray([7, -8, 3], jnp.int4)
    product = hloom.jit(lambda a: jnp.dot(a, a, preferred_element_type=jnp.int32))(x)
    assert product.dtype == np.int32 and int(product) == 49 + 64 + 9


PACKED = """HloModule m, entry_computation_layout={(s4[2,3]{1,0:E(4)})->s4[3,2]{1,0:E(4)}}
ENTRY e {
  p = s4[2,3]{1,0:E(4)} parameter(0)
  ROOT t = s4[3,2]{1,0:E(4)} transpose(p), dimensions={1,0}
}"""


def test_text_with_packed_layouts_runs() -> None:
    """XLA packs two s4 to a byte and says so; arrays here have one to a byte on both sides."""
    x = np.array([[1, -2, 3], [4, 5, -8]]).astype(jnp.int4)
    (result,) = hloom.run_hlo(PACKED, x)
    np.testing.assert_array_equal(result, x.T)


@pytest.mark.parametrize("name", ["int1", "uint1"])
def test_integers_of_one_bit_are_promoted_to_no_other(name: str) -> None:
    dtype = jnp.dtype(getattr(jnp, name))
    assert jnp.promote_types(dtype, dtype) == jnp.result_type(dtype, 1) == dtype
    with pytest.raises(TypePromotionError, match="no common dtype"):
        jnp.promote_types(dtype, "int8")


WEAK = {2: "int32", 1.5: "float32", 1j: "complex64", True: "bool"}


@pytest.mark.parametrize("value", WEAK, ids=str)
def test_values_that_all_adapt_have_the_default_dtype_of_their_kind(value: complex) -> None:
    weak = not isinstance(value, bool)
    assert jnp.result_type(value, return_weak_type_flag=True) == (WEAK[value], weak)
    assert hloom.dtypes.result_type(jnp.asarray(value), return_weak_type_flag=True)[0] == WEAK[value]
    assert jnp.result_type(np.int8(3), True, return_weak_type_flag=True) == ("int8", False)


@pytest.mark.parametrize("name", WITHOUT_ARRAYS)
def test_dtypes_without_an_element_type_are_dtypes(name: str) -> None:
    dtype = np.dtype(getattr(jnp, name).dtype)
    assert hloom.dtypes.canonicalize_dtype(name) == dtype and jnp.result_type(np.zeros(2, dtype)) == dtype
    assert hloom.dtypes.itemsize_bits(dtype) == jnp.finfo(dtype).bits == 6
    assert jnp.issubdtype(dtype, jnp.floating) and not jnp.issubdtype(dtype, jnp.integer)
    x = np.zeros(3, dtype)
    for make in (lambda: jnp.zeros(3, name), lambda: jnp.asarray(x), lambda: jnp.sin(x)):
        with pytest.raises(hloom.errors.UnsupportedElementTypeError, match=f"dtype {name} has no HLO element type"):
            make()


class _Pair(hloom.dtypes.extended):
    """The scalars of `PairType`."""


class _PairRules:
    allow_conversion = True

    @staticmethod
    def physical_element_aval(dtype: Any) -> Any:
        return hloom.ShapeDtypeStruct((2,), "float32")


@dataclass(frozen=True)
class PairType(ExtendedDType):
    """A dtype as a user defines it for JAX: an element is stored as two float32."""

    name: str = "pair"
    type: Any = _Pair
    _rules: Any = _PairRules


@pytest.mark.parametrize("run", [lambda f: f, hloom.jit, lambda f: lambda x: hloom.vmap(f)(x[None])[0]])
def test_elements_of_an_extended_dtype_are_made_of_their_storage_and_taken_apart(run: Any) -> None:
    def through(x: Any) -> Any:
        pairs = lax.convert_element_type(x, PairType())
        assert (pairs.shape, pairs.dtype) == (x.shape[:-1], PairType())
        for wrong in ("int32", PairType("other")):
            with pytest.raises(ValueError, match=r"can only convert from pair|cannot directly convert"):
                lax.convert_element_type(pairs, wrong)
        return lax.convert_element_type(pairs.T, "float32")

    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    np.testing.assert_array_equal(run(through)(jnp.asarray(x)), x.transpose(1, 0, 2))
    for other in (jnp.ones((2, 3)), jnp.ones((3, 2), "int32"), jnp.float32(1)):
        with pytest.raises(ValueError, match="can only convert to pair from its representation, float32 with last"):
            lax.convert_element_type(other, PairType())
