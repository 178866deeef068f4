"""Starts of rows are hidden from LLVM, and only those."""

from __future__ import annotations

import pytest
from hloom.numba_backend.loops.reader import read
from hloom.numba_backend.loops.statements import Assign, walk
from hloom.numba_backend.runtime.row_starts import LEAST, starts_of_rows


def _hidden(rows: int, loop: str) -> set[str]:
    """The names whose values are hidden, for sums of rows that begin at row0, row1, ..."""
    lines = ["def k(lo, hi, x, out, n):", "    for j in range(lo, hi):", "        to = j * n"]
    lines += [f"        row{k} = n * (j + {k})" for k in range(rows)]
    lines += [f"        for q in {loop}(n):"]
    lines += ["            out[to + q] = " + " + ".join(f"x[row{k} + q]" for k in range(rows))]
    program = read("\n".join(lines) + "\n", ["int64", "int64", "float32*", "float32*", "int64"], "k")
    found = starts_of_rows(program)
    assigns = [s for s in walk(program.body) if isinstance(s, Assign)]
    return {t.name for s in assigns for t, v in zip(s.targets, s.values, strict=True) if id(v) in found}


@pytest.mark.parametrize(
    "rows, loop, hidden",
    [
        (LEAST - 1, "independent", {"to", *(f"row{k}" for k in range(LEAST - 1))}),
        (LEAST - 2, "independent", set()),
        (LEAST + 2, "range", set()),
    ],
)
def test_starts_of_rows(rows, loop, hidden):
    assert _hidden(rows, loop) == hidden
