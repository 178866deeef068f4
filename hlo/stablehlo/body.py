"""The operations that are being made of a computation's instructions, and what the opcodes' rules need.

The value of an instruction is an MLIR value, or, where its shape is a tuple, a tuple of these: StableHLO has tuples
only as operands and results of custom calls, so making one and taking it apart are no operations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from ..errors import HloError, UnsupportedError
from ..instruction import HloComputation, HloInstruction
from ..metadata import Metadata
from ..mlir.tree import Attribute, Block, Dense, Location, Operation, Region, Tensor, Type, Value
from ..shape import Shape
from .discardable_attributes import write_discardable
from .types import type_of

Tree: TypeAlias = "Value | tuple[Tree, ...]"


class Functions(Protocol):
    """The whole program, as far as a body needs it."""

    def function(self, computation: HloComputation) -> str:
        """The name of the function that a computation becomes."""

    def rule(self, instruction: HloInstruction) -> Rule:
        """The rule of an instruction. UnsupportedError if there is none."""


Rule = Callable[["Body", HloInstruction], Tree]
"""rule(body, instruction): its value."""


class Body:
    """The operations of one block, in order, and the value of each instruction."""

    def __init__(self, program: Functions, around: Body | None = None) -> None:
        self.program = program
        self.operations: list[Operation] = []
        self.values: dict[HloInstruction, Tree] = {} if around is None else dict(around.values)
        self.location: Location | None = None

    def emit(
        self, name: str, operands: Sequence[Value], types: Sequence[Type],
        attributes: Mapping[str, Attribute] | None = None, regions: Sequence[Region] = (),
    ) -> list[Value]:  # fmt: skip
        """Append an operation; its results."""
        results = [Value(type_) for type_ in types]
        self.operations.append(
            Operation(name, list(operands), results, dict(attributes or {}), list(regions), self.location)
        )
        return results

    def main(
        self, name: str, instruction: HloInstruction, operands: Sequence[Value],
        attributes: Mapping[str, Attribute] | None = None, regions: Sequence[Region] = (),
    ) -> Tree:  # fmt: skip
        """The operation that an instruction is, with its results' types, sharding and frontend attributes."""
        discardable = write_discardable(instruction.frontend_attributes, instruction.annotations)
        types = [type_of(leaf) for leaf in leaf_shapes(instruction.shape)]
        found = self.emit(name, operands, types, {**(attributes or {}), **discardable}, regions)
        return tree_of(instruction.shape, found)

    def leaves(self, instruction: HloInstruction) -> list[Value]:
        """The values that are the value of an instruction."""
        return list(leaves_of(self.values[instruction]))

    def all_leaves(self, instructions: Sequence[HloInstruction]) -> list[Value]:
        """The same of several, one after the other."""
        return [leaf for instruction in instructions for leaf in self.leaves(instruction)]

    def value(self, instruction: HloInstruction) -> Value:
        """The value of an array or a token."""
        found = self.values[instruction]
        assert isinstance(found, Value), f"{instruction} is a tuple"
        return found

    def constant(self, array: np.ndarray[Any, Any], shape: Shape) -> Value:
        """An operation with this value."""
        type_ = type_of(shape)
        assert isinstance(type_, Tensor)
        (found,) = self.emit("stablehlo.constant", (), (type_,), {"value": Dense(type_, array)})
        return found

    def write(self, instruction: HloInstruction) -> Tree:
        """The value of an instruction. Its operands have values already. An error names the instruction."""
        self.location = location_of(instruction.metadata)
        try:
            found = self.program.rule(instruction)(self, instruction)
        except HloError as error:
            if error.instruction is None:
                error.args = (f"{instruction.opcode.value} {instruction.name} in StableHLO: {error}",)
                error.instruction = instruction
            raise
        self.values[instruction] = found
        return found

    def run(self, computation: HloComputation, parameters: Sequence[Tree]) -> Tree:
        """Write a computation's instructions here; the value of its root."""
        kept = self.values
        self.values = dict(zip(computation.parameters, parameters, strict=True))
        for instruction in computation.instructions:
            if instruction not in self.values:
                self.write(instruction)
        found = self.values[computation.root]
        self.values = kept
        return found

    def expanded(self, instruction: HloInstruction) -> Tree:
        """Write a new instruction, after all instructions among its operands that have no value yet."""
        stack = [instruction]
        while stack:
            node = stack[-1]
            missing = [operand for operand in node.operands if operand not in self.values]
            if missing:
                stack.extend(reversed(missing))
            else:
                stack.pop()
                if node not in self.values:
                    self.write(node)
        return self.values[instruction]

    def region(self, computation: HloComputation, captured: Sequence[Tree] | None = None) -> Region:
        """A computation as a region: its parameters are the block's arguments, or values from outside."""
        inner = Body(self.program)
        arguments: list[Value] = []
        if captured is None:
            captured = []
            for parameter in computation.parameters:
                leaves = [Value(type_of(leaf)) for leaf in leaf_shapes(parameter.shape)]
                arguments += leaves
                captured.append(tree_of(parameter.shape, leaves))
        found = inner.run(computation, captured)
        inner.location = None
        inner.emit("stablehlo.return", list(leaves_of(found)), ())
        return Region([Block(arguments, inner.operations)])


def leaf_shapes(shape: Shape) -> Iterator[Shape]:
    """The arrays and tokens in a shape, depth first."""
    if shape.tuple_shapes is None or shape.is_token:
        yield shape
    else:
        for element in shape.tuple_shapes:
            yield from leaf_shapes(element)


def leaves_of(tree: Tree) -> Iterator[Value]:
    """The values in a tree, depth first."""
    if isinstance(tree, Value):
        yield tree
    else:
        for element in tree:
            yield from leaves_of(element)


def tree_of(shape: Shape, values: Sequence[Value]) -> Tree:
    """The tree of a shape with these values as its leaves."""
    left = iter(values)

    def build(part: Shape) -> Tree:
        if part.tuple_shapes is None or part.is_token:
            return next(left)
        return tuple([build(element) for element in part.tuple_shapes])

    return build(shape)


def location_of(metadata: Metadata | None) -> Location | None:
    """Where an instruction comes from."""
    if metadata is None:
        return None
    column = dict(metadata.others).get("source_column", "0")
    if not (metadata.op_name or metadata.source_file):
        return None
    return Location(metadata.op_name, metadata.source_file, metadata.source_line, int(column))


def refuse(why: str) -> Rule:
    """The rule of an opcode that StableHLO does not have."""

    def rule(body: Body, instruction: HloInstruction) -> Tree:
        raise UnsupportedError(why)

    return rule
