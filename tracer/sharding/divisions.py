"""How the Explicit axes of a mesh divide the results of operations: the part of types that is about shardings.

A type says which Explicit axes divide which dimension of a value (`ShapedArray.division`), as in JAX. The division of a
result follows from those of the operands by the op's factors (`hlo/passes/partition/factors.py`), the table with which
the partitioner works, too. It determines the meaning of a program, so nothing is guessed: where operands disagree, or a
result could be divided in several ways, that is a ShardingTypeError. Operations of the library's own rules (derivatives
backwards, functions with `out_sharding`) are not refused: what is ambiguous stays whole there.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any, NoReturn, TypeAlias

from ...hlo.custom_calls import is_batched_target
from ...hlo.ir import HloComputation, HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, spec_of
from ...hlo.support.records import dataclass
from ..aval import ShapedArray, aval_of_shape, divided_sizes
from ..core import call_of
from ..errors import ShardingTypeError
from ..source import user_line
from .calls import CONSTRAINT, FULL_TO_SHARD
from .current_mesh import get_abstract_mesh
from .hlo_shardings import from_hlo, to_hlo
from .lenience import is_lenient
from .mesh import AbstractMesh, Mesh
from .partition_spec import axes_of
from .shardings import NamedSharding, Sharding, spec_of_axes
from .spmd import SHARDINGS, named_shardings

AnyMesh: TypeAlias = Mesh | AbstractMesh
Division = tuple[tuple[Any, ...], ...]
"""For each dimension the axes that divide it."""


def result_types(
    i: HloInstruction, operands: Sequence[ShapedArray], results: Sequence[ShapedArray], is_strict: bool
) -> Sequence[ShapedArray]:
    """The types `results` of an instruction's results, with their divisions; `operands`: the types of the leaves of its
    operands. ShardingTypeError where they are ambiguous, if `is_strict`."""
    if i.opcode is Opcode.CALL and (call := call_of(i.attributes)).primitive is CONSTRAINT:
        is_stated = isinstance(call.params, NamedSharding) and call.params.mesh.explicit_axes
        division = call.params if is_stated else operands[0].division
        return [results[0].divided(division)]
    mesh = _mesh_of(operands, [i])
    context = get_abstract_mesh()
    if mesh is None or not (context.empty or context.explicit_axes):
        return results
    is_strict = is_strict and not is_lenient()
    if is_strict and not context.empty:
        _check_context(i, operands, context)
    leaves = [division_of(o) for o in operands]
    found = _Rules(mesh, is_strict, list(operands)).of(i, leaves)
    shown = context if context.shape_tuple == mesh.shape_tuple else mesh
    return [r.divided(NamedSharding(shown, spec_of_axes(d))) for r, d in zip(results, found, strict=True)]


def types_of(computation: HloComputation, operands: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> Any:
    """As `result_types`, for the results of a computation, which are not refused."""
    mesh = _mesh_of(operands, computation.instructions)
    context = get_abstract_mesh()
    if mesh is None or not (context.empty or context.explicit_axes):
        return results
    found = _Rules(mesh, False).of_computation(computation, [division_of(o) for o in operands])
    return [r.divided(NamedSharding(mesh, spec_of_axes(d))) for r, d in zip(results, found, strict=True)]


def shardings_within(
    computation: HloComputation, operands: Sequence[ShapedArray]
) -> dict[HloInstruction, list[NamedSharding]]:
    """How the leaves of each instruction's result are divided; nothing where no mesh has Explicit axes."""
    mesh = _mesh_of(operands, computation.instructions)
    if mesh is None:
        return {}
    found = _Rules(mesh, False).within(computation, [division_of(o) for o in operands])
    return {i: [NamedSharding(mesh, spec_of_axes(d)) for d in each] for i, each in found.items()}


def results_of(
    computation: HloComputation, places: Sequence[Sharding | None], mesh: Mesh, is_strict: bool = False
) -> list[NamedSharding]:
    """The shardings of a program's results if its arguments are in `places`."""
    given = [_of_place(p, i.shape.rank, mesh) for p, i in zip(places, computation.parameters, strict=True)]
    types = [
        aval_of_shape(p.shape).divided(NamedSharding(mesh, spec_of_axes(d)))
        for p, d in zip(computation.parameters, given, strict=True)
    ]
    found = _Rules(mesh, is_strict, types).of_computation(computation, given)
    return [NamedSharding(mesh, spec_of_axes(f)) for f in found]


def is_refused(arrays: Sequence[Any]) -> bool:
    """Whether an operation on these arrays is refused if its result is ambiguous."""
    if is_lenient() or all(a.aval.division is None for a in arrays):
        return False
    context = get_abstract_mesh()
    return context.empty or bool(context.explicit_axes)


def division_of(aval: ShapedArray) -> Division:
    """The axes that divide each dimension of a value of this type."""
    if aval.division is None:
        return ((),) * aval.storage.ndim
    return tuple([axes_of(e) for e in aval.division.spec.partitions])


def _mesh_of(operands: Sequence[ShapedArray], instructions: Sequence[HloInstruction]) -> AbstractMesh | None:
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
                f"For primitive {_name(i)}, context mesh {context} should match the aval mesh {o.division.mesh} for "
                f"shape {o.str_short()}. This error occurs at source: {user_line()}"
            )


def _of_place(place: Any, rank: int, mesh: AnyMesh) -> Division:
    """The division of an array in a place; whole along what does not belong to the mesh."""
    whole = ((),) * rank
    if place is None or (place.is_fully_replicated and not isinstance(place, NamedSharding)):
        return whole
    if not isinstance(place, NamedSharding) and isinstance(mesh, Mesh):
        assignment = tuple(sorted(place.device_set, key=lambda d: d.id))
        place = from_hlo(to_hlo(place, rank, assignment), rank, assignment, [mesh])
    if not isinstance(place, NamedSharding) or place.mesh.shape_tuple != mesh.shape_tuple:
        return whole
    explicit = place.mesh.explicit_axes
    entries = tuple([tuple([a for a in axes_of(e) if a in explicit]) for e in place.spec.partitions[:rank]])
    return (*entries, *[()] * (rank - len(entries)))


def _is_whole(found: Division) -> bool:
    return not any(found)


def _spec(found: Division) -> tuple[Any, ...]:
    return tuple(spec_of_axes(found).partitions)


_NAMES = {
    Opcode.MULTIPLY: "mul", Opcode.SUBTRACT: "sub", Opcode.DIVIDE: "div", Opcode.MAXIMUM: "max", Opcode.MINIMUM: "min",
    Opcode.POWER: "pow", Opcode.REMAINDER: "rem", Opcode.DOT: "dot_general", Opcode.PAD: "padding",
    Opcode.SLICE: "slicing", Opcode.DYNAMIC_SLICE: "dynamic_slice", Opcode.CONVOLUTION: "conv_general_dilated",
    Opcode.CONCATENATE: "concatenate", Opcode.REVERSE: "rev",
}  # fmt: skip
"""Names of ops in messages, where they are other ones than in HLO."""


def _name(i: HloInstruction) -> str:
    if i.opcode is Opcode.COMPARE:
        return str(i.attributes.direction.value).lower()
    return _NAMES.get(i.opcode, str(i.opcode.value).replace("-", "_"))


_SAME = frozenset(
    {
        *(Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.PAD, Opcode.CONCATENATE, Opcode.REVERSE),
        *(Opcode.DYNAMIC_UPDATE_SLICE, Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER, Opcode.FFT),
    }
)
"""Ops with results that are divided as their first operand, also along the dimensions that they change."""

_AMBIGUOUS = {
    Opcode.GATHER: "Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out "
    "sharding could not be resolved unambiguously (or would require collectives on inputs)",
    Opcode.SCATTER: "Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter "
    "update as out sharding could not be resolved unambiguously (or would require collectives on inputs)",
    Opcode.CONVOLUTION: "Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`",
    Opcode.RESHAPE: "This reshape is not supported. Please specify the sharding of the output via the `out_sharding` "
    "argument of hloom.lax.reshape",
    Opcode.SORT: "Arguments to sort must be unsharded over the sorting dimension",
}
"""The beginning of the message where a dimension cannot be divided."""


@dataclass(slots=True)
class _Rules:
    """The rules for values divided over one mesh."""

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
                return self._of_loop(i.attributes.body, leaves)
            case Opcode.CONDITIONAL:
                branches = [self.of_computation(c, leaves[1:]) for c in i.attributes.branch_computations]
                return [_joined(each) for each in zip(*branches, strict=True)]
        results = list(i.shape.leaves())
        if all(map(_is_whole, leaves)):
            return [((),) * s.rank for s in results]
        if self.is_strict:
            self._check(i, leaves)
        return self._by_factors(i, leaves)

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
            else:
                env[i] = self.of(i, given)
        return env

    def _of_loop(self, body: HloComputation, leaves: Sequence[Division]) -> list[Division]:
        """The state stays divided as it begins; an element that begins whole, such as the results of scan, gets the
        division of the values written to it."""
        state = list(leaves)
        while True:
            pairs = zip(state, self.of_computation(body, state), strict=True)
            after = [new if _is_whole(s) else s for s, new in pairs]
            if after == state:
                return state
            state = after

    def _of_call(self, i: HloInstruction, leaves: Sequence[Division]) -> list[Division]:
        call = call_of(i.attributes)
        if call.primitive not in SHARDINGS:
            return _Rules(self.mesh, False).of_computation(call.computation, leaves)
        sharding, (found,) = SHARDINGS[call.primitive](call), leaves
        if call.primitive is CONSTRAINT:
            (shape,) = i.shape.elements
            is_stated = isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes
            return [_of_place(sharding, shape.rank, self.mesh) if is_stated else found]
        names = call.params.names
        free = [tuple([a for a in axes if a not in names]) for axes in found]
        if call.primitive is FULL_TO_SHARD:
            return [tuple(free)]
        stated = _of_place(sharding, len(free), self.mesh)
        return [tuple([(*s, *[a for a in f if a not in s]) for s, f in zip(stated, free, strict=True)])]

    # ---- single operations

    def _check(self, i: HloInstruction, leaves: Sequence[Division]) -> None:
        """ShardingTypeError for what JAX refuses though the result is clear."""
        divided = [f for f in leaves if not _is_whole(f)]
        match i.opcode:
            case Opcode.DOT:
                self._check_dot(i, *leaves)
            case Opcode.SELECT if len({f for f in leaves[1:] if not _is_whole(f)}) > 1:
                shown = ", ".join([str(self._sharding(f)) for f in reversed(leaves[1:])])
                raise ShardingTypeError(f"select cases must have the same shardings, got [{shown}].")
            case Opcode.CONCATENATE if len(set(divided)) > 1:
                shown = ", ".join([str(self._sharding(f)) for f in leaves])
                raise ShardingTypeError(f"All operands should have the same sharding. Got shardings {shown}")
            case Opcode.CONVOLUTION:
                if not _is_whole(leaves[1]) or leaves[0][i.attributes.dimension_numbers.input_feature]:
                    self._refuse(i, _AMBIGUOUS[i.opcode])
            case Opcode.REDUCE_WINDOW:
                self._check_window(i, leaves[0])
            case Opcode.DYNAMIC_UPDATE_SLICE if leaves[0] != leaves[1] and not _is_whole(leaves[1]):
                raise ShardingTypeError(
                    "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
                    f"{self._shown(0)} and update sharding {self._shown(1)}."
                )

    def _check_window(self, i: HloInstruction, found: Division) -> None:
        for axis, (axes, w) in enumerate(zip(found, i.attributes.window, strict=True)):
            if axes and w.size == i.operands[0].shape.dimensions[axis]:
                raise ShardingTypeError(
                    "Input should be unsharded over the axis being reduced. Got input "
                    f"type={self.types[0].str_short()} and axis={axis}"
                )

    def _check_dot(self, i: HloInstruction, lhs: Division, rhs: Division) -> None:
        a = i.attributes
        left, right = _spec(lhs), _spec(rhs)
        batch = tuple([left[d] for d in a.lhs_batch_dims]), tuple([right[d] for d in a.rhs_batch_dims])
        terms = tuple([left[d] for d in a.lhs_contracting_dims]), tuple([right[d] for d in a.rhs_contracting_dims])
        for what, (one, two) in (
            ("lhs batch dimensions and rhs batch dimensions to have the consistent sharding", batch),
            ("contracting dimensions to have consistent sharding", terms),
        ):
            if any(x is not None and y is not None and x != y for x, y in zip(one, two, strict=True)):
                raise ShardingTypeError(f"dot_general requires {what}, got {one} and {two}.")
        if any(x is not None and y is not None for x, y in zip(*terms, strict=True)):
            raise ShardingTypeError(
                "Contracting dimensions are sharded and it is ambiguous how the output should be sharded. Please "
                "specify the output sharding via the `out_sharding` parameter. Got "
                f"lhs_contracting_spec={terms[0]} and rhs_contracting_spec={terms[1]}"
            )

    def _by_factors(self, i: HloInstruction, leaves: Sequence[Division]) -> list[Division]:
        if i.opcode is Opcode.RESHAPE:
            return [self._reshaped(i, leaves[0])]
        factors = import_module("...hlo.passes.partition.factors", __package__).factors_of(i)
        cut: dict[int, tuple[Any, ...]] = {}
        for k, (dims, found) in enumerate(zip(factors.operands, leaves, strict=True)):
            for d, (of_dimension, axes) in enumerate(zip(dims, found, strict=True)):
                if not axes:
                    continue
                shares = self._shares(of_dimension, axes, factors.sizes)
                if shares is None or any(f in factors.whole for f, _ in shares):
                    if k not in _followed(i):
                        self._ambiguous(i, leaves, k, d)
                    continue
                for f, own in shares:
                    if cut.setdefault(f, own) != own:
                        self._incompatible(i, leaves)
        results = [self._of_result(i, dims, cut, factors.sizes, leaves) for dims in factors.results]
        if i.opcode in _SAME:
            first = _joined(leaves) if i.opcode is Opcode.CONCATENATE else leaves[0]
            results = [self._as_operand(i, first, r) for r in results]
        elif i.opcode is Opcode.CONVOLUTION and _is_whole(leaves[1]):
            results = [self._as_operand(i, _as_output(i, leaves[0]), results[0])]
        return [self._without_duplicates(i, leaves, r) for r in results]

    def _reshaped(self, i: HloInstruction, found: Division) -> Division:
        """Dimensions that are split keep their axes, the slowest first; so do dimensions that are merged, if no
        undivided one is before a divided one."""
        old, new = i.operands[0].shape.dimensions, i.shape.dimensions
        made: list[tuple[Any, ...]] = [()] * len(new)
        for before, after in _groups(old, new):
            axes = [found[d] for d in before]
            while axes and not axes[-1]:
                axes.pop()
            rest = [a for own in axes for a in own]
            is_clear = all(axes) and (len(before) == 1 or len(after) == 1)
            for d in after if is_clear else ():
                size, own = new[d], []
                while rest and size > 1 and size % self.mesh.shape[rest[0]] == 0:
                    size //= self.mesh.shape[rest[0]]
                    own.append(rest.pop(0))
                made[d] = tuple(own)
                if size > 1 and rest:
                    break
            if any(self.mesh.shape[a] > 1 for a in rest):
                self._ambiguous(i, [found], 0, before[0])
        return tuple(made)

    def _shares(
        self, factors: Sequence[int], axes: Sequence[Any], sizes: Sequence[int]
    ) -> list[tuple[int, tuple[Any, ...]]] | None:
        """Which axes of a dimension cut which of its factors, the slowest first; None if they do not fit."""
        rest, found = list(axes), []
        for factor in factors:
            size, own = sizes[factor], []
            while rest and size % (parts := self.mesh.shape[rest[0]]) == 0 and (size > 1 or parts == 1):
                size //= parts
                own.append(rest.pop(0))
            if own:
                found.append((factor, tuple(own)))
            if size > 1:
                break
        return None if any(self.mesh.shape[a] > 1 for a in rest) else found

    def _of_result(
        self, i: HloInstruction, dims: Any, cut: dict[int, tuple[Any, ...]], sizes: Sequence[int], leaves: Any
    ) -> Division:
        """The division of a result from the axes that cut its factors."""
        found = []
        for factors in dims:
            axes = tuple([a for f in factors for a in cut.get(f, ())])
            wanted = [(f, cut[f]) for f in factors if f in cut]
            while axes and self._shares(factors, axes, sizes) != wanted:
                self._ambiguous(i, leaves, 0, 0)
                wanted.pop()
                axes = tuple([a for _, own in wanted for a in own])
            found.append(axes)
        return tuple(found)

    def _as_operand(self, i: HloInstruction, found: Division, other: Division) -> Division:
        """The division of the first operand, along the dimensions of the result that it divides."""
        sizes = next(iter(i.shape.leaves())).dimensions
        before = i.operands[0].shape.dimensions
        if i.opcode is Opcode.CONVOLUTION:
            before = _as_output(i, before)
        made = []
        for axes, more, size, old in zip(found, other, sizes, before, strict=True):
            parts = math.prod([self.mesh.shape[a] for a in axes])
            if size != old and size % parts:
                if self.is_strict:
                    raise ShardingTypeError(
                        f"{_name(i)} on sharded dims where out dim ({size}) is not divisible by mesh axes ({parts}) "
                        f"with spec ({spec_of_axes([axes])[0]}) is not implemented. Got input type={self._shown(0)} "
                        f"and output shape={sizes}"
                    )
                axes = ()
            made.append(axes or more)
        return tuple(made)

    def _without_duplicates(self, i: HloInstruction, leaves: Any, found: Division) -> Division:
        used: set[Any] = set()
        kept = []
        for axes in found:
            if used & set(axes):
                if self.is_strict:
                    types = ", ".join([t.str_short(short_dtypes=True) for t in self.types])
                    shape = next(iter(i.shape.leaves()))
                    shown = divided_sizes(shape.dimensions, _spec(found))
                    name = aval_of_shape(shape).str_short(short_dtypes=True).partition("[")[0]
                    raise ShardingTypeError(
                        f"{_name(i)} operation with inputs: {types} produces an illegally sharded result: "
                        f"{name}[{shown}]"
                    )
                axes = ()
            used.update(axes)
            kept.append(axes)
        return tuple(kept)

    # ---- errors

    def _incompatible(self, i: HloInstruction, leaves: Sequence[Division]) -> None:
        if self.is_strict:
            specs = ", ".join([str(_spec(f)) for f in leaves])
            if spec_of(i.opcode).traits & Trait.ELEMENTWISE:
                raise ShardingTypeError(f"{_name(i)} got incompatible shardings for broadcasting: {specs}.")
            self._refuse(i, f"{_name(i)} of arrays that are divided as {specs} is ambiguous")

    def _ambiguous(self, i: HloInstruction, leaves: Sequence[Division], operand: int, dimension: int) -> None:
        if self.is_strict:
            self._refuse(i, _AMBIGUOUS.get(i.opcode, f"{_name(i)}: dimension {dimension} cannot be divided"))

    def _refuse(self, i: HloInstruction, why: str) -> NoReturn:
        types = ", ".join([t.str_short() for t in self.types])
        raise ShardingTypeError(f"{why}. Got {types}\n  at {user_line()}")

    def _sharding(self, found: Division) -> NamedSharding:
        return NamedSharding(self.mesh.abstract_mesh, spec_of_axes(found))

    def _shown(self, k: int) -> str:
        return self.types[k].str_short(short_dtypes=True) if k < len(self.types) else "?"


def _followed(i: HloInstruction) -> range:
    """The operands that may be divided along dimensions that the op changes. The result has their divisions; a function
    of arrays that knows no batch takes them whole, and so is its result."""
    if i.opcode is Opcode.CUSTOM_CALL and not is_batched_target(i.attributes.custom_call_target):
        return range(len(i.operands))
    if i.opcode in _SAME:
        return range({Opcode.CONCATENATE: len(i.operands), Opcode.DYNAMIC_UPDATE_SLICE: 2}.get(i.opcode, 1))
    return range(int(i.opcode is Opcode.CONVOLUTION))


def _as_output(i: HloInstruction, source: Sequence[Any]) -> Any:
    """What is known about the dimensions of a convolution's first operand, in the order of the result."""
    n = i.attributes.dimension_numbers
    found = list(source)
    found[n.output_batch], found[n.output_feature] = source[n.input_batch], source[n.input_feature]
    for d, e in zip(n.input_spatial, n.output_spatial, strict=True):
        found[e] = source[d]
    return tuple(found)


def _groups(old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest groups of dimensions of a reshape that have as many elements on both sides; without those of size
    1."""
    if 0 in old:
        return
    sides = [[d for d, n in enumerate(sizes) if n > 1] for sizes in (old, new)]
    while sides[0]:
        group = [[side.pop(0)] for side in sides]
        counts = [sizes[own[0]] for sizes, own in zip((old, new), group, strict=True)]
        while counts[0] != counts[1]:
            k = int(counts[1] < counts[0])
            group[k].append(sides[k].pop(0))
            counts[k] *= (old, new)[k][group[k][-1]]
        yield group[0], group[1]


def _joined(each: Sequence[Division]) -> Division:
    """The first division that is not whole."""
    return next((f for f in each if not _is_whole(f)), each[0])
