"""Random bits are integers: they have no derivative. For a batch of states they are drawn one after the other."""

from __future__ import annotations

from functools import partial

from ...hlo.opcode import Opcode
from .declared import by_elements
from .tables import BATCH, zero_derivative

zero_derivative(Opcode.RNG_BIT_GENERATOR)
BATCH[Opcode.RNG_BIT_GENERATOR] = partial(by_elements, Opcode.RNG_BIT_GENERATOR)
