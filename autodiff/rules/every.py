"""Every family of rules. Importing this file registers them; `tables.load_rules` does that when a function is
differentiated. Rules that only batching needs are in `every_batch.py`."""

from __future__ import annotations

from . import (
    calls,
    control_flow,
    convolution,
    dot,
    elementwise,
    from_text,
    indexing,
    linalg,
    movement,
    normalization,
    random,
    reduce,
    scan_reverse,
    sort,
    structure,
    while_loop,
    window,
)

RULES = (
    *(calls, control_flow, convolution, dot, elementwise, from_text, indexing, linalg, movement, normalization),
    *(random, reduce, scan_reverse, sort, structure, while_loop, window),
)
