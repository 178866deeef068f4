"""The evaluator: the semantics of each op, in plain, readable NumPy.

It is the reference for every backend, so it shares no helper with shape inference or code generation. `table` has the
rule table and the interpreter; each family's rules are in the file of its name. NumPy's warnings are off: XLA computes
overflow, division by zero and NaN silently too.
"""

from __future__ import annotations

from . import (  # each registers its rules
    asynchronous,
    collective,
    control_flow,
    convolution,
    custom_call,
    dot,
    dynamic_size,
    elementwise,
    indexing,
    linalg,
    movement,
    normalization,
    random,
    reduce,
    sort,
    structure,
    window,
)
from .control_flow import branch_taken
from .table import (
    EVALUATE,
    Value,
    evaluate,
    evaluate_all,
    evaluate_computation,
    evaluate_instruction,
    evaluate_op,
    is_silent,
)

__all__ = [
    "EVALUATE", "Value", "branch_taken", "evaluate", "evaluate_all", "evaluate_computation", "evaluate_instruction",
    "evaluate_op", "is_silent",
]  # fmt: skip

_FAMILIES = (
    asynchronous, collective, control_flow, convolution, custom_call, dot, dynamic_size, elementwise, indexing, linalg,
    movement, normalization, random, reduce, sort, structure, window,
)  # fmt: skip
assert not EVALUATE.missing(), f"opcodes without evaluation: {EVALUATE.missing()}"
