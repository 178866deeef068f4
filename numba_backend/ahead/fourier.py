"""fft as rows of a program that leaves the process: one kernel for each axis, without a library.

A transform of real numbers of even length n is one of n / 2 complex numbers, which its numbers are taken for, and a
pass that separates the two. Other lengths are transformed as complex numbers. Items of a batch are in groups, which
threads can share; each group has its own scratch memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.ops.linalg import FftType
from ..emit.texts import indented, kernel_of
from ..loops.typing import SHORT
from ..rows.table import RowContext
from ..runtime.program import Argument, size
from .fourier_text import Place, Transform, convolution_length, factors_of, roots

_GROUPS = 16
"""At most so many threads share a transform."""
_SPLIT_WORK = 1 << 16
"""The n log n of a batch from which threads pay."""


def add_fft(context: RowContext, instruction: HloInstruction) -> None:
    """The rows of an fft: along the last dimensions, one after the other."""
    attributes = instruction.attributes
    lengths, kind = attributes.fft_length, attributes.fft_type
    (source,), (target,) = context.operands(instruction), context.results(instruction)
    if not instruction.shape.num_elements:
        return
    inverse = kind in (FftType.IFFT, FftType.IRFFT)
    is_real = kind in (FftType.RFFT, FftType.IRFFT)
    complex_shape = instruction.shape if kind is not FftType.IRFFT else instruction.operands[0].shape
    dimensions = list(complex_shape.dimensions)
    rank = len(dimensions)
    axes = [(axis, "complex") for axis in range(rank - len(lengths), rank)]
    if is_real:
        axes[-1] = (rank - 1, "real")
    if kind is FftType.RFFT:
        axes = [axes[-1], *axes[:-1]]
    rows = _Rows(context, complex_shape.element.real, inverse)
    for number, (axis, of) in enumerate(axes):
        last = number == len(axes) - 1
        to = target if last else context.scratch(complex_shape.element, math.prod(dimensions))
        length = lengths[axis - rank]
        outer, inner = math.prod(dimensions[:axis]), math.prod(dimensions[axis + 1 :])
        if of == "complex":
            rows.add(outer, length, inner, source, to)
        elif kind is FftType.RFFT:
            rows.add_from_real(outer, length, source, to)
        else:
            rows.add_to_real(outer, length, source, to)
        source = to


class _Rows:
    """Adds kernels to a program. In their texts, x and out are operand and result, work, more and third scratch memory
    of an item's group, and w the table of roots."""

    def __init__(self, context: RowContext, real: ElementType, inverse: bool) -> None:
        self._context, self._real, self._inverse = context, real, inverse
        self._kind = SHORT[real.value]

    def add(self, items: int, n: int, inner: int, source: Argument, target: Argument) -> None:
        """A transform of complex numbers along the middle of [items, n, inner]."""
        transform = Transform(self._kind, inner, self._inverse)
        scale = f"{self._kind}({1 / n!r})" if self._inverse else ""
        lines = transform.lines(n, Place("x", "at_x"), Place("out", "at_out"), _WORK, _MORE, scale)
        steps = (2 * n * inner, 2 * n * inner)
        self._row("fft", items, n, inner, source, target, steps, lines, transform)

    def add_from_real(self, items: int, n: int, source: Argument, target: Argument) -> None:
        """From [items, n] real numbers to [items, n // 2 + 1] complex ones."""
        half = n // 2
        transform = Transform(self._kind, 1, False)
        if n % 2 == 0 and factors_of(half) is not None:
            lines = transform.lines(half, Place("x", "at_x"), _THIRD, _WORK, _MORE, "")
            at = transform.tabled(roots(np.arange(half + 1), n))
            lines += [
                "out[at_out] = third[at_third] + third[at_third + 1]", f"out[at_out + 1] = {self._kind}(0)",
                f"out[at_out + {2 * half}] = third[at_third] - third[at_third + 1]",
                f"out[at_out + {2 * half + 1}] = {self._kind}(0)",
                f"for k in range(1, {half}):",
                "    ar = third[at_third + 2 * k]", "    ai = third[at_third + 2 * k + 1]",
                f"    br = third[at_third + {2 * half} - 2 * k]", f"    bi = -third[at_third + {2 * half + 1} - 2 * k]",
                *_halves(self._kind), f"    wr = w[{at} + 2 * k]", f"    wi = w[{at} + 2 * k + 1]",
                "    out[at_out + 2 * k] = er + (wr * di + wi * dr)",
                "    out[at_out + 2 * k + 1] = ei + (wi * di - wr * dr)",
            ]  # fmt: skip
        else:
            lines = [f"for k in range({n}):"]
            lines += ["    third[at_third + 2 * k] = x[at_x + k]", f"    third[at_third + 2 * k + 1] = {self._kind}(0)"]
            lines += transform.lines(n, _THIRD, _FOURTH, _WORK, _MORE, "")
            lines += [f"for k in range({2 * (half + 1)}):", "    out[at_out + k] = fourth[at_fourth + k]"]
        self._row("fft_of_reals", items, n, 1, source, target, (n, 2 * (half + 1)), lines, transform)

    def add_to_real(self, items: int, n: int, source: Argument, target: Argument) -> None:
        """From [items, n // 2 + 1] complex numbers to [items, n] real ones."""
        half = n // 2
        transform = Transform(self._kind, 1, True)
        scale = f"{self._kind}({1 / n!r})"
        if n % 2 == 0 and factors_of(half) is not None:
            at = transform.tabled(roots(np.arange(half), n))
            lines = [
                f"for k in range({half}):",
                "    ar = x[at_x + 2 * k]", "    ai = x[at_x + 2 * k + 1]",
                f"    br = x[at_x + {2 * half} - 2 * k]", f"    bi = -x[at_x + {2 * half + 1} - 2 * k]",
                "    if k == 0:", f"        ai = {self._kind}(0)", f"        bi = {self._kind}(0)",
                "    er = ar + br", "    ei = ai + bi", "    dr = ar - br", "    di = ai - bi",
                f"    wr = w[{at} + 2 * k]", f"    wi = w[{at} + 2 * k + 1]",  # conjugated: wr - i wi
                "    third[at_third + 2 * k] = er - (wr * di - wi * dr)",
                "    third[at_third + 2 * k + 1] = ei + (wr * dr + wi * di)",
            ]  # fmt: skip
            lines += transform.lines(half, _THIRD, Place("out", "at_out"), _WORK, _MORE, scale)
        else:
            lines = [f"third[at_third + 1] = {self._kind}(0)", "third[at_third] = x[at_x]"]
            last = (n - 1) // 2
            lines += [f"for k in range(1, {last + 1}):", "    ar = x[at_x + 2 * k]", "    ai = x[at_x + 2 * k + 1]"]
            lines += ["    third[at_third + 2 * k] = ar", "    third[at_third + 2 * k + 1] = ai"]
            lines += [f"    third[at_third + {2 * n} - 2 * k] = ar", f"    third[at_third + {2 * n + 1} - 2 * k] = -ai"]
            if n % 2 == 0:
                lines += [f"third[at_third + {n}] = x[at_x + {n}]", f"third[at_third + {n + 1}] = {self._kind}(0)"]
            lines += transform.lines(n, _THIRD, _FOURTH, _WORK, _MORE, scale)
            lines += [f"for k in range({n}):", "    out[at_out + k] = fourth[at_fourth + 2 * k]"]
        self._row("fft_to_reals", items, n, 1, source, target, (2 * (half + 1), n), lines, transform)

    def _row(
        self, name: str, items: int, n: int, inner: int, source: Argument, target: Argument, steps: tuple[int, int],
        lines: Sequence[str], transform: Transform,
    ) -> None:  # fmt: skip
        element = self._real
        work = items * n * inner * math.log2(max(n, 2))
        groups = min(items, _GROUPS) if work >= 2 * _SPLIT_WORK else 1
        length = 2 * inner * max(n if factors_of(n) is not None else 0, _longest(n))
        text = "\n".join(lines)
        buffers = [buffer for buffer in _SCRATCH if f"{buffer}[" in text]
        table = np.concatenate([*transform.table, np.zeros(1)]).astype(element.dtype)
        pointers = [("x", source), ("out", target), ("w", self._context.builder.constant(table))]
        pointers += [(buffer, self._context.scratch(element, groups * length)) for buffer in buffers]
        names = [pointer for pointer, _ in pointers]
        definition = [
            f"def {name}(lo, hi, {', '.join(names)}, items, groups):",
            "    for group in range(lo, hi):",
            *[f"        at_{buffer} = group * {length}" for buffer in buffers],
            "        for item in range(group * items // groups, (group + 1) * items // groups):",
            f"            at_x = item * {steps[0]}", f"            at_out = item * {steps[1]}",
            *indented(lines, 3), "",
        ]  # fmt: skip
        parameters = [*[("pointer", element.value)] * len(pointers), *[("size", "s64")] * 2]
        kernel = kernel_of(name, "\n".join(definition), parameters)
        arguments = (*[place for _, place in pointers], size(items), size(groups))
        self._context.builder.kernel(kernel, arguments, groups, 1 if groups > 1 else 0)


_SCRATCH = ("work", "more", "third", "fourth")
_WORK, _MORE, _THIRD, _FOURTH = (Place(name, f"at_{name}") for name in _SCRATCH)


def _longest(n: int) -> int:
    """Of the buffers of a transform, in complex numbers."""
    return convolution_length(n) if factors_of(n) is None else n


def _halves(kind: str) -> list[str]:
    half = f"{kind}(0.5)"
    return [
        f"    er = {half} * (ar + br)", f"    ei = {half} * (ai + bi)",
        f"    dr = {half} * (ar - br)", f"    di = {half} * (ai - bi)",
    ]  # fmt: skip
