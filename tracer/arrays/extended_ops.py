"""Ops on arrays of extended dtypes, such as keys: their definition in terms of the storage.

An op that moves elements moves whole blocks of the storage; the last dimensions of the storage belong to one element:
as if each element were a batch. Equality compares all words of an element. Nothing else is defined on such elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ...hlo.opcode import Opcode
from ...hlo.ops.elementwise import CompareAttributes, ComparisonDirection
from ...hlo.ops.indexing import GatherAttributes, ScatterAttributes
from ...hlo.ops.movement import (
    BroadcastAttributes,
    DynamicSliceAttributes,
    PadAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from ...hlo.shape import Shape
from .. import ops
from ..aval import ShapedArray
from ..checks.key_uses import Forward, Sink, Uses, bind_use, masked
from ..core import bind
from ..errors import OperandError
from ..settings.context import current_context
from .extended import ExtendedDType
from .operators import Value
from .overlay import EXTENDED, ExtendedRule, overlaid, storage_of

Operands = tuple[Value, ...]


def filled(number: complex, aval: ShapedArray) -> Value:
    """An array of an extended dtype, each word of its storage `number`."""
    return overlaid(ops.full(aval.storage, number), aval)


# ---- common to the rules


def _dtype(operands: Operands) -> ExtendedDType:
    """The extended dtype of the operands; OperandError if they have several."""
    found = {o.aval.dtype for o in operands if o.aval.is_extended}
    if len(found) > 1:
        names = " and ".join(sorted(d.name for d in found))
        raise OperandError(f"operands must have one dtype, not {names}", "extended_c1")
    (dtype,) = found
    assert isinstance(dtype, ExtendedDType)
    return dtype


def _require_all_extended(opcode: Opcode, operands: Operands) -> None:
    """Refuse plain numbers among elements that are moved together."""
    if not all(o.aval.is_extended for o in operands):
        types = ", ".join(o.aval.str_short() for o in operands)
        raise OperandError(f"{opcode.value} does not accept {types} together", "extended_c2")


def _moved(
    opcode: Opcode, operands: Operands, attributes: Any, dtype: ExtendedDType, shape: Shape | None = None
) -> Value:
    """The op on the storage of `operands`; the result overlaid as an array of the extended dtype."""
    result = bind(opcode, [storage_of(o) for o in operands], attributes, shape=shape)
    rank = result.aval.ndim - len(dtype.storage_shape)
    return overlaid(result, ShapedArray(result.aval.shape[:rank], dtype))


def _trailing(rank: int, dtype: ExtendedDType) -> tuple[int, ...]:
    """The dimensions of one element in the storage of an array of `rank` dimensions."""
    return tuple(range(rank, rank + len(dtype.storage_shape)))


def _using(name: str, uses: Callable[[Operands, Any], Uses]) -> Callable[[ExtendedRule], ExtendedRule]:
    """A decorator for the rule of an op that uses keys up, or makes new ones of them. `name`: JAX's of the op."""

    def decorate(rule: ExtendedRule) -> ExtendedRule:
        def found(opcode: Opcode, operands: Operands, attributes: Any, shape: Shape | None) -> Value:
            if not current_context().debug_key_reuse:
                return rule(opcode, operands, attributes, shape)
            avals = [o.aval for o in operands]

            def run(*words: Value) -> Value:
                given = tuple([overlaid(w, a) for w, a in zip(words, avals, strict=True)])
                return storage_of(rule(opcode, given, attributes, shape))

            result = bind_use(name, uses(operands, attributes), run, *operands)
            dtype: Any = next(a.dtype for a in avals if a.is_extended)
            rank = result.aval.ndim - len(dtype.storage_shape)
            return overlaid(result, ShapedArray(result.aval.shape[:rank], dtype))

        return found

    return decorate


def _used(*which: int) -> Callable[[Operands, Any], Uses]:
    """All of some operands is used up, and the result is new."""
    return lambda operands, attributes: Uses({k: Sink() for k in which})


def _taken(operands: Operands, attributes: Any) -> Uses:
    """The result has elements at computed places: it counts as the whole array."""
    return Uses(forwards={0: Forward(0, is_whole=False)})


def _written(update: int) -> Callable[[Operands, Any], Uses]:
    """The result is the array that is written to, and the written keys are consumed."""
    return lambda operands, attributes: Uses({update: Sink()}, {0: Forward(0)})


# ---- elements moved


@EXTENDED.register(Opcode.RESHAPE, Opcode.REVERSE, Opcode.COPY, Opcode.OPT_BARRIER)
def _same_attributes(opcode: Opcode, operands: Operands, attributes: Any, shape: Shape | None) -> Value:
    """For ops that keep the numbers of their dimensions, or have none."""
    return _moved(opcode, operands, attributes, _dtype(operands), shape)


@EXTENDED.register(Opcode.CONCATENATE)
@_using("concatenate", lambda operands, attributes: Uses({k: Sink() for k in range(len(operands))}))
def _concatenate(opcode: Opcode, operands: Operands, attributes: Any, shape: Shape | None) -> Value:
    _require_all_extended(opcode, operands)
    return _moved(opcode, operands, attributes, _dtype(operands))


@EXTENDED.register(Opcode.BROADCAST)
def _broadcast(opcode: Opcode, operands: Operands, attributes: BroadcastAttributes, shape: Shape | None) -> Value:
    dtype = _dtype(operands)
    assert shape is not None, "broadcast leaves its result's type open"
    rank = len(shape.dimensions) - len(dtype.storage_shape)
    dimensions = (*attributes.dimensions, *_trailing(rank, dtype))
    return _moved(opcode, operands, BroadcastAttributes(dimensions), dtype, shape)


@EXTENDED.register(Opcode.TRANSPOSE)
def _transpose(opcode: Opcode, operands: Operands, attributes: TransposeAttributes, shape: Shape | None) -> Value:
    dtype = _dtype(operands)
    dimensions = (*attributes.dimensions, *_trailing(operands[0].aval.ndim, dtype))
    return _moved(opcode, operands, TransposeAttributes(dimensions), dtype)


def _cut_out(operands: Operands, attributes: SliceAttributes) -> Uses:
    """The elements that a slice has are used up in the array."""
    mask = np.zeros(operands[0].aval.storage.shape, np.bool_)
    mask[tuple(map(slice, attributes.start_indices, attributes.limit_indices, attributes.strides))] = True
    return Uses({0: Sink(masked(mask))})


@EXTENDED.register(Opcode.SLICE)
@_using("slice", _cut_out)
def _slice(opcode: Opcode, operands: Operands, attributes: SliceAttributes, shape: Shape | None) -> Value:
    dtype = _dtype(operands)
    element = dtype.storage_shape
    whole = SliceAttributes(
        (*attributes.start_indices, *(0 for _ in element)),
        (*attributes.limit_indices, *element),
        (*attributes.strides, *(1 for _ in element)),
    )
    return _moved(opcode, operands, whole, dtype)


@EXTENDED.register(Opcode.PAD)
@_using("pad", _used(0, 1))
def _pad(opcode: Opcode, operands: Operands, attributes: PadAttributes, shape: Shape | None) -> Value:
    """The storage is padded with 0, and the padding is then replaced: HLO's pad takes a scalar, which a key is not."""
    _require_all_extended(opcode, operands)
    x, padding = operands
    dtype = _dtype(operands)
    none = (0,) * len(dtype.storage_shape)
    inside = ops.full(ShapedArray(x.aval.shape, np.bool_), True)
    zero, false = ops.scalar(0, dtype.storage_dtype), ops.scalar(False, np.dtype(np.bool_))
    around = PadAttributes((*attributes.low, *none), (*attributes.high, *none), (*attributes.interior, *none))
    padded = _moved(opcode, (storage_of(x), zero), around, dtype)
    return ops.select(bind(opcode, (inside, false), attributes), padded, ops.broadcast(padding, padded.aval.shape, ()))


@EXTENDED.register(Opcode.SELECT)
@_using("select_n", _used(1, 2))
def _select(opcode: Opcode, operands: Operands, attributes: Any, shape: Shape | None) -> Value:
    pred, on_true, on_false = operands
    _require_all_extended(opcode, (on_true, on_false))
    if pred.aval.shape:
        pred = ops.broadcast(pred, on_true.aval.storage.shape, range(pred.aval.ndim))
    return _moved(opcode, (pred, on_true, on_false), attributes, _dtype((on_true, on_false)))


# ---- elements at computed indices


def _zeros(starts: Operands, dtype: ExtendedDType) -> Operands:
    """Start indices in the dimensions of one element: zeros."""
    index = starts[0].aval.dtype if starts else np.dtype(np.int32)
    return tuple([ops.scalar(0, index) for _ in dtype.storage_shape])


@EXTENDED.register(Opcode.DYNAMIC_SLICE)
@_using("dynamic_slice", _taken)
def _dynamic_slice(
    opcode: Opcode, operands: Operands, attributes: DynamicSliceAttributes, shape: Shape | None
) -> Value:
    x, *starts = operands
    dtype = _dtype((x,))
    sizes = DynamicSliceAttributes((*attributes.dynamic_slice_sizes, *dtype.storage_shape))
    return _moved(opcode, (x, *starts, *_zeros(tuple(starts), dtype)), sizes, dtype)


@EXTENDED.register(Opcode.DYNAMIC_UPDATE_SLICE)
@_using("dynamic_update_slice", _written(1))
def _dynamic_update_slice(opcode: Opcode, operands: Operands, attributes: Any, shape: Shape | None) -> Value:
    x, block, *starts = operands
    _require_all_extended(opcode, (x, block))
    dtype = _dtype((x, block))
    return _moved(opcode, (x, block, *starts, *_zeros(tuple(starts), dtype)), attributes, dtype)


@EXTENDED.register(Opcode.GATHER)
@_using("gather", _taken)
def _gather(opcode: Opcode, operands: Operands, attributes: GatherAttributes, shape: Shape | None) -> Value:
    """Each slice takes whole elements; their dimensions come last in the result."""
    x, indices = operands
    dtype = _dtype((x,))
    batch = indices.aval.ndim - (attributes.index_vector_dim < indices.aval.ndim)
    rank = batch + len(attributes.offset_dims)
    whole = dataclasses.replace(
        attributes,
        offset_dims=(*attributes.offset_dims, *_trailing(rank, dtype)),
        slice_sizes=(*attributes.slice_sizes, *dtype.storage_shape),
    )
    return _moved(opcode, operands, whole, dtype)


@EXTENDED.register(Opcode.SCATTER)
@_using("scatter", _written(2))
def _scatter(opcode: Opcode, operands: Operands, attributes: ScatterAttributes, shape: Shape | None) -> Value:
    """`to_apply` combines words: it has the type of the storage."""
    x, _, updates = operands
    _require_all_extended(opcode, (x, updates))
    dtype = _dtype((x, updates))
    window = (*attributes.update_window_dims, *_trailing(updates.aval.ndim, dtype))
    return _moved(opcode, operands, dataclasses.replace(attributes, update_window_dims=window), dtype)


# ---- equality


@EXTENDED.register(Opcode.COMPARE)
def _compare(opcode: Opcode, operands: Operands, attributes: CompareAttributes, shape: Shape | None) -> Value:
    """Equal where all words are equal, different where one word is different; keys have no order."""
    _require_all_extended(opcode, operands)
    equal = attributes.direction is ComparisonDirection.EQ
    if not equal and attributes.direction is not ComparisonDirection.NE:
        what = f"{attributes.direction.value.lower()} does not accept dtype {operands[0].aval.dtype.name}"
        raise OperandError(f"{what}: it has no order", "compare_c1")
    dtype, rank = _dtype(operands), operands[0].aval.ndim
    same = bind(opcode, [storage_of(o) for o in operands], attributes)
    initial = ops.scalar(equal, np.dtype(np.bool_))
    return ops.reduce_with(Opcode.AND if equal else Opcode.OR, same, initial, _trailing(rank, dtype))


EXTENDED.unsupported(
    [o for o in Opcode if o not in EXTENDED], "it computes with numbers; keys are only moved, chosen and compared"
)
