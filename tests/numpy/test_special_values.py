"""Infinities, NaN and signed zeros where NumPy, C and XLA differ: the evaluator and compiled code give what XLA gives,
which is asked too where JAX is installed."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hloom.hlo import ElementType, evaluate, parse
from hloom.hlo.backend import get_compiler

from hloom.backend_check.op_values import NDArray

NAN, INF = float("nan"), float("inf")
PARTS = (NAN, INF, -INF, 0.0, -0.0, 1.0, -1.0, 2.0)
REAL = np.array(PARTS)
COMPLEX = np.array([complex(a, b) for a in PARTS for b in PARTS])
TYPES = {"c64": np.complex64, "c128": np.complex128}
REAL_TYPES = {"bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "f64": np.float64}

Run = Callable[[str, Sequence[NDArray]], NDArray]


def by_xla(text: str, arguments: Sequence[NDArray]) -> NDArray:
    oracle = pytest.importorskip("support.xla_oracle")
    result: NDArray = oracle.run_hlo_text(text, *arguments)[0]
    return result


WAYS: dict[str, Run] = {
    "evaluator": lambda text, arguments: evaluate(parse(text), *arguments)[0],
    "numba": lambda text, arguments: get_compiler("numba").compile(parse(text)).execute(arguments)[0],
    "xla": by_xla,
}


@pytest.fixture(params=WAYS)
def run(request: pytest.FixtureRequest) -> Run:
    if request.param == "xla" and find_spec("jax") is None:
        pytest.skip("JAX is not installed")
    return WAYS[request.param]


def assert_same(actual: NDArray, expected: NDArray, rtol: float = 0.0) -> None:
    """Equal, with NaN at the same places; zeros have the same sign, except where a result is only close to zero."""
    for part in ("real", "imag"):
        a, e = (np.asarray(getattr(x.astype(np.complex128), part)) for x in (actual, expected))
        np.testing.assert_allclose(a, e, rtol=rtol, atol=rtol)
        exact = (e == 0) & (rtol == 0.0)
        np.testing.assert_array_equal(np.signbit(a[exact]), np.signbit(e[exact]))


@pytest.mark.parametrize("element_type", TYPES)
def test_magnitude_of_complex_numbers(element_type: str, run: Run) -> None:
    z = COMPLEX.astype(TYPES[element_type])
    real = "f32" if element_type == "c64" else "f64"
    text = f"ENTRY e {{ z = {element_type}[{z.size}] parameter(0)  ROOT r = {real}[{z.size}] abs(z) }}"
    expected = [NAN if np.isnan(c) else abs(c) for c in COMPLEX.tolist()]
    assert_same(run(text, [z]), np.array(expected), 1e-6)


def complex_power(z: complex, w: complex) -> complex:
    """The result of XLA's code."""
    if w == 0 or z == 1:
        return 1
    if z == 0 and w.real > 0 and (w.imag == 0 or np.isfinite(w)):
        return 0
    if z.real == INF and z.imag == 0 and w.imag == 0 and w.real != 0 and not np.isnan(w.real):
        return INF if w.real > 0 else 0
    if z == 0 or not (np.isfinite(z) and np.isfinite(w)):
        return complex(NAN, NAN)
    return z**w


@pytest.mark.parametrize("element_type", TYPES)
def test_power_of_complex_numbers(element_type: str, run: Run) -> None:
    pairs = list(product(COMPLEX.tolist(), repeat=2))
    if run is by_xla:  # which has NaN where the limit is 0
        pairs = [(z, w) for z, w in pairs if z != 0 or w.imag == 0 or complex_power(z, w) != 0]
    z, w = (np.array([pair[k] for pair in pairs], TYPES[element_type]) for k in (0, 1))
    kind = f"{element_type}[{z.size}]"
    text = f"ENTRY e {{ z = {kind} parameter(0)  w = {kind} parameter(1)  ROOT r = {kind} power(z, w) }}"
    assert_same(run(text, [z, w]), np.array([complex_power(*pair) for pair in pairs]), 2e-4)


@pytest.mark.parametrize("dims", ["", "3"])
@pytest.mark.parametrize("element_type", REAL_TYPES)
@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [(-INF, 0.5, INF), (-0.0, 0.5, 0.0), (-INF, -0.5, 0.0), (-1.0, 0.5, NAN), (-INF, 3.0, -INF), (-INF, 1.5, INF)],
)
def test_real_power(x: float, y: float, expected: float, element_type: str, dims: str, run: Run) -> None:
    kind, shape = f"{element_type}[{dims}]", (3,) if dims else ()
    text = f"ENTRY e {{ x = {kind} parameter(0)  y = {kind} parameter(1)  ROOT r = {kind} power(x, y) }}"
    arguments = [np.full(shape, value, REAL_TYPES[element_type]) for value in (x, y)]
    assert_same(run(text, arguments), np.full(shape, expected))


DOTS = {
    "matrices": ("[N,1]", "[1,N]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "vectors": ("[N]", "[N]", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
    "two dimensions": ("[1,N,1]", "[1,1,N]", "lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}"),
}


@pytest.mark.parametrize("form", DOTS)
@pytest.mark.parametrize("element_type", [*TYPES, *REAL_TYPES])
def test_a_dot_of_one_term_is_a_product(element_type: str, form: str, run: Run) -> None:
    """No sum with 0.0 loses the sign of a zero, and no library's product of complex numbers makes NaN of infinities."""
    values = COMPLEX.astype(TYPES[element_type]) if element_type in TYPES else REAL.astype(REAL_TYPES[element_type])
    left, right, dimensions = DOTS[form]
    text = (
        f"ENTRY e {{ x = t{left} parameter(0)  y = t{right} parameter(1)  ROOT r = t[N,N] dot(x, y), {dimensions} }}"
    )
    text = re.sub(r"\bN\b", str(values.size), re.sub(r"\bt\[", f"{element_type}[", text))
    shapes = [[int(d) for d in sizes[1:-1].replace("N", str(values.size)).split(",")] for sizes in (left, right)]
    expected = np.empty((values.size, values.size), np.complex128)
    a, b = values[:, None].astype(np.complex128), values.astype(np.complex128)
    with np.errstate(all="ignore"):
        expected.real, expected.imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    if element_type in REAL_TYPES:
        with np.errstate(all="ignore"):
            expected = values[:, None] * values
    assert_same(run(text, [values.reshape(shape) for shape in shapes]), expected)


NUMBERS = [t for t in ElementType if t is not ElementType.PRED and not t.is_complex and t is not ElementType.F8E8M0FNU]


@pytest.mark.parametrize("way", ["evaluator", "numba"])
@pytest.mark.parametrize("target", NUMBERS, ids=lambda t: t.value)
def test_a_pred_is_0_or_1_whatever_its_byte(target: ElementType, way: str) -> None:
    """XLA keeps the byte where it converts to integers of a byte or less (docs/differences.md)."""
    x = np.resize(np.array([0, 1, 2, 255, 128], np.uint8), 40).view(np.bool_)
    text = f"ENTRY e {{ x = pred[40] parameter(0)  ROOT r = {target.value}[40] convert(x) }}"
    expected = np.resize(np.array([0, 1, 1, 1, 1]), 40)
    if target.bit_width == 1 and target.is_signed:
        expected = -expected
    np.testing.assert_array_equal(WAYS[way](text, [x]).astype(np.float32), expected)
