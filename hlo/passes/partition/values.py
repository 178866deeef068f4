"""The values of a program, leaf by leaf, and the instructions that tie their shardings together.

A loop's state is one value: the operand, the body's parameter and result, the condition's parameter, the result. So are
a tuple's element and the instruction that reads it. All other instructions are nodes, and shardings are carried through
their factors; an instruction that holds several independent values, such as a tuple, is a node for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from ...errors import UnsupportedError
from ...ir import HloComputation, HloInstruction, HloModule
from ...opcode import Opcode
from ...shape import Shape
from ...sharding import HloSharding, ShardingError
from ...shardy import (
    GLOBAL_TO_LOCAL,
    IN_SHARDINGS,
    LOCAL_TO_GLOBAL,
    OUT_SHARDINGS,
    SHARDING,
    NamedMesh,
    attribute,
    meshes_of,
    shardings_of,
)
from ...support.records import dataclass
from .axes import Axes, DeviceMesh, Spec
from .factors import PASSED_ON, Factors, factors_of
from .prepare import BORDERS, NOWHERE, TO_PARTS, TO_WHOLE, Region, sorted_out, target_of
from .propagation import Node, Value

SIDE_BY_SIDE = frozenset({Opcode.TUPLE, Opcode.OPT_BARRIER, Opcode.DOMAIN, Opcode.COPY})
"""Instructions with results that have the operands' leaves, which are independent of each other."""

_REFUSED = frozenset({Opcode.INFEED, Opcode.OUTFEED, Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE})


@dataclass(frozen=True, slots=True)
class Stated:
    """A sharding that the program states for a leaf, and which dimensions it fixes; None: all."""

    sharding: HloSharding
    is_open: tuple[bool, ...] | None = None


@dataclass(slots=True)
class Statements:
    """The shardings that the text of a module states."""

    meshes: Mapping[str, NamedMesh]

    @staticmethod
    def of(module: HloModule) -> Statements:
        return Statements(meshes_of(module.frontend_attributes))

    def of_instruction(self, instruction: HloInstruction) -> list[Stated | None]:
        """For each leaf of the result."""
        leaves = list(instruction.shape.leaves())
        text = attribute_text(instruction)
        if text is None:
            return [None] * len(leaves)
        sharding = HloSharding.parse(text)
        found = flat(sharding, leaves, instruction)
        opened = self.open_dimensions(instruction)
        return [Stated(s, opened) for s in found]

    def open_dimensions(self, instruction: HloInstruction) -> tuple[bool, ...] | None:
        """Which dimensions of a constraint the partitioner may cut further."""
        if not instruction.shape.is_array:
            return None
        text = attribute(instruction, SHARDING)
        if text is not None and "?" in text:
            return shardings_of(text, self.meshes)[0].is_open
        if target_of(instruction) == "Sharding" or target_of(instruction) in BORDERS:
            match = re.search(r"unspecified_dims=\[([0-9, ]*)\]", instruction.attributes.backend_config)
            if match is not None:
                numbers = {int(n) for n in match.group(1).split(",") if n.strip()}
                return tuple([d in numbers for d in range(instruction.shape.rank)])
        return None

    def at_border(self, instruction: HloInstruction) -> list[Stated | None]:
        """The shardings of whole arrays at the begin or the end of a shard_map, in either form: one for each leaf."""
        begins = target_of(instruction) in TO_PARTS
        key = IN_SHARDINGS if begins else OUT_SHARDINGS
        text = attribute(instruction, key)
        if target_of(instruction) in (GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL):
            if text is None:
                raise ShardingError(f"{instruction.name}, {target_of(instruction)}, does not state {key}")
            return [Stated(s.sharding) for s in shardings_of(text, self.meshes)]
        if begins:
            return [None] * len(list(instruction.operands[0].shape.leaves()))
        found = self.of_instruction(instruction)
        if any(s is None for s in found):
            raise ShardingError(f"{instruction.name}, SPMDShardToFullShape, must state the sharding of its result")
        return found

    def states_any(self, module: HloModule) -> bool:
        """True if an instruction states a sharding, or begins a shard_map."""
        return any(
            target_of(i) in TO_PARTS or any(key == "sharding" for key, _ in i.annotations)
            for i in module.instructions()
        )

    def devices(self, module: HloModule) -> int:
        """How many devices the module speaks of; 1 if it speaks of none."""
        count = module.num_partitions
        for instruction in module.instructions():
            text = attribute_text(instruction)
            if text is not None and "devices" in text:
                count = max(count, HloSharding.parse(text).num_devices or 1)
            elif target_of(instruction) in TO_PARTS:
                count = max([count, *(len(mesh.devices) for mesh in self.meshes.values())])
        return count


def is_obeyed(stated: Stated) -> bool:
    """False for a statement that does not divide: that one device computes an array (here all devices do), or that it
    is one device's own (`prepare.py` has found those)."""
    return not stated.sharding.is_manual and not stated.sharding.is_maximal


def attribute_text(instruction: HloInstruction) -> str | None:
    """The text of the annotation `sharding`."""
    return next((text for key, text in instruction.annotations if key == "sharding"), None)


def flat(sharding: HloSharding, leaves: Sequence[Shape], instruction: HloInstruction) -> list[HloSharding]:
    """One sharding for each leaf. ShardingError if there are more or fewer, or of another rank."""
    elements = list(_leaves(sharding)) if sharding.is_tuple else [sharding] * len(leaves)
    if len(elements) != len(leaves):
        raise ShardingError(
            f"{instruction.name} has {len(leaves)} arrays, and its sharding {sharding} is for {len(elements)}"
        )
    for each, leaf in zip(elements, leaves, strict=True):
        each.require_rank(leaf.rank)
    return elements


def _leaves(sharding: HloSharding) -> Iterator[HloSharding]:
    for each in sharding.elements:
        if each.is_tuple:
            yield from _leaves(each)
        else:
            yield each


Key = tuple[HloInstruction, int]


@dataclass(slots=True)
class Values:
    """All values and nodes of a prepared module."""

    module: HloModule
    statements: Statements
    manual: set[HloInstruction] = field(default_factory=set)
    regions: dict[HloInstruction, Region] = field(default_factory=dict)
    """Of each instruction within a shard_map that takes some axes only."""
    own: dict[Key, frozenset[int]] = field(default_factory=dict)
    """The axes along which devices have values of their own."""
    prefixes: dict[Key, Spec] = field(default_factory=dict)
    """By (border of such a shard_map, leaf): along which of its axes it cuts whole arrays."""
    joined: dict[Key, Key] = field(default_factory=dict)
    values: dict[Key, Value] = field(default_factory=dict)
    borders: dict[Key, Value] = field(default_factory=dict)
    """By (begin of a shard_map, leaf of its operands): the value in the sharding that the shard_map wants."""
    results: list[Value] = field(default_factory=list)
    """The leaves of the program's result, as the caller gets them."""
    stated: dict[Key, Stated] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    factors: dict[HloInstruction, Factors] = field(default_factory=dict)

    def find(self, key: Key) -> Key:
        while key in self.joined:
            key = self.joined[key]
        return key

    def of(self, instruction: HloInstruction) -> list[Value]:
        """The values of an instruction's leaves."""
        return [self.values[self.find((instruction, k))] for k in range(len(list(instruction.shape.leaves())))]

    def of_operands(self, instruction: HloInstruction) -> list[Value]:
        return [v for o in instruction.operands for v in self.of(o)]

    def join(self, a: HloInstruction, first: int, b: HloInstruction, other: int, count: int) -> None:
        """Make `count` leaves of a, from `first` on, the same values as b's from `other` on."""
        for k in range(count):
            x, y = self.find((a, first + k)), self.find((b, other + k))
            if x != y:
                self.joined[y] = x

    def computations(self) -> Iterator[HloComputation]:
        """The computations on whole arrays, callers first."""
        stack = [self.module.entry]
        while stack:
            computation = stack.pop()
            yield computation
            for caller in computation.callers:
                if caller not in self.manual and caller.opcode in (Opcode.WHILE, Opcode.CONDITIONAL):
                    stack += reversed(caller.called_computations())

    def collect(self, given: dict[HloInstruction, Region]) -> None:
        """Collect the manual, the joined and the stated values. `given`: the regions of the program's arguments."""
        around: dict[HloComputation, Region] = {}
        for computation in self.computations():  # the generator reads `manual` of the computations before
            manual, regions = sorted_out(computation, around.get(computation, NOWHERE), given)
            self.manual |= manual
            self.regions |= regions
            for caller in computation.callers:
                around |= dict.fromkeys(caller.called_computations(), regions.get(caller, NOWHERE))
            if computation is self.module.entry:
                if computation.root.opcode is Opcode.TUPLE:  # it may have whole arrays beside others
                    self.manual.discard(computation.root)
                    self.regions.pop(computation.root, None)
            elif computation.root in self.manual:
                raise UnsupportedError(
                    f"the result of {computation.name} is one device's own ({computation.root.name}): end the "
                    "shard_map with SPMDShardToFullShape, so that it is a whole array"
                )
            for instruction in computation.instructions:
                if instruction not in self.manual:
                    self._tie(instruction)
        for computation in self.computations():
            for instruction in computation.instructions:
                if instruction not in self.manual:
                    self._state(instruction)

    def _tie(self, i: HloInstruction) -> None:
        if i.opcode in _REFUSED:
            raise UnsupportedError(
                f"{i.opcode.value} {i.name} cannot be partitioned: it is about the memory or a queue of one device"
            )
        count = len(list(i.shape.leaves()))
        match i.opcode:
            case Opcode.GET_TUPLE_ELEMENT if i.operands[0] not in self.manual:
                before = i.operands[0].shape.elements[: i.attributes.index]
                self.join(i.operands[0], sum(len(list(s.leaves())) for s in before), i, 0, count)
            case Opcode.WHILE:
                body, condition = i.attributes.body, i.attributes.condition
                for other in (i, body.parameters[0], body.root, condition.parameters[0]):
                    self.join(i.operands[0], 0, other, 0, count)
            case Opcode.CONDITIONAL:
                for branch, operand in zip(i.attributes.branch_computations, i.operands[1:], strict=True):
                    self.join(operand, 0, branch.parameters[0], 0, len(list(operand.shape.leaves())))
                    self.join(i, 0, branch.root, 0, count)

    def _state(self, i: HloInstruction) -> None:
        border = target_of(i) in TO_WHOLE
        found = self.statements.at_border(i) if border else self.statements.of_instruction(i)
        for k, each in enumerate(found):
            if each is not None and each.sharding.is_partly_manual and i not in self.regions:
                raise UnsupportedError(
                    f"{i.name}, sharded as {each.sharding}, belongs to a shard_map over a part of the mesh's axes, and "
                    "is not within one: begin it with SPMDFullToShardShape"
                )
            if each is not None and is_obeyed(each):
                self.stated.setdefault(self.find((i, k)), each)

    def state(self, instruction: HloInstruction, shardings: Sequence[HloSharding | None], first: int = 0) -> None:
        """Shardings that the caller wants; they override the text."""
        for k, sharding in enumerate(shardings):
            if sharding is not None:
                self.stated[self.find((instruction, first + k))] = Stated(sharding)

    def shardings(self) -> Iterator[HloSharding]:
        """All that are stated."""
        for each in self.stated.values():
            yield each.sharding
        for i in self.manual:
            if target_of(i) in TO_PARTS:
                for border in self.statements.at_border(i):
                    if border is not None:
                        yield border.sharding
        yield from dict.fromkeys(s for region in self.regions.values() for s in region)

    def make(self, mesh: DeviceMesh, results: Sequence[HloSharding | None]) -> None:
        """The values with their stated shardings, and the nodes. `results`: those that the caller wants."""
        for i, region in self.regions.items():
            axes = frozenset([a for sharding in region for a in mesh.spec(sharding, 1)[0]])
            for k, _ in enumerate(i.shape.leaves()):
                key = self.find((i, k))
                self.own[key] = self.own.get(key, frozenset()) | axes
        for computation in self.computations():
            for i in computation.instructions:
                if i not in self.manual:
                    for k, leaf in enumerate(i.shape.leaves()):
                        key = self.find((i, k))
                        if key not in self.values:
                            own = self.own.get(key, frozenset())
                            self.values[key] = made(mesh, leaf, self.stated.get(key), own)
        self._own_values()
        for computation in self.computations():
            for i in computation.instructions:
                if i not in self.manual:
                    self._node(i)
                elif target_of(i) in TO_PARTS:
                    self._begin(mesh, i)
        root = self.module.entry.root
        for k, (value, sharding, leaf) in enumerate(zip(self.of(root), results, root.shape.leaves(), strict=True)):
            wanted = value
            if not self.is_own(root, k):
                wanted = made(mesh, leaf, None if sharding is None else Stated(sharding))
                self.nodes.append(_same(value, wanted))
            self.results.append(wanted)

    def is_own(self, instruction: HloInstruction, leaf: int) -> bool:
        """True if a leaf of the program's arguments or results is one device's own, not a part of a whole array."""
        owner = self.owner(instruction, leaf)
        return owner in self.manual or owner in self.regions

    def owner(self, instruction: HloInstruction, leaf: int) -> HloInstruction:
        """The instruction that determines the owner of a leaf: the operand of the tuple that is the program's
        result."""
        if instruction.opcode is not Opcode.TUPLE or instruction is not self.module.entry.root:
            return instruction
        return [o for o in instruction.operands for _ in o.shape.leaves()][leaf]

    def own_axes(self, instruction: HloInstruction, leaf: int) -> frozenset[int]:
        """For a leaf in a region: the axes along which devices have values of their own."""
        key = (instruction, leaf)
        owner = self.owner(instruction, leaf)
        if owner is not instruction:
            key = (owner, leaf - [o for o in instruction.operands for _ in o.shape.leaves()].index(owner))
        return self.own.get(self.find(key), frozenset())

    def _own_values(self) -> None:
        """Values of one device's own code that leave or enter the program: they are taken as they are. Devices that
        share an array, in a region, each get it whole."""
        root = self.module.entry.root
        for i in (*self.module.entry.parameters, *root.operands, root):
            if i in self.manual or i is root or (i.opcode is Opcode.PARAMETER and i in self.regions):
                for k, leaf in enumerate(i.shape.leaves()):
                    if self.is_own(i, k):
                        fixed = (True,) * leaf.rank
                        self.values[self.find((i, k))] = Value(
                            leaf.dimensions, leaf.byte_size, ((),) * leaf.rank, fixed, self.own_axes(i, k)
                        )

    def _begin(self, mesh: DeviceMesh, i: HloInstruction) -> None:
        leaves = [leaf for o in i.operands for leaf in o.shape.leaves()]
        for k, (value, stated, leaf) in enumerate(
            zip(self.of_operands(i), self.statements.at_border(i), leaves, strict=True)
        ):
            wanted = value if stated is None else made(mesh, leaf, stated)
            self.borders[i, k] = wanted
            if wanted is not value:
                self.nodes.append(_same(value, wanted))

    def _border(self, i: HloInstruction) -> None:
        """Between whole arrays and the parts of them that a shard_map over some axes takes: these axes cut first, and
        further cuts of the parts cut the arrays, too."""
        begins = target_of(i) in TO_PARTS
        for k, (source, target) in enumerate(zip(self.of_operands(i), self.of(i), strict=True)):
            whole, part = (source, target) if begins else (target, source)
            taken = part.own - whole.own
            prefix = tuple([_first_of(axes, taken) for axes in whole.spec])
            self.prefixes[i, k] = prefix
            sizes: list[int] = []
            dims, fixed = [], []
            for axes, size, of_whole in zip(prefix, part.dimensions, whole.dimensions, strict=True):
                factors = [len(sizes) + (1 if axes else 0)]
                if axes:
                    if of_whole % size:
                        raise ShardingError(f"{i.name} makes {size} of a dimension of {of_whole}")
                    fixed.append((len(sizes), axes))
                    factors.insert(0, len(sizes))
                    sizes.append(of_whole // size)
                sizes.append(size)
                dims.append(tuple(factors))
            inner = tuple([factors[-1:] for factors in dims])
            sides = (tuple(dims), inner) if begins else (inner, tuple(dims))
            factors_ = Factors(tuple(sizes), (sides[0],), (sides[1],))
            self.nodes.append(Node(i, factors_, (source,), (target,), tuple(fixed)))

    def _node(self, i: HloInstruction) -> None:
        if i.opcode in (Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT, Opcode.WHILE, Opcode.CONDITIONAL):
            return
        if target_of(i) in TO_PARTS or (target_of(i) in TO_WHOLE and i.operands[0] in self.regions):
            self._border(i)
            return
        if target_of(i) in TO_WHOLE:
            return
        if is_side_by_side(i):
            for source, target in zip(self.of_operands(i), self.of(i), strict=True):
                self.nodes.append(_same(source, target))
            return
        factors = self.factors[i] = factors_of(i)
        self.nodes.append(Node(i, factors, tuple(self.of_operands(i)), tuple(self.of(i))))


def is_side_by_side(i: HloInstruction) -> bool:
    """True if leaf k of the result is leaf k of the operands."""
    if i.opcode in SIDE_BY_SIDE:
        return True
    if target_of(i) not in PASSED_ON:
        return False
    given = [leaf for o in i.operands for leaf in o.shape.leaves()]
    made_ = list(i.shape.leaves())
    return len(given) == len(made_) and all(a.compatible(b) for a, b in zip(given, made_))


def _first_of(axes: Axes, taken: frozenset[int]) -> Axes:
    """The first axes, as far as they are `taken`."""
    count = next((k for k, a in enumerate(axes) if a not in taken), len(axes))
    return axes[:count]


def made(mesh: DeviceMesh, leaf: Shape, stated: Stated | None, own: frozenset[int] = frozenset()) -> Value:
    """A value of the type `leaf`. A stated sharding that does not divide it is not obeyed: such arrays are whole.
    UnsupportedError if it is cut along one of the axes `own`."""
    spec: Spec = ((),) * leaf.rank
    fixed = None
    if stated is not None:
        spec = mesh.spec(stated.sharding, leaf.rank)
        if any(a in own for axes in spec for a in axes):
            raise UnsupportedError(
                f"the sharding {stated.sharding} of {leaf} is along axes that the shard_map around it takes: name the "
                "others"
            )
        fixed = tuple([not o for o in stated.is_open]) if stated.is_open is not None else (True,) * leaf.rank
        spec = tuple(
            [axes if size % mesh.parts(axes) == 0 else () for size, axes in zip(leaf.dimensions, spec, strict=True)]
        )
    return Value(leaf.dimensions, leaf.byte_size, spec, fixed, own)


def _same(a: Value, b: Value) -> Node:
    dims = tuple([(d,) for d in range(len(a.dimensions))])
    return Node(None, Factors(a.dimensions, (dims,), (dims,)), (a,), (b,))
