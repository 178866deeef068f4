"""Clusters: instructions that fusion puts into one loop nest, and when two of them can run in one nest.

fusion.py makes the decisions about pairs of clusters, by cost and order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace

from ...ir import HloInstruction
from ...opcode import Opcode
from ...support.records import dataclass
from .fusible import Dimensions, squeezed, squeezed_positions


@dataclass(frozen=True, slots=True)
class FusionLimits:
    """The limits for one kernel of a backend."""

    members: int
    """The most instructions in one fusion."""
    externals: int
    """The most values that one fusion reads from memory."""
    outputs: int
    """The most results that one fusion writes to memory."""
    stages: int
    """The most reductions in one fusion that each wait for the one before. Each is one more loop, and every loop
    recomputes its operands: without a limit, the work would grow with the square of their number."""
    parts: int
    """A concatenation of more parts than this is a nest of its own, into which its parts may go, and nothing else."""
    serial_elements: int
    """A domain of up to this many elements is not worth sharing between workers."""
    small_elements: int
    """Nests over up to this many elements that read results of one other nest are one: a start costs more."""
    workers: int
    """A large reduction to fewer results than this runs on one worker, so its users are not fused into it."""
    rows: int
    """A nest over the columns of a large array goes over it again with its results if it has at most so many rows: more
    of them would no longer be in the cache."""
    recomputed_members: int
    """At most this many cheap instructions are computed again for each read of their result, not once into memory."""
    recomputed_positions: int
    """The same for instructions that read no array, such as a mask made of positions."""
    recomputed_work: int
    """At most so many operations of a value are done again for each element of the only nest that reads it, at several
    indices (`stencils.py`)."""
    recomputed_uncached: int
    """The same for a value of `uncached` bytes or more."""
    uncached: float = math.inf
    """A value of so many bytes is no longer in a cache when the next nest reads it."""


@dataclass(frozen=True, slots=True)
class Space:
    """The iteration space of a nest. Dimensions of size 1 are left out."""

    domain: Dimensions
    reduced: Dimensions | None = None
    """The dimensions of the domain that are reduced; None if there is no reduction."""
    along: Dimensions | None = None
    """Beside a reduction of rows: the dimensions that other reductions, along columns, reduce. No member of the nest
    reads their results."""
    is_single: bool = True
    """False when a reduction's result, or a value computed from one, is read inside."""

    @property
    def kept(self) -> Dimensions:
        """The sizes that the reductions keep."""
        return tuple([size for d, size in enumerate(self.domain) if d not in (self.reduced or ())])

    @property
    def is_columns(self) -> bool:
        """True when the most minor dimension is kept, so that accumulators are arrays rather than scalars."""
        return bool(self.reduced) and len(self.domain) - 1 not in (self.reduced or ())

    @property
    def is_in_order(self) -> bool:
        """True when a nest runs over rows, or over the rows of a block of columns, in the order of memory."""
        reduced = self.reduced or ()
        return reduced == tuple(range(reduced[0], reduced[0] + len(reduced))) if reduced else True

    @property
    def parts(self) -> Dimensions:
        """The sizes that both reductions of rows and reductions along columns keep."""
        both = {*(self.reduced or ()), *(self.along or ())}
        return tuple([size for d, size in enumerate(self.domain) if d not in both])

    def elements(self) -> int:
        return math.prod(self.domain)


@dataclass(eq=False, slots=True)
class Cluster:
    """Instructions that run together: fusible ones, or a single one that is not fusible.

    All sets are kept up to date when clusters merge, so that a question about two clusters never visits all members.
    """

    numbers: list[int]
    """The members, by their position in the program."""
    members: set[HloInstruction]
    fusible: bool
    reads: dict[HloInstruction, list[tuple[HloInstruction, int]]]
    """Values read from outside, behind free instructions: the members that read them, and the operand number."""
    loads: set[HloInstruction]
    """Those of them that are read from memory: scalar constants and iota are computed in the nest."""
    outputs: set[HloInstruction]
    """The members that are needed outside."""
    space: Space = Space(())
    closed: bool = False
    """True for a nest that does not go over its output once, index by index: nothing may join at the output's index."""
    is_apart: bool = False
    """True if no user may take a member into its nest: see `temporaries.py`."""
    is_state: bool = False
    """True if a member computes a large element of a loop's next state."""
    block: int | None = None
    """Of a repeated stretch, the number of the block that its members are in (`periods.py`)."""
    inlined: set[HloInstruction] = field(default_factory=set)
    before: dict[Cluster, None] = field(default_factory=dict, repr=False)
    """The clusters that must run before it. Sets in the order in which they were made, so that a program always gives
    the same kernels."""
    after: dict[Cluster, None] = field(default_factory=dict, repr=False)
    """Those that wait for it."""
    place: int = 0
    previous: Cluster | None = field(default=None, repr=False)
    next: Cluster | None = field(default=None, repr=False)
    """Where it is in the order of all clusters; see `cluster_order.py`."""


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


def space_of(instruction: HloInstruction) -> Space:
    """The space of an instruction's own nest."""
    if instruction.opcode is Opcode.REDUCE:
        operand = instruction.operands[0]
        where = squeezed_positions(operand)
        return Space(
            squeezed(operand), tuple(sorted(where[d] for d in instruction.attributes.dimensions if d in where))
        )
    if instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return Space(squeezed(instruction.operands[1]))
    return Space(squeezed(instruction) if instruction.shape.is_array else ())


OF_PARTS = frozenset((Opcode.CONCATENATE, Opcode.PAD))
"""Each part of their results, an operand, has a loop of its own and is read once."""


def accessed(user: HloInstruction, operand: int) -> Dimensions:
    """The dimensions over which a user reads an operand."""
    if user.opcode is Opcode.GATHER and operand == 1:
        return user.operands[1].shape.dimensions
    if user.opcode is Opcode.REDUCE:
        return user.operands[0].shape.dimensions
    if user.opcode in OF_PARTS:
        return user.operands[operand].shape.dimensions
    if user.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
        return user.operands[1].shape.dimensions
    return user.shape.dimensions if user.shape.is_array else ()


def joined_space(producer: Cluster, consumer: Cluster, edges: Sequence[Edge], limits: FusionLimits) -> Space | None:
    """The space of a nest that runs both together at each index; None if there is none. `edges`: the producer's results
    that the consumer reads; without reads, the two run independently in one nest."""
    space = _common(producer.space, consumer.space, limits)
    if space is None or not all(_fits(edge, space) for edge in edges):
        return None
    if space.reduced is None:
        return space
    if producer.space.reduced is not None and any(edge.user in consumer.inlined for edge in edges):
        return None
    inner = [edge for edge in edges if is_kept_in(edge.source, space)]
    if any(is_along(edge.source, space) for edge in inner):
        return None
    again = any(is_full_in(edge.user, space) for edge in inner)
    if again and not can_run_again(space, limits):
        return None
    one_by_one = all(c.space.domain == space.domain for c in (producer, consumer))
    is_single = space.is_single and one_by_one and not inner
    return space if is_single == space.is_single else replace(space, is_single=is_single)


def _common(a: Space, b: Space, limits: FusionLimits) -> Space | None:
    """The space of both, without a check of dependences."""
    if a.reduced is None and b.reduced is None:
        return a if a.domain == b.domain else None
    if a.reduced is None or b.reduced is None:
        owner, other = (a, b) if a.reduced is not None else (b, a)
        return owner if other.domain in (owner.domain, owner.kept) else None
    if a.domain != b.domain:
        return None
    single = a.is_single and b.is_single
    if a.reduced == b.reduced:
        if a.along is not None and b.along is not None and a.along != b.along:
            return None
        along = a.along if a.along is not None else b.along
        return Space(a.domain, a.reduced, along, single)
    if a.is_columns == b.is_columns:
        return None
    rows, columns = (b, a) if a.is_columns else (a, b)
    if not rows.reduced or not columns.is_single or rows.along not in (None, columns.reduced):
        return None
    if {*rows.reduced} & {*(columns.reduced or ())}:
        return None
    space = Space(rows.domain, rows.reduced, columns.reduced, rows.is_single)
    if space.elements() > limits.serial_elements and math.prod(space.parts) < limits.workers:
        return None
    return space


def can_run_again(space: Space, limits: FusionLimits) -> bool:
    """True if the nest may run over the domain again with the results of its reductions: if workers can share it."""
    if space.elements() <= limits.serial_elements:
        return True
    if space.is_columns and space.elements() > limits.rows * math.prod(space.kept):
        return False
    return math.prod(space.kept) >= limits.workers


def is_full_in(user: HloInstruction, space: Space) -> bool:
    """True for a member that has, or reads, an element for each element of the domain."""
    return user.opcode is Opcode.REDUCE or (bool(space.reduced) and squeezed(user) == space.domain)


def is_kept_in(source: HloInstruction, space: Space) -> bool:
    """True for a member that has an element for each kept index."""
    return source.opcode is Opcode.REDUCE or (source.shape.is_array and squeezed(source) == space.kept)


def is_along(source: HloInstruction, space: Space) -> bool:
    """True for a reduction along columns beside reductions of rows."""
    return space.along is not None and source.opcode is Opcode.REDUCE and space_of(source).reduced == space.along


def _fits(edge: Edge, space: Space) -> bool:
    """True when the nest has the value that is read at the same index."""
    if edge.positions is None:
        return False
    domain, reduced = space.domain, space.reduced
    identity = edge.positions == tuple(range(edge.rank)) and len(edge.positions) == edge.rank
    if reduced is None:
        return identity and (not edge.source.shape.is_array or squeezed(edge.source) == domain)
    kept_sizes = space.kept
    source_sizes = squeezed(edge.source) if edge.source.shape.is_array else kept_sizes
    user_is_full = edge.user.opcode is Opcode.REDUCE or squeezed(edge.user) == domain
    source_is_full = bool(reduced) and edge.source.opcode is not Opcode.REDUCE and source_sizes == domain
    if source_is_full:
        return identity and user_is_full
    if source_sizes != kept_sizes:
        return False
    if user_is_full and reduced:
        kept = tuple([d for d in range(len(domain)) if d not in reduced])
        return edge.positions == kept and edge.rank == len(domain)
    return identity
