"""Values on the client's side (Literal, and tuples of them) and on the server's (GlobalData)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ..backend import DeviceBuffer
from ..errors import ExecutionError
from ..host_buffers import HostBuffer
from ..literal import Literal
from ..shape import Shape
from ..support.value_tree import leaves_of, value_of

NDArray: TypeAlias = np.ndarray[Any, Any]
LiteralValue: TypeAlias = "Literal | tuple[LiteralValue, ...]"
"""A value on the client's side: an array, or a tuple of values."""


class GlobalData:
    """A value in the memory where computations run: `execute` takes and returns these. Arrays are row-major.

    The memory is freed with the last reference, or by the client's `unregister`.
    """

    __slots__ = ("_buffers", "shape")

    def __init__(self, shape: Shape, buffers: Sequence[DeviceBuffer]) -> None:
        """`buffers`: one for each leaf of `shape`."""
        self.shape: Shape = shape
        self._buffers: tuple[DeviceBuffer, ...] | None = tuple(buffers)

    @staticmethod
    def of_literal(literal: LiteralValue, shape: Shape | None = None) -> GlobalData:
        """The same value. Literals do not change, so their memory is used as it is."""
        shape = shape_of_literal(literal) if shape is None else shape
        leaves = zip(leaves_of(literal), shape.leaves(), strict=True)
        return GlobalData(shape, [HostBuffer(a.array, leaf.with_default_layout()) for a, leaf in leaves])

    @property
    def buffers(self) -> tuple[DeviceBuffer, ...]:
        """One for each leaf of the shape. ExecutionError if the data was unregistered."""
        if self._buffers is None:
            raise ExecutionError(f"this data of shape {self.shape} was unregistered: it is gone")
        return self._buffers

    def to_literal(self) -> LiteralValue:
        """A copy for the client's side."""
        literal: LiteralValue = value_of(self.shape, iter([Literal(b.__array__()) for b in self.buffers]))
        return literal

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        """The contents of an array, read-only, without a copy unless `copy` is set."""
        if not self.shape.is_array:
            raise TypeError(f"data of shape {self.shape} is no array: take it apart with deconstruct_tuple")
        return self.buffers[0].__array__(dtype, copy)

    def release(self) -> None:
        """Forget the value."""
        self._buffers = None

    def __repr__(self) -> str:
        return f"<GlobalData {self.shape}{'' if self._buffers is not None else ', unregistered'}>"


def shape_of_literal(literal: LiteralValue) -> Shape:
    """The shape of a value, in the default layout."""
    if isinstance(literal, tuple):
        return Shape.tuple([shape_of_literal(element) for element in literal])
    return literal.shape


def literal_of(value: Any, shape: Shape) -> LiteralValue:
    """The evaluator's value (arrays, tuples of them) as a literal of `shape`."""
    if shape.is_tuple:
        return tuple(literal_of(v, s) for v, s in zip(value, shape.elements, strict=True))
    return Literal(value, shape.element.dtype)


def array_tree(literal: LiteralValue) -> Any:
    """The literal's arrays, in the same nested tuples."""
    return tuple(map(array_tree, literal)) if isinstance(literal, tuple) else literal.array
