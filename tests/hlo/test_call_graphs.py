"""Computations that call one another many times: text of a few lines that would be a program of millions of
instructions is read, checked, costed and printed at once, and is compiled or refused at once."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest
from hloom.hlo import UnsupportedError, evaluate, parse, verify
from hloom.hlo.analyses.cost import cost_analysis
from hloom.hlo.passes.simplify import call_inliner
from hloom.numba_backend.compiler import NumbaCompiler

LEVELS: dict[str, str] = {
    "call": "f{k} {{ x = f32[] parameter(0)  a = f32[] call(x), to_apply=f{j} "
    " ROOT b = f32[] call(a), to_apply=f{j} }}",
    "conditional": "f{k} {{ x = f32[] parameter(0)  z = f32[] constant({k})  p = pred[] compare(x, z), direction=LT "
    " ROOT a = f32[] conditional(p, x, x), true_computation=f{j}, false_computation=f{j} }}",
    "while": "c{k} {{ x = f32[] parameter(0)  z = f32[] constant({k})  ROOT p = pred[] compare(x, z), direction=GT }}\n"
    "f{k} {{ x = f32[] parameter(0)  b = f32[] while(x), condition=c{k}, body=f{j} "
    " ROOT a = f32[] while(b), condition=c{k}, body=f{j} }}",
    "fusion": "f{k} {{ x = f32[] parameter(0)  a = f32[] fusion(x), kind=kLoop, calls=f{j} "
    " ROOT b = f32[] fusion(a), kind=kLoop, calls=f{j} }}",
}
"""Computation k, which names computation j = k - 1 twice."""


def doubling(kind: str, depth: int) -> str:
    levels = "\n".join(LEVELS[kind].format(k=k, j=k - 1) for k in range(1, depth + 1))
    return f"""HloModule m
f0 {{ x = f32[] parameter(0)  ROOT r = f32[] negate(x) }}
{levels}
ENTRY e {{ x = f32[] parameter(0)  ROOT r = f32[] call(x), to_apply=f{depth} }}
"""


def reducer(depth: int) -> str:
    levels = "\n".join(
        f"f{k} {{ x = f32[] parameter(0)  y = f32[] parameter(1)  a = f32[] call(x, y), to_apply=f{k - 1} "
        f" ROOT b = f32[] call(a, y), to_apply=f{k - 1} }}"
        for k in range(1, depth + 1)
    )
    return f"""HloModule m
f0 {{ x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT r = f32[] maximum(x, y) }}
{levels}
ENTRY e {{ x = f32[4] parameter(0)  z = f32[] constant(0)
  ROOT r = f32[] reduce(x, z), dimensions={{0}}, to_apply=f{depth} }}
"""


TEXTS: dict[str, Callable[[int], str]] = {
    **{kind: lambda depth, kind=kind: doubling(kind, depth) for kind in LEVELS},  # type: ignore[misc]
    "reduce": reducer,
}


@pytest.mark.parametrize("kind", TEXTS)
def test_deep_call_graphs_take_no_time(kind: str) -> None:
    started = time.process_time()
    module = parse(TEXTS[kind](60))
    verify(module)
    assert parse(module.to_text()).to_text() == module.to_text()
    cost_analysis(module)
    with pytest.raises(UnsupportedError, match=r"has [0-9,]{20,} instructions when each call, loop and branch has its"):
        NumbaCompiler().compile(module)
    assert time.process_time() - started < 10


@pytest.mark.parametrize("kind", TEXTS)
def test_shallow_ones_run(kind: str) -> None:
    module = parse(TEXTS[kind](6))
    argument = np.full((4,) if kind == "reduce" else (), -0.5, np.float32)
    (expected,) = evaluate(module, argument)
    (result,) = NumbaCompiler().compile(module).execute([argument])
    np.testing.assert_array_equal(result, expected)


def test_a_long_program_is_no_deep_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for copies: what is written out is compiled, however long it is."""
    monkeypatch.setattr(call_inliner, "MOST_INSTRUCTIONS", 100)
    lines = "\n".join(f"  n{k} = f32[] negate(n{k - 1})" for k in range(1, 200))
    module = parse(f"ENTRY e {{\n  n0 = f32[] parameter(0)\n{lines}\n}}")
    assert call_inliner.CallInliner()(module) is module
    with pytest.raises(UnsupportedError, match=r"has 159 instructions .*, at most 100 can be"):
        call_inliner.CallInliner()(parse(doubling("call", 5)))
