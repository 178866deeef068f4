"""The cost analysis: how often a loop counts."""

from __future__ import annotations

import pytest
from hloom.hlo import parse
from hloom.hlo.analyses.cost import cost_analysis

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
