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
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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


class HypothesisSource:
    """Hypothesis draws, and makes what fails small."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))


def check(row: Row, source: Any, parts: str, theirs: Library | None) -> None:
    case = draw_case(row, source, wide=source.integer(0, 6) == 6)
    texts = [t for t in differences(case, OURS, theirs, parts) if not is_known(row, t)]
    assert not texts, f"{case}\n" + "\n".join(texts)


FEW = settings(max_examples=25, derandomize=True, database=None, deadline=None, suppress_health_check=[*HealthCheck])


@given(st.data())
@FEW
def test_transformations_change_nothing(data: st.DataObject) -> None:
    check(data.draw(st.sampled_from(ROWS)), HypothesisSource(data), "jit vmap modes", None)


@pytest.mark.slow
@given(st.data())
@settings(FEW, max_examples=40)
def test_outcomes_are_those_of_jax(data: st.DataObject) -> None:
    pytest.importorskip("jax")
    check(data.draw(st.sampled_from(ROWS)), HypothesisSource(data), "plain jit vmap grad modes", Library("jax"))


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
