"""Convolution. Source: XLA's ShapeInference::InferConvolveShape; the section "Conv" of the operation semantics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import INTEGER, PRECISION
from ..text.codecs_dimensions import DIM_LABELS, WINDOW
from ..window import ConvolutionDimensionNumbers, Window, places, problem
from .checks import array_of, fail, require_arrays
from .declare import Attr
from .spec import OpSpec, Trait


@dataclass(frozen=True, slots=True)
class ConvolutionAttributes(Attributes):
    """Operands: input and kernel. `window` has one entry for each spatial dimension.

    The result's element type may be wider than the operands' (preferred_element_type).
    """

    window: Annotated[Window, Attr(WINDOW, absent=())]
    dimension_numbers: Annotated[ConvolutionDimensionNumbers, Attr(DIM_LABELS, key="dim_labels")]
    feature_group_count: Annotated[int, Attr(INTEGER)] = 1
    batch_group_count: Annotated[int, Attr(INTEGER)] = 1
    operand_precision: Annotated[tuple[str, str], Attr(PRECISION)] = ("default", "default")


def _is_order(numbers: Sequence[int]) -> bool:
    return sorted(numbers) == list(range(len(numbers)))


def _alike(a: ElementType, b: ElementType) -> bool:
    return a is b or (a.is_floating and b.is_floating)


def _convolution_rule(operands: Sequence[Shape], attributes: ConvolutionAttributes, declared: Shape | None) -> Shape:
    """Operands: input and kernel. They are multiplied and added up in the result's element type.

    c1: both are arrays, of one element type or of two floating-point types; c2: each has a batch (output feature), a
    feature and n spatial dimensions, the result too; the dimension numbers name each of them once; c3: the window has
    one entry for each spatial dimension, with positive size, stride and dilations, and its sizes are the kernel's; c4:
    the group counts are positive, and one of them is 1; c5: the input's features are the kernel's times
    feature_group_count; c6: feature_group_count divides the kernel's output features; c7: batch_group_count divides
    the input's batch and the kernel's output features; c8: a declared element type is of the operands' kind or a wider
    one (floats do not become integers, complex numbers do not become floats); c9: if the element types differ, the
    result's is declared.
    """
    opcode, numbers, window = Opcode.CONVOLUTION, attributes.dimension_numbers, attributes.window
    require_arrays(opcode, operands, 1)
    lhs, rhs = operands
    if not _alike(lhs.element, rhs.element):
        fail(opcode, operands, "the operands must have one element type, or two of floating point", 1)
    source = (numbers.input_batch, numbers.input_feature, *numbers.input_spatial)
    kernel = (numbers.kernel_input_feature, numbers.kernel_output_feature, *numbers.kernel_spatial)
    result = (numbers.output_batch, numbers.output_feature, *numbers.output_spatial)
    for order, rank, what in ((source, lhs.rank, "input"), (kernel, rhs.rank, "kernel"), (result, lhs.rank, "result")):
        if not _is_order(order) or len(order) != rank:
            fail(opcode, operands, f"dimension numbers {list(order)} do not name each {what} dimension once", 2)
    sizes = [lhs.dimensions[d] for d in numbers.input_spatial]
    why = problem(window, sizes)
    if why:
        fail(opcode, operands, why, 3)
    for part, d in zip(window, numbers.kernel_spatial, strict=True):
        if part.size != rhs.dimensions[d]:
            fail(opcode, operands, f"the window's size {part.size} is not the kernel's along dimension {d}", 3)
    groups, batch_groups = attributes.feature_group_count, attributes.batch_group_count
    if min(groups, batch_groups) < 1 or min(groups, batch_groups) != 1:
        why = f"feature_group_count={groups} and batch_group_count={batch_groups} must be positive, and one of them 1"
        fail(opcode, operands, why, 4)
    features, batch = lhs.dimensions[numbers.input_feature], lhs.dimensions[numbers.input_batch]
    taken, made = rhs.dimensions[numbers.kernel_input_feature], rhs.dimensions[numbers.kernel_output_feature]
    if features != taken * groups:
        why = f"the input has {features} features, but must have {taken} in each of {groups} groups"
        fail(opcode, operands, why, 5)
    if made % groups:
        fail(opcode, operands, f"feature_group_count={groups} does not divide {made} output features", 6)
    if batch % batch_groups or made % batch_groups:
        why = f"batch_group_count={batch_groups} does not divide a batch of {batch} and {made} output features"
        fail(opcode, operands, why, 7)
    dimensions = [0] * lhs.rank
    dimensions[numbers.output_batch] = batch // batch_groups
    dimensions[numbers.output_feature] = made
    for d, size, part in zip(numbers.output_spatial, sizes, window, strict=True):
        dimensions[d] = places(size, part)
    return array_of(_element_type(operands, declared), tuple(dimensions))


def _kind(element_type: ElementType) -> int:
    """The number of the kind: pred, integers, floats, complex numbers. Each kind includes those before it."""
    return 3 if element_type.is_complex else 2 if element_type.is_floating else 1 if element_type.is_integral else 0


def _element_type(operands: Sequence[Shape], declared: Shape | None) -> ElementType:
    lhs, rhs = operands
    if declared is not None and declared.element_type is not None:
        if _kind(declared.element_type) < max(_kind(lhs.element), _kind(rhs.element)):
            why = f"the result type {declared.element_type.value} cannot hold the products"
            fail(Opcode.CONVOLUTION, operands, why, 8)
        return declared.element_type
    if lhs.element is not rhs.element:
        fail(Opcode.CONVOLUTION, operands, "the element types differ, so the result's must be given", 9)
    return lhs.element


SPECS: tuple[OpSpec, ...] = (
    OpSpec(Opcode.CONVOLUTION, "convolution", 2, ConvolutionAttributes, _convolution_rule, Trait.EXPENSIVE),
)
