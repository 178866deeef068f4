"""Find what has started this process by its environment variables: MPI's launchers, Slurm, Kubernetes.

They say how many processes there are and which one this is, before MPI is loaded; so a process knows whether it needs
MPI, and whether MPI has found the others. The names are those of JAX's `cluster_detection_method`, and further ones.

Sources: the manual pages mpirun(1) of Open MPI and srun(1) of Slurm (output environment variables); PMI-1 and PMI-2, as
MPICH's Hydra and Slurm's pmi2 plugin set them; the PMIx standard 4, section 10; Kubernetes, "Indexed Job".
"""

from __future__ import annotations

from collections.abc import Mapping

from ..support.records import dataclass


@dataclass(frozen=True, slots=True)
class Launcher:
    """A program that starts processes, and the variables that it sets for each."""

    name: str
    needed: tuple[str, ...]
    """If all of these are there, it has started this process."""
    count: str | None
    """The variable with the number of processes; None if there is none."""
    index: str
    """The variable with the number of this process."""
    advice: str
    """The advice for a process whose MPI does not see the others."""


_SAME = "mpi4py must use the MPI library of this launcher; `python -m mpi4py --mpi-lib-version` names the one it uses"

LAUNCHERS = (
    Launcher("ompi", ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
             _SAME),
    Launcher("mvapich", ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"), "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK",
             _SAME),
    Launcher("pmi", ("PMI_SIZE", "PMI_RANK"), "PMI_SIZE", "PMI_RANK", _SAME),
    Launcher("slurm", ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
             "SLURM_NTASKS", "SLURM_PROCID",
             "srun must speak to the MPI library that mpi4py is made for: `srun --mpi=pmix` for Open MPI, "
             "`srun --mpi=pmi2` for MPICH and Intel MPI; `srun --mpi=list` names what there is"),
    Launcher("pmix", ("PMIX_RANK",), None, "PMIX_RANK", _SAME),
    Launcher("k8s", ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"), None, "JOB_COMPLETION_INDEX",
             "let MPI's launcher start the pods, as Kubeflow's MPI operator does"),
)  # fmt: skip
"""In this order: within a job of Slurm, mpiexec is itself started by srun, and its processes have both kinds."""


@dataclass(frozen=True, slots=True)
class Launched:
    """How this process was started."""

    launcher: Launcher
    count: int | None
    """None if the environment does not say how many processes there are."""
    index: int


def launched(environment: Mapping[str, str], name: str | None = None) -> Launched | None:
    """The launcher that has started this process, by its environment; None if it was none of them.

    name: only this one. ValueError for a name that is unknown, and for a variable that holds no number.

    >>> launched({"PMI_SIZE": "4", "PMI_RANK": "3"}).index
    3
    >>> launched({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4"}) is None  # in a batch script, which srun has not started
    True
    """
    chosen = [launcher for launcher in LAUNCHERS if name in (None, launcher.name)]
    if not chosen:
        raise ValueError(f"{name!r} is not one of {', '.join(launcher.name for launcher in LAUNCHERS)}")
    for launcher in chosen:
        if all(variable in environment for variable in launcher.needed):
            count = None if launcher.count is None else _number(environment, launcher.count)
            return Launched(launcher, count, _number(environment, launcher.index))
    return None


def _number(environment: Mapping[str, str], variable: str) -> int:
    text = environment[variable]
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError(f"{variable} must be a number, not {text[:40]!r}")
    return int(text)
