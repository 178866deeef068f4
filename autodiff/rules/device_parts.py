"""Residuals within a `shard_map`: each device's own part of something, which no array outside can hold.

A loop keeps its residuals in stacked arrays, and a branch returns them. Both are outside of the `shard_map`, so values
inside are computed again from the whole arrays that were cut. Both choices are made where loops and branches are.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...hlo.builder import make_computation, make_tuple
from ...hlo.effects import effects_of
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...tracer.core import Value, call_of
from ...tracer.recording import run_computation, trace_to_computation
from ...tracer.sharding.calls import FULL_TO_SHARD, SHARD_TO_FULL
from ...tracer.sharding.spmd import named_shardings
from ...tracer.traced import DerivedCache
from ..jvp import parameter_avals
from ..linearize import LinearizedComputation, Residual
from ..residuals import computed_again, plain


def depending(start: Iterable[HloInstruction], computation: HloComputation) -> set[HloInstruction]:
    """`start`, and the instructions that depend on it."""
    found = set(start)
    for i in computation.instructions:
        if any(o in found for o in i.operands):
            found.add(i)
    return found


def values_of_one_device(computation: HloComputation) -> set[HloInstruction]:
    """The instructions within a `shard_map`: from where an array is cut into the devices' parts to where these are
    joined, with the constants that they use."""
    found: set[HloInstruction] = set()
    inside: list[HloInstruction] = []
    for i in computation.instructions:
        primitive = call_of(i.attributes).primitive if i.opcode is Opcode.CALL else None
        if primitive is FULL_TO_SHARD:
            found.add(i)
        elif any(o in found for o in i.operands):
            inside.append(i)
            if primitive is not SHARD_TO_FULL:
                found.add(i)
    if not found:
        return found
    given = depending([*computation.parameters, *effects_of(computation)], computation)
    while inside:
        new = [o for o in inside.pop().operands if o not in found and o not in given]
        found.update(new)
        inside += new
    return found - set(effects_of(computation))


_whole = DerivedCache()


def keeping_whole_arrays(parts: LinearizedComputation) -> LinearizedComputation:
    """The same, with residuals that are no device's own: from these the linear part computes the others again."""
    if not named_shardings(parts.primal):
        return parts
    return _whole.get((parts.primal, parts.linear), (), lambda: (_keeping_whole_arrays(parts), True))


def _keeping_whole_arrays(parts: LinearizedComputation) -> LinearizedComputation:
    body = plain(parts.primal)
    needed = [(body.parameters if r.place == "input" else body.root.operands)[r.index] for r in parts.residuals]
    own = values_of_one_device(body)
    if not any(v in own for v in needed):
        return parts
    again, leaves = computed_again(needed, [i for i in body.instructions if i not in own])
    results = list(body.root.operands[: len(parts.moves)])
    residuals = []
    for leaf in leaves:
        if leaf.opcode is Opcode.PARAMETER:
            residuals.append(Residual("input", leaf.attributes.number))
        else:
            if leaf not in results:
                results.append(leaf)
            residuals.append(Residual("result", results.index(leaf)))
    primal = make_computation(parts.primal.name, make_tuple(results), body.parameters, effects_of(body))
    directions = len(parameter_avals(parts.linear)) - len(parts.residuals)

    def run(values: list[Value]) -> list[Value]:
        return run_computation(parts.linear, [*values[:directions], *run_computation(again, values[directions:])])

    avals = [*parameter_avals(parts.linear)[:directions], *parameter_avals(again)]
    linear = trace_to_computation(run, avals, parts.linear.name).computation
    return LinearizedComputation(primal, parts.captured, tuple(residuals), linear, parts.moves)
