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
from ...hlo.window import Window, dilated
from .applied import KernelText
from .element import CAST
from .source import EmittedKernel
from .window_places import NOTHING, Axis, Place, offset_of


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
    def places(self) -> int:
        return math.prod(axis.count for axis in self.axes)

    @property
    def taps(self) -> int:
        return math.prod(axis.part.size for axis in self.axes)

    @property
    def depth(self) -> int:
        """How many products are added up for one result."""
        return self.inputs * self.taps


def sizes_of(convolution: HloInstruction) -> Sizes:
    """The sizes of a canonical convolution; one without spatial dimensions gets one of size 1."""
    attributes, (array, kernel) = convolution.attributes, (o.shape.dimensions for o in convolution.operands)
    numbers, window, groups = attributes.dimension_numbers, attributes.window, attributes.feature_group_count
    assert attributes.batch_group_count == 1, "a convolution that is not canonical"
    assert not any(part.reversed for part in window), "a convolution that is not canonical"
    return Sizes(
        convolution.shape.element,
        is_channels_last(attributes),
        array[numbers.input_batch],
        groups,
        kernel[numbers.kernel_input_feature],
        kernel[numbers.kernel_output_feature] // groups,
        _axes(array, convolution.shape.dimensions, numbers.input_spatial, numbers.output_spatial, window),
    )


def _axes(
    array: Sequence[int], result: Sequence[int], sources: Sequence[int], targets: Sequence[int], window: Window
) -> tuple[Axis, ...]:
    axes = tuple(Axis(array[d], result[e], part) for d, e, part in zip(sources, targets, window, strict=True))
    return axes or (Axis(1, 1, NOTHING),)


def _zero(element_type: ElementType) -> str:
    if element_type.is_complex:
        part = CAST[element_type.real]
        return f"complex_from({part}(0), {part}(0))"
    return "uint8(0)" if element_type is ElementType.PRED else f"{CAST[element_type]}(0)"


def _take_apart(text: KernelText, value: str, names: Sequence[str], sizes: Sequence[str]) -> None:
    """``name = value % size`` from the last name to the first; the first name gets the remaining quotient."""
    rest = value
    for position in range(len(names) - 1, 0, -1):
        text.line(f"{names[position]} = {rest} % {sizes[position]}")
        text.line(f"rest{position} = {rest} // {sizes[position]}")
        rest = f"rest{position}"
    text.line(f"{names[0]} = {rest}")


def _span(place: Place, shift: str, low: str, high: str) -> tuple[str, str]:
    """The range of positions along a dimension at which cell `j * stride + shift` is inside the array."""
    begin, end = f"-{shift}", f"{place.extent} - 1 - {shift}"
    if place.stride != "1":
        begin, end = f"({place.stride} - 1 - {shift}) // {place.stride}", f"({end}) // {place.stride}"
    return f"maximum({low}, {begin})", f"minimum({high}, {end} + 1)"


def _scaled(place: Place) -> str:
    return "j + shift" if place.stride == "1" else f"j * {place.stride} + shift"


def _shift(place: Place, element: str) -> str:
    return place.shift(element) if place.low == "0" else f"{place.shift(element)} - {place.low}"


def emit_patches_first(sizes: Sizes, first_image: int, images: int, first: int, end: int) -> EmittedKernel:
    """Patches [image, feature, k..., position] of some images, for positions `first` to `end` along the first
    dimension. Operand 0: the input; output 0: the patches."""
    text = KernelText("patches")
    element = sizes.element_type
    source, target = text.operand("x", element, 0), text.output("out", element, 0)
    places = [Place(text, d, axis, moves=True) for d, axis in enumerate(sizes.axes)]
    features = text.size("features", sizes.features)
    image = text.argument("first_image", first_image)
    bounds = [(text.argument("begin", first), text.argument("end", end)), *(("0", p.count) for p in places[1:])]
    last, outer = places[-1], places[:-1]
    width = (end - first) * math.prod(axis.count for axis in sizes.axes[1:])
    zero = _zero(element)
    with text.block("for row in range(lo, hi):"):
        names = ["image", "f", *(f"k{p.number}" for p in places)]
        _take_apart(text, "row", names, ["0", features, *(p.window for p in places)])
        text.line(f"at = row * {text.argument('width', width)}")
        text.line(f"shift = {_shift(last, f'k{last.number}')}")
        low, high = bounds[-1]
        begin, stop = _span(last, "shift", low, high)
        text.line(f"left = minimum({begin}, {high})")
        text.line(f"right = maximum({stop}, left)")
        with ExitStack() as stack:
            for place, (begin, stop) in zip(outer, bounds, strict=False):
                stack.enter_context(text.block(f"for o{place.number} in range({begin}, {stop}):"))
            tests, terms = [], [f"(image + {image}) * {features} + f"]
            for place in outer:
                cell = f"cell{place.number}"
                text.line(f"{cell} = {place.origin(f'o{place.number}')} + {place.shift(f'k{place.number}')}")
                tests += place.tests(cell)
                terms.append(place.row(cell))
            text.line("before = left")
            text.line("after = right")
            if tests:
                with text.block(f"if not ({' and '.join(tests)}):"):
                    text.line(f"before = {high}")
                    text.line(f"after = {high}")
            base = offset_of([*terms, "0"], ["0", *(p.size for p in places)])
            text.line(f"base = {base}")
            to = "at" if low == "0" else f"at - {low}"
            text.line(f"to = {to}")
            with text.block(f"for j in range({low}, before):"):
                text.line(f"out[to + j] = {zero}")
            with text.block("for j in range(before, after):"):
                if last.axis.part.base_dilation == 1:
                    text.line(f"out[to + j] = {source.name}[base + {_scaled(last)}]")
                else:
                    text.line(f"cell = {_scaled(last)}")
                    text.line(f"out[to + j] = {zero}")
                    with text.block(f"if cell % {last.holes} == 0:"):
                        text.line(f"out[to + j] = {source.name}[base + cell // {last.holes}]")
            with text.block(f"for j in range(after, {high}):"):
                text.line(f"out[to + j] = {zero}")
            text.line(f"at += {high}" if low == "0" else f"at += {high} - {low}")
    assert target.name == "out"
    return text.finish(images * sizes.features * sizes.taps, 2.0 + 0.25 * width)


def emit_patches_last(sizes: Sizes, first_row: int, rows: int, first: int, end: int) -> EmittedKernel:
    """Patches [group, position, k..., input] of some positions (of all images), for the kernel's elements `first` to
    `end` along its first dimension. Operand 0: the input; output 0: the patches."""
    text = KernelText("patches")
    element = sizes.element_type
    source, target = text.operand("x", element, 0), text.output("out", element, 0)
    places = [Place(text, d, axis, moves=True) for d, axis in enumerate(sizes.axes)]
    last, outer = places[-1], places[:-1]
    features, inputs = text.size("features", sizes.features), text.size("inputs", sizes.inputs)
    run = last.axis.part.window_dilation == 1 and last.axis.part.base_dilation == 1 and sizes.groups == 1
    depth = (end - first) * math.prod(axis.part.size for axis in sizes.axes[1:]) * sizes.inputs
    bounds = [(text.argument("begin", first), text.argument("end", end)), *(("0", p.window) for p in places[1:])]
    zero = _zero(element)
    with ExitStack() as stack:
        stack.enter_context(text.block("for row in range(lo, hi):"))
        text.line(f"place = row + {text.argument('first_row', first_row)}")
        names = ["image", *(f"o{p.number}" for p in places)]
        _take_apart(text, "place", names, ["0", *(p.count for p in places)])
        for place in places:
            text.line(f"at{place.number} = {place.origin(f'o{place.number}')}")
        at = f"row * {text.argument('depth', depth)}"
        if sizes.groups == 1:
            text.line(f"at = {at}")
            feature = "0"
        else:
            stack.enter_context(text.block(f"for group in range({text.size('groups', sizes.groups)}):"))
            text.line(f"at = group * {text.argument('all', rows * depth)} + {at}")
            feature = f"group * {inputs}"
        terms, tests = ["image"], []
        for place, (begin, stop) in zip(outer, bounds, strict=False):
            cell = f"cell{place.number}"
            stack.enter_context(text.block(f"for k{place.number} in range({begin}, {stop}):"))
            text.line(f"{cell} = at{place.number} + {place.shift(f'k{place.number}')}")
            tests += place.tests(cell)
            terms.append(place.row(cell))
        low, high = bounds[-1]
        number = last.number
        sizes_text = ["0", *(p.size for p in places), features]
        if run:
            text.line(f"left = minimum(maximum({low}, -at{number}), {high})")
            text.line(f"right = maximum(minimum({high}, {last.size} - at{number}), left)")
            if tests:
                with text.block(f"if not ({' and '.join(tests)}):"):
                    text.line(f"left = {high}")
                    text.line(f"right = {high}")
            text.line(f"base = {offset_of([*terms, f'at{number}', feature], sizes_text)}")
            text.line("to = at" if low == "0" else f"to = at - {low} * {inputs}")
            with text.block(f"for j in range({low} * {inputs}, left * {inputs}):"):
                text.line(f"out[to + j] = {zero}")
            with text.block(f"for j in range(left * {inputs}, right * {inputs}):"):
                text.line(f"out[to + j] = {source.name}[base + j]")
            with text.block(f"for j in range(right * {inputs}, {high} * {inputs}):"):
                text.line(f"out[to + j] = {zero}")
            text.line(f"at += ({high} - {low}) * {inputs}")
        else:
            stack.enter_context(text.block(f"for k{number} in range({low}, {high}):"))
            text.line(f"cell{number} = at{number} + {last.shift(f'k{number}')}")
            tests += last.tests(f"cell{number}")
            copy = offset_of([*terms, last.row(f"cell{number}"), feature], sizes_text)
            text.line("inside = 1")
            if tests:
                with text.block(f"if not ({' and '.join(tests)}):"):
                    text.line("inside = 0")
            with text.block("if inside == 1:"):
                text.line(f"base = {copy}")
                with text.block(f"for j in range({inputs}):"):
                    text.line(f"out[at + j] = {source.name}[base + j]")
            with text.block("else:"), text.block(f"for j in range({inputs}):"):
                text.line(f"out[at + j] = {zero}")
            text.line(f"at += {inputs}")
    assert target.name == "out"
    return text.finish(rows, 5.0 + 0.25 * depth * sizes.groups)


def _added(element_type: ElementType, total: str, x: str, weight: str) -> str:
    """``total + x * weight`` in the element type; for pred, `or` and `and`."""
    if element_type is ElementType.PRED:
        return f"uint8({total} | {x} & {weight})"
    if element_type.is_integral:
        return f"{CAST[element_type]}({total} + {x} * {weight})"
    return f"{total} + {x} * {weight}"


def _over_window(
    text: KernelText, stack: ExitStack, places: Sequence[Place], terms: list[str], weights: list[str]
) -> None:
    """Opens the loops over the window along `places` on `stack`; appends each dimension's index in the input and in the
    weights to `terms` and `weights`.

        for k0 in range(window):
            cell0 = o0 * stride - low + k0 * dilation
            if cell0 >= 0 and cell0 < n0:
    """
    for place in places:
        number = place.number
        stack.enter_context(text.block(f"for k{number} in range({place.window}):"))
        text.line(f"cell{number} = {place.origin(f'o{number}')} + {place.shift(f'k{number}')}")
        tests = place.tests(f"cell{number}")
        if tests:
            stack.enter_context(text.block(f"if {' and '.join(tests)}:"))
        terms.append(place.row(f"cell{number}"))
        weights.append(f"k{number}")


def emit_direct_first(sizes: Sizes) -> EmittedKernel:
    """The whole convolution, channels first. Operand 0: the input; operand 1: the kernel; output 0: the result."""
    text = KernelText("convolution")
    element = sizes.element_type
    for number, name in enumerate("xw"):
        text.operand(name, element, number)
    text.output("out", element, 0)
    places = [Place(text, d, axis, moves=True) for d, axis in enumerate(sizes.axes)]
    last, outer = places[-1], places[:-1]
    inputs, outputs = text.size("inputs", sizes.inputs), text.size("outputs", sizes.outputs)
    groups, made = text.size("groups", sizes.groups), text.size("made", sizes.made)
    with ExitStack() as stack:
        stack.enter_context(text.block("for row in range(lo, hi):"))
        names = ["image", "o", *(f"o{p.number}" for p in outer)]
        _take_apart(text, "row", names, ["0", made, *(p.count for p in outer)])
        text.line(f"first = row * {last.count}")
        with text.block(f"for j in range({last.count}):"):
            text.line(f"out[first + j] = {_zero(element)}")
        stack.enter_context(text.block(f"for i in range({inputs}):"))
        text.line(f"plane = (image * {groups} + o // {outputs}) * {inputs} + i")
        terms, weights = ["plane"], [f"o * {inputs} + i"]
        _over_window(text, stack, outer, terms, weights)
        text.line(f"base = {offset_of([*terms, '0'], ['0', *(p.size for p in places)])}")
        stack.enter_context(text.block(f"for k in range({last.window}):"))
        text.line(f"weight = w[{offset_of([*weights, 'k'], ['0', *(p.window for p in places)])}]")
        text.line(f"shift = {_shift(last, 'k')}")
        left, right = _span(last, "shift", "0", last.count)
        stack.enter_context(text.block(f"for j in range({left}, {right}):"))
        if last.axis.part.base_dilation == 1:
            text.line(f"out[first + j] = {_added(element, 'out[first + j]', f'x[base + {_scaled(last)}]', 'weight')}")
        else:
            text.line(f"cell = {_scaled(last)}")
            with text.block(f"if cell % {last.holes} == 0:"):
                value = f"x[base + cell // {last.holes}]"
                text.line(f"out[first + j] = {_added(element, 'out[first + j]', value, 'weight')}")
    rows = sizes.batch * sizes.made * math.prod(axis.count for axis in sizes.axes[:-1])
    return text.finish(rows, 5.0 + 0.3 * sizes.depth * sizes.axes[-1].count)


def emit_direct_last(sizes: Sizes) -> EmittedKernel:
    """A depthwise convolution (one input and one output feature a group), channels last. Operands as above."""
    assert sizes.inputs == sizes.outputs == 1, "a convolution that is not depthwise"
    text = KernelText("depthwise_convolution")
    element = sizes.element_type
    for number, name in enumerate("xw"):
        text.operand(name, element, number)
    text.output("out", element, 0)
    places = [Place(text, d, axis, moves=True) for d, axis in enumerate(sizes.axes)]
    features = text.size("features", sizes.features)
    with ExitStack() as stack:
        stack.enter_context(text.block("for row in range(lo, hi):"))
        _take_apart(text, "row", ["image", *(f"o{p.number}" for p in places)], ["0", *(p.count for p in places)])
        text.line(f"first = row * {features}")
        with text.block(f"for j in range({features}):"):
            text.line(f"out[first + j] = {_zero(element)}")
        terms: list[str] = ["image"]
        weights: list[str] = []
        _over_window(text, stack, places, terms, weights)
        text.line(f"base = {offset_of([*terms, '0'], ['0', *(p.size for p in places), features])}")
        text.line(f"weights = {offset_of([*weights, '0'], [*(p.window for p in places), features])}")
        with text.block(f"for j in range({features}):"):
            text.line(f"out[first + j] = {_added(element, 'out[first + j]', 'x[base + j]', 'w[weights + j]')}")
    return text.finish(sizes.batch * sizes.places, 5.0 + 0.2 * sizes.taps * sizes.features)


def is_pointwise(sizes: Sizes) -> bool:
    """True when the window at each position covers one element, so that the input is the patch matrix."""
    return all(
        axis.size == axis.count and (axis.part.size, axis.part.stride, axis.part.padding_low) == (1, 1, 0)
        and dilated(axis.size, axis.part.base_dilation) == axis.size
        for axis in sizes.axes
    )  # fmt: skip
