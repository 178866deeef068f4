"""The form of a computation: all that it is but its sizes.

Computations of one form are the same layer with another batch. Sizes above `FEW` are no part of a form, and neither is
which of them are equal (`size_classes.py`). `support/observed.py` finds out what else a result depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ..ir import NO_ATTRIBUTES, Attributes, HloComputation, HloInstruction, HloModule
from ..layout import Layout, row_major
from ..literal import Literal
from ..opcode import Opcode
from ..ops.indexing import GatherAttributes
from ..ops.movement import DynamicSliceAttributes, PadAttributes, SliceAttributes
from ..ops.structure import ConstantAttributes
from ..shape import Shape
from .in_bounds import INDEXED, in_bounds

FEW = 4
"""Sizes up to this one are a part of the form: they are coordinates, channels and parts rather than batches."""

_WITH_SIZES: Mapping[type, tuple[str, ...]] = {
    SliceAttributes: ("start_indices", "limit_indices", "strides"),
    DynamicSliceAttributes: ("dynamic_slice_sizes",),
    GatherAttributes: ("slice_sizes",),
    PadAttributes: ("low", "high", "interior"),
}
"""The fields of attributes that hold sizes, or numbers that change with them."""
_WITHOUT_SIZES: Mapping[type, tuple[str, ...]] = {
    kind: tuple([f.name for f in fields(kind) if f.name not in names]) for kind, names in _WITH_SIZES.items()
}
"""Their other fields."""


class OpaqueConstant:
    """Stands for a literal of a form: a number that nobody may look at."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def __getattr__(self, name: str) -> Any:
        raise TypeError(f"the {name} of a constant is no part of a form")


def is_ordinary(array: np.ndarray[Any, Any]) -> bool:
    """True for a scalar float of 32 or 64 bits that is finite, and neither 0 nor 1 nor -1."""
    if array.shape or array.dtype.char not in "fd":
        return False
    value = float(array)
    return value - value == 0 and value not in (0.0, 1.0, -1.0)


_SIZE = "size"
"""A size in a structure."""


def has_sizes(shape: Shape) -> bool:
    """True if a shape has sizes that are no part of a form: its arrays are in row-major order, and no tuples in it."""
    if shape.tuple_shapes is not None:
        return not shape.is_token and not any(s.tuple_shapes is not None for s in shape.tuple_shapes)
    layout, default = shape.array_layout, row_major(len(shape.dimensions))
    return layout is default or layout == default


def attributes_with_sizes(attributes: Attributes) -> list[Sequence[int]]:
    """The attributes that hold sizes."""
    return [getattr(attributes, name) for name in _WITH_SIZES.get(type(attributes), ())]


class _Abstraction:
    """Shapes and attributes without sizes and ordinary constants."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.constants: dict[Literal, int] = {}
        self.is_dense = True
        self._shapes: dict[int, tuple[tuple[object, ...], Sequence[int]]] = {}
        """By the identity of a shape, which its instruction keeps: its form and its sizes."""

    def shape(self, instruction: HloInstruction) -> tuple[object, ...]:
        shape = instruction.shape
        known = self._shapes.get(id(shape))
        if known is None:
            sizes: list[int] = []
            known = self._shapes[id(shape)] = self._form_of(shape, sizes), sizes
        form, of_shape = known
        if instruction.opcode is Opcode.CONSTANT and of_shape:  # they are those of the literal
            return shape.element_type, shape.dimensions
        self.sizes += of_shape
        return form

    def _form_of(self, shape: Shape, sizes: list[int]) -> tuple[object, ...]:
        if has_sizes(shape):
            if shape.tuple_shapes is not None:
                return tuple([self._form_of(s, sizes) for s in shape.tuple_shapes])
            return shape.element_type, _numbers(shape.dimensions, sizes)
        self.is_dense = False
        return (shape,) if shape.is_tuple else (shape.element_type, shape.dimensions, *_places(shape.array_layout))

    def attributes(self, instruction: HloInstruction, called_as: Callable[[HloComputation], object]) -> object:
        attributes = instruction.attributes
        if attributes is NO_ATTRIBUTES:
            return attributes
        kind = type(attributes)
        if kind is ConstantAttributes:
            literal = attributes.literal
            return self.constants.setdefault(literal, len(self.constants)) if is_ordinary(literal.array) else attributes
        names = _WITH_SIZES.get(kind)
        if names is None:
            return _with_called(instruction, called_as) or attributes
        of_sizes = [_numbers(getattr(attributes, name), self.sizes) for name in names]
        return kind, *of_sizes, *[getattr(attributes, name) for name in _WITHOUT_SIZES[kind]]


def _numbers(numbers: Sequence[int], sizes: list[int]) -> tuple[object, ...]:
    """The numbers without sizes, which are added to `sizes`."""
    if not numbers:
        return ()
    sizes += [n for n in numbers if n > FEW]
    return tuple([_SIZE if n > FEW else n for n in numbers])


def _with_called(i: HloInstruction, called_as: Callable[[HloComputation], object]) -> tuple[object, ...]:
    """The attributes of an instruction that calls computations, with something else in the place of these; () for
    others."""
    called = i.called_computations()
    return (*_plain_fields(i.attributes), *map(called_as, called)) if called else ()


def _rows(computation: HloComputation, properties: Callable[[HloInstruction], tuple[object, ...]]) -> list[object]:
    """The instructions as tuples, with the numbers of operands, and the number of the root. `properties`: all else that
    an instruction has."""
    position: dict[HloInstruction, int] = {}
    rows: list[object] = []
    for i in computation.instructions:
        known = in_bounds(i) if i.opcode in INDEXED else None
        rows.append((i.opcode, known, tuple([position[o] for o in i.operands]), *properties(i)))
        position[i] = len(position)
    rows.append(position[computation.root])
    return rows


def _exactly(computation: HloComputation) -> tuple[object, ...]:
    """A computation that is called, which is on scalars: all properties but names and metadata."""
    return tuple(_rows(computation, lambda i: (_with_called(i, _exactly) or i.attributes, i.shape)))


class Form:
    """The form of a computation, its sizes and its ordinary constants, such as learning rates and numbers of elements.
    """

    def __init__(self, computation: HloComputation) -> None:
        found = _Abstraction()

        def properties(i: HloInstruction) -> tuple[object, ...]:
            return found.attributes(i, _exactly), found.shape(i)

        self.structure: tuple[object, ...] = tuple(_rows(computation, properties))
        """All properties of the computation but its sizes and ordinary constants, names and metadata, and the memory
        spaces of parameters and roots."""
        self.sizes: tuple[int, ...] = tuple(found.sizes)
        """The sizes above the limit, in order, each as often as it occurs."""
        self.constants: tuple[Literal, ...] = tuple(found.constants)
        """The ordinary constants, each once."""
        self.is_dense: bool = found.is_dense
        """True if all arrays are in row-major order, so that no layout depends on sizes."""


class ModuleForm:
    """The form of a module, its sizes and its ordinary constants. Names are no part of it, and of metadata only which
    instructions share it."""

    def __init__(self, module: HloModule) -> None:
        found = _Abstraction()
        metadata: dict[int, int] = {}
        numbers: dict[HloComputation, int] = {}

        def properties(i: HloInstruction) -> tuple[object, ...]:
            return (
                found.attributes(i, numbers.__getitem__), found.shape(i),
                metadata.setdefault(id(i.metadata), len(metadata)), i.frontend_attributes, i.annotations,
            )  # fmt: skip

        rows: list[object] = []
        for computation in module.computations:
            rows += _rows(computation, properties)
            numbers[computation] = len(numbers)
        others = [getattr(module, f.name) for f in fields(module) if f.name not in ("name", "entry")]
        self.structure: tuple[object, ...] = (*others, *rows)
        """All else."""
        self.sizes: tuple[int, ...] = tuple(found.sizes)
        self.constants: tuple[Literal, ...] = tuple(found.constants)
        self.is_dense: bool = found.is_dense
        """See `Form`."""

    def without_integers(self) -> tuple[object, ...]:
        """The structure without the values of integer constants, which often follow from sizes: last indices, numbers
        of elements."""
        return tuple([_CONSTANT if _is_of_integers(row) else row for row in self.structure])


_CONSTANT = "constant"


def _is_of_integers(row: object) -> bool:
    """True for a row of `_rows`."""
    if type(row) is not tuple or not row or row[0] is not Opcode.CONSTANT:
        return False
    attributes = row[3]
    return type(attributes) is ConstantAttributes and attributes.literal.array.dtype.kind in "iu"


def _places(layout: Layout) -> tuple[object, ...]:
    """A layout, without the memory space."""
    return (
        layout.minor_to_major, layout.tiles, layout.element_size_in_bits, layout.tail_padding_alignment_in_elements,
        layout.padded_dimensions,
    )  # fmt: skip


def _plain_fields(attributes: Attributes) -> Iterator[object]:
    """The attributes, without the computations that they name."""
    for f in fields(attributes):
        value = getattr(attributes, f.name)
        first = value[0] if isinstance(value, tuple) and value else value
        if not isinstance(first, HloComputation):
            yield value


def with_sizes(
    computation: HloComputation, sizes: Iterator[Any], constants: Mapping[Literal, OpaqueConstant],
    called: Mapping[HloComputation, HloComputation] | None = None,
) -> HloComputation:  # fmt: skip
    """The computation with other objects in the place of its sizes, in the order of its form, and of its ordinary
    constants. `called`: the computations that it calls instead of its own."""
    shapes: dict[tuple[object, ...], Shape] = {}
    """One object for each array of the same sizes: equal shapes are often found by identity."""

    def size_of(number: int) -> Any:
        return next(sizes) if number > FEW else number

    def array_of(shape: Shape) -> Shape:
        dimensions = tuple([size_of(n) for n in shape.dimensions])
        key = shape.element_type, *map(id, dimensions)
        found = shapes.get(key)
        if found is None:
            found = shapes[key] = Shape(shape.element_type, dimensions, shape.layout)
        return found

    def shape_of(shape: Shape) -> Shape:  # it does not call itself, which the collector would have to find
        if not has_sizes(shape):
            return shape
        if shape.tuple_shapes is not None:
            return Shape.tuple([array_of(s) if has_sizes(s) else s for s in shape.tuple_shapes])
        return array_of(shape)

    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        attributes, shape = old.attributes, old.shape
        if old.opcode is Opcode.CONSTANT:
            opaque: Any = constants.get(attributes.literal)
            attributes = attributes if opaque is None else ConstantAttributes(opaque)
        else:
            if attributes is not NO_ATTRIBUTES:
                attributes = sizes_of(attributes, size_of)
                if called and old.called_computations():
                    attributes = attributes.map_computations(called.__getitem__)
            shape = shape_of(shape)
        mapping[old] = old.with_form(shape, tuple([mapping[o] for o in old.operands]), attributes)
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])


def sizes_of(attributes: Any, change: Callable[[Any], Any]) -> Any:
    """The attributes with changed sizes; themselves if they hold none."""
    names = _WITH_SIZES.get(type(attributes))
    if names is None:
        return attributes
    return replace(attributes, **{name: tuple(map(change, getattr(attributes, name))) for name in names})
