"""Fusion: groups instructions into clusters, each of which becomes one loop nest.

Instructions are visited in order. Each starts a separate cluster, which then takes in the clusters of its operands if
that is legal and pays (producer-consumer fusion; a producer that others also need stays an output, so a fusion may
have several). Instructions that cost nothing to compute again (constants, iota, broadcasts, changes of rank) belong to
no cluster; they are copied into each cluster that uses them.

A cluster has a domain, the dimensions that its loops run over, and perhaps reduced dimensions R of that domain. A
member has an element for each element of the domain ("full") or for each kept index ("kept"), or it is read only by
one member, at another index ("inlined"). A backend must have a nest for each such cluster: those of the Numba backend
are in `numba_backend/emit/nest.py` and `nest_reduce.py`.

Cost model: fusing saves a write and a read of memory and never repeats expensive work; it must not take away the
parallelism of a large computation. What "large" means is the backend's choice: `FusionLimits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import combinations

from ...builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple, with_unique_names
from ...effects import effects_of, has_side_effect
from ...ir import NO_ATTRIBUTES, HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.structure import FusionAttributes, FusionKind
from .clusters import Cluster, Edge, FusionLimits, accessed, joined_domain, set_reduction
from .fusible import (
    Dimensions,
    is_free,
    is_fusible,
    reads_at_its_own_index,
    resolve,
    squeezed,
)
from .in_place import InPlace, in_place_of
from .overwriting import Leaf, find_overwriting


class _Fuser:
    """Clusters one computation."""

    def __init__(self, computation: HloComputation, limits: FusionLimits, in_place: InPlace) -> None:
        self.computation = computation
        self.limits = limits
        self.waits = in_place.waits
        self.apart = in_place.apart
        self.in_place = in_place
        self.of: dict[HloInstruction, Cluster] = {}
        self.number = {instruction: k for k, instruction in enumerate(computation.instructions)}
        self._last_effect: Cluster | None = None
        self._users: dict[HloInstruction, frozenset[HloInstruction]] = {}
        self._resolved: dict[HloInstruction, tuple[HloInstruction, Dimensions]] = {}

    def run(self) -> None:
        for instruction in self.computation.instructions:
            if is_free(instruction) or instruction.opcode is Opcode.PARAMETER:
                continue
            cluster = self._new_cluster(instruction)
            if cluster.fusible:
                self._absorb_operands(instruction)
        for first, second in combinations(self.in_place.replaced, 2):
            self._join_states(first, second)

    def members(self, cluster: Cluster) -> list[HloInstruction]:
        """A cluster's members in program order."""
        return [self.computation.instructions[n] for n in cluster.numbers]

    def has_fusible(self) -> bool:
        """True if there is a cluster that becomes a loop nest."""
        return any(c.fusible for c in self.of.values())

    def _new_cluster(self, instruction: HloInstruction) -> Cluster:
        number, ancestors = self.number[instruction], 0
        reads: dict[HloInstruction, list[tuple[HloInstruction, int]]] = {}
        for k, operand in enumerate(instruction.operands):
            reads.setdefault(self.resolve(operand)[0], []).append((instruction, k))
        before = {id(c): c for source in reads if (c := self.of.get(source)) is not None}
        for reader in self.waits.get(number, ()):  # of the array that this update overwrites
            earlier = self.of[self.computation.instructions[reader]]
            before[id(earlier)] = earlier
        acts = has_side_effect(instruction)
        if acts and self._last_effect is not None:  # side effects keep their order: no cluster may extend across one
            before[id(self._last_effect)] = self._last_effect
        for cluster in before.values():
            ancestors |= cluster.bits | cluster.ancestors
            cluster.readers.add(instruction)
        outputs = set() if self.users(instruction) <= {instruction} else {instruction}
        cluster = Cluster(
            [number], {instruction}, 1 << number, ancestors, is_fusible(instruction), reads, set(), outputs
        )
        if instruction.opcode is Opcode.REDUCE:
            set_reduction(cluster, instruction)
        elif instruction.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
            cluster.domain, cluster.closed = squeezed(instruction.operands[1]), True
        elif instruction.shape.is_array:
            cluster.domain = squeezed(instruction)
        if acts:
            self._last_effect = cluster
        self.of[instruction] = cluster
        return cluster

    def resolve(self, instruction: HloInstruction) -> tuple[HloInstruction, Dimensions]:
        """(source, positions): the first instruction that is not free, and where its dimensions are in `instruction`.

        Dimensions are counted without those of size 1.
        """
        found = self._resolved.get(instruction)
        if found is None:
            found = self._resolved[instruction] = resolve(instruction)
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
                    if not is_free(user) or self.must_materialise(user):
                        reached.add(user)
                    if is_free(user) and user not in seen:
                        seen.add(user)
                        stack.append(user)
            found = self._users[instruction] = frozenset(reached - {instruction} | (
                {instruction} if instruction is self.computation.root else set()))
        return found

    def must_materialise(self, instruction: HloInstruction) -> bool:
        """True for a free instruction whose value is needed in memory."""
        if instruction is self.computation.root:
            return True
        return any(not is_free(u) and not is_fusible(u) for u in self.computation.users[instruction])

    def _absorb_operands(self, instruction: HloInstruction) -> None:
        """Let the instruction's new cluster take in those of its operands, latest first."""
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

    def edges(self, producer: Cluster, consumer: Cluster) -> list[Edge]:
        """The reads of the consumer's members from the producer's."""
        found = []
        for source, reads in consumer.reads.items():
            if self.of.get(source) is producer:
                for user, number in reads:
                    operand = user.operands[number]
                    positions = self.resolve(operand)[1] if reads_at_its_own_index(user, number) else None
                    found.append(Edge(source, user, positions, len(squeezed(operand)), number))
        return found

    def _merge(self, producer: Cluster, consumer: Cluster) -> bool:
        """Merge both into one cluster; False if that is not possible or does not pay."""
        if len(producer.numbers) + len(consumer.numbers) > self.limits.members or producer.closed:
            return False
        if len(consumer.reads) - len(producer.outputs) > self.limits.externals:  # more than the limit will remain
            return False
        if producer.bits & self.apart or self._reached_from_outside(producer, consumer):
            return False
        edges = self.edges(producer, consumer)
        joined = None if consumer.closed else joined_domain(producer, consumer, edges, self.limits)
        if joined is None and self._may_inline(producer, consumer, edges):
            joined = (consumer.domain, consumer.reduced)
            inlined = consumer.inlined | producer.members
        elif joined is None:
            return False
        else:
            inlined = consumer.inlined | producer.inlined
        reads = {source: users for source, users in consumer.reads.items() if source not in producer.members}
        for source, users in producer.reads.items():
            reads[source] = [*users, *reads.get(source, ())]
        if len(reads) > self.limits.externals:
            return False
        closed = consumer.closed
        merged = self._put_together(producer, consumer)
        merged.reads, merged.inlined, merged.closed = reads, inlined, closed
        merged.domain, merged.reduced = joined
        return True

    def _join_states(self, first: int, second: int) -> None:
        """Merge the clusters of two elements of a loop's next state if each reads the old value of the other, index by
        index. One nest can write both in place; of two, the first would overwrite what the second needs."""
        a, b = (self.of[self.computation.instructions[n]] for n in (first, second))
        if a is b or a.domain != b.domain or not (a.fusible and b.fusible) or a.closed or b.closed:
            return
        if a.reduced is not None or b.reduced is not None or a.ancestors & b.bits or b.ancestors & a.bits:
            return
        if len(a.numbers) + len(b.numbers) > self.limits.members or (a.bits | b.bits) & self.apart:
            return
        old_a, old_b = self.in_place.replaced[first], self.in_place.replaced[second]
        if not (self._reads_at_index(a, old_b, True) and self._reads_at_index(b, old_a, True)):
            return
        if not (self._reads_at_index(a, old_a, False) and self._reads_at_index(b, old_b, False)):
            return
        reads = {source: list(users) for source, users in a.reads.items()}
        for source, users in b.reads.items():
            reads[source] = [*reads.get(source, ()), *users]
        if len(reads) > self.limits.externals:
            return
        inlined = a.inlined | b.inlined
        self._tell(set(b.readers), a.bits | a.ancestors)
        merged = self._put_together(a, b)
        merged.reads, merged.inlined = reads, inlined

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

    def _reached_from_outside(self, producer: Cluster, consumer: Cluster) -> bool:
        """True when a third cluster runs between the two, so that one nest of both would wait for itself.

        The last cluster between them is read by the consumer, or reads what the consumer overwrites, and has the
        producer among its ancestors.
        """
        sources: Iterable[HloInstruction] = consumer.reads
        if self.waits:
            numbers = [n for member in consumer.numbers for n in self.waits.get(member, ())]
            sources = {*sources, *(self.computation.instructions[n] for n in numbers)} - consumer.members
        for source in sources:
            between = self.of.get(source)
            if between is not None and between is not producer and between.ancestors & producer.bits:
                return True
        return False

    def _may_inline(self, producer: Cluster, consumer: Cluster, edges: list[Edge]) -> bool:
        """True when the producer's one result is read by only one instruction, at another index."""
        if producer.reduced is not None or len({e.source for e in edges}) != 1:
            return False
        edge = edges[0]
        if self.users(edge.source) != {edge.user}:
            return False
        if not producer.outputs <= {edge.source}:
            return False
        if edge.user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and any(
            self.resolve(edge.user.operands[0])[0] is e.source for e in edges
        ):
            return False
        if not producer.domain:
            return True
        reads = sum(math.prod(accessed(e.user, e.operand)) for e in edges)
        if reads <= math.prod(producer.domain):
            return True
        if len(producer.members) > self.limits.recomputed_members:
            return False
        return not any(has_trait(m.opcode, Trait.EXPENSIVE) for m in producer.members)

    def _put_together(self, producer: Cluster, consumer: Cluster) -> Cluster:
        """Add the members and sets of one cluster to the other. The larger one is kept, to move less."""
        for source in consumer.reads:
            if source in producer.outputs and self.users(source) <= producer.members | consumer.members:
                producer.outputs.discard(source)
        after, news = producer.readers, consumer.bits | consumer.ancestors
        self._tell(after - consumer.members, news)
        ancestors = (producer.ancestors | consumer.ancestors) & ~(producer.bits | consumer.bits)
        merged, other = (producer, consumer)
        if len(merged.members) < len(other.members):
            merged, other = other, merged
        merged.numbers = sorted(merged.numbers + other.numbers)
        merged.bits |= other.bits
        merged.ancestors = ancestors
        merged.members |= other.members
        merged.outputs |= other.outputs
        merged.readers |= other.readers
        merged.readers -= merged.members
        for member in other.members:
            self.of[member] = merged
        return merged

    def _tell(self, readers: set[HloInstruction], ancestors: int) -> None:
        """Add `ancestors` to the clusters of `readers` and to all that run after these."""
        pending = [self.of[r] for r in readers]
        while pending:
            cluster = pending.pop()
            if ancestors & ~cluster.ancestors:
                cluster.ancestors |= ancestors
                pending += [self.of[r] for r in cluster.readers]


@dataclass(frozen=True)
class Fusion:
    """The pass. Afterwards all fusible instructions are in FUSION instructions."""

    limits: FusionLimits
    name: str = "fusion"

    def __call__(self, module: HloModule) -> HloModule:
        fused: dict[HloComputation, HloComputation] = {}
        scalar = _scalar_computations(module)
        overwriting = find_overwriting(module, is_free)
        for computation in module.computations:
            if computation in scalar:
                fused[computation] = computation
                continue
            ordered, in_place = in_place_of(computation, overwriting.get(computation), computation is not module.entry)
            fused[computation] = _fuse(_with_calls(ordered, fused), self.limits, in_place)
        entry = fused[module.entry]
        return module if entry is module.entry else with_unique_names(replace(module, entry=entry))


def _scalar_computations(module: HloModule) -> set[HloComputation]:
    """Reducers and the bodies of fusions: no nests are made in them."""
    found: set[HloComputation] = set()
    for instruction in module.instructions():
        if instruction.opcode is Opcode.FUSION or has_trait(instruction.opcode, Trait.APPLIES):
            found.update(instruction.called_computations())
    return found


def _with_calls(computation: HloComputation, fused: dict[HloComputation, HloComputation]) -> HloComputation:
    """The computation, calling the fused computations."""
    mapping: dict[HloInstruction, HloInstruction] = {}
    changed = False
    for old in computation.instructions:
        new = old.with_operands(tuple(mapping[o] for o in old.operands))
        if new.attributes is not NO_ATTRIBUTES:
            attributes = new.attributes.map_computations(fused.__getitem__)
            if attributes is not new.attributes:
                new = replace(new, attributes=attributes)
        changed = changed or new is not old
        mapping[old] = new
    if not changed:
        return computation
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])


def _fuse(computation: HloComputation, limits: FusionLimits, in_place: InPlace) -> HloComputation:
    fuser = _Fuser(computation, limits, in_place)
    fuser.run()
    if not fuser.has_fusible() and not any(
        is_free(i) and fuser.must_materialise(i) for i in computation.instructions
    ):
        return computation
    return _Materialiser(fuser).run()


class _Materialiser:
    """Writes the clusters as FUSION instructions."""

    def __init__(self, fuser: _Fuser) -> None:
        self.fuser = fuser
        self.mapping: dict[HloInstruction, HloInstruction] = {}

    def run(self) -> HloComputation:
        computation = self.fuser.computation
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.PARAMETER:
                self.mapping[instruction] = instruction
        parameters = [self.mapping[p] for p in computation.parameters]
        order = dict.fromkeys(parameters)
        for needed in (*effects_of(computation), computation.root):
            self._need(needed)
            _append_all(order, self.mapping[needed])
        return HloComputation(computation.name, tuple(order), self.mapping[computation.root])

    def _need(self, root: HloInstruction) -> None:
        """Fill `mapping` for `root`, iteratively."""
        stack = [root]
        while stack:
            top = stack[-1]
            if top in self.mapping:
                stack.pop()
                continue
            needed = self._dependencies(top)
            pending = [n for n in needed if n not in self.mapping]
            if pending:
                stack.extend(pending)
                continue
            stack.pop()
            self._build(top, needed)

    def _dependencies(self, instruction: HloInstruction) -> list[HloInstruction]:
        """What must exist in memory before the instruction's cluster can run."""
        cluster = self.fuser.of.get(instruction)
        if cluster is not None and not cluster.fusible:
            return list(instruction.operands)
        if instruction.opcode in (Opcode.RESHAPE, Opcode.BITCAST):
            return list(instruction.operands)
        members = [instruction] if cluster is None else self.fuser.members(cluster)
        inside = set(members)
        found: dict[HloInstruction, None] = {}
        stack = [o for m in reversed(members) for o in reversed(m.operands)]
        if cluster is None:
            stack = list(reversed(instruction.operands))
        while stack:
            node = stack.pop()
            if node in inside or node in found:
                continue
            if is_free(node):
                stack.extend(reversed(node.operands))
            else:
                found[node] = None
        return list(found)

    def _build(self, instruction: HloInstruction, needed: list[HloInstruction]) -> None:
        cluster = self.fuser.of.get(instruction)
        if cluster is not None and not cluster.fusible:
            self.mapping[instruction] = instruction.with_operands(tuple(self.mapping[o] for o in instruction.operands))
            return
        if cluster is None and (
            instruction.opcode in (Opcode.RESHAPE, Opcode.BITCAST, Opcode.CONSTANT)
        ):
            self.mapping[instruction] = instruction.with_operands(tuple(self.mapping[o] for o in instruction.operands))
            return
        members = [instruction] if cluster is None else self.fuser.members(cluster)
        outputs = members if cluster is None else self._outputs(cluster)
        kind = FusionKind.INPUT if cluster is not None and cluster.reduced is not None else FusionKind.LOOP
        fusion = _make_fusion(members, outputs, needed, [self.mapping[n] for n in needed], kind)
        for output, value in zip(outputs, _results(fusion, outputs), strict=True):
            self.mapping[output] = value

    def _outputs(self, cluster: Cluster) -> list[HloInstruction]:
        """Members that are used outside. For a reduction of several operands these are its elements."""
        root = self.fuser.computation.root
        return [m for m in self.fuser.members(cluster) if m in cluster.outputs or m is root]


def _make_fusion(
    members: list[HloInstruction], outputs: list[HloInstruction], needed: list[HloInstruction],
    operands: list[HloInstruction], kind: FusionKind,
) -> HloInstruction:  # fmt: skip
    inner: dict[HloInstruction, HloInstruction] = {}
    for number, external in enumerate(needed):
        inner[external] = make_parameter(number, external.shape, f"param_{number}")
    for member in members:
        _clone(member, inner)
    leaves: list[HloInstruction] = []
    for output in outputs:
        if output.shape.is_tuple:
            leaves.extend(make_get_tuple_element(inner[output], k) for k in range(len(output.shape.elements)))
        else:
            leaves.append(inner[output])
    root = leaves[0] if len(leaves) == 1 else make_tuple(leaves)
    order = dict.fromkeys(inner[n] for n in needed)
    _append_all(order, root)
    computation = HloComputation("fused_computation", tuple(order), root)
    named = [m.opcode.value for m in members if not is_free(m)][-2:] or [members[-1].opcode.value]
    return make_instruction(
        Opcode.FUSION, operands, FusionAttributes(kind, computation), root.shape,
        name="_".join([*dict.fromkeys(n.replace("-", "_") for n in named), "fusion"]), metadata=members[-1].metadata,
    )  # fmt: skip


def _clone(member: HloInstruction, inner: dict[HloInstruction, HloInstruction]) -> None:
    """Add copies of `member` and of the free instructions that it reads to `inner`, on the operands in `inner`."""
    stack = [member]
    while stack:
        node = stack[-1]
        if node in inner:
            stack.pop()
            continue
        pending = [o for o in node.operands if o not in inner]
        if pending:
            stack.extend(pending)
            continue
        stack.pop()
        operands = tuple([inner[o] for o in node.operands])
        inner[node] = HloInstruction(
            node.opcode, node.shape, operands, node.attributes, node.name, node.metadata, node.frontend_attributes,
            node.annotations,
        )  # fmt: skip


def _results(fusion: HloInstruction, outputs: list[HloInstruction]) -> list[HloInstruction]:
    """The fusion's results, one for each output; tuple-shaped outputs are assembled again."""
    if not fusion.shape.is_tuple:
        return [fusion]
    results: list[HloInstruction] = []
    position = 0
    for output in outputs:
        count = len(output.shape.elements) if output.shape.is_tuple else 1
        parts = [make_get_tuple_element(fusion, position + k) for k in range(count)]
        results.append(make_tuple(parts) if output.shape.is_tuple else parts[0])
        position += count
    return results


def _append_all(order: dict[HloInstruction, None], root: HloInstruction) -> None:
    stack = [root]
    while stack:
        node = stack[-1]
        if node in order:
            stack.pop()
            continue
        pending = [o for o in node.operands if o not in order]
        if pending:
            stack.extend(reversed(pending))
            continue
        stack.pop()
        order[node] = None
