"""Conditionals and loops on the same operands are computed once if their computations are equal up to names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hloom.hlo.opcode import Opcode
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination

import hloom
from hloom import hlo, lax


def _module(f: Callable[..., Any]) -> hlo.HloModule:
    return hlo.parse(hloom.jit(f).lower(True, np.ones(8, np.float32)).as_text("hlo"))


def branched(p: Any, x: Any, number: float) -> Any:
    return lax.cond(p, lambda: x * number, lambda: lax.cond(x[0] > 1, lambda: x - number, lambda: x))


def looped(p: Any, x: Any, number: float) -> Any:
    return lax.while_loop(lambda x: x[0] < 9, lambda x: x + number, x)


@pytest.mark.parametrize("opcode, f", [(Opcode.CONDITIONAL, branched), (Opcode.WHILE, looped)])
@pytest.mark.parametrize("numbers, left", [((2.0, 2.0), 1), ((2.0, 3.0), 2)])
def test_equal_computations(opcode: Opcode, f: Callable[..., Any], numbers: tuple[float, float], left: int) -> None:
    module = _module(lambda p, x: f(p, x, numbers[0]) + f(p, x, numbers[1]))
    callers = [i for i in CommonSubexpressionElimination()(module).entry.instructions if i.opcode is opcode]
    assert len({i for i in module.entry.instructions if i.opcode is opcode}) == 2
    assert len(callers) == left


@pytest.mark.usefixtures("evaluator")
def test_effects_are_not_merged() -> None:
    seen: list[float] = []

    def f(p: Any, x: Any) -> Any:
        def shown() -> Any:
            hloom.debug.callback(lambda x: seen.append(float(x)), x[0])
            return x

        return lax.cond(p, shown, lambda: x) + lax.cond(p, shown, lambda: x)

    hloom.jit(f)(True, np.ones(8, np.float32))
    hloom.effects_barrier()
    assert seen == [1.0, 1.0]
