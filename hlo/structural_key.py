"""A key of a computation: equal for computations that do the same, instruction by instruction, up to names.

Programs that are traced again each time, such as the body of a loop that is a lambda, are found by it when they come
again. Keys are compared in full, so no two different programs have the same.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import fields
from typing import Any

from .instruction import NO_ATTRIBUTES, HloComputation, HloInstruction
from .opcode import Opcode
from .ops.control_flow import Composite


def structural_key(computation: HloComputation) -> Hashable | None:
    """The key; None for a computation that may do something else the next time: the function of a custom call can be
    replaced."""
    found: dict[HloComputation, int] = {}
    parts: list[Hashable] = []
    return tuple(parts) if _add(computation, found, parts) else None


def _add(computation: HloComputation, found: dict[HloComputation, int], parts: list[Hashable]) -> bool:
    """Append the called computations, then the computation itself; in `found`, the position of each. False if it has no
    key."""
    position: dict[HloInstruction, int] = {}
    rows: list[Hashable] = []
    for i in computation.instructions:
        if i.opcode is Opcode.CUSTOM_CALL:
            return False
        attributes: Hashable = i.attributes
        if attributes is not NO_ATTRIBUTES and (called := i.called_computations()):
            for each in called:
                if each not in found and not _add(each, found, parts):
                    return False
            attributes = _attributes_key(i.attributes, found)
        operands = tuple([position[o] for o in i.operands])
        rows.append((i.opcode, i.shape, attributes, operands, i.frontend_attributes, i.annotations))
        position[i] = len(position)
    found[computation] = len(found)
    parts.append((position[computation.root], *rows))
    return True


def _attributes_key(attributes: Any, found: dict[HloComputation, int]) -> Hashable:
    """Attributes with the positions of the computations that they name. The rule of a composite is for transformations,
    and is left out."""
    values: list[Any] = [type(attributes)]
    for field in fields(attributes):
        value = getattr(attributes, field.name)
        if isinstance(value, HloComputation):
            values.append(found[value])
        elif isinstance(value, Composite):
            values.append((value.name, value.parameters))
        elif isinstance(value, tuple) and value and isinstance(value[0], HloComputation):
            values.append(tuple([found[c] for c in value]))
        else:
            values.append(value)
    return tuple(values)
