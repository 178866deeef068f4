"""Nothing that compiles a program grows faster than the program: counted in steps, file by file, and in the lengths of
kernels, for chains, trees, grids, lists of pieces, layers of reductions, loops in and after each other, and gradients.
"""

from __future__ import annotations

import pytest
from hloom.hlo.passes.fuse.cluster_order import MOST_STEPS
from hloom.numba_backend.loops.split import MOST_STATEMENTS
from hloom.numba_backend.native_loops.cost import MOST_INSTRUCTIONS

from support.growing_programs import FORMS, Growth, growth_of

FEW = 60
"""Steps for an instruction that any file may take: some are not needed for short programs, and some fill tables."""

LIMITED = {"hlo/passes/fuse/cluster_order.py": MOST_STEPS, "numba_backend/loops/split.py": MOST_STATEMENTS}
"""Steps for an instruction that a file with limited work may take: short programs do not reach the limit. A loop that
reaches the statements that it may be split into, or nearly, costs the most."""

SLACK = 1.7
"""How much faster than the program the steps of one file may grow when the program gets twice or three times as long: a
work of n log n grows 1.2 times as fast from 200 instructions on, a quadratic one twice or three times."""

_UNTRIED = ("arguments", "sum_of_arguments", "nested_loops", "choices", "gathers", "rolls")
LENGTHS = {"grid": 8000, "wide_state": 8000, **dict.fromkeys(_UNTRIED, 4000)}
"""Instructions of the shorter of two long programs, if not 2,000: the steps of `grid` and `wide_state` grow up to their
limit until then; 2,000 has not been tried for the others."""

LONGEST = 60 * MOST_INSTRUCTIONS
"""Characters of a kernel."""


def _check(short: Growth, long: Growth, shortest: Growth | None = None) -> None:
    """`shortest`: of a program of one kernel. Equal kernels are one, and how many of a long program are equal depends
    on where its nests are cut (a grid has 13 characters of kernels for an instruction at 6,000 instructions, 3 at
    13,000 and 5 at 26,000). So a short program that shares many does not bound a longer one below what `shortest`
    has."""
    ratio = long.instructions / short.instructions
    faster = {
        file: (short.steps.get(file, 0), steps)
        for file, steps in long.steps.items()
        if steps > SLACK * ratio * max(short.steps.get(file, 0), LIMITED.get(file, FEW) * short.instructions)
    }
    assert not faster, f"{short.instructions} -> {long.instructions} instructions: {faster}"
    assert _unlimited(long) < 1.25 * ratio * _unlimited(short)
    assert long.longest_kernel < LONGEST
    unshared = shortest.all_kernels / shortest.instructions * short.instructions if shortest else 0
    assert long.all_kernels < 1.5 * ratio * max(short.all_kernels, unshared)


def _unlimited(growth: Growth) -> int:
    return sum(steps for file, steps in growth.steps.items() if file not in LIMITED)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", FORMS)
def test_steps_grow_with_the_program(form: str) -> None:
    growth_of("chain", 40)  # imports, and objects that are made once
    _check(growth_of(form, 200), growth_of(form, 600))


@pytest.mark.first
@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_steps_grow_with_long_programs(form: str) -> None:
    growth_of("chain", 40)
    length = LENGTHS.get(form, 2000)
    short, long = growth_of(form, length), growth_of(form, 2 * length)
    _check(short, long, growth_of(form, 200))
