"""Shapes: the type of every HLO value, an array (element type, dimensions, layout), a tuple of shapes, or a token.

Source: XLA's Shape and ShapeUtil; the page "Shapes and layout".
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .element_type import ElementType, element_type_named
from .errors import ShapeError
from .layout import MAX_RANK, Layout, PaddingValue, row_major
from .layout_rules import MAX_BYTES, LayoutViolation, fits_element_size, has_padding_value, layout_violation
from .notebooks import in_notebooks
from .physical_form import PhysicalForm, physical_form
from .sizes import is_symbolic
from .support.lazy import lazy_pattern
from .support.records import dataclass
from .text.layouts import Positions, read_layout
from .text.scanner import Scanner

_LAYOUT_FOLLOWS = lazy_pattern(r"\{\s*[0-9:}]")
_LAYOUT_OF_TUPLE_FOLLOWS = lazy_pattern(r"\{\s*[0-9:]")
_MOST_ARRAYS = 4096
_arrays: dict[tuple[ElementType, tuple[int, ...]], Shape] = {}
"""The shapes of arrays in row-major order that were made lately: a program has few, and each many times."""

MAX_TUPLE_DEPTH = 64
"""How deep tuples may nest in text: more than programs need, little enough for recursive functions on shapes."""


@dataclass(frozen=True, slots=True)
class Shape:
    """The type of an array, a tuple or a token. Make one with `Shape.array`, `.tuple`, `.token` or `.parse`.

    Arrays: `element_type`, `dimensions` and `layout` are set, `tuple_shapes` is None.
    Tuples: `tuple_shapes` is set (perhaps empty), `element_type` and `layout` are None.
    Tokens, which order side effects and hold no data, are empty tuples with `is_token` set: they have no leaves.
    Equality includes layouts; `compatible` ignores them.
    """

    element_type: ElementType | None
    dimensions: tuple[int, ...] = ()
    layout: Layout | None = None
    tuple_shapes: tuple[Shape, ...] | None = None
    is_token: bool = False

    def __eq__(self, other: Any) -> Any:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return (
            self.element_type is other.element_type
            and len(self.dimensions) == len(other.dimensions)  # before observed sizes are compared
            and self.dimensions == other.dimensions
            and self.layout == other.layout
            and self.tuple_shapes == other.tuple_shapes
            and self.is_token is other.is_token
        )

    def __hash__(self) -> int:
        """Layouts are left out: nearly all are row-major, and a hash of them takes longer than the rest."""
        return hash((self.element_type, self.dimensions, self.tuple_shapes))

    @staticmethod
    def array(element_type: ElementType, dimensions: Sequence[int] = (), layout: Layout | None = None) -> Shape:
        """An array shape; `layout` defaults to row-major.

        ShapeError, shape_c1: a dimension is negative; shape_c2: the elements do not fit in 64-bit memory, not counting
        dimensions of size 0, since NumPy has no such arrays; layout_c1 to layout_c12: the array cannot have this layout
        (`layout_rules.py` lists the rules).
        """
        dims = tuple(dimensions)
        if layout is None:
            try:
                known = _arrays.get((element_type, dims))
            except TypeError:  # sizes without a hash, as backends have for themselves
                known = None
            if known is not None:
                return known
        if any(d < 0 for d in dims if not is_symbolic(d)):
            why = "has a negative dimension: sizes must be at least 0"
            raise ShapeError(f"{element_type.value}{list(dims)} {why}", "shape_c1")
        if not fits_in_memory(element_type, dims):
            raise ShapeError(f"{element_type.value}{list(dims)} does not fit in 64-bit memory", "shape_c2")
        default = row_major(len(dims))
        if (
            layout is None
            or layout is default
            or (layout.minor_to_major == default.minor_to_major and layout == default)
        ):
            layout = default
        else:
            violation = layout_violation(element_type, dims, layout)
            if violation is not None:
                raise ShapeError(f"{element_type.value}{list(dims)}: {violation.message}", violation.label)
        made = Shape(element_type, dims, layout)
        if layout is default and all(type(d) is int for d in dims):
            if len(_arrays) >= _MOST_ARRAYS:
                _arrays.clear()
            _arrays[element_type, dims] = made
        return made

    @staticmethod
    def tuple(shapes: Sequence[Shape]) -> Shape:
        """The shape of a tuple with elements of `shapes`."""
        return Shape(None, (), None, tuple(shapes))

    @staticmethod
    def token() -> Shape:
        """The shape of a token, `token[]`."""
        return Shape(None, (), None, (), True)

    @staticmethod
    def parse(text: str) -> Shape:
        """Read a shape from XLA's text, e.g. ``f32[2,3]{1,0}`` or ``(f32[], s32[4])``; HloParseError if malformed."""
        scanner = Scanner(text)
        shape = read_shape(scanner)
        if not scanner.at_end():
            raise scanner.expected("the end of the shape")
        return shape

    @property
    def is_tuple(self) -> bool:
        return self.tuple_shapes is not None

    @property
    def is_array(self) -> bool:
        return self.tuple_shapes is None

    @property
    def is_scalar(self) -> bool:
        return self.tuple_shapes is None and not self.dimensions

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dimensions)

    @property
    def true_rank(self) -> int:
        """The number of dimensions larger than 1."""
        return sum(d > 1 for d in self.dimensions)

    def dimension(self, dimension: int | str) -> int:
        """The size of a dimension, by number or by letter as in `dimension_number` (ShapeUtil::GetDimension)."""
        return self.dimensions[self.dimension_number(dimension)]

    def dimension_number(self, dimension: int | str) -> int:
        """The number of a dimension of an array, from 0. Numbers below 0 count from the end: -1 is the last
        (ShapeUtil::GetDimensionNumber). Letters are as in `dimension_names`.

        ShapeError, shape_c3: the array has no such dimension, or its dimensions have no letters.
        """
        if isinstance(dimension, str):
            names = self.dimension_names
            if dimension not in names:
                known = f"dimensions {', '.join(names)}" if names else "no letters for its dimensions: use numbers"
                raise ShapeError(f"{self} has {known}, not {dimension[:40]!r}", "shape_c3")
            return names.index(dimension)
        if self.tuple_shapes is not None or not -self.rank <= dimension < self.rank:
            known = f"dimensions {-self.rank} to {self.rank - 1}" if self.rank else "no dimensions"
            raise ShapeError(f"{self} has {known}: there is no dimension {dimension}", "shape_c3")
        return dimension % self.rank

    @property
    def dimension_names(self) -> builtins.tuple[str, ...]:
        """The letters that arrays of two to four dimensions have by convention: (y, x), (z, y, x), (p, z, y, x). Arrays
        of other ranks have none."""
        return tuple("pzyx"[4 - self.rank :]) if 2 <= self.rank <= 4 else ()

    @property
    def num_elements(self) -> int:
        """The number of elements of an array; 1 for a scalar."""
        return math.prod(self.dimensions)

    @property
    def element(self) -> ElementType:
        """The element type of an array; asserts that it is one."""
        assert self.element_type is not None, f"{self} is not an array"
        return self.element_type

    @property
    def array_layout(self) -> Layout:
        """The layout of an array; asserts that it is one."""
        assert self.layout is not None, f"{self} is not an array"
        return self.layout

    @property
    def elements(self) -> builtins.tuple[Shape, ...]:
        """The shapes of a tuple's elements; asserts that it is one."""
        assert self.tuple_shapes is not None, f"{self} is not a tuple"
        return self.tuple_shapes

    @property
    def byte_size(self) -> int:
        """Bytes of an array's buffer in its layout, padding included; for a tuple, the sum over its leaves."""
        if self.tuple_shapes is not None:
            return sum(s.byte_size for s in self.tuple_shapes)
        layout = self.array_layout
        if layout.is_dense:
            return self.num_elements * self.element.byte_width
        return -(-self.physical_form.num_elements * self.bits_per_element // 8)

    @property
    def logical_byte_size(self) -> int:
        """Bytes of an array in a dense buffer; for a tuple, the sum over its leaves."""
        if self.tuple_shapes is not None:
            return sum(s.logical_byte_size for s in self.tuple_shapes)
        return self.num_elements * self.element.byte_width

    @property
    def bits_per_element(self) -> int:
        """Bits from one element of an array to the next in its buffer."""
        return self.array_layout.element_size_in_bits or 8 * self.element.byte_width

    @property
    def physical_form(self) -> PhysicalForm:
        """The dimensions of an array's buffer in memory."""
        return physical_form(self.dimensions, self.array_layout)

    def leaves(self) -> Iterator[Shape]:
        """The array shapes in this shape, depth first."""
        if self.tuple_shapes is None:
            yield self
        else:
            for shape in self.tuple_shapes:
                yield from shape.leaves()

    def strides(self) -> builtins.tuple[int, ...]:
        """Elements between neighbours along each dimension, in a dense layout."""
        assert self.array_layout.is_dense, f"{self} is not dense"
        strides, step = [0] * self.rank, 1
        for d in self.array_layout.minor_to_major:
            strides[d] = step
            step *= self.dimensions[d]
        return tuple(strides)

    def with_element_type(self, element_type: ElementType) -> Shape:
        """The same dimensions and layout with another element type. Packing that the new type does not fit, and a
        padding value that it does not have, are removed from the layout."""
        layout = self.array_layout
        if layout.element_size_in_bits and not fits_element_size(element_type, layout.element_size_in_bits):
            layout = replace(layout, element_size_in_bits=0)
        if not has_padding_value(element_type, layout.padding_value):
            layout = replace(layout, padding_value=PaddingValue.UNKNOWN_PAD)
        return Shape.array(element_type, self.dimensions, layout)

    def with_layout(self, layout: Layout) -> Shape:
        """The same array with another layout. ShapeError as from `array`; layout_c13 for a tuple or a token."""
        if self.element_type is None:
            raise ShapeError(_no_layout(self), "layout_c13")
        return Shape.array(self.element_type, self.dimensions, layout)

    def with_default_layout(self) -> Shape:
        """The same shape with every leaf in row-major order."""
        if self.is_token:
            return self
        if self.tuple_shapes is not None:
            return Shape.tuple([s.with_default_layout() for s in self.tuple_shapes])
        return Shape(self.element_type, self.dimensions, row_major(self.rank))

    def compatible(self, other: Shape) -> bool:
        """True when both have the same element types and dimensions; layouts may differ."""
        if self.tuple_shapes is not None or other.tuple_shapes is not None:
            if self.tuple_shapes is None or other.tuple_shapes is None:
                return False
            return (
                self.is_token is other.is_token
                and len(self.tuple_shapes) == len(other.tuple_shapes)
                and all(a.compatible(b) for a, b in zip(self.tuple_shapes, other.tuple_shapes, strict=True))
            )
        return self.element_type is other.element_type and self.dimensions == other.dimensions

    def layouts_equal(self, other: Shape, **options: bool) -> bool:
        """True when both have the same structure and ranks, and equal layouts. `options` as in `Layout.equal`: the
        properties to ignore (LayoutUtil::LayoutsInShapesEqual). Element types and sizes may differ."""
        if self.layout is not None and other.layout is not None:
            return self.layout.equal(other.layout, **options)
        if self.tuple_shapes is None or other.tuple_shapes is None:
            return False
        return len(self.tuple_shapes) == len(other.tuple_shapes) and all(
            a.layouts_equal(b, **options) for a, b in zip(self.tuple_shapes, other.tuple_shapes, strict=True)
        )

    def to_text(self, layout: bool = True) -> str:
        """XLA's text, with or without layouts."""
        if self.is_token:
            return "token[]"
        if self.tuple_shapes is not None:
            return "(" + ", ".join(s.to_text(layout) for s in self.tuple_shapes) + ")"
        text = f"{self.element.value}[{','.join(map(str, self.dimensions))}]"
        is_shown = layout and (self.dimensions or self.layout != row_major(0))
        return text + str(self.layout) if is_shown else text

    def __str__(self) -> str:
        return self.to_text(layout=False)

    _repr_html_ = in_notebooks


def fits_in_memory(element_type: ElementType, dimensions: Sequence[int]) -> bool:
    """True if arrays of these sizes can exist, or may, if these are symbolic: rule shape_c2."""
    if any(map(is_symbolic, dimensions)):
        return True
    count = math.prod(dimensions) or math.prod([d for d in dimensions if d])
    return count * element_type.byte_width <= MAX_BYTES


def is_beyond_numpy(shape: Shape) -> bool:
    """True if NumPy may refuse with a ValueError, not a MemoryError, to make an array of these sizes and a wider type:
    no computer has memory for such an array, which an op or its rule makes on the way."""
    return any(not fits_in_memory(ElementType.C128, leaf.dimensions) for leaf in shape.leaves())


def read_shape(scanner: Scanner, depth: int = 0) -> Shape:
    """Read a shape from XLA's text. HloParseError if malformed, too large, or of an element type that is not supported.

    An array without a layout gets the row-major one.
    """
    start = scanner.skip()
    if scanner.accept("("):
        if depth == MAX_TUPLE_DEPTH:
            raise scanner.error(f"tuples are nested deeper than {MAX_TUPLE_DEPTH}", start)
        shapes = []
        if not scanner.peek(")"):
            shapes.append(read_shape(scanner, depth + 1))
            while scanner.accept(","):
                shapes.append(read_shape(scanner, depth + 1))
        scanner.expect(")", "or ',' after an element of a tuple shape")
        return _without_layout(scanner, Shape.tuple(shapes))
    name = scanner.word("a shape")
    if name in ("b", "opaque") and (scanner.peek("(") or scanner.peek("[")):
        what = "buffers, b(...)," if name == "b" else "opaque values"
        raise scanner.error(f"shapes of {what} are not supported", start)
    if name == "token" and scanner.accept("["):
        scanner.expect("]", "after token[")
        return _without_layout(scanner, Shape.token())
    element_type = element_type_named(name)
    if element_type is None or not scanner.peek("["):
        known = ", ".join(t.value for t in ElementType)
        found = "no element type is" if element_type is None else "'[' is missing after"
        raise scanner.error(f"expected a shape, but {found} {name!r}; supported are {known}", start)
    scanner.expect("[")
    dimensions = []
    if not scanner.peek("]"):
        dimensions.append(_read_dimension(scanner))
        while scanner.accept(","):
            dimensions.append(_read_dimension(scanner))
            if len(dimensions) > MAX_RANK:
                raise scanner.error(f"an array has at most {MAX_RANK} dimensions", start)
    scanner.expect("]", "or ',' after a dimension")
    # `{` after a result's shape may begin a computation's body: only text that looks like a layout is one.
    layout_start = scanner.position
    layout = read_layout(scanner) if _LAYOUT_FOLLOWS.match(scanner.text, layout_start) else None
    try:
        return Shape.array(element_type, dimensions, layout)
    except ShapeError as error:
        violation = None if layout is None else layout_violation(element_type, dimensions, layout)
        if violation is not None and violation.label == error.label:
            start = _position_of(violation, Scanner(scanner.text, scanner.file), layout_start)
        raise scanner.error(str(error), start, error.label) from None


def _position_of(violation: LayoutViolation, scanner: Scanner, layout_start: int) -> int:
    """The position in the text of the part of a layout that breaks a rule."""
    positions: Positions = {}
    scanner.position = layout_start
    read_layout(scanner, positions)
    place = violation.place
    while place not in positions:
        place = place[:-1]
    return positions[place]


def _without_layout(scanner: Scanner, shape: Shape) -> Shape:
    """Return `shape`, a tuple or a token. HloParseError if a layout follows it."""
    if _LAYOUT_OF_TUPLE_FOLLOWS.match(scanner.text, scanner.position):
        raise scanner.error(f"{_no_layout(shape)} [layout_c13]", scanner.position, "layout_c13")
    return shape


def _no_layout(shape: Shape) -> str:
    what = "a token" if shape.is_token else "a tuple, whose elements have their own"
    return f"only arrays have a layout; {str(shape)[:60]} is {what}"


def _read_dimension(scanner: Scanner) -> int:
    if scanner.peek("?") or scanner.peek("<="):
        raise scanner.error(
            "dimensions whose size is known only when the program runs (`?`, `<=8`) are not supported: expected the "
            "size of a dimension"
        )
    return scanner.integer("the size of a dimension")
