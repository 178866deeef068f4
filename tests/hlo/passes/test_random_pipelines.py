"""Random programs through the pipeline: each pass, one after the other, keeps the meaning; text keeps the module."""

from __future__ import annotations

import random
from collections.abc import Iterator

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from hloom.hlo.backend import optimize
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.passes.manager import FixedPoint, PassOptions
from hloom.hlo.passes.rewrite import HloPass
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify
from hloom.numba_backend.pipeline import pipeline

from support.comparing import Array, assert_same_arrays
from support.random_modules import random_arguments, random_module

RTOL = 1e-4


def stages(module: HloModule) -> Iterator[tuple[HloPass, HloModule]]:
    """The module after each pass that changed it."""
    for step in pipeline().plain_steps():
        for _ in range(3 if isinstance(step, FixedPoint) else 1):
            for each in step.passes if isinstance(step, FixedPoint) else (step,):
                new = each(module)
                if new is not module:
                    module = new
                    yield each, module


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=50, suppress_health_check=list(hypothesis.HealthCheck))
def test_every_pass_keeps_the_meaning(rng: random.Random) -> None:
    module = random_module(rng)
    arguments = random_arguments(module, rng.randrange(1000))
    expected = evaluate(module, *arguments)
    for each, stage in stages(module):
        verify(stage)
        hypothesis.note(f"after {each.name}:\n{stage.to_text()}")
        assert_same_arrays(expected, evaluate(stage, *arguments), RTOL)


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=30, suppress_health_check=list(hypothesis.HealthCheck))
def test_text_keeps_optimized_modules(rng: random.Random) -> None:
    module, _ = optimize(random_module(rng), options=PassOptions(verify=True))
    again = parse(module.to_text())
    verify(again)
    assert again.to_text() == module.to_text()
    assert again.is_scheduled
    arguments = random_arguments(module, 0)
    assert_same_arrays(evaluate(module, *arguments), evaluate(again, *arguments), rtol=0)


@hypothesis.given(st.randoms(use_true_random=False))
@hypothesis.settings(max_examples=30, suppress_health_check=list(hypothesis.HealthCheck))
def test_optimizing_is_deterministic_and_names_do_not_matter(rng: random.Random) -> None:
    module = random_module(rng)
    first, _ = optimize(module, options=PassOptions())
    second, _ = optimize(module, options=PassOptions())
    assert first.to_text() == second.to_text()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", sorted({p.name for p in pipeline().passes()}))
def test_each_pass_can_be_switched_off(name: str) -> None:
    if name == "call-inliner":
        pytest.skip("what stands on inlined calls is not made for calls")
    rng = random.Random(name)
    for _ in range(8):
        module = random_module(rng)
        arguments = random_arguments(module, 0)
        after, _ = optimize(module, options=PassOptions(verify=True, disabled=frozenset({name})))
        assert_same_arrays(evaluate(module, *arguments), evaluate(after, *arguments), RTOL)


def test_the_comparison_can_fail() -> None:
    ones: list[Array] = [np.ones(3, np.float32)]
    for wrong in (
        [np.ones(4, np.float32)],
        [np.ones(3, np.float64)],
        [np.array([1, 1, 1.1], np.float32)],
        [np.array([1, 1, np.nan], np.float32)],
        [],
    ):
        with pytest.raises(AssertionError):
            assert_same_arrays(ones, wrong)
    with pytest.raises(AssertionError, match="different sign"):
        assert_same_arrays([np.array(0.0)], [np.array(-0.0)])
