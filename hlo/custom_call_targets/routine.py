"""A LAPACK routine over a batch of matrices as data: its arguments, and the ones that a custom call returns.

The evaluator runs it here; a backend may make code of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..element_type import ElementType
from ..support.records import dataclass
from .call import Call, NDArray
from .library import Argument, Shared, each, each_with_work, from_columns, rows_of, to_columns


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array of the routine's: one of `shape` for each matrix of the batch. Compared by identity."""

    shape: tuple[int, ...]
    element_type: ElementType
    is_matrix: bool = False
    """A matrix, which LAPACK stores column by column: `shape` is (columns, rows)."""
    operand: int | None = None
    """The operand that it is a copy of at first."""
    is_zero: bool = False
    """It has to hold zeros at first: the routine may not write all of it. If it is a matrix, the routine does not use
    it at all."""
    is_shared: bool = False
    """A workspace that all matrices share, and that holds no result."""


Given: TypeAlias = "str | int | float | Buffer"


@dataclass(frozen=True, slots=True)
class Routine:
    """`name` is called with `before`, workspaces of `kinds` with their lengths, and `after`; `results` are the results
    of the custom call, in its order. Called with arrays, it computes them."""

    call: Call
    name: str
    before: tuple[Given, ...]
    kinds: tuple[ElementType, ...]
    after: tuple[Given, ...]
    results: tuple[Buffer, ...]
    around: Callable[..., tuple[NDArray, ...]] | None = None
    """Computes the custom call by the routine, with work before and after: ``around(run, *operands)``."""

    @property
    def buffers(self) -> list[Buffer]:
        """All, each once."""
        every = (*self.before, *self.after, *self.results)
        return list(dict.fromkeys(b for b in every if isinstance(b, Buffer)))

    def __call__(self, *operands: NDArray) -> NDArray | tuple[NDArray, ...]:
        """The results; an array, if there is one."""
        found = self.around(self._run, *operands) if self.around else self._run(*operands)
        return found if len(found) > 1 else found[0]

    def _run(self, *operands: NDArray) -> tuple[NDArray, ...]:
        batch, element_type = self.call.batch, self.call.element_type
        count, arrays = math.prod(batch), dict[Buffer, NDArray]()
        for b in self.buffers:
            if b.operand is None:
                arrays[b] = np.zeros((count, *b.shape), b.element_type.dtype)
            else:
                given = operands[b.operand]
                arrays[b] = to_columns(given) if b.is_matrix else rows_of(given, len(b.shape))

        def filled(x: Given) -> Argument:
            if not isinstance(x, Buffer):
                return x
            return Shared(arrays[x][:1]) if x.is_shared else arrays[x]

        before, after = [filled(x) for x in self.before], [filled(x) for x in self.after]
        if self.kinds:
            each_with_work(self.name, element_type, count, before, self.kinds, after)
        else:
            each(self.name, element_type, count, *before, *after)
        return tuple([
            from_columns(arrays[r], batch) if r.is_matrix else arrays[r].reshape((*batch, *r.shape))
            for r in self.results
        ])  # fmt: skip


class Buffers:
    """The buffers of a call, by their shapes."""

    def __init__(self, call: Call) -> None:
        self.element_type, self.real = call.element_type, call.element_type.real
        self.is_complex: bool = call.element_type.is_complex
        self.info: Buffer = Buffer((), ElementType.S32)

    def matrix(self, rows: int, columns: int, operand: int | None = None, *, is_zero: bool = False) -> Buffer:
        """A matrix of the call's type."""
        return Buffer((columns, rows), self.element_type, True, operand, is_zero)

    def row(
        self, length: int, operand: int | None = None, kind: ElementType | None = None, *, is_zero: bool = False
    ) -> Buffer:
        """Some numbers for each matrix; of the call's type, if no other is named."""
        return Buffer((length,), kind or self.element_type, False, operand, is_zero)

    def work(self, length: int, kind: ElementType) -> Buffer:
        """A workspace of a known length."""
        return Buffer((max(length, 1),), kind, is_shared=True)

    def of_complex(self, length: int) -> tuple[Buffer, ...]:
        """The workspace of real numbers that routines of complex ones take besides."""
        return (self.work(length, self.real),) if self.is_complex else ()

    def values(self, length: int) -> tuple[Buffer, ...]:
        """Eigenvalues; of a real matrix their real and their imaginary parts."""
        return tuple([self.row(length) for _ in range(1 if self.is_complex else 2)])
