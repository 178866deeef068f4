"""Maxima and minima of vectors of floats, written out for AVX-512, and their results for all kinds of numbers."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from hloom.numba_backend.runtime import llvm_backend
from hloom.numba_backend.runtime.short_extrema import ANY, MAJORITIES, with_short_extrema

X86 = frozenset((ANY, MAJORITIES))


@pytest.mark.parametrize(("result", "operands", "features", "is_written_out"), [
    ("tail call contract <16 x float> @llvm.maximum.v16f32", "<16 x float> %a, <16 x float> %b.1", X86, True),
    ("call reassoc contract <4 x double> @llvm.minimum.v4f64", "<4 x double> %a, <4 x double> %b.1", X86, True),
    ("tail call <4 x float> @llvm.maximum.v4f32", "<4 x float> %a, <4 x float> %b.1", X86, True),
    ("tail call <4 x float> @llvm.maximum.v4f32", "<4 x float> %a, <4 x float> %b.1", frozenset((ANY,)), False),
    ("tail call <4 x float> @llvm.minimum.v4f32", "<4 x float> %a, <4 x float> %b.1", frozenset((ANY,)), True),
    ("tail call contract float @llvm.maximum.f32", "float %a, float %b.1", X86, True),
    ("tail call contract double @llvm.maximum.f64", "double %a, double %b.1", frozenset((ANY,)), True),
    ("tail call contract double @llvm.maximum.f64", "double %a, double %b.1", frozenset(), False),
    ("tail call float @llvm.maximum.f32", "float %a, float 1.000000e+00", X86, False),
    ("tail call nsz <16 x float> @llvm.maximum.v16f32", "<16 x float> %a, <16 x float> %b.1", X86, False),
    ("tail call <16 x float> @llvm.maximum.v16f32", "<16 x float> %a, <16 x float> zeroinitializer", X86, False),
    ("tail call <3 x float> @llvm.maximum.v3f32", "<3 x float> %a, <3 x float> %b.1", X86, False),
    ("tail call <16 x half> @llvm.maximum.v16f16", "<16 x half> %a, <16 x half> %b.1", X86, False),
])  # fmt: skip
def test_calls_for_numbers_and_whole_registers(
    result: str, operands: str, features: frozenset[str], is_written_out: bool
) -> None:
    kind = operands.split(" %", maxsplit=1)[0]
    text = f"define {kind} @f({kind} %a, {kind} %b.1) {{\n  %1 = {result}({operands})\n  ret {kind} %1\n}}\n"
    written = with_short_extrema(text, features)
    assert (written != text) == is_written_out
    assert ("@llvm.maximum" in written or "@llvm.minimum" in written) != is_written_out
    if is_written_out:
        llvm.parse_assembly(written).verify()


BITS: dict[str, tuple[type[np.floating[Any]], Any, list[int]]] = {
    "float": (
        np.float32, np.uint32,
        [0x7F800001, 0x7FC00000, 0x7FFFFFFF, 1, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0x7F800000, 0],
    ),
    "double": (
        np.float64, np.uint64,
        [0x7FF0 << 48 | 1, 0x7FF8 << 48, (1 << 63) - 1, 1, 0xF << 48, 0x10 << 48, 1023 << 52, 0x7FF0 << 48, 0],
    ),
}  # fmt: skip
"""NaN that signal and that do not, the ends of the subnormal and the normal numbers, infinity, 0."""


@pytest.mark.parametrize("features", [ANY, f"{ANY} {MAJORITIES}"])
@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("kind", BITS)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_results(name: str, kind: str, count: int, features: str) -> None:
    if not (named := frozenset(features.split())) <= llvm_backend.host_features():
        pytest.skip("a processor without them")
    element, integer, bits = BITS[kind]
    positive = np.array(bits, integer).view(element)
    values = np.concatenate([positive, -positive, np.random.default_rng(0).normal(size=14).astype(element)])
    a, b = (x.ravel() for x in np.meshgrid(values, values))
    found = np.empty_like(a)
    step = count * found.itemsize
    text = with_short_extrema(_text(name, kind, count), named)
    left_to_llvm = name == "maximum" and count > 1 and MAJORITIES not in named
    assert (f"@llvm.{name}" in text.partition("declare")[0]) == left_to_llvm
    kept, (address,) = llvm_backend.load_objects([("f", llvm_backend.emit_object(text))])
    function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3)(address)
    for at in range(0, found.nbytes, step):
        function(*(x.ctypes.data + at for x in (a, b, found)))
    wanted = (np.maximum if name == "maximum" else np.minimum)(a, b)
    of_signs = np.logical_and if name == "maximum" else np.logical_or
    zeros = (a == 0) & (b == 0)
    wanted[zeros] = np.where(of_signs(np.signbit(a), np.signbit(b)), -0.0, 0.0)[zeros]
    np.testing.assert_array_equal(found, wanted)
    numbers = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(wanted[numbers]))
    del kept


def _text(name: str, kind: str, count: int) -> str:
    """A function that loads two vectors, or numbers, and stores their extremum."""
    whole = kind if count == 1 else f"<{count} x {kind}>"
    suffix = f"{'' if count == 1 else f'v{count}'}f{32 if kind == 'float' else 64}"
    lines = (
        "define void @f(ptr %p, ptr %q, ptr %out) {",
        f"  %a = load {whole}, ptr %p, align 4",
        f"  %b = load {whole}, ptr %q, align 4",
        f"  %r = call {whole} @llvm.{name}.{suffix}({whole} %a, {whole} %b)",
        f"  store {whole} %r, ptr %out, align 4",
        "  ret void",
        "}",
        f"declare {whole} @llvm.{name}.{suffix}({whole}, {whole})",
    )
    return "\n".join(lines) + "\n"
