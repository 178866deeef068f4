"""A simulated cluster: how long a step of a partitioned program takes on many devices, without having them.

The model is small, and lists its omissions. A device computes at a constant rate and sends nothing meanwhile. Each host
has `devices_per_host` devices, which reach each other over their own ports; messages to other hosts go through the
host's one network card. A collective is the messages of its algorithm, round by round: a round ends when the slowest
link has carried its messages, and begins with one latency. All groups of a collective run at once, so they share cards.
Not in the model: overlap of computing and sending, noise, memory bandwidth, waiting for devices with more work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import lru_cache

from ..ir import HloModule
from ..notebooks import in_notebooks
from ..opcode import Opcode
from ..support.records import dataclass
from ..support.tables import Table
from .communication import Algorithm, Collective, communication_analysis
from .cost import cost_analysis

Round = tuple[tuple[int, int, float], ...]
"""The messages that are under way at once: (source, target, bytes)."""


@dataclass(frozen=True, slots=True)
class Link:
    """The cost of a message: `latency` seconds, and its bytes at `bandwidth` bytes in a second."""

    latency: float
    bandwidth: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """Hosts with devices. `flops`: operations that a device does in a second; a transcendental counts as
    `flops_of_transcendental` of them.

    >>> from hloom import hlo
    >>> cluster = hlo.Cluster(flops=1e11, inside=hlo.Link(1e-6, 1e10), between=hlo.Link(1e-5, 1e9), devices_per_host=4)
    """

    flops: float
    inside: Link
    """Between the devices of a host: each device has such a port, for both directions at once."""
    between: Link
    """From a host to others: its devices share it."""
    devices_per_host: int = 8
    flops_of_transcendental: float = 10.0
    overhead: float = 0.0
    """Seconds of a step that neither depend on its work nor on its messages: starting it."""

    def seconds_of(self, collective: Collective, algorithm: Algorithm | None = None) -> float:
        """How long one run of a collective takes; by default with the faster algorithm."""
        if algorithm is None:
            return min(self.seconds_of(collective, "ring"), self.seconds_of(collective, "tree"))
        return _seconds(self, collective.opcode, collective.groups, collective.byte_size, algorithm)

    def predict(self, module: HloModule) -> Prediction:
        """The time of one run of one device's program on this cluster.

        >>> from hloom import hlo
        >>> cluster = hlo.Cluster(flops=1e9, inside=hlo.Link(1e-6, 1e10), between=hlo.Link(1e-5, 1e9))
        >>> text = "HloModule m ENTRY main { x = f32[1000] parameter(0)  ROOT y = f32[1000] add(x, x) }"
        >>> cluster.predict(hlo.parse(text)).computing
        1e-06
        """
        cost, communication = cost_analysis(module), communication_analysis(module)
        work = cost["flops"] + self.flops_of_transcendental * cost["transcendentals"]
        return Prediction(
            module.replica_count * module.num_partitions,
            work,
            communication.sent("ring"),
            work / self.flops,
            sum(c.times * self.seconds_of(c) for c in communication),
            self.overhead,
        )


@dataclass(frozen=True, slots=True)
class Prediction:
    """The model's answer for one number of devices. Times are in seconds."""

    devices: int
    operations: float
    """Of each device."""
    bytes_sent: float
    """By each device, by a ring."""
    computing: float
    communicating: float
    overhead: float = 0.0

    @property
    def seconds(self) -> float:
        """Of a step: one after the other."""
        return self.computing + self.communicating + self.overhead


class Scaling(tuple[Prediction, ...]):
    """Predictions for several numbers of devices. They print as a table; the speedup is over the first one."""

    __slots__ = ()

    def table(self) -> Table:
        rows = []
        for p in self:
            speedup = self[0].seconds / p.seconds if p.seconds else math.nan
            rows.append(
                (
                    *(str(p.devices), f"{p.operations / 1e6:,.2f}", f"{p.bytes_sent / 1e3:,.1f}"),
                    *(f"{p.computing * 1e3:,.3f}", f"{p.communicating * 1e3:,.3f}", f"{p.seconds * 1e3:,.3f}"),
                    *(f"{speedup:.2f}", f"{speedup * self[0].devices / p.devices:.0%}"),
                )
            )
        headings = (
            *("devices", "MFLOP each", "kB sent each", "computing ms", "sending ms"),
            *("step ms", "speedup", "efficiency"),
        )
        return Table(headings, rows, frozenset(range(8)))

    def __str__(self) -> str:
        return self.table().to_text()

    __repr__ = __str__

    _repr_html_ = in_notebooks


def scaling(program: Callable[[int], HloModule], counts: Sequence[int], cluster: Cluster) -> Scaling:
    """The predictions for several numbers of devices. `program(n)` is one device's program on n devices.

    >>> from hloom import hlo
    >>> text = "HloModule m ENTRY main { x = f32[64,8] parameter(0)  ROOT y = f32[64,8] exponential(x) }"
    >>> def program(n):
    ...     return hlo.partition(hlo.parse(text), n, [hlo.HloSharding.from_tiles((n, 1))]).module
    >>> cluster = hlo.Cluster(flops=1e9, inside=hlo.Link(1e-6, 1e10), between=hlo.Link(1e-5, 1e9))
    >>> [p.computing for p in hlo.scaling(program, [1, 2], cluster)]
    [5.12e-06, 2.56e-06]
    """
    return Scaling([cluster.predict(program(n)) for n in counts])


# Collectives as rounds of messages


@lru_cache(maxsize=4096)
def _seconds(
    cluster: Cluster, opcode: Opcode, groups: tuple[tuple[int, ...], ...], byte_size: int, algorithm: Algorithm
) -> float:
    total = 0.0
    for messages, times in _rounds(opcode, groups, byte_size, algorithm):
        total += times * _Traffic(cluster).seconds(messages)
    return total


def _rounds(
    opcode: Opcode, groups: tuple[tuple[int, ...], ...], n: float, algorithm: Algorithm
) -> Iterator[tuple[Round, int]]:
    """The rounds of a collective, each with how often it comes."""
    if opcode is Opcode.COLLECTIVE_PERMUTE:
        moving = tuple([(a, b, n) for a, b in groups if a != b])
        if moving:
            yield moving, 1
        return
    p = max(map(len, groups), default=1)
    if p == 1:
        return
    exponents = range(math.ceil(math.log2(p)))
    ring = algorithm == "ring"
    match opcode:
        case Opcode.ALL_REDUCE if ring:
            yield _shifted(groups, 1, n / p), 2 * (p - 1)
        case Opcode.ALL_REDUCE:
            for k in exponents:
                yield _pairs(groups, 1 << k, n), 2
        case Opcode.ALL_GATHER | Opcode.REDUCE_SCATTER if ring:
            yield _shifted(groups, 1, n / p), p - 1
        case Opcode.ALL_GATHER | Opcode.REDUCE_SCATTER:
            for k in exponents:
                yield _shifted(groups, 1 << k, n / p * min(1 << k, p - (1 << k))), 1
        case Opcode.ALL_TO_ALL | Opcode.RAGGED_ALL_TO_ALL if ring:
            for k in range(1, p):
                yield _shifted(groups, k, n / p), 1
        case Opcode.ALL_TO_ALL | Opcode.RAGGED_ALL_TO_ALL:
            for k in exponents:
                yield _shifted(groups, 1 << k, n / 2), 1
        case _:
            for k in exponents:
                yield _pairs(groups, 1 << k, n), 1


def _shifted(groups: tuple[tuple[int, ...], ...], distance: int, size: float) -> Round:
    """Every device sends to the one `distance` places on."""
    return tuple([(d, g[(k + distance) % len(g)], size) for g in groups for k, d in enumerate(g) if len(g) > 1])


def _pairs(groups: tuple[tuple[int, ...], ...], distance: int, size: float) -> Round:
    """One round of a binomial tree: each device at a multiple of 2 * distance sends to the one `distance` places on."""
    return tuple([(g[k], g[k + distance], size) for g in groups for k in range(0, len(g) - distance, 2 * distance)])


@dataclass(slots=True)
class _Traffic:
    """The bytes on each link in one round."""

    cluster: Cluster
    ports: dict[tuple[str, int], float] = field(default_factory=dict)
    cards: dict[tuple[str, int], float] = field(default_factory=dict)

    def seconds(self, messages: Round) -> float:
        c = self.cluster
        latency = 0.0
        for source, target, size in messages:
            hosts = source // c.devices_per_host, target // c.devices_per_host
            if hosts[0] == hosts[1]:
                self.add(self.ports, source, target, size)
                latency = max(latency, c.inside.latency)
            else:
                self.add(self.cards, *hosts, size)
                latency = max(latency, c.between.latency)
        busiest = max(
            max(self.ports.values(), default=0) / c.inside.bandwidth,
            max(self.cards.values(), default=0) / c.between.bandwidth,
        )
        return latency + busiest

    @staticmethod
    def add(links: dict[tuple[str, int], float], source: int, target: int, size: float) -> None:
        for end in (("out", source), ("in", target)):
            links[end] = links.get(end, 0.0) + size
