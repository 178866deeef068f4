"""Batches of while and conditional.

The predicate may be the same for all elements: then the loop or branch keeps its form, on batches. Or each element
decides for itself: a loop then runs until all elements are done, and those that are done keep their state; of a
conditional all branches run, and each element selects its results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, Metadata
from ...hlo.opcode import Opcode
from ...hlo.ops.control_flow import ConditionalAttributes, WhileAttributes
from ...hlo.shape import Shape
from ...hlo.support.records import dataclass
from ...tracer import dtypes
from ...tracer.aval import ShapedArray, aval_of_shape
from ...tracer.core import Call, Value, bind, bind_conditional, bind_while, call_of
from ...tracer.ops import broadcast, compare, full_like, reduce_with, scalar, select, zeros
from ...tracer.recording import (
    closed_computation,
    returns_element,
    run_computation,
    takes_one_tuple,
    trace_to_computation,
)
from ...tracer.settings.context import current_context
from ...tracer.traced import DerivedCache, are_known
from ..batches import Axis, batched_avals, first_where, with_batch
from ..batching import BatchedComputation, Mask, batch_computation
from ..jvp import FlatFunction, parameter_avals
from ..stopping import stop_gradient
from .adjoint_loop import ADJOINT, AdjointLoop, bind_adjoint, with_longer_state
from .control_flow import any_of, bind_branches
from .tables import BATCH
from .while_loop import handed_on, sources

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
    # A value that all branches return unchanged is the same for all elements if it was before.
    same = [s[0] if len(set(s)) == 1 else None for s in zip(*map(sources, branches), strict=True)]
    moves = tuple([m if k is None else batched[1 + k] for m, k in zip(moves, same, strict=True)])
    made = [batch_computation(b, axis, batched[1:], moves) for b in branches]
    if not batched[0]:
        given = [[*inputs, *m.captured] for m in made]
        return bind_branches(index, [m.computation for m in made], given), list(moves)
    _refuse_actions("IO effect not supported in vmap-of-cond", *branches)
    which = _elements_of_branches(index, len(branches))
    found = [_run_branch(axis, m, own, inputs, batched[1:]) for m, own in zip(made, which, strict=True)]
    results = [
        _chosen(which, values) if k is None else inputs[k]
        for values, k in zip(zip(*found, strict=True), same, strict=True)
    ]
    return results, list(moves)


def _refuse_actions(what: str, *computations: HloComputation) -> None:
    """NotImplementedError for a call that acts on the world: it would act for elements that do not take part."""
    for computation in computations:
        for i in effects_of(computation):
            if i.opcode is _O.CALL and call_of(i.attributes).primitive.is_exactly_once:
                name, place = call_of(i.attributes).primitive.name, i.metadata or Metadata()
                raise NotImplementedError(
                    f"{what}: each element decides for itself, so all elements run, also those that the {name} at "
                    f"{place.source_file}:{place.source_line} is not meant for. Use hloom.lax.map in place of vmap, "
                    "or a debug callback."
                )
            _refuse_actions(what, *i.called_computations())


def _elements_of_branches(index: Value, count: int) -> list[Value]:
    """For each branch, which elements take it. pred: branch 0 when true; s32: the last branch when out of range."""
    if index.aval.dtype == np.bool_:
        return [index, bind(_O.NOT, (index,))]
    found = [compare(index, "EQ", full_like(index, k)) for k in range(count - 1)]
    others = found[0]
    for more in found[1:]:
        others = bind(_O.OR, (others, more))
    return [*found, bind(_O.NOT, (others,))]


def _run_branch(
    axis: Axis, branch: BatchedComputation, own: Value, inputs: Sequence[Value], batched: Sequence[bool]
) -> list[Value]:
    """The results of a branch on all elements; only the elements that take it, `own`, use them.

    The others must do no harm. No derivative reaches the inputs from them: it may be infinite, or not a number. And
    checkify must find no fault in them: they work on the inputs of one that takes the branch, if there is one.
    """
    taken = reduce_with(_O.OR, own, scalar(False, np.dtype(np.bool_)), (0,))
    is_checked = bool(current_context().checks)
    given = [
        _select(own if b else taken, x, stop_gradient(_of_one(axis, own, x) if b and is_checked else x))
        if dtypes.is_inexact(x.aval.dtype) or (b and is_checked)
        else x
        for x, b in zip(inputs, batched, strict=True)
    ]
    values = [*given, *branch.captured]
    if not is_checked:
        return run_computation(branch.computation, values)
    results = [o.shape for o in branch.computation.root.operands]
    nothing = trace_to_computation(
        lambda _: [zeros(aval_of_shape(s)) for s in results], [v.aval for v in values], "not_taken"
    )
    computations = [takes_one_tuple(c) for c in (branch.computation, nothing.computation)]
    return bind_conditional(computations, taken, values)


def _without_derivative(own: Value, batch: Value) -> Value:
    """The same values, for which only the elements `own` have derivatives."""
    return _select(own, batch, stop_gradient(batch)) if dtypes.is_inexact(batch.aval.dtype) else batch


def _of_one(axis: Axis, which: Value, value: Value) -> Value:
    """A batch of the value of one element: of the first of `which`."""
    (one,) = first_where(which, [value])
    return with_batch(axis, one, False)


def _chosen(which: Sequence[Value], results: Sequence[Value]) -> Value:
    """For each element, the result of its branch."""
    chosen = results[-1]
    for own, result in reversed(list(zip(which[:-1], results[:-1], strict=True))):
        chosen = _select(own, result, chosen)
    return chosen


def _select(which: Value, on_true: Value, on_false: Value) -> Value:
    """`select` by one predicate for each element of the batch, or for all."""
    if on_true is on_false:
        return on_true
    return select(broadcast(which, on_true.aval.shape, range(which.aval.ndim)), on_true, on_false)


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
        if each_decides:
            _refuse_actions(
                "IO effect not supported in while_loop with batched predicate", attributes.body, attributes.condition
            )
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
        going, given = values[-1], values[:split]
        if current_context().checks:  # elements that are done work on the state of one that is not: no fault is theirs
            parts = zip(state, values, strict=False)
            given[:count] = [_select(going, v, _of_one(axis, going, v)) if b else v for b, v in parts]
        else:  # no derivative comes back from an iteration that an element does not make: it may be infinite
            given[:count] = [_without_derivative(going, v) if b else v for b, v in zip(state, values, strict=False)]
        new = run_computation(body.computation, given)
        changes = zip(new, values, fixed, strict=False)
        kept = [old if same else _select(going, n, old) for n, old, same in changes] + values[count:-1]
        return [*kept, *decide(kept)]

    def any_goes_on(values: list[Value]) -> list[Value]:
        return [reduce_with(_O.OR, values[-1], scalar(False, np.dtype(np.bool_)), (0,))]

    def closed(run: FlatFunction, avals: Sequence[ShapedArray], old: BatchedComputation) -> HloComputation:
        return closed_computation(run, avals, old.computation.name)

    types = [*every, ShapedArray((axis.size,), np.bool_)] if each_decides else every
    loop = _BatchedLoop(
        takes_one_tuple(returns_element(closed(any_goes_on if each_decides else decide, types, condition))),
        takes_one_tuple(closed(some_go_on if each_decides else all_go_on, types, body)),
        state,
        captured,
        closed(decide, every, condition) if each_decides else None,
    )
    return loop, are_known(captured)


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


@ADJOINT.def_batch
def _adjoint_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    """The adjoint loop of the loop on batches: iterations that an element does not make leave its adjoint as it is."""
    rule: AdjointLoop = call.params
    count = rule.count
    loop = _batched_loop(rule.loop, axis, tuple(batched[:count]))
    each_decides = loop.decide is not None
    given, moves = operands[count:], tuple([b or each_decides for b in batched[count:]])

    def make() -> tuple[tuple[WhileAttributes, HloComputation, Mask, tuple[Value, ...]], bool]:
        mask = moves
        while True:
            step = batch_computation(rule.back, axis, (*loop.state, *mask), mask)
            if step.batched == mask:
                break
            mask = step.batched
        every = WhileAttributes(loop.condition, loop.body)
        longer = with_longer_state(every, [c.aval for c in step.captured])
        states = parameter_avals(longer.body)
        going, outside = count + len(loop.captured), len(states) - len(step.captured)

        def back(values: list[Value]) -> list[Value]:
            state, later = values[:count], values[len(states) :]
            used = later
            if each_decides:
                on = values[going]
                state = [_without_derivative(on, v) if b else v for v, b in zip(state, loop.state, strict=True)]
                used = [_without_derivative(on, v) for v in later]
            earlier = run_computation(step.computation, [*state, *used, *values[outside : len(states)]])
            if not each_decides:
                return earlier
            return [_select(on, new, old) for new, old in zip(earlier, later, strict=True)]

        adjoints = batched_avals(axis, parameter_avals(rule.back)[count:], mask)
        closed = closed_computation(back, [*states, *adjoints], step.computation.name)
        known = are_known(step.captured)
        return (longer, closed, mask, step.captured), known

    key = ("adjoint", axis, loop.state, moves)
    longer, back, mask, captured = _loops.get((loop.body, loop.condition, rule.back), key, make)
    pairs = zip(operands[:count], batched[:count], loop.state, strict=True)
    start = [*(with_batch(axis, x, b) if s else x for x, b, s in pairs), *loop.captured]
    if loop.decide is not None:
        start += run_computation(loop.decide, start)
    triples = zip(given, batched[count:], mask, strict=True)
    adjoint = [with_batch(axis, x, b) if m else x for x, b, m in triples]
    return bind_adjoint(longer, back, [*start, *captured], adjoint), list(mask)
