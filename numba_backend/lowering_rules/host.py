"""Rows that call Python: for work that a library does best (LAPACK, FFT, big sorts), and for users' functions.

The function gets NumPy views of the operands and of the results, and fills the results. A call costs a few microseconds
and takes the GIL.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...hlo.effects import has_side_effect
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.support.memory_pressure import allocating
from ...hlo.support.permutations import inverse
from .table import LoweringContext

NDArray = np.ndarray[Any, Any]

HostFunction = Callable[[Sequence[NDArray], Sequence[NDArray]], None]
"""function(operand leaves, result leaves): operands are read-only; results hold arbitrary bytes, to be filled. It acts
on nothing else before it has all the memory that it needs: it is called again if there was too little."""


def host_row(
    context: LoweringContext, instruction: HloInstruction, function: HostFunction, *, repeatable: bool = True
) -> None:
    """Add a row that calls `function` on views of the instruction's operands and results. It is not called again, when
    memory was short, if it is not `repeatable`."""
    sources = [_Viewer(leaf) for operand in instruction.operands for leaf in operand.shape.leaves()]
    targets = [_Viewer(leaf) for leaf in instruction.shape.leaves()]
    count = len(sources)
    repeatable = repeatable and (instruction.opcode is not Opcode.CUSTOM_CALL or not has_side_effect(instruction))

    def call(words: tuple[int, ...]) -> None:
        inputs = [view(address) for view, address in zip(sources, words)]
        for array in inputs:
            array.flags.writeable = False
        outputs = [view(address) for view, address in zip(targets, words[count:])]
        with np.errstate(all="ignore"):
            if repeatable:
                allocating(function, inputs, outputs)
            else:
                function(inputs, outputs)

    context.builder.callback(call, [*context.operands(instruction), *context.results(instruction)])


class _Viewer:
    """Makes the view of one array from its address. A custom call may want any order of dimensions in memory."""

    def __init__(self, shape: Shape) -> None:
        order = shape.array_layout.minor_to_major[::-1]
        self.dtype, self.dimensions = shape.element.dtype, [shape.dimensions[d] for d in order]
        self.places = None if order == tuple(range(shape.rank)) else inverse(order)
        self.nbytes = shape.logical_byte_size
        self.type = ctypes.c_char * self.nbytes

    def __call__(self, address: int) -> NDArray:
        if self.nbytes:
            memory = memoryview(self.type.from_address(address)).cast("B")
            array: NDArray = np.ndarray(self.dimensions, self.dtype, memory)
        else:
            array = np.empty(self.dimensions, self.dtype)
        return array if self.places is None else array.transpose(self.places)
