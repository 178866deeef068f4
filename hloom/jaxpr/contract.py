"""Products: dot and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.element_type import element_type_of
from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops import spec_of
from ..hlo.ops.convolution import ConvolutionAttributes
from ..hlo.ops.dot import DotAttributes
from ..hlo.shape import Shape
from ..hlo.window import ConvolutionDimensionNumbers, WindowDimension
from ..lax.convolution import ConvDimensionNumbers
from ..lax.precision import hlo_precision, shown_pair, shown_precision
from ..tracer import dtypes
from ..tracer.core import Value, bind
from .atoms import Atom
from .primitives import primitive
from .shown import SHOWN, Body, Shown, show_as_hlo


@SHOWN.register(Opcode.DOT)
def _dot(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    numbers = ((a.lhs_contracting_dims, a.rhs_contracting_dims), (a.lhs_batch_dims, a.rhs_batch_dims))
    params = {"dimension_numbers": numbers, "precision": shown_precision(a)}
    element = {"preferred_element_type": i.shape.element.dtype, "out_sharding": None}
    return Shown("dot_general", operands, {**params, **element})


@primitive("dot_general")
def _bind_dot(
    x: Value, y: Value, *, dimension_numbers: Any, precision: Any = None, preferred_element_type: Any = None,
    out_sharding: None = None,
) -> Value:  # fmt: skip
    (contracting_x, contracting_y), (batch_x, batch_y) = dimension_numbers
    fixed_x, fixed_y = {*contracting_x, *batch_x}, {*contracting_y, *batch_y}
    attributes = DotAttributes(
        *(tuple(batch_x), tuple(batch_y), tuple(contracting_x), tuple(contracting_y)), *hlo_precision(precision)
    )
    if preferred_element_type is None:
        return bind(Opcode.DOT, (x, y), attributes)
    sizes = [x.aval.shape[d] for d in batch_x]
    sizes += [n for d, n in enumerate(x.aval.shape) if d not in fixed_x]
    sizes += [n for d, n in enumerate(y.aval.shape) if d not in fixed_y]
    element = element_type_of(dtypes.requested_dtype(preferred_element_type, "a product"))
    return bind(Opcode.DOT, (x, y), attributes, shape=Shape.array(element, sizes))


@SHOWN.register(Opcode.CONVOLUTION)
def _convolution(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a, n = i.attributes, i.attributes.dimension_numbers
    same = all(o.shape.element is i.shape.element for o in i.operands)
    numbers = ConvDimensionNumbers(
        (n.input_batch, n.input_feature, *n.input_spatial),
        (n.kernel_output_feature, n.kernel_input_feature, *n.kernel_spatial),
        (n.output_batch, n.output_feature, *n.output_spatial),
    )
    params: dict[str, Any] = {
        "window_strides": tuple([w.stride for w in a.window]),
        "padding": tuple([(w.padding_low, w.padding_high) for w in a.window]),
        "lhs_dilation": tuple([w.base_dilation for w in a.window]),
        "rhs_dilation": tuple([w.window_dilation for w in a.window]),
        "dimension_numbers": numbers,
        "feature_group_count": a.feature_group_count,
        "batch_group_count": a.batch_group_count,
        "precision": shown_pair(a.operand_precision),
        "preferred_element_type": None if same else i.shape.element.dtype,
        "out_sharding": None,
    }
    if any(w.reversed for w in a.window):
        params["rhs_reversed"] = tuple([w.reversed for w in a.window])
    return Shown("conv_general_dilated", operands, params)


@primitive("conv_general_dilated")
def _bind_convolution(
    x: Value, kernel: Value, *, window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int], rhs_dilation: Sequence[int], dimension_numbers: Any, feature_group_count: int = 1,
    batch_group_count: int = 1, precision: Any = None, preferred_element_type: Any = None, out_sharding: None = None,
    rhs_reversed: Sequence[bool] | None = None,
) -> Value:  # fmt: skip
    lhs, rhs, out = dimension_numbers
    numbers = ConvolutionDimensionNumbers(
        *(lhs[0], lhs[1], tuple(lhs[2:]), rhs[1], rhs[0], tuple(rhs[2:]), out[0], out[1], tuple(out[2:]))
    )
    sizes = [kernel.aval.shape[d] for d in rhs[2:]]
    columns = (sizes, window_strides, padding, lhs_dilation, rhs_dilation, rhs_reversed or (False,) * len(sizes))
    window = tuple([WindowDimension(n, s, low, high, b, w, r) for n, s, (low, high), b, w, r in zip(*columns)])
    attributes = ConvolutionAttributes(
        window, numbers, feature_group_count, batch_group_count, hlo_precision(precision)[0]
    )
    if preferred_element_type is None:
        return bind(Opcode.CONVOLUTION, (x, kernel), attributes)
    element = element_type_of(dtypes.requested_dtype(preferred_element_type, "a convolution"))
    inputs, wanted = [x.aval.hlo, kernel.aval.hlo], Shape.array(element)
    shape = spec_of(Opcode.CONVOLUTION).shape_rule(inputs, attributes, wanted)
    return bind(Opcode.CONVOLUTION, (x, kernel), attributes, shape=shape)


show_as_hlo(Opcode.RAGGED_DOT, Opcode.SCALED_DOT)
