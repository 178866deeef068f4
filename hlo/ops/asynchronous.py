"""Tokens, pairs of start and done, queues to and from the host."""

from __future__ import annotations

from ..attributes import AsyncAttributes, ChannelAttributes, InfeedAttributes, OutfeedAttributes
from ..ir import Attributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec, Trait

_FAMILY = "asynchronous"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.ADD_DEPENDENCY, _FAMILY, 2, Attributes, not_checked),
    OpSpec(_O.AFTER_ALL, _FAMILY, None, Attributes, not_checked),
    OpSpec(_O.ASYNC_START, _FAMILY, None, AsyncAttributes, not_checked),
    OpSpec(_O.ASYNC_UPDATE, _FAMILY, 1, AsyncAttributes, not_checked),
    OpSpec(_O.ASYNC_DONE, _FAMILY, 1, AsyncAttributes, not_checked),
    OpSpec(_O.COPY_START, _FAMILY, 1, Attributes, not_checked),
    OpSpec(_O.COPY_DONE, _FAMILY, 1, Attributes, not_checked),
    OpSpec(_O.INFEED, _FAMILY, 1, InfeedAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_O.OUTFEED, _FAMILY, 2, OutfeedAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_O.SEND, _FAMILY, 2, ChannelAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_O.SEND_DONE, _FAMILY, 1, ChannelAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_O.RECV, _FAMILY, 1, ChannelAttributes, not_checked, Trait.SIDE_EFFECT),
    OpSpec(_O.RECV_DONE, _FAMILY, 1, ChannelAttributes, not_checked, Trait.SIDE_EFFECT),
)
