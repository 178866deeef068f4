"""Calls of Python functions: `pure_callback`, `io_callback`, `debug_callback` and `debug_print`, with JAX's parameters.

the custom call runs `callback`: a function of flat arrays, which knows the user's function and the tree of its
arguments. So `bind` needs nothing but an equation's parameters.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..debug import callbacks
from ..debug.host import HostCallback
from ..hlo.ir import HloInstruction
from ..tracer import core
from ..tracer.core import Call, Value
from .atoms import Atom
from .calls import CALLS
from .nodes import OpEffect, no_effects
from .primitives import primitive
from .shown import Body, Shown

DEBUG, ORDERED_DEBUG, IO, ORDERED_IO = map(OpEffect, ("Debug", "OrderedDebug", "IO", "OrderedIO"))
_EFFECTS = {callbacks.IO: (IO, ORDERED_IO), callbacks.DEBUG: (DEBUG, ORDERED_DEBUG)}
_EFFECTS[callbacks.PRINT] = _EFFECTS[callbacks.DEBUG]


def _shown(call: Call, i: HloInstruction, operands: Sequence[Atom], body: Body) -> Shown:
    use: callbacks.Callback = call.params
    name, params = call.primitive.name, _PARAMS[call.primitive](use)
    kinds = _EFFECTS.get(call.primitive)
    effects = no_effects if kinds is None else frozenset({kinds[use.ordered]})
    return Shown(name, operands, {"callback": use.host, **params}, effects)


_PARAMS = {
    callbacks.PURE: lambda use: {
        "result_avals": use.host.results,
        "sharding": None,
        "vmap_method": use.vmap_method,
    },
    callbacks.IO: lambda use: {"ordered": use.ordered, "result_avals": use.host.results, "sharding": None},
    callbacks.DEBUG: lambda use: {"ordered": use.ordered, "partitioned": False},
    callbacks.PRINT: lambda use: {"fmt": use.host.name, "ordered": use.ordered, "partitioned": False},
}


def _define(of: core.Primitive) -> None:
    CALLS[of] = _shown

    @primitive(of.name, multiple_results=True)
    def bind(
        *values: Value, callback: HostCallback, ordered: bool = False, vmap_method: str | None = None, **others: Any
    ) -> list[Value]:
        return callbacks.Callback(callback, ordered, vmap_method).bind(of, values)


for _primitive in _PARAMS:
    _define(_primitive)
