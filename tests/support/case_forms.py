"""Op cases that are alike: those that differ in nothing but their element types, or that bring nothing new.

The layout of an array in memory depends on its dimensions and on how many of its elements are packed in a word, not on
their meaning. So a test of layouts does not compile every type in every layout.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence

from hloom.hlo.element_type import ElementType
from hloom.hlo.tpu_target import WORD_BITS

from hloom.backend_check.op_table import OpCase


def form(case: OpCase, *, packing: bool = False) -> Hashable:
    """The common part of cases of one form: the operation, its attributes but the computations that it applies, and
    all dimensions. With `packing` also how many bits of a word each element takes."""
    shapes = [leaf for shape in (*(a.shape for a in case.arrays), case.result) for leaf in shape.leaves()]
    names = getattr(case.attributes, "__dataclass_fields__", ())
    attributes = [getattr(case.attributes, name) for name in names]
    return (
        case.opcode,
        tuple((leaf.dimensions, min(leaf.element.bit_width, WORD_BITS) if packing else None) for leaf in shapes),
        repr([value for value in attributes if not hasattr(value, "instructions")]),
    )


def element_types(case: OpCase) -> set[ElementType]:
    """The element types of a case's operands and results."""
    return {leaf.element for shape in (*(a.shape for a in case.arrays), case.result) for leaf in shape.leaves()}


def one_of_each_form(cases: Iterable[OpCase]) -> list[OpCase]:
    """The first case of each form."""
    found: dict[Hashable, OpCase] = {}
    for case in cases:
        found.setdefault(form(case), case)
    return list(found.values())


def mixed_forms(cases: Sequence[OpCase]) -> list[OpCase]:
    """One case of each form, in the cases' order. The element types change from form to form, so that each operation
    has most of them, and it is the same choice in each process."""
    chosen = one_of_each_form(sorted(cases, key=lambda case: zlib.crc32(case.id.encode())))
    ids = {case.id for case in chosen}
    return [case for case in cases if case.id in ids]


def new_kinds(cases: Iterable[OpCase]) -> list[OpCase]:
    """The cases with an operation or an element type that no case before them has."""
    seen: set[object] = set()
    found = []
    for case in cases:
        own = {case.opcode, *element_types(case)}
        if not own <= seen:
            found.append(case)
            seen |= own
    return found


def every_second(cases: Iterable[OpCase]) -> list[OpCase]:
    """Of each operation every second case, the first included; and the cases with an element type that is new."""
    count: Counter[object] = Counter()
    types: set[object] = set()
    found = []
    for case in cases:
        own = element_types(case)
        if count[case.opcode] % 2 == 0 or not own <= types:
            found.append(case)
            types |= own
        count[case.opcode] += 1
    return found
