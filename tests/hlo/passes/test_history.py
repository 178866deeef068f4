"""Recorded compilations: the stages, and where the instructions of each come from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from hloom.hlo.backend import get_compiler
from hloom.hlo.ir import HloModule
from hloom.hlo.passes.history import History, recording
from hloom.hlo.provenance import NOTES, is_recording

from hloom import hlo

DATA = Path(__file__).parents[2] / "data"

CALLS = """
HloModule calls

double {
  p = f32[8] parameter(0)
  ROOT twice = f32[8] add(p, p)
}

ENTRY main {
  x = f32[8] parameter(0)
  one = f32[8] call(x), to_apply=double
  two = f32[8] call(one), to_apply=double
  zero = f32[] constant(0)
  zeros = f32[8] broadcast(zero), dimensions={}
  three = f32[8] subtract(two, zeros)
  unused = f32[8] negate(x)
  again = f32[8] exponential(three)
  once = f32[8] exponential(three)
  ROOT sum = f32[8] multiply(again, once)
}
"""


def recorded(module: HloModule, target: str = "cpu") -> History:
    with recording() as history:
        get_compiler("numba").pipeline(target).run(module)
    return history


def check(history: History) -> None:
    """The stages follow one another; origins and merged instructions are of the modules that they are said to be."""
    module = history.module
    for stage in history.stages:
        assert stage.before is module and stage.after is not module
        before, after = set(stage.before.instructions()), set(stage.after.instructions())
        assert stage.origins.keys() == after - before
        assert before.issuperset(o for origins in stage.origins.values() for o in origins)
        assert stage.merged.keys() <= before - after and set(stage.merged.values()) <= before & after
        for rule in stage.rules:
            assert before.issuperset(rule.before)
        module = stage.after


def test_stages_and_origins() -> None:
    history = recorded(hlo.parse(CALLS))
    check(history)
    stages = {stage.name: stage for stage in reversed(history.stages)}

    inlined = stages["call-inliner"]
    names = {tuple(old.name for old in olds) for olds in inlined.origins.values()}
    assert names >= {("one", "twice"), ("two", "twice")}  # each is the value of a call, and a copy of the root

    simplified = stages["algebraic-simplifier"]
    (rule,) = [r for r in simplified.rules if "three" in [b.name for b in r.before]]
    assert rule.application.before.opcode.value == "subtract" and not rule.added

    merged = stages["cse"].merged
    assert ("once", "again") in [(gone.name, kept.name) for gone, kept in merged.items()]

    (fusion,) = [i for i in stages["fusion"].after.entry.instructions if i.opcode.value == "fusion"]
    assert [o.opcode.value for o in stages["fusion"].origins[fusion]][:2] == ["multiply", "exponential"]
    inside = fusion.attributes.calls.instructions
    assert all(stages["fusion"].origins[i] for i in inside)


def test_recording_changes_nothing() -> None:
    module = hlo.parse(CALLS)
    assert recorded(module).stages[-1].after.to_text() == hlo.optimize(module)[0].to_text()


def test_nothing_is_noted_without_a_recording() -> None:
    assert NOTES.get() is None and not is_recording()
    with recording() as history:
        assert is_recording()
    assert not is_recording() and history.stages == [] and history.module is None


@pytest.mark.parametrize(
    ("files", "target"),
    [
        ("hlo/*[!d].hlo", "cpu"),
        ("hlo/*[!d].hlo", "tpu"),
        pytest.param("*/*.hlo", "cpu", marks=pytest.mark.slow),
        pytest.param("*/*.hlo", "tpu", marks=pytest.mark.slow),
    ],
)
def test_all_instructions_have_an_origin(files: str, target: str) -> None:
    made: Counter[str] = Counter()
    without: list[str] = []
    for path in sorted(DATA.glob(files)):
        history = recorded(hlo.parse(path.read_text()), target)
        check(history)
        for stage in history.stages:
            made[stage.name] += len(stage.origins)
            without += [f"{path.name} {stage.name} {i.name}" for i, origins in stage.origins.items() if not origins]
    assert made.total() > 1000 and len(made) > 10
    assert not without


SHARDED = """
HloModule sharded

ENTRY main {
  x = f32[8,4] parameter(0), sharding={devices=[2,1]<=[2]}
  w = f32[4,3] parameter(1), sharding={replicated}
  y = f32[8,3] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  dw = f32[4,3] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  dv = f32[3,3] dot(y, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  ROOT both = (f32[4,3], f32[3,3]) tuple(dw, dv)
}
"""


def test_the_partitioner_is_a_stage() -> None:
    with recording() as history:
        made = hlo.partition(hlo.parse(SHARDED), 2).module
    check(history)
    (stage,) = history.stages
    assert stage.name == "spmd-partitioner" and stage.after is made
    origins = {new: [old.name for old in olds] for new, olds in stage.origins.items()}
    assert all(origins.values())
    (reduced,) = [i for i in made.entry.instructions if i.opcode.value == "all-reduce"]
    assert origins[reduced] == ["dw", "dv"]  # joined
