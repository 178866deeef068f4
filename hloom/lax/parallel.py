"""Collectives: functions of all elements along a named axis, which `vmap(..., axis_name=...)` maps over, or which is an
axis of the mesh of `shard_map` and `pmap`.

Each is a primitive. Over an axis of a mesh it is a collective of HLO (`collective_hlo.py`). For an axis of vmap, only
its derivative and its type are known until the transformation is reached that has the axis; that replaces it by
operations on the batch (`def_batch`).

Names, arguments and errors follow jax.lax.
"""

from __future__ import annotations

import builtins
import math
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np

from ..autodiff.batches import Axis, with_batch
from ..autodiff.tangents import Operand, Tangent, Zero, instantiate
from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloComputation
from ..hlo.opcode import Opcode
from ..hlo.support.records import dataclass
from ..tracer import dtypes, ops
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.caches import on_clear
from ..tracer.core import Call, Primitive, Value, bind_call, varying
from ..tracer.errors import UnboundAxisError
from ..tracer.recording import trace_to_computation
from ..tracer.settings.context import current_context
from ..tracer.sharding.manual_axes import ManualAxes, current_manual_axes
from ..tracer.sharding.varying import PVARY, Pvary, pvary_call
from ..tracer.trees import tree
from .collective_hlo import Collective, collective_computation
from .movement import canonical_axis, iota, moved_dimension
from .reduce import limits

AxisName: TypeAlias = Hashable
Groups: TypeAlias = tuple[tuple[int, ...], ...]


# --- axes


def axis_size(axis_name: AxisName) -> int:
    """The number of elements along a named axis, an int; the product for a tuple of names.

    NameError (`UnboundAxisError`) outside of a function that is mapped over the axis.

    >>> hloom.vmap(lambda x: x / lax.axis_size("i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.5, 1.5], dtype=float32)
    """
    return math.prod([_size(name) for name in _names(axis_name)])


def _names(axis_name: AxisName) -> tuple[AxisName, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _size(name: AxisName) -> int:
    bound = current_context().axis_names
    for known, size in reversed(bound):
        if known == name:
            return size
    listed = ", ".join([repr(known) for known, _ in bound]) or "none"
    raise UnboundAxisError(
        f"unbound axis name: {name}. The axes that are mapped over here: {listed}.\n  Call it in a function that is "
        f"mapped with vmap(..., axis_name={name!r})."
    )


def _one_name(what: str, axis_name: AxisName) -> AxisName:
    names = _names(axis_name)
    if len(names) != 1:
        raise UnsupportedError(f"{what} over several axes at once, {names}: call it for one after the other")
    return names[0]


def groups_of_places(what: str, axis_name: AxisName, axis_index_groups: Any, is_sum: bool = False) -> Groups:
    """The groups of places along an axis within which a collective is done; () for all places together. `is_sum`: they
    may be of different sizes."""
    if axis_index_groups is None:
        return ()
    names, manual = _names(axis_name), current_manual_axes()
    if manual is None or not manual.owns(names):
        _one_name(f"{what} with axis_index_groups", axis_name)
    groups = tuple([tuple([int(place) for place in group]) for group in axis_index_groups])
    count, named = axis_size(axis_name), ", ".join(map(str, names))
    if sorted([place for group in groups for place in group]) != list(range(count)):
        raise ValueError(
            f"axis_index_groups must cover all indices exactly once: {named} has {count} places, the groups are "
            f"{[list(group) for group in groups]}"
        )
    if len({len(group) for group in groups}) > 1 and not (is_sum and all(groups)):
        raise ValueError(f"axis_index_groups must all be of the same size, got {[list(group) for group in groups]}")
    return groups


def _together(axis_name: AxisName, groups: Groups) -> list[tuple[AxisName, ...]]:
    """The axes of each collective, one collective after the other: groups are of places along all of them."""
    names = _names(axis_name)
    return [names] if groups else [(name,) for name in names]


def _members(axis_name: AxisName, groups: Groups) -> int:
    """The number of elements that do a collective together: in the first group, of groups of different sizes."""
    return len(groups[0]) if groups else axis_size(axis_name)


# --- how a collective is declared


@dataclass(frozen=True, slots=True)
class _Use:
    """The parameters of a call."""

    axes: tuple[AxisName, ...]
    size: int
    """Elements that do it together: those along all axes, or of a group."""
    dims: tuple[int, ...] = ()
    """Dimensions of the operand or the result that it works on."""
    permutation: tuple[tuple[int, int], ...] = ()
    manual: ManualAxes | None = None
    """The mesh that has the axes, or some of them; the others are vmap's."""
    groups: Groups = ()
    """Places along the one axis (`axis_index_groups`); () for all of them together."""


def _use(
    axes: tuple[AxisName, ...], size: int, dims: tuple[int, ...] = (), permutation: Any = (), groups: Groups = ()
) -> _Use:
    return _Use(axes, size, dims, permutation, current_manual_axes(), groups)


def _never_run(call: Call, arrays: Sequence[Any]) -> list[Any]:
    names = ", ".join(map(str, call.params.axes))
    raise UnboundAxisError(f"unbound axis name: {names}: {call.primitive.name} is used outside of what maps over it")


def _collective(name: str, same: bool = False) -> Primitive:
    """A collective; `same`: its results are the same along the axes."""
    def vma(call: Call, vmas: Sequence[frozenset[Any]]) -> frozenset[Any]:
        union: frozenset[Any] = frozenset[Any]().union(*vmas)
        if not _is_tracked(call.params):
            return frozenset()
        is_same = same and not call.params.groups
        return union - set(call.params.axes) if is_same else union | set(call.params.axes)

    return Primitive(name, evaluate=_never_run, is_linear=True, axes=lambda call: call.params.axes, vma=vma)


def _is_tracked(use: _Use) -> bool:
    """Whether types say along which axes its operands vary."""
    return use.manual is not None and use.manual.tracks and use.manual.owns(use.axes)


def _bind(primitive: Primitive, use: _Use, operands: Sequence[Value], result: ShapedArray) -> Value:
    current = current_manual_axes()
    if current is not None and _is_tracked(use):
        operands = [varying(o, frozenset(use.axes), current) for o in operands]
    avals = tuple([o.aval.with_vma(frozenset()) for o in operands])
    result = result.with_vma(frozenset())
    if use.manual is not None and use.manual.owns(use.axes):
        kind = Collective(primitive.name, use.axes, use.size, use.dims, use.permutation, use.manual, use.groups)
        meaning = collective_computation(kind, avals, result)
    else:
        meaning = _typed(primitive.name, avals, result)
    shown = (("axes", ",".join(map(str, use.axes))), *([("dims", ",".join(map(str, use.dims)))] if use.dims else []))
    (found,) = bind_call(Call(primitive, meaning, use, primitive.name, shown), operands)
    return found


@lru_cache(maxsize=256)
def _typed(name: str, operands: tuple[ShapedArray, ...], result: ShapedArray) -> HloComputation:
    """A computation of the right type, which is replaced before anything runs."""
    return trace_to_computation(lambda _: [ops.zeros(result)], operands, name).computation


on_clear(_typed.cache_clear)


def _result_type(call: Call) -> ShapedArray:
    (shape,) = call.computation.root.shape.elements
    return ShapedArray(shape.dimensions, shape.element.dtype)


Mine: TypeAlias = Callable[[_Use, Value, bool, Axis], tuple[Value, bool]]
"""mine(use, operand, is it batched, axis) -> (result, is it batched): a collective over the axis of this batch."""


def _def_batch(primitive: Primitive, mine: Mine) -> None:
    """The rule of vmap: by `mine` where the batch is the named axis; else the same for a batch of operands."""

    def batch(
        call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
    ) -> tuple[list[Value], list[bool]]:
        use: _Use = call.params
        (x,), (is_batched,) = operands, batched
        if axis.name is None or axis.name not in use.axes:
            result = _result_type(call)
            whole = ShapedArray((axis.size, *result.shape), result.dtype)
            return [_bind(primitive, replace(use, dims=tuple([d + 1 for d in use.dims])), [x], whole)], [True]
        if use.groups:
            return [_in_groups(mine, use, x, is_batched, axis)], [True]
        result_here, still = mine(use, x, is_batched, axis)
        rest = tuple([name for name in use.axes if name != axis.name])
        if not rest:
            return [result_here], [still]
        others = replace(use, axes=rest, size=use.size // axis.size)
        return [_bind(primitive, others, [result_here], result_here.aval)], [still]

    primitive.def_batch(batch)


def _in_groups(mine: Mine, use: _Use, x: Value, is_batched: bool, axis: Axis) -> Value:
    """The batch of each group's own result."""
    whole = with_batch(axis, x, is_batched)
    found = []
    for group in use.groups:
        own = Axis(axis.name, len(group))
        made, still = mine(replace(use, groups=(), size=len(group)), _rows(whole, group), True, own)
        found.append(with_batch(own, made, still))
    places = [place for group in use.groups for place in group]
    order = sorted(range(len(places)), key=places.__getitem__)
    return _rows(ops.concatenate(found, 0), order)


def _def_linear(primitive: Primitive, back: Callable[[_Use, Value, ShapedArray], Value]) -> None:
    """Its derivative is itself; `back(use, cotangent, operand's type)` is its transpose."""

    def jvp(call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]) -> tuple[list[Value], list[Tangent]]:
        (t,) = tangents
        moved = _bind(primitive, call.params, [instantiate(t)], _result_type(call))
        return bind_call(call, primals), [moved]

    def transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> list[Value | None]:
        (ct,), (operand,) = cts, operands
        return [None if ct is None else back(call.params, ct, operand.aval)]

    primitive.def_jvp(jvp)
    primitive.def_transpose(transpose)


def _rows(x: Value, order: Sequence[int]) -> Value:
    """The elements of a batch in another order; -1: zeros."""
    parts = []
    for k in order:
        if k < 0:
            parts.append(ops.zeros(ShapedArray((1, *x.aval.shape[1:]), x.aval.dtype)))
        else:
            rank = x.aval.ndim
            parts.append(ops.slice_(x, (k, *[0] * (rank - 1)), (k + 1, *x.aval.shape[1:])))
    return ops.concatenate(parts, 0)


def _on_leaves(function: Callable[[Value], Value], x: Any) -> Any:
    return tree.map(lambda leaf: function(as_value(leaf)), x)


# --- sums and extrema


_PSUM, _PMAX, _PMIN = (_collective(name, same=True) for name in ("psum", "pmax", "pmin"))


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum over a named axis, or several, of each array of `x` (a pytree). The same for all elements.

    Booleans are summed as int32. A Python number is multiplied by the size of the axis at once, so `psum(1, axis)` is
    an int.

    axis_index_groups: places along the one axis in lists; the sum is within each list. Their sizes may differ.

    >>> hloom.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(jnp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    >>> hloom.vmap(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 2], [1]]), axis_name="i")(jnp.array([1, 2, 3]))
    Array([4, 2, 4], dtype=int32)
    """
    groups = groups_of_places("psum", axis_name, axis_index_groups, is_sum=True)
    use = _use(_names(axis_name), _members(axis_name, groups), groups=groups)
    is_even = len({len(group) for group in groups}) < 2

    def one(leaf: Any) -> Any:
        if isinstance(leaf, builtins.int | builtins.float | builtins.complex) and is_even:
            return leaf * use.size
        value = _summed(as_value(leaf))
        return _bind(_PSUM, use, [value], value.aval.with_weak_type(False))

    return tree.map(one, x)


def _summed(x: Value) -> Value:
    """The value as sums take it: booleans count as int32."""
    return ops.convert(x, dtypes.int32) if x.aval.dtype == np.bool_ else x


def psum_over_mesh(x: Value, axes: tuple[AxisName, ...], manual: ManualAxes) -> Value:
    """The sum over axes of a mesh, for rules that run outside of the function that `shard_map` maps."""
    size = math.prod([manual.mesh.shape[a] for a in axes])
    return _bind(_PSUM, _Use(axes, size, manual=manual), [x], x.aval.with_weak_type(False))


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean over a named axis of each array of `x` (a pytree).

    >>> hloom.vmap(lambda x: x - lax.pmean(x, "i"), axis_name="i")(jnp.array([1.0, 2.0, 6.0]))
    Array([-2., -1.,  3.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    size = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return tree.map(lambda leaf: leaf / size, total)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The largest value over a named axis, for each array of `x` (a pytree). Ties share its derivative.

    >>> hloom.vmap(lambda x: lax.pmax(x, "i"), axis_name="i")(jnp.array([1, 5, 2]))
    Array([5, 5, 5], dtype=int32)
    """
    return _extremum(_PMAX, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The smallest value over a named axis, for each array of `x` (a pytree). Ties share its derivative.

    >>> hloom.vmap(lambda x: lax.pmin(x, "i"), axis_name="i")(jnp.array([4, 1, 2]))
    Array([1, 1, 1], dtype=int32)
    """
    return _extremum(_PMIN, x, axis_name, axis_index_groups)


def _extremum(primitive: Primitive, x: Any, axis_name: AxisName, groups: Any) -> Any:
    found = groups_of_places(primitive.name, axis_name, groups, is_sum=True)
    use = _use(_names(axis_name), _members(axis_name, found), groups=found)
    return _on_leaves(lambda v: _bind(primitive, use, [v], v.aval.with_weak_type(False)), x)


def _reduced(opcode: Opcode) -> Mine:
    def mine(use: _Use, x: Value, is_batched: bool, axis: Axis) -> tuple[Value, bool]:
        if not is_batched:
            return (ops.scale(x, axis.size) if opcode is Opcode.ADD else x), False
        dtype = x.aval.dtype
        first = 0 if opcode is Opcode.ADD else limits(dtype)[opcode is Opcode.MINIMUM]
        return ops.reduce_with(opcode, x, ops.scalar(first, dtype), (0,)), False

    return mine


def _extremum_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    """The mean of the tangents of those that have the extreme value."""
    (x,), (t,) = primals, tangents
    (best,) = bind_call(call, [x])
    if isinstance(t, Zero):
        return [best], [Zero(best.aval)]
    is_best = ops.compare(x, "EQ", best)
    count = _bind(_PSUM, call.params, [ops.convert(is_best, x.aval.dtype)], best.aval)
    share = ops.div(ops.convert(is_best, x.aval.dtype), count)
    return [best], [_bind(_PSUM, call.params, [ops.mul(t, share)], best.aval)]


def _sum_back(use: _Use, ct: Value, aval: ShapedArray) -> Value:
    """Where types say along which axes values vary, a cotangent of a sum is the same for all that were added, and is
    theirs. Otherwise it is each one's share of the cotangent."""
    if _is_tracked(use) and not use.groups:
        (found,) = bind_call(pvary_call(ct.aval.hlo, Pvary(use.axes, use.manual)), [ct])
        return found
    return _bind(_PSUM, use, [ct], aval)


_def_linear(_PSUM, _sum_back)


def _again_vary(params: Pvary, x: Value) -> Value:
    (found,) = bind_call(pvary_call(x.aval.hlo, params), [x])
    return found


@PVARY.def_jvp
def _pvary_jvp(
    call: Call, primals: Sequence[Value], tangents: Sequence[Tangent]
) -> tuple[list[Value], list[Tangent]]:
    (t,) = tangents
    return bind_call(call, primals), [_again_vary(call.params, instantiate(t))]


@PVARY.def_transpose
def _pvary_transpose(call: Call, cts: Sequence[Value | None], operands: Sequence[Operand]) -> list[Value | None]:
    (ct,), params = cts, call.params
    if ct is None:
        return [None]
    size = math.prod([params.manual.mesh.shape[a] for a in params.axes])
    return [_bind(_PSUM, _Use(params.axes, size, manual=params.manual), [ct], ct.aval)]


@PVARY.def_batch
def _pvary_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    return [_again_vary(call.params, operands[0])], list(batched)


_def_batch(_PSUM, _reduced(Opcode.ADD))
_def_batch(_PMAX, _reduced(Opcode.MAXIMUM))
_def_batch(_PMIN, _reduced(Opcode.MINIMUM))
for _extreme in (_PMAX, _PMIN):
    _extreme.is_linear = False
    _extreme.def_jvp(_extremum_jvp)


# --- permutations


_PPERMUTE = _collective("ppermute")


def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """Each array of `x` (a pytree) sent from element `source` to element `target` for each pair (source, target).

    An element that receives nothing gets zeros. ValueError if an element sends or receives twice, or does not exist.

    >>> hloom.vmap(lambda x: lax.ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(jnp.array([1, 2, 3]))
    Array([0, 1, 2], dtype=int32)
    """
    name = _one_name("ppermute", axis_name)
    size = _size(name)
    pairs = tuple([(int(s), int(t)) for s, t in perm])
    for what, ends in (("sources", [s for s, _ in pairs]), ("destinations", [t for _, t in pairs])):
        if len(set(ends)) != len(ends) or not all(0 <= e < size for e in ends):
            raise ValueError(f"ppermute sources and destinations must be unique and in [0, {size}), got {what} {ends}")
    use = _use((name,), size, permutation=pairs)
    return _on_leaves(lambda v: _bind(_PPERMUTE, use, [v], v.aval.with_weak_type(False)), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """Element k gets the arrays of element `perm[k]`; `perm` is a permutation of all elements.

    >>> hloom.vmap(lambda x: lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(jnp.array([1, 2, 3]))
    Array([3, 1, 2], dtype=int32)
    """
    if sorted(perm) != list(range(len(perm))):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation: {list(perm)}")
    return ppermute(x, axis_name, list(zip(perm, range(len(perm)), strict=True)))


def _permuted(use: _Use, x: Value, is_batched: bool, axis: Axis) -> tuple[Value, bool]:
    sources = [-1] * axis.size
    for source, target in use.permutation:
        sources[target] = source
    return _rows(with_batch(axis, x, is_batched), sources), True


def _permuted_back(use: _Use, ct: Value, aval: ShapedArray) -> Value:
    return _bind(_PPERMUTE, replace(use, permutation=tuple([(t, s) for s, t in use.permutation])), [ct], aval)


_def_linear(_PPERMUTE, _permuted_back)
_def_batch(_PPERMUTE, _permuted)


# --- gathering, scattering, exchanging


_ALL_GATHER, _PSUM_SCATTER, _ALL_TO_ALL = (_collective(n) for n in ("all_gather", "psum_scatter", "all_to_all"))


def all_gather(
    x: Any, axis_name: AxisName, *, axis_index_groups: Any = None, axis: int = 0, tiled: bool = False
) -> Any:
    """The arrays of all elements along a named axis, stacked along a new dimension `axis`; the same for all elements.

    tiled: concatenated along the existing dimension `axis` instead. A tuple of names gathers over all of them, the last
    one fastest.

    >>> hloom.vmap(lambda x: lax.all_gather(x, "i"), axis_name="i")(jnp.array([1, 2]))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    groups = groups_of_places("all_gather", axis_name, axis_index_groups)

    def one(v: Value) -> Value:
        rank = v.aval.ndim
        place = canonical_axis(axis, rank if tiled else rank + 1)
        result = v
        together = _together(axis_name, groups)
        for axes in reversed(together):
            sizes, size = list(result.aval.shape), _members(axes, groups)
            sizes.insert(place, size)
            gathered = ShapedArray(tuple(sizes), v.aval.dtype)
            result = _bind(_ALL_GATHER, _use(axes, size, (place,), groups=groups), [result], gathered)
        count = len(together)
        shape = list(result.aval.shape)
        merged = [math.prod(shape[place : place + count])]
        if tiled:
            merged = [merged[0] * shape[place + count]]
            return ops.reshape(result, [*shape[:place], *merged, *shape[place + count + 1 :]])
        return ops.reshape(result, [*shape[:place], *merged, *shape[place + count :]])

    return _on_leaves(one, x)


def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum over a named axis; element k gets its k-th slice along `scatter_dimension`. Booleans count as int32.

    That dimension must have the axis's size, and is removed. tiled: its size is a multiple, and it is divided. A tuple
    of names stands for the elements along all of them, the last one fastest.

    >>> hloom.vmap(lambda x: lax.psum_scatter(x, "i"), axis_name="i")(jnp.array([[1, 2], [30, 40]]))
    Array([31, 42], dtype=int32)
    """
    groups = groups_of_places("psum_scatter", axis_name, axis_index_groups)
    size = _members(axis_name, groups)

    def one(v: Value) -> Value:
        v = _summed(v)
        d = canonical_axis(scatter_dimension, v.aval.ndim)
        shape = v.aval.shape
        if tiled:
            if shape[d] % size:
                raise ValueError(
                    f"tiled psum_scatter operand scatter dimension size {shape[d]} must be divisible by axis size "
                    f"{size}"
                )
            v = ops.reshape(v, [*shape[:d], size, shape[d] // size, *shape[d + 1 :]])
        elif shape[d] != size:
            raise ValueError(f"psum_scatter operand scatter dimension size {shape[d]} must match axis size {size}")
        together = _together(axis_name, groups)
        if len(together) > 1:
            before, after = v.aval.shape[:d], v.aval.shape[d + 1 :]
            v = ops.reshape(v, [*before, *map(axis_size, together), *after])
        for axes in together:
            left = [n for k, n in enumerate(v.aval.shape) if k != d]
            use = _use(axes, _members(axes, groups), (d,), groups=groups)
            v = _bind(_PSUM_SCATTER, use, [v], ShapedArray(tuple(left), v.aval.dtype))
        return v

    return _on_leaves(one, x)


def all_to_all(
    x: Any,
    axis_name: AxisName,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Element k gets the k-th slices along `split_axis` of all elements, stacked along `concat_axis`.

    `split_axis` must have the axis's size, and is removed. tiled: its size is a multiple, and the parts are
    concatenated along the existing dimension `concat_axis`. A tuple of names stands for the elements along all of them,
    the last one fastest.

    >>> hloom.vmap(lambda x: lax.all_to_all(x, "i", 0, 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    groups = groups_of_places("all_to_all", axis_name, axis_index_groups)
    size = _members(axis_name, groups)

    def one(v: Value) -> Value:
        shape = v.aval.shape
        s = canonical_axis(split_axis, len(shape))
        c = canonical_axis(concat_axis, len(shape))
        if (shape[s] % size if tiled else shape[s] != size) or not size:
            must = "be divisible by" if tiled else "equal"
            raise ValueError(
                f"all_to_all requires x.shape[split_axis] to {must} the size of the mapped axis {axis_name}, but they "
                f"are {shape[s]} and {size}"
            )
        if tiled:
            v = ops.reshape(v, [*shape[:s], size, shape[s] // size, *shape[s + 1 :]])
            moved = _exchanged(v, _together(axis_name, groups), s, c, groups)
            sizes = moved.aval.shape
            return ops.reshape(moved, [*sizes[:c], sizes[c] * sizes[c + 1], *sizes[c + 2 :]])
        return _exchanged(v, _together(axis_name, groups), s, c, groups)

    return _on_leaves(one, x)


def _exchanged(v: Value, together: Sequence[tuple[AxisName, ...]], split: int, concat: int, groups: Groups) -> Value:
    """`all_to_all`, not tiled. Over several axes: dimension `split` is divided into one for each axis."""
    if len(together) == 1:
        (axes,), sizes = together, [n for k, n in enumerate(v.aval.shape) if k != split]
        size = _members(axes, groups)
        sizes.insert(concat, size)
        result = ShapedArray(tuple(sizes), v.aval.dtype)
        return _bind(_ALL_TO_ALL, _use(axes, size, (split, concat), groups=groups), [v], result)
    v = moved_dimension(v, split, 0)
    whole, rest = v.aval.shape[0], v.aval.shape[1:]
    v = ops.reshape(v, [*map(axis_size, together), *rest])
    for k, axes in enumerate(together):
        v = _exchanged(v, [axes], k, k, groups)
    return moved_dimension(ops.reshape(v, [whole, *rest]), 0, concat)


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """For each array, the array of the element number `source` along the named axis.

    >>> hloom.vmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i")(jnp.array([1, 2, 3]))
    Array([2, 2, 2], dtype=int32)
    """
    if not 0 <= source < axis_size(axis_name):
        raise ValueError(
            f"pbroadcast: source {source} of the axis {axis_name}, which has {axis_size(axis_name)} elements"
        )

    def one(gathered: Value) -> Value:
        shape = gathered.aval.shape
        row = ops.slice_(gathered, [source, *[0] * (len(shape) - 1)], [source + 1, *shape[1:]])
        return ops.reshape(row, shape[1:])

    return tree.map(one, all_gather(x, axis_name))


def pcast(x: Any, axis_name: AxisName, *, to: str) -> Any:
    """x (a pytree) with arrays that count as different along the named axis from here on. A derivative then belongs to
    each device alone, instead of being summed over all devices that share the value. For `shard_map` over several
    devices; in other functions types do not record the axes along which values vary.

    to: "varying"; "unreduced" and "reduced" are UnsupportedError within such a function.

    >>> hloom.vmap(lambda x: lax.pcast(x, "i", to="varying"), axis_name="i")(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    if to not in ("varying", "unreduced", "reduced"):
        raise ValueError(f'pcast: `to` must be "varying", "unreduced" or "reduced", not {to!r}')
    axis_size(axis_name)
    manual = current_manual_axes()
    if manual is None or not manual.tracks or not manual.owns(_names(axis_name)):
        return tree.map(as_value, x)
    if to != "varying":
        raise UnsupportedError(
            f"pcast to {to!r}: over several devices values vary along an axis or do not; psum makes one that does not"
        )
    return tree.map(lambda leaf: varying(as_value(leaf), frozenset(_names(axis_name)), manual), x)


def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and dimension `axis` of each array exchanged.

    >>> hloom.vmap(lambda x: lax.pswapaxes(x, "i", 0), axis_name="i")(jnp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def _gathered(use: _Use, x: Value, is_batched: bool, axis: Axis) -> tuple[Value, bool]:
    return moved_dimension(with_batch(axis, x, is_batched), 0, use.dims[0]), False


def _sum_scattered(use: _Use, x: Value, is_batched: bool, axis: Axis) -> tuple[Value, bool]:
    total, _ = _reduced(Opcode.ADD)(use, x, is_batched, axis)
    return moved_dimension(total, use.dims[0], 0), True


def _exchanged_here(use: _Use, x: Value, is_batched: bool, axis: Axis) -> tuple[Value, bool]:
    split, concat = use.dims
    x = with_batch(axis, x, is_batched)
    order = [d for d in range(1, x.aval.ndim) if d != split + 1]
    order.insert(concat, 0)
    return ops.transpose(x, [split + 1, *order]), True


_def_linear(_ALL_GATHER, lambda use, ct, aval: _bind(_PSUM_SCATTER, use, [ct], aval))
_def_linear(_PSUM_SCATTER, lambda use, ct, aval: _bind(_ALL_GATHER, use, [ct], aval))
_def_linear(_ALL_TO_ALL, lambda use, ct, aval: _bind(_ALL_TO_ALL, replace(use, dims=use.dims[::-1]), [ct], aval))
_def_batch(_ALL_GATHER, _gathered)
_def_batch(_PSUM_SCATTER, _sum_scattered)
_def_batch(_ALL_TO_ALL, _exchanged_here)


# --- position


_AXIS_INDEX = _collective("axis_index")


class _Places(threading.local):
    """For this thread: names of axes with their places, and how many axes of that name are around."""

    def __init__(self) -> None:
        self.known: list[tuple[AxisName, int, Value]] = []


_places = _Places()


@contextmanager
def at_places(places: Mapping[AxisName, Value]) -> Iterator[None]:
    """Within the block, `axis_index` of these axes, which are bound, is known: the axes of a kernel's grid."""
    before = len(_places.known)
    _places.known += [(name, _count(name), value) for name, value in places.items()]
    try:
        yield
    finally:
        del _places.known[before:]


def _count(name: AxisName) -> int:
    return sum([known == name for known, _ in current_context().axis_names])


def _known_place(name: AxisName) -> Value | None:
    """The place along the innermost axis of a name, if it is known."""
    for known, count, value in reversed(_places.known):
        if known == name:
            return value if count == _count(name) else None
    return None


def axis_index(axis_name: AxisName) -> Value:
    """The element's position along a named axis, an int32; for a tuple of names, the last one counts fastest.

    >>> hloom.vmap(lambda x: x + lax.axis_index("i"), axis_name="i")(jnp.array([10, 20]))
    Array([10, 21], dtype=int32)
    """
    index = None
    for name in _names(axis_name):
        size = _size(name)
        own = _known_place(name)
        if own is None:
            own = _bind(_AXIS_INDEX, _use((name,), size), [], ShapedArray((), dtypes.int32))
        index = own if index is None else ops.add(ops.mul(index, ops.scalar_like(index, size)), own)
    return cast(Value, index)


@_AXIS_INDEX.def_batch
def _axis_index_batch(
    call: Call, operands: Sequence[Value], batched: Sequence[bool], axis: Axis
) -> tuple[list[Value], list[bool]]:
    return [iota(dtypes.int32, axis.size)], [True]
