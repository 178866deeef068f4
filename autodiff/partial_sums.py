"""Sums that devices do not add up: functions with `out_sharding=P(..., unreduced={"x"})`.

Each device along x applies the function to its parts of the operands. For a sum over a dimension that x divides, its
result is a term of the whole sum. No data is exchanged, until `reshard` adds the terms.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation
from ..tracer.aval import ShapedArray
from ..tracer.core import Call, Value, bind_call, thread_state
from ..tracer.errors import ShardingTypeError
from ..tracer.jit import jit
from ..tracer.recording import trace_to_computation
from ..tracer.sharding.calls import PARTIAL_SUM
from ..tracer.sharding.lenience import not_refused
from ..tracer.sharding.mesh import Mesh
from ..tracer.sharding.partition_spec import PartitionSpec, axes_of
from ..tracer.sharding.placement import placed
from ..tracer.sharding.shardings import NamedSharding, spec_of_axes
from ..tracer.sharding.summed_axes import Sums, noting
from .sharded import call_over_mesh


def sum_of_parts(
    place: NamedSharding, what: str, compute: Callable[..., Value], operands: Sequence[Value], is_scattered: bool
) -> Value:
    """The result of the function `what`, in a place with unreduced axes. ShardingTypeError unless these axes divide
    dimensions that it sums over. `is_scattered`: it adds the rows of the operands, as it finds their places."""
    axes, mesh = place.spec.unreduced, place.mesh
    assert isinstance(mesh, Mesh), f"{mesh} has no devices"
    kept = [_without_others(v, axes) for v in operands]
    if thread_state().direct:
        found: Value = jit(lambda *values: sum_of_parts(place, what, compute, values, is_scattered))(*kept)
        return found
    with not_refused(), noting() as sums:
        whole = _traced(lambda values: [compute(*values)], kept, what)
    if is_scattered:
        _check_rows(axes, [v.aval for v in operands])
    else:
        _check(axes, sums, what)

    def run(values: list[Value]) -> list[Value]:
        specs = [_part_of(v.aval, axes) for v in values]

        def part(parts: list[Any]) -> Any:
            with not_refused():
                return compute(*parts)

        result = call_over_mesh(
            mesh, part, values, specs, lambda _, leaves: [PartitionSpec(unreduced=axes)] * len(leaves), True, axes
        )
        return [placed(result, place, what)]

    parts = _traced(run, kept, what)
    (total,) = bind_call(Call(PARTIAL_SUM, parts, whole, what), kept)
    return total


def _traced(fun: Callable[[list[Value]], list[Value]], operands: Sequence[Value], name: str) -> HloComputation:
    found = trace_to_computation(fun, [v.aval for v in operands], name, tracks_varying=True)
    if found.captured:
        raise UnsupportedError(f"{name} with unreduced axes in out_sharding uses other arrays than its operands")
    return found.computation


def _check(axes: frozenset[Any], sums: Sequence[Sums], what: str) -> None:
    contracted = [s.contracting_specs for s in sums if s.contracting_specs]
    for lhs, rhs in contracted:
        if lhs != rhs:
            raise ShardingTypeError(
                "lhs and rhs contracting dims should be sharded identically when out_sharding provided to "
                f"dot_general mentions unreduced_axes. Got lhs_contracting_spec={lhs}, rhs_contracting_spec={rhs}"
            )
    found = {a for s in sums for a in s.axes}
    if contracted and found != axes:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be equal to the contracting specs. Got unreduced "
            f"axes={set(axes)} and contracting specs={[lhs for lhs, _ in contracted]}"
        )
    if not axes <= found:
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be in operand's specs that were summed over. Got "
            f"unreduced axes={set(axes)}, summed over {found or 'none'}"
        )


def _check_rows(axes: frozenset[Any], avals: Sequence[ShapedArray]) -> None:
    for aval in avals:
        rows = () if aval.division is None or not aval.ndim else axes_of(aval.division.spec.partitions[0])
        if {*rows} != axes:
            raise ShardingTypeError(
                "out_sharding can only be fully replicated or fully unreduced along the axes that divide the rows. "
                f"Got unreduced axes={set(axes)} and {aval.str_short()}"
            )


def _without_others(value: Value, axes: frozenset[Any]) -> Value:
    """The value with its terms added along all axes but these."""
    division = value.aval.division
    if division is None or division.spec.unreduced <= axes:
        return value
    spec = division.spec.update(unreduced=division.spec.unreduced & axes)
    return placed(value, division.update(spec=spec), "reshard")


def _part_of(aval: ShapedArray, axes: frozenset[Any]) -> PartitionSpec:
    """How these axes divide a value of this type."""
    if aval.division is None:
        return PartitionSpec()
    spec = aval.division.spec
    own = [[a for a in axes_of(e) if a in axes] for e in spec.partitions]
    return spec_of_axes(own, spec.unreduced & axes)
