"""Rows of standalone programs, in place of calls of libraries and of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ..lowering_rules.fourier import add_fft
from ..lowering_rules.table import LoweringContext
from .linalg import add_custom_call, add_required

RULES: dict[Opcode, Callable[[LoweringContext, HloInstruction], None]] = {
    Opcode.FFT: partial(add_fft, side_by_side=False), Opcode.CHOLESKY: add_required,
    Opcode.TRIANGULAR_SOLVE: add_required, Opcode.CUSTOM_CALL: add_custom_call,
}  # fmt: skip
"""The rules by opcode. Other operations have the rows of `lowering_rules/`."""
