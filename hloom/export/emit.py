"""Making StableHLO's operations, one after the other: integers of a program, and vectors of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np

from ..hlo.element_type import ElementType
from ..hlo.mlir.tree import (
    Block,
    Dense,
    DenseArray,
    Enumerated,
    Function,
    Integer,
    Operation,
    Region,
    Symbol,
    Tensor,
    Type,
    TypeAttribute,
    Value,
)
from ..hlo.symbolic.evaluate import evaluate
from ..hlo.symbolic.expressions import FLOORDIV, MAX, MIN, MOD

SCALAR = Tensor((), ElementType.S32)
_TRUTH = Tensor((), ElementType.PRED)


class Emitter:
    """Appends operations to a list. `functions`: the operations of the module, where functions are added."""

    def __init__(self, into: list[Operation], functions: list[Operation] | None = None) -> None:
        self.into = into
        self.functions: list[Operation] = [] if functions is None else functions
        self._constants: dict[int, Value] = {}

    def add(self, name: str, operands: Sequence[Value], results: Sequence[Type], **attributes: Any) -> list[Value]:
        """An operation with these results."""
        values = [Value(t) for t in results]
        self.into.append(Operation(name, list(operands), values, attributes))
        return values

    def one(self, name: str, operands: Sequence[Value], result: Type = SCALAR, **attributes: Any) -> Value:
        """An operation of StableHLO with one result."""
        return self.add(f"stablehlo.{name}", operands, [result], **attributes)[0]

    def call(self, name: str, operands: Sequence[Value], results: Sequence[Type]) -> list[Value]:
        """A call of a function."""
        return self.add("func.call", operands, results, callee=Symbol((name,)))

    def define(self, stem: str, block: Block) -> str:
        """Add a private function with this block, which ends with its return. Its name: the stem, or the stem and a
        number."""
        name = unused_name(stem, {f.attributes.get("sym_name") for f in self.functions})
        arguments, results = block.arguments, block.operations[-1].operands
        type_ = Function(tuple([a.type for a in arguments]), tuple([r.type for r in results]))
        attributes: dict[str, Any] = {
            "sym_name": name, "sym_visibility": "private", "function_type": TypeAttribute(type_),
            "arg_attrs": ({},) * len(arguments), "res_attrs": ({},) * len(results),
        }  # fmt: skip
        self.functions.append(Operation("func.func", [], [], attributes, [Region([block])]))
        return name

    def number(self, value: int) -> Value:
        """A constant, i32."""
        found = self._constants.get(value)
        if found is None:
            found = self._constants[value] = self.one("constant", [], value=Dense(SCALAR, np.array(value, np.int32)))
        return found

    def table(self, values: Sequence[int]) -> Value:
        """A constant vector, i32."""
        type_ = Tensor((len(values),), ElementType.S32)
        return self.one("constant", [], type_, value=Dense(type_, np.array(values, np.int32)))

    def vector(self, values: Sequence[Value]) -> Value:
        """Scalars as a vector, i32."""
        one, whole = Tensor((1,), ElementType.S32), Tensor((len(values),), ElementType.S32)
        parts = [self.one("reshape", [value], one) for value in values]
        if len(parts) == 1:
            return parts[0]
        return self.one("concatenate", parts, whole, dimension=Integer(0, ElementType.S64))

    def compare(self, direction: str, x: Value, y: Value) -> Value:
        """A comparison of signed integers."""
        return self.one(
            "compare", [x, y], _TRUTH, comparison_direction=Enumerated("stablehlo", "comparison_direction", direction),
            compare_type=Enumerated("stablehlo", "comparison_type", "SIGNED"),
        )  # fmt: skip

    def entry(self, index: Value, values: Sequence[int]) -> Value:
        """``values[index]``, for an index within bounds."""
        one = Tensor((1,), ElementType.S32)
        size = DenseArray(ElementType.S64, (1,))
        found = self.one("dynamic_slice", [self.table(values), index], one, slice_sizes=size)
        return self.one("reshape", [found])

    def size(self, x: Value, dimension: int) -> Value:
        """The size of an array's dimension."""
        return self.one("get_dimension_size", [x], dimension=Integer(dimension, ElementType.S64))


def unused_name(stem: str, taken: Set[Any]) -> str:
    """The stem, or the stem and the first number that makes a name not taken."""
    name, k = stem, 0
    while name in taken:
        k += 1
        name = f"{stem}_{k}"
    return name


class Number:
    """An integer that the program computes, with Python's operators; the other operand may be an int."""

    __slots__ = ("emitter", "value")

    def __init__(self, emitter: Emitter, value: Value) -> None:
        self.emitter: Emitter = emitter
        self.value: Value = value

    def _with(self, name: str, other: Any) -> Number:
        return Number(self.emitter, self.emitter.one(name, [self.value, value_of(self.emitter, other)]))

    def __add__(self, other: Any) -> Number:
        return self._with("add", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Number:
        return self._with("multiply", other)

    __rmul__ = __mul__


def value_of(emitter: Emitter, number: Any) -> Value:
    """A Number or an int as a value of the program."""
    return number.value if isinstance(number, Number) else emitter.number(int(number))


class Sizes:
    """The values of symbolic sizes in a program, each computed once."""

    def __init__(self, emitter: Emitter, variables: Mapping[str, Value]) -> None:
        self.emitter = emitter
        self._variables = {name: Number(emitter, value) for name, value in variables.items()}
        self._found: dict[Any, Value] = {}

    def scalar(self, size: Any) -> Value:
        """A size, i32. UnknownVariableError for a variable without a value."""
        found = self._found.get(size)
        if found is None:
            number = evaluate(size, self._variables, self._operations())
            found = self._found[size] = value_of(self.emitter, number)
        return found

    def vector(self, sizes: Sequence[Any]) -> Value:
        """Several sizes, as a vector."""
        if all(type(size) is int for size in sizes):
            return self.emitter.table(sizes)
        key = "vector", *sizes
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self.emitter.vector([self.scalar(size) for size in sizes])
        return found

    def _operations(self) -> dict[str, Any]:
        return {FLOORDIV: self._quotient, MOD: self._rest, MAX: self._plain("maximum"), MIN: self._plain("minimum")}

    def _plain(self, name: str) -> Any:
        def compute(x: Any, y: Any) -> Number:
            emitter = self.emitter
            return Number(emitter, emitter.one(name, [value_of(emitter, x), value_of(emitter, y)]))

        return compute

    def _rounded_down(self, x: Any, y: Any) -> tuple[Value, Value, Value, Value]:
        """Quotient and remainder of a division towards zero, whether that is not the floor, and the divisor."""
        e = self.emitter
        left, right = value_of(e, x), value_of(e, y)
        quotient, rest = e.one("divide", [left, right]), e.one("remainder", [left, right])
        signs = e.compare("LT", e.one("multiply", [rest, right]), e.number(0))
        return quotient, rest, signs, right

    def _quotient(self, x: Any, y: Any) -> Number:
        quotient, _, is_above, _ = self._rounded_down(x, y)
        e = self.emitter
        return Number(e, e.one("select", [is_above, e.one("add", [quotient, e.number(-1)]), quotient]))

    def _rest(self, x: Any, y: Any) -> Number:
        _, rest, is_above, divisor = self._rounded_down(x, y)
        e = self.emitter
        return Number(e, e.one("select", [is_above, e.one("add", [rest, divisor]), rest]))
