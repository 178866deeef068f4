"""The nest of a concatenation of many parts: a loop nest for each part, which writes where it is in the result.

    def fused_concatenate(lo, hi, x0, x1, ..., out, n0, n1, ...):
        for i in range(lo, minimum(hi, n0)):
            out[i] = x0[i]
        for i in range(maximum(lo, n0), minimum(hi, n0 + n1)):
            out[i] = x1[i - n0]
        ...

In one nest for all, which chooses by the index, each part is one more test of every element. A small result is not
shared between threads, and a part of one element needs no loop then: the entries of `jnp.array([f(x), g(x), ...])` are
straight code, so that they share common values.
"""

from __future__ import annotations

import math
from contextlib import ExitStack

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import ZERO, Expr, maximum, minimum
from .collapse import FusedBody
from .movement import MANY_PARTS, part_ends
from .nest import NestEmitter, loop_variable
from .physical_index import ElementAddress

_SMALL = 1 << 13
"""A result of at most so many elements is not shared between threads."""


def many_parts(fused: FusedBody) -> HloInstruction | None:
    """The concatenation of many parts that a fused computation is; None for others."""
    if fused.root_places or fused.parameter_places:
        return None
    root, *others = fused.computation.roots
    while root.opcode is Opcode.RESHAPE:
        root = root.operands[0]
    return root if not others and root.opcode is Opcode.CONCATENATE and len(root.operands) > MANY_PARTS else None


def emit_parts(fused: FusedBody, concatenation: HloInstruction) -> EmittedKernel:
    """The kernel of a concatenation at the root."""
    nest = NestEmitter(fused, {})
    axis, dimensions = concatenation.attributes.dimension, concatenation.shape.dimensions
    is_serial = axis == 0 and math.prod(dimensions) <= _SMALL
    if not is_serial:
        nest.sizes.mark_outer(concatenation, 0)
    with ExitStack() as stack:
        outer: list[Expr] = []
        for d in range(axis):
            bounds = (LO, HI) if d == 0 else (nest.sizes.of(concatenation, d),)
            outer.append(stack.enter_context(nest.writer.loop(loop_variable(d), *bounds)))
        parts = [o for o in concatenation.operands if o.shape.dimensions[axis]]
        start: Expr = ZERO
        for part, end in zip(parts, part_ends(nest.elements, parts, axis)):
            _write(nest, concatenation, part, outer, start, is_serial)
            start = end
    if is_serial:
        return nest.finish(1)
    return nest.finish(dimensions[0])


def _write(
    nest: NestEmitter, concatenation: HloInstruction, part: HloInstruction, outer: list[Expr], start: Expr,
    is_serial: bool,
) -> None:  # fmt: skip
    """The loops over one part, without those that are around all of them."""
    axis, rank, sizes = concatenation.attributes.dimension, concatenation.shape.rank, nest.sizes
    size = sizes.of(part, axis)
    row = rank if is_serial or concatenation is not nest.roots[0] else rank - nest.row
    with ExitStack() as stack:

        def rows(index: list[Expr], bounds: tuple[Expr, Expr]) -> list[Expr]:
            names = [loop_variable(d) for d in range(row, rank)]
            return stack.enter_context(nest.row_loop(concatenation, index, names, bounds))

        inner: list[Expr] = []
        whole = (start, start + size) if axis else (maximum(LO, start), minimum(HI, start + size))
        at: Expr
        if axis == row:
            at, *inner = rows(outer, whole)
            local = at - start
        elif axis == 0 and not is_serial:
            at = stack.enter_context(nest.writer.loop(loop_variable(0), *whole))
            local = at - start
        elif part.shape.dimensions[axis] == 1:
            local, at = ZERO, start
        else:
            local = stack.enter_context(nest.writer.loop(loop_variable(axis), size))
            at = start + local
        for d in range(axis + 1 + len(inner), min(row, rank)):
            inner.append(stack.enter_context(nest.writer.loop(loop_variable(d), sizes.of(concatenation, d))))
        if axis < row < rank:
            inner += rows([*outer, at, *inner], (ZERO, sizes.of(concatenation, row)))
        value = nest.elements.value(part, (*outer, local, *inner))
        nest.store(0, ElementAddress(sizes.offset(concatenation, (*outer, at, *inner))), value)
