"""MLIR's types and HLO's shapes."""

from __future__ import annotations

from ..element_type import ElementType
from ..errors import UnsupportedError
from ..mlir.tree import DYNAMIC, IndexType, NoneType, OtherType, Quantized, Record, Tensor, Token, Tuple, Type
from ..shape import Shape
from .vhlo_quantized import quantized_fields

_LETTERS = {"s": "i", "u": "ui"}


def shape_of(type_: Type) -> Shape:
    """The shape of a value of this type; UnsupportedError, with the type, for one that HLO's arrays do not have."""
    match type_:
        case Tensor():
            if DYNAMIC in type_.dimensions:
                why = "a size that is known only when the program runs, and that no constant of the program tells"
                raise UnsupportedError(f"the type {type_text(type_)} has {why}")
            if isinstance(type_.encoding, Record) and type_.encoding.kind in ("bounds", "type_extensions"):
                raise UnsupportedError(f"the type {type_text(type_)} has sizes that change while the program runs")
            return Shape.array(element_of(type_), type_.dimensions)
        case Token():
            return Shape.token()
        case Tuple():
            return Shape.tuple([shape_of(element) for element in type_.elements])
    raise UnsupportedError(f"values of the type {type_text(type_)} are not supported")


def fits(shape: Shape, type_: Type) -> bool:
    """Whether an array, tuple or token of this shape is a value of the type. A size `?` is any; types that HLO does not
    have are not looked at."""
    match type_:
        case Tensor():
            if not shape.is_array or len(shape.dimensions) != len(type_.dimensions):
                return False
            is_size = all(known in (n, DYNAMIC) for n, known in zip(shape.dimensions, type_.dimensions))
            return is_size and shape.element is element_of(type_)
        case Token():
            return shape.is_token
        case Tuple():
            elements = shape.tuple_shapes
            return (
                elements is not None
                and len(elements) == len(type_.elements)
                and all(map(fits, elements, type_.elements))
            )
    return True


def element_of(type_: Tensor) -> ElementType:
    """The element type; for quantized numbers, the type of the stored integers. `index` is an integer of 64 bits.
    UnsupportedError for one that HLO does not have."""
    if isinstance(type_.element, Quantized):
        is_signed, storage, *_ = quantized_fields(type_.element)
        return storage if is_signed else ElementType(f"u{storage.bit_width}")
    if isinstance(type_.element, OtherType):
        raise UnsupportedError(f"the element type of {type_text(type_)} is not supported")
    return ElementType.S64 if isinstance(type_.element, IndexType) else type_.element


def type_of(shape: Shape) -> Type:
    """The type of a value of this shape; the layout is left out."""
    if shape.is_token:
        return Token()
    if shape.tuple_shapes is not None:
        return Tuple(tuple(type_of(element) for element in shape.tuple_shapes))
    if shape.element in (ElementType.S1, ElementType.U1):
        raise UnsupportedError(f"MLIR has no type for {shape.element.value}: i1 is a truth value")
    return Tensor(shape.dimensions, shape.element)


def element_text(element: ElementType) -> str:
    """An element type's name in MLIR: `i1`, `i8`, `ui8`, `f8E4M3FN`, `complex<f32>`."""
    if element is ElementType.PRED:
        return "i1"
    if element.is_complex:
        return f"complex<{element_text(element.real)}>"
    if element.is_integral:
        return f"{_LETTERS[element.value[0]]}{element.bit_width}"
    name = element.value
    return f"f{name[1:].upper()}" if element.is_small else name


def type_text(type_: Type) -> str:
    """A type as MLIR writes it."""
    match type_:
        case ElementType():
            return element_text(type_)
        case Tensor():
            element = type_.element
            inner = element_text(element) if isinstance(element, ElementType) else type_text(element)
            sizes = "".join("?x" if size == DYNAMIC else f"{size}x" for size in type_.dimensions)
            return f"tensor<{sizes}{inner}>"
        case Tuple():
            return f"tuple<{', '.join(map(type_text, type_.elements))}>"
        case Token():
            return "!stablehlo.token"
        case IndexType():
            return "index"
        case NoneType():
            return "none"
        case Quantized() | OtherType():
            return type_.text
    return f"({', '.join(map(type_text, type_.inputs))}) -> ({', '.join(map(type_text, type_.results))})"
