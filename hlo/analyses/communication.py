"""The communication between a program's devices: the collectives of a module, how often they run, and the bytes.

The bytes are counted for the usual algorithms, with a group of p devices and n bytes on each: a ring (every device
sends to its neighbour, p - 1 times) needs the least bandwidth, a tree the fewest messages. `cluster.py` predicts their
times.

| collective         | n is       | ring: bytes, messages   | tree: bytes, messages               |
|--------------------|------------|-------------------------|-------------------------------------|
| all-reduce         | an operand | 2n(p-1)/p, 2(p-1)       | 2n log2 p, 2 log2 p                 |
| all-gather         | the result | n(p-1)/p, p-1           | n(p-1)/p, log2 p                    |
| reduce-scatter     | an operand | n(p-1)/p, p-1           | n(p-1)/p, log2 p                    |
| all-to-all         | an operand | n(p-1)/p, p-1           | n/2 log2 p, log2 p                  |
| broadcast          | an operand | n log2 p, log2 p        | the same                            |
| collective-permute | an operand | n, 1                    | the same                            |

Logarithms are rounded up. Source: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
in MPICH" (2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

from ..collectives.groups import device_groups, device_pairs
from ..ir import HloComputation, HloInstruction, HloModule
from ..notebooks import in_notebooks
from ..opcode import Opcode
from ..support.records import dataclass
from ..support.tables import Table
from .trip_count import known_trip_count

Algorithm = Literal["ring", "tree"]

_STARTS = {
    Opcode.ALL_REDUCE_START: Opcode.ALL_REDUCE,
    Opcode.ALL_GATHER_START: Opcode.ALL_GATHER,
    Opcode.COLLECTIVE_PERMUTE_START: Opcode.COLLECTIVE_PERMUTE,
}
_COLLECTIVES = frozenset(
    {
        *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.RAGGED_ALL_TO_ALL),
        *_STARTS,
    }
)


@dataclass(frozen=True, slots=True)
class Collective:
    """One collective of a program."""

    name: str
    opcode: Opcode
    """The opcode of the whole exchange: an all-reduce-start is an all-reduce."""
    groups: tuple[tuple[int, ...], ...]
    """The devices that take part together. Of a permutation: (source, target) pairs."""
    byte_size: int
    """n of the table above, on each device."""
    times: int
    """How often it runs: the product of the trip counts of the loops around it, 1 for one that is not known."""
    is_exact: bool
    """False if some loop's trip count is not known."""

    @property
    def devices(self) -> int:
        """The size of the largest group; of a permutation 2, or 1 if each device sends to itself."""
        if self.opcode is Opcode.COLLECTIVE_PERMUTE:
            return 2 if any(a != b for a, b in self.groups) else 1
        return max(map(len, self.groups), default=1)

    def sent(self, algorithm: Algorithm = "ring") -> float:
        """The bytes that a device sends each time."""
        return self._volume(algorithm)[0]

    def messages(self, algorithm: Algorithm = "ring") -> int:
        """The messages that follow each other each time."""
        return self._volume(algorithm)[1]

    def _volume(self, algorithm: Algorithm) -> tuple[float, int]:
        n, p = self.byte_size, self.devices
        if p == 1:
            return 0.0, 0
        rounds = math.ceil(math.log2(p))
        most = n * (p - 1) / p
        ring = algorithm == "ring"
        match self.opcode:
            case Opcode.ALL_REDUCE:
                return (2 * most, 2 * (p - 1)) if ring else (2.0 * n * rounds, 2 * rounds)
            case Opcode.ALL_GATHER | Opcode.REDUCE_SCATTER:
                return most, p - 1 if ring else rounds
            case Opcode.ALL_TO_ALL | Opcode.RAGGED_ALL_TO_ALL:
                return (most, p - 1) if ring else (n / 2 * rounds, rounds)
            case Opcode.COLLECTIVE_BROADCAST:
                return float(n * rounds), rounds
        return float(n), 1


class Communication(tuple[Collective, ...]):
    """The collectives of a program, in program order. They print as a table."""

    __slots__ = ()

    def sent(self, algorithm: Algorithm = "ring") -> float:
        """The bytes that a device sends in one run."""
        return sum(c.times * c.sent(algorithm) for c in self)

    def messages(self, algorithm: Algorithm = "ring") -> int:
        """The messages that follow each other in one run."""
        return sum(c.times * c.messages(algorithm) for c in self)

    def table(self) -> Table:
        """A row for each collective, and one for all: bytes on each device, and bytes that it sends."""
        rows: list[tuple[str, ...]] = [
            (
                *(c.name, c.opcode.value, str(c.devices), f"{c.byte_size:,}"),
                f"{c.times:,}" if c.is_exact else f"{c.times:,} or more",
                *(f"{c.times * c.sent('ring'):,.0f}", f"{c.times * c.messages('ring'):,}"),
                *(f"{c.times * c.sent('tree'):,.0f}", f"{c.times * c.messages('tree'):,}"),
            )
            for c in self
        ]
        both: tuple[Algorithm, ...] = ("ring", "tree")
        totals = [f"{total:,.0f}" for a in both for total in (self.sent(a), self.messages(a))]
        rows.append(("all", "", "", "", "", *totals))
        headings = (
            *("collective", "opcode", "devices", "bytes", "times"),
            *("ring: bytes sent", "messages", "tree: bytes sent", "messages"),
        )
        return Table(headings, rows, frozenset(range(2, 9)))

    def __str__(self) -> str:
        return self.table().to_text()

    __repr__ = __str__

    _repr_html_ = in_notebooks


def communication_analysis(module: HloModule) -> Communication:
    """The collectives of one device's program, with the bytes that a device sends. See this module's docstring.

    A program of whole arrays has none before it is partitioned. A loop's body counts once for each known trip, once if
    that is not known; of a conditional, the branch that sends most.

    >>> from hloom import hlo
    >>> text = '''HloModule m, num_partitions=4
    ... add { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT s = f32[] add(x, y) }
    ... ENTRY main {
    ...   g = f32[1000] parameter(0)
    ...   ROOT r = f32[1000] all-reduce(g), channel_id=1, replica_groups={{0}}, to_apply=add
    ... }'''
    >>> hlo.communication_analysis(hlo.parse(text)).sent("ring")
    6000.0
    """
    return Communication(_of_computation(module.entry, module, 1, True))


def _of_computation(computation: HloComputation, module: HloModule, times: int, is_exact: bool) -> Iterator[Collective]:
    for i in computation.instructions:
        if i.opcode in _COLLECTIVES:
            yield _collective(i, module, times, is_exact)
            continue
        called = i.called_computations()
        match i.opcode:
            case Opcode.WHILE:
                trips = known_trip_count(i)
                count = 1 if trips is None else trips
                for each in called:
                    yield from _of_computation(each, module, times * count, is_exact and trips is not None)
            case Opcode.CONDITIONAL:
                branches = [Communication(_of_computation(c, module, times, is_exact)) for c in called]
                yield from max(branches, key=lambda b: (b.sent(), b.messages()))
            case Opcode.CALL | Opcode.FUSION | Opcode.ASYNC_START:
                for each in called:
                    yield from _of_computation(each, module, times, is_exact)


def _collective(i: HloInstruction, module: HloModule, times: int, is_exact: bool) -> Collective:
    opcode = _STARTS.get(i.opcode, i.opcode)
    counts = module.replica_count, module.num_partitions
    operands = sum(o.shape.byte_size for o in i.operands)
    groups: Sequence[Sequence[int]]
    if opcode is Opcode.COLLECTIVE_PERMUTE:
        groups = device_pairs(i.attributes, *counts)
    else:
        groups = device_groups(i.opcode, i.attributes, *counts)
    size = operands
    if opcode is Opcode.ALL_GATHER:
        size = operands * max(map(len, groups), default=1)
    return Collective(i.name, opcode, tuple(map(tuple, groups)), size, times, is_exact)
