"""Discrete Fourier transforms of the last dimensions. Names and semantics follow jax.lax.fft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..hlo.opcode import Opcode
from ..hlo.ops.linalg import FftAttributes, FftType
from ..tracer import dtypes
from ..tracer.arrays.array import as_value
from ..tracer.core import Value, bind
from ..tracer.errors import OperandError
from ..tracer.ops import convert, is_complex
from .movement import canonical_shape


def fft(x: Any, fft_type: FftType | str, fft_lengths: Sequence[int]) -> Value:
    """The transform of the last 1 to 3 dimensions, of the sizes `fft_lengths` (on the real side).

    `fft_type`: FFT and IFFT of complex numbers, RFFT from real numbers to the n // 2 + 1 frequencies that determine the
    others, IRFFT back. The inverse ones divide by the number of values. Other types of operands are converted.

    OperandError (a ValueError and TypeError): the sizes do not fit, there are more than three, or RFFT gets complex
    numbers.

    >>> lax.fft(jnp.array([1.0, 0.0, 0.0, 0.0]), "RFFT", (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    >>> lax.fft(jnp.array([1 + 0j, 1, 1]), lax.FftType.IRFFT, (4,))
    Array([1., 0., 0., 0.], dtype=float32)
    """
    kind = _kind(fft_type)
    value = as_value(x)
    if kind is FftType.RFFT:
        if is_complex(value):
            raise OperandError(
                f"RFFT of {value.aval.str_short()}: only real valued inputs\n  FFT takes complex numbers; x.real "
                "drops the imaginary part.",
                "fft_c1",
            )
        value = convert(value, dtypes.to_inexact(value.aval.dtype))
    else:
        value = convert(value, dtypes.to_complex(value.aval.dtype))
    lengths = canonical_shape(fft_lengths)
    if not lengths:
        return value
    return bind(Opcode.FFT, (value,), FftAttributes(kind, lengths), weak_type=False)


def _kind(fft_type: Any) -> FftType:
    if isinstance(fft_type, FftType):
        return fft_type
    if not isinstance(fft_type, str):
        raise TypeError(f"Unknown FFT type value {fft_type!r}")
    if fft_type not in (*FftType.__members__, *map(str.lower, FftType.__members__)):
        names = ", ".join(FftType.__members__)
        raise ValueError(f"Unknown FFT type {fft_type!r}; there are {names}")
    return FftType[fft_type.upper()]
