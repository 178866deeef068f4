"""Programs over several devices with places from their operands: the layer of the bottom trace for placed arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

from ...hlo.builder import (
    make_computation,
    make_get_tuple_element,
    make_instruction,
    make_parameter,
    make_tuple,
    with_unique_names,
)
from ...hlo.effects import effects_of, has_side_effect
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction, HloModule
from ...hlo.opcode import Opcode
from ...hlo.ops.structure import GetTupleElementAttributes
from ...hlo.shape import Shape
from ...hlo.support.loading import load
from ..arrays.array import Array, is_placed, on_several
from ..caches import on_clear
from ..core import Value, array_of, call_of, run_meaning
from ..execution import kept_by, module_of
from ..layers import Layer
from ..primitive import Call
from ..settings.context import Context, current_context
from .calls import CONSTRAINT, parts_become_terms
from .current_mesh import mesh_of_thread
from .devices import SEVERAL
from .hlo_shardings import Assignment
from .mesh import Mesh
from .partition_spec import PartitionSpec
from .shardings import NamedSharding, SingleDeviceSharding, whole_mesh
from .spmd import SHARDINGS, Place, Spmd, device_set_of, is_several, named_shardings, places_of

T = TypeVar("T")


def _divisions() -> Any:
    """The rules of meshes with Explicit axes."""
    return load(".divisions", __package__)


def spmd(
    module: HloModule, assignment: Assignment, places: Sequence[Place], asked: Sequence[Place] | None = None,
    is_strict: bool = False,
) -> Spmd:  # fmt: skip
    """The program of `module` over the devices of `assignment`. See `Spmd`. is_strict: as in `results_of`."""
    meshes: dict[Mesh, None] = {}
    for sharding in (*places, *named_shardings(module.entry)):
        mesh = getattr(sharding, "mesh", None)
        if isinstance(mesh, Mesh):
            meshes[mesh] = None
    current = mesh_of_thread()
    if not meshes and current is not None and {*current.devices.flat} == {*assignment}:
        meshes[current] = None
    wanted = list(asked or [None] * len(module.entry.root.shape.elements))
    explicit = sorted([m for m in meshes if m.explicit_axes], key=lambda m: -len(m.explicit_axes))
    if len({m.shape_tuple for m in explicit}) == 1:  # how they are divided follows from the operands
        mesh = explicit[0]
        divisions = _divisions().results_of(module.entry, places, mesh, is_strict)
        found = [d.sharding(mesh) for d in divisions]
        if any(map(_is_sum, (*places, *wanted, *found, *named_shardings(module.entry)))):
            module = load(".stated", __package__).stated(module, places, mesh)
            module = _with_results_as(module, found, wanted)
        wanted = [a or _in_types_of(current, _stated(f)) for a, f in zip(wanted, found, strict=True)]
    elif any(map(_is_sum, (*places, *wanted, *named_shardings(module.entry)))):
        raise UnsupportedError("a program with unreduced axes over several meshes with different axes")
    meshes |= {m: None for place in wanted if isinstance(m := getattr(place, "mesh", None), Mesh)}
    return Spmd(module, assignment, [_whole(p) for p in places], wanted, list(meshes))


def _in_types_of(current: Mesh | None, place: Place) -> Place:
    """The place of a result over the mesh of `set_mesh`, if that is the place's mesh with Auto axes."""
    if current is None or not isinstance(place, NamedSharding) or current.explicit_axes:
        return place
    if current.shape_tuple != place.mesh.shape_tuple:
        return place
    entries = list(place.spec.partitions)
    while entries and entries[-1] is None:
        entries.pop()
    return NamedSharding(current, PartitionSpec(*entries))


def _is_sum(place: Place) -> bool:
    return isinstance(place, NamedSharding) and bool(place.spec.unreduced)


def _with_results_as(module: HloModule, found: Sequence[NamedSharding], wanted: Sequence[Place]) -> HloModule:
    """The program with its terms added, or with terms made, where a result is wanted so."""
    entry = module.entry
    given = [make_get_tuple_element(entry.root, k) for k in range(len(entry.root.shape.elements))]
    results = list(given)
    for k, (has, place) in enumerate(zip(found, wanted, strict=True)):
        if isinstance(place, NamedSharding) and place.spec.unreduced != has.spec.unreduced:
            results[k], _ = load(".terms", __package__).converted(results[k], has, place.update(mesh=has.mesh))
    if results == given:
        return module
    changed = make_computation(entry.name, make_tuple(results), entry.parameters, effects_of(entry))
    return with_unique_names(replace(module, entry=changed))


def _stated(place: NamedSharding) -> Place:
    """The place, if types say it: where Auto axes are left, they leave an undivided result to the partitioner."""
    return place if place.mesh.are_all_axes_explicit or not place.is_fully_replicated else None


def _whole(place: Place) -> Place:
    """The place, for an argument that is on all devices of a program."""
    return None if isinstance(place, SingleDeviceSharding) else place


def places_on_one_device(
    entry: HloComputation, places: Sequence[Place], asked: Sequence[Place] | None = None,
    further: Sequence[Place] = (), is_strict: bool = False,
) -> list[Place]:  # fmt: skip
    """The places of a program's results, if it runs on one device, as JAX decides: the place that is `asked` for, or to
    which the program constrains the result; on a mesh with Explicit axes, the place that follows from the operands.
    Else the place of the first argument that has one, for a result with as many dimensions, and all of its mesh for the
    other results; without such an argument, the device, or all of the mesh, of a sharding in `asked`, `further` or the
    program."""
    results = entry.root.operands if entry.root.opcode is Opcode.TUPLE else [None] * len(entry.root.shape.elements)
    ranks = [s.rank for s in entry.root.shape.elements]
    found = _like_arguments(places, [p.shape.rank for p in entry.parameters], ranks)
    named = next((p for p in (*further, *(asked or ()), *named_shardings(entry)) if p is not None), None)
    if not any(found) and named is not None:
        found = [_whole_mesh(named) if isinstance(named, NamedSharding) else named] * len(ranks)
    mesh = getattr(next(iter(found), None), "mesh", None)
    if isinstance(mesh, Mesh) and mesh.are_all_axes_explicit:
        found = [d.sharding(mesh) for d in _divisions().results_of(entry, places, mesh, is_strict)]
    found = [_constraint(r) or f for r, f in zip(results, found, strict=True)]
    return [a or f for a, f in zip(asked, found, strict=True)] if asked is not None else found


def _like_arguments(places: Sequence[Place], ranks: Sequence[int], results: Sequence[int]) -> list[Place]:
    """The place of the first argument that has one, for results of its rank; all of its mesh for the others."""
    place, rank = next(((p, r) for p, r in zip(places, ranks, strict=True) if p is not None), (None, 0))
    if not isinstance(place, NamedSharding):
        return [place] * len(results)
    return [place if r == rank else _whole_mesh(place) for r in results]


def _whole_mesh(place: NamedSharding) -> NamedSharding:
    return NamedSharding(place.mesh, PartitionSpec(), memory_kind=place.memory_kind)


def _constraint(result: HloInstruction | None) -> Place:
    """The sharding to which a program constrains a result."""
    if result is not None and result.opcode is Opcode.GET_TUPLE_ELEMENT:
        (result,) = result.operands
    if result is None or result.opcode is not Opcode.CALL:
        return None
    call = call_of(result.attributes)
    return call.params if call.primitive is CONSTRAINT else None


@lru_cache(maxsize=1024)
def _places_of_op(
    opcode: Opcode, operands: tuple[Shape, ...], attributes: Any, shape: Shape, places: tuple[Place, ...],
    is_strict: bool,
) -> list[Place]:  # fmt: skip
    return places_on_one_device(_module_of_op(opcode, operands, attributes, shape).entry, places, is_strict=is_strict)


on_clear(_places_of_op.cache_clear)


def run_placed(computation: HloComputation, arrays: Sequence[Array], name: str) -> list[Array] | None:
    """The results of a computation of flat parameters, over the devices of the arrays and of the shardings that it
    names. None if these are one device of this process."""
    if not SEVERAL:
        return None
    places = places_of(arrays)
    assignment = device_set_of(places, [a.aval for a in arrays], named_shardings(computation), name)
    if assignment is None or not is_several(assignment):
        return None
    key = ("spmd", assignment, places, current_context())
    found = assignment
    program = kept_by(computation, key, lambda: spmd(module_of(computation.name, computation), found, places))
    return program.call_checked(arrays, name)


@lru_cache(maxsize=1024)
def _program_of_op(
    opcode: Opcode, operands: tuple[Shape, ...], attributes: Any, shape: Shape, assignment: Assignment,
    places: tuple[Place, ...], context: Context, is_strict: bool,
) -> Spmd:  # fmt: skip
    return spmd(_module_of_op(opcode, operands, attributes, shape), assignment, places, is_strict=is_strict)


on_clear(_program_of_op.cache_clear)


def _module_of_op(opcode: Opcode, operands: Sequence[Shape], attributes: Any, shape: Shape) -> HloModule:
    parameters = [make_parameter(k, s) for k, s in enumerate(operands)]
    taken: list[HloInstruction] = list(parameters)
    if opcode is Opcode.WHILE:
        taken = [make_tuple(parameters)]
    elif opcode is Opcode.CONDITIONAL:
        taken = [parameters[0], *[make_tuple(parameters[1:])] * len(attributes.called_computations())]
    op = HloInstruction(opcode, shape, tuple(taken), attributes)
    effects = [op] if has_side_effect(op) else []
    if shape.is_tuple:
        numbers = map(GetTupleElementAttributes, range(len(shape.elements)))
        elements = [make_instruction(Opcode.GET_TUPLE_ELEMENT, [op], number) for number in numbers]
        return module_of(opcode.value, make_computation("main", make_tuple(elements), parameters, effects))
    return module_of(opcode.value, make_computation("main", make_tuple([op]), parameters, effects))


_OF_PROGRAMS = frozenset({Opcode.CONDITIONAL, Opcode.WHILE})
"""The ops with computations that may name shardings."""


class PlacementLayer(Layer):
    """Arrays on several devices: an op on them is a program over these, and its results stay there."""

    def process(self, opcode: Opcode, operands: tuple[Value, ...], attributes: Any, shape: Shape) -> Any:
        named: Sequence[Any] = ()
        if opcode in _OF_PROGRAMS:
            named = [s for c in attributes.called_computations() for s in named_shardings(c)]
        if not named and not any(map(is_placed, operands)):
            result = self.below.process(opcode, operands, attributes, shape)
            # a scalar is made to fit another operand, and goes where that is
            return result if opcode is Opcode.BROADCAST else _on_mesh_of_thread(result)
        arrays = [array_of(o) for o in operands]
        places = places_of(arrays)
        assignment = device_set_of(places, [a.aval for a in arrays], named, opcode.value) if SEVERAL else None
        shapes = tuple([a.aval.hlo for a in arrays])
        is_strict = _divisions().is_refused(arrays)
        if assignment is None or not is_several(assignment):
            found = _places_of_op(opcode, shapes, attributes, shape, places, is_strict)
            return _put(self.below.process(opcode, operands, attributes, shape), found)
        program = _program_of_op(opcode, shapes, attributes, shape, assignment, places, current_context(), is_strict)
        results = program.call_checked(arrays, opcode.value, is_library=True)
        return list(results) if shape.is_tuple else results[0]

    def process_call(self, call: Call, operands: tuple[Value, ...]) -> Any:
        arrays = [array_of(o) for o in operands]
        is_program = isinstance(call.meaning, HloComputation)
        names = is_program and bool(named_shardings(call.computation))
        if not names and not any(map(is_placed, arrays)):
            return _on_mesh_of_thread(self.below.process_call(call, operands))
        if call.primitive in SHARDINGS:
            terms = _made_of_parts(call, arrays)
            return list(call.primitive.evaluate(call, arrays)) if terms is None else terms
        if not is_program:
            if any(on_several(a) for a in arrays):
                return run_meaning(call, operands)
            given, results = places_of(arrays), self.below.process_call(call, operands)
            return _put(results, _like_arguments(given, [a.aval.ndim for a in arrays], [r.aval.ndim for r in results]))
        results = run_placed(call.computation, arrays, call.label or call.primitive.name)
        if results is not None:
            return list(results)
        places, computation = places_of(arrays), call.computation
        found = kept_by(computation, ("places", places), lambda: places_on_one_device(computation, places))
        return _put(self.below.process_call(call, operands), found)


def _made_of_parts(call: Call, arrays: Sequence[Array]) -> list[Array] | None:
    """The array of a constraint to a place with unreduced axes, if each device keeps its part; else None."""
    if call.primitive is not CONSTRAINT or not parts_become_terms(arrays[0].aval, call.params):
        return None
    parameter = make_parameter(0, arrays[0].aval.hlo)
    result = make_instruction(Opcode.CALL, [parameter], call.hlo_attributes())
    program = make_computation("reshard", make_tuple([make_get_tuple_element(result, 0)]), [parameter])
    return run_placed(program, arrays, "reshard")


def _on_mesh_of_thread(results: Any) -> Any:
    """Results that are nowhere, on all devices of the mesh that `set_mesh` has set."""
    mesh = mesh_of_thread()
    if mesh is None:
        return results
    values = results if isinstance(results, list) else [results]
    return _put(results, [whole_mesh(mesh, v.aval.ndim) for v in values])


def _put(results: Any, places: Sequence[Place]) -> Any:
    """Results on one device, in their places."""
    if not isinstance(results, list):
        return _put([results], places)[0]
    pairs = zip(results, places, strict=True)
    return [r if p is None or is_placed(r) else r.with_aval(r.aval, p) for r, p in pairs]
