"""pmap: a function applied to the elements of its arguments along an axis, each on a device of its own.

It is `shard_map` over a mesh of one axis; parts lose that axis. Names, arguments and errors follow jax.pmap.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..tracer import ops
from ..tracer.arguments import check_function
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import overlaid, storage_of
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, current_trace
from ..tracer.jit import jit
from ..tracer.sharding.devices import CpuDevice, check_device, local_devices
from ..tracer.sharding.devices import devices as known_devices
from ..tracer.sharding.mesh import AxisType, Mesh
from ..tracer.sharding.partition_spec import PartitionSpec
from ..tracer.sharding.placement import placed
from ..tracer.sharding.shardings import NamedSharding
from ..tracer.source import function_line
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .sharded import call_over_mesh, call_with_axes


def pmap(
    fun: Callable[..., Any],
    axis_name: Hashable | None = None,
    *,
    in_axes: Any = 0,
    out_axes: Any = 0,
    static_broadcasted_argnums: int | Iterable[int] = (),
    devices: Sequence[Any] | None = None,
    backend: str | None = None,
    axis_size: int | None = None,
    donate_argnums: int | Iterable[int] = (),
) -> Any:
    """`fun` compiled, and applied to each element of its arguments along an axis, on a device of its own: at most as
    many as there are devices in this process.

    in_axes, out_axes: as in `vmap`. axis_name: the name of the axis for collectives. devices: those to use, as many as
    elements. axis_size: the number of elements, where no argument says it.
    static_broadcasted_argnums, donate_argnums: as jit's static and donated arguments.

    Raises (when called): ValueError for a mapped axis of another size, or sizes that differ.

    >>> hloom.pmap(lambda x: hloom.lax.psum(x, "i"), axis_name="i")(jnp.ones((1, 2)))
    Array([[1., 1.]], dtype=float32)
    """
    check_function(fun, "pmap")
    if devices is not None:
        if not list(devices):
            raise ValueError("'devices' argument to pmap must be non-empty, or None.")
        for device in devices:
            check_device(device, "pmap's devices")
    if backend is not None:
        known_devices(backend)
    statics = _numbers(static_broadcasted_argnums)
    axes = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    for leaf in tree.leaves((axes, out_axes)):
        if isinstance(leaf, bool) or not isinstance(leaf, int):
            raise TypeError(
                "pmap in_axes and out_axes must be an int, None, or (nested) container with those types as leaves, but "
                f"got {in_axes!r} and {out_axes!r}"
            )
    name: Hashable = _NoName() if axis_name is None else axis_name
    asked = _Asked(axes, out_axes, statics, name, None if devices is None else tuple(devices), axis_size)

    @wraps(fun)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        return _call(fun, asked, args, kwargs)

    jitted = jit(mapped, static_argnums=statics or None, donate_argnums=_numbers(donate_argnums) or None)
    forms = [(tuple(leaves), structure) for leaves, structure in map(_flat, (axes, out_axes))]
    return jitted.with_programs_of(fun, ("pmap", axis_name, *forms, statics, asked.devices, axis_size))


class _Asked(NamedTuple):
    """The arguments of `pmap`."""

    in_axes: Any
    out_axes: Any
    statics: tuple[int, ...]
    axis_name: Hashable
    devices: tuple[CpuDevice, ...] | None
    axis_size: int | None


def _call(fun: Callable[..., Any], asked: _Asked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of a mapped function. A function of the module, which a pickle of the mapped function names."""
    axes, out_axes, statics, name, chosen, axis_size = asked
    if statics and max(statics) >= len(args):
        raise ValueError(
            f"pmapped function has static_broadcasted_argnums={statics} but was called with only {len(args)} "
            f"positional argument{'' if len(args) == 1 else 's'}. All static broadcasted arguments must be passed "
            f"positionally.\n  mapping {function_line(fun)}"
        )
    given = _split(fun, args, kwargs, axes, statics)
    size = given.size(axis_size, fun)
    wanted = _devices(size, chosen, fun)

    def whole(result: Any) -> Any:
        places = _axes_of("pmap out_axes", out_axes, result, fun)
        leaves, structure = tree.flatten(result)
        found = [_whole(as_value(leaf), place, fun) for leaf, place in zip(leaves, places, strict=True)]
        return tree.unflatten(structure, found)

    def one(parts: list[Any]) -> Any:
        elements = [p if a is None else _element(p, a) for p, a in zip(parts, given.axes, strict=True)]
        own, keywords = tree.unflatten(given.structure, elements)
        return whole(fun(*given.with_fixed(own), **keywords))

    def specs(result: Any, found: list[Value]) -> list[PartitionSpec]:
        places = _axes_of("pmap out_axes", out_axes, result, fun)
        return [_spec(p, v.aval.ndim, name) for p, v in zip(places, found, strict=True)]

    mesh = Mesh(np.array(wanted, dtype=object), (name,), (AxisType.Auto,))
    if size == 1 and wanted[0] is local_devices()[0]:
        result = call_with_axes([name], lambda: one(given.values))
        leaves, structure = tree.flatten(result)
        found = zip(leaves, specs(result, leaves), strict=True)
        return tree.unflatten(structure, [placed(v, NamedSharding(mesh, s), "pmap") for v, s in found])

    cuts = [_spec(a, v.aval.ndim, name) for a, v in zip(given.axes, given.values, strict=True)]
    return call_over_mesh(mesh, one, given.values, cuts, specs, False)


def _flat(axes: Any) -> tuple[list[Any], Any]:
    return tree.flatten(axes, is_leaf=lambda x: x is None)


def _devices(size: int, chosen: Sequence[CpuDevice] | None, fun: Callable[..., Any]) -> list[CpuDevice]:
    """The devices for so many elements."""
    there = local_devices() if chosen is None else chosen
    if chosen is not None and size != len(chosen):
        raise ValueError(
            "Leading axis size of input to pmapped function must equal the number of local devices passed to pmap. Got "
            f"axis_size={size}, num_local_devices={len(chosen)}.\n  mapping {function_line(fun)}"
        )
    if size > len(there):
        raise ValueError(
            f"compiling computation that requires {size} logical devices, but only {len(there)} XLA devices are "
            f"available (num_replicas={size})\n  mapping {function_line(fun)}\n  HLOOM_NUM_DEVICES={size} in the "
            "environment makes as many; hloom.vmap maps over any number of elements."
        )
    return list(there[:size])


def _spec(axis: int | None, rank: int, name: Hashable) -> PartitionSpec:
    return PartitionSpec() if axis is None else PartitionSpec(*[None] * (axis % rank), name)


class _NoName:
    """The name of an axis without one."""

    def __repr__(self) -> str:
        return "<axis of pmap>"


def _numbers(given: int | Iterable[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple([operator.index(n) for n in given])


class _Split:
    """The arguments of a call: which are fixed, and the axis of each array in the others."""

    def __init__(self, values: list[Any], axes: list[int | None], structure: Any, fixed: dict[int, Any]) -> None:
        self.values = values
        self.axes = axes
        self.structure = structure
        """Of the positional arguments that are not fixed, and the keyword arguments."""
        self.fixed = fixed
        """Static arguments, by their position."""

    def with_fixed(self, args: Sequence[Any]) -> list[Any]:
        """All positional arguments."""
        given = iter(args)
        return [self.fixed[k] if k in self.fixed else next(given) for k in range(len(args) + len(self.fixed))]

    def size(self, asked: int | None, fun: Callable[..., Any]) -> int:
        """The number of elements along the mapped axis. ValueError if arguments disagree, or say none."""
        sizes = []
        for value, axis in zip(self.values, self.axes, strict=True):
            if axis is None:
                continue
            shape = value.aval.shape
            if not -len(shape) <= axis < len(shape):
                raise ValueError(
                    f"pmap was requested to map its argument along axis {axis}, which implies that its rank should be "
                    f"at least {axis + 1 if axis >= 0 else -axis}, but is only {len(shape)} (its shape is {shape})\n"
                    f"  mapping {function_line(fun)}"
                )
            sizes.append(shape[axis])
        if not sizes and asked is None:
            raise ValueError(
                f"pmap requires at least one argument with a mapped axis.\n"
                f"  mapping {function_line(fun)}"
            )
        if len({*sizes, *([] if asked is None else [asked])}) > 1:
            listed = ", ".join([f"{v.aval.str_short()} along {a}" for v, a in zip(self.values, self.axes, strict=True)])
            wanted = "" if asked is None else f" and axis_size={asked}"
            raise ValueError(
                f"pmap got inconsistent sizes for array axes to be mapped: {sorted({*sizes})}, of arguments {listed}"
                f"{wanted}\n  mapping {function_line(fun)}"
            )
        return int(sizes[0]) if sizes else int(asked or 0)


def _split(
    fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], in_axes: Any, statics: tuple[int, ...]
) -> _Split:
    fixed = {n % len(args): args[n] for n in statics if -len(args) <= n < len(args)}
    if isinstance(in_axes, tuple) and len(in_axes) != len(args):
        raise ValueError(
            f"pmap in_axes must be an int, None, or a tuple of entries corresponding to the positional arguments "
            f"passed to the function, but got {len(in_axes)=}, {len(args)=}; each argument passed by keyword is "
            f"mapped over its first axis\n  mapping {function_line(fun)}"
        )
    each = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(args)
    axes: list[int | None] = []
    for k, arg in enumerate(args):
        if k not in fixed:
            axes += _axes_of("pmap in_axes", each[k], arg, fun)
    axes += [0] * len(tree.leaves(kwargs))
    leaves, structure = tree.flatten(([a for k, a in enumerate(args) if k not in fixed], kwargs))
    return _Split([as_value(leaf) for leaf in leaves], axes, structure, fixed)


def _axes_of(what: str, axes: Any, full: Any, fun: Callable[..., Any]) -> list[int | None]:
    try:
        return tree.broadcast_prefix(axes, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"{what} specification must be a tree prefix of the corresponding value; got specification {axes}: {error}"
            f"\n  mapping {function_line(fun)}"
        ) from None


def _element(value: Value, axis: int) -> Value:
    """A part without its axis, which has one element."""
    shape = value.aval.shape
    place = axis % len(shape)
    return _reshaped(value, (*shape[:place], *shape[place + 1 :]))


def _whole(value: Value, axis: int | None, fun: Callable[..., Any]) -> Value:
    if axis is None:
        return value
    rank = value.aval.ndim + 1
    if not -rank <= axis < rank:
        raise ValueError(
            f"pmap out_axes has {axis}, but the result has rank {rank} with the mapped axis\n"
            f"  mapping {function_line(fun)}"
        )
    place, shape = axis % rank, value.aval.shape
    return _reshaped(value, (*shape[:place], 1, *shape[place:]))


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    storage = storage_of(value)
    extra = storage.aval.shape[value.aval.ndim :]
    aval = ShapedArray(shape, value.aval.dtype, value.aval.weak_type)
    result = overlaid(ops.reshape(storage, (*shape, *extra)), aval)
    return current_trace().with_weak_type(result, aval.weak_type)
