"""The table of op cases: every opcode with every element type that it admits, at several sizes.

The evaluator is tested with it against real XLA, code generation against the evaluator; so are gradients, batching and
layouts. A case has the inputs, the outputs, and how close two implementations must be. Types are written out by hand,
not taken from the ops' declarations.

    for case in CASES: module = build_module(case); inputs = make_inputs(case, seed=0)
"""

from __future__ import annotations

from ..hlo import Opcode
from . import (
    op_cases_asynchronous,
    op_cases_collective,
    op_cases_control_flow,
    op_cases_convolution,
    op_cases_dot,
    op_cases_dynamic_size,
    op_cases_elementwise,
    op_cases_indexing,
    op_cases_linalg,
    op_cases_movement,
    op_cases_normalization,
    op_cases_random,
    op_cases_reduce,
    op_cases_rounding,
    op_cases_small_types,
    op_cases_sort,
    op_cases_structure,
    op_cases_window,
)
from .computations import binary_computation
from .op_case import Array, OpCase, Operand, build_module, check_results, make_inputs

__all__ = [
    "CASES", "WITHOUT_CASES", "Array", "OpCase", "Operand", "binary_computation", "build_module", "check_results",
    "make_inputs",
]  # fmt: skip

_FAMILIES = (
    op_cases_asynchronous,
    op_cases_collective,
    op_cases_control_flow,
    op_cases_convolution,
    op_cases_dynamic_size,
    op_cases_dot,
    op_cases_elementwise,
    op_cases_indexing,
    op_cases_linalg,
    op_cases_movement,
    op_cases_normalization,
    op_cases_random,
    op_cases_reduce,
    op_cases_rounding,
    op_cases_small_types,
    op_cases_sort,
    op_cases_structure,
    op_cases_window,
)

WITHOUT_CASES: dict[Opcode, str] = {
    **dict.fromkeys(
        (Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE),
        "queues between program and host: test_host_queues.py",
    ),
    **dict.fromkeys(
        (Opcode.SET_DIMENSION_SIZE, Opcode.DYNAMIC_RESHAPE),
        "sizes must be constants of the program: test_structure_programs.py",
    ),
}
"""Opcodes that one op on parameters does not show, and where they are tested instead."""

CASES: tuple[OpCase, ...] = tuple(case for family in _FAMILIES for case in family.cases())
"""All cases, family by family; the ids are unique."""
assert len({case.id for case in CASES}) == len(CASES), "two cases of one id"
