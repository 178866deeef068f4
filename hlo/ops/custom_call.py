"""custom-call: code that has a name only."""

from __future__ import annotations

from ..attributes import CustomCallAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec

_FAMILY = "custom_call"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.CUSTOM_CALL, _FAMILY, None, CustomCallAttributes, not_checked),
)
