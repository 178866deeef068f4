"""The rules of operations for Explicit axes: from the divisions of the operands to those of the results.

The factors of an op say how the dimensions of operands and results correspond (`hlo/passes/partition/factors.py`; the
partitioner uses them, too). `RULES` is the table of all else: JAX's name of the op, the operands that keep their axes
along dimensions that the op changes, the errors that JAX raises although the result is clear, and the rule for sums
whose terms are not added yet.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from ...hlo.custom_calls import is_batched_target
from ...hlo.errors import UnsupportedError
from ...hlo.ir import HloInstruction
from ...hlo.opcode import Opcode
from ...hlo.ops import Trait, spec_of
from ...hlo.support.loading import load
from ...hlo.support.records import dataclass
from ..aval import ShapedArray, aval_of_shape, divided_sizes
from ..errors import ShardingTypeError
from ..source import user_line
from .division import AnyMesh, Division, joined, whole
from .partition_spec import axes_of
from .shardings import NONE, spec_of_axes
from .summed_axes import Sums, note

ReductionAxes = tuple[frozenset[Any], frozenset[Any]]
"""The axes along which a value is unreduced, and those along which it is reduced."""
Sizes = Sequence[int]


@dataclass(slots=True)
class Op:
    """One operation on divided values."""

    mesh: AnyMesh
    instruction: HloInstruction
    leaves: Sequence[Division]
    """Of the leaves of the operands."""
    is_strict: bool
    """Whether what is ambiguous is refused."""
    types: Sequence[ShapedArray] = ()
    """Of the operands, for messages."""

    @property
    def rule(self) -> OpRule:
        return RULES.get(self.instruction.opcode, _OTHER)

    @property
    def is_elementwise(self) -> bool:
        return bool(spec_of(self.instruction.opcode).traits & Trait.ELEMENTWISE)

    @property
    def name(self) -> str:
        """The op in messages."""
        if self.instruction.opcode is Opcode.COMPARE:
            return str(self.instruction.attributes.direction.value).lower()
        return self.rule.name or str(self.instruction.opcode.value).replace("-", "_")

    def results(self) -> list[Division]:
        """The divisions of the leaves of the result. ShardingTypeError where they are ambiguous."""
        if all(f.is_whole for f in self.leaves):
            return [whole(s.rank) for s in self.instruction.shape.leaves()]
        if self.is_strict and self.rule.check is not None:
            self.rule.check(self)
        found = [self.rule.divided(self)] if self.rule.divided is not None else self.by_factors()
        unreduced, reduced = self.rule.reductions(self)
        used = [{a for axes in f for a in axes} for f in found]
        return [Division(f, unreduced - u, reduced - u) for f, u in zip(found, used, strict=True)]

    # ---- from the factors

    def by_factors(self) -> list[tuple[tuple[Any, ...], ...]]:
        """The axes that divide the dimensions of each result."""
        factors = load("...hlo.passes.partition.factors", __package__).factors_of(self.instruction)
        cut: dict[int, tuple[Any, ...]] = {}
        for k, (dims, found) in enumerate(zip(factors.operands, self.leaves, strict=True)):
            for d, (of_dimension, axes) in enumerate(zip(dims, found.axes, strict=True)):
                if not axes:
                    continue
                shares = self._shares(of_dimension, axes, factors.sizes)
                if shares is None or any(f in factors.whole for f, _ in shares):
                    if k >= self.rule.takes(self.instruction):
                        self.ambiguous(d)
                    continue
                for f, own in shares:
                    if cut.setdefault(f, own) != own:
                        self._incompatible()
        results = [self._of_result(dims, cut, factors.sizes) for dims in factors.results]
        if self.rule.source is not None and (source := self.rule.source(self)) is not None:
            results = [self._as_source(*source, r) for r in results]
        return [self._without_duplicates(r) for r in results]

    def _shares(
        self, factors: Sequence[int], axes: Sequence[Any], sizes: Sizes
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

    def _of_result(self, dims: Any, cut: dict[int, tuple[Any, ...]], sizes: Sizes) -> tuple[tuple[Any, ...], ...]:
        """The axes of a result from those that cut its factors."""
        found = []
        for factors in dims:
            axes = tuple([a for f in factors for a in cut.get(f, ())])
            wanted = [(f, cut[f]) for f in factors if f in cut]
            while axes and self._shares(factors, axes, sizes) != wanted:
                self.ambiguous(0)
                wanted.pop()
                axes = tuple([a for _, own in wanted for a in own])
            found.append(axes)
        return tuple(found)

    def _as_source(
        self, source: Sequence[tuple[Any, ...]], before: Sizes, other: Sequence[tuple[Any, ...]]
    ) -> tuple[tuple[Any, ...], ...]:
        """The axes of `source`, an operand with the sizes `before`, for the dimensions of the result that they
        divide, and `other` for the rest."""
        sizes = next(iter(self.instruction.shape.leaves())).dimensions
        made = []
        for axes, more, size, old in zip(source, other, sizes, before, strict=True):
            parts = math.prod([self.mesh.shape[a] for a in axes])
            if size != old and size % parts:
                if self.is_strict:
                    raise ShardingTypeError(
                        f"{self.name} on sharded dims where out dim ({size}) is not divisible by mesh axes ({parts}) "
                        f"with spec ({spec_of_axes([axes])[0]}) is not implemented. Got input type={self.shown(0)} "
                        f"and output shape={sizes}"
                    )
                axes = ()
            made.append(axes or more)
        return tuple(made)

    def _without_duplicates(self, found: Sequence[tuple[Any, ...]]) -> tuple[tuple[Any, ...], ...]:
        used: set[Any] = set()
        kept = []
        for axes in found:
            if used & set(axes):
                if self.is_strict:
                    types = ", ".join([t.str_short(short_dtypes=True) for t in self.types])
                    shape = next(iter(self.instruction.shape.leaves()))
                    shown = divided_sizes(shape.dimensions, spec_of_axes(found).partitions)
                    name = aval_of_shape(shape).str_short(short_dtypes=True).partition("[")[0]
                    raise ShardingTypeError(
                        f"{self.name} operation with inputs: {types} produces an illegally sharded result: "
                        f"{name}[{shown}]"
                    )
                axes = ()
            used.update(axes)
            kept.append(axes)
        return tuple(kept)

    # ---- errors

    def _incompatible(self) -> None:
        if self.is_strict:
            specs = ", ".join([str(f.entries) for f in self.leaves])
            if self.is_elementwise:
                raise ShardingTypeError(f"{self.name} got incompatible shardings for broadcasting: {specs}.")
            self.refuse(f"{self.name} of arrays that are divided as {specs} is ambiguous")

    def ambiguous(self, dimension: int) -> None:
        """Refuse a dimension that cannot be divided."""
        if self.is_strict:
            self.refuse(self.rule.refusal or f"{self.name}: dimension {dimension} cannot be divided")

    def refuse(self, why: str) -> NoReturn:
        types = ", ".join([t.str_short() for t in self.types])
        raise ShardingTypeError(f"{why}. Got {types}\n  at {user_line()}")

    def shown(self, k: int) -> str:
        """The type of an operand."""
        return self.types[k].str_short(short_dtypes=True) if k < len(self.types) else "?"

    def sharding(self, found: Division) -> str:
        return str(found.sharding(self.mesh.abstract_mesh))


# ---- what JAX refuses though the result is clear


def _check_select(op: Op) -> None:
    cases = op.leaves[1:]
    if len({f.axes for f in cases if any(f.axes)}) > 1:
        shown = ", ".join([op.sharding(f) for f in reversed(cases)])
        raise ShardingTypeError(f"select cases must have the same shardings, got [{shown}].")


def _check_concatenate(op: Op) -> None:
    if len({f.axes for f in op.leaves if any(f.axes)}) > 1:
        shown = ", ".join([op.sharding(f) for f in op.leaves])
        raise ShardingTypeError(f"All operands should have the same sharding. Got shardings {shown}")


def _check_convolution(op: Op) -> None:
    image, kernel = op.leaves
    if any(kernel.axes) or image.axes[op.instruction.attributes.dimension_numbers.input_feature]:
        op.refuse(op.rule.refusal)


def _check_window(op: Op) -> None:
    sizes = op.instruction.operands[0].shape.dimensions
    for axis, (axes, w) in enumerate(zip(op.leaves[0].axes, op.instruction.attributes.window, strict=True)):
        if axes and w.size == sizes[axis]:
            raise ShardingTypeError(
                "Input should be unsharded over the axis being reduced. Got input "
                f"type={op.types[0].str_short()} and axis={axis}"
            )


def _check_update(op: Op) -> None:
    operand, update, *_ = op.leaves
    if operand.axes != update.axes and any(update.axes):
        raise ShardingTypeError(
            "dynamic_update_slice operand sharding must be equal to update sharding, got operand sharding "
            f"{op.shown(0)} and update sharding {op.shown(1)}."
        )


def _terms(op: Op) -> tuple[tuple[Any, ...], ...]:
    """The entries of the dimensions that a product sums over, of both operands."""
    left, right = [f.entries for f in op.leaves]
    a = op.instruction.attributes
    return tuple([left[d] for d in a.lhs_contracting_dims]), tuple([right[d] for d in a.rhs_contracting_dims])


def _check_dot(op: Op) -> None:
    a = op.instruction.attributes
    left, right = [f.entries for f in op.leaves]
    batch = tuple([left[d] for d in a.lhs_batch_dims]), tuple([right[d] for d in a.rhs_batch_dims])
    terms = _terms(op)
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


# ---- results that are divided as operands are, also along dimensions that the op changes


Source = tuple[Sequence[tuple[Any, ...]], Sizes]


def _as_first(op: Op) -> Source | None:
    return op.leaves[0].axes, op.instruction.operands[0].shape.dimensions


def _as_any(op: Op) -> Source | None:
    return joined(op.leaves).axes, op.instruction.operands[0].shape.dimensions


def _as_image(op: Op) -> Source | None:
    """The dimensions of a convolution's first operand, in the order of the result."""
    image, kernel = op.leaves
    if any(kernel.axes):
        return None
    n = op.instruction.attributes.dimension_numbers
    order = {n.output_batch: n.input_batch, n.output_feature: n.input_feature}
    order |= dict(zip(n.output_spatial, n.input_spatial, strict=True))
    places, sizes = [order[d] for d in range(len(order))], op.instruction.operands[0].shape.dimensions
    return [image.axes[d] for d in places], [sizes[d] for d in places]


def _reshaped(op: Op) -> tuple[tuple[Any, ...], ...]:
    """Dimensions that are split keep their axes, the slowest first; so do dimensions that are merged, if no undivided
    one is before a divided one."""
    old, new = op.instruction.operands[0].shape.dimensions, op.instruction.shape.dimensions
    made: list[tuple[Any, ...]] = [()] * len(new)
    for before, after in _groups(old, new):
        axes = [op.leaves[0].axes[d] for d in before]
        while axes and not axes[-1]:
            axes.pop()
        rest = [a for own in axes for a in own]
        is_clear = all(axes) and (len(before) == 1 or len(after) == 1)
        for d in after if is_clear else ():
            size, own = new[d], []
            while rest and size > 1 and size % op.mesh.shape[rest[0]] == 0:
                size //= op.mesh.shape[rest[0]]
                own.append(rest.pop(0))
            made[d] = tuple(own)
            if size > 1 and rest:
                break
        if any(op.mesh.shape[a] > 1 for a in rest):
            op.ambiguous(before[0])
    return tuple(made)


def _groups(old: Sizes, new: Sizes) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest groups of dimensions of a reshape, without dimensions of size 1, that have equally many elements
    before and after it."""
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


# ---- sums that are not computed yet


def _refuse_unreduced(op: Op) -> None:
    """UnsupportedError for an op that is not linear in an operand that is a sum. JAX's words."""
    if any(f.unreduced for f in op.leaves):
        shown = [t.str_short() for t in op.types] or [f"unreduced={sorted(map(str, f.unreduced))}" for f in op.leaves]
        raise UnsupportedError(
            f"unreduced rule for {op.name} is not implemented. Reduce the operand with `hloom.reshard` first. Got "
            f"{', '.join(shown)}"
        )


def _agreed(op: Op) -> frozenset[Any]:
    """The axes along which the operands are reduced, all of them."""
    sets = {f.reduced for f in op.leaves if f.reduced}
    if len(sets) > 1:
        if op.is_strict:
            raise ShardingTypeError(f"All inputs should be reduced across the same mesh axes. Got specs: {sets}")
        return NONE
    reduced = next(iter(sets), NONE)
    for k, found in enumerate(op.leaves if reduced else ()):
        used = {a for axes in found.axes for a in axes}
        is_whole = reduced - used - found.unreduced - found.reduced and not found.is_free
        if not op.is_strict and (is_whole or used & reduced):
            return NONE
        got = f"Got input type: {op.types[k].str_short() if k < len(op.types) else '?'} and reduced spec: {reduced}"
        if used & reduced:
            raise ShardingTypeError(
                "Inputs cannot be sharded/varying on the same axes that another input is reduced on. Reshard the input "
                "which is reduced to be sharded on the mesh axes it is reduced on via `hloom.reshard(inp, hloom.P("
                f"...))`. {got}"
            )
        if is_whole:
            raise ShardingTypeError(
                f"Inputs cannot be replicated on the same axes that another input is reduced on. {got}"
            )
    return reduced


def _of_other(op: Op) -> ReductionAxes:
    _refuse_unreduced(op)
    if op.is_elementwise:
        return NONE, _agreed(op)
    if op.is_strict and any(f.reduced for f in op.leaves):
        raise UnsupportedError(
            f"unreduced/reduced rule for {op.name} is not implemented. Got "
            f"{', '.join([t.str_short() for t in op.types])}"
        )
    return NONE, NONE


def _of_first(op: Op) -> ReductionAxes:
    return op.leaves[0].unreduced, op.leaves[0].reduced


def _of_padded(op: Op) -> ReductionAxes:
    """Each device adds the padding to its term: it must be zero."""
    value = op.instruction.operands[1]
    if op.leaves[0].unreduced and not (value.opcode is Opcode.CONSTANT and not value.attributes.literal.array.any()):
        _refuse_unreduced(op)
    return _of_first(op)


def _of_sum(op: Op) -> ReductionAxes:
    left, right = [f.unreduced for f in op.leaves]
    if left and right and left != right:
        raise ShardingTypeError(
            f"lhs and rhs to `{op.name}` must be unreduced along the same mesh axes. Got lhs={left}, rhs={right}"
        )
    if bool(left) != bool(right):
        one, other = ("lhs", "rhs") if left else ("rhs", "lhs")
        raise ShardingTypeError(
            f"{one} is unreduced while {other} is not. `{op.name}` operation does not allow this because there will be "
            f"implicit communication. Please reduce {one} via `reshard` before calling `{op.name}`."
        )
    return left, _agreed(op)


def _of_product(op: Op) -> ReductionAxes:
    left, right = op.leaves
    if left.unreduced and right.unreduced:
        raise ShardingTypeError(
            f"lhs and rhs to `mul` cannot be unreduced since mul is bilinear. Got lhs={left.unreduced}, "
            f"rhs={right.unreduced}"
        )
    unreduced = left.unreduced | right.unreduced
    for one, other, names in ((left, right, ("RHS", "LHS")), (right, left, ("LHS", "RHS"))):
        if one.unreduced and other.reduced != one.unreduced:
            raise ShardingTypeError(
                f"{names[0]} should be reduced along the same axes {names[1]} is unreduced on. Got lhs={op.shown(0)} "
                f"and rhs={op.shown(1)}"
            )
    return unreduced, NONE if unreduced else _agreed(op)


def _of_cases(op: Op) -> ReductionAxes:
    which, first, second = op.leaves
    each = {(f.unreduced, f.reduced) for f in (first, second) if not f.is_free}
    if len(each) > 1 and (op.is_strict or first.unreduced or second.unreduced):
        shown = ", ".join([op.sharding(f) for f in (second, first)])
        raise ShardingTypeError(f"select cases must have the same shardings, got [{shown}].")
    found = next(iter(each), (NONE, NONE)) if len(each) <= 1 else (NONE, NONE)
    if found[0] & {a for axes in which.axes for a in axes}:
        raise ShardingTypeError(
            "select `which` must be scalar or have the same sharding as cases, got `which` sharding "
            f"{op.sharding(which)} but case sharding {op.sharding(first)}."
        )
    return found


def _of_all(op: Op) -> ReductionAxes:
    found = []
    for kind, sets in (("unreduced", [f.unreduced for f in op.leaves]), ("reduced", [f.reduced for f in op.leaves])):
        named = {s for s in sets if s}
        if len(named) > 1:
            raise ShardingTypeError(
                f"All operands should be {kind} along the same mesh axes. Got {kind} specs: {named}"
            )
        if named and kind == "unreduced" and not all(sets):
            raise ShardingTypeError(f"{op.name}: all operands should be unreduced if one is. Got {sets}")
        found.append(next(iter(named), NONE))
    return found[0], found[1]


def _of_updated(op: Op) -> ReductionAxes:
    operand, update, *_ = op.leaves
    for kind, one, two in (
        ("unreduced", operand.unreduced, update.unreduced), ("reduced", operand.reduced, update.reduced)
    ):  # fmt: skip
        if one != two and (op.is_strict or kind == "unreduced"):
            raise ShardingTypeError(
                f"dynamic_update_slice operand and update must be {kind} along the same axes. Got operand "
                f"{op.shown(0)} and update {op.shown(1)}"
            )
    return operand.unreduced, operand.reduced & update.reduced


def _of_reduction(op: Op) -> ReductionAxes:
    patterns = load("...hlo.passes.patterns", __package__)
    if patterns.reducer_opcode(op.instruction.attributes.to_apply) is not Opcode.ADD:
        return _of_other(op)
    (first, *_), summed = op.leaves, op.instruction.attributes.dimensions
    note(Sums(first.unreduced.union(*[first.axes[d] for d in summed])))
    return first.unreduced, first.reduced


def _of_dot(op: Op) -> ReductionAxes:
    if any(f.unreduced for f in op.leaves):
        raise ShardingTypeError(
            f"lhs or rhs passed to dot_general cannot be unreduced. Got lhs={op.shown(0)} and rhs={op.shown(1)}"
        )
    contracted = _terms(op)
    note(Sums(frozenset([a for spec in contracted for e in spec for a in axes_of(e)]), contracted))
    return NONE, NONE


# ---- the table


def _no_operand(i: HloInstruction) -> int:
    return 0


def _first(i: HloInstruction) -> int:
    return 1


def _first_two(i: HloInstruction) -> int:
    return 2


def _all_operands(i: HloInstruction) -> int:
    return len(i.operands)


def _taken_whole(i: HloInstruction) -> int:
    """A function of arrays that knows no batch takes them whole, and so is its result."""
    return 0 if is_batched_target(i.attributes.custom_call_target) else len(i.operands)


@dataclass(frozen=True, slots=True)
class OpRule:
    """The facts about an op that its factors do not tell."""

    name: str = ""
    """JAX's name of the op, where it is another one than HLO's."""
    refusal: str = ""
    """The beginning of the message where a dimension cannot be divided."""
    takes: Callable[[HloInstruction], int] = _no_operand
    """How many operands, the first ones, may be divided along dimensions that the op changes."""
    source: Callable[[Op], Source | None] | None = None
    """The operand whose axes divide the result, also along dimensions that the op changes."""
    divided: Callable[[Op], tuple[tuple[Any, ...], ...]] | None = None
    """The axes of the result, in place of those that follow from the factors."""
    check: Callable[[Op], None] | None = None
    """Refuses what JAX refuses though the result is clear."""
    reductions: Callable[[Op], ReductionAxes] = _of_other
    """Along which axes the result is unreduced and reduced."""


_OTHER = OpRule()
_LIKE_FIRST: dict[str, Any] = {"takes": _first, "source": _as_first}

RULES: dict[Opcode, OpRule] = {
    Opcode.ADD: OpRule(reductions=_of_sum),
    Opcode.BITCAST_CONVERT: OpRule(name="bitcast_convert_type"),
    Opcode.BROADCAST: OpRule(name="broadcast_in_dim", reductions=_of_first),
    Opcode.CONCATENATE: OpRule(takes=_all_operands, source=_as_any, check=_check_concatenate, reductions=_of_all),
    Opcode.CONVERT: OpRule(name="convert_element_type", reductions=_of_first),
    Opcode.CONVOLUTION: OpRule(
        name="conv_general_dilated", takes=_first, source=_as_image, check=_check_convolution,
        refusal="Please specify the output sharding via `out_sharding` parameter of `conv_general_dilated`",
    ),
    Opcode.COPY: OpRule(reductions=_of_first),
    Opcode.CUSTOM_CALL: OpRule(takes=_taken_whole),
    Opcode.DIVIDE: OpRule(name="div"),
    Opcode.DOT: OpRule(name="dot_general", check=_check_dot, reductions=_of_dot),
    Opcode.DYNAMIC_SLICE: OpRule(name="dynamic_slice", reductions=_of_first, **_LIKE_FIRST),
    Opcode.DYNAMIC_UPDATE_SLICE: OpRule(
        takes=_first_two, source=_as_first, check=_check_update, reductions=_of_updated
    ),
    Opcode.FFT: OpRule(**_LIKE_FIRST),
    Opcode.GATHER: OpRule(
        refusal="Use `.at[...].get(out_sharding=)` to provide output PartitionSpec for the gather indexing as out "
        "sharding could not be resolved unambiguously (or would require collectives on inputs)"
    ),
    Opcode.MAXIMUM: OpRule(name="max"),
    Opcode.MINIMUM: OpRule(name="min"),
    Opcode.MULTIPLY: OpRule(name="mul", reductions=_of_product),
    Opcode.NEGATE: OpRule(name="neg"),
    Opcode.PAD: OpRule(name="padding", reductions=_of_padded, **_LIKE_FIRST),
    Opcode.POWER: OpRule(name="pow"),
    Opcode.REDUCE: OpRule(reductions=_of_reduction),
    Opcode.REDUCE_WINDOW: OpRule(check=_check_window, **_LIKE_FIRST),
    Opcode.REMAINDER: OpRule(name="rem"),
    Opcode.RESHAPE: OpRule(
        divided=_reshaped, reductions=_of_first,
        refusal="This reshape is not supported. Please specify the sharding of the output via the `out_sharding` "
        "argument of hloom.lax.reshape",
    ),
    Opcode.REVERSE: OpRule(name="rev", **_LIKE_FIRST),
    Opcode.SCATTER: OpRule(
        refusal="Use `.at[...].set/add/mul/...(out_sharding=)` to provide output PartitionSpec for the scatter update "
        "as out sharding could not be resolved unambiguously (or would require collectives on inputs)"
    ),
    Opcode.SELECT: OpRule(check=_check_select, reductions=_of_cases),
    Opcode.SELECT_AND_SCATTER: OpRule(**_LIKE_FIRST),
    Opcode.SLICE: OpRule(name="slicing", reductions=_of_first, **_LIKE_FIRST),
    Opcode.SORT: OpRule(refusal="Arguments to sort must be unsharded over the sorting dimension"),
    Opcode.SUBTRACT: OpRule(name="sub"),
    Opcode.TRANSPOSE: OpRule(reductions=_of_first),
}  # fmt: skip
"""By opcode. An element-wise op without `reductions` of its own keeps the axes along which its operands are reduced."""
