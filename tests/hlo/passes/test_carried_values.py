"""Loops that compute a value of their state, and the same one of the next state: it is computed once a step."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.manager import Pipeline
from hloom.hlo.passes.simplify.carried_values import CarriedValues
from hloom.numba_backend.pipeline import pipeline

import hloom
import hloom.numpy as jnp
from hloom import lax

FUNCTIONS: list[Callable[[Any], Any]] = [
    jnp.sin,
    lambda x: x / (1 + x * x),
    lambda x: x / jnp.sqrt(1 + jnp.sum(x * x)),
    lambda x: x * jnp.exp(-jnp.abs(x[::-1])),
    lambda x: x[0] * jnp.cos(x),
    lambda x: -x,
]


def before_the_pass(function: Callable[..., Any], *arguments: Any) -> HloModule:
    steps = tuple(pipeline().plain_steps())
    (at,) = [k for k, step in enumerate(steps) if isinstance(step, CarriedValues)]
    return Pipeline("test", steps[:at]).run(hloom.jit(function).lower(*arguments).module)[0]


def count(module: HloModule, opcode: Opcode) -> list[int]:
    """How often the bodies of loops have an operation, and all of the module."""
    bodies = [i.attributes.body for i in module.instructions() if i.opcode is Opcode.WHILE]
    return [sum(i.opcode is opcode for b in bodies for i in b.instructions),
            sum(i.opcode is opcode for i in module.instructions())]  # fmt: skip


def drawn(rng: random.Random) -> Callable[..., Any]:
    """A loop over three vectors. Each next one is a sum of functions of those before it, some of which are the next
    ones of others, or of another vector that is handed on."""
    size = rng.randint(2, 3)
    functions = rng.sample(range(len(FUNCTIONS)), 2)
    plan = [
        [(rng.choice(functions), rng.randrange(size), rng.random() < 0.5) for _ in range(rng.randint(1, 3))]
        for _ in range(size)
    ]
    handed_on = rng.randrange(size) if rng.random() < 0.3 else None
    is_while = rng.random() < 0.4

    def step(state: Any) -> Any:
        new: list[Any] = []
        for k, terms in enumerate(plan):
            if k == handed_on:
                new.append(state[(k + 1) % size])
                continue
            total = 0.5 * state[k]
            for function, of, is_next in terms:
                total = total + FUNCTIONS[function](new[of] if is_next and of < len(new) else state[of])
            new.append(total)
        return tuple(new)

    def run(*state: Any) -> Any:
        if is_while:
            ends = lambda s: (s[0] < 7) & (jnp.sum(jnp.abs(s[1][0])) < 50)  # noqa: E731
            return lax.while_loop(ends, lambda s: (s[0] + 1, step(s[1])), (0, state))
        return lax.fori_loop(0, 5, lambda _, s: step(s), state)

    return lambda x: run(*(x[k] for k in range(size)))


@pytest.mark.parametrize("seed", range(2))
def test_random_loops(seed: int) -> None:
    """Some change, and the operations of each value stay the same."""
    rng = random.Random(seed)
    x = np.random.default_rng(seed).standard_normal((3, 4)).astype(np.float32)
    changes = 0
    for _ in range(60):
        module = before_the_pass(drawn(rng), x)
        changed = CarriedValues()(module)
        changes += changed is not module
        for one, other in zip(evaluate(module, x), evaluate(changed, x), strict=True):
            np.testing.assert_array_equal(one, other)
    assert changes > 10


def leapfrog(steps: int) -> Callable[..., Any]:
    def f(q: Any, v: Any) -> Any:
        pull = lambda q: -q / jnp.sum(q * q) ** 1.5  # noqa: E731

        def step(_: Any, state: Any) -> Any:
            q, v = state
            v = v + 0.05 * pull(q)
            q = q + 0.1 * v
            return q, v + 0.05 * pull(q)

        return lax.fori_loop(0, steps, step, (q, v))

    return f


def test_a_force_is_computed_once_a_step() -> None:
    q, v = np.float32([1, 0.2]), np.float32([-0.1, 0.9])
    module = before_the_pass(leapfrog(40), q, v)
    changed = CarriedValues()(module)
    assert count(module, Opcode.SQRT) == [2, 2]
    assert count(changed, Opcode.SQRT) == [1, 2]
    compiled = hloom.jit(leapfrog(40)).lower(q, v).compile()
    (loop,) = [text for text in map(str, compiled.kernels().values()) if "native_loop" in text]
    assert loop.count("sqrt(") == 1
    for one, other in zip(compiled(q, v), evaluate(module, q, v), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4)


def test_few_steps_stay() -> None:
    """The code for the first step would take longer to compile than is gained."""
    module = before_the_pass(leapfrog(3), np.ones(2, np.float32), np.ones(2, np.float32))
    assert CarriedValues()(module) is module


def test_large_values_must_take_longer() -> None:
    def f(function: Callable[[Any], Any], n: int) -> HloModule:
        def step(_: Any, state: Any) -> Any:
            q, v = state
            v = v + function(q)
            q = q + v
            return q, v + function(q)

        zeros = np.zeros(n, np.float32)
        return before_the_pass(lambda q, v: lax.fori_loop(0, 9, step, (q, v)), zeros, zeros)

    def is_changed(module: HloModule) -> bool:
        return CarriedValues()(module) is not module

    assert is_changed(f(jnp.sin, 1000)) and not is_changed(f(jnp.sin, 1 << 17))
    assert is_changed(f(lambda x: jnp.sin(jnp.exp(jnp.cos(jnp.exp(-x)))), 1 << 17))
    assert not is_changed(f(lambda x: 2 * x, 1000))
