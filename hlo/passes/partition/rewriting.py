"""The program of one device: each instruction on the device's parts, with collectives where parts are not enough.

An instruction is written for an assignment of axes to its factors (`choice.py`): its operands are brought into the
sharding of the assignment, the instruction is made on the parts, terms of sums are added up, and the result is brought
into its value's sharding. If no factor of an instruction can be cut, every device computes it whole, and cuts the
result: that is always right, and a record says where it happens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np

from ...builder import (
    make_computation,
    make_constant,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
)
from ...effects import ACTING, has_side_effect, live_instructions
from ...errors import UnsupportedError
from ...ir import Attributes, HloComputation, HloInstruction
from ...opcode import Opcode
from ...ops import spec_of
from ...ops.control_flow import ConditionalAttributes, WhileAttributes
from ...ops.custom_call import CustomCallAttributes
from ...ops.declare import SIZE
from ...ops.dimensions import fields_with_dimensions, operands_of
from ...ops.elementwise import CompareAttributes, ComparisonDirection
from ...ops.movement import DynamicSliceAttributes
from ...provenance import note_replacements
from ...shape import Shape
from ...sharding import HloSharding
from ...support.records import dataclass
from ..patterns import broadcast, convert, make_zeros, reshape
from . import terms
from .axes import Axes, DeviceMesh, Spec
from .choice import choose, finish_of
from .collectives import Cause, Collectives
from .factors import is_uniform
from .prepare import REGION, TO_PARTS, TO_WHOLE, target_of
from .propagation import Assignment, Node, Value
from .records import PartitionRecord
from .reshard import reshard
from .values import Values, is_side_by_side


@dataclass(slots=True)
class _Scope:
    """One computation while it is rewritten."""

    parts: dict[HloInstruction, list[HloInstruction]] = field(default_factory=dict)
    """For each old instruction the leaves of its new value, in its value's sharding."""
    own: dict[HloInstruction, HloInstruction] = field(default_factory=dict)
    """The new instructions of one device's own code."""
    resharded: dict[tuple[HloInstruction, Spec, Spec], HloInstruction] = field(default_factory=dict)
    effects: list[HloInstruction] = field(default_factory=list)


@dataclass(slots=True)
class Rewriting:
    """Writes the computations of one module."""

    values: Values
    collectives: Collectives

    @property
    def mesh(self) -> DeviceMesh:
        return self.collectives.mesh

    # Types and sharding

    def local(self, shape: Shape, values: Iterator[Value]) -> Shape:
        """The type of a device's parts of a value of type `shape`."""
        if shape.tuple_shapes is not None:
            return shape if shape.is_token else Shape.tuple([self.local(s, values) for s in shape.tuple_shapes])
        return self.cut(shape, next(values).spec)

    def cut(self, shape: Shape, spec: Spec) -> Shape:
        return replace(shape, dimensions=self.mesh.local(shape.dimensions, spec))

    def reshard(
        self, scope: _Scope, x: HloInstruction, source: Spec, target: Spec, cause: Cause, own: Collection[int] = ()
    ) -> HloInstruction:
        """The device's part in another sharding. `own`: axes along which devices have arrays of their own."""
        if source == target:
            return x
        key = (x, source, target)
        found = scope.resharded.get(key)
        if found is None:
            found = scope.resharded[key] = reshard(self.collectives, id(scope), x, source, target, cause, own)
        return found

    # Computations

    def computation(self, old: HloComputation, name: str = "", results: Sequence[Value] = ()) -> HloComputation:
        """The computation of one device. `results`: the leaves of the result, if they differ from the root's."""
        scope = _Scope()
        live = live_instructions(old)
        parameters = []
        for parameter in old.parameters:
            shape = self.local(parameter.shape, iter(self.values.of(parameter)))
            new = make_parameter(parameter.attributes.number, shape, parameter.name, parameter.metadata)
            if results:
                text = self.sharding_text(parameter)
                new = replace(new, annotations=(("sharding", text),), frontend_attributes=())
            scope.parts[parameter] = leaves_of(new)
            if parameter in self.values.manual:
                scope.own[parameter] = new
            note_replacements({parameter: new})
            parameters.append(new)
        for instruction in old.instructions:
            if instruction in live and instruction.opcode is not Opcode.PARAMETER:
                self.instruction(scope, instruction)
                for leaf in () if instruction.opcode is Opcode.TUPLE else scope.parts.get(instruction, ()):
                    note_replacements({instruction: leaf}, trees=True)
        leaves = scope.parts[old.root]
        if results:
            cause = Cause(old.root, "the program's result")
            leaves = [
                self.reshard(scope, x, value.spec, wanted.spec, cause, value.own)
                for x, value, wanted in zip(leaves, self.values.of(old.root), results, strict=True)
            ]
            sources = old.root.operands if len(old.root.operands) == len(leaves) else [old.root] * len(leaves)
            for source, leaf in zip(sources, leaves):
                note_replacements({source: leaf}, trees=True)
        root = built(old.root.shape, iter(leaves))
        note_replacements({old.root: root}, trees=True)
        return make_computation(name or old.name, root, parameters, scope.effects)

    def shardings(self, instruction: HloInstruction, values: Sequence[Value]) -> list[HloSharding]:
        """The shardings of the leaves of an argument, or of the result."""
        return [
            HloSharding.manual()
            if self.values.owner(instruction, k) in self.values.manual
            else self.mesh.sharding(v.spec, self.values.own_axes(instruction, k))
            for k, v in enumerate(values)
        ]

    def sharding_text(self, instruction: HloInstruction) -> str:
        """The text of an instruction's sharding, as XLA writes it for parameters."""
        texts = [each.to_text() for each in self.shardings(instruction, self.values.of(instruction))]
        return texts[0] if instruction.shape.is_array else f"{{{', '.join(texts)}}}"

    def instruction(self, scope: _Scope, old: HloInstruction) -> None:
        target = target_of(old)
        if target in TO_PARTS and old in self.values.regions:
            self.begin_region(scope, old)
        elif target in TO_WHOLE and old.operands[0] in self.values.regions:
            self.end_region(scope, old)
        elif target in TO_PARTS:
            self.begin(scope, old)
        elif target in TO_WHOLE:
            self.end(scope, old)
        elif old in self.values.manual:
            self.copy(scope, old)
        elif old.opcode is Opcode.GET_TUPLE_ELEMENT:
            first = sum(len(list(s.leaves())) for s in old.operands[0].shape.elements[: old.attributes.index])
            count = len(list(old.shape.leaves()))
            scope.parts[old] = scope.parts[old.operands[0]][first : first + count]
        elif is_side_by_side(old):
            self.side_by_side(scope, old)
        elif old.opcode is Opcode.WHILE:
            self.loop(scope, old)
        elif old.opcode is Opcode.CONDITIONAL:
            self.conditional(scope, old)
        elif has_side_effect(old) or _is_of_host(old):
            self.acting(scope, old)
        else:
            self.operation(scope, old)

    # One device's own code

    def begin(self, scope: _Scope, old: HloInstruction) -> None:
        """Parts of whole arrays, as a shard_map takes them."""
        given = [x for o in old.operands for x in scope.parts[o]]
        cause = Cause(old, "what the shard_map takes")
        leaves = []
        for k, (x, value, shape) in enumerate(
            zip(given, self.values.of_operands(old), old.shape.leaves(), strict=True)
        ):
            x = self.reshard(scope, x, value.spec, self.values.borders[old, k].spec, cause)
            if not x.shape.compatible(shape):
                raise UnsupportedError(
                    f"{old.name} makes {shape} of each device's part, which is {x.shape} in the sharding of its "
                    f"operand, {self.mesh.sharding(self.values.borders[old, k].spec)}: state the sharding of the "
                    "operand (custom call Sharding)"
                )
            leaves.append(x)
        scope.own[old] = built(old.shape, iter(leaves))
        scope.parts[old] = leaves

    def end(self, scope: _Scope, old: HloInstruction) -> None:
        """Whole arrays; the shard_map made the parts from them."""
        given = [x for o in old.operands for x in leaves_of(self.own_value(scope, o))]
        for x, value, shape in zip(given, self.values.of(old), old.shape.leaves(), strict=True):
            if not x.shape.compatible(self.cut(shape, value.spec)):
                raise UnsupportedError(
                    f"{old.name} makes {shape}, sharded as {self.mesh.sharding(value.spec)}, of parts {x.shape}: such "
                    f"parts are {self.cut(shape, value.spec)}"
                )
        scope.parts[old] = given

    def begin_region(self, scope: _Scope, old: HloInstruction) -> None:
        """The parts that a shard_map over some axes takes, cut further along the others."""
        cause = Cause(old, "what the shard_map takes")
        leaves = []
        given = [x for o in old.operands for x in scope.parts[o]]
        pairs = zip(given, self.values.of_operands(old), self.values.of(old), strict=True)
        for k, (x, whole, part) in enumerate(pairs):
            spec = _joined(self.values.prefixes[old, k], part.spec)
            leaves.append(self.reshard(scope, x, whole.spec, spec, cause, whole.own))
        self.checked(scope, old, leaves)

    def end_region(self, scope: _Scope, old: HloInstruction) -> None:
        """Whole arrays, of parts that may be cut further."""
        cause = Cause(old, "what the shard_map returns")
        leaves = []
        given = [x for o in old.operands for x in scope.parts[o]]
        pairs = zip(given, self.values.of_operands(old), self.values.of(old), strict=True)
        for k, (x, part, whole) in enumerate(pairs):
            prefix = self.values.prefixes[old, k]
            rest = tuple(
                [_without(axes[len(first) :], part.own) for axes, first in zip(whole.spec, prefix, strict=True)]
            )
            x = self.reshard(scope, x, part.spec, rest, cause, part.own)
            leaves.append(self.reshard(scope, x, _joined(prefix, rest), whole.spec, cause, whole.own))
        self.checked(scope, old, leaves)

    def checked(self, scope: _Scope, old: HloInstruction, leaves: list[HloInstruction]) -> None:
        """The results of a border, which must have the type in its text."""
        for x, value, shape in zip(leaves, self.values.of(old), old.shape.leaves(), strict=True):
            if not x.shape.compatible(self.cut(shape, value.spec)):
                raise UnsupportedError(
                    f"{old.name} makes {shape}, of which a device has {self.cut(shape, value.spec)}, not {x.shape}: "
                    "state the sharding of the whole array (custom call Sharding)"
                )
        scope.parts[old] = leaves

    def copy(self, scope: _Scope, old: HloInstruction) -> None:
        if target_of(old) == "Sharding":
            scope.own[old] = self.own_value(scope, old.operands[0])
            scope.parts[old] = leaves_of(scope.own[old])
            return
        new = replace(old, operands=tuple([self.own_value(scope, o) for o in old.operands]), annotations=())
        scope.own[old] = new
        scope.parts[old] = leaves_of(new)
        if has_side_effect(old):
            scope.effects.append(new)

    def own_value(self, scope: _Scope, old: HloInstruction) -> HloInstruction:
        """A value of one device's own code: an array of the whole program that it uses is whole."""
        if old in scope.own:
            return scope.own[old]
        cause = Cause(old, "used whole by one device's own program")
        leaves = [
            self.reshard(scope, x, v.spec, ((),) * len(v.spec), cause, v.own)
            for x, v in zip(scope.parts[old], self.values.of(old), strict=True)
        ]
        return built(old.shape, iter(leaves))

    # Structure

    def given(self, scope: _Scope, old: HloInstruction, cause: Cause, wanted: Sequence[Spec]) -> list[HloInstruction]:
        """The leaves of the operands, in these shardings."""
        leaves = [x for o in old.operands for x in scope.parts[o]]
        return [
            self.reshard(scope, x, value.spec, spec, cause, value.own)
            for x, value, spec in zip(leaves, self.values.of_operands(old), wanted, strict=True)
        ]

    def side_by_side(self, scope: _Scope, old: HloInstruction) -> None:
        why = "a stated sharding" if old.opcode is Opcode.CUSTOM_CALL else "an element of a tuple"
        leaves = self.given(scope, old, Cause(old, why), [v.spec for v in self.values.of(old)])
        if old.opcode is Opcode.OPT_BARRIER:
            barrier = make_instruction(Opcode.OPT_BARRIER, (built(old.shape, iter(leaves)),), name=old.name)
            leaves = leaves_of(barrier)
        scope.parts[old] = leaves

    def loop(self, scope: _Scope, old: HloInstruction) -> None:
        state = built(old.shape, iter(scope.parts[old.operands[0]]))
        a = old.attributes
        attributes = WhileAttributes(self.computation(a.condition), self.computation(a.body))
        self.add(scope, old, make_instruction(Opcode.WHILE, (state,), attributes, name=old.name, metadata=old.metadata))

    def conditional(self, scope: _Scope, old: HloInstruction) -> None:
        operands = [built(o.shape, iter(scope.parts[o])) for o in old.operands]
        branches = tuple([self.computation(b) for b in old.attributes.branch_computations])
        new = make_instruction(
            Opcode.CONDITIONAL, operands, ConditionalAttributes(branches), name=old.name, metadata=old.metadata
        )
        self.add(scope, old, new)

    def add(self, scope: _Scope, old: HloInstruction, new: HloInstruction) -> None:
        scope.parts[old] = leaves_of(new)
        if has_side_effect(new):
            scope.effects.append(new)

    # What acts

    def acting(self, scope: _Scope, old: HloInstruction) -> None:
        """A custom call that acts, or calls a function of the host, runs on device 0, with whole arrays. Random numbers
        from the process's state come from device 0. In a region, it runs on the first device along the axes that are
        left to the partitioner, once for each part along the others."""
        own = [a for region in self.values.regions.get(old, ()) for a in self.mesh.spec(region, 1)[0]]
        free = tuple([a for a in range(len(self.mesh.sizes)) if a not in own])
        cause = Cause(old, "it acts: the first device does so, with whole arrays")
        values = self.values.of_operands(old)
        leaves = iter(self.given(scope, old, cause, [((),) * len(v.spec) for v in values]))
        operands = [built(o.shape, leaves) for o in old.operands]
        if old.opcode in ACTING:
            new = make_instruction(old.opcode, operands, old.attributes, old.shape, name=old.name)
            scope.effects.append(new)
        else:
            new = self.on_first_device(old, operands, free)
            scope.effects.append(new)
        whole = [self.collectives.of_first_device(x, free, cause) for x in leaves_of(new)]
        scope.effects += whole
        scope.parts[old] = [
            self.reshard(scope, x, ((),) * len(v.spec), v.spec, cause)
            for x, v in zip(whole, self.values.of(old), strict=True)
        ]

    def on_first_device(
        self, old: HloInstruction, operands: Sequence[HloInstruction], free: Axes
    ) -> HloInstruction:
        """`conditional(partition-id == 0, ...)`: the call in one branch, zeros in the other. With several groups of
        devices along the axes `free`, the first of each is looked up in a table."""
        shape = Shape.tuple([o.shape for o in operands])
        parameter = make_parameter(0, shape, "operands")
        given = tuple([make_get_tuple_element(parameter, k) for k in range(len(operands))])
        call = make_computation("on_device_0", replace(old, operands=given, annotations=()), (parameter,))
        other = make_parameter(0, shape, "operands")
        none = make_computation("elsewhere", make_zeros(old.shape), (other,))
        device = make_instruction(Opcode.PARTITION_ID)
        zero = make_constant(np.array(0, np.uint32))
        is_first = make_instruction(Opcode.COMPARE, (device, zero), CompareAttributes(ComparisonDirection.EQ))
        firsts = [min(group) for group in self.mesh.groups(free)]
        if len(firsts) > 1:
            table = make_constant(np.isin(np.arange(self.mesh.count), firsts))
            entry = make_instruction(Opcode.DYNAMIC_SLICE, (table, device), DynamicSliceAttributes((1,)))
            is_first = reshape(entry, ())
        state = make_tuple(operands)
        return make_instruction(Opcode.CONDITIONAL, (is_first, state, state), ConditionalAttributes((call, none)))

    # All other operations

    def operation(self, scope: _Scope, old: HloInstruction) -> None:
        node = Node(old, self.values.factors[old], tuple(self.values.of_operands(old)), tuple(self.values.of(old)))
        kind = terms.kind_of(old)
        assignment = choose(self.mesh, node, kind is not None, kind is terms.Kind.GATHERED)
        wanted = [assignment.spec(dims) for dims in node.factors.operands]
        self.note_whole(node, assignment)
        operands_ = iter(self.given(scope, old, Cause(old, _why(node, assignment)), wanted))
        operands = [built(o.shape, operands_) for o in old.operands]
        specs = [assignment.spec(dims) for dims in node.factors.results]
        summed = assignment.summed
        if kind is terms.Kind.GATHERED and summed:
            leaves = self.combined(old, operands, specs, assignment)
        else:
            leaves = leaves_of(self.made(scope, old, operands, specs, assignment, bool(summed)))
        found = []
        for x, spec, value, shape in zip(leaves, specs, node.results, old.shape.leaves(), strict=True):
            if summed and kind is not terms.Kind.GATHERED:
                x, spec = self.added_up(old, x, spec, value.spec, assignment)
                x = terms.with_init(old, convert(x, shape.element), operands)
            cause = Cause(old, "the sharding of its result")
            found.append(self.reshard(scope, x, spec, value.spec, cause, value.own))
        scope.parts[old] = found

    def note_whole(self, node: Node, assignment: Assignment) -> None:
        """A record, if devices have parts and each computes all nevertheless."""
        if any(axes for v in node.values for axes in v.spec) and not any(assignment.axes.values()):
            i = node.instruction
            assert i is not None
            if i.opcode in (Opcode.CONSTANT, Opcode.RNG_BIT_GENERATOR) or not i.operands:
                return
            sizes = {node.factors.sizes[f] for f in node.factors.whole}
            why = f"{i.opcode.value} cannot be shared along its dimensions of size {', '.join(map(str, sorted(sizes)))}"
            record = PartitionRecord(
                i.name, i.opcode.value, "computed whole", self.mesh.count, 0, str(i.shape), why if sizes else "cheaper"
            )
            self.collectives.records.append(record)

    def made(
        self, scope: _Scope, old: HloInstruction, operands: Sequence[HloInstruction], specs: Sequence[Spec],
        assignment: Assignment, is_term: bool,
    ) -> HloInstruction:  # fmt: skip
        """The instruction on parts."""
        each = iter(specs)
        shape = _mapped(old.shape, lambda leaf: self.cut(leaf, next(each)))
        if old.opcode is Opcode.IOTA:
            return self.iota(scope, old, shape, specs[0])
        if old.opcode is Opcode.CONSTANT:
            return self.constant(old, shape)
        attributes = self.attributes(old, operands)
        if is_term:
            operands, shape = terms.as_term(old, operands, shape)
        return make_instruction(
            old.opcode, operands, attributes, shape, name=old.name, metadata=old.metadata,
            frontend_attributes=tuple([a for a in old.frontend_attributes if a[0] != REGION]),
            annotations=_without_sharding(old),
        )  # fmt: skip

    def attributes(self, old: HloInstruction, operands: Sequence[HloInstruction]) -> Attributes:
        """The attributes, with the parts' sizes where they say that a dimension is taken whole."""
        attributes: Any = old.attributes
        changes: dict[str, Any] = {}
        for each in fields_with_dimensions(type(attributes)):
            dims = each.attr.dims
            if dims.per is None or dims.whole is not SIZE:
                continue
            (k, *_) = operands_of(spec_of(old.opcode), dims.per, len(old.operands))
            before, after = old.operands[k].shape.dimensions, operands[k].shape.dimensions
            value = getattr(attributes, each.name)
            changes[each.name] = tuple([a if v == b else v for v, a, b in zip(value, after, before, strict=True)])
        if isinstance(attributes, CustomCallAttributes) and attributes.operand_layout_constraints is not None:
            constraints = zip(attributes.operand_layout_constraints, operands, strict=True)
            changes["operand_layout_constraints"] = tuple(
                [replace(c, dimensions=o.shape.dimensions) if c.is_array else c for c, o in constraints]
            )
        found: Attributes = replace(attributes, **changes) if changes else attributes
        return found

    def iota(self, scope: _Scope, old: HloInstruction, shape: Shape, spec: Spec) -> HloInstruction:
        """The device's numbers: an iota, plus the offset of its part, as integers."""
        axes = spec[old.attributes.iota_dimension]
        size = shape.dimensions[old.attributes.iota_dimension]
        if not axes or not size:
            return make_instruction(Opcode.IOTA, (), old.attributes, shape, metadata=old.metadata)
        start = self.collectives.offset(id(scope), axes, size)
        numbers = make_instruction(Opcode.IOTA, (), old.attributes, shape.with_element_type(start.shape.element))
        moved = make_instruction(Opcode.ADD, (numbers, broadcast(start, numbers.shape, ())))
        return convert(moved, shape.element)

    def constant(self, old: HloInstruction, shape: Shape) -> HloInstruction:
        literal = old.attributes.literal.array
        if shape.dimensions == old.shape.dimensions:
            return replace(old, annotations=())
        assert is_uniform(literal)
        first = literal.reshape(-1)[:1].reshape(()) if literal.size else np.zeros((), literal.dtype)
        return broadcast(make_constant(np.array(first)), shape, ())

    # Sums of terms

    def added_up(
        self, old: HloInstruction, x: HloInstruction, spec: Spec, wanted: Spec, assignment: Assignment
    ) -> tuple[HloInstruction, Spec]:
        """The sum of all devices' terms, or the device's part of it."""
        cause = Cause(old, "the devices have terms of the sum")
        reducer = terms.reducer_of(old, x.shape.element)
        finish = finish_of(assignment.summed, spec, wanted)
        for d, axes in finish.scatters:
            x = self.collectives.reduce_scatter(x, d, axes, reducer, cause)
        if finish.reduced:
            x = self.collectives.all_reduce(x, finish.reduced, reducer, cause)
        return x, finish.spec

    def combined(
        self, old: HloInstruction, operands: Sequence[HloInstruction], specs: Sequence[Spec], assignment: Assignment
    ) -> list[HloInstruction]:
        """A reduction by any computation: of its part by each device, then of all devices' results."""
        each = iter(specs)
        shape = _mapped(old.shape, lambda leaf: self.cut(leaf, next(each)))
        own = make_instruction(old.opcode, operands, old.attributes, shape, name=old.name, metadata=old.metadata)
        cause = Cause(old, "each device has reduced a part")
        gathered = [
            self.collectives.all_gather(terms.with_first_dimension(x), 0, assignment.summed, cause)
            for x in leaves_of(own)
        ]
        count = len(gathered)
        again = replace(old.attributes, dimensions=(0,))
        return leaves_of(make_instruction(old.opcode, (*gathered, *operands[count:]), again, shape))


def _is_of_host(instruction: HloInstruction) -> bool:
    """Whether it calls a function of the process that traced the program: once, with whole arrays, though it may be
    pure."""
    return instruction.opcode is Opcode.CUSTOM_CALL and instruction.attributes.function is not None


def _joined(first: Spec, further: Spec) -> Spec:
    """Cut along `first`, and then further."""
    return tuple([(*a, *b) for a, b in zip(first, further, strict=True)])


def _without(axes: Axes, own: Collection[int]) -> Axes:
    """The first axes, as far as none is in `own`."""
    return axes[: next((k for k, a in enumerate(axes) if a in own), len(axes))]


def leaves_of(instruction: HloInstruction) -> list[HloInstruction]:
    """The arrays in the value of an instruction."""
    shape = instruction.shape
    if shape.is_token:
        return []
    if shape.tuple_shapes is None:
        return [instruction]
    return [x for k in range(len(shape.tuple_shapes)) for x in leaves_of(make_get_tuple_element(instruction, k))]


def built(shape: Shape, leaves: Iterator[HloInstruction]) -> HloInstruction:
    """A value like one of type `shape`, made of these arrays."""
    if shape.is_token:
        return make_instruction(Opcode.AFTER_ALL)
    if shape.tuple_shapes is None:
        return next(leaves)
    return make_tuple([built(s, leaves) for s in shape.tuple_shapes])


def _mapped(shape: Shape, function: Callable[[Shape], Shape]) -> Shape:
    """The type with another one for each array."""
    if shape.tuple_shapes is not None:
        return shape if shape.is_token else Shape.tuple([_mapped(s, function) for s in shape.tuple_shapes])
    return function(shape)


def _without_sharding(old: HloInstruction) -> tuple[tuple[str, str], ...]:
    return tuple([(key, text) for key, text in old.annotations if key != "sharding"])


def _why(node: Node, assignment: Assignment) -> str:
    """Why operands of this instruction are gathered or moved."""
    i = node.instruction
    assert i is not None
    gathered = {
        node.factors.sizes[f]
        for dims, value in zip(node.factors.operands, node.operands, strict=True)
        for factors, axes in zip(dims, value.spec, strict=True)
        for f in factors
        if axes and f in node.factors.whole
    }
    if gathered:
        return f"{i.opcode.value} needs its dimension of size {', '.join(map(str, sorted(gathered)))} whole"
    return "its operands are cut differently"
