"""Instructions and computations. Attribute classes (`ops/`) and the printer (`text/`) import them from here.

`ir.py` is above those with `HloModule`; it re-exports these names, so that passes and users import them from there.
Everything here is immutable. `ops/` declares the semantics of opcodes, not this file. Source: XLA's HloInstruction and
HloComputation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Self

from .metadata import Metadata
from .opcode import Opcode
from .shape import Shape
from .support.lazy import lazy_property
from .support.records import dataclass
from .support.shared_value import SharedValue


@dataclass(frozen=True, eq=False, slots=True)  # the only instance of the class itself is NO_ATTRIBUTES
class Attributes:
    """The data that an instruction has besides operands and shape. Each family of ops declares its own subclasses."""

    def called_computations(self) -> tuple[HloComputation, ...]:
        """The computations that these attributes name, in field order."""
        names = _computation_fields(type(self))
        if not names:
            return ()
        found: list[HloComputation] = []
        for name in names:
            value = getattr(self, name)
            if isinstance(value, HloComputation):
                found.append(value)
            elif value is not None:
                found.extend(value)
        return tuple(found)

    def as_read(self, operands: Sequence[Shape]) -> Self:
        """These attributes, read from the text of an instruction with `operands`, in their one form."""
        return self

    def map_computations(self, function: Callable[[HloComputation], HloComputation]) -> Self:
        """The same attributes with each called computation replaced by `function(computation)`."""
        names = _computation_fields(type(self))
        if not names:
            return self
        changes: dict[str, Any] = {}
        for name in names:
            value = getattr(self, name)
            if isinstance(value, HloComputation):
                new: Any = function(value)
                if new is not value:
                    changes[name] = new
            elif value is not None:
                new = tuple([function(c) for c in value])
                if any(a is not b for a, b in zip(new, value, strict=True)):
                    changes[name] = new
        return replace(self, **changes) if changes else self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return "NO_ATTRIBUTES" if self is NO_ATTRIBUTES else object.__reduce_ex__(self, protocol)


_FIELDS: dict[type[Attributes], tuple[str, ...]] = {}


def _computation_fields(kind: type[Attributes]) -> tuple[str, ...]:
    """The fields of an attribute class that hold computations. Cached: every walk over a module needs it."""
    found = _FIELDS.get(kind)
    if found is None:
        found = _FIELDS[kind] = tuple(f.name for f in fields(kind) if "HloComputation" in str(f.type))
    return found


_FIELDS[Attributes] = ()
NO_ATTRIBUTES = Attributes()
"""The attributes of an instruction that has none: compared by identity, also after unpickling."""


@dataclass(frozen=True, eq=False, slots=True)
class HloInstruction(SharedValue):
    """One operation. Compared by identity. Make one with `HloBuilder`, `make_instruction` or `with_operands`."""

    opcode: Opcode
    shape: Shape
    operands: tuple[HloInstruction, ...] = ()
    attributes: Any = NO_ATTRIBUTES
    """An instance of the opcode's attribute class, as its `OpSpec` says."""
    name: str = ""
    """Unique within a module once the module is built; "" lets `HloModule.create` choose one."""
    metadata: Metadata | None = None
    frontend_attributes: tuple[tuple[str, str], ...] = ()
    annotations: tuple[tuple[str, str], ...] = ()
    """Attributes that have no meaning on one CPU (sharding, backend_config, ...): key and text of the value."""

    def with_operands(self, operands: tuple[HloInstruction, ...]) -> HloInstruction:
        """The same operation on other operands; the same object if none differs."""
        if operands == self.operands:  # by identity
            return self
        return HloInstruction(
            self.opcode, self.shape, operands, self.attributes, self.name, self.metadata, self.frontend_attributes,
            self.annotations,
        )  # fmt: skip

    def with_form(self, shape: Shape, operands: tuple[HloInstruction, ...], attributes: Any) -> HloInstruction:
        """The same operation on other operands, with a result of another shape, and with other attributes."""
        return HloInstruction(
            self.opcode, shape, operands, attributes, self.name, self.metadata, self.frontend_attributes,
            self.annotations,
        )  # fmt: skip

    def called_computations(self) -> tuple[HloComputation, ...]:
        if self.attributes is NO_ATTRIBUTES or not _FIELDS.get(type(self.attributes), True):
            return ()
        called: tuple[HloComputation, ...] = self.attributes.called_computations()
        return called

    def __repr__(self) -> str:
        operands = ", ".join(o.name or o.opcode.value for o in self.operands)
        return f"<{self.name or '?'} = {self.shape} {self.opcode.value}({operands})>"


@dataclass(frozen=True, eq=False)
class HloComputation(SharedValue):
    """A function: its instructions, operands before their users, and the root, which is its result."""

    name: str
    instructions: tuple[HloInstruction, ...]
    root: HloInstruction

    @lazy_property
    def parameters(self) -> tuple[HloInstruction, ...]:
        """The parameter instructions by number."""
        found = [i for i in self.instructions if i.opcode is Opcode.PARAMETER]
        return tuple(sorted(found, key=lambda i: i.attributes.number))

    @property
    def roots(self) -> tuple[HloInstruction, ...]:
        """The values that it returns: the operands of a root that makes a tuple of them; otherwise the root alone."""
        root = self.root
        return root.operands if root.opcode is Opcode.TUPLE else (root,)

    @lazy_property
    def opcodes(self) -> frozenset[Opcode]:
        """The opcodes that occur: a pass without work for any of them need not look at the instructions."""
        return frozenset([i.opcode for i in self.instructions])

    @lazy_property
    def users(self) -> Mapping[HloInstruction, tuple[HloInstruction, ...]]:
        """The users of each instruction, in order, without repetition."""
        found: dict[HloInstruction, list[HloInstruction]] = {i: [] for i in self.instructions}
        for instruction in self.instructions:
            for operand in dict.fromkeys(instruction.operands):
                found[operand].append(instruction)
        return {i: tuple(users) for i, users in found.items()}

    @lazy_property
    def state_elements(self) -> Mapping[int, tuple[HloInstruction, ...]]:
        """The instructions that take an element out of a parameter, as the body of a loop does, by its number."""
        found: dict[int, list[HloInstruction]] = {}
        for i in self.instructions:
            if i.opcode is Opcode.GET_TUPLE_ELEMENT and i.operands[0].opcode is Opcode.PARAMETER:
                found.setdefault(i.attributes.index, []).append(i)
        return {index: tuple(elements) for index, elements in found.items()}

    @lazy_property
    def callers(self) -> tuple[HloInstruction, ...]:
        """The instructions that call computations, in order. Cached: every walk over a module needs it."""
        having = [i for i in self.instructions if i.attributes is not NO_ATTRIBUTES]
        return tuple([i for i in having if _FIELDS.get(type(i.attributes), True) and i.called_computations()])

    @lazy_property
    def callees(self) -> tuple[HloComputation, ...]:
        """The computations that its instructions call, in order, without repetition."""
        return tuple(dict.fromkeys([c for i in self.callers for c in i.called_computations()]))

    def __reduce__(self) -> tuple[Any, ...]:
        """A list of instructions that name their operands by number: programs may be deeper than Python's stack."""
        numbers = {instruction: k for k, instruction in enumerate(self.instructions)}
        rows = [
            (i.opcode, i.shape, tuple([numbers[o] for o in i.operands]), i.attributes, i.name, i.metadata,
             i.frontend_attributes, i.annotations)
            for i in self.instructions
        ]  # fmt: skip
        return _computation_of, (self.name, rows, numbers[self.root])

    def __repr__(self) -> str:
        return f"<HloComputation {self.name}: {len(self.instructions)} instructions>"


def _computation_of(name: str, rows: list[Any], root: int) -> HloComputation:
    made: list[HloInstruction] = []
    for opcode, shape, operands, *rest in rows:
        made.append(HloInstruction(opcode, shape, tuple([made[k] for k in operands]), *rest))
    return HloComputation(name, tuple(made), made[root])


def post_order(root: HloInstruction, extra: tuple[HloInstruction, ...] = ()) -> tuple[HloInstruction, ...]:
    """`root`, `extra` and all that they need, operands first. Iterative: programs may be deeper than Python's stack."""
    order: dict[HloInstruction, None] = {}
    for start in (*extra, root):
        if start in order:
            continue
        nodes, left = [start], [iter(start.operands)]  # the way from `start`, and the operands that are left of each
        while nodes:
            for operand in left[-1]:
                if operand not in order:
                    if operand.operands:
                        nodes.append(operand)
                        left.append(iter(operand.operands))
                        break
                    order[operand] = None
            else:
                order[nodes.pop()] = None
                left.pop()
    return tuple(order)
