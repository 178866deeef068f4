"""The primitive `ffi_call` as jaxprs show it, with JAX's parameters; its attributes are text, as HLO has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..extend.effects import FFI
from ..ffi.calls import ACTING, FFI_CALL, ForeignCall
from ..hlo.ir import HloInstruction
from ..tracer.core import Call, Value
from .atoms import Atom
from .calls import CALLS
from .nodes import no_effects
from .primitives import primitive
from .rules import Body, Shown

NAMES = {
    "result_avals": "results", "target_name": "target", "has_side_effect": "has_side_effect",
    "vmap_method": "vmap_method", "input_layouts": "operand_orders", "output_layouts": "result_orders",
    "input_output_aliases": "aliases", "custom_call_api_version": "api_version", "attributes": "config",
    "frontend_attributes": "frontend", "operand_tokens": "operand_tokens", "result_tokens": "result_tokens",
}  # fmt: skip
"""JAX's names of the fields of `ForeignCall`; the last three are not JAX's."""

def _shown(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    use: ForeignCall = call.params
    params = {name: getattr(use, own) for name, own in NAMES.items()}
    effects = frozenset({FFI}) if use.has_side_effect else no_effects
    return Shown("ffi_call", operands, params, effects)


CALLS[FFI_CALL] = CALLS[ACTING] = _shown


@primitive("ffi_call", multiple_results=True)
def _bind(*values: Value, **params: Any) -> list[Value]:
    return ForeignCall(**{own: params[name] for name, own in NAMES.items()}).bind(values)
