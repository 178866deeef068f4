"""Derivatives of ops that run computations: each becomes an op of the same kind on derived computations.

A nested jit stays a call, so that what it was compiled for, it is compiled for in its derivative too. What a composite
call means is looked up by its name in COMPOSITE_*; calls of other names, and plain calls, are taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from ...hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import CallAttributes, ConditionalAttributes, WhileAttributes
from ...hlo.ops.structure import GetTupleElementAttributes
from ...hlo.shape import Shape
from ...tracer.aval import ShapedArray
from ...tracer.core import (
    Tracer,
    Value,
    bind_call,
    bind_conditional,
    bind_while,
    current_trace,
    eval_computation,
    takes_one_tuple,
    thread_state,
    trace_to_computation,
)
from ...tracer.ops import zeros
from ...tracer.source import user_line
from ..jvp import jvp_computation, jvp_flat, parameter_avals
from ..linearize import LinearizedComputation, LinearTrace, linearize_computation
from ..transpose import transpose_computation, transpose_flat
from .tables import (
    COMPOSITE_JVP,
    COMPOSITE_LINEARIZE,
    COMPOSITE_TRANSPOSE,
    JVP,
    LINEARIZE,
    TRANSPOSE,
    Linear,
    Operand,
    Tangent,
    Zero,
    instantiate,
)

_O = Opcode


def _moving(tangents: Sequence[Tangent]) -> tuple[bool, ...]:
    return tuple(not isinstance(t, Zero) for t in tangents)


def _nonzero(tangents: Sequence[Tangent]) -> list[Value]:
    return [t for t in tangents if not isinstance(t, Zero)]


# --- calls


@JVP.register(_O.CALL)
def _call_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    composite = attributes.composite
    if composite is not None and composite.name in COMPOSITE_JVP:
        results, tangents_out = COMPOSITE_JVP[composite.name](primals, tangents, attributes, shape)
        return results, tangents_out
    return jvp_flat(lambda values: eval_computation(attributes.to_apply, values), primals, tangents)


def _call_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    composite = attributes.composite
    if composite is not None and composite.name in COMPOSITE_LINEARIZE:
        results, tangents_out = COMPOSITE_LINEARIZE[composite.name](primals, tangents, attributes, shape)
        return results, tangents_out
    return _call_jvp(primals, tangents, attributes, shape)


LINEARIZE[_O.CALL] = _call_linearize


@TRANSPOSE.register(_O.CALL)
def _call_transpose(
    cts: Sequence[Value | None], operands: Sequence[Operand], attributes: CallAttributes, shape: Shape
) -> Sequence[Value | None]:
    composite = attributes.composite
    if composite is not None and composite.name in COMPOSITE_TRANSPOSE:
        return COMPOSITE_TRANSPOSE[composite.name](cts, operands, attributes, shape)
    return transpose_flat(attributes.to_apply, operands, cts)


def _jit_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    derived = jvp_computation(attributes.to_apply, _moving(tangents))
    results = bind_call(derived.computation, [*primals, *_nonzero(tangents), *derived.captured], attributes.composite)
    return derived.unpack(results)


def _jit_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: CallAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """One call for the results and the residuals; one, recorded, for the tangents."""
    parts = linearize_computation(attributes.to_apply, _moving(tangents))
    inputs = [*primals, *parts.captured]
    results = bind_call(parts.primal, inputs, attributes.composite)
    if not any(parts.moves):
        return parts.spread(results, [])
    residuals = parts.residual_values(inputs, results)
    moving = linear_trace().record_call(parts.linear, [*_nonzero(tangents), *residuals], attributes.composite)
    return parts.spread(results, moving)


def linear_trace() -> LinearTrace:
    """The trace that records tangents: LINEARIZE rules run under it."""
    trace = current_trace()
    assert isinstance(trace, LinearTrace), "a LINEARIZE rule outside of linearisation"
    return trace


def _jit_transpose(
    cts: Sequence[Value | None], operands: Sequence[Operand], attributes: CallAttributes, shape: Shape
) -> Sequence[Value | None]:
    linear = tuple(isinstance(o, Linear) for o in operands)
    back = transpose_computation(attributes.to_apply, linear, tuple(ct is not None for ct in cts))
    known = [o for o in operands if not isinstance(o, Linear)]
    given = [ct for ct in cts if ct is not None]
    return back.unpack(bind_call(back.computation, [*known, *given, *back.captured], attributes.composite))


COMPOSITE_JVP["jit"] = _jit_jvp
COMPOSITE_LINEARIZE["jit"] = _jit_linearize
COMPOSITE_TRANSPOSE["jit"] = _jit_transpose


# --- conditional


def _branch(fun: Callable[[list[Value]], Sequence[Value]], avals: Sequence[ShapedArray], name: str) -> HloComputation:
    """A computation of one tuple that does what `fun` does to its elements."""
    traced = trace_to_computation(fun, avals, name)
    assert not traced.captured, "branches must not close over values: their operands are all there is"
    return takes_one_tuple(traced.computation)


class _Operands:
    """The operands that several branches share: each branch knows its own by their places."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self._places: dict[int, int] = {}

    def place(self, value: Value) -> int:
        """Where `value` is among the operands; at the end if it was not there."""
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

        return _branch(picking, [v.aval for v in self.values], computation.name)


def _any_of(masks: Sequence[tuple[bool, ...]]) -> tuple[bool, ...]:
    return tuple(any(column) for column in zip(*masks, strict=True))


@JVP.register(_O.CONDITIONAL)
def _conditional_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ConditionalAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """A result has a tangent if it has one in any branch."""
    index, *inputs = primals
    moving = _moving(tangents[1:])
    branches = attributes.branch_computations
    moves = _any_of([jvp_computation(b, moving).moves for b in branches])
    derived = [jvp_computation(b, moving, moves) for b in branches]
    operands = _Operands()
    places = [operands.places([*inputs, *_nonzero(tangents[1:]), *d.captured]) for d in derived]
    new = [operands.branch(d.computation, p) for d, p in zip(derived, places, strict=True)]
    return derived[0].unpack(bind_conditional(new, index, operands.values))


def _conditional_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: ConditionalAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """Each branch returns its residuals in slots, which branches share by type; slots it does not need are zero."""
    index, *inputs = primals
    moving = _moving(tangents[1:])
    parts = [linearize_computation(b, moving) for b in attributes.branch_computations]
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

        return _branch(run, avals, part.primal.name)

    new = [primal_branch(*each) for each in zip(parts, places, taken, strict=True)]
    returned = bind_conditional(new, index, operands.values)

    moves = _any_of([p.moves for p in parts])
    directions = _nonzero(tangents[1:])
    linear_operands = _Operands()
    linear_places = []
    for part, mine in zip(parts, taken, strict=True):
        results = [*returned[:count], *(returned[count + k] for k in mine)]
        residuals = part.residual_values([*inputs, *part.captured], results)
        linear_places.append(linear_operands.places([*directions, *residuals]))
    linear_avals = [v.aval for v in linear_operands.values]

    def linear_branch(part: LinearizedComputation, places: list[int]) -> HloComputation:
        def run(values: list[Value]) -> list[Value]:
            moved = iter(eval_computation(part.linear, [values[p] for p in places]))
            all_tangents: list[Tangent] = [
                next(moved) if m else Zero(r.aval) for r, m in zip(returned[:count], part.moves, strict=True)
            ]
            return [instantiate(t) for t, m in zip(all_tangents, moves, strict=True) if m]

        return _branch(run, linear_avals, part.linear.name)

    new = [linear_branch(*each) for each in zip(parts, linear_places, strict=True)]
    moved = iter(bind_conditional(new, index, linear_operands.values) if any(moves) else [])
    results = returned[:count]
    return results, [next(moved) if m else Zero(r.aval) for r, m in zip(results, moves, strict=True)]


LINEARIZE[_O.CONDITIONAL] = _conditional_linearize


@TRANSPOSE.register(_O.CONDITIONAL)
def _conditional_transpose(
    cts: Sequence[Value | None], operands: Sequence[Any], attributes: ConditionalAttributes, shape: Shape
) -> Sequence[Any]:
    index, inputs = operands[0], operands[1]
    if isinstance(index, Linear):
        raise TypeError("conditional whose index depends on the tangents is not linear and cannot be transposed")
    linear = tuple(isinstance(o, Linear) for o in inputs)
    nonzero = tuple(ct is not None for ct in cts)
    branches = attributes.branch_computations
    moves = _any_of([transpose_computation(b, linear, nonzero).moves for b in branches])
    back = [transpose_computation(b, linear, nonzero, moves) for b in branches]
    known = [o for o in inputs if not isinstance(o, Linear)]
    given = [ct for ct in cts if ct is not None]
    shared = _Operands()
    places = [shared.places([*known, *given, *b.captured]) for b in back]
    new = [shared.branch(b.computation, p) for b, p in zip(back, places, strict=True)]
    found = back[0].unpack(bind_conditional(new, index, shared.values))
    return [None, found, *(None for _ in operands[2:])]


# --- while


@dataclass(frozen=True, slots=True)
class _JVPLoop:
    """A loop on the state, the tangents of its `moving` parts, and `captured`, which it leaves alone."""

    condition: HloComputation
    body: HloComputation
    moving: tuple[bool, ...]
    captured: tuple[Value, ...]


_loops: WeakKeyDictionary[HloComputation, dict[Any, _JVPLoop]] = WeakKeyDictionary()


def _jvp_loop(attributes: WhileAttributes, moving: tuple[bool, ...]) -> _JVPLoop:
    """The loop with tangents. A part of the state that starts without a tangent has one if an iteration gives it one:
    the set of moving parts grows until an iteration leaves it as it is. Made once, so that it is compiled once."""
    made = _loops.setdefault(attributes.body, {})
    key = (attributes.condition, moving)
    if key in made:
        return made[key]
    while True:
        derived = jvp_computation(attributes.body, moving, moving)
        if derived.moves == moving:
            break
        moving = derived.moves
    state = parameter_avals(attributes.body)
    avals = [*state, *(a for a, m in zip(state, moving, strict=True) if m)]
    variant = len(avals)
    avals += [c.aval for c in derived.captured]

    def body(values: list[Value]) -> list[Value]:
        return [*eval_computation(derived.computation, values), *values[variant:]]

    loop = _JVPLoop(
        _with_longer_tuple(attributes.condition, Shape.tuple([a.hlo for a in avals])),
        _branch(body, avals, derived.computation.name),
        moving,
        derived.captured,
    )
    if not any(isinstance(c, Tracer) for c in loop.captured):
        made[key] = loop
    return loop


@JVP.register(_O.WHILE)
def _while_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """The loop carries the tangents beside the state."""
    loop = _jvp_loop(attributes, _moving(tangents))
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
    return make_computation(computation.name, mapping[computation.root], (parameter,))


def _while_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """The loop once for its results; once more, recorded, with tangents. The latter cannot be transposed."""
    results = bind_while(attributes.condition, attributes.body, primals)
    _, moved = _while_jvp(primals, tangents, attributes, shape)
    return results, moved


LINEARIZE[_O.WHILE] = _while_linearize


@TRANSPOSE.register(_O.WHILE)
def _while_transpose(
    cts: Sequence[Value | None], operands: Sequence[Any], attributes: WhileAttributes, shape: Shape
) -> Sequence[Any]:
    raise ValueError(
        "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
        "values: the states of all iterations would have to be kept, and their number is not known. Try lax.scan, "
        "or fori_loop with static start/stop, or forward mode (jvp).\n"
        f"  at {_where() or user_line() or '<unknown>'}"
    )


def _where() -> str:
    """The line of the instruction that is being transposed."""
    metadata = thread_state().metadata
    return f"{metadata.source_file}:{metadata.source_line}" if metadata and metadata.source_file else ""
