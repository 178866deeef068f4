"""`vmap`: a function of one element becomes one of a batch. Here are arguments and axes; `batching.py` has the rest."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np

from ..hlo.sizes import as_size
from ..hlo.support.tracebacks import boundary
from ..tracer import dtypes
from ..tracer.arguments import NO_STATICS, check_function, leaf_names
from ..tracer.arrays.array import as_value
from ..tracer.arrays.float0 import float0, is_float0
from ..tracer.arrays.indices import iota
from ..tracer.arrays.operators import ArrayBase
from ..tracer.arrays.overlay import overlaid, storage_of
from ..tracer.aval import ANY_OVER_DEVICES, ShapedArray
from ..tracer.core import Value, current_trace, scope, set_current_trace
from ..tracer.errors import OperandError
from ..tracer.ops import transpose
from ..tracer.references.refs import Ref, check_aliases, refuse_parts, refuse_result
from ..tracer.settings.context import current_context
from ..tracer.sharding.partition_spec import axes_of
from ..tracer.source import function_line, user_line
from ..tracer.tracer import check_for_leaks
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .batches import Axis, with_batch
from .batching import BatchTrace, named
from .rules import families as families  # says where the rules are
from .vmappable import SPEC_TYPES, VMAPPABLES, is_vmappable

P = ParamSpec("P")
R = TypeVar("R")


def vmap(
    fun: Callable[P, R],
    in_axes: int | Sequence[Any] | None = 0,
    out_axes: Any = 0,
    axis_name: Hashable | None = None,
    axis_size: int | None = None,
    spmd_axis_name: Hashable | tuple[Hashable, ...] | None = None,
) -> Callable[P, R]:
    """The function that applies `fun` to each element of batches of arguments, all at once. JAX's `vmap`.

    Args:
      fun: takes and returns pytrees of arrays.
      in_axes: along which axis of each positional argument the batch lies: an integer (negative: from the end), None
        for a value that all elements share, which reaches `fun` unchanged, or a tuple with one entry for each argument;
        an entry may be a pytree of these, a prefix of the argument. Keyword arguments have the batch along axis 0.
      out_axes: the same for the result: where the batch is put. None: the result must be the same for all elements.
      axis_name: the name of the batch for collectives (`hloom.lax.psum`, ...).
      axis_size: the number of elements; needed if no argument has a batch.
      spmd_axis_name: accepted: Explicit axes of a mesh divide a batch as the arguments say, and others as the
        partitioner finds. ValueError where it is another axis than the Explicit ones that divide the batch.

    Raises (when called):
      ValueError: the sizes of the axes differ, an axis is out of range, the trees do not fit, a result differs
        between elements where `out_axes` says None, or Explicit axes of a mesh divide the batches in several ways.

    >>> dot = lambda v, w: jnp.sum(v * w)
    >>> hloom.vmap(dot)(jnp.array([[1, 2], [3, 4]]), jnp.array([[1, 1], [10, 10]]))
    Array([ 3, 70], dtype=int32)
    >>> hloom.vmap(dot, in_axes=(0, None))(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 10]))
    Array([21, 43], dtype=int32)
    """
    check_function(fun, "vmap")
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    if not (in_axes is None or type(in_axes) in {int, tuple, *SPEC_TYPES} or hasattr(in_axes, "__index__")):
        raise TypeError(
            "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments passed "
            f"to the function, but got {in_axes!r}."
        )
    _check_axes("in_axes", in_axes)
    _check_axes("out_axes", out_axes)
    function: Callable[..., Any] = fun

    @wraps(fun)
    @boundary
    def batched(*args: P.args, **kwargs: P.kwargs) -> Any:
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ValueError(
                "vmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
                f"passed to the function, but got {len(in_axes)=}, {len(args)=}{_of(fun)}"
            )
        leaves, structure = tree.flatten((args, kwargs), is_vmappable if VMAPPABLES else None)
        axes = _axes_of("in_axes", (in_axes, 0), (args, kwargs), structure, fun)
        values = [_argument(leaf, a) for leaf, a in zip(leaves, axes, strict=True)]
        places = [_normalized(a, v, fun, args, k) for k, (a, v) in enumerate(zip(axes, values, strict=True))]
        axis = Axis(axis_name, _size(values, places, axis_size, fun, args, kwargs))
        if ANY_OVER_DEVICES:
            _check_divisions(values, places, spmd_axis_name)
        trace = BatchTrace(current_trace(), axis)
        if any(isinstance(leaf, Ref) for leaf in leaves):
            refuse_parts((args, kwargs), "vmap")
            check_aliases(leaves, leaf_names(fun, args, kwargs, NO_STATICS), (), "vmap")
        inputs = [_element(trace, v, a) for v, a in zip(values, places, strict=True)]
        with set_current_trace(trace), named(axis), scope("vmap()"):
            args_in, kwargs_in = tree.unflatten(structure, inputs)
            result = function(*args_in, **kwargs_in)
            out_leaves, out_tree = tree.flatten(result, is_vmappable if VMAPPABLES else None)
            for leaf in out_leaves:
                refuse_result(leaf, "vmap", function_line(fun))
            out_values = [_output(leaf, fun) for leaf in out_leaves]
        for outside, inside, place in zip(leaves, inputs, places, strict=True):
            if isinstance(outside, Ref) and place is not None:
                outside.replace(_result(trace, inside._value, place, fun))
        out = _axes_of("out_axes", out_axes, result, out_tree, fun)
        if VMAPPABLES:
            with set_current_trace(trace), named(axis):  # rules of libraries may compute with elements
                out_values = [_collected(trace, v, a, fun) for v, a in zip(out_values, out, strict=True)]
        found = [v if is_vmappable(v) else _result(trace, v, a, fun) for v, a in zip(out_values, out, strict=True)]
        if current_context().check_tracer_leaks:
            check_for_leaks(trace)
        return tree.unflatten(out_tree, found)

    if getattr(fun, "__doc__", None):
        name = getattr(fun, "__name__", "the function")
        batched.__doc__ = (
            f"Vectorized version of {name}. Takes similar arguments as {name} but with additional array axes over "
            f"which {name} is mapped.\n\nOriginal documentation:\n\n{fun.__doc__}"
        )
    return batched


# --- axes


def _check_axes(what: str, axes: Any) -> None:
    for leaf in tree.leaves(axes):
        if (not isinstance(leaf, int | np.integer) or isinstance(leaf, bool)) and type(leaf) not in SPEC_TYPES:
            raise TypeError(
                f"vmap {what} must be an int, None, or (nested) container with those types as leaves, but got {axes!r}"
            )


def _axes_of(what: str, axes: Any, full: Any, structure: Any, fun: Callable[..., Any]) -> list[int | None]:
    """The axis of each leaf of `full`; `axes` is a prefix tree of it; None is an axis."""
    if VMAPPABLES:  # some leaves may be trees themselves
        full = tree.unflatten(structure, range(structure.num_leaves))
    try:
        spread = tree.broadcast_prefix(axes, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        given = axes[0] if what == "in_axes" else axes
        raise ValueError(
            f"vmap {what} specification must be a tree prefix of the corresponding value; got specification {given} "
            f"for value tree {structure}: {error}{_of(fun)}"
        ) from None
    return [None if a is None else operator.index(a) if type(a) not in SPEC_TYPES else a for a in spread]


def _argument(leaf: Any, axis: int | None) -> Any:
    """A leaf of an argument as a value. float0 arrays, objects with a rule of their own, and values that all elements
    share do not change: a Python number can be a size."""
    return leaf if axis is None or is_float0(leaf) or isinstance(leaf, Ref) or is_vmappable(leaf) else as_value(leaf)


def _normalized(
    axis: int | None, value: Any, fun: Callable[..., Any], args: tuple[Any, ...], place: int
) -> int | None:
    """The axis of the leaf at `place`, counted from 0; that of an object with a rule of its own is as given."""
    if axis is None or is_vmappable(value):
        return axis
    shape = value.shape
    rank = len(shape)
    if not -rank <= axis < rank:
        needed = axis + 1 if axis >= 0 else -axis
        raise ValueError(
            f"vmap was requested to map its argument along axis {axis}, which implies that its rank should be at least "
            f"{needed}, but is only {rank} (its shape is {shape})\n  It is {_name_of(fun, args, place)}; None in "
            f"in_axes does not map it.{_of(fun)}"
        )
    return axis % rank


def _check_divisions(values: Sequence[Any], places: Sequence[int | None], spmd_axis_name: Any) -> None:
    """ValueError unless Explicit axes of a mesh divide all batches alike, and no value that elements share."""
    types = [getattr(v, "aval", None) for v in values]
    pairs = [(t, p) for t, p in zip(types, places, strict=True) if isinstance(t, ShapedArray)]
    entries = [None if t.division is None else t.division.spec.partitions[p] for t, p in pairs if p is not None]
    for entry in entries:
        if entry != entries[0]:
            raise ValueError(
                "Mapped away dimension of inputs passed to vmap should be sharded the same. Got inconsistent axis "
                f"specs: {entries[0]} vs {entry}"
            )
    axes = axes_of(entries[0]) if entries else ()
    for t, p in pairs:
        if p is None and t.division is not None and {*axes} & {*t.division.spec.axes()}:
            raise ValueError(
                "Unmapped values passed to vmap cannot be sharded along the mesh axis you are vmapping over. Got type: "
                f"{t.str_short(True)}, in_axes: None and vmapped mesh axis: {axes}"
            )
    named_axes = spmd_axis_name if isinstance(spmd_axis_name, tuple) else (spmd_axis_name,)
    if axes and spmd_axis_name is not None and named_axes != axes:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on `Explicit` mesh axis type is allowed. Got "
            f"spmd_axis_name={spmd_axis_name} and arrays sharded on {axes}"
        )


def _name_of(fun: Callable[..., Any], args: tuple[Any, ...], place: int) -> str:
    """The leaf at `place` in messages."""
    names = leaf_names(fun, args, {}, NO_STATICS)
    return f"argument {names[place]}" if place < len(names) else "an argument given by keyword"


def _size(
    values: Sequence[Any],
    places: Sequence[int | None],
    axis_size: int | None,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> int:
    sizes: dict[int, int] = {
        k: size
        for k, (v, p) in enumerate(zip(values, places, strict=True))
        if p is not None and (size := _size_along(v, p)) is not None
    }
    wanted = None if axis_size is None else as_size(axis_size)
    if not sizes and wanted is None:
        if not values:
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing an array or axis_size must be "
                f"specified, got empty *args={args} and **kwargs={kwargs}{_of(fun)}"
            )
        raise ValueError(f"vmap must have at least one non-None value in in_axes{_of(fun)}")
    counted = Counter(sizes.values())
    if len({*counted, *(() if wanted is None else (wanted,))}) > 1:
        names = [f"argument {name}" for name in leaf_names(fun, args, {}, NO_STATICS)]
        names += leaf_names(fun, (), {f"kwargs[{key!r}]": value for key, value in kwargs.items()}, NO_STATICS)
        lines = [] if wanted is None else [f"  * the `axis_size` argument was {wanted};"]
        for size, count in counted.most_common():
            members = [k for k, s in sizes.items() if s == size]
            first = members[0]
            value = values[first]
            own = "float0" if is_float0(value) else type(value).__name__
            kind = value.aval.str_short() if isinstance(value, ArrayBase) else f"{own}{list(value.shape)}"
            example = f"axis {places[first]} of {names[first]} of type {kind}"
            if count == 1:
                lines.append(f"  * one axis had size {size}: {example};")
            else:
                some = "most" if size == counted.most_common()[0][0] else "some"
                lines.append(f"  * {some} axes ({count} of them) had size {size}, e.g. {example};")
        raise ValueError(
            "vmap got inconsistent sizes for array axes to be mapped:\n" + "\n".join(lines)[:-1]
            + f"\n  Make these sizes equal; None in in_axes does not map an argument.{_of(fun)}"
        )
    return wanted if wanted is not None else next(iter(counted))


def _size_along(value: Any, axis: Any) -> int | None:
    """The number of elements; None for an object with a rule of its own that does not say it by its shape."""
    if not is_vmappable(value):
        return value.shape[axis]  # type: ignore[no-any-return]
    try:
        return as_size(value.shape[axis])
    except (AttributeError, IndexError, TypeError):
        return None


def _element(trace: BatchTrace, value: Any, axis: Any) -> Any:
    """One element of `value`, which has the batch along `axis`."""
    if is_vmappable(value):
        rule = VMAPPABLES[type(value)].to_elt
        return rule(partial(_part, trace), partial(_index, trace), value, axis)
    if axis is None:
        return value
    if is_float0(value):
        return np.zeros(value.shape[:axis] + value.shape[axis + 1 :], float0)
    if isinstance(value, Ref):
        element = _element(trace, value.current(), axis)
        with set_current_trace(trace):
            return Ref(element, "of the batched function", value.aval.kind)
    storage = storage_of(value)
    order = (axis, *(d for d in range(storage.aval.ndim) if d != axis))
    tracer: Value = trace.join(transpose(storage, order), True)
    shape = value.aval.shape[:axis] + value.aval.shape[axis + 1 :]
    aval = ShapedArray(shape, value.aval.dtype, value.aval.weak_type)
    return trace.with_weak_type(overlaid(tracer, aval), aval.weak_type)


def _part(trace: BatchTrace, value: Any, axis: Any) -> Any:
    """One element of a part of an object with a rule of its own."""
    if axis is None or is_vmappable(value):
        return _element(trace, value, axis)
    found = as_value(value)
    return _element(trace, found, range(found.aval.ndim)[axis])


def _index(trace: BatchTrace) -> Value:
    """The number of the element."""
    with set_current_trace(trace.parent):
        return trace.join(iota(dtypes.int32, (trace.axis.size,), 0), True)


def _collected(trace: BatchTrace, value: Any, axis: Any, fun: Callable[..., Any]) -> Any:
    """The object with `value` as its element, if it has a rule of its own; else `value`."""
    if not is_vmappable(value):
        return value

    def cont(size: int, part: Any, axis: Any) -> Any:
        found = _collected(trace, part, axis, fun)
        if is_vmappable(found):
            return found
        with set_current_trace(trace.parent):
            return _result(trace, as_value(found), axis, fun)

    return VMAPPABLES[type(value)].from_elt(cont, trace.axis.size, value, axis)


def _output(leaf: Any, fun: Callable[..., Any]) -> Any:
    if is_float0(leaf) or is_vmappable(leaf):
        return leaf
    try:
        return as_value(leaf)
    except OperandError:
        raise TypeError(
            f"Output from batched function {leaf!r} with type {type(leaf)} is not a valid JAX type: an array or a "
            f"number is needed{_of(fun)}"
        ) from None


def _result(trace: BatchTrace, value: Any, axis: int | None, fun: Callable[..., Any]) -> Any:
    """The batch with `value` as its element, along `axis` of the result."""
    if is_float0(value):
        if axis is None:
            return value
        place = _out_place(axis, value.ndim + 1, "float0", fun)
        return np.zeros((*value.shape[:place], trace.axis.size, *value.shape[place:]), float0)
    aval = value.aval
    (storage,), (is_batched,) = trace.split([storage_of(value)])
    if axis is None:
        if is_batched:
            name = trace.axis.name
            rule = (
                "at vmap out_axes, got axis spec None but output was batched on axis 0"
                if name is None
                else f"vmap has mapped output (axis_name={name}) but out_axes is None"
            )
            raise ValueError(
                f"{rule}: the result of type {aval.str_short()} differs between elements. Give it an axis in out_axes"
                f"{_of(fun)}"
            )
        return value
    axis = _out_place(axis, aval.ndim + 1, aval.str_short(), fun)
    full = with_batch(trace.axis, storage, is_batched)
    order = [*range(1, axis + 1), 0, *range(axis + 1, full.aval.ndim)]
    shape = (*aval.shape[:axis], trace.axis.size, *aval.shape[axis:])
    batch = ShapedArray(shape, aval.dtype, aval.weak_type)
    return trace.with_weak_type(overlaid(transpose(full, order), batch), aval.weak_type)


def _out_place(axis: int, rank: int, kind: str, fun: Callable[..., Any]) -> int:
    if not -rank <= axis < rank:
        raise ValueError(
            f"vmap out_axes: axis {axis} is out of bounds for array of dimension {rank}, the batch of results of which "
            f"one has type {kind}"
            f"{_of(fun)}"
        )
    return axis % rank


def _of(fun: Callable[..., Any]) -> str:
    line = user_line()
    return f"\n  mapping {function_line(fun)}" + (f"\n  called at {line}" if line else "")
