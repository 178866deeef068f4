"""Programs of symbolic sizes as StableHLO, where such sizes are written `?`.

`stablehlo_of` gives a tree with expressions in types and attributes. Here each operation that makes an array of such
sizes gets these as operands: `dynamic_iota`, `dynamic_broadcast_in_dim` and so on. `main` asks for the sizes of its
arguments, solves for the variables, and asserts what must hold for them; other functions take the variables as their
first arguments. All sizes are `i32`, as in JAX without 64-bit types. Source: JAX's calling convention of exported
programs with shape polymorphism, and StableHLO's pass stablehlo-refine-shapes, which undoes it for known sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..mlir.tree import (
    DYNAMIC,
    Attribute,
    Block,
    Dense,
    DenseArray,
    Function,
    Integer,
    Operation,
    Symbol,
    Tensor,
    Tuple,
    TypeAttribute,
    Value,
)
from ..sizes import is_symbolic
from ..symbolic.arguments import Solution
from ..symbolic.expressions import Dim
from .attributes import INTEGER32
from .computed_sizes import SIZE, Sizes

Variables: TypeAlias = Mapping[str, Value]


def with_dynamic_sizes(module: Operation, solution: Solution, first: int = 0) -> Operation:
    """The module, which `stablehlo_of` has made, with `?` for symbolic sizes; it is changed in place.

    `solution`: how the variables follow from the sizes of `main`'s arguments, from number `first` on.
    UnsupportedError names an operation that has no form for such sizes.
    """
    _Program(module, solution, first).write()
    return module


class _Program:
    def __init__(self, module: Operation, solution: Solution, first: int) -> None:
        self._block = module.regions[0].block
        self._solution, self._first = solution, first
        self._functions = {
            str(o.attributes["sym_name"]): o for o in self._block.operations if o.name == "func.func"
        }
        self._names = sorted(solution.values)
        self._needing = self._find_needing()

    def _find_needing(self) -> set[str]:
        """The functions in which symbolic sizes occur, or in functions that they call."""
        called = {name: set(_called(function)) for name, function in self._functions.items()}
        found = {name for name, function in self._functions.items() if _mentions_sizes(function)}
        while more := {name for name, others in called.items() if others & found} - found:
            found |= more
        return found

    def write(self) -> None:
        for name in self._needing:
            self._function(name, self._functions[name])
        for function in self._functions.values():
            _write_types(function)

    def _function(self, name: str, function: Operation) -> None:
        block = function.regions[0].block
        writer = _Writer(self._needing, self._names)
        if name == "main":
            writer.solve(block.arguments[self._first :], self._solution)
        else:
            variables = [Value(SIZE, each) for each in self._names]
            block.arguments[:0] = variables
            if block.argument_locations:
                block.argument_locations[:0] = [None] * len(variables)
            type_ = function.attributes["function_type"]
            assert isinstance(type_, TypeAttribute) and isinstance(type_.type, Function)
            inputs = (*[SIZE] * len(variables), *type_.type.inputs)
            function.attributes["function_type"] = TypeAttribute(Function(inputs, type_.type.results))
            if "arg_attrs" in function.attributes:
                function.attributes["arg_attrs"] = (*[{}] * len(variables), *function.attributes["arg_attrs"])  # type: ignore[misc]
            writer.sizes = Sizes(dict(zip(self._names, variables, strict=True)), writer.operations)
        writer.block(block)


class _Writer:
    """Writes the blocks of a function, from the outside in."""

    def __init__(self, needing: set[str], names: Sequence[str]) -> None:
        self._needing, self._names = needing, names
        self.operations: list[Operation] = []
        self.sizes = Sizes({}, self.operations)
        self._replaced: dict[Value, Value] = {}

    def solve(self, arguments: Sequence[Value], solution: Solution) -> None:
        """Compute the variables from the sizes of arguments, and check these."""
        given = {}
        for name, argument, d in solution.sizes:
            (size,) = self._emit("stablehlo.get_dimension_size", [arguments[argument]], {"dimension": Integer(d, _S64)})
            given[name] = size
        found = Sizes(given, self.operations)
        for check in solution.checks:
            message, values = check.numbered_message()
            holds = found.compared(check.left, "EQ" if check.is_equality else "GE", check.right)
            attributes: dict[str, Attribute] = {
                "call_target_name": "shape_assertion",
                "has_side_effect": True,
                "backend_config": "",
                "api_version": INTEGER32.write(2),
                "error_message": message,
            }
            operands = [holds, *[found.value(v) for v in values]]
            self.operations.append(Operation("stablehlo.custom_call", operands, [], attributes))
        variables = {name: found.value(value) for name, value in solution.values.items()}
        self.sizes = Sizes(variables, self.operations)

    def block(self, block: Block) -> None:
        """Write a block; what was written before comes first."""
        before, self.operations[:] = block.operations, [*self.operations]
        for operation in before:
            operation.operands = [self._replaced.get(o, o) for o in operation.operands]
            self._operation(operation)
        block.operations = list(self.operations)
        self.operations.clear()

    def _operation(self, operation: Operation) -> None:
        self.sizes.location = operation.location
        rule = _RULES.get(operation.name)
        if rule is not None and (operation.name in _ALWAYS or _is_symbolic(operation)):
            rule(self, operation)
        elif _in_attributes(operation):
            raise UnsupportedError(f"{operation.name} has no form in StableHLO with symbolic sizes as its attributes")
        for region in operation.regions:
            for block in region.blocks:
                inner = _Writer(self._needing, self._names)
                inner._replaced = self._replaced
                inner.sizes = self.sizes.inside(inner.operations)
                inner.block(block)
        if operation.name not in _REPLACED or operation.results[0] not in self._replaced:
            self.operations.append(operation)

    def _emit(self, name: str, operands: Sequence[Value], attributes: dict[str, Attribute]) -> list[Value]:
        result = Value(SIZE)
        self.operations.append(Operation(name, list(operands), [result], attributes))
        return [result]

    # ---- rules

    def with_shape(self, operation: Operation, name: str, drop: str = "") -> None:
        """The operation with the sizes of its result as its last operand."""
        operation.name = name
        operation.operands.append(self.sizes.vector(_dimensions(operation.results[0])))
        operation.attributes.pop(drop, None)

    def with_operands(self, operation: Operation, name: str, attributes: Sequence[str]) -> None:
        """The operation with these attributes as operands."""
        if _in_attributes(operation):
            operation.name = name
            operation.operands += [self._moved(operation, each) for each in attributes]

    def _moved(self, operation: Operation, name: str) -> Value:
        attribute = operation.attributes.pop(name)
        if isinstance(attribute, Dense):
            rows, columns = attribute.array.shape
            return self.sizes.table(attribute.array.reshape(-1).tolist(), rows, columns)
        assert isinstance(attribute, DenseArray), f"{name} is a list of integers"
        return self.sizes.vector(attribute.values)

    def dynamic_slice(self, operation: Operation) -> None:
        """Slices at starts that are moved so that they fit."""
        if not _in_attributes(operation):
            return
        array, *starts = operation.operands
        sizes = operation.attributes.pop("slice_sizes")
        assert isinstance(sizes, DenseArray)
        clamped = [
            self.sizes.clamped(start, size - count)
            for start, size, count in zip(starts, _dimensions(array), sizes.values, strict=True)
        ]
        ends = [self.sizes.sum(start, count) for start, count in zip(clamped, sizes.values, strict=True)]
        operation.name = "stablehlo.real_dynamic_slice"
        strides = self.sizes.vector([1] * len(clamped))
        operation.operands = [array, self.sizes.joined(clamped), self.sizes.joined(ends), strides]

    def get_dimension_size(self, operation: Operation) -> None:
        """The size is known already."""
        dimension = operation.attributes["dimension"]
        assert isinstance(dimension, Integer)
        size = _dimensions(operation.operands[0])[dimension.value]
        if is_symbolic(size):
            self._replaced[operation.results[0]] = self.sizes.value(size)

    def call(self, operation: Operation) -> None:
        """A call of a function that takes the variables."""
        name = _called_name(operation)
        if name not in self._needing:
            return
        operation.operands = [*[self.sizes.variables[each] for each in self._names], *operation.operands]
        operation.name, operation.attributes = "func.call", {"callee": Symbol((name,))}

    def custom_call(self, operation: Operation) -> None:
        """The shapes of results are operands."""
        places = []
        for result in operation.results:
            places.append(len(operation.operands))
            operation.operands.append(self.sizes.vector(_dimensions(result)))
        operation.attributes["indices_of_shape_operands"] = _numbers(places)
        for layouts in ("operand_layouts", "result_layouts"):
            operation.attributes.pop(layouts, None)

    def random_bits(self, operation: Operation) -> None:
        """The shape of the bits is an operand; those of both results are given, too."""
        key, bits = operation.results
        shape = self.sizes.vector(_dimensions(bits))
        operation.operands.append(shape)
        self._custom(operation, "stablehlo.dynamic_rng_bit_generator")
        operation.operands += [self.sizes.vector(_dimensions(key)), shape]
        operation.attributes["indices_of_shape_operands"] = _numbers([2, 3])

    def top_k(self, operation: Operation) -> None:
        """How many elements is an operand."""
        if not _in_attributes(operation):
            return
        k = operation.attributes.pop("k")
        assert isinstance(k, Integer)
        operation.operands.append(self.sizes.value(k.value))
        self._custom(operation, "stablehlo.dynamic_top_k")
        self.custom_call(operation)

    def _custom(self, operation: Operation, target: str) -> None:
        operation.name = "stablehlo.custom_call"
        operation.attributes.update(call_target_name=target, backend_config="", api_version=INTEGER32.write(2))


_S64 = ElementType.S64

_Rule: TypeAlias = Callable[[_Writer, Operation], None]


def _shaped(name: str) -> _Rule:
    return lambda writer, operation: writer.with_shape(operation, name)


def _with(name: str, *attributes: str) -> _Rule:
    return lambda writer, operation: writer.with_operands(operation, name, attributes)


_RULES: dict[str, _Rule] = {
    "stablehlo.broadcast_in_dim": _shaped("stablehlo.dynamic_broadcast_in_dim"),
    "stablehlo.reshape": _shaped("stablehlo.dynamic_reshape"),
    "stablehlo.iota": _shaped("stablehlo.dynamic_iota"),
    "stablehlo.slice": _with("stablehlo.real_dynamic_slice", "start_indices", "limit_indices", "strides"),
    "stablehlo.pad": _with("stablehlo.dynamic_pad", "edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.gather": _with("stablehlo.dynamic_gather", "slice_sizes"),
    "stablehlo.convolution": _with("stablehlo.dynamic_conv", "padding"),
    "stablehlo.dynamic_slice": _Writer.dynamic_slice,
    "stablehlo.get_dimension_size": _Writer.get_dimension_size,
    "stablehlo.rng_bit_generator": _Writer.random_bits,
    "stablehlo.custom_call": _Writer.custom_call,
    "stablehlo.composite": _Writer.call,
    "chlo.top_k": _Writer.top_k,
    "func.call": _Writer.call,
}
_REPLACED = ("stablehlo.get_dimension_size",)
_ALWAYS = ("stablehlo.get_dimension_size", "stablehlo.composite", "func.call")
"""The operations whose results do not show symbolic sizes."""


# ---- where symbolic sizes are


def _dimensions(value: Value) -> tuple[Any, ...]:
    assert isinstance(value.type, Tensor), f"{value} is no array"
    return value.type.dimensions


def _has_sizes(part: Any) -> bool:
    """Whether a type or an attribute has a symbolic size."""
    match part:
        case Dim():
            return True
        case Tensor():
            return any(map(is_symbolic, part.dimensions))
        case Tuple():
            return any(map(_has_sizes, part.elements))
        case Integer():
            return is_symbolic(part.value)
        case DenseArray():
            return any(map(is_symbolic, part.values))
        case Dense():
            return part.array.dtype == object and any(map(is_symbolic, part.array.flat))
        case tuple():
            return any(map(_has_sizes, part))
        case dict():
            return any(map(_has_sizes, part.values()))
    return False


def _in_attributes(operation: Operation) -> bool:
    return any(map(_has_sizes, operation.attributes.values()))


def _is_symbolic(operation: Operation) -> bool:
    return any(_has_sizes(r.type) for r in operation.results) or _in_attributes(operation)


def _inside(operation: Operation) -> Iterator[Operation]:
    """The operation and those in its regions."""
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for each in block.operations:
                yield from _inside(each)


def _values(operation: Operation) -> Iterator[Value]:
    for each in _inside(operation):
        yield from each.results
        for region in each.regions:
            for block in region.blocks:
                yield from block.arguments


def _mentions_sizes(function: Operation) -> bool:
    return any(_has_sizes(v.type) for v in _values(function)) or any(map(_in_attributes, _inside(function)))


def _called_name(operation: Operation) -> str:
    attribute = operation.attributes["decomposition" if operation.name == "stablehlo.composite" else "callee"]
    assert isinstance(attribute, Symbol)
    return attribute.names[0]


def _called(function: Operation) -> Iterator[str]:
    for operation in _inside(function):
        if operation.name in ("func.call", "stablehlo.composite"):
            yield _called_name(operation)


def _write_types(function: Operation) -> None:
    """`?` in the place of symbolic sizes, in all types."""
    for value in _values(function):
        value.type = _written(value.type)
    type_ = function.attributes["function_type"]
    assert isinstance(type_, TypeAttribute)
    function.attributes["function_type"] = TypeAttribute(_written(type_.type))


def _written(type_: Any) -> Any:
    match type_:
        case Tensor() if _has_sizes(type_):
            sizes = tuple([DYNAMIC if is_symbolic(d) else d for d in type_.dimensions])
            return Tensor(sizes, type_.element, type_.encoding)
        case Tuple():
            return Tuple(tuple(map(_written, type_.elements)))
        case Function():
            return Function(tuple(map(_written, type_.inputs)), tuple(map(_written, type_.results)))
    return type_


def _numbers(values: Sequence[int]) -> Dense:
    return Dense(Tensor((len(values),), _S64), np.array(values, np.int64))
