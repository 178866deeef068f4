"""How primitives are lowered: those names of jax.interpreters.mlir that mean something here. `interpreters.mlir` offers
them. hloom records HLO, and has no MLIR: a lowering is a function of arrays, which is traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..extend.protocol import LoweredFunction
from ..hlo.errors import UnsupportedError
from .rules import definition_of


def lower_fun(fun: Callable[..., Any], multiple_results: bool = True) -> LoweredFunction:
    """A function of arrays as a lowering. It returns a list of arrays if `multiple_results`."""
    return LoweredFunction(fun, multiple_results)


def register_lowering(
    prim: Any, rule: Any, platform: str | None = None, inline: bool = True, cacheable: bool = True
) -> Any:
    """Define a primitive in recorded programs: `rule` comes from `lower_fun`.

    A rule for another platform than "cpu" is not used. A rule that writes MLIR is kept, and using the primitive under
    jit then raises UnsupportedError.
    """
    definition = definition_of(prim, "lowering")
    if platform in (None, "cpu"):
        definition.lowering = rule
    return rule


def emit_python_callback(*args: Any, **kwargs: Any) -> Any:
    """UnsupportedError: it writes MLIR. `hloom.pure_callback` and `hloom.experimental.io_callback` call Python."""
    raise UnsupportedError(
        "emit_python_callback writes MLIR, which hloom does not have: call hloom.pure_callback or "
        "hloom.experimental.io_callback in a lowering that mlir.lower_fun makes"
    )
