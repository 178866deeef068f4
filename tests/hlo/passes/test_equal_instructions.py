"""cse: what it finds in one run, so that a second one finds nothing."""

from __future__ import annotations

import random

import pytest
from hloom.hlo.ir import HloModule
from hloom.hlo.passes.simplify.common_subexpression_elimination import CommonSubexpressionElimination
from hloom.hlo.text.parser import parse

from support.random_modules import random_module

CSE = CommonSubexpressionElimination()

REDUCERS = """HloModule m

plain {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] multiply(a, a)
  ROOT s = f32[] add(c, b)
}

twice {
  a.1 = f32[] parameter(0)
  b.1 = f32[] parameter(1)
  c.1 = f32[] multiply(a.1, a.1)
  d.1 = f32[] multiply(a.1, a.1)
  ROOT s.1 = f32[] ADDED
}

ENTRY main {
  x = f32[4,6]{1,0} parameter(0)
  z = f32[] constant(0)
  y = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=plain
  w = f32[4]{0} reduce(x, z), dimensions={1}, to_apply=twice
  ROOT t = f32[4]{0} subtract(y, w)
}
"""


@pytest.mark.parametrize(("added", "reduces"), [("add(c.1, b.1)", 1), ("add(d.1, b.1)", 1), ("add(c.1, d.1)", 2)])
def test_reducers_that_are_equal_once_their_instructions_are_merged(added: str, reduces: int) -> None:
    entry = CSE(parse(REDUCERS.replace("ADDED", added))).entry
    assert [i.opcode.value for i in entry.instructions].count("reduce") == reduces


@pytest.mark.parametrize("seed", range(40))
def test_a_second_run_finds_nothing_in_a_random_module(seed: int) -> None:
    _assert_settled(random_module(random.Random(seed), steps=30))


def test_a_second_run_finds_nothing_in_these_either() -> None:
    _assert_settled(parse(REDUCERS.replace("ADDED", "add(d.1, b.1)")))


def _assert_settled(module: HloModule) -> None:
    once = CSE(module)
    assert CSE(once) is once
