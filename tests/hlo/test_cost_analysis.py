"""The cost analysis: how often a loop counts, what each instruction costs, and how many bytes a kernel moves."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hloom.hlo import HloModule, parse
from hloom.hlo.analyses.cost import InstructionCosts, cost_analysis
from hloom.hlo.analyses.traffic import traffic_of
from hloom.hlo.errors import UnsupportedError

import hloom
import hloom.numpy as jnp

LOOP = """HloModule m

condition {
  s = (s32[], f32[10]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] CONSTANT
  ROOT below = pred[] compare(i, n), direction=LT
}

body {
  s = (s32[], f32[10]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[10] get-tuple-element(s), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  y = f32[10] multiply(x, x)
  ROOT r = (s32[], f32[10]) tuple(next, y)
}

ENTRY e {
  zero = s32[] constant(0)
  x = f32[10] parameter(0)
  s = (s32[], f32[10]) tuple(zero, x)
  ROOT w = (s32[], f32[10]) while(s), condition=condition, body=body
}
"""
ONCE = 10 + 1 + 1
"""The product, the sum and the comparison."""


@pytest.mark.parametrize("trips", [0, 1, 7])
def test_a_loop_counts_as_often_as_it_runs(trips: int) -> None:
    text = LOOP.replace("CONSTANT", f"constant({trips})")
    assert cost_analysis(parse(text))["flops"] == trips * ONCE


def test_a_loop_of_unknown_length_counts_once() -> None:
    text = LOOP.replace("CONSTANT", "custom-call(), custom_call_target=\"length\"")
    assert cost_analysis(parse(text))["flops"] == ONCE


NESTED = """HloModule m

sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }

left { x = f32[64] parameter(0)  ROOT y = f32[64] exponential(x) }

right { x = f32[64] parameter(0)  z = f32[64] multiply(x, x)  ROOT y = f32[64] add(z, x) }

fused { x = f32[64] parameter(0)  y = f32[64] tanh(x)  ROOT z = f32[64] multiply(x, y) }

condition { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0  n = s32[] constant(5)
  ROOT below = pred[] compare(i, n), direction=LT }

body { s = (s32[], f32[64]) parameter(0)  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1  one = s32[] constant(1)  next = s32[] add(i, one)
  f = f32[64] fusion(x), kind=kLoop, calls=fused  ROOT r = (s32[], f32[64]) tuple(next, f) }

ENTRY e {
  p = pred[] parameter(0)
  x = f32[64] parameter(1)
  w = f32[64,8] parameter(2)
  chosen = f32[64] conditional(p, x, x), true_computation=left, false_computation=right
  zero = s32[] constant(0)
  s = (s32[], f32[64]) tuple(zero, chosen)
  loop = (s32[], f32[64]) while(s), condition=condition, body=body
  y = f32[64] get-tuple-element(loop), index=1
  d = f32[8] dot(y, w), lhs_contracting_dims={0}, rhs_contracting_dims={0}, metadata={source_file="a.py" source_line=7}
  c = f32[] constant(0)
  ROOT r = f32[] reduce(d, c), dimensions={0}, to_apply=sum
}
"""


def _sums(costs: InstructionCosts) -> dict[str, float]:
    return {
        "flops": sum(i.flops for i in costs),
        "transcendentals": sum(i.transcendentals for i in costs),
        "bytes accessed": sum(i.bytes_accessed for i in costs),
    }


def _programs() -> dict[str, HloModule]:
    def step(w: Any, x: Any) -> Any:
        def turn(i: Any, y: Any) -> Any:
            return jnp.where(i % 2 == 0, jnp.sin(y), y * 2)

        return jnp.sum(hloom.lax.fori_loop(0, 9, turn, jnp.tanh(x @ w)) ** 2)

    lowered = hloom.jit(hloom.value_and_grad(step)).lower(jnp.ones((20, 30)), jnp.ones((10, 20)))
    return {
        "nested": parse(NESTED),
        "loop": parse(LOOP.replace("CONSTANT", "constant(7)")),
        "traced": lowered.module,
        "compiled": parse(lowered.compile().as_text()),
    }


@pytest.mark.parametrize("name", ["nested", "loop", "traced", "compiled"])
def test_the_costs_of_instructions_add_up(name: str) -> None:
    module = _programs()[name]
    costs = cost_analysis(module)
    assert _sums(costs.instructions) == pytest.approx(dict(costs), rel=1e-12) and costs["flops"] > 0
    for instruction in costs.instructions:
        parts, own = _sums(instruction.parts), _sums(InstructionCosts([instruction]))
        match instruction.opcode:
            case "while" | "call" | "fusion":
                assert parts == own
            case "conditional":
                assert all(0 < own[key] <= parts[key] for key in ("flops", "bytes accessed"))
            case _:
                assert not instruction.parts


def test_what_an_instruction_costs() -> None:
    costs = {i.name: i for i in cost_analysis(parse(NESTED)).instructions}
    dot = costs["d"]
    assert (dot.flops, dot.bytes_accessed, dot.source) == (2 * 64 * 8, 4 * (64 + 64 * 8 + 8), "a.py:7")
    assert dot.arithmetic_intensity == dot.flops / dot.bytes_accessed
    assert costs["chosen"].flops == 128 and costs["chosen"].transcendentals == 64, "the larger of each"
    loop = costs["loop"]
    (fusion,) = [part for part in loop.parts if part.opcode == "fusion"]
    assert loop.transcendentals == 5 * 64 and fusion.times == 5 and fusion.parts[1].transcendentals == 5 * 64
    assert costs["w"].arithmetic_intensity == 0


def test_costs_of_a_compiled_function() -> None:
    compiled = hloom.jit(lambda x, y: jnp.exp(x @ y)).lower(jnp.ones((10, 20)), jnp.ones((20, 30))).compile()
    costs = compiled.cost_analysis()
    assert costs == {"flops": 12000.0, "transcendentals": 300.0, "bytes accessed": costs["bytes accessed"]}
    (dot,) = [i for i in costs.instructions if i.opcode == "dot"]
    assert dot.flops == 12000 and dot.source.startswith(__file__)
    text = str(costs.instructions)
    assert "12,000" in text and "flops per byte" in text and "<td" in costs.instructions._repr_html_()
    assert pickle.loads(pickle.dumps(costs)) == costs


TRAFFIC = {
    "a fusion reads and writes once": (
        "x = f32[100] parameter(0)  y = f32[100] tanh(x)  ROOT z = f32[100] add(x, y)",
        800,
    ),
    "a slice": ("x = f32[100] parameter(0)  ROOT z = f32[7] slice(x), slice={[0:7]}", 56),
    "unused": ("x = f32[100] parameter(0)  ROOT z = f32[3] constant({1, 2, 3})", 12),
    "used whole and sliced": (
        "x = f32[100] parameter(0)  y = f32[7] slice(x), slice={[0:7]}  s = f32[100] sine(x)"
        "  ROOT z = (f32[7], f32[100]) tuple(y, s)",
        400 + 28 + 400,
    ),
    "an update in place": (
        "x = f32[100] parameter(0)  u = f32[5] constant({1, 2, 3, 4, 5})  i = s32[] constant(3)"
        "  ROOT z = f32[100] dynamic-update-slice(x, u, i)",
        20,
    ),
}


@pytest.mark.parametrize("case", TRAFFIC)
def test_traffic_of_a_fusion(case: str) -> None:
    body, expected = TRAFFIC[case]
    root = body.partition("ROOT z = ")[2]
    result = root[: root.index(") ") + 1] if root.startswith("(") else root.split()[0]
    module = parse(
        f"HloModule m\n\nfused {{ {body} }}\n\nENTRY e {{\n  x = f32[100] parameter(0)\n"
        f"  ROOT r = {result} fusion(x), kind=kLoop, calls=fused\n}}\n"
    )
    assert traffic_of(module.entry.root) == expected


def test_traffic_of_a_loop_counts_its_turns() -> None:
    text = NESTED.replace("f32[64]", "f32[6400]").replace("f32[64,8]", "f32[6400,8]")
    module = parse(text)
    (loop,) = [i for i in module.entry.instructions if i.name == "loop"]
    assert traffic_of(loop) == 5 * 2 * 4 * 6400
    (small,) = [i for i in parse(NESTED).entry.instructions if i.name == "loop"]
    assert traffic_of(small) == 0, "64 elements stay in registers"


def test_symbolic_sizes_are_refused() -> None:
    (n,) = hloom.export.symbolic_shape("n")
    lowered = hloom.jit(lambda x: x + 1).lower(hloom.ShapeDtypeStruct((n, 4), np.float32))
    for needs_sizes in (lowered.cost_analysis, lowered.compile):
        with pytest.raises(UnsupportedError, match=r": .* has the shape f32\[n,4\], whose sizes are not known"):
            needs_sizes()
