"""How primitives are lowered: those names of jax.interpreters.mlir that mean something here. `interpreters.mlir` offers
them. hloom records HLO: a lowering gets traced arrays where JAX gives it values of MLIR, and may combine the functions
below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..debug.callbacks import io_callback, pure_callback
from ..extend.contexts import LoweredFunction, LoweringRuleContext
from ..tracer.arguments import ShapeDtypeStruct
from .rules import definition_of


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """A function of arrays as a lowering. It returns a list of arrays if `multiple_results`."""
    return LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Any:
    """Define a primitive in recorded programs: `rule` comes from `lower_fun`.

    A rule of another kind, rule(context, *arrays, **params) -> a list of arrays, may call functions that `lower_fun`
    has made, `emit_python_callback`, and the operations of `hloom.extend.mlir.dialects`. If it builds other parts of
    MLIR, using the primitive under jit raises UnsupportedError.

    platform: the rule is for this platform only. Programs run on "cpu"; a program that is exported for several
      platforms has the rules of all of them.
    """
    lowerings = definition_of(prim, "lowering").lowerings
    if rule is None:
        lowerings.pop(platform, None)
    else:
        lowerings[platform] = rule
    return rule


def emit_python_callback(
    ctx: LoweringRuleContext,
    callback: Callable[..., Any],
    token: Any,
    operands: Sequence[Any],
    operand_avals: Sequence[Any],
    result_avals: Sequence[Any],
    *,
    has_side_effect: bool,
    returns_token: bool = True,
    partitioned: bool = False,
    sharding: Any = None,
) -> tuple[Sequence[Any], Any, None]:
    """In a lowering, a call of a Python function on the operands: (results, token, None).

    `callback` returns a sequence of arrays of the types `result_avals`. It is a `pure_callback`, or with
    `has_side_effect` an `io_callback`. Effects run in the order of the program, with any token. The program keeps the
    function: there is no further object to be kept.
    """
    if partitioned and result_avals:
        raise ValueError("Partitioned callback not supported with return values.")
    call = io_callback if has_side_effect else pure_callback
    wanted = [ShapeDtypeStruct(a.shape, a.dtype) for a in result_avals]
    results = call(lambda *given: list(callback(*given)), wanted, *operands)
    return results, token, None
