"""Control flow that is made of other functions: map, associative_scan. `tracer/` has scan, while_loop, cond and switch.

Source for names, arguments and errors: jax.lax.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.vmap import vmap
from ..tracer import ops, tree
from ..tracer import scan as _loops
from ..tracer.array import as_value
from ..tracer.body_types import differ, leaf_names, require_functions
from ..tracer.core import Value
from ..tracer.errors import AxisError, TreeStructureError
from ..tracer.source import function_line, user_line

__all__ = ["associative_scan", "map"]


def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """f applied to each x along the first axis of `xs` (a pytree), one after the other; the stacked results.

    `batch_size`: so many at once, by `vmap`; those that are left over are one more batch. 0: all at once.

    >>> from hloom import lax, numpy as jnp
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
    rest = vmap(f)(tree.unflatten(treedef, _part(values, [0] * len(values), full, count)))
    return tree.map(lambda a, b: ops.concatenate([a, b], 0), done, rest)


def _batch_size(batch_size: Any) -> int:
    try:
        size = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"map: batch_size must be an int or None, not {batch_size!r}\n  at {user_line()}") from None
    if size < 0:
        raise ValueError(f"map: batch_size is negative: {size}\n  at {user_line()}")
    return size


def _reshaped(x: Value, count: int, leading: tuple[int, ...]) -> Value:
    """The first `count` rows with other leading dimensions."""
    (rows,) = _part([x], [0], 0, count)
    return ops.reshape(rows, (*leading, *x.aval.shape[1:]))


# ---- associative_scan


def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """All prefixes of `elems` along `axis`, combined by the associative `fn`: [a, fn(a, b), fn(fn(a, b), c), ...].

    `elems` is a pytree of arrays with the same size along `axis`; fn takes and returns such trees, and works element by
    element along `axis`. It is called some 2 log2(n) times, on slices. `reverse`: suffixes, [..., fn(c, b), c]; the
    first operand of `fn` is then the later one. Source: Blelloch, Prefix Sums and Their Applications (1990).

    >>> from hloom import lax, numpy as jnp
    >>> lax.associative_scan(jnp.maximum, jnp.array([1, 3, 2, 5, 4]))
    Array([1, 3, 3, 5, 5], dtype=int32)
    >>> lax.associative_scan(jnp.add, jnp.array([1, 2, 3]), reverse=True)
    Array([6, 5, 3], dtype=int32)
    """
    require_functions("associative_scan", fn=fn)
    leaves, treedef = tree.flatten(elems)
    values = [as_value(leaf) for leaf in leaves]
    axes = _same_sizes(values, treedef, axis)
    if reverse:
        values = [ops.reverse(v, [d]) for v, d in zip(values, axes)]

    def combine(a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        result = fn(tree.unflatten(treedef, a), tree.unflatten(treedef, b))
        return _combined(fn, result, a, treedef)

    found = prefixes(combine, values, axes)
    if reverse:
        found = [ops.reverse(v, [d]) for v, d in zip(found, axes)]
    return tree.unflatten(treedef, found)


def _same_sizes(values: Sequence[Value], treedef: Any, axis: int) -> list[int]:
    """The axis of each array, counted from the front. AxisError or ValueError unless all are equally long along it."""
    names = leaf_names(treedef, "elems")
    if not values:
        raise ValueError(f"associative_scan: elems has no arrays\n  at {user_line()}")
    for v, name in zip(values, names, strict=True):
        if not -v.aval.ndim <= axis < v.aval.ndim:
            raise AxisError(
                f"associative_scan: axis {axis} is out of bounds for {name}, an array of {v.aval.ndim} dimensions\n"
                f"  at {user_line()}"
            )
    axes = [axis % v.aval.ndim for v in values]
    sizes = [v.aval.shape[d] for v, d in zip(values, axes, strict=True)]
    if len(set(sizes)) > 1:
        listed = ", ".join([f"{name} has {size}" for name, size in zip(names, sizes, strict=True)])
        raise ValueError(
            f"associative_scan: all arrays must have the same size along axis {axis}: {listed}\n  at {user_line()}"
        )
    return axes


def _combined(fn: Callable[..., Any], result: Any, like: Sequence[Value], treedef: Any) -> list[Value]:
    """The leaves of what `fn` returned. TreeStructureError unless they have the types of its operands."""
    leaves, found = tree.flatten(result)
    where = f"\n  fn is {function_line(fn)}\n  at {user_line()}"
    if found != treedef:
        raise TreeStructureError(
            f"associative_scan: fn must return the structure that it takes, {tree.describe(treedef)}, not "
            f"{tree.describe(found)}{where}"
        )
    values = [as_value(leaf) for leaf in leaves]
    for v, old, name in zip(values, like, leaf_names(treedef, "elems"), strict=True):
        if differ(v.aval, old.aval):
            raise TreeStructureError(
                f"associative_scan: fn must return the types that it takes, but for {name} it takes "
                f"{old.aval.str_short()} and returns {v.aval.str_short()}{where}"
            )
    return values


def prefixes(
    combine: Callable[[Sequence[Value], Sequence[Value]], list[Value]], values: list[Value], axes: Sequence[int]
) -> list[Value]:
    """All prefixes of arrays along their `axes`, combined: about two uses of `combine` for each element.

    The prefixes with an odd index are those of neighbours combined. Each with an even index is the one before it,
    combined with one more element.
    """
    size = values[0].aval.shape[axes[0]]
    if size < 2:
        return values
    pairs = combine(_every_second(values, axes, 0, size - 1), _every_second(values, axes, 1, size))
    odd = prefixes(combine, pairs, axes)
    first = _part(values, axes, 0, 1)
    if size == 2:
        return _joined([first, odd], axes)
    before = odd if size % 2 else _part(odd, axes, 0, size // 2 - 1)
    even = combine(before, _every_second(values, axes, 2, size))
    return [_interleaved(e, o, d) for e, o, d in zip(_joined([first, even], axes), odd, axes, strict=True)]


def _part(values: Sequence[Value], axes: Sequence[int], start: int, stop: int, step: int = 1) -> list[Value]:
    """Elements from `start` to `stop` along each array's axis."""
    found = []
    for v, d in zip(values, axes, strict=True):
        shape = v.aval.shape
        starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
        starts[d], limits[d], strides[d] = start, stop, step
        found.append(ops.slice_(v, starts, limits, strides))
    return found


def _every_second(values: Sequence[Value], axes: Sequence[int], start: int, stop: int) -> list[Value]:
    return _part(values, axes, start, stop, 2)


def _joined(parts: Sequence[Sequence[Value]], axes: Sequence[int]) -> list[Value]:
    return [ops.concatenate(column, d) for *column, d in zip(*parts, axes, strict=True)]


def _interleaved(even: Value, odd: Value, axis: int) -> Value:
    """even[0], odd[0], even[1], ... along `axis`. No element is computed with, so that signs of zeros are kept."""
    shape = odd.aval.shape
    count = shape[axis]
    with_new = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    (head,) = _part([even], [axis], 0, count)
    pairs = ops.concatenate([ops.reshape(head, with_new), ops.reshape(odd, with_new)], axis + 1)
    whole = ops.reshape(pairs, (*shape[:axis], 2 * count, *shape[axis + 1 :]))
    if even.aval.shape[axis] == count:
        return whole
    (last,) = _part([even], [axis], count, count + 1)
    return ops.concatenate([whole, last], axis)
