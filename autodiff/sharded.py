"""Functions over the devices of a mesh: `shard_map`, `smap`, `auto_axes`, `explicit_axes`.

Over several devices a mapped function is a part of a program that all of them run: `full_to_shard` gives it each
device's part of its arguments, collectives are HLO's, and `shard_to_full` makes arrays of its results.

Over one device each named axis has one element, and a function sees whole arrays. The names then work as `vmap`'s axes
do, with the same machinery: a BatchTrace of one element, in which only the results of collectives are batched. So the
program is the function's own, and `psum` and the others work as over any axis.

Names, arguments and errors follow jax.shard_map.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from types import NoneType
from typing import Any, ParamSpec, TypeVar

from ..hlo.errors import UnsupportedError
from ..hlo.support.tracebacks import boundary
from ..tracer import ops
from ..tracer.arguments import ArgumentSpec
from ..tracer.arrays.array import Array, as_value
from ..tracer.arrays.overlay import overlaid, storage_of
from ..tracer.aval import ShapedArray
from ..tracer.core import Value, current_trace, set_current_trace, thread_state, track_varying, varying
from ..tracer.jit import PjitFunction, jit
from ..tracer.references.refs import Ref, check_aliases, replace_all
from ..tracer.settings.context import Override, current_context
from ..tracer.sharding.borders import Border
from ..tracer.sharding.calls import full_to_shard, shard_to_full
from ..tracer.sharding.current_mesh import current_device_mesh, current_mesh, get_abstract_mesh, use_abstract_mesh
from ..tracer.sharding.manual_axes import ManualAxes, current_manual_axes
from ..tracer.sharding.mesh import AbstractMesh, AxisType, Mesh
from ..tracer.sharding.partition_spec import PartitionSpec, axes_of
from ..tracer.sharding.placement import check_runs_here, placed, reshard
from ..tracer.sharding.shardings import NamedSharding
from ..tracer.source import function_line
from ..tracer.traced import Traced
from ..tracer.tracer import Tracer, shallow_copy
from ..tracer.trees import tree
from ..tracer.wrapping import wraps
from .batches import Axis
from .batching import BatchTrace, named

P = ParamSpec("P")
R = TypeVar("R")


class _Infer:
    """`in_specs` follow from the arguments."""

    def __repr__(self) -> str:
        return "hloom.sharding.Infer"

    def __reduce__(self) -> str:
        return "Infer"


Infer: Any = _Infer()


# ---- one element along each axis


def call_with_axes(names: Sequence[Hashable], fun: Callable[[], Any]) -> Any:
    """`fun()` where each name is an axis with one element; values that collectives have batched are reduced to that
    element."""
    if not names:
        return fun()
    axis = Axis(names[0], 1)
    trace = BatchTrace(current_trace(), axis)
    with set_current_trace(trace), named(axis):
        leaves, structure = tree.flatten(call_with_axes(names[1:], fun))
        values = [as_value(leaf) for leaf in leaves]
    return tree.unflatten(structure, [_the_element(trace, v) for v in values])


def _the_element(trace: BatchTrace, value: Value) -> Value:
    (storage,), (is_batched,) = trace.split([storage_of(value)])
    if not is_batched:
        return value
    aval = value.aval
    element = ops.reshape(storage, storage.aval.shape[1:])
    return trace.with_weak_type(overlaid(element, aval), aval.weak_type)


# ---- several devices


def call_over_mesh(
    mesh: Mesh,
    fun: Callable[[list[Any]], Any],
    values: Sequence[Any],
    specs: Sequence[PartitionSpec | None],
    out_specs: Callable[[Any, list[Value]], Sequence[PartitionSpec]],
    tracks: bool,
    names: Collection[Hashable] | None = None,
) -> Any:
    """`fun` on the parts of `values` that each device of `mesh` has; those without a spec are passed on as they are.

    `out_specs(result, its leaves)` says how the leaves of the result make up arrays. `tracks`: types say along which
    axes values vary. `names`: the axes that `fun` knows, beside those that functions around it know; None: all. Runs
    while a program is traced.
    """
    with _within(mesh, tracks, names) as enter:
        parts = [v if s is None or v is None else enter(v, s) for v, s in zip(values, specs, strict=True)]
        result = fun(parts)
        leaves, structure = tree.flatten(result)
        found = [as_value(leaf) for leaf in leaves]
    wholes = zip(found, out_specs(result, found), strict=True)
    return tree.unflatten(structure, [_border(shard_to_full, v, enter.border(s)) for v, s in wholes])


class _Entrance:
    """The entrance of a function that is mapped over a mesh."""

    def __init__(self, mesh: Mesh, tracks: bool, names: Collection[Hashable] | None) -> None:
        self.mesh, self.tracks, self.outer = mesh, tracks, current_manual_axes()
        self.around = () if self.outer is None else self.outer.axes
        self.own = tuple([a for a in mesh.axis_names if (names is None or a in names) and a not in self.around])

    def border(self, spec: PartitionSpec) -> Border:
        """The border of an array that is divided by `spec` outside."""
        return Border(NamedSharding(self.mesh, spec), not self.tracks, self.own, self.around)

    def __call__(self, value: Value, spec: PartitionSpec) -> Value:
        """Each device's part of a value."""
        if not self.tracks and self.outer is not None and self.outer.tracks:
            value = varying(value, frozenset(self.around), self.outer)
        return _border(full_to_shard, value, self.border(spec))


@contextmanager
def _within(mesh: Mesh, tracks: bool, names: Collection[Hashable] | None) -> Iterator[_Entrance]:
    """The context in which a mapped function is traced."""
    found = _Entrance(mesh, tracks, names)
    if tracks:
        track_varying()
    manual = ManualAxes(mesh, tracks, tuple([a for a in mesh.axis_names if a in found.own or a in found.around]))
    axes = (*current_context().axis_names, *((a, mesh.shape[a]) for a in found.own))
    inner = mesh.abstract_mesh.update_axis_types(dict.fromkeys(manual.axes, AxisType.Manual))
    before = get_abstract_mesh()
    with ExitStack() as stack:
        if before.empty or before.size == inner.size:
            stack.enter_context(use_abstract_mesh(inner))
        stack.enter_context(Override(manual_axes=manual, axis_names=axes))
        yield found


class _MappedProgram(PjitFunction[P, R]):
    """The program of a mapped function. Traced values that the function uses from outside come in as arguments do that
    all devices have: their derivatives leave it again."""

    def __init__(self, fun: Callable[P, R], mesh: Mesh, tracks: bool, names: Collection[Hashable]) -> None:
        none = ArgumentSpec(frozenset(), frozenset())
        super().__init__(fun, none, none, inline=False)
        self._where = mesh, tracks, names

    def _trace(self, key: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Traced:
        traced = super()._trace(key, args, kwargs)
        if traced.is_closed:
            return traced
        with _within(*self._where) as enter:
            return replace(traced, captured=tuple([
                enter(v, PartitionSpec()) if isinstance(v, Tracer) else v for v in traced.captured
            ]))  # fmt: skip


def _border(cross: Callable[..., Value], value: Value, border: Border) -> Value:
    """The other side of a border, of the same dtype."""
    found = cross(storage_of(value), border)
    kind = value.aval
    aval = ShapedArray(found.aval.shape[: kind.ndim], kind.dtype, kind.weak_type, vma=found.aval.vma)
    return current_trace().with_weak_type(overlaid(found, aval), aval.weak_type)


# ---- shard_map


def shard_map(
    f: Any = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = Infer,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Any = frozenset(),
    check_vma: bool = True,
) -> Any:
    """The function that applies `f` to the shards of its arguments, on each device of a mesh.

    Args:
      f: takes and returns pytrees of arrays; within it, collectives (`hloom.lax.psum` ...) know the axes of `mesh`.
      in_specs: a PartitionSpec for each argument, or a prefix of the arguments' tree; None for arguments that are no
        arrays. Left out: as the arguments are, where the mesh's axes are Explicit.
      out_specs: the same for the result.
      mesh: the current mesh (`hloom.set_mesh`) if it is None.
      axis_names: the axes that `f` knows; all by default (within another `shard_map`: all that it does not know). Along
        the others, `f` sees whole arrays, which the partitioner divides.
      check_vma: types say along which axes values vary. A result that varies along an axis which its spec does not
        name is an error, and a derivative by a value that devices share is the sum over them. False: neither; of
        results that devices should share, the first is taken.

    Of a reference among the arguments, `f` reads and writes the part of its device.

    Raises (when called): TypeError or ValueError where mesh, specs and arrays do not fit.

    >>> mesh = hloom.make_mesh((1,), ("d",))
    >>> f = hloom.shard_map(lambda x: hloom.lax.psum(x, "d"), mesh=mesh, in_specs=hloom.P("d"), out_specs=hloom.P())
    >>> f(jnp.arange(3.0))
    Array([0., 1., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    return _shard_map(f, "shard_map", mesh, in_specs, out_specs, axis_names, check_vma)


def smap(f: Any = None, /, *, in_axes: Any = Infer, out_axes: Any, axis_name: Hashable) -> Any:
    """`shard_map` over one axis of the current mesh; which dimension is divided is said as in `vmap`: an integer, None,
    or a tuple of them for each argument.

    >>> mesh = hloom.make_mesh((1,), ("x",), axis_types=(hloom.sharding.AxisType.Explicit,))
    >>> with hloom.set_mesh(mesh):
    ...     hloom.smap(lambda x: 2 * x, in_axes=0, out_axes=0, axis_name="x")(jnp.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, list | tuple):
        raise TypeError(f"smap axis_name should be a `str` or a `Hashable`, but got {axis_name}")
    if in_axes is not Infer and not (in_axes is None or isinstance(in_axes, int | tuple)):
        raise TypeError(
            "smap in_axes must be an int, None, hloom.sharding.Infer, or a tuple of entries corresponding to the "
            f"positional arguments passed to the function, but got {in_axes}."
        )
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        if axes is not Infer and not all(isinstance(leaf, int) for leaf in tree.leaves(axes)):
            raise TypeError(
                f"smap {what} must be an int, None, hloom.sharding.Infer, or (nested) container with those types as "
                f"leaves, but got {axes}."
            )

    def spec(axis: int | None) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(axes: Any) -> Any:
        return tree.map(spec, axes, is_leaf=lambda x: x is None)

    in_specs = Infer if in_axes is Infer else specs(in_axes)
    return _shard_map(f, "smap", None, in_specs, specs(out_axes), {axis_name})


def _shard_map(
    f: Callable[..., Any],
    what: str,
    mesh: Mesh | AbstractMesh | None,
    in_specs: Any,
    out_specs: Any,
    axis_names: Any,
    check_vma: bool = True,
) -> Callable[..., Any]:
    if not callable(f):
        raise TypeError(f"{what} requires a callable for its first argument, but got {f} of type {type(f)}.")

    programs: dict[Any, Any] = {}

    @wraps(f)
    @boundary
    def mapped(*args: Any) -> Any:
        here, names = _checked_mesh(what, mesh, axis_names)
        if here.size == 1:
            return on_one(here, names, args)
        if isinstance(here, AbstractMesh):
            outer = current_manual_axes()
            here = current_device_mesh(here) or (here if outer is None else outer.mesh)
        assert isinstance(here, Mesh), f"{here} has no devices"
        _check_specs(what, here, names, in_specs, out_specs)
        if has_references(args):
            return on_references(here, names, args)
        _check_nested(what, here, names)
        if in_specs is Infer:
            specs = _specs_of_arguments(names, args)
        else:
            specs = tuple(_spread(f"{what} in_specs", in_specs, args, f))
        leaves = tree.leaves(args, is_leaf=lambda x: x is None)
        if any(s is None and x is not None for s, x in zip(specs, leaves, strict=True)):
            return with_python_values(here, names, specs, args)
        key = here, names, specs
        program = programs.get(key)
        if program is None:
            program = programs[key] = _MappedProgram(on_several(*key), here, check_vma, names)
        return program(*args)

    def on_references(here: Mesh, names: frozenset[Any], args: tuple[Any, ...]) -> Any:
        """The function takes the arrays that the references hold, and returns those that it leaves there."""
        leaves, structure = tree.flatten(args, is_leaf=lambda x: x is None)
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Ref)]
        check_aliases(leaves, [f"leaf {k} of the arguments" for k in range(len(leaves))], (), what)
        values = tree.unflatten(structure, [x.current() if isinstance(x, Ref) else x for x in leaves])
        if in_specs is Infer:
            specs = _specs_of_arguments(names, values)
        else:
            specs = tuple(_spread(f"{what} in_specs", in_specs, args, f))

        @wraps(f)
        def on_arrays(*arrays: Any) -> Any:
            given = list(arrays)
            for k in places:
                given[k] = Ref(arrays[k], f"leaf {k} of the arguments of {what}", leaves[k].aval.kind)
            result = f(*tree.unflatten(structure, given))
            return result, [given[k].current() for k in places]

        out = out_specs, [specs[k] for k in places]
        mapped_arrays = _shard_map(on_arrays, what, here, specs, out, names, check_vma)
        result, new = mapped_arrays(*tree.leaves(values, is_leaf=lambda x: x is None))
        replace_all([leaves[k] for k in places], new)
        return result

    def with_python_values(here: Mesh, names: frozenset[Any], specs: Sequence[Any], args: tuple[Any, ...]) -> Any:
        """Arguments without a spec are values of Python, which no program takes: each call has a program of its own
        where the mesh has other axes, and none where operations may run one by one."""
        call = on_several(here, names, specs)
        if here.size == math.prod([here.shape[n] for n in names]):
            return call(*args)
        leaves, structure = tree.flatten(args, is_leaf=lambda x: x is None)

        def given(*arrays: Any) -> Any:
            rest = iter(arrays)
            return call(*tree.unflatten(structure, [x if s is None else next(rest) for x, s in zip(leaves, specs)]))

        return jit(given)(*[x for x, s in zip(leaves, specs, strict=True) if s is not None])

    def on_several(
        here: Mesh, names: frozenset[Any], specs: Sequence[PartitionSpec | None]
    ) -> Callable[..., Any]:
        @wraps(f)
        def inside(*args: Any) -> Any:
            leaves, structure = tree.flatten(args, is_leaf=lambda x: x is None)
            values = [x if s is None or x is None else as_value(x) for x, s in zip(leaves, specs, strict=True)]
            _check_fit(what, "in", f, here, [(s, v) for s, v in zip(specs, values, strict=True) if s is not None])

            def results(result: Any, found: list[Value]) -> Sequence[PartitionSpec]:
                out = _spread(f"{what} out_specs", out_specs, result, f)
                _check_fit(what, "out", f, here, list(zip(out, found, strict=True)))
                for s, v in zip(out, found, strict=True):
                    _check_varying(what, f, here, s, v, names)
                return out

            def call(parts: list[Any]) -> Any:
                return f(*tree.unflatten(structure, parts))

            return call_over_mesh(here, call, values, specs, results, check_vma, names)

        return inside

    def on_one(here: Mesh | AbstractMesh, names: frozenset[Any], args: tuple[Any, ...]) -> Any:
        _check_specs(what, here, names, in_specs, out_specs)
        specs = _spread(f"{what} in_specs", in_specs, args, f)
        leaves, structure = tree.flatten(args, is_leaf=lambda x: x is None)
        check_aliases(leaves, [f"leaf {k} of the arguments" for k in range(len(leaves))], (), what)
        kept = (NoneType, Ref)
        values = [x if s is None or isinstance(x, kept) else as_value(x) for x, s in zip(leaves, specs, strict=True)]
        _check_fit(what, "in", f, here, [(s, v) for s, v in zip(specs, values, strict=True) if s is not None])
        inner = here.abstract_mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))
        before = get_abstract_mesh()
        with ExitStack() as stack:
            if before.empty or before.size == inner.size:
                stack.enter_context(use_abstract_mesh(inner))
            ordered = [n for n in here.axis_names if n in names]
            result = call_with_axes(ordered, lambda: f(*tree.unflatten(structure, values)))
        out = _spread(f"{what} out_specs", out_specs, result, f)
        out_leaves, out_structure = tree.flatten(result)
        found = [as_value(leaf) for leaf in out_leaves]
        _check_fit(what, "out", f, here, list(zip(out, found, strict=True)))
        if isinstance(here, Mesh) and thread_state().direct:
            found = [placed(v, NamedSharding(here, s), what) for v, s in zip(found, out, strict=True)]
        return tree.unflatten(out_structure, found)

    return mapped


def has_references(args: tuple[Any, ...]) -> bool:
    """Whether a leaf of the arguments is a mutable array."""
    return Ref in map(type, tree.leaves(args))


def _specs_of_arguments(names: frozenset[Any], args: tuple[Any, ...]) -> tuple[PartitionSpec | None, ...]:
    """How the leaves of the arguments are divided along the axes that the function knows."""
    found: list[PartitionSpec | None] = []
    for leaf in tree.leaves(args, is_leaf=lambda x: x is None):
        if leaf is None:
            found.append(None)
            continue
        spec = as_value(leaf).aval.sharding.spec
        found.append(PartitionSpec(*[[a for a in axes_of(entry) if a in names] for entry in spec.partitions]))
    return tuple(found)


def _check_varying(
    what: str, f: Callable[..., Any], mesh: Mesh, spec: PartitionSpec, value: Value, known: frozenset[Any]
) -> None:
    extra = (value.aval.vma & known) - set(spec.axes())
    if extra:
        names = ", ".join(map(str, sorted(extra, key=str)))
        own = ", ".join(map(str, spec.axes()))
        raise ValueError(
            f"{what} applied to the function '{getattr(f, '__name__', f)}' was given out_specs which require "
            "replication which can't be statically inferred given the mesh:\n\n"
            f"The mesh given has shape {mesh.axis_sizes} with corresponding axis names {mesh.axis_names}.\n\n"
            f"out_specs is {spec} which implies that the corresponding output value is only varying across mesh axes "
            f"{{{own}}} and not {{{names}}}, but it was inferred to be possibly varying over {{{names}}}\n\n"
            "Check if these output values are meant to be replicated over those "
            "mesh axes. If not, consider revising the corresponding out_specs entries. If so, consider disabling the "
            "check by passing the check_vma=False argument to `hloom.shard_map`."
        )


def _check_nested(what: str, mesh: Mesh, names: frozenset[Any]) -> None:
    """ValueError if a function around this one knows an axis, or is mapped over another mesh."""
    outer = current_manual_axes()
    if outer is None:
        return
    if set(outer.mesh.devices.flat) != set(mesh.devices.flat) or outer.mesh.shape_tuple != mesh.shape_tuple:
        raise ValueError(f"The context mesh {outer.mesh} should match the mesh passed to {what} {mesh}")
    twice = [a for a in mesh.axis_names if a in names and a in outer.axes]
    if twice:
        raise ValueError(
            f"{what} within {what}: the axes {twice} are known to the function around it already. Name others in "
            "axis_names"
        )


def _checked_mesh(what: str, mesh: Any, axis_names: Any) -> tuple[Mesh | AbstractMesh, frozenset[Any]]:
    """The mesh, and the axes that the function knows."""
    context = get_abstract_mesh()
    if mesh is None:
        mesh = current_mesh() if context.empty else context
        if mesh.empty:
            raise ValueError(
                "The context mesh cannot be empty. Use `hloom.set_mesh(mesh)` to enter into a mesh context"
            )
    if not isinstance(mesh, Mesh | AbstractMesh):
        raise TypeError(
            f"{what} requires a `hloom.sharding.Mesh` or a `hloom.sharding.AbstractMesh` instance for its second "
            f"argument, but got {mesh} of type {type(mesh)}."
        )
    if mesh.empty:
        raise ValueError(f"{what} requires a non-empty mesh. Got {mesh}")
    if not context.empty and mesh.abstract_mesh.shape_tuple != context.shape_tuple:
        raise ValueError(f"The context mesh {context} should match the mesh passed to {what} {mesh}")
    check_runs_here(mesh, what)
    if not isinstance(axis_names, set | frozenset):
        raise TypeError(f"`axis_names` argument of {what} should be of type `frozenset` or `set`. Got: {axis_names!r}")
    free = frozenset(mesh.axis_names)
    names = frozenset(axis_names) or free - frozenset(context.manual_axes) or free
    if not names <= free:
        raise ValueError(
            f"hloom.{what} requires axis_names={set(names)} to be a subset of mesh.axis_names={mesh.axis_names}"
        )
    return mesh, names


def _check_specs(what: str, mesh: Mesh | AbstractMesh, names: frozenset[Any], in_specs: Any, out_specs: Any) -> None:
    if in_specs is Infer:
        types = [mesh.name_to_type[n] for n in names]
        if any(t is not AxisType.Explicit for t in types):
            listed = ", ".join(map(str, types))
            argument = "in_axes" if what == "smap" else "in_specs"
            raise TypeError(
                f"{what} {argument} was not specified when the axes {set(names)} are of type {listed}: it must be a "
                "pytree of `hloom.sharding.PartitionSpec` instances"
            )
    for side, specs in (("in", in_specs), ("out", out_specs)):
        if specs is Infer:
            continue
        for leaf in tree.leaves(specs):
            if not isinstance(leaf, PartitionSpec):
                raise TypeError(
                    f"{what} {side}_specs argument must be a pytree of `hloom.sharding.PartitionSpec` instances, but "
                    f"has {leaf!r} of type {type(leaf).__name__}.\n  Check the {side}_specs values passed to {what}."
                )
            unknown = [a for a in leaf.axes() if a not in names]
            if unknown:
                raise ValueError(
                    f"{what} {side}_specs argument must refer to an axis marked as manual ({set(names)}), but "
                    f"{side}_specs refers to {', '.join(map(repr, unknown))}: {leaf}\n"
                    f"  Check the {side}_specs values passed to {what}."
                )


def _spread(what: str, specs: Any, full: Any, f: Callable[..., Any]) -> list[Any]:
    """The spec of each leaf of `full`; None is a leaf."""
    count = len(tree.leaves(full, is_leaf=lambda x: x is None)) if "in_specs" in what else len(tree.leaves(full))
    if specs is Infer:  # over one device, where nothing is divided
        return [PartitionSpec()] * count
    if isinstance(specs, PartitionSpec):
        return [specs] * count
    try:
        spread = tree.broadcast_prefix(specs, full, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(
            f"{what} specification must be a tree prefix of the corresponding value; {error}\n"
            f"  mapping {function_line(f)}"
        ) from None
    if len(spread) == count:
        return spread
    everything = tree.leaves(full, is_leaf=lambda x: x is None)
    if len(spread) == len(everything):  # None in a result is no leaf
        return [s for s, leaf in zip(spread, everything, strict=True) if leaf is not None]
    known = iter(spread)  # None in the arguments is a leaf
    return [None if leaf is None else next(known) for leaf in everything]


def _check_fit(
    what: str, side: str, f: Callable[..., Any], mesh: Mesh | AbstractMesh, pairs: Sequence[tuple[PartitionSpec, Any]]
) -> None:
    """ValueError for a spec with more entries than its array has dimensions, or that does not divide them."""
    for spec, value in pairs:
        if value is None:
            continue
        aval = value.aval
        if len(spec.partitions) > aval.ndim:
            scalar = "\n  For scalar values (rank 0), consider using `P()`." if not aval.ndim else ""
            raise ValueError(
                f"{what} applied to the function '{getattr(f, '__name__', f)}' was given an {side}_specs entry which "
                f"is too long to be compatible with the corresponding {side}put value from the function: {spec} has "
                f"length {len(spec.partitions)}, but the value {aval.str_short()} has rank {aval.ndim}.{scalar}\n"
                f"  mapping {function_line(f)}"
            )
        for d, entry in enumerate(spec.partitions):
            parts = math.prod([mesh.shape[a] for a in axes_of(entry)])
            if side == "in" and aval.shape[d] % parts:
                raise ValueError(
                    f"{what} applied to the function '{getattr(f, '__name__', f)}' was given argument arrays with axis "
                    f"sizes that are not evenly divisible by the corresponding mesh axis sizes: {spec} for "
                    f"{aval.str_short()} and mesh {mesh}\n  Pad the arrays, or change in_specs."
                )


# ---- the types of a mesh's axes


def auto_axes(f: Any = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """`f` with the axes of the current mesh (all, or `axes`) as Auto; its result gets `out_sharding`, which the call
    gives by keyword if it is None here. It returns the values of `f`.

    >>> f = sharding.auto_axes(lambda x: x * 2, out_sharding=hloom.P("x"))
    >>> with hloom.set_mesh(hloom.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Explicit,))):
    ...     print(f(jnp.arange(3)))
    [0 2 4]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    return _with_types(f, axes, AxisType.Auto, "out_sharding", out_sharding)


def explicit_axes(f: Any = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """`f` with the axes of the current mesh (all, or `axes`) as Explicit; its arguments get `in_sharding`, which the
    call gives by keyword if it is None here. It returns the values of `f`.

    >>> f = sharding.explicit_axes(lambda x: x * 2, in_sharding=hloom.P("x"))
    >>> with hloom.set_mesh(hloom.make_mesh((1,), ("x",), axis_types=(sharding.AxisType.Auto,))):
    ...     print(f(jnp.arange(3)))
    [0 2 4]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    return _with_types(f, axes, AxisType.Explicit, "in_sharding", in_sharding)


def _with_types(f: Callable[..., Any], axes: Any, kind: AxisType, name: str, sharding: Any) -> Callable[..., Any]:
    @wraps(f)
    @boundary
    def changed(*args: Any, **kwargs: Any) -> Any:
        given = sharding
        if given is None:
            if name not in kwargs:
                raise TypeError(f"Missing required keyword argument: '{name}'")
            given = kwargs.pop(name)
        mesh = get_abstract_mesh()
        if mesh.empty and kind is AxisType.Auto:
            mesh = next((s.mesh.abstract_mesh for s in tree.leaves(given) if isinstance(s, NamedSharding)), mesh)
        if mesh.empty:
            if kind is AxisType.Explicit:
                raise ValueError(
                    "Context mesh cannot be empty. Please use `hloom.set_mesh` API to enter into a mesh context when "
                    "using `explicit_axes` API."
                )
            return f(*args, **kwargs)
        names = mesh.axis_names if axes is None else axes if isinstance(axes, tuple) else (axes,)
        if any(mesh.name_to_type[n] is AxisType.Manual for n in names):
            raise UnsupportedError(
                "Going from `Manual` AxisType to `Auto` or `Explicit` AxisType is not allowed: within shard_map each "
                f"device has its own part along {names}"
            )
        inner = mesh.update_axis_types(dict.fromkeys(names, kind))
        if kind is AxisType.Auto and inner == mesh:
            return f(*args, **kwargs)
        if kind is AxisType.Explicit:
            with use_abstract_mesh(inner):
                return _over(mesh, f(*reshard(_over(inner, args), given), **kwargs))
        with use_abstract_mesh(inner):
            result = f(*_over(inner, args), **_over(inner, kwargs))
        return reshard(result, given)

    return changed


def _over(mesh: AbstractMesh, x: Any) -> Any:
    """`x` (a pytree) with arrays and traced values over the axes of `mesh`, which is their mesh with other types."""

    def leaf(value: Any) -> Any:
        if isinstance(value, Tracer) and value.aval.division is not None:
            other = shallow_copy(value)
            other.aval = value.aval.divided(value.aval.division.update(mesh=mesh))
            return other
        place = value.sharding if isinstance(value, Array) else None
        if isinstance(place, NamedSharding) and place.mesh.shape_tuple == mesh.shape_tuple:
            assert isinstance(place.mesh, Mesh), f"{place} has no devices"
            devices = Mesh(place.mesh.devices, mesh.axis_names, mesh.axis_types)
            return value.with_aval(value.aval, place.update(mesh=devices))
        return value

    return tree.map(leaf, x)
