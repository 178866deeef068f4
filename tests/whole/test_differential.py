"""Public functions on drawn arguments: NumPy's numbers, JAX's outcomes, and the same under jit, vmap and derivatives.

The table is in `tests/support/differential/rows*.py`; a new function needs its name in a line there. Which arguments
are drawn does not change from run to run; `support/differential/search.py` draws others for as long as it is told.
"""

from __future__ import annotations

import importlib
import inspect
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.differential.checks import Judge, agree, beside_numpy, compare_values, differences, ulp_bound
from support.differential.kinds import RandomSource
from support.differential.known import KNOWN, NO_ROW, NOT_NUMPY
from support.differential.libraries import Leaf, Library, NumPy, Outcome
from support.differential.table import NAMESPACES, Case, Row, draw_case, rows

ROWS = list(rows())
OURS = Library("hloom")


def public_functions(namespace: str) -> set[str]:
    """The functions of a namespace of hloom."""
    module = importlib.import_module(f"hloom.{namespace}")
    return {n for n in module.__all__ if callable(f := getattr(module, n)) and not inspect.isclass(f)}


def case_of(row: Row, seed: int, **options: Any) -> Case:
    return draw_case(row, RandomSource(zlib.crc32(str(row).encode()) + seed), **options)


def is_known(row: Row, text: str) -> bool:
    """Is this difference one of those that are listed with a reason?"""
    return any(
        row.namespace == namespace and row.name in names.split() and part in text for namespace, names, part, _ in KNOWN
    )


def test_every_public_function_has_a_row() -> None:
    """The list of those without one may only shrink."""
    for namespace in NAMESPACES:
        named = {r.name.partition(":")[0] for r in ROWS if r.namespace == namespace}
        missing = public_functions(namespace) - named
        assert missing == {*NO_ROW.get(namespace, "").split()}, namespace


NOT_IN_NUMPY = ("nn", "random", "ops", "image", "lax.linalg", "scipy.ndimage", "scipy.cluster.vq")
LONG = ("scipy.special", "scipy.stats.")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "namespace",
    [pytest.param(n, marks=pytest.mark.slow) if n.startswith(LONG) else n for n in NAMESPACES if n not in NOT_IN_NUMPY],
)
def test_numbers_are_those_of_numpy(namespace: str) -> None:
    numpy, compared, count, wrong = NumPy(), 0, 0, []
    for row in rows((namespace,)):
        if row.name in NOT_NUMPY.get(namespace, "").split():
            continue
        case = case_of(row, 0, plain=True)
        done, texts = beside_numpy(case, OURS, numpy)
        compared, count = compared + done, count + 1
        wrong += [f"{case}: {text}" for text in texts]
    assert not wrong, "\n".join(wrong)
    assert compared >= 0.3 * count, f"{compared} of {count} calls are known to NumPy"


def check(seed: int, parts: str, theirs: Library | None) -> list[str]:
    """A readable description of the differences in the case of a number."""
    source = RandomSource(seed)
    row = ROWS[source.integer(0, len(ROWS) - 1)]
    case = draw_case(row, source, wide=source.integer(0, 6) == 6)
    return [f"{case}: {text}" for text in differences(case, OURS, theirs, parts) if not is_known(row, text)]


def test_transformations_change_nothing() -> None:
    wrong = [text for seed in range(25) for text in check(seed, "jit vmap modes", None)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_outcomes_are_those_of_jax() -> None:
    pytest.importorskip("jax")
    wrong = [text for seed in range(100, 140) for text in check(seed, "plain jit vmap grad modes", Library("jax"))]
    assert not wrong, "\n".join(wrong)


def test_differences_are_noticed() -> None:
    row = Row("numpy", "cumsum", "x")
    case = Case(row, [np.array([1.0, 2.0, -3.0], np.float32)], {})
    found = OURS.run(case)
    assert not beside_numpy(case, OURS, NumPy())[1]
    for wrong in ([1, 3, 1e-4], [1, 3.00001, 0], [1, 3, np.nan]):
        leaf = Leaf(np.array(wrong, np.float32), False)
        assert list(compare_values(Outcome([leaf]), found, Judge(case, OURS))), wrong
    near = Leaf(np.array([1, 3, 2e-7], np.float32), False)
    assert not list(compare_values(Outcome([near]), found, Judge(case, OURS))), "a rounding error"
    assert not agree(np.float32([1]), np.float32([1.00001]), ulp_bound(np.float32([1])))
    other = replace(case, row=Row("numpy", "cumprod", "x"))
    assert beside_numpy(replace(other, row=replace(row, name="cumprod")), OURS, NumPy())[1] == []
