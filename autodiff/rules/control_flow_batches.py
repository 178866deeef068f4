"""Batches of while and conditional.

What decides may be the same for all elements: then the loop or branch remains what it is, on batches. Or each element
decides for itself: a loop then runs until all elements are done, and those that are done keep their state; of a
conditional all branches run, and each element selects its results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...hlo.ir import HloComputation
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from ...hlo.shape import Shape
from ...tracer.aval import ShapedArray
from ...tracer.core import Tracer, Value, bind_conditional, bind_while
from ...tracer.ops import broadcast, compare, reduce_with, scalar, scalar_like, select
from ...tracer.recording import returns_element, run_computation, takes_one_tuple, trace_to_computation
from ...tracer.traced import DerivedCache
from ..batches import Axis, batched_avals, with_batch
from ..batching import BatchedComputation, Mask, batch_computation
from ..jvp import FlatFunction, parameter_avals
from .control_flow import any_of, handed_on, shared_branches
from .tables import BATCH

_O = Opcode


# --- conditional


@BATCH.register(_O.CONDITIONAL)
def _conditional_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: ConditionalAttributes, shape: Shape
) -> tuple[list[Value], list[bool]]:
    index, *inputs = operands
    branches = attributes.branch_computations
    masks = [batch_computation(b, axis, batched[1:]).batched for b in branches]
    moves = (True,) * len(masks[0]) if batched[0] else any_of(masks)
    made = [batch_computation(b, axis, batched[1:], moves) for b in branches]
    if not batched[0]:
        computations, values = shared_branches([m.computation for m in made], [[*inputs, *m.captured] for m in made])
        return bind_conditional(computations, index, values), list(moves)
    found = [run_computation(m.computation, [*inputs, *m.captured]) for m in made]
    return [_chosen(index, results) for results in zip(*found, strict=True)], list(moves)


def _chosen(index: Value, results: Sequence[Value]) -> Value:
    """For each element, the result of its branch. pred: branch 0 when true; s32: the last branch when out of range."""
    if index.aval.dtype == np.bool_:
        return _select(index, results[0], results[1])
    chosen = results[-1]
    for k, result in enumerate(results[:-1]):
        is_k = compare(index, "EQ", broadcast(scalar_like(index, k), index.aval.shape, ()))
        chosen = _select(is_k, result, chosen)
    return chosen


def _select(which: Value, on_true: Value, on_false: Value) -> Value:
    """`select` by one predicate for each element of the batch."""
    if on_true is on_false:
        return on_true
    return select(broadcast(which, on_true.aval.shape, (0,)), on_true, on_false)


# --- while


@dataclass(frozen=True, slots=True)
class _BatchedLoop:
    """A loop on the state, `captured`, which it does not change, and, if each element decides, whether it goes on."""

    condition: HloComputation
    body: HloComputation
    state: Mask
    captured: tuple[Value, ...]
    decide: HloComputation | None
    """If each element decides: from the state and `captured`, which elements go on."""


_loops = DerivedCache()


def _batched_loop(attributes: WhileAttributes, axis: Axis, batched: Mask) -> _BatchedLoop:
    """The loop on batches; made once, so that it is compiled once."""
    return _loops.get(
        (attributes.body, attributes.condition), (axis, batched), lambda: _make_loop(attributes, axis, batched)
    )


def _make_loop(attributes: WhileAttributes, axis: Axis, batched: Mask) -> tuple[_BatchedLoop, bool]:
    """A part of the state is batched if it starts so, if an iteration makes it so, or if it changes while some elements
    are done already."""
    state, fixed = batched, handed_on(attributes.body)
    while True:
        body = batch_computation(attributes.body, axis, state, state)
        condition = batch_computation(attributes.condition, axis, state)
        (each_decides,) = condition.batched
        grown = tuple([n or (each_decides and not f) for n, f in zip(body.batched, fixed, strict=True)])
        if grown == state:
            break
        state = grown
    avals = batched_avals(axis, parameter_avals(attributes.body), state)
    count, split = len(avals), len(avals) + len(body.captured)
    captured = (*body.captured, *condition.captured)
    every = [*avals, *(c.aval for c in captured)]

    def decide(values: list[Value]) -> list[Value]:
        return run_computation(condition.computation, [*values[:count], *values[split : len(every)]])

    def all_go_on(values: list[Value]) -> list[Value]:
        return [*run_computation(body.computation, values[:split]), *values[count:]]

    def some_go_on(values: list[Value]) -> list[Value]:
        new, going = run_computation(body.computation, values[:split]), values[-1]
        changes = zip(new, values, fixed, strict=False)
        kept = [old if same else _select(going, n, old) for n, old, same in changes] + values[count:-1]
        return [*kept, *decide(kept)]

    def any_goes_on(values: list[Value]) -> list[Value]:
        return [reduce_with(_O.OR, values[-1], scalar(False, np.dtype(np.bool_)), (0,))]

    types = [*every, ShapedArray((axis.size,), np.bool_)] if each_decides else every
    loop = _BatchedLoop(
        _condition(_closed(any_goes_on if each_decides else decide, types, condition)),
        takes_one_tuple(_closed(some_go_on if each_decides else all_go_on, types, body)),
        state,
        captured,
        _closed(decide, every, condition) if each_decides else None,
    )
    return loop, not any(isinstance(c, Tracer) for c in captured)


def _closed(run: FlatFunction, avals: Sequence[ShapedArray], old: BatchedComputation) -> HloComputation:
    traced = trace_to_computation(run, avals, old.computation.name)
    assert not traced.captured, "a loop gets all that it uses as its state"
    return traced.computation


def _condition(computation: HloComputation) -> HloComputation:
    """A condition of one tuple."""
    return takes_one_tuple(returns_element(computation))


@BATCH.register(_O.WHILE)
def _while_batch(
    axis: Axis, operands: Sequence[Value], batched: Sequence[bool], attributes: WhileAttributes, shape: Shape
) -> tuple[list[Value], list[bool]]:
    loop = _batched_loop(attributes, axis, tuple(batched))
    pairs = zip(operands, batched, loop.state, strict=True)
    start = [with_batch(axis, x, b) if s else x for x, b, s in pairs]
    given = [*start, *loop.captured]
    if loop.decide is not None:
        given += run_computation(loop.decide, given)
    return bind_while(loop.condition, loop.body, given)[: len(start)], list(loop.state)
