"""The benchmarks' measuring: results must be equal, missing peers are named, the table says what was measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness, machine, mlp, peers, report, schedules, steady
from benchmarks.harness import Case, Mismatch, Outcome, Program


def constant(value: float, seconds: float = 0.0) -> Callable[[], Program]:
    def run() -> np.ndarray:
        time.sleep(seconds)
        return np.full(3, value)

    return lambda: Program(run)


def absent() -> Program:
    raise ImportError("no module named snail")


@pytest.fixture(autouse=True)
def short_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "SAMPLE_SECONDS", 0.001)
    monkeypatch.setattr(harness, "SETTLE_SECONDS", 0.0)


def test_a_slower_program_measures_slower() -> None:
    case = Case("nap", "a nap", {"hloom": constant(1), "jax": constant(1, 0.02)})
    outcome = harness.measure(case, rounds=3, best=True)
    assert [len(samples) for samples in outcome.samples.values()] == [3, 3]
    own, other = outcome.number("hloom"), outcome.number("jax")
    assert own is not None and other is not None
    assert own < 0.02 <= other


def test_a_number_is_the_median_or_the_best_sample() -> None:
    samples = {"hloom": [3.0, 1.0, 2.0]}
    assert Outcome("x", "x", samples=samples).number("hloom") == 2
    assert Outcome("x", "x", samples=samples, best=True).number("hloom") == 1
    best = harness.measure(Case("x", "x", {"hloom": constant(1)}), rounds=2, best=True)
    assert best.number("hloom") == min(best.samples["hloom"]) and best.number("jax") is None


def test_programs_that_differ_are_not_compared() -> None:
    case = Case("wrong", "wrong", {"hloom": constant(1), "jax": constant(1.001)})
    with pytest.raises(Mismatch, match="hloom and jax differ"):
        harness.measure(case, rounds=1)


def test_a_missing_peer_is_noted_but_not_hloom() -> None:
    outcome = harness.measure(Case("x", "x", {"hloom": constant(1), "torch": absent}), rounds=1)
    assert list(outcome.samples) == ["hloom"]
    assert outcome.notes == ["torch: not measured, no module named snail"]
    with pytest.raises(ImportError, match="no module named snail"):
        harness.measure(Case("x", "x", {"hloom": absent}), rounds=1)


def wait_until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_peer_that_does_not_answer_ends_with_all_that_it_started(tmp_path: Path) -> None:
    started, python = tmp_path / "started", tmp_path / "python"
    python.write_text(f"#!/bin/sh\nsleep 1000 &\necho $! >{started}.new\nmv {started}.new {started}\nwait\n")
    python.chmod(0o700)
    peer = peers.Peer("pythran", tmp_path, str(python))
    wait_until(started.exists)
    peer.patience = 0.1
    with pytest.raises(peers.PeerFailed, match="no answer in"):
        peer.ask(do="about")
    state = Path(f"/proc/{started.read_text().strip()}/stat")
    # an orphan stays until its new parent takes it
    wait_until(lambda: not state.exists() or state.read_text().split()[2] == "Z")


def test_table_and_json() -> None:
    outcomes = [
        Outcome("quick", "a quick thing", samples={"hloom": [2e-6, 1e-6, 9e-6], "jax": [4e-6], "numpy": [0.5]}),
        Outcome("room", "its room", unit="byte", samples={"hloom": [3 * 2**20], "jax": [2**20]}, notes=["all of it"]),
    ]
    about = machine.describe()
    lines = report.table(outcomes, about).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[:4]]
    assert cells == [
        ["", "hloom", "JAX", "NumPy", "hloom ÷ JAX"],
        [":--", "--:", "--:", "--:", "--:"],
        ["a quick thing", "2.00 us", "4.00 us", "500 ms", "0.50"],
        ["its room", "3 MiB", "1 MiB", "", "3.00"],
    ]
    two = report.table([Outcome("t", "a step", samples={"hloom": [2e-3], "hloom-tpu": [3e-3]})], about).splitlines()
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in (two[0], two[2])] == [
        ["", "hloom", "hloom, tpu", "tpu ÷ cpu"],
        ["a step", "2.00 ms", "3.00 ms", "1.50"],
    ]
    assert str(about["cores"]) in lines[5] and "(room: all of it)" in lines
    written = json.loads(json.dumps(report.as_json(outcomes, about)))
    assert written["cases"][0]["peers"]["hloom"]["median"] == 2e-6
    assert written["cases"][0]["peers"]["hloom"]["samples"] == [2e-6, 1e-6, 9e-6]


def test_the_numpy_step_descends_and_its_gradient_is_right() -> None:
    """By finite differences in f64: the step that hloom's and JAX's are compared with."""
    params, images, labels = mlp.inputs(5, (6, 4, 3))
    wide = [{name: p.astype(np.float64) for name, p in layer.items()} for layer in params]
    still = [{name: np.zeros_like(p) for name, p in layer.items()} for layer in wide]
    moved = [{name: p.copy() for name, p in layer.items()} for layer in wide]
    velocity = [{name: np.zeros_like(p) for name, p in layer.items()} for layer in wide]
    mlp.numpy_step(moved, velocity, images.astype(np.float64), labels)

    def loss_at(layer: int, name: str, index: tuple[int, ...], by: float) -> float:
        nudged = [{n: p.copy() for n, p in each.items()} for each in wide]
        nudged[layer][name][index] += by
        at_rest = [{n: v.copy() for n, v in each.items()} for each in still]
        return mlp.numpy_step(nudged, at_rest, images.astype(np.float64), labels)

    for layer, name, index in ((0, "w", (2, 1)), (0, "b", (3,)), (1, "w", (0, 2)), (1, "b", (1,))):
        slope = (loss_at(layer, name, index, 1e-6) - loss_at(layer, name, index, -1e-6)) / 2e-6
        np.testing.assert_allclose(velocity[layer][name][index] / -mlp.RATE, slope, rtol=1e-5, atol=1e-8)


@pytest.mark.slow
def test_every_case_runs_and_the_peers_agree(root: Path, tmp_path: Path) -> None:
    """With whatever peers are installed; NumPy and Numba always are."""
    written = tmp_path / "bench.json"
    groups = ["--group", "steady", "--group", "start", "--case", "latency-chain"]
    command = [sys.executable, "-m", "benchmarks", "--quick", *groups, "--json", str(written)]
    ran = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=900)
    assert ran.returncode == 0, ran.stderr
    cases = json.loads(written.read_text())["cases"]
    assert {*steady.CASES} < {case["name"] for case in cases}
    for case in cases:
        assert min(case["peers"]["hloom"]["samples"]) > 0, case["name"]
        assert ran.stdout.count(f"| {case['title']} ") == 1


@pytest.mark.parametrize(
    "name",
    ["columns 100 x 5000: blocks of 4096", "rows 100 x 50000: one block", "distances 1000 x 1000 x 3: tiles of 8 rows"],
)
def test_the_numbers_of_policies_have_variants(name: str) -> None:
    assert schedules.ratio(schedules.VARIANTS[name], 1) > 0
