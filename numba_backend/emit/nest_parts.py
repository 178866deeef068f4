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

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ..emitted_kernel import HI, LO, EmittedKernel, pointer_of
from ..loops.expressions import ZERO, Expr, maximum, minimum
from .alignment import roots_of
from .collapse import FusedBody
from .element import stored
from .movement import MANY_PARTS, part_ends
from .nest import NestEmitter, loop_variable

_SMALL = 1 << 13
"""A result of at most so many elements is not shared between threads."""


def many_parts(fused: FusedBody) -> HloInstruction | None:
    """The concatenation of many parts that a fused computation is; None for others."""
    if fused.root_places or fused.parameter_places:
        return None
    root = _behind_reshapes(fused.computation)
    return root if root.opcode is Opcode.CONCATENATE and len(root.operands) > MANY_PARTS else None


def _behind_reshapes(computation: HloComputation) -> HloInstruction:
    (root, *others) = roots_of(computation)
    while not others and root.opcode is Opcode.RESHAPE:
        root = root.operands[0]
    return root


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
    axis, sizes = concatenation.attributes.dimension, nest.sizes
    size = sizes.of(part, axis)
    with ExitStack() as stack:
        if axis == 0 and not is_serial:
            low, high = maximum(LO, start), minimum(HI, start + size)
            at: Expr = stack.enter_context(nest.writer.loop(loop_variable(0), low, high))
            local = at - start
        elif part.shape.dimensions[axis] == 1:
            local, at = ZERO, start
        else:
            local = stack.enter_context(nest.writer.loop(loop_variable(axis), size))
            at = start + local
        inner: list[Expr] = [
            stack.enter_context(nest.writer.loop(loop_variable(d), sizes.of(concatenation, d)))
            for d in range(axis + 1, concatenation.shape.rank)
        ]
        value = nest.elements.value(part, (*outer, local, *inner))
        target = sizes.offset(concatenation, (*outer, at, *inner))
        nest.writer.store(pointer_of(nest.outputs[0]), target, stored(nest.outputs[0].element_type, value))
