"""Factorisations and Fourier transforms: cholesky, triangular-solve, fft."""

from __future__ import annotations

from ..attributes import CholeskyAttributes, FftAttributes, TriangularSolveAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec

_FAMILY = "linalg"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.CHOLESKY, _FAMILY, 1, CholeskyAttributes, not_checked),
    OpSpec(_O.TRIANGULAR_SOLVE, _FAMILY, 2, TriangularSolveAttributes, not_checked),
    OpSpec(_O.FFT, _FAMILY, 1, FftAttributes, not_checked),
)
