"""ComputationBuilder's operations that combine many elements: reduce, windows, batch normalisation, replicas' sums.

Source: the sections "Reduce", "ReduceWindow", "SelectAndScatter", "BatchNormTraining", "BatchNormInference",
"BatchNormGrad", "CrossReplicaSum".
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
from .core import Handle, Integers, operation
from .handle import Computation
from .padding import Padding
from .products import Pairs, Products


class Reductions(Products):
    """A computation argument combines two scalars to one of their type, in an order that is not defined."""

    @operation
    def reduce(
        self, operand: Handle, init_value: Handle, computation: Computation, dimensions_to_reduce: Integers
    ) -> Handle:
        """All elements along the dimensions, and `init_value`, combined by `computation`."""
        dimensions = self._integers(dimensions_to_reduce, "dimensions_to_reduce")
        attributes = ReduceAttributes(dimensions, self._called(computation))
        return self._enqueue(Opcode.REDUCE, [operand, init_value], attributes)

    @operation
    def reduce_window(
        self,
        operand: Handle,
        init_value: Handle,
        computation: Computation,
        window_dimensions: Integers,
        window_strides: Integers,
        padding: Padding,
    ) -> Handle:
        """The elements of each window combined; what lies in the padding is `init_value`. One entry a dimension."""
        pairs = self._window_padding(operand, window_dimensions, window_strides, padding)
        return self.reduce_window_with_general_padding(
            operand, init_value, computation, window_dimensions, window_strides, pairs
        )

    @operation
    def reduce_window_with_general_padding(
        self,
        operand: Handle,
        init_value: Handle,
        computation: Computation,
        window_dimensions: Integers,
        window_strides: Integers,
        padding: Pairs,
    ) -> Handle:
        """As `reduce_window`; `padding` is (low, high) for each dimension."""
        window = self._window(operand, window_dimensions, window_strides, padding)
        attributes = ReduceWindowAttributes(window, self._called(computation))
        return self._enqueue(Opcode.REDUCE_WINDOW, [operand, init_value], attributes)

    @operation
    def select_and_scatter(
        self,
        operand: Handle,
        select: Computation,
        window_dimensions: Integers,
        window_strides: Integers,
        padding: Padding,
        source: Handle,
        init_value: Handle,
        scatter: Computation,
    ) -> Handle:
        """An array like the operand, of `init_value`; where a window's selected element stands, the window's element of
        `source` is combined into it by `scatter`. `select(a, b)`: is a, which comes first, to be preferred?"""
        pairs = self._window_padding(operand, window_dimensions, window_strides, padding)
        return self.select_and_scatter_with_general_padding(
            operand, select, window_dimensions, window_strides, pairs, source, init_value, scatter
        )

    @operation
    def select_and_scatter_with_general_padding(
        self,
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
        window = self._window(operand, window_dimensions, window_strides, padding)
        attributes = SelectAndScatterAttributes(window, self._called(select), self._called(scatter))
        return self._enqueue(Opcode.SELECT_AND_SCATTER, [operand, source, init_value], attributes)

    @operation
    def batch_norm_training(
        self, operand: Handle, scale: Handle, offset: Handle, epsilon: float, feature_index: int
    ) -> Handle:
        """(normalised operand, mean, variance) over all dimensions but `feature_index`."""
        attributes = self._batch_norm(epsilon, feature_index)
        return self._enqueue(Opcode.BATCH_NORM_TRAINING, [operand, scale, offset], attributes)

    @operation
    def batch_norm_inference(
        self,
        operand: Handle,
        scale: Handle,
        offset: Handle,
        mean: Handle,
        variance: Handle,
        epsilon: float,
        feature_index: int,
    ) -> Handle:
        """The operand normalised by a given mean and variance."""
        attributes = self._batch_norm(epsilon, feature_index)
        return self._enqueue(Opcode.BATCH_NORM_INFERENCE, [operand, scale, offset, mean, variance], attributes)

    @operation
    def batch_norm_grad(
        self,
        operand: Handle,
        scale: Handle,
        mean: Handle,
        variance: Handle,
        grad_output: Handle,
        epsilon: float,
        feature_index: int,
    ) -> Handle:
        """(gradient of the operand, of the scale, of the offset) of `batch_norm_training`."""
        attributes = self._batch_norm(epsilon, feature_index)
        return self._enqueue(Opcode.BATCH_NORM_GRAD, [operand, scale, mean, variance, grad_output], attributes)

    @operation
    def cross_replica_sum(self, operand: Handle) -> Handle:
        """The sum of the operand over all replicas."""
        attributes = CollectiveAttributes(to_apply=adder(self._array(operand).element))
        return self._enqueue(Opcode.ALL_REDUCE, [operand], attributes)

    def _batch_norm(self, epsilon: float, feature_index: int) -> BatchNormAttributes:
        (index,) = self._integers([feature_index], "feature_index")
        if not isinstance(epsilon, int | float | np.floating):
            self._refuse(f"epsilon must be a number, not {epsilon!r}", "builder_c11")
        return BatchNormAttributes(float(epsilon), index)

    def _window_padding(
        self, operand: Handle, window_dimensions: Integers, window_strides: Integers, padding: Padding
    ) -> tuple[tuple[int, int], ...]:
        sizes = self._array(operand).dimensions
        window = self._integers(window_dimensions, "window_dimensions", len(sizes))
        strides = self._integers(window_strides, "window_strides", len(sizes))
        return self._made_padding(sizes, window, strides, padding)

    def _window(
        self, operand: Handle, window_dimensions: Integers, window_strides: Integers, padding: Pairs
    ) -> tuple[WindowDimension, ...]:
        rank = self._array(operand).rank
        sizes = self._integers(window_dimensions, "window_dimensions", rank)
        strides = self._integers(window_strides, "window_strides", rank)
        pairs = self._pairs(padding, rank)
        return tuple(
            WindowDimension(size, stride, *pair) for size, stride, pair in zip(sizes, strides, pairs, strict=True)
        )


@cache
def adder(element_type: ElementType) -> HloComputation:
    """The sum of two scalars."""
    scalar = Shape.array(element_type)
    a, b = make_parameter(0, scalar, "a"), make_parameter(1, scalar, "b")
    root = make_instruction(Opcode.ADD, (a, b))
    return HloComputation(f"add_{element_type.value}", (a, b, root), root)
