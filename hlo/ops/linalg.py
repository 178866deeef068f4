"""Factorisations and Fourier transforms: cholesky, triangular-solve, fft.

Source: XLA's ShapeInference::InferCholeskyShape, InferTriangularSolveShape and InferFftShape; the sections of the
operation semantics of these names.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Annotated

from ..element_type import ElementType
from ..instruction import Attributes
from ..opcode import Opcode
from ..shape import Shape
from ..support.records import dataclass
from ..text.codecs import BOOLEAN, INTEGER_LIST, enumeration
from .checks import array_of, fail, in_default_layout, names, require_arrays
from .declare import Attr, Dims, Of
from .spec import OpSpec, Trait


class FftType(Enum):
    """The four transforms of `fft`: of complex numbers and back, of real numbers and back.

    >>> from hloom import lax, numpy as jnp
    >>> lax.fft(jnp.array([1 + 0j, 0, 0, 0]), lax.FftType.FFT, (4,))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """

    FFT = "FFT"
    IFFT = "IFFT"
    RFFT = "RFFT"
    IRFFT = "IRFFT"

    @classmethod
    def _missing_(cls, value: object) -> FftType | None:
        """That of a number, as XLA counts them: from 0, in this order."""
        return list(cls)[value] if isinstance(value, int) and 0 <= value < len(cls) else None


class TransposeKind(Enum):
    """The transformation that a triangular solve applies to its matrix."""

    NO_TRANSPOSE = "NO_TRANSPOSE"
    TRANSPOSE = "TRANSPOSE"
    ADJOINT = "ADJOINT"


@dataclass(frozen=True, slots=True)
class FftAttributes(Attributes):
    """`fft_length`: the transformed sizes, one for each of the last 1 to 3 dimensions (of the real side)."""

    fft_type: Annotated[FftType, Attr(enumeration(FftType))]
    fft_length: Annotated[tuple[int, ...], Attr(INTEGER_LIST, dims=Dims(last=Of.RESULT))]


@dataclass(frozen=True, slots=True)
class CholeskyAttributes(Attributes):
    lower: Annotated[bool, Attr(BOOLEAN)] = False


@dataclass(frozen=True, slots=True)
class TriangularSolveAttributes(Attributes):
    left_side: Annotated[bool, Attr(BOOLEAN)] = False
    lower: Annotated[bool, Attr(BOOLEAN)] = False
    unit_diagonal: Annotated[bool, Attr(BOOLEAN)] = False
    transpose_a: Annotated[TransposeKind, Attr(enumeration(TransposeKind), always=True)] = TransposeKind.NO_TRANSPOSE


_FAMILY = "linalg"
_O = Opcode
_E = ElementType
_SOLVABLE = frozenset({_E.F16, _E.BF16, _E.F32, _E.F64, _E.C64, _E.C128})
_COMPLEX_OF = {_E.F32: _E.C64, _E.F64: _E.C128}
_REAL_OF = {complex_: real for real, complex_ in _COMPLEX_OF.items()}


def _cholesky_rule(operands: Sequence[Shape], attributes: CholeskyAttributes, declared: Shape | None) -> Shape:
    """Operand: square matrices; one triangle is read.

    c1: the operand is an array of floats of 16 bits or more, or of complex numbers; c2: it has at least two dimensions;
    c3: the last two are equal.
    """
    require_arrays(_O.CHOLESKY, operands, 1)
    (a,) = operands
    if a.element not in _SOLVABLE:
        fail(_O.CHOLESKY, operands, f"the element type must be one of {names(_SOLVABLE)}", 1)
    if a.rank < 2:
        fail(_O.CHOLESKY, operands, "the operand must have 2 dimensions or more", 2)
    if a.dimensions[-1] != a.dimensions[-2]:
        fail(_O.CHOLESKY, operands, "the last two dimensions must be equal", 3)
    return in_default_layout(a)


def _triangular_solve_rule(
    operands: Sequence[Shape], attributes: TriangularSolveAttributes, declared: Shape | None
) -> Shape:
    """Operands: a, square matrices with one triangle that is read, and b. The result has b's shape.

    c1: both are arrays of one type, floats of 16 bits or more, or complex numbers; c2: they have the same rank, at
    least 2; c3: a's last two dimensions are equal; c4: they match b's rows (left_side) or columns; c5: the other
    dimensions are the same.
    """
    require_arrays(_O.TRIANGULAR_SOLVE, operands, 1)
    a, b = operands
    if a.element is not b.element or a.element not in _SOLVABLE:
        fail(_O.TRIANGULAR_SOLVE, operands, f"both must be of one element type of {names(_SOLVABLE)}", 1)
    if a.rank != b.rank or a.rank < 2:
        fail(_O.TRIANGULAR_SOLVE, operands, "both must have the same number of dimensions, 2 or more", 2)
    if a.dimensions[-1] != a.dimensions[-2]:
        fail(_O.TRIANGULAR_SOLVE, operands, "the last two dimensions of a must be equal", 3)
    if a.dimensions[-1] != b.dimensions[-2 if attributes.left_side else -1]:
        side = "rows" if attributes.left_side else "columns"
        fail(_O.TRIANGULAR_SOLVE, operands, f"b must have as many {side} as a", 4)
    if a.dimensions[:-2] != b.dimensions[:-2]:
        fail(_O.TRIANGULAR_SOLVE, operands, "the batch dimensions must be the same", 5)
    return in_default_layout(b)


MAX_FFT_RANK = 3


def _fft_rule(operands: Sequence[Shape], attributes: FftAttributes, declared: Shape | None) -> Shape:
    """Transforms the last 1 to 3 dimensions. RFFT keeps n // 2 + 1 of the last one's n values, IRFFT makes n of them.

    c1: the operand is an array of c64 or c128 (RFFT: f32 or f64); c2: 1 to 3 dimensions are transformed, and it has
    as many; c3: `fft_length` has their sizes, except IRFFT's last; c4: that is n for n // 2 + 1 values, 0 for none.
    """
    require_arrays(_O.FFT, operands, 1)
    (x,) = operands
    lengths = attributes.fft_length
    admitted = _COMPLEX_OF if attributes.fft_type is FftType.RFFT else _REAL_OF
    if x.element not in admitted:
        wanted = names(frozenset(admitted))
        fail(_O.FFT, operands, f"{attributes.fft_type.value} takes {wanted}", 1)
    if not 1 <= len(lengths) <= MAX_FFT_RANK or len(lengths) > x.rank:
        fail(_O.FFT, operands, f"fft_length {list(lengths)} must name 1 to {MAX_FFT_RANK} dimensions of the operand", 2)
    inverse_real = attributes.fft_type is FftType.IRFFT
    sizes = x.dimensions[x.rank - len(lengths) :]
    kept = lengths[:-1] if inverse_real else lengths
    if sizes[: len(kept)] != kept:
        fail(_O.FFT, operands, f"fft_length {list(lengths)} must be the operand's sizes {list(sizes)}", 3)
    half = lengths[-1] // 2 + 1 if lengths[-1] else 0
    if inverse_real and sizes[-1] != half:
        why = f"IRFFT to {lengths[-1]} values needs {half} in the last dimension"
        fail(_O.FFT, operands, why, 4)
    if attributes.fft_type is FftType.RFFT:
        return array_of(_COMPLEX_OF[x.element], (*x.dimensions[:-1], half))
    if inverse_real:
        return array_of(_REAL_OF[x.element], (*x.dimensions[:-1], lengths[-1]))
    return in_default_layout(x)


_COSTLY = Trait.EXPENSIVE

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.CHOLESKY, _FAMILY, 1, CholeskyAttributes, _cholesky_rule, _COSTLY, 1, 2),
    OpSpec(_O.TRIANGULAR_SOLVE, _FAMILY, 2, TriangularSolveAttributes, _triangular_solve_rule, _COSTLY, 1, 2),
    OpSpec(_O.FFT, _FAMILY, 1, FftAttributes, _fft_rule, _COSTLY),
)
