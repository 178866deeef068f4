#!/usr/bin/env python3
"""Train a network to read digits in several processes: each has a part of the images, mpi4py adds up their gradients.

    python examples/clusters/train_mpi.py                               # one process
    mpiexec -n 4 python examples/clusters/train_mpi.py                  # MPI's launcher
    srun -n 4 --mpi=pmix python examples/clusters/train_mpi.py          # Slurm's; --mpi=pmi2 for MPICH
    sbatch examples/clusters/train.sbatch                               # the same as a batch job

Each process jits for itself and knows nothing of the others. Between the two halves of a step is one call of MPI, which
reads the gradient where it is and writes the sum to an array that the next program reads where it is. So this works
with every communicator, and a process may do other things in between. `hloom.distributed` joins processes so that one
jitted program runs on all of them: see examples/data_parallel_mnist.py, and docs/scaling.md for when to take which.

A process has as many threads as it may use CPUs, so the launcher decides by binding: `mpiexec --bind-to core`,
`srun --cpus-per-task`. Where it does not bind, set HLOOM_NUM_THREADS.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import hloom.numpy as jnp
from hloom.flatten_util import ravel_pytree

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import mnist_data
from train_mnist import init_params, loss, predict


class Alone:
    """The part of a communicator that is used here, for a process without MPI."""

    rank, size = 0, 1

    def Allreduce(self, send: Any, receive: Any) -> None:
        receive[...] = send


def communicator() -> Any:
    """MPI's world if mpi4py is there."""
    try:
        from mpi4py import MPI
    except ImportError:
        return Alone()
    return MPI.COMM_WORLD


def train(comm: Any, digits: mnist_data.Digits, options: argparse.Namespace) -> tuple[Any, list[float], float]:
    """All steps; the parameters, the losses, and the seconds that were spent in MPI."""
    sizes = [math.prod(digits.image_shape), *options.hidden, 10]
    flat, restore = ravel_pytree(init_params(hloom.random.key(options.seed), sizes))  # the same in all processes

    @hloom.jit
    def gradient(flat: Any, images: Any, labels: Any) -> Any:
        """The gradient of this process's images, and after it their loss: one vector to send."""
        value, found = hloom.value_and_grad(lambda flat: loss(restore(flat), images, labels))(flat)
        return jnp.append(found, value)

    @hloom.jit
    def update(flat: Any, total: Any) -> Any:
        return flat - options.learning_rate / comm.size * total[:-1]

    shuffle = np.random.default_rng(options.seed)  # the same in all processes: the batches are, too
    total = np.empty(flat.size + 1, np.float32)
    losses, waited = [], 0.0
    for _ in range(options.steps):
        batch = shuffle.choice(len(digits.train_images), options.batch_size, replace=False)
        mine = batch[comm.rank :: comm.size]
        part = gradient(flat, digits.train_images[mine], digits.train_labels[mine])
        sent = np.asarray(part)  # the array's memory, and it waits until the program has run
        began = time.perf_counter()
        comm.Allreduce(sent, total)
        waited += time.perf_counter() - began
        flat = update(flat, total)
        losses.append(float(total[-1]) / comm.size)
        flat.block_until_ready()  # `total` is written again in the next step
    return restore(flat), losses, waited


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--digits", action="store_true", help="use scikit-learn's 1,797 digits; no network")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=128, help="images of all processes together")
    parser.add_argument("--hidden", type=int, nargs="*", default=[512, 512], help="sizes of the hidden layers")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", action="store_true", help="print every step's loss")
    return parser.parse_args()


def main() -> None:
    options, comm = parse_options(), communicator()
    if options.batch_size % comm.size:
        raise SystemExit(f"a batch of {options.batch_size} images cannot be divided among {comm.size} processes")
    digits = mnist_data.load(None, bundled=options.digits)
    began = time.perf_counter()
    params, losses, waited = train(comm, digits, options)
    seconds = time.perf_counter() - began
    if comm.rank == 0:
        if options.losses:
            print("\n".join(map(str, losses)))
        right = float(np.mean(np.asarray(predict(params, digits.test_images)) == digits.test_labels))
        print(
            f"{comm.size} processes: {options.steps} steps in {seconds:.1f} s, {waited:.1f} s of them in Allreduce   "
            f"loss {losses[-1]:.6f}   test accuracy {right:.2%}"
        )


if __name__ == "__main__":
    main()
