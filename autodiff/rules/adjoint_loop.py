"""The adjoint loop: a while loop whose states are needed in reverse order, as its reverse mode needs them.

    s[t + 1] = step(s[t]) while condition(s[t]),  from s[0]
    a[t] = back(s[t], a[t + 1]),                  from a[n], where n is the number of iterations

The call takes s[0] and a[n], and returns a[0]. Each backward step is linear in a. Its meaning keeps some of the states
and computes the others again (`checkpoints.py`). Its derivatives, of any order, are adjoint loops again: forwards on
the state and its tangents; backwards there is one more loop, for the adjoints of a, which run forwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.builder import make_computation, make_instruction, make_parameter, make_tuple
from ...hlo.effects import effects_of
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.metadata import line_of
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import WhileAttributes
from ...hlo.ops.structure import GetTupleElementAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...tracer.aval import ShapedArray
from ...tracer.control_flow.progress import without_progress
from ...tracer.core import Call, Primitive, Value, bind_call, bind_while, eval_computation, run_program, thread_state
from ...tracer.ops import add, zeros
from ...tracer.recording import closed_computation, run_computation, takes_one_tuple
from ...tracer.source import user_line
from ...tracer.traced import DerivedCache, are_known
from ..jvp import FlatFunction, moving_mask, parameter_avals
from ..linearize import Linearized, LinearizedComputation, LinearTrace, linearize_computation
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from ..transpose import transpose_flat
from .checkpoints import there_and_back
from .scan import spread, where

Mask = tuple[bool, ...]
Values = list[Value]
_cache = DerivedCache()


# --- loops


def with_longer_state(loop: WhileAttributes, avals: Sequence[ShapedArray]) -> WhileAttributes:
    """The loop with further parts of its state, of these types, which it hands on."""
    if not avals:
        return loop
    own = parameter_avals(loop.body)

    def body(values: Values) -> Values:
        return [*eval_computation(loop.body, values[: len(own)]), *values[len(own) :]]

    return _loop_of(loop.condition, body, [*own, *avals], loop.body.name)


def _loop_of(condition: HloComputation, body: FlatFunction, avals: Sequence[ShapedArray], name: str) -> WhileAttributes:
    """A loop with `body` on a state of types `avals`. `condition` takes the first elements of it."""
    state = Shape.tuple([a.hlo for a in avals])
    return WhileAttributes(with_longer_tuple(condition, state), takes_one_tuple(closed_computation(body, avals, name)))


def with_longer_tuple(computation: HloComputation, parameter_shape: Shape) -> HloComputation:
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


@dataclass(frozen=True, slots=True)
class TangentLoop:
    """A loop on a state, values that its derivative uses from outside, and the tangents of the parts of the state that
    move."""

    loop: WhileAttributes
    plain: WhileAttributes
    """The same loop without the tangents. Its body is the linearized one. The derivative of that follows the rules that
    users gave, as if the operations were differentiated one by one."""
    parts: LinearizedComputation
    """The body, linearized."""
    moving: Mask
    captured: tuple[Value, ...]

    def directions(self, moved: Sequence[Tangent]) -> Values:
        """The tangents that the loop takes."""
        return [instantiate(t) for t in where(self.moving, moved)]

    def backwards(self, state: Values, cts: Sequence[Value | None]) -> list[Value | None]:
        """The cotangents of the moving parts before an iteration from `state`, from those after it."""
        return _transposed(self.parts, state, cts, [Linear(a) for a in where(self.moving, self.avals)])

    @property
    def avals(self) -> list[ShapedArray]:
        return parameter_avals(self.plain.body)[: len(self.moving)]


def tangent_loop(loop: WhileAttributes, moving: Mask) -> TangentLoop:
    """The loop with tangents, of which the tangents' part is linear. A part of the state that starts without a tangent
    has one if an iteration gives it one. Made once."""

    def make() -> tuple[TangentLoop, bool]:
        grown = moving
        while True:
            parts = linearize_computation(loop.body, grown)
            more = tuple([a or b for a, b in zip(grown, parts.moves, strict=True)])
            if more == grown:
                break
            grown = more
        avals = [*parameter_avals(loop.body), *(c.aval for c in parts.captured)]
        tangents = where(grown, avals[: len(grown)])

        def plain_body(values: Values) -> Values:
            return [*run_computation(parts.primal, values)[: len(grown)], *values[len(grown) :]]

        plain = _loop_of(loop.condition, plain_body, avals, loop.body.name)

        def body(values: Values) -> Values:
            state, directions = values[: len(avals)], values[len(avals) :]
            results = run_computation(parts.primal, state)
            residuals = parts.residual_values(state, results)
            moved = iter(run_computation(parts.linear, [*directions, *residuals]))
            found = [next(moved) if m else zeros(a) for m, a in zip(parts.moves, avals, strict=False)]
            return [*results[: len(grown)], *state[len(grown) :], *where(grown, found)]

        moved = _loop_of(loop.condition, body, [*avals, *tangents], f"tangents_{loop.body.name}")
        return TangentLoop(moved, plain, parts, grown, parts.captured), are_known(parts.captured)

    return _cache.get((loop.body, loop.condition), ("tangents", moving), make)


def _transposed(
    parts: LinearizedComputation, inputs: Values, cts: Sequence[Value | None], directions: Sequence[Operand]
) -> list[Value | None]:
    """The cotangents of `directions`, the tangents of the inputs that move, from cotangents of all results of `parts`,
    which are None for those that do not move."""
    residuals = parts.residual_values(inputs, run_computation(parts.primal, inputs))
    found = transpose_flat(parts.linear, [*directions, *residuals], where(parts.moves, cts))
    return found[: len(directions)]


# --- the adjoint loop


@dataclass(frozen=True, slots=True, eq=False)
class AdjointLoop:
    """The parameters of a call of ADJOINT. Its operands: the state, the adjoint."""

    loop: WhileAttributes
    back: HloComputation
    """Takes the state before an iteration and the adjoint after it, and returns the adjoint before it. Flat."""

    @property
    def count(self) -> int:
        """How many operands are parts of the state."""
        return len(self.loop.body.root.operands)


ADJOINT = Primitive("adjoint_loop", evaluate=run_program)


def bind_adjoint(loop: WhileAttributes, back: HloComputation, state: Values, adjoint: Values) -> Values:
    """The adjoint before a loop that starts with `state`, from the one after it. UnsupportedError if the loop acts on
    the world: some iterations would be repeated. Repeated iterations report to no progress bar."""

    def make() -> tuple[Call, bool]:
        body = without_progress(loop.body)
        acting = [*effects_of(body), *effects_of(loop.condition)]
        if acting:
            raise UnsupportedError(
                "Reverse-mode differentiation of lax.while_loop, or of lax.fori_loop with dynamic start/stop values, "
                "repeats iterations, so that effects would happen more than once: the loop may have none (debug.print, "
                "io_callback). Use lax.scan, or fori_loop with static start/stop.\n"
                f"  the effect: {line_of(acting[0].metadata) or '<unknown>'}\n"
                f"  the loop: {line_of(thread_state().metadata) or user_line() or '<unknown>'}"
            )
        params = AdjointLoop(WhileAttributes(loop.condition, body), back)
        return Call(ADJOINT, there_and_back(loop.condition, body, back), params, body.name), True

    call = _cache.get((loop.body, loop.condition, back), "adjoint", make)
    return bind_call(call, [*state, *adjoint])


# --- its derivatives


@dataclass(frozen=True, slots=True)
class _Tangents:
    """The adjoint loop with tangents. Its state: the state, `captured`, its tangents, `captured_back`; its adjoint: the
    adjoint, its tangents."""

    rule: AdjointLoop
    state: TangentLoop
    parts: LinearizedComputation
    """The backward step, linearized in the moving parts of the state and of the adjoint."""
    moving: Mask
    """Which parts of the adjoint move."""
    plain: AdjointLoop
    """Without the tangents: on the state, `captured`, `captured_back`."""
    loop: WhileAttributes
    back: HloComputation

    @property
    def captured_back(self) -> tuple[Value, ...]:
        return self.parts.captured


def _tangents(rule: AdjointLoop, moving: Mask) -> _Tangents:
    def make() -> tuple[_Tangents, bool]:
        state = tangent_loop(rule.loop, moving[: rule.count])
        grown = moving[rule.count :]
        while True:
            parts = linearize_computation(rule.back, (*state.moving, *grown))
            more = tuple([a or b for a, b in zip(grown, parts.moves, strict=True)])
            if more == grown:
                break
            grown = more
        loop = with_longer_state(state.loop, [c.aval for c in parts.captured])
        states, adjoints = parameter_avals(loop.body), parameter_avals(rule.back)[rule.count :]
        outside = len(parts.captured)
        moving_states = range(rule.count + len(state.captured), len(states) - outside)

        def back(values: Values) -> Values:
            given, adjoint = values[: len(states)], values[len(states) :]
            primals = [*given[: rule.count], *adjoint[: len(adjoints)], *given[len(states) - outside :]]
            results = run_computation(parts.primal, primals)
            directions = [*(given[k] for k in moving_states), *adjoint[len(adjoints) :]]
            moved = iter(run_computation(parts.linear, [*directions, *parts.residual_values(primals, results)]))
            found = [next(moved) if m else zeros(a) for m, a in zip(parts.moves, adjoints, strict=True)]
            return [*results[: len(adjoints)], *where(grown, found)]

        avals = [*states, *adjoints, *where(grown, adjoints)]
        closed = closed_computation(back, avals, f"tangents_{rule.back.name}")
        longer = with_longer_state(state.plain, [c.aval for c in parts.captured])
        plain_states = parameter_avals(longer.body)

        def plain_back(values: Values) -> Values:
            given, adjoint = values[: len(plain_states)], values[len(plain_states) :]
            primals = [*given[: rule.count], *adjoint, *given[len(plain_states) - outside :]]
            return run_computation(parts.primal, primals)[: len(adjoints)]

        plain = AdjointLoop(longer, closed_computation(plain_back, [*plain_states, *adjoints], rule.back.name))
        known = are_known((*state.captured, *parts.captured))
        return _Tangents(rule, state, parts, grown, plain, loop, closed), known

    return _cache.get((rule.loop.body, rule.loop.condition, rule.back), ("tangents", moving), make)


def _with_tangents(found: _Tangents, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Values, Values]:
    """The state and the adjoint of the loop with tangents."""
    count = found.rule.count
    moved = [instantiate(t) for t in where(found.moving, tangents[count:])]
    state = [*primals[:count], *found.state.captured, *found.state.directions(tangents[:count]), *found.captured_back]
    return state, [*primals[count:], *moved]


@ADJOINT.def_jvp
def _jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[Values, list[Tangent]]:
    found = _tangents(call.params, moving_mask(tangents))
    returned = bind_adjoint(found.loop, found.back, *_with_tangents(found, primals, tangents))
    results = returned[: len(found.moving)]
    return results, spread(found.moving, returned[len(results) :], [r.aval for r in results])


def pulled_back(rule: AdjointLoop, state: Values, moving: Sequence[bool], cts: Values) -> Values:
    """The cotangents of the parts of the adjoint that `moving` names after an iteration from `state`, from those before
    it. They do not depend on the adjoint: a backward step is linear in it, or this raises TypeError."""
    adjoints = parameter_avals(rule.back)[rule.count :]
    given = iter(cts)
    every = [next(given) if m else None for m in moving]
    operands: list[Operand] = [*state, *(Linear(a) for a in adjoints)]
    found = transpose_flat(rule.back, operands, every)[rule.count :]
    return [zeros(a) if ct is None else ct for ct, a in where(moving, list(zip(found, adjoints, strict=True)))]


@ADJOINT.def_transpose
def _transpose_in_adjoint(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> list[Value | None]:
    """An adjoint loop is linear in the adjoint: its cotangent runs forwards."""
    rule: AdjointLoop = call.params
    count = rule.count
    state = known_values(operands[:count])
    adjoints = parameter_avals(rule.back)[count:]

    def make() -> tuple[WhileAttributes, bool]:
        def forwards(values: Values) -> Values:
            after = pulled_back(rule, values[:count], [True] * len(adjoints), values[count:])
            return [*eval_computation(rule.loop.body, values[:count]), *after]

        avals = [*parameter_avals(rule.loop.body), *adjoints]
        return _loop_of(rule.loop.condition, forwards, avals, f"transpose_{rule.back.name}"), True

    loop = _cache.get((rule.loop.body, rule.loop.condition, rule.back), "transposed", make)
    start = [*state, *(zeros(a) if ct is None else ct for ct, a in zip(cts, adjoints, strict=True))]
    found = bind_while(loop.condition, loop.body, start)[count:]
    return [
        *[None] * count,
        *(v if isinstance(o, Linear) else None for v, o in zip(found, operands[count:], strict=True)),
    ]


def known_values(operands: Sequence[Operand]) -> Values:
    """The operands of a transpose rule in which it is not linear. TypeError if one of them depends on tangents."""
    found = [o for o in operands if not isinstance(o, Linear)]
    if len(found) < len(operands):
        raise TypeError("a loop whose course depends on tangents is not linear, and has no transpose")
    return found


def _sum(x: Value | None, y: Value | None, aval: ShapedArray) -> Value:
    """The sum of two cotangents, of which None is zero."""
    if x is None:
        return zeros(aval) if y is None else y
    return x if y is None else add(x, y)


ADJOINT_TANGENTS = Primitive(
    "adjoint_loop_tangents", evaluate=run_program, is_linear=True
)
"""The tangents of an adjoint loop. The parameters are `_Tangents`, the operands its state and its adjoint."""


@ADJOINT.def_linearize
def _linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    found = _tangents(call.params, moving_mask(tangents))
    count = found.rule.count
    given = [*primals[:count], *found.state.captured, *found.captured_back]
    results = bind_adjoint(found.plain.loop, found.plain.back, given, list(primals[count:]))
    if not any(found.moving):
        return Linearized(results, found.moving)

    def make() -> tuple[Call, bool]:
        states, count = len(found.loop.body.root.operands), len(found.moving)

        def run(values: Values) -> Values:
            return bind_adjoint(found.loop, found.back, values[:states], values[states:])[count:]

        meaning = closed_computation(run, parameter_avals(found.back), found.back.name)
        return Call(ADJOINT_TANGENTS, meaning, found, call.label), True

    tangents_call = _cache.get((found.loop.body, found.loop.condition, found.back), "tangents call", make)

    def record(linear: LinearTrace, directions: Values) -> Values:
        given = iter(directions)
        moved = [t if isinstance(t, Zero) else next(given) for t in tangents]
        state, adjoint = _with_tangents(found, primals, moved)
        return linear.record_call(tangents_call, [*state, *adjoint])

    return Linearized(results, found.moving, record)


@ADJOINT_TANGENTS.def_transpose
def _transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> list[Value | None]:
    """With m[t] for the cotangent of the tangent of a[t]: m runs forwards, as it does not depend on a. Backwards run a,
    and the cotangents of the state's tangents, which get what the backward step gives them."""
    found: _Tangents = call.params
    rule, state, parts = found.rule, found.state, found.parts
    count, outside = rule.count, len(state.captured)
    split, end = count + outside + sum(state.moving), len(found.loop.body.root.operands)
    size = count + outside
    known = known_values([*operands[:size], *operands[split:end]])
    adjoints = parameter_avals(rule.back)[count:]
    directions = [Linear(a) for a in where((*state.moving, *found.moving), [*state.avals, *adjoints])]

    def make() -> tuple[tuple[WhileAttributes, HloComputation], bool]:
        avals = parameter_avals(found.plain.loop.body)
        cotangents = where(found.moving, adjoints)
        every = [*avals, *cotangents]

        def forwards(values: Values) -> Values:
            m = values[len(avals) :]
            after = pulled_back(rule, values[:count], found.moving, m)
            return [*eval_computation(found.plain.loop.body, values[: len(avals)]), *after]

        def back(values: Values) -> Values:
            """On the state with m, then a and the cotangents of the state's tangents."""
            own, adjoint = values[: len(avals)], values[len(every) : len(every) + len(adjoints)]
            later, m = iter(values[len(every) + len(adjoints) :]), iter(values[len(avals) : len(every)])
            earlier = state.backwards(own[:size], [next(later) if moves else None for moves in state.moving])
            inputs = [*own[:count], *adjoint, *own[size:]]
            cts = [next(m) if moves else None for moves in found.moving]
            added = _transposed(parts, inputs, cts, directions)[: len(earlier)]
            moving = where(state.moving, state.avals)
            sums = [_sum(x, y, a) for x, y, a in zip(earlier, added, moving, strict=True)]
            return [*run_computation(found.plain.back, [*own, *adjoint]), *sums]

        loop = _loop_of(found.plain.loop.condition, forwards, every, f"transpose_{rule.back.name}")
        rest = [*adjoints, *where(state.moving, state.avals)]
        return (loop, closed_computation(back, [*every, *rest], f"transpose_{rule.back.name}")), True

    key = (found.loop.body, found.loop.condition, found.back)
    loop, back = _cache.get(key, ("transposed", state.moving, found.moving), make)
    pairs = zip(cts, where(found.moving, adjoints), strict=True)
    start = [*known, *(zeros(a) if ct is None else ct for ct, a in pairs)]
    adjoint = known_values(operands[end : end + len(adjoints)])
    m = bind_while(loop.condition, loop.body, start)[len(known) :]
    still = [zeros(a) for a in where(state.moving, state.avals)]
    to_state = bind_adjoint(loop, back, start, [*adjoint, *still])[len(adjoints) :]
    results: list[Any] = [None] * len(operands)
    results[size:split] = to_state
    results[end + len(adjoints) :] = m
    return results
