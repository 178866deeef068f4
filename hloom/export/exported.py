"""Exported: a function as a program in StableHLO, with the types and structures of its arguments and results.

The program is a portable artifact of StableHLO, the bytes that JAX and XLA read. Its function `main` takes, in this
order: the index of the platform if there are several, tokens of ordered effects, then the arguments of `in_avals` whose
positions are in `module_kept_var_idx`. Source: "Calling convention" in JAX's documentation of export.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .artifacts import module_of, text_of
from .calling import call_exported
from .record import ExportedFunction
from .writing import serialize

minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10


@dataclass(frozen=True)
class Exported(ExportedFunction):
    """An exported function, as `export` makes it and `deserialize` reads it. `call` calls it.

    fun_name: the function's name.
    in_tree, out_tree: the structures of (positional, keyword) arguments and of the result.
    in_avals, out_avals: the types of their leaves, ShapedArray; sizes may be symbolic.
    nr_devices: for how many devices the program is.
    platforms: those it is for.
    ordered_effects, unordered_effects: the effects of the program, objects of classes among `mlir.lowerable_effects`.
      `main` takes and returns a token for each ordered one.
    disabled_safety_checks: the checks that were left out.
    mlir_module_serialized: the program.
    calling_convention_version: what `main` takes; 9 or 10.
    module_kept_var_idx: the positions of the arguments that `main` takes.
    uses_global_constants: whether the program has symbolic sizes, or takes the index of a platform.
    in_shardings_hlo, out_shardings_hlo: of files from before 2026; None everywhere.

    >>> import hloom, hloom.numpy as jnp
    >>> exported = hloom.export.export(hloom.jit(lambda x: 2 * x))(jnp.ones(3))
    >>> exported.in_avals, exported.platforms
    ((ShapedArray(float32[3]),), ('cpu',))
    >>> exported.call(jnp.array([1.0, 2.0, 3.0]))
    Array([2., 4., 6.], dtype=float32)
    """

    def mlir_module(self, serialized: bool = True) -> Any:
        """The program as StableHLO's text; as an operation (`hloom.hlo.mlir`) if not `serialized`.

        >>> "stablehlo.sine" in hloom.export.export(hloom.jit(jnp.sin))(jnp.ones(3)).mlir_module()
        True
        """
        module = module_of(self)
        return text_of(module) if serialized else module

    def serialize(self, vjp_order: int = 0) -> bytearray:
        """The function as bytes, for `deserialize` here and in JAX. `vjp_order`: how many derivatives they have.

        >>> exported = hloom.export.export(hloom.jit(jnp.sin))(jnp.ones(3))
        >>> hloom.export.deserialize(exported.serialize()).call(jnp.zeros(3))
        Array([0., 0., 0.], dtype=float32)
        """
        return serialize(self, vjp_order)

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call the function, also in other traced functions. The arguments must have the structure and the types that
        it was exported for; ValueError otherwise. Its derivative is `vjp`.

        >>> exported = hloom.export.export(hloom.jit(lambda x: x**2))(1.5)
        >>> hloom.grad(exported.call)(3.0)
        Array(6., dtype=float32, weak_type=True)
        """
        return call_exported(self, args, kwargs)
