"""ComputationBuilder's operations that combine many elements: reduce, windows, batch normalisation, replicas' sums.

Source: the sections "Reduce", "ReduceWindow", "SelectAndScatter", "BatchNormTraining", "BatchNormInference",
"BatchNormGrad", "CrossReplicaSum".

A computation argument combines two scalars to one of their type, in an order that is not defined.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from ..builder import make_instruction, make_parameter
from ..element_type import ElementType
from ..ir import HloComputation
from ..opcode import Opcode
from ..ops.collective import CollectiveAttributes
from ..ops.normalization import BatchNormAttributes
from ..ops.reduce import ReduceAttributes
from ..ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from ..shape import Shape
from ..window import WindowDimension
from .construction import Construction, Handle, Integers, Pairs, called, integer, integers, refuse
from .handle import Computation
from .padding import Padding
from .products import made_padding, pairs_of


def reduce(
    build: Construction, operand: Handle, init_value: Handle, computation: Computation, dimensions_to_reduce: Integers
) -> Handle:
    """All elements along the dimensions, and `init_value`, combined by `computation`."""
    dimensions = integers(dimensions_to_reduce, "dimensions_to_reduce")
    attributes = ReduceAttributes(dimensions, called(computation))
    return build.enqueue(Opcode.REDUCE, [operand, init_value], attributes)


def reduce_window(
    build: Construction,
    operand: Handle,
    init_value: Handle,
    computation: Computation,
    window_dimensions: Integers,
    window_strides: Integers,
    padding: Padding,
) -> Handle:
    """The elements of each window, combined; padding is `init_value`. One entry for each dimension."""
    pairs = _window_padding(build, operand, window_dimensions, window_strides, padding)
    return reduce_window_with_general_padding(
        build, operand, init_value, computation, window_dimensions, window_strides, pairs
    )


def reduce_window_with_general_padding(
    build: Construction,
    operand: Handle,
    init_value: Handle,
    computation: Computation,
    window_dimensions: Integers,
    window_strides: Integers,
    padding: Pairs,
) -> Handle:
    """As `reduce_window`; `padding` is (low, high) for each dimension."""
    window = _window(build, operand, window_dimensions, window_strides, padding)
    attributes = ReduceWindowAttributes(window, called(computation))
    return build.enqueue(Opcode.REDUCE_WINDOW, [operand, init_value], attributes)


def select_and_scatter(
    build: Construction,
    operand: Handle,
    select: Computation,
    window_dimensions: Integers,
    window_strides: Integers,
    padding: Padding,
    source: Handle,
    init_value: Handle,
    scatter: Computation,
) -> Handle:
    """An array like the operand, of `init_value`; at the selected element of each window, the window's element of
    `source` is combined into it by `scatter`. `select(a, b)`: should a, which comes first, be selected?"""
    pairs = _window_padding(build, operand, window_dimensions, window_strides, padding)
    return select_and_scatter_with_general_padding(
        build, operand, select, window_dimensions, window_strides, pairs, source, init_value, scatter
    )


def select_and_scatter_with_general_padding(
    build: Construction,
    operand: Handle,
    select: Computation,
    window_dimensions: Integers,
    window_strides: Integers,
    padding: Pairs,
    source: Handle,
    init_value: Handle,
    scatter: Computation,
) -> Handle:
    """As `select_and_scatter`; `padding` is (low, high) for each dimension."""
    window = _window(build, operand, window_dimensions, window_strides, padding)
    attributes = SelectAndScatterAttributes(window, called(select), called(scatter))
    return build.enqueue(Opcode.SELECT_AND_SCATTER, [operand, source, init_value], attributes)


def batch_norm_training(
    build: Construction, operand: Handle, scale: Handle, offset: Handle, epsilon: float, feature_index: int
) -> Handle:
    """(normalised operand, mean, variance) over all dimensions except `feature_index`."""
    attributes = _batch_norm(epsilon, feature_index)
    return build.enqueue(Opcode.BATCH_NORM_TRAINING, [operand, scale, offset], attributes)


def batch_norm_inference(
    build: Construction,
    operand: Handle,
    scale: Handle,
    offset: Handle,
    mean: Handle,
    variance: Handle,
    epsilon: float,
    feature_index: int,
) -> Handle:
    """The operand normalised by a given mean and variance."""
    attributes = _batch_norm(epsilon, feature_index)
    return build.enqueue(Opcode.BATCH_NORM_INFERENCE, [operand, scale, offset, mean, variance], attributes)


def batch_norm_grad(
    build: Construction,
    operand: Handle,
    scale: Handle,
    mean: Handle,
    variance: Handle,
    grad_output: Handle,
    epsilon: float,
    feature_index: int,
) -> Handle:
    """(gradient of the operand, of the scale, of the offset) of `batch_norm_training`."""
    attributes = _batch_norm(epsilon, feature_index)
    return build.enqueue(Opcode.BATCH_NORM_GRAD, [operand, scale, mean, variance, grad_output], attributes)


def cross_replica_sum(build: Construction, operand: Handle) -> Handle:
    """The sum of the operand over all replicas."""
    attributes = CollectiveAttributes(to_apply=adder(build.array(operand).element))
    return build.enqueue(Opcode.ALL_REDUCE, [operand], attributes)


def _batch_norm(epsilon: float, feature_index: int) -> BatchNormAttributes:
    index = integer(feature_index, "feature_index")
    if not isinstance(epsilon, int | float | np.floating):
        refuse(f"epsilon must be a number, not {epsilon!r}", "builder_c11")
    return BatchNormAttributes(float(epsilon), index)


def _window_padding(
    build: Construction, operand: Handle, window_dimensions: Integers, window_strides: Integers, padding: Padding
) -> tuple[tuple[int, int], ...]:
    sizes = build.array(operand).dimensions
    window = integers(window_dimensions, "window_dimensions", len(sizes))
    strides = integers(window_strides, "window_strides", len(sizes))
    return made_padding(sizes, window, strides, padding)


def _window(
    build: Construction, operand: Handle, window_dimensions: Integers, window_strides: Integers, padding: Pairs
) -> tuple[WindowDimension, ...]:
    rank = build.array(operand).rank
    sizes = integers(window_dimensions, "window_dimensions", rank)
    strides = integers(window_strides, "window_strides", rank)
    pairs = pairs_of(padding, rank)
    return tuple(WindowDimension(size, stride, *pair) for size, stride, pair in zip(sizes, strides, pairs, strict=True))


@cache
def adder(element_type: ElementType) -> HloComputation:
    """The sum of two scalars."""
    scalar = Shape.array(element_type)
    a, b = make_parameter(0, scalar, "a"), make_parameter(1, scalar, "b")
    root = make_instruction(Opcode.ADD, (a, b))
    return HloComputation(f"add_{element_type.value}", (a, b, root), root)
