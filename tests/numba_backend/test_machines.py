"""The same results on other machines: fewer instruction sets, more threads than cores, one thread.

Processes stand for the machines: LLVM makes code for a named CPU, and what asks for instruction sets is told its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import hloom
from support.machine_programs import CASES, results


@dataclass(frozen=True)
class Machine:
    threads: int = 2
    cpu: tuple[str, str, str] | None = None
    """LLVM's name, LLVM's features, and the words of /proc/cpuinfo; this machine's if None."""


MACHINES = {
    "more threads than cores": Machine(threads=4 * (os.cpu_count() or 1) + 1),
    "one thread": Machine(threads=1),
    "AVX-512": Machine(
        cpu=("x86-64-v4", "", "GenuineIntel sse4_2 avx avx2 fma f16c bmi2 avx512f avx512bw avx512cd avx512dq avx512vl")
    ),
    "AVX2": Machine(cpu=("x86-64-v3", "", "GenuineIntel sse4_2 avx avx2 fma f16c bmi2")),
    "AVX2 without FMA": Machine(cpu=("x86-64-v3", "-fma", "GenuineIntel sse4_2 avx avx2 f16c bmi2")),
    "AVX": Machine(cpu=("x86-64-v3", "-fma,-avx2", "GenuineIntel sse4_2 avx f16c bmi2")),
    "SSE2": Machine(cpu=("x86-64", "", "GenuineIntel sse2")),
}


SLOW = ("AVX-512", "AVX2 without FMA", "AVX", "SSE2")


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in MACHINES]
)
def test_results_are_those_of_the_evaluator(name: str, tmp_path: Path, _evaluated: dict[str, list[np.ndarray]]) -> None:
    machine = MACHINES[name]
    if machine.cpu is not None and (sys.platform != "linux" or os.uname().machine != "x86_64"):
        pytest.skip("code for x86-64 does not run here")
    if machine.cpu is not None and not set(machine.cpu[2].split()[1:]) <= _instruction_sets():
        pytest.skip("this processor lacks an instruction set")
    file = tmp_path / "results.npz"
    settings = {"HLOOM_NUM_THREADS": str(machine.threads), "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "support.machine_programs", str(file), *(machine.cpu or ())],
        env=os.environ | settings, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    with np.load(file) as found:
        for case, expected in _evaluated.items():
            for k, array in enumerate(expected):
                _compare(case, found[f"{case}/{k}"], array, CASES[case].tolerance)


def _instruction_sets() -> set[str]:
    """The words in which the system names what this processor has."""
    return set(Path("/proc/cpuinfo").read_text().partition("\n\n")[0].split())


@pytest.fixture(scope="module")
def _evaluated() -> dict[str, list[np.ndarray]]:
    before = hloom.config.hloom_backend
    hloom.config.update("hloom_backend", "evaluator")
    try:
        return {name: results(case) for name, case in CASES.items()}
    finally:
        hloom.config.update("hloom_backend", before)


def _compare(name: str, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    assert found.dtype == expected.dtype and found.shape == expected.shape, name
    if tolerance == 0:
        assert found.tobytes() == expected.tobytes(), name
    else:
        bound = tolerance * max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=bound, err_msg=name)
