"""How an instruction is shared among the devices: the cheapest of a few assignments of axes to its factors.

The candidates follow the result's sharding first, or the operands' first, one after the other. The price is the number
of bytes that the devices send: to bring the operands into the shape that the assignment needs, to add up terms, to
bring the result into its own sharding. A little is added for the bytes that each device reads and writes, so that work
is shared where that costs nothing, and much for its multiplications: a product is not computed twice to save an
exchange.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...opcode import Opcode
from .axes import Axes, DeviceMesh, Spec
from .propagation import Assignment, Node
from .reshard import cost_of, steps_between

_WORK = 1 / 16
"""The price of a byte that a device reads or writes, beside one that it sends."""
_PRODUCT = 1.0
"""The same of a multiplication and addition in a product of arrays."""
_PRODUCTS = frozenset({Opcode.DOT, Opcode.CONVOLUTION})


class Finish(NamedTuple):
    """How terms of a result are added up."""

    scatters: tuple[tuple[int, Axes], ...]
    """Dimensions along which each device gets a part of the sum, and the axes."""
    reduced: Axes
    """The other axes: every device gets the sum."""
    spec: Spec
    """The sharding afterwards."""


def finish_of(summed: Axes, spec: Spec, wanted: Spec) -> Finish:
    """The treatment of terms that are cut as `spec`, so that the sum is close to `wanted`."""
    rest = list(summed)
    scatters = []
    found = list(spec)
    for d, axes in enumerate(wanted):
        has = len(found[d])
        if axes[:has] != found[d]:
            continue
        end = has
        while end < len(axes) and axes[end] in rest:
            rest.remove(axes[end])
            end += 1
        if end > has:
            scatters.append((d, axes[has:end]))
            found[d] = axes[:end]
    return Finish(tuple(scatters), tuple(rest), tuple(found))


def choose(mesh: DeviceMesh, node: Node, can_sum: bool, summed_whole: bool) -> Assignment:
    """The cheapest assignment. `can_sum`: devices may make terms of the results. `summed_whole`: the terms are gathered
    and combined by each device, since no collective applies the computation that combines them."""
    if not any(axes for value in node.values for axes in value.spec):
        return Assignment(mesh, node.factors)
    operands = sorted(range(len(node.operands)), key=lambda k: -node.operands[k].byte_size)
    results = range(len(node.operands), len(node.values))
    orders: dict[tuple[int, ...], None] = {(*results, *operands): None, (*operands, *results): None}
    for k in operands[1:3]:
        orders[(k, *(o for o in operands if o != k), *results)] = None
    best, least = None, 0.0
    seen: list[dict[int, Axes]] = []
    for order in orders:
        for with_sums in (True, False) if can_sum and node.factors.summed else (False,):
            assignment = _assigned(mesh, node, order, with_sums)
            if assignment.axes in seen:
                continue
            seen.append(assignment.axes)
            price = _price(mesh, node, assignment, summed_whole)
            if best is None or price < least:
                best, least = assignment, price
    assert best is not None
    return best


def _assigned(mesh: DeviceMesh, node: Node, order: Sequence[int], with_sums: bool) -> Assignment:
    assignment = Assignment(mesh, node.factors, own=node.own)
    for k in order:
        assignment.claim(node.factors.arrays[k], node.values[k].spec)
        if not with_sums:
            for factor in node.factors.summed:
                assignment.axes.pop(factor, None)
    assignment.settle()
    return assignment


def _price(mesh: DeviceMesh, node: Node, assignment: Assignment, summed_whole: bool) -> float:
    price = 0.0
    if node.instruction is not None and node.instruction.opcode in _PRODUCTS:
        shared = mesh.parts(tuple([a for axes in assignment.axes.values() for a in axes]))
        price += _PRODUCT * math.prod(node.factors.sizes) / shared
    arrays = list(zip(node.factors.arrays, node.values, strict=True))
    for dims, value in arrays[: len(node.operands)]:
        spec = assignment.spec(dims)
        price += cost_of(mesh, steps_between(mesh, value.spec, spec), _part(mesh, value.byte_size, value.spec))
        price += _WORK * _part(mesh, value.byte_size, spec)
    for dims, value in arrays[len(node.operands) :]:
        spec = assignment.spec(dims)
        size = _part(mesh, value.byte_size, spec)
        price += _WORK * size
        summed = assignment.summed
        if summed and summed_whole:
            price += size * (mesh.parts(summed) - 1)
        elif summed:
            finish = finish_of(summed, spec, value.spec)
            for _, axes in finish.scatters:
                count = mesh.parts(axes)
                price += size * (count - 1) / count
                size /= count
            count = mesh.parts(finish.reduced)
            price += 2 * size * (count - 1) / count
            spec = finish.spec
        price += cost_of(mesh, steps_between(mesh, spec, value.spec), size)
    return price


def _part(mesh: DeviceMesh, size: float, spec: Spec) -> float:
    """The bytes of a device's part."""
    return size / mesh.parts(tuple([a for axes in spec for a in axes]))
