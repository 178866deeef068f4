"""Derivatives of scan: each is a scan again, so that reverse mode costs one loop forwards and one backwards.

In forward mode the loop carries tangents with the carry. For reverse mode the body is linearised once: the forward loop
stacks the residuals of its iterations, the linear loop reads them, and transposition runs that loop in the opposite
direction, with the cotangents of constants summed in the carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from ...hlo.builder import make_computation, make_tuple
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...tracer.aval import ShapedArray, aval_of_shape
from ...tracer.core import Call, Tracer, Value, bind_call, eval_computation
from ...tracer.ops import add, zeros
from ...tracer.recording import trace_to_computation
from ...tracer.scan import SCAN, Scan, run_scan
from ...tracer.traced import DerivedCache
from ..jvp import jvp_computation, moving_mask, parameter_avals
from ..linearize import Linearized, LinearizedComputation, LinearTrace, linearize_computation
from ..tangents import Linear, Operand, Tangent, Zero, instantiate
from ..transpose import transpose_flat

T = TypeVar("T")
Mask = tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class _Loop:
    """A scan that can be called. It takes constants, carry and arrays."""

    call: Call
    captured: tuple[Value, ...]
    """The values from outside that the body uses. They are the last of its constants."""

    def bind(self, operands: Sequence[Value]) -> list[Value]:
        return bind_call(self.call, operands)


def _make_loop(
    body: Any, consts: list[ShapedArray], carry: list[ShapedArray], slices: list[ShapedArray], old: Scan, reverse: bool
) -> _Loop:
    """A scan with `body`, a function of three lists (constants, carry, slices) to two (carry, slices of results).

    Values that `body` captures become constants.
    """

    def first(values: list[Value]) -> list[Value]:
        new, rows = body(*_split(values, len(consts), len(carry)))
        return [*new, *rows]

    traced = trace_to_computation(first, [*consts, *carry, *slices], old.body.name)
    outside = [c.aval for c in traced.captured]
    whole = traced.computation
    if outside:

        def reordered(values: list[Value]) -> list[Value]:
            own, state, rows = _split(values, len(consts) + len(outside), len(carry))
            return eval_computation(traced.computation, [*own[: len(consts)], *state, *rows, *own[len(consts) :]])

        whole = trace_to_computation(reordered, [*consts, *outside, *carry, *slices], old.body.name).computation
    rule = Scan(whole, len(consts) + len(outside), len(carry), old.length, reverse)
    arrays = [ShapedArray((old.length, *a.shape), a.dtype) for a in slices]
    operands = [*consts, *outside, *carry, *arrays]
    loop = trace_to_computation(lambda values: run_scan(rule, values), operands, f"{old.body.name}_scan")
    assert not loop.captured, "a scan's body gets all that it uses"
    return _Loop(rule.call(loop.computation), tuple(traced.captured))


def _split(values: Sequence[T], first: int, second: int) -> tuple[list[T], list[T], list[T]]:
    return list(values[:first]), list(values[first : first + second]), list(values[first + second :])


def _parts(rule: Scan, values: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
    """The values split into those of constants, of the carry, of arrays."""
    return _split(values, rule.num_consts, rule.num_carry)


def _where(mask: Sequence[bool], values: Sequence[T]) -> list[T]:
    return [v for v, m in zip(values, mask, strict=True) if m]


def _spread(mask: Sequence[bool], moving: Sequence[Value], avals: Sequence[ShapedArray]) -> list[Tangent]:
    """A tangent for each of `avals`: one of `moving` where `mask` says so, else Zero."""
    given = iter(moving)
    return [next(given) if m else Zero(a) for m, a in zip(mask, avals, strict=True)]


def _nonzero(tangents: Sequence[Tangent]) -> list[Value]:
    return [t for t in tangents if not isinstance(t, Zero)]


def _rule_of(call: Call) -> Scan:
    assert isinstance(call.params, Scan)
    return call.params


_made = DerivedCache()
"""Derived loops, by the body from which they are derived, so that each is compiled once."""


def _key(kind: str, rule: Scan, *masks: Mask) -> Any:
    return (kind, rule.num_consts, rule.num_carry, rule.length, rule.reverse, *masks)


def _is_closed(*loops: _Loop) -> bool:
    return not any(isinstance(v, Tracer) for loop in loops for v in loop.captured)


# --- forward mode


@dataclass(frozen=True, slots=True)
class _JVPScan:
    loop: _Loop
    carry: Mask
    """Which parts of the carry move."""
    ys: Mask


def _jvp_scan(rule: Scan, moving: Mask) -> _JVPScan:
    """The scan with tangents. A part of the carry moves if it starts moving or if an iteration makes it move."""
    return _made.get((rule.body,), _key("jvp", rule, moving), lambda: _make_jvp_scan(rule, moving))


def _make_jvp_scan(rule: Scan, moving: Mask) -> tuple[_JVPScan, bool]:
    of_consts, of_carry, of_xs = (tuple(m) for m in _parts(rule, moving))
    results = len(rule.body.root.shape.elements)
    while True:
        forced = (*of_carry, *[False] * (results - rule.num_carry))
        derived = jvp_computation(rule.body, (*of_consts, *of_carry, *of_xs), forced)
        if derived.moves[: rule.num_carry] == of_carry:
            break
        of_carry = derived.moves[: rule.num_carry]
    consts, carry, slices = _parts(rule, parameter_avals(rule.body))

    def body(c: list[Value], k: list[Value], x: list[Value]) -> tuple[list[Value], list[Value]]:
        given = [*c[: len(consts)], *k[: len(carry)], *x[: len(slices)]]
        given += [*c[len(consts) :], *k[len(carry) :], *x[len(slices) :], *derived.captured]
        out = eval_computation(derived.computation, given)
        moved = out[results:]
        carry_moves = sum(of_carry)
        new, ys = out[: rule.num_carry], out[rule.num_carry : results]
        return [*new, *moved[:carry_moves]], [*ys, *moved[carry_moves:]]

    loop = _make_loop(
        body,
        [*consts, *_where(of_consts, consts)],
        [*carry, *_where(of_carry, carry)],
        [*slices, *_where(of_xs, slices)],
        rule,
        rule.reverse,
    )
    return _JVPScan(loop, of_carry, derived.moves[rule.num_carry :]), _is_closed(loop)


@SCAN.def_jvp
def _scan_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    rule = _rule_of(call)
    derived = _jvp_scan(rule, moving_mask(tangents))
    consts, carry, xs = _parts(rule, primals)
    consts_t, carry_t, xs_t = _parts(rule, tangents)
    started = [instantiate(t) for t in _where(derived.carry, carry_t)]
    operands = [*consts, *_nonzero(consts_t), *derived.loop.captured, *carry, *started, *xs, *_nonzero(xs_t)]
    returned = derived.loop.bind(operands)
    state, ys = returned[: len(carry) + len(started)], returned[len(carry) + len(started) :]
    results = [*state[: len(carry)], *ys[: len(derived.ys)]]
    moved = [*state[len(carry) :], *ys[len(derived.ys) :]]
    return results, _spread((*derived.carry, *derived.ys), moved, [r.aval for r in results])


# --- linearisation


@dataclass(frozen=True, slots=True)
class _LinearizedScan:
    primal: _Loop
    """Returns the carry, the results, and stacked residuals."""
    linear: _Loop
    """Constants: tangents of constants, residuals that do not vary; arrays: tangents of arrays, stacked residuals."""
    carry: Mask
    ys: Mask
    fixed: tuple[int, ...]
    """Residuals that do not vary: indices into (constants, captured), or -1 - k for hoisted[k]."""
    stacked: tuple[int, ...]
    """Residuals that vary: indices into (arrays, results, stacked residuals that the primal loop returns)."""
    hoisted: HloComputation
    """Computes residuals that are the same in all iterations. Takes constants, carry, slices, captured; uses neither
    carry nor slices."""
    captured: tuple[Value, ...]
    """The values from outside that the body uses."""


def _linearize_scan(rule: Scan, moving: Mask) -> _LinearizedScan:
    return _made.get((rule.body,), _key("linearize", rule, moving), lambda: _make_linearize_scan(rule, moving))


def _make_linearize_scan(rule: Scan, moving: Mask) -> tuple[_LinearizedScan, bool]:
    of_consts, of_carry, of_xs = (tuple(m) for m in _parts(rule, moving))
    while True:
        parts = linearize_computation(rule.body, (*of_consts, *of_carry, *of_xs))
        grown = tuple(a or b for a, b in zip(of_carry, parts.moves[: rule.num_carry], strict=True))
        if grown == of_carry:
            break
        of_carry = grown
    plan = _plan(rule, parts)
    result = _LinearizedScan(
        _primal_loop(rule, parts, plan),
        _linear_loop(rule, parts, plan, (of_consts, of_carry, of_xs)),
        of_carry,
        parts.moves[rule.num_carry :],
        tuple(plan.fixed),
        tuple(plan.stacked),
        plan.hoisted,
        parts.captured,
    )
    closed = _is_closed(result.primal, result.linear) and not any(isinstance(c, Tracer) for c in parts.captured)
    return result, closed


@dataclass(slots=True)
class _Plan:
    """Where the residuals of a body come from when it is the body of a loop."""

    varies: list[bool]
    """One entry for each residual."""
    fixed: list[int]
    stacked: list[int]
    added: list[tuple[str, int]]
    """What the primal loop must stack in addition: ("input" or "result", its index in the body)."""
    hoisted: HloComputation


def _plan(rule: Scan, parts: LinearizedComputation) -> _Plan:
    count = len(parts.moves)
    inputs = len(rule.body.parameters)
    arrays = inputs - rule.num_consts - rule.num_carry
    varying = _varying(parts.primal, range(rule.num_consts, inputs))
    outputs = parts.primal.root.operands
    lifted: list[HloInstruction] = []
    plan = _Plan([], [], [], [], parts.primal)

    def stack(place: str, index: int) -> int:
        if (place, index) not in plan.added:
            plan.added.append((place, index))
        return arrays + count - rule.num_carry + plan.added.index((place, index))

    for residual in parts.residuals:
        place, index = residual.place, residual.index
        fixed = stacked = None
        if place == "input" and index < rule.num_consts:
            fixed = index
        elif place == "input" and index >= inputs:
            fixed = rule.num_consts + index - inputs
        elif place == "input" and index >= rule.num_consts + rule.num_carry:
            stacked = index - rule.num_consts - rule.num_carry
        elif place == "result" and outputs[index] not in varying:
            if outputs[index] not in lifted:
                lifted.append(outputs[index])
            fixed = -1 - lifted.index(outputs[index])
        elif place == "result" and rule.num_carry <= index < count:
            stacked = arrays + index - rule.num_carry
        else:
            stacked = stack(place, index)
        plan.varies.append(fixed is None)
        if fixed is not None:
            plan.fixed.append(fixed)
        else:
            assert stacked is not None
            plan.stacked.append(stacked)
    plan.hoisted = make_computation("hoisted", make_tuple(lifted), parts.primal.parameters)
    return plan


def _varying(computation: HloComputation, numbers: range) -> set[HloInstruction]:
    """The instructions that depend on the parameters with these numbers."""
    found: set[HloInstruction] = set()
    for i in computation.instructions:
        if i.opcode is Opcode.PARAMETER:
            if i.attributes.number in numbers:
                found.add(i)
        elif any(o in found for o in i.operands):
            found.add(i)
    return found


def _primal_loop(rule: Scan, parts: LinearizedComputation, plan: _Plan) -> _Loop:
    consts, carry, slices = _parts(rule, parameter_avals(rule.body))
    count = len(parts.moves)

    def body(c: list[Value], k: list[Value], x: list[Value]) -> tuple[list[Value], list[Value]]:
        inputs = [*c, *k, *x, *parts.captured]
        results = eval_computation(parts.primal, inputs)
        kept = [inputs[i] if place == "input" else results[i] for place, i in plan.added]
        return results[: rule.num_carry], [*results[rule.num_carry : count], *kept]

    return _make_loop(body, consts, carry, slices, rule, rule.reverse)


def _linear_loop(rule: Scan, parts: LinearizedComputation, plan: _Plan, moving: tuple[Mask, Mask, Mask]) -> _Loop:
    every = _parts(rule, parameter_avals(rule.body))
    consts, carry, slices = (_where(m, a) for m, a in zip(moving, every, strict=True))
    tangents = len(consts) + len(carry) + len(slices)
    residuals = parameter_avals(parts.linear)[tangents:]
    fixed = [a for a, v in zip(residuals, plan.varies, strict=True) if not v]
    stacked = [a for a, v in zip(residuals, plan.varies, strict=True) if v]
    of_carry = moving[1]

    def body(c: list[Value], k: list[Value], x: list[Value]) -> tuple[list[Value], list[Value]]:
        same, rows = iter(c[len(consts) :]), iter(x[len(slices) :])
        held = [next(rows) if v else next(same) for v in plan.varies]
        moved = eval_computation(parts.linear, [*c[: len(consts)], *k, *x[: len(slices)], *held])
        by_result = iter(moved)
        found = [next(by_result) if m else None for m in parts.moves]
        state = _where(of_carry, found[: rule.num_carry])
        new = [zeros(a) if t is None else t for t, a in zip(state, carry, strict=True)]
        return new, [t for t in found[rule.num_carry :] if t is not None]

    return _make_loop(body, [*consts, *fixed], carry, [*slices, *stacked], rule, rule.reverse)


@SCAN.def_linearize
def _scan_linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    rule = _rule_of(call)
    derived = _linearize_scan(rule, moving_mask(tangents))
    consts, carry, xs = _parts(rule, primals)
    returned = derived.primal.bind([*consts, *derived.primal.captured, *carry, *xs])
    masks = (*derived.carry, *derived.ys)
    results, kept = returned[: len(masks)], returned[len(masks) :]
    if not any(masks):
        return Linearized(results, masks)

    slices: list[Any] = [None] * len(xs)  # what is hoisted uses neither the carry nor the slices
    hoisted = eval_computation(derived.hoisted, [*consts, *carry, *slices, *derived.captured])
    outside = [*consts, *derived.captured]
    fixed = [outside[i] if i >= 0 else hoisted[-1 - i] for i in derived.fixed]
    rows = [*xs, *results[len(carry) :], *kept]
    stacked = [rows[i] for i in derived.stacked]
    loop = derived.linear

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        given = iter(directions)
        moving = [Zero(p.aval) if isinstance(t, Zero) else next(given) for p, t in zip(primals, tangents, strict=True)]
        consts_t, carry_t, xs_t = _parts(rule, moving)
        started = [instantiate(t) for t in _where(derived.carry, carry_t)]
        operands = [*_nonzero(consts_t), *fixed, *loop.captured, *started, *_nonzero(xs_t), *stacked]
        return linear.record_call(loop.call, operands)

    return Linearized(results, masks, record)


# --- transposition


def _transposed_scan(rule: Scan, consts_linear: Mask, xs_linear: Mask, ys_given: Mask) -> _Loop:
    """The scan backwards. Constants: those that are known; carry: cotangents of the carry, sums of cotangents of linear
    constants; arrays: cotangents of results, known arrays; results: cotangents of linear arrays."""
    masks = (consts_linear, xs_linear, ys_given)
    return _made.get((rule.body,), _key("transpose", rule, *masks), lambda: _make_transposed_scan(rule, *masks))


def _make_transposed_scan(rule: Scan, consts_linear: Mask, xs_linear: Mask, ys_given: Mask) -> tuple[_Loop, bool]:
    consts, carry, slices = _parts(rule, parameter_avals(rule.body))
    ys = [aval_of_shape(s) for s in rule.body.root.shape.elements[rule.num_carry :]]
    known_consts = [a for a, m in zip(consts, consts_linear, strict=True) if not m]
    known_slices = [a for a, m in zip(slices, xs_linear, strict=True) if not m]
    sums = _where(consts_linear, consts)
    cotangents = _where(ys_given, ys)

    def body(c: list[Value], k: list[Value], x: list[Value]) -> tuple[list[Value], list[Value]]:
        same, rows, given = iter(c), iter(x[len(cotangents) :]), iter(x[: len(cotangents)])
        operands: list[Operand] = [
            *(Linear(a) if m else next(same) for a, m in zip(consts, consts_linear, strict=True)),
            *(Linear(a) for a in carry),
            *(Linear(a) if m else next(rows) for a, m in zip(slices, xs_linear, strict=True)),
        ]
        cts = [*k[: len(carry)], *(next(given) if m else None for m in ys_given)]
        to_consts, to_carry, to_xs = _parts(rule, transpose_flat(rule.body, operands, cts))
        new = [zeros(a) if ct is None else ct for ct, a in zip(to_carry, carry, strict=True)]
        added = [
            before if ct is None else add(before, ct)
            for before, ct in zip(k[len(carry) :], _where(consts_linear, to_consts), strict=True)
        ]
        linear_slices = zip(_where(xs_linear, to_xs), _where(xs_linear, slices), strict=True)
        return [*new, *added], [zeros(a) if ct is None else ct for ct, a in linear_slices]

    loop = _make_loop(body, known_consts, [*carry, *sums], [*cotangents, *known_slices], rule, not rule.reverse)
    return loop, _is_closed(loop)


@SCAN.def_transpose
def _scan_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    rule = _rule_of(call)
    consts, carry, xs = _parts(rule, operands)
    consts_linear = tuple(isinstance(o, Linear) for o in consts)
    xs_linear = tuple(isinstance(o, Linear) for o in xs)
    of_carry, of_ys = cts[: len(carry)], cts[len(carry) :]
    loop = _transposed_scan(rule, consts_linear, xs_linear, tuple(ct is not None for ct in of_ys))

    started = [zeros(o.aval) if ct is None else ct for ct, o in zip(of_carry, carry, strict=True)]
    sums = [zeros(o.aval) for o in consts if isinstance(o, Linear)]
    given = [ct for ct in of_ys if ct is not None]
    known_consts = [o for o in consts if not isinstance(o, Linear)]
    known_xs = [o for o in xs if not isinstance(o, Linear)]
    returned = loop.bind([*known_consts, *loop.captured, *started, *sums, *given, *known_xs])

    to_carry, to_consts, to_xs = _split(returned, len(carry), len(sums))
    consts_found, xs_found = iter(to_consts), iter(to_xs)
    return [
        *(next(consts_found) if m else None for m in consts_linear),
        *(ct if isinstance(o, Linear) else None for ct, o in zip(to_carry, carry, strict=True)),
        *(next(xs_found) if m else None for m in xs_linear),
    ]
