"""Targets without code: those that only annotate their operands, and memory that is not yet written."""

from __future__ import annotations

from typing import Any

import numpy as np

from .call import Call, NDArray, Run


def identity(call: Call) -> Run:
    """The operands: the only one as it is, several as a tuple. A call without a result (`()`) gives nothing."""
    whole = len(call.operands) == 1 and call.result.compatible(call.operands[0])
    nothing = call.result.is_tuple and not call.result.elements
    each = call.result.is_tuple and len(call.result.elements) == len(call.operands)
    alike = each and all(r.compatible(o) for r, o in zip(call.result.elements, call.operands))
    if not (whole or nothing or alike):
        call.fail("on one device its result is its operand, so they must have the same shape")

    def run(*operands: Any) -> Any:
        if nothing:
            return ()
        return operands[0] if whole else operands

    return run


def unwritten(call: Call) -> Run:
    """Memory of the result's type, zeros here (`jax.lax.empty`)."""
    if call.operands or not call.result.is_array:
        call.fail("it takes no operands and gives one array")
    shape = call.result

    def run() -> NDArray:
        return np.zeros(shape.dimensions, shape.element.dtype)

    return run
