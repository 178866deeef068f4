"""Kernels of canonical convolutions: patches for a matrix product, and convolutions that are no matrix product.

A patch matrix holds what the window covers at each of its positions. With channels first, its rows are the kernel's
elements and its columns the positions; with channels last it is transposed. In both cases, neighbours in the input are
neighbours in the matrix.

    channels first                               channels last
    for row in range(lo, hi):   # f, k0, k1      for row in range(lo, hi):   # positions
        for o0 in range(y0, y1):                     for k0 in range(3):
            out[...] = x[...]   # along o1               out[...] = x[...]   # along k1 and f

Direct kernels accumulate in the result, one row at a time, as the kernels of reduce-window do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from ...hlo.element_type import ElementType
from ...hlo.ir import HloInstruction
from ...hlo.passes.expand.convolution import is_channels_last
from ...hlo.window import Window, WindowDimension, dilated
from ..loops.expressions import (
    ZERO,
    Binary,
    Expr,
    Load,
    Name,
    all_of,
    call,
    is_number,
    maximum,
    minimum,
    product,
    product_of,
    sum_of,
    unary,
)
from ..runtime.blas import ROUTINES
from .applied import KernelText
from .element import CAST
from .kernel import HI, LO, EmittedKernel
from .window_axes import NOTHING, Axis, KernelAxis, kernel_axes, row_major, take_apart


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
        """True if BLAS can do it: not for integers, nor for a depthwise convolution, where matrices are vectors."""
        depthwise = self.groups > 1 and self.inputs == self.outputs == 1
        return self.element_type.value in ROUTINES and not depthwise

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
    """The sizes of the convolution of which this one is the derivative by the kernel."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, groups = attributes.dimension_numbers, attributes.batch_group_count
    window = tuple(
        WindowDimension(
            convolution.shape.dimensions[d], part.window_dilation, part.padding_low, 0, 1, part.stride
        )
        for d, part in zip(numbers.output_spatial, attributes.window, strict=True)
    )
    return Sizes(
        convolution.shape.element,
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


def emit_patches_first(sizes: Sizes, first_image: int, images: int, first: int, end: int) -> EmittedKernel:
    """Patches [image, feature, k..., position] of some images, for positions `first` to `end` along the first
    dimension. Operand 0: the input; output 0: the patches."""
    text = KernelText("patches", guarded=True)
    writer, zero = text.writer, _zero(sizes.element_type)
    x = text.operand("x", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    axes = kernel_axes(text, sizes.axes, moves=True)
    features = text.size("features", sizes.features)
    before_image = text.argument("first_image", first_image)
    bounds: list[tuple[Expr, Expr]] = [(text.argument("begin", first), text.argument("end", end))]
    bounds += [(ZERO, a.count) for a in axes[1:]]
    last, outer = axes[-1], axes[:-1]
    low, high = bounds[-1]
    width = (end - first) * math.prod(axis.count for axis in sizes.axes[1:])
    with writer.loop("row", LO, HI) as row, ExitStack() as stack:
        names = ["image", "f", *(f"k{a.number}" for a in axes)]
        image, f, *elements = take_apart(text, row, names, [ZERO, features, *(a.window for a in axes)])
        at = writer.assign("at", row * text.argument("width", width))
        shift = last.shift(elements[-1])
        begin, stop = last.span(shift, low, high)
        left = writer.assign("left", minimum(begin, high))
        right = writer.assign("right", maximum(stop, left))
        tests: list[Expr] = []
        indices = [row_major([image + before_image, f], [ZERO, features])]
        loops = [writer.loop(f"o{a.number}", *b) for a, b in zip(outer, bounds, strict=False)]
        positions = [stack.enter_context(loop) for loop in loops]
        for axis, position, element in zip(outer, positions, elements, strict=False):
            cell = axis.cell(axis.origin(position), element)
            tests += axis.tests(cell)
            indices.append(axis.index(cell))
        before, after = writer.assign("before", left), writer.assign("after", right)
        if tests:
            with writer.if_(unary("not", all_of(tests))):
                writer.assign(before, high)
                writer.assign(after, high)
        base = writer.assign("base", row_major([*indices, ZERO], [ZERO, *(a.size for a in axes)]))
        to = writer.assign("to", at - low)
        with writer.loop("j", low, before) as j:
            writer.store(out, to + j, zero)
        with writer.loop("j", before, after) as j:
            if last.part.base_dilation == 1:
                writer.store(out, to + j, x[base + j * last.stride + shift])
            else:
                cell = writer.assign("cell", j * last.stride + shift)
                writer.store(out, to + j, zero)
                with writer.if_((cell % last.holes).eq(0)):
                    writer.store(out, to + j, x[base + cell // last.holes])
        with writer.loop("j", after, high) as j:
            writer.store(out, to + j, zero)
        writer.augment(at, "+", high - low)
    return text.finish(images * sizes.features * sizes.taps, 2.0 + 0.25 * width)


def emit_patches_last(sizes: Sizes, first_row: int, rows: int, first: int, end: int) -> EmittedKernel:
    """Patches [group, position, k..., input] of some positions (of all images), for the kernel's elements `first` to
    `end` along its first dimension. Operand 0: the input; output 0: the patches."""
    text = KernelText("patches", guarded=True)
    writer = text.writer
    x = text.operand("x", sizes.element_type, 0).pointer
    out = text.output("out", sizes.element_type, 0).pointer
    axes = kernel_axes(text, sizes.axes, moves=True)
    last, outer = axes[-1], axes[:-1]
    features, inputs = text.size("features", sizes.features), text.size("inputs", sizes.inputs)
    run = last.part.window_dilation == 1 and last.part.base_dilation == 1 and sizes.groups == 1
    depth = (end - first) * math.prod(axis.part.size for axis in sizes.axes[1:]) * sizes.inputs
    bounds: list[tuple[Expr, Expr]] = [(text.argument("begin", first), text.argument("end", end))]
    bounds += [(ZERO, a.window) for a in axes[1:]]
    with ExitStack() as stack:
        row = stack.enter_context(writer.loop("row", LO, HI))
        position = writer.assign("place", row + text.argument("first_row", first_row))
        names = ["image", *(f"o{a.number}" for a in axes)]
        image, *positions = take_apart(text, position, names, [ZERO, *(a.count for a in axes)])
        begins = [axis.begin(p) for axis, p in zip(axes, positions, strict=True)]
        offset = row * text.argument("depth", depth)
        feature: Expr = ZERO
        if sizes.groups > 1:
            group = stack.enter_context(writer.loop("group", text.size("groups", sizes.groups)))
            offset = group * text.argument("all", rows * depth) + offset
            feature = product(group, inputs)
        at = writer.assign("at", offset)
        indices: list[Expr] = [image]
        tests: list[Expr] = []
        for axis, begin, bound in zip(outer, begins, bounds, strict=False):
            k = stack.enter_context(writer.loop(f"k{axis.number}", *bound))
            cell = axis.cell(begin, k)
            tests += axis.tests(cell)
            indices.append(axis.index(cell))
        patch = _Patch(text, x, out, _zero(sizes.element_type), at, inputs)
        array = [ZERO, *(a.size for a in axes), features]
        if run:
            base = row_major([*indices, begins[-1], feature], array)
            patch.run(last, begins[-1], bounds[-1], tests, base)
        else:
            k = stack.enter_context(writer.loop(f"k{last.number}", *bounds[-1]))
            cell = last.cell(begins[-1], k)
            patch.element([*tests, *last.tests(cell)], row_major([*indices, last.index(cell), feature], array))
    return text.finish(rows, 5.0 + 0.25 * depth * sizes.groups)


@dataclass(frozen=True, slots=True)
class _Patch:
    """Writes a patch, channels last, from offset `at` of the result on."""

    text: KernelText
    x: Name
    out: Name
    zero: Expr
    at: Name
    inputs: Expr

    def run(self, axis: KernelAxis, begin: Expr, bounds: tuple[Expr, Expr], tests: list[Expr], base: Expr) -> None:
        """Copies all elements of the window along the last axis: those inside the array are neighbours in it."""
        writer, inputs, (low, high) = self.text.writer, self.inputs, bounds
        left = writer.assign("left", minimum(maximum(low, -begin), high))
        right = writer.assign("right", maximum(minimum(high, axis.size - begin), left))
        if tests:
            with writer.if_(unary("not", all_of(tests))):
                writer.assign(left, high)
                writer.assign(right, high)
        base = writer.assign("base", base)
        to = writer.assign("to", self.at if is_number(low, 0) else self.at - product(low, inputs))
        with writer.loop("j", product(low, inputs), product(left, inputs)) as j:
            writer.store(self.out, to + j, self.zero)
        with writer.loop("j", product(left, inputs), product(right, inputs)) as j:
            writer.store(self.out, to + j, self.x[base + j])
        with writer.loop("j", product(right, inputs), product(high, inputs)) as j:
            writer.store(self.out, to + j, self.zero)
        writer.augment(self.at, "+", product(Binary("-", high, low), inputs))

    def element(self, tests: list[Expr], base: Expr) -> None:
        """Copies the inputs of one element of the window, or writes zeros if it is outside of the array."""
        writer, inputs = self.text.writer, self.inputs
        inside = writer.assign("inside", 1)
        if tests:
            with writer.if_(unary("not", all_of(tests))):
                writer.assign(inside, 0)
        with writer.if_(inside.eq(1)):
            base = writer.assign("base", base)
            with writer.loop("j", inputs) as j:
                writer.store(self.out, self.at + j, self.x[base + j])
        with writer.else_(), writer.loop("j", inputs) as j:
            writer.store(self.out, self.at + j, self.zero)
        writer.augment(self.at, "+", inputs)


def _add_product(text: KernelText, element_type: ElementType, total: Load, x: Expr, weight: Expr) -> None:
    """``total = total + x * weight`` in the element type; for pred, `or` and `and`."""
    if element_type is ElementType.PRED:
        value = call("uint8", total | (x & weight))
    else:
        value = sum_of(total, product_of(x, weight))
    text.writer.store(total.pointer, total.index, value)


def emit_direct_first(sizes: Sizes) -> EmittedKernel:
    """The whole convolution, channels first. Operand 0: the input; operand 1: the kernel; output 0: the result."""
    text = KernelText("convolution", guarded=True)
    writer, element = text.writer, sizes.element_type
    x, w, out = _pointers(text, element)
    axes = kernel_axes(text, sizes.axes, moves=True)
    last, outer = axes[-1], axes[:-1]
    inputs, outputs = text.size("inputs", sizes.inputs), text.size("outputs", sizes.outputs)
    groups, made = text.size("groups", sizes.groups), text.size("made", sizes.made)
    with ExitStack() as stack:
        row = stack.enter_context(writer.loop("row", LO, HI))
        names = ["image", "o", *(f"o{a.number}" for a in outer)]
        image, o, *positions = take_apart(text, row, names, [ZERO, made, *(a.count for a in outer)])
        first = writer.assign("first", product(row, last.count))
        with writer.loop("j", last.count) as j:
            writer.store(out, first + j, _zero(element))
        i = stack.enter_context(writer.loop("i", inputs))
        plane = writer.assign("plane", row_major([image, o // outputs, i], [ZERO, groups, inputs]))
        elements, indices = _over_window(stack, outer, positions)
        base = writer.assign("base", row_major([plane, *indices, ZERO], [ZERO, *(a.size for a in axes)]))
        k = stack.enter_context(writer.loop("k", last.window))
        weight_sizes = [ZERO, inputs, *(a.window for a in axes)]
        weight = writer.assign("weight", w[row_major([o, i, *elements, k], weight_sizes)])
        shift = last.shift(k)
        j = stack.enter_context(writer.loop("j", *last.span(shift, ZERO, last.count)))
        if last.part.base_dilation == 1:
            _add_product(text, element, out[first + j], x[base + j * last.stride + shift], weight)
        else:
            cell = writer.assign("cell", j * last.stride + shift)
            with writer.if_((cell % last.holes).eq(0)):
                _add_product(text, element, out[first + j], x[base + cell // last.holes], weight)
    rows = sizes.batch * sizes.made * math.prod(axis.count for axis in sizes.axes[:-1])
    return text.finish(rows, 5.0 + 0.3 * sizes.depth * sizes.axes[-1].count)


def emit_direct_last(sizes: Sizes) -> EmittedKernel:
    """The same, channels last. In a depthwise convolution, each feature has one input and one output."""
    depthwise = sizes.inputs == sizes.outputs == 1
    text = KernelText("depthwise_convolution" if depthwise else "convolution_channels_last", guarded=True)
    writer, element = text.writer, sizes.element_type
    x, w, out = _pointers(text, element)
    axes = kernel_axes(text, sizes.axes, moves=True)
    features = text.size("features", sizes.features)
    made = features if depthwise else text.size("made", sizes.made)
    with ExitStack() as stack:
        row = stack.enter_context(writer.loop("row", LO, HI))
        names = ["image", *(f"o{a.number}" for a in axes)]
        image, *positions = take_apart(text, row, names, [ZERO, *(a.count for a in axes)])
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
            inputs, outputs = text.size("inputs", sizes.inputs), text.size("outputs", sizes.outputs)
            g = stack.enter_context(writer.loop("g", text.size("groups", sizes.groups)))
            i = stack.enter_context(writer.loop("i", inputs))
            value = writer.assign("value", x[base + product(g, inputs) + i])
            shape = [*(a.window for a in axes), inputs, made]
            weights = writer.assign("weights", row_major([*elements, i, product(g, outputs)], shape))
            start = writer.assign("start", first + product(g, outputs))
            with writer.loop("j", outputs) as j:
                _add_product(text, element, out[start + j], value, w[weights + j])
    return text.finish(sizes.batch * sizes.positions, 5.0 + 0.2 * sizes.taps * sizes.features * sizes.outputs)


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
