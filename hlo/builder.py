"""Making instructions, computations and modules: shapes inferred, names made unique.

Everything that creates IR (the tracer, passes, the parser, autodiff) creates it through this module.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from .errors import ShapeError
from .ir import (
    NO_ATTRIBUTES,
    Attributes,
    HloComputation,
    HloInstruction,
    HloModule,
    InputOutputAlias,
    Metadata,
    post_order,
)
from .literal import Literal
from .opcode import Opcode
from .ops import spec_of
from .ops.control_flow import CallAttributes
from .ops.structure import ConstantAttributes, GetTupleElementAttributes, ParameterAttributes
from .provenance import note_replacements
from .shape import Shape, fits_in_memory


def make_instruction(
    opcode: Opcode,
    operands: Sequence[HloInstruction] = (),
    attributes: Attributes = NO_ATTRIBUTES,
    shape: Shape | None = None,
    *,
    name: str = "",
    metadata: Metadata | None = None,
    frontend_attributes: tuple[tuple[str, str], ...] = (),
    annotations: tuple[tuple[str, str], ...] = (),
) -> HloInstruction:
    """An instruction with an inferred shape, which is checked against `shape` if that is given.

    A given `shape` keeps its layout; an inferred one is row-major. ShapeError names the violated rule.

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> print(hlo.make_instruction(hlo.Opcode.NEGATE, [x]).shape)
    f32[3]
    """
    operands = tuple(operands)
    shape = check_shape(opcode, [o.shape for o in operands], attributes, shape)
    return HloInstruction(opcode, shape, operands, attributes, name, metadata, frontend_attributes, annotations)


def check_shape(opcode: Opcode, operands: Sequence[Shape], attributes: Attributes, declared: Shape | None) -> Shape:
    """The result shape of `opcode` on operands of these shapes. It must agree with `declared` if that is given."""
    spec = spec_of(opcode)
    if spec.arity is not None and len(operands) != spec.arity:
        raise ShapeError(f"{opcode.value} takes {spec.arity} operands, not {len(operands)}", f"{opcode.value}_arity")
    if not isinstance(attributes, spec.attributes):
        raise ShapeError(
            f"{opcode.value} needs {spec.attributes.__name__}, not {type(attributes).__name__}",
            f"{opcode.value}_attributes",
        )
    inferred = spec.shape_rule(operands, attributes, declared)
    if declared is None:
        element_type = inferred.element_type
        if element_type is not None and not fits_in_memory(element_type, inferred.dimensions):
            given = ", ".join(map(str, operands))
            message = f"{opcode.value} of ({given}) gives {inferred}, which does not fit in 64-bit memory"
            raise ShapeError(message, "shape_c2")
        return inferred
    if declared is not inferred and not declared.compatible(inferred):
        raise ShapeError(
            f"{opcode.value} of ({', '.join(map(str, operands))}) gives {inferred}, not {declared}",
            f"{opcode.value}_result",
        )
    return declared


def make_parameter(number: int, shape: Shape, name: str = "", metadata: Metadata | None = None) -> HloInstruction:
    """Parameter `number` of a computation.

    >>> from hloom import hlo
    >>> print(hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.S32, (2, 3)), "x").shape)
    s32[2,3]
    """
    return HloInstruction(Opcode.PARAMETER, shape, (), ParameterAttributes(number), name, metadata)


def make_constant(value: Literal | object, dtype: object = None) -> HloInstruction:
    """A constant from a Literal, a number or an array.

    >>> from hloom import hlo
    >>> print(hlo.make_constant([1, 2], "int32").shape)
    s32[2]
    """
    literal = value if isinstance(value, Literal) else Literal(value, dtype)  # type: ignore[arg-type]
    return HloInstruction(Opcode.CONSTANT, literal.shape, (), ConstantAttributes(literal))


def make_tuple(operands: Sequence[HloInstruction]) -> HloInstruction:
    """A tuple of `operands`.

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> print(hlo.make_tuple([x, x]).shape)
    (f32[3], f32[3])
    """
    return make_instruction(Opcode.TUPLE, operands)


def make_get_tuple_element(operand: HloInstruction, index: int) -> HloInstruction:
    """Element `index` of a tuple-shaped instruction; if that is a TUPLE, its operand `index`.

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> hlo.make_get_tuple_element(hlo.make_tuple([x, x]), 1) is x
    True
    """
    if operand.opcode is Opcode.TUPLE:
        return operand.operands[index]
    return make_instruction(Opcode.GET_TUPLE_ELEMENT, (operand,), GetTupleElementAttributes(index))


def make_call(computation: HloComputation, operands: Sequence[HloInstruction]) -> HloInstruction:
    """A plain call of `computation`.

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> negated = hlo.make_computation("negated", hlo.make_instruction(hlo.Opcode.NEGATE, [x]), [x])
    >>> print(hlo.make_call(negated, [x]).shape)
    f32[3]
    """
    return make_instruction(Opcode.CALL, operands, CallAttributes(computation))


def make_computation(
    name: str, root: HloInstruction, parameters: Sequence[HloInstruction] = (), extra: Sequence[HloInstruction] = ()
) -> HloComputation:
    """A computation of all that `root` needs. The `parameters` come first, even if unused. `extra`: also kept.

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> hlo.make_computation("negated", hlo.make_instruction(hlo.Opcode.NEGATE, [x]), [x])
    <HloComputation negated: 2 instructions>
    """
    order = post_order(root, (*parameters, *extra))
    return HloComputation(name, order, root)


def make_module(
    name: str,
    entry: HloComputation,
    *,
    input_output_aliases: tuple[InputOutputAlias, ...] = (),
    is_scheduled: bool = False,
) -> HloModule:
    """A module with unique names of computations and instructions (`add`, `add.1`, ...; given ones are kept).

    >>> from hloom import hlo
    >>> x = hlo.make_parameter(0, hlo.Shape.array(hlo.ElementType.F32, (3,)))
    >>> entry = hlo.make_computation("main", hlo.make_instruction(hlo.Opcode.NEGATE, [x]), [x])
    >>> hlo.make_module("negated", entry).name
    'negated'
    """
    module = HloModule(name, entry, input_output_aliases, is_scheduled)
    return with_unique_names(module)


class _Namer:
    """Hands out names: the wanted one if it is free, otherwise with a free `.N` suffix."""

    def __init__(self, used: set[str]) -> None:
        self.used = used
        self._next: dict[str, int] = {}

    def unique(self, wanted: str) -> str:
        used = self.used
        if wanted not in used:
            used.add(wanted)
            return wanted
        base = wanted
        if wanted[-1:].isdigit():
            stem, dot, digits = wanted.rpartition(".")
            base = stem if dot and digits.isdigit() else wanted
        number = self._next.get(base, 1)
        name = f"{base}.{number}"
        if name in used:  # as a rule, so are all up to some number, which large steps find
            step = 1
            while f"{base}.{number + step}" in used:
                step *= 2
            while step > 1:
                step //= 2
                if f"{base}.{number + step}" in used:
                    number += step
            number += 1
            name = f"{base}.{number}"
        self._next[base] = number + 1
        used.add(name)
        return name


_NAMES = "_names"
"""The attribute in which a computation keeps the result of `_names_of`, when all its instructions have names: most
passes change few computations."""


def _names_of(computation: HloComputation) -> set[str]:
    kept = computation.__dict__
    found: set[str] | None = kept.get(_NAMES)
    if found is None:
        found = {i.name for i in computation.instructions}
        if "" not in found:
            kept[_NAMES] = found
    return found


def with_unique_names(
    module: HloModule,
    changed: dict[HloInstruction, HloInstruction] | None = None,
    is_own: Callable[[HloInstruction], bool] | None = None,
) -> HloModule:
    """The module with every instruction and computation named, no name twice. The same object if that holds already.

    The first instruction that has a name keeps it, wherever new ones stand: to rename it would mean to copy its users.

    `changed` receives each instruction that had to be replaced, and its replacement. `is_own`: True for an instruction
    that the caller has made for this module and has shared with no other code, nor a computation that has it as its
    root. Both get their names where they are: a copy would need copies of all users, too.
    """
    named = [_names_of(c) for c in module.computations]
    instructions = _Namer(set().union(*named))
    computations = _Namer(set())
    kept: set[str] = set()
    renamed: dict[HloComputation, HloComputation] = {}
    for computation, names in zip(module.computations, named, strict=True):
        mapping: dict[HloInstruction, HloInstruction] = {}  # only those that change
        untouched = mapping.keys().isdisjoint
        todo = computation.instructions
        if len(names) == len(todo) and "" not in names and kept.isdisjoint(names) and renamed.keys().isdisjoint(
            computation.callees
        ):
            kept |= names
            todo = ()
        calling = frozenset(computation.callers) if renamed else frozenset()
        for old in todo:
            name = old.name
            if name and name not in kept:
                kept.add(name)
            else:
                name = instructions.unique(name or old.opcode.value)
                if is_own is not None and is_own(old):
                    object.__setattr__(old, "name", name)
                    computation.__dict__.pop(_NAMES, None)
            if name == old.name and not mapping and not calling:
                continue  # nothing before it is another instruction now
            operands = old.operands
            if not untouched(operands):
                operands = tuple([mapping.get(o, o) for o in operands])
            attributes = old.attributes
            if old in calling:
                attributes = attributes.map_computations(lambda c: renamed.get(c, c))
            if name != old.name or attributes is not old.attributes or operands != old.operands:
                mapping[old] = HloInstruction(
                    old.opcode, old.shape, operands, attributes, name, old.metadata, old.frontend_attributes,
                    old.annotations,
                )  # fmt: skip
        name = computations.unique(computation.name or "computation")
        if not mapping and name != computation.name and is_own is not None and is_own(computation.root):
            object.__setattr__(computation, "name", name)
        if mapping or name != computation.name:
            order = tuple([mapping.get(i, i) for i in computation.instructions])
            renamed[computation] = HloComputation(name, order, mapping.get(computation.root, computation.root))
        if changed is not None:
            changed.update(mapping)
        note_replacements(mapping)
    entry = renamed.get(module.entry, module.entry)
    return module if entry is module.entry else replace(module, entry=entry)
