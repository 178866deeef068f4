"""Symbolic sizes in StableHLO: types say `?`, and operations that make arrays of such sizes take the sizes as values.

The rules work on the operations that `stablehlo_of` makes of a program with symbolic sizes, which have expressions
(`hlo/symbolic/`) in types and attributes. `Sizes` computes the values. Source: StableHLO's specification of dynamism.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..hlo.element_type import ElementType
from ..hlo.errors import UnsupportedError
from ..hlo.mlir.tree import (
    DYNAMIC,
    Dense,
    DenseArray,
    Function,
    IndexType,
    Integer,
    Operation,
    Symbol,
    Tensor,
    Tuple,
    Type,
    TypeAttribute,
    operations,
)
from ..hlo.sizes import is_symbolic
from ..hlo.stablehlo.scope import captures
from .emit import SCALAR, Emitter, Sizes

Rule = Callable[[Operation, Sizes, Emitter], None]
"""A rule changes the operation in place. `Sizes` computes sizes at the function's start; the emitter appends operations
that come before this one."""


def has_symbolic_type(operation: Operation) -> bool:
    """Whether a result of an operation has a symbolic size."""
    return any(isinstance(r.type, Tensor) and any(map(is_symbolic, r.type.dimensions)) for r in operation.results)


def is_dynamic(operation: Operation) -> bool:
    """Whether the operation needs the values of symbolic sizes."""
    if operation.name == "stablehlo.get_dimension_size":
        return is_symbolic(asked_size(operation))
    if operation.name in _BY_TYPE:
        return has_symbolic_type(operation)
    return any(_has_symbols(a) for a in operation.attributes.values())


def make_dynamic(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    """Give the operation the sizes as values. UnsupportedError for one that cannot take them."""
    rule = _BY_TYPE.get(operation.name) or _BY_ATTRIBUTE.get(operation.name)
    if rule is None:
        raise UnsupportedError(f"export: StableHLO has no {operation.name} whose attributes have symbolic sizes")
    rule(operation, sizes, here)


def _has_symbols(attribute: Any) -> bool:
    match attribute:
        case DenseArray():
            return any(map(is_symbolic, attribute.values))
        case Integer():
            return is_symbolic(attribute.value)
        case Dense():
            return bool(attribute.array.dtype == object)
    return False


def asked_size(operation: Operation) -> Any:
    dimension: Any = operation.attributes["dimension"]
    type_ = operation.operands[0].type
    return type_.dimensions[dimension.value] if isinstance(type_, Tensor) else 0


# ---- rules


def _with_shape(name: str) -> Rule:
    """The result's sizes are a further operand."""

    def rule(operation: Operation, sizes: Sizes, here: Emitter) -> None:
        (result,) = operation.results
        assert isinstance(result.type, Tensor), f"{operation.name} makes an array"
        operation.name = f"stablehlo.{name}"
        operation.operands.append(sizes.vector(result.type.dimensions))

    return rule


def _with_attributes(name: str, *attributes: str) -> Rule:
    """Attributes that list sizes become operands."""

    def rule(operation: Operation, sizes: Sizes, here: Emitter) -> None:
        operation.name = f"stablehlo.{name}"
        for attribute in attributes:
            listed: Any = operation.attributes.pop(attribute)
            operation.operands.append(sizes.vector(listed.values))

    return rule


def _dynamic_slice(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    """The block with clamped starts, as a slice with computed bounds."""
    x, *starts = operation.operands
    listed: Any = operation.attributes.pop("slice_sizes")
    assert isinstance(x.type, Tensor), f"{operation.name} cuts an array"
    first, end = [], []
    for start, whole, size in zip(starts, x.type.dimensions, listed.values, strict=True):
        given = start if start.type == SCALAR else here.one("convert", [start])
        found = here.one("clamp", [sizes.scalar(0), given, sizes.scalar(whole - size)])
        first.append(found)
        end.append(here.one("add", [found, sizes.scalar(size)]))
    bounds = [here.vector(values) for values in (first, end)]
    operation.name = "stablehlo.real_dynamic_slice"
    operation.operands[:] = [x, *bounds, here.table([1] * len(starts))]


def _random_bits(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    shape = operation.results[1].type
    assert isinstance(shape, Tensor), f"{operation.name} makes an array"
    algorithm: Any = operation.attributes.pop("rng_algorithm")
    operation.name = "stablehlo.custom_call"
    operation.operands.append(sizes.vector(shape.dimensions))
    operation.attributes.update(call_target_name="stablehlo.dynamic_rng_bit_generator", rng_algorithm=algorithm)


def _custom_call(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    """The sizes of each result are a further operand. So is the number of largest elements, where that is symbolic."""
    given = operation.attributes.get("mhlo.attributes")
    if operation.attributes["call_target_name"] == "mhlo.topk" and isinstance(given, dict):
        k: Any = given["k"]
        if is_symbolic(k.value):
            operation.operands.append(sizes.scalar(k.value))
            operation.attributes = {"call_target_name": "stablehlo.dynamic_top_k"}
    count = len(operation.operands)
    for result in operation.results:
        assert isinstance(result.type, Tensor), f"{operation.name} makes arrays"
        operation.operands.append(sizes.vector(result.type.dimensions))
    places = range(count, len(operation.operands))
    found = Dense(Tensor((len(places),), ElementType.S64), np.array(places, np.int64))
    operation.attributes["indices_of_shape_operands"] = found
    layouts: Any = operation.attributes.get("operand_layouts")
    if layouts is not None:
        of_sizes = Dense(Tensor((1,), IndexType()), np.zeros(1, np.int64))
        operation.attributes["operand_layouts"] = (*layouts, *(of_sizes for _ in places))


def _convolution(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    """The padding is an operand, a row for each dimension."""
    padding: Any = operation.attributes.pop("padding")
    rows, columns = padding.array.shape
    flat = sizes.vector(padding.array.reshape(-1).tolist())
    operation.name = "stablehlo.dynamic_conv"
    operation.operands.append(here.one("reshape", [flat], Tensor((rows, columns), ElementType.S32)))


def _reduce_window(operation: Operation, sizes: Sizes, here: Emitter) -> None:
    """A custom call: the window's sizes, its strides, both dilations and the padding are operands, and the region is a
    function."""
    (region,) = operation.regions
    block, given = region.block, operation.attributes
    if captures([region]):
        raise UnsupportedError("export: the function of a reduce_window with symbolic sizes takes no sizes itself")
    block.operations[-1].name = "func.return"
    window: Any = given["window_dimensions"]
    rank = len(window.values)
    for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations"):
        listed: Any = given.get(name)
        operation.operands.append(sizes.vector((1,) * rank if listed is None else listed.values))
    padding: Any = given.get("padding")
    flat = [0] * (2 * rank) if padding is None else padding.array.reshape(-1).tolist()
    operation.operands.append(here.one("reshape", [sizes.vector(flat)], Tensor((rank, 2), ElementType.S32)))
    called = Symbol((here.define("reduce_window", block),))
    operation.name, operation.regions = "stablehlo.custom_call", []
    operation.attributes = {"call_target_name": "stablehlo.dynamic_reduce_window", "called_computations": (called,)}


_BY_TYPE: dict[str, Rule] = {
    "stablehlo.broadcast_in_dim": _with_shape("dynamic_broadcast_in_dim"),
    "stablehlo.reshape": _with_shape("dynamic_reshape"),
    "stablehlo.iota": _with_shape("dynamic_iota"),
    "stablehlo.rng_bit_generator": _random_bits,
    "stablehlo.custom_call": _custom_call,
}
"""Operations whose results' sizes do not follow from their operands."""
_BY_ATTRIBUTE: dict[str, Rule] = {
    "stablehlo.slice": _with_attributes("real_dynamic_slice", "start_indices", "limit_indices", "strides"),
    "stablehlo.pad": _with_attributes("dynamic_pad", "edge_padding_low", "edge_padding_high", "interior_padding"),
    "stablehlo.gather": _with_attributes("dynamic_gather", "slice_sizes"),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.convolution": _convolution,
    "stablehlo.reduce_window": _reduce_window,
}


# ---- calls


def make_composites_calls(module: Operation) -> None:
    """Write composites as calls of their decompositions: XLA does not put sizes into composites."""
    for operation in operations(module):
        if operation.name == "stablehlo.composite":
            operation.name = "func.call"
            operation.attributes = {"callee": operation.attributes["decomposition"]}


# ---- types


def with_question_marks(module: Operation) -> None:
    """Write `?` in all types, in the place of symbolic sizes."""
    waiting = [module]
    while waiting:
        operation = waiting.pop()
        for value in operation.results:
            value.type = open_type(value.type)
        for name, attribute in operation.attributes.items():
            if isinstance(attribute, TypeAttribute):
                operation.attributes[name] = TypeAttribute(open_type(attribute.type))
        for region in operation.regions:
            for block in region.blocks:
                waiting += block.operations
                for value in block.arguments:
                    value.type = open_type(value.type)


def open_type(type_: Type) -> Type:
    """The type with `?` in the place of symbolic sizes."""
    match type_:
        case Tensor() if any(map(is_symbolic, type_.dimensions)):
            return Tensor(tuple([DYNAMIC if is_symbolic(d) else d for d in type_.dimensions]), type_.element)
        case Tuple():
            return Tuple(tuple(map(open_type, type_.elements)))
        case Function():
            return Function(tuple(map(open_type, type_.inputs)), tuple(map(open_type, type_.results)))
    return type_
