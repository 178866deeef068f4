"""The program of each process of an MPI run in `test_replicas_processes.py`: python replica_programs.py NAME FOLDER.

Each process prints to files of its own in the folder: a launcher may mix the lines of several processes. Each line of
its output is `device: hash of its results`; threads of one process print the same lines.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
from pathlib import Path

import numpy as np
from hloom.hlo import evaluate_on_devices, parse
from hloom.hlo.collectives import local_numbers, world
from hloom.numba_backend.compiler import NumbaCompiler

import hloom

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.collective_cases import CASES, Collective


def _print(name: str, case: Collective, how: str) -> None:
    module = parse(case.text)
    numbers = local_numbers(module.replica_count, module.num_partitions, None)
    arguments = [[case.arguments()[k]] for k in numbers]
    if how == "evaluator":
        found = evaluate_on_devices(module, arguments)
    else:
        found = NumbaCompiler().compile(module).execute_on_devices(arguments)
    for number, results in zip(numbers, found, strict=True):
        digest = hashlib.sha256(b"".join(r.tobytes() for r in results)).hexdigest()[:16]
        os.write(1, f"{name} {how} {number}: {digest}\n".encode())


def chosen() -> list[Collective]:
    """The cases that four devices or fewer can run, every seventh of them, and all large ones."""
    small = [c for c in CASES if c.replicas * c.partitions <= 4]
    return [c for k, c in enumerate(small) if k % 7 == 0 or int(np.prod(c.dimensions)) > 1000]


_ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] %s(a, b) }\n"


def _sum(operation: str = "add", size: int = 3) -> None:
    """All devices of the world add up an array."""
    count = sum(world().device_counts())
    module = parse(
        f"HloModule m, replica_count={count}\n{_ADD % operation}ENTRY e {{ x = f32[{size}] parameter(0)\n"
        f"ROOT r = f32[{size}] all-reduce(x), replica_groups={{}}, to_apply=add }}"
    )
    ones = [np.ones(size, np.float32)]
    found = NumbaCompiler().compile(module).execute_on_devices([ones for _ in local_numbers(count, 1, None)])
    os.write(1, f"sum {found[0][0][0]}\n".encode())


def main(name: str) -> None:
    """Run one of the programs."""
    hloom.distributed.initialize()
    first = world().process_index == 0
    if name == "cases":
        for k, case in enumerate(chosen()):
            _print(str(k), case, "numba")
            if k % 5 == 0:
                _print(str(k), case, "evaluator")
    elif name == "a part of the devices":
        module = parse("HloModule m, num_partitions=2\nENTRY e { ROOT r = u32[] partition-id() }")
        devices = [3, 1]
        found = evaluate_on_devices(module, [[] for _ in local_numbers(1, 2, devices)], devices)
        os.write(1, f"process {world().process_index} {[r[0].item() for r in found]}\n".encode())
    elif name == "other programs":
        _sum("add" if first else "multiply")
    elif name == "a process that raises":
        if not first:
            raise ValueError("a mistake in the script")
        _sum()
    elif name == "a device that raises":
        _sum()
        if first:
            _sum(size=5)
        else:
            hloom.run_hlo("HloModule m, replica_count=2\nENTRY e { ROOT x = f32[] parameter(0) }", [np.int32(1)])
    elif name == "a process that never comes":
        if not first:
            time.sleep(600)
        _sum()
    elif name == "a process that dies":
        if not first:
            os.kill(os.getpid(), 9)
        _sum()
    else:
        sys.exit(f"there is no program {name!r}")


if __name__ == "__main__":
    for descriptor in (1, 2):
        os.dup2(os.open(Path(sys.argv[2], f"{os.getpid()}.{descriptor}"), os.O_WRONLY | os.O_CREAT), descriptor)
    main(sys.argv[1])
