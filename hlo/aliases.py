"""Values that may share a buffer: parameters and results of a program, operands and results of a custom call."""

from __future__ import annotations

from typing import NamedTuple


class InputOutputAlias(NamedTuple):
    """Output leaf `output_index` may reuse the buffer of parameter `parameter` (its leaf `parameter_index`)."""

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...] = ()
    must_alias: bool = False


class BufferDonor(NamedTuple):
    """Leaf `parameter_index` of parameter `parameter` may be overwritten, for any purpose."""

    parameter: int
    parameter_index: tuple[int, ...] = ()


class OutputOperandAlias(NamedTuple):
    """Leaf `output_index` of a custom call's result shares the buffer of leaf `operand_index` of operand `operand`."""

    output_index: tuple[int, ...]
    operand: int
    operand_index: tuple[int, ...]
