"""Compares results with XLA's: tolerances by element type, and cases that need another one, each with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far apart two results may be, in units of the type's machine epsilon."""

    relative: float
    """Times the element's own magnitude: what elementwise functions need."""
    absolute: float
    """Times the largest magnitude in the array: what sums with cancellation need."""


EPSILON = {
    "float64": 2.0**-52, "complex128": 2.0**-52, "float32": 2.0**-23, "complex64": 2.0**-23, "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
}  # fmt: skip
SUBNORMAL = 1e-37
"""XLA flushes numbers below 2^-126 to zero."""

DEFAULT = {
    "float64": Tolerance(64, 16), "complex128": Tolerance(64, 16), "float32": Tolerance(64, 16),
    "complex64": Tolerance(64, 16), "float16": Tolerance(4, 2), "bfloat16": Tolerance(4, 2),
}  # fmt: skip

OVERRIDES: dict[str, tuple[Tolerance, str]] = {}
"""By case id: the tolerance, and why it must be wider."""


def difference(name: str, expected: Sequence[Array], actual: Sequence[Array]) -> str | None:
    """The error of `actual`, or None. Types and shapes are equal, integers and booleans too; NaN and infinities
    are in the same places; numbers are within the case's tolerance."""
    if len(expected) != len(actual):
        return f"{len(actual)} results, not {len(expected)}"
    for number, (wanted, got) in enumerate(zip(expected, actual, strict=True)):
        problem = _difference(wanted, got, OVERRIDES.get(name, (None, ""))[0])
        if problem is not None:
            return f"result {number}: {problem}"
    return None


def _difference(wanted: Array, got: Array, tolerance: Tolerance | None) -> str | None:
    if wanted.dtype != got.dtype or wanted.shape != got.shape:
        return f"{got.dtype}{list(got.shape)}, not {wanted.dtype}{list(wanted.shape)}"
    kind = str(wanted.dtype)
    if kind not in EPSILON:
        wrong = got != wanted
        return _describe(wrong, wanted, got, "other values") if wrong.any() else None
    tolerance = tolerance or DEFAULT[kind]
    wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
    x, y = wanted.astype(wide), got.astype(wide)
    finite = np.isfinite(x)
    scale = float(np.abs(x[finite]).max()) if finite.any() else 0.0
    for part in ("real", "imag"):
        u, v = getattr(x, part), getattr(y, part)
        special = ~np.isfinite(u) | ~np.isfinite(v)
        wrong = special & (u != v) & ~(np.isnan(u) & np.isnan(v))
        if wrong.any():
            return _describe(wrong, wanted, got, "other special values")
        magnitude = np.abs(np.where(finite, x, 0))
        allowed = EPSILON[kind] * (tolerance.relative * magnitude + tolerance.absolute * scale) + SUBNORMAL
        with np.errstate(invalid="ignore"):
            error = np.where(special, 0, np.abs(u - v))
        if (error > allowed).any():
            worst = float((error / (EPSILON[kind] * max(scale, SUBNORMAL))).max())
            return _describe(error > allowed, wanted, got, f"wrong by up to {worst:.3g} epsilons of the largest,")
    return None


def _describe(wrong: Array, wanted: Array, got: Array, what: str) -> str:
    some: Mapping[str, list[Any]] = {"got": got[wrong][:4].tolist(), "wanted": wanted[wrong][:4].tolist()}
    return f"{what} at {int(wrong.sum())} of {wrong.size} places: got {some['got']}, wanted {some['wanted']}"
