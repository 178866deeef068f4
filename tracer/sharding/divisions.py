"""How the Explicit axes of a mesh divide the results of operations: the part of types that is about shardings.

A type says which Explicit axes divide which dimension of a value (`ShapedArray.division`), and along which axes the
value is unreduced, as in JAX. The rules of `op_divisions.py` give the division of an operation's result; this file
carries divisions through programs. They determine the meaning of a program, so nothing is guessed: where operands
disagree, or a result could be divided in several ways, ShardingTypeError is raised. Operations of the library's own
rules (derivatives backwards, functions with `out_sharding`) are not refused; an ambiguous result stays whole there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.support.records import dataclass
from ..aval import ShapedArray, aval_of_shape
from ..core import call_of
from ..source import user_line
from .calls import CONSTRAINT, FULL_TO_SHARD
from .current_mesh import get_abstract_mesh
from .division import AnyMesh, Division, division_of, joined, whole
from .hlo_shardings import from_hlo, to_hlo
from .lenience import is_lenient
from .mesh import AbstractMesh, Mesh
from .op_divisions import Op
from .partition_spec import axes_of
from .shardings import NamedSharding, Sharding
from .spmd import SHARDINGS, named_shardings


def result_types(
    i: HloInstruction, operands: Sequence[ShapedArray], results: Sequence[ShapedArray], is_strict: bool
) -> Sequence[ShapedArray]:
    """The types `results` of an instruction's results, with their divisions; `operands`: the types of the leaves of its
    operands. ShardingTypeError where they are ambiguous, if `is_strict`."""
    if i.opcode is Opcode.CALL and (call := call_of(i.attributes)).primitive is CONSTRAINT:
        is_stated = isinstance(call.params, NamedSharding) and call.params.mesh.explicit_axes
        division = call.params if is_stated else operands[0].division
        return [results[0].divided(division)]
    mesh = mesh_of(operands, [i])
    if mesh is None or not _is_explicit():
        return results
    context = get_abstract_mesh()
    is_strict = is_strict and not is_lenient()
    if is_strict and not context.empty:
        _check_context(i, operands, context)
    leaves = [division_of(o) for o in operands]
    if len(leaves) == len(i.operands):
        leaves = [f if f.has_reductions else _free(o) or f for o, f in zip(i.operands, leaves, strict=True)]
    found = Program(mesh, is_strict, list(operands)).of(i, leaves)
    shown = context if context.shape_tuple == mesh.shape_tuple else mesh
    return [r.divided(d.sharding(shown)) for r, d in zip(results, found, strict=True)]


def types_of(computation: HloComputation, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Any:
    """As `result_types`, for the results of a computation, which are not refused."""
    mesh = mesh_of(operands, computation.instructions)
    if mesh is None or not _is_explicit():
        return results
    found = Program(mesh, False).of_computation(computation, [division_of(o) for o in operands])
    return [r.divided(d.sharding(mesh)) for r, d in zip(results, found, strict=True)]


def shardings_within(
    computation: HloComputation, operands: Sequence[ShapedArray]
) -> dict[HloInstruction, list[NamedSharding]]:
    """How the leaves of each instruction's result are divided; nothing where no mesh has Explicit axes."""
    mesh = mesh_of(operands, computation.instructions)
    if mesh is None:
        return {}
    found = Program(mesh, False).within(computation, [division_of(o) for o in operands])
    return {i: [d.sharding(mesh) for d in each] for i, each in found.items()}


def results_of(
    computation: HloComputation, places: Sequence[Sharding | None], mesh: Mesh, is_strict: bool = False
) -> list[Division]:
    """How the results of a program are divided if its arguments are in `places`."""
    given = divisions_of_places(computation, places, mesh)
    types = [
        aval_of_shape(p.shape).divided(d.sharding(mesh)) for p, d in zip(computation.parameters, given, strict=True)
    ]
    return Program(mesh, is_strict, types).of_computation(computation, given)


def divisions_of_places(
    computation: HloComputation, places: Sequence[Sharding | None], mesh: AnyMesh
) -> list[Division]:
    """How arguments in `places` are divided. An argument without a place goes where it is needed."""
    found = []
    for place, i in zip(places, computation.parameters, strict=True):
        division = _of_place(place, i.shape.rank, mesh)
        found.append(division if place is not None else Division(division.axes, is_free=True))
    return found


def is_refused(arrays: Sequence[Any]) -> bool:
    """Whether an operation on these arrays is refused if its result is ambiguous."""
    if is_lenient() or all(a.aval.division is None for a in arrays):
        return False
    return _is_explicit()


def _is_explicit() -> bool:
    """Whether types say divisions here: not within a mesh of which all axes are Auto or Manual."""
    context = get_abstract_mesh()
    return context.empty or bool(context.explicit_axes)


def _free(i: HloInstruction) -> Division | None:
    """The division of a value that an instruction makes where it is needed."""
    is_made = i.opcode is Opcode.CONSTANT or (i.opcode is Opcode.BROADCAST and not i.operands[0].shape.rank)
    return Division(whole(i.shape.rank).axes, is_free=True) if is_made else None


def _grown(before: Division, new: Division) -> Division:
    """The division of an element of a loop's state after one more iteration. It changes only from free to whole to
    divided, so the search ends even if elements change places."""
    keeps = new.is_whole and (new.is_free or not before.is_free)
    return before if keeps or not before.is_whole else new


def mesh_of(operands: Sequence[ShapedArray], instructions: Sequence[HloInstruction]) -> AbstractMesh | None:
    """The mesh with Explicit axes that divides an operand, or that is named by an instruction."""
    for o in operands:
        if o.division is not None:
            mesh: AbstractMesh = o.division.mesh
            return mesh
    for i in instructions:
        for s in _named(i) if i.called_computations() else ():
            if isinstance(s, NamedSharding) and s.mesh.explicit_axes:
                return s.mesh.abstract_mesh
    return None


def _named(i: HloInstruction) -> Iterator[Sharding]:
    if i.opcode is Opcode.CALL:
        call = call_of(i.attributes)
        if call.primitive in SHARDINGS:
            yield SHARDINGS[call.primitive](call)
    for computation in i.called_computations():
        yield from named_shardings(computation)


def _check_context(i: HloInstruction, operands: Sequence[ShapedArray], context: AbstractMesh) -> None:
    for o in operands:
        if o.division is not None and o.division.mesh.shape_tuple != context.shape_tuple:
            raise ValueError(
                f"For primitive {Op(context, i, (), True).name}, context mesh {context} should match the aval mesh "
                f"{o.division.mesh} for shape {o.str_short()}. This error occurs at source: {user_line()}"
            )


def _of_place(place: Any, rank: int, mesh: AnyMesh) -> Division:
    """The division of an array in a place; whole along what does not belong to the mesh."""
    if place is None or (place.is_fully_replicated and not isinstance(place, NamedSharding)):
        return whole(rank)
    if not isinstance(place, NamedSharding) and isinstance(mesh, Mesh):
        assignment = tuple(sorted(place.device_set, key=lambda d: d.id))
        place = from_hlo(to_hlo(place, rank, assignment), rank, assignment, [mesh])
    if not isinstance(place, NamedSharding) or place.mesh.shape_tuple != mesh.shape_tuple:
        return whole(rank)
    explicit, spec = place.mesh.explicit_axes, place.spec
    entries = tuple([tuple([a for a in axes_of(e) if a in explicit]) for e in spec.partitions[:rank]])
    return Division((*entries, *[()] * (rank - len(entries))), spec.unreduced, spec.reduced)


@dataclass(slots=True)
class Program:
    """The rules for values divided over one mesh, through programs."""

    mesh: AnyMesh
    is_strict: bool
    """Whether what is ambiguous is refused."""
    types: Sequence[ShapedArray] = ()
    """Of the operands, for messages."""

    def of(self, i: HloInstruction, leaves: Sequence[Division]) -> list[Division]:
        """The divisions of the leaves of an instruction's result. A loop has the elements of its state as `leaves`, a
        conditional the index and the elements that each branch takes."""
        match i.opcode:
            case Opcode.CALL:
                return self._of_call(i, leaves)
            case Opcode.WHILE:
                return self.state_of(i.attributes.body, leaves)
            case Opcode.CONDITIONAL:
                branches = [self.of_computation(c, leaves[1:]) for c in i.attributes.branch_computations]
                return [joined(each) for each in zip(*branches, strict=True)]
        return Op(self.mesh, i, leaves, self.is_strict, self.types).results()

    def of_computation(self, computation: HloComputation, leaves: Sequence[Division]) -> list[Division]:
        """The divisions of the leaves of a computation's result."""
        known = vars(computation).setdefault("_divisions", {})
        key = self.mesh.shape_tuple, tuple(leaves)
        if self.is_strict or key not in known:
            known[key] = self.within(computation, leaves)[computation.root]
        found: list[Division] = known[key]
        return found

    def within(
        self, computation: HloComputation, leaves: Sequence[Division]
    ) -> dict[HloInstruction, list[Division]]:
        """The divisions of the leaves of each instruction's result."""
        env: dict[HloInstruction, list[Division]] = {}
        for i in computation.instructions:
            own = i.operands[:2] if i.opcode is Opcode.CONDITIONAL else i.operands
            given = [leaf for o in own for leaf in env[o]]
            if i.opcode is Opcode.PARAMETER:
                env[i] = list(leaves) if i.shape.is_tuple else [leaves[i.attributes.number]]
            elif i.opcode is Opcode.TUPLE:
                env[i] = given
            elif i.opcode is Opcode.GET_TUPLE_ELEMENT:
                shapes = i.operands[0].shape.elements
                start = sum([len(list(s.leaves())) for s in shapes[: i.attributes.index]])
                env[i] = given[start : start + len(list(i.shape.leaves()))]
            elif (free := _free(i)) is not None and not any(f.has_reductions for f in given):
                env[i] = [free]
            else:
                env[i] = self.of(i, given)
        return env

    def state_of(self, body: HloComputation, leaves: Sequence[Division]) -> list[Division]:
        """The state of a loop stays divided as it begins; an element that begins whole, such as the results of scan,
        gets the division of the values written to it."""
        state = list(leaves)
        while True:
            pairs = zip(state, self.of_computation(body, state), strict=True)
            after = [_grown(before, new) for before, new in pairs]
            if after == state:
                return state
            state = after

    def _of_call(self, i: HloInstruction, leaves: Sequence[Division]) -> list[Division]:
        call = call_of(i.attributes)
        if call.primitive not in SHARDINGS:
            return Program(self.mesh, False).of_computation(call.computation, leaves)
        sharding, (found,) = SHARDINGS[call.primitive](call), leaves
        if call.primitive is CONSTRAINT:
            (shape,) = i.shape.elements
            is_stated = isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes
            return [_of_place(sharding, shape.rank, self.mesh) if is_stated else found]
        names = call.params.names
        free = [tuple([a for a in axes if a not in names]) for axes in found.axes]
        unreduced, reduced = found.unreduced - {*names}, found.reduced - {*names}
        if call.primitive is FULL_TO_SHARD:
            return [Division(tuple(free), unreduced, reduced)]
        stated = _of_place(sharding, len(free), self.mesh)
        axes = tuple([(*s, *[a for a in f if a not in s]) for s, f in zip(stated.axes, free, strict=True)])
        return [Division(axes, unreduced | stated.unreduced, reduced | stated.reduced)]
