"""Each instruction of a stage leads back to those of the stage before that it replaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.ir import HloInstruction
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.stages import Stages

import hloom
import hloom.numpy as jnp
from hloom import lax

X = np.linspace(0.1, 0.9, 48, dtype=np.float32).reshape(6, 8)


def _loss(w: Any, x: Any) -> Any:
    return jnp.mean(hloom.nn.log_softmax(jnp.tanh(x @ w) @ w.T) ** 2)


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a gradient": (hloom.value_and_grad(_loss), (X.T.copy(), X)),
    "a scan": (lambda x: lax.scan(lambda c, r: (jnp.sin(c + r), c * 2), x[0], x), (X,)),
    "its gradient": (
        hloom.grad(lambda x: lax.scan(lambda c, r: (jnp.sin(c * r), None), x[0], x)[0].sum()), (X,)
    ),
    "a branch": (lambda x: lax.cond(x[0, 0] > 0, jnp.sin, lambda v: v * 2 + 1, x), (X,)),
    "a while loop": (lambda x: lax.while_loop(lambda c: c[1] < 9, lambda c: (c[0] * X + 1, c[1] + 1), (x, 0)), (X,)),
    "a convolution": (
        lambda x: hloom.nn.relu(lax.conv(x[None, None], jnp.ones((4, 1, 3, 3), np.float32), (1, 1), "SAME")), (X,)
    ),
    "indices": (lambda x: x.at[jnp.argsort(x[:, 0])].add(x[::-1]), (X,)),
    "linear algebra": (lambda x: jnp.linalg.solve(x @ x.T + jnp.eye(6), x), (X,)),
}  # fmt: skip


def stages_of(name: str) -> Stages:
    function, args = PROGRAMS[name]
    return hloom.jit(function).lower(*args).compile().executable.stages()


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_new_instruction_has_an_origin_in_the_stage_before(name: str) -> None:
    stages = stages_of(name)
    before = dict.fromkeys(stages.first.instructions())
    for record, module, origins in zip(stages.records, stages.modules, stages.origins, strict=True):
        now = dict.fromkeys(module.instructions())
        without = [i for i in now if i not in before and not origins.get(i)]
        assert not without, f"{record.name}: {without}"
        assert all(i in now and all(o in before for o in found) for i, found in origins.items()), record.name
        assert record.changed or not origins
        before = now


def lines_of(stages: Stages, i: HloInstruction) -> set[int]:
    """The lines of the traced instructions that an instruction of the last stage comes from."""
    nodes = {i}
    for origins in reversed(stages.origins):
        nodes = {o for n in nodes for o in origins.get(n, (n,))}
    return {n.metadata.source_line for n in nodes if n.metadata}


def test_a_fusion_comes_from_all_its_lines() -> None:
    def f(x: Any) -> Any:
        y = jnp.tanh(x)
        z = y * 3.0
        return jnp.exp(z) + 1.0

    stages = hloom.jit(f).lower(X).compile().executable.stages()
    (fusion,) = [i for i in stages.modules[-1].entry.instructions if i.opcode is Opcode.FUSION]
    first = f.__code__.co_firstlineno
    assert lines_of(stages, fusion) == {first + 1, first + 2, first + 3}


def test_equal_instructions_become_one_with_both_origins() -> None:
    stages = hloom.jit(lambda x: (jnp.sin(x) + 1) * (jnp.sin(x) + 2)).lower(X).compile().executable.stages()
    number = next(k for k, r in enumerate(stages.records) if r.name == "cse" and r.changed)
    merged = [found for i, found in stages.origins[number].items() if i.opcode is Opcode.SIN]
    assert [len(found) for found in merged] == [2]
