"""What slides a window over an array: reduce-window and select-and-scatter."""

from __future__ import annotations

from ..attributes import ReduceWindowAttributes, SelectAndScatterAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec, Trait

_FAMILY = "window"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.REDUCE_WINDOW, _FAMILY, None, ReduceWindowAttributes, not_checked, Trait.APPLIES),
    OpSpec(_O.SELECT_AND_SCATTER, _FAMILY, 3, SelectAndScatterAttributes, not_checked, Trait.APPLIES),
)
