"""Derivatives and rules of vmap of `sharding_constraint`, `full_to_shard`, `shard_to_full`; imported to register them.

All three are linear. `full_to_shard` gives an array to several devices where the mesh has axes that its sharding does
not name. Where types do not record the axes along which values vary, its transpose sums the cotangents, and since
`shard_to_full` takes one device's value of many that are equal, its transpose gives each its share.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ..autodiff.batches import Axis
from ..autodiff.tangents import Operand, Tangent, instantiate
from ..tracer import ops
from ..tracer.core import Call, Primitive, Value, bind_call
from ..tracer.sharding.borders import Border
from ..tracer.sharding.calls import (
    CONSTRAINT,
    FULL_TO_SHARD,
    SHARD_TO_FULL,
    constrain,
    full_to_shard,
    shard_to_full,
)
from ..tracer.sharding.manual_axes import ManualAxes
from ..tracer.sharding.mesh import AxisType, Mesh
from ..tracer.sharding.partition_spec import UNCONSTRAINED, axes_of
from ..tracer.sharding.shardings import NamedSharding, Sharding
from .parallel import psum_over_mesh


def _rules(
    primitive: Primitive, again: Callable[[Any, Value], Value], back: Callable[[Any, Value], Value],
    for_batch: Callable[[Any, Value], Any],
) -> None:  # fmt: skip
    """again(params, x): the call on `x`; back(params, cotangent): its transpose."""

    def jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        (t,) = tangents
        return bind_call(call, primals), [again(call.params, instantiate(t))]

    def transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> list[Value | None]:
        (ct,) = cts
        return [None if ct is None else back(call.params, ct)]

    def batch(
        call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
    ) -> tuple[list[Value], list[bool]]:
        (x,), (is_batched,) = operands, batched
        return [again(for_batch(call.params, x) if is_batched else call.params, x)], [is_batched]

    primitive.def_jvp(jvp)
    primitive.def_transpose(transpose)
    primitive.def_batch(batch)


def _whole_batch(sharding: Sharding, first: Any = None) -> Sharding:
    """The sharding of a batch of such arrays."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    spec = sharding.spec.update(partitions=(first, *sharding.spec.partitions))
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def _open_batch(sharding: Sharding, x: Value) -> Sharding:
    """The batch stays divided as it is, if `sharding` leaves its axes."""
    mesh = getattr(sharding, "mesh", None)
    if mesh is not None and AxisType.Auto in mesh.axis_types:
        return _whole_batch(sharding, UNCONSTRAINED)
    first = None if x.aval.division is None else x.aval.division.spec.partitions[0]
    named = sharding.spec.axes() if isinstance(sharding, NamedSharding) else ()
    return _whole_batch(sharding, None if {*axes_of(first)} & {*named} else first)


def _border_of_batch(border: Border, x: Value) -> Border:
    found = _whole_batch(border.sharding)
    assert isinstance(found, NamedSharding)
    return replace(border, sharding=found)


def _sent_back(border: Border, ct: Value) -> Value:
    border = _of_cotangents(border)
    rest, mesh = _unnamed(border), border.sharding.mesh
    if border.shares and rest:
        assert isinstance(mesh, Mesh), f"{mesh} has no devices"
        ct = psum_over_mesh(ct, rest, ManualAxes(mesh, tracks=False, names=(*border.around, *border.names)))
    return shard_to_full(ct, border)


def _shared(border: Border, ct: Value) -> Value:
    part = full_to_shard(ct, _of_cotangents(border))
    count = math.prod([border.sharding.mesh.shape[a] for a in _unnamed(border)])
    return ops.scale(part, 1 / count) if border.shares and count > 1 else part


def _of_cotangents(border: Border) -> Border:
    """The border for cotangents: the cotangent of an unreduced value is reduced, and the other way round."""
    spec = border.sharding.spec
    turned = spec.update(unreduced=spec.reduced, reduced=spec.unreduced)
    return replace(border, sharding=border.sharding.update(spec=turned))


def _unnamed(border: Border) -> tuple[Any, ...]:
    return tuple([a for a in border.names if a not in border.sharding.spec.axes()])


def _unmarked(sharding: Sharding) -> Sharding:
    """How the cotangent of a value in this place is divided: on all devices where the value is a sum of terms."""
    if not isinstance(sharding, NamedSharding):
        return sharding
    return sharding.update(spec=sharding.spec.update(unreduced=set(), reduced=set()))


_rules(CONSTRAINT, lambda s, x: constrain(x, s), lambda s, ct: constrain(ct, _unmarked(s)), _open_batch)
_rules(FULL_TO_SHARD, lambda b, x: full_to_shard(x, b), _sent_back, _border_of_batch)
_rules(SHARD_TO_FULL, lambda b, x: shard_to_full(x, b), _shared, _border_of_batch)
