"""Gather and scatter: slices taken from, and put into, places that are computed."""

from __future__ import annotations

from ..attributes import GatherAttributes, ScatterAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec, Trait

_FAMILY = "indexing"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.GATHER, _FAMILY, 2, GatherAttributes, not_checked),
    OpSpec(_O.SCATTER, _FAMILY, None, ScatterAttributes, not_checked, Trait.APPLIES),
)
