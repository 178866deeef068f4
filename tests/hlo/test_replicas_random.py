"""Random collectives one after the other on threads, against NumPy; and runs in which one device does another thing."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest
from hloom.hlo import CollectiveError
from hloom.hlo.collectives import Communicator, local_device_count, operations, run_on_devices, set_local_device_count
from hloom.hlo.collectives.communicator import Meeting

NDArray: TypeAlias = np.ndarray[Any, Any]


@pytest.fixture(autouse=True, scope="module")
def _devices() -> Iterator[None]:
    before = local_device_count()
    set_local_device_count(6)
    yield
    set_local_device_count(before)


def _difference(parts: Sequence[NDArray], result: NDArray) -> None:
    """Neither commutative nor associative: the order matters."""
    total = parts[0].copy()
    for part in parts[1:]:
        total = total - 2 * part
    result[...] = total


class Step(NamedTuple):
    """A collective of integers."""

    kind: str
    groups: list[list[int]]
    size: int
    """Of an array of `reduce`, `gather`, `permute`; of one part of the others."""

    def group_of(self, device: int) -> list[int]:
        return next(group for group in self.groups if device in group)

    def operand(self, x: NDArray, device: int) -> NDArray:
        """The operand of a device, from an array that is long enough."""
        return x[: self.size * (len(self.group_of(device)) if self.kind in ("scatter", "exchange") else 1)]

    def do(self, device: Communicator, name: str, x: NDArray) -> NDArray:
        """The device's result."""
        group = self.group_of(device.device)
        meeting, n = Meeting(self.kind, name, members=tuple(group)), len(group)
        sizes = {"gather": n * self.size, "exchange": n * self.size}
        result = np.empty(sizes.get(self.kind, self.size), x.dtype)
        if self.kind == "reduce":
            operations.all_reduce(device, meeting, group, [x], [result], _difference)
        elif self.kind == "gather":
            operations.all_gather(device, meeting, group, [x], [result], 0)
        elif self.kind == "scatter":
            operations.reduce_scatter(device, meeting, group, [x], [result], 0, _difference)
        elif self.kind == "exchange":
            operations.all_to_all(device, meeting, group, x, result, 0)
        else:
            ring = [(group[k - 1], group[k]) for k in range(n)]
            operations.collective_permute(device, meeting, ring, [x], [result])
        return result

    def meaning(self, values: list[NDArray], rank: int) -> NDArray:
        """The result of one member of a group, from what all bring along."""
        n = len(values)
        if self.kind == "gather":
            return np.concatenate(values)
        if self.kind == "exchange":
            return np.concatenate([np.split(v, n)[rank] for v in values])
        if self.kind == "permute":
            return values[rank - 1]
        total = values[0].copy()
        for value in values[1:]:
            total = total - 2 * value
        return total if self.kind == "reduce" else np.split(total, n)[rank]


_SIZES = (0, 1, 3, 500, 511, 512, 513, 5000, 40000)  # 4 KiB are copied, 32 KiB are cut


def _step(rng: random.Random, devices: int) -> Step:
    order = rng.sample(range(devices), devices)
    cut = rng.randint(1, devices)
    kind = rng.choice(["reduce", "gather", "scatter", "exchange", "permute"])
    return Step(kind, [group for group in (order[:cut], order[cut:]) if group], rng.choice(_SIZES))


@pytest.mark.parametrize("seed", range(40))
def test_random_collectives(seed: int) -> None:
    rng = random.Random(seed)
    devices = rng.randint(2, 6)
    steps = [_step(rng, devices) for _ in range(rng.randint(1, 10))]
    numbers = np.random.default_rng(seed)
    data = [[numbers.integers(-50, 50, s.size * devices) for s in steps] for _ in range(devices)]

    def run(device: Communicator) -> list[NDArray]:
        found = []
        for k, step in enumerate(steps):
            if random.random() < 0.05:
                time.sleep(0.001)
            found.append(step.do(device, str(k), step.operand(data[device.device][k], device.device)))
        return found

    found = run_on_devices(run, devices)
    for k, step in enumerate(steps):
        for group in step.groups:
            values = [step.operand(data[d][k], d) for d in group]
            for rank, device in enumerate(group):
                np.testing.assert_array_equal(found[device][k], step.meaning(values, rank), f"{step}")


@pytest.mark.parametrize("what", ["raises", "returns", "is elsewhere", "has another size"])
@pytest.mark.parametrize("seed", range(8))
def test_one_device_does_something_else(what: str, seed: int) -> None:
    rng = random.Random(seed)
    devices, turns = rng.randint(2, 5), 6
    odd, at = rng.randrange(devices), rng.randrange(turns)
    sizes = [rng.choice([1, 100, 9000]) for _ in range(turns)]

    def run(device: Communicator) -> None:
        for k, size in enumerate(sizes):
            is_odd = device.device == odd and k == at
            if is_odd and what == "raises":
                raise ValueError("odd")
            if is_odd and what == "returns":
                return
            x = np.ones(size + (is_odd and what == "has another size"))
            step = Step("reduce", [list(range(devices))], len(x))
            step.do(device, "elsewhere" if is_odd and what == "is elsewhere" else str(k), x)

    with pytest.raises(ValueError if what == "raises" else CollectiveError):
        run_on_devices(run, devices)
