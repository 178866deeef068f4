"""A tree of StableHLO as an HloModule.

Operations of the table (`ops.py`) are read by it; others have rules in `reading_*.py`. A function becomes a computation
that is called. An operation with several results becomes an instruction with a tuple as its result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..aliases import BufferDonor, InputOutputAlias
from ..builder import make_instruction, with_unique_names
from ..errors import ShapeError, UnsupportedError
from ..instruction import HloComputation, HloInstruction
from ..ir import HloModule
from ..literal import Literal
from ..mlir.tree import Attribute, Opaque, Operation
from ..opcode import Opcode
from ..ops.custom_call import CustomCallAttributes
from ..ops.structure import ConstantAttributes
from ..shape import Shape
from ..shardy import MESHES, NamedMesh, meshes_of
from . import (
    reading_arrays,
    reading_calls,
    reading_chlo,
    reading_collectives,
    reading_control,
    reading_elementwise,
    reading_quantized,
    reading_queues,
)
from .attributes import read_integer
from .discardable_attributes import read_discardable
from .ops import OP_NAMED
from .reading_quantized import is_quantized, on_numbers
from .refine import is_size, needs_refinement
from .scope import Discardable, Rule, Scope, has_unknown_size, metadata_of
from .structure import check_structure
from .table_rules import read_by_table
from .types import fits, shape_of, type_text

_RULES: dict[str, Rule] = {}
for _module in (
    reading_arrays, reading_calls, reading_chlo, reading_collectives, reading_control, reading_elementwise,
    reading_quantized, reading_queues,
):  # fmt: skip
    _RULES.update(_module.RULES)

MAIN = "main"
_DEEPEST_CALLS = 100
_MOST_VERSIONS = 256
"""Of one function, for operands of different sizes."""


def hlo_of(module: Operation, arguments: Sequence[Shape] | None = None) -> HloModule:
    """The module of a `builtin.module`: its function `main`, or the only one that is public.

    arguments: the shapes of main's arguments, for one with sizes `?`.

    UnsupportedError names an operation, type or attribute that HLO does not have, and a size that does not follow from
    constants; ShapeError the rule that operands break. Both have the operation as their attribute `operation`.
    """
    return _Program(module, arguments is not None).module(arguments)


class _Program:
    def __init__(self, module: Operation, is_refined: bool) -> None:
        if module.name != "builtin.module" or len(module.regions) != 1:
            raise UnsupportedError(f"a program is a builtin.module, not {module.name}")
        check_structure(module)
        self._module = module
        self._functions: dict[str, Operation] = {}
        self._meshes: dict[str, str] = {}
        for operation in module.regions[0].block.operations:
            name = operation.attributes.get("sym_name")
            if operation.name == "func.func" and isinstance(name, str):
                self._functions[name] = operation
            elif operation.name == "sdy.mesh" and isinstance(name, str):
                self._meshes[name] = _mesh_text(operation.attributes.get("mesh"))
            elif operation.name != "builtin.module" or operation.regions[0].block.operations:
                raise UnsupportedError(f"{operation.name} among the functions of a module is not supported")
        texts = ", ".join(f"{mesh} = {text}" for mesh, text in self._meshes.items())
        self._mesh_pairs = ((MESHES, f"{{{texts}}}"),) if texts else ()
        self.meshes: Mapping[str, NamedMesh] = meshes_of(self._mesh_pairs)
        self.is_refined = is_refined or needs_refinement(module)
        self._made: dict[Any, HloComputation] = {}
        self._being_made: list[str] = []

    # ---- what scopes ask for

    def rule(self, operation: Operation) -> Rule:
        found = _RULES.get(operation.name)
        if found is None and operation.name in OP_NAMED:
            found = read_by_table
        if found is not None:
            return on_numbers(found) if is_quantized(operation) else found
        raise UnsupportedError(f"the operation {operation.name} is not supported")

    def computation(self, name: str, operands: Sequence[HloInstruction] | None) -> HloComputation:
        function = self._functions.get(name)
        if function is None or not function.regions or not function.regions[0].blocks:
            raise UnsupportedError(f"there is no function @{name} with a body")
        arguments = function.regions[0].block.arguments
        if operands is not None and len(operands) != len(arguments):
            raise UnsupportedError(f"@{name} has {len(arguments)} arguments, not {len(operands)}")
        for argument, operand in zip(arguments, operands or ()):
            if not fits(operand.shape, argument.type):
                raise ShapeError(f"@{name} takes {type_text(argument.type)}, not {operand.shape}")
        shapes = [shape_of(a.type) for a in arguments] if operands is None else [o.shape for o in operands]
        constants: list[Literal | None] = [None] * len(arguments)
        if self.is_refined and operands is not None:
            constants = [_integers(o) for o in operands]
        key = (name, *shapes, *constants)
        found = self._made.get(key)
        if found is None:
            if name in self._being_made:
                raise UnsupportedError(f"the function @{name} calls itself")
            if len(self._being_made) > _DEEPEST_CALLS:
                raise UnsupportedError(f"functions call one another more than {_DEEPEST_CALLS} deep")
            if len(self._made) > _MOST_VERSIONS * len(self._functions):
                raise UnsupportedError("the functions are called with too many different sizes")
            self._being_made.append(name)
            found = self._made[key] = self._function(function, name, shapes, constants)
            self._being_made.pop()
        return found

    # ---- functions

    def _function(
        self, function: Operation, name: str, shapes: Sequence[Shape], constants: Sequence[Literal | None]
    ) -> HloComputation:
        """A function as a computation; arguments that are constants of the call are constants in it."""
        scope = Scope(self, name)
        block = function.regions[0].block
        given = function.attributes.get("arg_attrs", ())
        assert isinstance(given, tuple)
        for k, (argument, shape) in enumerate(zip(block.arguments, shapes, strict=True)):
            discardable: Mapping[str, Attribute] = given[k] if k < len(given) else {}  # type: ignore[assignment]
            location = block.argument_locations[k] if block.argument_locations else None
            known = Discardable(metadata_of(location), *read_discardable(discardable, self.meshes))
            made = scope.parameter(k, shape, argument.name, known)
            literal = constants[k]
            scope.values[argument] = made if literal is None else scope.op(*_constant(literal))
        return scope.computation(scope.packed(scope.run(block)))

    def _main(self) -> tuple[str, Operation]:
        if MAIN in self._functions:
            return MAIN, self._functions[MAIN]
        public = {
            name: function
            for name, function in self._functions.items()
            if function.attributes.get("sym_visibility") != "private"
        }
        if len(public) != 1:
            named = ", ".join(f"@{name}" for name in self._functions) or "none"
            raise UnsupportedError(f"a program has a function @main; this one has {named}")
        ((name, function),) = public.items()
        return name, function

    def module(self, arguments: Sequence[Shape] | None) -> HloModule:
        """The whole program."""
        name, function = self._main()
        if not function.regions or not function.regions[0].blocks:
            raise UnsupportedError(f"the function @{name} has no body")
        types = [value.type for value in function.regions[0].block.arguments]
        if arguments is not None and len(arguments) != len(types):
            raise UnsupportedError(f"@{name} has {len(types)} arguments, not {len(arguments)}")
        shapes = []
        for k, type_ in enumerate(types):
            is_open = arguments is not None and has_unknown_size(type_)
            shapes.append(arguments[k] if is_open and arguments is not None else shape_of(type_))
        self._being_made.append(name)
        entry = self._function(function, name, shapes, [None] * len(shapes))
        given = function.attributes.get("arg_attrs", ())
        assert isinstance(given, tuple)
        attributes = self._module.attributes
        frontend = dict((*read_discardable(attributes, self.meshes)[0], *self._mesh_pairs))
        title = attributes.get("sym_name")
        made = HloModule(
            title if isinstance(title, str) and title else name,
            _with_result_shardings(entry, function, self.meshes),
            input_output_aliases=tuple(_aliases(given, entry)),
            frontend_attributes=tuple(frontend.items()),
            replica_count=read_integer(attributes.get("mhlo.num_replicas", 1)),
            num_partitions=read_integer(attributes.get("mhlo.num_partitions", 1)),
            buffer_donors=tuple(BufferDonor(k) for k, each in enumerate(given) if _says(each, "jax.buffer_donor")),
        )
        return with_unique_names(made)


def _integers(instruction: HloInstruction) -> Literal | None:
    """The value of a constant with few integers."""
    literal: Literal | None = instruction.attributes.literal if is_size(instruction) else None
    return literal


def _constant(literal: Literal) -> tuple[Any, ...]:
    return Opcode.CONSTANT, (), ConstantAttributes(literal)


def _mesh_text(mesh: object) -> str:
    if not isinstance(mesh, Opaque):
        raise UnsupportedError("sdy.mesh needs its mesh")
    return mesh.text


def _says(attributes: Any, name: str) -> bool:
    found = attributes.get(name)
    return found is not None and found is not False


def _aliases(given: Sequence[Any], entry: HloComputation) -> list[InputOutputAlias]:
    """`tf.aliasing_output = 0 : i32` of an argument: the result that may be stored in its memory."""
    found = []
    for k, attributes in enumerate(given):
        index = attributes.get("tf.aliasing_output")
        if index is not None:
            place = (read_integer(index),) if entry.root.shape.is_tuple else ()
            found.append(InputOutputAlias(place, k))
    return found


def _with_result_shardings(
    entry: HloComputation, function: Operation, meshes: Mapping[str, NamedMesh]
) -> HloComputation:
    """The entry with the shardings of its results on the root, as XLA has them."""
    given = function.attributes.get("res_attrs", ())
    assert isinstance(given, tuple)
    texts = [dict(read_discardable(each, meshes)[1]).get("sharding") for each in given if isinstance(each, dict)]
    if not texts or not all(texts):
        return entry
    root = entry.root
    if root.shape.is_tuple:
        text = f"{{{', '.join(str(text) for text in texts)}}}"
    else:
        text = str(texts[0])
    if dict(root.annotations).get("sharding") == text:
        return entry
    sharding = (("sharding", text),)
    if root.opcode is Opcode.TUPLE and not root.annotations:
        marked = HloInstruction(Opcode.TUPLE, root.shape, root.operands, metadata=root.metadata, annotations=sharding)
        return HloComputation(entry.name, tuple(marked if i is root else i for i in entry.instructions), marked)
    call = CustomCallAttributes("Sharding")
    marked = make_instruction(Opcode.CUSTOM_CALL, (root,), call, root.shape, annotations=sharding)
    return HloComputation(entry.name, (*entry.instructions, marked), marked)
