"""`hloom.distributed.initialize` in the environments that launchers make: what each variable means, what is refused."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hloom.hlo import UnsupportedError
from hloom.hlo.collectives import hosts, launchers
from hloom.numba_backend.runtime import threads

import hloom
from hloom import distributed

SLURM = {
    "SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "node[1-2]", "SLURM_NTASKS": "4", "SLURM_PROCID": "3",
    "SLURM_LOCALID": "1",
}  # fmt: skip
OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3"}
PMI = {"PMI_SIZE": "4", "PMI_RANK": "3"}
PODS = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "2"}

FOUND: dict[str, tuple[dict[str, str], tuple[str, int | None, int] | None]] = {
    "nothing": ({"PATH": "/bin"}, None),
    "Open MPI": (OMPI, ("ompi", 4, 3)),
    "MPICH": ({**PMI, "MPI_LOCALNRANKS": "4"}, ("pmi", 4, 3)),
    "MVAPICH": ({"MV2_COMM_WORLD_SIZE": "4", "MV2_COMM_WORLD_RANK": "3"}, ("mvapich", 4, 3)),
    "srun": (SLURM, ("slurm", 4, 3)),
    "srun with PMIx": ({**SLURM, "PMIX_RANK": "3"}, ("slurm", 4, 3)),
    "srun with PMI-2": ({**SLURM, **PMI}, ("pmi", 4, 3)),
    "mpiexec in a job of Slurm": ({**SLURM, "SLURM_NTASKS": "2", "SLURM_PROCID": "1", **OMPI}, ("ompi", 4, 3)),
    "a batch script of Slurm": ({k: v for k, v in SLURM.items() if k != "SLURM_STEP_NODELIST"}, None),
    "PMIx": ({"PMIX_RANK": "3"}, ("pmix", None, 3)),
    "an indexed job of Kubernetes": (PODS, ("k8s", None, 2)),
    "a pod": ({"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, None),
    "MPI in a pod": ({**PODS, **OMPI}, ("ompi", 4, 3)),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_launcher_of_an_environment(name: str) -> None:
    environment, expected = FOUND[name]
    found = launchers.launched(environment)
    assert (found and (found.launcher.name, found.count, found.index)) == expected


@pytest.mark.parametrize("name", ["srun", "Open MPI"])
def test_as_jax_finds_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clusters = pytest.importorskip("jax._src.clusters")
    environment, expected = FOUND[name]
    assert expected is not None
    for variable, value in {**environment, "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1:34911"}.items():
        if variable.startswith("SLURM") == (name == "srun"):
            monkeypatch.setenv(variable, value)
    theirs = next(c for c in clusters.ClusterEnv._cluster_types if not c.opt_in_only_method and c.is_env_present())
    assert (theirs.name, theirs.get_process_count(), theirs.get_process_id()) == expected


def test_no_numbers_and_no_names() -> None:
    with pytest.raises(ValueError, match="PMI_SIZE must be a number, not 'many'"):
        launchers.launched({"PMI_SIZE": "many", "PMI_RANK": "0"})
    with pytest.raises(ValueError, match="'lsf' is not one of ompi, mvapich, pmi, slurm, pmix, k8s"):
        launchers.launched({}, "lsf")


# ---- initialize, with an MPI that says what a test wants


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """No launcher has started this process."""
    for launcher in launchers.LAUNCHERS:
        for variable in (*launcher.needed, "HLOOM_NUM_THREADS"):
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
    yield monkeypatch
    distributed.shutdown()
    threads.set_num_threads(None)


def mpi(patch: pytest.MonkeyPatch, count: int, index: int, share: int = 1) -> list[str]:
    """What becomes of the worlds that `initialize` makes."""
    ended: list[str] = []
    world = SimpleNamespace(process_count=count, process_index=index, cpu_share=share, end=lambda: ended.append("end"))
    patch.setattr(distributed, "_MpiWorld", lambda: world)
    patch.setattr(distributed, "_set_world", lambda world: None)
    return ended


@pytest.mark.parametrize("name", [name for name, (_, found) in FOUND.items() if found and found[0] != "k8s"])
def test_all_launchers_lead_to_mpi(name: str, clean: pytest.MonkeyPatch) -> None:
    ended = mpi(clean, 4, 3)
    for variable, value in FOUND[name][0].items():
        clean.setenv(variable, value)
    hloom.distributed.initialize(num_processes=4, process_id=3)
    assert hloom.distributed.is_initialized() and not ended


@pytest.mark.parametrize(
    ("environment", "advice"), [(SLURM, "srun --mpi=pmix"), (OMPI, "--mpi-lib-version"), (PMI, "--mpi-lib-version")]
)
def test_mpi_that_does_not_see_the_others(
    environment: dict[str, str], advice: str, clean: pytest.MonkeyPatch
) -> None:
    """Each process would train alone, and believe that it is the only one."""
    ended = mpi(clean, 1, 0)
    for variable, value in environment.items():
        clean.setenv(variable, value)
    with pytest.raises(UnsupportedError, match=f"this is process 3 of 4, but MPI says 0 of 1: .*{advice}"):
        hloom.distributed.initialize()
    assert ended == ["end"] and not hloom.distributed.is_initialized()


REFUSED: dict[str, tuple[dict[str, str], dict[str, Any], type[Exception], str]] = {
    "a pod": (PODS, {}, UnsupportedError, "pod 2 of an indexed job .* MPI operator .* say num_processes=1"),
    "k8s by name": (PODS, {"cluster_detection_method": "k8s"}, UnsupportedError, "MPI operator"),
    "another name": ({}, {"cluster_detection_method": "lsf"}, ValueError, "not one of ompi.*neither mpi4py nor deact"),
    "a name that does not fit": (OMPI, {"cluster_detection_method": "slurm"}, ValueError, "'slurm' has not started"),
    "no number": ({**OMPI, "OMPI_COMM_WORLD_RANK": "x"}, {}, ValueError, "COMM_WORLD_RANK must be a number"),
    "another number": (OMPI, {"num_processes": 3}, ValueError, "num_processes=3, but MPI says 4"),
    "another index": (OMPI, {"process_id": 0}, ValueError, "process_id=0, but MPI says 3"),
    "one task that shall be two": ({**SLURM, "SLURM_NTASKS": "1"}, {"num_processes": 2}, UnsupportedError, "-n 2 pyt"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, clean: pytest.MonkeyPatch) -> None:
    environment, arguments, error, text = REFUSED[name]
    mpi(clean, 4, 3)
    for variable, value in environment.items():
        clean.setenv(variable, value)
    with pytest.raises(error, match=text):
        hloom.distributed.initialize(**arguments)
    assert not hloom.distributed.is_initialized()


@pytest.mark.parametrize(
    ("environment", "arguments"),
    [
        ({**SLURM, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"}, {}),
        (PODS, {"num_processes": 1}),
        (FOUND["a batch script of Slurm"][0], {}),
        (SLURM, {"cluster_detection_method": "deactivate"}),
    ],
)
def test_alone_without_mpi(environment: dict[str, str], arguments: dict[str, Any], clean: pytest.MonkeyPatch) -> None:
    clean.setitem(sys.modules, "mpi4py", None)
    for variable, value in environment.items():
        clean.setenv(variable, value)
    hloom.distributed.initialize(**arguments)
    assert hloom.process_count() == 1


def test_mpi4py_by_name(clean: pytest.MonkeyPatch) -> None:
    mpi(clean, 2, 1)
    hloom.distributed.initialize(cluster_detection_method="mpi4py")
    assert hloom.distributed.is_initialized()


# ---- processes that share CPUs


SHARES: dict[str, tuple[list[tuple[str, list[int]]], list[int]]] = {
    "alone": ([("a", [0, 1, 2])], [3]),
    "bound to their own": ([("a", [0, 1]), ("a", [2, 3])], [2, 2]),
    "not bound": ([("a", list(range(8)))] * 4, [2] * 4),
    "three on seven": ([("a", list(range(7)))] * 3, [2] * 3),
    "three on six": ([("a", list(range(6)))] * 3, [2] * 3),
    "more processes than CPUs": ([("a", [0, 1])] * 5, [1] * 5),
    "two hosts": ([("a", [0, 1]), ("b", [0, 1]), ("b", [0, 1])], [2, 1, 1]),
    "a socket each for two of three": ([("a", [0, 1, 2, 3]), ("a", [4, 5, 6, 7]), ("a", [4, 5, 6, 7])], [4, 2, 2]),
    "CPUs with high numbers": ([("a", [8190, 8191, 9000]), ("a", [5])], [2, 1]),
    "one within the other": ([("a", list(range(8))), ("a", [0, 1])], [7, 1]),
}


@pytest.mark.parametrize("name", SHARES)
def test_shares(name: str) -> None:
    processes, expected = SHARES[name]
    told = np.stack([hosts.description(host, cpus) for host, cpus in processes])
    assert [hosts.fair_share(told, index) for index in range(len(processes))] == expected


@pytest.mark.parametrize(("given", "expected"), [(None, 1), ("2", None)])
def test_the_share_is_the_number_of_threads(
    given: str | None, expected: int | None, clean: pytest.MonkeyPatch
) -> None:
    """Unless HLOOM_NUM_THREADS says another; and until `shutdown`."""
    before = threads.get_num_threads()
    if given is not None:
        clean.setenv("HLOOM_NUM_THREADS", given)
    mpi(clean, 4, 3, share=1)
    for variable, value in OMPI.items():
        clean.setenv(variable, value)
    hloom.distributed.initialize()
    assert threads.get_num_threads() == (expected or min(before, 2))
    hloom.distributed.shutdown()
    clean.delenv("HLOOM_NUM_THREADS", raising=False)
    assert threads.get_num_threads() == threads.available_cpus() <= (os.cpu_count() or 1)
