"""Factorisations and Fourier transforms: cholesky, triangular-solve, fft."""

from __future__ import annotations

from ..opcode import Opcode
from .table import EVALUATE

EVALUATE.unsupported([Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE, Opcode.FFT], "not written yet")
