"""The computation that is being made of a block of operations, and what its operations' rules need.

Every value of the block is an instruction. Sizes that the types write `?` are not asked for: HLO's shape rules infer
them from the operands (`refine.py` knows the operations whose result they do not determine).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ..builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple
from ..effects import has_side_effect
from ..errors import HloError, ShapeError, UnsupportedError
from ..instruction import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction
from ..metadata import Metadata
from ..mlir.tree import DYNAMIC, Block, Location, Operation, Region, Tensor, Type, Value
from ..opcode import Opcode
from ..ops.collective import COLLECTIVES
from ..shape import Shape
from ..shardy import NamedMesh
from ..support.records import dataclass
from .discardable_attributes import read_discardable
from .refine import folded
from .types import fits, shape_of, type_text


class Program(Protocol):
    """The whole program, as far as a scope needs it."""

    is_refined: bool
    """Whether types may have sizes `?`: integers that are computed from constants are then constants themselves."""

    meshes: Mapping[str, NamedMesh]

    def computation(self, name: str, operands: Sequence[HloInstruction] | None) -> HloComputation:
        """The function `@name` as a computation, for these operands; None: for arguments of its own types."""

    def rule(self, operation: Operation) -> Rule:
        """The rule of an operation. UnsupportedError if there is none."""


Rule = Callable[["Scope", Operation], Sequence[HloInstruction]]
"""rule(scope, operation): the instructions of the operation's results."""


@dataclass(frozen=True, slots=True)
class Discardable:
    """An operation's discardable attributes and its location, as an instruction has them."""

    metadata: Metadata | None = None
    frontend_attributes: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()


class Scope:
    """The instructions of one computation, in order, and the instruction of each value."""

    def __init__(self, program: Program, name: str) -> None:
        self.program = program
        self.name = name
        self.values: dict[Value, HloInstruction] = {}
        self.instructions: list[HloInstruction] = []
        self.discardable = Discardable()
        """Those of the operation that is being read."""

    # ---- making instructions

    def add(self, instruction: HloInstruction) -> HloInstruction:
        """Append an instruction; its operands are there."""
        self.instructions.append(instruction)
        return instruction

    def op(
        self, opcode: Opcode, operands: Sequence[HloInstruction] = (), attributes: Attributes = NO_ATTRIBUTES,
        shape: Shape | None = None, discardable: Discardable | None = None,
    ) -> HloInstruction:  # fmt: skip
        """Append an instruction with an inferred shape, which must agree with `shape` if that is given."""
        discardable = discardable or Discardable(self.discardable.metadata)
        made = make_instruction(
            opcode, operands, attributes, shape, metadata=discardable.metadata,
            frontend_attributes=discardable.frontend_attributes, annotations=discardable.annotations,
        )  # fmt: skip
        return self.add(folded(made) if self.program.is_refined else made)

    def main(
        self, opcode: Opcode, operands: Sequence[HloInstruction], attributes: Attributes, shape: Shape | None
    ) -> HloInstruction:
        """As `op`, with the operation's sharding and frontend attributes."""
        return self.op(opcode, operands, attributes, shape, self.discardable)

    def parameter(
        self, number: int, shape: Shape, name: str = "", discardable: Discardable | None = None
    ) -> HloInstruction:
        """Append a parameter."""
        made = make_parameter(number, shape, name, discardable.metadata if discardable else None)
        if discardable is not None:
            made = HloInstruction(
                made.opcode, shape, (), made.attributes, name, discardable.metadata, discardable.frontend_attributes,
                discardable.annotations,
            )  # fmt: skip
        return self.add(made)

    def packed(self, values: Sequence[HloInstruction]) -> HloInstruction:
        """One value as it is, several or none as a tuple."""
        return values[0] if len(values) == 1 else self.add(make_tuple(values))

    def unpacked(self, value: HloInstruction, count: int) -> list[HloInstruction]:
        """The elements of a value that `packed` made of `count` values. ShapeError if it has another number."""
        if count == 1:
            return [value]
        found = len(value.shape.tuple_shapes) if value.shape.tuple_shapes is not None else 1
        if found != count:
            raise ShapeError(f"it has {count} results, and {found} are returned")
        elements = []
        for k in range(count):
            element = make_get_tuple_element(value, k)
            elements.append(element if element in value.operands else self.add(element))
        return elements

    def element(self, value: HloInstruction, index: int) -> HloInstruction:
        """One element of a tuple."""
        element = make_get_tuple_element(value, index)
        return element if value.opcode is Opcode.TUPLE else self.add(element)

    # ---- reading operations

    def run(self, block: Block) -> list[HloInstruction]:
        """Read the operations of a block; its arguments have their values. Returns what the last one returns."""
        *operations, last = block.operations
        for operation in operations:
            self.read(operation)
        if not last.name.endswith(".return"):
            raise UnsupportedError(f"a block must end with a return, not with {last.name}")
        return [self.values[value] for value in last.operands]

    def read(self, operation: Operation) -> None:
        """Read one operation. An error says which it is: its attribute `operation`."""
        self.discardable = discardable_of(operation, self.program.meshes)
        try:
            results = self.program.rule(operation)(self, operation)
            if len(results) != len(operation.results):
                raise UnsupportedError(f"it has {len(operation.results)} results, not {len(results)}")
            for declared_, made in zip(operation.results, results, strict=True):
                if not fits(made.shape, declared_.type):
                    raise ShapeError(f"its result is {made.shape}, not {type_text(declared_.type)}")
        except HloError as error:
            if error.operation is None:
                _place(error, operation)
            raise
        self.values.update(zip(operation.results, results, strict=True))

    def operands(self, operation: Operation) -> list[HloInstruction]:
        """The instructions of an operation's operands."""
        return [self.values[value] for value in operation.operands]

    def computation(self, root: HloInstruction) -> HloComputation:
        """The computation, when all is read."""
        return HloComputation(self.name, tuple(self.instructions), root)

    # ---- regions

    def inner(self, region: Region, name: str, captured: Sequence[Value] = ()) -> Scope:
        """A scope for a region, in which the values that it captures, besides `captured`, are constants, or computed
        from constants. UnsupportedError for others."""
        scope = Scope(self.program, name)
        copied: dict[HloInstruction, HloInstruction] = {}
        for value in captures([region]):
            if value in captured:
                continue
            instruction = self.values[value]
            if not is_closed(instruction):
                raise UnsupportedError("a region that is applied to elements uses a value from outside of it")
            scope.values[value] = scope.copy(instruction, copied)
        return scope

    def copy(self, instruction: HloInstruction, copied: dict[HloInstruction, HloInstruction]) -> HloInstruction:
        """The same instruction in this scope, with what it is computed from."""
        found = copied.get(instruction)
        if found is None:
            operands = [self.copy(operand, copied) for operand in instruction.operands]
            found = HloInstruction(
                instruction.opcode, instruction.shape, tuple(operands), instruction.attributes, "", instruction.metadata
            )
            copied[instruction] = self.add(found)
        return found

    def applied(self, region: Region, name: str) -> HloComputation:
        """The computation of a region that is applied to elements: its arguments are scalars."""
        scope = self.inner(region, name)
        for k, argument in enumerate(region.block.arguments):
            scope.values[argument] = scope.parameter(k, shape_of(argument.type), argument.name)
        return scope.computation(scope.packed(scope.run(region.block)))


def declared(operation: Operation) -> Shape | None:
    """The shape of the results, several as a tuple; None if a size is `?`."""
    types = [value.type for value in operation.results]
    if any(map(has_unknown_size, types)):
        return None
    shapes = [shape_of(type_) for type_ in types]
    return shapes[0] if len(shapes) == 1 else Shape.tuple(shapes)


def has_unknown_size(type_: Type) -> bool:
    """Whether a size of a tensor type is `?`."""
    return isinstance(type_, Tensor) and DYNAMIC in type_.dimensions


def captures(regions: Sequence[Region]) -> list[Value]:
    """The values that operations in the regions use and that are made outside, in the order of their first use."""
    used: dict[Value, None] = {}
    inside: set[Value] = set()
    stack = [operation for region in regions for block in region.blocks for operation in reversed(block.operations)]
    for region in regions:
        for block in region.blocks:
            inside.update(block.arguments)
    while stack:
        operation = stack.pop()
        used.update(dict.fromkeys(operation.operands))
        inside.update(operation.results)
        for region in reversed(operation.regions):
            for block in region.blocks:
                inside.update(block.arguments)
                stack.extend(reversed(block.operations))
    return [value for value in used if value not in inside]


_MOST_COPIED = 64
_OPEN = COLLECTIVES | {Opcode.PARAMETER, Opcode.RNG, Opcode.REPLICA_ID, Opcode.PARTITION_ID}


def is_closed(instruction: HloInstruction) -> bool:
    """Whether it is computed from a few constants, so that it may be computed again in another computation."""
    seen: dict[HloInstruction, None] = {}
    stack = [instruction]
    while stack:
        node = stack.pop()
        seen[node] = None
        if len(seen) > _MOST_COPIED or node.opcode in _OPEN or node.shape.is_tuple or has_side_effect(node):
            return False
        stack.extend(operand for operand in node.operands if operand not in seen)
    return True


def _place(error: HloError, operation: Operation) -> None:
    """Say in the error which operation it is about."""
    types = ", ".join(type_text(value.type) for value in operation.operands)
    place = operation.location
    line = f" at {place.file}:{place.line}" if place is not None and place.file else ""
    error.args = (f"{operation.name} ({types}){line}: {error}",)
    error.operation = operation


# ---- discardable attributes


def discardable_of(operation: Operation, meshes: Mapping[str, NamedMesh]) -> Discardable:
    """The metadata, frontend attributes and annotations of an operation."""
    attributes = operation.attributes
    if not attributes and operation.location is None:
        return _NONE
    return Discardable(metadata_of(operation.location), *read_discardable(attributes, meshes))


_NONE = Discardable()


def metadata_of(location: Location | None) -> Metadata | None:
    """Where an operation comes from."""
    if location is None or not (location.name or location.file):
        return None
    column = (("source_column", str(location.column)),) if location.column else ()
    return Metadata(location.name, location.file, location.line, column)

