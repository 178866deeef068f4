"""`compiled.diff`: the lines before and after a pass of a compiled function."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import hloom.hlo
import numpy as np
import pytest
from hloom.hlo.evaluator_backend import EvaluatorExecutable
from hloom.hlo.passes.module_diff import Side

import hloom
import hloom.numpy as jnp
from support.html_checks import Checked


def f(x: Any) -> Any:
    return 2 * jnp.tanh(x) + jnp.sum(1.0 * x)


LOWERED = hloom.jit(f).lower(jnp.ones(300))
COMPILED = LOWERED.compile()


def changed(diffs: Any, side: Side) -> str:
    lines = [line for diff in diffs for group in diff.groups() for line in group.lines]
    return "\n".join([line.text for line in lines if line.side is side])


def test_a_pass_by_its_name() -> None:
    (fusion,) = found = COMPILED.diff("fusion")
    assert fusion.title == "fusion" and "fusion(%x), kind=" in changed(found, Side.ADDED)
    assert "tanh(%x)" in changed(found, Side.REMOVED) and "tanh(%param_0)" in changed(found, Side.ADDED)
    assert str(found).startswith(f"fusion: {fusion.about}\n\n@ %fused_computation")


def test_the_stages_are_those_of_the_records() -> None:
    stages = COMPILED.executable.stages()
    ran = [record for record in COMPILED.passes() if record.name not in ("buffer-assignment", "code-generation")]
    assert [(r.name, r.changed, r.rewrites) for r in stages.records] == [(r.name, r.changed, r.rewrites) for r in ran]
    assert stages.first.to_text() == LOWERED.module.to_text()
    assert stages.modules[-1].to_text() == COMPILED.executable.module.to_text()
    x = np.linspace(-1, 1, 300, dtype=np.float32)
    before = stages.first
    for record, after in zip(stages.records, stages.modules, strict=True):
        counts = [sum(1 for _ in module.instructions()) for module in (before, after)]
        assert counts == [record.instructions_before, record.instructions_after]
        assert (before is not after) == record.changed
        if record.changed:
            np.testing.assert_allclose(hloom.hlo.evaluate(after, x), hloom.hlo.evaluate(before, x), rtol=1e-5)
        before = after


def test_rules_that_fired_and_indices() -> None:
    number = next(k for k, record in enumerate(COMPILED.passes()) if record.rewrites)
    record = COMPILED.passes()[number]
    by_name, (by_index,) = COMPILED.diff(record.name), COMPILED.diff(number)
    assert by_index.rules == record.rewrites and str(by_index) in str(by_name)
    assert f"{next(iter(record.rewrites))} x1" in str(by_index)
    (both,) = COMPILED.diff(record.name, "fusion")
    (whole,) = COMPILED.diff()
    assert set(record.rewrites) <= set(both.rules) and both.title.endswith("to fusion")
    assert whole.before.to_text() == LOWERED.module.to_text()
    assert whole.after.to_text() == COMPILED.executable.module.to_text()


def test_each_application_of_a_rule() -> None:
    (first, *_) = COMPILED.diff("algebraic-simplifier")
    assert [a.rule for a in first.applications] == ["multiply_one"] and first.rules == {"multiply_one": 1}
    checked = Checked(first._repr_html_())
    assert "1 rule fired, one by one" in checked.text and "multiply_one in " in checked.text
    for line in str(first.applications[0]).splitlines()[1:]:
        assert line[2:] in checked.text and line.startswith(("  - %", "  = %"))
    (fusion,) = COMPILED.diff("fusion")
    assert fusion.applications == [] and "one by one" not in fusion._repr_html_()


def test_an_unknown_pass_lists_those_that_ran() -> None:
    with pytest.raises(ValueError, match=r"no pass named 'fuse' ran; these changed .*: .*fusion.*did not: .*dce"):
        COMPILED.diff("fuse")


def test_in_a_notebook() -> None:
    checked = Checked(COMPILED.diff("fusion")._repr_html_())
    assert {"added", "removed"} <= checked.classes and "Diff fusion 1" in checked.text
    for line in changed(COMPILED.diff("fusion"), Side.ADDED).splitlines():
        assert f"+ {line}" in checked.text
    (quiet,) = COMPILED.diff("call-inliner")
    assert "no line differs" in Checked(quiet._repr_html_()).text and "no line differs" in str(quiet)


def test_a_program_from_the_store(tmp_path: Path) -> None:
    program = """
import hloom, hloom.numpy as jnp
compiled = hloom.jit(lambda x: 2 * jnp.tanh(x) + 1).lower(jnp.ones(300)).compile()
import sys; loaded = "hloom.numba_backend.compiling" in sys.modules
print(loaded, compiled.diff("fusion").to_text())
"""
    script = tmp_path / "script.py"
    script.write_text(program)
    root = str(Path(hloom.__file__).parents[1])
    own = {name: value for name, value in os.environ.items() if not name.startswith("HLOOM_")}
    environment = {**own, "HLOOM_CACHE_DIR": str(tmp_path / "store"), "PYTHONPATH": root}
    command = [sys.executable, str(script)]
    answers = [
        subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment, check=True).stdout.split(
            " ", 1
        )
        for _ in range(2)
    ]
    assert [answer[0] for answer in answers] == ["True", "False"], "the second one ran no pass before it was asked"
    assert answers[0][1] == answers[1][1] and "+" in answers[0][1]


def test_other_backends() -> None:
    executable = EvaluatorExecutable(LOWERED.module)
    assert "no line differs" in str(executable.stages().diff())

    class Plain(EvaluatorExecutable):
        stages = hloom.hlo.backend.Executable.stages

    with pytest.raises(hloom.errors.UnsupportedError, match="Plain has no stages: its backend does not say"):
        Plain(LOWERED.module).stages()


def test_a_target_and_schedules() -> None:
    padded = LOWERED.compile(target="tpu")
    assert ":T(" in changed(padded.diff(), Side.ADDED)
    optimized = hloom.hlo.backend.get_compiler("numba").compile_optimized(COMPILED.executable.module)  # type: ignore[attr-defined]
    assert len(optimized.stages().records) == 0 and "no line differs" in str(optimized.stages().diff())
