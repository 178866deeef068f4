"""All groups of the table: `GROUPS` has the cases of each by name.

The group of loops is a choice of those in `benchmarks/loops`, which are declared there.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from ..harness import Case
from . import (
    algebra,
    chains,
    convolutions,
    dispatch,
    draws,
    grids,
    indexing,
    normalisations,
    products,
    reductions,
    sorting,
    training,
)
from .declare import Group

DECLARED: tuple[Group, ...] = (
    chains.GROUP, reductions.GROUP, normalisations.GROUP, products.GROUP, convolutions.GROUP, indexing.GROUP,
    sorting.GROUP, sorting.CUMULATIVE, grids.STENCILS, grids.MOVEMENT, draws.GROUP, algebra.GROUP, training.GROUP,
    dispatch.GROUP,
)  # fmt: skip
CHOSEN_LOOPS = (
    "affine", "logistic", "many-scalars", "rk4", "lorenz", "columns", "rows", "gauss-seidel", "cholesky",
    "edit-distance", "heat", "mandelbrot", "metropolis", "kalman", "rnn", "grad-rnn", "grad-lorenz",
)  # fmt: skip
"""Of `benchmarks/loops`: at least one of each kind."""
LOOP_GROUP = "chosen loops"


def chosen_loop(name: str) -> Callable[[], Case]:
    return lambda: importlib.import_module("benchmarks.loops").CASES[name].case()  # type: ignore[no-any-return]


def _cases() -> dict[str, dict[str, Callable[[], Case]]]:
    found = {group.name: group.cases() for group in DECLARED}
    loops = {f"loop-{name}": chosen_loop(name) for name in CHOSEN_LOOPS}
    last = ("training", "dispatch")
    return {**{n: c for n, c in found.items() if n not in last}, LOOP_GROUP: loops, **{n: found[n] for n in last}}


GROUPS = _cases()
