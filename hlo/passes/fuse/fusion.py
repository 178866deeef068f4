"""Fusion: groups instructions into clusters; each becomes one loop nest.

Instructions are visited in order. Each starts a separate cluster, which then takes in the clusters of its operands if
that is legal and pays (producer-consumer fusion; a producer that others also need stays an output, so a fusion may
have several). Then clusters that read the same array and do not wait for each other become one, which reads it once
(siblings). Instructions that cost nothing to compute again (constants, iota, broadcasts, changes of rank) belong to
no cluster; they are copied into each cluster that uses them.

A cluster has a space (`clusters.py`): a domain, the dimensions that its loops run over, and perhaps dimensions of it
that are reduced. A member has an element for each element of the domain ("full") or for each kept index ("kept"), or it
is read only by one member, at another index ("inlined"; an instruction that reads no array, by several). Beside
reductions of rows there may be some along columns, if no member of the nest reads their results. A backend must have a
nest for each such cluster: the Numba backend's nests are in `numba_backend/emit/nest.py` and `nest_stages.py`.

Cost model: fusing saves a write and a read of memory and never repeats expensive work; it must not take away the
parallelism of a large computation. The backend chooses the limit for "large": `FusionLimits`.
"""

from __future__ import annotations

from dataclasses import replace

from ...builder import make_get_tuple_element, make_instruction, make_parameter, make_tuple, with_unique_names
from ...effects import effects_of
from ...ir import NO_ATTRIBUTES, HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...ops import Trait, has_trait
from ...ops.structure import FusionAttributes, FusionKind
from ...provenance import NOTES, note_made, note_replacements
from ...support.records import dataclass
from ..by_form import entry_by_form
from .clusters import Cluster, FusionLimits, is_full_in, is_kept_in
from .early_order import with_early_uses
from .fuser import Fuser
from .fusible import is_free
from .in_place import InPlace, in_place_of
from .overwriting import find_overwriting


@dataclass(frozen=True)
class Fusion:
    """The pass. Afterwards all fusible instructions are in FUSION instructions."""

    limits: FusionLimits
    name: str = "fusion"

    def __call__(self, module: HloModule) -> HloModule:
        recorded = NOTES.get() is not None  # each instruction has an origin then
        entry = self._entry(module) if recorded else entry_by_form(module, self.limits, self._entry)
        if entry is module.entry:
            return module
        before = set(module.instructions())  # all others were made here
        return with_unique_names(replace(module, entry=entry), is_own=lambda i: i not in before)

    def _entry(self, module: HloModule) -> HloComputation:
        """The new entry computation."""
        fused: dict[HloComputation, HloComputation] = {}
        scalar = _scalar_computations(module)
        overwriting = find_overwriting(module, is_free)
        for computation in module.computations:
            if computation in scalar:
                fused[computation] = computation
                continue
            found = overwriting.get(computation)
            if found is None and len(computation.instructions) > self.limits.members:  # several kernels
                early = with_early_uses(computation)
                fused[computation] = _fuse(_with_calls(early, fused), self.limits, InPlace())
                continue
            ordered, in_place = in_place_of(computation, found, computation is not module.entry)
            fused[computation] = _fuse(_with_calls(ordered, fused), self.limits, in_place)
        return fused[module.entry]


def _scalar_computations(module: HloModule) -> set[HloComputation]:
    """Reducers and the bodies of fusions: no nests are made in them."""
    found: set[HloComputation] = set()
    for computation in module.computations:
        for instruction in computation.callers:
            if instruction.opcode is Opcode.FUSION or has_trait(instruction.opcode, Trait.APPLIES):
                found.update(instruction.called_computations())
    return found


def _with_calls(computation: HloComputation, fused: dict[HloComputation, HloComputation]) -> HloComputation:
    """The computation, calling the fused computations."""
    if all(fused[c] is c for c in computation.callees):
        return computation
    mapping: dict[HloInstruction, HloInstruction] = {}
    for old in computation.instructions:
        new = old.with_operands(tuple([mapping[o] for o in old.operands]))
        if new.attributes is not NO_ATTRIBUTES:
            attributes = new.attributes.map_computations(fused.__getitem__)
            if attributes is not new.attributes:
                new = replace(new, attributes=attributes)
        mapping[old] = new
    note_replacements(mapping)
    return HloComputation(computation.name, tuple(mapping.values()), mapping[computation.root])


def _fuse(computation: HloComputation, limits: FusionLimits, in_place: InPlace) -> HloComputation:
    fuser = Fuser(computation, limits, in_place)
    fuser.run()
    if not fuser.has_fusible() and not any(
        is_free(i) and fuser.must_materialise(i) for i in computation.instructions
    ):
        return computation
    return _Materialiser(fuser).run()


class _Materialiser:
    """Writes the clusters as FUSION instructions."""

    def __init__(self, fuser: Fuser) -> None:
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
        note_replacements(self.mapping, trees=True)
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
        """The instructions that must be in memory before the instruction's cluster can run."""
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
            if node in self.fuser.free:
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
        kind = FusionKind.INPUT if cluster is not None and cluster.space.reduced is not None else FusionKind.LOOP
        needed = _in_order(outputs, needed)
        fusion = _make_fusion(members, outputs, needed, [self.mapping[n] for n in needed], kind)
        note_made(fusion, members)
        for output, value in zip(outputs, _results(fusion, outputs), strict=True):
            self.mapping[output] = value

    def _outputs(self, cluster: Cluster) -> list[HloInstruction]:
        """Members that are used outside. For a reduction of several operands these are its elements.

        A nest over columns also needs memory for its accumulators, and for values that it computes once for each column
        and reads for each element.
        """
        root = self.fuser.computation.root
        members = self.fuser.members(cluster)
        needed = {m for m in members if m in cluster.outputs or m is root}
        space = cluster.space
        if space.is_columns:
            for member in members:
                if member.opcode is Opcode.REDUCE:
                    needed.add(member)
                elif not is_full_in(member, space):
                    continue
                for operand in member.operands:
                    source = self.fuser.resolve(operand)[0]
                    if source in cluster.members and source not in cluster.inlined and is_kept_in(source, space):
                        needed.add(source)
        return _in_own_order([m for m in members if m in needed], members)


def _in_own_order(outputs: list[HloInstruction], members: list[HloInstruction]) -> list[HloInstruction]:
    """The outputs in an order that depends on how they are computed, and not on where they are in the program: equal
    clusters have equal kernels. Those of few steps are the first. Sizes do not matter, lest another size have another
    kernel; outputs that are alike stay as they are."""
    if len(outputs) < 2:
        return outputs
    steps: dict[HloInstruction, int] = {}
    forms: dict[HloInstruction, int] = {}
    for member in members:
        most, form = 0, _NUMBERS[member.opcode] * 8 + member.shape.rank if member.shape.is_array else 0
        for operand in member.operands:
            while operand not in steps and operand.operands and is_free(operand):
                operand = operand.operands[0]
            most = max(most, steps.get(operand, 0))
            form = form * 31 + forms.get(operand, 0)  # what is read may be computed in any way
        for called in member.called_computations():
            form = form * 31 + _NUMBERS[called.root.opcode]
        steps[member], forms[member] = most + 1, form & _MASK
    return sorted(outputs, key=lambda output: (steps[output], forms[output]))


_NUMBERS = {opcode: number for number, opcode in enumerate(Opcode)}
_MASK = (1 << 61) - 1


def _in_order(outputs: list[HloInstruction], needed: list[HloInstruction]) -> list[HloInstruction]:
    """The values that a cluster needs, in the order in which its outputs lead there. It does not depend on the order of
    the program, so that equal clusters have equal kernels."""
    missing, seen = dict.fromkeys(needed), set[HloInstruction]()
    found: list[HloInstruction] = []
    stack = outputs[::-1]
    while stack and missing:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node in missing:
            del missing[node]
            found.append(node)
        else:
            stack.extend(reversed(node.operands))
    return [*found, *missing]


def _make_fusion(
    members: list[HloInstruction], outputs: list[HloInstruction], needed: list[HloInstruction],
    operands: list[HloInstruction], kind: FusionKind,
) -> HloInstruction:  # fmt: skip
    inner: dict[HloInstruction, HloInstruction] = {}
    for number, external in enumerate(needed):
        inner[external] = make_parameter(number, external.shape, f"param_{number}")
    for member in members:
        _clone(member, inner)
    note_replacements(inner)
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
