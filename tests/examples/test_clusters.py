"""The examples for clusters, with workers on this machine: MPI, Slurm's batch script, Dask."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hloom
import hloom.numpy as jnp
import mnist_data

needs_mpi = pytest.mark.skipif(
    shutil.which("mpiexec") is None or importlib.util.find_spec("mpi4py") is None, reason="needs mpiexec and mpi4py"
)
needs_dask = pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs Dask's distributed")
SHORT = ("--digits", "--steps", "6", "--batch-size", "32", "--hidden", "16", "--losses")


def run(root: Path, *command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "PYTHONPATH": str(root), **variables}
    return subprocess.run(command, capture_output=True, text=True, timeout=200, env=given, cwd=root, check=False)


@pytest.fixture
def train_mpi(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_mpi", root / "examples" / "clusters" / "train_mpi.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Thread:
    """A communicator of MPI's interface, between threads of this process."""

    def __init__(self, rank: int, size: int, sent: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size, self._sent, self._barrier = rank, size, sent, barrier

    def Allreduce(self, send: Any, receive: Any) -> None:
        assert not send.flags.owndata and not send.flags.writeable, "a copy was sent"
        self._sent[self.rank] = send
        self._barrier.wait(60)
        receive[...] = sum(self._sent)
        self._barrier.wait(60)


def test_processes_train_as_one(train_mpi: ModuleType) -> None:
    """Any number of processes finds the parameters that one finds, up to the order of sums."""
    digits = mnist_data.load(None, bundled=True)
    options = argparse.Namespace(hidden=[16], seed=1, steps=8, batch_size=24, learning_rate=0.1)
    alone, losses, _ = train_mpi.train(train_mpi.Alone(), digits, options)
    assert losses[-1] < losses[0]
    sent: list[Any] = [None] * 3
    barrier = threading.Barrier(3)
    with ThreadPoolExecutor(3) as pool:
        found = list(pool.map(lambda k: train_mpi.train(Thread(k, 3, sent, barrier), digits, options), range(3)))
    for params, theirs, _ in found:
        assert theirs == pytest.approx(losses, rel=1e-5)
        for mine, other in zip(hloom.tree.leaves(params), hloom.tree.leaves(alone), strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-6)


def numbers(printed: str) -> list[float]:
    return [float(line) for line in printed.splitlines() if re.fullmatch(r"[\d.]+", line)]


@needs_mpi
def test_mpiexec(root: Path) -> None:
    script = str(root / "examples" / "clusters" / "train_mpi.py")
    alone = run(root, sys.executable, script, *SHORT)
    version = subprocess.run(["mpiexec", "--version"], capture_output=True, text=True, check=False).stdout
    more = ["--oversubscribe", "--allow-run-as-root"] if "Open" in version else []
    two = run(root, "mpiexec", *more, "-n", "2", sys.executable, script, *SHORT)
    assert alone.returncode == two.returncode == 0, alone.stderr + two.stderr
    assert "2 processes: 6 steps" in two.stdout
    assert numbers(two.stdout) == pytest.approx(numbers(alone.stdout), rel=1e-5) and len(numbers(two.stdout)) == 6


SRUN = """#!/bin/sh
echo "srun $1 $2 threads $HLOOM_NUM_THREADS store $HLOOM_CACHE_DIR"
shift 2
exec "$@"
"""


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_the_batch_script(root: Path, tmp_path: Path) -> None:
    """With a stand-in for srun, which starts one process. (It ran under Slurm 22.05, too.)"""
    (tmp_path / "srun").write_text(SRUN)
    (tmp_path / "srun").chmod(0o755)
    ran = run(
        root, "bash", "examples/clusters/train.sbatch", *SHORT, PATH=f"{tmp_path}:{os.environ['PATH']}",
        PYTHON=sys.executable, SLURM_CPUS_PER_TASK="2", MPI="pmi2", HLOOM_CACHE_DIR=str(tmp_path / "store"),
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    first, *_, last = ran.stdout.splitlines()
    assert first == f"srun --mpi=pmi2 --cpus-per-task=2 threads 2 store {tmp_path / 'store'}"
    assert last.startswith("1 processes: 6 steps") and len(numbers(ran.stdout)) == 6
    assert list((tmp_path / "store").glob("*.o"))


@needs_dask
@pytest.mark.slow
@pytest.mark.parametrize("options", [("--workers", "2"), ("--workers", "1", "--threads", "2")])
def test_dask(options: tuple[str, ...], root: Path) -> None:
    script = str(root / "examples" / "clusters" / "search_dask.py")
    ran = run(root, sys.executable, script, *options, "--points", "3", "--chunk", "2")
    assert ran.returncode == 0, ran.stderr
    assert f"9 settings on {options[1]} workers" in ran.stdout
    found = re.search(r"learning rate (\S+), penalty (\S+), accuracy (\S+)%", ran.stdout)
    assert found is not None and float(found[3]) > 92
    assert (found[1], found[2]) == ("10", "0.000316") or float(found[3]) > 95


ON_WORKERS = '''
"""What a script sends to Dask's workers and gets back."""
import json
from functools import partial
import numpy as np
import hloom, hloom.numpy as jnp
from distributed import Client, LocalCluster

@hloom.jit
def cube(x):
    return x * x * x

@partial(hloom.jit, static_argnames="n")
def power(x, n):
    return x**n

def threads(_):
    from hloom.numba_backend.runtime.threads import get_num_threads
    return get_num_threads()

def run_exported(data, x):
    return hloom.export.deserialize(data).call(x)

if __name__ == "__main__":
    x, key = jnp.arange(4.0), hloom.random.key(5)
    cluster = LocalCluster(n_workers=2, threads_per_worker=2, env={"HLOOM_NUM_THREADS": "1"}, dashboard_address=None)
    with cluster, Client(cluster) as client:
        def there(function, *args, **options):
            return client.submit(function, *args, pure=False, **options).result(timeout=120)
        found = {
            "jit": there(cube, x), "static": there(power, x, n=2),
            "grad": there(hloom.grad(lambda v: cube(v).sum()), x),
            "lambda": there(hloom.jit(lambda v: v + x), x), "random": there(hloom.random.normal, key, (2,)),
            "tree": there(hloom.tree.map, cube, {"a": x, "b": [x + 1]})["b"][0],
            "bfloat16": there(cube, x.astype("bfloat16")).astype("float32"),
            "exported": there(run_exported, bytes(hloom.export.export(cube)(x).serialize()), x),
            "lowered": there(lambda low: low.compile()(x), cube.lower(x)),
            "many": jnp.stack(client.gather(client.map(cube, [x + k for k in range(20)]))).sum(),
        }
        assert all(isinstance(value, hloom.Array) for value in found.values())
        print(json.dumps({name: value.tolist() for name, value in found.items()}))
        print(json.dumps(client.gather(client.map(threads, range(8), pure=False))))
'''


@needs_dask
@pytest.mark.slow
def test_what_goes_to_dasks_workers(root: Path, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(ON_WORKERS)
    ran = run(root, sys.executable, str(tmp_path / "script.py"))
    assert ran.returncode == 0, ran.stderr
    found, threads = map(json.loads, ran.stdout.splitlines())
    normal = hloom.random.normal(hloom.random.key(5), (2,)).tolist()
    cubes = [0, 1, 8, 27]
    assert found == {
        "jit": cubes, "static": [0, 1, 4, 9], "grad": [0, 3, 12, 27], "lambda": [0, 2, 4, 6], "random": normal,
        "tree": [1, 8, 27, 64], "bfloat16": cubes, "exported": cubes, "lowered": cubes,
        "many": float(jnp.stack([(jnp.arange(4.0) + k) ** 3 for k in range(20)]).sum()),
    }  # fmt: skip
    assert threads == [1] * 8
