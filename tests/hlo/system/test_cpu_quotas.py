"""How many CPUs a process may use: affinity, as launchers set it, and the quotas of control groups of both versions."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hloom.hlo.system import interface, linux

from support.runtime_kernels import python

V1 = {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}
CASES: dict[str, tuple[str, dict[str, str], list[float]]] = {
    "no groups": ("", {}, []),
    "the root of a container": ("0::/\n", {"cpu.max": "150000 100000\n"}, [1.5]),
    "no limit": ("0::/\n", {"cpu.max": "max 100000\n"}, []),
    "a step of a batch job, whose job is limited": (
        "0::/slurm/job_7/step_0\n",
        {"slurm/cpu.max": "max 100000", "slurm/job_7/cpu.max": "400000 100000", "slurm/job_7/step_0/cpu.max": "max 1"},
        [4],
    ),
    "a group whose folder the container does not show": ("0::/docker/x\n", {"cpu.max": "200000 100000\n"}, [2]),
    "both limited": ("0::/a\n", {"cpu.max": "300000 100000", "a/cpu.max": "50000 100000"}, [0.5, 3]),
    "version 1": (
        "3:cpuset:/\n2:cpu,cpuacct:/user\n1:name=systemd:/x\n",
        {**V1, "cpu/user/cpu.cfs_quota_us": "250000\n", "cpu/user/cpu.cfs_period_us": "100000\n"},
        [2.5],
    ),
    "version 1 without a limit": ("1:cpu:/\n0::/\n", V1, []),
    "nonsense": ("0::/\n", {"cpu.max": "many\n"}, []),
}


@pytest.mark.parametrize("name", CASES)
def test_quotas(name: str, tmp_path: Path) -> None:
    groups, files, expected = CASES[name]
    (tmp_path / "groups").write_text(groups)
    for file, text in files.items():
        path = tmp_path / "mounted" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert list(linux.cpu_quotas(str(tmp_path / "groups"), str(tmp_path / "mounted"))) == expected


@pytest.mark.parametrize(("quotas", "expected"), [((), 8), ((2.5,), 3), ((0.1,), 1), ((3, 20), 3), ((99,), 8)])
def test_the_least_counts(quotas: tuple[float, ...], expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linux.Linux, "_quotas", lambda self: quotas)
    monkeypatch.setattr(linux.Linux, "scheduled_on", lambda self: range(8))
    assert linux.Linux().available_cpus() == expected


COUNT = """
import os
from hloom.numba_backend.runtime import threads
from hloom.hlo.system import system
print(threads.get_num_threads(), *system.scheduled_on())
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_a_process_that_is_bound_has_as_many_threads() -> None:
    """As `srun --cpu-bind` and `mpiexec --bind-to` start it: threads and CPUs are those of the mask."""
    before = os.sched_getaffinity(0)
    last = max(before)
    try:
        os.sched_setaffinity(0, {last})
        assert python(COUNT).split() == ["1", str(last)]
    finally:
        os.sched_setaffinity(0, before)
    count, *numbers = python(COUNT, environment={"HLOOM_NUM_THREADS": "1"}).split()
    assert count == "1" and list(map(int, numbers)) == sorted(before)


def test_every_system_says_on_which_cpus() -> None:
    found = interface.System.scheduled_on(linux.Linux())
    assert len(found) == (os.cpu_count() or 1) and math.isfinite(sum(found))
