"""Good and bad arguments of public functions: the result's type and value, or the class of the error, are JAX's.

Known differences are in tests/data/outcome_differences.json, which may only shrink; `jax_outcomes.py differences`
writes it.
"""

from __future__ import annotations

import json
import random

import pytest

import hloom
import hloom.nn
import hloom.numpy
import hloom.random
from support import jax_outcomes


def test_outcomes_are_those_of_jax() -> None:
    found = jax_outcomes.differences(hloom)
    known = json.loads(jax_outcomes.DIFFERENCES.read_text())
    assert sum(map(len, jax_outcomes.recorded().values())) > 6000
    for kind in jax_outcomes.KINDS:
        assert sorted({*found[kind]} - {*known[kind]}) == [], f"new: {kind}"
        assert sorted({*known[kind]} - {*found[kind]}) == [], f"mended, to be removed: {kind}"


def test_differences_are_noticed() -> None:
    same = jax_outcomes.same
    assert same("float32[3] 1.5", "float32[3] 1.5001") and not same("float32[3] 1.5", "float32[3] 1.6")
    assert same("!TypeError,ValueError", "!ValueError") and not same("!TypeError", "!ValueError")
    assert not same("float32[3] 1", "float32*[3] 1") and not same("float32[3] 1", "!TypeError")


def test_recorded_outcomes_are_those_of_jax() -> None:
    """A sample: all take minutes."""
    jax = pytest.importorskip("jax")
    if jax.__version__ != jax_outcomes.VERSION:
        pytest.skip(f"the outcomes were recorded from JAX {jax_outcomes.VERSION}")
    pairs = [(r, o) for call, v in jax_outcomes.rows().items() for r, o in zip(v, jax_outcomes.recorded()[call])]
    for row, expected in random.Random(0).sample(pairs, 40):
        assert jax_outcomes.same(jax_outcomes.outcome(row, jax_outcomes.names_of(jax)), expected), row
