"""The rows that a program which leaves the process has in place of calls of libraries and of Python."""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..rows.table import RowContext
from .fourier import add_fft
from .linalg import add_custom_call, add_required

RULES: dict[Opcode, Callable[[RowContext, HloInstruction], None]] = {
    Opcode.FFT: add_fft, Opcode.CHOLESKY: add_required, Opcode.TRIANGULAR_SOLVE: add_required,
    Opcode.CUSTOM_CALL: add_custom_call,
}  # fmt: skip
"""By opcode; other operations have the rows of `rows/`."""
