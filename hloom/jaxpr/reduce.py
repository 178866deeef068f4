"""Reductions, over dimensions and over windows: those by one op from its neutral element have a primitive each.
Products: dot and convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.element_type import element_type_of
from ..hlo.ir import HloComputation, HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops import spec_of
from ..hlo.ops.convolution import ConvolutionAttributes
from ..hlo.ops.dot import DotAttributes
from ..hlo.ops.reduce import ReduceAttributes
from ..hlo.ops.window import ReduceWindowAttributes, SelectAndScatterAttributes
from ..hlo.shape import Shape
from ..hlo.window import ConvolutionDimensionNumbers, WindowDimension
from ..lax.convolution import ConvDimensionNumbers
from ..lax.precision import hlo_precision, shown_pair, shown_precision
from ..lax.reduce import all_bits, limits
from ..tracer import dtypes, ops
from ..tracer.aval import ShapedArray, aval_of_shape
from ..tracer.core import Value, bind, bind_multi
from .atoms import Atom, Literal, short
from .evaluate import computation_of
from .primitives import primitive
from .rules import SHOWN, Body, Shown, show_as_hlo, shows

_MONOIDS = {
    Opcode.ADD: "sum", Opcode.MULTIPLY: "prod", Opcode.MAXIMUM: "max", Opcode.MINIMUM: "min",
    Opcode.AND: "and", Opcode.OR: "or", Opcode.XOR: "xor",
}


def neutral(opcode: Opcode, dtype: np.dtype[Any]) -> Any:
    """The element that changes nothing."""
    match opcode:
        case Opcode.MULTIPLY:
            return 1
        case Opcode.MAXIMUM | Opcode.MINIMUM:
            return limits(dtype)[opcode is Opcode.MINIMUM]
        case Opcode.AND:
            return all_bits(dtype)
    return 0


def monoid_of(computation: HloComputation, inits: Sequence[Atom]) -> str | None:
    """`sum`, `max` and so on, if a reduction by the computation is one."""
    root, parameters = computation.root, computation.parameters
    name = _MONOIDS.get(root.opcode)
    if name is None or len(parameters) != 2 or root.operands not in (parameters, parameters[::-1]):
        return None
    (init,) = inits
    if not isinstance(init, Literal):
        return None
    dtype = root.shape.element.dtype
    wanted = np.asarray(neutral(root.opcode, dtype)).astype(dtype)
    return name if np.array_equal(np.asarray(init.val), wanted) and not _is_negative_zero(init.val) else None


def _is_negative_zero(value: Any) -> bool:
    return dtypes.is_floating(np.asarray(value).dtype) and bool(np.signbit(np.float64(value))) and value == 0


# ---- over dimensions


@SHOWN.register(Opcode.REDUCE)
def _reduce(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown | list[Atom]:
    count = len(operands) // 2
    computation, dimensions = i.attributes.to_apply, i.attributes.dimensions
    name = monoid_of(computation, operands[count:]) if count == 1 else None
    arg = _arg_reduction(i, body) if count == 2 else None
    if arg is not None:
        (index,) = body.emit(
            Shown(arg, operands[:1], {"axes": dimensions, "index_dtype": i.shape.elements[1].element.dtype}),
            [aval_of_shape(i.shape.elements[1])],
            i,
        )
        return [operands[0], index]  # the first is not used
    if name is None:
        params = {"computation": computation.name, "consts": (), "dimensions": dimensions}
        return Shown("reduce", operands, {**params, "jaxpr": body.nested(computation)})
    params = {"axes": dimensions, "out_sharding": None} if name == "sum" else {"axes": dimensions}
    return Shown(f"reduce_{name}", operands[:1], params)


_FIRST_OF_BEST = """\
{ lambda ; a:VALUE b:INDEX c:VALUE d:INDEX. let
    e:bool[] = BETTER a c
    f:bool[] = ne a a
    g:bool[] = or e f
    h:bool[] = eq a c
    i:bool[] = lt b d
    j:bool[] = and h i
    k:bool[] = or g j
    l:bool[] = ne a a
    m:bool[] = ne c c
    n:bool[] = and l m
    o:bool[] = lt d b
    p:bool[] = and n o
    q:bool[] = not p
    r:bool[] = and k q
    s:VALUE = select_n r c a
    t:INDEX = select_n r d b
  in (s, t) }"""
"""How `lax.argmax` and `lax.argmin` compare pairs of a value and its index: NaN wins, then the lower index."""


def _arg_reduction(i: HloInstruction, body: Body) -> str | None:
    """`argmax` or `argmin`, if it equals a reduction of values and their indices with only the index used."""
    values, indices = i.operands[:2]
    dimensions = i.attributes.dimensions
    is_counted = indices.opcode is Opcode.IOTA and dimensions == (indices.attributes.iota_dimension,)
    if not is_counted or body.is_used(i, 0):
        return None
    element = values.shape.element
    for name, better, opcode in (("argmax", "gt", Opcode.MAXIMUM), ("argmin", "lt", Opcode.MINIMUM)):
        text = _FIRST_OF_BEST.replace("BETTER", better)
        for word, operand in (("VALUE", values), ("INDEX", indices)):
            text = text.replace(word, short(ShapedArray((), operand.shape.element.dtype)))
        starts = [o.attributes.literal.array for o in i.operands[2:] if o.opcode is Opcode.CONSTANT]
        worst = np.asarray(neutral(opcode, element.dtype)).astype(element.dtype)
        starts_right = len(starts) == 2 and starts[0] == worst and starts[1] == 0
        if starts_right and str(body.nested(i.attributes.to_apply)) == text:
            return name
    return None


@primitive("reduce", multiple_results=True)
def _bind_reduce(
    *values: Value, jaxpr: Any, dimensions: Sequence[int], computation: Any = None, consts: Sequence[Any] = ()
) -> list[Value]:
    reducer = computation_of(jaxpr, consts)
    attributes = ReduceAttributes(tuple(sorted(dimensions)), reducer)
    if len(values) == 2:
        return [bind(Opcode.REDUCE, values, attributes, weak_type=values[0].aval.weak_type)]
    return bind_multi(Opcode.REDUCE, values, attributes)


# ---- over windows


def window_params(window: Sequence[WindowDimension]) -> dict[str, Any]:
    """A window in JAX's parameters."""
    return {
        "window_dimensions": tuple([w.size for w in window]),
        "window_strides": tuple([w.stride for w in window]),
        "padding": tuple([(w.padding_low, w.padding_high) for w in window]),
        "base_dilation": tuple([w.base_dilation for w in window]),
        "window_dilation": tuple([w.window_dilation for w in window]),
    }


def window_of(
    window_dimensions: Sequence[int], window_strides: Sequence[int], padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None,
) -> tuple[WindowDimension, ...]:  # fmt: skip
    """The window that JAX's parameters say."""
    ones = (1,) * len(window_dimensions)
    columns = (window_dimensions, window_strides, padding, base_dilation or ones, window_dilation or ones)
    return tuple([WindowDimension(n, s, low, high, b, w) for n, s, (low, high), b, w in zip(*columns, strict=True)])


@SHOWN.register(Opcode.REDUCE_WINDOW)
def _reduce_window(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    count = len(operands) // 2
    computation, params = i.attributes.to_apply, window_params(i.attributes.window)
    name = monoid_of(computation, operands[count:]) if count == 1 else None
    if name in ("sum", "max", "min"):
        return Shown(f"reduce_window_{name}", operands[:1], params)
    return Shown("reduce_window", operands, {**params, "consts": (), "jaxpr": body.nested(computation)})


@primitive("reduce_window", multiple_results=True)
def _bind_reduce_window(*values: Value, jaxpr: Any, consts: Sequence[Any] = (), **window: Any) -> list[Value]:
    attributes = ReduceWindowAttributes(window_of(**window), computation_of(jaxpr, consts))
    if len(values) == 2:
        return [bind(Opcode.REDUCE_WINDOW, values, attributes)]
    return bind_multi(Opcode.REDUCE_WINDOW, values, attributes)


def _define_window_reduction(opcode: Opcode, name: str) -> None:
    @primitive(f"reduce_window_{name}")
    def apply(x: Value, **window: Any) -> Value:
        dtype = x.aval.dtype
        reducer = ops.scalar_reducer(opcode, element_type_of(dtype))
        attributes = ReduceWindowAttributes(window_of(**window), reducer)
        return bind(Opcode.REDUCE_WINDOW, (x, ops.scalar(neutral(opcode, dtype), dtype)), attributes)


for _opcode in (Opcode.ADD, Opcode.MAXIMUM, Opcode.MINIMUM):
    _define_window_reduction(_opcode, _MONOIDS[_opcode])


@SHOWN.register(Opcode.SELECT_AND_SCATTER)
def _select_and_scatter(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    a = i.attributes
    params = window_params(a.window)
    for key in ("base_dilation", "window_dilation"):  # JAX's primitive has none
        if all(n == 1 for n in params[key]):
            del params[key]
    inner = {"select_jaxpr": body.nested(a.select), "scatter_jaxpr": body.nested(a.scatter)}
    return Shown("select_and_scatter", operands, {**params, **inner, "select_consts": (), "scatter_consts": ()})


@primitive("select_and_scatter")
def _bind_select_and_scatter(
    x: Value, source: Value, init: Value, *, select_jaxpr: Any, scatter_jaxpr: Any,
    select_consts: Sequence[Any] = (), scatter_consts: Sequence[Any] = (), **window: Any,
) -> Value:  # fmt: skip
    select, scatter = computation_of(select_jaxpr, select_consts), computation_of(scatter_jaxpr, scatter_consts)
    attributes = SelectAndScatterAttributes(window_of(**window), select, scatter)
    return bind(Opcode.SELECT_AND_SCATTER, (x, source, init), attributes)


def _dot_params(i: HloInstruction) -> dict[str, Any]:
    a = i.attributes
    numbers = ((a.lhs_contracting_dims, a.rhs_contracting_dims), (a.lhs_batch_dims, a.rhs_batch_dims))
    params = {"dimension_numbers": numbers, "precision": shown_precision(a)}
    return {**params, "preferred_element_type": i.shape.element.dtype, "out_sharding": None}


@shows(Opcode.DOT, "dot_general", _dot_params)
def _dot(
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


def _convolution_params(i: HloInstruction) -> dict[str, Any]:
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
    return params


@shows(Opcode.CONVOLUTION, "conv_general_dilated", _convolution_params)
def _convolution(
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
