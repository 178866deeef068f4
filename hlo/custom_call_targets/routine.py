"""A LAPACK routine over a batch of matrices as data: its arguments, and the ones that a custom call returns.

The evaluator runs it here; a backend may make code of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from ..element_type import ElementType
from ..support.records import dataclass
from .call import Call, NDArray, Run
from .library import Shared, each_with_work, from_columns, to_columns, work_lengths


@dataclass(frozen=True, slots=True, eq=False)
class Buffer:
    """An array of the routine's: one of `shape` for each matrix of the batch. Compared by identity."""

    shape: tuple[int, ...]
    element_type: ElementType
    is_matrix: bool = False
    """A matrix, which LAPACK stores column by column: `shape` is (columns, rows)."""
    is_operand: bool = False
    """At first it holds the operand's matrix; others hold zeros."""
    is_shared: bool = False
    """A workspace that all matrices share, and that holds no result."""


Given: TypeAlias = "str | int | Buffer"


@dataclass(frozen=True, slots=True)
class Routine:
    """`name` is called with `before`, workspaces of `kinds` with their lengths, and `after`; `results` are the results
    of the custom call, in its order."""

    name: str
    element_type: ElementType
    before: tuple[Given, ...]
    kinds: tuple[ElementType, ...]
    after: tuple[Given, ...]
    results: tuple[Buffer, ...]

    @property
    def buffers(self) -> list[Buffer]:
        """All, each once."""
        return list(dict.fromkeys(b for b in (*self.before, *self.after) if isinstance(b, Buffer)))

    def lengths(self) -> list[int]:
        """How many elements each workspace needs."""
        arrays = {b: np.zeros((1, *b.shape), b.element_type.dtype) for b in self.buffers}
        before, after = _filled(self.before, arrays), _filled(self.after, arrays)
        return work_lengths(self.name, self.element_type, before, self.kinds, after)

    def run(self, call: Call) -> Run:
        """A function of NumPy arrays that computes `call`."""
        batch = call.batch

        def run(a: NDArray) -> tuple[NDArray, ...]:
            count = math.prod(batch)
            arrays = {
                b: to_columns(a) if b.is_operand else np.zeros((count, *b.shape), b.element_type.dtype)
                for b in self.buffers
            }
            before, after = _filled(self.before, arrays), _filled(self.after, arrays)
            each_with_work(self.name, self.element_type, count, before, self.kinds, after)
            return tuple([
                from_columns(arrays[r], batch) if r.is_matrix else arrays[r].reshape((*batch, *r.shape))
                for r in self.results
            ])  # fmt: skip

        return run


def _filled(given: Sequence[Given], arrays: dict[Buffer, NDArray]) -> list[str | int | NDArray | Shared]:
    found: list[str | int | NDArray | Shared] = []
    for x in given:
        if not isinstance(x, Buffer):
            found.append(x)
        else:
            found.append(Shared(arrays[x][:1]) if x.is_shared else arrays[x])
    return found
