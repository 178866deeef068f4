"""Derivatives of while and conditional: each becomes an op of the same kind on derived computations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from ...hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.metadata import line_of
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from ...hlo.ops.structure import GetTupleElementAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...tracer.aval import ShapedArray
from ...tracer.core import (
    Tracer,
    Value,
    bind_conditional,
    bind_while,
    eval_computation,
    set_current_trace,
    thread_state,
)
from ...tracer.ops import zeros
from ...tracer.recording import closed_computation, takes_one_tuple
from ...tracer.source import user_line
from ...tracer.traced import DerivedCache
from ..jvp import jvp_computation, moving_mask, parameter_avals
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


# --- while


@dataclass(frozen=True, slots=True)
class _JVPLoop:
    """A loop on the state, the tangents of its `moving` parts, and `captured`, which it does not change."""

    condition: HloComputation
    body: HloComputation
    moving: tuple[bool, ...]
    captured: tuple[Value, ...]


_loops = DerivedCache()


def _jvp_loop(attributes: WhileAttributes, moving: tuple[bool, ...]) -> _JVPLoop:
    """The loop with tangents. A part of the state that starts without a tangent has one if an iteration gives it one:
    the set of moving parts grows until an iteration leaves it as it is. Made once, so that it is compiled once."""

    def make() -> tuple[_JVPLoop, bool]:
        grown = moving
        while True:
            derived = jvp_computation(attributes.body, grown, grown)
            if derived.moves == grown:
                break
            grown = derived.moves
        state = parameter_avals(attributes.body)
        avals = [*state, *(a for a, m in zip(state, grown, strict=True) if m)]
        variant = len(avals)
        avals += [c.aval for c in derived.captured]

        def body(values: list[Value]) -> list[Value]:
            return [*eval_computation(derived.computation, values), *values[variant:]]

        loop = _JVPLoop(
            _with_longer_tuple(attributes.condition, Shape.tuple([a.hlo for a in avals])),
            takes_one_tuple(closed_computation(body, avals, derived.computation.name)),
            grown,
            derived.captured,
        )
        return loop, not any(isinstance(c, Tracer) for c in loop.captured)

    return _loops.get((attributes.body, attributes.condition), moving, make)


@JVP.register(_O.WHILE)
def _while_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """The loop carries the tangents with the state."""
    loop = _jvp_loop(attributes, moving_mask(tangents))
    directions = [instantiate(t) for t, m in zip(tangents, loop.moving, strict=True) if m]
    returned = bind_while(loop.condition, loop.body, [*primals, *directions, *loop.captured])
    results, moved = returned[: len(primals)], iter(returned[len(primals) :])
    return results, [next(moved) if m else Zero(r.aval) for r, m in zip(results, loop.moving, strict=True)]


def _with_longer_tuple(computation: HloComputation, parameter_shape: Shape) -> HloComputation:
    """`computation` on a tuple with more elements after those that it reads."""
    (old,) = computation.parameters
    parameter = make_parameter(0, parameter_shape, old.name, old.metadata)
    elements = [
        make_instruction(Opcode.GET_TUPLE_ELEMENT, (parameter,), GetTupleElementAttributes(k))
        for k in range(len(old.shape.elements))
    ]
    mapping: dict[HloInstruction, HloInstruction] = {old: make_tuple(elements)}
    for i in computation.instructions:
        if i.opcode is Opcode.GET_TUPLE_ELEMENT and i.operands[0] is old:
            mapping[i] = elements[i.attributes.index]
        elif i is not old:
            mapping[i] = i.with_operands(tuple(mapping[o] for o in i.operands))
    effects = [mapping[i] for i in effects_of(computation)]
    return make_computation(computation.name, mapping[computation.root], (parameter,), effects)


def _while_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> Linearized:
    """Run the loop for its results, and record a second loop with tangents, which cannot be transposed.

    Parts of the state that the body returns unchanged keep their tangents. If no other part moves, the linear program
    has no loop. An array without elements does not move.
    """
    results = bind_while(attributes.condition, attributes.body, primals)
    empty = [0 in p.aval.shape for p in primals]
    loop = _jvp_loop(attributes, tuple(m and not e for m, e in zip(moving_mask(tangents), empty, strict=True)))
    if all(same or not m for same, m in zip(handed_on(attributes.body), loop.moving, strict=True)):
        kept = [m for m, moves in zip(loop.moving, moving_mask(tangents), strict=True) if moves]
        return Linearized(results, loop.moving, lambda linear, directions: [*compress(directions, kept)])

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        given = iter(directions)
        moved: list[Tangent] = [t if isinstance(t, Zero) else next(given) for t in tangents]
        moved = [Zero(p.aval) if e else t for p, t, e in zip(primals, moved, empty, strict=True)]
        with set_current_trace(linear):
            _, found = _while_jvp(primals, moved, attributes, shape)
        return nonzero(found)

    return Linearized(results, loop.moving, record)


def handed_on(body: HloComputation) -> list[bool]:
    """The parts of the state that the body of a loop returns unchanged."""
    return [source == k for k, source in enumerate(sources(body))]


def sources(computation: HloComputation) -> list[int | None]:
    """For each result of a computation of one tuple: which part of the tuple it is, if it is one."""
    (given,) = computation.parameters
    return [
        o.attributes.index if o.opcode is Opcode.GET_TUPLE_ELEMENT and o.operands[0] is given else None
        for o in computation.root.operands
    ]


LINEARIZE[_O.WHILE] = _while_linearize


@TRANSPOSE.register(_O.WHILE)
def _while_transpose(
    cts: Sequence[Value | None], operands: Sequence[Any], attributes: WhileAttributes, shape: Shape
) -> Sequence[Any]:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
        "values: the states of all iterations would have to be kept, and their number is not known. Try lax.scan, "
        "or fori_loop with static start/stop, or a rule of your own (custom_vjp, lax.custom_root), or forward mode "
        "(jvp).\n"
        f"  at {line_of(thread_state().metadata) or user_line() or '<unknown>'}"
    )
