"""Derivatives of while: a loop that carries tangents with the state, and in reverse mode an adjoint loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any

from ...hlo.effects import needed_by
from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import WhileAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...tracer.core import Call, Primitive, Value, bind_while, eval_computation, run_program
from ...tracer.ops import zeros
from ...tracer.recording import closed_computation, takes_one_tuple
from ...tracer.traced import DerivedCache, are_known
from ..jvp import jvp_computation, moving_mask, parameter_avals
from ..linearize import LINEARIZE, Linearized, LinearTrace
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from ..transpose import transpose_computation, transpose_flat
from .adjoint_loop import Mask, TangentLoop, bind_adjoint, known_values, tangent_loop, with_longer_tuple
from .checkpoints import parts_used
from .scan import where
from .tables import JVP, TRANSPOSE

_O = Opcode
_cache = DerivedCache()


# --- forward mode


@dataclass(frozen=True, slots=True)
class _JVPLoop:
    """A loop on the state, the tangents of its `moving` parts, and `captured`, which it does not change."""

    condition: HloComputation
    body: HloComputation
    moving: Mask
    captured: tuple[Value, ...]


def _jvp_loop(attributes: WhileAttributes, moving: Mask) -> _JVPLoop:
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
        avals = [*state, *where(grown, state)]
        variant = len(avals)
        avals += [c.aval for c in derived.captured]

        def body(values: list[Value]) -> list[Value]:
            return [*eval_computation(derived.computation, values), *values[variant:]]

        loop = _JVPLoop(
            with_longer_tuple(attributes.condition, Shape.tuple([a.hlo for a in avals])),
            takes_one_tuple(closed_computation(body, avals, derived.computation.name)),
            grown,
            derived.captured,
        )
        return loop, are_known(loop.captured)

    return _cache.get((attributes.body, attributes.condition), ("jvp", moving), make)


@JVP.register(_O.WHILE)
def _while_jvp(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> tuple[list[Value], list[Tangent]]:
    """The loop carries the tangents with the state."""
    loop = _jvp_loop(attributes, moving_mask(tangents))
    directions = [instantiate(t) for t in where(loop.moving, tangents)]
    returned = bind_while(loop.condition, loop.body, [*primals, *directions, *loop.captured])
    results, moved = returned[: len(primals)], iter(returned[len(primals) :])
    return results, [next(moved) if m else Zero(r.aval) for r, m in zip(results, loop.moving, strict=True)]


# --- reverse mode


LOOP_TANGENTS = Primitive(
    "while_tangents", evaluate=run_program, is_linear=True
)
"""The tangents of a while loop. The parameters are a `TangentLoop`, the operands its state; the results are the
tangents after the loop."""


def _tangents_call(loop: TangentLoop) -> Call:
    body, condition = loop.loop.body, loop.loop.condition

    def make() -> tuple[Call, bool]:
        avals = parameter_avals(body)
        known = len(avals) - sum(loop.moving)
        meaning = closed_computation(
            lambda values: bind_while(condition, body, values)[known:], avals, loop.loop.body.name
        )
        return Call(LOOP_TANGENTS, meaning, loop, loop.plain.body.name), True

    return _cache.get((body, condition), "tangents call", make)


def _while_linearize(
    primals: Sequence[Value], tangents: Sequence[Tangent], attributes: WhileAttributes, shape: Shape
) -> Linearized:
    """Run the loop for its results, and record a second loop with tangents: the residuals are the initial state alone.

    Parts of the state that the body returns unchanged keep their tangents. If no other part moves, the linear program
    has no loop. An array without elements does not move.
    """
    empty = [0 in p.aval.shape for p in primals]
    loop = tangent_loop(attributes, tuple([m and not e for m, e in zip(moving_mask(tangents), empty, strict=True)]))
    plain = loop.plain
    results = bind_while(plain.condition, plain.body, [*primals, *loop.captured])[: len(primals)]
    if all(same or not m for same, m in zip(handed_on(attributes.body), loop.moving, strict=True)):
        kept = [m for m, moves in zip(loop.moving, moving_mask(tangents), strict=True) if moves]
        return Linearized(results, loop.moving, lambda linear, directions: [*compress(directions, kept)])

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        given = iter(directions)
        moved: list[Tangent] = [t if isinstance(t, Zero) else next(given) for t in tangents]
        moved = [Zero(p.aval) if e else t for p, t, e in zip(primals, moved, empty, strict=True)]
        return linear.record_call(_tangents_call(loop), [*primals, *loop.captured, *loop.directions(moved)])

    return Linearized(results, loop.moving, record)


LINEARIZE[_O.WHILE] = _while_linearize


@LOOP_TANGENTS.def_transpose
def _transpose_tangents(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> Sequence[Value | None]:
    loop: TangentLoop = call.params
    known = len(operands) - sum(loop.moving)
    start = known_values(operands[:known])
    back, reached = _adjoint_step(loop, tuple([ct is not None for ct in cts]))
    moving = where(loop.moving, loop.avals)
    pairs = zip(where(reached, cts), where(reached, moving), strict=True)
    adjoint = iter(bind_adjoint(loop.plain, back, start, [zeros(a) if ct is None else ct for ct, a in pairs]))
    return [*[None] * known, *(next(adjoint) if r else None for r in reached)]


def _adjoint_step(loop: TangentLoop, given: Mask) -> tuple[HloComputation, Mask]:
    """The backward step of a loop, on those of its moving parts whose cotangents are not zero in all iterations: they
    are the second result. `given` names those that have a cotangent after the loop."""

    def make() -> tuple[tuple[HloComputation, Mask], bool]:
        count, avals = len(given), parameter_avals(loop.plain.body)
        takes = len(loop.parts.linear.parameters)
        is_tangent = tuple([k < count for k in range(takes)])

        def every(parts: Sequence[Any]) -> list[Any]:
            """A value for each part of the state, from those of the parts that move."""
            rest = iter(parts)
            return [next(rest) if m else None for m in loop.moving]

        reached = given
        while True:
            nonzero = tuple([bool(r) for r in where(loop.parts.moves, every(reached))])
            found = transpose_computation(loop.parts.linear, is_tangent, nonzero).moves[:count]
            grown = tuple([a or b for a, b in zip(reached, found, strict=True)])
            if grown == reached:
                break
            reached = grown
        adjoints = where(reached, where(loop.moving, loop.avals))

        def back(values: list[Value]) -> list[Value]:
            state, later = values[: len(avals)], iter(values[len(avals) :])
            cts = every([next(later) if r else None for r in reached])
            found = where(reached, loop.backwards(state, cts))
            return [zeros(a) if ct is None else ct for ct, a in zip(found, adjoints, strict=True)]

        name = f"transpose_{loop.plain.body.name}"
        return (closed_computation(back, [*avals, *adjoints], name), reached), True

    return _cache.get((loop.loop.body, loop.loop.condition), ("adjoint step", given), make)


@TRANSPOSE.register(_O.WHILE)
def _while_transpose(
    cts: Sequence[Value | None], operands: Sequence[Any], attributes: WhileAttributes, shape: Shape
) -> Sequence[Any]:
    """A loop that is linear in some parts of its state, which no other part and no condition depends on."""
    (state,) = operands
    body = attributes.body
    avals = parameter_avals(body)
    linear = _linear_parts(body, [isinstance(o, Linear) for o in state])

    def back(values: list[Value]) -> list[Value]:
        later = iter(values[len(avals) :])
        given = [Linear(a) if m else v for a, v, m in zip(avals, values, linear, strict=False)]
        found = transpose_flat(body, given, [next(later) if m else None for m in linear])
        return [zeros(a) if ct is None else ct for ct, a in where(linear, list(zip(found, avals, strict=True)))]

    def make() -> tuple[HloComputation, bool]:
        moving = where(linear, avals)
        made = closed_computation(back, [*avals, *moving], f"transpose_{body.name}")
        if any(linear[k] for k in parts_used(attributes.condition, body, made)):
            raise TypeError("a while loop that is not linear in its tangents has no transpose")
        return made, True

    step = _cache.get((body, attributes.condition), ("transposed", linear), make)
    start = [zeros(a) if isinstance(o, Linear) else o for o, a in zip(state, avals, strict=True)]
    adjoint = [zeros(a) if ct is None else ct for ct, a in where(linear, list(zip(cts, avals, strict=True)))]
    found = iter(bind_adjoint(attributes, step, start, adjoint))
    return [[next(found) if m else None for m in linear]]


def _linear_parts(body: HloComputation, linear: Sequence[bool]) -> Mask:
    """The parts of the state that depend on those that `linear` names, after some iteration."""
    separate = closed_computation(lambda values: eval_computation(body, values), parameter_avals(body), body.name)
    found = tuple(linear)
    while True:
        needs = [needed_by((r,)) for r in separate.root.operands]
        grown = tuple(
            [m or any(p in need for p, is_linear in zip(separate.parameters, found, strict=True) if is_linear)
             for m, need in zip(found, needs, strict=True)]
        )  # fmt: skip
        if grown == found:
            return found
        found = grown


# --- the parts of the state


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
