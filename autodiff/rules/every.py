"""Every family of rules. Importing this file registers all rules; `tables.load_rules` does that when a function is
transformed."""

from __future__ import annotations

from . import (
    calls,
    control_flow,
    control_flow_batches,
    convolution,
    custom_batches,
    declared,
    dot,
    elementwise,
    from_text,
    indexing,
    linalg,
    movement,
    normalization,
    random,
    reduce,
    scan_batches,
    scan_reverse,
    sort,
    structure,
    window,
)
from .tables import BATCH

RULES = (
    *(calls, control_flow, control_flow_batches, convolution, custom_batches, declared, dot, elementwise, from_text),
    *(indexing, linalg, movement, normalization, random, reduce, scan_batches, scan_reverse, sort, structure, window),
)

declared.register_declared()  # for the ops for which the families have no rule
BATCH.unsupported(
    [o for o in from_text.FROM_TEXT if o not in BATCH], "it comes from HLO text only, which is run and not batched"
)
