"""export: a jitted function is traced, its program becomes StableHLO, and what JAX's calling convention asks for is
added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..hlo.errors import UnsupportedError
from ..hlo.ir import HloModule
from ..hlo.mlir.tree import Operation
from ..hlo.sizes import is_symbolic
from ..hlo.stablehlo.portable import portable_of
from ..hlo.support.tracebacks import boundary
from ..hlo.symbolic.expressions import Dim
from ..tracer.arguments import split_static
from ..tracer.control_flow.platforms import PLATFORM
from ..tracer.jit import jit
from ..tracer.settings.config import config
from ..tracer.settings.context import Override
from ..tracer.stages import Lowered, Traced
from ..tracer.trees import tree
from ..tracer.wrapping import name_of
from .artifacts import bytes_of
from .calling import called
from .checks import DisabledSafetyCheck, check_custom_calls
from .conventions import add_convention, describe_main
from .dynamic import make_composites_calls
from .effects import effects_of
from .exported import (
    Exported,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from .interface import Interface, Places, places_of
from .modules import closed_module
from .paths import path_text
from .pullback import traced_vjp
from .tokens import thread_tokens

_LIBRARY = __name__.partition(".")[0] + "."
_DONATING = frozenset({"cpu", "tpu", "cuda", "rocm", "neuron"})
"""The platforms on which JAX lets a program overwrite its arguments."""


def export(
    fun_jit: Callable[..., Any],
    *,
    platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (),
    _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """A function that takes arguments for `fun_jit`, or their types (ShapeDtypeStruct), and returns an Exported.

    fun_jit: a jitted function. ValueError for another.
    platforms: those that the program is for, by default ("cpu",): "cpu", "cuda", "rocm", "tpu", or others. A program
      for several takes their number as an argument; `lax.platform_dependent` asks for it.
    disabled_checks: the checks to leave out.
    _override_lowering_rules: UnsupportedError: rules for lowering write MLIR.

    NotImplementedError for a function that calls Python, or that reads or writes mutable arrays from outside;
    ValueError for custom calls whose meaning JAX does not keep.

    >>> exported = hloom.export.export(hloom.jit(jnp.sin))(hloom.ShapeDtypeStruct((3,), jnp.float32))
    >>> exported.out_avals
    (ShapedArray(float32[3]),)
    >>> exported.call(jnp.zeros(3))
    Array([0., 0., 0.], dtype=float32)
    """
    if not hasattr(fun_jit, "trace") and getattr(fun_jit, "__module__", "").startswith(_LIBRARY):
        fun_jit = jit(fun_jit)
    if not hasattr(fun_jit, "trace"):
        raise ValueError(f"Function to be exported must be the result of `jit` but is: {fun_jit}")
    if _override_lowering_rules is not None:
        raise UnsupportedError("export: rules for lowering write MLIR, and hloom lowers its own program")
    jitted: Any = fun_jit
    asked = (PLATFORM,) if platforms is None else tuple(platforms)
    checks = tuple(disabled_checks)

    @boundary
    def exported(*args: Any, **kwargs: Any) -> Exported:
        _check_scopes(jitted, args, kwargs)
        with Override(lowering_platforms=asked):
            traced = jitted.trace(*args, **kwargs)
            return _exported(traced, _interface(traced, args, kwargs), asked, checks)

    return exported


def _check_scopes(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """ValueError if the sizes of arguments are of several scopes."""
    first: Any = None
    for path, leaf in tree.leaves_with_path((args, kwargs)):
        for size in getattr(leaf, "shape", ()):
            if not isinstance(size, Dim):
                continue
            if first is None:
                first = size.scope, path_text(path)
            elif size.scope is not first[0]:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {name_of(jitted)}.\nExpected current (from "
                    f"{first[1]}) scope {first[0]}\nand found for '{size}' ({path_text(path)}) scope {size.scope}\n  "
                    "Make all sizes by one call of symbolic_shape or symbolic_args_specs, or pass scope=b.scope of a "
                    "size b."
                )


def _version() -> int:
    version: int = config.jax_export_calling_convention_version
    first, last = minimum_supported_calling_convention_version, maximum_supported_calling_convention_version
    if not first <= version <= last:
        raise ValueError(
            f"The requested export calling convention version {version} is outside the range of supported versions "
            f"[{first}..{last}]"
        )
    return version


def _interface(traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Interface:
    """The interface of a function that was traced for these arguments, without the static ones."""
    signature = traced._signature
    dynamic, keywords, _ = split_static(signature.fun, signature.static, args, kwargs)
    in_tree = tree.structure((dynamic, keywords))
    return Interface(in_tree, tuple(signature.in_avals), signature.out_tree, tuple(signature.out_avals))


def _exported(
    traced: Traced, interface: Interface, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Exported:
    """The exported function."""
    version, lowered = _version(), traced.lower()
    _refuse(lowered, traced, platforms)
    places = places_of(traced, interface)
    program = closed_module(lowered, interface.out_avals)
    ordered, unordered = effects_of(program)
    uses_constants = _uses_constants(program, interface, platforms)
    module = _portable(program, interface, places, platforms, ordered, uses_constants)
    check_custom_calls(module, checks)
    return Exported(
        fun_name=traced.fun_name,
        in_tree=interface.in_tree,
        in_avals=interface.in_avals,
        out_tree=interface.out_tree,
        out_avals=interface.out_avals,
        _has_named_shardings=True,
        _in_named_shardings=places.ins,
        _out_named_shardings=places.outs,
        in_shardings_hlo=(None,) * len(interface.in_avals),
        out_shardings_hlo=(None,) * len(interface.out_avals),
        nr_devices=places.devices,
        platforms=platforms,
        ordered_effects=ordered,
        unordered_effects=unordered,
        disabled_safety_checks=checks,
        mlir_module_serialized=bytes_of(module),
        calling_convention_version=version,
        module_kept_var_idx=interface.kept,
        uses_global_constants=uses_constants,
        _get_vjp=lambda primal: _exported_vjp(primal, traced),
    )


def _refuse(lowered: Lowered, traced: Traced, platforms: tuple[str, ...]) -> None:
    """NotImplementedError for functions on mutable arrays, and for donation on some of the platforms only."""
    if lowered.with_references:
        raise NotImplementedError("serialization of functions that read or write mutable arrays is not yet implemented")
    donating = tuple([p for p in platforms if p in _DONATING])
    if traced._signature.donated and 0 < len(donating) < len(platforms):
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support donation. Lowering for "
            f"{platforms} of which only {donating} support donation"
        )


def _uses_constants(program: HloModule, interface: Interface, platforms: tuple[str, ...]) -> bool:
    """Whether the program, or one that it calls, has constants that are known when it is compiled."""
    is_open = any(is_symbolic(n) for a in interface.in_avals for n in a.shape)
    return len(platforms) > 1 or is_open or any(e.uses_global_constants for e in called(program))


def _portable(
    program: HloModule, interface: Interface, places: Places, platforms: tuple[str, ...], ordered: tuple[Any, ...],
    uses_constants: bool,
) -> Operation:  # fmt: skip
    """The program in StableHLO, with JAX's calling convention. ordered: its ordered effects."""
    solution = interface.solution()
    program, shardings = places.stated(program, interface)
    module = portable_of(program)
    describe_main(module, places.devices, shardings, interface.result_names())
    thread_tokens(module, ordered)
    if solution is not None:
        make_composites_calls(module)
    add_convention(module, platforms, solution, uses_constants, len(ordered))
    return module


def _exported_vjp(primal: Exported, traced: Traced) -> Exported:
    """The VJP of a function that was traced here: it takes the leaves of the arguments, and a cotangent for each leaf
    of the result."""
    with Override(lowering_platforms=primal.platforms):
        stage, interface = traced_vjp(primal, traced)
        return _exported(stage, interface, primal.platforms, tuple(primal.disabled_safety_checks))
