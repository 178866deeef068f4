"""Rules for control flow, each with a program on which it fires and a near miss; and which expansions fire where.

The rules of the algebraic simplifier are in `test_rules.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hloom.hlo.evaluator import evaluate
from hloom.hlo.passes.expand.expand import Expand
from hloom.hlo.passes.manager import FixedPoint, PassOptions, Pipeline
from hloom.hlo.passes.rewriter import RewriteLog
from hloom.hlo.passes.simplify.control_flow_simplifier import RULES, ControlFlowSimplifier
from hloom.hlo.text.parser import parse
from hloom.hlo.verifier import verify
from hloom.numba_backend.expansions import NUMBA_EXPANSIONS as EXPANSIONS

from hloom.backend_check.op_case import build_module
from hloom.backend_check.op_table import CASES
from support.comparing import assert_same_arrays
from support.random_modules import random_arguments

LOOP = """HloModule loop
body {{
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  v = f32[2] get-tuple-element(s), index=1
  w = f32[2] get-tuple-element(s), index=2
  one = s32[] constant(1)
  j = s32[] add(i, one)
  u = f32[2] add(v, w)
  ROOT t = (s32[], f32[2], f32[2]) tuple({next})
}}
condition {{
  s = (s32[], f32[2], f32[2]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant({steps})
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  x = f32[2] parameter(0)
  y = f32[2] parameter(1)
  zero = s32[] constant(0)
  c = f32[2] constant({{3, 4}})
  start = (s32[], f32[2], f32[2]) tuple(zero, {start})
  loop = (s32[], f32[2], f32[2]) while(start), condition=condition, body=body
  ROOT r = f32[2] get-tuple-element(loop), index={taken}
}}
"""
BRANCH = """HloModule branch
first {{ a = f32[2] parameter(0)  ROOT r = f32[2] negate(a) }}
second {{ a = f32[2] parameter(0)  ROOT r = f32[2] sine(a) }}
ENTRY main {{
  p = pred[] parameter(0)  x = f32[2] parameter(1)  yes = pred[] constant(false)
  ROOT r = f32[2] conditional({index}, x, x), true_computation=first, false_computation=second
}}
"""
TWICE = """HloModule twice
first {{ s = (f32[2], f32[2]) parameter(0)  a = f32[2] get-tuple-element(s), index=0
  b = f32[2] get-tuple-element(s), index=1  ROOT r = f32[2] subtract(a, b) }}
second {{ s = (f32[2], f32[2]) parameter(0)  ROOT r = f32[2] get-tuple-element(s), index=1 }}
ENTRY main {{
  p = pred[] parameter(0)  x = f32[2] parameter(1)  y = f32[2] parameter(2)  s = (f32[2], f32[2]) tuple(x, {other})
  ROOT r = f32[2] conditional(p, s, s), true_computation=first, false_computation=second
}}
"""


COUNTERS = """HloModule counters
body {{
  s = (s32[], {other}[], s32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  k = {other}[] get-tuple-element(s), index=1
  x = s32[9] get-tuple-element(s), index=2
  a = s32[] constant(1)
  j = s32[] add(i, a)
  b = {other}[] constant({step})
  m = {other}[] add(k, b)
  u = s32[] add({read})
  v = s32[1] reshape(u)
  w = s32[9] dynamic-update-slice(x, v, k)
  ROOT t = (s32[], {other}[], s32[9]) tuple(j, m, w)
}}
condition {{
  s = (s32[], {other}[], s32[9]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}}
ENTRY main {{
  y = s32[9] parameter(0)
  zero = s32[] constant(0)
  first = {other}[] constant(2)
  start = (s32[], {other}[], s32[9]) tuple(zero, first, y)
  loop = (s32[], {other}[], s32[9]) while(start), condition=condition, body=body
  i9 = s32[] get-tuple-element(loop), index=0
  k9 = {other}[] get-tuple-element(loop), index=1
  y9 = s32[9] get-tuple-element(loop), index=2
  ROOT r = (s32[], {other}[], s32[9]) tuple(i9, k9, y9)
}}
"""


def counters(other: str = "s32", step: int = -3, read: str = "i, j") -> str:
    """Two counters, one of them s32 from 0 by 1 while it is below 4."""
    return COUNTERS.format(other=other, step=step, read=read)


def loop(next: str = "j, u, w", steps: int = 3, start: str = "x, y", taken: int = 1) -> str:
    return LOOP.format(next=next, steps=steps, start=start, taken=taken)


@dataclass(frozen=True)
class Pair:
    fires: str
    misses: str


PAIRS = {
    "unchanged_result": Pair(loop(taken=2), loop(next="j, u, v", taken=2)),
    "never_runs": Pair(loop(steps=0), loop(steps=1)),
    "runs_once": Pair(loop(steps=1), loop(steps=2)),
    "constant_state": Pair(loop(start="x, c"), loop(start="c, x")),
    "equal_elements": Pair(loop(next="j, u, u", start="x, x"), loop(next="j, u, u")),
    "counters_in_step": Pair(counters(), counters(other="s16")),
    "count_with_another": Pair(counters("s8", 31, "a, a"), counters("s8", 32, "a, a")),
    "dead_state": Pair(loop(taken=0).replace("ROOT r = f32[2] get", "ROOT r = s32[] get"), loop()),
    "known_branch": Pair(BRANCH.format(index="yes"), BRANCH.format(index="p")),
    "repeated_operand": Pair(TWICE.format(other="x"), TWICE.format(other="y")),
}


def test_every_rule_of_control_flow_has_a_pair() -> None:
    assert set(PAIRS) == {each.name for each in RULES}


@pytest.mark.parametrize("name", PAIRS)
def test_control_flow(name: str) -> None:
    for text, fires in ((PAIRS[name].fires, True), (PAIRS[name].misses, False)):
        module = parse(text)
        pipeline = Pipeline("test", (FixedPoint((ControlFlowSimplifier(rules=RULES.only({name})),)),))
        after, records = pipeline.run(module, PassOptions(verify=True, check_rules=True))
        assert any(name in record.rewrites for record in records) == fires
        arguments = random_arguments(module, 0)
        assert_same_arrays(evaluate(module, *arguments), evaluate(after, *arguments))


OTHERS = {
    "bitcast_to_other_type": "x = f32[2,3] parameter(0)  ROOT r = s32[6] bitcast(x)",
    "dynamic_reshape": "x = f32[4] parameter(0)  n = s32[] constant(4)  ROOT r = f32[4] dynamic-reshape(x, n)",
    "set_dimension_size": "x = f32[4] parameter(0)  n = s32[] constant(4)  ROOT r = f32[4] set-dimension-size(x, n), "
    "dimensions={0}",
    "small_power": "x = f32[5] parameter(0)  c = f32[] constant(2.5)  n = f32[5] broadcast(c), dimensions={}  "
    "ROOT r = f32[5] power(x, n)",
    "unwritten_memory": 'ROOT r = s32[2,3] custom-call(), custom_call_target="AllocateBuffer"',
}
"""Expansions of operations without cases in the table."""


def test_every_expansion_fires_somewhere() -> None:
    """In the cases of operations, or in a program above; and each leaves alone what it is not for."""
    log = RewriteLog()
    for case in CASES:
        Expand(EXPANSIONS).rewrite(build_module(case), log)
    assert {each.name for each in EXPANSIONS} - set(log.counts) == set(OTHERS)
    assert not log.unfinished


@pytest.mark.parametrize("name", OTHERS)
def test_expansion(name: str) -> None:
    module = parse(f"HloModule m\nENTRY e {{ {OTHERS[name]} }}")
    log = RewriteLog()
    after = Expand(rules=EXPANSIONS.only({name})).rewrite(module, log)
    assert log.counts == {name: 1}
    verify(after)
    arguments = random_arguments(module, 0)
    assert_same_arrays(evaluate(module, *arguments), evaluate(after, *arguments))


ALWAYS = {
    *("all_gather_start", "all_reduce_start", "collective_permute_start"),
    *("all_reduce_done", "all_to_all", "async_done", "batch_norm_grad", "batch_norm_inference"),
    *("batch_norm_training", "collective_done", "collective_of_one", "collective_permute"),
    *("copy_done", "copy_start", "device_number", "dynamic_reshape", "first_operand", "get_dimension_size", "mapped"),
    *("ragged_dot", "rng", "rng_bit_generator", "scaled_dot", "scan", "set_dimension_size", "stochastic_convert"),
}
"""Expansions of operations that no backend computes: they have no near miss but an error."""


def test_every_other_expansion_leaves_something_alone() -> None:
    leaves_alone: set[str] = set()
    for case in CASES:
        root = build_module(case).entry.root
        leaves_alone.update(each.name for each in EXPANSIONS.of(root.opcode) if each.function(root) is None)
    assert {each.name for each in EXPANSIONS} - leaves_alone == ALWAYS
