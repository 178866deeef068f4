"""Clusters: instructions that fusion puts into one loop nest, and when two of them can run in one nest.

What is decided about pairs of clusters, by cost and order, is in fusion.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from ...ir import HloInstruction
from ...opcode import Opcode
from .fusible import Dimensions, squeezed, squeezed_positions


@dataclass(frozen=True, slots=True)
class FusionLimits:
    """The limits for one kernel of a backend."""

    members: int
    """The most instructions in one fusion."""
    externals: int
    """The most values that one fusion reads from memory."""
    serial_elements: int
    """A domain of up to this many elements is not worth sharing between workers."""
    workers: int
    """A large reduction to fewer results than this runs on one worker, so its users are not fused into it."""
    recomputed_members: int
    """At most this many cheap instructions are computed again for each read of their result, not once into memory."""


@dataclass(eq=False, slots=True)
class Cluster:
    """Instructions that run together: fusible ones, or a single one that is not fusible.

    All sets are kept up to date when clusters merge, so that a question about two clusters never visits all members.
    """

    numbers: list[int]
    """The members, by their position in the program."""
    members: set[HloInstruction]
    bits: int
    """The members as a set of numbers."""
    ancestors: int
    """The instructions that must run before, as a set of numbers."""
    fusible: bool
    reads: dict[HloInstruction, list[tuple[HloInstruction, int]]]
    """Values read from outside, behind free instructions: the members that read them, and the operand number."""
    readers: set[HloInstruction]
    """The visited instructions outside that must run after."""
    outputs: set[HloInstruction]
    """The members that are needed outside."""
    domain: Dimensions = ()
    reduced: Dimensions | None = None
    closed: bool = False
    """True once the nest writes only a part of its output: nothing may join at the output's index."""
    inlined: set[HloInstruction] = field(default_factory=set)

    @property
    def kept(self) -> Dimensions:
        return tuple(size for d, size in enumerate(self.domain) if d not in (self.reduced or ()))


def is_columns(domain: Dimensions, reduced: Dimensions | None) -> bool:
    """True when the most minor dimension is kept, so that accumulators are arrays rather than scalars."""
    return bool(reduced) and len(domain) - 1 not in (reduced or ())


@dataclass(frozen=True, slots=True)
class Edge:
    """`user` reads `source`, a member of another cluster. Dimension e of that is dimension positions[e] of the value
    that the user reads; None if the index is not that simple."""

    source: HloInstruction
    user: HloInstruction
    positions: Dimensions | None
    rank: int
    operand: int
    """The operand number of the user."""


def set_reduction(cluster: Cluster, reduce: HloInstruction) -> None:
    operand = reduce.operands[0]
    where = squeezed_positions(operand)
    cluster.domain = squeezed(operand)
    cluster.reduced = tuple(sorted(where[d] for d in reduce.attributes.dimensions if d in where))


def accessed(user: HloInstruction, operand: int) -> Dimensions:
    """The dimensions over which a user reads an operand."""
    if user.opcode is Opcode.GATHER and operand == 1:
        return user.operands[1].shape.dimensions
    if user.opcode is Opcode.REDUCE:
        return user.operands[0].shape.dimensions
    if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return user.operands[1].shape.dimensions
    return user.shape.dimensions if user.shape.is_array else ()


def joined_domain(
    producer: Cluster, consumer: Cluster, edges: list[Edge], limits: FusionLimits
) -> tuple[Dimensions, Dimensions | None] | None:
    """(domain, reduced) of a nest that runs both together at each index; None if there is none."""
    if producer.reduced is not None and consumer.reduced is not None:
        if (producer.domain, producer.reduced) != (consumer.domain, consumer.reduced):
            return None
        domain, reduced = producer.domain, producer.reduced
    elif producer.reduced is None and consumer.reduced is None:
        if producer.domain != consumer.domain:
            return None
        domain, reduced = producer.domain, None
    else:
        owner, other = (producer, consumer) if producer.reduced is not None else (consumer, producer)
        if other.domain not in (owner.domain, owner.kept) or other.closed:
            return None
        domain, reduced = owner.domain, owner.reduced
    kept = tuple(d for d in range(len(domain)) if d not in (reduced or ()))
    kept_sizes = tuple(domain[d] for d in kept)
    for edge in edges:
        if not _fits(edge, domain, kept, kept_sizes, reduced):
            return None
    if is_columns(domain, reduced):
        for cluster in (producer, consumer):
            if cluster.reduced is None and cluster.domain != domain:
                return None
        if any(e.source.opcode is Opcode.REDUCE for e in edges):
            return None
    elif (
        reduced is not None
        and math.prod(domain) > limits.serial_elements
        and math.prod(kept_sizes) < limits.workers
        and any(e.source.opcode is Opcode.REDUCE or squeezed(e.source) == kept_sizes for e in edges)
    ):
        # A large reduction to few results runs serially: its users must not become part of the same nest.
        return None
    return domain, reduced


def _fits(edge: Edge, domain: Dimensions, kept: Dimensions, kept_sizes: Dimensions, reduced: Dimensions | None) -> bool:
    """True when the nest has the value that is read at the same index."""
    if edge.positions is None:
        return False
    source_sizes = squeezed(edge.source) if edge.source.shape.is_array else kept_sizes
    identity = edge.positions == tuple(range(edge.rank)) and len(edge.positions) == edge.rank
    if reduced is None:
        return identity and source_sizes == domain
    user_is_full = edge.user.opcode is Opcode.REDUCE or squeezed(edge.user) == domain
    source_is_full = bool(reduced) and edge.source.opcode is not Opcode.REDUCE and source_sizes == domain
    if source_is_full:
        return identity and user_is_full
    if source_sizes != kept_sizes:
        return False
    if user_is_full and reduced:
        return edge.positions == kept and edge.rank == len(domain)
    return identity
