"""How values are divided along the Explicit axes of a mesh: the information that JAX keeps in types.

Types say nothing about shardings here. An array knows its own; a traced value's sharding follows from the places of the
function's arguments (`Places`), forward through the operations between, by their factors (`hlo/passes/partition`). The
answer determines the meaning of a program, so nothing is guessed: where operands disagree, or the division of a result
cannot be derived, there is a reason instead of a division, and reading the division raises an error with that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ..arguments import DIVIDED_TYPES
from ..arrays.array import Array
from ..arrays.overlay import storage_of
from ..aval import ShapedArray
from ..core import call_of
from ..recording import HloTrace, HloTracer, Places, Row
from ..tracer import Tracer
from .calls import CONSTRAINT, FULL_TO_SHARD
from .current_mesh import get_abstract_mesh
from .hlo_shardings import from_hlo, to_hlo
from .mesh import AbstractMesh, Mesh
from .partition_spec import PartitionSpec, axes_of
from .shardings import NamedSharding, Sharding
from .spmd import SHARDINGS, is_placed

AnyMesh: TypeAlias = Mesh | AbstractMesh
Division = tuple[tuple[Any, ...], ...]
"""For each dimension the axes that divide it."""
Found: TypeAlias = Division | str
"""A division, or why there is none."""


def division(value: Any, mesh: AnyMesh) -> PartitionSpec:
    """How a value is divided along the axes of `mesh`: a spec with an entry for each of its dimensions.

    UnsupportedError where that is not known: it says why.
    """
    found = _of_value(value, mesh)
    if isinstance(found, str):
        raise UnsupportedError(found)
    return PartitionSpec(*found)


def divisions(places: Places, mesh: AnyMesh) -> tuple[Found, ...]:
    """The divisions of all arguments of a function: a part of the key of its traced program, if the function asked for
    them."""
    return tuple([_of_place(g, None, mesh) if _is_place(g) else _of_value(g, mesh) for g in places.values])


def results_of(
    computation: HloComputation, places: Sequence[Sharding | None], mesh: Mesh
) -> list[NamedSharding | None]:
    """The shardings of a program's results if its arguments are in `places`; None where that does not follow."""
    given = [_of_place(p, i.shape.rank, mesh) for p, i in zip(places, computation.parameters, strict=True)]
    found = _of_computation(computation, given, mesh)
    return [None if isinstance(f, str) else NamedSharding(mesh, PartitionSpec(*f)) for f in found]


def _is_place(given: Any) -> bool:
    return given is None or isinstance(given, Sharding)


def _of_value(value: Any, mesh: AnyMesh) -> Found:
    if isinstance(value, Array):
        return _of_place(value._placed if is_placed(value) else None, value.aval.ndim, mesh)
    below = value.below() if isinstance(value, Tracer | Row) else None
    if below is not None:
        inner, skipped = below
        found = _of_value(inner, mesh)
        if isinstance(found, str):
            return found
        taken = [a for axes in found[:skipped] for a in axes]
        return f"the dimension that vmap or a loop goes along is divided, by {taken}" if taken else found[skipped:]
    stored = storage_of(value) if isinstance(value, Tracer) else value
    if isinstance(stored, HloTracer) and isinstance(stored._trace, HloTrace):
        (found,) = _of_instruction(stored._trace, stored.instruction, mesh)
        return found if isinstance(found, str) else found[: value.aval.ndim]
    return f"{value!r} has no place"


def _of_place(place: Any, rank: int | None, mesh: AnyMesh) -> Found:
    """The division of an array in a place. `rank` None: as many dimensions as the place names."""
    if place is None or (place.is_fully_replicated and not isinstance(place, NamedSharding)):
        return ((),) * (rank or 0)
    if not isinstance(place, NamedSharding) and isinstance(mesh, Mesh) and rank is not None:
        assignment = tuple(sorted(place.device_set, key=lambda d: d.id))
        place = from_hlo(to_hlo(place, rank, assignment), rank, assignment, [mesh])
    if not isinstance(place, NamedSharding) or place.mesh.shape_tuple != mesh.shape_tuple:
        return f"it is divided as {place}, which is not over {mesh}"
    entries = tuple([axes_of(e) for e in place.spec.partitions])
    return entries if rank is None else (*entries, *[()] * (rank - len(entries)))


def _divided_type(x: Any, aval: ShapedArray) -> ShapedArray:
    """The type that `typeof` gives for `x` with the plain type `aval`."""
    if not isinstance(x, Array | Tracer):
        return aval
    place = x._placed if isinstance(x, Array) and is_placed(x) else None
    mesh = place.mesh.abstract_mesh if isinstance(place, NamedSharding) else get_abstract_mesh()
    if mesh.size == 1 or not mesh.explicit_axes:
        return aval
    found = _of_value(x, mesh)
    if isinstance(found, str):
        return aval.divided(f"the sharding of {aval.str_short()} is not known: {found}")
    shown = [[a for a in axes if a in mesh.explicit_axes] for axes in found]
    return aval.divided(NamedSharding(mesh, PartitionSpec(*shown)))


DIVIDED_TYPES.append(_divided_type)


# ---- traced values


def _of_instruction(trace: HloTrace, instruction: HloInstruction, mesh: AnyMesh) -> list[Found]:
    known: dict[HloInstruction, list[Found]] = trace.divisions.setdefault(mesh.shape_tuple, {})
    if instruction not in known:
        values = {i: v for v in trace._kept if (i := trace._known.get(id(v))) is not None}

        def parameter(p: HloInstruction) -> Found:
            if p in values:
                return _of_value(values[p], mesh)
            number, places = p.attributes.number, trace.places
            if places is None or number >= len(places.values):
                return (
                    f"it comes from an argument of a function{trace.described()}, which is traced without knowing "
                    "where its arguments are"
                )
            given = places.asked(number, mesh)
            rank = p.shape.rank
            return _of_place(given, rank, mesh) if _is_place(given) else _padded(_of_value(given, mesh), rank)

        _follow(_before(instruction, known), known, parameter, mesh)
    return known[instruction]


def _padded(found: Found, rank: int) -> Found:
    """The division of the array that stores the elements: keys have further dimensions."""
    return found if isinstance(found, str) else (*found, *[()] * (rank - len(found)))


def _before(last: HloInstruction, known: Any) -> list[HloInstruction]:
    """The unknown instructions that an instruction depends on, operands first."""
    order: list[HloInstruction] = []
    seen: set[HloInstruction] = set()
    waiting = [(last, False)]
    while waiting:
        instruction, is_ready = waiting.pop()
        if is_ready:
            order.append(instruction)
        elif instruction not in seen and instruction not in known:
            seen.add(instruction)
            waiting.append((instruction, True))
            waiting += [(o, False) for o in instruction.operands]
    return order


def _follow(
    order: Iterable[HloInstruction], env: dict[HloInstruction, list[Found]], parameter: Callable[..., Any],
    mesh: AnyMesh,
) -> None:  # fmt: skip
    """Enter into `env`, for each instruction, the divisions of the leaves of its result."""
    for i in order:
        leaves = [leaf for o in i.operands for leaf in env[o]]
        if i.opcode is Opcode.PARAMETER:
            found = parameter(i)
            env[i] = found if i.shape.is_tuple else [found]
        elif i.opcode is Opcode.TUPLE:
            env[i] = leaves
        elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
            shapes = i.operands[0].shape.elements
            start = sum([len(list(s.leaves())) for s in shapes[: i.attributes.index]])
            env[i] = leaves[start : start + len(list(i.shape.leaves()))]
        elif i.opcode is Opcode.CALL:
            env[i] = _of_call(i, leaves, mesh)
        elif i.opcode is Opcode.WHILE:
            env[i] = _of_loop(i.attributes.body, leaves, mesh)
        elif i.opcode is Opcode.CONDITIONAL:
            own = env[i.operands[1]]
            branches = [_of_computation(c, own, mesh) for c in i.attributes.branch_computations]
            env[i] = [_agreed(each, "the branches of a conditional") for each in zip(*branches, strict=True)]
        else:
            env[i] = _by_factors(i, leaves, mesh)


def _of_computation(computation: HloComputation, leaves: Sequence[Found], mesh: AnyMesh) -> list[Found]:
    known = vars(computation).setdefault("_divisions", {})
    key = mesh.shape_tuple, tuple(leaves)
    if key not in known:

        def parameter(p: HloInstruction) -> Any:
            return list(leaves) if p.shape.is_tuple else leaves[p.attributes.number]

        env: dict[HloInstruction, list[Found]] = {}
        _follow(computation.instructions, env, parameter, mesh)
        known[key] = env[computation.root]
    found: list[Found] = known[key]
    return found


def _of_loop(body: HloComputation, leaves: Sequence[Found], mesh: AnyMesh) -> list[Found]:
    """The state stays divided as it begins; an element that begins whole, such as the results of scan, gets the
    division of the values written to it."""
    state = list(leaves)
    while True:
        pairs = zip(state, _of_computation(body, state, mesh), strict=True)
        after = [_agreed([s, new] if _is_whole(s) else [s], "the steps of a loop") for s, new in pairs]
        if after == state:
            return state
        state = after


def _is_whole(found: Found) -> bool:
    return not isinstance(found, str) and not any(found)


def _agreed(each: Sequence[Found], what: str) -> Found:
    """The one division of those that are not whole."""
    reasons = [f for f in each if isinstance(f, str)]
    others = {f for f in each if not _is_whole(f)}
    if reasons or len(others) > 1:
        return reasons[0] if reasons else f"{what} divide it in several ways"
    return others.pop() if others else each[0]


def _of_call(i: HloInstruction, leaves: Sequence[Found], mesh: AnyMesh) -> list[Found]:
    call = call_of(i.attributes)
    if call.primitive not in SHARDINGS:
        return _of_computation(call.computation, leaves, mesh)
    sharding, (found,) = SHARDINGS[call.primitive](call), leaves
    if call.primitive is CONSTRAINT or isinstance(found, str):
        (shape,) = i.shape.elements
        return [_of_place(sharding, shape.rank, mesh) if call.primitive is CONSTRAINT else found]
    names = call.params.names
    free = [tuple([a for a in axes if a not in names]) for axes in found]
    if call.primitive is FULL_TO_SHARD:
        return [tuple(free)]
    stated = _of_place(sharding, len(free), mesh)
    return [stated if isinstance(stated, str) else tuple([(*s, *f) for s, f in zip(stated, free, strict=True)])]


def _by_factors(i: HloInstruction, leaves: Sequence[Found], mesh: AnyMesh) -> list[Found]:
    results = list(i.shape.leaves())
    reason = next((f for f in leaves if isinstance(f, str)), None)
    if reason is None and all(_is_whole(f) for f in leaves):
        return [((),) * s.rank for s in results]
    found = reason or _cut(i, leaves, mesh)
    return [found] * len(results) if isinstance(found, str) else found


def _cut(i: HloInstruction, leaves: Sequence[Any], mesh: AnyMesh) -> list[Found] | str:
    what = f"{i.opcode.value} of arrays that are divided as {', '.join([str(PartitionSpec(*f)) for f in leaves])}"
    factors = import_module("...hlo.passes.partition.factors", __package__).factors_of(i)
    cut: dict[int, tuple[Any, ...]] = {}
    for dims, found in zip(factors.operands, leaves, strict=True):
        for of_dimension, axes in zip(dims, found, strict=True):
            shares = _shares(of_dimension, axes, factors.sizes, mesh)
            if shares is None or any(f in factors.whole or cut.get(f, own) != own for f, own in shares):
                return f"{what}: the result may be divided in several ways"
            twice = [f for f, _ in shares if f in cut and f in factors.summed and i.opcode is Opcode.DOT]
            if twice:
                return f"{what}, along a dimension over which is summed: the result may be divided in several ways"
            cut.update(shares)
    used = [a for axes in cut.values() for a in axes]
    results = [_of_result(dims, cut, factors.sizes, mesh) for dims in factors.results]
    if len(set(used)) < len(used) or any(r is None for r in results):
        return f"{what}: the result may be divided in several ways"
    return [r for r in results if r is not None]


def _shares(
    factors: Sequence[int], axes: Sequence[Any], sizes: Sequence[int], mesh: AnyMesh
) -> list[tuple[int, tuple[Any, ...]]] | None:
    """Which axes of a dimension cut which of its factors, the slowest first; None if they do not fit."""
    rest, found = list(axes), []
    for factor in factors:
        size, own = sizes[factor], []
        while rest and size > 1 and size % mesh.shape[rest[0]] == 0:
            size //= mesh.shape[rest[0]]
            own.append(rest.pop(0))
        if own:
            found.append((factor, tuple(own)))
        if size > 1:
            break
    return None if rest else found


def _of_result(dims: Any, cut: dict[int, tuple[Any, ...]], sizes: Sequence[int], mesh: AnyMesh) -> Division | None:
    """The division of a result from the axes that cut its factors; None if a dimension cannot be said to be divided
    so."""
    found = []
    for factors in dims:
        axes = tuple([a for f in factors for a in cut.get(f, ())])
        wanted = [(f, cut[f]) for f in factors if f in cut]
        if _shares(factors, axes, sizes, mesh) != wanted:
            return None
        found.append(axes)
    return tuple(found)
