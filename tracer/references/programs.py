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
from ..arrays.array import Array, is_placed
from ..core import EVAL
from ..execution import CompileOptions, aliases_for, compile_module, donations, kept_by
from ..sharding.devices import SEVERAL
from ..sharding.placed_operations import places_on_one_device, run_placed
from ..sharding.spmd import Place, places_of
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
    program = executable
    count = len(traced.out_avals)
    names = [p.metadata.op_name if p.metadata else "" for p in traced.computation.parameters]
    has_arguments = any(isinstance(a, AbstractRef) for a in traced.in_avals)
    entry = traced.computation

    def places_of_results(places: tuple[Place, ...]) -> list[Place]:
        return kept_by(entry, ("places", places), lambda: places_on_one_device(entry, places))

    def run(leaves: Sequence[Any]) -> Any:
        if has_arguments:
            check_aliases(leaves, names, traced.captured, "jit")
        arrays = [_array(v) for v in (*leaves, *traced.captured)]
        references = traced.references_written(leaves)
        found = None
        if SEVERAL:
            found = run_placed(entry, [a._storage if a.aval.is_extended else a for a in arrays], traced.name)
        if found is None:
            found = run_on_one_device(arrays, references)
        replace_all(references, found[count:])
        return tree.unflatten(traced.out_tree, with_avals(found[:count], traced.out_avals))

    def run_on_one_device(arrays: list[Array], references: Sequence[Ref]) -> list[Array]:
        nonlocal program
        if program is None:
            program = compile_module(module, donated=donated, options=options)
        avals = [*traced.out_avals, *[r.aval.inner_aval for r in references]]
        found = program.call(donations(arrays, donated, program.device))
        results = [Array.from_buffer(a.storage, b) for a, b in zip(avals, found, strict=True)]
        if not any(map(is_placed, arrays)):
            return results
        places = [*places_of_results(places_of(arrays))[:count], *places_of(list(map(_array, references)))]
        return [r.with_aval(r.aval, p) for r, p in zip(results, places, strict=True)]

    return run


def _array(value: Any) -> Array:
    if not isinstance(value, Ref):
        return value  # type: ignore[no-any-return]
    value.check()
    if value._owner is not EVAL:
        raise ValueError(f"{value.aval} is used outside of the function that made it.\n  {value.origin()}")
    array: Array = value._value
    return array
