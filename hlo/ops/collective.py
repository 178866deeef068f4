"""Between replicas and devices: reductions, gathers, permutations, who am I."""

from __future__ import annotations

from ..attributes import CollectiveAttributes
from ..ir import Attributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec, Trait

_FAMILY = "collective"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.ALL_GATHER, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.ALL_GATHER_START, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.ALL_REDUCE, _FAMILY, None, CollectiveAttributes, not_checked, Trait.APPLIES),
    OpSpec(_O.ALL_REDUCE_START, _FAMILY, None, CollectiveAttributes, not_checked, Trait.APPLIES),
    OpSpec(_O.ALL_TO_ALL, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.COLLECTIVE_BROADCAST, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.COLLECTIVE_PERMUTE, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.COLLECTIVE_PERMUTE_START, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.RAGGED_ALL_TO_ALL, _FAMILY, None, CollectiveAttributes, not_checked),
    OpSpec(_O.REDUCE_SCATTER, _FAMILY, None, CollectiveAttributes, not_checked, Trait.APPLIES),
    OpSpec(_O.ALL_GATHER_DONE, _FAMILY, 1, Attributes, not_checked),
    OpSpec(_O.ALL_REDUCE_DONE, _FAMILY, 1, Attributes, not_checked),
    OpSpec(_O.COLLECTIVE_PERMUTE_DONE, _FAMILY, 1, Attributes, not_checked),
    OpSpec(_O.PARTITION_ID, _FAMILY, 0, Attributes, not_checked),
    OpSpec(_O.REPLICA_ID, _FAMILY, 0, Attributes, not_checked),
)
