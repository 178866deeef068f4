"""Profiles of a block: `hloom.profiler.profile`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import hloom
import hloom.numpy as jnp
from hloom import profiler
from support.html_checks import Checked


@hloom.jit
def summed(x: hloom.Array) -> hloom.Array:
    return jnp.tanh(x).sum()


def test_a_profile_shows_the_functions_and_kernels_of_its_block(tmp_path: Path) -> None:
    x = jnp.ones(5000)
    summed(x)
    with profiler.profile() as recorded:
        for step in range(3):
            with profiler.StepTraceAnnotation("<b>step", step_num=step):
                summed(x).block_until_ready()
    summary = recorded.summary()
    assert ("summed", 3) in [(name, calls) for name, calls, _ in summary.calls["jitted function"]]
    assert ("<b>step", 3) in [(name, calls) for name, calls, _ in summary.calls["step"]]
    assert summary is recorded.summary() and summary.seconds == recorded.timeline.nanoseconds / 1e9
    assert any(line.calls == 3 and "test_profiles.py" in line.source for line in summary.lines)
    assert str(recorded) == repr(recorded) == summary.to_text()
    assert str(recorded).startswith(f"{summary.seconds:.3f} s were recorded\n\n")
    html = recorded._repr_html_()
    assert html is not None and html == summary._repr_html_()
    shown = Checked(html)
    assert shown.tags.count("table") == 4 and "<b>step" in shown.text, "where time went, steps, functions, kernels"
    for line in summary.lines:
        assert line.name in shown.text
    recorded.write(tmp_path / "timeline.json")
    assert json.loads((tmp_path / "timeline.json").read_text())["traceEvents"]


def test_a_profile_is_there_after_its_block_also_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), profiler.profile() as recorded:
        assert str(recorded) == "<Profile, recording>" and recorded._repr_html_() is None
        for ask in (recorded.summary, lambda: recorded.timeline, lambda: recorded.write(os.devnull)):
            with pytest.raises(RuntimeError, match="still being recorded: look at it after the block"):
                ask()
        raise ZeroDivisionError
    assert recorded.timeline.nanoseconds > 0 and "main thread" in str(recorded)
    with profiler.profile(), pytest.raises(RuntimeError, match="Only one profile"), profiler.profile():
        pass
    with profiler.profile(profiler.ProfileOptions(host_tracer_level=0, device_tracer_level=0)) as recorded:
        summed(jnp.ones(5))
    assert recorded.summary().lines == []
