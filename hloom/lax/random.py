"""Random bits and numbers by HLO's own operations. `hloom.random` is made for programs; these are HLO's own."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..hlo.opcode import Opcode
from ..hlo.ops import random as _ops
from ..hlo.shape import Shape
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.compound import compound
from ..tracer.core import Value, bind, bind_multi
from ..tracer.errors import OperandError
from ..tracer.ops import array_shape, convert, scalar_like
from .instructions import bitwise_or, shift_left, shift_right_logical
from .movement import canonical_shape, concatenate, reshape, slice


class RandomAlgorithm(enum.IntEnum):
    """The generators of `rng_bit_generator`.

    >>> lax.rng_bit_generator(jnp.zeros(4, jnp.uint32), (2,), algorithm=lax.RandomAlgorithm.RNG_PHILOX)[1]
    Array([1713891541, 3781805453], dtype=uint32)
    """

    RNG_DEFAULT = 0
    """Philox."""
    RNG_THREE_FRY = 1
    """Threefry-2x32."""
    RNG_PHILOX = 2
    """Philox-4x32."""

    def __str__(self) -> str:
        return self.name


_ALGORITHMS = {
    RandomAlgorithm.RNG_DEFAULT: _ops.RandomAlgorithm.DEFAULT,
    RandomAlgorithm.RNG_THREE_FRY: _ops.RandomAlgorithm.THREEFRY,
    RandomAlgorithm.RNG_PHILOX: _ops.RandomAlgorithm.PHILOX,
}
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")


def rng_bit_generator(
    key: Any,
    shape: Any,
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Value, Value]:
    """(the next key, random bits) from a key uint32[4] or uint64[2]. The bits are XLA's on the CPU.

    Args:
      dtype: uint8, uint16, uint32 or uint64 (TypeError for others).
      algorithm: the generator.

    >>> key, bits = lax.rng_bit_generator(jnp.array([0, 1, 2, 3], jnp.uint32), (2, 3))
    >>> key, bits.shape
    (Array([0, 1, 4, 3], dtype=uint32), (2, 3))
    """
    found = dtypes.requested_dtype(dtype, "rng_bit_generator")
    if found.name not in _UNSIGNED:
        raise OperandError(
            f"rng_bit_generator: unsupported dtype {found.name}; it makes {', '.join(_UNSIGNED)}", "rng_bit_generator"
        )
    state = as_value(key)
    if (state.aval.dtype.name, state.aval.shape) not in (("uint32", (4,)), ("uint64", (2,))):
        raise OperandError(
            f"rng_bit_generator: a key is uint32[4] or uint64[2], not {state.aval.str_short()}", "rng_bit_generator"
        )
    new_key, bits = _bits(state, canonical_shape(shape), found, RandomAlgorithm(algorithm))
    return new_key, bits


@compound(static=("shape", "dtype", "algorithm"))
def _bits(key: Any, shape: tuple[int, ...], dtype: np.dtype[Any], algorithm: RandomAlgorithm) -> tuple[Value, Value]:
    """HLO's state is two u64, also where programs have no 64-bit types."""
    wide = np.dtype(np.uint64)
    is_narrow = key.aval.dtype == np.uint32
    state = key
    if is_narrow:
        low, high = (convert(_every_other(key, start), wide, False) for start in (0, 1))
        state = bitwise_or(low, shift_left(high, scalar_like(high, 32)))
    declared = Shape.tuple([array_shape(wide, (2,)), array_shape(dtype, shape)])
    attributes = _ops.RngBitGeneratorAttributes(_ALGORITHMS[algorithm])
    after, bits = bind_multi(Opcode.RNG_BIT_GENERATOR, (state,), attributes, shape=declared)
    if is_narrow:
        words = [after, shift_right_logical(after, scalar_like(after, 32))]
        pairs = concatenate([reshape(convert(w, key.aval.dtype, False), (2, 1)) for w in words], 1)
        after = reshape(pairs, (4,))
    return after, bits


def _every_other(x: Value, start: int) -> Value:
    return slice(x, (start,), (4,), (2,))


def rng_uniform(a: Any, b: Any, shape: Any) -> Value:
    """Uniform numbers in [a, b), two scalars of one dtype, from a generator that the process owns: every call, and
    every run of a program that calls it, draws others.

    >>> x = lax.rng_uniform(0.0, 1.0, (3,))
    >>> x.shape, bool(((0 <= x) & (x < 1)).all())
    ((3,), True)
    """
    low, high = as_value(a), as_value(b)
    if low.aval.dtype != high.aval.dtype or low.aval.shape or high.aval.shape:
        raise OperandError(
            f"Arguments to rng_uniform must be scalars of identical dtypes, got {low.aval.str_short()} and "
            f"{high.aval.str_short()}",
            "rng_uniform",
        )
    declared = array_shape(low.aval.dtype, canonical_shape(shape))
    return bind(Opcode.RNG, (low, high), _ops.RngAttributes(_ops.RandomDistribution.UNIFORM), shape=declared)
