"""The fields of exported functions. `exported.py` has the class that users see, with the methods that need the rest of
this package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..tracer.sharding.mesh import AbstractMesh, Mesh
from ..tracer.sharding.shardings import NamedSharding
from ..tracer.trees.treedef import PyTreeDef
from .checks import DisabledSafetyCheck


@dataclass(frozen=True)
class ExportedFunction:
    """The fields of an Exported, and what follows from them."""

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[Any, ...]
    out_tree: PyTreeDef
    out_avals: tuple[Any, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Any, ...]
    unordered_effects: tuple[Any, ...]
    disabled_safety_checks: Sequence[DisabledSafetyCheck]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: tuple[int, ...]
    uses_global_constants: bool
    _get_vjp: Callable[[Any], Any] | None

    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[NamedSharding | None]:
        """The shardings of the arguments, over `mesh`; None where the function says nothing. ValueError for a mesh with
        other names, sizes or types of axes than the function was exported for.

        >>> mesh = hloom.make_mesh((1,), ("x",))
        >>> hloom.export.export(hloom.jit(jnp.sin))(jnp.ones(3)).in_shardings_jax(mesh)
        (None,)
        """
        return tuple([_over(s, mesh) for s in self._in_named_shardings])

    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[NamedSharding | None]:
        """The shardings of the results, as `in_shardings_jax`."""
        return tuple([_over(s, mesh) for s in self._out_named_shardings])

    def has_vjp(self) -> bool:
        """Whether `vjp` has a result: for files, if they were written with a `vjp_order`.

        >>> hloom.export.export(hloom.jit(jnp.sin))(jnp.ones(3)).has_vjp()
        True
        """
        return self._get_vjp is not None

    def vjp(self) -> Any:
        """The VJP of the function, exported: it takes the leaves of the arguments and a cotangent for each leaf of the
        result, and returns a cotangent for each leaf of the arguments. ValueError if it is not in the file.

        >>> backward = hloom.export.export(hloom.jit(lambda x: x**2))(jnp.ones(3)).vjp()
        >>> backward.call(jnp.array([1.0, 2.0, 3.0]), jnp.ones(3))
        (Array([2., 4., 6.], dtype=float32),)
        """
        if self._get_vjp is None:
            raise ValueError("No VJP is available: serialize(vjp_order=1), where the function is, puts it in the file")
        return self._get_vjp(self)

    def __str__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"


def _over(sharding: NamedSharding | None, mesh: Mesh | AbstractMesh) -> NamedSharding | None:
    if sharding is None:
        return None
    own, given = sharding.mesh, mesh.abstract_mesh
    if (given.shape_tuple, given.axis_types) != (own.shape_tuple, own.axis_types):
        raise ValueError(f"NamedSharding new mesh {mesh} does not match the mesh used for export {own}.")
    return sharding.update(mesh=mesh)
