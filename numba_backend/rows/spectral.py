"""Eigenvalues and singular values of small matrices: native code that calls LAPACK, without Python.

A call through Python costs as much as LAPACK needs for a matrix of 30 rows. What takes long is left to it: it has
threads, and this has not.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from ...hlo.custom_call_targets.call import Call
from ...hlo.custom_call_targets.library import PREFIXES, address_of
from ...hlo.custom_call_targets.routine import Buffer, Routine
from ...hlo.custom_call_targets.spectral import gesdd_routine, syevd_routine
from ...hlo.custom_call_targets.table import BUILT_IN
from ...hlo.element_type import ElementType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ..runtime.blas import thread_setting
from ..runtime.executor import native_function
from ..runtime.kernel import KernelSource
from ..runtime.lapack import is_brief
from ..runtime.program import Argument, size
from ..runtime.threads import ENTER_BLAS, LEAVE_BLAS, pool_pointer
from .table import RowContext

_ROUTINES = {"syevd": syevd_routine, "gesdd": gesdd_routine}
"""The targets' functions of which rows are made."""


def add_spectral(context: RowContext, instruction: HloInstruction, call: Call) -> bool:
    """Add the rows of a call of one of these targets; False if there are none for it."""
    built_in = BUILT_IN.get(call.target)
    if built_in is None or built_in.function not in _ROUTINES:
        return False
    call = built_in.typed(call)
    (operand,), results = call.operands, call.result.elements
    sizes = [s for leaf in (operand, *results) for s in leaf.dimensions]
    count = math.prod(call.batch)
    if 0 in sizes or not is_brief(count, operand.byte_size // max(count, 1)):
        return False
    routine = _ROUTINES[built_in.function](call)
    try:
        function, lengths = address_of(PREFIXES[routine.element_type] + routine.name), routine.lengths()
    except UnsupportedError:
        return False
    _Rows(context, instruction, routine, count).add(function, lengths)
    return True


class _Rows:
    """The rows of one call: matrices into LAPACK's order, the calls, and back."""

    def __init__(self, context: RowContext, instruction: HloInstruction, routine: Routine, count: int) -> None:
        self.context, self.instruction, self.routine, self.count = context, instruction, routine, count
        self.builder = context.builder

    def add(self, function: int, lengths: list[int]) -> None:
        (source,), results = self.context.operands(self.instruction), self.context.results(self.instruction)
        at: dict[Buffer, Argument] = dict(zip(self.routine.results, results, strict=True))
        matrices = {b: place for b, place in at.items() if b.is_matrix}
        for b in self.routine.buffers:
            if b.is_matrix or b.is_shared:
                at[b] = self.context.scratch(b.element_type, math.prod(b.shape) * (1 if b.is_shared else self.count))
            if b.is_operand:
                self._transpose(source, at[b], b.shape[::-1], b.element_type)
            elif not b.is_shared:
                self.builder.zero(at[b], self._step(b) * self.count)
        self._call(function, at, lengths)
        for b, place in matrices.items():
            self._transpose(at[b], place, b.shape, b.element_type)

    def _step(self, b: Buffer) -> int:
        return math.prod(b.shape) * b.element_type.byte_width

    def _transpose(
        self, source: Argument, target: Argument, shape: tuple[int, ...], element_type: ElementType
    ) -> None:
        """Matrices of (rows, columns) that are stored row by row: column by column."""
        rows, columns = shape
        width = element_type.byte_width
        if min(rows, columns) > 1:
            numbers = [size(k) for k in (self.count, rows, columns)]
            self.builder.native(_transposing(width), [source, target, *numbers])
        else:
            self.builder.copy(target, source, self.count * rows * columns * width)

    def _call(self, function: int, at: dict[Buffer, Argument], lengths: list[int]) -> None:
        given: list[Argument] = []

        def add(place: Argument, step: int) -> None:
            given.extend((place, size(step)))

        def add_all(arguments: tuple[str | int | Buffer, ...]) -> None:
            for x in arguments:
                if isinstance(x, Buffer):
                    add(at[x], 0 if x.is_shared else self._step(x))
                else:
                    add(self._number(x), 0)

        add_all(self.routine.before)
        for kind, length in zip(self.routine.kinds, lengths, strict=True):
            add(self.context.scratch(kind, length), 0)
            add(self._number(length), 0)
        add_all(self.routine.after)
        get, set_ = thread_setting()
        head = [size(word) for word in (function, self.count, get, set_, pool_pointer())]
        self.builder.native(_calling(len(given) // 2), [*head, *given], in_blas=True)

    def _number(self, x: str | int) -> Argument:
        return self.builder.constant(np.array([ord(x) if isinstance(x, str) else x], np.int32))


@functools.cache
def _transposing(width: int) -> KernelSource:
    """Each matrix of `rows` rows of elements of `width` bytes, column by column."""
    name = f"transposed_{width}"
    source = f"""
def {name}(arguments):
    source = load(arguments)
    target = load(arguments + 8)
    rows = load(arguments + 24)
    columns = load(arguments + 32)
    for _ in range(load(arguments + 16)):
        for column in range(columns):
            for row in range(rows):
                copy_bytes(target, source + (row * columns + column) * {width}, {width})
                target += {width}
        source += rows * columns * {width}
    return 0
"""
    return native_function(name, source, 1)


@functools.cache
def _calling(count: int) -> KernelSource:
    """Calls a routine of `count` arguments for each matrix, on one thread."""
    name = f"lapack_calls_{count}"
    given = ", ".join([f"load(given + {16 * k}) + i * load(given + {16 * k + 8})" for k in range(count)])
    source = f"""
def {name}(arguments):
    routine = load(arguments)
    set = load(arguments + 24)
    pool = load(load(arguments + 32))
    given = arguments + 40
    call4(load(pool + {ENTER_BLAS}), pool, load(arguments + 16), set, 1)
    for i in range(load(arguments + 8)):
        call_routine{count}(routine, {given})
    call2(load(pool + {LEAVE_BLAS}), pool, set)
    return 0
"""
    return native_function(name, source, 1)
