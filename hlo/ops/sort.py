"""Sorting by a comparator, and the k largest."""

from __future__ import annotations

from ..attributes import SortAttributes, TopKAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec, Trait

_FAMILY = "sort"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.SORT, _FAMILY, None, SortAttributes, not_checked, Trait.APPLIES),
    OpSpec(_O.TOPK, _FAMILY, 1, TopKAttributes, not_checked),
)
