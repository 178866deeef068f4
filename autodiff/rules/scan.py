"""Derivatives of scan are scans again. Here: the construction of one, and forward mode, with a loop that carries
tangents with the carry. `scan_reverse.py` has reverse mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ...hlo.ir import HloComputation
from ...hlo.support.records import dataclass
from ...tracer.aval import ShapedArray
from ...tracer.control_flow.scan import INDEX, SCAN, Scan, run_scan
from ...tracer.core import Call, Value, bind_call
from ...tracer.recording import TracedComputation, run_computation, trace_to_computation, with_parameters
from ...tracer.traced import DerivedCache, are_known
from ..jvp import jvp_computation, moving_mask, parameter_avals
from ..tangents import Tangent, Zero, instantiate, nonzero

T = TypeVar("T")
Mask = tuple[bool, ...]
Values = list[Value]
Body = Callable[[Values, Values, Values, Value], tuple[Values, Values]]
"""body(constants, carry, slices of arrays, index) -> (carry, slices of results)."""


@dataclass(frozen=True, slots=True)
class Loop:
    """A scan that can be called. It takes constants, carry and arrays."""

    call: Call
    captured: tuple[Value, ...]
    """The values from outside that the body uses. They are the last of its constants."""

    def bind(self, operands: Sequence[Value]) -> list[Value]:
        return bind_call(self.call, operands)


def make_loop(
    body: Body, consts: list[ShapedArray], carry: list[ShapedArray], slices: list[ShapedArray], old: Scan, reverse: bool
) -> Loop:
    """A scan with `body`. Values that `body` captures become constants."""
    traced = trace_body(body, consts, carry, slices, old)
    return loop_of(traced.computation, traced.captured, len(consts), len(carry), old, reverse)


def trace_body(
    body: Body, consts: list[ShapedArray], carry: list[ShapedArray], slices: list[ShapedArray], old: Scan
) -> TracedComputation:
    """A body as a computation."""

    def flat(values: Values) -> Values:
        own, state, rows = split(values, len(consts), len(carry))
        new, results = body(own, state, rows[:-1], rows[-1])
        return [*new, *results]

    return trace_to_computation(flat, [*consts, *carry, *slices, INDEX], old.body.name)


def loop_of(
    body: HloComputation, captured: Sequence[Value], num_consts: int, num_carry: int, old: Scan, reverse: bool
) -> Loop:
    """A scan with a body that takes `captured` after everything else. These values become constants."""
    own = len(body.parameters) - len(captured)
    numbers = [*range(num_consts), *range(own, own + len(captured)), *range(num_consts, own)]
    rule = Scan(with_parameters(body, numbers, body.name), num_consts + len(captured), num_carry, old.length, reverse)
    outside, carry, slices = body_avals(rule)
    arrays = [ShapedArray((old.length, *a.shape), a.dtype) for a in slices]
    operands = [*outside, *carry, *arrays]
    loop = trace_to_computation(lambda values: run_scan(rule, values), operands, f"{old.body.name}_scan")
    assert not loop.captured, "a scan's body gets all that it uses"
    return Loop(rule.call(loop.computation), tuple(captured))


def split(values: Sequence[T], first: int, second: int) -> tuple[list[T], list[T], list[T]]:
    return list(values[:first]), list(values[first : first + second]), list(values[first + second :])


def parts_of(rule: Scan, values: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
    """The values of the constants, of the carry and of the arrays."""
    return split(values, rule.num_consts, rule.num_carry)


def body_avals(rule: Scan) -> tuple[list[ShapedArray], list[ShapedArray], list[ShapedArray]]:
    """The types of constants, carry and slices. The body takes the index after them."""
    return parts_of(rule, parameter_avals(rule.body)[:-1])


def where(mask: Sequence[bool], values: Sequence[T]) -> list[T]:
    return [v for v, m in zip(values, mask, strict=True) if m]


def spread(mask: Sequence[bool], moving: Sequence[Value], avals: Sequence[ShapedArray]) -> list[Tangent]:
    """A tangent for each of `avals`: one of `moving` where `mask` says so, else Zero."""
    given = iter(moving)
    return [next(given) if m else Zero(a) for m, a in zip(mask, avals, strict=True)]


def rule_of(call: Call) -> Scan:
    assert isinstance(call.params, Scan)
    return call.params


_made = DerivedCache()


def derived_loop(make: Callable[..., tuple[T, bool]]) -> Callable[..., T]:
    """A decorator: make(scan, *masks) -> (a derived loop, whether it may be kept). It is made once for the body from
    which it is derived, so that it is compiled once."""

    def get(rule: Scan, *masks: Any) -> T:
        key = (make, rule.num_consts, rule.num_carry, rule.length, rule.reverse, *masks)
        found: T = _made.get((rule.body,), key, lambda: make(rule, *masks))
        return found

    return get


def is_closed(*loops: Loop) -> bool:
    return all(are_known(loop.captured) for loop in loops)


# --- forward mode


@dataclass(frozen=True, slots=True)
class _JVPScan:
    loop: Loop
    carry: Mask
    """Which parts of the carry move."""
    ys: Mask


@derived_loop
def _jvp_scan(rule: Scan, moving: Mask) -> tuple[_JVPScan, bool]:
    """The scan with tangents. A part of the carry moves if it starts moving or if an iteration makes it move."""
    of_consts, of_carry, of_xs = (tuple(m) for m in parts_of(rule, moving))
    results = len(rule.body.root.shape.elements)
    while True:
        forced = (*of_carry, *[False] * (results - rule.num_carry))
        derived = jvp_computation(rule.body, (*of_consts, *of_carry, *of_xs, False), forced)
        if derived.moves[: rule.num_carry] == of_carry:
            break
        of_carry = derived.moves[: rule.num_carry]
    consts, carry, slices = body_avals(rule)

    def body(c: Values, k: Values, x: Values, index: Value) -> tuple[Values, Values]:
        given = [*c[: len(consts)], *k[: len(carry)], *x[: len(slices)], index]
        given += [*c[len(consts) :], *k[len(carry) :], *x[len(slices) :], *derived.captured]
        out = run_computation(derived.computation, given)
        moved = out[results:]
        carry_moves = sum(of_carry)
        new, ys = out[: rule.num_carry], out[rule.num_carry : results]
        return [*new, *moved[:carry_moves]], [*ys, *moved[carry_moves:]]

    loop = make_loop(
        body,
        [*consts, *where(of_consts, consts)],
        [*carry, *where(of_carry, carry)],
        [*slices, *where(of_xs, slices)],
        rule,
        rule.reverse,
    )
    return _JVPScan(loop, of_carry, derived.moves[rule.num_carry :]), is_closed(loop)


@SCAN.def_jvp
def _scan_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    rule = rule_of(call)
    derived = _jvp_scan(rule, moving_mask(tangents))
    consts, carry, xs = parts_of(rule, primals)
    consts_t, carry_t, xs_t = parts_of(rule, tangents)
    started = [instantiate(t) for t in where(derived.carry, carry_t)]
    operands = [*consts, *nonzero(consts_t), *derived.loop.captured, *carry, *started, *xs, *nonzero(xs_t)]
    returned = derived.loop.bind(operands)
    state, ys = returned[: len(carry) + len(started)], returned[len(carry) + len(started) :]
    results = [*state[: len(carry)], *ys[: len(derived.ys)]]
    moved = [*state[len(carry) :], *ys[len(derived.ys) :]]
    return results, spread((*derived.carry, *derived.ys), moved, [r.aval for r in results])
