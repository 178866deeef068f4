"""A part of a module as a module of its own: from some values to others, the rest left out.

The values that are given become parameters, in their order; values that are known become constants. Instructions that
the wanted values do not need are gone. The names follow tfcompile: a *feed* is an input from the caller, a *fetch* a
result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from .builder import make_computation, make_constant, make_get_tuple_element, make_module, make_parameter, make_tuple
from .errors import HloError, UnsupportedError
from .instruction import HloInstruction
from .ir import HloModule
from .literal import Literal
from .opcode import Opcode
from .shape import Shape
from .support.records import dataclass


class FeedError(HloError, ValueError):
    """A feed, a fetch or a known value that the module does not have, or that does not fit."""


@dataclass(frozen=True, slots=True)
class Place:
    """A value of the entry computation: an instruction, or an element of one that is a tuple."""

    instruction: HloInstruction
    index: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape of the value."""
        shape = self.instruction.shape
        for k in self.index:
            shape = shape.elements[k]
        return shape


def subgraph(
    module: HloModule, feeds: Sequence[Place], fetches: Sequence[Place], known: Mapping[Place, Literal]
) -> HloModule:
    """The module that computes `fetches`, as a flat tuple of arrays, from `feeds`; `known` values become constants.

    Raises FeedError if a fetch needs a parameter that is neither fed nor known, and UnsupportedError for values that
    are no arrays.
    """
    for place in (*feeds, *fetches):
        if place.shape.is_token:
            raise UnsupportedError(f"{place.instruction.name} is a token, which no caller can hold")
    return _Cut(module, feeds, known).to(fetches)


class _Cut:
    def __init__(self, module: HloModule, feeds: Sequence[Place], known: Mapping[Place, Literal]) -> None:
        self._module = module
        self._new: dict[HloInstruction, HloInstruction] = {}
        self._parts: dict[HloInstruction, dict[tuple[int, ...], HloInstruction]] = {}
        self._parameters = []
        for number, feed in enumerate(feeds):
            parameter = make_parameter(number, feed.shape, _name(feed))
            self._parameters.append(parameter)
            self._give(feed, parameter)
        for place, literal in known.items():
            self._give(place, make_constant(literal))

    def _give(self, place: Place, value: HloInstruction) -> None:
        if place.index:
            self._parts.setdefault(place.instruction, {})[place.index] = value
        else:
            self._new[place.instruction] = value

    def to(self, fetches: Sequence[Place]) -> HloModule:
        for instruction in self._needed(fetches):
            if instruction not in self._new:
                self._new[instruction] = self._made(instruction)
        results = [self._element(self._new[fetch.instruction], fetch.index) for fetch in fetches]
        root = make_tuple([leaf for result in results for leaf in _leaves(result)])
        entry = make_computation("main", root, self._parameters)
        module = make_module(self._module.name, entry)
        return replace(
            module, replica_count=self._module.replica_count, num_partitions=self._module.num_partitions,
            frontend_attributes=self._module.frontend_attributes,
        )  # fmt: skip

    def _needed(self, fetches: Sequence[Place]) -> list[HloInstruction]:
        """The instructions that the fetches need, up to the given values, in order."""
        order: dict[HloInstruction, None] = {}
        stack: list[tuple[HloInstruction, bool]] = [(f.instruction, False) for f in reversed(fetches)]
        while stack:
            instruction, is_done = stack.pop()
            if instruction in self._new or instruction in order:
                continue
            if is_done:
                order[instruction] = None
                continue
            stack.append((instruction, True))
            stack.extend((operand, False) for operand in reversed(instruction.operands))
        return list(order)

    def _made(self, instruction: HloInstruction) -> HloInstruction:
        if instruction.opcode is Opcode.PARAMETER:
            return self._from_parts(instruction, instruction.shape, ())
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            operand = self._new[instruction.operands[0]]
            return make_get_tuple_element(operand, instruction.attributes.index)
        return instruction.with_operands(tuple(self._new[o] for o in instruction.operands))

    def _from_parts(self, parameter: HloInstruction, shape: Shape, index: tuple[int, ...]) -> HloInstruction:
        """A parameter that is a tuple, from its elements, which are given one by one."""
        given = self._parts.get(parameter, {}).get(index)
        if given is not None:
            return given
        if shape.is_tuple:
            return make_tuple([self._from_parts(parameter, s, (*index, k)) for k, s in enumerate(shape.elements)])
        raise FeedError(
            f"a fetch needs {_name(Place(parameter, index))} ({shape}), which is neither fed nor frozen; feed it, or "
            "give its value in freeze="
        )

    def _element(self, instruction: HloInstruction, index: tuple[int, ...]) -> HloInstruction:
        for k in index:
            instruction = make_get_tuple_element(instruction, k)
        return instruction


def _leaves(instruction: HloInstruction) -> list[HloInstruction]:
    if not instruction.shape.is_tuple:
        return [instruction]
    parts = [make_get_tuple_element(instruction, k) for k in range(len(instruction.shape.elements))]
    return [leaf for part in parts for leaf in _leaves(part)]


def _name(place: Place) -> str:
    return ".".join([place.instruction.name, *map(str, place.index)])


__all__ = ["FeedError", "Place", "subgraph"]
