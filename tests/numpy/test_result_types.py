"""The result types of all public functions are JAX's, without and with x64 (`support/type_table.py` has the table)."""

from __future__ import annotations

from typing import Any

import pytest

import hloom
from support import type_table
from support.evaluator_fixture import on_the_evaluator  # noqa: F401  # a fixture

TABLE = type_table.load()
COMPLEX = ("complex64", "complex128", "c*")
NOT_COMPLEX = {
    *("lax.reduce_max", "lax.reduce_min", "nn.log_softmax", "nn.softmax"),
    *(f"numpy.{name}" for name in ("amax", "amin", "argmax", "argmin", "max", "min", "nanmax", "nanmin", "ptp")),
}
"""These may refuse complex numbers, which JAX orders."""
STRONG = {
    *(f"numpy.linalg.{name}" for name in ("cholesky", "cond", "det", "eig", "eigh", "eigvals", "eigvalsh")),
    *(f"numpy.linalg.{name}" for name in ("lstsq", "qr", "solve", "svd", "svdvals")),
    *("lax.approx_max_k", "lax.approx_min_k", "lax.top_k", "numpy.argpartition", "numpy.modf", "numpy.polydiv"),
    *("numpy.gradient", "numpy.isfinite"),
}
"""Of weakly typed arrays these are weakly typed in JAX, and not here."""
NARROW = ("float16", "bfloat16", "float8_e5m2")
DTYPES_OF_OPERANDS = {"scipy.special.owens_t", "scipy.special.multigammaln"}
"""These have the dtype of their operands, which JAX's sometimes have not."""
WEAK = {*("numpy.iscomplex", "numpy.isreal", "numpy.logical_not", "numpy.signbit"), "scipy.special.loggamma"}
"""The other way round."""
MISSING = {
    *(("numpy.iscomplexobj", "[xx] 1"), ("numpy.isrealobj", "[xx] 1"), ("numpy.size", "xi 1")),
    *(("numpy.roll", "xx 1"), ("numpy.roll", "x1.5 1"), ("lax.select_n", "xx 1")),
    *((f"lax.{name}", call) for name in ("pmax", "pmin", "psum") for call in ("x1 2", "xi 1")),
    *(("lax.rng_bit_generator", "x1 1"), ("lax.rng_bit_generator", "xi 1")),
    *(("lax.shape_as_value", "x 1"), ("lax.shape_as_value", "[xx] 1"), ("numpy.fft.ihfft", "[xx] 1")),
    *(("numpy.unravel_index", f"{call} 1") for call in ("x1", "x1.5", "xi", "xx")),
    *(("numpy.linalg.pinv", f"{call} 2") for call in ("x1.5", "xi", "xx")),
    *(("numpy.array_equiv", "x1.5 1"), ("numpy.array_equiv", "xi 1"), ("numpy.packbits", "xi 1")),
    *((f"scipy.special.{name}", "[xx] 1") for name in ("log_ndtr", "ndtr", "spence")),
    *(("scipy.special.expn", "xi 1"), ("scipy.special.owens_t", "x1 1"), ("scipy.special.owens_t", "x1.5 1")),
    ("scipy.special.owens_t", "xx 1"),
}
"""Calls that may raise where JAX has a result."""


def differences(found: dict[str, Any], recorded: dict[str, Any], x64: bool) -> list[tuple[str, ...]]:
    """(function, call, dtype, JAX's, ours) for each call that JAX accepts. hloom may accept more."""
    wrong: list[tuple[str, ...]] = []
    for name, rows in recorded.items():
        for call, row in rows.items():
            kinds = type_table.kinds(x64) if name else ("",)
            ours = found[name].get(call, " ".join("-" for _ in kinds))
            for kind, theirs, answer in zip(kinds, row.split(" "), ours.split(" "), strict=True):
                if theirs in ("-", "") or theirs == answer:
                    continue
                if theirs.replace("*", "") == answer.replace("*", "") and name in (STRONG if "*" in theirs else WEAK):
                    continue
                if name in DTYPES_OF_OPERANDS or (name.startswith("numpy.linalg") and kind in NARROW and answer == "-"):
                    continue
                refused = answer == "-" and ((name in NOT_COMPLEX and kind in COMPLEX) or (name, call) in MISSING)
                if not refused:
                    wrong.append((name, call, kind, theirs, answer))
    return wrong


@pytest.mark.usefixtures("on_the_evaluator")
@pytest.mark.parametrize("x64", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_result_types_are_those_of_jax(x64: bool) -> None:
    recorded = TABLE["on" if x64 else "off"]
    assert len(recorded) > 250
    assert differences(type_table.table(hloom, x64), recorded, x64) == []


def test_the_comparison_can_fail() -> None:
    recorded = {"numpy.add": {"x 1": " ".join("f4" for _ in type_table.kinds(False))}}
    found = {"numpy.add": {"x 1": " ".join("f8" for _ in type_table.kinds(False))}}
    assert len(differences(found, recorded, False)) == len(type_table.kinds(False))
    assert differences({"numpy.add": {}}, recorded, False)


@pytest.mark.slow
def test_the_table_is_that_of_the_installed_jax() -> None:
    jax = pytest.importorskip("jax")
    if jax.__version__ != TABLE["jax"]:
        pytest.skip(f"the table is that of JAX {TABLE['jax']}")
    some = sorted(TABLE["on"])[1::12]
    for x64 in (False, True):
        recorded = TABLE["on" if x64 else "off"]
        asked = type_table.table(jax, x64, some)
        assert asked == {name: recorded[name] for name in asked}
