"""Lowerings of primitives that are calls of native code: `ffi_lowering`, with JAX's names and arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..extend.contexts import LoweringRuleContext
from ..hlo.errors import UnsupportedError
from ..hlo.mlir.python_values import write_values
from ..hlo.support.records import dataclass
from ..tracer.arrays.array import as_value
from ..tracer.arrays.overlay import storages
from .calls import ForeignCall, Order, order_of, rank_of


@dataclass(frozen=True, slots=True)
class LoweredCall:
    """A call in a lowering, where JAX has an operation of MLIR."""

    results: list[Any]


def build_ffi_lowering_function(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., LoweredCall]:
    """As `ffi_lowering`, with a result that has the arrays in its field `results`. JAX's
    `ffi.build_ffi_lowering_function`."""
    known = {"api_version", "has_side_effect", "operand_output_aliases", "extra_attributes"}
    if unknown := lowering_args.keys() - known:
        raise UnsupportedError(f"ffi_lowering: {min(unknown)!r} is an argument for MLIR, which hloom does not have")
    version = int(lowering_args.get("api_version", 4))
    given = backend_config or {}
    if version >= 4 and not isinstance(given, Mapping):
        raise ValueError("When api_version > 4, backend_config must be a dictionary.")
    extra = dict(lowering_args.get("extra_attributes") or {})
    frontend = tuple(sorted(dict(extra.pop("mhlo.frontend_attributes", {})).items()))
    if extra:
        raise UnsupportedError(f"ffi_lowering: the extra attribute {min(extra)!r} has no meaning in HLO")
    aliases = tuple(sorted((lowering_args.get("operand_output_aliases") or {}).items()))
    acts = bool(lowering_args.get("has_side_effect", False))

    def lower(context: LoweringRuleContext, *operands: Any, **params: Any) -> LoweredCall:
        if version < 4 and params:
            raise ValueError(
                f"The use of ffi_call attributes requires a custom call API version of at least 4; got {version}."
            )
        results = context.avals_out
        if results is None:
            raise UnsupportedError(
                f"ffi_lowering of {call_target_name!r}: the types of the results are not known; the primitive needs "
                "def_abstract_eval"
            )
        values = [as_value(o) for o in operands]
        config = write_values({**given, **params}) if isinstance(given, Mapping) and version >= 4 else str(given or "")
        call = ForeignCall(
            call_target_name,
            tuple(results),
            operand_orders=_minor_to_major(values, operand_layouts),
            result_orders=_minor_to_major(results, result_layouts),
            aliases=aliases,
            config=config,
            api_version=version,
            has_side_effect=acts,
            frontend=frontend,
        )
        return LoweredCall(call.bind(storages(tuple(values))))

    return lower


def ffi_lowering(call_target_name: str, **options: Any) -> Callable[..., list[Any]]:
    """A lowering that calls a target with the operands of a primitive, and with its parameters as attributes. JAX's
    `ffi.ffi_lowering`; for `interpreters.mlir.register_lowering`.

    operand_layouts, result_layouts: for each None for row-major, a `Layout`, or the dimensions from the innermost to
    the outermost one.
    backend_config: further attributes; for a call of a version before 4, its text.
    api_version, has_side_effect, operand_output_aliases ({operand: result}); extra_attributes: a dictionary with
    `mhlo.frontend_attributes`. UnsupportedError for other arguments.

    The primitive's abstract evaluation gives the types of the results.
    """
    build = build_ffi_lowering_function(call_target_name, **options)
    return lambda context, *operands, **params: build(context, *operands, **params).results


def _minor_to_major(values: Sequence[Any], layouts: Sequence[Any] | None) -> tuple[Order, ...]:
    given = [None] * len(values) if layouts is None else layouts
    turned = [tuple(each)[::-1] if isinstance(each, Sequence) else each for each in given]
    return tuple([order_of("array's", rank_of(v), each) for v, each in zip(values, turned, strict=True)])
