"""jit over several devices: the places of a call's arguments select its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ...hlo.support.records import dataclass
from ..arrays.array import Array
from ..aval import ShapedArray
from ..traced import Traced, with_avals
from ..trees import tree
from .current_mesh import mesh_of_thread, with_devices
from .devices import devices
from .hlo_shardings import Assignment, assignment_of
from .mesh import Mesh
from .placed_operations import spmd
from .shardings import NamedSharding, Sharding, SingleDeviceSharding
from .spmd import Spmd, check_device_counts, device_set_of, is_several, move, named_shardings, places_of

Places = Sequence[Sharding | None]


@dataclass(frozen=True, slots=True)
class OverDevices:
    """A program over several devices, for arguments in certain places."""

    program: Spmd
    run: Callable[[Sequence[Array]], Any]
    places: Places
    """Of the arguments; None for those that are on no device yet."""

    def call(self, arrays: Sequence[Array]) -> Any:
        """Run on any arguments. ValueError for an argument in another place than the program expects."""
        check_places(arrays, self.places)
        return self.run([a if p is None else move(a, p) for a, p in zip(arrays, self.places, strict=True)])


def check_places(arrays: Sequence[Array], places: Places) -> None:
    """ValueError for an argument of a compiled program in another place than the program expects."""
    for array, own, place in zip(arrays, places_of(arrays), places, strict=True):
        if own is not None and (place is None or not own.is_equivalent_to(place, array.aval.ndim)):
            raise ValueError(
                f"Compiled object called with input sharding {own}, but it was compiled with {place} for the "
                f"argument {array.aval.str_short()}"
            )


def on_one_device(
    run: Callable[[Sequence[Array]], Any], places: Places, results: Places
) -> Callable[[Sequence[Array]], Any]:
    """`run` of a program for one device, for arguments in `places` or nowhere, and results in the places `results`. The
    device is the one that any of them says, or the first."""
    said = next((p.device_assignment[0] for p in (*places, *results) if p is not None), None)
    expected = [SingleDeviceSharding(said or devices()[0]) if p is None else p for p in places]

    def checked_call(arrays: Sequence[Array]) -> Any:
        check_places(arrays, expected)
        return run(arrays)

    return checked_call


def moved(places: Places, wanted: Places, avals: Sequence[ShapedArray]) -> list[Sharding | None]:
    """The places of a call's arguments, where the shardings that jit was given move them to other devices.

    As in JAX, only whole arrays are moved. ValueError for an argument in another place than is wanted.
    """
    found = list(places)
    for k, (place, want, aval) in enumerate(zip(places, wanted, avals, strict=True)):
        if place is None or want is None or want.is_equivalent_to(place, aval.ndim):
            continue
        if not (place.is_fully_replicated and want.is_fully_replicated):
            raise ValueError(
                "Sharding passed to jit does not match the sharding on the respective arg. Got jit sharding: "
                f"{want},\narg sharding: {place} for arg type: {aval.str_short()}"
            )
        found[k] = want
    return found


def compiled_over_devices(
    traced: Traced,
    captured: Sequence[Array],
    places: Places,
    asked: tuple[Places, Places],
    name: str,
    labels: Callable[[], Sequence[str]],
    what: str,
    is_library: bool = False,
) -> OverDevices | None:
    """The program of a call with arrays in `places`; None if it runs on one device of this process.

    asked: the shardings of arguments and of results that jit was given. what, is_library: for `checks.blame`.
    ValueError if devices or shardings disagree.
    """
    wanted, results = asked
    own = [p or w for p, w in zip(moved(places, wanted, traced.in_avals), wanted, strict=True)]
    moves = [(k, o) for k, (p, o) in enumerate(zip(places, own, strict=True)) if p is not o and o is not None]
    further = [*named_shardings(traced.computation), *[r for r in results if r is not None]]
    assignment = device_set_of(own, traced.in_avals, further, name, labels() if any(own) else ())
    if assignment is None and (place := next(filter(None, places_of(captured)), None)) is not None:
        assignment = assignment_of(place.device_set)
    if assignment is None and (mesh := mesh_of_thread()) is not None:
        assignment = assignment_of(mesh.devices.flat)
    check_device_counts(traced.computation, 1 if assignment is None else len(assignment))
    if assignment is None or not is_several(assignment):
        return None
    held = [_on(assignment, v) for v in captured]
    everything = [*own, *places_of(held)]
    named = [getattr(s, "mesh", None) for s in (*everything, *further)]
    meshes = [m for m in named if isinstance(m, Mesh)]
    outs = [
        _as_typed(aval, meshes) if r is None else None if isinstance(r, SingleDeviceSharding) else r
        for r, aval in zip(results, traced.out_avals, strict=True)
    ]
    # Donated arrays are deleted, but not written to: their parts may belong to other arrays.
    program = spmd(replace(traced, donated=()).module(), assignment, everything, outs)
    out_avals, out_tree, donated = traced.out_avals, traced.out_tree, traced.donated

    def run(arrays: Sequence[Array]) -> Any:
        given = list(arrays)
        for k, place in moves:
            given[k] = move(given[k], place)
        stored = [a._storage if a.aval.is_extended else a for a in (*given, *held)]
        found = program.call_checked(stored, what, is_library)
        for k in donated:
            if not arrays[k].is_deleted():
                arrays[k].delete()
        return tree.unflatten(out_tree, with_avals(found, out_avals))

    return OverDevices(program, run, own)


def _on(assignment: Assignment, array: Array) -> Array:
    """A captured array, which goes where the arguments are: on other devices it has no place yet."""
    (place,) = places_of([array])
    if place is None or {*place.device_set} == {*assignment}:
        return array
    return move(array, SingleDeviceSharding(assignment[0])).with_aval(array.aval, None)


def _as_typed(aval: ShapedArray, meshes: Sequence[Mesh]) -> Sharding | None:
    """The place of a result that its type says: over the mesh of a program's shardings with these axes, or over the
    devices of one, in a mesh with other axes."""
    division = aval.division
    if division is None:
        return None
    own = [m for m in meshes if m.abstract_mesh == division.mesh]
    mesh = own[0] if own else next((found for m in meshes if (found := with_devices(division.mesh, m))), None)
    return None if mesh is None else NamedSharding(mesh, division.spec)
