"""Programs over several devices: which devices a program runs on, its parts for each, and running them.

A program for whole arrays, with the places of its arguments, is divided by `hlo/passes/partition` into one program that
all devices run, each on its parts (`Spmd`). With one device, none of this code runs.
`placed_operations.py` runs operations outside of jit in this way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ...hlo.backend import DeviceBuffer
from ...hlo.builder import make_computation, make_parameter, make_tuple
from ...hlo.ir import HloComputation, HloModule
from ...hlo.opcode import Opcode
from ...hlo.shape import Shape
from ...hlo.sharding import HloSharding
from ...hlo.support.records import dataclass
from ..arrays.array import Array, is_placed, with_storage
from ..aval import ShapedArray, aval_of_shape
from ..caches import on_clear
from ..checks.nan_checks import blame_on_devices, fault, is_checking
from ..core import call_of
from ..execution import compile_module, module_of
from ..primitive import Call, Primitive
from ..settings.context import Context, current_context
from .devices import CpuDevice, process_index
from .hlo_shardings import Assignment, assignment_of, from_hlo, to_hlo
from .inlining import with_open_borders
from .mesh import Mesh
from .shardings import Sharding
from .shards import cut

if TYPE_CHECKING:
    from ...hlo.passes.partition import Partitioned

Place = Sharding | None

SHARDINGS: dict[Primitive, Callable[[Call], Sharding]] = {}
"""The primitives that say how an array is divided: the sharding of a call. `calls.py` fills it."""


# ---- where arrays are


def places_of(arrays: Sequence[Any]) -> tuple[Place, ...]:
    """The places of arrays; None for one that goes where it is needed."""
    return tuple([a._placed if is_placed(a) else None for a in arrays])


_named: WeakKeyDictionary[HloComputation, tuple[Sharding, ...]] = WeakKeyDictionary()


def named_shardings(computation: HloComputation) -> tuple[Sharding, ...]:
    """The shardings that a computation names; calls are followed to any depth."""
    found = _named.get(computation)
    if found is None:
        names: dict[Sharding, None] = {}
        for i in computation.instructions:
            if i.opcode is Opcode.CALL:
                call = call_of(i.attributes)
                if call.primitive in SHARDINGS:
                    names[SHARDINGS[call.primitive](call)] = None
            for called in i.called_computations():
                names.update(dict.fromkeys(named_shardings(called)))
        found = _named[computation] = tuple(names)
    return found


DEVICE_COUNTS: dict[Primitive, Callable[[Call], tuple[str, int]]] = {}
"""The primitives whose programs are for a number of devices: the name of the program, and that number."""


def check_device_counts(computation: HloComputation, count: int) -> None:
    """ValueError if a computation that runs on `count` devices calls a program that is for another number."""
    waiting = [computation] if DEVICE_COUNTS else []
    seen = {*waiting}
    while waiting:
        for i in waiting.pop().instructions:
            call = call_of(i.attributes) if i.opcode is Opcode.CALL else None
            if call is not None and call.primitive in DEVICE_COUNTS:
                name, wanted = DEVICE_COUNTS[call.primitive](call)
                if wanted not in (1, count):
                    raise wrong_device_count(name, wanted, count)
            new = {*i.called_computations()} - seen
            seen |= new
            waiting += new


def wrong_device_count(name: str, wanted: int, count: int) -> ValueError:
    """The error for a program on another number of devices than it was exported for."""
    return ValueError(
        f"Function {name} was exported for {wanted} devices and is called in a context with {count} devices, which is "
        "not allowed."
    )


def device_set_of(
    places: Sequence[Place],
    avals: Sequence[ShapedArray],
    further: Sequence[Sharding] = (),
    name: str = "",
    labels: Sequence[str] = (),
) -> Assignment | None:
    """The devices of a program over arguments in `places`; None if nothing says any.

    `further`: shardings that the program names. ValueError unless all are over the same devices.
    """
    first: tuple[str, frozenset[CpuDevice]] | None = None
    for k, place in enumerate((*places, *further)):
        if place is None:
            continue
        devices = frozenset(place.device_set)
        if first is None or devices != first[1]:
            if k < len(places):
                label = labels[k] if k < len(labels) else "xyzw"[k] if k < 4 else f"{k}"
                what = f"argument {label} of {name} with shape {avals[k].str_short()}"
            else:
                what = f"a sharding {place} inside of {name}"
            ids = assignment_of(devices)
            what = f"{what} and with device ids {[d.id for d in ids]} on platform CPU"
            if first is not None:
                raise ValueError(
                    f"Received incompatible devices for jitted computation. Got {first[0]} and {what}\n  Put them on "
                    "the same devices with hloom.device_put."
                )
            first = what, devices
    return None if first is None else assignment_of(first[1])


def is_several(assignment: Assignment) -> bool:
    """Whether a program over these devices is not one of this process alone on one."""
    return len(assignment) > 1 or assignment[0].process_index != process_index()


# ---- programs


@dataclass(frozen=True, slots=True)
class _Argument:
    """How the parts of an argument are found."""

    order: tuple[int, ...] | None
    """For each device of this process, which of the array's shards; None: each gets the whole."""
    cut: Sharding | None
    """How an array is cut that is not divided yet."""


@dataclass(frozen=True, slots=True)
class _Result:
    aval: ShapedArray
    sharding: Sharding
    order: tuple[int, ...]
    """For each device of this process in the sharding's order, which of those in the program's order it is."""


class Spmd:
    """A program that several devices run, each on its parts."""

    def __init__(
        self,
        module: HloModule,
        assignment: Assignment,
        places: Sequence[Place],
        asked: Sequence[Place] | None = None,
        meshes: Sequence[Mesh] = (),
    ) -> None:
        """module: for whole arrays. places: of the arguments, None where the partitioner may choose. asked: of the
        results, likewise."""
        parameters = [p.shape for p in module.entry.parameters]
        results = module.entry.root.shape.elements
        asked = asked or [None] * len(results)
        given = [None if p is None else to_hlo(p, s.rank, assignment) for p, s in zip(places, parameters, strict=True)]
        wanted = [None if p is None else to_hlo(p, s.rank, assignment) for p, s in zip(asked, results, strict=True)]
        partitioner = import_module("...hlo.passes.partition", __package__)  # a program on one device needs none
        parts: Partitioned = partitioner.partition(with_open_borders(module), len(assignment), given, wanted)
        self.whole = module
        self.partitioned = parts
        self.executable = compile_module(parts.module)
        self.ids: list[int] = [d.id for d in assignment]
        own = [d for d in assignment if d.process_index == process_index()]
        self._arguments = [
            _argument(place, sharding, shape, assignment, own)
            for place, sharding, shape in zip(places, parts.parameter_shardings, parameters, strict=True)
        ]
        self.parameter_shardings: list[Sharding] = [
            p if p is not None else from_hlo(h, s.rank, assignment, meshes)
            for p, h, s in zip(places, parts.parameter_shardings, parameters, strict=True)
        ]
        self.results: list[_Result] = [
            _result(p, h, s, assignment, own, meshes)
            for p, h, s in zip(asked, parts.result_shardings, results, strict=True)
        ]
        self._count = len(own)

    def call(self, arrays: Sequence[Array]) -> list[Array]:
        """The results for arrays in the places that the program is for, strongly typed."""
        return self._joined(self.executable.call_on_devices(self._divided(arrays), self.ids))

    def call_checked(self, arrays: Sequence[Array], what: str, is_library: bool = False) -> list[Array]:
        """`call`. FloatingPointError if a result is NaN or infinite, where that is an error. See `checks.blame`."""
        context = current_context()
        if not is_checking(context):
            return self.call(arrays)
        parts = self._divided(arrays)
        found = self.executable.call_on_devices(parts, self.ids)
        kind = fault((r.__array__() for results in found for r in results), context)
        if kind is not None:
            given = [[a.__array__() for a in row] for row in parts]
            blame_on_devices(self.partitioned.module, given, self.ids, kind, context, what, is_library)
        return self._joined(found)

    def _divided(self, arrays: Sequence[Array]) -> list[list[DeviceBuffer]]:
        """Each device's parts."""
        columns = [_parts(a, how, self._count) for a, how in zip(arrays, self._arguments, strict=True)]
        return [list(row) for row in zip(*columns, strict=True)] if columns else [[] for _ in range(self._count)]

    def _joined(self, found: Sequence[Sequence[DeviceBuffer]]) -> list[Array]:
        """The arrays that devices' results are parts of."""
        return [
            Array.from_shards(r.aval, [found[k][n] for k in r.order], r.sharding) for n, r in enumerate(self.results)
        ]


def _argument(
    place: Place, sharding: HloSharding, shape: Shape, assignment: Assignment, own: Sequence[CpuDevice]
) -> _Argument:
    if place is None:
        if sharding.is_replicated:
            return _Argument(None, None)
        place = from_hlo(sharding, shape.rank, assignment, ())
        return _Argument(_order(place, own), place)
    return _Argument(_order(place, own), None)


def _order(place: Sharding, own: Sequence[CpuDevice]) -> tuple[int, ...]:
    there = place.addressable_assignment
    return tuple([there.index(d) for d in own])


def _result(
    asked: Place, sharding: HloSharding, shape: Shape, assignment: Assignment, own: Sequence[CpuDevice],
    meshes: Sequence[Mesh],
) -> _Result:  # fmt: skip
    place = asked if asked is not None else from_hlo(sharding, shape.rank, assignment, meshes)
    return _Result(aval_of_shape(shape), place, tuple([own.index(d) for d in place.addressable_assignment]))


def _parts(array: Array, how: _Argument, count: int) -> Sequence[DeviceBuffer]:
    if how.order is None:
        return [array._buffer] * count
    shards = array._shards if how.cut is None else cut(array._view, how.cut, array.aval.shape)
    return [shards[k] for k in how.order]


# ---- from one place to another


def move(array: Array, sharding: Sharding) -> Array:
    """The array in another place. An array on devices of several processes is sent by a program over all of them."""
    if array._placed == sharding:
        return array
    if array.is_fully_addressable or array.is_fully_replicated:
        return array.moved(sharding)
    if frozenset(sharding.device_set) != frozenset(array.sharding.device_set):
        raise ValueError(
            f"{array.aval.str_short()} is on the devices {assignment_of(array.sharding.device_set)}, not all of them "
            f"of this process, and cannot be put on others, {assignment_of(sharding.device_set)}\n"
            "  hloom.experimental.multihost_utils.process_allgather gives each process the whole array."
        )
    stored = array._storage if array.aval.is_extended else array
    program = _mover(stored.aval.hlo, array.sharding, sharding, current_context())
    (found,) = program.call([stored])
    return found if stored is array else with_storage(array.aval, found)


@lru_cache(maxsize=256)
def _mover(shape: Shape, source: Sharding, target: Sharding, context: Context) -> Spmd:
    x = make_parameter(0, shape)
    module = module_of("move", make_computation("main", make_tuple([x]), [x]))
    return Spmd(module, assignment_of(source.device_set), [source], [target])


on_clear(_mover.cache_clear)
