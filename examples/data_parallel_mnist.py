#!/usr/bin/env python3
"""Train a network to read handwritten digits on several devices: each takes its part of every batch.

    python examples/data_parallel_mnist.py                                  # one device
    HLOOM_NUM_DEVICES=2 python examples/data_parallel_mnist.py              # two devices in this process: threads
    examples/with_mpi.sh -n 2 python examples/data_parallel_mnist.py        # two processes that MPI joins

The program is the same, and so is the loss, up to the order in which sums are taken. As in JAX, it says how arrays are
divided and nothing else: parameters are on all devices, images are divided among them. `--how shard_map` writes out
what each device does instead; `--how jit` leaves that to the partitioner.
"""

from __future__ import annotations

import argparse
import math
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hloom
import mnist_data
from hloom import lax
from hloom.sharding import AxisType, Mesh, NamedSharding
from hloom.sharding import PartitionSpec as P
from train_mnist import init_params, loss, predict

BATCH = P("batch")


def train_step(params: Any, images: Any, labels: Any, rate: float) -> Any:
    """One step of gradient descent on whole arrays, wherever their parts are."""
    value, gradient = hloom.value_and_grad(loss)(params, images, labels)
    return hloom.tree.map(lambda p, g: p - rate * g, params, gradient), value


def train_step_of_each(params: Any, images: Any, labels: Any, rate: float) -> Any:
    """The same, as each device does it on its part of the batch."""

    def mean_loss(params: Any) -> Any:
        return lax.pmean(loss(params, images, labels), "batch")

    value, gradient = hloom.value_and_grad(mean_loss)(params)
    return hloom.tree.map(lambda p, g: p - rate * g, params, gradient), value


def compiled_step(how: str, mesh: Mesh) -> Any:
    """The training step on the devices of the mesh."""
    if how == "jit":
        whole, parts = NamedSharding(mesh, P()), NamedSharding(mesh, BATCH)
        return hloom.jit(train_step, in_shardings=(whole, parts, parts, None), out_shardings=whole)
    mapped = hloom.shard_map(
        train_step_of_each, mesh=mesh, in_specs=(P(), BATCH, BATCH, P()), out_specs=(P(), P())
    )
    return hloom.jit(mapped)


def put_batch(mesh: Mesh, array: np.ndarray[Any, Any]) -> Any:
    """The batch on the devices of all processes: each process gives its own devices their parts."""
    return hloom.make_array_from_callback(array.shape, NamedSharding(mesh, BATCH), lambda index: array[index])


def train(digits: mnist_data.Digits, options: argparse.Namespace, mesh: Mesh) -> tuple[Any, list[float]]:
    """All steps; the parameters and each step's loss."""
    sizes = [math.prod(digits.image_shape), *options.hidden, 10]
    params = hloom.device_put(init_params(hloom.random.key(options.seed), sizes), NamedSharding(mesh, P()))
    step = compiled_step(options.how, mesh)
    shuffle = np.random.default_rng(options.seed)  # the same in all processes
    losses = []
    for _ in range(options.steps):
        chosen = shuffle.choice(len(digits.train_images), options.batch_size, replace=False)
        images, labels = digits.train_images[chosen], digits.train_labels[chosen]
        params, value = step(params, put_batch(mesh, images), put_batch(mesh, labels), options.learning_rate)
        losses.append(float(value))
    return params, losses


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").split("\n\n")[0], formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--data", type=Path, metavar="DIR", help="folder with MNIST's IDX files, gzipped or not")
    source.add_argument("--digits", action="store_true", help="use scikit-learn's 1,797 digits; no network")
    parser.add_argument("--how", choices=("jit", "shard_map"), default="jit", help="who divides the program")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--hidden", type=int, nargs="*", default=[512, 512], help="sizes of the hidden layers")
    parser.add_argument("--learning-rate", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--losses", action="store_true", help="print every step's loss, exactly")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    hloom.distributed.initialize()
    say = partial(print, flush=True) if hloom.process_index() == 0 else lambda *_: None
    count = hloom.device_count()
    if options.batch_size % count:
        raise SystemExit(f"a batch of {options.batch_size} images cannot be divided among {count} devices")
    digits = mnist_data.load(options.data, bundled=options.digits)
    mesh = hloom.make_mesh((count,), ("batch",), axis_types=(AxisType.Auto,))
    say(f"{digits.name}: {len(digits.train_images):,} images; {count} devices, {hloom.process_count()} processes")
    began = time.perf_counter()
    params, losses = train(digits, options, mesh)
    seconds = time.perf_counter() - began
    if options.losses:
        say("\n".join([value.hex() for value in losses]))
    right = float(np.mean(np.asarray(predict(params, digits.test_images)) == digits.test_labels))
    say(f"{options.steps} steps in {seconds:.1f} s   loss {losses[-1]:.6f}   test accuracy {right:.2%}")
    hloom.distributed.shutdown()


if __name__ == "__main__":
    main()
