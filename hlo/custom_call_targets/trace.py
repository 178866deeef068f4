"""The target of `ComputationBuilder.trace`: a log message with the operand, whenever the computation runs.

Source: the seeds' C++ interface, Trace: "the computation will emit a logging message with the operand".
"""

from __future__ import annotations

import logging
from typing import Any

from ..shape import Shape
from .call import Call, Run

LOGGER = logging.getLogger("hloom.trace")


def trace(call: Call) -> Run:
    """Log `tag: type value` at level INFO; the tag is the backend_config. It takes one operand and gives `()`."""
    if len(call.operands) != 1 or call.result.is_array or call.result.elements:
        call.fail("it takes one operand and gives ()")
    tag, shape = str(call.config.get("backend_config", "")), call.operands[0]

    def run(operand: Any) -> Any:
        LOGGER.info("%s: %s", tag, _text(shape, operand))
        return ()

    return run


def _text(shape: Shape, value: Any) -> str:
    if shape.is_array:
        return f"{shape} {value}"
    return "(" + ", ".join(_text(s, v) for s, v in zip(shape.elements, value, strict=True)) + ")"
