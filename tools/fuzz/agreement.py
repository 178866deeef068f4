"""When do two results of a program agree? When rounding explains how they differ; see `noise`.

Most results are equal, or a few units in the last place apart, which takes no time to see. For the others the evaluator
runs again with random rounding errors, first a few times, then more often: a result must lie in the range of these
runs, widened. So a program that amplifies errors has a wide range, and one that does not a narrow one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np
from hloom.hlo.builder import make_computation
from hloom.hlo.errors import HloError
from hloom.hlo.ir import HloModule
from hloom.hlo.opcode import Opcode

from .case import Verdict
from .noise import Noisy, TooLong, is_inexact

NDArray = np.ndarray[Any, Any]

QUICK_ULPS = 3
ROUNDS = ((6, 1.0), (24, 1.0), (24, 3.0))
"""Runs, and the size of the errors in them, until a result is explained."""
FORMULAS = 8.0
"""How many times larger errors are where formulas may differ."""
MARGIN = 3.0
"""How far a result may be outside of the range of all runs, in widths of that range."""


@dataclass(frozen=True, slots=True)
class How:
    """How other results may differ, beyond rounding."""

    signed_zeros: bool = True
    """Zeros have the same sign."""
    flush: bool = False
    """The other implementation treats subnormal numbers as zero."""
    formulas: bool = False
    """The other implementation may use other formulas, with errors a few times as large."""
    seed: int = 0


def differences(
    module: HloModule, arguments: Sequence[NDArray], expected: Sequence[NDArray], actual: Sequence[NDArray], how: How
) -> tuple[Verdict, str]:
    """How `actual` differs from what the module may give: OK, UNSTABLE or FOUND, and in what. `expected`: what the
    evaluator gives."""
    if len(expected) != len(actual):
        return Verdict.FOUND, f"{len(actual)} results, not {len(expected)}"
    verdict = Verdict.OK
    for number, (e, a) in enumerate(zip(expected, actual, strict=True)):
        e, a = np.asarray(e), np.asarray(a)
        if a.shape != e.shape or a.dtype != e.dtype:
            return Verdict.FOUND, f"result {number}: {a.dtype}{list(a.shape)}, not {e.dtype}{list(e.shape)}"
        if e.tobytes() == a.tobytes():
            continue
        wrong = ~_quickly_equal(e, a, how.signed_zeros and not how.flush)
        if not wrong.any():
            continue
        worse, text = _explain(_only_result(module, number), arguments, e, a, wrong, how)
        if worse is Verdict.FOUND:
            return worse, f"result {number} ({e.dtype}{list(e.shape)}): {text}"
        if worse is not Verdict.OK:
            verdict = worse
    return verdict, ""


def _only_result(module: HloModule, number: int) -> HloModule:
    """The module with one leaf of the result."""
    root = module.entry.root
    if root.opcode is not Opcode.TUPLE or any(o.shape.is_tuple for o in root.operands):
        return module
    entry = make_computation(module.entry.name, root.operands[number], module.entry.parameters)
    return replace(
        module, entry=entry, input_output_aliases=(), entry_result_layouts=(), buffer_donors=(), is_scheduled=False
    )


def _explain(
    module: HloModule, arguments: Sequence[NDArray], expected: NDArray, actual: NDArray, wrong: NDArray, how: How
) -> tuple[Verdict, str]:
    """Do rounding errors explain the elements that are `wrong`?"""
    decisions = None
    runs: list[NDArray] = [expected]
    outside = wrong
    for count, amplitude in ROUNDS:
        amplitude *= FORMULAS if how.formulas else 1
        for _ in range(count):
            seed = how.seed * 1000 + len(runs)
            try:
                if decisions is None:
                    decisions = Noisy(module, arguments, 0, 0.0).decisions
                noisy = Noisy(module, arguments, seed, amplitude, how.flush and len(runs) % 2 == 0)
            except (TooLong, HloError, MemoryError):
                return Verdict.UNSTABLE, ""
            if noisy.decisions != decisions:
                return Verdict.UNSTABLE, ""
            runs.append(next(r for r in noisy.results if r.shape == expected.shape and r.dtype == expected.dtype))
        inside = _in_range(np.stack([r[wrong] for r in runs]), actual[wrong], how.signed_zeros and not how.flush)
        outside = np.array(wrong)
        outside[wrong] = ~inside
        if not outside.any():
            return Verdict.OK, ""
    places = np.argwhere(outside)[:3].tolist()
    shown = [f"{place}: {actual[tuple(place)]!r}, not {expected[tuple(place)]!r}" for place in places]
    return Verdict.FOUND, f"{int(outside.sum())} of {outside.size} elements differ: " + "; ".join(shown)


def _in_range(runs: NDArray, actual: NDArray, signed_zeros: bool) -> NDArray:
    """For each element: whether `actual` is in the range of the runs."""
    if not is_inexact(runs.dtype):
        return np.asarray((runs == actual).any(0))
    if runs.dtype.kind != "c":
        return _inside(runs, actual, np.longdouble(0), signed_zeros)
    with np.errstate(all="ignore"):
        size = np.abs(runs[0]).astype(np.longdouble)
    parts = [_inside(getattr(runs, part), getattr(actual, part), size, signed_zeros) for part in ("real", "imag")]
    return np.asarray(parts[0] & parts[1])


def _inside(runs: NDArray, actual: NDArray, scale: Any, signed_zeros: bool) -> NDArray:
    info: Any = ml_dtypes.finfo(runs.dtype)  # type: ignore[no-untyped-call]
    wide, got = runs.astype(np.longdouble), actual.astype(np.longdouble)
    with np.errstate(all="ignore"):
        same = ((wide == got) | (np.isnan(wide) & np.isnan(got))).any(0)
        finite = np.isfinite(wide)
        low = np.where(finite, wide, np.inf).min(0)
        high = np.where(finite, wide, -np.inf).max(0)
        size = np.maximum(np.maximum(np.abs(low), np.abs(high)), scale)
        slack = MARGIN * (high - low) + QUICK_ULPS * (float(info.eps) * size + float(info.smallest_subnormal))
        inside = finite.any(0) & np.isfinite(got) & (got >= low - slack) & (got <= high + slack)
        if signed_zeros:
            zeros = (wide == 0).all(0) & (got == 0)
            signs = np.signbit(wide)
            inside &= ~zeros | (np.signbit(got) == signs[0]) | (signs.any(0) != signs.all(0))
            same &= ~zeros | (np.signbit(got) == signs).any(0)
    return np.asarray(same | inside)


def _quickly_equal(e: NDArray, a: NDArray, signed_zeros: bool) -> NDArray:
    """Equal, or a few units in the last place apart."""
    if not is_inexact(e.dtype):
        return np.asarray(e == a)
    if e.dtype.kind == "c":
        parts = [_quickly_equal(getattr(e, part), getattr(a, part), signed_zeros) for part in ("real", "imag")]
        return np.asarray(parts[0] & parts[1])
    info: Any = ml_dtypes.finfo(e.dtype)  # type: ignore[no-untyped-call]
    with np.errstate(all="ignore"):
        x, y = e.astype(np.longdouble), a.astype(np.longdouble)
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        if signed_zeros:
            same &= np.isnan(x) | (np.signbit(x) == np.signbit(y))
        near = QUICK_ULPS * float(info.eps) * np.abs(x) + 0.0
        close = np.isfinite(x) & np.isfinite(y) & (np.abs(x - y) <= near) & (x != 0)
    return np.asarray(same | close)
