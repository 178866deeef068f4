"""Collectives over axes of a mesh, as HLO: `psum` and the others within `shard_map` over several devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..hlo.element_type import element_type_of
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.collective import CollectiveAttributes
from ..hlo.passes.rewrite import rewrite_computation
from ..hlo.support.records import dataclass
from ..tracer import dtypes, ops
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.core import Value, bind
from ..tracer.recording import trace_to_computation
from ..tracer.sharding.manual_axes import ManualAxes


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective; the fields describe a use of its primitive."""

    name: str
    axes: tuple[Hashable, ...]
    size: int
    dims: tuple[int, ...]
    permutation: tuple[tuple[int, int], ...]
    manual: ManualAxes
    places: tuple[tuple[int, ...], ...] = ()
    """Groups of places along the one axis; () for all of them together."""

    def attributes(self, **others: Any) -> CollectiveAttributes:
        """The attributes of an instruction between the devices of each group. The number of the channel is the same for
        all: devices do their collectives in one order."""
        groups = self.manual.groups(self.axes, self.places)
        return CollectiveAttributes(groups, channel_id=1, use_global_device_ids=True, **others)


@lru_cache(maxsize=512)
def collective_computation(kind: Collective, operands: tuple[ShapedArray, ...], result: ShapedArray) -> HloComputation:
    """The computation of operands and a result of these types."""
    rule = _RULES[kind.name]
    found = trace_to_computation(lambda values: [rule(kind, values, result)], operands, kind.name).computation
    region = kind.manual.region
    return found if region is None else _in_region(found, region.to_text())


def _in_region(computation: HloComputation, region: str) -> HloComputation:
    """The computation within a `shard_map` over some axes: instructions about devices carry its name, for the
    partitioner."""

    def visit(old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if moved.opcode is not Opcode.PARTITION_ID and not isinstance(moved.attributes, CollectiveAttributes):
            return moved
        return replace(moved, frontend_attributes=(("hloom.region", region),))

    return rewrite_computation(computation, visit)


on_clear(collective_computation.cache_clear)


def _reduced(opcode: Opcode) -> Callable[[Collective, Sequence[Value], ShapedArray], Value]:
    def rule(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
        (x,) = values
        reducer = ops.scalar_reducer(opcode, element_type_of(x.aval.dtype))
        return bind(Opcode.ALL_REDUCE, [x], kind.attributes(to_apply=reducer), weak_type=False)

    return rule


def _permuted(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    (axis,) = kind.axes
    pairs = kind.manual.pairs(axis, kind.permutation)
    return bind(Opcode.COLLECTIVE_PERMUTE, values, CollectiveAttributes(channel_id=1, source_target_pairs=pairs))


def _gathered(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    (x,), (place,) = values, kind.dims
    shape = x.aval.shape
    x = ops.reshape(x, [*shape[:place], 1, *shape[place:]])
    return bind(Opcode.ALL_GATHER, [x], kind.attributes(dimension=place), shape=result.hlo)


def _sum_scattered(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    (x,), (d,) = values, kind.dims
    shape = x.aval.shape
    reducer = ops.scalar_reducer(Opcode.ADD, element_type_of(x.aval.dtype))
    part = ShapedArray((*shape[:d], 1, *shape[d + 1 :]), x.aval.dtype).hlo
    found = bind(Opcode.REDUCE_SCATTER, [x], kind.attributes(dimension=d, to_apply=reducer), shape=part)
    return ops.reshape(found, result.shape)


def _exchanged(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    (x,), (split, concat) = values, kind.dims
    found = bind(Opcode.ALL_TO_ALL, [x], kind.attributes(dimension=split))
    order = [d for d in range(x.aval.ndim) if d != split]
    order.insert(concat, split)
    return ops.transpose(found, order)


def _index(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    (axis,) = kind.axes
    number = ops.convert(bind(Opcode.PARTITION_ID, []), dtypes.int32)
    places = np.array(kind.manual.places(axis), np.int32)
    stride = max(1, int(np.argmax(places == 1)))
    if (places == np.arange(len(places)) // stride % kind.size).all():
        own = bind(Opcode.DIVIDE, [number, ops.scalar_like(number, stride)])
        return bind(Opcode.REMAINDER, [own, ops.scalar_like(own, kind.size)])
    found: Value = ops.scalar_like(number, 0)
    for device, place in enumerate(places):
        if place:
            is_here = ops.compare(number, "EQ", ops.scalar_like(number, device))
            found = ops.select(is_here, ops.scalar_like(number, int(place)), found)
    return found


def _varied(kind: Collective, values: Sequence[Value], result: ShapedArray) -> Value:
    return values[0]


_RULES: dict[str, Callable[[Collective, Sequence[Value], ShapedArray], Value]] = {
    "psum": _reduced(Opcode.ADD),
    "pmax": _reduced(Opcode.MAXIMUM),
    "pmin": _reduced(Opcode.MINIMUM),
    "ppermute": _permuted,
    "all_gather": _gathered,
    "psum_scatter": _sum_scattered,
    "all_to_all": _exchanged,
    "axis_index": _index,
    "pvary": _varied,
}
"""By the name of the primitive."""
