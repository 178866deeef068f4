"""Violations of the shape rules of reduce-window, select-and-scatter and convolution.

Each has: the label, the opcode, the operands' types as text, the attributes, the declared type or None.
"""

from __future__ import annotations

from dataclasses import replace

from hloom.hlo import (
    ElementType,
    HloComputation,
    Opcode,
    Shape,
    make_computation,
    make_constant,
    make_instruction,
    make_parameter,
)
from hloom.hlo.ops.convolution import ConvolutionAttributes
from hloom.hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from hloom.hlo.ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from hloom.hlo.window import ConvolutionDimensionNumbers, WindowDimension

from hloom.backend_check.computations import binary_computation

from .violations_structure import Violation

O = Opcode  # noqa: E741

_ADD_F32 = binary_computation(O.ADD, ElementType.F32)
_ADD_S32 = binary_computation(O.ADD, ElementType.S32)
_BAD_ROOT = make_computation(
    "bad_root", make_constant(1), [make_parameter(i, Shape.array(ElementType.F32)) for i in range(2)]
)
_W1, _W2 = WindowDimension(1), WindowDimension(2)


def _windowed(*window: WindowDimension, reducer: HloComputation = _ADD_F32) -> ReduceWindowAttributes:
    return ReduceWindowAttributes(window, reducer)


def _selected(*window: WindowDimension, **computations: HloComputation) -> SelectAndScatterAttributes:
    return SelectAndScatterAttributes(
        window, computations.get("select", _GE_F32), computations.get("scatter", _ADD_F32)
    )


def _greater_or_equal() -> HloComputation:
    x, y = (make_parameter(i, Shape.array(ElementType.F32)) for i in range(2))
    root = make_instruction(O.COMPARE, [x, y], CompareAttributes(ComparisonDirection.GE))
    return make_computation("ge", root, [x, y])


_GE_F32 = _greater_or_equal()
_NCW = ConvolutionDimensionNumbers(0, 1, (2,), 1, 0, (2,), 0, 1, (2,))
"""Input [batch, feature, width], kernel [output, input, width]."""


def _convolved(
    window: tuple[WindowDimension, ...] = (_W2,), groups: int = 1, batch_groups: int = 1,
    numbers: ConvolutionDimensionNumbers = _NCW,
) -> ConvolutionAttributes:  # fmt: skip
    return ConvolutionAttributes(window, numbers, groups, batch_groups)


_PAIRED = ["f32[2]", "f32[1]", "f32[]"]
_X, _K = "f32[2,4,5]", "f32[6,4,2]"

WINDOW_VIOLATIONS: list[Violation] = [
    ("reduce-window_c1", O.REDUCE_WINDOW, ["f32[2]"], _windowed(_W2), None),
    ("reduce-window_c1", O.REDUCE_WINDOW, ["(f32[2])", "f32[]"], _windowed(_W2), None),
    ("reduce-window_c2", O.REDUCE_WINDOW, ["f32[2]", "f32[3]", "f32[]", "f32[]"], _windowed(_W2), None),
    ("reduce-window_c3", O.REDUCE_WINDOW, ["f32[2]", "s32[]"], _windowed(_W2), None),
    ("reduce-window_c3", O.REDUCE_WINDOW, ["f32[2]", "f32[1]"], _windowed(_W2), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(WindowDimension(0)), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(replace(_W2, stride=0)), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(replace(_W2, base_dilation=0)), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(replace(_W2, window_dilation=-1)), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(replace(_W2, padding_low=1 << 63)), None),
    ("reduce-window_c4", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(replace(_W2, reversed=True)), None),
    ("reduce-window_c5", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(_W2, reducer=_ADD_S32), None),
    ("reduce-window_c6", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(_W2, reducer=_BAD_ROOT), None),
    ("reduce-window_result", O.REDUCE_WINDOW, ["f32[2]", "f32[]"], _windowed(_W2), "f32[2]"),
    ("select-and-scatter_c1", O.SELECT_AND_SCATTER, ["f32[2]", "s32[1]", "f32[]"], _selected(_W2), None),
    ("select-and-scatter_c1", O.SELECT_AND_SCATTER, ["f32[2]", "f32[1]", "f32[1]"], _selected(_W2), None),
    ("select-and-scatter_c2", O.SELECT_AND_SCATTER, ["f32[2]", "f32[1]", "f32[]"], _selected(_W2, _W1), None),
    ("select-and-scatter_c3", O.SELECT_AND_SCATTER, ["f32[2]", "f32[2]", "f32[]"], _selected(_W2), None),
    ("select-and-scatter_c4", O.SELECT_AND_SCATTER, _PAIRED, _selected(_W2, select=_ADD_F32), None),
    ("select-and-scatter_c5", O.SELECT_AND_SCATTER, _PAIRED, _selected(_W2, scatter=_GE_F32), None),
    ("select-and-scatter_c5", O.SELECT_AND_SCATTER, _PAIRED, _selected(_W2, scatter=_ADD_S32), None),
    ("convolution_c1", O.CONVOLUTION, ["(f32[2])", _K], _convolved(), None),
    ("convolution_c1", O.CONVOLUTION, [_X, "s32[6,4,2]"], _convolved(), None),
    ("convolution_c2", O.CONVOLUTION, [_X, "f32[6,4]"], _convolved(), None),
    ("convolution_c2", O.CONVOLUTION, [_X, _K], _convolved(numbers=replace(_NCW, input_feature=0)), None),
    ("convolution_c2", O.CONVOLUTION, [_X, _K], _convolved(numbers=replace(_NCW, output_spatial=(3,))), None),
    ("convolution_c3", O.CONVOLUTION, [_X, _K], _convolved((_W2, _W2)), None),
    ("convolution_c3", O.CONVOLUTION, [_X, _K], _convolved((_W1,)), None),
    ("convolution_c3", O.CONVOLUTION, [_X, _K], _convolved((replace(_W2, stride=0),)), None),
    ("convolution_c4", O.CONVOLUTION, [_X, _K], _convolved(groups=0), None),
    ("convolution_c4", O.CONVOLUTION, [_X, "f32[6,2,2]"], _convolved(groups=2, batch_groups=2), None),
    ("convolution_c5", O.CONVOLUTION, [_X, "f32[6,3,2]"], _convolved(), None),
    ("convolution_c6", O.CONVOLUTION, [_X, "f32[5,2,2]"], _convolved(groups=2), None),
    ("convolution_c7", O.CONVOLUTION, [_X, _K], _convolved(batch_groups=3), None),
    ("convolution_c7", O.CONVOLUTION, [_X, "f32[5,4,2]"], _convolved(batch_groups=2), None),
    ("convolution_c8", O.CONVOLUTION, [_X, _K], _convolved(), "s32[2,6,4]"),
    ("convolution_c9", O.CONVOLUTION, [_X, "bf16[6,4,2]"], _convolved(), None),
    ("convolution_result", O.CONVOLUTION, [_X, _K], _convolved(), "f32[2,6,5]"),
]
