"""The constraints on fusion that make in-place updates possible, for one computation at a time."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field

from ...ir import HloComputation
from ...opcode import Opcode
from ...support.records import dataclass
from .fusible import is_free
from .overwriting import Leaf, Overwriting
from .temporaries import LARGE_STATE_BYTES, temporaries


@dataclass(frozen=True, slots=True)
class InPlace:
    """The constraints on fusion that make in-place updates possible. Instructions by their position in the program."""

    waits: Mapping[int, Collection[int]] = field(default_factory=dict)
    """By update: the readers of the array that it overwrites. They run before."""
    apart: Collection[int] = frozenset()
    """The instructions that no user takes into its nest: see `temporaries.py`."""
    states: Collection[int] = frozenset()
    """In the body of a loop: the instructions that compute a large element of the next state."""
    replaced: Mapping[int, Leaf] = field(default_factory=dict)
    """For two or more of these: the old value of each."""
    leaves: Mapping[int, tuple[Leaf, ...]] = field(default_factory=dict)
    """The arrays that each instruction's result consists of, if there is more than one such element."""


MANY_ELEMENTS = 64
"""The readers of a smaller array may be fused with instructions that run after control flow that overwrites it: copying
it once is cheaper than a nest."""


def in_place_of(
    computation: HloComputation, found: Overwriting | None, in_loop: bool
) -> tuple[HloComputation, InPlace]:
    """The computation in an order that runs each update after the readers of the array that it overwrites."""
    if found is None:
        return computation, InPlace()
    ordered = computation
    if tuple(found.order) != computation.instructions:
        ordered = HloComputation(computation.name, tuple(found.order), computation.root)
    number = {instruction: n for n, instruction in enumerate(found.order)}
    waits: dict[int, list[int]] = {}
    for update, arrays in found.overwritten.items():
        control_flow = update.opcode in (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)
        for leaf, readers in arrays.items():
            if not control_flow or (in_loop and found.shapes[leaf].num_elements >= MANY_ELEMENTS):
                waits.setdefault(number[update], []).extend(number[r] for r in readers if not is_free(r))
    apart = frozenset([number[i] for i in temporaries(found)])
    replaced = {number[i]: leaf for i, leaf in found.replaced.items() if i.shape.byte_size >= LARGE_STATE_BYTES}
    states = frozenset(replaced)
    if len(replaced) < 2:
        return ordered, InPlace(waits, apart, states)
    return ordered, InPlace(waits, apart, states, replaced, {number[i]: leaves for i, leaves in found.leaves.items()})
