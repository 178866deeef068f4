"""Calls of LAPACK for the functions of this folder, and checks of their operands.

`lapack("getrf", [a], [...], ...)` is the custom call `lapack_sgetrf_ffi`, as in JAX's programs, for the element type of
the first operand. `hlo/custom_call_targets/` defines each target.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...extend.primitive import Primitive
from ...hlo.element_type import ElementType, element_type_of
from ...hlo.errors import UnsupportedError
from ...hlo.opcode import Opcode
from ...hlo.ops.custom_call import CustomCallApiVersion, CustomCallAttributes
from ...hlo.shape import Shape
from ...tracer import dtypes
from ...tracer.arrays.array import as_value
from ...tracer.core import Value, bind, bind_multi
from ...tracer.errors import OperandError
from ...tracer.ops import array_shape, broadcast, compare, convert, full_like, select, zeros
from ...tracer.trees import tree

_LETTERS = {ElementType.F32: "s", ElementType.F64: "d", ElementType.C64: "c", ElementType.C128: "z"}
_COMPLEX = {"orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd"}
"""Routines with another name for complex numbers."""

Result = tuple[Sequence[int], Any]
"""Dimensions and dtype."""


def lapack(
    routine: str, operands: Sequence[Value], results: Sequence[Result], **config: str | int | bool
) -> list[Value]:
    """The results of a routine, named as the one for real numbers. A letter in `config` is a character code."""
    dtype = operands[0].aval.dtype
    letter = _LETTERS[element_type_of(dtype)]
    if dtype.kind == "c":
        routine = _COMPLEX.get(routine, routine)
    written = ", ".join(f"{key} = {_written(value)}" for key, value in config.items())
    attributes = CustomCallAttributes(f"lapack_{letter}{routine}_ffi", f"{{{written}}}", CustomCallApiVersion.TYPED_FFI)
    shapes = [array_shape(d, dims) for dims, d in results]
    if len(shapes) == 1:
        return [bind(Opcode.CUSTOM_CALL, operands, attributes, shape=shapes[0], weak_type=False)]
    return bind_multi(Opcode.CUSTOM_CALL, operands, attributes, shape=Shape.tuple(shapes))


def _written(value: str | int | bool) -> str:
    """A number as MLIR writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{ord(value)} : ui8" if isinstance(value, str) else f"{value} : i32"


def nan_unless(is_ok: Value, x: Value) -> Value:
    """x, with NaN where `is_ok`, which has one element for each item of the batch, is false."""
    nan = complex(np.nan, np.nan) if x.aval.dtype.kind == "c" else np.nan
    return select(broadcast(is_ok, x.aval.shape, tuple(range(len(is_ok.aval.shape)))), x, full_like(x, nan))


def succeeded(info: Value) -> Value:
    """Where LAPACK says that all went well."""
    return compare(info, "EQ", zeros(info.aval))


# ---- operands


def matrices(name: str, x: Any, *, square: bool = False) -> Value:
    """The argument as matrices of a type that LAPACK has. Integers and booleans become floats.

    OperandError (a TypeError and ValueError) unless they are matrices; UnsupportedError for 16-bit floats.
    """
    value = inexact(name, x)
    if value.aval.ndim < 2:
        fail(name, [value], "it must have at least 2 dimensions", "rank")
    if square and value.aval.shape[-1] != value.aval.shape[-2]:
        what = {"eigh": "Argument to symmetric eigendecomposition"}.get(name, "the argument")
        why = f"{what} must have shape [..., n, n], got shape {value.aval.shape}: the last two dimensions must be equal"
        fail(name, [value], why, "square")
    return value


class UnsupportedDtypeError(UnsupportedError, TypeError):
    """LAPACK has no routine for a dtype; JAX raises a TypeError."""


def inexact(name: str, x: Any) -> Value:
    """The argument as floats or complex numbers of 32 bits or more, strongly typed."""
    value = as_value(x)
    if value.aval.is_extended:
        fail(name, [value], "it must be an array of numbers", "dtype")
    value = convert(value, dtypes.to_inexact(value.aval.dtype), False)
    if element_type_of(value.aval.dtype) not in _LETTERS:
        raise UnsupportedDtypeError(
            f"{name} does not accept dtype {value.aval.dtype.name}. Unsupported dtype {value.aval.str_short()}: LAPACK "
            "has no routine for it\n  Convert the argument, as in x.astype('float32')."
        )
    return value


def half_of(*operands: Any) -> Any:
    """The dtype of 16-bit float operands, since LAPACK has no routine for them; None for others. Functions by LU
    factors and triangles compute such in float32 (`widened`), and round their results once (`rounded`)."""
    found = [x.dtype for x in operands if hasattr(x, "dtype")]
    halves = [d for d in found if d in _HALVES]
    if not halves or any(dtypes.is_inexact(d) and d not in _HALVES for d in found):
        return None
    return functools.reduce(dtypes.wider, halves)


def widened(*operands: Any) -> list[Value]:
    """The operands as float32."""
    return [convert(as_value(x), dtypes.float32, False) for x in operands]


def rounded(dtype: Any, results: Any) -> Any:
    """Results of float32 as `dtype`; indices stay."""
    return tree.map(lambda v: convert(v, dtype, False) if dtypes.is_inexact(v.aval.dtype) else v, results)


_HALVES = (dtypes.float16, dtypes.bfloat16)


def fail(name: str, operands: Sequence[Value], why: str, rule: str) -> Any:
    """Raise OperandError: the operands violate the rule of the function `name`."""
    types = " and ".join(o.aval.str_short() for o in operands)
    raise OperandError(f"{name} of {types}: {why}", f"{name}_{rule}")


def no_derivative(primitive: Primitive, instead: str) -> None:
    """Make a derivative of the primitive an UnsupportedError. `instead`: which derivative there is."""

    @primitive.def_jvp
    def refuse(primals: Any, tangents: Any, **params: Any) -> Any:
        raise UnsupportedError(
            f"{primitive.name} has no derivative: {instead} defined\n  hloom.lax.stop_gradient makes its operand a "
            "constant."
        )


def takes_batches(primitive: Primitive) -> None:
    """Say that the operands may have any number of batch dimensions in front, the same ones, and the results then have
    them too: vmap binds the primitive to whole batches."""

    @primitive.def_batch
    def batch(axis_size: int, batched: Sequence[bool], *operands: Value, **params: Any) -> Any:
        whole = [
            v if b else broadcast(v, (axis_size, *v.aval.shape), range(1, v.aval.ndim + 1))
            for v, b in zip(operands, batched, strict=True)
        ]
        found = primitive.bind(*whole, **params)
        return found, tree.map(lambda _: True, found)
