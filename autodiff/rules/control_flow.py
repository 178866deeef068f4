"""Derivatives of conditional: it becomes one on derived branches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import ConditionalAttributes
from ...hlo.shape import Shape
from ...tracer.aval import ShapedArray
from ...tracer.core import (
    Value,
    bind_conditional,
    eval_computation,
    set_current_trace,
)
from ...tracer.ops import zeros
from ...tracer.recording import closed_computation, takes_one_tuple
from ..jvp import jvp_computation, moving_mask
from ..linearize import LINEARIZE, Linearized, LinearizedComputation, LinearTrace, linearize_computation
from ..tangents import Linear, Tangent, Zero, instantiate, nonzero
from ..transpose import transpose_computation
from .device_parts import keeping_whole_arrays
from .tables import JVP, TRANSPOSE

_O = Opcode


# --- conditional


class _Operands:
    """The operands that several branches share: each branch knows the indices of its operands."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._places: dict[int, int] = {}

    def place(self, value: Value) -> int:
        """The index of `value` among the operands; it is added at the end if it is new."""
        found = self._places.setdefault(id(value), len(self.values))
        if found == len(self.values):
            self.values.append(value)
        return found

    def places(self, values: Sequence[Value]) -> list[int]:
        return [self.place(v) for v in values]

    def branch(self, computation: HloComputation, places: Sequence[int]) -> HloComputation:
        """`computation` as a branch that picks its operands."""
        if list(places) == list(range(len(self.values))):
            return takes_one_tuple(computation)

        def picking(values: list[Value]) -> list[Value]:
            return eval_computation(computation, [values[p] for p in places])

        return takes_one_tuple(closed_computation(picking, [v.aval for v in self.values], computation.name))


def bind_branches(
    index: Value, computations: Sequence[HloComputation], operands: Sequence[Sequence[Value]]
) -> list[Value]:
    """A conditional with these branches, each of which has its own list of operands."""
    shared = _Operands()
    places = [shared.places(values) for values in operands]
    branches = [shared.branch(c, p) for c, p in zip(computations, places, strict=True)]
    return bind_conditional(branches, index, shared.values)


def any_of(masks: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*masks, strict=True))


@JVP.register(_O.CONDITIONAL)
def _conditional_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ConditionalAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """A result has a tangent if it has one in any branch."""
    index, *inputs = primals
    moving = moving_mask(tangents[1:])
    branches = attributes.branch_computations
    moves = any_of([jvp_computation(b, moving).moves for b in branches])
    derived = [jvp_computation(b, moving, moves) for b in branches]
    operands = [[*inputs, *nonzero(tangents[1:]), *d.captured] for d in derived]
    return derived[0].unpack(bind_branches(index, [d.computation for d in derived], operands))


def _conditional_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ConditionalAttributes, shape: Shape
) -> Linearized:
    """Each branch returns its residuals in slots, which branches share by type; unneeded slots are zero."""
    index, *inputs = primals
    moving = moving_mask(tangents[1:])
    parts = [keeping_whole_arrays(linearize_computation(b, moving)) for b in attributes.branch_computations]
    count = len(shape.elements)
    extras = [[s.with_default_layout() for s in p.primal.root.shape.elements[count:]] for p in parts]
    slots: list[Shape] = []
    taken: list[list[int]] = []
    for wanted in extras:
        free = list(range(len(slots)))
        mine = []
        for extra in wanted:
            slot = next((k for k in free if slots[k] == extra), None)
            if slot is None:
                slot = len(slots)
                slots.append(extra)
            else:
                free.remove(slot)
            mine.append(slot)
        taken.append(mine)

    operands = _Operands()
    places = [operands.places([*inputs, *p.captured]) for p in parts]
    avals = [v.aval for v in operands.values]

    def primal_branch(part: LinearizedComputation, places: list[int], mine: list[int]) -> HloComputation:
        def run(values: list[Value]) -> list[Value]:
            results = eval_computation(part.primal, [values[p] for p in places])
            held = dict(zip(mine, results[count:], strict=True))
            filled = [
                held[k] if k in held else zeros(ShapedArray(s.dimensions, s.element.dtype)) for k, s in enumerate(slots)
            ]
            return [*results[:count], *filled]

        return takes_one_tuple(closed_computation(run, avals, part.primal.name))

    new = [primal_branch(*each) for each in zip(parts, places, taken, strict=True)]
    returned = bind_conditional(new, index, operands.values)

    moves = any_of([p.moves for p in parts])
    results = returned[:count]

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        operands = _Operands()
        places = []
        for part, mine in zip(parts, taken, strict=True):
            given = [*results, *(returned[count + k] for k in mine)]
            residuals = part.residual_values([*inputs, *part.captured], given)
            places.append(operands.places([*directions, *residuals]))
        avals = [v.aval for v in operands.values]

        def branch(part: LinearizedComputation, places: list[int]) -> HloComputation:
            def run(values: list[Value]) -> list[Value]:
                moved = iter(eval_computation(part.linear, [values[p] for p in places]))
                every: list[Tangent] = [
                    next(moved) if m else Zero(r.aval) for r, m in zip(results, part.moves, strict=True)
                ]
                return [instantiate(t) for t, m in zip(every, moves, strict=True) if m]

            return takes_one_tuple(closed_computation(run, avals, part.linear.name))

        branches = [branch(*each) for each in zip(parts, places, strict=True)]
        with set_current_trace(linear):
            return bind_conditional(branches, index, operands.values)

    return Linearized(results, moves, record)


LINEARIZE[_O.CONDITIONAL] = _conditional_linearize


@TRANSPOSE.register(_O.CONDITIONAL)
def _conditional_transpose(
    cts: Sequence[Value | None], operands: Sequence[Any], attributes: ConditionalAttributes, shape: Shape
) -> Sequence[Any]:
    """A conditional on the same index: each branch backwards."""
    index, inputs = operands[0], operands[1]
    if isinstance(index, Linear):
        raise TypeError("a conditional on an index that depends on tangents is not linear, and has no transpose")
    linear = tuple(isinstance(o, Linear) for o in inputs)
    nonzero = tuple(ct is not None for ct in cts)
    branches = attributes.branch_computations
    moves = any_of([transpose_computation(b, linear, nonzero).moves for b in branches])
    back = [transpose_computation(b, linear, nonzero, moves) for b in branches]
    known = [o for o in inputs if not isinstance(o, Linear)]
    given = [ct for ct in cts if ct is not None]
    every = [[*known, *given, *b.captured] for b in back]
    found = back[0].unpack(bind_branches(index, [b.computation for b in back], every))
    return [None, found, *(None for _ in operands[2:])]
