"""Sizes of dimensions as values; on arrays of static shape."""

from __future__ import annotations

from ..attributes import DimensionAttributes
from ..ir import Attributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec

_FAMILY = "dynamic_size"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.GET_DIMENSION_SIZE, _FAMILY, 1, DimensionAttributes, not_checked),
    OpSpec(_O.SET_DIMENSION_SIZE, _FAMILY, 2, DimensionAttributes, not_checked),
    OpSpec(_O.DYNAMIC_RESHAPE, _FAMILY, None, Attributes, not_checked),
)
