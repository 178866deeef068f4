"""Symbolic sizes as operations of StableHLO: integer arithmetic on the values of variables, `tensor<i32>`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..element_type import ElementType
from ..mlir.tree import Attribute, Dense, Enumerated, Integer, Location, Operation, Tensor, Type, Value
from ..symbolic.evaluate import Operations, evaluate
from ..symbolic.expressions import FLOORDIV, MAX, MIN, MOD, Dim

SIZE = Tensor((), ElementType.S32)
_TRUTH = Tensor((), ElementType.PRED)


class _Number:
    """A size that the program computes, with arithmetic that appends operations."""

    __slots__ = ("sizes", "value")

    def __init__(self, sizes: Sizes, value: Value) -> None:
        self.sizes, self.value = sizes, value

    def __add__(self, other: Any) -> _Number:
        return self.sizes.binary("add", self, other)

    def __mul__(self, other: Any) -> _Number:
        return self.sizes.binary("multiply", self, other)

    __radd__, __rmul__ = __add__, __mul__


class Sizes:
    """The values of sizes in a block, each computed once. Operations are appended to `operations`."""

    def __init__(self, variables: Mapping[str, Value], operations: list[Operation]) -> None:
        self.variables = variables
        self._operations = operations
        self._known: dict[Any, Value] = {}
        self.location: Location | None = None

    def inside(self, operations: list[Operation]) -> Sizes:
        """The sizes in a block within this one, which sees the values of this one."""
        inner = Sizes(self.variables, operations)
        inner._known = dict(self._known)
        return inner

    # ---- scalars

    def value(self, size: Any) -> Value:
        """A size."""
        found = self._known.get(size)
        if found is None:
            found = self._known[size] = self._computed(size)
        return found

    def _computed(self, size: Any) -> Value:
        if not isinstance(size, Dim):
            return self._emit("constant", [], SIZE, {"value": Dense(SIZE, np.array(size, np.int32))})
        numbers = {name: _Number(self, value) for name, value in self.variables.items()}
        found = evaluate(size, numbers, self._arithmetic())
        return found.value if isinstance(found, _Number) else self.value(found)

    def _arithmetic(self) -> Operations:
        return {
            FLOORDIV: lambda x, y: self._divided(x, y)[0],
            MOD: lambda x, y: self._divided(x, y)[1],
            MAX: lambda x, y: self.binary("maximum", x, y),
            MIN: lambda x, y: self.binary("minimum", x, y),
        }

    def _of(self, x: Any) -> Value:
        return x.value if isinstance(x, _Number) else x if isinstance(x, Value) else self.value(x)

    def binary(self, name: str, x: Any, y: Any) -> _Number:
        """An operation on two sizes."""
        return _Number(self, self._emit(name, [self._of(x), self._of(y)], SIZE))

    def _divided(self, x: Any, y: Any) -> tuple[_Number, _Number]:
        """Quotient and remainder, rounded down; StableHLO's are rounded towards zero."""
        quotient, rest = self.binary("divide", x, y), self.binary("remainder", x, y)
        differs = self._compare(self._compare(rest, "LT", 0), "NE", self._compare(y, "LT", 0))
        is_below = self._emit("and", [differs, self._compare(rest, "NE", 0)], _TRUTH)
        lower, higher = self.binary("subtract", quotient, 1), rest + y
        return self._select(is_below, lower, quotient), self._select(is_below, higher, rest)

    def _select(self, pred: Value, x: _Number, y: _Number) -> _Number:
        return _Number(self, self._emit("select", [pred, x.value, y.value], SIZE))

    def _compare(self, x: Any, direction: str, y: Any) -> Value:
        attributes: dict[str, Attribute] = {
            "comparison_direction": Enumerated("stablehlo", "comparison_direction", direction),
        }
        return self._emit("compare", [self._of(x), self._of(y)], _TRUTH, attributes)

    def compared(self, x: Any, direction: str, y: Any) -> Value:
        """Whether two sizes are EQ, or GE."""
        return self._compare(x, direction, y)

    def clamped(self, start: Value, last: Any) -> Value:
        """A start index of any integer type, at least 0 and at most `last`."""
        assert isinstance(start.type, Tensor)
        index = start
        if start.type.element is not ElementType.S32:
            index = self._emit("convert", [start], SIZE)
        return self._emit("clamp", [self.value(0), index, self.value(last)], SIZE)

    def sum(self, x: Value, y: Any) -> Value:
        """The sum of a computed size and another one."""
        return self.binary("add", x, y).value

    # ---- lists

    def vector(self, sizes: Sequence[Any]) -> Value:
        """Sizes as `tensor<Nxi32>`."""
        if not any(isinstance(s, Dim) for s in sizes):
            type_ = Tensor((len(sizes),), ElementType.S32)
            return self._emit("constant", [], type_, {"value": Dense(type_, np.array(sizes, np.int32))})
        return self.joined([self.value(size) for size in sizes])

    def table(self, sizes: Sequence[Any], rows: int, columns: int) -> Value:
        """Sizes as `tensor<NxMxi32>`, row by row."""
        return self._emit("reshape", [self.vector(sizes)], Tensor((rows, columns), ElementType.S32))

    def joined(self, values: Sequence[Value]) -> Value:
        """Scalars as a vector."""
        one = Tensor((1,), ElementType.S32)
        parts = [self._emit("reshape", [value], one) for value in values]
        if len(parts) == 1:
            return parts[0]
        dimension: Attribute = Integer(0, ElementType.S64)
        return self._emit("concatenate", parts, Tensor((len(parts),), ElementType.S32), {"dimension": dimension})

    def _emit(
        self, name: str, operands: Sequence[Value], type_: Type, attributes: dict[str, Attribute] | None = None
    ) -> Value:
        result = Value(type_)
        self._operations.append(
            Operation(f"stablehlo.{name}", list(operands), [result], attributes or {}, [], self.location)
        )
        return result
