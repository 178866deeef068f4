"""The evaluator: the semantics of each op, in plain, readable NumPy.

It is the reference for every backend, so it shares no helper with shape inference or code generation. `table` has the
rule table and the interpreter; each family's rules are in the file of its name, which is imported when one of them is
first needed. NumPy's warnings are off: XLA computes overflow, division by zero and NaN silently too.
"""

from __future__ import annotations

from ..support.loading import load
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
    "EVALUATE", "Value", "evaluate", "evaluate_all", "evaluate_computation", "evaluate_instruction", "evaluate_op",
    "is_silent",
]  # fmt: skip

EVALUATE.come_from({
    "asynchronous": lambda: load(".asynchronous", __package__),
    "collective": lambda: load(".collective", __package__),
    "control_flow": lambda: load(".control_flow", __package__),
    "convolution": lambda: load(".convolution", __package__),
    "custom_call": lambda: load(".custom_call", __package__),
    "dot": lambda: load(".dot", __package__),
    "dynamic_size": lambda: load(".dynamic_size", __package__),
    "elementwise": lambda: load(".elementwise", __package__),
    "indexing": lambda: load(".indexing", __package__),
    "linalg": lambda: load(".linalg", __package__),
    "movement": lambda: load(".movement", __package__),
    "normalization": lambda: load(".normalization", __package__),
    "random": lambda: load(".random", __package__),
    "reduce": lambda: load(".reduce", __package__),
    "sort": lambda: load(".sort", __package__),
    "structure": lambda: load(".structure", __package__),
    "window": lambda: load(".window", __package__),
})  # fmt: skip
