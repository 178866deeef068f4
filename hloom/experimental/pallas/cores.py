"""Kernels on the cores of a mesh: `kernel` and `core_map`, as JAX's interpreter runs them on a CPU.

The cores run one after the other, each on whole arrays: the mesh is the grid of a `pallas_call` with the mesh's axes as
names. `lax.axis_index` and `program_id` are the core's number.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...hlo.errors import UnsupportedError
from ...tracer.arguments import ShapeDtypeStruct
from ...tracer.references.refs import Ref, RefPart
from ...tracer.trees import tree
from .block_spec import GridSpec
from .calls import call_kernel


class _NotGiven:
    """The type of the default of `body`."""


_not_given = _NotGiven()


def kernel(
    body: Any = _not_given,
    out_type: Any = (),
    *,
    mesh: Any,
    scratch_types: Any = (),
    compiler_params: Any = None,
    interpret: Any = False,
    cost_estimate: Any = None,
    debug: bool = False,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
) -> Any:
    """The function of arrays and references that runs `body` on each core of a mesh; without `body`, a decorator.

    body: a function of references: to the arguments, to the results, to scratch memory. References among the arguments
      are written in place.
    out_type: the types of the results: a pytree of objects with `shape` and `dtype`.
    mesh: `pallas.tpu.TensorCoreMesh`, or another object whose `shape` has the names and sizes of its axes.
    scratch_types: memory that the cores share, as `pl.ANY(shape, dtype)`; a dictionary is for keywords.
    The others are as in `pallas_call`.

    UnsupportedError for several meshes; ValueError as in `pallas_call`.

    >>> from hloom.experimental import pallas as pl
    >>> from hloom.experimental.pallas import tpu
    >>> @pl.kernel(mesh=tpu.create_tensorcore_mesh("core", num_cores=2), out_type=jnp.zeros(4))
    ... def double(x_ref, o_ref):
    ...     half = pl.ds(2 * lax.axis_index("core"), 2)
    ...     o_ref[half] = 2 * x_ref[half]
    >>> double(jnp.arange(4.0))
    Array([0., 2., 4., 6.], dtype=float32)
    """
    if isinstance(body, _NotGiven):
        return lambda function: kernel(
            function, out_type, mesh=mesh, scratch_types=scratch_types, debug=debug, name=name
        )
    if isinstance(body, Sequence) or isinstance(mesh, Sequence):
        raise UnsupportedError("pl.kernel with several bodies and meshes runs different cores at the same time")
    grid = _grid(mesh)
    single = not isinstance(out_type, tuple | list)

    def run(*args: Any) -> Any:
        leaves, structure = tree.flatten(args)
        places = [k for k, leaf in enumerate(leaves) if isinstance(leaf, Ref | RefPart)]
        mutable = [leaves[k] for k in places]
        if len({id(r) for r in mutable}) < len(mutable):
            raise UnsupportedError("Cannot pass the same ref into a mpmd map multiple times")
        values = [leaf[...] if k in places else leaf for k, leaf in enumerate(leaves)]
        types = tuple([ShapeDtypeStruct(r.shape, r.dtype) for r in mutable])

        def flat(*references: Any, **scratch: Any) -> None:
            given, (results, written, *rest) = list(references[: len(leaves)]), references[len(leaves) :]
            for k, reference in zip(places, written, strict=True):
                given[k] = reference
            outputs = (results,) if single else tuple(results)
            body(*tree.unflatten(structure, given), *outputs, *rest, **scratch)

        spec = GridSpec(grid, scratch_shapes=scratch_types)
        first = tree.structure(out_type).num_leaves
        aliases = {k: first + n for n, k in enumerate(places)}
        results, after = call_kernel(flat, body, (out_type, types), spec, aliases, name, debug)(*values)
        for reference, value in zip(mutable, after, strict=True):
            reference[...] = value
        return results

    return run


def core_map(
    mesh: Any,
    *,
    compiler_params: Any = None,
    interpret: Any = False,
    debug: bool = False,
    cost_estimate: Any = None,
    name: str | None = None,
    metadata: dict[str, str] | None = None,
    scratch_shapes: Any = (),
) -> Callable[[Callable[..., None]], None]:
    """A decorator that runs a function on each core of a mesh, at once: the function writes references from outside.
    Its arguments are references to scratch memory. See `kernel`.

    >>> from hloom.experimental import pallas as pl
    >>> from hloom.experimental.pallas import tpu
    >>> total = hloom.new_ref(jnp.zeros((), jnp.int32))
    >>> @pl.core_map(tpu.create_tensorcore_mesh("core", num_cores=3))
    ... def _():
    ...     total[...] += lax.axis_index("core")
    >>> total[...]
    Array(3, dtype=int32)
    """

    def run(function: Callable[..., None]) -> None:
        spec = GridSpec(_grid(mesh), scratch_shapes=scratch_shapes)
        call_kernel(function, function, (), spec, {}, name, debug)()

    return run


def _grid(mesh: Any) -> tuple[tuple[Any, int], ...]:
    """The axes of a mesh with their sizes."""
    shape = getattr(mesh, "shape", None)
    if not isinstance(shape, Mapping):
        raise UnsupportedError(f"kernel and core_map run on a mesh of cores, as pltpu.TensorCoreMesh, not {mesh!r}")
    return tuple(shape.items())
