"""The steps of a loop that Python unrolls are cut into kernels that are all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.fuse.periods import blocks
from hloom.numba_backend.pipeline import KERNEL_LIMITS

import hloom
import hloom.numpy as jnp

MOST = KERNEL_LIMITS.members


def _lorenz(s: Any) -> Any:
    def slope(s: Any) -> Any:
        x, y, z = s
        return 10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z

    middle = [a + 0.005 * b for a, b in zip(s, slope(s))]
    return tuple([a + 0.01 * b for a, b in zip(s, slope(middle))])


def _unrolled(step: Callable[[Any], Any], count: int) -> Callable[..., Any]:
    def run(*state: Any) -> Any:
        for _ in range(count):
            state = step(state)
        return state

    return run


def _rows(s: Any) -> Any:
    return (jnp.tanh(s[0]) * 0.9 + 0.1 * s[0].sum(1, keepdims=True),)


X = np.linspace(0.5, 1.5, 30, dtype=np.float32)

CHAINS = {
    "midpoint steps": (_unrolled(_lorenz, 60), (X, X + 1, X - 1)),
    "one value": (_unrolled(lambda s: (jnp.sin(s[0]) * 0.9 + s[0] * s[0] * 0.1,), 400), (X,)),
    "before and after it something else": (
        lambda x: jnp.exp(_unrolled(lambda s: (jnp.sin(s[0]) * 0.9 + s[0] * 0.1,), 400)(jnp.cos(x) * x)[0]) / 3, (X,)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHAINS)
def test_all_blocks_are_one_kernel(name: str) -> None:
    function, args = CHAINS[name]
    module = hloom.make_hlo(function)(*args)
    compiled = hloom.jit(function).lower(*args).compile()
    fused = [i for i in compiled.runtime_executable().module.entry.instructions if i.opcode is Opcode.FUSION]
    assert len(fused) > 3
    assert len(compiled.kernels()) <= 4, "the first piece, a block, what is left at the end, and what comes after it"
    found = hloom.tree.leaves(compiled(*args))
    for a, b in zip(found, hloom.tree.leaves(evaluate(module, *args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-3)


@pytest.mark.parametrize(
    ("function", "args"),
    [
        pytest.param(_unrolled(_lorenz, 10), (X, X, X), id="few steps"),
        pytest.param(_unrolled(_rows, 700), (np.ones((3, 4), np.float32),), id="reductions cut it"),
        pytest.param(
            lambda x: [x := jnp.sin(x) * k for k in np.random.default_rng(0).random(900)][-1], (X,),
            id="each step has another constant",
        ),
    ],
)  # fmt: skip
def test_other_programs_are_not_cut(function: Callable[..., Any], args: Any) -> None:
    assert blocks(hloom.make_hlo(function)(*args).entry, MOST) == {}


def test_a_block_has_whole_periods() -> None:
    function, args = CHAINS["midpoint steps"]
    found = blocks(hloom.make_hlo(function)(*args).entry, MOST)
    sizes = [list(found.values()).count(k) for k in sorted(set(found.values()))]
    assert len({*sizes[:-1]}) == 1 and MOST // 2 < sizes[0] <= MOST and sizes[-1] <= sizes[0]
