"""Programs that read and write mutable arrays, run outside of any trace.

A program takes the arrays that its references have now, and returns those that they have from then on. The program gets
the memory of references that it writes, as of donated arguments, and writes it in place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...hlo.backend import Executable
from ...hlo.builder import make_module
from ...hlo.ir import HloModule, InputOutputAlias
from ..arguments import identifier
from ..arrays.array import Array
from ..core import EVAL
from ..execution import CompileOptions, aliases_for, compile_module, donations
from ..traced import Traced, with_avals
from ..tracer import Tracer, leaked
from ..trees import tree
from .refs import AbstractRef, Ref, check_aliases, replace_all


def module_with_references(traced: Traced) -> tuple[HloModule, tuple[int, ...]]:
    """The module, and the parameters with memory that it may overwrite: donated ones, and the references that it
    writes."""
    places = _places_written(traced)
    first = len(traced.out_avals)
    own = tuple([InputOutputAlias((first + k,), place) for k, place in enumerate(places)])
    others = [a for a in aliases_for(traced.computation, traced.donated) if a.output_index[0] < first]
    aliases = tuple(sorted((*others, *own), key=lambda a: a.output_index))
    module = make_module(f"jit_{identifier(traced.name)}", traced.computation, input_output_aliases=aliases)
    return module, (*traced.donated, *places)


def _places_written(traced: Traced) -> list[int]:
    """The parameters of the references that it writes, in the order of their results."""
    count = len(traced.in_avals)
    captured = {id(v): count + k for k, v in enumerate(traced.captured)}
    return [w if isinstance(w, int) else captured[id(w)] for w in traced.written]


def running_on_references(
    traced: Traced, executable: Executable | None = None, options: CompileOptions = frozenset()
) -> Callable[[Sequence[Any]], Any]:
    """A function from the leaves of a call, arrays and references, to its result. It writes the references.
    `executable`: the compiled module, if there is one already."""
    for value in traced.captured:
        if isinstance(value, Tracer):
            raise leaked(value)
    module, donated = module_with_references(traced)
    executable = executable or compile_module(module, donated=donated, options=options)
    call, device = executable.call, executable.device
    count = len(traced.out_avals)
    names = [p.metadata.op_name if p.metadata else "" for p in traced.computation.parameters]
    has_arguments = any(isinstance(a, AbstractRef) for a in traced.in_avals)

    def run(leaves: Sequence[Any]) -> Any:
        if has_arguments:
            check_aliases(leaves, names, traced.captured, "jit")
        arrays = [_array(v) for v in (*leaves, *traced.captured)]
        found = call(donations(arrays, donated, device))
        results = [Array.from_buffer(a.storage, b) for a, b in zip(traced.out_avals, found[:count], strict=True)]
        references = traced.references_written(leaves)
        new = [Array.from_buffer(r.aval.inner_aval.storage, b) for r, b in zip(references, found[count:], strict=True)]
        replace_all(references, new)
        return tree.unflatten(traced.out_tree, with_avals(results, traced.out_avals))

    return run


def _array(value: Any) -> Array:
    if not isinstance(value, Ref):
        return value  # type: ignore[no-any-return]
    value.check()
    if value._owner is not EVAL:
        raise ValueError(f"{value.aval} is used outside of the function that made it.\n  {value.origin()}")
    array: Array = value._value
    return array
