"""A module in StableHLO's portable form, which has no operations of CHLO.

An operation of CHLO becomes the custom call of MHLO's operation, JAX's form of it; XLA and hloom read that. Operations
of HLO that have no such form are expanded before. Calls of LAPACK say that matrices are stored by columns: here they
are logical arrays, and XLA hands the function the memory as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..custom_call_targets.table import BUILT_IN
from ..element_type import ElementType
from ..ir import HloModule
from ..mlir.tree import Dense, IndexType, Integer, Operation, Tensor, Value, operations
from ..opcode import Opcode
from ..passes.expand.dot import ragged_dot, scaled_dot
from ..passes.rewriter import RewriteLog, apply_rules
from ..passes.rules import RuleSet, rule
from .from_hlo import stablehlo_of

_EXPANSIONS = RuleSet([rule(ragged_dot, Opcode.RAGGED_DOT), rule(scaled_dot, Opcode.SCALED_DOT)])
"""For operations that StableHLO lacks, or that CHLO has in a form without a custom call."""
_MHLO = {"top_k": "topk"}
"""Names that differ in MHLO."""


def portable_of(module: HloModule) -> Operation:
    """As `stablehlo_of`, without operations of CHLO. UnsupportedError as there."""
    tree = stablehlo_of(apply_rules(module, _EXPANSIONS, RewriteLog()))
    for operation in operations(tree):
        if operation.name == "stablehlo.custom_call":
            _add_layouts(operation)
        dialect, _, name = operation.name.partition(".")
        if dialect == "chlo":
            given = operation.attributes | ({"largest": True} if name == "top_k" else {})
            operation.name = "stablehlo.custom_call"
            operation.attributes = {
                "call_target_name": f"mhlo.{_MHLO.get(name, name)}",
                "mhlo.attributes": given,
                "mhlo.version": Integer(1, ElementType.S64),
            }
    return tree


def _add_layouts(operation: Operation) -> None:
    """The layouts of the arrays of a call of LAPACK."""
    target = str(operation.attributes["call_target_name"])
    known = BUILT_IN.get(target)
    if known is None or not target.startswith("lapack_") or "operand_layouts" in operation.attributes:
        return
    for name, values, types in zip(
        ("operand_layouts", "result_layouts"), (operation.operands, operation.results), known.signature.split("->"),
        strict=True,
    ):  # fmt: skip
        is_matrix = [len(re.findall(r"\w+", sizes)) == 2 for sizes in re.findall(r"\[([^]]*)\]", types)]
        operation.attributes[name] = _layouts(values, is_matrix)


def _layouts(values: Sequence[Value], is_matrix: Sequence[bool]) -> tuple[Any, ...]:
    """The order of dimensions of each array, the one with contiguous elements first."""
    found = []
    for value, is_by_columns in zip(values, is_matrix, strict=True):
        assert isinstance(value.type, Tensor), f"{value.type} is no array"
        order = [*reversed(range(len(value.type.dimensions)))]
        if is_by_columns:
            order[:2] = reversed(order[:2])
        found.append(Dense(Tensor((len(order),), IndexType()), np.array(order, np.int64)))
    return tuple(found)
