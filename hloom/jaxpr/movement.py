"""Ops that move elements: broadcasts, reshapes, slices, and the like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.ir import HloInstruction
from ..hlo.opcode import Opcode
from ..hlo.ops.movement import IotaAttributes
from ..tracer import dtypes, ops
from ..tracer.core import Value, bind
from .atoms import Atom
from .primitives import primitive
from .shown import SHOWN, Body, Shown, show_as_hlo


@SHOWN.register(Opcode.BROADCAST)
def _broadcast(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return broadcast_in_dim(operands[0], i.shape.dimensions, i.attributes.dimensions)


def broadcast_in_dim(operand: Atom, shape: Sequence[int], dimensions: Sequence[int]) -> Shown:
    """The equation."""
    params = {"shape": tuple(shape), "broadcast_dimensions": tuple(dimensions), "sharding": None}
    return Shown("broadcast_in_dim", [operand], params)


@primitive("broadcast_in_dim")
def _bind_broadcast(
    x: Value, *sizes: Value, shape: Sequence[int], broadcast_dimensions: Sequence[int], sharding: None = None
) -> Value:
    if x.aval.size == _product(shape):  # it has new dimensions of size 1
        return ops.reshape(x, tuple(shape))
    kept = [k for k, (d, n) in enumerate(zip(broadcast_dimensions, x.aval.shape, strict=True)) if shape[d] == n]
    narrow = ops.reshape(x, [x.aval.shape[k] for k in kept])
    return ops.broadcast(narrow, tuple(shape), [broadcast_dimensions[k] for k in kept])


def _product(sizes: Sequence[int]) -> int:
    result = 1
    for size in sizes:
        result *= size
    return result


@SHOWN.register(Opcode.RESHAPE)
def _reshape(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    """Dimensions of size 1 that come or go are shown as JAX writes them, other changes as a reshape."""
    before, after = i.operands[0].shape.dimensions, i.shape.dimensions
    if len(after) < len(before) and (gone := _inserted(after, before)) is not None:
        return Shown("squeeze", operands, {"dimensions": gone})
    if len(after) > len(before) and (new := _inserted(before, after)) is not None:
        return broadcast_in_dim(operands[0], after, [d for d in range(len(after)) if d not in new])
    return Shown("reshape", operands, {"new_sizes": after, "dimensions": None, "sharding": None})


def _inserted(small: Sequence[int], large: Sequence[int]) -> tuple[int, ...] | None:
    """The dimensions of size 1 that `large` has more than `small`, from the end; None if they differ otherwise."""
    found, rest = [], list(small)
    for d in range(len(large) - 1, -1, -1):
        if rest and rest[-1] == large[d]:
            rest.pop()
        elif large[d] == 1:
            found.append(d)
        else:
            return None
    return None if rest else tuple(reversed(found))


@primitive("reshape")
def _bind_reshape(
    x: Value, *sizes: Value, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None, sharding: None = None
) -> Value:
    return ops.reshape(x if dimensions is None else ops.transpose(x, tuple(dimensions)), tuple(new_sizes))


@primitive("squeeze")
def _bind_squeeze(x: Value, *, dimensions: Sequence[int]) -> Value:
    return ops.reshape(x, [n for d, n in enumerate(x.aval.shape) if d not in dimensions])


@SHOWN.register(Opcode.TRANSPOSE)
def _transpose(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("transpose", operands, {"permutation": i.attributes.dimensions})


@primitive("transpose")
def _bind_transpose(x: Value, *, permutation: Sequence[int]) -> Value:
    return ops.transpose(x, tuple(permutation))


@SHOWN.register(Opcode.REVERSE)
def _reverse(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("rev", operands, {"dimensions": i.attributes.dimensions})


@primitive("rev")
def _bind_rev(x: Value, *, dimensions: Sequence[int]) -> Value:
    return ops.reverse(x, tuple(sorted(dimensions)))


@SHOWN.register(Opcode.CONCATENATE)
def _concatenate(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("concatenate", operands, {"dimension": i.attributes.dimension})


@primitive("concatenate")
def _bind_concatenate(*values: Value, dimension: int) -> Value:
    return ops.concatenate(values, dimension)


@SHOWN.register(Opcode.IOTA)
def _iota(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    params = {"dtype": i.shape.element.dtype, "shape": i.shape.dimensions, "dimension": i.attributes.iota_dimension}
    return Shown("iota", operands, {**params, "sharding": None})


@primitive("iota")
def _bind_iota(*sizes: Value, dtype: Any, shape: Sequence[int], dimension: int, sharding: None = None) -> Value:
    declared = ops.array_shape(dtypes.requested_dtype(dtype, "iota"), tuple(shape))
    return bind(Opcode.IOTA, (), IotaAttributes(dimension), shape=declared)


@SHOWN.register(Opcode.PAD)
def _pad(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    padding = i.attributes
    config = tuple(zip(padding.low, padding.high, padding.interior, strict=True))
    return Shown("pad", operands, {"padding_config": config})


@primitive("pad")
def _bind_pad(x: Value, value: Value, *, padding_config: Sequence[tuple[int, int, int]]) -> Value:
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    return ops.pad(x, value, low, high, interior)


@SHOWN.register(Opcode.SLICE)
def _slice(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    where = i.attributes
    strides = where.strides if any(s != 1 for s in where.strides) else None
    params = {"start_indices": where.start_indices, "limit_indices": where.limit_indices, "strides": strides}
    return Shown("slice", operands, params)


@primitive("slice")
def _bind_slice(
    x: Value, *, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None
) -> Value:
    return ops.slice_(x, start_indices, limit_indices, strides)


@SHOWN.register(Opcode.DYNAMIC_SLICE)
def _dynamic_slice(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("dynamic_slice", operands, {"slice_sizes": i.attributes.dynamic_slice_sizes})


@primitive("dynamic_slice")
def _bind_dynamic_slice(x: Value, *starts: Value, slice_sizes: Sequence[int]) -> Value:
    return ops.read_block(x, starts, tuple(slice_sizes))


@SHOWN.register(Opcode.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("dynamic_update_slice", operands, {})


@primitive("dynamic_update_slice")
def _bind_dynamic_update_slice(x: Value, block: Value, *starts: Value) -> Value:
    return ops.write_block(x, block, starts)


@SHOWN.register(Opcode.COPY)
def _copy(i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    return Shown("copy", operands, {})


@primitive("copy")
def _bind_copy(x: Value) -> Value:
    return bind(Opcode.COPY, (x,))


show_as_hlo(Opcode.BITCAST)
