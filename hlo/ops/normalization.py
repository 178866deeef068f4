"""Batch normalisation: training, inference, gradient."""

from __future__ import annotations

from ..attributes import BatchNormAttributes
from ..opcode import Opcode
from .checks import not_checked
from .spec import OpSpec

_FAMILY = "normalization"
_O = Opcode

SPECS: tuple[OpSpec, ...] = (
    OpSpec(_O.BATCH_NORM_TRAINING, _FAMILY, 3, BatchNormAttributes, not_checked),
    OpSpec(_O.BATCH_NORM_INFERENCE, _FAMILY, 5, BatchNormAttributes, not_checked),
    OpSpec(_O.BATCH_NORM_GRAD, _FAMILY, 5, BatchNormAttributes, not_checked),
)
