"""An HloModule as a tree of StableHLO.

Opcodes of the table (`ops.py`) are written by it; others have rules in `writing_*.py`. A computation that is called
becomes a function, one that belongs to an instruction a region; fusions are written out. Layouts, copies and bitcasts
say where arrays are in memory: StableHLO does not. A tuple that `main` takes or returns becomes its leaves.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import UnsupportedError
from ..instruction import HloComputation, HloInstruction
from ..ir import HloModule
from ..mlir.tree import Attribute, Block, Function, Location, Opaque, Operation, Region, TypeAttribute, Value
from ..opcode import Opcode
from ..shape import Shape
from ..sharding import HloSharding
from ..shardy import MESHES
from ..text.mlir_dictionary import read_dictionary
from . import writing_arrays, writing_structure
from .attributes import INTEGER32
from .body import Body, Rule, Tree, leaf_shapes, leaves_of, location_of, tree_of
from .discardable_attributes import MHLO_SHARDING, SDY_SHARDING, each_value, write_discardable
from .ops import OP_OF
from .types import type_of

_RULES: dict[Opcode, Rule] = {**writing_structure.RULES, **writing_arrays.RULES}

Attributes = dict[str, Attribute]


def stablehlo_of(module: HloModule) -> Operation:
    """The module as a `builtin.module` with the function `main`.

    UnsupportedError names an instruction that StableHLO does not have; it is the error's attribute `instruction`.
    """
    return _Program().module(module)


class _Program:
    def __init__(self) -> None:
        self._names: dict[HloComputation, str] = {}
        self._taken = {"main"}
        self._functions: list[Operation] = []

    # ---- what bodies ask for

    def rule(self, instruction: HloInstruction) -> Rule:
        found = _RULES.get(instruction.opcode)
        if found is not None:
            return found
        if instruction.opcode in OP_OF:
            return writing_arrays.by_table
        raise UnsupportedError(f"StableHLO has no {instruction.opcode.value}")

    def function(self, computation: HloComputation) -> str:
        name = self._names.get(computation)
        if name is None:
            name = computation.name or "computation"
            number = 0
            while name in self._taken:
                name, number = f"{computation.name}_{number}", number + 1
            self._taken.add(name)
            self._names[computation] = name
            self._functions.append(self._written(computation, name, "private", ()))
        return name

    # ---- functions

    def _written(
        self, computation: HloComputation, name: str, visibility: str, arguments_attributes: Sequence[Attributes],
        results_attributes: Sequence[Attributes] = (),
    ) -> Operation:  # fmt: skip
        body = Body(self)
        arguments: list[Value] = []
        parameters: list[Tree] = []
        locations: list[Location | None] = []
        for parameter in computation.parameters:
            leaves = [Value(type_of(leaf)) for leaf in leaf_shapes(parameter.shape)]
            if len(leaves) == 1:
                leaves[0].name = parameter.name
            arguments += leaves
            locations += [location_of(parameter.metadata)] * len(leaves)
            parameters.append(tree_of(parameter.shape, leaves))
        results = list(leaves_of(body.run(computation, parameters)))
        body.location = None
        body.emit("func.return", results, ())
        type_ = Function(tuple(a.type for a in arguments), tuple(r.type for r in results))
        attributes: Attributes = {"sym_name": name, "function_type": TypeAttribute(type_), "sym_visibility": visibility}
        if any(arguments_attributes):
            attributes["arg_attrs"] = tuple(arguments_attributes)
        if any(results_attributes):
            attributes["res_attrs"] = tuple(results_attributes)
        block = Block(arguments, body.operations, locations if any(locations) else [])
        return Operation("func.func", [], [], attributes, [Region([block])])

    def module(self, module: HloModule) -> Operation:
        """The whole program."""
        attributes: Attributes = {"sym_name": module.name}
        frontend = dict(module.frontend_attributes)
        meshes = read_dictionary(frontend.pop(MESHES, "{}"))
        for name, text in meshes:
            mesh: Attributes = {"sym_name": name, "mesh": Opaque("sdy", text)}
            self._functions.append(Operation("sdy.mesh", [], [], mesh))
        attributes.update(write_discardable(tuple(frontend.items()), ()))
        attributes["mhlo.num_partitions"] = INTEGER32.write(module.num_partitions)
        attributes["mhlo.num_replicas"] = INTEGER32.write(module.replica_count)
        main = self._written(
            module.entry, "main", "public", _of_arguments(module), _of_results(module.entry.root)
        )  # fmt: skip
        place = len(meshes)
        operations = [*self._functions[:place], main, *self._functions[place:]]
        return Operation("builtin.module", [], [], attributes, [Region([Block([], operations)])])


# ---- attributes of main's arguments and results


def _of_arguments(module: HloModule) -> list[Attributes]:
    """Of each leaf of the parameters: the result that may be stored in its memory, whether it may be overwritten, and
    its sharding."""
    numbers: dict[tuple[int, tuple[int, ...]], int] = {}
    found: list[Attributes] = []
    for k, parameter in enumerate(module.entry.parameters):
        shardings = _split(parameter)
        for index, sharding in zip(_indices(parameter.shape), shardings, strict=True):
            numbers[k, index] = len(found)
            found.append(sharding)
    results = {index: k for k, index in enumerate(_indices(module.entry.root.shape))}
    for alias in module.input_output_aliases:
        place = numbers[alias.parameter, alias.parameter_index]
        found[place]["tf.aliasing_output"] = INTEGER32.write(results[alias.output_index])
    for donor in module.buffer_donors:
        found[numbers[donor.parameter, donor.parameter_index]]["jax.buffer_donor"] = True
    return found


def _of_results(root: HloInstruction) -> list[Attributes]:
    """The sharding of each leaf of the result. Frontend attributes are on the operation that makes it."""
    found = _split(root)
    return [{key: value for key, value in each.items() if key in (MHLO_SHARDING, SDY_SHARDING)} for each in found]


def _split(instruction: HloInstruction) -> list[Attributes]:
    """The discardable attributes of each leaf of an instruction."""
    discardable = write_discardable(instruction.frontend_attributes, instruction.annotations)
    count = len(list(leaf_shapes(instruction.shape)))
    text = discardable.get(MHLO_SHARDING)
    if count == 1 and not instruction.shape.is_tuple:
        return [discardable]
    found = [dict(discardable) for _ in range(count)]
    if isinstance(text, str):
        sharding = HloSharding.parse(text)
        each = sharding.elements if sharding.is_tuple else (sharding,) * count
        for attributes, own in zip(found, each, strict=True):
            attributes[MHLO_SHARDING] = own.to_text()
    if (named := discardable.get(SDY_SHARDING)) is not None and len(texts := each_value(named.text)) == count:
        for attributes, one in zip(found, texts, strict=True):
            attributes[SDY_SHARDING] = Opaque("sdy", one)
    return found


def _indices(shape: Shape, index: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
    """The index of each leaf."""
    if shape.tuple_shapes is None or shape.is_token:
        return [index]
    return [found for k, element in enumerate(shape.tuple_shapes) for found in _indices(element, (*index, k))]
