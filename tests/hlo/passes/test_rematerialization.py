"""Values that are computed again keep a program below its budget, and change no result."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hloom.hlo.backend import MEMORY_BUDGET
from hloom.hlo.buffers.assignment import assign_buffers
from hloom.hlo.buffers.checker import verify_buffers
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.recompute import Limits, Liveness, candidates, plan, with_plan
from hloom.hlo.passes.manager import FixedPoint, Pipeline
from hloom.hlo.verifier import verify
from hloom.numba_backend.fused_computations import FusedComputations
from hloom.numba_backend.pipeline import pipeline

import hloom
import hloom.numpy as jnp
from hloom.errors import MemoryBudgetError
from support.comparing import assert_same_arrays
from support.random_modules import random_arguments, random_module

DEPTH, WIDTH, ROWS = 8, 32, 256


def numbers(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def network(weights: Any, x: Any) -> Any:
    for w in weights:
        y = jnp.tanh(x @ w)
        x = x + y * jnp.exp(-y * y) / (1 + x * x)
    return (x * x).mean()


def normalized(weights: Any, x: Any) -> Any:
    for w in weights:
        x = x + jnp.sin((x - x.mean(1, keepdims=True)) / (1 + x.var(1, keepdims=True)) @ w)
    return (x * x).mean()


ARGUMENTS = [numbers(WIDTH, WIDTH) / 8 for _ in range(DEPTH)], numbers(ROWS, WIDTH)
STEPS = {"network": hloom.jit(hloom.grad(network)), "normalized": hloom.jit(hloom.grad(normalized))}


def until_scheduled(bodies: FusedComputations) -> tuple[Pipeline, Pipeline]:
    """The passes before and after the place of rematerialization."""
    whole = pipeline("cpu", bodies)
    steps = tuple(whole.plain_steps())
    names = ["" if isinstance(step, FixedPoint) else step.name for step in steps]
    place = names.index("memory-scheduling") + 1
    return Pipeline("before", steps[:place]), Pipeline("after", steps[place:])


@pytest.mark.parametrize("name", STEPS)
def test_a_budget_is_kept(name: str) -> None:
    lowered = STEPS[name].lower(*ARGUMENTS)
    free = lowered.compile()
    expected, needed = free(*ARGUMENTS), free.memory_analysis().peak_memory_in_bytes
    for part in (0.8, 0.6):
        budget = int(needed * part)
        compiled = lowered.compile({"memory_budget": budget})
        assert compiled.memory_analysis().peak_memory_in_bytes <= budget
        for a, b in zip(compiled(*ARGUMENTS), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)


def test_cheap_values_are_computed_again_rather_than_products() -> None:
    lowered = STEPS["network"].lower(*ARGUMENTS)

    def products(options: dict[str, Any]) -> int:
        return lowered.compile(options).as_text().count(" dot(")

    needed = lowered.compile().memory_analysis().peak_memory_in_bytes
    assert products({}) == products({"memory_budget": int(needed * 0.8)})


def test_a_budget_that_cannot_be_kept() -> None:
    lowered = STEPS["network"].lower(*ARGUMENTS)
    with pytest.raises(MemoryBudgetError, match=r"RESOURCE_EXHAUSTED: jit_network needs .* bytes") as caught:
        lowered.compile({"memory_budget": 1000})
    assert caught.value.budget == 1000
    reached = caught.value.reached
    assert reached < lowered.compile().memory_analysis().peak_memory_in_bytes
    assert lowered.compile({"memory_budget": reached}).memory_analysis().peak_memory_in_bytes <= reached


def test_the_setting() -> None:
    step = hloom.jit(hloom.grad(network))
    needed = step.lower(*ARGUMENTS).compile().memory_analysis().peak_memory_in_bytes
    step(*ARGUMENTS)
    with hloom.memory_budget(needed * 7 // 10):
        text = step.lower(*ARGUMENTS).compile().as_text()
        step(*ARGUMENTS)
        jnp.sin(jnp.ones(needed))  # an elementary function outside of jit has no budget
    assert ".remat" in text and f'{MEMORY_BUDGET}="{needed * 7 // 10}"' in text and step._cache_size() == 2
    with hloom.memory_budget(1000), pytest.raises(MemoryBudgetError):
        step(*ARGUMENTS)
    with pytest.raises(MemoryBudgetError):
        hloom.jit(network, compiler_options={"memory_budget": 1000})(*ARGUMENTS)
    for wrong in (-1, 1.5, "1 GB"):
        with pytest.raises((ValueError, TypeError), match="memory_budget"):
            hloom.config.update("hloom_memory_budget", wrong)


def scheduled(module: HloModule, bodies: FusedComputations) -> HloModule:
    return until_scheduled(bodies)[0].run(module)[0]


def check_plans(original: HloModule, arguments: Any, tolerance: float = 0.0) -> int:
    """Drop all that may go, at the position with most bytes and at others; returns how many values were dropped."""
    bodies = FusedComputations()
    module, after = scheduled(original, bodies), until_scheduled(bodies)[1]
    expected = evaluate(module, *arguments)
    liveness = Liveness(module.entry, {})
    dropped = 0
    peak = liveness.bytes.index(liveness.peak) if liveness.bytes else 0
    for position in {peak, liveness.end // 2, liveness.end * 3 // 4}:
        for closure in (64, 1e9):
            made = plan(liveness, position, Limits(float("inf"), closure))
            if not made.dropped:
                continue
            dropped += len(made.dropped)
            again = hloom.hlo.builder.with_unique_names(replace(module, entry=with_plan(made)))
            verify(again)
            assert_same_arrays(expected, evaluate(again, *arguments), tolerance)
            final, _ = after.run(again)
            verify_buffers(assign_buffers(final, bodies.can_share), bodies.can_share)
            compiled = hloom.hlo.backend.get_compiler("numba").compile_optimized(final)
            assert_same_arrays(expected, compiled.execute(arguments), 1e-4)
    return dropped


@pytest.mark.parametrize("count", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_random_modules(count: int) -> None:
    rng = random.Random(count)
    dropped = 0
    for seed in range(count):
        module = random_module(rng)
        dropped += check_plans(module, random_arguments(module, seed))
    assert dropped > count // 4


@pytest.mark.parametrize("name", STEPS)
def test_all_plans_of_networks(name: str) -> None:
    weights, x = [w[:8, :8] for w in ARGUMENTS[0][:4]], ARGUMENTS[1][:5, :8]
    assert check_plans(STEPS[name].lower(weights, x).module, [*weights, x], 1e-6) > 10


def test_effects_happen_once() -> None:
    """What has an effect, and what comes from one in another run, is never computed again."""
    seen: list[float] = []

    def loss(x: Any) -> Any:
        for k in range(6):
            x = jnp.sin(x @ x.T) * (k + 1)
            hloom.debug.callback(lambda v: seen.append(float(v)), x[0, 0])
        return x.sum()

    x = numbers(64, 64)
    lowered = hloom.jit(hloom.grad(loss)).lower(x)
    needed = lowered.compile().memory_analysis().peak_memory_in_bytes
    compiled = lowered.compile({"memory_budget": needed * 9 // 10})
    hloom.block_until_ready(compiled(x))
    hloom.effects_barrier()
    assert len(seen) == 6
    bodies = FusedComputations()
    entry = scheduled(lowered.module, bodies).entry
    liveness = Liveness(entry, {})
    effects = {Opcode.CUSTOM_CALL, Opcode.WHILE, Opcode.PARAMETER, Opcode.CONSTANT}
    assert all(leaf.instruction.opcode not in effects for p in range(liveness.end) for leaf in candidates(liveness, p))


def test_searching_takes_steps_in_proportion() -> None:
    """The number of plans that are tried does not depend on the length of the program."""
    tried: dict[int, int] = {}
    for depth in (8, 32):
        weights = [numbers(8, 8) for _ in range(depth)]
        lowered = STEPS["network"].lower(weights, numbers(64, 8))
        needed = lowered.compile().memory_analysis().peak_memory_in_bytes
        count = 0

        def counted(*args: Any, made: Any = plan) -> Any:
            nonlocal count
            count += 1
            return made(*args)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hloom.hlo.passes.fuse.rematerialization.plan", counted)
            lowered.compile({"memory_budget": int(needed * 0.7)})
        tried[depth] = count
    assert tried[32] <= 2 * tried[8]


