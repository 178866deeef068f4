"""Products of matrices with elements of a few bits and a scale for each block of them. Names and semantics follow
jax.nn.

Two formats: "mxfp8" has elements of 8 bits (e4m3fn) and for 32 of them a scale that is a power of two; "nvfp4" has
elements of 4 bits (e2m1fn) and for 16 of them a scale of 8 bits (e4m3fn), and a scale for the whole array. A CPU
computes with neither: elements are converted to float32. So results equal those of accelerators up to the rounding of
sums.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import lax
from .. import numpy as jnp
from ..autodiff.custom import custom_vjp
from ..hlo.support.records import dataclass
from ..lax.shapes import scaled_dot
from ..numpy.promotion import check_arraylike, ensure_arraylikes
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.arrays.operators import ArrayLike
from ..tracer.compound import compound
from ..tracer.core import Value
from ..tracer.jit import jit

_ROWS_BY_ROWS = (((2,), (2,)), ((0,), (0,)))
"""[B, M, K] with [B, N, K] is [B, M, N]."""


@compound(static=("preferred_element_type",))
def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: Any = np.float32,
) -> Value:
    """``(lhs * lhs_scales) @ (rhs * rhs_scales)`` for batches of matrices, where a scale is for a block of elements.

    Args:
      lhs: [B, M, K]. rhs: [B, N, K]: its rows are contracted, too.
      lhs_scales, rhs_scales: [B, M, K / n] and [B, N, K / n] for blocks of n neighbours in a row.
      preferred_element_type: of the result. Sums are float32.

    Returns:
      [B, M, N].

    Raises:
      ValueError: shapes that do not fit each other.

    >>> a, b, half = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), jnp.array([[[0.5]]])
    >>> nn.scaled_matmul(a, b, half, half).tolist()
    [[[8.0]]]
    """
    values = ensure_arraylikes("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    shapes = [v.aval.shape for v in values]
    shown = ", ".join(v.aval.str_short() for v in values)
    if any(len(s) != 3 for s in shapes):
        raise ValueError(f"scaled_matmul requires all inputs to be 3-dimensional arrays, not {shown}")
    a, b, a_scales, b_scales = shapes
    if a[0] != b[0] or a[2] != b[2]:
        raise ValueError(
            "scaled_matmul requires inputs a and b to have matching batch (B) and contract (K) dimensions, but got "
            f"shapes {a} and {b}"
        )
    if a_scales[0] != b_scales[0] or a_scales[2] != b_scales[2]:
        raise ValueError(
            "scaled_matmul requires scales to have matching batch (B) and contract (K) dimensions, but got shapes "
            f"{a_scales} and {b_scales}"
        )
    if a_scales[:2] != a[:2] or b_scales[:2] != b[:2]:
        raise ValueError(
            f"scaled_matmul requires scales to match non-contract dimensions of inputs, but got shapes a: {a}, b: "
            f"{b}, a_scales: {a_scales}, b_scales: {b_scales}"
        )
    x, y, x_scales, y_scales = values
    return scaled_dot(
        x,
        y,
        lhs_scale=x_scales,
        rhs_scale=y_scales,
        dimension_numbers=_ROWS_BY_ROWS,
        preferred_element_type=dtypes.requested_dtype(preferred_element_type, "scaled_matmul"),
    )


@dataclass(slots=True)
class BlockScaleConfig:
    """How an array becomes elements of a few bits: the result of `get_scaled_dot_general_config`."""

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any
    infer_only: bool


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None) -> BlockScaleConfig:
    """A format for `scaled_dot_general`: "mxfp8" or "nvfp4".

    global_scale: a float32 that divides all elements of an array of "nvfp4"; None: 1. "mxfp8" has none.

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> config.mode, config.block_size
    ('mxfp8', 32)
    """
    if mode == "nvfp4":
        scale = jnp.ones((1,), np.float32) if global_scale is None else global_scale
        return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale, False)
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu, None, False)
    raise ValueError(f"Unsupported mode: {mode!r}: there are 'nvfp4' and 'mxfp8'")


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: Any = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: str | None = None,
) -> Value:
    """`lax.dot_general` of the operands rounded to a few bits.

    Args:
      lhs, rhs: arrays of floats. Contracted dimensions, in one row, must have a multiple of the block's elements.
      dimension_numbers: as of `lax.dot_general`.
      preferred_element_type: of the result: float32, bfloat16 or float16.
      configs: three formats: of lhs, of rhs and of the cotangent, from `get_scaled_dot_general_config`. None: the
        operands are not rounded.
      implementation: deprecated, without a meaning.

    Returns: The batch dimensions, then the other dimensions of lhs, then those of rhs. Its derivative rounds too: for
      "mxfp8" the cotangent and the other operand, along the dimensions that are then contracted; for "nvfp4" nothing,
      but it is 0 where an element was clipped.

    Raises:
      TypeError: a result type that is none of the three. ValueError: a row that is no multiple of a block.

    >>> x, formats = jnp.full((2, 32), 1.05), [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=formats).tolist()
    [[32.0, 32.0], [32.0, 32.0]]
    """
    if implementation is not None:
        warnings.warn("implementation= of scaled_dot_general is ignored", DeprecationWarning, stacklevel=2)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    check_arraylike("scaled_dot_general", lhs, rhs)
    wanted = dtypes.requested_dtype(preferred_element_type, "scaled_dot_general")
    if wanted not in (np.dtype(np.float32), np.dtype(np.float16), np.dtype(jnp.bfloat16)):
        raise TypeError(f"Only support preferred_element_type in (f32, bf16, f16), but got {wanted.name}")
    x, y = as_value(lhs), as_value(rhs)
    (x_contract, y_contract), (x_batch, y_batch) = [[tuple(d) for d in pair] for pair in dimension_numbers]
    a, sizes, x_kept = _as_matrices(x, x_batch, x_contract)
    b, _, y_kept = _as_matrices(y, y_batch, y_contract)
    formats = tuple([_Format(c.mode, c.block_size, np.dtype(c.data_type), np.dtype(c.scale_type)) for c in configs])
    scales = [None if c.global_scale is None else as_value(c.global_scale) for c in configs[:2]]
    product = _product(formats, wanted)(a, b, *scales)
    return lax.reshape(product, (*sizes, *x_kept, *y_kept))


def _as_matrices(x: Value, batch: Sequence[int], contract: Sequence[int]) -> tuple[Value, list[int], list[int]]:
    """x as [B, M, K], the sizes that multiply to B, and the sizes that multiply to M."""
    kept = [d for d in range(x.aval.ndim) if d not in batch and d not in contract]
    groups = [[x.aval.shape[d] for d in group] for group in (batch, kept, contract)]
    moved = lax.transpose(x, (*batch, *kept, *contract))
    return lax.reshape(moved, [math.prod(g) for g in groups]), groups[0], groups[1]


@dataclass(frozen=True)
class _Format:
    """The part of a BlockScaleConfig that a compiled program depends on."""

    mode: str
    block_size: int
    data_type: np.dtype[Any]
    scale_type: np.dtype[Any]

    def most(self) -> float:
        return float(jnp.finfo(self.data_type).max)


@functools.lru_cache(maxsize=64)
def _product(formats: tuple[_Format, ...], wanted: np.dtype[Any]) -> Callable[..., Any]:
    """(a [B, M, K], b [B, N, K], their scales) -> [B, M, N], with the derivative of `scaled_dot_general`."""

    def rounded_product(a: Any, b: Any, ours: tuple[_Format, _Format], scales: tuple[Any, Any], dtype: Any) -> Any:
        x, x_scales = quantize(a, ours[0], scales[0])
        y, y_scales = quantize(b, ours[1], scales[1])
        if ours[0].mode != "nvfp4":
            return scaled_matmul(x, y, x_scales, y_scales, dtype)
        product = scaled_matmul(x, y, x_scales, y_scales)
        return (product * jnp.reshape(scales[0] * scales[1], ())).astype(dtype)

    @custom_vjp
    def product(a: Any, b: Any, a_scale: Any, b_scale: Any) -> Any:
        return rounded_product(a, b, (formats[0], formats[1]), (a_scale, b_scale), wanted)

    def forwards(*operands: Any) -> Any:
        return product(*operands), operands

    def backwards(operands: Any, ct: Any) -> Any:
        a, b, a_scale, b_scale = operands
        turned = [jnp.swapaxes(v, 1, 2) for v in (a, b, ct)]
        if formats[2].mode == "nvfp4":
            a_bar = _in_range(a, formats[0], a_scale, lax.batch_matmul(*_alike(ct, b)))
            b_bar = _in_range(b, formats[1], b_scale, lax.batch_matmul(*_alike(turned[2], a)))
        else:
            none = (None, None)
            a_bar = rounded_product(ct, turned[1], (formats[2], formats[1]), none, wanted)
            b_bar = rounded_product(turned[2], turned[0], (formats[2], formats[0]), none, wanted)
        return a_bar.astype(a.dtype), b_bar.astype(b.dtype), _zero(a_scale), _zero(b_scale)

    product.defvjp(forwards, backwards)
    return jit(product)


def _alike(x: Any, y: Any) -> tuple[Any, Any]:
    return x.astype(np.float32), y.astype(np.float32)


def _zero(scale: Any) -> Any:
    return None if scale is None else jnp.zeros_like(scale)


def _in_range(x: Any, rounding: _Format, scale: Any, ct: Any) -> Any:
    """The cotangent of x, and 0 where x is too large for the format."""
    most = rounding.most() * float(jnp.finfo(rounding.scale_type).max)
    return jnp.where(abs(x) <= jnp.reshape(scale, ()) * most, ct, 0)


def quantize(x: Any, rounding: Any, scale: Any = None) -> tuple[Any, Any]:
    """x as elements of a few bits, and a scale for each block along its last dimension.

    rounding: a format, or a BlockScaleConfig, which has the scale of the whole array with it.
    """
    scale = getattr(rounding, "global_scale", None) if scale is None else scale
    *others, size = x.shape
    block = rounding.block_size
    if not size or size % block:
        raise ValueError(
            f"scaled_dot_general contracts {size} elements in {rounding.mode}, which has blocks of {block}: their "
            "number must be a multiple of that"
        )
    most = float(jnp.finfo(rounding.data_type).max)
    blocks = x.astype(np.float32).reshape(*others, size // block, block)
    if rounding.mode == "nvfp4":
        blocks = blocks / jnp.reshape(scale, ())
        largest = jnp.max(abs(blocks), axis=-1, keepdims=True) / most
        scales = jnp.clip(largest, 0, float(jnp.finfo(rounding.scale_type).max)).astype(rounding.scale_type)
        factors = scales.astype(np.float32)
    else:
        factors = _power_of_two_above(jnp.max(abs(blocks), axis=-1, keepdims=True) / most)
        scales = factors.astype(rounding.scale_type)
    # A block of zeros may have a scale of 0.
    small = jnp.where(factors == 0, 0, blocks / jnp.where(factors == 0, 1, factors))
    elements = jnp.clip(small, -most, most).astype(rounding.data_type)
    return elements.reshape(x.shape), scales[..., 0]


def _power_of_two_above(x: Any) -> Any:
    """The least power of two that is not below x, of those from 2**-127 to 2**127; NaN for inf and NaN."""
    bits = lax.bitcast_convert_type(x, np.uint32)
    exponent = (bits + np.uint32(0x7FFFFF)) >> np.uint32(23)
    ordinary = lax.bitcast_convert_type(jnp.minimum(exponent, np.uint32(254)) << np.uint32(23), np.float32)
    least = np.float32(2.0**-127)
    return jnp.where(x <= least, least, jnp.where(x < np.inf, ordinary, np.float32(np.nan)))
