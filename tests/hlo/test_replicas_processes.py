"""Devices in several processes, which mpiexec starts: the same bits as threads of one process, and errors in each."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hloom.hlo import UnsupportedError

import hloom

SCRIPT = Path(__file__).parents[1] / "support" / "replica_programs.py"

needs_mpi = pytest.mark.skipif(
    shutil.which("mpiexec") is None or importlib.util.find_spec("mpi4py") is None,
    reason="needs mpiexec and mpi4py: apt-get install openmpi-bin libopenmpi-dev; pip install mpi4py",
)


def _run(processes: int, devices: int, name: str, timeout: float = 30) -> subprocess.CompletedProcess[str]:
    """The program in so many processes of so many devices; one without mpiexec."""
    launcher = ["mpiexec", "-n", str(processes), "--oversubscribe", "--allow-run-as-root"] if processes > 1 else []
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ, "HLOOM_NUM_DEVICES": str(devices), "HLOOM_COLLECTIVE_TIMEOUT": str(timeout),
        "PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [*launcher, sys.executable, str(SCRIPT), name, folder], capture_output=True, text=True, timeout=120,
            env=environment, check=False,
        )  # fmt: skip
        found.stdout += "".join(path.read_text() for path in Path(folder).glob("*.1"))
        found.stderr += "".join(path.read_text() for path in Path(folder).glob("*.2"))
    return found


def _lines(found: subprocess.CompletedProcess[str]) -> list[str]:
    assert found.returncode == 0, found.stderr
    return sorted(found.stdout.splitlines())


@needs_mpi
@pytest.mark.parametrize(("processes", "devices"), [(2, 2), pytest.param(4, 1, marks=pytest.mark.slow)])
def test_processes_compute_the_bits_of_threads(processes: int, devices: int) -> None:
    expected = _lines(_run(1, 4, "cases"))
    assert len(expected) > 100
    assert _lines(_run(processes, devices, "cases")) == expected


@needs_mpi
@pytest.mark.slow
def test_a_part_of_the_devices() -> None:
    """Partition 0 runs on device 3, partition 1 on device 1."""
    found = _lines(_run(2, 2, "a part of the devices"))
    assert found == ["process 0 [1]", "process 1 [0]"]


@needs_mpi
def test_processes_that_run_other_programs() -> None:
    found = _run(2, 1, "other programs")
    assert found.returncode != 0 and "sum" not in found.stdout
    assert "processes run different programs: device" in found.stderr
    assert found.stderr.count("CollectiveError: ") >= 2  # in both


@needs_mpi
@pytest.mark.slow
def test_a_process_that_raises() -> None:
    found = _run(2, 1, "a process that raises")
    assert found.returncode != 0
    assert "ValueError: a mistake in the script" in found.stderr
    assert "device 0 waits for device 1 (process 1), but process 1 has ended" in found.stderr


@needs_mpi
@pytest.mark.slow
def test_a_device_that_raises() -> None:
    """The other process is told before its timeout."""
    found = _run(2, 1, "a device that raises")
    assert found.returncode != 0
    assert "must be f32[]" in found.stderr and "CollectiveError" in found.stderr


@needs_mpi
@pytest.mark.slow
def test_a_process_that_never_comes() -> None:
    found = _run(2, 1, "a process that never comes", timeout=2)
    assert found.returncode != 0
    assert "is not complete after 2 seconds; device 0 waits for device 1 (process 1)" in found.stderr


@needs_mpi
@pytest.mark.slow
def test_a_process_that_dies() -> None:
    """mpiexec ends the others, and says which one died."""
    found = _run(2, 1, "a process that dies")
    assert found.returncode != 0 and "signal 9" in found.stderr


@needs_mpi
@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    """Two processes store what two threads print."""
    path = tmp_path / "numbers.hlo"
    path.write_text("HloModule m, replica_count=2\nENTRY e { ROOT r = u32[] replica-id() }")
    command = [sys.executable, "-m", "hloom", "run", str(path)]
    launcher = ["mpiexec", "-n", "2", "--oversubscribe", "--allow-run-as-root"]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH", "")]))}
    output = [f"{tmp_path}/results/"]
    subprocess.run([*launcher, *command, "--mpi", "-o", *output], check=True, timeout=120, env=environment)
    found = sorted((tmp_path / "results").iterdir())
    assert [f.name for f in found] == ["device0.result0.npy", "device1.result0.npy"]
    assert [int(np.load(f)) for f in found] == [0, 1]


def test_without_mpi4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", None)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    with pytest.raises(UnsupportedError, match=r"pip install 'hloom\[mpi\]'"):
        hloom.distributed.initialize()
    assert not hloom.distributed.is_initialized()


def test_several_processes_that_mpiexec_has_not_started() -> None:
    with pytest.raises(NotImplementedError, match="mpiexec -n 4 python"):
        hloom.distributed.initialize(num_processes=4, process_id=0)
