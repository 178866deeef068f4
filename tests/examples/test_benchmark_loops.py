"""The benchmarks' loops: each program agrees with the same algorithm run by Python, each gradient with differences."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hloom
from benchmarks import harness, machine, startup, steady
from benchmarks.harness import Outcome, _arrays
from benchmarks.loops import CASES, summary
from benchmarks.loops.case import SEED, Loop, gradient
from benchmarks.loops.measure import SUFFIX, compiling

QUICK = ("biquad", "kepler", "rk4", "columns", "insertion-sort", "lu", "edit-distance", "poisson", "ising", "smoother")
"""Cases of each kind, for the default run; the slow one takes all."""


def cases(names: Any) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def assert_equal(loop: Loop, one: Any, other: Any) -> None:
    found, expected = _arrays(one), _arrays(other)
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        assert a.shape == b.shape and np.all(np.isfinite(a)), loop.name
        scale = float(np.max(np.abs(b), initial=1e-30))
        np.testing.assert_allclose(a / scale, b / scale, atol=max(loop.tolerance / 10, 1e-5), rtol=0)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", cases(name for name, loop in CASES.items() if loop.numba))
def test_a_program_agrees_with_the_same_by_hand(name: str) -> None:
    loop = CASES[name]
    expected = loop.plain(loop.tiny)
    assert_equal(loop, hloom.jit(loop.function(hloom, loop.tiny))(*loop.inputs(loop.tiny)), expected)
    if loop.numpy is not None:
        assert_equal(loop, loop.numpy(*loop.inputs(loop.tiny), **loop.tiny), expected)


def slopes(loop: Loop) -> tuple[float, float]:
    """The derivative along a random direction: by the case's gradient, and by differences in f64."""
    taken = loop.gradient_of
    assert taken is not None
    rng = np.random.default_rng(SEED)
    exact = [a.astype(np.float64) if a.dtype == np.float32 else a for a in loop.inputs(loop.tiny)]
    direction = {k: rng.standard_normal(exact[k].shape) for k in taken.by}
    gradients = hloom.jit(loop.function(hloom, loop.tiny))(*loop.inputs(loop.tiny))
    along = sum(float(np.sum(np.asarray(g) * direction[k])) for g, k in zip(gradients, taken.by, strict=True))

    def loss(by: float) -> float:
        moved = [a + by * direction[k] if k in direction else a for k, a in enumerate(exact)]
        return float(taken.loss(np, taken.of.plain(loop.tiny, moved)))

    return along, (loss(1e-5) - loss(-1e-5)) / 2e-5


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("grad-lorenz", "grad-columns") else pytest.mark.slow)
        for name, loop in CASES.items()
        if loop.gradient_of
    ],
)
def test_a_gradient_agrees_with_differences(name: str) -> None:
    along, expected = slopes(CASES[name])
    assert abs(along - expected) <= 2e-4 * abs(expected) + 1e-5


def test_a_wrong_gradient_is_noticed() -> None:
    lorenz = CASES["lorenz"]
    right = gradient(lorenz, (0,), lambda jnp, x: x.sum())
    wrong = gradient(lorenz, (0,), lambda jnp, x: x.sum() if jnp is np else 1.01 * x.sum())
    assert slopes(right)[0] == pytest.approx(slopes(right)[1], rel=1e-3)
    assert slopes(wrong)[0] != pytest.approx(slopes(wrong)[1], rel=1e-3)


def test_every_case_has_a_name_of_its_own_and_something_to_be_compared_with() -> None:
    assert not {*CASES} & {*steady.CASES, *startup.CASES}
    assert len(CASES) >= 30
    for name, loop in CASES.items():
        assert loop.name == name and loop.tags & {*summary.SUBGROUPS}
        assert loop.numba is not None or loop.gradient_of is not None
        assert [*loop.sizes] == [*loop.tiny]


def test_the_table_of_speeds() -> None:
    notes = ["numba: serial", "noisy: other processes took 90% of the processors"]
    outcomes = [
        Outcome("columns", "c", samples={"hloom": [2e-3], "jax": [1e-3], "numba": [8e-3]}, notes=notes),
        Outcome("columns" + SUFFIX, "c", samples={"hloom": [0.4], "jax": [0.2]}),
        Outcome("affine", "a", samples={"hloom": [1e-3], "jax": [8e-3]}),
    ]
    lines = summary.table(outcomes, CASES, machine.describe()).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["", "hloom", "JAX", "Numba", "÷ JAX", "÷ Numba", "compile", "JAX's", "ratio"]
    assert cells[2] == ["columns", "2.00 ms", "1.00 ms", "8.00 ms", "0.50", "4.00", "400 ms", "200 ms", "2.00"]
    assert cells[3] == ["affine", "1.00 ms", "8.00 ms", "", "8.00", "", "", "", ""]
    assert ["all", "2", "2.00", "4.00"] in cells
    assert ["in place and triangular", "1", "0.50", "4.00"] in cells
    assert "below 1.0x of JAX (1 of 2): columns 0.50" in lines
    assert "below 1.0x of Numba (0 of 1): none" in lines
    assert "above 1.5x (1): columns 2.00" in lines
    assert {"(numba: serial: columns)", "(other processes took: columns 90%)"} <= {*lines}


@pytest.mark.slow  # it empties the caches
def test_without_jax_the_others_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setitem(sys.modules, "jax", None)
    run = harness.measure(CASES["affine"].case(), 1)
    assert [*run.samples] == ["hloom", "numba"] and run.notes[0].startswith("jax: not measured")
    assert [*compiling(CASES["affine"], 1).samples] == ["hloom"]


@pytest.mark.slow
def test_a_case_runs_from_the_command_line(root: Path, tmp_path: Path) -> None:
    """Whether JAX is installed or not."""
    written = tmp_path / "loops.json"
    command = [sys.executable, "-m", "benchmarks", "--quick", "--case", "lorenz", "--json", str(written)]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "| lorenz " in ran.stdout and "below 1.0x of Numba" in ran.stdout
    run, compiled = json.loads(written.read_text())["cases"]
    assert {"hloom", "numba"} <= set(run["peers"]) and min(run["peers"]["hloom"]["samples"]) > 0
    assert min(compiled["peers"]["hloom"]["samples"]) > 0
