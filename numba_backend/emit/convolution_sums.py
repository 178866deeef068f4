"""Convolutions of f32 and f64, channels last, as algorithms: products of two matrices. The left one lies in the copy of
the input (`convolution_copy.py`), where tables say how far away its rows and columns are.

    result                  out[n, g, p, o] = sum over t, i of x[n, g, rows[p] + taps[t] + i] * w[g, t, i, o]
    depthwise               out[n, p, o] = sum over t of x[n, rows[p] + taps[t] + o] * w[t, o]
    derivative by kernel    out[g, p, o] = sum over i, t of x[i, g, rows[p] + taps[t]] * y[i, t, g, o]

Of a result, rows are positions of the window; `t` and `i` are taps and inputs. Of a derivative by the kernel, rows are
taps and inputs; `t` and `i` are positions and images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from ...hlo.element_type import ElementType
from ...hlo.memory_pressure import on_pressure
from ..loops.expressions import ONE, Expr, Name, product_of, sum_of
from ..loops.statements import KernelParameter, LoopProgram, PointerParameter, SizeParameter
from ..loops.typing import pointer_to
from ..loops.writer import Writer, cast
from ..schedule.algorithm import TOTAL, Access, Algorithm, Dimension
from ..schedule.apply import write
from ..schedule.steps import Schedule
from .convolution import Sizes
from .convolution_copy import Geometry
from .kernel import EmittedKernel, memory_type, program_of


@dataclass(frozen=True, slots=True)
class Form:
    """All that the text depends on, besides the schedule."""

    element_type: ElementType
    is_depthwise: bool
    along: bool
    """Neighbours along `i` are neighbours in the copy."""
    has_groups: bool
    adds: bool
    """A parameter says whether the sums are added to what the result has."""

    @property
    def name(self) -> str:
        """Of the kernel."""
        return "depthwise_tiles" if self.is_depthwise else "convolution_tiles_last"


@dataclass(frozen=True, slots=True)
class Panels:
    """Where the weights of a panel of columns are, in elements."""

    step: int
    """From one element of the depth to the next."""
    panel: int
    group: int


@dataclass(frozen=True, slots=True)
class Matrices:
    """What is multiplied for a row of results, in elements of the copy and in rows of the weights."""

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


def algorithm_of(form: Form) -> Algorithm:
    """The algorithm; `n` counts images, or groups of them, and `p` rows of results."""
    kind = memory_type(form.element_type)
    x, w, out = (Name(name, pointer_to(kind)) for name in ("x", "w", "out"))
    rows, taps = Name("rows", pointer_to("int64")), Name("offsets", pointer_to("int64"))
    made = Name("made")
    groups: list[Dimension] = [Dimension("g", Name("groups"))] if form.has_groups else []
    of_x: list[tuple[str, Expr]] = [("n", Name("image"))]
    of_w: list[tuple[str, Expr]] = []
    of_out: list[tuple[str, Expr]] = [("n", Name("of_image"))]
    if groups:
        of_x.append(("g", Name("members")))
        of_w.append(("g", Name("of_group")))
        of_out.append(("g", Name("outputs")))
    of_x += [("p", rows), ("t", taps), ("i", ONE if form.along else Name("input_step"))]
    if form.is_depthwise:
        of_x.append(("o", ONE))
    of_w += [("t", Name("of_tap")), ("i", Name("of_input")), ("o", ONE)]
    of_out += [("p", made), ("o", ONE)]
    sums = [Dimension("t", Name("taps"), is_reduced=True), Dimension("i", Name("inputs"), is_reduced=True)]
    return Algorithm(
        form.name,
        (
            Dimension("n", Name("images")), *groups, Dimension("p", Name("positions")),
            Dimension("o", Name("outputs")), *(sums if form.along else sums[::-1]),
        ),
        (Access("a", x, tuple(of_x)), Access("b", w, tuple(of_w))),
        Access("c", out, tuple(of_out)),
        sum_of(Name(TOTAL, kind), product_of(Name("a", kind), Name("b", kind))),
        kind,
        cast(kind, 0),
        Name("adding") if form.adds else False,
    )  # fmt: skip


def matrices_of(geometry: Geometry, images: int, *, each: bool) -> Matrices:
    """Of some images. `each`: each has rows of its own, otherwise all have."""
    sizes = geometry.sizes
    rows = geometry.position_offsets()
    if not each:
        rows = (np.arange(images, dtype=np.int64)[:, None] * geometry.image + rows).reshape(-1)
    return Matrices(
        images if each else 1, geometry.image, rows, geometry.tap_offsets(), sizes.inputs, 1, sizes.inputs, 1
    )  # fmt: skip


def gradient_of(geometry: Geometry, images: int) -> Matrices:
    """The derivative by the kernel: rows are its elements and inputs; positions and images are what is added up."""
    sizes = geometry.sizes
    rows = (geometry.tap_offsets()[:, None] + np.arange(sizes.inputs, dtype=np.int64)).reshape(-1)
    return Matrices(1, 0, rows, geometry.position_offsets(), images, geometry.image, 1, sizes.positions)


def emit_sums(
    form: Form, sizes: Sizes, matrices: Matrices, panels: Panels, schedule: Schedule, extent: int,
    parts: Mapping[str, int], adds: bool = False,
) -> EmittedKernel:  # fmt: skip
    """Operand 0: the copy of some images; operand 1: the weights; operand 2: the table of `taps`; operand 3: that of
    `rows`; output 0: the results. `parts`: parameters that the schedule's steps name. `adds`: to what is there."""
    width = sizes.made if form.is_depthwise else sizes.outputs
    found = {
        "images": matrices.images, "image": matrices.image, "of_image": len(matrices.rows) * sizes.made,
        "positions": len(matrices.rows), "taps": len(matrices.taps), "inputs": matrices.inputs, "made": sizes.made,
        "outputs": width, "of_tap": matrices.of_tap * panels.step, "of_input": matrices.of_input * panels.step, **parts,
    }  # fmt: skip
    if form.has_groups:
        found |= {"groups": sizes.groups, "members": sizes.inputs, "of_group": panels.group}
    if not form.along:
        found["input_step"] = matrices.input_step
    if form.adds:
        found["adding"] = int(adds)
    sizes_of = [SizeParameter(name, value) for name, value in found.items()]
    parameters: tuple[KernelParameter, ...] = (*_pointers(form), *sizes_of)
    return EmittedKernel(_program(form, schedule, tuple(found)), parameters, extent)


def _pointers(form: Form) -> tuple[PointerParameter, ...]:
    element = form.element_type
    return (
        PointerParameter("x", element, 0, None), PointerParameter("w", element, 1, None),
        PointerParameter("offsets", ElementType.S64, 2, None), PointerParameter("rows", ElementType.S64, 3, None),
        PointerParameter("out", element, None, 0),
    )  # fmt: skip


@lru_cache(maxsize=64)
def _program(form: Form, schedule: Schedule, sizes: tuple[str, ...]) -> LoopProgram:
    """It sees no size, only the form: so a program is right for all sizes that have its form."""
    writer = Writer()
    algorithm = algorithm_of(form)
    write(algorithm, schedule, writer)
    parameters: tuple[KernelParameter, ...] = (*_pointers(form), *[SizeParameter(name, 0) for name in sizes])
    return program_of(form.name, parameters, writer, notes=(algorithm, *schedule))


def _forget() -> int:
    """Forget the programs. Nobody knows how much memory that is."""
    _program.cache_clear()
    return 0


on_pressure(_forget)
