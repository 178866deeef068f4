"""Clustering: which instructions of one computation are put together. fusion.py describes the purpose."""

from __future__ import annotations

import math

from ...effects import has_side_effect
from ...ir import HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops import Trait, has_trait
from .cluster_order import ClusterOrder, Joint
from .clusters import OF_PARTS, Cluster, Edge, FusionLimits, Space, accessed, can_run_again, joined_space, space_of
from .fusible import Dimensions, is_free, is_fusible, reads_at_its_own_index, resolve, squeezed
from .in_place import InPlace
from .overwriting import Leaf
from .periods import blocks
from .stencils import extra_work

MOST_MEMBERS_OF_STENCILS = 128
"""The largest nest into which a value that it reads at several indices goes: the question goes through all members."""

MOST_SIBLINGS = 8
"""With how many of the readers of an array before it another one is compared."""


def _is_straight(instruction: HloInstruction) -> bool:
    """True for a member that reads every operand at its own index."""
    return all(
        reads_at_its_own_index(instruction, k) or not operand.shape.rank
        for k, operand in enumerate(instruction.operands)
    )


class Fuser:
    """Clusters one computation."""

    def __init__(self, computation: HloComputation, limits: FusionLimits, in_place: InPlace) -> None:
        self.computation = computation
        self.limits = limits
        self.waits = in_place.waits
        self.in_place = in_place
        self.of: dict[HloInstruction, Cluster] = {}
        self.blocks: dict[HloInstruction, int] = blocks(computation, limits.members)
        self.free = frozenset([i for i in computation.instructions if is_free(i)])
        self.number = {instruction: k for k, instruction in enumerate(computation.instructions)}
        self._order = ClusterOrder()
        self._stage: dict[HloInstruction, int] = {}
        """How many reductions in its nest a member waits for, one after the other; 0 for those that are not in it."""
        self._last_effect: HloInstruction | None = None
        self._users: dict[HloInstruction, frozenset[HloInstruction]] = {}
        self._resolved: dict[HloInstruction, tuple[HloInstruction, Dimensions]] = {}

    def run(self) -> None:
        for instruction in self.computation.instructions:
            if instruction in self.free or instruction.opcode is Opcode.PARAMETER:
                continue
            cluster = self._new_cluster(instruction)
            if cluster.fusible:
                self._absorb_operands(instruction)
        self._recompute_stencils()
        self._join_all_states()
        self._join_siblings()

    def members(self, cluster: Cluster) -> list[HloInstruction]:
        """A cluster's members in program order."""
        return [self.computation.instructions[n] for n in cluster.numbers]

    def has_fusible(self) -> bool:
        """True if there is a cluster that becomes a loop nest."""
        return any(c.fusible for c in self.of.values())

    def _new_cluster(self, instruction: HloInstruction) -> Cluster:
        number = self.number[instruction]
        reads: dict[HloInstruction, list[tuple[HloInstruction, int]]] = {}
        for k, operand in enumerate(instruction.operands):
            reads.setdefault(self.resolve(operand)[0], []).append((instruction, k))
        before = dict.fromkeys(c for source in reads if (c := self.of.get(source)) is not None)
        for reader in self.waits.get(number, ()):  # of the array that this update overwrites
            before[self.of[self.computation.instructions[reader]]] = None
        if has_side_effect(instruction):  # side effects keep their order: no cluster may extend across one
            if self._last_effect is not None:
                before[self.of[self._last_effect]] = None
            self._last_effect = instruction
        outputs = set() if self.users(instruction) <= {instruction} else {instruction}
        cluster = Cluster(
            [number], {instruction}, is_fusible(instruction), reads, {s for s in reads if s not in self.free}, outputs,
            space_of(instruction), self._is_closed(instruction), number in self.in_place.apart,
            number in self.in_place.states, self.blocks.get(instruction),
        )  # fmt: skip
        self._order.append(cluster, before)
        self.of[instruction] = cluster
        return cluster

    def _is_closed(self, instruction: HloInstruction) -> bool:
        """True for an update, which writes only a part of its output, and for a concatenation of many parts."""
        if instruction.opcode is Opcode.CONCATENATE:
            return len(instruction.operands) > self.limits.parts
        return instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE

    def resolve(self, instruction: HloInstruction) -> tuple[HloInstruction, Dimensions]:
        """(source, positions): the first instruction that is not free, and where its dimensions are in `instruction`.

        Dimensions of size 1 are not counted.
        """
        found = self._resolved.get(instruction)
        if found is None:
            found = self._resolved[instruction] = resolve(instruction, self.free.__contains__)
        return found

    def users(self, instruction: HloInstruction) -> frozenset[HloInstruction]:
        """The readers of the value, looking through free instructions; the computation's root reads itself."""
        found = self._users.get(instruction)
        if found is None:
            reached: set[HloInstruction] = set()
            stack = [instruction]
            seen = {instruction}
            while stack:
                node = stack.pop()
                if node is self.computation.root:
                    reached.add(node)
                for user in self.computation.users[node]:
                    if user not in self.free or self.must_materialise(user):
                        reached.add(user)
                    if user in self.free and user not in seen:
                        seen.add(user)
                        stack.append(user)
            found = self._users[instruction] = frozenset(reached - {instruction} | (
                {instruction} if instruction is self.computation.root else set()))
        return found

    def must_materialise(self, instruction: HloInstruction) -> bool:
        """True for a free instruction if its value is needed in memory."""
        if instruction is self.computation.root:
            return True
        for user in self.computation.users[instruction]:  # noqa: SIM110 - there are one or two as a rule
            if user not in self.free and not is_fusible(user):
                return True
        return False

    def _absorb_operands(self, instruction: HloInstruction) -> None:
        """Let the instruction's new cluster absorb its operands' clusters, latest first."""
        sources = [self.resolve(o)[0] for o in instruction.operands]
        while True:
            own = self.of[instruction]
            candidates = {
                id(c): c
                for source in sources
                if (c := self.of.get(source)) is not None and c is not own and c.fusible
            }
            ordered = sorted(candidates.values(), key=lambda c: -c.numbers[-1])
            if not any(self._merge(c, own) for c in ordered):
                return

    def _recompute_stencils(self) -> None:
        """Let each cluster absorb those of which it alone reads the result, at several indices, where that pays. Users
        come before their operands: only then all the readers of an operand are in one cluster."""
        for instruction in reversed(self.computation.instructions):
            producer = self.of.get(instruction)
            if producer is None or producer.outputs != {instruction}:
                continue
            consumers = {self.of.get(user) for user in self.users(instruction)} - {producer}
            (consumer, *others) = consumers or (None,)
            if consumer is not None and not others and producer.fusible and consumer.fusible:
                self._merge(producer, consumer)

    def edges(self, producer: Cluster, consumer: Cluster) -> list[Edge]:
        """The reads of the consumer's members from the producer's."""
        found = []
        for source in self._read_of(producer, consumer):
            for user, number in consumer.reads[source]:
                operand = user.operands[number]
                positions = self.resolve(operand)[1] if reads_at_its_own_index(user, number) else None
                found.append(Edge(source, user, positions, len(squeezed(operand)), number))
        return found

    def _read_of(self, producer: Cluster, consumer: Cluster) -> list[HloInstruction]:
        """The producer's results that the consumer reads."""
        if len(producer.outputs) < len(consumer.reads):
            return [source for source in producer.outputs if source in consumer.reads]
        return [source for source in consumer.reads if source in producer.members]

    def _merge(self, producer: Cluster, consumer: Cluster) -> bool:
        """Merge both into one cluster; False if that is not possible or does not pay."""
        if len(producer.numbers) + len(consumer.numbers) > self.limits.members or producer.closed or producer.is_apart:
            return False
        if producer.block != consumer.block:
            return False
        if len(consumer.loads) - len(producer.outputs) > self.limits.externals:  # so many will remain
            return False
        joint = self._order.joint(producer, consumer, reads=True)
        if joint is None:
            return False
        edges = self.edges(producer, consumer)
        joined = None if consumer.closed else joined_space(producer, consumer, edges, self.limits)
        inlined = consumer.inlined | producer.inlined
        if joined is None and self._may_inline(producer, consumer, edges):
            joined = consumer.space
            inlined |= producer.members
        elif joined is None:
            return False
        elif any(edge.user in consumer.inlined for edge in edges):  # at the other index, too
            inlined |= producer.members
        inside = {edge.source for edge in edges}
        loads = producer.loads | (consumer.loads - inside)
        if len(loads) > self.limits.externals:
            return False
        members = producer.members, consumer.members
        internal = [source for source in inside if not self._is_read_outside(source, *members)]
        if len(producer.outputs) + len(consumer.outputs) - len(internal) > self.limits.outputs:
            return False
        stages = {} if producer.space.reduced is None else self._stages(consumer, edges)
        if stages is None:
            return False
        self._stage.update(stages)
        producer.outputs.difference_update(internal)
        reads = consumer.reads
        for source in inside:
            del reads[source]
        closed = consumer.closed
        for source, users in producer.reads.items():
            users.extend(reads.get(source, ()))
            reads[source] = users
        merged = self._put_together(producer, consumer, joint)
        merged.reads, merged.loads = reads, loads
        merged.inlined, merged.closed, merged.space = inlined, closed, joined
        return True

    def _stages(self, consumer: Cluster, edges: list[Edge]) -> dict[HloInstruction, int] | None:
        """The members of the consumer that would wait for more reductions in their nest than now, and for how many, one
        after the other; None if these are too many: each takes one more loop, which recomputes the values before it.
        """
        raised: dict[HloInstruction, int] = {}
        stack = [(edge.user, edge.source) for edge in edges]
        while stack:
            user, source = stack.pop()
            stage = raised.get(source, self._stage.get(source, 0)) + (source.opcode is Opcode.REDUCE)
            if stage <= raised.get(user, self._stage.get(user, 0)):
                continue
            if stage > self.limits.stages:
                return None
            raised[user] = stage
            stack += [(after, user) for after in self.users(user) if after in consumer.members and after is not user]
        return raised

    def _is_read_outside(self, source: HloInstruction, a: set[HloInstruction], b: set[HloInstruction]) -> bool:
        """True if the value is needed outside of two clusters of these members."""
        for user in self.users(source):  # noqa: SIM110 - there are one or two as a rule, and this runs for each merge
            if user not in a and user not in b:
                return True
        return False

    def _join_all_states(self) -> None:
        """Merge the clusters of elements of a loop's next state that read each other's old values."""
        replaced = self.in_place.replaced
        made = {leaf: number for number, leaf in replaced.items()}
        rank = {number: k for k, number in enumerate(replaced)}
        for first in replaced:
            done = rank[first]
            while True:
                reads = self.of[self.computation.instructions[first]].reads
                read = {made[leaf] for i in reads for leaf in self.in_place.leaves[self.number[i]] if leaf in made}
                second = min((n for n in read if rank[n] > done), key=rank.__getitem__, default=None)
                if second is None:
                    break
                done = rank[second]
                self._join_states(first, second)

    def _join_states(self, first: int, second: int) -> None:
        """Merge the clusters of two elements of a loop's next state if each reads the old value of the other, index by
        index. One nest can write both in place; of two nests, the first would overwrite operands of the second."""
        a, b = (self.of[self.computation.instructions[n]] for n in (first, second))
        joint = self._side_by_side(a, b)
        if joint is None:
            return
        old_a, old_b = self.in_place.replaced[first], self.in_place.replaced[second]
        if not (self._reads_at_index(a, old_b, True) and self._reads_at_index(b, old_a, True)):
            return
        if not (self._reads_at_index(a, old_a, False) and self._reads_at_index(b, old_b, False)):
            return
        space = joined_space(a, b, (), self.limits)
        if space is not None and (space.reduced is None or can_run_again(space, self.limits)):
            self._join_side_by_side(a, b, space, joint)

    def _join_siblings(self) -> None:
        """Merge clusters that read the same array, element by element, into one nest that reads it once."""
        readers: dict[HloInstruction, list[HloInstruction]] = {}
        for cluster in dict.fromkeys(self.of.values()):
            straight = not cluster.inlined and all(map(_is_straight, cluster.members))
            if cluster.fusible and not cluster.closed and straight:
                first = self.computation.instructions[cluster.numbers[0]]
                for source in cluster.reads:
                    readers.setdefault(source, []).append(first)
        for source, several in readers.items():
            self._join_all(several, source.shape.num_elements if source.shape.is_array else None)
        together: dict[Cluster, list[HloInstruction]] = {}
        for source, several in readers.items():
            made = self.of.get(source)
            if made is not None and made.fusible:
                together.setdefault(made, []).extend(several)
        for several in together.values():
            self._join_all(several, None)

    def _join_all(self, readers: list[HloInstruction], size: int | None) -> None:
        """Merge the clusters of readers, each with one of those before it where that is possible and pays."""
        recent: list[HloInstruction] = []
        for reader in sorted(readers, key=self.number.__getitem__) if len(readers) > 1 else ():
            cluster = self.of[reader]
            if not any(self._join_readers(self.of[other], cluster, size) for other in recent):
                recent = [*recent[-MOST_SIBLINGS:], reader]

    def _join_readers(self, a: Cluster, b: Cluster, size: int | None) -> bool:
        """Merge two readers of an array with `size` elements if this saves a pass over it; True if they are one cluster
        now. `size` None: they read results of one nest, and are merged if they are small, which saves a start."""
        if a is b:
            return True
        if a.space.domain != b.space.domain:
            return False
        space = joined_space(a, b, (), self.limits)
        if space is None:
            return False
        if space.elements() > (self.limits.small_elements if size is None else 2 * size):
            return False
        if space.reduced is not None:
            if a.is_state or b.is_state:  # a nest with reductions overwrites nothing that it reads
                return False
            full = any(c.space.reduced is None for c in (a, b))
            if full and not (space.is_in_order and can_run_again(space, self.limits)):
                return False
        joint = self._side_by_side(a, b)  # last, since it may search for a way from one to the other
        if joint is None:
            return False
        self._join_side_by_side(a, b, space, joint)
        return True

    def _side_by_side(self, a: Cluster, b: Cluster) -> Joint | None:
        """How two clusters become one if they are within the limits for one nest, and neither must run before the
        other; None if not."""
        if a is b or not (a.fusible and b.fusible) or a.closed or b.closed or a.is_apart or b.is_apart:
            return None
        if a.block != b.block:
            return None
        limits = self.limits
        if len(a.numbers) + len(b.numbers) > limits.members or len(a.outputs) + len(b.outputs) > limits.outputs:
            return None
        if len(a.loads | b.loads) > limits.externals:
            return None
        return self._order.joint(a, b, reads=False)

    def _join_side_by_side(self, a: Cluster, b: Cluster, space: Space, joint: Joint) -> None:
        """Merge two independent clusters in a space."""
        reads = a.reads
        for source, users in b.reads.items():
            reads.setdefault(source, []).extend(users)
        loads, inlined = a.loads | b.loads, a.inlined | b.inlined
        merged = self._put_together(a, b, joint)
        merged.reads, merged.loads, merged.inlined, merged.space = reads, loads, inlined, space

    def _reads_at_index(self, cluster: Cluster, leaf: Leaf, must: bool) -> bool:
        """True when all reads of an array are at the index of the nest, and if it `must` be read, there is one."""
        found = not must
        for source, users in cluster.reads.items():
            if leaf not in self.in_place.leaves[self.number[source]]:
                continue
            found = True
            for user, number in users:
                operand = user.operands[number]
                straight = self.resolve(operand)[1] == tuple(range(len(squeezed(operand))))
                if user in cluster.inlined or not straight or not reads_at_its_own_index(user, number):
                    return False
        return found

    def _may_inline(self, producer: Cluster, consumer: Cluster, edges: list[Edge]) -> bool:
        """True when the producer's one result is read at another index: by only one instruction, or, if the producer
        itself reads nothing, as masks made of positions do, or costs little to compute several times, only in the
        consumer."""
        if producer.space.reduced is not None or len({e.source for e in edges}) != 1:
            return False
        edge = edges[0]
        users = self.users(edge.source)
        if users != {edge.user} and not (users <= consumer.members and _reads_nothing(producer)):
            return users <= consumer.members and self._may_recompute(producer, consumer, edge.source)
        if not producer.outputs <= {edge.source}:
            return False
        if edge.user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and any(
            self.resolve(edge.user.operands[0])[0] is e.source for e in edges
        ):
            return False
        if not producer.space.domain:
            return True
        reads = sum(math.prod(accessed(e.user, e.operand)) for e in edges)
        if reads <= producer.space.elements() and (
            edge.user.opcode not in OF_PARTS or _parted(producer) + _parted(consumer) == 1
        ):
            return True
        limits = self.limits
        if len(producer.members) > (
            limits.recomputed_positions if _reads_nothing(producer) else limits.recomputed_members
        ):
            return False
        return not any(has_trait(m.opcode, Trait.EXPENSIVE) for m in producer.members)

    def _may_recompute(self, producer: Cluster, consumer: Cluster, value: HloInstruction) -> bool:
        """True when the consumer may compute the producer's one result at each of the indices at which it reads it."""
        if consumer.closed or consumer.is_state or producer.is_state or len(producer.outputs) > 1:
            return False
        if producer.space.reduced is not None or consumer.space.reduced is not None:
            return False
        if len(producer.numbers) + len(consumer.numbers) > MOST_MEMBERS_OF_STENCILS:
            return False
        members = [self.computation.instructions[n] for n in sorted(producer.numbers + consumer.numbers)]
        shifted, limits = producer.members | consumer.inlined, self.limits
        most = limits.recomputed_uncached if value.shape.byte_size >= limits.uncached else limits.recomputed_work
        return extra_work(members, shifted, producer.members, self.resolve) <= most

    def _put_together(self, producer: Cluster, consumer: Cluster, joint: Joint) -> Cluster:
        """Add the members and sets of one cluster to the other. The larger one is kept, to move less."""
        merged, other = producer, consumer
        if _size(merged) < _size(other):
            merged, other = other, merged
        self._order.join(merged, other, joint)
        merged.numbers = sorted(merged.numbers + other.numbers)
        merged.members |= other.members
        merged.outputs |= other.outputs
        merged.is_apart |= other.is_apart
        merged.is_state |= other.is_state
        for member in other.members:
            self.of[member] = merged
        return merged


def _size(cluster: Cluster) -> int:
    return len(cluster.members) + len(cluster.before) + len(cluster.after)


def _parted(cluster: Cluster) -> int:
    """How many members have results of several parts. If a nest has several of them, a part is in several loops, so its
    text would be as long as the loops are many."""
    return sum(member.opcode in OF_PARTS for member in cluster.members)


def _reads_nothing(cluster: Cluster) -> bool:
    """True for a cluster that computes from positions and constants alone."""
    return all(source.opcode in (Opcode.IOTA, Opcode.CONSTANT) for source in cluster.reads)
