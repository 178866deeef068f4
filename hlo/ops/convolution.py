"""Convolution."""

from __future__ import annotations

from ..attributes import ConvolutionAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec

_FAMILY = "convolution"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.CONVOLUTION, _FAMILY, 2, ConvolutionAttributes, not_checked),
)
