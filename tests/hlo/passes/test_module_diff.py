"""The difference of stages: which lines, which passes, in which colours."""

from __future__ import annotations

import sys
from dataclasses import replace

import hloom.hlo
import pytest
from hloom.hlo import HloModule
from hloom.hlo.passes.manager import PassOptionsError
from hloom.hlo.passes.module_diff import Group, Line, ModuleDiff, Side
from hloom.hlo.passes.record import PassRecord
from hloom.hlo.passes.stages import Stages


def module(*lines: str, others: str = "") -> HloModule:
    body = "".join([f"  {line}\n" for line in lines])
    return hloom.hlo.parse(f"HloModule m\n\n{others}ENTRY e {{\n{body}}}\n")


CALLED = "f {\n  p = f32[2] parameter(0)\n  ROOT s = f32[2] sine(p)\n}\n\n"
OLD = module("x = f32[2] parameter(0)", "y = f32[2] negate(x)", "ROOT z = f32[2] negate(y)")
NEW = module("x = f32[2] parameter(0)", "ROOT z = f32[2] abs(x)")
CALLS = module("x = f32[2] parameter(0)", "ROOT z = f32[2] call(x), to_apply=f", others=CALLED)


def lines(group: Group) -> list[str]:
    return [f"{line.side.value} {line.text.strip()}" for line in group.lines]


def test_lines_of_a_computation() -> None:
    (group,) = ModuleDiff("p", OLD, NEW).groups()
    assert group.computation == "%e"
    assert lines(group) == [
        "  ENTRY %e (x: f32[2]) -> f32[2] {", "  %x = f32[2]{0} parameter(0)", "- %y = f32[2]{0} negate(%x)",
        "- ROOT %z = f32[2]{0} negate(%y)", "+ ROOT %z = f32[2]{0} abs(%x)", "  }",
    ]  # fmt: skip
    text = ModuleDiff("p", OLD, NEW, {"b": 1, "a": 2}).to_text()
    assert text.splitlines()[:3] == ["p: 3 -> 2 instructions, a x2, b x1", "", "@ %e"]
    assert text.splitlines()[4:6] == ["    %x = f32[2]{0} parameter(0)", "-   %y = f32[2]{0} negate(%x)"]


def test_computations_that_come_and_go_are_compared_by_their_names() -> None:
    came = list(ModuleDiff("p", OLD, CALLS).groups())
    assert [group.computation for group in came] == ["%f", "%e"]
    assert {line.side for line in came[0].lines} == {Side.ADDED} and len(came[0].lines) == 4
    gone = list(ModuleDiff("p", CALLS, OLD).groups())
    assert [group.computation for group in gone] == ["%f", "%e"]
    assert {line.side for line in gone[0].lines} == {Side.REMOVED}


def test_the_line_of_the_module_is_compared_too() -> None:
    (group,) = ModuleDiff("p", OLD, replace(OLD, is_scheduled=True)).groups()
    assert group.computation == "HloModule" and len(group.lines) == 2 and "is_scheduled=true" in group.lines[1].text


def test_distant_changes_are_groups_with_lines_around() -> None:
    chain = [f"n{k + 1} = f32[2] negate(n{k})" for k in range(30)]
    old = module("n0 = f32[2] parameter(0)", *chain, "ROOT r = f32[2] sine(n30)")
    changed = [line.replace("negate", "abs") if "n5 =" in line or "n25 =" in line else line for line in chain]
    new = module("n0 = f32[2] parameter(0)", *changed, "ROOT r = f32[2] sine(n30)")
    groups = list(ModuleDiff("p", old, new).groups())
    assert [[line.side for line in group.lines].count(Side.BOTH) for group in groups] == [6, 6]


def test_no_difference() -> None:
    assert ModuleDiff("p", OLD, OLD).to_text() == "p: 3 -> 3 instructions\nno line differs"


def test_colours_are_for_terminals_that_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    diff = ModuleDiff("p", OLD, NEW)
    monkeypatch.setenv("TERM", "xterm")
    for is_terminal, variable, is_coloured in ((True, "", True), (True, "1", False), (False, "", False)):
        monkeypatch.setenv("NO_COLOR", variable)
        monkeypatch.setattr(sys.stdout, "isatty", lambda is_terminal=is_terminal: is_terminal)
        assert str(diff) == repr(diff) == diff.to_text(colour=is_coloured)
        assert ("\x1b[31m-   %y = f32[2]{0} negate(%x)\x1b[0m" in str(diff)) == is_coloured
        assert ("\x1b[32m+   ROOT %z = f32[2]{0} abs(%x)\x1b[0m" in str(diff)) == is_coloured
    monkeypatch.setenv("NO_COLOR", "")
    monkeypatch.setenv("TERM", "dumb")
    assert "\x1b" not in str(diff)
    assert Line(Side.BOTH, "x") == Line(Side.BOTH, "x")


def record(name: str, changed: bool = True, **rules: int) -> PassRecord:
    return PassRecord(name, 1.0, 3, 3, changed, rules)


STAGES = Stages(
    OLD,
    (
        record("quiet", False), record("simplify", a=1), record("quiet", False), record("call"),
        record("simplify", a=2, b=1),
    ),
    (OLD, NEW, NEW, CALLS, OLD),
    ({},) * 5,
)  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (("call",), [("call", NEW, CALLS, {})]),
        ((3,), [("call", NEW, CALLS, {})]),
        (("simplify",), [
            ("simplify (run 1 of 2, pass 1)", OLD, NEW, {"a": 1}),
            ("simplify (run 2 of 2, pass 4)", CALLS, OLD, {"a": 2, "b": 1}),
        ]),
        ((4,), [("simplify (run 2 of 2, pass 4)", CALLS, OLD, {"a": 2, "b": 1})]),
        (("quiet",), [("quiet (run 1 of 2, pass 0)", OLD, OLD, {})]),
        (("simplify", "call"), [("simplify (run 1 of 2, pass 1) to call", OLD, CALLS, {"a": 1})]),
        ((2, 4), [("quiet (run 2 of 2, pass 2) to simplify (run 2 of 2, pass 4)", NEW, OLD, {"a": 2, "b": 1})]),
        (("call", "simplify"), [("call to simplify (run 2 of 2, pass 4)", NEW, OLD, {"a": 2, "b": 1})]),
        ((), [("all passes", OLD, OLD, {"a": 3, "b": 1})]),
    ],
)  # fmt: skip
def test_passes_are_chosen_by_name_or_index(
    asked: tuple[str | int, ...], found: list[tuple[str, HloModule, HloModule, dict[str, int]]]
) -> None:
    assert [(d.title, d.before, d.after, dict(d.rules)) for d in STAGES.diff(*asked)] == found


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (("simplfy",), "no pass named 'simplfy' ran; these changed the program: simplify, call; these did not: quiet"),
        (("call", "fusion"), "no pass named 'fusion' ran"),
        ((5,), "there is no pass 5: 5 ran, from 0 to 4"),
        ((-1,), "there is no pass -1"),
        (("call", 1), "call ran after 1: name the earlier pass first"),
        (("call", "call", "call"), "a pass, or the first and the last one of several, not 3"),
    ],
)
def test_passes_that_did_not_run_are_refused(asked: tuple[str | int, ...], message: str) -> None:
    with pytest.raises(PassOptionsError, match=message):
        STAGES.diff(*asked)


def test_a_program_without_passes() -> None:
    empty = Stages(OLD, (), (), ())
    assert str(empty.diff()) == "all passes: 3 -> 3 instructions\nno line differs"
    with pytest.raises(PassOptionsError, match="these changed the program: none; these did not: none"):
        empty.diff("fusion")
    with pytest.raises(PassOptionsError, match="there is no pass 0: 0 ran"):
        empty.diff(0)
    assert str(STAGES.diff("simplify")).count("simplify (run") == 2
