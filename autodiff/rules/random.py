"""Random bits and states are integers: they have no derivative. For a batch of states they are drawn one after the
other. A draw from HLO's hidden generator is no function of its operands."""

from __future__ import annotations

from functools import partial

from ...hlo.opcode import Opcode
from .declared import by_elements
from .tables import BATCH, JVP, TRANSPOSE, zero_derivative

_O = Opcode

zero_derivative(_O.RNG_BIT_GENERATOR, _O.RNG_GET_AND_UPDATE_STATE)
BATCH[_O.RNG_BIT_GENERATOR] = partial(by_elements, _O.RNG_BIT_GENERATOR)
BATCH.unsupported([_O.RNG_GET_AND_UPDATE_STATE], "it has no operands")
for _table in (JVP, TRANSPOSE, BATCH):
    _table.unsupported([_O.RNG], "it draws anew at every use: scale and shift standard draws, which depend on nothing")
