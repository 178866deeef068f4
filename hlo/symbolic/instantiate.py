"""A program of concrete sizes from one of symbolic sizes: each expression, in shapes and attributes, gets its value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

from ..builder import make_constant
from ..ir import HloComputation, HloInstruction, HloModule
from ..literal import Literal
from ..opcode import Opcode
from ..passes.rewrite import map_computations, rewrite_computation
from ..shape import Shape
from ..sizes import is_symbolic
from .evaluate import evaluate
from .expressions import Dim


def instantiate(module: HloModule, values: Mapping[str, int]) -> HloModule:
    """The module for these values of the variables; itself if it has no symbolic sizes.

    UnknownVariableError for a variable without a value. ShapeError if a size becomes negative.
    """
    maker = _Maker(values)
    return map_computations(module, maker.computation, inside_fusions=True)


class _Maker:
    def __init__(self, values: Mapping[str, int]) -> None:
        self._values = values
        self._sizes: dict[Dim, Any] = {}
        self._shapes: dict[Shape, Shape] = {}

    def computation(self, computation: HloComputation) -> HloComputation:
        return rewrite_computation(computation, self._instruction)

    def _instruction(self, old: HloInstruction, moved: HloInstruction) -> HloInstruction:
        if old.opcode is Opcode.GET_DIMENSION_SIZE:
            size = old.operands[0].shape.dimensions[old.attributes.dimension]
            if is_symbolic(size):
                return make_constant(Literal(self._value(size), old.shape.element.dtype))
        shape, attributes = self._shape(old.shape), self._value(moved.attributes)
        if shape is old.shape and attributes is moved.attributes:
            return moved
        return replace(moved, shape=shape, attributes=attributes)

    def _shape(self, shape: Shape) -> Shape:
        found = self._shapes.get(shape)
        if found is None:
            found = self._shapes[shape] = self._made_shape(shape)
        return found

    def _made_shape(self, shape: Shape) -> Shape:
        if shape.tuple_shapes is not None:
            elements = [self._shape(s) for s in shape.tuple_shapes]
            changed = any(a is not b for a, b in zip(elements, shape.tuple_shapes, strict=True))
            return Shape.tuple(elements) if changed else shape
        if not any(map(is_symbolic, shape.dimensions)):
            return shape
        return Shape.array(shape.element, [self._value(d) for d in shape.dimensions], shape.layout)

    def _value(self, value: Any) -> Any:
        """`value` with numbers in the place of expressions; the same object if it has none."""
        if isinstance(value, Dim):
            if value not in self._sizes:
                self._sizes[value] = evaluate(value, self._values)
            return self._sizes[value]
        if isinstance(value, Shape):
            return self._shape(value)
        if type(value) is tuple:
            found = tuple([self._value(v) for v in value])
            return found if any(a is not b for a, b in zip(found, value, strict=True)) else value
        if not is_dataclass(value) or isinstance(value, type | Enum | HloComputation | HloInstruction | Literal):
            return value
        changes = {}
        for field in fields(value) if _is_plain(value) else ():
            before = getattr(value, field.name)
            after = self._value(before)
            if after is not before:
                changes[field.name] = after
        return replace(value, **changes) if changes else value


def _is_plain(value: object) -> bool:
    """Whether a record belongs to the IR, rather than to a layer above, as the rule of a composite does."""
    return type(value).__module__.startswith(_IR)


_IR = __package__.rpartition(".")[0] if __package__ else ""
