"""The programs that are stepped: of functions, and of modules from files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hlo.backend import get_compiler
from ...hlo.host_buffers import HostBuffer
from ...hlo.ir import HloModule
from ...hlo.support.records import dataclass
from ...tracer.arrays.array import Array
from ...tracer.core import exact_places
from ...tracer.jit import jit
from ...tracer.references.refs import Ref, replace_all
from ...tracer.stages import Lowered
from ...tracer.trees import tree
from ...tracer.wrapping import signature


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A program with its arguments."""

    module: HloModule
    leaves: Sequence[Any]
    """NumPy arrays, one for each leaf of the parameters."""
    arguments: Mapping[str, Any]
    """By the names that the user knows them by."""
    run: Callable[[], Any]
    """Runs it compiled, and returns the user's result."""
    optimized: Callable[[], HloModule]
    """The program after all passes."""
    wrap: Callable[[Sequence[Any]], Any]
    """The user's result, from the leaves of the program's."""


def program_of_function(
    fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any], optimized: bool
) -> Program:
    """The program of a function for these arguments: as it is traced, with exact places in the source, or after all
    passes. References to mutable arrays are written when it is over."""
    lower = fun.lower if hasattr(fun, "lower") else jit(fun).lower
    with exact_places():
        lowered: Lowered = lower(*args, **kwargs)
    signature = lowered._signature
    own = signature.leaves(args, kwargs)
    traced = signature.with_references
    references: list[Ref] = [] if traced is None else traced.references_written(own)
    leaves = [_copied(x) for x in (*own, *lowered.captured)]  # they may be donated
    compiled = lowered.compile()
    module = compiled.executable.module if optimized else lowered.module

    def wrap(results: Sequence[Any]) -> Any:
        shapes = [s.with_default_layout() for s in module.entry.root.shape.leaves()]
        avals = [*signature.out_avals, *[r.aval.inner_aval for r in references]]
        arrays = [
            Array.from_buffer(aval, HostBuffer(leaf, shape))
            for aval, leaf, shape in zip(avals, results, shapes, strict=True)
        ]
        count = len(signature.out_avals)
        replace_all(references, arrays[count:])
        return tree.unflatten(signature.out_tree, arrays[:count])

    return Program(
        module, leaves, _bound(lowered.fun, args, kwargs), lambda: compiled(*args, **kwargs),
        lambda: compiled.executable.module, wrap,
    )  # fmt: skip


def _copied(value: Any) -> Any:
    """The elements of an array, or of the array that a reference has now."""
    if isinstance(value, Ref):
        value.check()
        value = value._value
    return np.array(value._storage._view if value.aval.is_extended else value._view)


def program_of_module(module: HloModule, leaves: Sequence[Any], optimized: bool) -> Program:
    """The program of a module, for arrays; the result is the list of its leaves."""
    executable = get_compiler().compile(module)
    names = {p.name: value for p, value in zip(module.entry.parameters, leaves)}
    return Program(
        executable.module if optimized else module, leaves, names, lambda: executable.execute(leaves),
        lambda: executable.module, list,
    )  # fmt: skip


def _bound(fun: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the function's parameters."""
    try:
        bound = signature(fun).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)
