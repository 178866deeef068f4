"""Reading operations that run regions: while, if, case, scan. And tuples, which have no counterpart among arrays.

A region may use values from outside. In HLO they are operands: of a loop, elements of its state that do not change; of
a branch, elements of its operand. Constants are made again inside, so that a loop's bound is seen to be one.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UnsupportedError
from ..instruction import NO_ATTRIBUTES, HloComputation, HloInstruction
from ..mlir.tree import Operation, Region, Value
from ..opcode import Opcode
from ..ops.control_flow import ConditionalAttributes, ScanAttributes, WhileAttributes
from ..ops.structure import GetTupleElementAttributes
from ..shape import Shape
from .attributes import read_boolean, read_integer, read_integers
from .scope import Rule, Scope, captures

Results = Sequence[HloInstruction]


def _open_captures(scope: Scope, regions: Sequence[Region]) -> list[Value]:
    """The values from outside that are no constants, nor broadcasts of constants."""
    return [value for value in captures(regions) if not _is_constant(scope.values[value])]


def _is_constant(instruction: HloInstruction) -> bool:
    if instruction.opcode is Opcode.BROADCAST:
        instruction = instruction.operands[0]
    return instruction.opcode in (Opcode.CONSTANT, Opcode.IOTA)


def _while(scope: Scope, operation: Operation) -> Results:
    condition, body = operation.regions
    initial = scope.operands(operation)
    captured = _open_captures(scope, operation.regions)
    state = scope.packed([*initial, *(scope.values[value] for value in captured)])
    count = len(initial)

    def computation(region: Region, name: str) -> HloComputation:
        inner = scope.inner(region, name, captured)
        parameter = inner.parameter(0, state.shape)
        elements = inner.unpacked(parameter, count + len(captured))
        inner.values.update(zip([*region.block.arguments, *captured], elements, strict=True))
        found = inner.run(region.block)
        return inner.computation(
            found[0] if region is condition else inner.packed([*found, *elements[count:]])
        )  # fmt: skip

    attributes = WhileAttributes(computation(condition, "condition"), computation(body, "body"))
    loop = scope.main(Opcode.WHILE, (state,), attributes, state.shape)
    if len(captured) + count == 1:
        return [loop][:count]
    return [scope.element(loop, k) for k in range(count)]


def _branches(scope: Scope, operation: Operation, index: HloInstruction) -> Results:
    """A conditional. Its branches take the values that they capture as arguments."""
    operands, computations = [], []
    for k, region in enumerate(operation.regions):
        captured = _open_captures(scope, [region])
        operand = scope.packed([scope.values[value] for value in captured])
        inner = scope.inner(region, f"branch.{k}", captured)
        parameter = inner.parameter(0, operand.shape)
        inner.values.update(zip(captured, inner.unpacked(parameter, len(captured)), strict=True))
        operands.append(operand)
        computations.append(inner.computation(inner.packed(inner.run(region.block))))
    attributes = ConditionalAttributes(tuple(computations))
    found = scope.main(Opcode.CONDITIONAL, (index, *operands), attributes, None)
    return scope.unpacked(found, len(operation.results))


def _if(scope: Scope, operation: Operation) -> Results:
    (pred,) = scope.operands(operation)
    return _branches(scope, operation, pred)


def _case(scope: Scope, operation: Operation) -> Results:
    """With one branch, HLO's conditional is a call of it."""
    (index,) = scope.operands(operation)
    return _branches(scope, operation, index)


def _scan(scope: Scope, operation: Operation) -> Results:
    """`chlo.scan`: arrays, then carries; so are its results."""
    operands = scope.operands(operation)
    sizes = operation.attributes.get("operandSegmentSizes", operation.attributes.get("operand_segment_sizes"))
    carries = read_integers(sizes)[1] if sizes is not None else len(operands) - _arrays(operation)
    (region,) = operation.regions
    inner = scope.inner(region, "scan")
    dimension = read_integer(operation.attributes.get("dimension"))
    for k, argument in enumerate(region.block.arguments):
        shape = operands[k].shape
        if k < len(operands) - carries:
            shape = Shape.array(shape.element, shape.dimensions[:dimension] + shape.dimensions[dimension + 1 :])
        inner.values[argument] = inner.parameter(k, shape, argument.name)
    root = inner.packed(inner.run(region.block))
    associative = operation.attributes.get("is_associative")
    attributes = ScanAttributes(
        dimension, inner.computation(root), read_boolean(operation.attributes.get("is_reverse", False)),
        None if associative is None else read_boolean(associative), carries,
    )  # fmt: skip
    size = operation.attributes.get("scan_dim_size")
    declared = None
    if carries == len(operands) and size is not None:
        shapes = root.shape.elements if root.shape.is_tuple else (root.shape,)
        made = [
            Shape.array(s.element, (*s.dimensions[:dimension], read_integer(size), *s.dimensions[dimension:]))
            for s in shapes[: len(shapes) - carries]
        ]
        found = [*made, *shapes[len(shapes) - carries :]]
        declared = Shape.tuple(found) if root.shape.is_tuple else found[0]
    return scope.unpacked(scope.main(Opcode.SCAN, operands, attributes, declared), len(operation.results))


def _arrays(operation: Operation) -> int:
    raise UnsupportedError("it does not say how many of its operands are arrays: operandSegmentSizes")


def _optimization_barrier(scope: Scope, operation: Operation) -> Results:
    operands = scope.operands(operation)
    if not operands:
        return []
    packed = scope.packed(operands)
    found = scope.main(Opcode.OPT_BARRIER, (packed,), NO_ATTRIBUTES, packed.shape)
    return scope.unpacked(found, len(operands))


def _tuple(scope: Scope, operation: Operation) -> Results:
    return [scope.op(Opcode.TUPLE, scope.operands(operation))]


def _get_tuple_element(scope: Scope, operation: Operation) -> Results:
    (operand,) = scope.operands(operation)
    index = read_integer(operation.attributes.get("index"))
    return [scope.op(Opcode.GET_TUPLE_ELEMENT, (operand,), GetTupleElementAttributes(index))]


RULES: dict[str, Rule] = {
    "stablehlo.while": _while,
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "chlo.scan": _scan,
    "stablehlo.optimization_barrier": _optimization_barrier,
    "stablehlo.tuple": _tuple,
    "stablehlo.get_tuple_element": _get_tuple_element,
    "interpreter.probe": lambda scope, operation: scope.operands(operation),  # StableHLO's own tests look at the value
}
