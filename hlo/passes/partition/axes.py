"""The devices of a program as a mesh of prime axes, and shardings as lists of these axes.

Eight devices are three axes of size 2: device 5 has the digits (1, 0, 1). `{devices=[4,2]<=[8]}` cuts dimension 0
along the axes 0 and 1 and dimension 1 along the axis 2: the spec ((0, 1), (2,)). With small axes each question about
shardings is one about lists: an array is gathered along the last axes of a list, cut along new ones, and a merged or
split dimension takes a part of a list. Shardings of one mesh have such a form, in the mesh's order of devices.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise
from typing import TypeAlias

from ...errors import UnsupportedError
from ...sharding import HloSharding
from ...support.records import dataclass

Axes: TypeAlias = tuple[int, ...]
"""Numbers of axes, the slowest first."""
Spec: TypeAlias = tuple[Axes, ...]
"""For each dimension of an array the axes along which it is cut."""


@dataclass(frozen=True, slots=True)
class DeviceMesh:
    """The axes of all devices."""

    sizes: tuple[int, ...]
    """Of each axis; the last axis is the fastest. All are prime."""
    order: tuple[int, ...]
    """The device at each place of the mesh, row-major."""

    @property
    def count(self) -> int:
        """The number of devices."""
        return len(self.order)

    def parts(self, axes: Axes) -> int:
        """Into how many parts these axes cut."""
        return math.prod([self.sizes[a] for a in axes])

    def local(self, dimensions: Sequence[int], spec: Spec) -> tuple[int, ...]:
        """The dimensions of a device's part."""
        return tuple([size // self.parts(axes) for size, axes in zip(dimensions, spec, strict=True)])

    def digits(self, place: int) -> tuple[int, ...]:
        """Where a place of the mesh lies along each axis."""
        found = []
        for size in reversed(self.sizes):
            place, digit = divmod(place, size)
            found.append(digit)
        return tuple(reversed(found))

    def index(self, axes: Axes) -> tuple[int, ...]:
        """For each device, by its number, which of the parts that these axes make it has."""
        found = [0] * self.count
        for place, device in enumerate(self.order):
            digits, number = self.digits(place), 0
            for a in axes:
                number = number * self.sizes[a] + digits[a]
            found[device] = number
        return tuple(found)

    def groups(self, axes: Axes) -> tuple[tuple[int, ...], ...]:
        """The devices that differ only along these axes, each group in the order of the parts."""
        part = self.index(axes)
        groups: dict[tuple[int, ...], list[int]] = {}
        for place, device in enumerate(self.order):
            digits = self.digits(place)
            groups.setdefault(tuple([d for a, d in enumerate(digits) if a not in axes]), []).append(device)
        return tuple([tuple(sorted(group, key=part.__getitem__)) for group in groups.values()])

    def sharding(self, spec: Spec, manual: Collection[int] = ()) -> HloSharding:
        """The sharding that a spec stands for, of an array that devices along the axes `manual` have each their own."""
        used = [a for axes in spec for a in axes]
        own = tuple([a for a in range(len(self.sizes)) if a in manual])
        free = tuple([a for a in range(len(self.sizes)) if a not in used and a not in manual])
        place = self.index((*used, *own, *free))
        devices = sorted(range(self.count), key=place.__getitem__)
        return HloSharding.from_tiles([self.parts(axes) for axes in spec], devices, self.parts(free), self.parts(own))

    def manual_axes(self, sharding: HloSharding) -> frozenset[int]:
        """The axes along which devices have arrays of their own."""
        if sharding.is_manual:
            return frozenset(range(len(self.sizes)))
        return frozenset(self.spec(sharding.manual_part(), 1)[0]) if sharding.is_partly_manual else frozenset()

    def spec(self, sharding: HloSharding, rank: int) -> Spec:
        """The spec of a sharding from which this mesh was made."""
        if not sharding.is_tiled:
            return ((),) * rank
        sharding.require_rank(rank)
        sharding = sharding.tiled_part()
        if not sharding.is_tiled:
            return ((),) * rank
        strides = _strides(sharding, self.order)
        assert strides is not None, f"{sharding} is not of this mesh"
        by_stride = {math.prod(self.sizes[a + 1 :]): a for a in range(len(self.sizes))}
        found = []
        for runs in strides:
            axes: list[int] = []
            for size, stride in runs:
                step = stride * size
                while step > stride:
                    a = next(a for s, a in by_stride.items() if s * self.sizes[a] == step)
                    axes.append(a)
                    step //= self.sizes[a]
            found.append(tuple(axes))
        return tuple(found)


def mesh_of(shardings: Iterable[HloSharding], count: int) -> DeviceMesh:
    """A mesh of `count` devices in which all these shardings have a spec.

    UnsupportedError if there is none: the shardings name other devices, or come from meshes that do not fit together,
    such as 2 x 3 and 3 x 2; or if a sharding is for one device only.
    """
    tiled = []
    both = [p for s in shardings for p in ((s.tiled_part(), s.manual_part()) if s.is_partly_manual else (s,))]
    for sharding in dict.fromkeys(both):
        if sharding.is_maximal and count > 1:
            raise UnsupportedError(
                f"the sharding {sharding} puts an array on one of {count} devices: use {{replicated}} instead"
            )
        if sharding.is_tiled:
            if sorted(sharding.devices) != list(range(count)):
                named = ", ".join(map(str, sharding.devices[:16]))
                raise UnsupportedError(
                    f"the sharding {sharding} is for the devices {named}, and the program runs on devices 0 to "
                    f"{count - 1}: each sharding must name all of them (those that hold the same part: replicated)"
                )
            tiled.append(sharding)
    for order in dict.fromkeys([tuple(range(count)), _common_order(tiled, count)]):
        found = _mesh_in_order(tiled, order)
        if found is not None:
            return found
    listed = ", ".join(map(str, tiled[:4]))
    raise UnsupportedError(
        f"the shardings of this program come from meshes that do not fit together: {listed}. Take all shardings from "
        "one mesh"
    )


def _common_order(shardings: Sequence[HloSharding], count: int) -> tuple[int, ...]:
    """The devices sorted by their parts: if all shardings come from one mesh with the devices in any order, the parts
    tell where in the mesh a device is."""
    places: list[list[int]] = [[] for _ in range(count)]
    for sharding in shardings:
        for k, device in enumerate(sharding.devices):
            number = k // sharding.replicated
            digits = []
            for parts in reversed(sharding.tile):
                number, digit = divmod(number, parts)
                digits.append(digit)
            places[device] += reversed(digits)
    return tuple(sorted(range(count), key=lambda device: (places[device], device)))


def _mesh_in_order(shardings: Sequence[HloSharding], order: tuple[int, ...]) -> DeviceMesh | None:
    borders = {1, len(order)}
    for sharding in shardings:
        strides = _strides(sharding, order)
        if strides is None:
            return None
        borders |= {n for runs in strides for size, stride in runs for n in (stride, stride * size)}
    steps = sorted(borders)
    sizes: list[int] = []
    for small, large in pairwise(steps):
        if large % small:
            return None
        sizes += _primes(large // small)
    return DeviceMesh(tuple(reversed(sizes)), order)


def _primes(number: int) -> list[int]:
    found, factor = [], 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


def _strides(sharding: HloSharding, order: tuple[int, ...]) -> list[list[tuple[int, int]]] | None:
    """For each dimension (number of parts, places between neighbours), the slowest first; None if the devices are not
    regular in this order."""
    place = {device: k for k, device in enumerate(order)}
    copies = sharding.replicated
    places = [place[d] for d in sharding.devices]
    blocks = [sorted(places[k : k + copies]) for k in range(0, len(places), copies)]
    if places and blocks[0][0] != 0:
        return None
    found: list[list[tuple[int, int]]] = []
    step = len(blocks)
    for parts in sharding.tile:
        step //= parts
        runs = _runs([blocks[k * step][0] for k in range(parts)])
        if runs is None:
            return None
        found.append(runs)
    kept = _runs(blocks[0]) if blocks else []
    if kept is None:
        return None
    made = [0]
    for size, stride in [run for runs in [*found, kept] for run in runs]:
        made = [base + k * stride for base in made for k in range(size)]
    return found if made == [p for block in blocks for p in block] else None


def _runs(values: Sequence[int]) -> list[tuple[int, int]] | None:
    """`values`, which begin with 0, as all sums of one multiple of each stride: (count, stride), the slowest first."""
    found: list[tuple[int, int]] = []
    step, count = 1, len(values)
    while step < count:
        stride, size = values[step], 1
        while step * size < count and values[step * size] == stride * size:
            size += 1
        while count % (step * size):
            size -= 1
        if size == 1 or stride <= 0:
            return None
        found.insert(0, (size, stride))
        step *= size
    return found
