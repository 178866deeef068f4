"""StableHLO's portable form has no operations of CHLO, and composites only with names of a dialect: what a program
uses of these is written in another way, which XLA and hloom read.

An operation of CHLO becomes the custom call of MHLO's operation, JAX's form of it. Nested functions that hloom calls by
composites become ordinary functions. Calls of LAPACK say that matrices are stored by columns: here they are logical
arrays, and XLA hands the function the memory as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..hlo.custom_call_targets.table import BUILT_IN
from ..hlo.element_type import ElementType
from ..hlo.mlir.tree import Dense, IndexType, Integer, Operation, Symbol, Tensor, Value
from .checks import operations

_OF_A_DIALECT = re.compile(r"[a-zA-Z]\w*(\.[\w$]+)+")
_MHLO = {"top_k": "topk"}
"""Names that differ in MHLO."""


def make_portable(module: Operation, has_symbolic_sizes: bool) -> None:
    """Change the module in place. Where sizes are symbolic, all composites become functions: XLA does not put sizes
    into these."""
    for operation in operations(module):
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
        elif operation.name == "stablehlo.composite":
            called = operation.attributes["decomposition"]
            assert isinstance(called, Symbol), f"{called} is no function"
            if has_symbolic_sizes or not _OF_A_DIALECT.fullmatch(str(operation.attributes["name"])):
                operation.name = "func.call"
                operation.attributes = {"callee": called}


def _add_layouts(operation: Operation) -> None:
    """The layouts of the arrays of a call of LAPACK."""
    target = str(operation.attributes["call_target_name"])
    known = BUILT_IN.get(target)
    if known is None or not target.startswith("lapack_"):
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
