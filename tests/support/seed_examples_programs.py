"""The worked examples of "Operation Semantics" (XLA's first documentation, 2017) that combine elements or run
computations. Each names its section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hloom.hlo import ComputationBuilder, Padding, Shape

from hloom.backend_check.op_values import NDArray

from .seed_program import B, Example, Given, Handle, Program, f32, s32, scalar_computation

MATRIX = f32([[1, 2, 3], [4, 5, 6]])
CUBOID = np.broadcast_to(MATRIX, (4, 2, 3)).astype(np.float32)
"""The 3D array of "Reduce": 1 to 6 in each of four layers."""
ADD = scalar_computation("add", "add")
MAX = scalar_computation("max", "max")
GE = scalar_computation("ge", "ge")


def reduced(array: Any, dimensions: Sequence[int]) -> Program:
    return lambda b, given: b.reduce(given(array), given(0.0), ADD, dimensions)


def pooled(array: Any, window: Sequence[int], strides: Sequence[int], padding: Padding) -> Program:
    """The section's program: the largest element of each window."""
    return lambda b, given: b.reduce_window(
        given(array), b.constant_r0(np.finfo(np.float32).min), MAX, window, strides, padding
    )


def convolved(image: NDArray, kernel: NDArray, strides: tuple[int, int], padding: Sequence[tuple[int, int]]) -> NDArray:
    """The section's pseudo-code, in Python."""
    (batches, features, rows, columns), (outputs, _, window_rows, window_columns) = image.shape, kernel.shape
    (pad_low_y, pad_high_y), (pad_low_x, pad_high_x) = padding
    height = (rows + pad_low_y + pad_high_y - window_rows) // strides[0] + 1
    width = (columns + pad_low_x + pad_high_x - window_columns) // strides[1] + 1
    output = np.zeros((batches, outputs, height, width), np.float32)
    for batch, oz, oy, ox in np.ndindex(output.shape):
        value = 0.0
        for iz, ky, kx in np.ndindex(features, window_rows, window_columns):
            iy = oy * strides[0] + ky - pad_low_y
            ix = ox * strides[1] + kx - pad_low_x
            if 0 <= iy < rows and 0 <= ix < columns:
                value += image[batch, iz, iy, ix] * kernel[oz, iz, ky, kx]
        output[batch, oz, oy, ox] = value
    return output


IMAGE = np.arange(2 * 3 * 5 * 6, dtype=np.float32).reshape(2, 3, 5, 6) % 7 - 3
KERNEL = np.arange(4 * 3 * 2 * 3, dtype=np.float32).reshape(4, 3, 2, 3) % 5 - 2
LINE, TAPS = f32([[[1, 2, 3, 4]]]), f32([[[1, 10, 100]]])
DEFAULT = ComputationBuilder.create_default_conv_dimension_numbers()


def dilated(lhs_dilation: int, rhs_dilation: int) -> Program:
    return lambda b, given: b.conv_with_general_padding(
        given(LINE), given(TAPS), (1,), [(0, 0)], (lhs_dilation,), (rhs_dilation,)
    )


def in_other_dimensions(b: B, given: Given) -> Handle:
    """The same convolution on [height, width, batch, feature] and a kernel [height, width, input, output]."""
    numbers = b.create_conv_dimension_numbers(2, 3, 0, 1, 3, 2, 0, 1)
    image, kernel = given(IMAGE.transpose(2, 3, 0, 1)), given(KERNEL.transpose(2, 3, 1, 0))
    result = b.conv_with_general_dimensions(image, kernel, (1, 1), Padding.VALID, numbers)
    return b.transpose(result, (2, 3, 0, 1))


def called_with_arguments(b: B, given: Given) -> Handle:
    return b.call(ADD, [given(1.0), given(2.0)])


def called_without(b: B, given: Given) -> Handle:
    sub = b.create_sub_builder("forty_two")
    sub.constant_r0(42)
    return b.call(sub.build(), [])


def map_with_static_scalar(b: B, given: Given) -> Handle:
    """The section's Map(op1, op2, op3, computation, par1): elem_out <- computation(elem1, elem2, elem3, par1)."""
    sub = b.create_sub_builder("fused")
    p, q, r, s = (sub.parameter(k, Shape.parse("f32[]")) for k in range(4))
    sub.add(sub.mul(sub.add(p, q), r), s)
    operands = [given([[1, 2], [3, 4]]), given([[10, 20], [30, 40]]), given([[1, 0], [2, 3]])]
    return b.map(operands, sub.build(), [given(0.5)])


def map_with_static_array(b: B, given: Given) -> Handle:
    """A static operand "of arbitrary type": a table that the mapped function looks up."""
    sub = b.create_sub_builder("look_up")
    index, table = sub.parameter(0, Shape.parse("s32[]")), sub.parameter(1, Shape.parse("f32[4]"))
    sub.reshape(sub.dynamic_slice(table, [index], (1,)), ())
    return b.map([given([[3, 0], [1, 1]], np.int32)], sub.build(), [given([5, 6, 7, 8])])


def element_of_tuple(b: B, given: Given) -> Handle:
    """The section's t = (v, s), and its elements."""
    t = b.tuple([given(range(10)), given(5, np.int32)])
    return b.tuple([b.get_tuple_element(t, 1), b.get_tuple_element(t, 0)])


def thousand_iterations(b: B, given: Given) -> Handle:
    """The section's pseudo-code: (iteration, vector) until iteration is 1000, adding a constant vector."""
    state_shape = Shape.parse("(s32[], f32[10])")
    test = b.create_sub_builder("condition")
    state = test.parameter(0, state_shape, "state")
    test.lt(test.get_tuple_element(state, 0), test.constant_r0(1000))
    condition = test.build()
    step = b.create_sub_builder("body")
    state = step.parameter(0, state_shape, "state")
    iteration = step.add(step.get_tuple_element(state, 0), step.constant_r0(1))
    vector = step.add(step.get_tuple_element(state, 1), step.constant_r1(10, 0.125))
    step.tuple([iteration, vector])
    return b.while_(condition, step.build(), b.tuple([given(0, np.int32), given(np.zeros(10))]))


def scattered(operand: Any, strides: Sequence[int]) -> Program:
    """The section's figure: the largest of each 2x3 window is selected, sources are added up."""
    return lambda b, given: b.select_and_scatter(
        given(operand), GE, (2, 3), strides, Padding.VALID, given([[2, 6], [3, 1]]), given(0.0), ADD
    )


def normalised(epsilon: float) -> tuple[NDArray, NDArray, NDArray]:
    """The section's formulas for feature dimension 1 of IMAGE, scale SCALE, offset OFFSET."""
    mean, variance = IMAGE.mean((0, 2, 3)), IMAGE.var((0, 2, 3))
    spread = [x.reshape(1, 3, 1, 1) for x in (mean, variance, SCALE, OFFSET)]
    result = (IMAGE - spread[0]) / np.sqrt(spread[1] + epsilon) * spread[2] + spread[3]
    return result.astype(np.float32), mean.astype(np.float32), variance.astype(np.float32)


SCALE, OFFSET = f32(1, 2, -0.5), f32(0, 1, 3)
NORMALISED, MEAN, VARIANCE = normalised(0.01)


def normalised_backwards() -> tuple[NDArray, NDArray, NDArray]:
    """Today's gradients of training: of the operand (through mean and variance, too), of scale and offset."""
    axes, count = (0, 2, 3), IMAGE.size / 3
    deviation = 1 / np.sqrt(VARIANCE.astype(np.float64) + 0.01).reshape(1, 3, 1, 1)
    centred = IMAGE - MEAN.reshape(1, 3, 1, 1)
    grad = IMAGE[::-1] * 0.5
    grad_offset = grad.sum(axes)
    grad_scale = (grad * centred * deviation).sum(axes)
    inner = grad - grad_offset.reshape(1, 3, 1, 1) / count
    inner = inner - centred * deviation * grad_scale.reshape(1, 3, 1, 1) / count
    grad_operand = SCALE.reshape(1, 3, 1, 1) * deviation * inner
    return grad_operand.astype(np.float32), grad_scale.astype(np.float32), grad_offset.astype(np.float32)


POOL = f32([[7, 2, 5, 3, 10, 2], [3, 8, 9, 3, 4, 2], [1, 5, 7, 5, 6, 1], [0, 6, 2, 7, 2, 8]])
OVERLAPPING = f32([[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]])

EXAMPLES = (
    Example("Call", "with arguments", called_with_arguments, f32(3)),
    Example("Call", "without arguments", called_without, s32(42)),
    Example(
        "Conv",
        "VALID",
        lambda b, g: b.conv(g(IMAGE), g(KERNEL), (1, 1), Padding.VALID),
        convolved(IMAGE, KERNEL, (1, 1), [(0, 0), (0, 0)]),
    ),
    Example(
        "Conv",
        "SAME: the output has the input's size",
        lambda b, g: b.conv(g(IMAGE), g(KERNEL), (1, 1), Padding.SAME),
        convolved(IMAGE, KERNEL, (1, 1), [(0, 1), (1, 1)]),
    ),
    Example(
        "ConvWithGeneralPadding",
        "the pseudo-code, with padding and striding",
        lambda b, g: b.conv_with_general_padding(g(IMAGE), g(KERNEL), (2, 3), [(1, 0), (2, 3)]),
        convolved(IMAGE, KERNEL, (2, 3), [(1, 0), (2, 3)]),
    ),
    Example(
        "ConvWithGeneralPadding",
        "negative padding removes elements first",
        lambda b, g: b.conv_general(g(IMAGE), g(KERNEL), (1, 1), [(-1, 0), (0, -2)], DEFAULT),
        convolved(IMAGE[:, :, 1:, :-2], KERNEL, (1, 1), [(0, 0), (0, 0)]),
    ),
    Example("ConvWithGeneralPadding", "holes in the input", dilated(2, 1), f32([[[201, 20, 302, 30, 403]]])),
    Example("ConvWithGeneralPadding", "dilations of 1 change nothing", dilated(1, 1), f32([[[321, 432]]])),
    Example(
        "ConvWithGeneralPadding",
        "rhs_dilation 2 (atrous)",
        lambda b, g: b.conv_with_general_padding(g(LINE), g(TAPS), (1,), [(0, 1)], None, (2,)),
        f32([[[31]]]),
    ),
    Example("Conv", "other dimension numbers", in_other_dimensions, convolved(IMAGE, KERNEL, (1, 1), [(0, 0), (0, 0)])),
    Example("CrossReplicaSum", "of the only replica", lambda b, g: b.cross_replica_sum(g([1.0, 2.5])), f32(1, 2.5)),
    Example("Dot", "vector and vector", lambda b, g: b.dot(g([1, 2, 3]), g([4, 5, 6])), f32(32)),
    Example("Dot", "matrix and vector", lambda b, g: b.dot(g(MATRIX), g([1, 10, 100])), f32(321, 654)),
    Example(
        "Dot",
        "matrix and matrix",
        lambda b, g: b.dot(g(MATRIX), g([[1, 0], [0, 1], [1, 1]])),
        f32([[4, 5], [10, 11]]),
    ),
    Example("Dot", "vector and matrix", lambda b, g: b.dot(g([1, 10]), g(MATRIX)), f32(41, 52, 63)),
    Example("Dot", "scalar and scalar (first edition)", lambda b, g: b.dot(g(6), g(7)), f32(42)),
    Example(
        "Dot",
        "[p,q,r] and [s,r,t] give [p,q,s,t] (first edition)",
        lambda b, g: b.dot(g(np.arange(12).reshape(2, 2, 3)), g(np.arange(30).reshape(5, 3, 2))),
        np.dot(f32(np.arange(12).reshape(2, 2, 3)), f32(np.arange(30).reshape(5, 3, 2))),
    ),
    Example("GetTupleElement", "of (f32[10], s32)", element_of_tuple, (s32(5), f32(range(10)))),
    Example("Tuple", "(f32[10], s32)", lambda b, g: b.tuple([g(range(10)), g(5, np.int32)]), (f32(range(10)), s32(5))),
    Example(
        "Map",
        "Map(op1, op2, op3, computation, par1)",
        map_with_static_scalar,
        f32([[11.5, 0.5], [66.5, 132.5]]),
    ),
    Example("Map", "a static operand that is an array", map_with_static_array, f32([[8, 5], [6, 6]])),
    Example(
        "Map",
        "a scalar function of one array",
        lambda b, g: b.map([g([1, 4])], scalar_computation("negative", "neg", count=1), dimensions=(0,)),
        f32(-1, -4),
    ),
    Example("Reduce", "[10, 11, 12, 13]", reduced([10, 11, 12, 13], (0,)), f32(46)),
    Example("Reduce", "dimension 0 of a matrix", reduced(MATRIX, (0,)), f32(5, 7, 9)),
    Example("Reduce", "dimension 1 of a matrix", reduced(MATRIX, (1,)), f32(6, 15)),
    Example("Reduce", "dimension 0 of a 3D array", reduced(CUBOID, (0,)), f32([[4, 8, 12], [16, 20, 24]])),
    Example("Reduce", "dimension 2 of a 3D array", reduced(CUBOID, (2,)), f32([[6, 15]] * 4)),
    Example("Reduce", "dimensions 0 and 1 of a 3D array", reduced(CUBOID, (0, 1)), f32(20, 28, 36)),
    Example("Reduce", "dimensions in another order", reduced(CUBOID, (1, 0)), f32(20, 28, 36)),
    Example("Reduce", "all dimensions of a 3D array", reduced(CUBOID, (0, 1, 2)), f32(84)),
    Example(
        "ReduceWindow",
        "max of 2x3 windows of [4x6]",
        pooled(POOL, (2, 3), (2, 3), Padding.VALID),
        f32([[9, 10], [7, 8]]),
    ),
    Example("ReduceWindow", "stride 1", pooled([1, 3, 2, 5], (2,), (1,), Padding.VALID), f32(3, 3, 5)),
    Example("ReduceWindow", "stride 2", pooled([1, 3, 2, 5], (2,), (2,), Padding.VALID), f32(3, 5)),
    Example("ReduceWindow", "SAME", pooled([1, 3, 2, 5], (3,), (1,), Padding.SAME), f32(3, 3, 5, 5)),
    Example(
        "ReduceWindow",
        "general padding is as though the input came padded",
        lambda b, g: b.reduce_window_with_general_padding(g([1, 3, 2]), g(0.0), ADD, (2,), (1,), [(1, 2)]),
        f32(1, 4, 5, 2, 0),
    ),
    Example(
        "SelectAndScatter",
        "figure (1): windows side by side",
        scattered(POOL, (2, 3)),
        f32([[0, 0, 0, 0, 6, 0], [0, 0, 2, 0, 0, 0], [0, 0, 3, 0, 0, 0], [0, 0, 0, 0, 0, 1]]),
    ),
    Example(
        "SelectAndScatter",
        "figure (2): the 9 is selected twice and gets 8 (2 + 6)",
        scattered(OVERLAPPING, (2, 2)),
        f32([[0, 0, 0, 0, 0], [0, 0, 8, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 1, 0]]),
    ),
    Example("While", "1000 iterations", thousand_iterations, (s32(1000), np.full(10, 125, np.float32))),
    Example(
        "BatchNormTraining",
        "the algorithm",
        lambda b, g: b.batch_norm_training(g(IMAGE), g(SCALE), g(OFFSET), 0.01, 1),
        (NORMALISED, MEAN, VARIANCE),
        tolerance=1e-5,
    ),
    Example(
        "BatchNormInference",
        "training with given mean and variance",
        lambda b, g: b.batch_norm_inference(g(IMAGE), g(SCALE), g(OFFSET), g(MEAN), g(VARIANCE), 0.01, 1),
        NORMALISED,
        tolerance=1e-5,
    ),
    Example(
        "BatchNormGrad",
        "today's gradients (the section's formulas are not those of training)",
        lambda b, g: b.batch_norm_grad(g(IMAGE), g(SCALE), g(MEAN), g(VARIANCE), g(IMAGE[::-1] * 0.5), 0.01, 1),
        normalised_backwards(),
        tolerance=1e-4,
    ),
)
