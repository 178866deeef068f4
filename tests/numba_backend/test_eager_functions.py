"""Elementary functions give the same bits outside of jit as in compiled programs, for all types and sizes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.elementary import FUNCTIONS
from hloom.hlo.opcode import Opcode
from hloom.hlo.ops import Trait, has_trait

import hloom
import hloom.numpy as jnp
import hloom.scipy.special as sp
from hloom import lax, nn

DTYPES = ("float32", "complex64", "float16", "bfloat16", "float64", "complex128")
ONE = {
    "jnp": """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1 log log2 log10
        log1p sqrt cbrt square reciprocal abs sign ceil floor trunc rint sinc deg2rad rad2deg i0 conj angle negative
        real imag nan_to_num""",
    "lax": """erf erfc erf_inv lgamma digamma logistic rsqrt bessel_i0e bessel_i1e tan round is_finite asinh acosh
        atanh""",
    "nn": """relu softplus sigmoid silu gelu elu selu celu log_sigmoid soft_sign hard_tanh leaky_relu swish mish""",
    "sp": "expit logit entr gammaln ndtr ndtri i0e i1",
}
TWO = {
    "jnp": """arctan2 hypot power float_power logaddexp logaddexp2 divide floor_divide mod fmod maximum minimum fmax
        fmin heaviside copysign nextafter add subtract multiply""",
    "lax": "pow atan2 rem igamma",
    "sp": "xlogy xlog1py rel_entr",
}
SPACES: dict[str, Any] = {"jnp": jnp, "lax": lax, "nn": nn, "sp": sp}


def functions() -> dict[str, tuple[int, Callable[..., Any]]]:
    found = {f"{space}.{n}": (1, getattr(SPACES[space], n)) for space, names in ONE.items() for n in names.split()}
    found |= {f"{space}.{n}": (2, getattr(SPACES[space], n)) for space, names in TWO.items() for n in names.split()}
    for n in (0.5, -0.5, 1.5, 2.0, 2.5, 3.0, -2.0, 2.7, 7.0, 9.5, 16.0, 1e30, float("inf"), float("nan")):
        found[f"x ** {n}"] = 1, lambda x, n=n: jnp.power(x, n)
    found["lax.integer_pow"] = 1, lambda x: lax.integer_pow(x, 5)
    return found


CALLS = functions()


def values(dtype: str, count: int, seed: int = 0) -> Any:
    """Ends of ranges, zeros of both signs, infinities and NaN; then numbers of all magnitudes."""
    if dtype.startswith("complex"):
        part = "float32" if dtype == "complex64" else "float64"
        found = np.empty(count, dtype)
        found.real, found.imag = values(part, count, seed), values(part, count, seed + 1)
        return found
    random, info = np.random.default_rng(seed), jnp.finfo(dtype)
    edges = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1e-3, 1e-7, -1e-7, 10, 50, 88.7, -87, 709.7, 1e4, -1e4, np.inf]
    largest, tiny = float(info.max), float(info.tiny)
    edges += [-np.inf, np.nan, largest, -largest, tiny, -tiny, tiny / 4]
    normal = random.standard_normal(count)
    drawn = normal * np.resize([30, 0.1, 3, 1], count)
    drawn[3::4] = np.exp(random.uniform(-20, 20, len(drawn[3::4])))
    with np.errstate(over="ignore"):
        found = np.concatenate([edges, drawn])[:count].astype(jnp.dtype(dtype))
    return found if seed == 0 else random.permutation(found)


def bits(x: Any) -> Any:
    """The bits of each number; all NaN have the same bits."""
    parts = np.asarray(x)
    if parts.dtype.kind == "c":
        parts = parts.reshape(*parts.shape, 1).view(f"f{parts.dtype.itemsize // 2}")
    if parts.dtype.kind in "biu":
        return parts
    is_nan = np.isnan(parts.astype(np.float64))
    return np.where(is_nan, 0, parts.view(f"u{parts.dtype.itemsize}")), is_nan


def check(f: Callable[..., Any], *arrays: Any, what: str = "") -> None:
    for found, wanted in zip(hloom.tree.leaves(f(*arrays)), hloom.tree.leaves(hloom.jit(f)(*arrays)), strict=True):
        assert found.dtype == wanted.dtype and found.shape == wanted.shape
        np.testing.assert_array_equal(bits(found), bits(wanted), err_msg=what)


def arguments(dtype: str, number: int, count: int) -> list[Any]:
    return [jnp.asarray(values(dtype, count, seed)) for seed in range(number)]


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_as_under_jit(name: str, dtype: str) -> None:
    number, f = CALLS[name]
    with hloom.enable_x64(dtype in ("float64", "complex128")):
        arrays = arguments(dtype, number, 1001)
        try:
            f(*arrays)
        except (TypeError, ValueError, NotImplementedError):
            pytest.skip("no function of this type")
        check(f, *arrays)


@pytest.mark.parametrize("name", ["exp", "tanh", "sin", "cosh", "log1p", "expm1", "cbrt", "sqrt"])
def test_constants(name: str) -> None:
    """Numbers that a program knows are no others."""
    f = getattr(jnp, name)
    for x in np.random.default_rng(0).uniform(0, 3, 12).astype(np.float32):
        check(f, x)
        assert hloom.jit(lambda x=x: f(x))() == hloom.jit(lambda x=x: f(jnp.full(3, x)))()[0] == f(x)
    table = np.linspace(0, 3, 40, dtype=np.float32)
    check(lambda: f(table))
    check(lambda: f(np.complex64(1 + 2j)) if name != "cbrt" else f(table))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", DTYPES)
def test_sizes(dtype: str) -> None:
    """Kernels work on vectors, and on the remaining elements; threads share large arrays."""
    with hloom.enable_x64(dtype in ("float64", "complex128")):
        for shape in ((), (1,), (7,), (3, 5), (64,), (100_003,)):
            numbers = (values(dtype, 100_003, seed)[: int(np.prod(shape))] for seed in (1, 2))
            x, y = (jnp.asarray(np.reshape(n, shape)) for n in numbers)
            check(jnp.tanh, x)
            check(jnp.exp, x)
            check(jnp.multiply, x, y)
            check(jnp.power, x, y)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_scalars_are_broadcast(dtype: str) -> None:
    x = jnp.asarray(values(dtype, 300))
    for number in (jnp.asarray(0.3, dtype), jnp.asarray(2.5, dtype)):
        for f in (jnp.power, jnp.divide, jnp.multiply, *([lax.atan2, jnp.arctan2] if dtype == "float32" else [])):
            if f is not lax.atan2:
                check(f, x, number)
                check(f, number, x)
            check(lambda x, f=f, n=number: f(x, jnp.broadcast_to(n, x.shape)), x)


def test_every_function_is_in_the_table() -> None:
    """If NumPy rounds an op's result differently than the backend, `FUNCTIONS` must contain the op."""
    arithmetic = {
        *("add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum", "negate", "abs", "sign", "sqrt"),
        *("rsqrt", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "is-finite", "real", "imag", "complex"),
        *("clamp", "select", "compare", "convert", "bitcast-convert", "copy", "reduce-precision", "map", "domain"),
        *("stochastic-convert", "and", "or", "xor", "not", "mulhi", "popcnt", "count-leading-zeros", "shift-left"),
        *("shift-right-arithmetic", "shift-right-logical", "opt-barrier"),
    }
    elementwise = {o.value for o in Opcode if has_trait(o, Trait.ELEMENTWISE)}
    assert elementwise - arithmetic <= {o.value for o in FUNCTIONS}


@pytest.mark.usefixtures("evaluator")
def test_the_evaluator_is_numpy() -> None:
    x = values("float32", 200)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.asarray(jnp.exp(x)), np.exp(x))


def test_empty_arrays_and_errors() -> None:
    assert jnp.exp(jnp.zeros((0, 3))).shape == (0, 3)
    with pytest.raises(FloatingPointError, match="log"), hloom.debug_nans(True):
        jnp.log(jnp.float32(-1))
    assert jnp.exp(2.0).weak_type and not jnp.exp(jnp.float32(2)).weak_type


def test_what_a_process_loads() -> None:
    """With its kernel in the store a function needs no compiler, and importing hloom needs no backend."""
    code = """
import sys, hloom, hloom.numpy as jnp
assert not any(m.startswith(("numba", "llvmlite", "hloom.numba_backend.runtime")) for m in sys.modules)
jnp.exp(jnp.ones(3))
assert "numba" not in sys.modules
print("llvmlite" in sys.modules)
"""
    for _ in range(2):
        found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
