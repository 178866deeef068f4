"""Convolutions as algorithms: products of two matrices. One of them is in the copy of the input
(`convolution_copy.py`), and tables say how far apart its rows and columns are.

    channels last           out[n, g, p, o] = sum over t, i of x[n, g, rows[p] + taps[t] + i] * w[g, t, i, o]
    depthwise               out[n, p, o] = sum over i, t of x[n, rows[p] + taps[t] + o] * w[t, o]
    derivative by kernel    out[g, p, o] = sum over i, t of x[i, g, rows[p] + taps[t]] * y[i, t, g, o]
    the same, first         out[g, o, e] = sum over n, q of x[n, g, taps[e] + q] * y[n, g, o, q]
    channels first          out[n, s, g, o, q] = sum over i, t of w[g, o, i, t] * x[n, s, g, i, q + taps[t]]

Channels last, rows are positions of the window; `t` and `i` are its elements and the inputs. For a derivative by the
kernel, rows are elements and inputs; `t` and `i` are positions and images. Channels first, `q` counts cells along the
rows of the copy, including cells that are no positions; `n` are images and `s` strips of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.support.records import dataclass
from ..emitted_kernel import EmittedKernel, memory_type
from ..loops.expressions import ONE, ZERO, Expr, Name, Number, product_of, sum_of
from ..loops.statements import PointerParameter
from ..loops.typing import pointer_to
from ..loops.writer import cast
from ..remembered import remembered
from ..schedule.algorithm import TOTAL, Access, Algorithm, Dimension, Lines
from ..schedule.apply import kernel_of
from ..schedule.steps import Schedule
from .convolution_copy import Geometry
from .product import type_of_sums


@dataclass(frozen=True, slots=True)
class Form:
    """All that the text of a kernel depends on, besides the schedule."""

    kind: Literal["last", "depthwise", "first", "gradient"]
    element_type: ElementType
    is_gradient: bool = False
    """The derivative by the kernel, in f64. A parameter says whether it is added to the stored values."""
    is_transposed: bool = False
    """Channels first: the kernel is [input, output, taps], read from its last tap on."""
    lines: int = 0
    """Channels first: how many numbers say where a cell is."""

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return {
            "last": "convolution_tiles_last", "depthwise": "depthwise_tiles", "first": "convolution_tiles",
            "gradient": "convolution_gradient",
        }[self.kind]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Matrices:
    """Channels last: the operands of a row of results, in elements of the copy and in rows of the weights."""

    images: int
    """Images, or groups of them, with rows of their own."""
    image: int
    """The distance of two of these in the copy."""
    rows: np.ndarray
    """How far away each of their rows is in the copy."""
    taps: np.ndarray
    """How far away each element of the window is, or each position."""
    inputs: int
    input_step: int
    """The distance of two inputs in the copy."""
    of_tap: int
    """How many rows of weights a tap is away from the next one."""
    of_input: int


def matrices_of(geometry: Geometry, images: int, *, each: bool) -> Matrices:
    """The matrices of some images. `each`: each image has rows of its own; otherwise the rows of all images follow each
    other."""
    sizes = geometry.sizes
    rows = geometry.position_offsets()
    if not each:
        rows = (np.arange(images, dtype=np.int64)[:, None] * geometry.image + rows).reshape(-1)
    return Matrices(
        images if each else 1, geometry.image, rows, geometry.tap_offsets(), sizes.inputs, 1, sizes.inputs, 1
    )  # fmt: skip


def gradient_of(geometry: Geometry, images: int) -> Matrices:
    """The derivative by the kernel: rows are its elements and inputs; the sum goes over positions and images."""
    sizes = geometry.sizes
    rows = (geometry.tap_offsets()[:, None] + np.arange(sizes.inputs, dtype=np.int64)).reshape(-1)
    return Matrices(1, 0, rows, geometry.position_offsets(), images, geometry.image, 1, sizes.positions)


def algorithm_of(form: Form) -> Algorithm:
    """The algorithm; all extents and strides are parameters."""
    kind, total = memory_type(form.element_type), type_of_sums(form.element_type)
    taps, rows = Name("offsets", pointer_to("int64")), Name("rows", pointer_to("int64"))

    def access(name: str, pointer: str, start: Expr = ZERO, **strides: str | Expr) -> Access:
        pairs = ((d, Name(s) if isinstance(s, str) else s) for d, s in strides.items())
        element = "float64" if form.is_gradient and pointer == "out" else kind
        return Access(name, Name(pointer, pointer_to(element)), tuple(pairs), start)

    extents = {"n": "images", "g": "groups"}
    sums = [Dimension(d, Name(e), is_reduced=True) for d, e in (("i", "inputs"), ("t", "taps"))]
    lines = None
    if form.kind == "gradient":
        extents = {"g": "groups", "o": "outputs", "e": "elements"}
        sums = [Dimension(d, Name(e), is_reduced=True) for d, e in (("n", "images"), ("q", "positions"))]
        y = access("a", "w", n="image_made", g="group_made", o="positions", q=ONE)
        x = access("b", "x", n="image", g="members", e=taps, q=ONE)
        out, operands = access("c", "out", g="of_group", o="elements", e=ONE), (y, x)
    elif form.kind == "first":
        extents |= {"s": "strips", "o": "outputs", "q": "cells"}
        x = access("b", "x", n="image", s="strip", g="members", i="plane", t=taps, q=ONE)
        if form.is_transposed:
            w = access("a", "w", Name("last_tap"), o="of_output", i="of_input", t=Number(-1))
        else:
            w = access("a", "w", g="of_group", o="of_output", i="of_input", t=ONE)
        out = access("c", "out", n="image_made", s="strip_made", g="group_made", o="positions")
        digits = tuple((Name(f"c{d}"), Name(f"m{d}")) for d in range(form.lines))
        lines, operands = Lines("q", digits), (w, x)
    else:
        extents |= {"p": "positions", "o": "outputs"}
        along = form.kind == "last" and not form.is_gradient
        inner: dict[str, Expr] = {"t": taps, "i": ONE if along else Name("input_step")}
        if form.kind == "depthwise":
            inner["o"] = ONE
        x = access("a", "x", n="image", g="members", p=rows, **inner)
        w = access("b", "w", g="of_group", t="of_tap", i="of_input", o=ONE)
        out = access("c", "out", n="image_made", g="outputs", p="made", o=ONE)
        operands = x, w
    dimensions = [Dimension(d, Name(extent)) for d, extent in extents.items()]
    return Algorithm(
        form.name, (*dimensions, *sums), operands, out,
        sum_of(Name(TOTAL, total), product_of(Name("a", total), Name("b", total))), total, cast(total, 0),
        Name("adding") if form.is_gradient else False, lines,
    )  # fmt: skip


def emit_sums(form: Form, numbers: Mapping[str, int], schedule: Schedule, extent: int) -> EmittedKernel:
    """Operand 0: the copy of some images; operand 1: the weights; operand 2: the table of `taps`; operand 3, with
    rows: that of `rows`; output 0: the results. `numbers`: all parameters that the algorithm and the schedule name."""
    return _kernel(form, tuple(numbers.items()), schedule, extent)


@remembered
def _kernel(form: Form, numbers: tuple[tuple[str, int], ...], schedule: Schedule, extent: int) -> EmittedKernel:
    """The same object for equal convolutions: the time of a kernel, which is estimated from its loops, is a part."""
    return kernel_of(form, algorithm_of, _pointers(form), dict(numbers), schedule, extent)


def _pointers(form: Form) -> tuple[PointerParameter, ...]:
    element, rows = form.element_type, PointerParameter("rows", ElementType.S64, 3, None)
    return (
        PointerParameter("x", element, 0, None), PointerParameter("w", element, 1, None),
        PointerParameter("offsets", ElementType.S64, 2, None), *((rows,) if form.kind in ("last", "depthwise") else ()),
        PointerParameter("out", ElementType.F64 if form.is_gradient else element, None, 0),
    )  # fmt: skip
