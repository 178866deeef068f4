"""How often a nest computes a value that several of its members read at shifted indices, as one stencil reads another.

    lap = 4 * u[1:-1] - u[2:] - u[:-2]
    flux = lap[1:] - lap[:-1]
    out = flux[1:] - flux[:-1]

A nest of `out` that has no arrays for `flux` and `lap` computes `flux` at 2 places for each of its elements, and `lap`
at 3: those at which two fluxes meet are one. `extra_work` counts the operations beyond the first time. Against them
stand an array that is written and read, and a start of a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ...ir import HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait, is_elementwise
from .fusible import Dimensions, is_free, squeezed

Resolve = Callable[[HloInstruction], tuple[HloInstruction, Dimensions]]
"""See `fusible.resolve`."""


def extra_work(
    members: Sequence[HloInstruction], shifted: Collection[HloInstruction], again: Collection[HloInstruction],
    resolve: Resolve,
) -> float:  # fmt: skip
    """How many operations a nest of `members`, in program order, does more than once for each of its elements, among
    those `again`; infinite if one of these is expensive or not elementwise, or where the shifts are not known.

    `shifted`: the members that are computed at other indices than the nest's own.
    """
    places: dict[HloInstruction, set[Dimensions]] = {}
    total = 0
    for member in reversed(members):
        own = places.get(member, set()) if member in shifted else {(0,) * len(squeezed(member))}
        if member in again and len(own) > 1 and member.opcode is not Opcode.SLICE and not is_free(member):
            # A pad or a concatenation asks at each place where it is, so that the loop has no vectors.
            if not is_elementwise(member) or has_trait(member.opcode, Trait.EXPENSIVE):
                return float("inf")
            total += len(own) - 1
        for operand in member.operands:
            source, positions = resolve(operand)
            if source not in shifted:
                continue
            found = _places_of_operand(member, operand, own)
            if found is None:
                return float("inf")
            places.setdefault(source, set()).update(tuple([place[p] for p in positions]) for place in found)
    return total


def _places_of_operand(
    user: HloInstruction, operand: HloInstruction, places: set[Dimensions]
) -> set[Dimensions] | None:
    """Where an operand is read, relative to the nest's index, if the user's elements are needed at `places`."""
    if is_elementwise(user) and not is_free(user):
        return places if operand.shape.rank else {()}
    if user.opcode is not Opcode.SLICE or len(squeezed(user)) != len(squeezed(operand)):
        return None
    attributes = user.attributes
    if any(stride != 1 for stride in attributes.strides):
        return None
    sizes = operand.shape.dimensions
    starts = [start for start, size in zip(attributes.start_indices, sizes, strict=True) if size != 1]
    return {tuple([a + b for a, b in zip(place, starts, strict=True)]) for place in places}
