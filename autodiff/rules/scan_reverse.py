"""Reverse mode of scan: one loop forwards, and one backwards.

The body is linearised once. The forward loop stacks values of its iterations; the linear loop reads them, and computes
its other residuals again (`scan_plan.py` says which). Transposition runs the linear loop in the opposite direction, and
sums the cotangents of constants in the carry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...hlo.ir import HloComputation
from ...hlo.support.records import dataclass
from ...tracer.aval import ShapedArray, aval_of_shape
from ...tracer.control_flow.progress import progress_of, report_iteration
from ...tracer.control_flow.scan import SCAN, Scan, row_at
from ...tracer.core import Call, Value, bind_call, repeat_instruction
from ...tracer.ops import (
    add,
    broadcast,
    compare,
    convert,
    mul,
    scalar_like,
    select,
    sub,
    zeros,
)
from ...tracer.recording import run_computation
from ...tracer.sharding.spmd import named_shardings
from ...tracer.traced import are_known, jit_call
from ..jvp import moving_mask, parameter_avals
from ..linearize import Linearized, LinearizedComputation, LinearTrace, linearize_computation
from ..tangents import Linear, Operand, Tangent, Zero, instantiate, nonzero
from ..transpose import transpose_flat
from .scan import (
    Loop,
    Mask,
    Values,
    body_avals,
    derived_loop,
    is_closed,
    loop_of,
    make_loop,
    parts_of,
    rule_of,
    split,
    trace_body,
    where,
)
from .scan_plan import Counter, Index, Outside, Plan, Row, Shifted, Source, make_plan
from .scan_products import Products, products_after

# --- linearisation


@dataclass(frozen=True, slots=True)
class _Known:
    """The operands of the linear loop that do not depend on tangents."""

    same: tuple[tuple[str, int], ...]
    """Constants of it: an `Outside`; "final", k: the last carry; "stacked", n: a stacked array as a whole."""
    rows: tuple[int, ...]
    """Its arrays: indices into (arrays, results, arrays that the forward loop stacks in addition)."""


@dataclass(frozen=True, slots=True)
class _LinearizedScan:
    primal: Loop
    """Returns the carry, the results, and arrays of values that are kept."""
    linear: Loop
    """Constants: tangents of constants, known values; arrays: tangents of arrays, known arrays."""
    carry: Mask
    ys: Mask
    known: _Known
    hoisted: HloComputation
    captured: tuple[Value, ...]
    """The values from outside that the body uses."""


@derived_loop
def _linearize_scan(rule: Scan, moving: Mask) -> tuple[_LinearizedScan, bool]:
    of_consts, of_carry, of_xs = (tuple(m) for m in parts_of(rule, moving))
    while True:
        parts = linearize_computation(rule.body, (*of_consts, *of_carry, *of_xs, False))
        grown = tuple(a or b for a, b in zip(of_carry, parts.moves[: rule.num_carry], strict=True))
        if grown == of_carry:
            break
        of_carry = grown
    plan = make_plan(rule, parts)
    linear, known = _linear_loop(rule, parts, plan, (of_consts, of_carry, of_xs))
    result = _LinearizedScan(
        loop_of(plan.forward, parts.captured, rule.num_consts, rule.num_carry, rule, rule.reverse),
        linear,
        of_carry,
        parts.moves[rule.num_carry :],
        known,
        plan.hoisted,
        parts.captured,
    )
    closed = is_closed(result.primal, result.linear) and are_known(parts.captured)
    return result, closed


class _Places:
    """The known operands of the linear loop, in the order of their first use."""

    def __init__(self, rule: Scan, plan: Plan) -> None:
        self.rule = rule
        self.same: list[tuple[str, int]] = []
        self.rows: list[int] = []
        self._whole = {s.array for s in plan.sources if isinstance(s, Shifted)}

    def _same(self, kind: str, index: int) -> int:
        if (kind, index) not in self.same:
            self.same.append((kind, index))
        return self.same.index((kind, index))

    def add(self, source: Source) -> None:
        """Make room for the operands of a source."""
        match source:
            case Outside(kind, index):
                self._same(kind, index)
            case Row(array):
                if array in self._whole:  # one array is not passed in two ways
                    self._same("stacked", array)
                elif array not in self.rows:
                    self.rows.append(array)
            case Shifted(array, carry, before):
                self._same("stacked", array)
                self._same("initial" if before else "final", carry)
            case Counter(carry, step, _):
                self._same("initial", carry)
                if isinstance(step, Outside):
                    self.add(step)

    def value(self, source: Source, aval: ShapedArray, same: Values, rows: Values, index: Value) -> Value:
        """The value of a source in an iteration."""
        rule = self.rule
        match source:
            case Index():
                return index
            case Outside(kind, number):
                return same[self._same(kind, number)]
            case Row(array):
                if array in self._whole:
                    return row_at(same[self._same("stacked", array)], index)
                return rows[self.rows.index(array)]
            case Shifted(array, carry, before):
                first, last = (rule.length - 1, 0) if rule.reverse else (0, rule.length - 1)
                edge = compare(index, "EQ", scalar_like(index, first if before else last))
                beyond = same[self._same("initial" if before else "final", carry)]
                one = scalar_like(index, -1 if before != rule.reverse else 1)
                row = row_at(same[self._same("stacked", array)], add(index, one))
                return select(broadcast(edge, aval.shape, ()), beyond, row)
            case Counter(carry, step, down):
                start = same[self._same("initial", carry)]
                done = sub(scalar_like(index, rule.length - 1), index) if rule.reverse else index
                amount = convert(done, aval.dtype)
                if isinstance(step, Outside):
                    by = same[self._same(step.kind, step.index)]
                else:
                    by = repeat_instruction(step, [])
                change = mul(broadcast(amount, aval.shape, ()), broadcast(by, aval.shape, ()))
                return sub(start, change) if down else add(start, change)


def _linear_loop(
    rule: Scan, parts: LinearizedComputation, plan: Plan, moving: tuple[Mask, Mask, Mask]
) -> tuple[Loop, _Known]:
    every = body_avals(rule)
    consts, carry, slices = (where(m, a) for m, a in zip(moving, every, strict=True))
    places = _Places(rule, plan)
    for source in plan.sources:
        places.add(source)
    arrays = [*every[2], *(aval_of_shape(s) for s in plan.forward.root.shape.elements[rule.num_carry :])]
    avals = {
        "constant": [*every[0], *(v.aval for v in parts.captured)],
        "initial": every[1],
        "final": every[1],
        "hoisted": [aval_of_shape(s) for s in plan.hoisted.root.shape.elements],
        "stacked": [ShapedArray((rule.length, *a.shape), a.dtype) for a in arrays],
    }
    leaves = parameter_avals(plan.again)
    of_carry = moving[1]
    shown = progress_of(rule.body)

    def body(c: Values, k: Values, x: Values, index: Value) -> tuple[Values, Values]:
        same, rows = c[len(consts) :], x[len(slices) :]
        if shown is not None:
            report_iteration(shown.of_derivative())
        found = [places.value(s, a, same, rows, index) for s, a in zip(plan.sources, leaves, strict=True)]
        residuals = run_computation(plan.again, found)
        moved = iter(run_computation(parts.linear, [*c[: len(consts)], *k, *x[: len(slices)], *residuals]))
        tangents = [next(moved) if m else None for m in parts.moves]
        state = where(of_carry, tangents[: rule.num_carry])
        new = [zeros(a) if t is None else t for t, a in zip(state, carry, strict=True)]
        return new, [t for t in tangents[rule.num_carry :] if t is not None]

    own = [avals[kind][n] for kind, n in places.same]
    loop = make_loop(body, [*consts, *own], carry, [*slices, *(arrays[n] for n in places.rows)], rule, rule.reverse)
    return loop, _Known(tuple(places.same), tuple(places.rows))


@SCAN.def_linearize
def _scan_linearize(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> Linearized:
    rule = rule_of(call)
    derived = _linearize_scan(rule, moving_mask(tangents))
    consts, carry, xs = parts_of(rule, primals)
    returned = derived.primal.bind([*consts, *derived.primal.captured, *carry, *xs])
    masks = (*derived.carry, *derived.ys)
    results, kept = returned[: len(masks)], returned[len(masks) :]
    if not any(masks):
        return Linearized(results, masks)

    unused: list[Any] = [None] * (len(xs) + 1)  # hoisted instructions use neither slices nor the index
    given = [*consts, *carry, *unused, *derived.captured]
    if named_shardings(derived.hoisted):  # over several devices it runs as a whole
        avals = parameter_avals(derived.hoisted)
        given = [zeros(a) if v is None else v for v, a in zip(given, avals, strict=True)]
        hoisted = bind_call(jit_call(derived.hoisted, "hoisted"), given)
    else:
        hoisted = run_computation(derived.hoisted, given)
    stacked = [*xs, *results[len(carry) :], *kept]
    values = {
        "constant": [*consts, *derived.captured],
        "initial": carry,
        "final": results[: len(carry)],
        "hoisted": hoisted,
        "stacked": stacked,
    }
    same = [values[kind][n] for kind, n in derived.known.same]
    rows = [stacked[n] for n in derived.known.rows]
    loop = derived.linear

    def record(linear: LinearTrace, directions: list[Value]) -> list[Value]:
        given = iter(directions)
        moving = [Zero(p.aval) if isinstance(t, Zero) else next(given) for p, t in zip(primals, tangents, strict=True)]
        consts_t, carry_t, xs_t = parts_of(rule, moving)
        started = [instantiate(t) for t in where(derived.carry, carry_t)]
        operands = [*nonzero(consts_t), *same, *loop.captured, *started, *nonzero(xs_t), *rows]
        return linear.record_call(loop.call, operands)

    return Linearized(results, masks, record)


# --- transposition


@dataclass(frozen=True, slots=True)
class _TransposedScan:
    """The scan backwards. Constants: those that are known; carry: cotangents of the carry, sums of cotangents of linear
    constants; arrays: cotangents of results, known arrays; results: cotangents of linear arrays. Cotangents that are
    zero in all iterations are left out."""

    loop: Loop
    consts: Mask
    carry: Mask
    xs: Mask
    products: Products
    """The sums that are not carried. The last results of the loop are their factors."""


@derived_loop
def _transposed_scan(rule: Scan, linear: Mask, given: Mask) -> tuple[_TransposedScan, bool]:
    """`linear` names the operands, `given` the results that have cotangents."""
    consts, carry, slices = body_avals(rule)
    ys = [aval_of_shape(s) for s in rule.body.root.shape.elements[rule.num_carry :]]
    linear_consts, _, linear_xs = parts_of(rule, linear)
    ys_given = given[rule.num_carry :]
    reached = _reached(rule, given)
    is_const, to_carry, is_x = parts_of(rule, reached)
    to_consts = [a and b for a, b in zip(is_const, linear_consts, strict=True)]
    to_xs = [a and b for a, b in zip(is_x, linear_xs, strict=True)]
    state = where(to_carry, carry)
    cotangents = where(ys_given, ys)

    def body(c: Values, k: Values, x: Values, index: Value) -> tuple[Values, Values]:
        same, rows = iter(c), iter(x[len(cotangents) :])
        of_carry, of_ys = iter(k[: len(state)]), iter(x[: len(cotangents)])
        operands: list[Operand] = [
            *(Linear(a) if m else next(same) for a, m in zip(consts, linear_consts, strict=True)),
            *(Linear(a) for a in carry),  # even of a part that starts as a known zero
            *(Linear(a) if m else next(rows) for a, m in zip(slices, linear_xs, strict=True)),
            index,
        ]
        cts = [*(next(of_carry) if m else None for m in to_carry), *(next(of_ys) if m else None for m in ys_given)]
        sums: list[Value | None] = [None] * len(operands)
        for place, before in zip([n for n, m in enumerate(to_consts) if m], k[len(state) :], strict=True):
            sums[place] = before
        found = parts_of(rule, transpose_flat(rule.body, operands, cts, sums)[:-1])
        new = [zeros(a) if ct is None else ct for ct, a in zip(where(to_carry, found[1]), state, strict=True)]
        added = [ct for ct in where(to_consts, found[0]) if ct is not None]
        slices_found = zip(where(to_xs, found[2]), where(to_xs, slices), strict=True)
        return [*new, *added], [zeros(a) if ct is None else ct for ct, a in slices_found]

    known_consts = [a for a, m in zip(consts, linear_consts, strict=True) if not m]
    known_slices = [a for a, m in zip(slices, linear_xs, strict=True) if not m]
    rows = [*cotangents, *known_slices]
    sums = where(to_consts, consts)
    traced = trace_body(body, known_consts, [*state, *sums], rows, rule)
    places = range(len(known_consts) + len(state), len(known_consts) + len(state) + len(sums))
    arrays = range(places.stop, places.stop + len(rows))
    products = products_after(traced.computation, places, len(state), arrays, rule.length)
    carried = len(state) + len(sums) - len(products.sums)
    loop = loop_of(products.body, traced.captured, len(known_consts), carried, rule, not rule.reverse)
    return _TransposedScan(loop, tuple(to_consts), tuple(to_carry), tuple(to_xs), products), is_closed(loop)


def _reached(rule: Scan, given: Mask) -> list[bool]:
    """Which operands get a cotangent in some iteration: those on which a result depends that has one. The part of the
    carry that gets one has one in the iteration before."""
    body = rule.body
    parts = range(rule.num_consts, rule.num_consts + rule.num_carry)
    active = list(given)
    while True:
        needed = {o for o, is_active in zip(body.root.operands, active, strict=True) if is_active}
        for i in reversed(body.instructions):
            if i in needed and i is not body.root:
                needed.update(i.operands)
        reached = [p in needed for p in body.parameters[:-1]]
        grown = [a or reached[n] for a, n in zip(active, parts, strict=False)]
        if grown == active[: len(parts)]:
            return [r or (n in parts and active[n - rule.num_consts]) for n, r in enumerate(reached)]
        active[: len(parts)] = grown


@SCAN.def_transpose
def _scan_transpose(
    call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]
) -> Sequence[Value | None]:
    rule = rule_of(call)
    linear = tuple(isinstance(o, Linear) for o in operands)
    found = _transposed_scan(rule, linear, tuple(ct is not None for ct in cts))
    consts, carry, xs = parts_of(rule, operands)
    of_carry, of_ys = cts[: len(carry)], cts[len(carry) :]

    pairs = zip(where(found.carry, of_carry), where(found.carry, carry), strict=True)
    started = [zeros(o.aval) if ct is None else ct for ct, o in pairs]
    products = found.products
    sums = [zeros(o.aval) for k, o in enumerate(where(found.consts, consts)) if k not in products.sums]
    given = [ct for ct in of_ys if ct is not None]
    known_consts = [o for o in consts if not isinstance(o, Linear)]
    known_xs = [o for o in xs if not isinstance(o, Linear)]
    loop = found.loop
    returned = loop.bind([*known_consts, *loop.captured, *started, *sums, *given, *known_xs])

    to_carry, carried, results = split(returned, len(started), len(sums))
    to_xs, factors = results[: sum(found.xs)], results[sum(found.xs) :]
    stacks = [*given, *known_xs, *factors]
    one_by_one = iter(carried)
    to_consts = [
        products.value(k, stacks) if k in products.sums else next(one_by_one) for k in range(sum(found.consts))
    ]
    by_const, by_carry, by_x = iter(to_consts), iter(to_carry), iter(to_xs)
    return [
        *(next(by_const) if m else None for m in found.consts),
        *(next(by_carry) if m else None for m in found.carry),
        *(next(by_x) if m else None for m in found.xs),
    ]
