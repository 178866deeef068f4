#!/usr/bin/env python3
"""Try many learning rates and penalties for a classifier of digits, on the workers of a Dask cluster.

    python examples/clusters/search_dask.py                                    # workers on this machine
    python examples/clusters/search_dask.py --scheduler tcp://host:8786        # workers that run already

A task trains the models of a few settings at once, by `vmap` within one jitted function. Each worker compiles the
function once, or takes its kernels from the store. Tasks need nothing of each other: workers may come, go, and be of
different speed. Data go to each worker once (`scatter`), as arrays of hloom's; settings and results are arrays, too.
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import hloom
import hloom.numpy as jnp


def accuracy(setting: Any, random: Any, data: dict[str, Any]) -> Any:
    """Train a linear classifier by 200 steps, with setting = (log10 of the learning rate, log10 of the penalty); the
    share of the test images that it then reads rightly."""
    rate, penalty = 10 ** setting[0], 10 ** setting[1]

    def loss(w: Any) -> Any:
        scores = hloom.nn.log_softmax(data["train"] @ w)
        return -jnp.mean(jnp.take_along_axis(scores, data["train labels"][:, None], 1)) + penalty * jnp.sum(w * w)

    def step(w: Any, _: Any) -> Any:
        return w - rate * hloom.grad(loss)(w), None

    w = 0.01 * hloom.random.normal(random, (data["train"].shape[1], 10))
    w, _ = hloom.lax.scan(step, w, length=200)
    return jnp.mean(jnp.argmax(data["test"] @ w, axis=1) == data["test labels"])


@hloom.jit
def accuracies(settings: Any, random: Any, data: dict[str, Any]) -> Any:
    """`accuracy` of several settings, f32[n, 2]: f32[n]."""
    return hloom.vmap(accuracy, in_axes=(0, None, None))(settings, random, data)


def load_data() -> dict[str, Any]:
    """scikit-learn's digits, cut in two."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    images, labels = np.float32(images[order] / 16), np.int32(labels[order])
    found = {"train": images[:1200], "train labels": labels[:1200], "test": images[1200:], "test labels": labels[1200:]}
    return hloom.tree.map(jnp.asarray, found)


def local_cluster(workers: int, threads: int) -> LocalCluster:
    """Processes that run `threads` tasks at a time each. All tasks of a process share one pool of threads. Its size is
    the worker's share of this machine, so that all workers together have no more threads than there are CPUs."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    share = {"HLOOM_NUM_THREADS": str(max(1, cpus // workers))}
    return LocalCluster(n_workers=workers, threads_per_worker=threads, env=share, dashboard_address=None)


def search(client: Client, settings: Any, chunk: int) -> Any:
    """The accuracy of each setting, f32[n]: a task for each `chunk` of them."""
    data = client.scatter(load_data(), broadcast=True)
    chunks = [settings[start : start + chunk] for start in range(0, len(settings), chunk)]
    tasks = client.map(accuracies, chunks, random=hloom.random.key(0), data=data)
    return jnp.concatenate(client.gather(tasks))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--scheduler", help="the address of a cluster's scheduler")
    parser.add_argument("--workers", type=int, default=2, help="without --scheduler: so many processes (default: 2)")
    parser.add_argument("--threads", type=int, default=1, help="tasks that a worker runs at a time (default: 1)")
    parser.add_argument("--points", type=int, default=6, help="values of each of the two settings (default: 6)")
    parser.add_argument("--chunk", type=int, default=4, help="settings of a task (default: 4)")
    options = parser.parse_args()
    rates, penalties = jnp.linspace(-2, 1, options.points), jnp.linspace(-6, -1, options.points)
    settings = jnp.stack([v.ravel() for v in jnp.meshgrid(rates, penalties)], axis=1)
    with Client(options.scheduler or local_cluster(options.workers, options.threads)) as client:
        began = time.perf_counter()
        found = search(client, settings, options.chunk)
        seconds = time.perf_counter() - began
        best = int(jnp.argmax(found))
        rate, penalty = settings[best].tolist()
        print(f"{len(settings)} settings on {len(client.scheduler_info()['workers'])} workers in {seconds:.1f} s")
        print(f"the best: learning rate {10**rate:.3g}, penalty {10**penalty:.3g}, accuracy {float(found[best]):.2%}")


if __name__ == "__main__":
    main()
