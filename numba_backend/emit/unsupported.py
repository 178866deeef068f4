"""Ops that have no element rule, because they are in no loop nest, and where they are computed instead."""

from __future__ import annotations

from ...hlo.opcode import Opcode
from .element import ELEMENT

_O = Opcode

ELEMENT.unsupported(
    [_O.CALL, _O.CONDITIONAL, _O.DOT, _O.FUSION, _O.OPT_BARRIER, _O.RNG_BIT_GENERATOR, _O.TUPLE, _O.WHILE],
    "it is expanded, inlined or has a row of its own in the program",
)
ELEMENT.unsupported(
    [
        _O.ADD_DEPENDENCY, _O.AFTER_ALL, _O.ASYNC_DONE, _O.ASYNC_START, _O.ASYNC_UPDATE, _O.COPY_DONE, _O.COPY_START,
    ],
    "nothing happens between a start and its done, and tokens hold nothing: it is expanded or inlined",
)  # fmt: skip
ELEMENT.unsupported(
    [_O.INFEED, _O.OUTFEED, _O.RAGGED_ALL_TO_ALL, _O.RECV, _O.RECV_DONE, _O.SEND, _O.SEND_DONE],
    "it is a call into Python: a row of its own in the program",
)
ELEMENT.unsupported(
    [
        _O.ALL_GATHER, _O.ALL_GATHER_DONE, _O.ALL_GATHER_START, _O.ALL_REDUCE, _O.ALL_REDUCE_DONE, _O.ALL_REDUCE_START,
        _O.ALL_TO_ALL, _O.COLLECTIVE_BROADCAST, _O.COLLECTIVE_PERMUTE, _O.COLLECTIVE_PERMUTE_DONE,
        _O.COLLECTIVE_PERMUTE_START, _O.PARTITION_ID, _O.REDUCE_SCATTER, _O.REPLICA_ID,
    ],
    "on one device it is expanded to its operand, to zeros, or to a constant; on several it has a row of its own",
)  # fmt: skip
ELEMENT.unsupported(
    [_O.DOMAIN, _O.DYNAMIC_RESHAPE, _O.GET_DIMENSION_SIZE, _O.SET_DIMENSION_SIZE],
    "shapes are static: it is expanded to its operand, a reshape, or a constant",
)
ELEMENT.unsupported([_O.SCAN], "it is expanded to a while loop")
ELEMENT.unsupported([_O.SCATTER], "it has a row of its own in the program: it writes where its indices say")
ELEMENT.unsupported([_O.SORT, _O.TOPK], "it has a row of its own in the program: it sorts whole rows")
ELEMENT.unsupported([_O.RAGGED_DOT, _O.SCALED_DOT], "it is expanded to a dot of masked or scaled operands")
ELEMENT.unsupported(
    [_O.BATCH_NORM_GRAD, _O.BATCH_NORM_INFERENCE, _O.BATCH_NORM_TRAINING], "it is expanded to sums and arithmetic"
)
ELEMENT.unsupported(
    [_O.CHOLESKY, _O.CUSTOM_CALL, _O.FFT, _O.TRIANGULAR_SOLVE],
    "a library or a registered function computes it in a row of its own",
)
ELEMENT.unsupported([_O.RNG], "it is expanded to arithmetic on the process's random state")
ELEMENT.unsupported([_O.RNG_GET_AND_UPDATE_STATE], "it is a call into Python: a row of its own in the program")
ELEMENT.unsupported([_O.MAP, _O.STOCHASTIC_CONVERT], "it is expanded to other elementwise ops")
ELEMENT.unsupported(
    [_O.CONVOLUTION, _O.REDUCE_WINDOW, _O.SELECT_AND_SCATTER],
    "it has rows of its own in the program, see lowering_rules/convolution.py and lowering_rules/window.py",
)
