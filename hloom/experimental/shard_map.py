"""`hloom.experimental.shard_map`: the function under its former name, as jax.experimental.shard_map has it."""

from collections.abc import Callable as _Callable
from typing import Any as _Any

from ..autodiff.sharded import shard_map as _shard_map
from ..namespaces import publish as _publish
from ..tracer.sharding.mesh import AbstractMesh as _AbstractMesh
from ..tracer.sharding.mesh import Mesh as _Mesh

__all__ = ["shard_map"]


def shard_map(
    f: _Callable[..., _Any], mesh: _Mesh | _AbstractMesh, in_specs: _Any, out_specs: _Any, check_rep: bool = True
) -> _Any:
    """`hloom.shard_map` with positional arguments; `check_rep` is its `check_vma`.

    >>> from hloom.experimental.shard_map import shard_map
    >>> mesh = hloom.make_mesh((1,), ("i",))
    >>> shard_map(lambda x: 2 * x, mesh, hloom.P("i"), hloom.P("i"))(jnp.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_publish(__name__)
