"""Ops that occur only in HLO text: no function of hloom makes one, so their derivatives are never needed."""

from __future__ import annotations

from ...hlo.opcode import Opcode
from .tables import JVP, TRANSPOSE

_O = Opcode

FROM_TEXT = (
    _O.ADD_DEPENDENCY, _O.AFTER_ALL, _O.ALL_GATHER, _O.ALL_GATHER_DONE, _O.ALL_GATHER_START, _O.ALL_REDUCE,
    _O.ALL_REDUCE_DONE, _O.ALL_REDUCE_START, _O.ALL_TO_ALL, _O.ASYNC_DONE, _O.ASYNC_START, _O.ASYNC_UPDATE,
    _O.COLLECTIVE_BROADCAST, _O.COLLECTIVE_PERMUTE, _O.COLLECTIVE_PERMUTE_DONE, _O.COLLECTIVE_PERMUTE_START,
    _O.COPY_DONE, _O.COPY_START, _O.CUSTOM_CALL, _O.DOMAIN, _O.DYNAMIC_RESHAPE, _O.INFEED, _O.OUTFEED, _O.PARTITION_ID,
    _O.RAGGED_ALL_TO_ALL, _O.RECV, _O.RECV_DONE, _O.REDUCE_SCATTER, _O.REPLICA_ID, _O.SCAN, _O.SEND, _O.SEND_DONE,
    _O.SET_DIMENSION_SIZE,
)  # fmt: skip
"""They have no derivative rules: a derivative of one is an error."""

for _table in (JVP, TRANSPOSE):
    _table.unsupported(FROM_TEXT, "it comes from HLO text only, which is run and not differentiated")
