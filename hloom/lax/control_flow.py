"""Control flow that is made of other functions: map, associative_scan. `tracer/` has scan, while_loop, cond and switch.

Names, arguments and errors follow jax.lax.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.vmap import vmap
from ..hlo.opcode import Opcode
from ..hlo.sizes import is_symbolic
from ..tracer import dtypes, ops
from ..tracer.arrays.array import as_value
from ..tracer.aval import ShapedArray
from ..tracer.control_flow import scan as _loops
from ..tracer.control_flow.scan import states
from ..tracer.control_flow.types import differ, leaf_names, require_functions
from ..tracer.core import Value
from ..tracer.errors import AxisError, TreeStructureError
from ..tracer.recording import trace_to_computation
from ..tracer.settings.context import current_context
from ..tracer.source import function_line
from ..tracer.trees import tree
from .movement import moved_dimension
from .prefixes import part_of, prefixes
from .reduce import cummax, cummin, cumprod, cumsum


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """f applied to each x along the first axis of `xs` (a pytree), one after the other; the stacked results.

    `batch_size`: so many at once, by `vmap`; those that are left over are one more batch. 0: all at once.

    >>> lax.map(lambda row: row @ row, jnp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array([ 5., 25.], dtype=float32)
    """
    if batch_size is None:
        return _loops.map(f, xs)
    require_functions("map", f=f)
    leaves, treedef = tree.flatten(xs)
    values = [as_value(leaf) for leaf in leaves]
    count, size = _loops.length_of(values, treedef), _batch_size(batch_size)
    if not size or size >= count > 0:
        return vmap(f)(xs)
    full = count - count % size
    batches = [_reshaped(v, full, (full // size, size)) for v in values]
    results = _loops.map(vmap(f), tree.unflatten(treedef, batches))
    done = tree.map(lambda y: ops.reshape(y, (full, *y.aval.shape[2:])), results)
    if full == count:
        return done
    rest = vmap(f)(tree.unflatten(treedef, part_of(values, [0] * len(values), full, count)))
    return tree.map(lambda a, b: ops.concatenate([a, b], 0), done, rest)


def _batch_size(batch_size: Any) -> int:
    try:
        size = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"map: batch_size must be an int or None, not {batch_size!r}") from None
    if size < 0:
        raise ValueError(f"map: batch_size is negative: {size}")
    return size


def _reshaped(x: Value, count: int, leading: tuple[int, ...]) -> Value:
    """The first `count` rows with other leading dimensions."""
    (rows,) = part_of([x], [0], 0, count)
    return ops.reshape(rows, (*leading, *x.aval.shape[1:]))


# ---- associative_scan


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of `elems` along `axis`, combined by the associative `fn`: [a, fn(a, b), fn(fn(a, b), c), ...].

    `elems` is a pytree of arrays with the same size along `axis`; fn takes such trees and returns as many arrays, and
    works element by element along `axis`. `reverse`: suffixes, [..., fn(c, b), c]; the first operand of `fn` is then
    the later one.

    It is one loop along the axis, which combines in the order that is written above. A sum, product, maximum or minimum
    of one array is the cumulative function of that name, such as `cumsum`: more exact, and shared by threads.

    >>> lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2, 5, 4]))
    Array([1, 3, 3, 5, 5], dtype=int32)
    >>> lax.associative_scan(jnp.add, jnp.array([1, 2, 3]), reverse=True)
    Array([6, 5, 3], dtype=int32)
    """
    require_functions("associative_scan", fn=fn)
    leaves, treedef = tree.flatten(elems)
    values = [as_value(leaf) for leaf in leaves]
    axes = _same_sizes(values, treedef, axis)

    def combine(a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        result = fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b))
        return _combined(fn, result, a, treedef)

    size = values[0].aval.shape[axes[0]]
    if not is_symbolic(size) and size < 2:
        return tree.unflatten(treedef, values)
    if current_context().disable_jit:
        return tree.unflatten(treedef, _as_tree(combine, values, axes, reverse))
    cumulative = _cumulative_function(combine, values, axes)
    if cumulative is not None:
        return tree.unflatten(treedef, [cumulative(values[0], axes[0], reverse)])
    return tree.unflatten(treedef, _as_loop(fn, treedef, combine, values, axes, bool(reverse)))


_Combine = Callable[[Sequence[Value], Sequence[Value]], list[Value]]

_CUMULATIVE = {Opcode.ADD: cumsum, Opcode.MULTIPLY: cumprod, Opcode.MAXIMUM: cummax, Opcode.MINIMUM: cummin}


def _as_tree(combine: _Combine, values: list[Value], axes: Sequence[int], reverse: bool) -> list[Value]:
    """Prefixes by a tree of slices: few calls of `combine`, which run one by one."""
    if reverse:
        values = [ops.reverse(v, [d]) for v, d in zip(values, axes)]
    found = prefixes(combine, values, axes)
    return [ops.reverse(v, [d]) for v, d in zip(found, axes)] if reverse else found


def _cumulative_function(combine: _Combine, values: list[Value], axes: Sequence[int]) -> Callable[..., Value] | None:
    """The cumulative function that has these prefixes, if `combine` is one operation on numbers of one array."""
    if len(values) != 1 or not (dtypes.is_inexact(values[0].aval.dtype) or dtypes.is_integer(values[0].aval.dtype)):
        return None
    aval = values[0].aval
    shape = tuple([1 if d == axes[0] else size for d, size in enumerate(aval.shape)])
    row = ShapedArray(shape, aval.dtype, aval.weak_type, vma=aval.vma)
    found = trace_to_computation(lambda pair: combine(pair[:1], pair[1:]), [row, row], "pair")
    computation = found.computation
    root = computation.root
    if root.opcode is Opcode.TUPLE and len(root.operands) == 1:
        root = root.operands[0]
    if set(root.operands) != set(computation.parameters[:2]) or len(root.operands) != 2:
        return None
    return _CUMULATIVE.get(root.opcode)


def _as_loop(
    fn: Callable[..., Any], treedef: Any, combine: _Combine, values: list[Value], axes: Sequence[int], reverse: bool
) -> list[Value]:
    """Prefixes by a loop along the axis. Its state is the slice that it has reached, with size 1 along the axis."""
    lines = [moved_dimension(v, d, 0) for v, d in zip(values, axes)]  # first: slicing whole arrays is part of the loop
    leading = [0] * len(lines)
    size = lines[0].aval.shape[0]
    first = size - 1 if reverse else 0
    ends = part_of(lines, leading, first, first + 1)
    rest = part_of(lines, leading, 1 - (first > 0), size - (first > 0))

    def as_slice(row: Value, like: Value, d: int) -> Value:
        shape = like.aval.shape
        return ops.reshape(row, (*shape[:d], 1, *shape[d + 1 :]))

    start = [as_slice(end, v, d) for end, v, d in zip(ends, values, axes)]

    def step(state: list[Value], given: list[Value]) -> list[Value]:
        return combine(state, [ops.reshape(row, old.aval.shape) for row, old in zip(given, state)])

    stacked = states(fn, ("associative_scan", treedef, tuple(axes)), step, start, rest, reverse)
    joined = [ops.concatenate([y, end] if reverse else [end, y], 0) for y, end in zip(stacked, ends)]
    return [moved_dimension(whole, 0, d) for whole, d in zip(joined, axes)]


def _same_sizes(values: Sequence[Value], treedef: Any, axis: int) -> list[int]:
    """The axis of each array, counted from the front. AxisError or ValueError unless all are equally long along it."""
    names = leaf_names(treedef, "elems")
    if not values:
        raise ValueError("associative_scan: elems has no arrays")
    for v, name in zip(values, names, strict=True):
        if not -v.aval.ndim <= axis < v.aval.ndim:
            raise AxisError(
                f"associative_scan: axis {axis} is out of bounds for {name}, an array of {v.aval.ndim} dimensions: "
                "all arrays must have it"
            )
    axes = [axis % v.aval.ndim for v in values]
    sizes = [v.aval.shape[d] for v, d in zip(values, axes, strict=True)]
    if len(set(sizes)) > 1:
        listed = ", ".join([f"{name} has {size}" for name, size in zip(names, sizes, strict=True)])
        raise ValueError(f"associative_scan: all arrays must have the same size along axis {axis}: {listed}")
    return axes


def _combined(fn: Callable[..., Any], result: Any, like: Sequence[Value], treedef: Any) -> list[Value]:
    """The leaves of the result of `fn`. TreeStructureError unless they have the types of its operands. The containers
    may be others: a tuple for a named tuple."""
    leaves, found = tree.flatten(result)
    where = f"\n  fn is {function_line(fn)}"
    if len(leaves) != len(like):
        raise TreeStructureError(
            "associative_scan: fn must return a structure of as many arrays as it takes, "
            f"{tree.describe(treedef)}, not {tree.describe(found)}{where}"
        )
    values = [as_value(leaf) for leaf in leaves]
    for v, old, name in zip(values, like, leaf_names(treedef, "elems"), strict=True):
        if differ(v.aval, old.aval):
            raise TreeStructureError(
                f"associative_scan: fn must return the types that it takes, but for {name} it takes "
                f"{old.aval.str_short()} and returns {v.aval.str_short()}{where}"
            )
    return values


