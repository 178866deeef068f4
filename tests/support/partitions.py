"""Random shardings for any module, and the check that its partitioned program computes the same."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
from hloom.hlo.evaluator import evaluate
from hloom.hlo.ir import HloModule
from hloom.hlo.passes.partition import Partitioned, partition
from hloom.hlo.shape import Shape
from hloom.hlo.sharding import HloSharding
from hloom.hlo.verifier import verify

from support.lockstep import cut, put_together, run_on_devices


def axes_for(leaves: Sequence[Shape], rng: random.Random, most: int = 12) -> list[int]:
    """Sizes of a mesh's axes that divide dimensions of the arrays, if any does."""
    factors = {p for leaf in leaves for size in leaf.dimensions for p in (2, 3, 5, 7, 23, 37) if size and size % p == 0}
    if not factors:
        return [2]
    found = [rng.choice(sorted(factors))]
    while rng.random() < 0.6:
        more = rng.choice([*sorted(factors), 2])
        if math.prod(found) * more > most:
            break
        found.append(more)
    return found


def random_sharding(leaf: Shape, axes: Sequence[int], rng: random.Random, order: Sequence[int]) -> HloSharding:
    """One that divides the array: each axis cuts a dimension or none."""
    numbers = np.asarray(order).reshape(axes)
    cut_by: list[list[int]] = [[] for _ in leaf.dimensions]
    rest = list(leaf.dimensions)
    for a in rng.sample(range(len(axes)), len(axes)):
        fitting = [d for d, size in enumerate(rest) if size % axes[a] == 0 and size]
        if fitting and rng.random() < 0.75:
            d = rng.choice(fitting)
            cut_by[d].append(a)
            rest[d] //= axes[a]
    used = [a for each in cut_by for a in each]
    free = [a for a in range(len(axes)) if a not in used]
    devices = numbers.transpose([*used, *free]).ravel().tolist()
    tile = [math.prod(axes[a] for a in each) for each in cut_by]
    return HloSharding.from_tiles(tile, devices, math.prod(axes[a] for a in free))


def random_partition(module: HloModule, rng: random.Random) -> Partitioned:
    """The module, partitioned by random shardings of its arguments and results; some are left to the partitioner."""
    parameters = [leaf for p in module.entry.parameters for leaf in p.shape.leaves()]
    results = list(module.entry.root.shape.leaves())
    axes = axes_for([*parameters, *results], rng)
    count = math.prod(axes)
    order = list(range(count))
    if rng.random() < 0.2:
        rng.shuffle(order)

    def drawn(leaves: Sequence[Shape], left_open: float) -> list[HloSharding | None]:
        return [None if rng.random() < left_open else random_sharding(leaf, axes, rng, order) for leaf in leaves]

    return partition(module, count, drawn(parameters, 0.2), drawn(results, 0.4))


def run_partitioned(found: Partitioned, whole: HloModule, arguments: Sequence[Any]) -> list[Any]:
    """The whole results of the partitioned program, for whole arguments."""
    verify(found.module)
    devices = range(found.module.num_partitions)
    parts = [[cut(x, s, k) for x, s in zip(arguments, found.parameter_shardings, strict=True)] for k in devices]
    results = run_on_devices(found.module, parts)
    leaves = list(whole.entry.root.shape.leaves())
    return [
        put_together([results[k][n] for k in devices], sharding, leaf.dimensions)
        for n, (sharding, leaf) in enumerate(zip(found.result_shardings, leaves, strict=True))
    ]


def expected_of(whole: HloModule, arguments: Sequence[Any]) -> list[Any]:
    """The result of the unpartitioned module."""
    return evaluate(whole, *arguments)
