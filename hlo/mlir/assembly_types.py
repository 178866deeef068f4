"""The directives of assembly formats that are about the types of operands and results.

Source: StableHLO's AssemblyFormat.cpp and MLIR's declarative assembly format.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..element_type import ElementType
from .assembly_format import Directive, Values
from .attribute_writer import function_text, results_text, type_text
from .operation_reader import Draft, OperationReader
from .operation_writer import OperationWriter, Unfit
from .tree import Function, Operation, Tensor, Tuple, Type


def _read_types(reader: OperationReader) -> list[Type]:
    found = [reader.type()]
    while reader.accept(","):
        found.append(reader.type())
    return found


def types_text(values: Sequence[Any]) -> str:
    """`T, T`."""
    return ", ".join([type_text(value.type) for value in values])


def function_type_text(operation: Operation) -> str:
    """`(T, T) -> T` for an operation's operands and results."""
    operands = [value.type for value in operation.operands]
    return function_text(operands, [value.type for value in operation.results])


class _FunctionType(Directive):
    """`(T, T) -> T`."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        kind = reader.function_type()
        reader.check_types(draft.operands, kind.inputs, start)
        draft.results = kind.results

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(function_type_text(operation))


class _ShortType(Directive):
    """One type for all operands and the result, or else a function type. `operand_types`: those that the operands have
    if the result's type stands alone; None if it cannot."""

    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        return [result] * count

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        kind = reader.type()
        if isinstance(kind, Function):
            reader.check_types(draft.operands, kind.inputs, start)
            draft.results = kind.results
            if len(kind.results) != 1:
                raise reader.error(f"{draft.name} has one result, its type {len(kind.results)}", start)
            return
        types = self.operand_types(len(draft.operands), kind)
        if types is None:
            raise reader.error(f"{type_text(kind)} is no type of the result of {draft.name}", start)
        reader.check_types(draft.operands, types, start)
        draft.results = (kind,)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        result = operation.results[0].type
        operands = [value.type for value in operation.operands]
        short = self.operand_types(len(operands), result) == operands
        writer.item(type_text(result) if short else function_type_text(operation))


class _ComplexType(_ShortType):
    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        if not isinstance(result, Tensor) or not isinstance(result.element, ElementType):
            return None
        if not result.element.is_complex:
            return None
        return [Tensor(result.dimensions, result.element.real, result.encoding)] * count


class _TupleType(_ShortType):
    def operand_types(self, count: int, result: Type) -> Sequence[Type] | None:
        return list(result.elements) if isinstance(result, Tuple) else None

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        writer.item(type_text(operation.results[0].type))


class _SelectType(Directive):
    """The types of the predicate and of the result, or else a function type."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        types = _read_types(reader)
        if len(types) == 1 and isinstance(types[0], Function):
            reader.check_types(draft.operands, types[0].inputs, start)
            draft.results = types[0].results
            return
        if len(types) != 2:
            raise reader.error("expected the types of the predicate and of the result", start)
        reader.check_types(draft.operands, [types[0], types[1], types[1]], start)
        draft.results = types[1:]

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.operands) != 3 or len(operation.results) != 1:
            raise Unfit
        result = operation.results[0].type
        predicate, *others = (value.type for value in operation.operands)
        short = f"{type_text(predicate)}, {type_text(result)}"
        writer.item(short if others == [result, result] else function_type_text(operation))


class _PairwiseType(Directive):
    """The types of the operands; the results have the same types."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        draft.results = _read_types(reader)
        reader.check_types(draft.operands, draft.results, start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if [value.type for value in operation.operands] != [value.type for value in operation.results]:
            raise Unfit
        writer.item(types_text(operation.operands))


class _OperandTypes(Directive):
    """The types of the operands."""

    def is_present(self, operation: Operation) -> bool:
        return bool(operation.operands)

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        reader.check_types(draft.operands, _read_types(reader), start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(types_text(operation.operands))


class _OperandType(_OperandTypes):
    """One type, which all operands have."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        start = reader.index
        reader.check_types(draft.operands, [reader.type()] * len(draft.operands), start)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(type_text(operation.operands[0].type))


class _ResultType(Directive):
    """The type of the only result."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.results = (reader.type(),)

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        if len(operation.results) != 1:
            raise Unfit
        writer.item(type_text(operation.results[0].type))


class _ResultTypes(Directive):
    """`T`, or `(T, T)`."""

    def read(self, reader: OperationReader, draft: Draft) -> None:
        draft.results = reader.result_types()

    def write(self, writer: OperationWriter, operation: Operation, values: Values) -> None:
        writer.item(results_text(tuple(value.type for value in operation.results)))


DIRECTIVES: dict[str, Directive] = {
    "function": _FunctionType(), "same": _ShortType(), "complex": _ComplexType(), "tuple": _TupleType(),
    "select": _SelectType(), "pairwise": _PairwiseType(), "operands": _OperandTypes(), "operand": _OperandType(),
    "result": _ResultType(), "results": _ResultTypes(),
}  # fmt: skip
"""The directives that only concern types."""
