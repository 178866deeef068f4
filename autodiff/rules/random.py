"""Random bits are integers: they have no derivative."""

from __future__ import annotations

from ...hlo.opcode import Opcode
from .tables import zero_derivative

zero_derivative(Opcode.RNG_BIT_GENERATOR)
