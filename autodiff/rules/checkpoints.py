"""A loop forwards and its states backwards, in a fixed number of checkpoints: the meaning of an adjoint loop.

The number of iterations is not known before the loop has run, and memory must not depend on it. Forwards, every
`stride`-th state is written to a slot; if all slots for that are taken, every second one is given up and the stride
doubles. Backwards, the state before each iteration is a checkpoint, or is computed again from the nearest one before
it, with further checkpoints on the way, in slots that are free: at the distances of binomial checkpointing, which need
the fewest repeated iterations.

With n slots, loops of n / 2 iterations repeat none, and those of n**2 / 4 repeat each about once. Sources: Griewank and
Walther, "Algorithm 799: revolve"; Stumm and Walther, "New algorithms for optimal online checkpointing".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from ...hlo.builder import make_computation, make_tuple
from ...hlo.effects import needed_by
from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...tracer.aval import ShapedArray
from ...tracer.control_flow.scan import row_at
from ...tracer.core import Value, bind, bind_while, eval_computation
from ...tracer.ops import add, compare, div, mul, reshape, scalar, scalar_like, select, sub, unwritten, write_block
from ...tracer.recording import (
    closed_computation,
    returns_element,
    run_computation,
    takes_one_tuple,
    trace_to_computation,
)
from ...tracer.settings.context import current_context
from ..jvp import parameter_avals

Values = list[Value]

_COUNT = np.dtype(np.int64)
_BYTES, _FEWEST, _MOST = 1 << 26, 16, 4096
"""If the setting `hloom_loop_checkpoints` is 0: the memory for checkpoints, and the limits of their number."""


def slots_for(avals: Sequence[ShapedArray]) -> int:
    """How many checkpoints of values of these types there are: a multiple of 4, as half of half of them are kept when
    the stride doubles."""
    wanted = current_context().loop_checkpoints
    if wanted:
        return -(-wanted // 4) * 4
    size = sum(a.size * a.dtype.itemsize for a in avals)
    fitting = _BYTES // max(size, 1)
    return 1 << (min(max(fitting, _FEWEST), _MOST).bit_length() - 1)


def there_and_back(condition: HloComputation, step: HloComputation, back: HloComputation) -> HloComputation:
    """The meaning of an `AdjointLoop` of these computations. The parts of the state that a backward step does not need
    are not kept, and those that do not change are not copied."""
    used = parts_used(condition, step, back)
    condition, step = _flat(condition), _flat(step)
    count = len(step.parameters)
    fixed = [r is p for r, p in zip(step.root.operands, step.parameters, strict=True)]
    held = [k for k in range(count) if k in used and fixed[k]]
    kept = [k for k in range(count) if k in used and not fixed[k]]
    order = [*held, *kept]

    def spread(own: Values, state: Values) -> list[Value | None]:
        every: list[Value | None] = [None] * count
        for k, value in zip(order, [*own, *state], strict=True):
            every[k] = value
        return every

    advance = make_computation(step.name, make_tuple([step.root.operands[k] for k in kept]), step.parameters)

    def goes_on(own: Values, state: Values) -> Value:
        return run_computation(condition, spread(own, state))[0]  # type: ignore[arg-type]

    def after(own: Values, state: Values) -> Values:
        return run_computation(advance, spread(own, state))  # type: ignore[arg-type]

    def before(own: Values, state: Values, adjoint: Values) -> Values:
        return run_computation(back, [*spread(own, state), *adjoint])  # type: ignore[list-item]

    def run(values: Values) -> Values:
        own, state = [values[k] for k in held], [values[k] for k in kept]
        slots = slots_for([v.aval for v in state])
        turns, top, times, rows = _forwards(own, state, slots, goes_on, after)
        return _backwards(own, values[count:], slots, turns, top, times, rows, after, before)

    traced = trace_to_computation(run, parameter_avals(back), back.name)
    assert not traced.captured, "a loop gets all that it uses"
    return traced.computation


def _flat(computation: HloComputation) -> HloComputation:
    """A computation of one tuple with separate parameters."""
    avals = parameter_avals(computation)
    return closed_computation(lambda values: eval_computation(computation, values), avals, computation.name)


def parts_used(condition: HloComputation, step: HloComputation, back: HloComputation) -> set[int]:
    """Which parts of the state the condition and the backward step depend on, also by way of later states."""
    condition, step = _flat(condition), _flat(step)
    count = len(step.parameters)
    reads = needed_by((back.root,))
    found = {k for k, p in enumerate(back.parameters[:count]) if p in reads}
    reads = needed_by((condition.root,))
    found |= {k for k, p in enumerate(condition.parameters) if p in reads}
    while True:
        reads = needed_by([step.root.operands[k] for k in found])
        grown = found | {k for k, p in enumerate(step.parameters) if p in reads}
        if grown == found:
            return found
        found = grown


def _number(value: int) -> Value:
    return scalar(value, _COUNT)


def _while(
    goes_on: Callable[[Values], Value], body: Callable[[Values], Values], same: Values, state: Values, name: str
) -> Values:
    """A loop on `state`; both functions take it after the values `same`."""
    avals = [v.aval.with_weak_type(False) for v in (*same, *state)]
    condition = closed_computation(lambda values: [goes_on(values)], avals, f"{name}_condition")
    turn = closed_computation(lambda values: [*values[: len(same)], *body(values)], avals, name)
    found = bind_while(takes_one_tuple(returns_element(condition)), takes_one_tuple(turn), [*same, *state])
    return found[len(same) :]


def _written(rows: Value, row: Value, at: Value) -> Value:
    block = reshape(row, (1, *row.aval.shape))
    return write_block(rows, block, [at, *[scalar_like(at, 0)] * row.aval.ndim])


def _forwards(
    own: Values,
    state: Values,
    slots: int,
    goes_on: Callable[[Values, Values], Value],
    after: Callable[[Values, Values], Values],
) -> tuple[Value, Value, Value, Values]:
    """The number of iterations, the number of checkpoints, the iteration of each, and the checkpoints."""
    most, first = slots // 2, len(own)
    rows = [unwritten(ShapedArray((slots + 1, *v.aval.shape), v.aval.dtype)) for v in state]
    times = unwritten(ShapedArray((slots + 1,), _COUNT))

    def is_on(values: Values) -> Value:
        return values[first]

    def stretch(values: Values) -> Values:
        going, turns, top, stride, times, *rest = values[first:]
        state, rows = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        full = compare(top, "EQ", _number(most))
        limit = select(full, _number(most // 2), _number(0))

        def thinned(values: Values) -> Values:
            _, k, *arrays = values
            source = add(k, k)
            return [add(k, _number(1)), *(_written(a, row_at(a, source), k) for a in arrays)]

        _, times, *rows = _while(
            lambda v: compare(v[1], "LT", v[0]), thinned, [limit], [_number(0), times, *rows], "thinned"
        )
        top = select(full, _number(most // 2), top)
        stride = select(full, add(stride, stride), stride)
        times = _written(times, turns, top)
        rows = [_written(r, v, top) for r, v in zip(rows, state, strict=True)]

        def turn(values: Values) -> Values:
            own, (_, _, k, *state) = values[:first], values[first:]
            state = after(own, state)
            return [goes_on(own, state), add(k, _number(1)), *state]

        def is_within(values: Values) -> Value:
            stride, going, k = values[first : first + 3]
            return bind(Opcode.AND, (going, compare(k, "LT", stride)))

        going, done, *state = _while(is_within, turn, [*values[:first], stride], [going, _number(0), *state], "stretch")
        return [going, add(turns, done), add(top, _number(1)), stride, times, *state, *rows]

    start = [goes_on(own, state), _number(0), _number(0), _number(1), times, *state, *rows]
    _, turns, top, _, times, *rest = _while(is_on, stretch, own, start, "forwards")
    return turns, top, times, rest[len(state) :]


def _backwards(
    own: Values,
    adjoint: Values,
    slots: int,
    turns: Value,
    top: Value,
    times: Value,
    rows: Values,
    after: Callable[[Values, Values], Values],
    before: Callable[[Values, Values, Values], Values],
) -> Values:
    """The adjoint before the first iteration."""
    first, count, one = len(own), len(adjoint), _number(1)

    def turn(values: Values) -> Values:
        own, (left, top, times, *rest) = values[:first], values[first:]
        rows, adjoint = rest[: len(rest) - count], rest[len(rest) - count :]
        last = sub(top, one)
        wanted = sub(left, one)
        start = [row_at(times, last), top, *(row_at(r, last) for r in rows), times, *rows]

        def is_early(values: Values) -> Value:
            return compare(values[first + 1], "LT", values[first])

        def approach(values: Values) -> Values:
            own, (wanted, now, top, *rest) = values[:first], values[first:]
            state, times, rows = rest[: len(rest) // 2], rest[len(rest) // 2], rest[len(rest) // 2 + 1 :]
            far = _distance(sub(_number(slots), top), sub(wanted, now))

            def single(values: Values) -> Values:
                own, (_, k, *state) = values[:first], values[first:]
                return [add(k, one), *after(own, state)]

            _, *state = _while(
                lambda v: compare(v[first + 1], "LT", v[first]), single, [*own, far], [_number(0), *state], "again"
            )
            now = add(now, far)
            # The last slot takes the state that was wanted, too: there may be no other one.
            times = _written(times, now, top)
            rows = [_written(r, v, top) for r, v in zip(rows, state, strict=True)]
            more = compare(now, "LT", wanted)
            return [now, select(more, add(top, one), top), *state, times, *rows]

        _, top, *rest = _while(is_early, approach, [*own, wanted], start, "approach")
        state, times, rows = rest[: len(rest) // 2], rest[len(rest) // 2], rest[len(rest) // 2 + 1 :]
        adjoint = before(own, state, adjoint)
        last = sub(top, one)
        is_done = compare(row_at(times, last), "EQ", wanted)
        return [wanted, select(is_done, last, top), times, *rows, *adjoint]

    found = _while(
        lambda v: compare(v[first], "GT", _number(0)), turn, own, [turns, top, times, *rows, *adjoint], "backwards"
    )
    return found[len(found) - count :]


def _distance(free: Value, gap: Value) -> Value:
    """How far from a checkpoint to the next one, if a state is wanted that is `gap` iterations later and `free` slots
    are left: as many as binomial checkpointing reaches with one repetition less. Half of the gap if it is so large that
    it takes more than four."""
    length = add(gap, _number(1))
    reach = [_number(1)]
    for k in range(2, 6):  # the number of iterations that k - 1 repetitions reach: "free + k over k - 1"
        reach.append(div(mul(reach[-1], add(free, _number(k))), _number(k - 1)))
    far = div(add(gap, _number(1)), _number(2))
    for step, limit in reversed(list(pairwise(reach))):
        far = select(compare(length, "LE", limit), step, far)
    return select(compare(free, "EQ", _number(0)), gap, far)
