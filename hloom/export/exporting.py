"""export: a jitted function is traced, its program becomes StableHLO, and what JAX's calling convention asks for is
added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..autodiff.api import vjp
from ..hlo.errors import UnsupportedError
from ..hlo.sizes import is_symbolic
from ..hlo.stablehlo.portable import portable_of
from ..hlo.support.tracebacks import boundary
from ..hlo.symbolic.arguments import Solution, solve
from ..hlo.symbolic.expressions import Dim
from ..tracer.arguments import ShapeDtypeStruct, split_static
from ..tracer.aval import FLOAT0, ShapedArray
from ..tracer.control_flow.platforms import PLATFORM
from ..tracer.core import eval_computation
from ..tracer.jit import PjitFunction, jit
from ..tracer.settings.config import config
from ..tracer.settings.context import Override
from ..tracer.sharding.shardings import Sharding
from ..tracer.sharding.spmd import named_shardings
from ..tracer.stages import Traced
from ..tracer.traced import with_avals
from ..tracer.trees import tree
from ..tracer.trees.treedef import PyTreeDef
from ..tracer.wrapping import name_of
from .artifacts import bytes_of
from .calling import called
from .checks import DisabledSafetyCheck, check_custom_calls
from .conventions import add_convention
from .dynamic import make_composites_calls
from .exported import (
    Exported,
    maximum_supported_calling_convention_version,
    minimum_supported_calling_convention_version,
)
from .modules import closed_module
from .paths import argument_names, path_text
from .placing import abstract_sharding, text_of

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
            return _export(jitted.trace(*args, **kwargs), args, kwargs, asked, checks)

    return exported


_LIBRARY = __name__.partition(".")[0] + "."


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


def _export(
    traced: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], platforms: tuple[str, ...],
    checks: tuple[DisabledSafetyCheck, ...],
) -> Exported:  # fmt: skip
    signature = traced._signature
    dynamic, keywords, _ = split_static(signature.fun, signature.static, args, kwargs)
    in_tree = tree.structure((dynamic, keywords))
    ins, outs = (in_tree, signature.in_avals), (signature.out_tree, signature.out_avals)
    return _exported(traced, platforms, checks, ins, outs)


def _exported(
    traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...],
    arguments: tuple[PyTreeDef, Sequence[Any]], results: tuple[PyTreeDef, Sequence[Any]],
) -> Exported:  # fmt: skip
    """The exported function. arguments, results: structure and types, with float0 types, which its program lacks."""
    (in_tree, in_avals), (out_tree, out_avals) = arguments, results
    version = _version()
    signature, lowered = traced._signature, traced.lower()
    if lowered.with_references:
        raise NotImplementedError("serialization of functions that read or write mutable arrays is not yet implemented")
    if signature.donated and any(p in _DONATING for p in platforms) and not _DONATING.issuperset(platforms):
        raise NotImplementedError(
            "In multi-platform lowering either all or no lowering platforms should support donation. Lowering for "
            f"{platforms} of which only {tuple([p for p in platforms if p in _DONATING])} support donation"
        )
    assert signature.stated is not None, f"{traced} is not from this process"
    ins, outs = signature.stated()
    places = [s for s in (*ins, *outs, *named_shardings(traced._computation)) if s is not None]
    count = max([s.num_devices for s in places], default=1)
    kept = tuple([k for k, a in enumerate(in_avals) if a.dtype != FLOAT0])
    found = closed_module(lowered, out_avals)
    module = portable_of(found)
    solution = _solution(in_avals, in_tree, kept)
    if solution is not None:
        make_composites_calls(module)
    uses_constants = len(platforms) > 1 or solution is not None or any(e.uses_global_constants for e in called(found))
    given, made = iter(ins), iter(outs)
    in_shardings = tuple([None if a.dtype == FLOAT0 else abstract_sharding(next(given), a) for a in in_avals])
    out_shardings = tuple([None if a.dtype == FLOAT0 else abstract_sharding(next(made), a) for a in out_avals])
    texts = (
        [text_of(in_shardings[k], in_avals[k]) for k in kept],
        [text_of(s, a) for s, a in zip(out_shardings, out_avals, strict=True)],
    )
    names = [f"result{tree.keystr(path)}" for path in tree.paths_of_structure(out_tree)]
    add_convention(module, platforms, solution, uses_constants, count, texts, names)
    check_custom_calls(module, checks)
    return Exported(
        fun_name=traced.fun_name,
        in_tree=in_tree,
        in_avals=tuple(in_avals),
        out_tree=out_tree,
        out_avals=tuple(out_avals),
        _has_named_shardings=True,
        _in_named_shardings=in_shardings,
        _out_named_shardings=out_shardings,
        in_shardings_hlo=(None,) * len(in_avals),
        out_shardings_hlo=(None,) * len(out_avals),
        nr_devices=count,
        platforms=platforms,
        ordered_effects=(),
        unordered_effects=(),
        disabled_safety_checks=checks,
        mlir_module_serialized=bytes_of(module),
        calling_convention_version=version,
        module_kept_var_idx=kept,
        uses_global_constants=uses_constants,
        _get_vjp=lambda primal: _exported_vjp(primal, traced),
    )


def _solution(in_avals: Sequence[Any], in_tree: PyTreeDef, kept: Sequence[int]) -> Solution | None:
    """How the program finds the variables of its sizes; None if it has none."""
    if not any(is_symbolic(n) for a in in_avals for n in a.shape):
        return None
    names = argument_names(in_tree)
    return solve([in_avals[k].shape for k in kept], [names[k] for k in kept])


def _exported_vjp(primal: Exported, traced: Traced) -> Exported:
    """The VJP of a function that was traced here: of its leaves, and a cotangent for each leaf of its result."""
    signature, ins, outs = traced._signature, primal.in_avals, primal.out_avals
    tangents = [a.to_tangent_aval() if a.dtype != FLOAT0 else a for a in (*ins, *outs)]
    moving_in = [k for k, t in enumerate(tangents[: len(ins)]) if t.dtype != FLOAT0]
    moving_out = [k for k, t in enumerate(tangents[len(ins) :]) if t.dtype != FLOAT0]
    numbers = [k for k, a in enumerate(ins) if a.dtype != FLOAT0]

    def pullback(*values: Any) -> tuple[Any, ...]:
        primals = dict(zip(numbers, values, strict=False))

        def function(*moving: Any) -> list[Any]:
            given = {**primals, **dict(zip(moving_in, moving, strict=True))}
            found = eval_computation(traced._computation, [*[given[k] for k in numbers], *traced._captured])
            results = with_avals(found[: len(signature.out_avals)], signature.out_avals)
            every = dict(zip([k for k, a in enumerate(outs) if a.dtype != FLOAT0], results, strict=True))
            return [every[k] for k in moving_out]

        _, pull = vjp(function, *[primals[k] for k in moving_in])
        return tuple(pull(list(values[len(numbers) :])))

    pullback.__name__ = f"{primal.fun_name}_vjp"
    assert signature.stated is not None, f"{traced} is not from this process"
    placed_in, placed_out = signature.stated()
    of_in = dict(zip(numbers, placed_in, strict=True))
    of_out = dict(zip([k for k, a in enumerate(outs) if a.dtype != FLOAT0], placed_out, strict=True))
    types: list[ShapedArray] = [*[ins[k] for k in numbers], *[tangents[len(ins) + k] for k in moving_out]]
    given: list[Sharding | None] = [*[of_in[k] for k in numbers], *[of_out[k] for k in moving_out]]
    wanted = [of_in[k] for k in moving_in]
    options: dict[str, Any] = {
        name: tuple(found) for name, found in (("in_shardings", given), ("out_shardings", wanted)) if any(found)
    }
    jitted: PjitFunction[..., Any] = jit(pullback, **options)
    with Override(lowering_platforms=primal.platforms):
        stage = jitted.trace(*[ShapeDtypeStruct.of(t) for t in types])
        every = [*ins, *tangents[len(ins) :]]
        checks = tuple(primal.disabled_safety_checks)
        arguments = tree.structure(((0,) * len(every), {})), every
        results = tree.structure((0,) * len(ins)), tangents[: len(ins)]
        return _exported(stage, primal.platforms, checks, arguments, results)
