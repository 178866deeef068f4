"""THE table of op cases: every opcode with every element type that it admits, at several sizes.

It feeds the evaluator against real XLA, code generation against the evaluator, gradients, batching and layouts. A case
says what goes in, what comes out, and how close two implementations must be. Types are written out by hand, and not
taken from the ops' own declarations.

    for case in CASES: module = build_module(case); inputs = make_inputs(case, seed=0)
"""

from __future__ import annotations

from . import (
    op_cases_asynchronous,
    op_cases_collective,
    op_cases_control_flow,
    op_cases_convolution,
    op_cases_dynamic_size,
    op_cases_elementwise,
    op_cases_indexing,
    op_cases_linalg,
    op_cases_movement,
    op_cases_reduce,
    op_cases_small_types,
    op_cases_sort,
    op_cases_structure,
    op_cases_window,
)
from .op_case import Array, OpCase, Operand, build_module, check_results, make_inputs
from .op_cases_reduce import binary_computation

__all__ = ["CASES", "Array", "OpCase", "Operand", "binary_computation", "build_module", "check_results", "make_inputs"]

_FAMILIES = (
    op_cases_asynchronous,
    op_cases_collective,
    op_cases_control_flow,
    op_cases_convolution,
    op_cases_dynamic_size,
    op_cases_elementwise,
    op_cases_indexing,
    op_cases_linalg,
    op_cases_movement,
    op_cases_reduce,
    op_cases_small_types,
    op_cases_sort,
    op_cases_structure,
    op_cases_window,
)

CASES: tuple[OpCase, ...] = tuple(case for family in _FAMILIES for case in family.cases())
"""All cases, family by family; the ids are unique."""
assert len({case.id for case in CASES}) == len(CASES), "two cases of one id"
