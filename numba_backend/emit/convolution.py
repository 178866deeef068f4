"""The sizes of canonical convolutions, and kernels that read the input where it is.

These kernels accumulate in the result, one row at a time, as the kernels of reduce-window do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.convolution import is_channels_last, phases_of
from ...hlo.window import Window, WindowDimension, dilated
from ..emitted_kernel import HI, LO, EmittedKernel
from ..loops.expressions import (
    ZERO,
    Binary,
    Expr,
    Load,
    Name,
    all_of,
    call,
    product,
    product_of,
    sum_of,
    unary,
)
from ..runtime.blas import ROUTINES
from .element import CAST
from .scalar_computations import KernelText
from .window_axes import NOTHING, Axis, KernelAxis, kernel_axes, row_major, take_apart

SUPPORTED = frozenset((ElementType.F32, ElementType.F64))
"""Element types with vector instructions for products."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of a canonical convolution. The window moves along `axes`; there is at least one."""

    element_type: ElementType
    channels_last: bool
    batch: int
    groups: int
    inputs: int
    """Input features of one group."""
    outputs: int
    """Output features of one group."""
    axes: tuple[Axis, ...]

    @property
    def features(self) -> int:
        return self.groups * self.inputs

    @property
    def made(self) -> int:
        return self.groups * self.outputs

    @property
    def positions(self) -> int:
        return math.prod(axis.count for axis in self.axes)

    @property
    def taps(self) -> int:
        return math.prod(axis.part.size for axis in self.axes)

    @property
    def is_product(self) -> bool:
        """True if BLAS can do it: not for integers, nor for a depthwise convolution, where matrices are vectors, nor
        with holes, which it would multiply."""
        depthwise = self.groups > 1 and self.inputs == self.outputs == 1
        return self.element_type.value in ROUTINES and not depthwise and self.holes == 1

    @property
    def holes(self) -> int:
        """How many cells there are for each element of the input."""
        return math.prod(axis.part.base_dilation for axis in self.axes)

    @property
    def depth(self) -> int:
        """How many products are added up for one result."""
        return self.inputs * self.taps


def sizes_of(convolution: HloInstruction) -> Sizes:
    """The sizes of a canonical convolution; one without spatial dimensions gets one of size 1.

    The window of a derivative by the input may be reversed."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, window, groups = attributes.dimension_numbers, attributes.window, attributes.feature_group_count
    assert attributes.batch_group_count == 1, "a convolution that is not canonical"
    return Sizes(
        convolution.shape.element,
        is_channels_last(attributes),
        array[numbers.input_batch],
        groups,
        kernel[numbers.kernel_input_feature],
        kernel[numbers.kernel_output_feature] // groups,
        _axes(array, convolution.shape.dimensions, numbers.input_spatial, numbers.output_spatial, window),
    )


def sizes_of_gradient(convolution: HloInstruction, channels_last: bool) -> Sizes:
    """The sizes of a convolution, given its derivative by the kernel."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, groups = attributes.dimension_numbers, attributes.batch_group_count
    window = tuple(
        WindowDimension(
            convolution.shape.dimensions[d], part.window_dilation, part.padding_low, 0, 1, part.stride
        )
        for d, part in zip(numbers.output_spatial, attributes.window, strict=True)
    )
    return Sizes(
        convolution.operands[0].shape.element,
        channels_last,
        array[numbers.input_feature],
        groups,
        array[numbers.input_batch] // groups,
        kernel[numbers.kernel_output_feature] // groups,
        _axes(array, kernel, numbers.input_spatial, numbers.kernel_spatial, window),
    )


def _axes(
    array: Sequence[int], result: Sequence[int], sources: Sequence[int], targets: Sequence[int], window: Window
) -> tuple[Axis, ...]:
    axes = tuple(Axis(array[d], result[e], part) for d, e, part in zip(sources, targets, window, strict=True))
    return axes or (Axis(1, 1, NOTHING),)


def _zero(element_type: ElementType) -> Expr:
    if element_type.is_complex:
        part = call(CAST[element_type.real], 0)
        return call("complex_from", part, part)
    return call("uint8" if element_type is ElementType.PRED else CAST[element_type], 0)


def _add_product(text: KernelText, element_type: ElementType, total: Load, x: Expr, weight: Expr) -> None:
    """``total = total + x * weight`` in the element type; for pred, `or` and `and`."""
    if element_type is ElementType.PRED:
        value = call("uint8", call("bit_or", total, call("bit_and", x, weight)))
    else:
        value = sum_of(total, product_of(x, weight))
    text.writer.store(total.pointer, total.index, value)


def _has_padding(sizes: Sizes) -> bool:
    """True if padding takes part in products that may be other than zero."""
    parts = [axis.part for axis in sizes.axes]
    return sizes.element_type.is_inexact and any(part.padding_low > 0 or part.padding_high > 0 for part in parts)


@contextmanager
def _rows_with_padding(text: KernelText, sizes: Sizes, w: Name) -> Iterator[Name]:
    """Opens the loop over the rows again for the products with padding, which kernels leave out: they are zero unless a
    weight is infinite or NaN. ::

    if nothing != 0:
        for row in range(lo, hi):
    """
    zero = _zero(sizes.element_type)
    nothing = text.writer.assign("nothing", zero)
    writer = text.writer
    with writer.loop("j", ZERO, text.argument("all_weights", sizes.made * sizes.depth)) as j:
        writer.assign(nothing, call("reduce_add", nothing, w[j]))
    writer.assign(nothing, product_of(nothing, zero))
    with text.writer.if_(nothing.ne(zero)), text.writer.loop("row", LO, HI) as row:
        yield row


def _is_padding(axes: Sequence[KernelAxis], positions: Sequence[Expr], taps: Sequence[Expr]) -> Expr:
    """True if an element of the window is in padding at a position: outside along some axis, and in no hole."""
    inside: list[Expr] = []
    no_hole: list[Expr] = []
    for axis, position, tap in zip(axes, positions, taps, strict=True):
        cell = axis.cell(axis.origin(position), tap)
        inside += [cell >= 0, cell < axis.extent]
        if axis.part.base_dilation != 1:
            no_hole.append((cell % axis.holes).eq(0))
    return all_of([*no_hole, unary("not", all_of(inside))])


def emit_direct_first(sizes: Sizes) -> EmittedKernel:
    """The whole convolution, channels first. Operand 0: the input; operand 1: the kernel; output 0: the result."""
    text = KernelText("convolution", guarded=True)
    writer, element = text.writer, sizes.element_type
    x, w, out = _pointers(text, element)
    axes = kernel_axes(text, sizes.axes, moves=True)
    last, outer = axes[-1], axes[:-1]
    inputs, outputs = text.size("inputs", sizes.inputs), text.size("outputs", sizes.outputs)
    groups, made = text.size("groups", sizes.groups), text.size("made", sizes.made)
    names, counts = ["image", "o", *(f"o{a.number}" for a in outer)], [ZERO, made, *(a.count for a in outer)]
    weight_sizes = [ZERO, inputs, *(a.window for a in axes)]
    with ExitStack() as stack:
        row = stack.enter_context(writer.loop("row", LO, HI))
        image, o, *positions = take_apart(text, row, names, counts)
        first = writer.assign("first", product(row, last.count))
        with writer.loop("j", last.count) as j:
            writer.store(out, first + j, _zero(element))
        i = stack.enter_context(writer.loop("i", inputs))
        plane = writer.assign("plane", row_major([image, o // outputs, i], [ZERO, groups, inputs]))
        elements, indices = _over_window(stack, outer, positions)
        base = writer.assign("base", row_major([plane, *indices, ZERO], [ZERO, *(a.size for a in axes)]))
        k = stack.enter_context(writer.loop("k", last.window))
        weight = writer.assign("weight", w[row_major([o, i, *elements, k], weight_sizes)])
        shift = last.shift(k)
        begin, end = last.span(shift, ZERO, last.count)
        if last.part.base_dilation == 1:
            j = stack.enter_context(writer.loop("j", begin, end))
            _add_product(text, element, out[first + j], x[base + j * last.stride + shift], weight)
        else:
            to, source, count, apart = _between_holes(stack, last, shift, begin, end)
            j = stack.enter_context(writer.loop("j", count))
            at = writer.assign("at", to + product(j, apart[0]))
            _add_product(text, element, out[first + at], x[base + source + product(j, apart[1])], weight)
    if _has_padding(sizes):
        with _rows_with_padding(text, sizes, w) as row:
            _, o, *positions = take_apart(text, row, names, counts)
            first = writer.assign("first", product(row, last.count))
            with writer.loop("i", inputs) as i, ExitStack() as stack:
                elements = [stack.enter_context(writer.loop(f"k{a.number}", a.window)) for a in axes]
                weight = writer.assign("weight", w[row_major([o, i, *elements], weight_sizes)])
                j = stack.enter_context(writer.loop("j", last.count))
                stack.enter_context(writer.if_(_is_padding(axes, [*positions, j], elements)))
                _add_product(text, element, out[first + j], _zero(element), weight)
    rows = sizes.batch * sizes.made * math.prod(axis.count for axis in sizes.axes[:-1])
    return text.finish(rows)


def _between_holes(
    stack: ExitStack, axis: KernelAxis, shift: Expr, begin: Expr, end: Expr
) -> tuple[Name, Name, Expr, tuple[Expr, Expr]]:
    """The positions of the window from `begin` to `end` at which its element that is `shift` cells away covers no hole:
    the first one, its index in the array, how many there are, and how far apart these and their indices are. ::

        if shift % common == 0:
            low = begin
            to = low + (-(shift // common) * inverse - low) % phases
            source = (to * stride + shift) // holes

    `common` is what stride and holes have in common; `inverse`, times the stride over it, is 1 modulo `phases`.
    """
    writer, part = axis.text.writer, axis.part
    common, phases = math.gcd(part.stride, part.base_dilation), phases_of(part)
    if common > 1:
        of_common = axis.text.argument("common", common)
        stack.enter_context(writer.if_((shift % of_common).eq(0)))
        number = writer.assign("number", shift // of_common)
    else:
        number = writer.assign("number", shift)
    of_phases = axis.text.argument("phases", phases)
    inverse = axis.text.argument("inverse", pow(part.stride // common, -1, phases))
    low = writer.assign("low", begin)
    to = writer.assign("to", low + (-product(number, inverse) - low) % of_phases)
    source = writer.assign("source", (to * axis.stride + shift) // axis.holes)
    count = Binary("-", end + of_phases - 1, to) // of_phases
    return to, source, count, (of_phases, axis.text.size("of_index", part.stride // common))


def emit_direct_last(sizes: Sizes) -> EmittedKernel:
    """The same, channels last. In a depthwise convolution, each feature has one input and one output."""
    depthwise = sizes.inputs == sizes.outputs == 1
    text = KernelText("depthwise_convolution" if depthwise else "convolution_channels_last", guarded=True)
    writer, element = text.writer, sizes.element_type
    x, w, out = _pointers(text, element)
    axes = kernel_axes(text, sizes.axes, moves=True)
    features = text.size("features", sizes.features)
    made = features if depthwise else text.size("made", sizes.made)
    inputs = text.size("inputs", sizes.inputs)
    names, counts = ["image", *(f"o{a.number}" for a in axes)], [ZERO, *(a.count for a in axes)]
    with ExitStack() as stack:
        row = stack.enter_context(writer.loop("row", LO, HI))
        image, *positions = take_apart(text, row, names, counts)
        first = writer.assign("first", product(row, made))
        with writer.loop("j", made) as j:
            writer.store(out, first + j, _zero(element))
        elements, indices = _over_window(stack, axes, positions)
        base = writer.assign("base", row_major([image, *indices, ZERO], [ZERO, *(a.size for a in axes), features]))
        if depthwise:
            weights = writer.assign("weights", row_major([*elements, ZERO], [*(a.window for a in axes), features]))
            with writer.loop("j", features) as j:
                _add_product(text, element, out[first + j], x[base + j], w[weights + j])
        else:
            outputs = text.size("outputs", sizes.outputs)
            g = stack.enter_context(writer.loop("g", text.size("groups", sizes.groups)))
            i = stack.enter_context(writer.loop("i", inputs))
            value = writer.assign("value", x[base + product(g, inputs) + i])
            shape = [*(a.window for a in axes), inputs, made]
            weights = writer.assign("weights", row_major([*elements, i, product(g, outputs)], shape))
            start = writer.assign("start", first + product(g, outputs))
            with writer.loop("j", outputs) as j:
                _add_product(text, element, out[start + j], value, w[weights + j])
    if _has_padding(sizes):
        with _rows_with_padding(text, sizes, w) as row:
            _, *positions = take_apart(text, row, names, counts)
            first = writer.assign("first", product(row, made))
            with ExitStack() as stack:
                elements = [stack.enter_context(writer.loop(f"k{a.number}", a.window)) for a in axes]
                stack.enter_context(writer.if_(_is_padding(axes, positions, elements)))
                i = stack.enter_context(writer.loop("i", inputs))
                shape = [*(a.window for a in axes), inputs, made]
                weights = writer.assign("weights", row_major([*elements, i, ZERO], shape))
                with writer.loop("j", made) as j:
                    _add_product(text, element, out[first + j], _zero(element), w[weights + j])
    return text.finish(sizes.batch * sizes.positions)


def _pointers(text: KernelText, element_type: ElementType) -> tuple[Name, Name, Name]:
    """The input, the kernel and the result."""
    x, w = text.operand("x", element_type, 0), text.operand("w", element_type, 1)
    return x.pointer, w.pointer, text.output("out", element_type, 0).pointer


def _over_window(
    stack: ExitStack, axes: Sequence[KernelAxis], positions: Sequence[Expr]
) -> tuple[list[Name], list[Expr]]:
    """Opens the loops over the window; gives the element of the window along each axis, and its index in the input. ::

        for k0 in range(window):
            cell0 = o0 * stride - low + k0 * dilation
            if cell0 >= 0 and cell0 < n0:
    """
    elements: list[Name] = []
    indices: list[Expr] = []
    for axis, position in zip(axes, positions, strict=True):
        element, index = axis.over_window(stack, axis.origin(position), axis.window)
        elements.append(element)
        indices.append(index)
    return elements, indices


def is_pointwise(sizes: Sizes) -> bool:
    """True when the window at each position covers one element, so that the input is the patch matrix."""
    return all(
        axis.size == axis.count and (axis.part.size, axis.part.stride, axis.part.padding_low) == (1, 1, 0)
        and dilated(axis.size, axis.part.base_dilation) == axis.size
        for axis in sizes.axes
    )  # fmt: skip
