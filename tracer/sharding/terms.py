"""Arrays that are sums: the program that adds the terms that devices have, and the one that makes terms of an array.

An array with `unreduced={x}` in its spec is the sum of the arrays that the devices along x have. In HLO such an array
counts as one that all devices along x have, though their elements differ; only operations that are linear in it use it
(`op_divisions.py`). Two programs convert it, in the code of each device, between the borders of a `shard_map`: an
all-reduce adds the terms; a device's part of an array, in an array of zeros, is its term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.builder import make_constant, make_instruction
from ...hlo.instruction import NO_ATTRIBUTES, Attributes
from ...hlo.ir import HloInstruction
from ...hlo.literal import Literal
from ...hlo.opcode import Opcode
from ...hlo.ops.collective import CollectiveAttributes
from ...hlo.ops.movement import BroadcastAttributes, DynamicSliceAttributes
from ...hlo.shape import Shape
from ..ops import scalar_reducer
from .borders import Border, crossed
from .manual_axes import ManualAxes, current_manual_axes
from .mesh import Mesh
from .partition_spec import axes_of
from .shardings import NONE, NamedSharding, spec_of_axes

Entries = Sequence[tuple[Any, ...]]


def converted(x: HloInstruction, source: NamedSharding, target: NamedSharding) -> tuple[HloInstruction, NamedSharding]:
    """`x`, which is divided as `source`, as the sum that `target` says, and how it is divided then.

    Axes along which terms are added divide the result nowhere; those along which it becomes a sum do not divide it any
    more. How the other axes divide it does not change.
    """
    mesh = target.mesh
    assert isinstance(mesh, Mesh), f"{mesh} has no devices"
    before, after = source.spec.unreduced, target.spec.unreduced
    own = [axes_of(e) for e in source.spec.partitions]
    entries: Entries = [*own, *[()] * (x.shape.rank - len(own))]
    if added := _ordered(mesh, before - after):
        x = _with_terms_added(x, mesh, added)
    if made := _ordered(mesh, after - before):
        x, entries = _with_terms_made(x, mesh, made, entries)
    return x, NamedSharding(mesh, spec_of_axes(entries, after))


def _ordered(mesh: Mesh, axes: frozenset[Any]) -> tuple[Any, ...]:
    return tuple([a for a in mesh.axis_names if a in axes])


def _with_terms_added(x: HloInstruction, mesh: Mesh, axes: tuple[Any, ...]) -> HloInstruction:
    border, manual = _border(mesh, axes, [()] * x.shape.rank)
    part = crossed("full_to_shard", x, x.shape, border)
    reducer = scalar_reducer(Opcode.ADD, x.shape.element)
    attributes = CollectiveAttributes(manual.groups(axes), channel_id=1, use_global_device_ids=True, to_apply=reducer)
    total = _of_devices(Opcode.ALL_REDUCE, [part], attributes, manual)
    return crossed("shard_to_full", total, x.shape, border)


def _with_terms_made(
    x: HloInstruction, mesh: Mesh, axes: tuple[Any, ...], entries: Entries
) -> tuple[HloInstruction, Entries]:
    """Each device has zeros, and in them its part of `x` along `axes`. Along axes that do not divide it, the first
    device has all of it."""
    cut = [tuple([a for a in own if a in axes]) for own in entries]
    kept = [tuple([a for a in own if a not in axes]) for own in entries]
    border, manual = _border(mesh, axes, cut)
    sizes = border.sharding.shard_shape(x.shape.dimensions)
    part = crossed("full_to_shard", x, Shape.array(x.shape.element, sizes), border)
    zero = make_constant(Literal(np.zeros((), x.shape.element.dtype)))
    zeros = make_instruction(Opcode.BROADCAST, [zero], BroadcastAttributes(()), x.shape)
    number = _of_devices(Opcode.PARTITION_ID, [], NO_ATTRIBUTES, manual)
    places = {a: np.array(manual.places(a), np.int32) for a in axes}
    term = part
    if any(cut):
        starts = []
        for own, size in zip(cut, sizes, strict=True):
            place = np.zeros(mesh.size, np.int32)
            for a in own:
                place = place * mesh.shape[a] + places[a]
            starts.append(_of_table(place * size, number))
        term = make_instruction(Opcode.DYNAMIC_UPDATE_SLICE, [zeros, part, *starts])
    others = [places[a] for a in axes if not any(a in own for own in cut)]
    if others:
        is_first = _of_table(np.array(others).max(axis=0) == 0, number)
        everywhere = Shape.array(is_first.shape.element, x.shape.dimensions)
        is_first = make_instruction(Opcode.BROADCAST, [is_first], BroadcastAttributes(()), everywhere)
        term = make_instruction(Opcode.SELECT, [is_first, term, zeros])
    border, _ = _border(mesh, axes, [()] * x.shape.rank)
    return crossed("shard_to_full", term, x.shape, border), kept


def _border(mesh: Mesh, axes: tuple[Any, ...], entries: Entries) -> tuple[Border, ManualAxes]:
    outer = current_manual_axes()
    around = () if outer is None else outer.axes
    names = tuple([a for a in mesh.axis_names if a in axes or a in around])
    sharding = NamedSharding(mesh, spec_of_axes(entries, NONE))
    return Border(sharding, False, axes, around), ManualAxes(mesh, names=names)


def _of_devices(
    opcode: Opcode, operands: Sequence[HloInstruction], attributes: Attributes, manual: ManualAxes
) -> HloInstruction:
    """An instruction about the devices of a `shard_map`."""
    marks = () if (region := manual.region) is None else (("hloom.region", region.to_text()),)
    return make_instruction(opcode, operands, attributes, frontend_attributes=marks)


def _of_table(table: np.ndarray[Any, Any], number: HloInstruction) -> HloInstruction:
    """The scalar of a table with an element for each device."""
    found = make_instruction(
        Opcode.DYNAMIC_SLICE, [make_constant(Literal(np.asarray(table))), number], DynamicSliceAttributes((1,))
    )
    return make_instruction(Opcode.RESHAPE, [found], NO_ATTRIBUTES, Shape.array(found.shape.element))
