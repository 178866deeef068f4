"""Lower fft to rows of kernels, without a library: along the last dimensions, one after the other.

A transform of real numbers of even length n is a transform of n / 2 complex numbers: pairs of real numbers are taken
for complex ones, and a last step separates the two. Other lengths are transformed as complex numbers. Many short rows
are interleaved and transformed together (`emit/fourier_lanes.py`), others one after the other (`emit/fourier.py`). A
length with a large prime factor is a convolution with a chirp (Bluestein's): within one kernel, if rows or columns are
interleaved; otherwise in three passes over memory, from a prime factor above 13 on. This file decides which kernels are
called with which lengths and tables.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.ops.linalg import FftType
from ..cost import TRANSFORMED
from ..emit import fourier as texts
from ..emit import fourier_lanes as lanes
from ..emit.fourier import convolution_length, roots
from ..emit.text_kernels import text_kernel
from ..emit.texts import LANES
from ..machine import SHARE_NANOSECONDS, target_machine
from ..runtime.program import Argument
from .table import LoweringContext

_GROUPS = 16
"""At most so many threads share a transform."""


def add_fft(context: LoweringContext, instruction: HloInstruction, side_by_side: bool = True) -> None:
    """The rows of an fft. `side_by_side`: many short rows together. For C compilers that is too much code: it takes
    five times as long to compile, and is up to 1.5 times slower than rows one after the other."""
    attributes = instruction.attributes
    lengths, kind = attributes.fft_length, attributes.fft_type
    (source,), (target,) = context.operands(instruction), context.results(instruction)
    if not instruction.shape.num_elements:
        return
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    complex_shape = instruction.shape if kind is not FftType.IRFFT else instruction.operands[0].shape
    dimensions, rank = complex_shape.dimensions, complex_shape.rank
    axes = [(axis, False) for axis in range(rank - len(lengths), rank)]
    if kind in (FftType.RFFT, FftType.IRFFT):
        axes[-1] = (rank - 1, True)
    if kind is FftType.RFFT:
        axes = [axes[-1], *axes[:-1]]
    rows = _Rows(context, instruction.name, complex_shape.element.real, inverse, side_by_side)
    for number, (axis, is_real) in enumerate(axes):
        is_last = number == len(axes) - 1
        to = target if is_last else context.scratch(complex_shape.element, math.prod(dimensions))
        length = lengths[axis - rank]
        outer, inner = math.prod(dimensions[:axis]), math.prod(dimensions[axis + 1 :])
        if not is_real:
            rows.transform(outer, length, inner, source, to)
        elif kind is FftType.RFFT:
            rows.from_reals(outer, length, source, to)
        else:
            rows.to_reals(outer, length, source, to)
        source = to


class _Rows:
    """The rows of one instruction."""

    def __init__(
        self, context: LoweringContext, name: str, real: ElementType, inverse: bool, side_by_side: bool
    ) -> None:
        self._context, self._name, self._real, self._inverse = context, name, real, inverse
        self._side_by_side = side_by_side
        self._complex = ElementType.C64 if real is ElementType.F32 else ElementType.C128

    def transform(
        self, outer: int, n: int, inner: int, source: Argument, target: Argument, scale: float = 0.0,
        before: tuple[str, ...] = (), after: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        """Along the middle of [outer, n, inner]. `scale`: of the results; 0 for the usual one. `before` and `after`: of
        rows that are real."""
        if not scale:
            scale = 1 / n if self._inverse else 1.0
        if inner == 1 and not before and not after and self._fits(outer, n):
            self._lanes(lanes.Rows.COMPLEX, outer, n, source, target, scale)
            return
        if texts.plan_of(n, 1) is None and self._fits(inner, n):
            self._lanes(lanes.Rows.COLUMNS, outer, n, source, target, scale, inner)
            return
        block = _block(n, inner, self._complex.byte_width)
        plan = texts.plan_of(n, block)
        if plan is None:
            self._convolution(outer, n, inner, source, target, scale)
            return
        items = outer * -(-inner // block)
        nanoseconds = outer * n * inner * (math.log2(n) + 2) * TRANSFORMED * self._real.byte_width / 4
        groups = max(1, min(items, _GROUPS, int(nanoseconds / SHARE_NANOSECONDS)))
        table = _table(self._real, plan.passes, self._inverse, scale)
        builder = self._context.builder
        arrays = {"x": source, "out": target, "w": builder.constant(table)}
        kinds = dict.fromkeys(("x", "out", "w", "work", "more", "reals", "twiddles"), self._real)
        for name in ("work", "more")[: len(plan.first)]:
            arrays[name] = self._context.scratch(self._real, 4 * block * n * groups)
        if before or after:
            arrays["reals"] = self._context.scratch(self._real, 2 * (n + 1) * groups)
            arrays["twiddles"] = builder.constant(_pairs(roots(np.arange(n), 2 * n), self._real))
        sizes = {"items": outer, "n": n, "groups": groups, "steps": len(plan.between), "inner": inner}
        if inner == 1:
            name, lines = "transform", texts.rows_text(plan.first, plan.kinds, plan.last, before, after)
        else:
            first = plan.first[0] if plan.first else None
            name, lines = "transform_columns", texts.columns_text(first, plan.kinds, plan.last, block)
        arrays["plan"] = builder.constant(np.array([*plan.between, 0], np.int64))
        kinds["plan"] = ElementType.S64
        self._add(name, lines, arrays, kinds, sizes, groups, nanoseconds / groups)

    def _fits(self, items: int, n: int) -> bool:
        return self._side_by_side and lanes.fits(self._real, items, n)

    def _lanes(
        self, rows: lanes.Rows, items: int, n: int, source: Argument, target: Argument, scale: float, inner: int = 1
    ) -> None:
        """Interleaved rows, with transforms of length n. `inner`: how many columns an item has, if they are that."""
        padded = lanes.padded_length(n)
        passes = lanes.passes_of(padded)
        assert passes is not None
        is_convolution = padded != n
        width = self._real.byte_width
        nanoseconds = items * inner * padded * (1.5 * math.log2(padded) + 6) * TRANSFORMED * width / 4
        if is_convolution:
            nanoseconds *= 2
        count = LANES[self._real]
        blocks = items * -(-inner // count) if rows is lanes.Rows.COLUMNS else -(-items // count)
        groups = max(1, min(blocks, _GROUPS, int(nanoseconds / SHARE_NANOSECONDS)))
        separated = 2 * n if rows in (lanes.Rows.FROM_REALS, lanes.Rows.TO_REALS) else 0
        inverse = self._inverse and not is_convolution
        table = lanes.table_of(self._real, passes, inverse, scale, separated)
        builder = self._context.builder
        arrays = {
            "x": source, "out": target, "w": builder.constant(table),
            "work": self._context.scratch(self._real, lanes.work_numbers(self._real, padded) * groups),
            "plan": builder.constant(np.array(passes, np.int64)),
        }  # fmt: skip
        kinds = dict.fromkeys((*arrays, "chirp"), self._real) | {"plan": ElementType.S64}
        sizes = {"items": items, "n": n, "groups": groups, "steps": len(passes), "inner": inner}
        if is_convolution:
            arrays["chirp"] = builder.constant(_pairs(np.concatenate(_chirp(n, padded, self._inverse)), self._real))
            sizes["padded"] = padded
        lines = lanes.lanes_text(lanes.kinds_of(passes), rows, LANES[self._real], is_convolution)
        self._add("transforms", lines, arrays, kinds, sizes, groups, nanoseconds / groups)

    def _add(
        self, name: str, lines: Sequence[str], arrays: dict[str, Argument],
        kinds: dict[str, ElementType], sizes: dict[str, int], extent: int, cost: float,
    ) -> None:  # fmt: skip
        kernel, used = text_kernel(name, lines, self._real, kinds, sizes, extent, cost)
        self._context.kernel(f"{self._name} {name}", kernel, [arrays[key] for key in used], [])

    def _each(
        self, name: str, lines: Sequence[str], items: int, work: int, arrays: dict[str, Argument | np.ndarray],
        **sizes: int,
    ) -> None:  # fmt: skip
        """A kernel that goes once over each item. Complex numbers among `arrays` are a table."""
        places = {
            key: self._context.builder.constant(_pairs(a, self._real)) if isinstance(a, np.ndarray) else a
            for key, a in arrays.items()
        }
        cost = work * 0.5 * self._real.byte_width / 4
        self._add(name, lines, places, dict.fromkeys(places, self._real), sizes, items, cost)

    def _convolution(self, outer: int, n: int, inner: int, source: Argument, target: Argument, scale: float) -> None:
        """x_k = sum_j a_j e^(-+2 pi i j k / n), with j k = (j^2 + k^2 - (k - j)^2) / 2: a convolution of a_j c_j with
        the chirp conj(c_j), c_j = e^(-+pi i j^2 / n)."""
        length = convolution_length(n)
        chirp, other = _chirp(n, length, self._inverse)
        buffers = [self._context.scratch(self._complex, outer * length * inner) for _ in range(2)]
        inverse = self._inverse
        work = length * inner
        names = {"n": n, "xn": n, "inner": inner, "length": length}
        arrays: dict[str, Argument | np.ndarray] = {"x": source, "out": buffers[0], "w": chirp}
        self._each("chirped", texts.CHIRPED, outer, work, arrays, **names)
        self._inverse = False
        self.transform(outer, length, inner, buffers[0], buffers[1], 1.0)
        names = {"n": length, "xn": length, "inner": inner, "length": length}
        arrays = {"x": buffers[1], "out": buffers[0], "w": other}
        self._each("convolved", texts.CHIRPED, outer, work, arrays, **names)
        self._inverse = True
        self.transform(outer, length, inner, buffers[0], buffers[1], 1.0)
        self._inverse = inverse
        names = {"n": n, "xn": length, "inner": inner, "length": n}
        arrays = {"x": buffers[1], "out": target, "w": chirp * scale}
        self._each("chirped", texts.CHIRPED, outer, work, arrays, **names)

    def from_reals(self, items: int, n: int, source: Argument, target: Argument) -> None:
        """From [items, n] real numbers to [items, n // 2 + 1] complex ones."""
        half = n // 2
        if self._fits(items, n if n % 2 else half):
            rows = lanes.Rows.FROM_ODD_REALS if n % 2 else lanes.Rows.FROM_REALS
            self._lanes(rows, items, n if n % 2 else half, source, target, 1.0)
            return
        if n % 2 == 0 and texts.plan_of(half, 1) is not None:
            self.transform(items, half, 1, source, target, 1.0, after=texts.FROM_REALS)
            return
        between = self._context.scratch(self._complex, items * n)
        if n % 2 == 0:
            self.transform(items, half, 1, source, between)
            lines = (*texts.EACH, *texts.FROM_REALS)
            twiddles = roots(np.arange(half), n)
            self._each("separated", lines, items, half, {"reals": between, "out": target, "twiddles": twiddles}, n=half)
            return
        wide = self._context.scratch(self._complex, items * n)
        self._each("with_zeros", texts.WITH_ZEROS, items, n, {"x": source, "out": wide}, n=n)
        self.transform(items, n, 1, wide, between)
        self._each("first_half", texts.FIRST_HALF, items, half + 1, {"x": between, "out": target}, n=n)

    def to_reals(self, items: int, n: int, source: Argument, target: Argument) -> None:
        """From [items, n // 2 + 1] complex numbers to [items, n] real ones."""
        half = n // 2
        if self._fits(items, n if n % 2 else half):
            rows = lanes.Rows.TO_ODD_REALS if n % 2 else lanes.Rows.TO_REALS
            self._lanes(rows, items, n if n % 2 else half, source, target, 1 / n)
            return
        if n % 2 == 0 and texts.plan_of(half, 1) is not None:
            self.transform(items, half, 1, source, target, 1 / n, before=texts.TO_REALS)
            return
        between = self._context.scratch(self._complex, items * n)
        if n % 2 == 0:
            lines = (*texts.EACH, *texts.TO_REALS)
            twiddles = roots(np.arange(half), n)
            self._each("joined", lines, items, half, {"x": source, "reals": between, "twiddles": twiddles}, n=half)
            self.transform(items, half, 1, between, target, 1 / n)
            return
        wide = self._context.scratch(self._complex, items * n)
        self._each("mirrored", texts.MIRRORED, items, n, {"x": source, "out": wide}, n=n)
        self.transform(items, n, 1, wide, between)
        self._each("real_parts", texts.REAL_PARTS, items, n, {"x": between, "out": target}, n=n)


def _block(n: int, inner: int, width: int) -> int:
    """How many columns are transformed together: so many that they stay in the second-level cache."""
    if inner == 1:
        return 1
    block = _MOST_COLUMNS
    while block > _LEAST_COLUMNS and 2 * n * block * width > target_machine().second_cache // 4:
        block //= 2
    return min(block, inner)


_MOST_COLUMNS, _LEAST_COLUMNS = 32, 8


def _pairs(values: np.ndarray, real: ElementType) -> np.ndarray:
    found: np.ndarray = np.stack([values.real, values.imag], -1).reshape(-1).astype(real.dtype)
    return found


@functools.lru_cache(256)
def _table(real: ElementType, passes: tuple[int, ...], inverse: bool, scale: float) -> np.ndarray:
    """The scale, the sign, and for each pass but the last the roots that multiply its results."""
    parts = [np.array([scale, -1 if inverse else 1], real.dtype)]
    m = math.prod(passes)
    for number, p in enumerate(passes[:-1]):
        length, m = m, m // p
        values = roots(np.outer(np.arange(1, p), np.arange(m)), length) * (1 if number else scale)
        parts.append(_pairs((values.conj() if inverse else values).reshape(-1), real))
    return np.concatenate([*parts, np.zeros(2, real.dtype)])


@functools.lru_cache(64)
def _chirp(n: int, length: int, inverse: bool) -> tuple[np.ndarray, np.ndarray]:
    j = np.arange(n, dtype=object)
    chirp = roots(np.array([int(x) % (2 * n) for x in j * j]), 2 * n)
    if inverse:
        chirp = chirp.conj()
    other = np.zeros(length, chirp.dtype)
    other[:n] = chirp.conj()
    other[length - n + 1 :] = chirp.conj()[1:][::-1]
    return chirp, np.fft.fft(other) / length
